"""The buffer protocol: what memoryview, bytes and files see, and what NumPy still asks for."""

from __future__ import annotations

import array
import gc
import hashlib
import mmap
import pickle
import socket
import struct
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import RunError
from tenfold.testing import assert_equal_bits

DTYPES = {
    "bool": "?",
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "l",
    "uint64": "L",
    "float16": "e",
    "float32": "f",
    "float64": "d",
    "complex64": "Zf",
    "complex128": "Zd",
}
SHAPES = [(), (0,), (1,), (5,), (2, 0, 3), (3, 4), (2, 3, 4), (257, 300)]


def values_of(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    counted = np.arange(int(np.prod(shape))).reshape(shape)
    return (counted % 2 == 1 if dtype == "bool" else counted % 120).astype(dtype)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("dtype", "code"), DTYPES.items())
def test_a_memoryview_shows_the_values(dtype: str, code: str, shape: tuple[int, ...]) -> None:
    values = values_of(shape, dtype)
    pending = tn.asarray(values) if dtype == "bool" else tn.asarray(values) + values
    expected = values if dtype == "bool" else values + values
    for _ in range(2):  # the second one of a value that is there
        view = memoryview(pending)
        assert (view.format, view.shape, view.readonly) == (code, shape, True)
        assert view.tobytes() == expected.tobytes()
        assert_equal_bits(np.asarray(view), expected)


@pytest.mark.parametrize(
    "of",
    [
        lambda x: x.T,
        lambda x: x[::-1],
        lambda x: x[1:, ::2],
        lambda x: (x + 1).T,
        lambda x: tn.broadcast_to(x[0], (3, 4)),
        lambda x: x[0, 1],
        lambda x: tn.wrap(np.asarray(x).copy())[:, 1],
    ],
)
def test_a_view_lends_its_own_elements(of: Callable[[Any], tn.Array]) -> None:
    x = of(tn.asarray(np.arange(12.0).reshape(3, 4)))
    expected = np.array(x)
    assert memoryview(x).tolist() == expected.tolist()
    assert bytes(x) == expected.tobytes()
    # these ask for contiguous bytes
    assert hashlib.sha256(x).digest() == hashlib.sha256(expected.tobytes()).digest()
    assert np.frombuffer(x).tolist() == expected.ravel().tolist()
    assert b"".join([x, x]) == expected.tobytes() * 2


def test_bytes_and_bytearray_are_the_elements() -> None:
    x = tn.asarray([1, 2, 3], dtype=tn.int16) * 2
    assert bytes(x) == bytearray(x) == np.array([2, 4, 6], np.int16).tobytes()
    one = tn.asarray([[7]], dtype=tn.uint8)
    assert bytes(one) == bytearray(one) == b"\x07"
    number = tn.asarray(3)  # an index, of which Python makes as many zeros
    assert bytes(number) == bytes(np.asarray(3)) == b"\0\0\0"


def test_numbers_are_unpacked_and_packed() -> None:
    x = tn.asarray([1.5, -2.0]) * 2
    assert struct.unpack("2d", x) == (3.0, -4.0)
    assert struct.unpack_from("d", x, 8) == (-4.0,)
    numbers = array.array("d")
    numbers.frombytes(memoryview(x).cast("B"))
    assert numbers.tolist() == [3.0, -4.0]


def test_files_and_sockets_take_an_array(tmp_path: Path) -> None:
    x = tn.arange(1000) + 1
    path = tmp_path / "numbers"
    with path.open("wb") as file:
        assert file.write(x) == 8000
    assert np.fromfile(path, np.int64).tolist() == list(range(1, 1001))
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[:8000] = tn.zeros(1000, dtype=tn.int64)
    assert not np.fromfile(path, np.int64).any()
    left, right = socket.socketpair()
    with left, right:
        left.sendall(x[:4])
        assert np.frombuffer(right.recv(100), np.int64).tolist() == [1, 2, 3, 4]


def test_pickle_lends_the_buffer_out_of_band() -> None:
    x = tn.arange(6.0) + 1
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(pickle.PickleBuffer(x), protocol=5, buffer_callback=buffers.append)
    loaded = memoryview(pickle.loads(data, buffers=buffers))
    assert loaded.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_a_buffer_keeps_its_memory_and_its_values() -> None:
    x = tn.zeros(1000) + 1
    view = memoryview(x)
    assert view.obj is not None
    x += 1  # in place, were the old value not lent
    x[0] = 9
    assert view.tolist() == [1.0] * 1000
    assert x[1].item() == 2
    del x
    gc.collect()
    tn.trim()
    _ = [(tn.zeros(1000) + i).wait() for i in range(5)]
    assert view.tolist() == [1.0] * 1000


def test_a_buffer_copies_nothing() -> None:
    x = (tn.zeros(1000) + 1).wait()
    with tn.profile() as counted:
        view = memoryview(x)
        again = tn.asarray(np.asarray(view.obj))
    assert counted.copies == 0
    assert np.shares_memory(np.frombuffer(view), np.asarray(x))
    assert np.shares_memory(np.asarray(again), np.asarray(x))


def test_a_buffer_of_a_window_does_not_follow_it() -> None:
    memory = np.arange(3.0)
    x = tn.wrap(memory)
    view = memoryview(x)
    x += 1
    memory[0] = 7
    assert view.tolist() == [0.0, 1.0, 2.0]


def test_a_buffer_cannot_be_written() -> None:
    x = tn.asarray([1.0, 2.0]) + 1
    view = memoryview(x)
    with pytest.raises(TypeError, match="read-only"):
        view[0] = 9.0
    left, right = socket.socketpair()
    with left, right, pytest.raises((BufferError, TypeError), match=r"reading only|read-write"):
        left.recv_into(x)
    exported = np.frombuffer(view)
    with pytest.raises(ValueError, match="cannot set WRITEABLE"):
        exported.flags.writeable = True
    with pytest.raises((BufferError, TypeError)):
        struct.pack_into("d", x, 0, 1.0)
    assert x.tolist() == [2, 3]


def test_bfloat16_has_no_format() -> None:
    x = tn.zeros(3, dtype=tn.bfloat16)
    for take in (memoryview, bytes, hashlib.sha256):
        with pytest.raises(BufferError, match="bfloat16 has no format code") as caught:
            take(x)
        assert "remedy: convert it" in str(caught.value)
    assert np.asarray(x).dtype == x.dtype


def test_strict_sync_refuses_the_wait() -> None:
    x = tn.asarray([1.0]) + 1
    with tn.options(strict_sync=True):
        with pytest.raises(RunError, match="memoryview: strict_sync refuses"):
            memoryview(x)
        with pytest.raises(RunError, match=r"np.asarray: strict_sync refuses"):
            np.asarray(x)
        assert memoryview(tn.eval(x).wait()).tolist() == [2.0]


def test_an_error_of_the_computation_is_raised() -> None:
    x = tn.linalg.inv(tn.zeros((2, 2)))
    with pytest.raises((ValueError, RunError)):
        memoryview(x)


def test_the_reference_device_lends_its_values() -> None:
    with tn.options(device="reference"):
        x = tn.asarray([1.0, 2.0]) + 1
        assert memoryview(x).tolist() == [2.0, 3.0]


NAN, HUGE = float("nan"), 1e20
CONVERSIONS: dict[str, Callable[[tn.Array], Any]] = {
    "asarray": lambda x: np.asarray(x, dtype=np.int8),
    "array": lambda x: np.array(x, np.int8),
    "array of a list": lambda x: np.array([x, x], dtype=object)[0],
    "asanyarray": lambda x: np.asanyarray(x, np.int8),
    "ascontiguousarray": lambda x: np.ascontiguousarray(x, np.int8),
    "require": lambda x: np.require(x, np.int8),
    "asarray_chkfinite": lambda x: np.asarray_chkfinite(x[1:], np.int8),
}


@pytest.mark.parametrize("name", CONVERSIONS)
def test_conversions_of_numpy_have_the_documented_values(name: str) -> None:
    """NumPy would convert a buffer itself: NaN to any integer, with a warning."""
    convert = CONVERSIONS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            x = tn.asarray([NAN, HUGE, -HUGE, 3.7]) * 1.0
            memoryview(x * 2)  # both askers by turns
            found = convert(x)
            if found.dtype == np.int8:
                assert found.tolist()[-3:] == [127, -128, 3]


def test_a_conversion_of_numpy_computes_once_and_raises_once() -> None:
    calls = []

    def fails(x: np.ndarray) -> np.ndarray:
        calls.append(x)
        raise OSError("no such thing")

    @tn.op(reference=fails, shape=lambda x: x.shape, dtype=lambda x: x.dtype)
    def refused(x: tn.Array) -> tn.Array:
        """Fails."""
        raise NotImplementedError

    result = refused(tn.asarray([1.0]))
    before = len(calls)
    with pytest.raises((RunError, OSError)):
        np.asarray(result)
    assert len(calls) == before + 1


def test_a_memoryview_that_numpy_asks_for_by_a_function_is_lent() -> None:
    boxes = np.empty(1, object)
    boxes[0] = tn.asarray([1.0, 2.0])
    (view,) = np.frompyfunc(memoryview, 1, 1)(boxes)
    assert view.tolist() == [1.0, 2.0]


def test_threads_lend_and_convert_at_once() -> None:
    x = tn.asarray([NAN, 1.0]) + 0
    failures = []

    def work(deep: int) -> None:
        if deep:
            return work(deep - 1)
        for _ in range(500):
            if np.asarray(x, dtype=np.int8).tolist() != [0, 1]:
                failures.append("converted")
            if memoryview(x)[1] != 1.0:
                failures.append("lent")
        return None

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_layout_of_the_buffer_is_that_of_numpy(dtype: str) -> None:
    values = values_of((3, 4), dtype)
    x = tn.asarray(values)[::-1]
    layout = x.__array_interface__  # type: ignore[attr-defined]  # answered by name
    expected = np.ascontiguousarray(values[::-1]).__array_interface__
    assert layout == {name: expected[name] for name in expected if name != "data"}
    assert bytes(x) == values[::-1].tobytes()


def test_the_layout_is_known_before_the_values_and_hidden_from_numpy() -> None:
    x = tn.asarray([1.0, 2.0]) + 1
    with tn.profile() as p:
        assert x.__array_interface__["shape"] == (2,)  # type: ignore[attr-defined]  # by name
    assert p.kernels == 0
    for make in (np.asarray, np.array, lambda x: np.array([x, x])[0]):
        assert make(x).tolist() == [2.0, 3.0]
    assert not hasattr(tn.asarray([1.0], dtype="bfloat16"), "__array_interface__")
