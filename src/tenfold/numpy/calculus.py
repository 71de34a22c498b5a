"""Numerical calculus: differences, slopes, integrals, rounding and replacement of elements.

Takes NumPy's arguments, hands on Arrays.

>>> gradient([1.0, 2.0, 4.0]).tolist()
[1.0, 1.5, 2.0]
>>> round([1.25, 2.375], 2).tolist()
[1.25, 2.38]
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tenfold._native import Array
from tenfold.core.shape_rules import normalize_axis
from tenfold.dtypes import BOOL, kind_of
from tenfold.numpy.arguments import (
    Immediate,
    as_array,
    as_operand,
    cast,
    cast_for,
    check_order,
    constant,
    deliver,
    export,
    masked,
    where_else,
)
from tenfold.numpy.elementwise import maximum, minimum
from tenfold.ops import (
    arithmetic,
    convolution,
    cumulative,
    gathering,
    movement,
    predicates,
    reduce,
    reshaping,
    rounding,
    selection,
    sorting,
)
from tenfold.ops import complex as parts
from tenfold.ops.comparison import equal, less
from tenfold.ops.elementary import sin
from tenfold.ops.indexing import index
from tenfold.ops.joining import concat, stack

__all__ = [
    "around", "clip", "convolve", "correlate", "diff", "digitize", "fix", "gradient", "i0",
    "interp", "nan_to_num", "piecewise", "round", "sinc", "trapezoid", "unwrap",
]  # fmt: skip


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Array:
    """Return differences of neighbours, `n` times."""
    x = as_array(a)
    if n == 0:
        return x
    ends = [None if end is None else _end(x, end, axis) for end in (prepend, append)]
    return cumulative.diff(x, n=n, axis=axis, prepend=ends[0], append=ends[1])


def _end(x: Array, value: Any, axis: int) -> Array:
    end = as_array(value)
    lengths = list(x.shape)
    lengths[normalize_axis(axis, x.ndim)] = 1
    return end if end.ndim else reshaping.broadcast_to(end, tuple(lengths))


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Array:
    """Return the integral along an axis by the trapezoidal rule."""
    values = as_array(y)
    axis = normalize_axis(axis, values.ndim)
    leading = (slice(None),) * axis
    upper, lower = (index(values, (*leading, part)) for part in (slice(1, None), slice(None, -1)))
    step: Any = dx if not isinstance(dx, (list, tuple)) else as_array(dx)
    if x is not None:
        points = as_array(x)
        step = cumulative.diff(points, axis=0 if points.ndim == 1 else axis)
        if points.ndim == 1:
            step = reshaping.reshape(step, (-1, *(1,) * (values.ndim - axis - 1)))
    areas = arithmetic.divide(arithmetic.multiply(step, arithmetic.add(upper, lower)), 2.0)
    return reduce.sum(areas, axis=axis)


def clip(
    a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, *, min: Any = None,
    max: Any = None, **options: Any,
) -> Any:  # fmt: skip
    """Return the elements limited to a range."""
    low, high = (min if a_min is None else a_min), (max if a_max is None else a_max)
    check_order(options.get("order"))
    x = cast(as_array(a), options.get("dtype"))
    if kind_of(x.dtype) in "iu":  # a Python number beyond the dtype limits nothing
        least, most = np.iinfo(x.dtype).min, np.iinfo(x.dtype).max
        low = None if type(low) is int and low <= least else low
        high = None if type(high) is int and high >= most else high
    limits = [as_operand(each) for each in (low, high) if each is not None]
    limits = [each.dtype if isinstance(each, Array) else each for each in limits]
    x = cast(x, np.result_type(x.dtype, *limits))
    x = x if low is None else maximum(x, low)
    x = x if high is None else minimum(x, high)
    where = options.get("where", True)
    x = x if where is True else masked(x, as_array(where), out)
    return deliver(cast_for(x, out, options.get("casting")), out)


def round(a: Any, decimals: int = 0, out: Any = None) -> Any:
    """Return the elements rounded to some decimals, the even ones of two."""
    x = as_array(a)
    if x.dtype == BOOL:
        if decimals:
            raise TypeError("round: bool has no decimals; convert with x.astype(float)")
        x = cast(x, np.float16)
    if kind_of(x.dtype) == "c" and decimals:  # each part by itself, without complex quotients
        return deliver(parts.view_as_complex(round(parts.view_as_real(x), decimals)), out)
    if decimals == 0 or (kind_of(x.dtype) in "iu" and decimals > 0):
        return deliver(rounding.round(x), out)
    scale = 10.0 ** (decimals if decimals > 0 else -decimals)
    if kind_of(x.dtype) in "iu":
        wide = rounding.round(arithmetic.divide(cast(x, np.float64), scale))
        return deliver(cast(arithmetic.multiply(wide, scale), x.dtype), out)
    if decimals > 0:
        scaled = rounding.round(arithmetic.multiply(x, scale))
        return deliver(arithmetic.divide(scaled, scale), out)
    return deliver(arithmetic.multiply(rounding.round(arithmetic.divide(x, scale)), scale), out)


around = round


def fix(x: Any, out: Any = None) -> Any:
    """Return the elements rounded towards zero."""
    return deliver(rounding.trunc(as_array(x)), out)


def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Array:
    """Return numbers in the place of NaN and infinities."""
    values = as_array(x)
    kind = kind_of(values.dtype)
    if kind not in "fc":
        return values
    if kind == "c":
        real, imag = (
            nan_to_num(part, True, nan, posinf, neginf)
            for part in (parts.real(values), parts.imag(values))
        )
        result = parts.view_as_complex(stack([real, imag], -1))
        if not copy and isinstance(x, Array):
            x[...] = result
        return result
    limits = np.finfo(values.dtype)
    highest = float(limits.max) if posinf is None else posinf
    lowest = float(limits.min) if neginf is None else neginf
    infinite = predicates.isinf(values)
    result = where_else(values, predicates.logical_not(predicates.isnan(values)), nan)
    replaced = selection.where(predicates.signbit(values), lowest, highest)
    result = selection.where(infinite, cast(replaced, values.dtype), result)
    if not copy and isinstance(x, Array):
        x[...] = result
    return result


SINC_SERIES = tuple([(-1) ** k / math.factorial(2 * k + 1) for k in range(9)])
"""Coefficients of sin(y) / y in powers of y*y: near 0 derivatives of the quotient cancel."""


def sinc(x: Any) -> Array:
    """Return sin(pi x) / (pi x), 1 at 0."""
    values = as_array(x)
    values = values if kind_of(values.dtype) in "fc" else cast(values, np.float64)
    y = arithmetic.multiply(values, np.pi)
    near = less(arithmetic.abs(y), 0.5)
    square = arithmetic.multiply(y, y)
    series = constant(y, SINC_SERIES[-1])
    for coefficient in SINC_SERIES[-2::-1]:
        series = arithmetic.add(arithmetic.multiply(series, square), coefficient)
    y = selection.where(near, constant(y, 1), y)
    return selection.where(near, series, arithmetic.divide(sin(y), y))


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Return slopes by central differences, one-sided at the ends, along each axis.

    Uneven spacing and `edge_order=2` compute at the call.
    """
    x = as_array(f)
    if x.dtype == BOOL:
        raise TypeError("gradient: bool has no differences; convert with x.astype(float)")
    every = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    axes = [normalize_axis(int(i), x.ndim) for i in every]
    steps = list(varargs) or [1.0]
    steps = steps * len(axes) if len(steps) == 1 else steps
    even = all(isinstance(step, (int, float, np.number)) for step in steps)
    if not even or edge_order != 1 or len(steps) != len(axes) or not axes:
        return Immediate(np.gradient)(x, *varargs, axis=axis, edge_order=edge_order)
    x = x if kind_of(x.dtype) in "fc" else cast(x, np.float64)
    if min(x.shape[i] for i in axes) < 2:
        raise ValueError("Shape of array too small to calculate a numerical gradient, "
                         "at least (edge_order + 1) elements are required.")  # fmt: skip
    results = tuple(_slope(x, i, float(step)) for i, step in zip(axes, steps, strict=True))
    return results[0] if len(results) == 1 else results


def _slope(x: Array, axis: int, step: float) -> Array:
    leading = (slice(None),) * axis

    def part(start: int | None, stop: int | None) -> Array:
        return index(x, (*leading, slice(start, stop)))

    first = arithmetic.divide(arithmetic.subtract(part(1, 2), part(0, 1)), step)
    inner = arithmetic.divide(arithmetic.subtract(part(2, None), part(None, -2)), 2.0 * step)
    last = arithmetic.divide(arithmetic.subtract(part(-1, None), part(-2, -1)), step)
    return concat([first, inner, last], axis)


def digitize(x: Any, bins: Any, right: bool = False) -> Array:
    """Return the index of the bin of each element; bins rise or fall."""
    edges, values = as_array(bins), as_array(x)
    known = export(edges, "np.digitize")
    before, after = known[:-1], known[1:]  # differences of integers would wrap
    if known.ndim != 1 or not ((before <= after).all() or (before >= after).all()):
        raise ValueError("bins must be monotonically increasing or decreasing")
    side = "left" if right else "right"
    if known.size < 2 or known[0] <= known[-1]:
        return sorting.searchsorted(edges, values, side=side)
    found = sorting.searchsorted(movement.flip(edges), values, side=side)
    return arithmetic.subtract(known.size, found)


MODES: dict[Any, str] = {0: "valid", 1: "same", 2: "full"}
"""NumPy's numbers of the modes of convolutions."""


def convolve(a: Any, v: Any, mode: str = "full") -> Array:
    """Return the sums of products of one sequence and the other in reverse order."""
    return convolution.convolve(*_sequences(a, v), mode=MODES.get(mode, mode))


def correlate(a: Any, v: Any, mode: str = "valid") -> Array:
    """Return the sums of products of one sequence and the conjugate other."""
    return convolution.correlate(*_sequences(a, v), mode=MODES.get(mode, mode))


def _sequences(a: Any, v: Any) -> list[Array]:
    return [reshaping.reshape(x, (1,)) if x.ndim == 0 else x for x in map(as_array, (a, v))]


def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Array:
    """Return the values at `x` of the lines through the points (xp, fp), xp rising.

    Complex values and a period compute at the call.
    """
    points, values, places = as_array(xp), as_array(fp), as_array(x)
    if period is not None or kind_of(values.dtype) == "c" or kind_of(points.dtype) == "c":
        result: Array = Immediate(np.interp)(x, xp, fp, left, right, period)
        return result
    points, values, places = (cast(each, np.float64) for each in (points, values, places))
    if points.ndim != 1 or points.shape != values.shape:
        raise ValueError("fp and xp are not of the same length.")
    count = points.shape[0]
    if count == 0:
        raise ValueError("array of sample points is empty")
    lower = arithmetic.subtract(sorting.searchsorted(points, places, side="right"), 1)
    start = selection.clip(lower, 0, count - 1)
    end = selection.minimum(arithmetic.add(start, 1), count - 1)
    x0, x1, y0, y1 = (
        gathering.take(table, positions, axis=0)
        for table, positions in ((points, start), (points, end), (values, start), (values, end))
    )
    slope = arithmetic.divide(arithmetic.subtract(y1, y0), arithmetic.subtract(x1, x0))

    def line(x_: Array, y_: Array) -> Array:
        return arithmetic.add(arithmetic.multiply(slope, arithmetic.subtract(places, x_)), y_)

    inner = line(x0, y0)  # a NaN is tried again from the other end, as NumPy does
    inner = selection.where(predicates.isnan(inner), line(x1, y1), inner)
    level = predicates.logical_and(predicates.isnan(inner), equal(y0, y1))
    inner = selection.where(predicates.logical_or(level, equal(places, x0)), y0, inner)
    ends = (
        index(values, 0) if left is None else as_array(left),
        index(values, count - 1) if right is None else as_array(right),
    )
    low, high = (cast(end, np.float64) for end in ends)
    inner = selection.where(places > index(points, count - 1), high, inner)
    inner = selection.where(places < index(points, 0), low, inner)
    if count == 1:
        return inner  # NumPy compares only: NaN is at the point
    return selection.where(predicates.isnan(places), places, inner)


i0 = Immediate(np.i0)
piecewise = Immediate(np.piecewise)
unwrap = Immediate(np.unwrap)
