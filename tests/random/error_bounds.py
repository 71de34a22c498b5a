"""Values with a running bound on their error, and NumPy's arithmetic on them.

Takes ndarrays (every one exact at first), hands on ndarrays and for each element how far a right
answer may be from it: 0 where Tenfold promises the same bits, infinity where it promises nothing
(what overflows because of a rounding, complex infinities). Dtypes are Tenfold's documented ones,
stated here again.

>>> three = add(exact(np.float32([1.0])), exact(np.float32([2.0])))
>>> three.values, three.error
(array([3.], dtype=float32), array([0.]))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOAT16 = np.dtype(np.float16)
HALVES = (FLOAT16, BFLOAT16)
TINY = float(np.finfo(np.float64).smallest_subnormal)


def kind(dtype: np.dtype) -> str:
    """NumPy's letter of a dtype; bfloat16 is a float."""
    return "f" if dtype == BFLOAT16 else dtype.kind


@dataclass(frozen=True)
class Bounded:
    """An ndarray and, as float64 in the same shape, the bound on the distance to a right answer."""

    values: np.ndarray
    error: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @property
    def ndim(self) -> int:
        return self.values.ndim

    @property
    def dtype(self) -> np.dtype:
        return self.values.dtype

    @property
    def kind(self) -> str:
        return kind(self.dtype)

    @property
    def is_exact(self) -> bool:
        return not self.error.any()


Operand = Bounded | bool | int | float | complex


def exact(values: Any) -> Bounded:
    """An ndarray of its own whose every bit is promised."""
    values = np.array(values, order="C")
    return Bounded(values, np.zeros(values.shape))


def moved(x: Bounded, move: Callable[[np.ndarray], Any]) -> Bounded:
    """The same elements at other places; a view of them where NumPy makes one."""
    return Bounded(np.asarray(move(x.values)), np.asarray(move(x.error)))


def _pair(a: np.dtype, b: np.dtype) -> np.dtype:
    if a == b or BFLOAT16 not in (a, b):
        return np.result_type(a, b)
    other = b if a == BFLOAT16 else a
    if other == FLOAT16:
        return np.dtype(np.float32)
    if other.kind in "iu" and other.itemsize > 1:
        return np.dtype(np.float32 if other.itemsize == 2 else np.float64)
    return BFLOAT16 if other.kind in "biu" else other


def common(*operands: Operand) -> np.dtype:
    """The dtype of arrays and of Python scalars, which are weak."""
    arrays = [x.dtype for x in operands if isinstance(x, Bounded)]
    scalars = [x for x in operands if not isinstance(x, Bounded)]
    dtype = arrays[0]
    for other in arrays[1:]:
        dtype = _pair(dtype, other)
    for scalar in scalars:
        if dtype != BFLOAT16:
            dtype = np.result_type(dtype, scalar)
        elif isinstance(scalar, complex):
            dtype = np.dtype(np.complex64)
    return dtype


def floating(dtype: np.dtype) -> np.dtype:
    """The dtype in which a floating function of `dtype` is computed."""
    if kind(dtype) in "fc":
        return dtype
    return np.dtype({1: np.float16, 2: np.float32}.get(dtype.itemsize, np.float64))


def to_bfloat16(values: np.ndarray) -> np.ndarray:
    """Round real numbers once to the nearest bfloat16: by way of float32, rounded to odd."""
    wide = values.astype(np.longdouble)
    narrow = wide.astype(np.float32)
    above = np.abs(narrow.astype(np.longdouble)) > np.abs(wide)
    bits = narrow.view(np.uint32) - above  # towards zero
    bits |= (bits.view(np.float32) != wide) & np.isfinite(narrow)
    return bits.view(np.float32).astype(BFLOAT16)


def converted(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Convert as Tenfold does: floats to integers saturate, NaN is 0; integers wrap."""
    if values.dtype == dtype:
        return values
    if dtype.kind == "b":
        return values != 0
    if dtype.kind in "iu" and kind(values.dtype) == "f":
        limits = np.iinfo(dtype)
        whole = np.trunc(values.astype(np.longdouble))
        clipped = np.clip(whole, np.longdouble(limits.min), np.longdouble(limits.max))
        return np.where(np.isnan(whole), 0, clipped).astype(dtype)
    if dtype == BFLOAT16:
        return to_bfloat16(np.asarray(values))
    if values.dtype == BFLOAT16:
        values = values.astype(np.float32)
    return values.astype(dtype)


def cast(x: Operand, dtype: np.dtype) -> Bounded:
    """An operand in another dtype; a scalar as 0-d."""
    if not isinstance(x, Bounded):
        return exact(converted(np.asarray(x), dtype))
    return finish(converted(x.values, dtype), x.error, dtype) if x.dtype != dtype else x


def ulp(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """A bound on one unit in the last place of each element; of the modulus for complex."""
    if kind(dtype) in "biu":
        return np.zeros(values.shape)
    limits = ml_dtypes.finfo(dtype)
    size = np.abs(values.astype(np.complex128 if dtype.kind == "c" else np.float64))
    return size * float(limits.eps) + float(limits.smallest_subnormal)


def finish(values: np.ndarray, error: np.ndarray, dtype: np.dtype, units: float = 1) -> Bounded:
    """Round to `dtype`: an error grows by `units` in the last place; none bounds what is inexact
    and not finite."""
    values = np.ascontiguousarray(converted(np.asarray(values), dtype)).reshape(np.shape(values))
    error = np.broadcast_to(error, values.shape)
    grown = np.where(error > 0, error + units * ulp(values, dtype), error)
    return Bounded(values, np.where((error != 0) & ~np.isfinite(values), np.inf, grown))


def operands_of(*operands: Operand, dtype: np.dtype) -> tuple[np.ndarray, ...]:
    """Values in the dtype of the computation (float32 for halves), then errors, all broadcast."""
    given = [cast(x, dtype) for x in operands]
    wide = np.dtype(np.float32) if dtype in HALVES else dtype
    arrays = np.broadcast_arrays(*(x.values.astype(wide) for x in given), *(x.error for x in given))
    return tuple(arrays)


def unpromised(dtype: np.dtype, *values: np.ndarray) -> np.ndarray:
    """Where a complex product or quotient may over- or underflow on the way to its result."""
    high, low = (1e18, 1e-18) if dtype == np.complex64 else (1e150, 1e-150)
    lost = np.zeros(values[0].shape, bool)
    for x in values:
        for part in (np.abs(x.real), np.abs(x.imag)):
            lost |= ~(part < high) | ((part > 0) & (part < low))
    return lost


def add(a: Operand, b: Operand, ufunc: Any = np.add) -> Bounded:
    """Sum or difference: exact, where the operands are."""
    dtype = common(a, b)
    x, y, ex, ey = operands_of(a, b, dtype=dtype)
    return finish(ufunc(x, y), ex + ey, dtype)


def subtract(a: Operand, b: Operand) -> Bounded:
    return add(a, b, np.subtract)


def multiply(a: Operand, b: Operand) -> Bounded:
    dtype = common(a, b)
    x, y, ex, ey = operands_of(a, b, dtype=dtype)
    error = ex
    if ex.any() or ey.any():
        error = np.abs(x) * ey + np.abs(y) * ex + ex * ey
        error += ((ex > 0) | (ey > 0)) * TINY  # a zero has the sign of the exact factors
    return _rounded_product(np.multiply(x, y), error, dtype, x, y)


def divide(a: Operand, b: Operand) -> Bounded:
    dtype = common(a, b)
    dtype = np.dtype(np.float64) if dtype.kind in "biu" else dtype
    x, y, ex, ey = operands_of(a, b, dtype=dtype)
    quotient = np.divide(x, y)
    error = ex
    if ex.any() or ey.any():
        inexact = (ex > 0) | (ey > 0)
        spread = (ex + np.abs(quotient) * ey) / (np.abs(y) - ey) + TINY
        error = np.where(inexact, np.where(np.abs(y) > ey, spread, np.inf), 0)
    return _rounded_product(quotient, error, dtype, x, y)


def _rounded_product(
    values: np.ndarray, error: np.ndarray, dtype: np.dtype, x: np.ndarray, y: np.ndarray
) -> Bounded:
    if kind(dtype) != "c":
        return finish(values, np.where(np.isnan(error), np.inf, error), dtype)
    lost = unpromised(dtype, x, y, values)
    error = np.where(lost | np.isnan(error), np.inf, error + 5 * ulp(values, dtype))
    return finish(values, error, dtype)


def sqrt(a: Bounded) -> Bounded:
    dtype = floating(a.dtype)
    x, ex = operands_of(a, dtype=dtype)
    if dtype.kind == "c":
        lost = unpromised(dtype, x) | (ex > 0)
        root = np.sqrt(x)
        return finish(root, np.where(lost, np.inf, 4 * ulp(root, dtype)), dtype)
    error = np.where(ex > 0, np.where(x > ex, ex / np.sqrt(np.maximum(x - ex, 0)), np.inf), 0)
    return finish(np.sqrt(x), error, dtype)


def smooth(
    a: Bounded, function: Callable[[np.ndarray], np.ndarray], accuracy: float, *, monotone: bool
) -> Bounded:
    """An elementary function of real numbers: the slope over the error's span, and its accuracy."""
    dtype = floating(a.dtype)
    x, ex = operands_of(a, dtype=dtype)
    wide = x.astype(np.longdouble)
    values = function(wide)
    spread = ex
    if monotone and ex.any():
        ends = (np.abs(function(wide + ex) - values), np.abs(values - function(wide - ex)))
        spread = np.where(ex > 0, np.maximum(*ends), 0).astype(np.float64)
    result = converted(values, dtype)
    beyond = np.isfinite(x) & np.isfinite(values)
    beyond &= np.abs(values) > float(ml_dtypes.finfo(dtype).max) / 2
    error = np.where(np.isfinite(result), spread + (accuracy + 1) * ulp(result, dtype), 0)
    inexact = np.isinf(ex) | ((ex > 0) & ~np.isfinite(result))
    error = np.where(np.isnan(spread) | beyond | inexact, np.inf, error)
    return Bounded(np.array(result, dtype), np.asarray(error, np.float64))
