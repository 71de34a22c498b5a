"""Sorting: sorts along an axis, and searches in sorted arrays; always stable, NaN last."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold._native import Array, Type
from tenfold.core.op import BoundCall, Inferred, SampleCall
from tenfold.core.op_decorators import (
    along_next_axis,
    array,
    as_stack,
    operation,
    refuse_dtype,
    refuse_unordered,
)
from tenfold.core.shape_rules import normalize_axis
from tenfold.dtypes import BFLOAT16, FLOAT16, FLOAT32, INT64, kind_of, promote
from tenfold.errors import ShapeError
from tenfold.ops.batch_rules import Members
from tenfold.ops.gathering import take_along_axis

_SAMPLES = (
    SampleCall(((5,),)),
    SampleCall(((3, 4),), {"axis": 0, "descending": True}),
    SampleCall(((2, 0),), {"axis": -1}),
)


def sortable(x: np.ndarray) -> np.ndarray:
    """bfloat16 as float32, which holds its values exactly and which NumPy can sort."""
    return x.astype(FLOAT32) if x.dtype == BFLOAT16 else x


def _reverse_order_keys(keys: np.ndarray) -> np.ndarray:
    """Return keys of the opposite order, of which NaN is last too."""
    # Every integer has a complement, but not every one a negative.
    return np.negative(keys) if keys.dtype.kind == "f" else np.invert(keys)


MAX_STABLE_LENGTH = 2000
"""The longest axis for which NumPy's stable sort is the fastest stable one."""


def sorted_positions(keys: np.ndarray, axis: int = -1) -> np.ndarray:
    """Return the positions that sort `keys` along an axis; equals, and NaN, keep their order.

    NumPy sorts numbers of 4 and 8 bytes faster in any order than stably, so that it pays to sort
    once more, the positions of equals among themselves.
    """
    if keys.shape[axis] <= MAX_STABLE_LENGTH or keys.dtype.kind == "c" or keys.itemsize < 4:
        return np.argsort(keys, axis=axis, kind="stable")
    order = np.argsort(keys, axis=axis)
    lines = np.moveaxis(np.take_along_axis(keys, order, axis), axis, -1)
    lower, upper = lines[..., :-1], lines[..., 1:]
    differ = lower < upper
    if keys.dtype.kind == "f":
        differ |= (lower == lower) & (upper != upper)
    if differ.all():
        return order
    groups = np.zeros(lines.shape, np.int64)
    np.cumsum(differ, axis=-1, out=groups[..., 1:])
    groups *= lines.shape[-1]
    ranks = groups + np.moveaxis(order, axis, -1)
    ranks.sort(axis=-1)
    ranks -= groups
    return np.moveaxis(ranks, -1, axis)


def _argsort_reference(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    keys = sortable(x)
    return sorted_positions(_reverse_order_keys(keys) if descending else keys, axis)


def sorted_values(x: np.ndarray, axis: int = 0, descending: bool = False) -> np.ndarray:
    """Return real `x` sorted along an axis, in the dtype of `sortable`; zeros keep their order."""
    keys = sortable(x)
    if keys.dtype == FLOAT16:  # NumPy 2.5 sorts long ones with NaN wrongly; float32 has them all
        with np.errstate(invalid="ignore"):
            result32 = sorted_values(keys.astype(FLOAT32), axis, descending)
            return result32.astype(FLOAT16)
    if descending:
        result = _reverse_order_keys(np.sort(_reverse_order_keys(keys), axis=axis))
    else:
        result = np.sort(keys, axis=axis)
    # Zeros of two signs and NaNs have different bits: NumPy's sorts do not preserve them.
    if keys.dtype.kind == "f" and keys.size:
        if _has_negative_zeros(keys):
            lines, sorted_lines = (np.moveaxis(values, axis, -1) for values in (keys, result))
            sorted_lines[sorted_lines == 0] = lines[lines == 0]
        if np.isnan(result.take(-1, axis)).any():
            result[np.isnan(result)] = np.nan
    return result


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


def _bind_sort(x: Array, axis: int, descending: bool) -> BoundCall:
    x = array(x)
    return BoundCall((x,), (normalize_axis(axis, x.ndim), bool(descending)))


def _sorted_back(g: Array, y: Array, x: Array, axis: int, descending: bool) -> tuple[Array]:
    """Take the cotangents at the positions that the elements have when sorted."""
    order = argsort(x, axis=axis, descending=descending)
    return (take_along_axis(g, argsort(order, axis=axis), axis=axis),)


@operation(
    rule_free=True,
    bind_depends_on="types",
    rule=_sort_rule,
    reference=sorted_values,
    numpy=(np.sort,),
    batch_params=along_next_axis,
    samples=_SAMPLES,
    vjp=_sorted_back,
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
    return _bind_sort(x, axis, descending)


@operation(
    rule_free=True,
    bind_depends_on="types",
    rule=_argsort_rule,
    reference=_argsort_reference,
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
    return _bind_sort(x, axis, descending)


def _order_statistics_reference(x: np.ndarray, positions: tuple[int, ...]) -> np.ndarray:
    keys = sortable(x)
    if keys.dtype == FLOAT16:  # NumPy has no fast selection of halves; float32 has their order
        keys = keys.astype(FLOAT32)
    if len(positions) * SELECTED_SHARE > keys.shape[-1]:
        return np.sort(keys, axis=-1)[..., list(positions)].astype(x.dtype)
    # Neighbours cost a pass over the elements below the upper one, not a selection of their own.
    above = {at: at + 1 for at in positions if at + 1 in positions and at - 1 not in positions}
    kth = [at for at in positions if at not in above]
    parted = np.partition(keys, kth, axis=-1)
    lower = {low: parted[..., _start(kth, high) : high].max(axis=-1) for low, high in above.items()}
    columns = [lower[at] if at in lower else parted[..., at] for at in positions]
    return np.stack(columns, axis=-1).astype(x.dtype)


def _start(kth: list[int], position: int) -> int:
    """Return where the elements between a selected position and its predecessor begin."""
    return max((at + 1 for at in kth if at < position), default=0)


SELECTED_SHARE = 16
"""The elements for each selected one below which a sort is as fast."""


def _order_statistics_rule(types: tuple[Type, ...], positions: tuple[int, ...]) -> Inferred:
    (type_,) = types
    refuse_unordered(types)
    return Inferred((((*type_.shape[:-1], len(positions)), type_.dtype),), (type_.dtype,))


def _order_statistics_again(x: Array, positions: tuple[int, ...]) -> BoundCall:
    return BoundCall((x,), ((*sorted(range(x.shape[-1])[at] for at in {*positions}),),))


@operation(
    public=False,
    rebind=_order_statistics_again,
    portable=True,
    rule_free=True,
    bind_depends_on="types",
    rule=_order_statistics_rule,
    reference=_order_statistics_reference,
    batch_params=as_stack,
    expression=lambda x, positions: sort(x)[..., list(positions)],
)
def order_statistics(x: Array, positions: tuple[int, ...]) -> BoundCall:
    """Return those elements of the sorted last axis of `x` that are at `positions`, ascending.

    By selection (C. A. R. Hoare, "Algorithm 65: Find", 1961), in linear time. NaN comes last.
    """
    return BoundCall((x,), (positions,))


def _searchsorted_reference(x1: np.ndarray, x2: np.ndarray, *args: Any) -> np.ndarray:
    *sorters, side = args
    for sorter in sorters:
        _check_positions(sorter, len(x1))
        x1 = x1[sorter.astype(np.intp)]
    return np.asarray(np.searchsorted(sortable(x1), sortable(x2), side))


def _check_positions(sorter: np.ndarray, length: int) -> None:
    out_of_range = (sorter < 0) | (sorter >= length)
    if out_of_range.any():
        position = int(np.argmax(out_of_range))
        raise IndexError(
            f"position {sorter[position]} of sorter is out of range for length {length}"
        )


def _searchsorted_rule(types: tuple[Type, ...], side: str) -> Inferred:
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


def _searchsorted_members(members: Members, side: str) -> Any:
    """Batch rule: only the values may be batched."""
    _, batched_rows, *_ = members.batched
    only_values_batched = members.batched.count(True) == batched_rows
    return members.call(members.operands, (side,)) if only_values_batched else NotImplemented


@operation(
    rule=_searchsorted_rule,
    reference=_searchsorted_reference,
    promotes=True,
    indices=(2,),
    can_fail=True,
    method=True,
    numpy=(np.searchsorted,),
    batch=_searchsorted_members,
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
