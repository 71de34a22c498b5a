"""Functions of matrices and named solves against SciPy and NumPy, stacks and batches too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import linalg

import tenfold as tn
from tenfold.errors import DTypeError, MatrixError, ShapeError

DTYPES = ("int64", "float32", "float64", "complex64", "complex128")
TOLERANCE = {"float32": 2e-4, "complex64": 2e-4}


def drawn(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=shape)
    if dtype.startswith("c"):
        values = values + 1j * rng.normal(size=shape)
    return (values * 3).astype(dtype)


def close(found: Any, expected: Any, dtype: str = "float64") -> None:
    tolerance = TOLERANCE.get(dtype, 1e-9)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=tolerance, atol=tolerance)


def matrixwise(function: Any, x: np.ndarray) -> np.ndarray:
    if not x.size:
        return x
    return np.reshape([function(each) for each in x.reshape(-1, *x.shape[-2:])], x.shape)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (2, 3, 5, 5), (0, 0), (0, 3, 3)])
@pytest.mark.parametrize("name", ["expm", "sqrtm"])
def test_functions_of_matrices_equal_scipy(name: str, shape: tuple[int, ...], dtype: str) -> None:
    x = drawn(shape, dtype) * (1 if dtype == "int64" else 0.3)
    x = x + (10 * np.eye(shape[-1])).astype(x.dtype) if name == "sqrtm" else x
    for _ in range(2):
        found = getattr(tn.linalg, name)(tn.asarray(x))
        wide = x.astype("float64") if x.dtype.kind == "i" else x
        close(found, matrixwise(getattr(linalg, name), wide), str(x.dtype))
    single = x.dtype.itemsize == (8 if x.dtype.kind == "c" else 4)
    complex_dtype = np.complex64 if single else np.complex128
    assert found.dtype == (complex_dtype if name == "sqrtm" or x.dtype.kind == "c" else wide.dtype)


def test_root_of_a_negative_matrix_is_complex() -> None:
    found = np.asarray(tn.linalg.sqrtm(tn.asarray(np.diag([-4.0, 9.0]))))
    close(found, np.diag([2j, 3]))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_no_finite_matrix_has_no_exponential(bad: float) -> None:
    assert np.isnan(np.asarray(tn.linalg.expm(tn.asarray(np.full((2, 2), bad))))).all()


@pytest.mark.parametrize("dtype", DTYPES[1:])
@pytest.mark.parametrize("bands", [(1, 1), (0, 0), (2, 1), (0, 2), (1, 0)])
@pytest.mark.parametrize("rhs", [(6,), (6, 3), (2, 6, 3)])
def test_banded_solves_equal_scipy(
    bands: tuple[int, int], rhs: tuple[int, ...], dtype: str
) -> None:
    ab = drawn((sum(bands) + 1, 6), dtype)
    ab[bands[1]] += 12
    b = drawn(rhs, dtype, 1)
    found = tn.linalg.solve_banded(bands, tn.asarray(ab), tn.asarray(b))
    if b.ndim < 3:
        expected = linalg.solve_banded(bands, ab, b)
    else:
        expected = np.stack([linalg.solve_banded(bands, ab, each) for each in b])
    close(found, expected, dtype)
    assert found.dtype == expected.dtype


def test_stacks_of_bands_solve_one_right_side_each() -> None:
    ab, b = drawn((4, 3, 5), "float64"), drawn((4, 5, 2), "float64", 1)
    ab[:, 1] += 12
    expected = np.stack([linalg.solve_banded((1, 1), *each) for each in zip(ab, b, strict=True)])
    close(tn.linalg.solve_banded((1, 1), tn.asarray(ab), tn.asarray(b)), expected)
    vectors = tn.vmap(lambda x, y: tn.linalg.solve_banded((1, 1), x, y))
    close(vectors(tn.asarray(ab), tn.asarray(b[..., 0])), expected[..., 0])
    shared = tn.vmap(lambda y: tn.linalg.solve_banded((1, 1), tn.asarray(ab[0]), y))
    close(shared(tn.asarray(b)), np.stack([linalg.solve_banded((1, 1), ab[0], y) for y in b]))
    assert tn.linalg.solve_banded((1, 1), tn.zeros((3, 0)), tn.zeros(0)).shape == (0,)


def test_singular_bands_are_named_at_the_wait() -> None:
    found = tn.linalg.solve_banded((0, 0), tn.zeros((1, 2)), tn.ones(2))
    with pytest.raises(np.linalg.LinAlgError, match=r"solve_banded.*Singular matrix"):
        found.wait()


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", DTYPES[1:])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("trans", [0, 1, 2, "N", "T", "C"])
@pytest.mark.parametrize("unit_diagonal", [False, True])
def test_triangular_solves_have_the_arguments_of_scipy(
    trans: Any, lower: bool, unit_diagonal: bool, dtype: str
) -> None:
    a, b = drawn((5, 5), dtype) * 0.3 + 3 * np.eye(5), drawn((5, 2), dtype, 1)
    a = a.astype(dtype)
    options = {"lower": lower, "unit_diagonal": unit_diagonal}
    found = tn.linalg.solve_triangular(tn.asarray(a), tn.asarray(b), trans, **options)
    close(found, linalg.solve_triangular(a, b, trans, **options), dtype)


FACTORS: dict[str, tuple[Any, Any]] = {
    "lu_factor": (tn.linalg.lu_factor, linalg.lu_factor),
    "polar": (tn.linalg.polar, linalg.polar),
    "polar left": (lambda x: tn.linalg.polar(x, "left"), lambda x: linalg.polar(x, "left")),
    "toeplitz": (lambda x: [tn.linalg.toeplitz(x)], lambda x: [linalg.toeplitz(x)]),
    "toeplitz of two": (
        lambda x: [tn.linalg.toeplitz(x, tn.arange(4))],
        lambda x: [linalg.toeplitz(x, np.broadcast_to(np.arange(4), (*x.shape[:-1], 4)))],
    ),
    "block_diag": (
        lambda x: [tn.linalg.block_diag(x, tn.asarray([1, 2]), tn.asarray(3))],
        lambda x: [linalg.block_diag(x, [1, 2], 3)],
    ),
}
SQUARE_FACTORS: dict[str, tuple[Any, Any]] = {
    "schur": (tn.linalg.schur, linalg.schur),
    "schur complex": (
        lambda x: tn.linalg.schur(x, "complex"),
        lambda x: linalg.schur(x, "complex"),
    ),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*FACTORS, *SQUARE_FACTORS])
def test_factors_equal_scipy(name: str, dtype: str) -> None:
    ours, theirs = (FACTORS | SQUARE_FACTORS)[name]
    shapes = ((3, 3), (2, 4, 4)) if name in SQUARE_FACTORS else ((3, 3), (2, 3, 5), (5, 2))
    for shape in shapes:
        x = drawn(shape, dtype)
        for found, expected in zip(ours(tn.asarray(x)), theirs(x), strict=True):
            close(found, expected, dtype)
            assert found.dtype == expected.dtype
    assert ours(tn.zeros((2, 0, 0)))[-1].wait().shape[0] == 2


@pytest.mark.parametrize("dtype", DTYPES[1:])
@pytest.mark.parametrize("rhs", [(4,), (4, 2), (3, 4, 2)])
def test_solves_of_factors_equal_solve(rhs: tuple[int, ...], dtype: str) -> None:
    a = (drawn((3, 4, 4), dtype) + 5 * np.eye(4)).astype(dtype)
    b = drawn(rhs, dtype, 1)
    transposed = (a, a.swapaxes(-1, -2), a.conj().swapaxes(-1, -2))
    for trans, matrix in enumerate(transposed):
        found = tn.linalg.lu_solve(tn.linalg.lu_factor(tn.asarray(a)), tn.asarray(b), trans)
        close(found, tn.linalg.solve(tn.asarray(matrix), tn.asarray(b)), dtype)
    definite = a @ transposed[2]
    for lower in (False, True):
        factor = tn.linalg.cho_factor(tn.asarray(definite), lower)
        found = tn.linalg.cho_solve(factor, tn.asarray(b))
        close(found, tn.linalg.solve(tn.asarray(definite), tn.asarray(b)), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 5), (4, 2), (0, 3), (3, 0)])
def test_null_spaces_are_those_of_scipy(shape: tuple[int, int], dtype: str) -> None:
    for x in (drawn(shape, dtype), np.zeros(shape, dtype), np.ones(shape, dtype)):
        found, expected = tn.linalg.null_space(tn.asarray(x)), linalg.null_space(x)
        assert found.shape == expected.shape
        projector = np.asarray(found) @ np.asarray(found).conj().T
        close(projector, expected @ expected.conj().T, dtype)


def test_multi_dot_takes_the_cheapest_order() -> None:
    a, b, u = (
        drawn((200, 200), "float64"),
        drawn((200, 200), "float64", 1),
        drawn((200,), "float64"),
    )
    with tn.profile() as profile:
        found = tn.linalg.multi_dot([tn.asarray(x) for x in (a, b, u)]).wait()
    close(found, np.linalg.multi_dot([a, b, u]))
    assert profile.multiply_adds == 2 * 200 * 200


def test_tensor_equations_equal_numpy() -> None:
    x = drawn((2, 3, 6), "float64")
    close(tn.linalg.tensorinv(tn.asarray(x)), np.linalg.tensorinv(x))
    y = drawn((6, 3, 2), "float64")
    close(tn.linalg.tensorinv(tn.asarray(y), 1), np.linalg.tensorinv(y, 1))
    b = drawn((2, 3), "float64", 1)
    close(tn.linalg.tensorsolve(tn.asarray(x), tn.asarray(b)), np.linalg.tensorsolve(x, b))
    z = drawn((2, 6, 3), "float64")
    close(
        tn.linalg.tensorsolve(tn.asarray(z), tn.asarray(b), axes=(1,)),
        np.linalg.tensorsolve(z, b, axes=(1,)),
    )


@pytest.mark.parametrize("shape", [(5, 3), (3, 5)])
@pytest.mark.parametrize("columns", [None, 2])
def test_least_squares_of_stacks_are_those_of_each_matrix(
    shape: tuple[int, int], columns: int | None
) -> None:
    a = drawn((4, 2, *shape), "float64")
    b = drawn((4, 2, shape[0], columns) if columns else (shape[0],), "float64", 1)
    x, residuals, rank, s = tn.linalg.lstsq(tn.asarray(a), tn.asarray(b))
    for at in np.ndindex(4, 2):
        expected = np.linalg.lstsq(a[at], b[at] if columns else b)
        close(np.asarray(x)[at], expected[0])
        assert np.asarray(rank)[at] == expected[2]
        close(np.asarray(s)[at], expected[3])
        if shape[0] > shape[1]:
            close(np.asarray(residuals)[at], expected[1] if columns else expected[1][0])
    batched = tn.vmap(lambda a: tn.linalg.lstsq(a, tn.asarray(b[0, 0] if columns else b)).x)
    if not columns:
        close(np.asarray(batched(tn.asarray(a[0])))[0], np.asarray(x)[0, 0])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: tn.linalg.expm(tn.zeros((2, 3))), ShapeError, "not square"),
        (lambda: tn.linalg.sqrtm(tn.zeros((2, 2), dtype="float16")), DTypeError, "float16"),
        (lambda: tn.linalg.solve_banded(1, tn.zeros((3, 2)), tn.zeros(2)), ShapeError, "a pair"),
        (
            lambda: tn.linalg.solve_banded((1, 1), tn.zeros((2, 2)), tn.zeros(2)),
            ShapeError,
            "2 diagonals are not 1 below and 1 above",
        ),
        (
            lambda: tn.linalg.solve_triangular(tn.eye(2), tn.zeros(2), "X"),
            ShapeError,
            "trans 'X'",
        ),
        (lambda: tn.linalg.multi_dot([tn.eye(2)]), ShapeError, "1 arrays have no product"),
        (
            lambda: tn.linalg.multi_dot([tn.eye(2), tn.zeros(2), tn.eye(2)]),
            ShapeError,
            "array 1 of shape",
        ),
        (lambda: tn.linalg.tensorinv(tn.eye(2), 0), ShapeError, "ind 0"),
        (lambda: tn.linalg.schur(tn.eye(2), "x"), ShapeError, "output 'x'"),
        (lambda: tn.linalg.polar(tn.eye(2), "x"), ShapeError, "side 'x'"),
        (lambda: tn.linalg.null_space(tn.zeros((2, 2, 2))), MatrixError, "not one matrix"),
        (
            lambda: tn.linalg.lu_solve(tn.linalg.lu_factor(tn.eye(2)), tn.zeros(3)),
            ShapeError,
            "2 equations have a right side of 3 rows",
        ),
        (
            lambda: tn.linalg.lu_solve((tn.eye(2), tn.asarray([0, 2])), tn.ones(2)).wait(),
            np.linalg.LinAlgError,
            "lu_solve: pivots name rows",
        ),
        (
            lambda: tn.linalg.schur(tn.eye(2) * np.nan).T.wait(),
            np.linalg.LinAlgError,
            "schur: Array must not contain",
        ),
        (
            lambda: tn.linalg.tensorsolve(tn.zeros((2, 3, 4)), tn.zeros((2, 3))),
            ShapeError,
            "6 equations do not determine the 4",
        ),
    ],
)
def test_misfit_is_named(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_pivots_are_one_for_each_row_and_factors_broadcast() -> None:
    matrix, sides = np.array([[0.0, 2.0], [3.0, 4.0]]), np.arange(24.0).reshape(4, 2, 3)
    factors = tn.linalg.lu_factor(tn.asarray(matrix))
    found = tn.linalg.lu_solve(factors, tn.asarray(sides))
    np.testing.assert_allclose(np.asarray(found), np.linalg.solve(matrix, sides), rtol=1e-13)
    with pytest.raises(ShapeError, match="are not 2 for each matrix"):
        tn.linalg.lu_solve((factors.lu, factors.piv[:1]), tn.asarray([1.0, 2.0]))
