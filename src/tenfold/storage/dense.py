"""Dense storage: one buffer, every element in it, any strides. Between ndarrays and native Values.

Takes ndarrays, hands on Values, and back. A writeable ndarray is copied (so that a later change of it
can never be seen half), a read-only one or a memory map is shared; every export is read-only.

>>> value = import_values(np.arange(3), "reference")
>>> export(value)
array([0, 1, 2])
"""

from __future__ import annotations

import numpy as np

from tenfold import _native
from tenfold._native import Type, Value
from tenfold.dtypes import canonical
from tenfold.errors import DTypeError

NAME = "dense"
_native.declare_storage(NAME)


def adopt(values: np.ndarray, device: str) -> Value:
    """Make a Value of an ndarray that nobody will write to again; nothing is copied."""
    values = values.view()
    values.flags.writeable = False
    type_ = Type(values.shape, values.dtype, device, NAME)
    strides = () if values.flags.c_contiguous else values.strides
    address = values.__array_interface__["data"][0]
    return Value.foreign(type_, address, values.nbytes, strides, values)


def copied(values: np.ndarray, device: str) -> Value:
    """Copy an ndarray into memory of the pool; the copy is counted."""
    value = Value.allocate(Type(values.shape, values.dtype, device, NAME), values.nbytes)
    _native.count("copies")
    np.copyto(_writeable(value), values)
    return value


def _writeable(value: Value) -> np.ndarray:
    return np.ndarray(value.type.shape, value.type.dtype, buffer=value)


def export(value: Value) -> np.ndarray:
    """Return a read-only ndarray of a Value's memory, which keeps that memory alive."""
    owner = value.owner
    if isinstance(owner, np.ndarray):
        return owner
    exported = _writeable(value)
    exported.flags.writeable = False
    return exported


def import_values(
    values: np.ndarray, device: str, *, dtype: np.dtype | None = None, copy: bool | None = None
) -> Value:
    """Make a Value of an ndarray: copied if it is writeable (or `copy`), shared if not (or not `copy`)."""
    values = _plain(values)
    if dtype is not None and values.dtype != dtype:
        if copy is False:
            raise ValueError(f"asarray: {values.dtype} cannot become {dtype} without a copy")
        from tenfold.ops.cast import cast_values

        return adopt(cast_values(values, dtype), device)
    share = copy is False or (copy is None and not values.flags.writeable)
    return adopt(values, device) if share else copied(values, device)


def _plain(values: np.ndarray) -> np.ndarray:
    """Return an ndarray of a dtype of ours in native byte order, aligned; refuse what is none."""
    if isinstance(values, np.ma.MaskedArray):
        raise DTypeError(
            "asarray",
            "a masked array would lose its mask",
            remedy="fill it first, as in values.filled(0)",
        )
    dtype = canonical(values.dtype, "asarray")
    if values.dtype != dtype or not values.flags.aligned:
        values = values.astype(dtype)
        values.flags.writeable = False  # a fresh copy that nobody else has
    return values.view(np.ndarray)


