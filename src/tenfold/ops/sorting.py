"""Sorting: sorts along an axis, and searches in sorted arrays; always stable, NaN last."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold._native import Array, Type
from tenfold.core.op import BoundCall, Inferred, SampleCall
from tenfold.core.op_decorators import (
    along_next_axis,
    array,
    operation,
    refuse_dtype,
    refuse_unordered,
)
from tenfold.core.shape_rules import normalize_axis
from tenfold.dtypes import BFLOAT16, FLOAT16, FLOAT32, INT64, kind_of, promote
from tenfold.errors import ShapeError
from tenfold.ops.batch_rules import Members

_SAMPLES = (
    SampleCall(((5,),)),
    SampleCall(((3, 4),), {"axis": 0, "descending": True}),
    SampleCall(((2, 0),), {"axis": -1}),
)


def exact(x: np.ndarray) -> np.ndarray:
    """bfloat16 as float32, which holds all of it and is what NumPy can sort."""
    return x.astype(FLOAT32) if x.dtype == BFLOAT16 else x


def _opposite(keys: np.ndarray) -> np.ndarray:
    """Return keys of the opposite order, of which NaN is last too."""
    # Every integer has a complement, but not every one a negative.
    return np.negative(keys) if keys.dtype.kind == "f" else np.invert(keys)


MOST_LENGTH = 2000
"""Up to so long an axis NumPy's stable sort is the fastest way to sort stably."""


def sorted_positions(keys: np.ndarray, axis: int = -1) -> np.ndarray:
    """Return the positions that sort `keys` along an axis; equals, and NaN, keep their order.

    NumPy sorts numbers of 4 and 8 bytes faster in any order than stably, so that it pays to sort
    once more, the positions of equals among themselves.
    """
    if keys.shape[axis] <= MOST_LENGTH or keys.dtype.kind == "c" or keys.itemsize < 4:
        return np.argsort(keys, axis=axis, kind="stable")
    order = np.argsort(keys, axis=axis)
    lines = np.moveaxis(np.take_along_axis(keys, order, axis), axis, -1)
    first, next_ = lines[..., :-1], lines[..., 1:]
    differ = first < next_
    if keys.dtype.kind == "f":
        differ |= (first == first) & (next_ != next_)
    if differ.all():
        return order
    groups = np.zeros(lines.shape, np.int64)
    np.cumsum(differ, axis=-1, out=groups[..., 1:])
    groups *= lines.shape[-1]
    ranks = groups + np.moveaxis(order, axis, -1)
    ranks.sort(axis=-1)
    ranks -= groups
    return np.moveaxis(ranks, -1, axis)


def _order(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    keys = exact(x)
    return sorted_positions(_opposite(keys) if descending else keys, axis)


def sorted_values(x: np.ndarray, axis: int = 0, descending: bool = False) -> np.ndarray:
    """Return real `x` sorted along an axis, in the dtype of `exact`; zeros keep their order."""
    keys = exact(x)
    if keys.dtype == FLOAT16:  # NumPy 2.5 sorts long ones with NaN wrongly; float32 has them all
        with np.errstate(invalid="ignore"):
            wide = sorted_values(keys.astype(FLOAT32), axis, descending)
            return wide.astype(FLOAT16)
    if descending:
        found = _opposite(np.sort(_opposite(keys), axis=axis))
    else:
        found = np.sort(keys, axis=axis)
    # What compares equal looks alike, but zeros of two signs, and NaN: NumPy's sorts make various
    # ones of them.
    if keys.dtype.kind == "f" and keys.size:
        if _has_negative_zeros(keys):
            lines, sorted_lines = (np.moveaxis(each, axis, -1) for each in (keys, found))
            sorted_lines[sorted_lines == 0] = lines[lines == 0]
        if np.isnan(found.take(-1, axis)).any():
            found[np.isnan(found)] = np.nan
    return found


def _has_negative_zeros(x: np.ndarray) -> bool:
    return bool(np.any(x.view(f"u{x.itemsize}") == 1 << 8 * x.itemsize - 1))


def _sort_rule(types: tuple[Type, ...], axis: int, descending: bool) -> Inferred:
    (type_,) = types
    refuse_unordered(types)
    return Inferred(((type_.shape, type_.dtype),), (type_.dtype,))


def _argsort_rule(types: tuple[Type, ...], axis: int, descending: bool) -> Inferred:
    (type_,) = types
    refuse_unordered(types)
    return Inferred(((type_.shape, INT64),), (type_.dtype,))


def _along(x: Array, axis: int, descending: bool) -> BoundCall:
    x = array(x)
    return BoundCall((x,), (normalize_axis(axis, x.ndim), bool(descending)))


@operation(
    by_itself=True,
    follow="types",
    rule=_sort_rule,
    reference=sorted_values,
    numpy=(np.sort,),
    batch_params=along_next_axis,
    samples=_SAMPLES,
)
def sort(
    x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> BoundCall:
    """Return `x` sorted along `axis`: the shape and dtype of `x`.

    Always stable, whatever `stable` says: equals (such as -0.0 and 0.0) keep their order. NaN comes
    last, descending too. Raises ShapeError for an axis out of range, DTypeError for complex `x`.

    >>> import tenfold as tn
    >>> tn.sort(tn.asarray([[3, 1, 2], [9, 7, 8]]), descending=True).tolist()
    [[3, 2, 1], [9, 8, 7]]
    """
    return _along(x, axis, descending)


@operation(
    by_itself=True,
    follow="types",
    rule=_argsort_rule,
    reference=_order,
    method=True,
    numpy=(np.argsort,),
    batch_params=along_next_axis,
    samples=_SAMPLES,
)
def argsort(
    x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> BoundCall:
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


def _search_members(members: Members, side: str) -> Any:
    """In rows of their own the members search one by one."""
    _, own, *_ = members.batched
    shared = members.batched.count(True) == own
    return members.call(members.operands, (side,)) if shared else NotImplemented


@operation(
    rule=_search_rule,
    reference=_search,
    promotes=True,
    indices=(2,),
    can_fail=True,
    method=True,
    numpy=(np.searchsorted,),
    batch=_search_members,
    samples=[
        SampleCall(((5,), (2, 3))),
        SampleCall(((0,), (3,)), {"side": "right"}),
        SampleCall(((4,), ())),
    ],
    section="searching",
)
def searchsorted(
    x1: Array, x2: Array, /, *, side: str = "left", sorter: Array | None = None
) -> BoundCall:
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
    return BoundCall((x1, x2) if sorter is None else (x1, x2, sorter), (side,))
