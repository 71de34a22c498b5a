"""What is made of factors, spectra and norms, against NumPy's; failures name operands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import tenfold as tn
from tenfold.dtypes import HALF_DTYPES
from tenfold.ops import factors

FLOATING = ["float32", "float64", "complex64", "complex128"]
DTYPE = pytest.mark.parametrize("dtype", FLOATING)
SQUARES = [(3, 3), (1, 1), (2, 4, 4), (2, 1, 3, 3), (0, 0), (0, 3, 3), (2, 0, 0)]
RECTANGLES = [(3, 2), (2, 3), (3, 3), (2, 4, 3), (2, 3, 4), (0, 3), (3, 0), (0, 2, 3)]
LAYOUTS = {
    "rows": np.ascontiguousarray,
    "columns": lambda x: np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2),
    "strided": lambda x: np.repeat(np.repeat(x, 2, -1), 3, -2)[..., ::3, ::2],
}
DEVICE = pytest.mark.parametrize("device", ["cpu", "reference"])


def numbers(shape: tuple[int, ...], dtype: str = "float64", seed: int = 0) -> np.ndarray:
    """Random numbers; square matrices are far from singular."""
    random = np.random.default_rng((seed, *shape))
    values = random.standard_normal(shape)
    if dtype.startswith("complex"):
        values = values + 1j * random.standard_normal(shape)
    if len(shape) > 1 and shape[-1] == shape[-2]:
        values = values + 4 * np.eye(shape[-1])
    return values.astype(dtype)


def equal(found: Any, expected: Any) -> None:
    expected = np.asarray(expected)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    tolerance = 1e-4 if np.finfo(expected.dtype).bits == 32 else 1e-11
    np.testing.assert_allclose(np.asarray(found), expected, rtol=tolerance, atol=tolerance)


@DEVICE
@DTYPE
@pytest.mark.parametrize("shape", SQUARES, ids=str)
def test_slogdet_equals_numpy(shape: Any, dtype: str, device: str) -> None:
    x = numbers(shape, dtype)
    with tn.options(device=device):
        result = tn.linalg.slogdet(x)
        assert result._fields == ("sign", "logabsdet")
        for mine, numpys in zip(result, np.linalg.slogdet(x), strict=True):
            equal(mine, numpys)


def test_slogdet_of_a_singular_matrix_is_minus_infinity() -> None:
    sign, logarithm = tn.linalg.slogdet(tn.zeros((2, 2)))
    assert (sign.item(), logarithm.item()) == (0.0, -np.inf)
    assert np.isnan(tn.linalg.slogdet(tn.asarray([[np.nan]])).logabsdet.item())
    assert tn.linalg.slogdet(np.eye(400) * 1e-3).logabsdet.item() == pytest.approx(
        400 * np.log(1e-3)
    )


@DEVICE
@DTYPE
@pytest.mark.parametrize("shape", RECTANGLES, ids=str)
def test_lu_equals_scipy(shape: Any, dtype: str, device: str) -> None:
    x = numbers(shape, dtype)
    with tn.options(device=device):
        result = tn.linalg.lu(x)
        assert result._fields == ("P", "L", "U")
        p, lower, upper = (np.asarray(each) for each in result)
    equal(p @ lower @ upper, x)
    np.testing.assert_array_equal(lower, np.tril(lower))
    np.testing.assert_array_equal(upper, np.triu(upper))
    if x.ndim == 2 and x.size:
        for mine, other in zip(result, scipy.linalg.lu(x), strict=True):
            equal(mine, other.astype(dtype))


@pytest.mark.exhaustive
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        *(((3, 3), (3,)), ((3, 3), (3, 2)), ((4, 3, 3), (3,)), ((3, 3), (4, 3, 2))),
        *(((4, 1, 3, 3), (5, 3, 2)), ((0, 0), (0,)), ((0, 3, 3), (3, 1)), ((1, 1), (1,))),
    ],
    ids=str,
)
def test_triangular_solve_equals_a_solve_with_the_triangle(
    left: Any, right: Any, dtype: str, unit: bool, upper: bool, layout: str
) -> None:
    x, b = LAYOUTS[layout](numbers(left, dtype)), numbers(right, dtype, 1)
    triangle = np.triu(x) if upper else np.tril(x)
    if unit:
        np.einsum("...ii->...i", triangle)[...] = 1
    expected = np.linalg.solve(triangle, b)
    for device in ("cpu", "reference"):
        with tn.options(device=device):
            equal(tn.linalg.triangular_solve(x, b, upper=upper, unit_diagonal=unit), expected)


@DEVICE
def test_a_zero_on_the_diagonal_of_a_triangle_is_refused(device: str) -> None:
    x = np.tile(np.eye(3), (4, 1, 1))
    x[2, 1, 1] = 0
    with tn.options(device=device):
        result = tn.linalg.triangular_solve(x, np.ones(3))
        words = r"(?s)triangular_solve: Singular matrix at 2 of the stack: x1, float64 \(4, 3, 3\)"
        with pytest.raises(np.linalg.LinAlgError, match=words + r".*test_linalg_derived\.py:\d+"):
            result.wait()
        assert np.asarray(tn.linalg.triangular_solve(x, np.ones(3), unit_diagonal=True)).all()


@pytest.mark.parametrize("name", ["inv", "solve"])
def test_a_singular_matrix_is_named_with_its_place_in_the_stack(name: str) -> None:
    x = np.tile(np.eye(2), (3, 2, 1, 1))
    x[1, 0] = 1
    result = tn.linalg.inv(x) if name == "inv" else tn.linalg.solve(x, np.ones((2, 1)))
    words = rf"{name}: Singular matrix at \(1, 0\) of the stack: x1?, float64 \(3, 2, 2, 2\)"
    with pytest.raises(np.linalg.LinAlgError, match=words):
        result.wait()


@DTYPE
@pytest.mark.parametrize("shape", SQUARES, ids=str)
def test_eigvalsh_equals_numpy(shape: Any, dtype: str) -> None:
    x = numbers(shape, dtype)
    x = x + np.conj(x.swapaxes(-1, -2))
    equal(tn.linalg.eigvalsh(x), np.linalg.eigvalsh(x))
    equal(tn.linalg.eigvalsh(np.tril(x)), np.linalg.eigvalsh(x))


@pytest.mark.exhaustive
@DTYPE
@pytest.mark.parametrize("shape", RECTANGLES, ids=str)
def test_svdvals_pinv_and_matrix_rank_equal_numpy(shape: Any, dtype: str) -> None:
    x = numbers(shape, dtype)
    equal(tn.linalg.svdvals(x), np.linalg.svdvals(x))
    equal(tn.linalg.pinv(x), np.linalg.pinv(x, rtol=None))
    ranks = tn.linalg.matrix_rank(x)
    assert ranks.dtype == tn.int64
    expected = np.linalg.matrix_rank(x) if min(shape[-2:]) else np.zeros(shape[:-2])
    np.testing.assert_array_equal(np.asarray(ranks), expected)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_nan_in_a_stack_of_spectra_is_refused(dtype: str) -> None:
    x = numbers((7, 6, 4), dtype)
    square = x.swapaxes(-1, -2).conj() @ x
    square[3, 1, 1] = np.nan
    words = r"svdvals: .*test_linalg_derived"
    with tn.options(threads=2), pytest.raises(np.linalg.LinAlgError, match=words):
        tn.linalg.svdvals(np.tile(square, (200, 1, 1))).wait()


def test_dependent_columns_lower_the_rank() -> None:
    x = numbers((5, 3))
    x[:, 2] = x[:, 0] - x[:, 1]
    assert tn.linalg.matrix_rank(x).item() == 2
    assert tn.linalg.matrix_rank(np.stack([x, numbers((5, 3))])).tolist() == [2, 3]
    assert tn.linalg.matrix_rank(np.eye(3), rtol=2.0).item() == 0
    found = tn.linalg.matrix_rank(np.stack([np.eye(3)] * 2), rtol=np.array([0.5, 1.5]))
    assert found.tolist() == [3, 0]
    equal(tn.linalg.pinv(x), np.linalg.pinv(x, rtol=None))
    with pytest.raises(tn.errors.ShapeError, match=r"matrix_rank: rtol of shape \(2,\) is more"):
        tn.linalg.matrix_rank(x, rtol=np.ones(2))


@pytest.mark.exhaustive
@DTYPE
@pytest.mark.parametrize(
    ("left", "right"),
    [
        *(((5, 3), (5,)), ((5, 3), (5, 2)), ((3, 5), (3,)), ((3, 3), (3, 1))),
        *(((0, 3), (0,)), ((3, 0), (3, 2))),
    ],
    ids=str,
)
def test_lstsq_equals_numpy(left: Any, right: Any, dtype: str) -> None:
    a, b = numbers(left, dtype), numbers(right, dtype, 1)
    result = tn.linalg.lstsq(a, b)
    assert result._fields == ("x", "residuals", "rank", "singular_values")
    x, _, rank, s = np.linalg.lstsq(a, b)
    equal(result.x, x)
    equal(result.singular_values, s)
    assert result.rank.item() == rank
    equal(result.residuals, (np.abs(b - a @ x) ** 2).sum(0))


def test_lstsq_takes_stacks_and_the_shortest_solution() -> None:
    a, b = numbers((4, 5, 3)), numbers((4, 5, 2), seed=1)
    a[..., 2] = a[..., 0]
    result = tn.linalg.lstsq(a, b)
    for place in range(4):
        x, *_ = np.linalg.lstsq(a[place], b[place])
        equal(result.x[place], x)
    assert result.rank.tolist() == [2, 2, 2, 2]
    with pytest.raises(tn.errors.ShapeError, match="lstsq: 5 equations have a right side of 3"):
        tn.linalg.lstsq(a, np.ones(3))


ORDERS = [None, 1, -1, 2, -2, np.inf, -np.inf, "fro", "nuc"]


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_norms_of_matrices_and_conditions_equal_numpy(order: Any) -> None:
    for dtype in FLOATING:
        x = numbers((2, 3, 3), dtype)
        equal(tn.linalg.cond(x, order), np.linalg.cond(x, order))
        if order is not None:
            for keep in (False, True):
                expected = np.linalg.matrix_norm(x, ord=order, keepdims=keep)
                equal(tn.linalg.matrix_norm(x, ord=order, keepdims=keep), expected)


def test_the_condition_of_a_singular_matrix_is_infinite() -> None:
    assert tn.linalg.cond(tn.zeros((2, 2))).item() == np.inf
    with pytest.raises(tn.errors.ShapeError, match="cond: matrices of 0 x 0 have no condition"):
        tn.linalg.cond(tn.zeros((0, 0)))
    with pytest.raises(tn.errors.ShapeError, match="cond: matrices of 2 x 3 are not square"):
        tn.linalg.cond(tn.zeros((2, 3)), 1)
    with pytest.raises(tn.errors.ShapeError, match="cond: matrices have no norm of order 3"):
        tn.linalg.cond(tn.zeros((2, 2)), 3)


@pytest.mark.exhaustive
@pytest.mark.parametrize("order", [0, 1, 2, 3, -1, np.inf, -np.inf], ids=str)
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (2, 0), (1,)], ids=str)
@pytest.mark.parametrize("keepdims", [False, True])
def test_norms_of_vectors_equal_numpy(axis: Any, order: Any, keepdims: bool) -> None:
    for dtype in FLOATING:
        x = numbers((2, 3, 4), dtype)
        expected = np.linalg.vector_norm(x, axis=axis, ord=order, keepdims=keepdims)
        equal(tn.linalg.vector_norm(x, axis=axis, ord=order, keepdims=keepdims), expected)


@pytest.mark.parametrize("power", [0, 1, 2, 3, 7, -1, -3])
@DTYPE
def test_matrix_power_equals_numpy(power: int, dtype: str) -> None:
    for shape in ((3, 3), (2, 3, 3), (0, 0)):
        x = numbers(shape, dtype) / 3
        equal(tn.linalg.matrix_power(x, power), np.linalg.matrix_power(x, power))


def test_powers_of_integers_are_exact_and_take_few_products() -> None:
    x = np.array([[1, 1], [1, 0]])
    with tn.profile() as counted:
        assert tn.linalg.matrix_power(tn.asarray(x), 50).tolist()[0][1] == 12586269025
    assert counted.multiply_adds <= 8 * 8
    assert tn.linalg.matrix_power(tn.asarray(x), -1).tolist() == [[0.0, 1.0], [1.0, -1.0]]
    for bad in (1.5, "2"):
        with pytest.raises(tn.errors.ShapeError, match=r"matrix_power: power .* is not an int"):
            tn.linalg.matrix_power(x, bad)  # type: ignore[arg-type]


def test_the_first_power_is_an_array_of_its_own() -> None:
    x = tn.asarray(np.eye(2))
    y = tn.linalg.matrix_power(x, 1)
    x[0, 0] = 5
    assert y.tolist() == [[1.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", *FLOATING])
def test_cross_equals_numpy(dtype: str) -> None:
    for left, right, axis in (
        *(((3,), (3,), -1), ((4, 3), (3,), -1), ((4, 3), (4, 3), 1), ((3, 1), (3, 4), -2)),
        *(((2, 1, 3), (5, 3), -1), ((3, 2), (3, 2), 0), ((0, 3), (0, 3), -1)),
    ):
        a, b = ((numbers(s, "float64", i) * 9).astype(dtype) for i, s in enumerate((left, right)))
        expected = np.linalg.cross(a, b, axis=axis)
        found = tn.linalg.cross(a, b, axis=axis)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5, atol=1e-4)


def test_cross_refuses() -> None:
    with pytest.raises(tn.errors.ShapeError, match="cross: vectors of 2 and 3 components"):
        tn.linalg.cross(tn.zeros(2), tn.zeros(3))
    with pytest.raises(tn.errors.ShapeError, match="cross: axis 0 counts from the first axis"):
        tn.linalg.cross(tn.zeros((3, 3)), tn.zeros(3), axis=0)
    with pytest.raises(tn.errors.DTypeError, match="cross: needs numbers, not bool"):
        tn.linalg.cross(np.ones(3, bool), np.ones(3, bool))


UNARY = ["slogdet", "lu", "eigvalsh", "svdvals", "pinv", "matrix_rank", "cond", "matrix_norm"]


@pytest.mark.parametrize("name", UNARY)
def test_non_matrix_is_refused(name: str) -> None:
    with pytest.raises(tn.errors.ShapeError, match=rf"^{name}: shape \(3,\) is not a matrix"):
        getattr(tn.linalg, name)(tn.zeros((3,)))


@pytest.mark.parametrize("name", ["slogdet", "eigvalsh", "matrix_power", "triangular_solve"])
def test_non_square_matrix_is_refused(name: str) -> None:
    second = {"matrix_power": (2,), "triangular_solve": (tn.zeros(2),)}.get(name, ())
    with pytest.raises(tn.errors.ShapeError, match=f"^{name}: matrices of 2 x 3 are not square"):
        getattr(tn.linalg, name)(tn.zeros((2, 3)), *second)


@pytest.mark.parametrize("dtype", HALF_DTYPES, ids=str)
@pytest.mark.parametrize("name", UNARY[:-1])
def test_halves_are_refused(name: str, dtype: np.dtype) -> None:
    with pytest.raises(tn.errors.DTypeError, match=f"{name}: linear algebra does not support"):
        getattr(tn.linalg, name)(np.eye(2).astype(dtype))


@pytest.mark.parametrize("name", UNARY)
def test_integers_are_computed_in_float64(name: str) -> None:
    x = np.eye(3, dtype=np.int8)
    found = getattr(tn.linalg, name)(x)
    for each in found if isinstance(found, tuple) else (found,):
        assert each.dtype == (tn.int64 if name == "matrix_rank" else tn.float64)
        assert np.isfinite(np.asarray(each)).all()


@pytest.mark.parametrize("name", ["eigvalsh", "svdvals", "pinv", "matrix_rank", "cond"])
def test_nan_is_refused_or_handed_on_as_numpy_does(name: str) -> None:
    x = np.full((3, 3), np.nan)
    try:
        expected = getattr(np.linalg, name)(x)
    except np.linalg.LinAlgError:
        with pytest.raises(np.linalg.LinAlgError, match=r"test_linalg_derived\.py:\d+"):
            getattr(tn.linalg, name)(tn.asarray(x)).wait()
    else:
        np.testing.assert_array_equal(np.asarray(getattr(tn.linalg, name)(x)), expected)


def test_multiply_adds_are_the_textbooks() -> None:
    n, m = 6, 9
    x, tall = tn.asarray(numbers((n, n))), tn.asarray(numbers((m, n)))
    counts = {
        n**3 // 3: lambda: tn.linalg.slogdet(x).sign,
        2 * n * (n * (n + 1) // 2): lambda: tn.linalg.triangular_solve(x, tn.ones((n, 2 * n))),
        n * n * (3 * m - n) // 6: lambda: tn.linalg.lu(tall).U,
        2 * m * n * n - 2 * n**3 // 3: lambda: tn.linalg.svdvals(tall),
        2 * n**3 // 3: lambda: tn.linalg.eigvalsh(x),
    }
    for count, made in counts.items():
        with tn.profile() as counted:
            made().wait()
        assert counted.multiply_adds == count


@pytest.mark.exhaustive
@DTYPE
@DEVICE
@pytest.mark.parametrize("definite", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (3, 4, 4), (70, 4, 4)], ids=str)
def test_factors_solve_in_every_form(shape: Any, definite: bool, dtype: str, device: str) -> None:
    x = numbers(shape, dtype)
    if definite:
        x = x @ np.conj(x.swapaxes(-1, -2))
    b = numbers((*shape[:-1], 2), dtype, 1)
    turned = {"N": x, "T": x.swapaxes(-1, -2), "C": np.conj(x.swapaxes(-1, -2))}
    with tn.options(device=device):
        packed = factors.factors(tn.asarray(x), method="cholesky" if definite else "gauss")
        kinds = factors.unpack_factors(np.asarray(packed)).cholesky
        assert kinds.all() == kinds.any() == definite
        for form, matrix in turned.items():
            found = factors.solve_factored(packed, tn.asarray(b), transposed=form, dtype=x.dtype)
            equal(found, np.linalg.solve(matrix, b))
        equal(factors.inv_factored(packed, dtype=x.dtype), np.linalg.inv(x))
        equal(factors.det_factored(packed, dtype=x.dtype), np.linalg.det(x))


@DEVICE
def test_each_matrix_of_a_stack_that_is_not_definite_is_factored_by_gauss(device: str) -> None:
    x = np.tile(4 * np.eye(3), (5, 1, 1))
    x[3] = np.diag([1.0, -1.0, 2.0])
    with tn.options(device=device):
        b = tn.ones((5, 3, 1))
        packed = factors.factors(tn.asarray(x), method="cholesky")
        kinds = factors.unpack_factors(np.asarray(packed)).cholesky
        assert kinds.tolist() == [True, True, True, False, True]
        equal(factors.solve_factored(packed, b, dtype=x.dtype), np.linalg.solve(x, np.ones((3, 1))))
        equal(factors.inv_factored(packed, dtype=x.dtype), np.linalg.inv(x))
        equal(factors.det_factored(packed, dtype=x.dtype), np.linalg.det(x))


def test_non_finite_matrix_is_left_to_gauss() -> None:
    for bad in (np.nan, np.inf):
        x = np.diag([1.0, bad, 2.0])
        packed = factors.factors(tn.asarray(x), method="cholesky")
        assert not factors.unpack_factors(np.asarray(packed)).cholesky


@DTYPE
@pytest.mark.parametrize("shape", SQUARES, ids=str)
def test_eig_decomposes_in_complex_numbers(shape: Any, dtype: str) -> None:
    x = numbers(shape, dtype)
    wide = "complex64" if np.finfo(dtype).bits == 32 else "complex128"
    values, vectors = tn.linalg.eig(x)
    expected = np.linalg.eig(x)
    equal(values, expected.eigenvalues.astype(wide))
    equal(vectors, expected.eigenvectors.astype(wide))
    equal(tn.linalg.eigvals(x), np.linalg.eigvals(x).astype(wide))
    made = np.asarray(vectors) * np.asarray(values)[..., None, :]
    np.testing.assert_allclose(x @ np.asarray(vectors), made, rtol=1e-4, atol=1e-4)


def test_eigenvalues_of_nan_are_refused() -> None:
    with pytest.raises(np.linalg.LinAlgError, match=r"eigvals: .*test_linalg_derived\.py:\d+"):
        tn.linalg.eigvals(np.array([[np.nan]])).wait()
