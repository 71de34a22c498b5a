"""DLPack both ways, tried with NumPy and with producers and consumers of the older protocol."""

from __future__ import annotations

import ctypes
import gc
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import DeviceError


class Producer:
    """Lends an ndarray through DLPack alone; `versioned` says whether it knows DLPack 1.0."""

    def __init__(self, values: np.ndarray, *, versioned: bool = True) -> None:
        self.values, self.versioned = values, versioned

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, *, stream: Any = None, **modern: Any) -> Any:
        if modern and not self.versioned:
            raise TypeError("__dlpack__() got an unexpected keyword argument")
        return self.values.__dlpack__(**modern)


class Consumer:
    """Asks for a capsule as a library from before DLPack 1.0 does."""

    def __init__(self, x: tn.Array) -> None:
        self.x = x

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.x.__dlpack_device__()

    def __dlpack__(self, **_: Any) -> Any:
        return self.x.__dlpack__()


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", "complex128"])
def test_numpy_reads_an_array_without_a_copy_if_it_promises_not_to_write(dtype: str) -> None:
    x = tn.asarray(np.arange(4).astype(dtype))
    with tn.profile() as counted:
        lent = np.from_dlpack(x, copy=False)
    assert counted.copies == 0
    assert lent.tolist() == x.tolist()
    assert lent.dtype == x.dtype
    assert np.shares_memory(lent, np.asarray(x))
    assert not lent.flags.writeable


def test_a_pending_array_is_computed_for_its_consumer() -> None:
    assert np.from_dlpack(tn.asarray([[1, 2], [3, 4]]).T + 1).tolist() == [[2, 4], [3, 5]]
    assert np.from_dlpack(tn.asarray([1.0, 2.0, 3.0])[::-1]).tolist() == [3, 2, 1]


def test_an_older_consumer_gets_a_copy() -> None:
    x = tn.asarray([1.0, 2.0])
    with tn.profile() as counted:
        lent = np.from_dlpack(Consumer(x))
    assert counted.copies == 1
    assert not np.shares_memory(lent, np.asarray(x))
    with tn.profile() as counted:  # a promise not to write, which no flag repeats
        capsule = x.__dlpack__(copy=False)
        assert np.shares_memory(np.from_dlpack(Carrier(capsule)), np.asarray(x))
    assert counted.copies == 0


def test_a_copy_that_was_asked_for_can_be_written() -> None:
    x = tn.asarray([1.0, 2.0])
    mine = np.from_dlpack(x, copy=True)
    mine[0] = 9
    assert x.tolist() == [1, 2]


READ_ONLY, IS_COPIED = 1, 2


def flags_of(capsule: Any) -> int:
    """The flags of a capsule of DLPack 1.0, which stand after (version, context, deleter)."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address = pointer(capsule, b"dltensor_versioned")
    return ctypes.c_uint64.from_address(address + 8 + 2 * ctypes.sizeof(ctypes.c_void_p)).value


def written(capsule: Any) -> np.ndarray:
    """What a consumer that ignores all flags, as PyTorch does, makes of a capsule and writes to."""
    lent = np.from_dlpack(Carrier(capsule))
    address = lent.__array_interface__["data"][0]
    ctypes.memset(address, 0xFF, lent.nbytes)
    return lent


REQUESTS: list[dict[str, Any]] = [
    {},
    {"copy": None},
    {"copy": True},
    {"max_version": (1, 0)},
    {"max_version": (1, 3)},
    {"max_version": (1, 0), "copy": None, "dl_device": None},
    {"max_version": (1, 0), "copy": True, "dl_device": (1, 0)},
]


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
@pytest.mark.parametrize("request_", REQUESTS, ids=str)
def test_consumer_without_promise_writes_to_a_copy(request_: dict[str, Any], dtype: str) -> None:
    x = tn.asarray([1.0, 2.0], dtype=dtype).wait()
    with tn.profile() as counted:
        capsule = x.__dlpack__(**request_)
    assert counted.copies == 1
    if "max_version" in request_:
        assert flags_of(capsule) == IS_COPIED
    if dtype == "float64":
        assert np.isnan(written(capsule)).all()
    assert x.tolist() == [1, 2]


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_read_only_consumer_is_lent_memory(dtype: str) -> None:
    x = tn.asarray([1.0, 2.0], dtype=dtype).wait()
    with tn.profile() as counted:
        capsule = x.__dlpack__(max_version=(1, 0), copy=False)
    assert counted.copies == 0
    assert flags_of(capsule) == READ_ONLY


class LazyTensor(Producer):
    """A tensor whose conjugation and negation are bits beside its memory, as PyTorch's are."""

    def __init__(self, values: np.ndarray, *, conjugated: bool = False, negated: bool = False):
        super().__init__(values)
        self.conjugated, self.negated = conjugated, negated

    def is_conj(self) -> bool:
        return self.conjugated

    def resolve_conj(self) -> LazyTensor:
        return LazyTensor(self.values.conj(), negated=self.negated)

    def is_neg(self) -> bool:
        return self.negated

    def resolve_neg(self) -> LazyTensor:
        return LazyTensor(-self.values, conjugated=self.conjugated)


@pytest.mark.parametrize("take", [tn.from_dlpack, tn.asarray])
def test_lazy_signs_of_a_tensor_are_resolved(take: Any) -> None:
    values = np.array([1 + 2j, 3 - 4j])
    with tn.profile() as counted:
        negated = take(LazyTensor(values, negated=True))
        both = take(LazyTensor(values, negated=True, conjugated=True))
    assert counted.copies == 0  # what the tensor has made for this is ours
    assert negated.tolist() == [-1 - 2j, -3 + 4j]
    assert both.tolist() == [-1 + 2j, -3 - 4j]
    assert take(LazyTensor(values)).tolist() == values.tolist()
    assert values.tolist() == [1 + 2j, 3 - 4j]


@pytest.mark.parametrize("lazy", ["conjugated", "negated"])
def test_lazy_sign_cannot_be_shared(lazy: str) -> None:
    tensor = LazyTensor(np.array([1 + 2j]), **{lazy: True})
    with pytest.raises(ValueError, match=r"from_dlpack: .* lazily cannot be shared"):
        tn.from_dlpack(tensor, copy=False)
    with pytest.raises(ValueError, match=r"wrap: .* lazily: its memory holds other values"):
        tn.wrap(tensor)


class HalfTensor:
    """A bfloat16 tensor of a library that does not hand this dtype to NumPy, as PyTorch."""

    def __init__(self, values: list[float]) -> None:
        self.x = tn.asarray(values, dtype="bfloat16")

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise TypeError("Got unsupported ScalarType BFloat16")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **options: Any) -> Any:
        return self.x.__dlpack__(**options)


def test_a_dtype_that_numpy_has_not_comes_in_through_dlpack() -> None:
    made = tn.asarray(HalfTensor([1.5, -2.0]))
    assert made.dtype == tn.bfloat16
    assert made.tolist() == [1.5, -2.0]
    assert tn.asarray(HalfTensor([1.5]), dtype="float32").tolist() == [1.5]


def test_unsupported_tensor_is_refused_as_its_library_says() -> None:
    tensor = HalfTensor([1.0])
    tensor.__class__ = type("Sparse", (HalfTensor,), {"__dlpack__": refuses})
    with pytest.raises(TypeError, match="unsupported ScalarType"):
        tn.asarray(tensor)


def refuses(_self: Any, **_: Any) -> Any:
    raise BufferError("Can't export tensors with layout other than torch.strided")


def test_memory_lives_as_long_as_what_was_lent() -> None:
    x = tn.asarray(np.arange(1000.0)) + 0
    lent = np.from_dlpack(x, copy=False)
    del x
    gc.collect()
    assert lent.sum() == 499500


def test_the_device_is_the_cpu_and_streams_are_refused() -> None:
    x = tn.asarray([1])
    assert x.__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError, match="stream 1"):
        x.__dlpack__(stream=1)
    with pytest.raises(BufferError, match=r"\(2, 0\) is not \(1, 0\)"):
        x.__dlpack__(dl_device=(2, 0), max_version=(1, 0))
    assert np.from_dlpack(x, device="cpu").tolist() == [1]


def test_writeable_memory_is_copied_and_read_only_memory_shared() -> None:
    values = np.arange(3.0)
    made = tn.from_dlpack(Producer(values))
    values[:] = 9
    assert made.tolist() == [0, 1, 2]
    values.flags.writeable = False
    with tn.profile() as counted:
        shared = tn.from_dlpack(Producer(values))
    assert counted.copies == 0
    assert np.shares_memory(np.asarray(shared), values)


def test_an_older_producer_says_nothing_and_is_copied() -> None:
    values = np.arange(3.0)
    made = tn.from_dlpack(Producer(values, versioned=False))
    values[:] = 9
    assert made.tolist() == [0, 1, 2]


def test_copy_false_shares_and_copy_true_copies() -> None:
    values = np.arange(3.0)
    shared = tn.from_dlpack(Producer(values), copy=False)
    assert np.shares_memory(np.asarray(shared), values)
    with pytest.raises(ValueError, match="cannot set WRITEABLE"):
        np.asarray(shared).flags.writeable = True
    values.flags.writeable = False
    assert not np.shares_memory(np.asarray(tn.from_dlpack(Producer(values), copy=True)), values)


def test_from_dlpack_takes_arrays_and_ndarrays() -> None:
    x = tn.asarray([1.0])
    assert tn.from_dlpack(x) is x
    assert tn.from_dlpack(np.arange(2)).tolist() == [0, 1]
    assert tn.asarray(Producer(np.arange(2))).tolist() == [0, 1]


def test_bfloat16_goes_out_and_comes_in() -> None:
    x = tn.asarray([1.5, -2.0], dtype="bfloat16")
    for arguments in ({}, {"max_version": (1, 0)}):
        capsule = x.__dlpack__(**arguments)
        back = tn.from_dlpack(Carrier(capsule))
        assert back.dtype == tn.bfloat16
        assert back.tolist() == [1.5, -2.0]
    assert np.asarray(back).dtype == ml_dtypes.bfloat16


class Carrier:
    """A capsule that was made already."""

    def __init__(self, capsule: Any, device: tuple[int, int] = (1, 0)) -> None:
        self.capsule, self.device = capsule, device

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule


def test_memory_of_another_device_is_refused() -> None:
    with pytest.raises(DeviceError, match=r"DLPack device \(10, 0\) cannot be read") as caught:
        tn.from_dlpack(Carrier(None, device=(10, 0)))
    assert "move it to the CPU first" in str(caught.value)


def test_object_that_is_on_no_one_device_is_read_by_its_array() -> None:
    class Sharded:
        def __dlpack_device__(self) -> tuple[int, int]:
            raise BufferError("on several devices")

        def __dlpack__(self, **_: Any) -> Any:
            raise BufferError("on several devices")

        def __array__(self, *_: Any, **__: Any) -> np.ndarray[Any, Any]:
            return np.arange(3)

    assert tn.asarray(Sharded()).tolist() == [0, 1, 2]
