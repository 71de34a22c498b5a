"""Output layout: the strides of each item in memory.

A pass. Takes the ordered groups, calls and views, hands on the layout of each item that they read
or store. As in NumPy a result has row-major order, unless all operands share another one. Then the
loops coalesce, and every operand is contiguous. A view has the strides of its base.

>>> strides_in_order((2, 3), (1, 0), 8)
(8, 16)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from tenfold.core.index_map import COMPUTED_INDEX, remap_axes, strides_in
from tenfold.core.shape_rules import Shape
from tenfold.schedule.lowering import contiguous_strides
from tenfold.schedule.pass_rules import require
from tenfold.schedule.schedule_ir import FusedGroup, ItemKind, Layout, Schedule, ScheduleItem


def choose_layouts(schedule: Schedule) -> Schedule:
    """Choose the strides of all results, and find those of values and views."""
    layouts: dict[int, Layout] = {}
    offsets: dict[int, int] = {}
    for number, item in enumerate(schedule.items):
        if item.kind is ItemKind.VALUE:
            value = schedule.graph.nodes[item.position].value()
            # a placeholder of a traced rule has none: the device raises when it is read
            strides = value.strides if value is not None else ()
            layouts[number] = strides or contiguous_strides(item.shape, item.dtype.itemsize)
    for unit in schedule.order:
        if isinstance(unit, FusedGroup):
            _choose_group_layouts(schedule, unit, layouts)
            continue
        item, alias = schedule.items[unit], schedule.aliases.get(unit)
        if alias is not None:
            strides, offset = strides_in(alias.access, layouts[alias.item], len(item.shape))
            layouts[unit], offsets[unit] = strides, offset
        else:
            view = _copy_strides(schedule, item, layouts) if item.kind is ItemKind.COPY else None
            layouts[unit] = (
                contiguous_strides(item.shape, item.dtype.itemsize) if view is None else view
            )
            if view is not None:
                offsets[unit] = 0
    for piece in schedule.concat_of:
        layouts.pop(piece, None)
    return schedule.updated(layouts=layouts, alias_offsets=offsets)


def verify_layouts(schedule: Schedule) -> None:
    """Values and views have the strides of their memory; a result is dense, in some axis order, or
    has the layout of the item that it overwrites.
    """
    base_of = {concat: base for base, concat in schedule.overwriter_of.items()}
    for number, strides in schedule.layouts.items():
        item = schedule.items[number]
        require(len(strides) == len(item.shape), "item {} has the strides {}", number, strides)
        if item.kind is ItemKind.VALUE:
            value = schedule.graph.nodes[item.position].value()
            row_major = contiguous_strides(item.shape, item.dtype.itemsize)
            same = value is None or strides == (value.strides or row_major)
            require(same, "value {} has other strides than {}", number, strides)
        elif number in base_of:
            same = strides == schedule.layouts[base_of[number]]
            require(same, "item {} has another layout than the item it overwrites", number)
        elif number not in schedule.alias_offsets and item.size:
            dense = _is_dense(item, strides)
            require(dense, "result {} of {} has the strides {}", number, item.shape, strides)
    for unit in schedule.order:
        for root in unit.outputs if isinstance(unit, FusedGroup) else (unit,):
            number = schedule.concat_of.get(root, root)
            require(number in schedule.layouts, "item {} in memory has no layout", number)


def _is_dense(item: ScheduleItem, strides: Layout) -> bool:
    """Whether strides enumerate the elements of a shape without gaps and overlaps."""
    step = item.dtype.itemsize
    for stride, length in sorted(zip(strides, item.shape, strict=True)):
        if length != 1:
            if stride != step:
                return False
            step *= length
    return True


def _copy_strides(
    schedule: Schedule, item: ScheduleItem, layouts: Mapping[int, Layout]
) -> Layout | None:
    """The strides of a view with other strides; None where it must be copied."""
    (source,) = item.inputs
    node, source_item = schedule.graph.nodes[item.position], schedule.items[source]
    strides = tuple([stride // source_item.dtype.itemsize for stride in layouts[source]])
    found = node.op.lowering.strides(source_item.shape, strides, *node.params)
    if found is None or item.size == 0:
        return None
    return tuple([stride * item.dtype.itemsize for stride in found])


def _choose_group_layouts(
    schedule: Schedule, group: FusedGroup, layouts: dict[int, Layout]
) -> None:
    """Give new results the common axis order of their operands, if there is one."""
    order = common_axis_order(group, layouts)
    for root in group.outputs:
        item = schedule.items[root]
        if order is None or _is_initial(schedule, root):
            layouts[root] = contiguous_strides(item.shape, item.dtype.itemsize)
        else:
            layouts[root] = strides_in_order(item.shape, order, item.dtype.itemsize)
        concat = schedule.concat_of.get(root, root)
        if concat not in layouts:
            item = schedule.items[concat]
            layouts[concat] = (
                layouts[item.base]
                if item.base >= 0
                else contiguous_strides(item.shape, item.dtype.itemsize)
            )


def _is_initial(schedule: Schedule, number: int) -> bool:
    """Whether a scatter reads an item, in row-major order, as the initial values of its cells."""
    return any(item.initial == number for item in schedule.items)


def strides_in_order(shape: Shape, order: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Return the strides, in bytes, of an array with this axis order, outer axes first."""
    strides, step = [0] * len(shape), itemsize
    for axis in reversed(order):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)


def common_axis_order(group: FusedGroup, layouts: Mapping[int, Layout]) -> tuple[int, ...] | None:
    """Return the common axis order of all operands of a map, or None: row-major order."""
    space = group.space
    if (group.axis is not None and not group.scanned) or group.scattered or len(space) < 2:
        return None
    long_axes = [axis for axis, length in enumerate(space) if length > 1]
    operand_strides: list[Layout] = []
    for root, embedding in group.roots.items():
        if embedding != tuple(range(len(space))):
            return None
        for read in group.root_reads[root]:
            if read.item in group.roots:
                continue
            if read.access == COMPUTED_INDEX:
                return None
            access = remap_axes(read.access, embedding)
            operand_strides.append(strides_in(access, layouts[read.item], len(space))[0])
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


__all__ = ["choose_layouts", "loop_order", "strides_in_order", "verify_layouts"]
