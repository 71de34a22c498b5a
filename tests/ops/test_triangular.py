"""Triangles: right sides wherever they lie, and which side of a matrix holds it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn

LAYOUTS = {
    "rows": np.ascontiguousarray,
    "columns": lambda x: np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2),
    "strided": lambda x: np.repeat(np.repeat(x, 2, -1), 3, -2)[..., ::3, ::2],
    "reversed": lambda x: np.ascontiguousarray(x[..., ::-1, ::-1])[..., ::-1, ::-1],
}
LAYOUT = pytest.mark.parametrize("layout", LAYOUTS)
SIDE = pytest.mark.parametrize("side", ["lower", "upper"])
DTYPES = [("float64", "float64"), ("float32", "float32"), ("complex128", "float32")]


def numbers(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng((seed, *shape))
    values = random.standard_normal(shape)
    if dtype.startswith("complex"):
        values = values + 1j * random.standard_normal(shape)
    return values.astype(dtype)


def triangle(shape: tuple[int, ...], dtype: str, side: str) -> np.ndarray:
    """A triangle far from singular."""
    x = numbers(shape, dtype) / shape[-1] + 2 * np.eye(shape[-1], dtype=dtype)
    return (np.tril if side == "lower" else np.triu)(x)


def equal(found: Any, expected: np.ndarray) -> None:
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    tolerance = 1e-4 if np.finfo(expected.dtype).bits == 32 else 1e-11
    np.testing.assert_allclose(np.asarray(found), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.exhaustive
@SIDE
@LAYOUT
@pytest.mark.parametrize("dtypes", DTYPES, ids=str)
@pytest.mark.parametrize(
    ("left", "right"),
    [((5, 5), (5, 9)), ((37, 37), (37, 2)), ((3, 5, 5), (5, 4)), ((2, 1, 5, 5), (3, 5, 1))],
    ids=str,
)
def test_right_sides_of_any_layout_are_solved_for(
    left: Any, right: Any, dtypes: tuple[str, str], layout: str, side: str
) -> None:
    x, b = triangle(left, dtypes[0], side), numbers(right, dtypes[1], 1)
    upper, expected = side == "upper", np.linalg.solve(x, b)
    lying = LAYOUTS[layout]
    equal(tn.linalg.triangular_solve(x, lying(b), upper=upper), expected)
    equal(tn.linalg.triangular_solve(lying(x), lying(b), upper=upper), expected)
    declared = tn.assume(tn.asarray(lying(x)), "triangular")
    equal(tn.linalg.solve(declared, tn.asarray(b)), expected)


def test_right_sides_stay_as_they_are() -> None:
    x, b = triangle((4, 4), "float64", "lower"), numbers((4, 3), "float64")
    there, held = b.copy(), tn.asarray(b)
    tn.linalg.triangular_solve(tn.asarray(x), held).wait()
    np.testing.assert_array_equal(np.asarray(held), there)


@SIDE
@pytest.mark.parametrize("columns", [1, 3])
def test_a_zero_on_a_diagonal_is_refused_for_any_number_of_columns(side: str, columns: int) -> None:
    x = np.tile(triangle((6, 6), "float64", side), (3, 1, 1))
    x[1, 5, 5] = -0.0
    b = np.ones((6, columns))
    for lying in LAYOUTS.values():
        result = tn.linalg.triangular_solve(lying(x), b, upper=side == "upper")
        with pytest.raises(np.linalg.LinAlgError, match=r"Singular matrix at 1 of the stack"):
            result.wait()
        unit = tn.linalg.triangular_solve(lying(x), b, upper=side == "upper", unit_diagonal=True)
        assert np.isfinite(np.asarray(unit)).all()


@pytest.mark.parametrize("number", [4.0, 0.0, np.nan])
@pytest.mark.parametrize("order", [2, 17, 41])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_the_side_that_holds_a_matrix_is_found_by_any_element(
    dtype: str, order: int, number: float
) -> None:
    """One number beside the diagonal, in one of a stack, and -0.0 across from it; 0 stands for the
    smallest number.
    """
    random, b = np.random.default_rng(order), np.ones((order, 2), dtype)
    for _ in range(8):
        row, column = random.choice(order, 2, replace=False)
        x = np.tile(2 * np.eye(order, dtype=dtype), (2, 1, 1))
        x[1, row, column] = number or np.finfo(dtype).smallest_subnormal
        x[1, column, row] = -0.0
        expected = np.full((2, order, 2), 0.5)
        expected[1, row] = (1 - number / 2) / 2
        for layout in ("rows", "columns", "strided"):
            declared = tn.assume(tn.asarray(LAYOUTS[layout](x)), "triangular")
            found = np.asarray(tn.linalg.solve(declared, tn.asarray(b)))
            known = slice(None) if number == number else np.s_[1, row]  # NaN passes on
            np.testing.assert_allclose(found.real[known], expected[known])


@SIDE
def test_each_matrix_of_a_declared_stack_has_its_own_side(side: str) -> None:
    other = "upper" if side == "lower" else "lower"
    x = np.stack([triangle((19, 19), "float64", each) for each in (side, other, side)])
    b = numbers((19, 4), "float64")
    found = tn.linalg.solve(tn.assume(tn.asarray(x), "triangular"), tn.asarray(b))
    equal(found, np.linalg.solve(x, b))


@pytest.mark.parametrize("upper", [False, True])
def test_reference_reads_the_triangle_that_is_asked_for_alone(upper: bool) -> None:
    rng = np.random.default_rng(0)
    left, right = rng.random((5, 5)) + 5 * np.eye(5), rng.random((5, 3))
    with tn.options(device="reference"):
        found = tn.linalg.triangular_solve(tn.asarray(left), tn.asarray(right), upper=upper)
        triangle = np.triu(left) if upper else np.tril(left)
        np.testing.assert_allclose(triangle @ np.asarray(found), right)
