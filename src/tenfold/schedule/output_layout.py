"""Output layout: the axis order of a new result in memory.

Takes a Fusion, a group and the layouts of its inputs, hands on strides. As in NumPy a result has
row-major order, unless all operands share another one. Then the loops coalesce, and every operand
is contiguous.

>>> strides_in_order((2, 3), (1, 0), 8)
(8, 16)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from tenfold.core.index_map import COMPUTED_INDEX, remap_axes, strides_in
from tenfold.core.shape_rules import Shape
from tenfold.schedule.fusion import FusedGroup, Fusion


def strides_in_order(shape: Shape, order: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Return the strides, in bytes, of an array with this axis order, outer axes first."""
    strides, step = [0] * len(shape), itemsize
    for axis in reversed(order):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)


def common_axis_order(
    fusion: Fusion, group: FusedGroup, layout: Callable[[int], tuple[int, ...]]
) -> tuple[int, ...] | None:
    """Return the common axis order of all operands of a map, or None: row-major order."""
    space = group.space
    if (group.axis is not None and not group.scanned) or len(space) < 2:
        return None
    long_axes = [axis for axis, length in enumerate(space) if length > 1]
    operand_strides: list[tuple[int, ...]] = []
    for root in group.roots:
        if group.roots[root] != tuple(range(len(space))):
            return None
        for read in fusion.memory_reads(root):
            if read.item in group.roots:
                continue
            if read.access == COMPUTED_INDEX:
                return None
            access = remap_axes(read.access, group.roots[root])
            operand_strides.append(strides_in(access, layout(read.item), len(space))[0])
    unrepeated = [
        strides for strides in operand_strides if all(strides[axis] for axis in long_axes)
    ]
    if not unrepeated:
        return None
    order = sorted(long_axes, key=lambda axis: -abs(unrepeated[0][axis]))
    if order == long_axes or not all(_is_descending(strides, order) for strides in operand_strides):
        return None
    return (*(axis for axis in range(len(space)) if axis not in long_axes), *order)


def _is_descending(strides: Sequence[int], order: Sequence[int]) -> bool:
    """Whether nonzero strides descend in this order."""
    nonzero = [abs(strides[axis]) for axis in order if strides[axis]]
    return all(outer >= inner for outer, inner in pairwise(nonzero))


def loop_order(space: Shape, strides: Sequence[int]) -> list[int]:
    """Return the loop order of axes for an output with these strides."""
    axes = list(range(len(space)))
    if any(space[axis] > 1 and not strides[axis] for axis in axes):
        return axes
    return sorted(axes, key=lambda axis: (space[axis] > 1, -abs(strides[axis])))


__all__ = ["common_axis_order", "loop_order", "strides_in_order"]
