"""`tn.cse` shares equal subexpressions and computes nothing."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.core.graph import Graph
from tenfold.testing import assert_equal_bits


def count(*arrays: tn.Array) -> int:
    """The pending operations of a graph."""
    graph = Graph.of([*map(_native.node_of, arrays)])
    return sum(node.pending and node.op is not None for node in graph.nodes)


X = tn.asarray(np.random.default_rng(1).random((4, 4)))


@pytest.mark.usefixtures("fused_multiply_add")
def test_equal_subexpressions_are_one_and_nothing_is_computed() -> None:
    def written() -> tn.Array:
        return tn.exp(X + 1) * tn.sin(X[1:, :2].T @ X[1:, :2])[0, 0] - tn.exp(X + 1) @ X.T

    y, z = written(), tn.sum(tn.exp(X + 1), axis=0)
    with tn.profile() as p:
        shared, total = tn.cse(y, z)
    assert p.launches == 0
    assert count(shared, total) < count(y, z)
    assert_equal_bits(np.asarray(tn.cse(written())), np.asarray(y))
    assert_equal_bits(np.asarray(shared), np.asarray(y))
    assert_equal_bits(np.asarray(total), np.asarray(z))


def test_products_are_shared_though_that_saves_no_operation() -> None:
    assert count(tn.cse(X @ X + X @ X)) == 2


def test_results_of_equal_calls_with_several_results_are_shared() -> None:
    one, other = tn.linalg.qr(X), tn.linalg.qr(X)
    shared = tn.cse(one[0] @ other[1])
    assert count(shared) == count(one[0] @ other[1]) - 1
    assert_equal_bits(np.asarray(shared), np.asarray(one[0] @ other[1]))


def test_equal_results_are_arrays_of_their_own() -> None:
    first, second = tn.cse(X * 2, X * 2)
    first[0, 0] = 7.0
    assert (first[0, 0].item(), second[0, 0].item()) == (7.0, 2 * X[0, 0].item())


def test_functions_of_users_and_draws_are_not_merged() -> None:
    calls = []

    @tn.op(shape=(4, 4), reference=lambda x: calls.append(1) or x + 1.0)
    def counted(x: tn.Array) -> tn.Array:
        """One more."""

    tn.cse(counted(X) + counted(X)).wait()
    assert len(calls) == 2
    generator = tn.random.default_rng(0)
    draws = tn.cse(generator.random(4) - generator.random(4))
    assert np.any(np.asarray(draws) != 0)


def test_array_without_equal_parts_keeps_its_node() -> None:
    y = tn.exp(X) + 1
    assert _native.node_of(tn.cse(y)) == _native.node_of(y)
    assert tn.cse(X) is not X
    assert_equal_bits(np.asarray(tn.cse(X)), np.asarray(X))


def test_other_objects_are_refused() -> None:
    with pytest.raises(TypeError, match="Array"):
        tn.cse(np.ones(3))  # type: ignore[arg-type]  # what is refused
