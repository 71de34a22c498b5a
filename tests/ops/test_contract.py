"""Products that contract axes, against NumPy: exact for integers and bool, bounded for floats."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.dtypes import BFLOAT16, DTYPES, FLOAT16, HALF_DTYPES, kind_of, promote_dtypes

MATRIX_SHAPES = [
    ((2, 3), (3, 4)),
    ((2, 3), (3,)),
    ((3,), (3, 2)),
    ((3,), (3,)),
    ((1, 1), (1, 1)),
    ((4, 2, 3), (4, 3, 5)),
    ((4, 2, 3), (3, 5)),
    ((2, 3), (4, 3, 5)),
    ((4, 1, 2, 3), (5, 3, 2)),
    ((2, 3), (4, 5, 3, 1)),
    ((3,), (4, 3, 2)),
    ((4, 2, 3), (3,)),
    ((2, 0), (0, 3)),
    ((0, 3), (3, 2)),
    ((2, 3), (3, 0)),
    ((0,), (0,)),
    ((0, 2, 3), (1, 3, 2)),
    ((1, 1, 1, 1, 2, 3), (2, 1, 1, 2, 3, 1)),
]


def numbers(shape: tuple[int, ...], dtype: np.dtype, seed: int = 0) -> np.ndarray:
    """Random numbers; integers over their whole range, so that products wrap."""
    random = np.random.default_rng((seed, *shape))
    kind = kind_of(dtype)
    if kind == "b":
        return random.integers(0, 2, shape).astype(bool)
    if kind in "iu":
        limits = np.iinfo(dtype)
        return random.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
    values = random.standard_normal(shape)
    if kind == "c":
        return (values + 1j * random.standard_normal(shape)).astype(dtype)
    return values.astype(dtype)


def wider(values: np.ndarray) -> np.ndarray:
    kind = kind_of(values.dtype)
    return values.astype(np.complex128 if kind == "c" else np.float64) if kind in "fc" else values


def assert_product(
    result: tn.Array, expected: np.ndarray, moduli: np.ndarray, dtype: np.dtype, inner: int
) -> None:
    """Exact for integers; for floats within the inner length times eps of the sum of the moduli."""
    assert result.dtype == dtype
    assert result.shape == np.shape(expected)
    got = np.asarray(result)
    if kind_of(dtype) not in "fc":
        np.testing.assert_array_equal(got, expected)
        return
    accumulated = np.float32 if dtype in HALF_DTYPES else dtype
    half_ulp = {FLOAT16: 2.0**-11, BFLOAT16: 2.0**-8}.get(dtype, 0.0)
    eps = float(np.finfo(accumulated).eps)
    bound = (2 * (inner + 1) * eps) * np.abs(moduli) + half_ulp * np.abs(expected) * 1.01
    assert np.all(np.abs(wider(got) - expected) <= bound + (6e-8 if dtype == FLOAT16 else 0))


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
@pytest.mark.parametrize("shapes", MATRIX_SHAPES, ids=str)
def test_matmul_equals_numpy(shapes: tuple[Any, Any], dtype: np.dtype) -> None:
    x, y = numbers(shapes[0], dtype), numbers(shapes[1], dtype, 1)
    expected = np.matmul(wider(x), wider(y))
    moduli = np.matmul(np.abs(wider(x)), np.abs(wider(y))) if kind_of(dtype) in "fc" else expected
    for product in (tn.asarray(x) @ tn.asarray(y), tn.matmul(x, y), tn.linalg.matmul(x, y)):
        assert_product(product, expected, moduli, dtype, shapes[0][-1])


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("first", "second"), list(itertools.combinations(DTYPES, 2)), ids=lambda name: name
)
def test_matmul_promotes(first: str, second: str) -> None:
    x, y = numbers((2, 3), DTYPES[first]), numbers((3, 2), DTYPES[second], 1)
    dtype = promote_dtypes(DTYPES[first], DTYPES[second])
    a, b = x.astype(dtype), y.astype(dtype)
    expected = np.matmul(wider(a), wider(b))
    moduli = np.matmul(np.abs(wider(a)), np.abs(wider(b))) if kind_of(dtype) in "fc" else expected
    assert_product(tn.asarray(x) @ tn.asarray(y), expected, moduli, dtype, 3)


@pytest.mark.exhaustive
@pytest.mark.parametrize("inner", [1, 7, 63, 64, 65, 129])
@pytest.mark.parametrize("columns", [1, 7, 63, 64, 65, 129])
@pytest.mark.parametrize("rows", [1, 7, 63, 64, 65, 129])
def test_matmul_of_odd_sizes_is_within_its_bound(rows: int, columns: int, inner: int) -> None:
    x = np.random.default_rng(rows).uniform(-1, 1, (rows, inner))
    y = np.random.default_rng(columns).uniform(-1, 1, (inner, columns))
    exact = (x.astype(np.longdouble) @ y.astype(np.longdouble)).astype(float)
    assert np.max(np.abs(np.asarray(tn.asarray(x) @ tn.asarray(y)) - exact)) < 1e-12 * inner


def test_an_empty_inner_axis_gives_zeros() -> None:
    product = tn.zeros((2, 0)) @ tn.zeros((0, 3))
    assert product.shape == (2, 3)
    assert product.tolist() == [[0.0] * 3] * 2


def test_products_of_every_shape_equal_numpy() -> None:
    x = np.arange(6.0).reshape(2, 3)
    v = np.array([1.0, -2.0, 3.0])
    assert (tn.asarray(x) @ tn.asarray(v)).tolist() == (x @ v).tolist()
    assert (tn.asarray(v) @ tn.asarray(x.T)).tolist() == (v @ x.T).tolist()
    assert tn.outer(tn.asarray(v[:2]), tn.asarray(v)).tolist() == np.outer(v[:2], v).tolist()
    assert (tn.asarray(v) @ tn.asarray(v)).item() == 14.0


def test_the_double_contraction_of_two_matrices() -> None:
    x, y = tn.asarray([[1, 2], [6, 5]]), tn.asarray([[1, 2], [5, 6]])
    assert tn.tensordot(x, y).item() == 65
    assert tn.vecdot(tn.reshape(x, (4,)), tn.reshape(y, (4,))).item() == 65
    assert tn.einsum("ij,ij->", x, y).item() == 65
    assert tn.sum(tn.vecdot(x, y)).item() == 65


def test_a_stack_of_products_equals_einsum() -> None:
    x, y = np.arange(24).reshape(4, 2, 3), np.arange(60).reshape(4, 3, 5)
    expected = np.einsum("bij,bjk->bik", x, y)
    assert (tn.asarray(x) @ tn.asarray(y)).tolist() == expected.tolist()
    assert tn.einsum("bij,bjk->bik", x, y).tolist() == expected.tolist()


def test_half_products_are_accumulated_in_float32() -> None:
    ones = tn.asarray(np.ones(4096, np.float16))
    assert (ones @ ones).item() == 4096.0  # in float16 the sum would stay at 2048
    many = tn.asarray(np.ones(512, np.float32).astype(BFLOAT16))
    assert (many @ many).item() == 512.0  # in bfloat16 the sum would stay at 256


def test_matmul_reads_strided_reversed_and_broadcast_operands() -> None:
    x = np.arange(24.0).reshape(4, 6)
    for view in (x[::2, ::2], x[::-1, ::-1], np.broadcast_to(x[0], (3, 6)), x.T):
        view.flags.writeable = False
        other = np.arange(float(view.shape[-1] * 2)).reshape(-1, 2)
        assert (tn.asarray(view) @ tn.asarray(other)).tolist() == (view @ other).tolist()


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ((2, 3), (2, 3), "inner lengths 3 and 2 differ in (2, 3) @ (2, 3)"),
        ((2, 3), (2,), "inner lengths 3 and 2 differ in (2, 3) @ (2,)"),
        ((2, 0), (1, 3), "inner lengths 0 and 1 differ"),
        ((), (3,), "needs at least one axis on each side"),
        ((3,), (), "needs at least one axis on each side"),
        ((2, 2, 3), (3, 3, 4), "shapes (2,) and (3,) do not broadcast"),
    ],
)
def test_matmul_refuses_shapes(first: Any, second: Any, words: str) -> None:
    with pytest.raises(tn.errors.ShapeError) as caught:
        tn.zeros(first) @ tn.zeros(second)
    assert str(caught.value).startswith("matmul: ")
    assert words in str(caught.value)


def test_matmul_refuses_a_scalar() -> None:
    with pytest.raises(tn.errors.ShapeError, match="a Python int"):
        tn.zeros((2, 3)) @ 3
    with pytest.raises(tn.errors.ShapeError, match="scale with"):
        3 @ tn.zeros((2, 3))


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
@pytest.mark.parametrize(
    ("shapes", "axis"),
    [
        (((3,), (3,)), -1),
        (((2, 3), (3,)), -1),
        (((2, 3), (4, 1, 3)), -1),
        (((3, 1), (3, 4)), -2),
        (((3, 2), (3, 2)), 0),
        (((2, 0), (1, 0)), -1),
        (((0, 3), (1, 3)), -1),
    ],
    ids=str,
)
def test_vecdot_equals_numpy(shapes: tuple[Any, Any], axis: int, dtype: np.dtype) -> None:
    x, y = numbers(shapes[0], dtype), numbers(shapes[1], dtype, 1)
    expected = np.vecdot(wider(x), wider(y), axis=axis)
    moduli = expected
    if kind_of(dtype) in "fc":
        moduli = np.vecdot(np.abs(wider(x)), np.abs(wider(y)), axis=axis)
    for function in (tn.vecdot, tn.linalg.vecdot):
        assert_product(function(x, y, axis=axis), expected, moduli, dtype, shapes[0][axis])


def test_vecdot_conjugates_the_first() -> None:
    assert tn.vecdot(tn.asarray([1j]), tn.asarray([1j])).item() == 1
    assert tn.vecdot(tn.asarray([1j]), tn.asarray([1.0])).item() == -1j


@pytest.mark.parametrize(
    ("shapes", "axis", "words"),
    [
        (((3,), (4,)), -1, "vectors of lengths 3 and 4 meet on axis -1"),
        (((2, 3), (2, 1)), -1, "vectors of lengths 3 and 1 meet"),
        (((2, 3), (3,)), 1, "out of range"),
        (((2, 3), (3,)), 0, "axis 0 is ambiguous for 2 and 1 axes"),
        (((3,), ()), -1, "out of range for 0 axes"),
        (((2, 3), (4, 3)), -1, "do not broadcast"),
    ],
    ids=str,
)
def test_vecdot_refuses(shapes: tuple[Any, Any], axis: int, words: str) -> None:
    with pytest.raises(tn.errors.ShapeError) as caught:
        tn.vecdot(tn.zeros(shapes[0]), tn.zeros(shapes[1]), axis=axis)
    assert str(caught.value).startswith("vecdot: ")
    assert words in str(caught.value)


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
@pytest.mark.parametrize(
    ("shapes", "axes"),
    [
        (((2, 3, 4), (3, 4, 5)), 2),
        (((2, 3, 4), (4, 5)), 1),
        (((2, 3), (4,)), 0),
        (((), (2,)), 0),
        (((2, 3), (2, 3)), 2),
        (((2, 3, 4), (4, 2)), ((0, 2), (1, 0))),
        (((2, 3, 4), (4, 2)), ((-3, -1), (-1, -2))),
        (((2, 3), (3, 2)), (1, 0)),
        (((2, 3), (3, 2)), ([], [])),
        (((2, 0), (0, 3)), 1),
        (((0, 2), (2, 3)), 1),
    ],
    ids=str,
)
def test_tensordot_equals_numpy(shapes: tuple[Any, Any], axes: Any, dtype: np.dtype) -> None:
    x, y = numbers(shapes[0], dtype), numbers(shapes[1], dtype, 1)
    expected = np.tensordot(wider(x), wider(y), axes)
    moduli = expected
    if kind_of(dtype) in "fc":
        moduli = np.tensordot(np.abs(wider(x)), np.abs(wider(y)), axes)
    for function in (tn.tensordot, tn.linalg.tensordot):
        assert_product(function(x, y, axes=axes), expected, moduli, dtype, max(1, x.size))


@pytest.mark.parametrize(
    ("shapes", "axes", "words"),
    [
        (((2, 3), (2, 3)), 1, "axis 1 of the first has length 3, axis 0 of the second 2"),
        (((2, 3), (3,)), 2, "2 axes cannot be contracted"),
        (((2, 3), (3,)), -1, "-1 axes cannot be contracted"),
        (((2, 3), (3, 2)), ((0, 1), (0,)), "2 axes of the first are paired with 1 of the second"),
        (((2, 2), (2, 2)), ((0, 0), (0, 1)), "axes (0, 0) name an axis twice"),
        (((2, 3), (3, 2)), ((2,), (0,)), "axis 2 is out of range for 2 axes"),
        (((2, 3), (3, 2)), (1, 0, 1), "axes (1, 0, 1) are not two"),
        (((2, 3), (3, 2)), "ij", "not an int or a pair of sequences"),
        (((2, 3), (3, 2)), 1.0, "not an int or a pair of sequences"),
        (((2, 3), (3, 2)), True, "not an int or a pair of sequences"),
    ],
    ids=str,
)
def test_tensordot_refuses(shapes: tuple[Any, Any], axes: Any, words: str) -> None:
    with pytest.raises(tn.errors.ShapeError) as caught:
        tn.tensordot(tn.zeros(shapes[0]), tn.zeros(shapes[1]), axes=axes)
    assert str(caught.value).startswith("tensordot: ")
    assert words in str(caught.value)


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
@pytest.mark.parametrize("lengths", [(2, 3), (1, 1), (0, 3), (3, 0)], ids=str)
def test_outer_equals_numpy(lengths: tuple[int, int], dtype: np.dtype) -> None:
    x, y = numbers((lengths[0],), dtype), numbers((lengths[1],), dtype, 1)
    expected = np.multiply.outer(x, y)
    for function in (tn.outer, tn.linalg.outer):
        result = function(x, y)
        assert result.dtype == dtype
        np.testing.assert_allclose(wider(np.asarray(result)), wider(expected), rtol=1e-6)


def test_outer_refuses_matrices() -> None:
    with pytest.raises(tn.errors.ShapeError, match=r"outer: shapes \(2, 3\) and \(3,\) are no vec"):
        tn.outer(tn.zeros((2, 3)), tn.zeros((3,)))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float32", "float64", "complex64"])
@pytest.mark.parametrize(
    "shapes",
    [((2, 3), (4, 5)), ((2,), (3, 4)), ((2, 1, 3), (2,)), ((), (3,)), ((), ()), ((2, 0), (3, 4))],
    ids=str,
)
def test_kron_equals_numpy(shapes: tuple[Any, Any], dtype: str) -> None:
    x, y = numbers(shapes[0], DTYPES[dtype]), numbers(shapes[1], DTYPES[dtype], 1)
    result = tn.kron(x, y)
    assert result.dtype == DTYPES[dtype]
    np.testing.assert_allclose(np.asarray(result), np.kron(x, y), rtol=1e-6)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: tn.zeros((2, 3)) @ tn.zeros((3, 4)), 24),
        (lambda: tn.zeros((3,)) @ tn.zeros((3,)), 3),
        (lambda: tn.zeros((2, 3)) @ tn.zeros((3,)), 6),
        (lambda: tn.zeros((5, 1, 2, 3)) @ tn.zeros((4, 3, 7)), 5 * 4 * 2 * 3 * 7),
        (lambda: tn.zeros((2, 0)) @ tn.zeros((0, 3)), 0),
        (lambda: tn.vecdot(tn.zeros((2, 3)), tn.zeros((4, 1, 3))), 24),
        (lambda: tn.tensordot(tn.zeros((2, 3, 4)), tn.zeros((3, 4, 5))), 120),
        (lambda: tn.outer(tn.zeros((2,)), tn.zeros((3,))), 0),  # elementwise: no sum
    ],
)
def test_multiply_adds_are_counted_where_the_work_is_done(make: Any, expected: int) -> None:
    product = make()
    before = tn._native.read_counters()["multiply_adds"]
    product.wait()
    assert tn._native.read_counters()["multiply_adds"] - before == expected


def test_a_product_is_lazy_and_complex() -> None:
    before = tn._native.read_counters()["calls"]
    product = tn.zeros((2, 3)) @ tn.zeros((3, 4)) + 1
    assert tn._native.read_counters()["calls"] == before
    assert tn._native.node_of(product).kind == tn.Kind.CONTRACTION


def test_strict_dtypes_refuses_to_mix() -> None:
    x, y = tn.ones((2, 2)), tn.ones((2, 2), dtype=tn.float32)
    with tn.options(strict_dtypes=True):
        for function in (tn.matmul, tn.vecdot, tn.tensordot, tn.kron):
            name = function.__name__
            with pytest.raises(tn.errors.DTypeError, match=f"{name}: strict_dtypes refuses to mix"):
                function(x, y)
