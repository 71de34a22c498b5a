"""Casts of ndarrays: convert values between dtypes, with one definition of each conversion.

Float to integer saturates and NaN becomes 0; integers wrap; everything to bool asks "is it
nonzero".

>>> cast_values(np.array([3.7, -3.7, 1e20, np.nan]), np.dtype("int32"))
array([         3,         -3, 2147483647,          0], dtype=int32)
"""

from __future__ import annotations

import numpy as np

from tenfold.dtypes import BFLOAT16, FLOAT32, kind_of


def _saturate(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    limits = np.iinfo(dtype)
    # A float cannot hold the upper limit of a wide integer: values from 2**bits on are saturated.
    values64 = values.astype(np.float64) if values.dtype.itemsize < 8 else values
    top = values64 >= 2.0 ** (limits.bits - (limits.min < 0))
    bottom = values64 < float(limits.min)
    finite = np.where(top | bottom | np.isnan(values64), 0, values64)
    result = finite.astype(dtype)
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
            return np.asarray(values != 0)  # a scalar without axes
        if kind_of(values.dtype) == "f" and kind_of(dtype) in "iu":
            return _saturate(values, dtype)
        return _to_bfloat16(values) if dtype == BFLOAT16 else values.astype(dtype)


def _to_bfloat16(values: np.ndarray) -> np.ndarray:
    """Round once. ml_dtypes goes through float32 to nearest; to odd there, the second is the only
    rounding that counts (Boldo and Melquiond 2008, "Emulation of FMA and correctly rounded sums").
    """
    if values.dtype.itemsize <= 4 and kind_of(values.dtype) == "f":
        return values.astype(BFLOAT16)
    exact = values.astype(np.longdouble)  # holds every real dtype of ours
    rounded = exact.astype(FLOAT32)
    rounded_exact = rounded.astype(np.longdouble)
    towards_zero = np.where(
        np.abs(rounded_exact) > np.abs(exact), np.nextafter(rounded, FLOAT32.type(0)), rounded
    )
    bits = towards_zero.astype(FLOAT32).view(np.uint32)
    odd_bits = np.where(
        (rounded_exact == exact) | np.isnan(exact), rounded.view(np.uint32), bits | np.uint32(1)
    )
    return odd_bits.astype(np.uint32).view(FLOAT32).astype(BFLOAT16)
