"""Index map (IndexMap): where loops over a space of axes read or write an array.

An index map has for each axis of the array (space axis or None, coefficient, start): its index is
`start + coefficient * index of that space axis`, or `start` alone. Axes of length 1 have index 0.

>>> compose_view(identity((4, 3)), ((1, 1, 0), (0, 2, 1)))
((1, 1, 0), (0, 2, 1))
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.core.shape_rules import Shape

AxisMap = tuple[int | None, int, int]
IndexMap = tuple[AxisMap, ...]
FIXED: AxisMap = (None, 0, 0)
COMPUTED_INDEX: IndexMap = ((None, -1, 0),)
"""The access of an operand that is read at computed indices: it must be in memory already."""


def identity(shape: Shape) -> IndexMap:
    """Return the access of an array whose axes are the space itself."""
    return tuple([(axis, 1, 0) if length != 1 else FIXED for axis, length in enumerate(shape)])


def broadcast(access: IndexMap, shape: Shape, result: Shape) -> IndexMap:
    """Return how an operand of `shape` is read when its `result` is read by `access`."""
    if shape == result and 1 not in shape:
        return access
    missing = len(result) - len(shape)
    return tuple(
        [FIXED if length == 1 else access[missing + axis] for axis, length in enumerate(shape)]
    )


def compose_view(access: IndexMap, reads: Sequence[AxisMap]) -> IndexMap:
    """Return how the input of a view is read when the view is read by `access`."""
    return tuple([_compose_axis(access, axis_map) for axis_map in reads])


def _compose_axis(access: IndexMap, axis_map: AxisMap) -> AxisMap:
    axis, coefficient, start = axis_map
    if axis is None:
        return (None, 0, start)
    outer, outer_coefficient, outer_start = access[axis]
    if outer is None:
        return (None, 0, start + coefficient * outer_start)
    return (outer, coefficient * outer_coefficient, start + coefficient * outer_start)


def remap_axes(access: IndexMap, axes: Sequence[int | None]) -> IndexMap:
    """Return an access with axis i of its space replaced by axis `axes[i]` of another space."""
    return tuple(
        [
            axis_map
            if axis_map[0] is None
            else (axes[axis_map[0]], *axis_map[1:])
            if axes[axis_map[0]] is not None
            else (None, 0, axis_map[2])
            for axis_map in access
        ]
    )


def strides_in(access: IndexMap, strides: Sequence[int], ndim: int) -> tuple[tuple[int, ...], int]:
    """Return the stride for each space axis and the offset, in the unit of `strides`."""
    space_strides, offset = [0] * ndim, 0
    for (axis, coefficient, start), stride in zip(access, strides, strict=True):
        offset += start * stride
        if axis is not None:
            space_strides[axis] += coefficient * stride
    return tuple(space_strides), offset
