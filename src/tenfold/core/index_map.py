"""Index map (IndexMap): where loops over a space of axes read or write an array.

An index map has for each axis of the array (space axis or None, coefficient, start): its index is
`start + coefficient * index of that space axis`, or `start` alone. Axes of length 1 have index 0.

>>> seen_through(identity((4, 3)), ((1, 1, 0), (0, 2, 1)))
((1, 1, 0), (0, 2, 1))
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.core.shape_rules import Shape

Step = tuple[int | None, int, int]
Access = tuple[Step, ...]
FIXED: Step = (None, 0, 0)
ELSEWHERE: Access = ((None, -1, 0),)
"""Of what is read at indices that are computed: it must be in memory before."""


def identity(shape: Shape) -> Access:
    """Return the access of an array whose own axes are the space."""
    return tuple((axis, 1, 0) if length != 1 else FIXED for axis, length in enumerate(shape))


def broadcast(access: Access, shape: Shape, result: Shape) -> Access:
    """Return how an operand of `shape` is read when its `result` is read by `access`."""
    if shape == result and 1 not in shape:
        return access
    missing = len(result) - len(shape)
    return tuple(
        FIXED if length == 1 else access[missing + axis] for axis, length in enumerate(shape)
    )


def seen_through(access: Access, reads: Sequence[Step]) -> Access:
    """Return how the input of a view is read when the view is read by `access`."""
    return tuple(_composed(access, step) for step in reads)


def _composed(access: Access, step: Step) -> Step:
    axis, coefficient, start = step
    if axis is None:
        return (None, 0, start)
    outer, by, begin = access[axis]
    if outer is None:
        return (None, 0, start + coefficient * begin)
    return (outer, coefficient * by, start + coefficient * begin)


def placed(access: Access, axes: Sequence[int | None]) -> Access:
    """Return an access to own axes as one to the axes of a group: axis i is its axis axes[i]."""
    return tuple(
        step
        if step[0] is None
        else (axes[step[0]], *step[1:])
        if axes[step[0]] is not None
        else (None, 0, step[2])
        for step in access
    )


def strides_in(access: Access, strides: Sequence[int], ndim: int) -> tuple[tuple[int, ...], int]:
    """Return the stride for each space axis and the offset, in the unit of `strides`."""
    found, offset = [0] * ndim, 0
    for (axis, coefficient, start), stride in zip(access, strides, strict=True):
        offset += start * stride
        if axis is not None:
            found[axis] += coefficient * stride
    return tuple(found), offset
