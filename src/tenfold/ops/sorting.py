"""Sorting along an axis and searching in sorted arrays. Every sort is stable, with NaN last."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold._native import Array, Type
from tenfold.dtypes import BFLOAT16, FLOAT32, INT64, kind_of, promote
from tenfold.errors import ShapeError
from tenfold.ir.declare import array, operation, refuse_dtype, refuse_unordered
from tenfold.ir.op import Call, Inferred, Sample
from tenfold.ir.shape import normalize_axis

_SAMPLES = (
    Sample(((5,),)),
    Sample(((3, 4),), {"axis": 0, "descending": True}),
    Sample(((2, 0),), {"axis": -1}),
)


def exact(x: np.ndarray) -> np.ndarray:
    """bfloat16 as float32, which holds all of it and is what NumPy can sort."""
    return x.astype(FLOAT32) if x.dtype == BFLOAT16 else x


def _order(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    """Sort positions. To descend, sort keys of opposite order: NaN stays last, equals in order."""
    keys = exact(x)
    if descending:
        # Every integer has a complement, but not every one a negative.
        keys = np.negative(keys) if keys.dtype.kind == "f" else np.invert(keys)
    return np.argsort(keys, axis=axis, kind="stable")


def _sort(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    if not descending and _equals_are_alike(x):
        return np.sort(x, axis=axis)  # which of them comes first cannot be seen
    return np.take_along_axis(x, _order(x, axis, descending), axis)


def _equals_are_alike(x: np.ndarray) -> bool:
    """Whether values that compare equal have the same bits: there is no -0.0."""
    return x.dtype.kind in "biu" or not bool(np.any(np.signbit(x) & (x == 0)))


def _sort_rule(types: tuple[Type, ...], axis: int, descending: bool) -> Inferred:
    (type_,) = types
    refuse_unordered(types)
    return Inferred(((type_.shape, type_.dtype),), (type_.dtype,))


def _argsort_rule(types: tuple[Type, ...], axis: int, descending: bool) -> Inferred:
    (type_,) = types
    refuse_unordered(types)
    return Inferred(((type_.shape, INT64),), (type_.dtype,))


def _along(x: Array, axis: int, descending: bool) -> Call:
    x = array(x)
    return Call((x,), (normalize_axis(axis, x.ndim), bool(descending)))


@operation(rule=_sort_rule, reference=_sort, numpy=(np.sort,), samples=_SAMPLES)
def sort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Call:
    """Return `x` sorted along `axis`: the shape and dtype of `x`.

    Always stable, whatever `stable` says: equals (such as -0.0 and 0.0) keep their order. NaN comes
    last, descending too. Raises ShapeError for an axis out of range, DTypeError for complex `x`.

    >>> import tenfold as tn
    >>> tn.sort(tn.asarray([[3, 1, 2], [9, 7, 8]]), descending=True).tolist()
    [[3, 2, 1], [9, 8, 7]]
    """
    return _along(x, axis, descending)


@operation(rule=_argsort_rule, reference=_order, method=True, numpy=(np.argsort,), samples=_SAMPLES)
def argsort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Call:
    """Return the positions that sort `x` along `axis`: the shape of `x`, int64.

    Always stable, whatever `stable` says: equals keep their order, descending too. NaN comes last.
    Raises ShapeError for an axis out of range, DTypeError for complex numbers.

    >>> import tenfold as tn
    >>> tn.argsort(tn.asarray([3, 1, 2, 1, 3, 0]), descending=True).tolist()
    [0, 4, 2, 1, 3, 5]
    """
    return _along(x, axis, descending)


def _search(x1: np.ndarray, x2: np.ndarray, *rest: Any) -> np.ndarray:
    *sorters, side = rest
    for sorter in sorters:
        _check_positions(sorter, len(x1))
        x1 = x1[sorter.astype(np.intp)]
    return np.asarray(np.searchsorted(exact(x1), exact(x2), side))


def _check_positions(sorter: np.ndarray, length: int) -> None:
    wrong = (sorter < 0) | (sorter >= length)
    if wrong.any():
        place = int(np.argmax(wrong))
        raise IndexError(f"position {sorter[place]} of sorter is out of range for length {length}")


def _search_rule(types: tuple[Type, ...], side: str) -> Inferred:
    x1, x2, *sorters = types
    if len(x1.shape) != 1:
        raise ShapeError("", f"x1 of shape {x1.shape} has not one axis", remedy="search one row")
    dtype = promote((x1, x2))
    refuse_unordered((x1, x2))
    for sorter in sorters:
        if kind_of(sorter.dtype) not in "iu":
            raise refuse_dtype("sorter needs integers", [sorter], "give what tn.argsort gives")
        if sorter.shape != x1.shape:
            raise ShapeError(
                "",
                f"sorter of shape {sorter.shape} is not as long as x1, {x1.shape}",
                remedy="use the one that tn.argsort(x1) gives",
            )
    operands = (dtype, dtype, *(sorter.dtype for sorter in sorters))
    return Inferred(((x2.shape, INT64),), operands)


@operation(
    rule=_search_rule,
    reference=_search,
    promotes=True,
    indices=(2,),
    can_fail=True,
    method=True,
    numpy=(np.searchsorted,),
    samples=[
        Sample(((5,), (2, 3))),
        Sample(((0,), (3,)), {"side": "right"}),
        Sample(((4,), ())),
    ],
)
def searchsorted(
    x1: Array, x2: Array, /, *, side: str = "left", sorter: Array | None = None
) -> Call:
    """Return where each element of `x2` goes in `x1`, (n,), so that it stays sorted: int64 0 to n.

    `x1` is sorted as `tn.sort` does, or `sorter` (n,) holds the positions that sort it. `side`
    "left" goes before equals, "right" after them. The result has the shape of `x2`, an array or a
    number; both are compared in their common dtype.

    Raises ShapeError for shapes that do not fit, ValueError for another side, DTypeError for
    complex numbers, and IndexError at the wait for a position in `sorter` that is out of range.

    >>> import tenfold as tn
    >>> tn.searchsorted(tn.asarray([1, 3, 3, 7]), tn.asarray([3, 0, 8])).tolist()
    [1, 0, 4]
    """
    if side not in ("left", "right"):
        raise ShapeError(
            "", f"side {side!r} is neither 'left' nor 'right'", remedy="use one of them"
        )
    return Call((x1, x2) if sorter is None else (x1, x2, sorter), (side,))
