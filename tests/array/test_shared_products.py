"""What each turn of a loop of assignments computes anew is computed once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.mutation.defer_shared_products import shares_product

pytestmark = pytest.mark.usefixtures("no_history")

N = 70
CUBED, SQUARED = N**3, N**2


def values(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


a, b, v = values(N, N), values(N, N + 1)[:, 1:], values(40, N)
A, B, V = (tn.asarray(x) for x in (a, b, v))


def looped(turns: int, make: Callable[[int], tn.Array]) -> tuple[np.ndarray, int, int]:
    """Return what a loop that assigns has made, its multiply-adds and copies."""
    result = tn.zeros((turns, *make(0).shape))
    with tn.profile() as p:
        for i in range(turns):
            result[i] = make(i)
        result.wait()
    return np.asarray(result), p.multiply_adds, p.copies


@pytest.mark.parametrize("again", range(3))
def test_product_of_each_turn_is_computed_once(again: int) -> None:
    found, multiply_adds, copies = looped(10, lambda i: A @ B + tn.linalg.outer(V[i], V[i]))
    wanted = a @ b + v[:10, :, None] * v[:10, None, :]
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)
    assert (multiply_adds, copies) == (CUBED, 0)


def test_long_loop_computes_it_once_in_a_group_of_turns() -> None:
    found, multiply_adds, _ = looped(40, lambda i: tn.exp(A @ B / 100) * V[i])
    np.testing.assert_allclose(found, np.exp(a @ b / 100) * v[:, None, :], rtol=1e-12)
    assert multiply_adds == -(-40 // _native.DEFERRAL.max_sharing) * CUBED


def test_solve_of_each_turn_is_computed_once() -> None:
    square = a + N * np.eye(N)
    S = tn.asarray(square)
    found, multiply_adds, _ = looped(5, lambda i: tn.linalg.solve(S, B) * V[i])
    alone = looped(1, lambda i: tn.linalg.solve(S, B) * V[i])[1]
    wanted = np.linalg.solve(square, b) * v[:5, None, :]
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)
    assert multiply_adds == alone


def test_factors_that_are_not_computed_yet_are_the_same_ones_in_each_turn() -> None:
    ones = tn.ones((N, N)) * 2
    found, multiply_adds, _ = looped(6, lambda i: ones @ B + V[i])
    wanted = (np.full((N, N), 2.0) @ b)[None] + v[:6, None, :]
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)
    assert multiply_adds == CUBED


def test_chain_that_is_shorter_by_itself_does_not_wait() -> None:
    found, multiply_adds, _ = looped(8, lambda i: A @ B @ V[i])
    np.testing.assert_allclose(found, v[:8] @ (a @ b).T, rtol=1e-10, atol=1e-10)
    assert multiply_adds == 8 * 2 * SQUARED


def test_products_that_differ_are_computed_turn_by_turn() -> None:
    matrices = [tn.asarray(a * (i + 1)) for i in range(6)]
    found, multiply_adds, _ = looped(6, lambda i: matrices[i] @ B + 1)
    wanted = (a @ b)[None] * np.arange(1.0, 7.0)[:, None, None] + 1
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)
    assert multiply_adds == 6 * CUBED


def test_operand_of_the_product_may_be_assigned_to() -> None:
    x, factor = tn.zeros((6, N, N)), tn.asarray(a)
    wanted = np.zeros((6, N, N))
    changed = a.copy()
    for i in range(6):
        x[i] = factor @ B + 1
        wanted[i] = changed @ b + 1
        if i % 2:
            factor[0] = float(i)
            changed[0] = float(i)
    np.testing.assert_allclose(np.asarray(x), wanted, rtol=1e-10, atol=1e-10)


def test_turns_that_wait_keep_what_each_has_read() -> None:
    x = tn.zeros((5, N, N))
    wanted = np.zeros((5, N, N))
    for i in range(5):
        x[i] = A @ B + x[i - 1]
        wanted[i] = a @ b + wanted[i - 1]
    seen = +x
    x[2] = 0.0
    np.testing.assert_allclose(np.asarray(seen), wanted, rtol=1e-10, atol=1e-10)
    wanted[2] = 0
    np.testing.assert_allclose(np.asarray(x), wanted, rtol=1e-10, atol=1e-10)


def test_product_of_an_earlier_turn_is_not_taken_for_the_same() -> None:
    x = tn.zeros((6, N, N))
    x[0] = A + 1
    for i in range(1, 6):
        assert not shares_product(_native.node_of(x), _native.node_of(x[i - 1] @ B / 10))
        x[i] = x[i - 1] @ B / 10
    wanted = [a + 1]
    for _ in range(5):
        wanted.append(wanted[-1] @ b / 10)
    np.testing.assert_allclose(np.asarray(x), wanted, rtol=1e-9, atol=1e-9)


def test_nothing_waits_where_nothing_is_optimised() -> None:
    with tn.options(optimise=False):
        _, multiply_adds, _ = looped(4, lambda i: A @ B + V[i])
    assert multiply_adds == 4 * CUBED


def test_view_that_a_rule_looks_through_is_not_of_what_is_written_later() -> None:
    with tn.options(tier=0):
        x = tn.asarray(np.array([1, 2, 3]))
        view = x[:2]
        x[...] = x * 3 - 1
        early = view[::-1] - view
        x[...] = x * 3 - 1
        late = view[::-1] * 1
        view[1:] = view[1:] + 1
        view *= 2
        assert late.tolist() == [14, 5]
        assert early.tolist() == [3, -3]
        assert x.tolist() == [10, 30, 23]
