"""What is written twice is computed once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.core.graph import Graph
from tenfold.rule_registry import optimise_graph

N = 12
CUBED, SQUARED = N**3, N**2


def values(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


a, b, v = values(N, N), values(N, N + 1)[:, 1:], values(10, N)
A, B, V = (tn.asarray(x) for x in (a, b, v))


def optimised_nodes(*arrays: tn.Array) -> list[str]:
    graph, _ = optimise_graph(Graph.of([_native.node_of(array) for array in arrays]))
    return [node.name for node in graph.nodes if node.pending]


def test_equal_products_of_a_list_are_one() -> None:
    made = [A @ B + tn.linalg.outer(V[i], V[i]) for i in range(10)]
    with tn.profile() as p:
        tn.eval(*made)
        made[0].wait()
    assert p.multiply_adds == CUBED
    for i, each in enumerate(made):
        np.testing.assert_allclose(
            np.asarray(each), a @ b + np.outer(v[i], v[i]), rtol=1e-12, atol=1e-12
        )


def test_equal_products_of_a_loop_that_adds_are_one() -> None:
    total = tn.zeros((N, N))
    with tn.profile() as p:
        for i in range(10):
            total += A @ B + tn.linalg.outer(V[i], V[i])
        total.wait()
    assert p.multiply_adds == CUBED
    np.testing.assert_allclose(np.asarray(total), 10 * (a @ b) + v.T @ v, rtol=1e-11, atol=1e-11)


Make = Callable[[tn.Array, tn.Array], tn.Array]


@pytest.mark.parametrize(
    ("make", "multiply_adds"),
    [
        (lambda x, y: x.T @ y + x.T @ y, CUBED),
        (lambda x, y: (x.T @ y).T @ (x.T @ y), 2 * CUBED),
        (lambda x, y: (x @ y) * (x @ y), CUBED),
        (lambda x, y: tn.exp(x @ y) / tn.sum(tn.exp(x @ y)), CUBED),
        (lambda x, y: x @ y + (x @ y).T, CUBED),
        (lambda x, y: (x @ y) @ x[0] + (x @ y) @ x[1], 2 * SQUARED),
        (lambda x, y: x @ (y @ x) + x @ (y @ x), 2 * CUBED),
    ],
)
def test_products_that_are_written_twice_are_shared_where_that_is_less(
    make: Make, multiply_adds: int
) -> None:
    with tn.profile() as p:
        found = np.asarray(make(A, B))
    with tn.options(optimise=False):
        wanted = np.asarray(make(A, B))
    assert p.multiply_adds <= multiply_adds
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)


def test_product_is_not_shared_by_chains_that_are_shorter_without_it() -> None:
    with tn.profile() as p:
        tn.eval(A @ B @ V[0], A @ B @ V[1])
    assert p.multiply_adds == 4 * SQUARED


def test_product_that_somebody_holds_is_computed_once() -> None:
    held = A @ B
    with tn.profile() as p:
        tn.eval(held, A @ B @ V[0])
    assert p.multiply_adds == CUBED + SQUARED


def test_solves_that_are_written_twice_are_one() -> None:
    square = tn.asarray(a + N * np.eye(N))
    assert optimised_nodes(
        tn.exp(tn.linalg.solve(square, B)), tn.sin(tn.linalg.solve(square, B))
    ) == ["solve", "exp", "sin"]


def test_results_of_one_factorisation_are_one() -> None:
    names = optimised_nodes(tn.linalg.qr(A)[0] + tn.linalg.qr(A)[0] * 2)
    assert names.count("linalg.qr") + names.count("qr") == 1


def test_elementwise_work_is_merged_after_the_rules() -> None:
    assert optimised_nodes(tn.exp(A + 1), tn.exp(A + 1)) == ["add", "exp"]
    assert optimised_nodes((A + 1) * 1, A + 1) == ["add"]


def test_each_holder_of_what_is_merged_has_its_value() -> None:
    one, other = tn.exp(A) + 1, tn.exp(A) + 1
    tn.eval(one, other)
    one[0] = 0.0
    np.testing.assert_allclose(np.asarray(other), np.exp(a) + 1, rtol=1e-14)
    assert np.asarray(one)[0].tolist() == [0.0] * N


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda: tn.full((3,), 0.0), lambda: tn.full((3,), -0.0)),
        (lambda: tn.full((3,), 1), lambda: tn.full((3,), True)),
        (lambda: tn.full((3,), 1.0), lambda: tn.full((3,), 1.0, dtype="float32")),
        (lambda: A * 2, lambda: A * 2.0 + 0 * B),
        (lambda: A[0], lambda: A[1]),
        (lambda: tn.sum(A, axis=0), lambda: tn.sum(A, axis=1)),
    ],
)
def test_nodes_of_other_parameters_are_not_merged(
    one: Callable[[], tn.Array], other: Callable[[], tn.Array]
) -> None:
    graph = Graph.of([_native.node_of(one()), _native.node_of(other())])
    assert "cse" not in optimise_graph(graph)[1].counts


def test_number_that_no_key_tells_apart_is_no_reason_to_merge() -> None:
    first, second = 3.7, 4.1
    for one, other in ((first, first), (first, second)):
        found = [np.asarray(x) for x in tn.eval(A * one, A * other)]
        np.testing.assert_array_equal(found[1], a * other)


def test_functions_of_users_are_called_as_often_as_they_are_written() -> None:
    seen: list[int] = []

    @tn.operator
    def loud(x: tn.Array, /) -> tn.Array:
        seen.append(x.size)
        return x

    tn.eval(loud(A) + 1, loud(A) + 1)[0].wait()
    assert len(seen) == 2


def test_report_says_what_became_what() -> None:
    graph = Graph.of([_native.node_of(tn.exp(A) - tn.exp(A))])
    (line,) = optimise_graph(graph, describe=True)[1].lines()
    assert line == "  cse at %2: exp(%0) => %1"
