"""Access verification: a launch stays within its memory, writes no byte twice, and reads before it
overwrites.

Takes a LaunchSpace and the BufferExtents of its operands, raises VerifyError. Every decision
depends on strides and lengths, never on elements. They give the lowest and the highest byte of an
operand. Cells are disjoint where each stride exceeds the extent of smaller ones (a mixed radix).
Where operands share a buffer `core/strided_overlap.py` and `schedule/dependence.py` decide. A
gather's offset is bounded by its mask, and by checks that have not failed
(`schedule/value_ranges.py`).

    refuse_accesses(loop_space(launch), extents)
    refuse_hazards(loop_space(launch), extents)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tenfold.core.loop_ir import Kernel, KernelForm, operand_of
from tenfold.core.strided_overlap import OverlapVerdict, StridedRegion, overlap
from tenfold.dtypes import REAL_DTYPES
from tenfold.schedule.buffer_extents import BufferExtent
from tenfold.schedule.dependence import LoopSafety, independent, safe_loop_order
from tenfold.schedule.launch_space import LaunchSpace, violation
from tenfold.schedule.value_ranges import Intervals, ValueRanges


def refuse_accesses(space: LaunchSpace, extents: Mapping[int, BufferExtent]) -> None:
    """Refuse accesses out of bounds, and cells that are written twice."""
    kernel = space.kernel
    loaded = {operand_of(instruction) for instruction in kernel.body if instruction.name == "load"}
    gathered = {
        operand_of(instruction) for instruction in kernel.body if instruction.name == "gather"
    }
    for number, memory in enumerate(space.launch.memory):
        extent = extents.get(memory.item)
        if extent is None:
            raise violation(kernel, f"operand {number}: nothing is known of item {memory.item}")
        _refuse_misaligned(space, number)
        if number in loaded or memory.written:
            _refuse_out_of_bounds(kernel, number, space.region(number, extent.origin), extent)
        if memory.written and not kernel.form.is_scatter:
            _refuse_shared_cells(space, number)
    if gathered or kernel.form.is_scatter:
        _refuse_gathers(space, extents)


def _refuse_misaligned(space: LaunchSpace, number: int) -> None:
    """Refuse misaligned elements: all loads and stores claim alignment."""
    memory = space.launch.memory[number]
    size = REAL_DTYPES.get(memory.dtype, memory.dtype).itemsize
    steps = zip(space.lengths, space.strides[number], strict=True)
    strides = [stride for length, stride in steps if length > 1]
    if any(byte_count % size for byte_count in (memory.offset, *strides)):
        raise violation(space.kernel, f"operand {number}: {memory} is not aligned to {size} bytes")


def _refuse_out_of_bounds(
    kernel: Kernel, number: int, region: StridedRegion, extent: BufferExtent
) -> None:
    first, last = region.range
    if first < extent.low or extent.high < last:
        existing = f"bytes {extent.low} to {extent.high} exist"
        raise violation(kernel, f"operand {number} touches bytes {first} to {last}, but {existing}")


def _refuse_shared_cells(space: LaunchSpace, number: int) -> None:
    """Refuse cells that two indices write: two units could, at the same time."""
    kernel, region = space.kernel, space.region(number)
    (store, *other_stores) = [store for store in kernel.stores if store.operand == number]
    if other_stores:
        raise violation(kernel, f"operand {number} is written by {1 + len(other_stores)} stores")
    segments = kernel.form is KernelForm.SEGMENTS
    folds = bool(kernel.folds) and kernel.form is not KernelForm.MAP
    if segments or (folds and kernel.pass_of(store) % 2):
        # stored once, after the reduced axis; an entry of segments has one row
        shape, is_entry = [*region.shape], kernel.pass_of(store) % 2 == 0
        shape[kernel.folded - is_entry] = 1
        region = replace(region, shape=tuple(shape))
    if not _cells_disjoint(region):
        rule = f"operand {number} is written twice: {region.shape} cells, {region.strides} bytes"
        raise violation(kernel, f"{rule} apart")


def _cells_disjoint(region: StridedRegion) -> bool:
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
    """Refuse gathers whose offsets are not proved to be within the array."""
    kernel, launch = space.kernel, space.launch
    numbers = {i: p.number for i, p in enumerate(launch.parameters) if p.item < 0}
    ranges = ValueRanges(kernel.body, space.lengths, numbers)
    for position, instruction in enumerate(kernel.body):
        if instruction.name not in ("gather", "scatter"):
            continue
        facts = _facts_checked_before(kernel, position, ranges)
        offset = instruction.inputs[0]
        if instruction.name == "gather":
            operand, facts = operand_of(instruction), ranges.refine(instruction.inputs[1], facts)
        else:
            operand = kernel.stores[0].operand
        memory = launch.memory[operand]
        if any(low > high for low, high in facts.values()):
            continue  # the gather is never executed
        low, high = ranges.range_of(offset, facts)
        if low > high:
            continue
        size, extent = memory.dtype.itemsize, extents[memory.item]
        origin = memory.offset + extent.origin
        first, last = origin + low * size, origin + high * size + size
        if first < extent.low or extent.high < last:
            rule = (
                f"%{position} {instruction.name}s at offsets {low} to {high} of operand {operand}"
            )
            existing = f"bytes {extent.low} to {extent.high} exist"
            raise violation(kernel, f"{rule}, of which {existing}")


def _facts_checked_before(kernel: Kernel, position: int, ranges: ValueRanges) -> Intervals:
    """Facts that hold because no check before the instruction failed."""
    facts: Intervals = {}
    for number, instruction in enumerate(kernel.body[:position]):
        if instruction.name == "fail" and kernel.levels[number] <= kernel.levels[position]:
            facts = ranges.refine(instruction.inputs[0], facts, holds=False)
    return facts


def refuse_hazards(space: LaunchSpace, extents: Mapping[int, BufferExtent]) -> None:
    """Refuse reads of memory that the launch writes, unless all reads come first."""
    kernel, memory = space.kernel, space.launch.memory
    gathered = {
        operand_of(instruction) for instruction in kernel.body if instruction.name == "gather"
    }
    buffers = [extents[operand.item].buffer for operand in memory]
    for number, operand in enumerate(memory):
        if not operand.written:
            continue
        target = space.region(number, extents[operand.item].origin)
        for other_number, buffer in enumerate(buffers):
            if buffer != buffers[number] or other_number == number:
                continue
            if memory[other_number].written and other_number < number:
                continue  # tested already
            if other_number in gathered:
                raise violation(
                    kernel, f"operand {other_number} is gathered from what {number} writes"
                )
            read = space.region(other_number, extents[memory[other_number].item].origin)
            _refuse_hazard(space, (number, target), (other_number, read))


def _refuse_hazard(
    space: LaunchSpace, write: tuple[int, StridedRegion], access: tuple[int, StridedRegion]
) -> None:
    (number, target), (other_number, accessed) = write, access
    kernel, shared = space.kernel, overlap(target, accessed)
    if shared.disjoint:
        return
    if kernel.form is KernelForm.MAP and not kernel.operands[other_number].written:
        transposed = {number, other_number}.intersection(kernel.transposed_operands)
        if shared.verdict is OverlapVerdict.SAME and not transposed:
            return
        loop_order = safe_loop_order(target, [accessed])
        if loop_order.kind is LoopSafety.ANY and not transposed:
            return
        if (
            loop_order.kind is LoopSafety.FORWARD
            and space.launch.sequential
            and not kernel.transposed_operands
        ):
            return
        shared = replace(shared, reason=f"{shared.reason}; {loop_order}")
    raise violation(kernel, f"operands {number} and {other_number} are of one buffer: {shared}")


__all__ = ["refuse_accesses", "refuse_hazards"]
