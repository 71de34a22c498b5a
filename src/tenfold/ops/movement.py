"""Movement: the same elements at other indices. All lazy, all views of their input where they can be."""

from __future__ import annotations

import numpy as np

from tenfold._native import Array
from tenfold.errors import ShapeError
from tenfold.ir.declare import array, movement
from tenfold.ir.op import Call, Sample
from tenfold.ir.shape import Shape, broadcast, checked_shape, normalize_axis, reshaped


def _permuted(shape: Shape, axes: tuple[int, ...]) -> Shape:
    return tuple(shape[axis] for axis in axes)


@movement(
    shape=_permuted,
    reference=np.transpose,
    view=True,
    method=True,
    samples=[Sample(((2, 3, 4),), positional=((2, 0, 1),)), Sample(((0, 1),), positional=((1, 0),))],
)
def permute_dims(x: Array, /, axes: tuple[int, ...]) -> Call:
    """Return a view of `x` with its axes in the order `axes`: each axis of `x` once.

    >>> import tenfold as tn
    >>> tn.permute_dims(tn.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    x = array(x)
    order = tuple(normalize_axis(axis, x.ndim) for axis in axes)
    if sorted(order) != list(range(x.ndim)):
        raise ShapeError(
            "", f"axes {tuple(axes)} do not name each of {x.ndim} axes once", remedy="list them all"
        )
    return Call((x,), (order,))


@movement(
    shape=reshaped,
    reference=np.reshape,
    view=True,
    numpy=(np.reshape,),
    samples=[Sample(((2, 6),), positional=((3, -1),)), Sample(((0, 2),), positional=((0,),))],
)
def reshape(x: Array, /, shape: Shape, *, copy: bool | None = None) -> Call:
    """Return `x` with another shape and the same elements in row-major order; one length may be -1.

    `copy` is accepted for the standard's sake: values never change under a reader.
    Raises ShapeError when the numbers of elements differ.

    >>> import tenfold as tn
    >>> tn.reshape(tn.arange(6), (2, -1)).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    x = array(x)
    return Call((x,), (reshaped(x.shape, shape),))


def _broadcast_shape(shape: Shape, target: Shape) -> Shape:
    if broadcast(shape, target) != target:
        raise ShapeError("", f"shape {shape} does not broadcast to {target}")
    return target


@movement(
    shape=_broadcast_shape,
    reference=np.broadcast_to,
    numpy=(np.broadcast_to,),
    samples=[Sample(((1, 3),), positional=((2, 3),)), Sample(((),), positional=((0, 2),))],
)
def broadcast_to(x: Array, /, shape: Shape) -> Call:
    """Return `x` read as an array of `shape`: axes of length 1 and missing ones are repeated.

    >>> import tenfold as tn
    >>> tn.broadcast_to(tn.asarray([1, 2]), (2, 2)).tolist()
    [[1, 2], [1, 2]]
    """
    return Call((array(x),), (checked_shape(shape),))
