"""Gather: picks elements by integer arrays; its result is lazy and a copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold import _native
from tenfold._native import Array, Type
from tenfold.core.gather_rules import GatherSource, ResultIndex, normalized_index, with_axis_index
from tenfold.core.op import BoundCall, Inferred, Kind, SampleCall
from tenfold.core.op_decorators import along_next_axis, array, derived, operation
from tenfold.core.scalar_ir import Body, Operand
from tenfold.core.scatter_rules import indexed_shape
from tenfold.core.shape_rules import Shape, broadcast, normalize_axis
from tenfold.core.structure import Structure
from tenfold.dtypes import kind_of
from tenfold.errors import DTypeError, ShapeError
from tenfold.ops import bounds_checks

if TYPE_CHECKING:
    from tenfold.ops.batch_rules import Members


def _gather_rule(types: tuple[Type, ...], axes: tuple[int, ...], index_axis: int) -> Inferred:
    type_, *indices = types
    _require_integers(indices)
    shape = indexed_shape(type_.shape, [index.shape for index in indices], axes, index_axis)
    return Inferred(((shape, type_.dtype),), tuple(type_.dtype for type_ in types))


def _gather_structure(
    types: Sequence[Type], structures: Sequence[Structure], axes: tuple[int, ...], index_axis: int
) -> Structure:
    are_rows = (*axes, index_axis) == (0, 0) and len(types[0].shape) == 2
    is_vector = are_rows and len(types[1].shape) == 1
    return structures[0] & Structure.SELECTION if is_vector else Structure.GENERAL


def _require_integers(indices: Sequence[Type | Array]) -> None:
    if any(kind_of(index.dtype) not in "iu" for index in indices):
        dtypes = ", ".join(str(index.dtype) for index in indices)
        rule = f"indices are integers, not {dtypes}"
        raise DTypeError("", rule, remedy="convert with tn.astype(i, tn.int64)")


def _gather_reference(x: np.ndarray, *args: Any) -> np.ndarray:
    *indices, axes, index_axis = args
    key = tuple(
        bounds_checks.validated_indices(index, axis, x.shape[axis])
        for index, axis in zip(indices, axes, strict=True)
    )
    gathered = np.moveaxis(x, axes, range(len(axes)))[key]
    index_ndim = np.broadcast(*key).ndim
    return np.moveaxis(gathered, range(index_ndim), range(index_axis, index_axis + index_ndim))


def _gather_element(k: Body, at: ResultIndex, x: GatherSource, *args: Any) -> Operand:
    *indices, axes, index_axis = args
    index_ndim = len(broadcast(*(index.shape for index in indices)))
    index_coordinates = at.axes[index_axis : index_axis + index_ndim]
    positions = {
        axis: normalized_index(
            k, at, index.at(index_coordinates[index_ndim - len(index.shape) :]), x.shape[axis]
        )
        for index, axis in zip(indices, axes, strict=True)
    }
    remaining = iter((*at.axes[:index_axis], *at.axes[index_axis + index_ndim :]))
    coordinates = [
        positions[axis] if axis in positions else next(remaining) for axis in range(len(x.shape))
    ]
    return x.at(coordinates)


def _gather_members(members: Members, axes: tuple[int, ...], index_axis: int) -> Array:
    """Batch rule: if array and indices are batched, the member numbers are one more index array."""
    x, *indices = members.operands
    array_batched, *indices_batched = members.batched
    if not any(indices_batched):
        result: Array = members.call(
            (x, *indices), (tuple(axis + 1 for axis in axes), index_axis + 1)
        )
        return result
    index_ndim = max(members.ndim(at) for at in range(1, len(members.operands)))
    aligned = [members.aligned(at, index_ndim) for at in range(1, len(members.operands))]
    if not array_batched:
        return members.to_front(members.call((x, *aligned), (axes, index_axis)), index_axis)
    batched_axes = (0, *(axis + 1 for axis in axes))
    gathered = members.call((x, members.numbers(index_ndim), *aligned), (batched_axes, 0))
    index_axes = range(1, 1 + index_ndim)
    remaining_axes = range(1 + index_ndim, gathered.ndim)
    return members.permuted(
        gathered, (0, *remaining_axes[:index_axis], *index_axes, *remaining_axes[index_axis:])
    )


@operation(
    rule_free=True,
    rule=_gather_rule,
    structure=_gather_structure,
    reference=_gather_reference,
    element_at=_gather_element,
    gathers=True,
    kind=Kind.VIEW,
    can_fail=True,
    batch=_gather_members,
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
    arrays = [integers(index, x) for index in indices]
    requested = range(len(arrays)) if axes is None else axes
    indexed_axes = tuple(normalize_axis(axis, x.ndim) for axis in requested)
    if len(set(indexed_axes)) < len(indexed_axes) or len(indexed_axes) != len(arrays) or not arrays:
        raise ShapeError(
            "",
            f"{len(arrays)} index arrays do not fit axes {indexed_axes}",
            remedy="give an index array for each axis, and each axis once",
        )
    _require_integers(arrays)
    for index, axis in zip(arrays, indexed_axes, strict=True):
        bounds_checks.check_known(index, axis, x, "gather")
    remaining_ndim = x.ndim - len(indexed_axes)
    index_axis = (
        min(min(indexed_axes), remaining_ndim)
        if place is None
        else normalize_axis(place, remaining_ndim + 1)
    )
    return BoundCall((x, *arrays), (indexed_axes, index_axis))


@derived(
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
    indexed_axis = normalize_axis(0 if axis is None else axis, x.ndim)
    positions = integers(indices, x)
    _require_integers([positions])
    bounds_checks.check_known(positions, indexed_axis, x, "take")
    return _native.apply(gather.id, (x, positions), ((indexed_axis,), indexed_axis))


def integers(indices: Any, peer: Array | None = None) -> Array:
    """Return indices, an Array or a list, as an Array, on the device of `peer`."""
    if isinstance(indices, (list, tuple, range)):
        try:
            values = np.asarray(indices)
        except ValueError:
            rule = f"indices {indices!r} have rows of different lengths"
            raise ShapeError("", rule, remedy="give rows of equal lengths") from None
        return array(values if values.size else values.astype(np.int64), peer)
    return array(indices, peer)


def _take_along_axis_rule(types: tuple[Type, ...], axis: int) -> Inferred:
    x, indices = types
    _require_integers([indices])
    if x.shape and len(indices.shape) != len(x.shape):
        raise ShapeError(
            "",
            f"indices of {len(indices.shape)} axes do not fit an array of {len(x.shape)}",
            remedy="give as many axes: the others broadcast",
        )
    other_lengths = broadcast(_drop_axis(x.shape, axis), _drop_axis(indices.shape, axis))
    shape = (*other_lengths[:axis], indices.shape[axis], *other_lengths[axis:])
    return Inferred(((shape, x.dtype),), (x.dtype, indices.dtype))


def _drop_axis(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], *shape[axis + 1 :])


def _take_along_axis_reference(x: np.ndarray, indices: np.ndarray, axis: int) -> np.ndarray:
    other_lengths = np.broadcast_shapes(_drop_axis(x.shape, axis), _drop_axis(indices.shape, axis))
    shapes = [(*other_lengths[:axis], y.shape[axis], *other_lengths[axis:]) for y in (x, indices)]
    positions = bounds_checks.validated_indices(indices, axis, x.shape[axis])
    return np.take_along_axis(
        np.broadcast_to(x, shapes[0]), np.broadcast_to(positions, shapes[1]), axis
    )


def _take_along_axis_element(
    k: Body, at: ResultIndex, x: GatherSource, indices: GatherSource, axis: int
) -> Operand:
    index = normalized_index(k, at, indices.at(at), x.shape[axis])
    return x.at(with_axis_index(at, axis, index))


def _gathered_along_axis(x: Array, indices: Array, axis: int) -> Array:
    """Take by an index array for each axis; those of broadcast axes have one position for all."""
    ((shape, _),) = _take_along_axis_rule(
        tuple(Type(y.shape, y.dtype, y.device) for y in (x, indices)), axis
    ).results
    positions = [
        indices
        if at == axis
        else array(np.arange(x.shape[at]).reshape(-1, *(1,) * (len(shape) - 1 - at)), x)
        for at in range(x.ndim)
    ]
    zeros = array(np.zeros(shape, np.int64), x)
    return _native.apply(
        gather.id, (x, *positions[:-1], positions[-1] + zeros), (tuple(range(x.ndim)), 0)
    )


@operation(
    rule_free=True,
    rule=_take_along_axis_rule,
    reference=_take_along_axis_reference,
    element_at=_take_along_axis_element,
    kind=Kind.VIEW,
    can_fail=True,
    numpy=(np.take_along_axis,),
    batch_params=along_next_axis,
    samples=[
        SampleCall(((2, 3),), {"axis": 1}, ([[2, 0], [1, 1]],)),
        SampleCall(((2, 3),), {"axis": 0}, ([[-1, 0, 1]],)),
    ],
    expression=_gathered_along_axis,
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
    x = array(x)
    positions = integers(indices, x)
    indexed_axis = normalize_axis(axis, x.ndim)
    _require_integers([positions])
    bounds_checks.check_known(positions, indexed_axis, x, "take_along_axis")
    return BoundCall((x, positions), (indexed_axis,))
