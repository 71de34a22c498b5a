"""Variance: the sum of squared distances from the mean, in one pass over the data.

Takes float Arrays, hands on float Arrays, for the variances of `ops/statistics.py`. Partial results
of some elements are their count, the first of them, how far their mean is from that first one, and
the sum of their squared distances from the mean. Two are combined by the updating formula of Chan,
Golub and LeVeque ("Updating formulae and a pairwise algorithm for computing sample variances",
1979), in the tree of every sum. Why: docs/decisions/0011.

>>> import tenfold as tn
>>> sum_of_squares(tn.asarray([1.0, 2.0, 6.0]), (0,)).item()
14.0
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold._native import Array, Type
from tenfold.core.canonical_reduction import fold_axes
from tenfold.core.op import ReductionTree
from tenfold.core.op_decorators import reduction
from tenfold.core.scalar_ir import Body, Element, Operand
from tenfold.core.shape_rules import Axis, Pick, whole_axes
from tenfold.ops import reduce
from tenfold.ops.indexing import index_view

Axes = tuple[int, ...]


def _same_dtype(type_: Type) -> tuple[np.dtype, np.dtype]:
    return type_.dtype, type_.dtype


def _moments(x: np.ndarray, axes: Axes, keepdims: bool) -> np.ndarray:
    """Fold an axis to records of the parts."""
    fields = ("count", "first", "drift", "squares")
    records = np.empty(x.shape, [(name, x.dtype) for name in fields])
    for name, value in zip(fields, (1, x, -0.0, -0.0), strict=True):
        records[name] = value
    return fold_axes(_merge_moments, records, axes, keepdims, identity=0)


def _merge_moments(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Merge two records as `codegen/reducers.py` does, in NumPy."""
    merged = np.empty_like(left)
    merged["count"] = count = left["count"] + right["count"]
    merged["first"] = left["first"]
    distance = (right["first"] - left["first"]) - (left["drift"] - right["drift"])
    step = distance * (right["count"] / count)
    merged["drift"] = left["drift"] + step
    merged["squares"] = (left["squares"] + right["squares"]) + distance * step * left["count"]
    return merged


def _accumulate_moments(k: Body, x: Operand, index: Element) -> tuple[Element, ...]:
    assert isinstance(x, Element), "a real number"
    count, zero = k.constant(1, x.dtype), k.constant(-0.0, x.dtype)  # y + -0.0 is y for every y
    return count, x, zero, zero


def _finish_squares(k: Body, accumulators: tuple[Element, ...], dtype: np.dtype) -> Operand:
    _, first, drift, squares = accumulators
    mean = first + drift
    return squares + (mean - mean)  # NaN where a distance is infinite; else 0.0, also from -0.0


def _finish_mean(k: Body, accumulators: tuple[Element, ...], dtype: np.dtype) -> Operand:
    return accumulators[1] + accumulators[2]


def _moments_tree(finish: Any) -> ReductionTree:
    return ReductionTree("moments", lambda dtype: dtype, _accumulate_moments, finish, one_axis=True)


def _squares_reference(x: np.ndarray, axes: Axes, keepdims: bool) -> np.ndarray:
    moments = _moments(x, axes, keepdims)
    mean = moments["first"] + moments["drift"]
    return moments["squares"] + (mean - mean)


def _mean_reference(x: np.ndarray, axes: Axes, keepdims: bool) -> np.ndarray:
    moments = _moments(x, axes, keepdims)
    return moments["first"] + moments["drift"]


@reduction(
    dtypes=_same_dtype,
    reference=_squares_reference,
    folding=_moments_tree(_finish_squares),
    empty=False,
    public=False,
    vjp=lambda g, y, x, axes, keepdims: (
        2
        * (x - mean_beside(x, axis=axes[0], keepdims=True))  # type: ignore[has-type]  # below
        * reduce.spread(g, x.shape, axes),
    ),
)
def squared_deviations(x: Array, /, *, axis: Axis, keepdims: bool = False) -> Array:
    """Sum of squared distances from the mean along one axis."""


@reduction(
    dtypes=_same_dtype,
    reference=_mean_reference,
    folding=_moments_tree(_finish_mean),
    empty=False,
    public=False,
    vjp=lambda g, y, x, axes, keepdims: (reduce.spread(g / x.shape[axes[0]], x.shape, axes),),
)
def mean_beside(x: Array, /, *, axis: Axis, keepdims: bool = False) -> Array:
    """The mean along one axis, as the pass that finds the squared distances has it."""


def sum_of_squares(x: Array, axes: Axes, *, keepdims: bool = False) -> Array:
    """Return the sum of squared distances from the mean over `axes`.

    `x` holds real floats; `axes` are in rising order, none is empty. The innermost axis leaves
    groups of equal size: their sum, plus that of their means times the size, and so on. For several
    axes the first element is subtracted before, so that the means need no more digits than the
    distances have.
    """
    if not axes:
        distance = x - x
        return distance * distance
    if len(axes) > 1:
        first_element: list[Pick] = list(whole_axes(x.shape))
        for axis in axes:
            first_element[axis] = (0, 1, 1)
        x = x - index_view(x, tuple(first_element))
    *outer, axis = axes
    total, size = _sum_over_axis(x, axis, outer, keepdims), 1
    while outer:
        x, size = mean_beside(x, axis=axis, keepdims=keepdims), size * x.shape[axis]
        *outer, axis = outer
        total = total + _sum_over_axis(x, axis, outer, keepdims) * size
    return total


def _sum_over_axis(x: Array, axis: int, outer: Sequence[int], keepdims: bool) -> Array:
    """Sum the squared distances of each group along `axis` from its mean, over `outer` axes."""
    squares = squared_deviations(x, axis=axis, keepdims=keepdims)
    return reduce.sum(squares, axis=tuple(outer), keepdims=keepdims) if outer else squares
