"""Loop schedule: the order, tiling, vectorisation and threading of a kernel's loops.

A pass. Takes groups and layouts, hands on the Launch of each group: the Kernel with its axes in
order, the sizes of this launch, the number of units of work and the scratch memory of each thread.
Nothing here changes a result: the tree of a fold depends on lengths alone, whatever the form.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace

from tenfold.core.canonical_reduction import BLOCK, LANES
from tenfold.core.loop_ir import SEGMENT_CHUNK, SMALL_STEPS, Kernel, KernelForm, KernelOperand
from tenfold.core.scalar_ir import PRIMITIVES
from tenfold.core.shape_rules import product
from tenfold.core.symbolic.sym_int import largest, smallest
from tenfold.dtypes import REAL_DTYPES
from tenfold.schedule.buffer_extents import extents_of
from tenfold.schedule.launch_space import loop_space
from tenfold.schedule.lowering import Lowering, merged_axes, with_axes
from tenfold.schedule.output_layout import loop_order
from tenfold.schedule.pass_rules import require
from tenfold.schedule.scatter_loops import scatter_form, scatter_partition, scatter_scratch
from tenfold.schedule.schedule_ir import (
    FusedGroup,
    Launch,
    Schedule,
    UnorderedOperand,
)
from tenfold.schedule.target import Target
from tenfold.schedule.thread_launch import num_threads, thread_kernel
from tenfold.schedule.vector_width import (
    column_lanes,
    eliminate_dead_code,
    gathered_axes,
    map_lanes,
    serial_elements,
    weight_of,
)
from tenfold.schedule.verify_accesses import refuse_accesses
from tenfold.schedule.verify_kernel import verify_kernel
from tenfold.schedule.verify_units import refuse_units


def schedule_loops(schedule: Schedule) -> Schedule:
    """Lower each group, and choose its loops; a group without elements has no launch."""
    launches = {
        unit.number: _LoopScheduler(Lowering(schedule, unit), schedule.target).launch()
        for unit in schedule.order
        if isinstance(unit, FusedGroup) and product(unit.space) != 0
    }
    return schedule.updated(launches=launches)


def verify_loops(schedule: Schedule) -> None:
    """Each launch covers its loops once, within its buffers, and stores the group's outputs."""
    extents = extents_of(schedule) if schedule.launches else {}
    for group in schedule.groups:
        launch = schedule.launches.get(group.number)
        if launch is None:
            require(not group.outputs or 0 in group.space, "group {} is not run", group.number)
            continue
        stored = {schedule.concat_of.get(root, root) for root in group.outputs}
        written = {memory.item for memory in launch.memory if memory.written}
        require(stored == written, "group {} stores {}, not {}", group.number, written, stored)
        verify_kernel(launch.kernel)
        space = loop_space(launch)
        refuse_units(space)
        refuse_accesses(space, extents)


class _LoopScheduler:
    def __init__(self, lowering: Lowering, target: Target) -> None:
        self.group = lowering.group
        self.simd, self.caches, self.work = target.simd, target.caches, target.work
        self.block = target.block
        self.space = lowering.group.space
        self.reduced_axis = lowering.group.axis
        self.segmented = lowering.group.offsets >= 0
        body, stores = eliminate_dead_code(lowering.body.instructions, lowering.stores)
        self.body, self.stores = body, stores
        (root, *_) = lowering.group.roots
        self.cells = lowering.items[root].size
        """The cells of the result of a scatter."""
        self.memory, self.parameters = tuple(lowering.memory), tuple(lowering.parameters)
        self.gathers = gathered_axes(self.body, self.memory)
        self.form = KernelForm.MAP
        self.smallest_range = max(
            target.work.min_range_elements, serial_elements(body, target) // 2
        )
        """Elements of the smallest range: half of the work for which one thread suffices."""
        self.loops = self._choose_loops()
        self.lengths = [product([self.space[axis] for axis in run]) for run in self.loops]

    def _order(self) -> tuple[int, ...]:
        """The axes in loop order; those of length 1, without loops, come first."""
        loop_axes = [axis for loop in self.loops for axis in loop]
        return (*(axis for axis in range(len(self.space)) if axis not in loop_axes), *loop_axes)

    def _choose_loops(self) -> list[list[int]]:
        """Order and merge the axes; the last loop is the packet axis."""
        axes = list(range(len(self.space)))
        index_axes = {
            int(str(instruction.data)) for instruction in self.body if instruction.name == "index"
        }
        self.unmerged_axes = index_axes - {self.reduced_axis}
        if self.group.scattered:  # elements of one cell are combined in row-major order
            self.form = KernelForm.SCATTER
            return merged_axes(axes, self.space, self.memory, self.unmerged_axes) or [[]]
        if self.segmented:
            self.form = KernelForm.SEGMENTS
            merged = merged_axes(axes[2:], self.space, self.memory, self.unmerged_axes)
            return [*merged[:-1], [0], [1], *merged[-1:]]
        if self.reduced_axis is None:
            output = next(memory for memory in self.memory if memory.written)
            axis_order = loop_order(self.space, output.strides)
            loops = merged_axes(axis_order, self.space, self.memory, self.unmerged_axes)
            return self._with_long_packet_axis(self._with_tile_axis(loops)) or [[]]
        packet_axes = self._packet_axis()
        if packet_axes is None:
            self.form = KernelForm.ROW
            outer = [axis for axis in axes if axis != self.reduced_axis]
            return [
                *merged_axes(outer, self.space, self.memory, self.unmerged_axes),
                [self.reduced_axis],
            ]
        self.form = KernelForm.COLUMN
        outer = [axis for axis in axes if axis != self.reduced_axis and axis not in packet_axes]
        merged = merged_axes(outer, self.space, self.memory, self.unmerged_axes)
        return [*merged, [self.reduced_axis], packet_axes]

    def _with_tile_axis(self, loops: list[list[int]]) -> list[list[int]]:
        """Move the tile axis before the packet axis: most strided operands are contiguous there."""
        if not loops or self._length(loops[-1]) < self.simd.min_transposed_elements:
            return loops
        packet_axis = loops[-1][-1]
        strided_operands = [
            m for m in self.memory if abs(m.strides[packet_axis]) not in (0, m.dtype.itemsize)
        ]

        def contiguous(loop: list[int]) -> int:
            count = sum(
                m.strides[loop[-1]] == m.dtype.itemsize for m in strided_operands if not m.written
            )
            return count if count and self._length(loop) >= self.simd.min_transposed_elements else 0

        tile_loop = max(loops[:-1], key=contiguous, default=None)
        if tile_loop is None or not contiguous(tile_loop):
            return loops
        return [*(loop for loop in loops[:-1] if loop is not tile_loop), tile_loop, loops[-1]]

    def _with_long_packet_axis(self, loops: list[list[int]]) -> list[list[int]]:
        """Where the last axis is short, vectorise the longest: fewer lanes are empty."""
        if not loops or self._length(loops[-1]) >= self.simd.min_transposed_elements:
            return loops
        longest = max(loops, key=self._length)
        if self._length(longest) < self.simd.min_transposed_elements or self._gathers_rows(loops):
            return loops
        return [*(loop for loop in loops if loop is not longest), longest]

    def _gathers_rows(self, loops: list[list[int]]) -> bool:
        """Whether reads at computed indices are contiguous along a last axis that is not tiny."""
        last = loops[-1][-1]
        contiguous = any(along == last for along, _ in self.gathers)
        return contiguous and self.space[last] >= self.simd.short_row_lanes

    def _length(self, loop: list[int]) -> int:
        return product([self.space[axis] for axis in loop])

    def _packet_axis(self) -> list[int] | None:
        """The contiguous outer axes along which packets go; None: the reduced axis."""
        assert self.reduced_axis is not None, "asked for folds"
        outer_axes = [axis for axis in range(len(self.space)) if axis != self.reduced_axis]
        loops = merged_axes(outer_axes, self.space, self.memory, self.unmerged_axes)
        if not loops:
            return None

        def contiguous(axis: int) -> int:
            """The elements that are contiguous along an axis; small strides count in part."""
            elements = [
                self._elements_touched(m) // self._element_step(m, axis) for m in self.memory
            ]
            for along, axes in self.gathers:
                if along == axis:
                    elements.append(product([self.space[i] for i in axes]))
            return sum(elements)

        best = max(loops, key=lambda loop: (contiguous(loop[-1]), loop[-1]))
        length = product([self.space[axis] for axis in best])
        parts = max([len(x.inputs) for x in self.body if x.name in ("fold", "scan")])
        shortest = LANES if self.group.scanned else self.simd.short_row_lanes * min(parts, 2)
        if self.space[self.reduced_axis] < shortest and length >= LANES // 2:
            return best
        is_better = contiguous(best[-1]) > contiguous(self.reduced_axis)
        return best if is_better and length > 1 else None

    def _elements_touched(self, memory: UnorderedOperand) -> int:
        """How many elements of an operand are read or written."""
        steps = zip(self.space, memory.strides, strict=True)
        return product([length for length, stride in steps if stride])

    def _element_step(self, memory: UnorderedOperand, axis: int) -> int:
        """The stride of an axis in elements; more than all elements where it is large."""
        stride = memory.strides[axis]
        if abs(stride) == memory.dtype.itemsize:
            return 1
        step = _constant_step(memory, stride)
        return self._elements_touched(memory) + 1 if step == "s" else int(step)

    def launch(self) -> Launch:
        """Build the launch."""
        if self.group.scanned:
            self.form = self._scan_form()
        if self.group.scattered:
            self.form = scatter_form(self._kernel(KernelForm.SCATTER), self.lengths, self.work)
        if self.form is KernelForm.ROW and self.lengths[-1] <= LANES and not self.block:
            self.form = KernelForm.SHORT_ROW
        rows = product(self.lengths[:-1]) if self.form is KernelForm.ROW else 0
        passes = self._kernel(KernelForm.ROW).passes if self.form is KernelForm.ROW else 0
        if self.form is KernelForm.ROW and passes == 1:
            work, last = self.work, self.lengths[-1]
            is_split = rows < work.few_rows and last >= work.split_row_elements
            if self._kernel(KernelForm.ROW).is_search and not self.block:
                self.form = KernelForm.SEARCH_PARTS if is_split else KernelForm.SEARCH
            elif is_split:
                self.form = KernelForm.SPLIT
        kernel = self._kernel(self.form)
        kernel = kernel if kernel.block else self._with_cached_values(kernel)
        part_size, units, grain, slots = self._partition(kernel)
        elements = product(self.space[1:] if self.segmented else self.lengths)
        finish = parts = 0
        totals: tuple[int, ...] = ()
        if self.form is KernelForm.SCAN_PARTS:
            parts = units * -(-self.lengths[-1] // (part_size * BLOCK))
            side_by_side = kernel.side_by_side
            blocks = -(-self.lengths[-1] // (BLOCK * side_by_side)) * side_by_side
            sizes = (kernel.body[i].dtype.itemsize for i in kernel.scan.inputs)
            totals = tuple(units * blocks * size for size in sizes)
        if "finish" in kernel.functions:
            finish = rows * (LANES if kernel.block else 1)
            chunk = part_size if self.form is KernelForm.SEARCH_PARTS else BLOCK
            totals = tuple(
                rows * -(-self.lengths[-1] // chunk) * kernel.body[i].dtype.itemsize
                for fold in kernel.folds
                for i in fold.inputs
            )
        if self.form is KernelForm.SCATTER_PARTS:
            finish, totals = 1, (8 * units,)
        return Launch(
            kernel,
            self.memory,
            self.parameters,
            self._sizes(kernel, part_size, slots),
            units,
            grain,
            self._scratch(kernel, part_size, slots),
            finish,
            totals,
            elements,
            parts,
            order=self._order(),
            space=tuple(self.space),
        )

    def _scan_form(self) -> KernelForm:
        """The form of a scan: by columns, by rows side by side, or by blocks of long rows."""
        if self.form is KernelForm.COLUMN:
            return KernelForm.SCAN_COLUMNS
        rows = product(self.lengths[:-1])
        if rows < self.work.few_rows and self.lengths[-1] >= self.work.parallel_scan_elements:
            return KernelForm.SCAN_PARTS
        few_rows = rows < self._kernel(KernelForm.SCAN).side_by_side
        return (
            KernelForm.SCAN_BLOCKS
            if self.lengths[-1] > (BLOCK if few_rows else self.work.blocked_scan_elements)
            else KernelForm.SCAN
        )

    def _kernel(self, form: KernelForm) -> Kernel:
        axes = {axis: i for i, loop in enumerate(self.loops) for axis in loop[:1]}
        operands = tuple(
            [
                KernelOperand(memory.dtype, self._steps(memory), memory.written)
                for memory in self.memory
            ]
        )
        weight = weight_of(self.body, self.simd)
        streamed = self._exceeds_cache() and self._is_aligned(form)
        lanes = self._lanes(form, weight)
        kernel = Kernel(
            operands,
            with_axes(self.body, axes),
            self.stores,
            len(self.parameters),
            form,
            streamed=streamed,
            lanes=lanes,
            masked=lanes != self.lengths[-1]
            if form is KernelForm.SHORT_ROW
            else weight > self.simd.long_body_ops and not streamed,
            prefetch_distance=self.caches.short_prefetch_bytes
            if form is KernelForm.ROW and self.lengths[-1] <= self.caches.short_row_elements
            else self.caches.prefetch_bytes,
        )
        return thread_kernel(kernel, self.block)

    def _lanes(self, form: KernelForm, weight: int) -> int:
        """The elements of a packet, from the widest dtype of the kernel."""
        is_search = form in (KernelForm.SEARCH, KernelForm.SEARCH_PARTS)
        sizes = [m.dtype.itemsize for m in self.memory if not (is_search and m.written)]
        scalar_ops = ("index", "fold") if is_search else ()  # scalars in a search
        widest = max(
            sizes
            + [
                instruction.dtype.itemsize
                for instruction in self.body
                if instruction.name not in scalar_ops
            ]
        )
        lanes = LANES
        if form is KernelForm.MAP or is_search:
            lanes = map_lanes(weight, widest, self.simd)
        elif self.group.scattered:
            lanes = max(self.simd.narrowest_lanes, self.simd.packet_bytes // widest)  # one register
            while (
                form is KernelForm.SCATTER_ROWS
                and lanes > self.simd.narrowest_lanes
                and lanes >= 2 * self.lengths[-1]
            ):
                lanes //= 2
        elif form is KernelForm.SEGMENTS:
            lanes = column_lanes(max(m.dtype.itemsize for m in self.memory if m.written))
        elif form is KernelForm.COLUMN or self.group.scanned:
            parts = max(
                len(instruction.inputs)
                for instruction in self.body
                if instruction.name in ("fold", "scan")
            )
            is_short = (
                weight <= self.simd.short_body_ops
                and parts <= self.simd.wide_fold_parts
                and not self.group.scanned
            )
            lanes = (2 if is_short else 1) * column_lanes(widest)
        is_narrow = form in (KernelForm.COLUMN, KernelForm.SHORT_ROW)
        is_narrow |= form is KernelForm.SEGMENTS and self.loops[-1] != [1]
        is_narrow |= form is KernelForm.MAP and bool(self.gathers)
        if is_narrow:  # few columns: no empty lanes
            while lanes > self.simd.narrowest_lanes and lanes >= 2 * self.lengths[-1]:
                lanes //= 2
        if form is KernelForm.SCAN_COLUMNS:  # few columns are whole packets too
            while lanes > self.lengths[-1]:
                lanes //= 2
        return lanes

    def _exceeds_cache(self) -> bool:
        """Whether results would be evicted from the cache before they are read."""
        bytes_of_item: dict[int, int] = {}
        for memory in self.memory:
            size = memory.dtype.itemsize * self._elements_touched(memory)
            bytes_of_item[memory.item] = max(size, bytes_of_item.get(memory.item, 0))
        touched_bytes = sum(bytes_of_item.values())
        written_bytes = sum(bytes_of_item[memory.item] for memory in self.memory if memory.written)
        return (
            touched_bytes > self.caches.streamed_bytes
            and written_bytes * self.caches.streamed_share >= touched_bytes
        )

    def _shifts_results(self) -> bool:
        """Whether a scan stores its values one index after those that it reads."""
        scans = [instruction.data for instruction in self.body if instruction.name == "scan"]
        return any(isinstance(data, tuple) and bool(data[2]) for data in scans)

    def _is_aligned(self, form: KernelForm) -> bool:
        """Whether every whole packet of results begins at a multiple of 64 bytes."""
        if (
            form in (KernelForm.COLUMN, KernelForm.SCAN_COLUMNS, KernelForm.SEGMENTS)
            or self._shifts_results()
            or self.group.scattered
        ):
            return False
        for memory in self.memory:
            if not memory.written:
                continue
            if memory.offset % 64:
                return False
            *outer, inner = [memory.strides[loop[-1]] if loop else 0 for loop in self.loops]
            if inner not in (0, memory.dtype.itemsize) or any(stride % 64 for stride in outer):
                return False
        return True

    def _with_cached_values(self, kernel: Kernel) -> Kernel:
        """Cache formulas for later passes of a row, and operands for those of a column."""
        if kernel.form is KernelForm.SEGMENTS:
            return replace(kernel, cached_elements=kernel.vectorised_entries)
        if kernel.form is KernelForm.COLUMN:
            return replace(kernel, pass_results=kernel.live_pass_results)
        if kernel.form is not KernelForm.ROW or kernel.passes < 2:
            return kernel
        levels = kernel.levels
        cached: dict[int, None] = {}
        for pass_number in range(1, kernel.passes):
            pending = [
                i
                for store in kernel.stores
                if kernel.pass_of(store) == 2 * pass_number
                for i in store.elements
            ]
            pending += [
                i
                for fold in kernel.folds
                if any(
                    result >= 0 and levels[result] == 2 * pass_number + 1 for result in fold.results
                )
                for i in fold.inputs
            ]
            visited = set()
            while pending:
                i = pending.pop()
                if i in visited or levels[i] % 2 or levels[i] < 0:
                    continue
                visited.add(i)
                instruction = kernel.body[i]
                if levels[i] < 2 * pass_number and (
                    instruction.name not in PRIMITIVES or instruction.name in ("divide", "sqrt")
                ):
                    cached[i] = None
                else:
                    pending.extend(instruction.inputs)
        return replace(kernel, cached_elements=tuple(sorted(cached)))

    def _steps(self, memory: UnorderedOperand) -> str:
        steps = ""
        for number, loop in enumerate(self.loops):
            stride = memory.strides[loop[-1]] if loop else 0
            length = product([self.space[axis] for axis in loop])
            is_row = self.segmented and loop == [0]  # whose offsets are one more than the rows
            if stride == 0 or (length == 1 and not is_row):
                step = "0"
            elif number == len(self.loops) - 1 and stride == memory.dtype.itemsize:
                step = "1"
            elif number == len(self.loops) - 1 and stride == -memory.dtype.itemsize:
                step = "-"
            elif is_row and stride == memory.dtype.itemsize:
                step = "1"
            elif number == len(self.loops) - 1 and not self.group.scanned:
                step = _constant_step(memory, stride)
            else:
                step = "s"
            if length == 1 and memory.written and number == len(self.loops) - 1:
                step = (
                    "1" if self.form is KernelForm.MAP or self.form is KernelForm.COLUMN else step
                )
            steps += step
        if steps.endswith("ss") and self._is_transposed(memory):
            return steps[:-2] + "1s"
        return steps

    def _is_transposed(self, memory: UnorderedOperand) -> bool:
        """Whether memory is contiguous along the axis before the packet axis, in a map."""
        if self.form is not KernelForm.MAP or memory.written:
            return False
        if memory.strides[self.loops[-2][-1]] != memory.dtype.itemsize:
            return False  # before lengths are compared: each such decision is a guard
        return all(length >= self.simd.min_transposed_elements for length in self.lengths[-2:])

    def _sizes(self, kernel: Kernel, part: int, slots: int) -> tuple[int, ...]:
        values = []
        for kind, number, axis in kernel.sizes:
            if kind == "length":
                values.append(self.lengths[number])
            elif kind == "stride":
                values.append(self.memory[number].strides[self.loops[axis][-1]])
            else:
                values.append(part if kind == "part" else slots)
        return tuple(values)

    def _partition(self, kernel: Kernel) -> tuple[int, int, int, int]:
        """The size of a unit, the number of units, units per range, and slots for blocks."""
        last, outer = self.lengths[-1], product(self.lengths[:-1])
        if kernel.block:
            return 0, num_threads(kernel, self.lengths), kernel.block, 0
        range_elements = self.work.range_elements
        if kernel.transposed_operands:
            height, width = kernel.tile
            units = product(self.lengths[:-2]) * -(-self.lengths[-2] // height) * -(-last // width)
            return 0, units, largest(1, self._range_elements() // (height * width)), 0
        if kernel.form is KernelForm.MAP:
            longest = min(self.work.max_unit_elements, self.smallest_range)
            longest = max(longest // kernel.lanes, 1) * kernel.lanes  # whole packets
            part = smallest(-(-largest(last, 1) // kernel.lanes) * kernel.lanes, longest)
            units = outer * -(-largest(last, 1) // part)
            grain = self._range_elements() // largest(smallest(part, last), 1)
            return part, units, largest(1, grain), 0
        if kernel.form in (KernelForm.ROW, KernelForm.SHORT_ROW, KernelForm.SEARCH):
            return 0, outer, largest(1, self._range_elements() // largest(last, 1)), 0
        if kernel.form is KernelForm.SEARCH_PARTS:
            searched = self.work.searched_part_bytes // self.memory[0].dtype.itemsize
            part = max(range_elements, searched)
            return part, outer * -(-last // part), 1, 0
        if kernel.form is KernelForm.SPLIT:
            blocks = -(-last // BLOCK)
            part = 16
            return part, outer * -(-blocks // part), 2, 0
        if kernel.form is KernelForm.SCAN:
            rows = kernel.side_by_side
            return 0, -(-outer // rows), largest(1, range_elements // (rows * last)), 0
        if kernel.form in (KernelForm.SCAN_BLOCKS, KernelForm.SCAN_PARTS):
            return range_elements // BLOCK, outer, largest(1, range_elements // last), 0
        if self.group.scattered:
            return (*scatter_partition(kernel, self.lengths, self.work), self.cells)
        if kernel.form is KernelForm.SEGMENTS:
            *outer_lengths, rows, entries = self.lengths[: kernel.folded + 1]
            columns = product(self.lengths[kernel.folded + 1 :])
            part = largest(self.work.segment_elements // columns, 64)
            return part, product(outer_lengths) * -(-(rows + entries) // part), 1, 0
        folded = self.lengths[-2]
        if kernel.form is KernelForm.SCAN_COLUMNS:
            part = smallest(self.caches.scanned_columns, -(-last // kernel.lanes) * kernel.lanes)
            units = product(self.lengths[:-2]) * -(-last // part)
            return part, units, largest(1, range_elements // (part * folded)), 0
        slots = (-(-folded // BLOCK)).bit_length() + 1
        rows = LANES + slots
        part = (
            largest(self.caches.column_scratch_bytes // (8 * rows) // kernel.lanes, 1)
            * kernel.lanes
        )
        part = smallest(part, -(-last // kernel.lanes) * kernel.lanes)
        units = product(self.lengths[:-2]) * -(-last // part)
        return part, units, largest(1, range_elements // (part * folded)), slots

    def _range_elements(self) -> int:
        """Elements of one range of a map: ranges for all threads, each worth its start."""
        return smallest(
            self.work.max_range_elements,
            largest(self.smallest_range, product(self.lengths) // 16),
        )

    def _scratch(self, kernel: Kernel, part: int, slots: int) -> int:
        if kernel.block:
            return kernel.shared_bytes
        if kernel.form is KernelForm.ROW:
            return kernel.cached_bytes(self.lengths[-1]) + 64
        if kernel.transposed_operands:
            return kernel.tile_bytes * len(kernel.transposed_operands)
        if self.group.scanned:
            columns = 2 * 8 * len(kernel.scan.inputs) * (part + kernel.lanes)
            is_column = kernel.form is KernelForm.SCAN_COLUMNS
            return (columns if is_column else kernel.scanned_bytes) + 64
        if self.group.scattered:
            return scatter_scratch(kernel)
        if self.segmented:
            return kernel.cached_bytes(SEGMENT_CHUNK) + 64
        return kernel.column_bytes(part, slots) + 64 if kernel.form is KernelForm.COLUMN else 0


def _constant_step(memory: UnorderedOperand, stride: int) -> str:
    """The constant step of an operand whose stride is a few real elements, else "s"."""
    if memory.dtype not in REAL_DTYPES:
        for step in SMALL_STEPS:
            if stride == int(step) * memory.dtype.itemsize:
                return step
    return "s"


def pack_sizes(sizes: Sequence[int]) -> bytes:
    """Return sizes as bytes for a launch, 8 bytes each."""
    return struct.pack(f"{len(sizes)}q", *sizes)
