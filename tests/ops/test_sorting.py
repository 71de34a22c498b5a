"""Sorting and searching against NumPy: stability, NaN, descending order, every dtype and layout."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.conftest import Part

import tenfold as tn
from tenfold.dtypes import DTYPES, HALF_DTYPES, kind_of
from tenfold.errors import DTypeError, ShapeError

REAL = [name for name, dtype in DTYPES.items() if kind_of(dtype) != "c"]
FLOATING = [name for name in REAL if kind_of(DTYPES[name]) == "f"]
SHAPES = [(0,), (1,), (2,), (33,), (1500,), (4100,), (3, 0), (4, 20), (20, 4), (2, 2100)]
SHAPES += [(1, 2, 1, 3, 2, 2)]


def drawn(shape: tuple[int, ...], dtype: str, signed_zeros: bool = True) -> np.ndarray:
    """Few values, so that many are equal; the limits of integers; NaN, infinities and zeros."""
    rng = np.random.default_rng(3)
    kind = kind_of(DTYPES[dtype])
    if kind == "b":
        few: list[Any] = [False, True]
    elif kind in "iu":
        info = np.iinfo(DTYPES[dtype])
        few = [info.min, info.min + 1, 0, 1, 5, info.max - 1, info.max]
    else:
        few = [-math.inf, -1.5, 0.0, 2.0, 3.0, math.inf, math.nan]
        few += [-0.0] * signed_zeros
    table = np.asarray(few, "float32" if DTYPES[dtype] in HALF_DTYPES else dtype).astype(
        DTYPES[dtype]
    )
    return np.asarray(rng.choice(table, shape))


def cases(dtype: str) -> Iterator[tuple[np.ndarray, int]]:
    for shape in SHAPES:
        for axis in range(-1, len(shape) - 1):
            yield drawn(shape, dtype), axis
            if dtype in FLOATING:
                yield drawn(shape, dtype, signed_zeros=False), axis


def comparable(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float32) if x.dtype in HALF_DTYPES else x


def ordered(row: np.ndarray, descending: bool) -> list[int]:
    """Positions by Python's stable sort: NaN last, equals in the order they stand in."""
    sign = -1 if descending else 1
    numbers = comparable(row).tolist()
    keys = [(math.isnan(v), 0 if math.isnan(v) else sign * v) for v in numbers]
    return sorted(range(len(row)), key=keys.__getitem__)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", REAL)
def test_argsort_is_stable_with_nan_last(dtype: str, descending: bool, part: Part) -> None:
    for x, axis in part(cases(dtype)):
        found = np.asarray(tn.argsort(tn.asarray(x), axis=axis, descending=descending))
        assert (found.dtype, found.shape) == (np.int64, x.shape)
        rows = np.moveaxis(x, axis, -1)
        for place in np.ndindex(rows.shape[:-1]):
            assert np.moveaxis(found, axis, -1)[place].tolist() == ordered(rows[place], descending)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", REAL)
def test_sort_takes_what_argsort_says(dtype: str, descending: bool, part: Part) -> None:
    for x, axis in part(cases(dtype)):
        lazy = tn.asarray(x)
        found = np.asarray(tn.sort(lazy, axis=axis, descending=descending))
        order = np.asarray(tn.argsort(lazy, axis=axis, descending=descending))
        assert found.dtype == x.dtype
        assert found.tobytes() == np.take_along_axis(x, order, axis).tobytes()


@pytest.mark.parametrize("dtype", [name for name in REAL if name != "bfloat16"])
def test_ascending_sort_agrees_with_numpy(dtype: str) -> None:
    for x, axis in cases(dtype):
        found = np.asarray(tn.sort(tn.asarray(x), axis=axis))
        assert found.tobytes() == np.sort(x, axis=axis, kind="stable").tobytes()


@pytest.mark.parametrize("dtype", ["uint8", "bfloat16", "float64"])
def test_sort_has_the_same_bits_for_every_layout(dtype: str, layouts: Callable[..., Any]) -> None:
    for x, axis in cases(dtype):
        found = {
            np.asarray(tn.sort(tn.asarray(variant), axis=axis, descending=True)).tobytes()
            for variant in layouts(x).values()
        }
        assert len(found) == 1


def test_descending_argsort_keeps_the_order_of_equals() -> None:
    keys = tn.asarray([3, 1, 2, 1, 3, 0])
    assert tn.argsort(keys, descending=True).tolist() == [0, 4, 2, 1, 3, 5]
    assert tn.argsort(keys, descending=True, stable=False).tolist() == [0, 4, 2, 1, 3, 5]


@pytest.mark.parametrize("descending", [False, True])
def test_long_axis_without_equals_sorts_to_the_same_positions(descending: bool) -> None:
    x = np.random.default_rng(5).permutation(6000).reshape(2, 3000) * 0.5
    found = np.asarray(tn.argsort(tn.asarray(x), descending=descending))
    assert (found == np.argsort(-x if descending else x, kind="stable")).all()


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("descending", [False, True])
def test_nan_comes_out_of_sort_as_nan_of_one_kind(dtype: str, descending: bool) -> None:
    x = drawn((4100,), dtype, signed_zeros=False)
    found = np.asarray(tn.sort(tn.asarray(x), descending=descending))
    nan = np.asarray(math.nan, "float32").astype(found.dtype)
    count = int(np.isnan(comparable(x)).sum())
    assert count
    assert found[-count:].tobytes() == nan.tobytes() * count


def test_sort_returns_a_new_array() -> None:
    x = tn.asarray([2, 1])
    tn.sort(x).wait()
    assert x.tolist() == [2, 1]


@pytest.mark.parametrize("sort", [tn.sort, tn.argsort])
def test_sort_refuses_complex_numbers_and_wrong_axes(sort: Any) -> None:
    with pytest.raises(DTypeError, match="needs real numbers, not complex128"):
        sort(tn.asarray([1j]))
    with pytest.raises(ShapeError, match="axis 1 is out of range for 1 axes"):
        sort(tn.asarray([1.0]), axis=1)
    with pytest.raises(ShapeError, match="axis -1 is out of range for 0 axes"):
        sort(tn.asarray(1.0))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", REAL)
def test_searchsorted_agrees_with_numpy(dtype: str, side: str) -> None:
    for length in (0, 1, 5, 200):
        x1 = drawn((length,), dtype)
        x1 = x1[ordered(x1, False)]
        for shape in [(), (0,), (7,), (3, 4)]:
            x2 = drawn(shape, dtype)
            found = np.asarray(tn.searchsorted(tn.asarray(x1), tn.asarray(x2), side=side))
            assert found.dtype == np.int64
            assert (found == np.searchsorted(comparable(x1), comparable(x2), side)).all()


def test_searchsorted_takes_a_sorter_and_a_number() -> None:
    x1 = tn.asarray([7, 3, 1, 3])
    sorter = tn.argsort(x1)
    assert tn.searchsorted(x1, 3, sorter=sorter).item() == 1
    assert tn.searchsorted(x1, 3, side="right", sorter=sorter).item() == 3
    assert tn.searchsorted(tn.asarray([1, 2], dtype=tn.int8), 1.5).item() == 1


def test_searchsorted_with_a_wrong_sorter_raises_at_the_wait() -> None:
    x1 = tn.asarray([7, 3, 1])
    for wrong in (3, -1):
        found = tn.searchsorted(x1, 3, sorter=tn.asarray([2, 1, wrong]))
        with pytest.raises(IndexError, match=f"position {wrong} of sorter is out of range"):
            found.wait()


def test_searchsorted_refuses_what_does_not_fit() -> None:
    one, two = tn.asarray([1.0, 2.0]), tn.zeros((2, 2))
    with pytest.raises(ShapeError, match=r"x1 of shape \(2, 2\) has not one axis"):
        tn.searchsorted(two, one)
    with pytest.raises(ShapeError, match="side 'middle' is neither"):
        tn.searchsorted(one, one, side="middle")
    with pytest.raises(ShapeError, match=r"sorter of shape \(3,\) is not as long as x1"):
        tn.searchsorted(one, one, sorter=tn.asarray([0, 1, 2]))
    with pytest.raises(DTypeError, match="sorter needs integers, not float64"):
        tn.searchsorted(one, one, sorter=one)
    with pytest.raises(DTypeError, match="needs real numbers"):
        tn.searchsorted(one, tn.asarray([1j]))
