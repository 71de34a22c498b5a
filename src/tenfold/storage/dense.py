"""Dense storage: one buffer with any strides; converts between ndarrays and native Values.

Takes ndarrays, hands on Values, and back. An ndarray that is still writeable elsewhere is copied:
later writes to it have no effect. Any other one, or a memory map, is shared. Every export is
read-only, and cannot be made writeable. Kernels read an external buffer (`tn.wrap`) in place;
exports of it are copies.

>>> value = import_values(np.arange(3), "reference")
>>> export(value)
array([0, 1, 2])
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import ReadOnlyMemory, Type, Value
from tenfold.core.cast_values import cast_values
from tenfold.dtypes import DTYPES, canonical, kind_of
from tenfold.errors import DTypeError, ForeignDTypeError, message
from tenfold.storage.rw_lock import EXTERNAL_BUFFER_LOCK

DENSE, HOST = "dense", "cpu"
"""The storage kind, and the device of Values in host memory that another device has copied."""
_native.declare_storage(DENSE)
_DTYPES = {dtype: dtype for dtype in DTYPES.values()}

Dtype = np.dtype[Any]
Values = np.ndarray[Any, Any]


class ExternalMemory:
    """The owner of an external buffer's Values: the user's memory, as a writeable ndarray.

    It pins the memory: while it exists the memory cannot be resized or closed. An ndarray alone
    does not ensure that.
    """

    __slots__ = ("__weakref__", "pinned_buffer", "resize_guards", "values")

    def __init__(self, values: Values) -> None:
        self.values = values
        self.resize_guards = resize_guards(values)
        owner: Any = values
        while isinstance(owner, np.ndarray):
            owner = owner.base
        try:
            self.pinned_buffer = None if owner is None else memoryview(owner)
        except (TypeError, BufferError):  # it exports no buffer
            self.pinned_buffer = None


def resize_guards(values: Values) -> tuple[weakref.ref[Values], ...]:
    """Return weak references that keep memory in place: NumPy refuses to resize an ndarray that has
    one, even with `refcheck=False`.
    """
    return tuple([weakref.ref(owner) for owner in owners(values) if isinstance(owner, np.ndarray)])


def owners(values: Values) -> Iterator[Any]:
    """Yield an ndarray, its base, the base of that, and so on."""
    owner: Any = values
    while owner is not None:
        yield owner
        # Intermediate objects of np.lib.stride_tricks have a `base`, too.
        owner = owner.obj if isinstance(owner, memoryview) else getattr(owner, "base", None)


def adopt(values: Values, device: str) -> Value:
    """Make a Value of an ndarray without copying; the caller must not write to it again."""
    value = _native.adopt(values, device)
    return _adopt_view(values, device) if value is None else value


def _adopt_view(values: Values, device: str) -> Value:
    """As `adopt`, for an ndarray of the memory of another object."""
    root = values
    while isinstance(root.base, np.ndarray):
        root = root.base
    owner: object = root.base
    if isinstance(owner, ReadOnlyMemory) and isinstance(owner.memory_owner, ExternalMemory):
        return copy_to_pool(values, device)
    for array in (values, root):  # else a view of it could be made writeable again
        if array.flags.writeable:
            array.flags.writeable = False
    return _share(values, device)


def _share(values: Values, device: str) -> Value:
    if not _native.is_host_device(device):
        return copy_to_pool(values, device)
    values = values.view()
    values.flags.writeable = False
    type_ = Type(values.shape, values.dtype, device, DENSE)
    strides = () if values.flags.c_contiguous else values.strides
    address = values.__array_interface__["data"][0]
    return Value.foreign(type_, address, values.nbytes, strides, values)


def copy_to_pool(values: Values, device: str) -> Value:
    """Copy an ndarray into memory of the pool, or of another device; the copy is counted."""
    if not _native.is_host_device(device):
        return copy_to_pool(values, HOST).copied_to(device)
    value = Value.allocate(Type(values.shape, values.dtype, device, DENSE), values.nbytes)
    _native.count("copies")
    np.copyto(np.ndarray(values.shape, values.dtype, buffer=memoryview(value)), values)
    return value


def export(value: Value) -> Values:
    """Return a read-only ndarray of a Value's memory, which keeps that memory alive.

    It is a copy if host code cannot read the memory of the device.
    """
    if not value.is_on_host:
        value = value.copied_to(HOST)
    return _native.export_value(value, _external_memory(value))


def export_or_copy(value: Value) -> Values:
    """Return an ndarray that outlives later writes: of an external buffer, a copy."""
    if not isinstance(value.owner, ExternalMemory):
        return export(value)
    with EXTERNAL_BUFFER_LOCK.read_lock():
        _native.count("copies")
        values = export(value).copy()
    values.flags.writeable = False
    return values.view()  # a view of a read-only owner cannot be made writeable again


def _external_memory(value: Value) -> ExternalMemory | None:
    """The owner of a Value that shows an external buffer; the Value may move elsewhere."""
    owner = value.owner
    while isinstance(owner, np.ndarray) and owner.base is not None:
        owner = owner.base
    return owner if isinstance(owner, ExternalMemory) else None


def import_values(
    values: Values, device: str, *, dtype: Dtype | None = None, copy: bool | None = None
) -> Value:
    """Make a Value of a foreign ndarray, converted to `dtype` unless that is None.

    It is copied if its memory is writeable, or if `copy` is True. Else it is shared, also if `copy`
    is False, where the caller must not write to it. Raises DTypeError for a dtype that tenfold does
    not have, ValueError when `copy` is False and the bytes cannot be used unchanged.
    """
    source_dtype = checked_dtype(values)
    target = source_dtype if dtype is None else dtype
    if values.dtype != target or not values.flags.aligned:
        if copy is False:
            raise ValueError(copy_needed_text(values, target))
        _native.count("copies")
        return adopt_as(np.array(values, dtype=source_dtype, subok=False), device, dtype=target)
    values = values.view(np.ndarray)
    if copy or (copy is None and not is_read_only(values)):
        return copy_to_pool(values, device)
    root = values
    while isinstance(root.base, np.ndarray):
        root = root.base
    if root.flags.owndata or not is_read_only(values):  # its owner could resize it, or write to it
        values = _native.pin_ndarray(values, resize_guards(values))
    return _share(values, device)


def adopt_as(values: Values, device: str, *, dtype: Dtype | None = None) -> Value:
    """Make a Value, in `dtype` unless that is None, of an ndarray without other references."""
    source_dtype = checked_dtype(values)
    target = source_dtype if dtype is None else dtype
    if kind_of(source_dtype) == "c" and kind_of(target) not in "cb":
        raise DTypeError(
            "asarray", f"cannot make {target} of complex numbers", remedy="take the real part first"
        )
    return adopt(cast_values(values, target), device)


def is_read_only(values: Values) -> bool:
    """Whether an ndarray's memory is read-only according to all its owners."""
    for owner in owners(values):
        if isinstance(owner, np.ndarray):
            if owner.flags.writeable:
                return False
        elif isinstance(owner, memoryview):
            if not owner.readonly:
                return False
        elif _exports_writeable(owner):
            return False
    return True


def _exports_writeable(owner: object) -> bool:
    """Whether an owner that is not an ndarray exports its memory as writeable."""
    if isinstance(owner, Value):
        return False
    try:
        with memoryview(owner) as buffer:  # type: ignore[arg-type]  # TypeError if it is none
            return not buffer.readonly
    except (TypeError, ValueError, BufferError):
        interface = getattr(owner, "__array_interface__", None)
        return interface is not None and not interface["data"][1]


def copy_needed_text(values: Values, target: Dtype, operation: str = "asarray") -> str:
    """Return the message why the elements of an ndarray need a copy."""
    reason = "misaligned" if values.dtype == target else f"{values.dtype.newbyteorder('=')}"
    if values.dtype != target and values.dtype.newbyteorder("=") == target:
        reason = "byte-swapped"
    remedy = "leave copy=False out" if operation == "asarray" else "import it with tn.asarray(...)"
    rule = f"{reason} elements cannot become {target} without a copy"
    return message(operation, rule, remedy=remedy)


DTYPE_REMEDIES = {
    "U": ("holds text", "parse it first, as in np.asarray(data, dtype=np.float64)"),
    "S": (
        "holds text",
        "read bytes as numbers with memoryview(data), text with np.asarray(data, float)",
    ),
    "O": (
        "holds Python objects",
        "name their dtype first, as in np.asarray(data, dtype=np.float64)",
    ),
    "V": ("holds records", "take one field, as in data['name']"),
    "M": ("holds dates", "take the counts, as in data.astype(np.int64)"),
    "m": ("holds durations", "take the counts, as in data.astype(np.int64)"),
    "T": ("holds text", "parse it first, as in data.astype(np.float64)"),
    "V2": (
        "holds bytes without a type, as np.save writes bfloat16",
        "name it, as in data.view(ml_dtypes.bfloat16), of `import ml_dtypes`",
    ),
    "V1": ("holds bytes without a type", "name it, as in data.view(np.uint8)"),
    "": ("is none of ours", "convert it first, as in data.astype(np.float64)"),
}
"""By NumPy's kind of an unsupported dtype: the problem, and the remedy.

`V` is that of records, `V2` of 2 bytes without a type, `V1` of any other number of them, and the
empty one that of all others."""


def checked_dtype(values: Values, operation: str = "asarray") -> Dtype:
    """Return the supported dtype, in native byte order. Raises DTypeError for others."""
    if type(values) is not np.ndarray and isinstance(values, np.ma.MaskedArray):
        raise ForeignDTypeError(
            operation,
            "a masked array would lose its mask",
            remedy="fill it first, as in values.filled(0)",
        )
    dtype = values.dtype
    if dtype in _DTYPES:
        return _DTYPES[dtype]
    try:
        return canonical(dtype, operation)
    except DTypeError:
        kind = dtype.kind if dtype.kind != "V" or dtype.names else f"V{dtype.itemsize}"
        problem, remedy = DTYPE_REMEDIES.get(kind) or DTYPE_REMEDIES["V1" if kind[0] == "V" else ""]
        rule = f"dtype {dtype} {problem}; the dtypes are {', '.join(DTYPES)}"
        raise ForeignDTypeError(operation, rule, remedy=remedy) from None
