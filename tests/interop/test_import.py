"""Import: what is copied, what is shared, what is refused, and the dtype that comes out."""

from __future__ import annotations

import array as stdlib_array
from collections import deque
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import DeviceError, DTypeError, ShapeError


class Heir(np.ndarray):
    """An ndarray of another library."""


def copies_of(make: Any, **arguments: Any) -> int:
    with tn.profile() as counted:
        tn.asarray(make, **arguments)
    return int(counted.copies)


def read_only(values: np.ndarray) -> np.ndarray:
    values.flags.writeable = False
    return values


@pytest.mark.parametrize(
    ("given", "dtype", "expected"),
    [
        (3, "int64", 3),
        (True, "bool", True),
        (2.5, "float64", 2.5),
        (1j, "complex128", 1j),
        (2**63, "uint64", 2**63),
        ([1, 2], "int64", [1, 2]),
        ([[1, 2.5], [3, 4]], "float64", [[1.0, 2.5], [3.0, 4.0]]),
        ((True, 2), "int64", [1, 2]),
        ([2**63], "uint64", [2**63]),
        ([2**64, 1.0], "float64", [2.0**64, 1.0]),
        ([], "float64", []),
        (range(3), "int64", [0, 1, 2]),
        (deque([1, 2]), "int64", [1, 2]),
        (np.float32(0.5), "float32", 0.5),
        (bytearray(b"ab"), "uint8", [97, 98]),
        (memoryview(b"ab"), "uint8", [97, 98]),
        (stdlib_array.array("f", [1.5]), "float32", [1.5]),
        (np.array([1, 2], dtype=">i2"), "int16", [1, 2]),
        (np.array([[1, 2]]).view(Heir), "int64", [[1, 2]]),
        (np.arange(6).reshape(2, 3)[::-1, ::2], "int64", [[3, 5], [0, 2]]),
    ],
)
def test_import_keeps_the_values_and_finds_the_dtype(given: Any, dtype: str, expected: Any) -> None:
    made = tn.asarray(given)
    assert made.dtype == getattr(tn, dtype)
    assert made.tolist() == expected


def test_misaligned_values_are_realigned() -> None:
    lent = np.frombuffer(bytearray(17), dtype=np.uint8)[1:].view(np.float64)
    lent[:] = [1.5, 2.5]
    assert tn.asarray(lent).tolist() == [1.5, 2.5]
    assert copies_of(lent) == 1
    with pytest.raises(ValueError, match="misaligned elements"):
        tn.asarray(lent, copy=False)


def test_byte_swapped_values_cannot_be_shared() -> None:
    with pytest.raises(ValueError, match="byte-swapped elements"):
        tn.asarray(np.zeros(2, ">f8"), copy=False)


@pytest.mark.parametrize("dtype", list(tn.dtypes.DTYPES))
def test_every_dtype_comes_in_and_goes_out_unchanged(dtype: str) -> None:
    values = np.arange(4).astype(getattr(tn, dtype))
    back = np.asarray(tn.asarray(values))
    assert back.dtype == values.dtype
    assert back.tobytes() == values.tobytes()


@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 0, 3), (1, 2, 1, 2, 1, 2)])
def test_every_shape_comes_in_and_goes_out_unchanged(shape: tuple[int, ...]) -> None:
    assert np.asarray(tn.asarray(np.zeros(shape))).shape == shape
    assert np.asarray(tn.asarray(read_only(np.zeros(shape)))).shape == shape
    assert np.asarray(tn.asarray(np.zeros(shape), copy=False)).shape == shape


def test_a_writeable_ndarray_is_copied_once() -> None:
    values = np.arange(3.0)
    assert copies_of(values) == 1
    made = tn.asarray(values)
    values[:] = 9
    assert made.tolist() == [0, 1, 2]


def test_a_read_only_ndarray_is_shared() -> None:
    values = read_only(np.arange(3.0))
    assert copies_of(values) == 0
    assert np.shares_memory(np.asarray(tn.asarray(values)), values)


def test_a_read_only_view_of_a_writeable_ndarray_is_copied() -> None:
    values = np.arange(3.0)
    made = tn.asarray(np.broadcast_to(values, (2, 3)))
    window = values.view()
    window.flags.writeable = False
    second = tn.asarray(window)
    values[:] = 9
    assert made.tolist() == [[0, 1, 2]] * 2
    assert second.tolist() == [0, 1, 2]


def test_a_writeable_buffer_is_copied_and_a_read_only_one_shared() -> None:
    buffer = bytearray(b"\x01\x02")
    made = tn.asarray(buffer)
    behind = tn.asarray(memoryview(buffer).toreadonly())
    buffer[0] = 9
    assert made.tolist() == behind.tolist() == [1, 2]
    assert copies_of(buffer) == 1
    assert copies_of(memoryview(b"\x01\x02")) == 0


def test_a_memory_map_for_reading_is_shared(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(4.0))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert copies_of(mapped) == 0
    assert (tn.asarray(mapped) + 1).tolist() == [1, 2, 3, 4]
    assert copies_of(np.load(tmp_path / "x.npy", mmap_mode="r+")) == 1


def test_lists_and_numbers_count_as_no_copy() -> None:
    assert copies_of([1, 2]) == 0
    assert copies_of(1.5) == 0


def test_copy_true_copies_what_could_be_shared() -> None:
    assert copies_of(read_only(np.arange(3)), copy=True) == 1


def test_copy_false_shares_what_can_be_written() -> None:
    values = np.arange(3.0)
    assert copies_of(values, copy=False) == 0
    assert np.shares_memory(np.asarray(tn.asarray(values, copy=False)), values)
    half = np.arange(3).astype(ml_dtypes.bfloat16)
    assert np.shares_memory(np.asarray(tn.asarray(half, copy=False)), half)


@pytest.mark.parametrize(
    ("given", "arguments"),
    [([1], {}), (1, {}), (np.zeros(2), {"dtype": "float32"}), (tn.zeros(2), {"dtype": "int8"})],
)
def test_copy_false_refuses_what_needs_a_copy(given: Any, arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="without a copy"):
        tn.asarray(given, copy=False, **arguments)


def test_conversion_counts_one_copy_and_saturates() -> None:
    assert copies_of(np.array([1e20, np.nan]), dtype="int32") == 1
    assert tn.asarray(np.array([1e20, np.nan]), dtype="int32").tolist() == [2**31 - 1, 0]


def test_an_array_is_returned_as_it_is_and_copied_by_name() -> None:
    x = tn.asarray([1.0, 2.0])
    assert tn.asarray(x) is x
    other = tn.asarray(x, copy=True)
    x += 1
    assert other.tolist() == [1, 2]
    assert tn.asarray(x, dtype="float32").dtype == tn.float32


def test_lists_of_arrays_are_stacked_with_weak_numbers() -> None:
    x = tn.asarray([1, 2], dtype="float32")
    made = tn.asarray([[x[0], 0.5], x])
    assert made.dtype == tn.float32
    assert made.tolist() == [[1.0, 0.5], [1.0, 2.0]]
    brain = tn.asarray([1.5], dtype="bfloat16")
    assert tn.asarray([brain, [2]]).dtype == tn.bfloat16


class Lender:
    """An object that lends its memory through `__array__` alone."""

    def __init__(self) -> None:
        self.values = np.arange(3.0)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.values


class Interface:
    """An object that lends its memory through `__array_interface__` alone."""

    def __init__(self, values: np.ndarray) -> None:
        self.__array_interface__ = values.__array_interface__
        self.values = values


def test_memory_lent_by_other_objects_is_copied() -> None:
    lender = Lender()
    made = tn.asarray(lender)
    face = Interface(np.arange(3.0))
    second = tn.asarray(face)
    lender.values[:] = face.values[:] = 9
    assert made.tolist() == second.tolist() == [0, 1, 2]


class Loop(list[Any]):
    """A list that holds itself."""


def looped() -> Any:
    loop = Loop()
    loop.append(loop)
    return loop


@pytest.mark.parametrize(
    ("given", "rule", "remedy"),
    [
        ("abc", "holds text", "parse it first"),
        (["a", "b"], "holds text", "parse it first"),
        (b"abc", "holds text", "memoryview(data)"),
        ([1, "a"], "holds text", "parse it first"),
        ([tn.asarray(1), "float32"], "holds text", "parse it first"),
        (None, "NoneType is not an array or a number", "give numbers"),
        ({1, 2}, "set is not an array or a number", "give numbers"),
        (object(), "object is not an array or a number", "give numbers"),
        ([None, 1], "holds Python objects", "dtype=np.float64"),
        (np.zeros(2, object), "holds Python objects", "dtype=np.float64"),
        (np.zeros(2, "i4,f4"), "holds records", "data['name']"),
        (np.zeros(2, np.longdouble), "is none of ours", "data.astype(np.float64)"),
        (np.longdouble(1), "is none of ours", "data.astype(np.float64)"),
        (np.zeros(2, "M8[s]"), "holds dates", "data.astype(np.int64)"),
        (np.zeros(2, "m8[s]"), "holds durations", "data.astype(np.int64)"),
        (np.zeros(2, ml_dtypes.float8_e5m2), "is none of ours", "data.astype(np.float64)"),
        (np.ma.masked_array([1, 2], [0, 1]), "would lose its mask", "filled(0)"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_object_without_dtype_is_refused_with_its_remedy(
    given: Any, rule: str, remedy: str
) -> None:
    with pytest.raises(DTypeError) as caught:
        tn.asarray(given)
    first, *_, last = str(caught.value).splitlines()
    assert first.startswith("asarray: ")
    assert rule in first
    assert last.startswith("  remedy: ")
    assert remedy in last


@pytest.mark.parametrize("given", [[[1], [2, 3]], [1, [2]], [[[1]], [[1, 2]]], [[], [1]]])
def test_lists_of_unequal_length_are_refused(given: Any) -> None:
    with pytest.raises(ShapeError, match="stand side by side"):
        tn.asarray(given)


def test_a_list_that_holds_itself_is_refused() -> None:
    with pytest.raises(ValueError, match="more than 64 levels, or contains itself"):
        tn.asarray(looped())


@pytest.mark.parametrize(
    ("given", "dtype", "text"),
    [
        (2**64, None, "18446744073709551616 is out of bounds for uint64"),
        ([1, -(2**63) - 1], None, "is out of bounds for int64"),
        (300, "uint8", "300 is out of bounds for uint8"),
        ([1, -1], "uint16", "-1 is out of bounds for uint16"),
        (10**400, None, "of 1329 bits is out of bounds"),
    ],
)
def test_ints_that_no_dtype_holds_overflow(given: Any, dtype: Any, text: str) -> None:
    with pytest.raises(OverflowError, match=text):
        tn.asarray(given, dtype=dtype)


def test_large_ints_fit_a_floating_dtype() -> None:
    assert tn.asarray([2**70], dtype="float64").tolist() == [2.0**70]
    assert tn.asarray(2**70, dtype="complex64").dtype == tn.complex64


def test_complex_numbers_do_not_become_real() -> None:
    with pytest.raises(DTypeError, match="cannot make float64 of complex numbers"):
        tn.asarray([1j], dtype="float64")


def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(DeviceError, match="'gpu' does not exist"):
        tn.asarray([1], device="gpu")
    with pytest.raises(DeviceError, match="'gpu' does not exist"):
        tn.asarray([1]).to_device("gpu")


def test_to_device_of_its_own_device_is_the_array_itself() -> None:
    x = tn.asarray([1])
    assert x.to_device(x.device) is x
    with pytest.raises(ValueError, match="stream 3 is not None"):
        x.to_device(x.device, stream=3)


def test_changing_the_source_between_building_and_waiting_changes_nothing() -> None:
    random = np.random.default_rng(7)
    for _ in range(50):
        base = random.integers(0, 100, (6, 5)).astype(random.choice(["int32", "float64", ">f4"]))
        source = [base, base[::2], base.T, base[::-1, 1:], np.broadcast_to(base, (2, 6, 5))][
            random.integers(5)
        ]
        expected = source * 2 + 1
        pending = tn.asarray(source) * 2 + 1
        base[:] = -1
        assert np.array_equal(np.asarray(pending), expected)


@pytest.mark.parametrize("writeable", [False, True])
def test_windows_of_a_writeable_array_are_copied(writeable: bool) -> None:
    base = np.arange(6.0)
    windows = np.lib.stride_tricks.sliding_window_view(base, 3, writeable=writeable)
    expected = windows.copy()
    x = tn.asarray(windows)
    base[:] = -1
    assert np.array_equal(np.asarray(x), expected)


def test_windows_of_a_read_only_array_are_shared() -> None:
    base = np.arange(6.0)
    base.flags.writeable = False
    assert copies_of(np.lib.stride_tricks.sliding_window_view(base, 3)) == 0
