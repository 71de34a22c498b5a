"""NumPy's reductions and products on values with a bound: any tree of additions is within it.

A float sum is exact when every partial sum of it is a whole number that the dtype can hold; else
its bound is that of the worst order, n eps sum|x| (Higham, Accuracy and Stability, section 4.2).
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from .error_bounds import HALVES, Bounded, common, converted, exact, finish

Axis = int | tuple[int, ...] | None


def accumulated(dtype: np.dtype) -> np.dtype:
    """The dtype of a sum: small integers widen."""
    if dtype in HALVES or dtype.kind in "fc":
        return dtype
    return np.dtype(np.uint64 if dtype.kind == "u" else np.int64)


def _accumulator(dtype: np.dtype) -> np.dtype:
    return np.dtype(np.float32) if dtype in HALVES else dtype


def _widest(dtype: np.dtype) -> Any:
    return np.clongdouble if dtype.kind == "c" else np.longdouble


def _size(wide: np.ndarray) -> np.ndarray:
    """What each addend can add to a sum that stays finite."""
    return np.where(np.isfinite(wide), np.abs(wide), 0).astype(np.float64)


def _whole(values: np.ndarray, magnitude: np.ndarray, dtype: np.dtype) -> bool:
    """Whether all partial results are whole numbers below 2**p."""
    if not np.isfinite(values).all() or (values != np.round(values)).any():
        return False
    return bool((magnitude <= 2.0 ** -np.log2(float(np.finfo(dtype).eps))).all())


def sum_of(x: Bounded, axis: Axis, keepdims: bool) -> Bounded:
    dtype = accumulated(x.dtype)
    if x.kind in "biu":
        return exact(np.sum(x.values, axis=axis, dtype=dtype, keepdims=keepdims))
    wide = x.values.astype(_widest(dtype))
    total = np.asarray(np.sum(wide, axis=axis, keepdims=keepdims) + 0)
    magnitude = np.asarray(np.sum(_size(wide), axis=axis, keepdims=keepdims))
    error = np.asarray(np.sum(x.error, axis=axis, keepdims=keepdims))
    count = max(x.values.size // max(total.size, 1), 1)
    return _folded(wide, total, magnitude, error, count, dtype)


def _folded(
    wide: np.ndarray,
    total: np.ndarray,
    magnitude: np.ndarray,
    error: np.ndarray,
    count: int,
    dtype: np.dtype,
) -> Bounded:
    """Bound a sum of `count` addends of `wide`, rounded from its accumulator to `dtype`."""
    inner = _accumulator(dtype)
    if dtype.kind != "c" and _whole(wide, magnitude, inner) and not error.any():
        return finish(total, error, dtype)
    limits = np.finfo(inner)
    rounding = (count + 1) * float(limits.eps) * magnitude
    overflow = magnitude > float(limits.max) / 2
    if dtype.kind == "c":
        overflow |= ~np.isfinite(total)
    bound = np.where(magnitude == 0, error, np.where(overflow, np.inf, error + rounding))
    special = ~np.isfinite(total) & (error == 0) & ~overflow
    return finish(
        total, np.where(special, 0, np.where(np.isnan(bound), np.inf, bound)), dtype, units=2
    )


def mean_of(x: Bounded, axis: Axis, keepdims: bool) -> Bounded:
    dtype = np.dtype(np.float64) if x.kind in "biu" else x.dtype
    count = x.values.size // max(np.sum(x.error, axis=axis).size, 1)
    total = sum_of(Bounded(x.values.astype(_accumulator(dtype)), x.error), axis, keepdims)
    values = total.values.astype(_widest(dtype)) / count
    error = np.where(np.isfinite(values), total.error / count, total.error)
    return finish(values, np.where(np.isfinite(values), error + 1e-300, error), dtype, units=2)


def prod_of(x: Bounded, axis: Axis, keepdims: bool) -> Bounded:
    dtype = accumulated(x.dtype)
    if x.kind in "biu":
        return exact(np.prod(x.values, axis=axis, dtype=dtype, keepdims=keepdims))
    inner = _accumulator(dtype)
    wide = x.values.astype(np.longdouble)
    product = np.asarray(np.prod(wide, axis=axis, keepdims=keepdims))
    largest = np.prod(np.maximum(np.abs(wide), 1), axis=axis, keepdims=keepdims)
    smallest = np.prod(np.minimum(np.where(wide == 0, 1, np.abs(wide)), 1), axis=axis)
    smallest = smallest.reshape(product.shape)
    if _whole(wide, np.asarray(largest, np.float64), inner) and not x.error.any():
        return finish(product, np.zeros(product.shape), dtype)
    risky = ~(largest < float(np.finfo(inner).max) / 2)
    risky |= ~(smallest > float(np.finfo(inner).smallest_normal))
    inexact = np.asarray(np.sum(x.error, axis=axis, keepdims=keepdims)) > 0
    error = (x.values.size + 1) * float(np.finfo(inner).eps) * np.abs(product)
    return finish(product, np.where(risky | inexact, np.inf, error + 1e-300), dtype, units=2)


def matmul(a: Bounded, b: Bounded) -> Bounded:
    dtype = common(a, b)
    if dtype.kind in "iu":
        return exact(np.matmul(a.values.astype(dtype), b.values.astype(dtype)))
    x, y = (converted(each.values, dtype).astype(_widest(dtype)) for each in (a, b))
    product = np.matmul(x, y)
    size = np.asarray(np.matmul(np.abs(x), np.abs(y)), np.float64)
    spread = np.matmul(np.abs(x), b.error) + np.matmul(a.error, np.abs(y))
    spread = np.asarray(spread + np.matmul(a.error, b.error), np.float64)
    inner = _accumulator(dtype)
    rounding = (a.shape[-1] + 2) * float(np.finfo(inner).eps) * size + 1e-300
    if dtype.kind != "c" and not spread.any() and _whole(product, size, inner):
        fractions = (each[each != np.round(each)] for each in (x, y))
        rounding = rounding * any(map(np.size, fractions))
    bound = np.where(size < float(ml_dtypes.finfo(inner).max) / 2, spread + rounding, np.inf)
    bound = np.where(np.isnan(bound), np.inf, bound)
    return finish(product, bound, dtype, units=4)


def extreme(ufunc: np.ufunc, x: Bounded, axis: Axis, keepdims: bool) -> Bounded:
    """The largest or smallest; its error is the largest of those among which it was chosen."""
    values = x.values.astype(np.float32) if x.dtype in HALVES else x.values
    found = ufunc.reduce(values, axis=axis, keepdims=keepdims)
    if x.kind == "f":  # -0 is below 0: order by (value, sign)
        sign = np.where(np.signbit(values), -1.0, 1.0)
        zeros = np.where(values == 0, sign, -2.0 if ufunc is np.maximum else 2.0)
        chosen = ufunc.reduce(zeros, axis=axis, keepdims=keepdims)
        found = np.where(found == 0, np.copysign(0.0, chosen), found)
    error = np.max(x.error, axis=axis, keepdims=keepdims)
    return finish(np.asarray(found), np.asarray(error), x.dtype)


def cumulated(x: Bounded, axis: int) -> Bounded:
    dtype = accumulated(x.dtype)
    if x.kind in "biu":
        return exact(np.cumsum(x.values, axis=axis, dtype=dtype))
    wide = x.values.astype(_widest(dtype))
    total, magnitude = np.cumsum(wide, axis=axis), np.cumsum(_size(wide), axis=axis)
    error = np.cumsum(x.error, axis=axis)
    return _folded(wide, total, magnitude, error, x.shape[axis], dtype)
