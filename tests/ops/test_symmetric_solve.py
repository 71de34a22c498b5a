"""Symmetric matrices: factored by the way of Bunch and Kaufman, and solved with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.ops import factors

DEVICE = pytest.mark.parametrize("device", ["cpu", "reference"])
LAYOUTS = {
    "rows": np.ascontiguousarray,
    "columns": lambda x: np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2),
    "strided": lambda x: np.repeat(np.repeat(x, 2, -1), 3, -2)[..., ::3, ::2],
    "reversed": lambda x: np.ascontiguousarray(x[..., ::-1, ::-1])[..., ::-1, ::-1],
}
KINDS = {
    "random": lambda x, _: x,
    "hollow": lambda x, unit: x * (1 - unit) + 1e-3 * unit * (len(x) % 2),
    "sparse": lambda x, unit: np.where(abs(x) > 1.5, x, 0) + 0.25 * unit,
    "dominant": lambda x, unit: x + 4 * len(x) * unit * np.where(np.arange(len(x)) % 2, 1, -1),
    "definite": lambda x, unit: x + 4 * len(x) * unit,
    "small in front": lambda x, unit: x * np.outer(*2 * [np.linspace(1e-6, 1, len(x))]),
}
DTYPE = pytest.mark.parametrize("dtype", ["float64", "complex128"])
KIND = pytest.mark.parametrize("kind", KINDS)


def numbers(random: np.random.Generator, shape: Any, dtype: str) -> np.ndarray:
    made = random.standard_normal(shape)
    if dtype.startswith("complex"):
        made = made + 1j * random.standard_normal(shape)
    return made.astype(dtype)


def symmetric(shape: tuple[int, ...], kind: str, dtype: str = "float64") -> np.ndarray:
    """Symmetric, not Hermitian, matrices."""
    random = np.random.default_rng(shape)
    made = np.empty(shape, dtype)
    for at in np.ndindex(shape[:-2]):
        x = numbers(random, shape[-2:], dtype)
        made[at] = KINDS[kind](x + x.T, np.eye(shape[-1]))
    return made


def declared(x: np.ndarray) -> tn.Array:
    return tn.assume(tn.asarray(x), "symmetric")


def solves(x: np.ndarray, b: np.ndarray, found: Any) -> None:
    """The residual is what rounding makes of it: normwise backward stable (N. J. Higham, "Stability
    of the diagonal pivoting method with partial pivoting", SIAM J. Matrix Anal. Appl. 18, 1997).
    """
    found = np.asarray(found)
    expected = np.linalg.solve(x, b)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    n, unit = x.shape[-1], np.finfo(x.dtype).eps
    column = found[..., None] if b.ndim == 1 else found
    residual = abs(x @ column - (b[:, None] if b.ndim == 1 else b)).max(-2)
    size = abs(x).sum(-1).max(-1)[..., None] * abs(column).max(-2)
    assert (residual <= 16 * n * unit * (size + abs(b).max())).all()


@pytest.mark.exhaustive
@KIND
@DEVICE
@DTYPE
@pytest.mark.parametrize("order", [1, 2, 4, 9, 33])
@pytest.mark.parametrize("columns", [None, 2, 11])
def test_indefinite_equations_are_solved(
    kind: str, device: str, dtype: str, order: int, columns: int | None
) -> None:
    x = symmetric((order, order), kind, dtype)
    random = np.random.default_rng(1)
    b = numbers(random, (order, columns) if columns else order, dtype)
    with tn.options(device=device):
        solves(x, b, tn.linalg.solve(declared(x), tn.asarray(b)))
        solves(x, b, tn.linalg.inv(declared(x)) @ tn.asarray(b))


@DEVICE
@DTYPE
def test_transposes_and_conjugates_are_solved_with_the_same_factors(
    dtype: str, device: str
) -> None:
    x = symmetric((9, 9), "random", dtype)
    b = numbers(np.random.default_rng(1), (9, 4), dtype)
    with tn.options(device=device):
        y, right = declared(x), tn.asarray(b)
        first, second = tn.linalg.solve(y, right), tn.linalg.solve(tn.conj(y.mT), right)
        tn.eval(first, second)
    solves(x, b, first)
    solves(np.conj(x), b, second)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize(
    ("left", "right"),
    [((3, 7, 7), (3, 7, 4)), ((7, 7), (4, 7, 1)), ((2, 1, 7, 7), (3, 7, 9)), ((3, 7, 7), (7,))],
    ids=str,
)
def test_stacks_of_any_layout_are_solved(left: Any, right: Any, dtype: str, layout: str) -> None:
    x = symmetric(left, "random", dtype)
    b = numbers(np.random.default_rng(1), right, dtype)
    lying, expected = LAYOUTS[layout], np.linalg.solve(x, b)
    found = tn.linalg.solve(declared(lying(x)), tn.asarray(lying(b) if b.ndim > 1 else b))
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    tolerance = 1e-3 if np.finfo(dtype).bits == 32 else 1e-9
    np.testing.assert_allclose(np.asarray(found), expected, rtol=tolerance, atol=tolerance)


@DTYPE
def test_large_equations_have_panels_of_blocks(dtype: str) -> None:
    for kind in ("random", "hollow", "dominant"):
        x = symmetric((150, 150), kind, dtype)
        b = numbers(np.random.default_rng(1), (150, 30), dtype)
        solves(x, b, tn.linalg.solve(declared(x), tn.asarray(b)))


@KIND
@DTYPE
@pytest.mark.parametrize("order", [1, 2, 5, 40])
def test_both_devices_find_the_same_factors(kind: str, dtype: str, order: int) -> None:
    x = tn.asarray(symmetric((2, order, order), kind, dtype))
    mine = np.asarray(factors.factors(x, method="symmetric"))
    with tn.options(device="reference"):
        other = np.asarray(factors.factors(tn.asarray(np.asarray(x)), method="symmetric"))
    one, two = factors.unpack_factors(mine), factors.unpack_factors(other)
    np.testing.assert_array_equal(one.pivots, two.pivots)
    np.testing.assert_array_equal(mine[..., -1, -1], other[..., -1, -1])
    np.testing.assert_allclose(one.off_diagonal, two.off_diagonal, rtol=1e-9)
    for found, expected in zip(one.columns, two.columns, strict=True):
        np.testing.assert_allclose(np.triu(found), np.triu(expected), rtol=1e-9, atol=1e-12)


@DEVICE
@pytest.mark.parametrize(
    "x",
    [
        np.ones((2, 2)),
        -np.ones((3, 3)),
        np.zeros((1, 1)),
        [[0.0, 1, 0], [1, 0, 0], [0, 0, 0]],
        np.kron([[1.0, -1], [-1, 1]], [[0.0, 2], [2, 0]]),
    ],
    ids=str,
)
def test_singular_matrices_are_refused_naming_the_matrix(x: Any, device: str) -> None:
    x, b = np.asarray(x), np.ones((len(x), 3))
    stack = np.stack([symmetric(x.shape, "dominant"), x])
    with tn.options(device=device):
        with pytest.raises(np.linalg.LinAlgError, match="solve: Singular matrix: x1"):
            tn.linalg.solve(declared(x), tn.asarray(b)).wait()
        with pytest.raises(np.linalg.LinAlgError, match="Singular matrix at 1 of the stack"):
            tn.linalg.solve(declared(stack), tn.asarray(b)).wait()


@DEVICE
@pytest.mark.parametrize(
    "x",
    [
        [[np.nan, 1], [1, 0]],
        [[np.inf, 0], [0, -1]],
        [[-1, 0], [0, -np.inf]],
        [[0, 1, 0], [1, 0, np.nan], [0, np.nan, -1]],
    ],
    ids=str,
)
def test_non_finite_matrix_is_solved_as_without_a_promise(x: Any, device: str) -> None:
    x = np.asarray(x, np.float64)
    b = np.ones((len(x), 2))
    with tn.options(device=device):
        found = tn.linalg.solve(declared(x), tn.asarray(b))
        np.testing.assert_array_equal(np.asarray(found), np.linalg.solve(x, b))


@pytest.mark.parametrize("left", [(0, 0), (0, 3, 3), (2, 0, 0), (3, 3)], ids=str)
def test_empty_equations_have_empty_solutions(left: Any) -> None:
    x, b = np.ones(left) - 2 * np.eye(left[-1]), np.ones((left[-1], 0 if left == (3, 3) else 2))
    found = tn.linalg.solve(declared(x), tn.asarray(b))
    np.testing.assert_array_equal(np.asarray(found), np.linalg.solve(x, b))


@pytest.mark.parametrize("scale", [1e-300, 1e300, 1e-300j, 1e300 + 1e299j])
def test_blocks_of_numbers_of_any_size_are_solved(scale: Any) -> None:
    x = scale * np.array([[0.1, 1.0, 0.0], [1.0, -0.2, 0.0], [0.0, 0.0, -1.0]])
    b = scale * np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    found = np.asarray(tn.linalg.solve(declared(x), tn.asarray(b)))
    np.testing.assert_allclose(found, np.linalg.solve(x / scale, b / scale), rtol=1e-13)


@DTYPE
def test_other_results_of_a_matrix_share_its_factors(dtype: str) -> None:
    n, x = 30, symmetric((30, 30), "random", dtype)
    b = numbers(np.random.default_rng(2), (n, 4), dtype)
    for name, expected in (("det", np.linalg.det(x)), ("inv", np.linalg.inv(x))):
        with tn.profile() as p:
            y = declared(x)
            solution, other = tn.linalg.solve(y, tn.asarray(b)), getattr(tn.linalg, name)(y)
            tn.eval(solution, other)
        solves(x, b, solution)
        np.testing.assert_allclose(np.asarray(other), expected, rtol=1e-8, atol=1e-10)
        factored = n**3 // 3 + n**3 // 6 * (dtype == "float64")  # Cholesky's way is ruled out
        inverted = (n**3 - n**3 // 3) * (name == "inv")
        assert p.multiply_adds == factored + n * n * 4 + inverted
    with tn.profile() as p:
        first, second = (tn.linalg.solve(y, tn.asarray(b[:, i])) for i in range(2))
        tn.eval(first, second)
    assert p.multiply_adds == n**3 // 6 + 2 * n * n
