"""Reshape and broadcast: lazy views of the same elements in another shape.

A reshape is a view where NumPy's would be: where strides can read the elements. Views of arrays in
row-major order are recognised by their chain of movements, not by memory.

>>> import tenfold as tn
>>> x = tn.zeros((2, 3))
>>> tn.reshape(x, (6,)).base is x, tn.reshape(x.T, (6,)).base is x.T
(True, False)
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import numpy as np

from tenfold import _native
from tenfold._native import Array
from tenfold.core.array_facts import ArrayFacts
from tenfold.core.index_map import FIXED, IndexMap
from tenfold.core.op import BoundCall, SampleCall
from tenfold.core.op_decorators import array, derived, movement
from tenfold.core.shape_rules import (
    Shape,
    broadcast,
    checked_shape,
    normalize_axis,
    reshaped,
    reshaped_strides,
    row_major,
)
from tenfold.errors import ShapeError
from tenfold.ops.indexing import capture

if TYPE_CHECKING:
    from tenfold.ops.batch_rules import Members


def _reshape_inverse(values: Array, x: Array) -> Array:
    return _native.apply(reshape.id, (values,), (x.shape,))


@movement(
    bind_depends_on="types of wholes",
    shape=reshaped,
    view=True,
    inverse_view=_reshape_inverse,
    strides=reshaped_strides,
    method=True,
    numpy=(np.reshape,),
    batch_params=lambda length, shape: ((length, *shape),),
    samples=[
        SampleCall(((2, 6),), positional=((3, -1),)),
        SampleCall(((0, 2),), positional=((0,),)),
        SampleCall(((),), positional=((1, 1),)),
        SampleCall(((2, 3, 4),), positional=(-1,)),
    ],
)
def reshape(x: Array, /, shape: Shape | int, *, copy: bool | None = None) -> BoundCall:
    """Return `x` with another shape and the same elements in row-major order; one length may be -1.

    A view of `x` unless `x` is itself a view whose elements do not lie as `shape` would read them,
    such as a transposed one; or `copy` is True. Raises ShapeError when the numbers of elements
    differ, and for `copy=False` when there can be no view.

    >>> import tenfold as tn
    >>> tn.reshape(tn.arange(6), (2, -1)).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    x = array(x)
    target = reshaped(x.shape, shape)
    viewable = not copy and _can_view(x, target)
    if copy is False and not viewable:
        raise ShapeError(
            "", f"shape {x.shape} read as {target} is not a view here", remedy="allow a copy"
        )
    return BoundCall((x if viewable else capture(x),), (target,))


_view_strides: ArrayFacts[Shape | None] = ArrayFacts()
"""The strides of views in their last bases."""


def forget_strides(x: Array) -> None:
    """Forget the strides of a view that has become another one."""
    _view_strides.discard(x)


def _can_view(x: Array, target_shape: Shape) -> bool:
    """Whether strides exist that read the elements of `x` in the target shape, as in NumPy."""
    strides = _strides_of(x)
    return strides is not None and reshaped_strides(x.shape, strides, target_shape) is not None


def _strides_of(x: Array) -> Shape | None:
    """Return the strides of a view in its last base, in elements; None where it has none.

    They are cached, so that a chain of n reshaped views takes linear time.
    """
    chain = []
    base = x
    while base.base is not None and base not in _view_strides:
        chain.append(base)
        base = base.base
    shape = base.shape
    strides = row_major(shape) if base.base is None else _view_strides[base]
    for view in reversed(chain):
        node = _native.node_of(view)
        if strides is not None:
            strides = node.op.view_strides(shape, strides, node.params, view.ndim)
        shape = view.shape
    if chain:
        _view_strides[x] = strides
    return strides


def _broadcast_shape(shape: Shape, target: Shape, first_axis: int) -> Shape:
    """Return `target` if `shape` broadcasts to it from axis `first_axis` on."""
    target_lengths = target[max(first_axis, 0) :][: len(shape)]
    fits = first_axis >= 0 and len(target_lengths) == len(shape)
    if not fits or any(n not in (1, m) for n, m in zip(shape, target_lengths, strict=True)):
        position = (
            f"at axis {first_axis}" if first_axis + len(shape) < len(target) else "at the last axes"
        )
        raise ShapeError(
            "",
            f"shape {shape} does not broadcast to {target} {position}",
            remedy="its lengths must be 1 or those of the axes at which it stands",
        )
    return target


def _broadcast_reference(x: np.ndarray, target: Shape, first_axis: int) -> np.ndarray:
    expanded_shape = (*x.shape, *(1,) * (len(target) - first_axis - x.ndim))
    return np.broadcast_to(x.reshape(expanded_shape), target)


def _broadcast_map(shape: Shape, target: Shape, first_axis: int) -> IndexMap:
    return tuple(
        (first_axis + axis, 1, 0) if length == target[first_axis + axis] else FIXED
        for axis, length in enumerate(shape)
    )


def _broadcast_members(members: Members, target: Shape, first_axis: int) -> Array:
    x = members.spread(0, 0, first_axis)
    result: Array = members.call((x,), ((members.length, *target), 0))
    return result


@movement(
    shape=_broadcast_shape,
    reference=_broadcast_reference,
    view=True,
    index_map=_broadcast_map,
    rebind=lambda x, shape, first: BoundCall((x,), (checked_shape(shape), operator.index(first))),
    numpy=(np.broadcast_to,),
    batch=_broadcast_members,
    samples=[
        SampleCall(((1, 3),), positional=((2, 3),)),
        SampleCall(((),), positional=((0, 2),)),
        SampleCall(((1, 2),), positional=((2, 1, 3, 2),)),
    ],
)
def broadcast_to(x: Array, /, shape: Shape | int, *, axis: int | None = None) -> BoundCall:
    """Return `x` read as an array of `shape`: axes of length 1 and missing ones are repeated. The
    axes of `x` stand at the last axes of `shape`, or with the first of them at `axis`.

    Raises ShapeError when a length is neither 1 nor that of the axis it stands at.

    >>> import tenfold as tn
    >>> tn.broadcast_to(tn.asarray([1, 2]), (2, 2)).tolist()
    [[1, 2], [1, 2]]
    >>> tn.broadcast_to(tn.asarray([1, 2]), (2, 2), axis=0).tolist()
    [[1, 1], [2, 2]]
    """
    x = array(x)
    target = checked_shape(shape, x.dtype.itemsize)
    first_axis = len(target) - x.ndim if axis is None else normalize_axis(axis, len(target))
    return BoundCall((x,), (target, first_axis))


@derived(
    numpy=(np.broadcast_arrays,),
    samples=[SampleCall(((2, 1), (3,))), SampleCall(((0, 1), ()))],
)
def broadcast_arrays(*arrays: Array) -> tuple[Array, ...]:
    """Return `arrays` read in the shape that they all broadcast to, as a tuple of views.

    >>> import tenfold as tn
    >>> [x.tolist() for x in tn.broadcast_arrays(tn.asarray([[1], [2]]), tn.asarray([3, 4]))]
    [[[1, 1], [2, 2]], [[3, 4], [3, 4]]]
    """
    operands = [array(x) for x in arrays]
    shape = broadcast(*(x.shape for x in operands))
    return tuple(broadcast_to(x, shape) for x in operands)


@derived(reference=np.broadcast_shapes)
def broadcast_shapes(*shapes: Shape) -> Shape:
    """Return the shape that all `shapes` broadcast to. Raises ShapeError when there is none.

    >>> import tenfold as tn
    >>> tn.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    return broadcast(*(checked_shape(shape) for shape in shapes))
