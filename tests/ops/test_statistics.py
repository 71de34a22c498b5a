"""Means, variances and stable exponentials against exact arithmetic, and at the edges."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tenfold as tn
from tenfold.core.op import OPS
from tenfold.dtypes import DTYPES, HALF_DTYPES, kind_of
from tenfold.errors import DTypeError, ShapeError

SHAPES = [(), (1,), (33,), (1025,), (5000,), (40, 33), (2, 3, 4), (1, 2, 1, 3, 2, 2)]
STATISTICS = ["mean", "var", "std", "logsumexp", "softmax", "log_softmax"]
CONVERTED = ("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64")
"""Computed as float64, as int64 is: three shapes tell whether the conversion is right."""
REAL = [name for name, dtype in DTYPES.items() if kind_of(dtype) != "c"]


def drawn(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    rng = np.random.default_rng(len(shape) + sum(shape))
    kind = kind_of(DTYPES[dtype])
    if kind in "biu":
        return np.asarray(rng.integers(0, 2 if kind == "b" else 100, shape)).astype(dtype)
    values = 3 + rng.standard_normal(shape)
    if kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    return np.asarray(values, "float32" if DTYPES[dtype] in HALF_DTYPES else dtype).astype(
        DTYPES[dtype]
    )


def shapes_for(dtype: str) -> list[tuple[int, ...]]:
    return [(33,), (5000,), (2, 3, 4)] if dtype in CONVERTED else SHAPES


def axes_for(shape: tuple[int, ...]) -> Iterator[Any]:
    yield None
    yield from range(len(shape))
    if len(shape) > 1:
        yield (0, -1)


def result_dtype(dtype: str, real: bool = False) -> np.dtype:
    kind = kind_of(DTYPES[dtype])
    if kind == "c" and real:
        return DTYPES["float32" if dtype == "complex64" else "float64"]
    return DTYPES[dtype] if kind in "fc" else DTYPES["float64"]


def extended(x: np.ndarray) -> np.ndarray:
    return x.astype(np.clongdouble if kind_of(x.dtype) == "c" else np.longdouble)


def assert_close(found: np.ndarray, truth: np.ndarray, dtype: np.dtype, units: float) -> None:
    """Within some units of the computation's precision and the rounding of a half result."""
    assert found.dtype == dtype
    assert found.shape == truth.shape
    plain = found.astype(np.float32) if dtype in HALF_DTYPES else found
    working = np.float32 if dtype in HALF_DTYPES else dtype
    bound = units * float(np.finfo(working).eps) * np.maximum(np.abs(truth), 1)
    if dtype in HALF_DTYPES:
        bound = bound + float(ml_dtypes.finfo(dtype).eps) / 2 * np.abs(truth)
    assert (np.abs(extended(plain) - truth) <= bound).all()


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", DTYPES)
def test_mean_and_variance_agree_with_extended_precision(dtype: str) -> None:
    for shape in shapes_for(dtype):
        x = drawn(shape, dtype)
        exact = extended(x)
        for axis, keepdims in itertools.product(axes_for(shape), (False, True)):
            where = {"axis": axis, "keepdims": keepdims}
            lazy = tn.asarray(x)
            found = np.asarray(tn.mean(lazy, **where))
            assert_close(found, np.mean(exact, **where), result_dtype(dtype), 64)
            real = result_dtype(dtype, real=True)
            truth = np.asarray(np.var(exact, **where))
            assert_close(np.asarray(tn.var(lazy, **where)), truth, real, 64)
            assert_close(np.asarray(tn.std(lazy, **where)), np.sqrt(truth), real, 64)


@pytest.mark.parametrize("dtype", REAL)
def test_stable_exponentials_agree_with_extended_precision(dtype: str) -> None:
    for shape in shapes_for(dtype):
        x = drawn(shape, dtype)
        exact = extended(x)
        result = result_dtype(dtype)
        for axis in axes_for(shape):
            lazy = tn.asarray(x)
            largest = np.max(exact, axis=axis, keepdims=True)
            total = np.log(np.sum(np.exp(exact - largest), axis=axis, keepdims=True)) + largest
            found = np.asarray(tn.logsumexp(lazy, axis=axis, keepdims=True))
            assert_close(found, total, result, 64)
            flat = np.asarray(tn.logsumexp(lazy, axis=axis))
            assert flat.tobytes() == found.tobytes()
            assert flat.shape == np.max(exact, axis=axis).shape
            assert_close(np.asarray(tn.softmax(lazy, axis=axis)), np.exp(exact - total), result, 64)
            difference = exact - total
            assert_close(np.asarray(tn.log_softmax(lazy, axis=axis)), difference, result, 64)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *itertools.product(STATISTICS, ("int8", "bfloat16", "float32")),
        *itertools.product(("mean", "var", "std"), ("complex64",)),
    ],
)
def test_statistic_has_the_same_bits_for_every_layout(
    name: str, dtype: str, layouts: Callable[..., Any]
) -> None:
    for shape in [(5000,), (40, 33), (2, 3, 4)]:
        for axis in axes_for(shape):
            found = {
                np.asarray(OPS[name](tn.asarray(variant), axis=axis)).tobytes()
                for variant in layouts(drawn(shape, dtype)).values()
            }
            assert len(found) == 1


def test_correction_lowers_the_divisor() -> None:
    x = tn.asarray([1.0, 2.0, 3.0, 4.0])
    assert tn.var(x, correction=1).item() == 5 / 3
    assert tn.var(x, correction=1.5).item() == 5 / 2.5
    assert tn.std(x, correction=1).item() == math.sqrt(5 / 3)
    assert math.isnan(tn.var(tn.asarray([1.0]), correction=1).item())
    assert tn.var(tn.asarray([1.0, 2.0]), correction=3).item() == math.inf


def test_variance_of_numbers_far_from_zero_does_not_cancel() -> None:
    x = 1e9 + np.arange(3.0)
    assert tn.var(tn.asarray(x)).item() == pytest.approx(2 / 3, rel=1e-12)


def test_statistics_of_nothing_are_nan() -> None:
    empty = tn.zeros((2, 0))
    for name in ("mean", "var", "std"):
        assert np.isnan(np.asarray(OPS[name](empty, axis=1))).tolist() == [True, True]
        assert OPS[name](empty, axis=0).shape == (0,)
    assert tn.logsumexp(empty, axis=1).tolist() == [-math.inf, -math.inf]
    assert tn.softmax(empty).shape == tn.log_softmax(empty).shape == (2, 0)
    assert tn.softmax(tn.zeros((0, 2)), axis=0).shape == (0, 2)


def test_half_means_are_computed_in_float32() -> None:
    x = tn.full((4096,), 60000.0, dtype=tn.float16)
    assert tn.mean(x).item() == 60000
    assert tn.mean(x).dtype == tn.float16
    assert tn.var(x).item() == 0


def test_means_of_integers_are_float64() -> None:
    assert tn.mean(tn.asarray([1, 2])).item() == 1.5
    assert tn.mean(tn.full((3,), True)).dtype == tn.float64
    assert tn.var(tn.asarray([200, 100], dtype=tn.uint8)).item() == 2500
    assert tn.softmax(tn.asarray([1, 1])).tolist() == [0.5, 0.5]


def test_variance_of_complex_numbers_is_real() -> None:
    x = tn.asarray([1 + 1j, 1 - 1j])
    assert tn.var(x).item() == 1.0
    assert tn.var(x).dtype == tn.float64
    assert tn.mean(x).item() == 1


def test_all_axes_but_one_are_named_by_a_tuple() -> None:
    x = tn.asarray(np.arange(24.0).reshape(3, 2, 4))
    assert tn.mean(x, axis=(1, 2)).tolist() == [3.5, 11.5, 19.5]


def test_exponentials_do_not_overflow() -> None:
    x = tn.asarray([1000.0, 1000.0])
    assert tn.softmax(x).tolist() == [0.5, 0.5]
    assert tn.logsumexp(x).item() == pytest.approx(1000 + math.log(2), rel=1e-15)
    assert tn.log_softmax(tn.asarray([0.0, -1000.0])).tolist() == [0.0, -1000.0]
    assert tn.logsumexp(tn.astype(tn.asarray([60000.0]), tn.float16)).item() == 60000


def test_infinities_in_stable_exponentials() -> None:
    low, high = -math.inf, math.inf
    assert tn.logsumexp(tn.asarray([[low, low], [low, 0.0], [high, 0.0]]), axis=1).tolist() == [
        low,
        0.0,
        high,
    ]
    assert tn.logsumexp(tn.asarray([high, low])).item() == high
    assert math.isnan(tn.logsumexp(tn.asarray([math.nan, high])).item())
    assert tn.softmax(tn.asarray([low, 0.0])).tolist() == [0.0, 1.0]
    assert tn.log_softmax(tn.asarray([low, 0.0])).tolist() == [low, 0.0]
    for row in ([low, low], [high, 0.0], [math.nan, 0.0]):
        assert np.isnan(np.asarray(tn.softmax(tn.asarray(row)))).all()
        assert np.isnan(np.asarray(tn.log_softmax(tn.asarray(row)))).all()


@pytest.mark.parametrize("name", STATISTICS)
def test_statistics_raise_in_their_own_name(name: str) -> None:
    with pytest.raises(ShapeError, match=f"^{name}: axis 2 is out of range for 2 axes"):
        OPS[name](tn.zeros((2, 3)), axis=2)


@pytest.mark.parametrize("name", ["logsumexp", "softmax", "log_softmax"])
def test_stable_exponentials_refuse_complex_numbers(name: str) -> None:
    with pytest.raises(DTypeError, match=f"{name}: needs real numbers, not complex128"):
        OPS[name](tn.asarray([1j]))
