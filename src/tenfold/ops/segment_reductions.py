"""Segment reductions: extremes, products and means of rows by index; sums: `ops/segment_sum.py`.

Rows are combined in their order. Indices depend on values: one out of range is an IndexError at the
wait.

>>> import tenfold as tn
>>> segment_max(tn.asarray([1, 5, 3]), tn.asarray([0, 0, 2]), 3).tolist()
[5, -9223372036854775808, 3]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold._native import Array, Type
from tenfold.core.op import BoundCall, Inferred, Op, P, SampleCall
from tenfold.core.op_decorators import array, derived, operation, refuse_unordered
from tenfold.core.scatter_rules import ScatterRule
from tenfold.core.shape_rules import normalize_count
from tenfold.dtypes import BFLOAT16, FLOAT64, compute_dtype, kind_of
from tenfold.ops.arithmetic import divide, multiply_unfused
from tenfold.ops.cast import astype, convert
from tenfold.ops.complex import conj
from tenfold.ops.create import ones, ones_like
from tenfold.ops.gathering import take
from tenfold.ops.joining import concat
from tenfold.ops.movement import expand_dims, flip
from tenfold.ops.segment_sum import (
    check_segments,
    refuse_out_of_bounds,
    segment_members,
    segment_rule,
    segment_sum,
)
from tenfold.ops.selection import where
from tenfold.ops.sorting import argsort

_REMEDY = "use ids from 0 to num_segments - 1, or give more segments"
_SAMPLES = (
    SampleCall(((4, 3),), positional=(np.asarray([0, 2, 0, 2]), 3)),
    SampleCall(((5,),), positional=(np.asarray([1, 1, 0, 1, 3], np.int8), 4)),
    SampleCall(((0,),), positional=(np.asarray([], np.int8), 2)),
)


def _extreme_rule(types: tuple[Type, ...], num_segments: int) -> Inferred:
    x, ids = types
    check_segments(x, ids)
    refuse_unordered([x])
    return Inferred((((num_segments, *x.shape[1:]), x.dtype),), (x.dtype, ids.dtype))


def lowest(dtype: np.dtype) -> Any:
    """Return the lowest value of a dtype."""
    kind = kind_of(dtype)
    return False if kind == "b" else -np.inf if kind == "f" else np.iinfo(dtype).min


def highest(dtype: np.dtype) -> Any:
    """Return the highest value of a dtype."""
    kind = kind_of(dtype)
    return True if kind == "b" else np.inf if kind == "f" else np.iinfo(dtype).max


def by_segment(combine: np.ufunc, identity: Callable[[np.dtype], Any]) -> Callable[..., np.ndarray]:
    """Return the reference of a reduction: row by row, beginning with the identity element."""

    def reference(x: np.ndarray, ids: np.ndarray, num_segments: int) -> np.ndarray:
        refuse_out_of_bounds(ids, 0, num_segments, "segment id")
        result = np.full((num_segments, *x.shape[1:]), identity(x.dtype), x.dtype)
        if kind_of(x.dtype) != "c" and x.dtype != BFLOAT16:
            combine.at(result, ids.astype(np.intp, copy=False), x)
            return result
        two = multiply_unfused if combine is np.multiply else combine
        for i, row in zip(ids.tolist(), x, strict=True):
            result[i] = two(result[i], row)
        return result

    return reference


def extreme_by_segment(
    combine: np.ufunc, identity: Callable[[np.dtype], Any], *, negative_wins: bool
) -> Callable[..., np.ndarray]:
    """Return the reference of an extreme, in which -0.0 is below 0.0."""
    in_order = by_segment(combine, identity)

    def reference(x: np.ndarray, ids: np.ndarray, num_segments: int) -> np.ndarray:
        result = in_order(x, ids, num_segments)
        if kind_of(x.dtype) == "f":
            wins = np.zeros(result.shape, bool)
            is_winning_zero = (x == 0) & (np.signbit(x) == negative_wins)
            np.logical_or.at(wins, ids.astype(np.intp, copy=False), is_winning_zero)
            zero = np.asarray(-0.0 if negative_wins else 0.0, x.dtype)
            result = np.where(result == 0, np.where(wins, zero, -zero), result)
        return result

    return reference


def _shares_of_segments(
    g: Array, y: Array, x: Array, ids: Array, num_segments: int
) -> tuple[Array, None]:
    """The rows that hold the extreme of their segment share its cotangent in equal parts."""
    wins = (x == take(y, ids, axis=0)) | (x != x)
    share = g / segment_sum(astype(wins, g.dtype), ids, num_segments)
    return where(wins, take(share, ids, axis=0), 0), None


def _segmented(
    kind: str, fill: Callable[[np.dtype], Any], **facts: Any
) -> Callable[[Callable[P, BoundCall]], Op[P]]:
    """Declare a reduction by index, whose segments begin with `fill(dtype)`."""
    return operation(
        scatter=ScatterRule(kind=kind, value=0, indices=slice(1, 2), fill=fill),
        can_fail=True,
        bind_depends_on="types",
        remedy=_REMEDY,
        batch=segment_members,
        samples=_SAMPLES,
        section="indexing",
        **facts,
    )


@_segmented(
    "largest",
    lowest,
    rule=_extreme_rule,
    reference=extreme_by_segment(np.maximum, lowest, negative_wins=False),
    vjp=_shares_of_segments,
)
def segment_max(x: Array, segment_ids: Array, /, num_segments: int) -> BoundCall:
    """Return the largest row of `x`, (n, ...), of each id of `segment_ids`, element by element.

    The result is (num_segments, ...), of the dtype of `x`. A segment without rows has the lowest
    value, -inf or that of the integers; NaN propagates. Raises as `tn.segment_sum`, and DTypeError
    for complex `x`.

    >>> import tenfold as tn
    >>> tn.segment_max(tn.asarray([1.0, 4.0, 2.0]), tn.asarray([0, 0, 1]), 3).tolist()
    [4.0, 2.0, -inf]
    """
    return BoundCall((x, segment_ids), (normalize_count(num_segments, "num_segments"),))


@_segmented(
    "smallest",
    highest,
    rule=_extreme_rule,
    reference=extreme_by_segment(np.minimum, highest, negative_wins=True),
    vjp=_shares_of_segments,
)
def segment_min(x: Array, segment_ids: Array, /, num_segments: int) -> BoundCall:
    """Return the smallest row of `x`, (n, ...), of each id of `segment_ids`, element by element.

    The result is (num_segments, ...), of the dtype of `x`. A segment without rows has the highest
    value, inf or that of the integers; NaN propagates. Raises as `tn.segment_max`.

    >>> import tenfold as tn
    >>> tn.segment_min(tn.asarray([1.0, 4.0, 2.0]), tn.asarray([0, 0, 1]), 3).tolist()
    [1.0, 2.0, inf]
    """
    return BoundCall((x, segment_ids), (normalize_count(num_segments, "num_segments"),))


def _products_before(rows: Array, ids: Array) -> Array:
    """Return for each row the product of those before it of its segment; segments are in order. In
    steps that double (Hillis, Steele 1986, "Data parallel algorithms").
    """

    def behind(x: Array, step: int) -> Array:
        here = expand_dims(ids[step:] == ids[:-step], tuple(range(1, rows.ndim)))
        return concat([ones_like(x[:step]), where(here, x[:-step], 1)], axis=0)

    n, step = rows.shape[0], 1
    if n < 2:
        return ones_like(rows)
    result = behind(rows, 1)
    while step < n:
        result, step = result * behind(result, step), 2 * step
    return result


def products_of_others(x: Array, ids: Array) -> Array:
    """Return for each row the product of the other ones of its segment; segments are in order."""
    after = flip(_products_before(flip(x, axis=0), flip(ids)), axis=0)
    return _products_before(x, ids) * after


def _segment_prod_back(
    g: Array, y: Array, x: Array, ids: Array, num_segments: int
) -> tuple[Array, None]:
    """Multiply by the products of the rows before and behind: exact with zeros."""
    order = argsort(ids)
    rows = take(conj(convert(x, compute_dtype(y.dtype))), order, axis=0)
    others = take(products_of_others(rows, take(ids, order)), argsort(order), axis=0)
    return take(g, ids, axis=0) * others, None


@_segmented(
    "product",
    lambda _: 1,
    rule=segment_rule,
    reference=by_segment(np.multiply, lambda _: 1),
    vjp=_segment_prod_back,
)
def segment_prod(x: Array, segment_ids: Array, /, num_segments: int) -> BoundCall:
    """Return the product of the rows of `x`, (n, ...), of each id of `segment_ids`, in order.

    The result is (num_segments, ...); a segment without rows has 1. Dtypes are those of `tn.prod`.
    Raises as `tn.segment_sum`.

    >>> import tenfold as tn
    >>> tn.segment_prod(tn.asarray([2, 3, 4]), tn.asarray([0, 0, 2]), 3).tolist()
    [6, 1, 4]
    """
    return BoundCall((x, segment_ids), (normalize_count(num_segments, "num_segments"),))


def _mean_reference(x: np.ndarray, ids: np.ndarray, num_segments: int) -> np.ndarray:
    floating = x.astype(compute_dtype(x.dtype) if kind_of(x.dtype) in "fc" else FLOAT64)
    sums = np.zeros((num_segments, *x.shape[1:]), floating.dtype)
    np.add.at(sums, ids.astype(np.intp), floating)
    counts = np.bincount(ids, minlength=num_segments).reshape(-1, *(1,) * (x.ndim - 1))
    with np.errstate(all="ignore"):
        result = (sums / counts.astype(floating.dtype)).astype(floating.dtype)
        return result.astype(x.dtype) if kind_of(x.dtype) in "fc" else result


@derived(reference=_mean_reference, samples=_SAMPLES, section="indexing")
def segment_mean(x: Array, segment_ids: Array, /, num_segments: int) -> Array:
    """Return the mean of the rows of `x`, (n, ...), of each id of `segment_ids`.

    The result is (num_segments, ...); a segment without rows has NaN. Dtypes are those of
    `tn.mean`. Raises as `tn.segment_sum`.

    >>> import tenfold as tn
    >>> tn.segment_mean(tn.asarray([1, 2, 4]), tn.asarray([0, 0, 1]), 2).tolist()
    [1.5, 4.0]
    """
    x = array(x)
    ids = array(segment_ids, x)
    result = x.dtype if kind_of(x.dtype) in "fc" else FLOAT64
    floating = convert(x, compute_dtype(result))
    sums = segment_sum(floating, ids, num_segments)
    counts = segment_sum(ones(ids.shape, dtype=floating.dtype, device=x.device), ids, num_segments)
    columns = expand_dims(counts, tuple(range(1, sums.ndim)))
    return convert(divide(sums, columns), result)
