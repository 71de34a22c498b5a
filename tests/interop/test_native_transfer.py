"""Values of Arrays as Python objects and back: native code alone, the same as NumPy's."""

from __future__ import annotations

import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.dtypes import DTYPES

SHAPES = [(), (1,), (5,), (0,), (2, 3), (2, 0, 3), (2, 1, 3)]


def frames(work: Callable[[], object]) -> list[str]:
    """The Python functions that run below `work`."""
    found: list[str] = []

    def note(frame: Any, event: str, _: object) -> None:
        if event == "call" and frame.f_code is not work.__code__:
            found.append(frame.f_code.co_qualname)

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return found


def numbers(dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Values of a dtype: small, negative, large, and special ones of floats."""
    size = int(np.prod(shape))
    kind = "f" if dtype == "bfloat16" else np.dtype(DTYPES[dtype]).kind
    special: list[Any] = [3, 0, 1, 100, 2]
    if kind in "fc":
        special = [1.5, -0.0, np.inf, np.nan, 6e-8]
    elif kind == "i":
        limits = np.iinfo(DTYPES[dtype])
        special = [-3, limits.min, limits.max, 0, 7]
    elif kind == "u":
        special = [3, 0, np.iinfo(DTYPES[dtype]).max, 1, 7]
    values = np.array((special * (size // 5 + 1))[:size])
    with np.errstate(all="ignore"):
        return np.asarray(values.astype(DTYPES[dtype]).reshape(shape))


def forms(values: np.ndarray[Any, Any]) -> Iterator[tn.Array]:
    """The same values as Arrays of several kinds of memory."""
    fixed = values.copy()
    fixed.flags.writeable = False
    yield tn.asarray(values)
    yield tn.asarray(fixed)
    yield tn.asarray(values, copy=False)
    yield tn.where(tn.asarray(np.ones(values.shape, bool)), tn.asarray(values), tn.asarray(fixed))
    if values.ndim == 1:
        spaced = np.zeros(2 * len(values), values.dtype)
        spaced[::2] = values
        yield tn.asarray(spaced)[::2]
        yield tn.asarray(values[::-1].copy())[::-1]
    if values.ndim == 2:
        yield tn.asarray(np.ascontiguousarray(values.T)).T
        yield tn.asarray(np.asfortranarray(values))


def same(found: Any, expected: Any) -> bool:
    """Whether two nested lists or numbers have equal types and values, NaN like NaN."""
    return type(found) is type(expected) and repr(found) == repr(expected)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", list(DTYPES))
def test_values_go_out_as_numpy_has_them(dtype: str, shape: tuple[int, ...]) -> None:
    values = numbers(dtype, shape)
    for x in forms(values):
        for _ in range(2):  # the first one computes it
            assert same(x.tolist(), values.tolist())
            assert np.asarray(x).dtype == values.dtype
            assert np.asarray(x).shape == values.shape
            assert np.asarray(x).tobytes() == values.tobytes()
            assert np.array(x).tobytes() == values.tobytes()
            assert np.asarray(x, dtype=DTYPES[dtype]).tobytes() == values.tobytes()
            assert np.array(x).flags.writeable
            assert not np.asarray(x).flags.writeable
        for position in range(-values.size, values.size):
            assert same(x.item(position), values.item(position))


@pytest.mark.parametrize("dtype", list(DTYPES))
def test_a_number_is_read_as_numpy_reads_it(dtype: str) -> None:
    for value in numbers(dtype, (5,)):
        for x in forms(np.asarray(value)):
            assert same(x.item(), value.item())
            assert bool(x) == bool(value.item())
            assert same(complex(x), complex(value.item()))
            if not dtype.startswith("complex"):
                assert same(float(x), float(value.item()))
            if np.isfinite(complex(value.item())) and not dtype.startswith("complex"):
                assert same(int(x), int(value.item()))


def test_non_number_is_refused_as_before() -> None:
    x = tn.asarray([1.0, np.nan, np.inf])
    with pytest.raises(ValueError, match="cannot convert float NaN to integer"):
        int(x[1])
    with pytest.raises(OverflowError, match="cannot convert float infinity to integer"):
        int(x[2])
    with pytest.raises(TypeError, match="complex numbers have two parts"):
        float(tn.asarray(1j))
    with pytest.raises(ValueError, match="not a single number"):
        float(x)
    with pytest.raises(TypeError, match="not an integer"):
        range(3)[tn.asarray(1.0)]  # type: ignore[call-overload]  # refused on purpose
    with pytest.raises(IndexError):
        x.item(3)
    assert [10, 20][tn.asarray(1)] == 20


@pytest.mark.parametrize("dtype", list(DTYPES))
@pytest.mark.parametrize("shape", SHAPES)
def test_ndarrays_come_in_as_they_are(dtype: str, shape: tuple[int, ...]) -> None:
    values = numbers(dtype, shape)
    swapped = values.astype(values.dtype.newbyteorder(">"))
    spaced = np.repeat(values, 2, axis=-1)[..., ::2] if values.ndim else values
    for given in (values, np.asfortranarray(values), spaced, swapped):
        made = tn.asarray(given)
        assert made.dtype == DTYPES[dtype]
        assert np.asarray(made).tobytes() == np.ascontiguousarray(values).tobytes()
        again = tn.asarray(given, dtype=DTYPES[dtype])
        assert np.asarray(again).tobytes() == np.ascontiguousarray(values).tobytes()


def test_an_exported_array_comes_in_again_without_a_copy() -> None:
    x = (tn.asarray([1.0, 2.0]) + 1).wait()
    with tn.profile() as counted:
        again = tn.asarray(np.asarray(tn.asarray(np.asarray(x))))
    assert counted.copies == 0
    assert np.shares_memory(np.asarray(again), np.asarray(x))


def test_a_shared_array_can_be_neither_written_nor_resized() -> None:
    values = np.arange(4.0)
    values.flags.writeable = False
    x = tn.asarray(values)
    with pytest.raises(ValueError, match="cannot set WRITEABLE"):
        np.asarray(x).flags.writeable = True
    with pytest.raises(ValueError, match="resize"):
        values.resize(100, refcheck=False)
    assert x.tolist() == [0, 1, 2, 3]


LISTS: list[Any] = [
    [1.0, 2.5],
    [1, 2],
    [True, False],
    [True, 2],
    [True, 2.5, 3],
    [2**53 + 1, 0.5],
    [2**63 - 1, -(2**63)],
    [[1, 2], [3, 4]],
    [(1.5, 2), [3, 4]],
    ((1,), (2,)),
    [[[1.0]], [[2.0]]],
    [],
    [[], []],
    [1e300, -0.0, float("nan"), float("inf")],
    [1j, 2],
    [np.float64(1.5), 2],
    [np.int32(1), 2],
    1,
    True,
    -2.5,
    2j,
    2**63,
]


@pytest.mark.parametrize("given", LISTS, ids=repr)
def test_lists_and_numbers_come_in_as_numpy_makes_them(given: Any) -> None:
    made, expected = tn.asarray(given), np.asarray(given)
    assert made.dtype == expected.dtype
    assert np.asarray(made).tobytes() == expected.tobytes()
    assert made.shape == expected.shape


@pytest.mark.parametrize("given", LISTS, ids=repr)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "float16", "bool"])
def test_lists_and_numbers_come_in_in_another_dtype(given: Any, dtype: str) -> None:
    expected = np.asarray(given)
    if expected.dtype.kind == "c" and dtype != "complex64" and dtype != "bool":
        return
    with np.errstate(all="ignore"):
        converted = expected.astype(dtype)
    for named in (dtype, getattr(tn, dtype), np.dtype(dtype)):
        made = tn.asarray(given, dtype=named)
        assert made.dtype == converted.dtype
        assert np.asarray(made).tobytes() == converted.tobytes()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"])
def test_ints_are_checked_against_the_range_of_their_dtype(dtype: str) -> None:
    limits = np.iinfo(dtype)
    assert tn.asarray([limits.min, limits.max], dtype=getattr(tn, dtype)).tolist() == [
        limits.min,
        limits.max,
    ]
    for beyond in (limits.min - 1, limits.max + 1):
        with pytest.raises(OverflowError, match=f"{beyond} is out of bounds for {dtype}"):
            tn.asarray([0, beyond], dtype=getattr(tn, dtype))
    assert tn.asarray([1.9, -0.5], dtype=getattr(tn, dtype)).tolist() == [1, 0]


def test_large_arrays_go_in_and_out() -> None:
    values = np.arange(100_000.0).reshape(100, 1000)
    for given in (values, values.T, values[::2, ::3]):
        x = tn.asarray(given)
        assert np.array_equal(np.asarray(x), given)
        assert np.array_equal(np.array(x), given)
        assert x.tolist() == given.tolist()


def test_views_are_read_at_the_present_value_of_their_base() -> None:
    x = tn.asarray([[1.0, 2.0], [3.0, 4.0]])
    row, element = x[1], x[1, 1:]
    assert (row.tolist(), float(element)) == ([3, 4], 4.0)
    x[1] = 7.0
    assert (row.tolist(), float(element), element.item()) == ([7, 7], 7.0, 7.0)
    assert np.asarray(row).tolist() == [7, 7]


def test_a_window_is_read_as_it_is_now_and_exported_by_a_copy() -> None:
    memory = np.array([1.0, 2.0])
    x = tn.wrap(memory)
    exported = np.asarray(x)
    memory[0] = 9.0
    assert (x.tolist(), x.item(0), exported.tolist()) == ([9, 2], 9.0, [1, 2])
    assert not np.shares_memory(exported, memory)


def test_a_pending_value_is_computed_and_its_wait_counted() -> None:
    x = tn.asarray([2.0])
    reads: list[Callable[[tn.Array], Any]] = [
        float,
        int,
        bool,
        tn.Array.item,
        tn.Array.tolist,
        np.asarray,
    ]
    for read in reads:
        for _ in range(3):
            with tn.profile() as counted:
                read(x * 3)
            assert counted.host_syncs == 1
            with tn.options(strict_sync=True), pytest.raises(tn.errors.RunError):
                read(x * 3)


def test_a_failure_of_a_pending_value_is_raised_by_each_read() -> None:
    x = tn.asarray([0, 1])[tn.asarray([5]) + 0]
    for read in (tn.Array.tolist, np.asarray, int):
        for _ in range(2):
            with pytest.raises(IndexError):
                read(x)


def test_rows_are_unpacked_and_end() -> None:
    first, second = tn.asarray([[1, 2], [3, 4]])
    assert (first.tolist(), second.tolist()) == ([1, 2], [3, 4])
    rows = iter(tn.asarray([1.0, 2.0]))
    assert [float(next(rows)), float(next(rows))] == [1.0, 2.0]
    with pytest.raises(StopIteration):
        next(rows)
    with pytest.raises(TypeError, match="has no length"):
        iter(tn.asarray(1.0))


def test_several_threads_read_one_array() -> None:
    x = tn.asarray(np.arange(8.0))
    found: list[bool] = []

    def read() -> None:
        for i in range(200):
            y = x + i
            found.append(y.tolist() == np.asarray(y).tolist() == [n + i for n in range(8)])

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 800
    assert all(found)


def test_the_functions_keep_their_names_and_documentation() -> None:
    for function, name in ((tn.asarray, "asarray"), (tn.Array.tolist, "tolist")):
        assert function.__name__ == name
        assert ">>> import tenfold as tn" in (function.__doc__ or "")
    assert pickle.loads(pickle.dumps(tn.asarray)) is tn.asarray


@pytest.mark.skipif("TENFOLD_TIER" in os.environ, reason="other options have other paths")
def test_computed_values_go_in_and_out_without_python() -> None:
    small, transposed = np.arange(8.0), tn.asarray([[1.0, 2.0], [3.0, 4.0]]).T
    fixed = np.arange(8.0)
    fixed.flags.writeable = False
    x, s = (tn.asarray(small) + 1).wait(), tn.sum(tn.asarray(small)).wait()
    count, half = tn.asarray(3), tn.asarray(1.5, dtype=tn.float16)
    works: list[Callable[[], object]] = [
        lambda: np.asarray(x),
        lambda: np.array(x),
        lambda: np.asarray(transposed),
        lambda: transposed.tolist(),
        lambda: x.tolist(),
        lambda: x.item(3),
        lambda: s.item(),
        lambda: float(s),
        lambda: float(half),
        lambda: int(s),
        lambda: bool(s),
        lambda: int(count),
        lambda: small[count],
        lambda: tn.asarray(small),
        lambda: tn.asarray(small[::2]),
        lambda: tn.asarray(fixed),
        lambda: tn.asarray(np.asarray(x)),
        lambda: tn.asarray([1.0, 2.0, 3]),
        lambda: tn.asarray([[1, 2], [3, 4]], dtype=tn.float32),
        lambda: tn.asarray(1.5),
        lambda: tn.asarray(x),
        lambda: list(x),
    ]
    for work in works:
        for _ in range(2):
            work()
        assert frames(work) == []
