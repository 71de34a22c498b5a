"""Reductions: sums, extremes, means and scans, with NumPy's positions and options.

Takes NumPy's arguments (`axis`, `dtype`, `out`, `keepdims`, `initial`, `where`), hands on Arrays of
the reductions.

>>> sum([[1, 2], [3, 4]], 0, where=[True, False]).tolist()
[4, 0]
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tenfold._native import Array
from tenfold.core.public_signature import parameters_of
from tenfold.core.shape_rules import normalize_axes, product
from tenfold.core.trace_state import user_stacklevel
from tenfold.dtypes import BOOL, DTYPES, REAL_DTYPES, kind_of, same_kind
from tenfold.numpy.arguments import (
    Immediate,
    as_array,
    cast,
    constant,
    deliver_whole,
    may_wait,
    ordered,
    where_else,
)
from tenfold.ops import cumulative, reduce, reshaping, statistics
from tenfold.ops.arithmetic import abs as absolute
from tenfold.ops.arithmetic import add, divide, multiply, square, subtract
from tenfold.ops.elementary import sqrt
from tenfold.ops.predicates import isnan, logical_not
from tenfold.ops.reshaping import broadcast_to
from tenfold.ops.selection import maximum, minimum
from tenfold.ops.selection import where as select

__all__ = [
    "all", "amax", "amin", "any", "argmax", "argmin", "count_nonzero", "cumprod", "cumsum",
    "cumulative_prod", "cumulative_sum", "max", "mean", "min", "nanargmax", "nanargmin",
    "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin", "nanprod", "nanstd", "nansum",
    "nanvar", "prod", "ptp", "std", "sum", "var",
]  # fmt: skip

Axis = int | tuple[int, ...] | None


def _scalar_axis(x: Array, axis: Axis) -> Axis:
    """Return an axis; an array without axes has the first and the last one in NumPy."""
    return None if not x.ndim and type(axis) is int and axis in (0, -1) else axis


def _dtype_of_sums(x: Array, dtype: Any, out: Any) -> Any:
    """Return the dtype of a fold: without one that of a target that can hold the elements."""
    target = out[0] if isinstance(out, tuple) else out
    if dtype is not None or target is None or target.dtype not in DTYPES.values():
        return dtype
    return target.dtype if same_kind(x.dtype, target.dtype) else None


def _started(combine: Any, result: Array, initial: Any) -> Array:
    """Return a fold combined with the value that it starts with, in its own dtype."""
    if initial is None:
        return result
    started: Array = combine(result, cast(as_array(initial), result.dtype))
    return started


def sum(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """Return the sum of elements along axes."""
    return _total(reduce.sum, add, 0, a, axis, dtype, out, keepdims, initial, where)


def _total(
    fold: Any,
    combine: Any,
    identity: int,
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    x = where_else(as_array(a), where, identity)
    dtype = _dtype_of_sums(x, dtype, out)
    result = fold(x, axis=_scalar_axis(x, axis), dtype=dtype, keepdims=keepdims)
    return deliver_whole(_started(combine, result, initial), out)


@parameters_of(sum)
def prod(*args: Any, **options: Any) -> Any:
    """Return the product of elements along axes."""
    return _total(reduce.prod, multiply, 1, *args, **options)


def _extreme(
    largest: bool,
    a: Any,
    axis: Axis = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    x = as_array(a)
    axis = _scalar_axis(x, axis)
    if where is not True and initial is None:
        name = "maximum" if largest else "minimum"
        raise ValueError(f"reduction operation '{name}' does not have an identity, so to use a "
                         "where mask one has to specify 'initial'")  # fmt: skip
    fold, combine = (reduce.max, maximum) if largest else (reduce.min, minimum)
    if initial is None:
        return deliver_whole(fold(x, axis=axis, keepdims=keepdims), out)
    first = as_array(initial, x.dtype if type(initial) is int else None)
    first = cast(first, x.dtype)
    x = x if where is True else select(as_array(where), x, first)
    if np.prod(_folded_lengths(x, axis)) == 0:
        lengths = reduce.sum(x, axis=axis, keepdims=keepdims).shape
        return deliver_whole(broadcast_to(first, lengths), out)
    return deliver_whole(combine(fold(x, axis=axis, keepdims=keepdims), first), out)


def _folded_lengths(x: Array, axis: Axis) -> list[int]:
    axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    return [x.shape[i] for i in axes]


@ordered
def max(
    a: Any,
    axis: Axis = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """Return the largest element along axes; NaN if there is one."""
    return _extreme(True, a, axis, out, keepdims, initial, where)


@ordered
@parameters_of(max)
def min(*args: Any, **options: Any) -> Any:
    """Return the smallest element along axes; NaN if there is one."""
    return _extreme(False, *args, **options)


amax, amin = max, min


@ordered
def ptp(a: Any, axis: Axis = None, out: Any = None, keepdims: bool = False) -> Any:
    """Return the largest minus the smallest element along axes."""
    x = as_array(a)
    largest = reduce.max(x, axis=axis, keepdims=keepdims)
    return deliver_whole(subtract(largest, reduce.min(x, axis=axis, keepdims=keepdims)), out)


def all(
    a: Any, axis: Axis = None, out: Any = None, keepdims: bool = False, *, where: Any = True
) -> Any:
    """Return whether all elements along axes are true."""
    x = as_array(a)
    x = x if where is True else where_else(cast(x, BOOL), where, True)
    return deliver_whole(reduce.all(x, axis=_scalar_axis(x, axis), keepdims=keepdims), out)


def any(
    a: Any, axis: Axis = None, out: Any = None, keepdims: bool = False, *, where: Any = True
) -> Any:
    """Return whether an element along axes is true."""
    x = as_array(a)
    x = x if where is True else where_else(cast(x, BOOL), where, False)
    return deliver_whole(reduce.any(x, axis=_scalar_axis(x, axis), keepdims=keepdims), out)


def count_nonzero(a: Any, axis: Axis = None, *, keepdims: bool = False) -> Array:
    """Return how many elements along axes are not 0."""
    x = as_array(a)
    return reduce.count_nonzero(x, axis=_scalar_axis(x, axis), keepdims=keepdims)


@ordered
def argmax(a: Any, axis: int | None = None, out: Any = None, *, keepdims: bool = False) -> Any:
    """Return the first index of the largest element."""
    x = as_array(a)
    axis = None if _scalar_axis(x, axis) is None else axis
    return deliver_whole(reduce.argmax(x, axis=axis, keepdims=keepdims), out)


@ordered
def argmin(a: Any, axis: int | None = None, out: Any = None, *, keepdims: bool = False) -> Any:
    """Return the first index of the smallest element."""
    x = as_array(a)
    axis = None if _scalar_axis(x, axis) is None else axis
    return deliver_whole(reduce.argmin(x, axis=axis, keepdims=keepdims), out)


def _count(x: Array, axis: Axis, keepdims: bool, where: Any) -> Any:
    if where is True:
        return int(np.prod(_folded_lengths(x, axis), dtype=int))
    mask = broadcast_to(cast(as_array(where), BOOL), x.shape)
    return reduce.sum(mask, axis=axis, keepdims=keepdims)


def mean(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    *,
    where: Any = True,
) -> Any:
    """Return the mean of elements along axes."""
    if _is_rare(a, dtype):
        return Immediate(np.mean)(a, axis, dtype, out=out, keepdims=keepdims, where=where)
    x = cast(as_array(a), dtype)
    if where is True:
        if not x.size:
            _warn_of_few(x, axis, 0, "Mean of empty slice.")
        return deliver_whole(statistics.mean(x, axis=axis, keepdims=keepdims), out)
    x = _inexact(x)
    total = reduce.sum(where_else(x, where, 0), axis=axis, keepdims=keepdims)
    return deliver_whole(cast(divide(total, _count(x, axis, keepdims, where)), x.dtype), out)


def _warn_of_few(x: Array, axis: Axis, less: float, text: str) -> None:
    """Warn, as NumPy does, of a mean of no elements, known by the shape."""
    axes = normalize_axes(_scalar_axis(x, axis), x.ndim)
    if product(x.shape[i] for i in axes) <= less:
        warnings.warn(text, RuntimeWarning, stacklevel=user_stacklevel())


def _is_rare(a: Any, dtype: Any) -> bool:
    """Whether a mean is asked for in whole numbers, which NumPy rounds at several steps, or in
    complex numbers of real ones or the reverse.
    """
    if dtype is None:
        return False
    kind = kind_of(np.dtype(dtype))
    return kind in "biu" or (kind == "c") != (kind_of(as_array(a).dtype) == "c")


def _inexact(x: Array) -> Array:
    return x if kind_of(x.dtype) in "fc" else cast(x, np.float64)


def _correction(ddof: float, correction: float | None) -> float:
    if correction is not None and ddof != 0:
        raise ValueError("ddof and correction can't be provided simultaneously.")
    return ddof if correction is None else correction


def var(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: float | None = None,
) -> Any:
    """Return the mean square distance from the mean; the divisor is less by `ddof`."""
    less = _correction(ddof, correction)
    if _is_rare(a, dtype):
        means = {} if mean is None else {"mean": mean}
        function = Immediate(np.var)
        return function(a, axis, dtype, None, less, keepdims, out=out, where=where, **means)
    x = cast(as_array(a), dtype)
    if where is True and (less > 0 or not x.size):
        _warn_of_few(x, axis, less, "Degrees of freedom <= 0 for slice")
    if where is True and mean is None:
        return deliver_whole(statistics.var(x, axis=axis, correction=less, keepdims=keepdims), out)
    x = _inexact(x)
    centre = _mean(x, axis, keepdims=True, where=where) if mean is None else as_array(mean)
    distance = where_else(subtract(x, centre), where, 0)  # so that no derivative goes to others
    powers = square(absolute(distance) if x.dtype in REAL_DTYPES else distance)
    total = reduce.sum(powers, axis=axis, keepdims=keepdims)
    divisor = maximum(as_array(subtract(as_array(_count(x, axis, keepdims, where)), less)), 0)
    of_dtype = dtype is not None and kind_of(x.dtype) == "f"  # else the dtype of `mean` counts
    return deliver_whole(cast(divide(total, divisor), x.dtype if of_dtype else powers.dtype), out)


_mean = mean


@parameters_of(var)
def std(
    a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, *args: Any, **options: Any
) -> Any:
    """Return the root of the variance."""
    if _is_rare(a, dtype):
        given = {name: value for name, value in options.items() if value is not None}
        return Immediate(np.std)(a, axis, dtype, None, *args, out=out, **given)
    return deliver_whole(sqrt(var(a, axis, dtype, None, *args, **options)), out)


def _scan(function: Any, a: Any, axis: int | None, dtype: Any, out: Any) -> Any:
    x = as_array(a)
    if axis is None or _scalar_axis(x, axis) is None:
        x, axis = reshaping.reshape(x, (-1,)), 0
    return deliver_whole(function(x, axis=axis, dtype=dtype), out)


def cumsum(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    """Return running sums along an axis, or of the flattened array."""
    return _scan(cumulative.cumulative_sum, a, axis, dtype, out)


def cumprod(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    """Return running products along an axis, or of the flattened array."""
    return _scan(cumulative.cumulative_prod, a, axis, dtype, out)


def cumulative_sum(
    x: Any,
    /,
    *,
    axis: int | None = None,
    dtype: Any = None,
    out: Any = None,
    include_initial: bool = False,
) -> Any:
    """Return running sums along an axis."""
    options = {"axis": axis, "dtype": dtype, "include_initial": include_initial}
    return _running(cumulative.cumulative_sum, x, out=out, **options)


@parameters_of(cumulative_sum)
def cumulative_prod(x: Any, /, **options: Any) -> Any:
    """Return running products along an axis."""
    return _running(cumulative.cumulative_prod, x, **options)


def _running(scan: Any, x: Any, *, axis: int | None = None, out: Any = None, **options: Any) -> Any:
    x = as_array(x)
    if not x.ndim and _scalar_axis(x, axis) is None:
        x, axis = reshaping.reshape(x, (1,)), 0
    return deliver_whole(scan(x, axis=axis, **options), out)


def _known(a: Any) -> tuple[Array, Any]:
    """Return an argument with its mask of elements that are not NaN, True for whole numbers."""
    x = as_array(a)
    return x, logical_not(isnan(x)) if kind_of(x.dtype) in "fc" else True


def _refuse_rows_of_nan(known: Any, axis: int | None) -> None:
    is_checked = known is not True and known.size and may_wait()
    if is_checked and not reduce.all(reduce.any(known, axis=axis)).item():
        raise ValueError("All-NaN slice encountered")


def _joined(mask: Any, where: Any) -> Any:
    if where is True or mask is True:
        return mask if where is True else where
    return mask & cast(as_array(where), BOOL)


@parameters_of(sum)
def nansum(a: Any, *args: Any, **options: Any) -> Any:
    """Return the sum of elements along axes, NaN taken as 0."""
    x, known = _known(a)
    return sum(where_else(x, known, 0), *args, **options)


@parameters_of(prod)
def nanprod(a: Any, *args: Any, **options: Any) -> Any:
    """Return the product of elements along axes, NaN taken as 1."""
    x, known = _known(a)
    return prod(where_else(x, known, 1), *args, **options)


@parameters_of(mean)
def nanmean(a: Any, *args: Any, where: Any = True, **options: Any) -> Any:
    """Return the mean of elements along axes that are not NaN."""
    x, known = _known(a)
    return mean(x, *args, where=_joined(known, where), **options)


def nanvar(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: float | None = None,
) -> Any:
    """Return the variance of elements along axes that are not NaN."""
    x, known = _known(a)
    mask = _joined(known, where)
    less = _correction(ddof, correction)
    result = var(x, axis, dtype, None, less, keepdims, where=mask, mean=mean)
    if mask is not True:
        count = _count(x, axis, keepdims, mask)
        result = select(count > less, result, constant(result, np.nan))
    return deliver_whole(result, out)


@parameters_of(nanvar)
def nanstd(
    a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, *args: Any, **options: Any
) -> Any:
    """Return the root of `nanvar`."""
    return deliver_whole(sqrt(nanvar(a, axis, dtype, None, *args, **options)), out)


def _nan_extreme(
    largest: bool,
    a: Any,
    axis: Axis = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    x, known = _known(a)
    if known is True:
        return _extreme(largest, x, axis, out, keepdims, initial, where)
    replaced = where_else(x, known, -np.inf if largest else np.inf)
    result = _extreme(largest, replaced, axis, None, keepdims, initial, where)
    if initial is None:
        some = reduce.any(known, axis=axis, keepdims=keepdims)
        result = select(some, result, constant(x, np.nan))
    return deliver_whole(result, out)


@ordered
@parameters_of(max)
def nanmax(*args: Any, **options: Any) -> Any:
    """Return the largest element along axes that is not NaN; NaN if there is none."""
    return _nan_extreme(True, *args, **options)


@ordered
@parameters_of(max)
def nanmin(*args: Any, **options: Any) -> Any:
    """Return the smallest element along axes that is not NaN; NaN if there is none."""
    return _nan_extreme(False, *args, **options)


@ordered
def nanargmax(a: Any, axis: int | None = None, out: Any = None, *, keepdims: bool = False) -> Any:
    """Return the first index of the largest element that is not NaN. Raises ValueError for a row of
    NaN, for which it waits; in a trace its index is 0.
    """
    x, known = _known(a)
    _refuse_rows_of_nan(known, axis)
    return argmax(where_else(x, known, -np.inf), axis, out, keepdims=keepdims)


@ordered
def nanargmin(a: Any, axis: int | None = None, out: Any = None, *, keepdims: bool = False) -> Any:
    """Return the first index of the smallest element that is not NaN. Raises ValueError for a row
    of NaN, for which it waits; in a trace its index is 0.
    """
    x, known = _known(a)
    _refuse_rows_of_nan(known, axis)
    return argmin(where_else(x, known, np.inf), axis, out, keepdims=keepdims)


def nancumsum(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    """Return running sums, NaN taken as 0."""
    x, known = _known(a)
    return cumsum(where_else(x, known, 0), axis, dtype, out)


def nancumprod(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    """Return running products, NaN taken as 1."""
    x, known = _known(a)
    return cumprod(where_else(x, known, 1), axis, dtype, out)
