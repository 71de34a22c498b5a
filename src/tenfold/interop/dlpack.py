"""DLPack: exchanges memory with other array libraries on the CPU, in both directions.

Takes Arrays and objects with `__dlpack__`, returns capsules and ndarrays. NumPy makes and reads the
capsules. It does not support bfloat16, which passes as uint16 with a corrected dtype code.
The structures are those of DLPack 1.0 (dlpack.h).

>>> from tenfold.interop.asarray import asarray
>>> import_dlpack(np.arange(3))[0]
array([0, 1, 2])
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

from tenfold import _native
from tenfold.dtypes import BFLOAT16
from tenfold.errors import DeviceError, message

CPU = (1, 0)
HOST_DEVICES = (1, 3, 11, 13)
"""kDLCPU, kDLCUDAHost, kDLROCMHost, kDLCUDAManaged: memory that a CPU can read."""
UNSIGNED_CODE, BFLOAT_CODE = 1, 4
READ_ONLY = 1


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
    )


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint32 * 2),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


class _Header(NamedTuple):
    """The header of a capsule."""

    tensor: _Tensor
    read_only: bool


def _header(capsule: Any) -> _Header:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    if '"dltensor_versioned"' in repr(capsule):
        versioned = _Versioned.from_address(pointer(capsule, b"dltensor_versioned"))
        return _Header(versioned.tensor, bool(versioned.flags & READ_ONLY))
    return _Header(_Tensor.from_address(pointer(capsule, b"dltensor")), read_only=False)


class _Carrier:
    """Wraps a capsule in the object that NumPy imports."""

    def __init__(self, capsule: Any, device: tuple[int, int]) -> None:
        self.capsule, self.device = capsule, device

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


def import_dlpack(obj: Any) -> tuple[np.ndarray[Any, Any], bool]:
    """Return an ndarray on a DLPack object's memory, and whether the memory is read-only.

    Raises DeviceError for memory that the CPU cannot read.
    """
    device = tuple(map(int, obj.__dlpack_device__()))
    if device[0] not in HOST_DEVICES:
        raise DeviceError(
            "from_dlpack",
            f"memory of DLPack device {device} cannot be read by the CPU",
            remedy="move it to the CPU first, with the library that made it",
        )
    try:
        capsule = obj.__dlpack__(max_version=(1, 0))
    except TypeError:  # a producer from before DLPack 1.0
        capsule = obj.__dlpack__()
    header = _header(capsule)
    is_bfloat16 = header.tensor.code == BFLOAT_CODE
    if is_bfloat16:
        header.tensor.code = UNSIGNED_CODE
    values = np.from_dlpack(_Carrier(capsule, (device[0], device[1])))
    return (values.view(BFLOAT16) if is_bfloat16 else values), header.read_only


def resolve_lazy(obj: Any) -> Any:
    """Return a tensor with its lazy conjugation and negation (PyTorch) applied in memory.

    DLPack cannot express them. Any other object is returned unchanged.
    """
    for query_name, resolve_name in (("is_conj", "resolve_conj"), ("is_neg", "resolve_neg")):
        query, resolve = getattr(obj, query_name, None), getattr(obj, resolve_name, None)
        if callable(query) and callable(resolve) and query():
            obj = resolve()
    return obj


def check_request(
    stream: Any,
    max_version: tuple[int, int] | None,
    dl_device: tuple[int, int] | None,
    copy: bool | None,
) -> None:
    """Check an export request before anything is computed.

    Raises BufferError for another device, a stream, or `copy=False` to a consumer older than DLPack
    1.0, which has no read-only flag.
    """
    if stream is not None:
        raise BufferError(
            message("__dlpack__", f"stream {stream!r}: the CPU has none", remedy="leave stream out")
        )
    if dl_device is not None and tuple(dl_device) != CPU:
        rule = f"DLPack device {tuple(dl_device)} is not {CPU}, the CPU"
        raise BufferError(message("__dlpack__", rule, remedy="move the imported array yourself"))
    if copy is False and not _knows_flags(max_version):
        rule = "the values are read-only, which DLPack before 1.0 cannot say"
        raise BufferError(message("__dlpack__", rule, remedy="leave copy=False out"))


def _knows_flags(max_version: tuple[int, int] | None) -> bool:
    return max_version is not None and max_version[0] >= 1


def export_values(
    values: np.ndarray[Any, Any],
    *,
    max_version: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """Return a capsule of a copy, or for `copy=False` of the values with the read-only flag.

    A consumer may ignore the flag, as PyTorch does. `copy=False` is its promise not to write.
    """
    if copy is not False:
        _native.count("copies")
    viewed = values.view(np.uint16) if values.dtype == BFLOAT16 else values
    capsule = viewed.__dlpack__(max_version=max_version, copy=copy is not False)
    if values.dtype == BFLOAT16:
        _header(capsule).tensor.code = BFLOAT_CODE
    return capsule
