"""Linear algebra of `tenfold.numpy`: errors at the call, and factors that later calls use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.linalg import LinAlgError

import tenfold as tn
import tenfold.numpy as ours

N = 30
LU, COLUMN = N**3 // 3, N * N
DTYPES = ["float32", "float64", "complex64", "complex128", "int64"]


def regular(order: int = N, dtype: str = "float64", seed: int = 0) -> np.ndarray:
    random = np.random.default_rng((seed, order))
    values = random.integers(-2, 3, (order, order)) + 2 * order * np.eye(order)
    return values.astype(dtype)


def singular(order: int, dtype: str = "float64") -> np.ndarray:
    values = regular(order, dtype)
    values[-1] = 0
    return values


def multiply_adds(compute: Callable[[], Any]) -> int:
    with tn.profile() as p:
        tn.eval(compute()).wait()
    return p.multiply_adds


ON_SINGULAR: dict[str, Callable[[Any, Any], Any]] = {
    "inv": lambda la, a: la.inv(a),
    "solve": lambda la, a: la.solve(a, a[0]),
    "solve of columns": lambda la, a: la.solve(a, a),
    "matrix_power": lambda la, a: la.matrix_power(a, -2),
    "tensorinv": lambda la, a: la.tensorinv(a, 1),
    "tensorsolve": lambda la, a: la.tensorsolve(a, a[0]),
    "cholesky": lambda la, a: la.cholesky(a),
}
ON_NAN: dict[str, Callable[[Any, Any], Any]] = {
    "svd": lambda la, a: la.svd(a),
    "svd without vectors": lambda la, a: la.svd(a, compute_uv=False),
    "svdvals": lambda la, a: la.svdvals(a),
    "eigh": lambda la, a: la.eigh(a),
    "eigvalsh": lambda la, a: la.eigvalsh(a),
    "pinv": lambda la, a: la.pinv(a),
    "lstsq": lambda la, a: la.lstsq(a, a[0]),
    "matrix_rank": lambda la, a: la.matrix_rank(a),
    "cond": lambda la, a: la.cond(a),
    "norm": lambda la, a: la.norm(a, 2),
    "matrix_norm": lambda la, a: la.matrix_norm(a, ord="nuc"),
    "eig": lambda la, a: la.eig(a),
}


def arrays_of(values: np.ndarray) -> list[Any]:
    """Return what a caller may have: an Array, a pending one, a list, a view, an ndarray."""
    pending = tn.asarray(values) * 1
    return [tn.asarray(values), pending, tn.asarray(np.stack([values, values]))[1], values.tolist()]


@pytest.mark.parametrize("order", [2, 8, 20])
@pytest.mark.parametrize("name", ON_SINGULAR)
def test_a_singular_matrix_is_refused_at_the_call(name: str, order: int) -> None:
    for dtype in DTYPES:
        values = singular(order, dtype)
        with pytest.raises(LinAlgError):
            ON_SINGULAR[name](np.linalg, values)
        *arrays, rows = arrays_of(values)
        for x in arrays:
            for _ in range(2):
                with pytest.raises(LinAlgError):
                    ON_SINGULAR[name](ours.linalg, x)
        if name in ("inv", "matrix_power", "cholesky"):
            with pytest.raises(LinAlgError):
                ON_SINGULAR[name](ours.linalg, rows)
            with pytest.raises(LinAlgError):
                ON_SINGULAR[name](np.linalg, tn.asarray(values))


@pytest.mark.parametrize("order", [3, 20])
@pytest.mark.parametrize("name", ON_NAN)
def test_a_decomposition_that_fails_is_refused_at_the_call(name: str, order: int) -> None:
    values = regular(order)
    values[0, 0] = np.nan
    with pytest.raises(LinAlgError):
        ON_NAN[name](np.linalg, values)
    for x in arrays_of(values)[:-1]:
        with pytest.raises(LinAlgError):
            ON_NAN[name](ours.linalg, x)


def test_the_first_singular_matrix_of_a_stack_is_named() -> None:
    stack = np.stack([regular(9), singular(9)])
    for call in (lambda: ours.linalg.inv(stack), lambda: ours.linalg.solve(stack, stack)):
        with pytest.raises(LinAlgError, match=r"Singular matrix at 1 of the stack"):
            call()


def test_not_a_number_is_not_singular() -> None:
    values = regular()
    values[0, 0] = np.nan
    found = np.asarray(ours.linalg.inv(tn.asarray(values)))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(np.linalg.inv(values)))


def test_an_error_names_the_call_and_its_line() -> None:
    with pytest.raises(LinAlgError, match=r"^inv: Singular matrix: x, float64 \(20, 20\).*written"):
        ours.linalg.inv(singular(20))
    with pytest.raises(tn.errors.ShapeError, match=r"^solve: "):
        ours.linalg.solve(regular(), np.ones(3))
    with pytest.raises(tn.errors.ShapeError, match=r"^inv: "):
        ours.linalg.inv(np.ones((3, 20)))
    with pytest.raises(tn.errors.DTypeError, match=r"^solve: "):
        ours.linalg.solve(tn.ones((2, 2), dtype=tn.float16), tn.ones(2, dtype=tn.float16))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", [1, 8, 9, 20])
def test_values_are_numpys(order: int, dtype: str) -> None:
    values, side = regular(order, dtype), regular(order, dtype, seed=1)
    tolerance = 1e-4 if dtype in ("float32", "complex64") else 1e-9
    for right in (side, side[0], 1j * side, np.stack([side, side])):
        for x in arrays_of(values):
            for _ in range(2):
                found = ours.linalg.solve(x, right)
                expected = np.linalg.solve(values, right)
                np.testing.assert_allclose(np.asarray(found), expected, tolerance, tolerance)
    x = tn.asarray(values)
    for name in ("inv", "det", "slogdet", "inv", "det"):
        found, expected = getattr(ours.linalg, name)(x), getattr(np.linalg, name)(values)
        for mine, numpys in (
            zip(found, expected, strict=True) if name == "slogdet" else [(found, expected)]
        ):
            assert mine.dtype == numpys.dtype
            np.testing.assert_allclose(np.asarray(mine), numpys, tolerance * 10, tolerance)


@pytest.mark.parametrize("order", [2, 20])
def test_integers_are_solved_in_float64(order: int) -> None:
    for first in ("int8", "float32"):
        for second in ("int8", "float32", "complex64"):
            a, b = regular(order, first), regular(order, second)[0]
            for name in ("solve", "tensorsolve"):
                found = getattr(ours.linalg, name)(tn.asarray(a), tn.asarray(b))
                assert found.dtype == getattr(np.linalg, name)(a, b).dtype


def test_a_product_with_an_inverse_takes_a_factorisation_and_a_substitution() -> None:
    b = tn.asarray(regular()[0])
    for make in (lambda: tn.asarray(regular()), lambda: tn.asarray(regular()) * 1.0):
        a = make()
        assert multiply_adds(lambda: ours.linalg.inv(a) @ b) == LU + COLUMN  # noqa: B023  # at once
        assert multiply_adds(lambda: b @ ours.linalg.inv(a)) == COLUMN  # noqa: B023
        assert multiply_adds(lambda: ours.linalg.inv(a).T @ b) == COLUMN  # noqa: B023
    a = tn.asarray(regular())
    assert multiply_adds(lambda: ours.linalg.inv(a) @ (1j * b)) == LU + COLUMN


def test_later_calls_use_the_factors() -> None:
    a, b = tn.asarray(regular()), tn.asarray(regular()[0])
    assert multiply_adds(lambda: ours.linalg.solve(a, b)) == LU + COLUMN
    assert multiply_adds(lambda: ours.linalg.solve(a, b)) == COLUMN
    assert multiply_adds(lambda: ours.linalg.det(a)) == 0
    assert multiply_adds(lambda: ours.linalg.slogdet(a)[1]) == 0
    assert multiply_adds(lambda: ours.linalg.inv(a)) == N**3 - LU


def test_the_inverse_is_computed_only_if_it_is_read() -> None:
    a = tn.asarray(regular())
    with tn.profile() as p:
        inverse = ours.linalg.inv(a)
    assert p.multiply_adds == LU
    assert multiply_adds(lambda: inverse) == N**3 - LU


def test_an_operand_is_computed_once() -> None:
    t = tn.asarray(regular())
    a = t @ t
    with tn.profile() as p:
        ours.linalg.inv(a)
        a.wait()
    assert p.multiply_adds == N**3 + LU


def test_a_definite_matrix_is_factored_by_cholesky() -> None:
    t = tn.asarray(regular())
    a, b = t.T @ t + ours.eye(N), tn.asarray(regular()[0])
    assert multiply_adds(lambda: ours.linalg.solve(a, b)) < N**3 + LU
    product = np.asarray(a @ ours.linalg.solve(a, b))
    np.testing.assert_allclose(product, regular()[0], rtol=1e-6, atol=1e-9)


def test_factors_go_when_the_matrix_changes() -> None:
    writes: list[Callable[[tn.Array], Any]] = [
        lambda a: a.__setitem__((0, 0), 77.0),
        lambda a: a.__imul__(2.0),
        lambda a: a.T.__setitem__(0, 5.0),
        lambda a: a.__setitem__(slice(None), regular(seed=2)),
    ]
    for write in writes:
        a = tn.asarray(regular())
        ours.linalg.inv(a)
        write(a)
        np.testing.assert_allclose(
            np.asarray(ours.linalg.inv(a)), np.linalg.inv(np.asarray(a)), rtol=1e-6, atol=1e-9
        )
        a[0] = 0.0
        with pytest.raises(LinAlgError):
            ours.linalg.inv(a)
    a = tn.asarray(regular(16))
    ours.linalg.inv(a)
    a.shape = (1, 16, 16)
    assert ours.linalg.inv(a).shape == (1, 16, 16)


def test_a_window_is_factored_anew() -> None:
    memory = regular()
    a = tn.wrap(memory)
    ours.linalg.inv(a)
    memory[0] = 0.0
    with pytest.raises(LinAlgError):
        ours.linalg.inv(a)


def test_in_a_trace_nothing_waits() -> None:
    a, b = tn.asarray(regular()), tn.asarray(regular()[0])
    solve = tn.function(lambda x, y: ours.linalg.inv(x) @ y)
    assert multiply_adds(lambda: solve(a, b)) == LU + COLUMN
    constants = tn.function(
        lambda y: ours.linalg.solve(a, y) + ours.linalg.cholesky(ours.eye(N))[0]
    )
    expected = np.linalg.solve(regular(), regular()[0]) + np.eye(N)[0]
    np.testing.assert_allclose(np.asarray(constants(b)), expected, rtol=1e-9)
    stack = np.stack([regular(), regular(seed=1)])
    inverses = tn.vmap(ours.linalg.inv)(tn.asarray(stack))
    np.testing.assert_allclose(np.asarray(inverses), np.linalg.inv(stack), rtol=1e-6, atol=1e-12)
    refused = tn.vmap(ours.linalg.inv)(tn.asarray(np.stack([regular(), singular(N)])))
    with pytest.raises(LinAlgError):
        refused.wait()
    with tn.options(strict_sync=True):
        lazy = ours.linalg.inv(singular(20))
        with pytest.raises(LinAlgError):
            lazy.wait()


def test_the_main_namespace_raises_at_the_wait() -> None:
    for order in (2, 20):
        lazy = [tn.linalg.inv(tn.asarray(singular(order))), tn.linalg.cholesky(-tn.eye(order))]
        for x in lazy:
            with pytest.raises(LinAlgError):
                x.wait()


def test_known_indices_are_checked_at_the_call() -> None:
    x = ours.zeros(5)
    computed = (ours.arange(2) * 99).wait()
    pending = ours.arange(2) * 99
    calls: list[Callable[[Any], Any]] = [
        lambda i: x[i],
        lambda i: ours.take(x, i),
        lambda i: ours.take_along_axis(x, ours.asarray(i), 0),
        lambda i: x.__setitem__(i, 1.0),
        lambda i: ours.add.at(x, i, 1.0),
    ]
    for call in calls:
        for known in ([0, 99], np.array([0, 99]), computed):
            with pytest.raises(IndexError):
                call(known)
    later = x[pending]
    with pytest.raises(IndexError):
        later.wait()
