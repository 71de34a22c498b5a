"""Sums by index: against a loop over rows, and what happens to indices out of range."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.dtypes import DTYPES, HALF_DTYPES, accumulator, compute_dtype, kind_of
from tenfold.errors import DTypeError, ShapeError


def drawn(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    rng = np.random.default_rng(5)
    kind = kind_of(DTYPES[dtype])
    if kind in "biu":
        return rng.integers(0, 2 if kind == "b" else 100, shape).astype(dtype)
    values = rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4, shape)
    if kind == "c":
        values = values * (1 + 1j)
    return values.astype("float32" if DTYPES[dtype] in HALF_DTYPES else dtype).astype(DTYPES[dtype])


def in_row_order(x: np.ndarray, ids: np.ndarray, sums: np.ndarray) -> np.ndarray:
    for i, row in zip(ids, x, strict=True):
        sums[i] = sums[i] + row
    return sums


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(0,), (1,), (2000,), (300, 3), (20, 2, 0), (30, 1, 2, 2)])
def test_segment_sum_adds_the_rows_of_a_segment_in_order(
    shape: tuple[int, ...], dtype: str
) -> None:
    x, ids = drawn(shape, dtype), np.random.default_rng(6).integers(0, 7, shape[0])
    found = np.asarray(tn.segment_sum(tn.asarray(x), tn.asarray(ids), 7))
    result = accumulator(DTYPES[dtype])
    sums = np.zeros((7, *shape[1:]), compute_dtype(result))
    expected = in_row_order(x.astype(compute_dtype(result)), ids, sums).astype(result)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_add_at_adds_rows_in_order_and_duplicates_twice(dtype: str) -> None:
    x, values = drawn((6, 3), dtype), drawn((500, 3), dtype)
    indices = np.random.default_rng(6).integers(-6, 6, 500)
    found = np.asarray(tn.add_at(tn.asarray(x), tn.asarray(indices), tn.asarray(values)))
    exact = compute_dtype(DTYPES[dtype])
    expected = in_row_order(values.astype(exact), indices, x.astype(exact)).astype(x.dtype)
    assert found.dtype == x.dtype
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", ["int8", "bfloat16", "float32"])
def test_sums_by_index_have_the_same_bits_for_every_layout(
    dtype: str, layouts: Callable[..., Any]
) -> None:
    x, ids = drawn((40, 3), dtype), np.random.default_rng(6).integers(0, 5, 40)
    for both in (
        lambda a: tn.segment_sum(a, tn.asarray(ids), 5),
        lambda a: tn.add_at(tn.zeros((5, 3), dtype=dtype), tn.asarray(ids), a),
    ):
        found = {np.asarray(both(tn.asarray(variant))).tobytes() for variant in layouts(x).values()}
        assert len(found) == 1


def test_gradient_of_taking_rows_lands_on_those_rows_only() -> None:
    found = np.asarray(tn.add_at(tn.zeros((10, 2)), tn.asarray([8, 1, 8]), 1.0))
    assert np.flatnonzero(found.any(axis=1)).tolist() == [1, 8]
    assert found[8].tolist() == [2.0, 2.0]


def test_segments_without_rows_are_zero() -> None:
    x = tn.asarray([1, 2, 3, 4])
    assert tn.segment_sum(x, tn.asarray([0, 2, 0, 2]), 4).tolist() == [4, 0, 6, 0]
    assert tn.segment_sum(tn.zeros((0, 2)), tn.asarray([], dtype=tn.int64), 0).shape == (0, 2)


def test_indices_of_any_shape_take_values_that_broadcast() -> None:
    indices = tn.asarray([[0, 1], [1, -1]], dtype=tn.int8)
    assert tn.add_at(tn.zeros((3, 2)), indices, 1).tolist() == [[1, 1], [2, 2], [1, 1]]
    assert tn.add_at(tn.zeros((3, 2)), tn.asarray([2, 2]), tn.asarray([1.0, 5.0])).tolist() == [
        [0, 0],
        [0, 0],
        [2, 10],
    ]


def test_add_at_leaves_its_input_as_it_is() -> None:
    x = tn.asarray([1.0, 2.0])
    tn.add_at(x, tn.asarray([0]), 5.0).wait()
    assert x.tolist() == [1.0, 2.0]


def test_half_sums_by_index_accumulate_in_float32() -> None:
    ones, ids = tn.full((3000,), 1.0, dtype=tn.float16), tn.zeros((3000,), dtype=tn.int64)
    assert tn.segment_sum(ones, ids, 1).tolist() == [3000]
    assert tn.add_at(tn.zeros((1,), dtype=tn.float16), ids, ones).tolist() == [3000]


@pytest.mark.parametrize("wrong", [-1, 3, 2**40])
def test_a_segment_id_out_of_range_is_an_index_error_at_the_wait(wrong: int) -> None:
    found = tn.segment_sum(tn.zeros((2, 2)), tn.asarray([0, wrong]), 3)
    with pytest.raises(IndexError, match=rf"segment_sum: segment id {wrong} at \[1\] .* 0 to 2"):
        found.wait()


@pytest.mark.parametrize("wrong", [-4, 3])
def test_an_index_out_of_range_is_an_index_error_at_the_wait(wrong: int) -> None:
    found = tn.add_at(tn.zeros((3,)), tn.asarray([[0], [wrong]]), 1.0)
    with pytest.raises(IndexError, match=rf"add_at: index {wrong} at \[1, 0\] .* -3 to 2"):
        found.wait()


def test_an_index_beyond_int64_does_not_wrap_into_range() -> None:
    found = tn.add_at(tn.zeros((3,)), tn.asarray([2**64 - 1], dtype=tn.uint64), 1.0)
    with pytest.raises(IndexError, match="18446744073709551615"):
        found.wait()


def test_segment_sum_refuses_what_does_not_fit() -> None:
    x = tn.zeros((2, 3))
    with pytest.raises(ShapeError, match=r"shape \(3,\) do not name the rows of shape \(2, 3\)"):
        tn.segment_sum(x, tn.asarray([0, 1, 2]), 3)
    with pytest.raises(ShapeError, match="num_segments -1 is negative"):
        tn.segment_sum(x, tn.asarray([0, 1]), -1)
    with pytest.raises(DTypeError, match="segment_ids need integers, not float64"):
        tn.segment_sum(x, tn.asarray([0.0, 1.0]), 3)


def test_add_at_refuses_what_does_not_fit() -> None:
    x, one = tn.zeros((2, 3)), tn.asarray([1])
    with pytest.raises(ShapeError, match=r"values of shape \(2, 3\) do not broadcast"):
        tn.add_at(x, one, tn.zeros((2, 3)))
    with pytest.raises(ShapeError, match=r"shape \(\) has no axis"):
        tn.add_at(tn.asarray(1.0), one, 1.0)
    with pytest.raises(DTypeError, match="indices need integers, not bool"):
        tn.add_at(x, tn.asarray([True]), 1.0)
    with pytest.raises(DTypeError, match="sums of float64 cannot stay in int64"):
        tn.add_at(tn.asarray([1, 2]), one, 0.5)


INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_indices_of_every_dtype_in_runs_and_apart(dtype: str) -> None:
    x = drawn((3000,), "float32")
    drawn_ids = np.random.default_rng(7).integers(0, 11, 3000)
    for ids in (drawn_ids, np.sort(drawn_ids), np.sort(drawn_ids)[::-1], np.full(3000, 4)):
        for rows in (x, drawn((3000, 2), "float32")):
            given = tn.asarray(ids.astype(dtype))
            expected = in_row_order(rows, ids, np.zeros((11, *rows.shape[1:]), np.float32))
            for _ in range(2):
                found = np.asarray(tn.segment_sum(tn.asarray(rows), given, 11))
                assert found.tobytes() == expected.tobytes()


def test_large_sums_by_index_and_indices_from_the_end() -> None:
    x, indices = drawn((40_000,), "float64"), np.random.default_rng(8).integers(-900, 900, 40_000)
    start = drawn((900,), "float64")
    expected = in_row_order(x, indices, start.copy())
    for _ in range(2):
        found = np.asarray(tn.add_at(tn.asarray(start), tn.asarray(indices), tn.asarray(x)))
        assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("shape", [(), (1,), (3,), (500, 1), (1, 3), (500, 3)])
def test_values_of_add_at_broadcast(shape: tuple[int, ...]) -> None:
    for dtype in ("float64", "complex64", "int8"):
        values, start = drawn(shape, dtype), drawn((6, 3), dtype)
        indices = np.random.default_rng(9).integers(-6, 6, 500)
        rows = np.broadcast_to(values, (500, 3))
        expected = in_row_order(rows, indices, start.copy())
        found = tn.add_at(tn.asarray(start), tn.asarray(indices), tn.asarray(values))
        assert np.asarray(found).tobytes() == expected.tobytes()


def test_sums_of_parts_of_arrays() -> None:
    x, ids = drawn((60, 8), "float64"), np.random.default_rng(10).integers(0, 5, 60)
    lazy, lazy_ids = tn.asarray(x), tn.asarray(np.repeat(ids, 2))[::2]
    for part, values in ((lazy[:, ::2], x[:, ::2]), (lazy[::-1, 3], x[::-1, 3])):
        expected = in_row_order(values, ids, np.zeros((5, *values.shape[1:])))
        assert np.asarray(tn.segment_sum(part, lazy_ids, 5)).tobytes() == expected.tobytes()
        assert np.asarray(tn.segment_sum(part.wait(), lazy_ids, 5)).tobytes() == expected.tobytes()


def test_a_failed_sum_raises_again_and_a_right_one_follows() -> None:
    x, ids = tn.asarray(drawn((50,), "float64")), np.zeros(50, np.int64)
    ids[17] = 3
    for _ in range(2):
        with pytest.raises(IndexError, match=r"segment id 3 at \[17\]"):
            tn.segment_sum(x, tn.asarray(ids), 3).wait()
    assert tn.segment_sum(x, tn.asarray(ids), 4).shape == (4,)
