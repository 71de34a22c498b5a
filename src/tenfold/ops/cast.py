"""Conversion between dtypes: the one place that says what a cast means.

Float to integer saturates and NaN becomes 0; integers wrap; everything to bool asks "is it
nonzero".

>>> cast_values(np.array([3.7, -3.7, 1e20, np.nan]), np.dtype("int32"))
array([         3,         -3, 2147483647,          0], dtype=int32)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold._native import Array, Type
from tenfold.dtypes import BFLOAT16, FLOAT32, canonical, kind_of
from tenfold.errors import DTypeError, UnsupportedError
from tenfold.ir.declare import array, operation
from tenfold.ir.op import Call, Inferred, Kind
from tenfold.settings import checked_device


def _saturated(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    limits = np.iinfo(dtype)
    # The upper limit of a wide integer is no float: what reaches 2**bits is set apart.
    wide = values.astype(np.float64) if values.dtype.itemsize < 8 else values
    top = wide >= 2.0 ** (limits.bits - (limits.min < 0))
    bottom = wide < float(limits.min)
    inside = np.where(top | bottom | np.isnan(wide), 0, wide)
    result = inside.astype(dtype)
    result = np.where(top, dtype.type(limits.max), result)
    return np.where(bottom, dtype.type(limits.min), result)


def cast_values(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return `values` in `dtype`, by tenfold's meaning of a cast. The shape stays."""
    if values.dtype == dtype:
        return values
    if values.dtype == BFLOAT16 and kind_of(dtype) != "b":
        values = values.astype(FLOAT32)
    with np.errstate(all="ignore"):
        if kind_of(dtype) == "b":
            return values != 0
        if kind_of(values.dtype) == "f" and kind_of(dtype) in "iu":
            return _saturated(values, dtype)
        return _to_bfloat16(values) if dtype == BFLOAT16 else values.astype(dtype)


def converted(x: Array, dtype: np.dtype) -> Array:
    """Return `x` in `dtype`: itself where it has it, which takes no node."""
    return x if x.dtype == dtype else astype(x, dtype)


def _to_bfloat16(values: np.ndarray) -> np.ndarray:
    """Round once. ml_dtypes goes through float32 to nearest; to odd there, the second is the only
    rounding that counts (Boldo and Melquiond 2008, "Emulation of FMA and correctly rounded sums").
    """
    if values.dtype.itemsize <= 4 and kind_of(values.dtype) == "f":
        return values.astype(BFLOAT16)
    exact = values.astype(np.longdouble)  # holds every real dtype of ours
    near = exact.astype(FLOAT32)
    back = near.astype(np.longdouble)
    towards_zero = np.where(np.abs(back) > np.abs(exact), np.nextafter(near, FLOAT32.type(0)), near)
    bits = towards_zero.astype(FLOAT32).view(np.uint32)
    odd = np.where((back == exact) | np.isnan(exact), near.view(np.uint32), bits | np.uint32(1))
    return odd.astype(np.uint32).view(FLOAT32).astype(BFLOAT16)


def _rule(types: tuple[Type, ...], dtype: np.dtype) -> Inferred:
    (type_,) = types
    if kind_of(type_.dtype) == "c" and kind_of(dtype) not in "cb":
        raise DTypeError(
            "", f"cannot make {dtype} of {type_.dtype}", remedy="take tn.real(x) or tn.abs(x) first"
        )
    return Inferred(((type_.shape, dtype),), (type_.dtype,))


@operation(rule=_rule, reference=cast_values, kind=Kind.MAP, method=True)
def astype(x: Array, dtype: Any, /, *, copy: bool = True, device: str | None = None) -> Call:
    """Return `x` in another dtype: shape (...), the dtype named.

    Floats become integers by truncation, saturated to the range, NaN as 0; integers wrap. `copy` is
    accepted for the standard's sake: values never change under a reader, so none is ever needed.
    Raises DTypeError for complex to real, UnsupportedError for another `device` than that of `x`.

    >>> import tenfold as tn
    >>> tn.astype(tn.asarray([3.7, -3.7]), tn.int32).tolist()
    [3, -3]
    """
    x = array(x)
    if device is not None and checked_device(device) != x.device:
        rule = f"a cast stays on its device, {x.device!r}, and does not go to {device!r}"
        raise UnsupportedError("", rule, remedy="move the array first, with x.to_device(...)")
    return Call((x,), (canonical(dtype, "astype"),))
