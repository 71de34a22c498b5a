"""Running sums and products against NumPy and against a scalar re-statement; differences."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.conftest import Part

import tenfold as tn
from tenfold.core.op import OPS
from tenfold.dtypes import DTYPES, HALF_DTYPES, kind_of
from tenfold.errors import DTypeError, ShapeError

SCANS = ["cumulative_sum", "cumulative_prod"]
NUMPY = {"cumulative_sum": np.cumulative_sum, "cumulative_prod": np.cumulative_prod}
SHAPES = [
    (0,),
    (1,),
    (33,),
    (1024,),
    (1025,),
    (5000,),
    (3, 0),
    (0, 2),
    (40, 33),
    (1, 2, 1, 3, 2, 2),
]
OPTIONS: list[dict[str, Any]] = [{}, {"include_initial": True}, {"exclusive": True}]


def drawn(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    rng = np.random.default_rng(len(shape) + sum(shape))
    kind = kind_of(DTYPES[dtype])
    if kind in "biu":
        return rng.integers(0, 2 if kind == "b" else 100, shape).astype(dtype)
    values = rng.choice([-1, 1], shape) * (1 + rng.standard_normal(shape) / 256)
    if kind == "c":
        values = values * np.exp(2j * np.pi * rng.random(shape))
    return values.astype(np.float32 if DTYPES[dtype] in HALF_DTYPES else dtype).astype(
        DTYPES[dtype]
    )


def combined(name: str, x: Any, y: Any) -> Any:
    """One step in the dtype of `x`; complex products part by part."""
    if name == "cumulative_sum":
        return x + y
    if x.dtype.kind != "c":
        return x * y
    real, imag = x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real
    return x.dtype.type(complex(real, imag))


def scalar_scan(name: str, values: np.ndarray) -> np.ndarray:
    """What scan.py says, one element at a time."""
    scanned: list[Any] = []
    carry = None
    for start in range(0, len(values), 1024):
        total = None
        for value in values[start : start + 1024]:
            total = value if total is None else combined(name, total, value)
            scanned.append(total if carry is None else combined(name, carry, total))
        carry = total if carry is None else combined(name, carry, total)
    return np.asarray(scanned, values.dtype)


def cases(dtype: str) -> Iterator[tuple[np.ndarray, dict[str, Any]]]:
    for shape, options in itertools.product(SHAPES, OPTIONS):
        x = drawn(shape, dtype)
        for axis in range(x.ndim):
            yield x, {"axis": axis, **options}


def expected(name: str, x: np.ndarray, **options: Any) -> np.ndarray:
    exclusive = options.pop("exclusive", False)
    if exclusive:
        options["include_initial"] = True
    wide = x.astype(np.float32) if x.dtype in HALF_DTYPES else x
    scanned = NUMPY[name](wide, **options)
    if exclusive:
        scanned = np.delete(scanned, -1, axis=options["axis"])
    return scanned.astype(x.dtype) if x.dtype in HALF_DTYPES else scanned


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SCANS)
def test_scan_agrees_with_numpy(name: str, dtype: str, part: Part) -> None:
    for x, options in part(cases(dtype)):
        found = np.asarray(OPS[name](tn.asarray(x), **options))
        truth = expected(name, x, **options)
        assert (found.shape, found.dtype) == (truth.shape, truth.dtype)
        if kind_of(found.dtype) in "biu":
            assert (found == truth).all()
            continue
        unit = float(ml_dtypes.finfo(found.dtype).eps)
        steps = 4 * x.shape[options["axis"]] + 2
        size = np.maximum(np.abs(truth).astype(float), np.sqrt(steps))
        error = np.abs(found.astype(complex) - truth.astype(complex))
        assert (error <= steps * unit * size).all()


@pytest.mark.parametrize("dtype", ["int64", "float32", "float64"])
@pytest.mark.parametrize("name", SCANS)
def test_the_first_1024_have_the_bits_of_numpy(name: str, dtype: str) -> None:
    x = drawn((1024,), dtype)
    found = np.asarray(OPS[name](tn.asarray(x)))
    assert found.tobytes() == NUMPY[name](x).tobytes()


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("length", [1, 2, 1023, 1024, 1025, 2048, 3000, 5000])
@pytest.mark.parametrize("name", SCANS)
def test_scan_equals_its_scalar_restatement_bit_for_bit(name: str, length: int, dtype: str) -> None:
    x = drawn((length,), dtype)
    found = np.asarray(OPS[name](tn.asarray(x)))
    assert found.tobytes() == scalar_scan(name, x).tobytes()


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", ["int8", "bfloat16", "float32", "complex64"])
@pytest.mark.parametrize("name", SCANS)
def test_scan_has_the_same_bits_for_every_layout(
    name: str,
    dtype: str,
    layouts: Callable[..., Any],
    part: Part,
) -> None:
    for x, options in part(cases(dtype)):
        found = {
            np.asarray(OPS[name](tn.asarray(variant), **options)).tobytes()
            for variant in layouts(x).values()
        }
        assert len(found) == 1


@pytest.mark.parametrize("name", SCANS)
def test_exclusive_scan_is_the_inclusive_one_moved_by_one(name: str) -> None:
    x = tn.asarray(drawn((2100,), "float32"))
    inclusive, exclusive = OPS[name](x), OPS[name](x, exclusive=True)
    assert np.asarray(exclusive)[1:].tobytes() == np.asarray(inclusive)[:-1].tobytes()
    assert np.asarray(exclusive)[0] == (name == "cumulative_prod")


def test_inclusive_and_exclusive_sums_of_rows() -> None:
    x = tn.asarray([[0, 1, 2], [3, 4, 5]])
    assert tn.cumulative_sum(x, axis=1).tolist() == [[0, 1, 3], [3, 7, 12]]
    assert tn.cumulative_sum(x, axis=1, exclusive=True).tolist() == [[0, 0, 1], [0, 3, 7]]
    assert tn.cumulative_sum(x, axis=0).tolist() == [[0, 1, 2], [3, 5, 7]]


def test_half_scans_accumulate_in_float32() -> None:
    ones = tn.full((3000,), 1.0, dtype=tn.float16)
    assert np.asarray(tn.cumulative_sum(ones))[-1] == 3000  # in float16 it would stay at 2048


def test_scan_of_integers_widens_and_wraps() -> None:
    x = tn.asarray([100, 100], dtype=tn.int8)
    assert tn.cumulative_sum(x).dtype == tn.int64
    assert tn.cumulative_sum(x, dtype=tn.int8).tolist() == [100, -56]
    assert tn.cumulative_sum(tn.asarray([True, True])).tolist() == [1, 2]
    assert tn.cumulative_sum(tn.asarray([True, True]), dtype=bool).tolist() == [True, True]


def test_nan_stays_from_where_it_stands() -> None:
    x = np.ones(2100)
    x[1500] = math.nan
    found = np.isnan(np.asarray(tn.cumulative_sum(tn.asarray(x))))
    assert not found[:1500].any()
    assert found[1500:].all()


@pytest.mark.parametrize("name", SCANS)
def test_an_axis_left_out_of_several_raises(name: str) -> None:
    with pytest.raises(ShapeError, match="2 axes has no one axis to scan"):
        OPS[name](tn.zeros((2, 3)))
    with pytest.raises(ShapeError, match="0 axes has no one axis"):
        OPS[name](tn.asarray(1.0))


@pytest.mark.parametrize("name", SCANS)
def test_include_initial_and_exclusive_exclude_each_other(name: str) -> None:
    with pytest.raises(ShapeError, match="both put the identity first"):
        OPS[name](tn.zeros((2,)), include_initial=True, exclusive=True)


def test_complex_numbers_do_not_scan_in_a_real_dtype() -> None:
    with pytest.raises(DTypeError, match="cannot accumulate complex128 in float32"):
        tn.cumulative_sum(tn.asarray([1j]), dtype=tn.float32)


@pytest.mark.parametrize("dtype", [name for name in DTYPES if name != "bfloat16"])
def test_difference_agrees_with_numpy(dtype: str) -> None:
    for shape in [(0,), (1,), (5,), (3, 4), (2, 0), (1, 2, 1, 3, 2, 2)]:
        x = drawn(shape, dtype)
        for axis, n in itertools.product(range(len(shape)), (0, 1, 2, 7)):
            found = np.asarray(tn.diff(tn.asarray(x), axis=axis, n=n))
            truth = np.diff(x, axis=axis, n=n)
            assert (found.shape, found.dtype) == (truth.shape, truth.dtype)
            assert (found == truth).all()


def test_difference_of_unsigned_integers_wraps() -> None:
    assert tn.diff(tn.asarray([3, 1], dtype=tn.uint8)).tolist() == [254]


def test_difference_joins_what_is_prepended_and_appended() -> None:
    x = tn.asarray([[1, 4], [9, 16]])
    edge = tn.asarray([[0], [0]])
    assert tn.diff(x, prepend=edge, append=edge).tolist() == [[1, 3, -4], [9, 7, -16]]
    assert tn.diff(x, axis=0, append=tn.asarray([[0, 0]])).tolist() == [[8, 12], [-9, -16]]


def test_difference_refuses_a_negative_order_and_an_unfit_edge() -> None:
    with pytest.raises(ShapeError, match="n -1 is negative"):
        tn.diff(tn.zeros((3,)), n=-1)
    with pytest.raises(ShapeError, match="diff: shapes"):
        tn.diff(tn.zeros((3, 2)), prepend=tn.zeros((2, 1)))
