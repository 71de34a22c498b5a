"""A library of arrays on CUDA, for tests: it has memory and a stream of its own on the fake driver.

Its capsules are made and read by ctypes, by the structures of DLPack 1.0 (dlpack.h).
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

_LEGACY_STREAM = 1
_pythonapi = ctypes.pythonapi
_pythonapi.PyCapsule_New.restype = ctypes.py_object
_pythonapi.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_pythonapi.PyCapsule_GetPointer.restype = ctypes.c_void_p
_pythonapi.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Managed(ctypes.Structure):
    """DLManagedTensorVersioned."""


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed))
Managed._fields_ = [
    ("version", ctypes.c_uint32 * 2),
    ("context", ctypes.c_void_p),
    ("deleter", _Deleter),
    ("flags", ctypes.c_uint64),
    ("data", ctypes.c_void_p),
    ("device", ctypes.c_int32 * 2),
    ("ndim", ctypes.c_int32),
    ("dtype", ctypes.c_uint8 * 2),
    ("lanes", ctypes.c_uint16),
    ("shape", ctypes.POINTER(ctypes.c_int64)),
    ("strides", ctypes.POINTER(ctypes.c_int64)),
    ("byte_offset", ctypes.c_uint64),
]


class Library:
    """The driver, as that library uses it: one stream, whose work is done late."""

    def __init__(self, driver: ctypes.CDLL) -> None:
        self.driver, self.stream = driver, ctypes.c_void_p()
        self.kept: list[Any] = []  # structures that capsules have
        self.call("cuStreamCreate", ctypes.byref(self.stream), 1)

    def call(self, name: str, *arguments: Any) -> None:
        error = getattr(self.driver, name)(*arguments)
        assert error == 0, (name, error)

    def pinned(self, nbytes: int) -> np.ndarray[Any, Any]:
        """Memory of the host through which copies go, as bytes."""
        memory = ctypes.c_void_p()
        self.call("cuMemHostAlloc", ctypes.byref(memory), ctypes.c_size_t(nbytes), 0)
        assert memory.value is not None
        return np.frombuffer((ctypes.c_uint8 * nbytes).from_address(memory.value), np.uint8)

    def values_of(self, array: Any, *, waits: bool = True, **request: Any) -> Any:
        """The values of a capsule, read on the stream of the library; or a function that waits for
        what is queued.
        """
        stream = request.pop("stream", self.stream.value)
        capsule = array.__dlpack__(stream=stream, max_version=(1, 0), **request)
        address = _pythonapi.PyCapsule_GetPointer(capsule, b"dltensor_versioned")
        tensor = Managed.from_address(address)
        assert tuple(tensor.device) == array.__dlpack_device__()
        shape = [tensor.shape[axis] for axis in range(tensor.ndim)]
        strides = [tensor.strides[axis] for axis in range(tensor.ndim)]
        kind = {0: "i", 1: "u", 2: "f", 5: "c", 6: "?"}[tensor.dtype[0]]
        dtype = np.dtype("?" if kind == "?" else f"{kind}{tensor.dtype[1] // 8}")
        count = 1 + sum(s * (n - 1) for s, n in zip(strides, shape, strict=True))
        flat = self.pinned(count * dtype.itemsize).view(dtype)
        self.call(
            "cuMemcpyDtoHAsync_v2",
            flat.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_uint64(tensor.data + tensor.byte_offset),
            ctypes.c_size_t(flat.nbytes),
            self.stream,
        )
        self.is_read_only = bool(tensor.flags & 1)
        steps = tuple(s * dtype.itemsize for s in strides)

        def values() -> np.ndarray[Any, Any]:
            self.call("cuStreamSynchronize", self.stream)
            return np.lib.stride_tricks.as_strided(flat, shape, steps).copy()

        return values() if waits else values


class ForeignArray:
    """An array of the library, with the values of a contiguous ndarray."""

    def __init__(self, library: Library, values: np.ndarray[Any, Any], number: int = 0) -> None:
        self.library, self.number, self.values = library, number, values
        self.address, self.read_only, self.lent = ctypes.c_uint64(), False, 0
        self.clears, self.whole = False, self
        library.call("cuMemAlloc_v2", ctypes.byref(self.address), ctypes.c_size_t(values.nbytes))
        pinned = library.pinned(values.nbytes)
        pinned[:] = np.frombuffer(values.tobytes(), np.uint8)
        library.call(
            "cuMemcpyHtoDAsync_v2",
            self.address,
            pinned.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_size_t(values.nbytes),
            library.stream,
        )

    def part(self, key: Any) -> ForeignArray:
        """A view, by a key of NumPy."""
        view = object.__new__(ForeignArray)
        view.__dict__ = {**self.__dict__, "values": self.values[key], "whole": self}
        begin = view.values.ctypes.data - self.values.ctypes.data
        view.address = ctypes.c_uint64(self.address.value + begin)
        return view

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.number

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None) -> Any:
        event = ctypes.c_void_p()
        self.library.call("cuEventCreate", ctypes.byref(event), 2)
        self.library.call("cuEventRecord", event, self.library.stream)
        consumer = ctypes.c_void_p(_LEGACY_STREAM if stream is None else stream)
        self.library.call("cuStreamWaitEvent", consumer, event, 0)
        values, managed, whole = self.values, Managed(), self.whole
        ndim, itemsize = values.ndim, values.itemsize
        shape = (ctypes.c_int64 * max(ndim, 1))(*values.shape)
        strides = (ctypes.c_int64 * max(ndim, 1))(*(s // itemsize for s in values.strides))
        managed.version[:] = [1, 0]
        managed.flags = int(self.read_only)
        managed.data, managed.device[:] = self.address.value, self.__dlpack_device__()
        code = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}[values.dtype.kind]
        managed.ndim, managed.lanes, managed.dtype[:] = ndim, 1, [code, 8 * itemsize]
        managed.shape, managed.strides = shape, strides

        def given_back(_: Any) -> None:
            whole.lent -= 1
            if whole.clears:
                arguments = self.address, 0, ctypes.c_size_t(values.nbytes), self.library.stream
                self.library.call("cuMemsetD8Async", *arguments)
                self.library.call("cuStreamSynchronize", self.library.stream)

        managed.deleter = _Deleter(given_back)
        self.library.kept.append((managed, shape, strides))
        whole.lent += 1
        return _pythonapi.PyCapsule_New(ctypes.addressof(managed), b"dltensor_versioned", None)
