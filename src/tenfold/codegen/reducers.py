"""Reducers: combine two partial results of a fold into one, in primitives, by the fold's name.

Input: a Body and the components of the left and of the right partial result (the left one has lower
indices). Output: the components of the combined one. The order of combination is the tree of
docs/decisions/0001.

>>> from tenfold.dtypes import FLOAT32
>>> body = Body()
>>> left, right = body.load(0, FLOAT32), body.load(1, FLOAT32)
>>> COMBINE["add"](body, (left,), (right,))
(<%2 float32>,)
"""

from __future__ import annotations

from collections.abc import Callable

from tenfold.core.scalar_ir import UNSIGNED, Body, Element
from tenfold.dtypes import BOOL, kind_of

Components = tuple[Element, ...]


def _add(_: Body, left: Components, right: Components) -> Components:
    """The sum; `or` of bools."""
    pairs = zip(left, right, strict=True)
    return tuple(x | y if x.dtype == BOOL else x + y for x, y in pairs)


def _multiply(_: Body, left: Components, right: Components) -> Components:
    if len(left) == 1:
        return (left[0] * right[0],)
    (a, b), (c, d) = left, right
    return a * c - b * d, a * d + b * c


def _maximum(k: Body, left: Components, right: Components) -> Components:
    """The larger: NaN if there is one, and -0.0 is below 0.0."""
    (x,), (y,) = left, right
    if kind_of(x.dtype) != "f":
        return (x | y if x.dtype == BOOL else k.select(x < y, y, x),)
    return (_nan_or(k, x, y, k.select(y < x, x, y), "and"),)


def _minimum(k: Body, left: Components, right: Components) -> Components:
    """The smaller: NaN if there is one, and -0.0 is below 0.0."""
    (x,), (y,) = left, right
    if kind_of(x.dtype) != "f":
        return (x & y if x.dtype == BOOL else k.select(y < x, y, x),)
    return (_nan_or(k, x, y, k.select(x < y, x, y), "or"),)


def _nan_or(k: Body, x: Element, y: Element, selected: Element, operation: str) -> Element:
    """Return `selected`, or NaN if x or y is NaN; for equal numbers, the operation on their bits.

    This orders -0.0 and 0.0. Processors have one instruction for `selected`.
    """
    unsigned = UNSIGNED[x.dtype.itemsize]
    merged = k.apply(operation, unsigned, k.bits(x, unsigned), k.bits(y, unsigned))
    return k.select(x != x, x, k.select(x == y, k.bits(merged, x.dtype), selected))  # x != x: NaN


def _position_of(larger: bool) -> Callable[[Body, Components, Components], Components]:
    """The position of the largest or smallest value: the first of equals, the first NaN."""

    def combine(k: Body, left: Components, right: Components) -> Components:
        (x, i), (y, j) = left, right
        if x.dtype == BOOL:
            beats = y & ~x if larger else x & ~y
            ties = x == y
        else:
            beats = x < y if larger else y < x
            ties = x == y
            if kind_of(x.dtype) == "f":
                x_nan, y_nan = x != x, y != y  # NaN alone differs
                beats = (beats | y_nan) & ~x_nan
                ties = ties | (x_nan & y_nan)
        take_right = beats | (ties & (j < i))
        return k.select(take_right, y, x), k.select(take_right, j, i)

    return combine


def _position_in_order(larger: bool) -> Callable[[Body, Components, Components], Components]:
    """The same if every left index is below every right index: ties stay left."""

    def combine(k: Body, left: Components, right: Components) -> Components:
        (x, i), (y, j) = left, right
        if x.dtype == BOOL:
            take_right = y & ~x if larger else x & ~y
        elif kind_of(x.dtype) == "f":  # not (y <= x): larger, or one of them is NaN
            take_right = ~(y <= x if larger else x <= y) & (x == x)  # NaN alone differs
        else:
            take_right = x < y if larger else y < x
        return k.select(take_right, y, x), k.select(take_right, j, i)

    return combine


def _or(_: Body, left: Components, right: Components) -> Components:
    return (left[0] | right[0],)


def _and(_: Body, left: Components, right: Components) -> Components:
    return (left[0] & right[0],)


def _last(_: Body, __: Components, right: Components) -> Components:
    return right


def _moments(_: Body, left: Components, right: Components) -> Components:
    """Count, first element, distance of the mean from it, sum of squared distances from the mean:
    Chan, Golub, LeVeque 1979 (ops/variance.py), for means instead of sums.
    """
    (n, first, drift, squares), (m, other_first, other_drift, other_squares) = left, right
    count = n + m
    distance = (other_first - first) - (drift - other_drift)
    step = distance * (m / count)
    return count, first, drift + step, (squares + other_squares) + distance * step * n


COMBINE: dict[str, Callable[[Body, Components, Components], Components]] = {
    "add": _add,
    "product": _multiply,
    "largest": _maximum,
    "smallest": _minimum,
    "first largest": _position_of(larger=True),
    "first smallest": _position_of(larger=False),
    "or": _or,
    "and": _and,
    "moments": _moments,
    "last": _last,
}
IN_ORDER = COMBINE | {
    "first largest": _position_in_order(larger=True),
    "first smallest": _position_in_order(larger=False),
}
"""The reducers for partial results whose left indices are all below the right ones."""
