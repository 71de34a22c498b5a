"""Linear algebra against NumPy's and against what defines it; failures name the op and the line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.dtypes import BFLOAT16, FLOAT16, HALF_DTYPES

FLOATING = ["float32", "float64", "complex64", "complex128"]
SQUARES = [(3, 3), (1, 1), (2, 4, 4), (2, 1, 3, 3), (0, 0), (0, 3, 3), (2, 0, 0)]
RECTANGLES = [(3, 2), (2, 3), (3, 3), (2, 4, 3), (2, 3, 4), (0, 3), (3, 0), (0, 2, 3)]


def numbers(shape: tuple[int, ...], dtype: str = "float64", seed: int = 0) -> np.ndarray:
    """Random numbers; square matrices are far from singular."""
    random = np.random.default_rng((seed, *shape))
    values = random.standard_normal(shape)
    if dtype.startswith("complex"):
        values = values + 1j * random.standard_normal(shape)
    if len(shape) > 1 and shape[-1] == shape[-2]:
        values = values + 4 * np.eye(shape[-1])
    return values.astype(dtype)


def definite(shape: tuple[int, ...], dtype: str = "float64") -> np.ndarray:
    x = numbers(shape, dtype)
    return (x @ np.conj(np.swapaxes(x, -1, -2))).astype(dtype)


def near(dtype: Any) -> dict[str, float]:
    tolerance = 1e-4 if np.finfo(dtype).bits == 32 else 1e-11
    return {"rtol": tolerance, "atol": tolerance}


def counted(*arrays: tn.Array) -> int:
    before = tn._native.read_counters()["multiply_adds"]
    for array in arrays:
        array.wait()
    return int(tn._native.read_counters()["multiply_adds"] - before)


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("shape", SQUARES, ids=str)
@pytest.mark.parametrize("name", ["inv", "det"])
def test_inv_and_det_equal_numpy(name: str, shape: Any, dtype: str) -> None:
    x = numbers(shape, dtype)
    result = getattr(tn.linalg, name)(x)
    expected = np.asarray(getattr(np.linalg, name)(x))
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(np.asarray(result), expected, **near(dtype))


@pytest.mark.parametrize("name", ["inv", "det", "cholesky"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "int64"])
def test_integers_are_computed_in_float64(name: str, dtype: str) -> None:
    x = np.eye(3).astype(dtype)
    result = getattr(tn.linalg, name)(x)
    assert result.dtype == tn.float64
    np.testing.assert_array_equal(np.asarray(result), getattr(np.linalg, name)(x))


@pytest.mark.parametrize("dtype", HALF_DTYPES, ids=str)
@pytest.mark.parametrize("name", ["inv", "det", "cholesky", "qr", "svd", "eigh"])
def test_halves_are_refused(name: str, dtype: np.dtype) -> None:
    with pytest.raises(
        tn.errors.DTypeError, match=f"{name}: linear algebra does not support {dtype}"
    ):
        getattr(tn.linalg, name)(np.eye(2).astype(dtype))


@pytest.mark.parametrize("name", ["inv", "det", "cholesky", "eigh"])
def test_non_square_matrix_is_refused(name: str) -> None:
    operation = getattr(tn.linalg, name)
    with pytest.raises(tn.errors.ShapeError, match=f"{name}: matrices of 2 x 3 are not square"):
        operation(tn.zeros((4, 2, 3)))
    with pytest.raises(tn.errors.ShapeError, match=rf"{name}: shape \(3,\) is not a matrix"):
        operation(tn.zeros((3,)))


@pytest.mark.parametrize("name", ["qr", "svd"])
def test_non_matrix_is_refused(name: str) -> None:
    with pytest.raises(tn.errors.ShapeError, match=rf"{name}: shape \(3,\) is not a matrix"):
        getattr(tn.linalg, name)(tn.zeros((3,)))


SOLVES = [
    ((3, 3), (3,)),
    ((3, 3), (3, 2)),
    ((4, 3, 3), (3,)),
    ((3, 3), (4, 3, 2)),
    ((4, 1, 3, 3), (5, 3, 2)),
    ((3, 3), (3, 3)),
    ((2, 2, 2), (2, 2)),  # two axes are a matrix, never stacked vectors
    ((0, 0), (0,)),
    ((0, 0), (0, 2)),
    ((0, 3, 3), (3, 1)),
]


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize(("left", "right"), SOLVES, ids=str)
def test_solve_equals_numpy(left: Any, right: Any, dtype: str) -> None:
    a, b = numbers(left, dtype), numbers(right, dtype, 1)
    result = tn.linalg.solve(a, b)
    expected = np.linalg.solve(a, b)
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(np.asarray(result), expected, **near(dtype))


def test_solve_promotes() -> None:
    assert (
        tn.linalg.solve(np.eye(2, dtype=np.float32), np.ones(2, np.complex64)).dtype == "complex64"
    )
    assert tn.linalg.solve(np.eye(2, dtype=np.int8), np.ones(2, np.float32)).dtype == tn.float32
    assert tn.linalg.solve(np.eye(2, dtype=np.int8), np.ones(2, np.int8)).dtype == tn.float64


def test_solve_solves() -> None:
    a, b = tn.asarray(numbers((50, 50))), tn.asarray(numbers((50, 3)))
    assert tn.linalg.norm(a @ tn.linalg.solve(a, b) - b).item() < 1e-9


@pytest.mark.parametrize(
    ("left", "right", "words"),
    [
        ((2, 3), (2,), "matrices of 2 x 3 are not square"),
        ((3, 3), (2,), "3 equations have a right side of 2 rows, shape (2,)"),
        ((3, 3), (2, 3), "3 equations have a right side of 2 rows, shape (2, 3)"),
        ((3, 3), (), "the right side has no axes"),
        ((2, 3, 3), (4, 3, 1), "shapes (2,) and (4,) do not broadcast"),
    ],
)
def test_solve_refuses(left: Any, right: Any, words: str) -> None:
    with pytest.raises(tn.errors.ShapeError) as caught:
        tn.linalg.solve(tn.zeros(left), tn.zeros(right))
    assert str(caught.value).startswith("solve: ")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("inv", lambda: tn.linalg.inv(tn.zeros((2, 2)))),
        ("solve", lambda: tn.linalg.solve(tn.zeros((2, 2)), tn.zeros((2,)))),
        ("cholesky", lambda: tn.linalg.cholesky(-1 * tn.asarray(np.eye(2)))),
        ("svd", lambda: tn.linalg.svd(tn.asarray([[np.nan]])).S),
    ],
)
def test_values_without_an_answer_raise_at_the_wait(name: str, make: Any) -> None:
    result = make()  # nothing is raised yet
    line = make.__code__.co_firstlineno
    for _ in range(2):  # and again for whoever waits again
        with pytest.raises(np.linalg.LinAlgError) as caught:
            (result + 1).wait()
        assert str(caught.value).startswith(f"{name}: ")
        assert f"{__file__}:{line}" in str(caught.value)
        assert isinstance(caught.value.__cause__, np.linalg.LinAlgError)
    assert tn.errors.LinAlgError is np.linalg.LinAlgError


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("shape", SQUARES, ids=str)
def test_cholesky_equals_numpy(shape: Any, dtype: str, upper: bool) -> None:
    x = definite(shape, dtype)
    result = tn.linalg.cholesky(x, upper=upper)
    expected = np.linalg.cholesky(x, upper=upper)
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(np.asarray(result), expected, **near(dtype))


@pytest.mark.parametrize("mode", ["reduced", "complete"])
@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("shape", RECTANGLES, ids=str)
def test_qr_decomposes(shape: Any, dtype: str, mode: str) -> None:
    x = numbers(shape, dtype)
    result = tn.linalg.qr(x, mode=mode)
    assert result._fields == ("Q", "R")
    q, r = (np.asarray(part) for part in result)
    expected = np.linalg.qr(x, mode)
    assert (q.shape, r.shape) == (expected.Q.shape, expected.R.shape)
    assert (result.Q.shape, result.R.dtype) == (q.shape, x.dtype)
    np.testing.assert_allclose(q @ r, x, **near(dtype))
    identity = np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], q.shape[-1], q.shape[-1]))
    np.testing.assert_allclose(np.conj(np.swapaxes(q, -1, -2)) @ q, identity, **near(dtype))
    np.testing.assert_array_equal(np.tril(r, -1), np.zeros_like(r))


def test_a_second_result_keeps_its_shape_when_the_first_is_computed() -> None:
    for shape in ((3, 2), (3, 3)):  # Q is (3, 3) of both
        x = numbers(shape)
        q, r = tn.linalg.qr(x, mode="complete")
        q.wait()
        np.testing.assert_allclose(np.asarray(r + 1), np.linalg.qr(x, "complete").R + 1)


def test_qr_refuses_other_modes() -> None:
    with pytest.raises(tn.errors.UnsupportedError, match="qr: unknown mode 'raw'"):
        tn.linalg.qr(tn.zeros((2, 2)), mode="raw")
    with pytest.raises(tn.errors.ShapeError, match="qr: mode 'half' is neither"):
        tn.linalg.qr(tn.zeros((2, 2)), mode="half")


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("shape", RECTANGLES, ids=str)
def test_svd_decomposes(shape: Any, dtype: str, full: bool) -> None:
    x = numbers(shape, dtype)
    result = tn.linalg.svd(x, full_matrices=full)
    assert result._fields == ("U", "S", "Vh")
    expected = np.linalg.svd(x, full_matrices=full)
    for part, other in zip(result, expected, strict=True):
        assert (part.shape, part.dtype) == (other.shape, other.dtype)
    u, s, vh = (np.asarray(part) for part in result)
    np.testing.assert_allclose(s, expected.S, **near(dtype))
    inner = s.shape[-1]
    made = (u[..., :inner] * s[..., None, :]) @ vh[..., :inner, :]
    np.testing.assert_allclose(made, x, **near(dtype))


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("shape", SQUARES, ids=str)
def test_eigh_decomposes(shape: Any, dtype: str) -> None:
    x = definite(shape, dtype)
    result = tn.linalg.eigh(x)
    assert result._fields == ("eigenvalues", "eigenvectors")
    expected = np.linalg.eigh(x)
    for part, other in zip(result, expected, strict=True):
        assert (part.shape, part.dtype) == (other.shape, other.dtype)
    values, vectors = (np.asarray(part) for part in result)
    np.testing.assert_allclose(values, expected.eigenvalues, **near(dtype))
    scale = max(1.0, float(np.max(np.abs(x), initial=0)))
    np.testing.assert_allclose(
        x @ vectors / scale, vectors * values[..., None, :] / scale, **near(dtype)
    )


def test_results_with_names_are_lazy_and_computed_once() -> None:
    before = tn._native.read_counters()["calls"]
    q, r = tn.linalg.qr(numbers((4, 3)))
    assert tn._native.read_counters()["calls"] == before
    product = q @ r
    product.wait()
    assert tn._native.read_counters()["calls"] == before + 2  # one decomposition, one product
    np.testing.assert_allclose(np.asarray(product), numbers((4, 3)), rtol=1e-12)


NORMS: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((5,), {}),
    ((), {}),
    ((2, 3), {}),
    ((2, 3, 4), {}),
    ((2, 3, 4), {"keepdims": True}),
    *(((5,), {"ord": p}) for p in (None, 0, 1, 2, 2.5, -1, -2, np.inf, -np.inf)),
    *(((2, 3), {"ord": p}) for p in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)),
    *(((2, 3), {"ord": p, "axis": 0}) for p in (None, 1, 3, np.inf)),
    *(((2, 3, 4), {"ord": p, "axis": (2, 0)}) for p in (None, 1, 2, np.inf, "nuc")),
    ((2, 3, 4), {"axis": (0, 2), "keepdims": True, "ord": 1}),
    ((2, 3, 4), {"axis": (-1, -2)}),
    ((2, 3), {"axis": (1,), "keepdims": True}),
    ((0,), {}),
    ((0, 3), {"axis": 0}),
    ((0, 3), {"ord": np.inf}),
    ((0, 3), {"axis": 1, "ord": -np.inf}),
]


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", ["bool", "int8", *FLOATING])
@pytest.mark.parametrize(("shape", "arguments"), NORMS, ids=str)
def test_norm_equals_numpy(shape: Any, arguments: dict[str, Any], dtype: str) -> None:
    x = numbers(shape).astype(dtype) if dtype in ("bool", "int8") else numbers(shape, dtype)
    with np.errstate(all="ignore"):
        expected = np.asarray(np.linalg.norm(x, **arguments))
    result = tn.linalg.norm(x, **arguments)
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(np.asarray(result), expected, **near(expected.dtype))


@pytest.mark.parametrize("dtype", HALF_DTYPES, ids=str)
def test_norms_of_halves_are_computed_in_float32(dtype: np.dtype) -> None:
    large = np.full(4, 1024).astype(dtype)  # its squares are infinite in float16
    result = tn.linalg.norm(large)
    assert result.dtype == dtype
    assert result.item() == 2048.0


@pytest.mark.parametrize(
    ("shape", "arguments", "words"),
    [
        ((2, 3, 4), {"ord": 2}, "3 axes (0, 1, 2) are neither a vector nor a matrix"),
        ((2, 3), {"axis": (0, 0)}, "2 axes (0, 0) are neither"),
        ((2, 3), {"axis": ()}, "0 axes () are neither"),
        ((2, 3), {"axis": 2}, "axis 2 is out of range for 2 axes"),
        ((2, 3), {"ord": 3}, "matrices have no norm of order 3"),
        ((2, 3), {"ord": "max"}, "matrices have no norm of order 'max'"),
        ((3,), {"ord": "fro"}, "vectors have no norm of order 'fro'"),
        ((3,), {"ord": True}, "vectors have no norm of order True"),
        ((0,), {"ord": -np.inf}, "axes (0,) of shape (0,) are empty"),
        ((0, 3), {"ord": -2}, "axes (0, 1) of shape (0, 3) are empty"),
    ],
    ids=str,
)
def test_norm_refuses(shape: Any, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(tn.errors.ShapeError) as caught:
        tn.linalg.norm(tn.zeros(shape), **arguments)
    assert str(caught.value).startswith("norm: ")
    assert words in str(caught.value)


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", *FLOATING])
@pytest.mark.parametrize("offset", [-5, -1, 0, 1, 2, 9])
@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 4), (4, 2), (0, 3), (2, 0, 0)], ids=str)
def test_trace_equals_numpy(shape: Any, offset: int, dtype: str) -> None:
    x = numbers(shape).astype(dtype) if "float" not in dtype else numbers(shape, dtype)
    expected = np.asarray(np.linalg.trace(x, offset=offset))
    for result in (tn.trace(x, offset, -2, -1), tn.linalg.trace(x, offset=offset)):
        assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
        tolerance = 0 if dtype[0] in "biu" else 1e-5
        np.testing.assert_allclose(np.asarray(result), expected, rtol=tolerance, atol=tolerance)


def test_trace_has_the_dtype_that_is_asked_for() -> None:
    x = tn.asarray(np.full((3, 3), 100, np.int8))
    assert tn.trace(x).item() == 300
    assert tn.trace(x, dtype=tn.int8).item() == 44
    assert tn.trace(x, dtype=tn.float32).dtype == tn.float32
    with pytest.raises(
        tn.errors.DTypeError, match="trace: cannot accumulate complex128 in float64"
    ):
        tn.trace(tn.asarray([[1j]]), dtype=tn.float64)


def test_traces_of_halves_are_accumulated_in_float32() -> None:
    assert tn.trace(tn.asarray(np.full((4096, 4096), 1, np.float16))).item() == 4096.0
    assert tn.trace(tn.asarray(np.full((512, 512), 1).astype(BFLOAT16))).item() == 512.0
    assert tn.trace(tn.asarray(np.eye(2, dtype=FLOAT16))).dtype == FLOAT16


def test_operations_of_the_standard_stand_in_both_namespaces() -> None:
    for name in ("matmul", "matrix_transpose", "vecdot", "tensordot", "outer"):
        assert getattr(tn, name).__name__ == getattr(tn.linalg, name).__name__ == name
    assert not hasattr(tn, "inv")


def test_factorisations_count_their_textbook_multiply_adds() -> None:
    # Half the operations of Golub and Van Loan: LU 2/3 n^3, Cholesky 1/3 n^3, inverse 2 n^3,
    # Householder QR 2 n^2 (m - n/3) for R and as much for Q, SVD 14 m n^2 + 8 n^3, eigh 9 n^3.
    n, m = 6, 9
    x, tall = definite((n, n)), numbers((m, n))
    assert counted(tn.linalg.det(x)) == n**3 // 3
    assert counted(tn.linalg.inv(x)) == n**3
    assert counted(tn.linalg.cholesky(x)) == n**3 // 6
    assert counted(tn.linalg.solve(x, np.ones((n, 2)))) == n**3 // 3 + n * n * 2
    assert counted(tn.linalg.qr(tall).R) == 2 * (n * n * (3 * m - n) // 3)
    assert counted(tn.linalg.svd(tall, full_matrices=False).S) == 7 * m * n * n + 4 * n**3
    assert counted(tn.linalg.eigh(x).eigenvalues) == 9 * n**3 // 2
    assert counted(tn.linalg.det(np.stack([x, x, x]))) == 3 * (n**3 // 3)
    assert counted(tn.linalg.norm(tall), tn.trace(tall)) == 0


def test_diagonal_and_trace_of_linalg_read_the_last_two_axes() -> None:
    x = np.arange(24).reshape(2, 3, 4)
    assert tn.linalg.diagonal(x, offset=1).tolist() == np.linalg.diagonal(x, offset=1).tolist()
    assert tn.linalg.trace(x).tolist() == np.linalg.trace(x).tolist()
    assert tn.trace(x).tolist() == np.trace(x).tolist()  # as NumPy: the first two


@pytest.mark.parametrize("name", ["diagonal", "trace"])
def test_array_without_diagonal_is_refused(name: str) -> None:
    with pytest.raises(tn.errors.ShapeError, match=f"{name}: an array of 1 axes has no diagonal"):
        getattr(tn.linalg, name)(tn.zeros((3,)))


@pytest.mark.parametrize("name", ["inv", "solve", "cholesky", "svd", "eigh"])
def test_failure_for_values_says_the_remedy(name: str) -> None:
    assert getattr(tn.operators, f"linalg_{name}").semantics.remedy


def test_singular_matrix_is_refused_with_the_line_and_the_remedy() -> None:
    with pytest.raises(
        np.linalg.LinAlgError, match=r"(?s)^inv: .*test_linalg\.py:\d+.*remedy: add"
    ):
        tn.linalg.inv(tn.zeros((2, 2))).wait()
