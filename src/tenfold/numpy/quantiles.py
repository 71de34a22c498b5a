"""Statistics: averages, quantiles, correlations and histograms, with NumPy's names.

Takes NumPy's arguments, hands on Arrays. What has a data-dependent length computes at the call.

>>> median([3.0, 1.0, 2.0]).item()
2.0
>>> quantile([1.0, 2.0, 3.0], [0.25, 0.5]).tolist()
[1.5, 2.0]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold._native import Array
from tenfold.core.public_signature import parameters_of
from tenfold.core.shape_rules import normalize_axis
from tenfold.dtypes import INT64, kind_of
from tenfold.numpy import sums_and_extremes as reductions
from tenfold.numpy.arguments import (
    Immediate,
    as_array,
    cast,
    constant,
    deliver,
    export,
    ordered,
)
from tenfold.ops import (
    arithmetic,
    create,
    cumulative,
    gathering,
    labels,
    movement,
    predicates,
    reduce,
    reshaping,
    rounding,
    selection,
    sorting,
)
from tenfold.ops import complex as parts
from tenfold.ops.comparison import equal, not_equal
from tenfold.ops.contract import matmul
from tenfold.ops.diagonal_tril_triu import diagonal
from tenfold.ops.elementary import sqrt
from tenfold.ops.indexing import index
from tenfold.ops.joining import concat, stack
from tenfold.ops.segment_sum import segment_sum

__all__ = [
    "average", "bincount", "corrcoef", "cov", "histogram", "histogram2d", "histogram_bin_edges",
    "histogramdd", "median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile",
]  # fmt: skip

LINEAR = "linear"
"""The method of quantiles that is an operation; others compute at the call."""


def average(
    a: Any,
    axis: int | tuple[int, ...] | None = None,
    weights: Any = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> Any:
    """Return the mean, weighted by `weights`; `returned` adds the sum of weights.

    >>> average([1.0, 4.0], weights=[2, 1]).item()
    2.0
    """
    x = as_array(a)
    if weights is None:
        result = reductions.mean(x, axis, keepdims=keepdims)
        count = x.size // result.size if result.size else 0
        scale = reshaping.broadcast_to(constant(result, count), result.shape)
        return (result, scale) if returned else result
    w = as_array(weights)
    if w.shape != x.shape:
        if axis is None:
            raise TypeError("Axis must be specified when shapes of a and weights differ.")
        axes = (axis,) if isinstance(axis, int) else tuple(axis)
        axes = tuple(normalize_axis(i, x.ndim) for i in axes)
        if w.shape != tuple(x.shape[i] for i in axes):
            raise ValueError(
                "Shape of weights must be consistent with shape of a along specified axis."
            )
        order = sorted(range(len(axes)), key=lambda i: axes[i])
        w = movement.permute_dims(w, tuple(order))
        w = reshaping.reshape(w, tuple(n if i in axes else 1 for i, n in enumerate(x.shape)))
    dtype = np.result_type(x.dtype, w.dtype, *(["f8"] if kind_of(x.dtype) in "biu" else []))
    x, w = cast(x, dtype), cast(w, dtype)
    w = reshaping.broadcast_to(w, x.shape)
    scale = reduce.sum(w, axis=axis, keepdims=keepdims)
    total = reduce.sum(arithmetic.multiply(x, w), axis=axis, keepdims=keepdims)
    result = arithmetic.divide(total, scale)
    return (result, scale) if returned else result


def _folded(a: Any, axis: Any) -> tuple[Array, tuple[int, ...]]:
    """Return floats with the axes to fold as the last one, and the folded axes."""
    x = as_array(a)
    x = x if kind_of(x.dtype) in "fc" else cast(x, np.float64)
    every = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    axes = tuple(normalize_axis(int(i), x.ndim) for i in every)
    others = tuple(i for i in range(x.ndim) if i not in axes)
    moved = movement.permute_dims(x, (*others, *axes))
    length = int(np.prod([x.shape[i] for i in axes], dtype=int))
    return reshaping.reshape(moved, (*(x.shape[i] for i in others), length)), axes


def _restored(result: Array, axes: tuple[int, ...], ndim: int, keepdims: bool) -> Array:
    """Return a result with folded axes of length 1 if they are to stay, after `ndim` axes."""
    if not keepdims:
        return result
    return movement.expand_dims(result, tuple(i + ndim for i in sorted(axes))) if axes else result


@ordered
def median(
    a: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Any:
    """Return the middle element along axes, the mean of two; NaN if there is one."""
    rows, axes = _folded(a, axis)
    length = rows.shape[-1]
    if not length:
        result = reductions.mean(rows, -1)
    else:
        middle = sorting.order_statistics(rows, ((length - 1) // 2, length // 2)[length % 2 :])
        result = _nan_of_rows(rows, reductions.mean(middle, -1))
    return deliver(_restored(result, axes, 0, keepdims), out)


def _nan_of_rows(rows: Array, result: Array) -> Array:
    """Return a result with NaN for rows that hold one."""
    has_nan = predicates.isnan(reduce.max(rows, axis=-1))
    return selection.where(has_nan, constant(result, np.nan), result)


def _is_weak(q: Any) -> bool:
    """Whether a fraction is a Python number, which leaves the dtype to the array."""
    return type(q) is float


def _is_double(q: Any) -> bool:
    """Whether fractions are float64; integers and other floats change the dtype of the result."""
    if _is_weak(q):
        return True
    values = q if isinstance(q, Array) else np.asarray(export(q, "np.quantile"))
    return values.dtype == np.float64


def _fractions(q: Any, name: str, *, percent: bool) -> np.ndarray[Any, Any]:
    """Return checked fractions from 0 to 1. Raises ValueError for others and for NaN."""
    fractions = np.asarray(export(q, name), dtype=np.float64) / (100 if percent else 1)
    if ((fractions < 0) | (fractions > 1)).any() or np.isnan(fractions).any():
        kind, last = ("Percentiles", 100) if percent else ("Quantiles", 1)
        raise ValueError(f"{kind} must be in the range [0, {last}]")
    return fractions


def quantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = LINEAR,
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Any:
    """Return quantiles along axes, interpolated linearly; other methods compute at the call."""
    rest = method, keepdims
    return _of_fractions("quantile", a, q, axis, out, overwrite_input, *rest, weights=weights)


@parameters_of(quantile)
def percentile(*args: Any, **options: Any) -> Any:
    """Return quantiles of per cents along axes."""
    return _of_fractions("percentile", *args, **options)


@parameters_of(quantile)
def nanquantile(*args: Any, **options: Any) -> Any:
    """Return quantiles along axes of the elements that are not NaN."""
    return _of_fractions("nanquantile", *args, **options)


@parameters_of(quantile)
def nanpercentile(*args: Any, **options: Any) -> Any:
    """Return quantiles of per cents along axes of the elements that are not NaN."""
    return _of_fractions("nanpercentile", *args, **options)


def _of_fractions(
    name: str,
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = LINEAR,
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Any:
    """Return what NumPy's function of a name does."""
    options = {"method": method, "keepdims": keepdims, "weights": weights}
    if not _is_double(q):
        return Immediate(getattr(np, name))(a, q, axis, out=out, **options)
    fractions = _fractions(q, f"np.{name}", percent=name.endswith("percentile"))
    rows, axes = _folded(a, axis)
    weak, skips_nan = _is_weak(q), name.startswith("nan")
    is_complex = kind_of(rows.dtype) == "c"
    if method != LINEAR or weights is not None or not rows.shape[-1] or (skips_nan and is_complex):
        function = np.nanquantile if skips_nan else np.quantile
        return Immediate(function)(
            a, float(fractions) if weak else fractions, axis, out=out, **options
        )
    results = (_of_known if skips_nan else _of_all)(rows, fractions, weak)
    result = reshaping.reshape(results, (*fractions.shape, *rows.shape[:-1]))
    return deliver(_restored(result, axes, fractions.ndim, keepdims), out)


def _of_all(rows: Array, fractions: Any, weak: bool) -> Array:
    """Return a quantile of each row for each fraction; NaN for rows that hold one."""
    length = rows.shape[-1]
    position = fractions * (length - 1)
    lower = np.floor(position).astype(np.int64)
    upper = np.minimum(lower + 1, length - 1)
    positions = np.unique([lower, upper])
    selected = sorting.order_statistics(rows, tuple(positions.tolist()))
    low, high = (
        movement.moveaxis(gathering.take(selected, as_array(column), axis=-1), -1, 0)
        for column in (np.searchsorted(positions, i.reshape(-1)) for i in (lower, upper))
    )
    weight = np.asarray(position - lower).reshape(-1, *(1,) * (rows.ndim - 1))
    shares = (as_array(share) for share in (weight, 1.0 - weight))
    if weak:
        shares = (cast(share, rows.dtype) for share in shares)
    return _nan_of_rows(rows, _interpolated(low, high, *shares))


def _of_known(rows: Array, fractions: Any, weak: bool) -> Array:
    """Return a quantile of each row's elements that are not NaN for each fraction."""
    ordered, last = sorting.sort(rows), arithmetic.subtract(_counts(rows), 1)
    steps = cast(last, rows.dtype if weak else np.float64)  # a number has the dtype of the array
    results = []
    for fraction in fractions.reshape(-1).tolist():
        position = arithmetic.multiply(steps, fraction)
        lower = cast(rounding.floor(position), np.int64)
        upper = selection.minimum(arithmetic.add(lower, 1), last)
        low, high = (_at(ordered, selection.maximum(i, 0)) for i in (lower, upper))
        share = arithmetic.subtract(position, cast(lower, steps.dtype))
        share = cast(share, rows.dtype) if weak else share
        results.append(_interpolated(low, high, share, arithmetic.subtract(1.0, share)))
    return stack(results, 0)


def nanmedian(
    a: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Any:
    """Return the middle element along axes among those that are not NaN, the mean of two."""
    rows, axes = _folded(a, axis)
    if not rows.shape[-1] or kind_of(rows.dtype) == "c":
        return Immediate(np.nanmedian)(a, axis, out=out, keepdims=keepdims)
    ordered, counts = sorting.sort(rows), _counts(rows)
    middle = [
        _at(
            ordered,
            selection.maximum(arithmetic.floor_divide(arithmetic.add(counts, shift), 2), 0),
        )
        for shift in (-1, 0)
    ]
    even = equal(arithmetic.remainder(counts, 2), 0)
    result = selection.where(even, reductions.mean(stack(middle, 0), 0), middle[0])
    return deliver(_restored(result, axes, 0, keepdims), out)


def _counts(rows: Array) -> Array:
    """Return how many elements of each row are not NaN."""
    present = predicates.logical_not(predicates.isnan(rows))
    return reduce.sum(cast(present, np.int64), axis=-1)


def _at(ordered: Array, positions: Array) -> Array:
    """Return one element of each row."""
    return labels.choose_at(ordered, positions)


def _interpolated(low: Array, high: Array, share: Array, rest: Array) -> Array:
    """Return values between two, by NumPy's formula: from the nearer end. `rest` is 1 - `share`."""
    distance = arithmetic.subtract(high, low)
    from_low = arithmetic.add(low, arithmetic.multiply(distance, share))
    from_high = arithmetic.subtract(high, arithmetic.multiply(distance, rest))
    return selection.where(arithmetic.subtract(share, 0.5) >= 0, from_high, from_low)


def _observations(m: Any, rowvar: bool, dtype: Any) -> Array:
    x = as_array(m)
    if x.ndim > 2:
        raise ValueError("m has more than 2 dimensions")
    target = dtype or np.result_type(x.dtype, np.float64)
    x = cast(x, target)
    if x.ndim < 2:
        return reshaping.reshape(x, (1, -1))
    return x if rowvar else movement.permute_dims(x)


def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Array:
    """Return the covariances of variables, one in each row."""
    if fweights is not None or aweights is not None:
        options = {"fweights": fweights, "aweights": aweights, "dtype": dtype}
        result: Array = Immediate(np.cov)(m, y, rowvar, bias, ddof, **options)
        return result
    x = _observations(m, rowvar, dtype)
    if y is not None:
        x = concat([x, _observations(y, rowvar, dtype)], 0)
    less = (0 if bias else 1) if ddof is None else ddof
    distance = arithmetic.subtract(x, reductions.mean(x, 1, keepdims=True))
    product = matmul(distance, parts.conj(movement.permute_dims(distance)))
    divisor = float(np.maximum(x.shape[1] - less, 0))
    scaled = arithmetic.divide(product, constant(product, divisor))
    return movement.squeeze(scaled, tuple(i for i, n in enumerate(scaled.shape) if n == 1))


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Array:
    """Return the correlations of variables, one in each row."""
    covariance = cov(x, y, rowvar, dtype=dtype)
    if covariance.ndim == 0:
        return arithmetic.divide(covariance, covariance)
    deviation = sqrt(parts.real(diagonal(covariance)))
    scaled = arithmetic.divide(covariance, reshaping.reshape(deviation, (-1, 1)))
    scaled = arithmetic.divide(scaled, deviation)
    if kind_of(scaled.dtype) == "c":
        return scaled
    return selection.clip(scaled, -1, 1)


def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    """Return counts of elements in bins of equal width, and the edges of the bins.

    Without `range` the smallest and the largest element are computed at the call. Other bins, and
    weights that are not real floats, compute at the call. Raises ValueError for bins narrower than
    the distance of neighbouring floats.
    """
    x = reshaping.reshape(as_array(a), (-1,))
    w = None if weights is None else as_array(weights)
    plain = w is None or (w.dtype == np.float64 and w.size == x.size)
    if type(bins) is not int or bins < 1 or kind_of(x.dtype) not in "iuf" or not plain:
        return Immediate(np.histogram)(a, bins, range, density, weights)
    first, last = _ends(x, range)
    edges = as_array(np.histogram_bin_edges(np.empty(0, x.dtype), bins, (first, last)))
    is_whole = isinstance(first, int | np.integer) and isinstance(last, int | np.integer)
    width = float(int(last) - int(first)) if is_whole else last - first  # integers would wrap
    inside = predicates.logical_and(x >= first, x <= last)
    values = cast(x, edges.dtype)
    shares = arithmetic.divide(arithmetic.subtract(values, first), width)
    place = cast(arithmetic.multiply(shares, bins), np.int64)
    place = selection.clip(place, 0, bins - 1)

    def edge(positions: Array) -> Array:
        return gathering.take(edges, positions, axis=0)

    place = arithmetic.subtract(place, cast(values < edge(place), np.int64))
    place = selection.maximum(place, 0)
    above = predicates.logical_and(
        values >= edge(arithmetic.add(place, 1)), not_equal(place, bins - 1)
    )
    place = arithmetic.add(place, cast(above, np.int64))
    place = selection.where(inside, place, constant(place, bins))  # a bin of what is outside
    terms = cast(inside, np.int64) if w is None else reshaping.reshape(w, (-1,))
    counts = index(segment_sum(terms, place, bins + 1), slice(None, bins))
    if density:
        widths = cumulative.diff(edges)
        counts = arithmetic.divide(arithmetic.divide(counts, widths), reduce.sum(counts))
    return counts, edges


def _ends(x: Array, limits: Any) -> tuple[Any, Any]:
    """Return the first and the last edge of a histogram, as NumPy chooses them."""
    if limits is not None:
        first, last = export(limits, "np.histogram")
        if first > last:
            raise ValueError("max must be larger than min in range parameter.")
        if not (np.isfinite(first) and np.isfinite(last)):
            raise ValueError(f"supplied range of [{first}, {last}] is not finite")
    elif not x.size:
        first, last = 0, 1
    else:
        ends = export((reduce.min(x), reduce.max(x)), "np.histogram")
        first, last = (end[()] for end in ends)
        if not (np.isfinite(first) and np.isfinite(last)):
            raise ValueError(f"autodetected range of [{first}, {last}] is not finite")
    return (first - 0.5, last + 0.5) if first == last else (first, last)


def bincount(x: Any, /, weights: Any = None, minlength: Any = 0) -> Any:
    """Return how often each integer occurs; the length is computed at the call."""
    values = as_array(x)
    values = cast(values, np.int64) if kind_of(values.dtype) == "b" else values
    w = None if weights is None else as_array(weights)
    is_lazy = np.can_cast(values.dtype, np.intp) and values.ndim == 1 and values.size
    if w is not None:
        is_lazy = is_lazy and w.shape == values.shape and np.can_cast(w.dtype, np.float64)
    least = most = -1
    if is_lazy:  # the length depends on the values
        ends = export((reduce.min(values), reduce.max(values)), "np.bincount")
        least, most = (int(end[()]) for end in ends)
    if least < 0 or minlength is None or minlength < 0:
        return Immediate(np.bincount)(x, weights, minlength)
    terms = create.ones(values.shape, dtype=INT64) if w is None else cast(w, np.float64)
    return segment_sum(terms, values, max(most + 1, int(minlength)))


histogram2d = Immediate(np.histogram2d)
histogram_bin_edges = Immediate(np.histogram_bin_edges)
histogramdd = Immediate(np.histogramdd)
