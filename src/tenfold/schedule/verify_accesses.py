"""Access verification: a launch stays within its memory, writes no byte twice, and reads before it
overwrites.

Takes a LaunchSpace and the BufferExtents of its operands, raises VerifyError. All is decided on
strides and lengths, never on elements. The lowest and the highest byte of an operand follow from
them. Cells are disjoint where each stride steps over all that smaller ones reach (a mixed radix).
Where operands share a buffer `schedule/strided_overlap.py` and `schedule/dependence.py` decide. A
gather's offset is bounded by its mask, and by checks that have not failed
(`schedule/value_ranges.py`).

    refuse_accesses(loop_space(launch), extents)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tenfold.core.loop_ir import Kernel, operand_of
from tenfold.dtypes import PARTS
from tenfold.schedule.buffer_extents import BufferExtent
from tenfold.schedule.dependence import LoopSafety, independent, order
from tenfold.schedule.launch_space import LaunchSpace, broken
from tenfold.schedule.strided_overlap import OverlapVerdict, StridedRegion, overlap
from tenfold.schedule.value_ranges import Facts, ValueRanges


def refuse_accesses(space: LaunchSpace, extents: Mapping[int, BufferExtent]) -> None:
    """Refuse accesses out of bounds, cells that are written twice, and hazards in place."""
    kernel = space.kernel
    read = {operand_of(made) for made in kernel.body if made.name == "load"}
    gathered = {operand_of(made) for made in kernel.body if made.name == "gather"}
    for number, memory in enumerate(space.launch.memory):
        extent = extents.get(memory.item)
        if extent is None:
            raise broken(kernel, f"operand {number}: nothing is known of item {memory.item}")
        _refuse_elements_apart(space, number)
        if number in read or memory.written:
            _refuse_out_of_bounds(kernel, number, space.region(number, extent.origin), extent)
        if memory.written:
            _refuse_shared_cells(space, number)
    if gathered:
        _refuse_gathers(space, extents)
    _refuse_hazards(space, extents, gathered)


def _refuse_elements_apart(space: LaunchSpace, number: int) -> None:
    """Refuse elements that are not aligned as elements, which all loads and stores claim."""
    memory = space.launch.memory[number]
    size = PARTS.get(memory.dtype, memory.dtype).itemsize
    steps = zip(space.lengths, space.strides[number], strict=True)
    strides = [stride for length, stride in steps if length > 1]
    if any(each % size for each in (memory.offset, *strides)):
        raise broken(space.kernel, f"operand {number}: {memory} is not aligned to {size} bytes")


def _refuse_out_of_bounds(
    kernel: Kernel, number: int, region: StridedRegion, extent: BufferExtent
) -> None:
    first, last = region.range
    if first < extent.low or extent.high < last:
        there = f"bytes {extent.low} to {extent.high} exist"
        raise broken(kernel, f"operand {number} touches bytes {first} to {last}, but {there}")


def _refuse_shared_cells(space: LaunchSpace, number: int) -> None:
    """Refuse cells that two indices write: two units could, at the same time."""
    kernel, region = space.kernel, space.region(number)
    (store, *others) = [store for store in kernel.stores if store.operand == number]
    if others:
        raise broken(kernel, f"operand {number} is written by {1 + len(others)} stores")
    folds = bool(kernel.folds) and kernel.form != "map"
    if folds and kernel.pass_of(store) % 2:  # once, when the folded axis has been gone through
        shape = [*region.shape]
        shape[kernel.folded] = 1
        region = replace(region, shape=tuple(shape))
    if not _is_apart(region):
        rule = f"operand {number} is written twice: {region.shape} cells, {region.strides} bytes"
        raise broken(kernel, f"{rule} apart")


def _is_apart(region: StridedRegion) -> bool:
    """Whether no two cells share a byte."""
    reach = region.itemsize
    for stride, length in sorted(
        (abs(stride), length)
        for length, stride in zip(region.shape, region.strides, strict=True)
        if length > 1
    ):
        if stride < reach:
            return all(independent(region, [], axis) for axis in range(len(region.shape)))
        reach += stride * (length - 1)
    return True


def _refuse_gathers(space: LaunchSpace, extents: Mapping[int, BufferExtent]) -> None:
    """Refuse offsets that are not shown to lie in the array where they are read."""
    kernel, launch = space.kernel, space.launch
    numbers = {i: p.number for i, p in enumerate(launch.parameters) if p.item < 0}
    ranges = ValueRanges(kernel.body, space.lengths, numbers)
    for position, made in enumerate(kernel.body):
        if made.name != "gather":
            continue
        offset, valid = made.inputs
        memory = launch.memory[operand_of(made)]
        facts = ranges.where(valid, _checked_before(kernel, position, ranges))
        if any(low > high for low, high in facts.values()):
            continue  # it is never read
        low, high = ranges.of(offset, facts)
        if low > high:
            continue
        size, extent = memory.dtype.itemsize, extents[memory.item]
        origin = memory.offset + extent.origin
        first, last = origin + low * size, origin + high * size + size
        if first < extent.low or extent.high < last:
            rule = f"%{position} gathers at offsets {low} to {high} of operand {operand_of(made)}"
            there = f"bytes {extent.low} to {extent.high} exist"
            raise broken(kernel, f"{rule}, of which {there}")


def _checked_before(kernel: Kernel, position: int, ranges: ValueRanges) -> Facts:
    """What is known as the launch has not failed: of conditions that are looked at before."""
    facts: Facts = {}
    for number, made in enumerate(kernel.body[:position]):
        if made.name == "fail" and kernel.levels[number] <= kernel.levels[position]:
            facts = ranges.where(made.inputs[0], facts, holds=False)
    return facts


def _refuse_hazards(
    space: LaunchSpace, extents: Mapping[int, BufferExtent], gathered: set[int]
) -> None:
    """Refuse reads of memory that the launch writes, unless they come first whatever the units."""
    kernel, memory = space.kernel, space.launch.memory
    buffers = [extents[each.item].buffer for each in memory]
    for number, each in enumerate(memory):
        if not each.written:
            continue
        target = space.region(number, extents[each.item].origin)
        for other, buffer in enumerate(buffers):
            if buffer != buffers[number] or other == number:
                continue
            if memory[other].written and other < number:
                continue  # it has been asked
            if other in gathered:
                raise broken(kernel, f"operand {other} is gathered from what {number} writes")
            read = space.region(other, extents[memory[other].item].origin)
            _refuse_hazard(space, (number, target), (other, read))


def _refuse_hazard(
    space: LaunchSpace, one: tuple[int, StridedRegion], two: tuple[int, StridedRegion]
) -> None:
    (number, target), (other, read) = one, two
    kernel, found = space.kernel, overlap(target, read)
    if found.disjoint:
        return
    if kernel.form == "map" and not kernel.operands[other].written:
        across = {number, other}.intersection(kernel.across)
        if found.verdict is OverlapVerdict.SAME and not across:
            return
        directions = order(target, [read])
        if directions.kind is LoopSafety.ANY and not across:
            return
        if directions.kind is LoopSafety.FORWARD and space.launch.upwards and not kernel.across:
            return
        found = replace(found, reason=f"{found.reason}; {directions}")
    raise broken(kernel, f"operands {number} and {other} are of one buffer: {found}")


__all__ = ["refuse_accesses"]
