"""Gather: picks elements by integer arrays; its result is lazy and a copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold import _native
from tenfold._native import Array, Type
from tenfold.core.gather_rules import GatherSource, ResultIndex, counted_from_end, moved
from tenfold.core.op import BoundCall, Inferred, Kind, SampleCall
from tenfold.core.op_decorators import along_next_axis, array, derived, operation
from tenfold.core.scalar_ir import Body, Operand
from tenfold.core.shape_rules import Shape, broadcast, normalize_axis
from tenfold.dtypes import kind_of
from tenfold.errors import DTypeError, ShapeError
from tenfold.ops import bounds_checks

if TYPE_CHECKING:
    from tenfold.ops.batch_rules import Members


def _gathered(types: tuple[Type, ...], axes: tuple[int, ...], place: int) -> Inferred:
    type_, *indices = types
    _refuse_no_integers(indices)
    among = broadcast(*(index.shape for index in indices))
    rest = tuple(length for axis, length in enumerate(type_.shape) if axis not in axes)
    shape = (*rest[:place], *among, *rest[place:])
    return Inferred(((shape, type_.dtype),), tuple(type_.dtype for type_ in types))


def _refuse_no_integers(indices: Sequence[Type | Array]) -> None:
    if any(kind_of(index.dtype) not in "iu" for index in indices):
        found = ", ".join(str(index.dtype) for index in indices)
        rule = f"indices are integers, not {found}"
        raise DTypeError("", rule, remedy="convert with tn.astype(i, tn.int64)")


def _gather(x: np.ndarray, *rest: Any) -> np.ndarray:
    *indices, axes, place = rest
    key = tuple(
        bounds_checks.checked(index, axis, x.shape[axis])
        for index, axis in zip(indices, axes, strict=True)
    )
    picked = np.moveaxis(x, axes, range(len(axes)))[key]
    among = np.broadcast(*key).ndim
    return np.moveaxis(picked, range(among), range(place, place + among))


def _gather_at(k: Body, at: ResultIndex, x: GatherSource, *rest: Any) -> Operand:
    *indices, axes, place = rest
    among = len(broadcast(*(index.shape for index in indices)))
    picks = at.axes[place : place + among]
    found = {
        axis: counted_from_end(k, at, index.at(picks[among - len(index.shape) :]), x.shape[axis])
        for index, axis in zip(indices, axes, strict=True)
    }
    left = iter((*at.axes[:place], *at.axes[place + among :]))
    where = [found[axis] if axis in found else next(left) for axis in range(len(x.shape))]
    return x.at(where)


def _gathered_members(members: Members, axes: tuple[int, ...], place: int) -> Array:
    """Of a batched array with indices of their own the members' numbers are one more index."""
    x, *indices = members.operands
    of_array, *of_indices = members.batched
    if not any(of_indices):
        made: Array = members.call((x, *indices), (tuple(axis + 1 for axis in axes), place + 1))
        return made
    among = max(members.ndim(at) for at in range(1, len(members.operands)))
    aligned = [members.aligned(at, among) for at in range(1, len(members.operands))]
    if not of_array:
        return members.to_front(members.call((x, *aligned), (axes, place)), place)
    where = (0, *(axis + 1 for axis in axes))
    picked = members.call((x, members.numbers(among), *aligned), (where, 0))
    own = range(1, 1 + among)
    rest = range(1 + among, picked.ndim)
    return members.permuted(picked, (0, *rest[:place], *own, *rest[place:]))


@operation(
    rule_free=True,
    rule=_gathered,
    reference=_gather,
    element_at=_gather_at,
    kind=Kind.VIEW,
    can_fail=True,
    batch=_gathered_members,
    samples=[
        SampleCall(((3, 4),), {}, ([2, 0, -3],)),
        SampleCall(((3, 4),), {"axes": (1, 0)}, ([[3], [-1]], [0, 1, 2])),
        SampleCall(((2, 3, 4),), {"axes": (0, 2), "place": 1}, ([1, 0], [[3, 3]])),
        SampleCall(((0, 3),), {"axes": (1,)}, (2,)),
    ],
)
def gather(
    x: Array, /, *indices: Array, axes: tuple[int, ...] | None = None, place: int | None = None
) -> BoundCall:
    """Return the elements of `x` at integer `indices`, which broadcast together: the one at
    position p along each of `axes` (the first ones if None) for every p. The axes of the indices
    stand at `place` among the axes that are left: at the first of `axes` if None.

    Negative indices count from the end. Raises IndexError for an index out of bounds: at the call
    if its value is known, else at the wait.

    >>> import tenfold as tn
    >>> x = tn.reshape(tn.arange(6), (2, 3))
    >>> tn.gather(x, tn.asarray([0, 1]), tn.asarray([2, -3])).tolist()
    [2, 3]
    """
    x = array(x)
    arrays = [integers(index) for index in indices]
    given = range(len(arrays)) if axes is None else axes
    where = tuple(normalize_axis(axis, x.ndim) for axis in given)
    if len(set(where)) < len(where) or len(where) != len(arrays) or not arrays:
        raise ShapeError(
            "",
            f"{len(arrays)} index arrays do not fit axes {where}",
            remedy="give an index array for each axis, and each axis once",
        )
    _refuse_no_integers(arrays)
    for index, axis in zip(arrays, where, strict=True):
        bounds_checks.check_known(index, axis, x, "gather")
    left = x.ndim - len(where)
    at = min(min(where), left) if place is None else normalize_axis(place, left + 1)
    return BoundCall((x, *arrays), (where, at))


@derived(
    reference=np.take,
    numpy=(np.take,),
    samples=[
        SampleCall(((4,),), {}, ([3, 0, 0],)),
        SampleCall(((2, 3),), {"axis": -1}, ([[1, -1], [0, 0]],)),
        SampleCall(((0, 3),), {"axis": 0}, ([],)),
    ],
)
def take(x: Array, indices: Array, /, *, axis: int | None = None) -> Array:
    """Return the elements of `x` at integer `indices` along `axis`, which may be left out for one
    axis.

    Shape: that of `x` with the shape of `indices` in place of the axis. Negative indices count from
    the end. Raises IndexError for an index out of bounds: at the call if its value is known, else
    at the wait.

    >>> import tenfold as tn
    >>> tn.take(tn.asarray([[1, 2], [3, 4], [5, 6]]), [2, 0], axis=0).tolist()
    [[5, 6], [1, 2]]
    """
    x = array(x)
    if axis is None and x.ndim != 1:
        raise ShapeError(
            "", f"{x.ndim} axes need an axis", remedy="name one, or flatten with reshape(x, (-1,))"
        )
    where, positions = normalize_axis(0 if axis is None else axis, x.ndim), integers(indices)
    _refuse_no_integers([positions])
    bounds_checks.check_known(positions, where, x, "take")
    return _native.apply(gather.id, (x, positions), ((where,), where))


def integers(indices: Any) -> Array:
    """Return indices as an Array: a list is taken as well."""
    if isinstance(indices, (list, tuple, range)):
        try:
            made = np.asarray(indices)
        except ValueError:
            rule = f"indices {indices!r} have rows of different lengths"
            raise ShapeError("", rule, remedy="give rows of equal lengths") from None
        return array(made if made.size else made.astype(np.int64))
    return array(indices)


def _along(types: tuple[Type, ...], axis: int) -> Inferred:
    x, indices = types
    _refuse_no_integers([indices])
    if x.shape and len(indices.shape) != len(x.shape):
        raise ShapeError(
            "",
            f"indices of {len(indices.shape)} axes do not fit an array of {len(x.shape)}",
            remedy="give as many axes: the others broadcast",
        )
    others = broadcast(_without(x.shape, axis), _without(indices.shape, axis))
    shape = (*others[:axis], indices.shape[axis], *others[axis:])
    return Inferred(((shape, x.dtype),), (x.dtype, indices.dtype))


def _without(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], *shape[axis + 1 :])


def _take_along(x: np.ndarray, indices: np.ndarray, axis: int) -> np.ndarray:
    others = np.broadcast_shapes(_without(x.shape, axis), _without(indices.shape, axis))
    shapes = [(*others[:axis], y.shape[axis], *others[axis:]) for y in (x, indices)]
    positions = bounds_checks.checked(indices, axis, x.shape[axis])
    return np.take_along_axis(
        np.broadcast_to(x, shapes[0]), np.broadcast_to(positions, shapes[1]), axis
    )


def _take_along_at(
    k: Body, at: ResultIndex, x: GatherSource, indices: GatherSource, axis: int
) -> Operand:
    index = counted_from_end(k, at, indices.at(at), x.shape[axis])
    return x.at(moved(at, axis, index))


@operation(
    rule_free=True,
    rule=_along,
    reference=_take_along,
    element_at=_take_along_at,
    kind=Kind.VIEW,
    can_fail=True,
    numpy=(np.take_along_axis,),
    batch_params=along_next_axis,
    samples=[
        SampleCall(((2, 3),), {"axis": 1}, ([[2, 0], [1, 1]],)),
        SampleCall(((2, 3),), {"axis": 0}, ([[-1, 0, 1]],)),
    ],
)
def take_along_axis(x: Array, indices: Array, /, *, axis: int = -1) -> BoundCall:
    """Return for each line of `x` along `axis` the elements at that line's own integer `indices`.

    Shape: that of `indices`, whose other axes broadcast with those of `x`. What `argsort` and
    `argmax` (with keepdims) return are such indices. Raises IndexError for an index out of bounds:
    at the call if its value is known, else at the wait.

    >>> import tenfold as tn
    >>> tn.take_along_axis(tn.asarray([[10, 20], [30, 40]]), [[1], [0]]).tolist()
    [[20], [30]]
    """
    x, positions = array(x), integers(indices)
    where = normalize_axis(axis, x.ndim)
    _refuse_no_integers([positions])
    bounds_checks.check_known(positions, where, x, "take_along_axis")
    return BoundCall((x, positions), (where,))
