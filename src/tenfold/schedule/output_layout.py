"""Output layout: the axis order in which a fresh result is stored.

Takes a Fusion, a group and the layouts of its inputs, hands on strides. As in NumPy a result lies
in row-major order unless everything it is computed from agrees on another one: then it is gone
through as one, and nothing is read across.

>>> laid_out((2, 3), (1, 0), 8)
(8, 16)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from tenfold.core.index_map import ELSEWHERE, placed, strides_in
from tenfold.core.shape_rules import Shape
from tenfold.schedule.fusion import FusedGroup, Fusion


def laid_out(shape: Shape, order: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Return the strides, in bytes, of an array whose axes lie in this order, outer ones first."""
    strides, step = [0] * len(shape), itemsize
    for axis in reversed(order):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)


def agreed_order(
    fusion: Fusion, group: FusedGroup, layout: Callable[[int], tuple[int, ...]]
) -> tuple[int, ...] | None:
    """Return the order of axes that all operands of a map agree on, or None: row-major order."""
    space = group.space
    if (group.axis is not None and not group.scanned) or len(space) < 2:
        return None
    long = [axis for axis, length in enumerate(space) if length > 1]
    found: list[tuple[int, ...]] = []
    for root in group.roots:
        if group.roots[root] != tuple(range(len(space))):
            return None
        for use in fusion.uses(root):
            if use.item in group.roots:
                continue
            if use.access == ELSEWHERE:
                return None
            access = placed(use.access, group.roots[root])
            found.append(strides_in(access, layout(use.item), len(space))[0])
    whole = [strides for strides in found if all(strides[axis] for axis in long)]
    if not whole:
        return None
    order = sorted(long, key=lambda axis: -abs(whole[0][axis]))
    if order == long or not all(_falls(strides, order) for strides in found):
        return None
    return (*(axis for axis in range(len(space)) if axis not in long), *order)


def _falls(strides: Sequence[int], order: Sequence[int]) -> bool:
    """Whether strides fall in this order; where something is repeated it has none."""
    left = [abs(strides[axis]) for axis in order if strides[axis]]
    return all(outer >= inner for outer, inner in pairwise(left))


def loop_order(space: Shape, strides: Sequence[int]) -> list[int]:
    """Return the axes as loops go through memory that is written with these strides."""
    axes = list(range(len(space)))
    if any(space[axis] > 1 and not strides[axis] for axis in axes):
        return axes
    return sorted(axes, key=lambda axis: (space[axis] > 1, -abs(strides[axis])))


__all__ = ["agreed_order", "laid_out", "loop_order"]
