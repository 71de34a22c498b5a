"""Reductions against NumPy, over dtypes, shapes, axes, layouts; and what they mean at the edges."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.conftest import Part

import tenfold as tn
from tenfold.core.op import OPS
from tenfold.dtypes import DTYPES, HALF_DTYPES, kind_of
from tenfold.errors import DTypeError, ShapeError

SHAPES = [
    (),
    (0,),
    (1,),
    (31,),
    (33,),
    (1024,),
    (1025,),
    (5000,),
    (3, 0),
    (0, 4, 2),
    (40, 33),
    (1030, 3),
    (2, 3, 4),
    (1, 2, 1, 3, 2, 2),
]
REDUCTIONS = sorted(name for name, op in OPS.items() if op.page == "reduce")
LIKE_OTHERS = ("int16", "int32", "int64", "uint8", "uint16", "uint32", "complex128")
"""Reduced by the loops of int8, uint64 and complex64: a shape of each kind tells."""
SEVERAL = ("bool", "int8", "float16", "bfloat16", "float32", "complex64")
POSITIONS = ("argmax", "argmin")
ORDERED = ("max", "min", *POSITIONS)


def drawn(shape: tuple[int, ...], dtype: np.dtype, product: bool = False) -> np.ndarray:
    """Random values; near 1 in modulus if their product must not overflow."""
    rng = np.random.default_rng(len(shape) + sum(shape))
    kind = kind_of(dtype)
    if kind == "b":
        return np.asarray(rng.integers(0, 2, shape), bool)
    if kind in "iu":
        info = np.iinfo(dtype)
        return np.asarray(rng.integers(info.min, info.max, shape, dtype, endpoint=True))
    values = rng.standard_normal(shape)
    if product:
        values = rng.choice([-1, 1], shape) * (1 + values / 64)
    if kind == "c":
        values = values * np.exp(2j * np.pi * rng.random(shape))
    return np.asarray(values, np.float32 if dtype in HALF_DTYPES else dtype).astype(dtype)


def axes_for(shape: tuple[int, ...], name: str) -> Iterator[Any]:
    yield None
    yield from range(len(shape))
    if name not in POSITIONS:
        yield ()
        yield from ((-1, 0), tuple(range(0, len(shape), 2))) if len(shape) > 1 else ()


def is_empty(shape: tuple[int, ...], axis: Any) -> bool:
    axes = range(len(shape)) if axis is None else np.atleast_1d(np.asarray(axis, int))
    return any(shape[i] == 0 for i in axes)


def accumulated(dtype: np.dtype) -> np.dtype:
    return np.dtype({"b": "int64", "i": "int64", "u": "uint64"}.get(kind_of(dtype), dtype))


def extended(x: np.ndarray) -> np.ndarray:
    return x.astype(np.clongdouble if kind_of(x.dtype) == "c" else np.longdouble)


def unit(dtype: np.dtype) -> float:
    """The unit roundoff of the dtype in which sums accumulate."""
    return float(np.finfo(np.float32 if dtype in HALF_DTYPES else dtype).eps) / 2


def height(length: int) -> int:
    return 10 + math.ceil(math.log2(max(length / 1024, 1)))


def assert_sum(found: np.ndarray, x: np.ndarray, **where: Any) -> None:
    if kind_of(x.dtype) in "biu":
        assert (found == np.sum(x, dtype=found.dtype, **where)).all()
        return
    steps = sum(height(length) + 1 for length in x.shape) * unit(x.dtype)
    bound = steps / (1 - steps) * np.sum(np.abs(extended(x)), **where)
    assert_within(found, np.sum(extended(x), **where), 2 * bound)


def assert_prod(found: np.ndarray, x: np.ndarray, **where: Any) -> None:
    if kind_of(x.dtype) in "biu":
        assert (found == np.prod(x, dtype=found.dtype, **where)).all()
        return
    truth = np.prod(extended(x), **where)
    steps = 4 * x.size * unit(x.dtype)  # Higham 2002, lemma 3.5: a complex product errs by 4 units
    assert_within(found, truth, steps / (1 - steps) * abs(truth))


def assert_within(found: np.ndarray, truth: np.ndarray, bound: np.ndarray) -> None:
    if found.dtype in HALF_DTYPES:
        limits = 2.0**-8 if found.dtype == DTYPES["bfloat16"] else 2.0**-11
        bound = bound + limits * np.abs(truth) + 2.0**-24
    assert (np.abs(extended(found) - truth) <= bound).all()


def assert_same_as(function: Callable[..., Any]) -> Callable[..., None]:
    def check(found: np.ndarray, x: np.ndarray, **where: Any) -> None:
        assert (found == function(x, **where)).all()

    return check


def nonzero(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, **where: function(x != 0, **where)


CHECKS: dict[str, tuple[Callable[..., None], Callable[[np.dtype], Any]]] = {
    "sum": (assert_sum, accumulated),
    "prod": (assert_prod, accumulated),
    "max": (assert_same_as(np.max), lambda dtype: dtype),
    "min": (assert_same_as(np.min), lambda dtype: dtype),
    "argmax": (assert_same_as(np.argmax), lambda dtype: np.int64),
    "argmin": (assert_same_as(np.argmin), lambda dtype: np.int64),
    "any": (assert_same_as(nonzero(np.any)), lambda dtype: bool),
    "all": (assert_same_as(nonzero(np.all)), lambda dtype: bool),
    "count_nonzero": (assert_same_as(nonzero(np.sum)), lambda dtype: np.int64),
}


def test_every_reduction_has_its_check_here() -> None:
    assert set(CHECKS) == set(REDUCTIONS)


def cases(name: str, dtype: str) -> Iterator[tuple[np.ndarray, dict[str, Any]]]:
    few = [(0,), (33,), (5000,), (40, 33), (2, 3, 4)]
    for shape in few if dtype in LIKE_OTHERS else SHAPES:
        x = drawn(shape, DTYPES[dtype], product=name == "prod")
        for axis, keepdims in itertools.product(axes_for(shape, name), (False, True)):
            if not (name in ORDERED and is_empty(shape, axis)):
                yield x, {"axis": axis, "keepdims": keepdims}


def pairs(dtypes: Iterable[str]) -> list[tuple[str, str]]:
    """Every reduction with every dtype it takes: what needs an order refuses complex numbers."""
    return [
        (name, dtype)
        for name, dtype in itertools.product(REDUCTIONS, dtypes)
        if not (name in ORDERED and kind_of(DTYPES[dtype]) == "c")
    ]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("name", "dtype"), pairs(DTYPES))
def test_reduction_agrees_with_numpy(name: str, dtype: str, part: Part) -> None:
    check, result_dtype = CHECKS[name]
    for x, where in part(cases(name, dtype)):
        result = OPS[name](tn.asarray(x), **where)
        found = np.asarray(result)
        plain = x.astype(np.float32) if x.dtype in HALF_DTYPES else x
        assert found.shape == np.any(plain, **where).shape == result.shape
        assert found.dtype == np.dtype(result_dtype(x.dtype)) == result.dtype
        check(found, x, **where)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("name", "dtype"), pairs(SEVERAL))
def test_reduction_has_the_same_bits_for_every_layout(
    name: str,
    dtype: str,
    layouts: Callable[..., Any],
    part: Part,
) -> None:
    # where the axes go has nothing to do with layouts
    for x, where in part(case for case in cases(name, dtype) if not case[1]["keepdims"]):
        found = {
            layout: np.asarray(OPS[name](tn.asarray(variant), **where)).tobytes()
            for layout, variant in layouts(x).items()
        }
        assert set(found.values()) == {found["writeable"]}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_broadcast_array_is_reduced_as_if_it_were_written_out(name: str) -> None:
    row = drawn((1, 37), DTYPES["float32"], product=name == "prod")
    wide = np.broadcast_to(row, (50, 37))
    for axis in (None, 0, 1):
        found = np.asarray(OPS[name](tn.asarray(wide), axis=axis))
        assert (
            found.tobytes() == np.asarray(OPS[name](tn.asarray(wide.copy()), axis=axis)).tobytes()
        )


# The rows of the feature list.


def test_axis_reductions_and_positions_of_a_small_matrix() -> None:
    x = tn.asarray([[1, 5, 5, 2], [7, 7, 0, -1]])
    assert tn.sum(x, axis=1).tolist() == [13, 13]
    assert tn.max(x, axis=0).tolist() == [7, 7, 5, 2]
    assert tn.argmax(x, axis=1).tolist() == [1, 0]
    assert tn.argmin(x, axis=1).tolist() == [0, 3]


def test_all_axes_but_one_are_named_by_a_tuple() -> None:
    i, j, k = np.indices((3, 2, 4))
    x = tn.asarray(0.1 * i + 0.2 * j + 0.1 * k)
    np.testing.assert_allclose(np.asarray(tn.sum(x, axis=(1, 2))), [2, 2.8, 3.6], rtol=1e-15)
    np.testing.assert_allclose(np.asarray(tn.sum(x, axis=(0, 2))), [3, 5.4], rtol=1e-15)


def test_maximum_of_negative_infinities_is_negative_infinity() -> None:
    x = tn.asarray([-math.inf, -math.inf])
    assert tn.max(x).item() == -math.inf
    assert tn.min(-x).item() == math.inf


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_nan_wins_maximum_and_minimum_wherever_it_stands(dtype: str) -> None:
    for place, size in itertools.product((0, 1, 2), (3, 40)):
        values = np.ones(size)
        values[place] = math.nan
        x = tn.asarray(values, dtype=dtype)
        assert math.isnan(tn.max(x).item())
        assert math.isnan(tn.min(x).item())
        assert tn.argmax(x).item() == tn.argmin(x).item() == place


def test_identities_of_empty_reductions() -> None:
    empty = tn.zeros((0,))
    assert tn.sum(empty).item() == 0
    assert tn.prod(empty).item() == 1
    assert tn.all(empty).item() is True
    assert tn.any(empty).item() is False
    assert tn.count_nonzero(empty).item() == 0


@pytest.mark.parametrize("name", ORDERED)
def test_an_empty_axis_without_identity_raises_at_the_call(name: str) -> None:
    with pytest.raises(ShapeError, match=r"axis 1 of shape \(2, 0\) is empty") as caught:
        OPS[name](tn.zeros((2, 0)), axis=1)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("name", ORDERED)
def test_an_empty_axis_that_stays_gives_an_empty_result(name: str) -> None:
    assert OPS[name](tn.zeros((2, 0)), axis=0).shape == (0,)


# Zeros and signs.


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_negative_zero_is_below_zero(dtype: str) -> None:
    for order in ([-0.0, 0.0], [0.0, -0.0], [0.0, -0.0] * 40):
        x = tn.asarray(order, dtype=dtype)
        assert math.copysign(1, tn.max(x).item()) == 1
        assert math.copysign(1, tn.min(x).item()) == -1
    only = tn.asarray([[-0.0, -0.0]], dtype=dtype)
    assert math.copysign(1, tn.max(only).item()) == -1
    assert math.copysign(1, tn.min(-only).item()) == 1


def test_equal_zeros_tie_so_the_first_is_found() -> None:
    assert tn.argmax(tn.asarray([-0.0, 0.0])).item() == 0
    assert tn.argmin(tn.asarray([0.0, -0.0])).item() == 0


def test_sum_of_negative_zeros_is_zero_as_in_numpy() -> None:
    for values, axis in (([-0.0, -0.0], 0), ([-0.0], ()), (-0.0, None)):
        found = np.asarray(tn.sum(tn.asarray(values), axis=axis))
        assert not np.signbit(found).any()
    assert math.copysign(1, tn.prod(tn.asarray([-0.0])).item()) == -1


# Dtypes.


def test_integer_sums_and_products_wrap() -> None:
    top = tn.asarray([2**63 - 1, 1])
    assert tn.sum(top).item() == -(2**63)
    assert tn.prod(tn.asarray([2**62, 4])).item() == 0
    assert tn.sum(tn.asarray([2**64 - 1, 2], dtype=tn.uint64)).item() == 1


def test_small_integers_are_summed_in_64_bits() -> None:
    assert tn.sum(tn.full((3,), 127, dtype=tn.int8)).item() == 381
    assert tn.sum(tn.full((3,), 255, dtype=tn.uint8)).dtype == tn.uint64
    assert tn.sum(tn.full((300,), True)).item() == 300


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_sums_accumulate_in_float32_and_round_once(dtype: str) -> None:
    ones = tn.full((5000,), 1.0, dtype=dtype)
    expected = np.float32(5000).astype(DTYPES[dtype])
    assert np.asarray(tn.sum(ones)) == expected
    assert tn.sum(ones).dtype == DTYPES[dtype]
    assert tn.sum(ones, dtype=tn.float32).item() == 5000


def test_elements_are_converted_before_they_are_summed() -> None:
    x = tn.asarray([0.5, 0.5, 2.75])
    assert tn.sum(x, dtype=tn.int64).item() == 2
    assert tn.sum(x, dtype="float32").dtype == tn.float32
    assert tn.sum(tn.asarray([200, 100], dtype=tn.uint8), dtype=tn.uint8).item() == 44
    assert tn.sum(tn.asarray([1, 2]), dtype=bool).item() is True
    assert tn.prod(tn.asarray([1, 0]), dtype=bool).item() is False


def test_nan_counts_as_not_zero() -> None:
    x = tn.asarray([math.nan, 0.0, -0.0])
    assert tn.any(x).item() is True
    assert tn.all(x).item() is False
    assert tn.count_nonzero(x).item() == 1


def test_complex_product_multiplies_by_parts() -> None:
    """Each part is rounded product by product: contracted to FMA, this real part would not be 0."""
    x = tn.asarray([0.1 + 0.3j, 0.3 + 0.1j])
    assert tn.prod(x).item().real == 0.1 * 0.3 - 0.3 * 0.1 == 0
    assert tn.prod(tn.asarray([1 + 2j, 2 - 1j])).item() == 4 + 3j
    assert tn.sum(tn.asarray([1 + 2j, 2 - 1j])).item() == 3 + 1j


@pytest.mark.parametrize("name", ORDERED)
def test_complex_numbers_have_no_order(name: str) -> None:
    with pytest.raises(DTypeError, match="needs real numbers, not complex64"):
        OPS[name](tn.asarray([1j], dtype=tn.complex64))


@pytest.mark.parametrize("name", ["sum", "prod"])
def test_complex_numbers_do_not_accumulate_in_a_real_dtype(name: str) -> None:
    with pytest.raises(DTypeError, match="cannot accumulate complex128 in float64"):
        OPS[name](tn.asarray([1j]), dtype=tn.float64)


# Axes.


@pytest.mark.parametrize("name", REDUCTIONS)
def test_an_axis_out_of_range_raises_at_the_call(name: str) -> None:
    with pytest.raises(ShapeError, match=f"{name}: axis 2 is out of range for 2 axes"):
        OPS[name](tn.zeros((2, 3)), axis=2)


@pytest.mark.parametrize("name", sorted(set(REDUCTIONS) - set(POSITIONS)))
def test_an_axis_named_twice_raises_at_the_call(name: str) -> None:
    with pytest.raises(ShapeError, match="names an axis twice"):
        OPS[name](tn.zeros((2, 3)), axis=(0, -2))


@pytest.mark.parametrize("name", POSITIONS)
def test_a_position_is_counted_along_one_axis(name: str) -> None:
    with pytest.raises(ShapeError, match=r"axis \(0, 1\) is not an int"):
        OPS[name](tn.zeros((2, 3)), axis=(0, 1))


def test_position_in_the_flattened_array_is_row_major_for_any_layout() -> None:
    values = np.asfortranarray([[0, 1, 9], [9, 2, 3]])
    assert tn.argmax(tn.asarray(values)).item() == 2
    assert tn.argmax(tn.asarray(values), keepdims=True).tolist() == [[2]]


def test_reductions_are_methods_too() -> None:
    x = tn.asarray([[1.0, 2.0], [3.0, 5.0]])
    assert x.sum(axis=0).tolist() == [4.0, 7.0]
    assert x.max(axis=1, keepdims=True).tolist() == [[2.0], [5.0]]
    assert x.argmin().item() == 0
