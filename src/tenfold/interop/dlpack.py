"""DLPack: exchanges memory with other array libraries, in both directions.

Takes Arrays and objects with `__dlpack__`, returns capsules, ndarrays, and Values of memory of
devices of NVIDIA. NumPy makes and reads the capsules of the CPU, nanobind those of devices. NumPy
does not support bfloat16, which passes as uint16 with a corrected dtype code.
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
from tenfold._native import Value
from tenfold.dtypes import BFLOAT16, DTYPES, kind_of
from tenfold.errors import DeviceError, ForeignDTypeError, message
from tenfold.settings import checked_device
from tenfold.storage import dense

CPU = (1, 0)
HOST_DEVICES = (1, 3, 11, 13)
"""kDLCPU, kDLCUDAHost, kDLROCMHost, kDLCUDAManaged: memory that a CPU can read."""
CUDA_MEMORY = 2
"""kDLCUDA: memory of a device of NVIDIA."""
UNSIGNED_CODE, BFLOAT_CODE = 1, 4
CODES = {"i": 0, "u": UNSIGNED_CODE, "f": 2, "c": 5, "b": 6}
READ_ONLY = 1
LEGACY_STREAM = 1
"""The number of CUDA's legacy default stream."""


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
    dl_device: tuple[int, int] | None,
    copy: bool | None,
    own: tuple[int, int] = CPU,
) -> bool:
    """Check an export request before anything is computed; return whether it is for `own` memory.

    Raises BufferError for a device that is neither `own` nor the CPU, for a stream that `own` has
    not, and for `copy=False` to the CPU where it cannot read `own`.
    """
    wanted = own if dl_device is None else tuple(dl_device)
    if wanted not in (own, CPU):
        rule = f"DLPack device {wanted} is not {own}{'' if own == CPU else f', nor {CPU}'}"
        remedy = "move the imported array yourself"
        raise BufferError(message("__dlpack__", f"{rule}, the CPU", remedy=remedy))
    if wanted == CPU and stream is not None:
        raise BufferError(
            message("__dlpack__", f"stream {stream!r}: the CPU has none", remedy="leave stream out")
        )
    if stream is not None and (not isinstance(stream, int) or stream < -1 or stream == 0):
        rule = f"stream {stream!r} is no stream of CUDA"
        remedy = "give -1 (none), 1 or 2 (its default streams), or the address of one"
        raise BufferError(message("__dlpack__", rule, remedy=remedy))
    if copy is False and wanted != own:
        rule = f"memory of {own} cannot be lent to the CPU"
        raise BufferError(message("__dlpack__", rule, remedy="leave copy=False out"))
    return wanted == own


def device_number(device: str) -> tuple[int, int]:
    """Return DLPack's number of a device; that of the CPU for those whose memory the CPU shares.

    >>> device_number("cpu"), device_number("cuda:1")
    ((1, 0), (2, 1))
    """
    kind, _, number = device.partition(":")
    return (CUDA_MEMORY, int(number)) if kind == "cuda" else CPU


def export_values(
    values: np.ndarray[Any, Any],
    *,
    max_version: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """Return a capsule of a copy, or for `copy=False` of the values with the read-only flag.

    A consumer may ignore the flag, as PyTorch does, and one older than DLPack 1.0 does not know it:
    `copy=False` is its promise not to write.
    """
    if copy is False and (max_version is None or max_version[0] < 1):  # NumPy refuses this
        return export_memory(dense.import_values(values, dense.HOST, copy=False), -1, None, copy)
    if copy is not False:
        _native.count("copies")
    viewed = values.view(np.uint16) if values.dtype == BFLOAT16 else values
    capsule = viewed.__dlpack__(max_version=max_version, copy=copy is not False)
    if values.dtype == BFLOAT16:
        _header(capsule).tensor.code = BFLOAT_CODE
    return capsule


def export_memory(
    value: Value, stream: int | None, max_version: tuple[int, int] | None, copy: bool | None
) -> Any:
    """As export_values, for the memory of a device.

    What the consumer does on `stream` (None: CUDA's legacy default one) comes after what computes
    the values; -1 leaves the order to it.
    """
    type_ = value.type
    if copy is not False:
        _native.count("copies")
        value = value.copied_to(type_.device)
    code = BFLOAT_CODE if type_.dtype == BFLOAT16 else CODES[kind_of(type_.dtype)]
    handle = LEGACY_STREAM if stream is None else max(stream, 0)
    number = device_number(type_.device)
    lent = _native.lend(value, code, *number, handle, read_only=copy is False)
    return lent.__dlpack__(max_version=max_version)


def is_on_cuda(obj: Any) -> bool:
    """Whether an object exports memory of a device of NVIDIA."""
    try:
        return int(obj.__dlpack_device__()[0]) == CUDA_MEMORY
    except (AttributeError, TypeError, ValueError, BufferError, RuntimeError):
        return False  # it exports none, as an array of JAX on several devices


def import_device_memory(obj: Any, *, copy: bool | None) -> Value:
    """Return a Value of an object's memory of a device of NVIDIA, on the same device.

    Its producer orders the queue of this thread behind what it computes. Memory is shared where it
    is read-only or `copy` is False, else copied, on the device. Raises DeviceError without that
    device, ValueError for `copy=False` where the elements cannot be shared.
    """
    device = checked_device(f"cuda:{int(obj.__dlpack_device__()[1])}", "from_dlpack")
    stream = _native.cuda_stream(device)
    try:
        capsule = obj.__dlpack__(stream=stream, max_version=(1, 0))
    except TypeError:  # a producer from before DLPack 1.0
        capsule = obj.__dlpack__(stream=stream)
    tensor, read_only = _header(capsule)
    copies = not read_only if copy is None else copy
    value = _native.borrow_cuda(capsule, _dtype_of(tensor), device, copies)
    if value is None:
        rule = "the memory is misaligned, or overlaps that of another import"
        raise ValueError(message("from_dlpack", rule, remedy="leave copy=False out"))
    if copies:
        _native.count("copies")
    return value


def _dtype_of(tensor: _Tensor) -> np.dtype[Any]:
    for dtype in DTYPES.values():
        code = BFLOAT_CODE if dtype == BFLOAT16 else CODES[kind_of(dtype)]
        if (tensor.code, tensor.bits, tensor.lanes) == (code, 8 * dtype.itemsize, 1):
            return dtype
    rule = f"elements of DLPack's code {tensor.code} with {tensor.bits} bits are none of ours"
    raise ForeignDTypeError("from_dlpack", rule, remedy="convert them first, by their library")
