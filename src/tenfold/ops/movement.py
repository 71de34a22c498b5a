"""Movement: views with permuted, reversed, added or removed axes of length 1. They are lazy and
have the elements of their input. Another spelling of a movement makes that movement's node.

>>> import tenfold as tn
>>> x = tn.zeros((2, 3))
>>> tn.moveaxis(x, 0, 1).base is x
True
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Array
from tenfold.core.index_map import IndexMap
from tenfold.core.op import BoundCall, SampleCall
from tenfold.core.op_decorators import array, derived, movement
from tenfold.core.shape_rules import (
    MAX_AXES,
    Axis,
    Shape,
    normalize_axes,
    normalize_axis,
    whole_axes,
)
from tenfold.core.structure import permuted_structure
from tenfold.errors import ShapeError
from tenfold.ops.indexing import index_view


def _permute(shape: Shape, axes: tuple[int, ...]) -> Shape:
    return tuple(shape[axis] for axis in axes)


def _permute_map(shape: Shape, axes: tuple[int, ...]) -> IndexMap:
    return tuple((axes.index(axis), 1, 0) for axis in range(len(axes)))


@movement(
    shape=_permute,
    bind_depends_on="ranks",
    shapes="permuted",
    structure=permuted_structure,
    view=True,
    index_map=_permute_map,
    method=True,
    numpy=(np.transpose,),
    samples=[
        SampleCall(((2, 3, 4),), positional=((2, 0, 1),)),
        SampleCall(((0, 1),), positional=((1, 0),)),
        SampleCall(((),), positional=((),)),
        SampleCall(((1, 2, 3, 1, 2, 2),), positional=((5, 0, 3, -2, 2, 1),)),
    ],
)
def permute_dims(x: Array, /, axes: Sequence[int] | None = None) -> BoundCall:
    """Return a view of `x` with its axes in the order `axes`, each once; reversed if None.

    Raises ShapeError when an axis is missing or named twice.

    >>> import tenfold as tn
    >>> tn.permute_dims(tn.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    x = array(x)
    if axes is None:
        return BoundCall((x,), (tuple(reversed(range(x.ndim))),))
    try:
        requested = tuple(axes)
    except TypeError:
        rule = f"axes {axes!r} is not a sequence of ints"
        raise ShapeError("", rule, remedy="list them all, as in (1, 0)") from None
    order = tuple(normalize_axis(axis, x.ndim) for axis in requested)
    if sorted(order) != list(range(x.ndim)):
        raise ShapeError(
            "", f"axes {requested} do not name each of {x.ndim} axes once", remedy="list them all"
        )
    return BoundCall((x,), (order,))


@derived(
    numpy=(np.moveaxis,),
    samples=[
        SampleCall(((2, 3, 4),), positional=(0, -1)),
        SampleCall(((2, 3, 4),), positional=((0, 1), (2, 0))),
    ],
)
def moveaxis(
    x: Array, source: int | tuple[int, ...], destination: int | tuple[int, ...], /
) -> Array:
    """Return a view of `x` with its axes `source` at the places `destination`; the others keep
    their order.

    >>> import tenfold as tn
    >>> tn.moveaxis(tn.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = array(x)
    sources, destinations = (_normalize_axis_list(axes, x.ndim) for axes in (source, destination))
    if len(sources) != len(destinations):
        raise ShapeError(
            "",
            f"{len(sources)} axes do not go to {len(destinations)} places",
            remedy="name a place for each axis",
        )
    order = [axis for axis in range(x.ndim) if axis not in sources]
    for destination_axis, source_axis in sorted(zip(destinations, sources, strict=True)):
        order.insert(destination_axis, source_axis)
    return permute_dims(x, order)


def _normalize_axis_list(axes: int | Sequence[int], ndim: int) -> tuple[int, ...]:
    """Axes counted from 0, in the order of the argument, each once."""
    axis_tuple = tuple(axes) if isinstance(axes, Sequence) else (axes,)
    normalize_axes(axis_tuple, ndim)
    return tuple(normalize_axis(axis, ndim) for axis in axis_tuple)


@derived(
    numpy=(np.swapaxes,),
    samples=[SampleCall(((2, 3, 4),), positional=(2, 0))],
)
def swapaxes(x: Array, axis1: int, axis2: int, /) -> Array:
    """Return a view of `x` with two axes exchanged.

    >>> import tenfold as tn
    >>> tn.swapaxes(tn.zeros((2, 3, 4)), 2, 0).shape
    (4, 3, 2)
    """
    x = array(x)
    order = list(range(x.ndim))
    first, second = normalize_axis(axis1, x.ndim), normalize_axis(axis2, x.ndim)
    order[first], order[second] = second, first
    return permute_dims(x, order)


@derived(
    numpy=(np.matrix_transpose, np.linalg.matrix_transpose),
    also=("linalg",),
    samples=[SampleCall(((2, 3),)), SampleCall(((2, 0, 3),))],
    section="linear-algebra",
)
def matrix_transpose(x: Array, /) -> Array:
    """Return a view of the matrices (..., m, n) of `x` transposed: (..., n, m); also `x.mT`.

    Raises ShapeError for fewer than two axes.

    >>> import tenfold as tn
    >>> tn.matrix_transpose(tn.asarray([[1, 2], [3, 4]])).tolist()
    [[1, 3], [2, 4]]
    """
    x = array(x)
    if x.ndim < 2:
        raise ShapeError(
            "", f"an array of {x.ndim} axes is not a matrix", remedy="make one with x[:, None]"
        )
    return _transposed(x)


_TRANSPOSED_ORDERS = tuple([((*range(n - 2), n - 1, n - 2),) for n in range(MAX_AXES + 1)])
"""By the number of axes the params of `permute_dims` that transpose the last two."""


def _transposed(x: Array) -> Array:
    """As `permute_dims`, without its checks, in a tenth of the time."""
    result: Array = _native.apply(permute_dims.id, (x,), _TRANSPOSED_ORDERS[x.ndim])
    return result


def _bound_by_rank(python: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return a function that makes nodes of `permute_dims`, by native code for known ranks."""
    return update_wrapper(permute_dims.with_call_cache(python), python, updated=())


@_bound_by_rank
def transpose(x: Array) -> Array:
    """`x.T`: the axes in reverse order, a view; of a matrix (m, n) the transposed one (n, m)."""
    return _transposed(x) if x.ndim == 2 else permute_dims(x)


@derived(
    numpy=(np.flip,),
    samples=[
        SampleCall(((2, 3),)),
        SampleCall(((2, 3),), {"axis": -1}),
        SampleCall(((2, 0, 3),), {"axis": (0, 2)}),
    ],
)
def flip(x: Array, /, axis: Axis = None) -> Array:
    """Return a view of `x` read backwards along `axis`, or along every axis if None.

    >>> import tenfold as tn
    >>> tn.flip(tn.asarray([1, 2, 3])).tolist()
    [3, 2, 1]
    """
    x = array(x)
    picks = list(whole_axes(x.shape))
    for flipped in normalize_axes(axis, x.ndim):
        length = x.shape[flipped]
        picks[flipped] = (length - 1, length, -1) if length > 1 else picks[flipped]
    return index_view(x, tuple(picks))


@derived(
    numpy=(np.expand_dims,),
    samples=[
        SampleCall(((2, 3),), {"axis": 1}),
        SampleCall(((2,),), {"axis": (0, -1)}),
        SampleCall(((),), {"axis": 0}),
    ],
)
def expand_dims(x: Array, /, axis: int | tuple[int, ...] = 0) -> Array:
    """Return a view of `x` with new axes of length 1 that stand at `axis` in the result.

    >>> import tenfold as tn
    >>> tn.expand_dims(tn.zeros((2, 3)), axis=(0, -1)).shape
    (1, 2, 3, 1)
    """
    x = array(x)
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    new_axes = normalize_axes(axis, x.ndim + count)
    return index_view(x, whole_axes(x.shape), new_axes)


@derived(
    numpy=(np.squeeze,),
    samples=[
        SampleCall(((1, 3, 1),), {"axis": 0}),
        SampleCall(((1, 3, 1),), {"axis": (0, -1)}),
        SampleCall(((1, 0),), {"axis": ()}),
    ],
)
def squeeze(x: Array, /, axis: Axis = None) -> Array:
    """Return a view of `x` without the axes `axis`, each of length 1; without all such if None.

    Raises ShapeError for an axis of another length.

    >>> import tenfold as tn
    >>> tn.squeeze(tn.zeros((1, 3, 1)), axis=0).shape
    (3, 1)
    """
    x = array(x)
    ones = tuple(position for position, length in enumerate(x.shape) if length == 1)
    axes = ones if axis is None else normalize_axes(axis, x.ndim)
    picks: list[Any] = list(whole_axes(x.shape))
    for dropped in axes:
        if x.shape[dropped] != 1:
            raise ShapeError(
                "",
                f"axis {dropped} of shape {x.shape} has length {x.shape[dropped]}, not 1",
                remedy="take one position of it, as in x[0]",
            )
        picks[dropped] = 0
    return index_view(x, tuple(picks))
