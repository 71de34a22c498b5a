"""Loop schedule: the order, tiling, vectorisation and threading of a kernel's loops.

Takes a Lowering, hands on a Launch: the Kernel with its axes in order, the sizes of this launch,
the number of units of work and the scratch memory of each thread. Nothing here changes a result:
the tree of a fold depends on lengths alone, whatever the form.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tenfold.core.loop_ir import BLOCK, LANES, STEPS, Kernel, KernelOperand
from tenfold.core.scalar_ir import PRIMITIVES
from tenfold.core.shape_rules import product
from tenfold.core.symbolic.sym_int import largest, smallest
from tenfold.dtypes import REAL_DTYPES
from tenfold.schedule.lowering import (
    LaunchScalar,
    Lowering,
    UnorderedOperand,
    merged_axes,
    with_axes,
)
from tenfold.schedule.output_layout import loop_order
from tenfold.schedule.vector_width import (
    AHEAD,
    LONG_BODY,
    SHORT_AHEAD,
    SHORT_BODY,
    column_lanes,
    eliminate_dead_code,
    map_lanes,
    single_thread_elements,
    weight_of,
)

NARROWEST = 4
"""The fewest lanes of a packet of columns."""
WIDE_PARTS = 2
"""The most parts of a fold with such packets: more of them do not stay in registers."""
SHORT_AXIS = 32
"""A folded axis shorter than this leaves lanes of a row empty: packets go along another axis."""
SHORTEST_TURNED = 16
"""The shortest axes of which blocks are turned in registers."""
SPLIT_ROW = 1 << 16
"""Elements from which a row that is alone is split among units of work."""
STREAMED_BYTES = 24 << 20
"""Outputs of a kernel that reads and writes more than this are stored past the cache."""
STREAMED_SHARE = 8
"""One part in so many must be written: fewer bytes are better left where the next step reads."""
SEARCHED_BYTES = 1 << 17
"""What a part of a row that is searched has of its first operand at least."""
LONG_SCAN = 1 << 14
"""Elements from which the blocks of a row are scanned side by side though there are many rows."""
SCAN_IN_PARTS = 1 << 18
"""Elements from which a row that is alone is scanned in parts where there are many threads."""
SCANNED_COLUMNS = 512
"""The most columns of a unit of work of a scan: their running values stay in the first cache."""
SHORT_ROW = 512
"""Elements up to which the end of a row, where nothing is read, comes often."""
RANGE = 1 << 15
"""Elements of one range of units: what a thread takes at once."""
SHORTEST_RANGE = 1 << 10
"""The same of a long body: a few thousand cycles."""
LONGEST_RANGE = 1 << 17
"""The same for a map of many elements, of which there are ranges enough."""
LONGEST_PART = 4096
"""Elements of a row of a map that are one unit of work at most: whole packets."""
COLUMN_BYTES = 1 << 18
"""Scratch memory of a part of the columns."""


@dataclass(frozen=True)
class Launch:
    """A kernel and everything one launch of it needs but the addresses."""

    kernel: Kernel
    memory: tuple[UnorderedOperand, ...]
    parameters: tuple[LaunchScalar, ...]
    sizes: tuple[int, ...]
    units: int
    grain: int
    scratch: int
    finish: int = 0
    """Of split rows: how many rows are finished once all units have run."""
    totals: tuple[int, ...] = ()
    """Of split rows: the bytes of each table of totals."""
    elements: int = 0
    parts: int = 0
    """Of rows that many threads scan: how many parts they have together; the totals are theirs."""
    order: tuple[int, ...] = ()
    """The axes of the space in the order of the loops, outermost first."""
    space: tuple[int, ...] = ()
    """The lengths of the axes of the space, by their numbers."""
    sequential: bool = False
    """Whether one thread must go through the units from the first to the last."""

    def scans_in_parts(self, threads: int) -> bool:
        """Whether so many threads scan parts of rows. What is read is read twice then: past the
        cache two threads take as long for that as one that reads once.
        """
        return self.parts > 0 and threads > (2 if self.kernel.streamed else 1)


def launch_of(lowering: Lowering) -> Launch:
    """Choose the loops for a lowered group."""
    return _LoopScheduler(lowering).launch()


class _LoopScheduler:
    def __init__(self, lowering: Lowering) -> None:
        self.group = lowering.group
        self.space = lowering.group.space
        self.reduced_axis = lowering.group.axis
        body, stores = eliminate_dead_code(lowering.body.instructions, lowering.stores)
        self.body, self.stores = body, stores
        self.memory, self.parameters = tuple(lowering.memory), tuple(lowering.parameters)
        self.form = "map"
        self.loops = self._choose_loops()
        self.lengths = [product(self.space[axis] for axis in run) for run in self.loops]

    def _order(self) -> tuple[int, ...]:
        """The axes as loops go through them; those of length 1 have none and stand first."""
        looped = [axis for run in self.loops for axis in run]
        return (*(axis for axis in range(len(self.space)) if axis not in looped), *looped)

    def _choose_loops(self) -> list[list[int]]:
        """Order and merge the axes; the last run is the packet axis."""
        axes = list(range(len(self.space)))
        single = {int(str(made.data)) for made in self.body if made.name == "index"}
        self.unmerged_axes = single - {self.reduced_axis}
        if self.reduced_axis is None:
            written = next(memory for memory in self.memory if memory.written)
            order = loop_order(self.space, written.strides)
            runs = merged_axes(order, self.space, self.memory, self.unmerged_axes)
            return self._with_long_packet_axis(self._with_tile_axis(runs)) or [[]]
        packets = self._packet_axis()
        if packets is None:
            self.form = "row"
            outer = [axis for axis in axes if axis != self.reduced_axis]
            return [
                *merged_axes(outer, self.space, self.memory, self.unmerged_axes),
                [self.reduced_axis],
            ]
        self.form = "column"
        outer = [axis for axis in axes if axis != self.reduced_axis and axis not in packets]
        merged = merged_axes(outer, self.space, self.memory, self.unmerged_axes)
        return [*merged, [self.reduced_axis], packets]

    def _with_tile_axis(self, runs: list[list[int]]) -> list[list[int]]:
        """Put before the packet axis the one along which most of what lies across is contiguous."""
        if not runs or self._length(runs[-1]) < SHORTEST_TURNED:
            return runs
        last = runs[-1][-1]
        across = [m for m in self.memory if abs(m.strides[last]) not in (0, m.dtype.itemsize)]

        def contiguous(run: list[int]) -> int:
            if self._length(run) < SHORTEST_TURNED:
                return 0
            return sum(m.strides[run[-1]] == m.dtype.itemsize for m in across if not m.written)

        best = max(runs[:-1], key=contiguous, default=None)
        if best is None or not contiguous(best):
            return runs
        return [*(run for run in runs[:-1] if run is not best), best, runs[-1]]

    def _with_long_packet_axis(self, runs: list[list[int]]) -> list[list[int]]:
        """Where the last axis is short, lay packets along the longest: fewer lanes are empty."""
        if not runs or self._length(runs[-1]) >= SHORTEST_TURNED:
            return runs
        best = max(runs, key=self._length)
        if self._length(best) < SHORTEST_TURNED:
            return runs
        return [*(run for run in runs if run is not best), best]

    def _length(self, run: list[int]) -> int:
        return product(self.space[axis] for axis in run)

    def _packet_axis(self) -> list[int] | None:
        """The axes of the packets that stay and lie contiguously; None: the folded one."""
        assert self.reduced_axis is not None, "asked for folds"
        others = [axis for axis in range(len(self.space)) if axis != self.reduced_axis]
        runs = merged_axes(others, self.space, self.memory, self.unmerged_axes)
        if not runs:
            return None

        def contiguous(axis: int) -> int:
            """The elements that lie along an axis, those of small strides in part."""
            return sum(
                self._elements_touched(m) // self._element_step(m, axis) for m in self.memory
            )

        best = max(runs, key=lambda run: (contiguous(run[-1]), run[-1]))
        length = product(self.space[axis] for axis in best)
        if self.space[self.reduced_axis] < SHORT_AXIS:
            if length >= SHORT_AXIS // 2:
                return best
            return None
        if contiguous(best[-1]) > contiguous(self.reduced_axis) and length > 1:
            return best
        return None

    def _elements_touched(self, memory: UnorderedOperand) -> int:
        """How many elements of memory are read or written."""
        steps = zip(self.space, memory.strides, strict=True)
        return product(length for length, stride in steps if stride)

    def _element_step(self, memory: UnorderedOperand, axis: int) -> int:
        """How many elements are from one index of an axis to the next; more than all: too many."""
        stride = memory.strides[axis]
        if abs(stride) == memory.dtype.itemsize:
            return 1
        step = _constant_step(memory, stride)
        return self._elements_touched(memory) + 1 if step == "s" else int(step)

    def launch(self) -> Launch:
        """Put it together."""
        if self.group.scanned:
            self.form = self._scan_form()
        rows = product(self.lengths[:-1]) if self.form == "row" else 0
        passes = self._kernel("row").passes if self.form == "row" else 0
        if self.form == "row" and passes == 1:
            split = rows < 8 and self.lengths[-1] >= SPLIT_ROW
            if self._kernel("row").is_search:
                self.form = "search parts" if split else "search"
            elif split:
                self.form = "split"
        kernel = self._kernel(self.form)
        kernel = self._with_cached_values(kernel)
        part, units, grain, slots = self._partition(kernel)
        elements = product(self.lengths)
        finish = parts = 0
        totals: tuple[int, ...] = ()
        if self.form == "scan parts":
            parts = units * -(-self.lengths[-1] // (part * BLOCK))
            beside = kernel.side_by_side
            blocks = -(-self.lengths[-1] // (BLOCK * beside)) * beside
            sizes = (kernel.body[i].dtype.itemsize for i in kernel.scan.inputs)
            totals = tuple(units * blocks * size for size in sizes)
        if "finish" in kernel.functions:
            finish = rows
            each = part if self.form == "search parts" else BLOCK
            totals = tuple(
                rows * -(-self.lengths[-1] // each) * kernel.body[i].dtype.itemsize
                for fold in kernel.folds
                for i in fold.inputs
            )
        return Launch(
            kernel,
            self.memory,
            self.parameters,
            self._sizes(kernel, part, slots),
            units,
            grain,
            self._scratch(kernel, part, slots),
            finish,
            totals,
            elements,
            parts,
            order=self._order(),
            space=tuple(self.space),
        )

    def _scan_form(self) -> str:
        """How a scan goes: by columns, by rows side by side, or by the blocks of long rows."""
        if self.form == "column":
            return "scan columns"
        rows = product(self.lengths[:-1])
        if rows < 8 and self.lengths[-1] >= SCAN_IN_PARTS:
            return "scan parts"
        few = rows < self._kernel("scan").side_by_side
        return "scan blocks" if self.lengths[-1] > (BLOCK if few else LONG_SCAN) else "scan"

    def _kernel(self, form: str) -> Kernel:
        axes = {axis: i for i, run in enumerate(self.loops) for axis in run[:1]}
        operands = tuple(
            KernelOperand(memory.dtype, self._steps(memory), memory.written)
            for memory in self.memory
        )
        weight = weight_of(self.body)
        streamed = self._exceeds_cache() and self._is_aligned(form)
        return Kernel(
            operands,
            with_axes(self.body, axes),
            self.stores,
            len(self.parameters),
            form,
            streamed=streamed,
            lanes=self._lanes(form, weight),
            masked=weight > LONG_BODY and not streamed,
            prefetch_distance=SHORT_AHEAD
            if form == "row" and self.lengths[-1] <= SHORT_ROW
            else AHEAD,
        )

    def _lanes(self, form: str, weight: int) -> int:
        """The elements of a packet, which the widest of what is computed fills."""
        searched = form in ("search", "search parts")
        sizes = [m.dtype.itemsize for m in self.memory if not (searched and m.written)]
        bare = ("index", "fold") if searched else ()  # scalars in a search
        widest = max(sizes + [made.dtype.itemsize for made in self.body if made.name not in bare])
        lanes = LANES
        if form == "map" or searched:
            lanes = map_lanes(weight, widest)
        elif form == "column" or self.group.scanned:
            parts = max(len(made.inputs) for made in self.body if made.name in ("fold", "scan"))
            short = weight <= SHORT_BODY and parts <= WIDE_PARTS and not self.group.scanned
            lanes = (2 if short else 1) * column_lanes(widest)
        if form == "column":  # few columns leave no lanes empty
            while lanes > NARROWEST and lanes >= 2 * self.lengths[-1]:
                lanes //= 2
        if form == "scan columns":  # few columns are whole packets too
            while lanes > self.lengths[-1]:
                lanes //= 2
        return lanes

    def _exceeds_cache(self) -> bool:
        """Whether what is written would be gone from the cache before anyone reads it."""
        bytes_: dict[int, int] = {}
        for memory in self.memory:
            size = memory.dtype.itemsize * self._elements_touched(memory)
            bytes_[memory.item] = max(size, bytes_.get(memory.item, 0))
        touched = sum(bytes_.values())
        written = sum(bytes_[memory.item] for memory in self.memory if memory.written)
        return touched > STREAMED_BYTES and written * STREAMED_SHARE >= touched

    def _shifts_results(self) -> bool:
        """Whether a scan stores its values at other places than it reads: one further on."""
        scans = [made.data for made in self.body if made.name == "scan"]
        return any(isinstance(data, tuple) and bool(data[2]) for data in scans)

    def _is_aligned(self, form: str) -> bool:
        """Whether every whole packet of what is written begins at a multiple of 64 bytes."""
        if form in ("column", "scan columns") or self._shifts_results():
            return False
        for memory in self.memory:
            if not memory.written:
                continue
            if memory.offset % 64:
                return False
            *outer, last = [memory.strides[run[-1]] if run else 0 for run in self.loops]
            if last not in (0, memory.dtype.itemsize) or any(stride % 64 for stride in outer):
                return False
        return True

    def _with_cached_values(self, kernel: Kernel) -> Kernel:
        """Keep formulas that a later pass of a row needs again, and what one of a column reads."""
        if kernel.form == "column":
            return replace(kernel, pass_results=kernel.live_pass_results)
        if kernel.form != "row" or kernel.passes < 2:
            return kernel
        levels = kernel.levels
        kept: dict[int, None] = {}
        for pass_ in range(1, kernel.passes):
            wanted = [
                i for s in kernel.stores if kernel.pass_of(s) == 2 * pass_ for i in s.elements
            ]
            wanted += [
                i
                for fold in kernel.folds
                if any(r >= 0 and levels[r] == 2 * pass_ + 1 for r in fold.results)
                for i in fold.inputs
            ]
            seen = set()
            while wanted:
                i = wanted.pop()
                if i in seen or levels[i] % 2 or levels[i] < 0:
                    continue
                seen.add(i)
                made = kernel.body[i]
                if levels[i] < 2 * pass_ and (
                    made.name not in PRIMITIVES or made.name in ("divide", "sqrt")
                ):
                    kept[i] = None
                else:
                    wanted.extend(made.inputs)
        return replace(kernel, cached_elements=tuple(sorted(kept)))

    def _steps(self, memory: UnorderedOperand) -> str:
        steps = ""
        for number, run in enumerate(self.loops):
            stride = memory.strides[run[-1]] if run else 0
            length = product(self.space[axis] for axis in run)
            if stride == 0 or length == 1:
                step = "0"
            elif number == len(self.loops) - 1 and stride == memory.dtype.itemsize:
                step = "1"
            elif number == len(self.loops) - 1 and stride == -memory.dtype.itemsize:
                step = "-"
            elif number == len(self.loops) - 1 and not self.group.scanned:
                step = _constant_step(memory, stride)
            else:
                step = "s"
            if length == 1 and memory.written and number == len(self.loops) - 1:
                step = "1" if self.form == "map" or self.form == "column" else step
            steps += step
        if steps.endswith("ss") and self._is_transposed(memory):
            return steps[:-2] + "1s"
        return steps

    def _is_transposed(self, memory: UnorderedOperand) -> bool:
        """Whether memory is contiguous along the axis before the packet axis, in a map."""
        if self.form != "map" or memory.written or min(self.lengths[-2:]) < SHORTEST_TURNED:
            return False
        return memory.strides[self.loops[-2][-1]] == memory.dtype.itemsize

    def _sizes(self, kernel: Kernel, part: int, slots: int) -> tuple[int, ...]:
        values = []
        for what, first, axis in kernel.sizes:
            if what == "length":
                values.append(self.lengths[first])
            elif what == "stride":
                values.append(self.memory[first].strides[self.loops[axis][-1]])
            else:
                values.append(part if what == "part" else slots)
        return tuple(values)

    def _partition(self, kernel: Kernel) -> tuple[int, int, int, int]:
        """What one unit is, how many there are, how many make a range, and slots for blocks."""
        last = self.lengths[-1]
        outer = product(self.lengths[:-1])
        if kernel.transposed_operands:
            height, width = kernel.tile
            units = product(self.lengths[:-2]) * -(-self.lengths[-2] // height) * -(-last // width)
            return 0, units, largest(1, self._range_elements() // (height * width)), 0
        if kernel.form == "map":
            longest = _whole_packets(min(LONGEST_PART, self._smallest_range()), kernel.lanes)
            part = smallest(-(-largest(last, 1) // kernel.lanes) * kernel.lanes, longest)
            units = outer * -(-largest(last, 1) // part)
            return (
                part,
                units,
                largest(1, self._range_elements() // largest(smallest(part, last), 1)),
                0,
            )
        if kernel.form in ("row", "search"):
            return 0, outer, largest(1, self._range_elements() // largest(last, 1)), 0
        if kernel.form == "search parts":
            part = max(RANGE, SEARCHED_BYTES // self.memory[0].dtype.itemsize)
            return part, outer * -(-last // part), 1, 0
        if kernel.form == "split":
            blocks = -(-last // BLOCK)
            part = 16
            return part, outer * -(-blocks // part), 2, 0
        if kernel.form == "scan":
            rows = kernel.side_by_side
            return 0, -(-outer // rows), largest(1, RANGE // (rows * last)), 0
        if kernel.form in ("scan blocks", "scan parts"):
            return RANGE // BLOCK, outer, largest(1, RANGE // last), 0
        folded = self.lengths[-2]
        if kernel.form == "scan columns":
            part = smallest(SCANNED_COLUMNS, -(-last // kernel.lanes) * kernel.lanes)
            units = product(self.lengths[:-2]) * -(-last // part)
            return part, units, largest(1, RANGE // (part * folded)), 0
        slots = (-(-folded // BLOCK)).bit_length() + 1
        rows = LANES + slots
        part = largest(COLUMN_BYTES // (8 * rows) // kernel.lanes, 1) * kernel.lanes
        part = smallest(part, -(-last // kernel.lanes) * kernel.lanes)
        units = product(self.lengths[:-2]) * -(-last // part)
        return part, units, largest(1, RANGE // (part * folded)), slots

    def _range_elements(self) -> int:
        """Elements of one range of a map: few enough for many threads, many enough for a start."""
        return smallest(LONGEST_RANGE, largest(self._smallest_range(), product(self.lengths) // 16))

    def _smallest_range(self) -> int:
        """The same of no many: so many that what one thread does alone would be two of them."""
        return max(SHORTEST_RANGE, single_thread_elements(self.body) // 2)

    def _scratch(self, kernel: Kernel, part: int, slots: int) -> int:
        if kernel.form == "row":
            return kernel.cached_bytes(self.lengths[-1]) + 64
        if kernel.transposed_operands:
            return kernel.tile_bytes * len(kernel.transposed_operands)
        if self.group.scanned:
            return self._scan_scratch(kernel, part)
        if kernel.form != "column":
            return 0
        return kernel.column_bytes(part, slots) + 64

    def _scan_scratch(self, kernel: Kernel, part: int) -> int:
        parts = kernel.scan.inputs
        if kernel.form == "scan columns":
            return 2 * 8 * len(parts) * (part + kernel.lanes) + 64
        return kernel.scanned_bytes + 64


def _whole_packets(elements: int, lanes: int) -> int:
    """Return a number of elements rounded down to whole packets, of which there is one at least."""
    return max(elements // lanes, 1) * lanes


def _constant_step(memory: UnorderedOperand, stride: int) -> str:
    """The step of an operand whose stride is a few real elements, else "s"."""
    if memory.dtype not in REAL_DTYPES:
        for step in STEPS:
            if stride == int(step) * memory.dtype.itemsize:
                return step
    return "s"


def pack_sizes(sizes: Sequence[int]) -> bytes:
    """Return sizes as a launch gives them, 8 bytes each."""
    return struct.pack(f"{len(sizes)}q", *sizes)


def parameter_bytes(parameter: LaunchScalar, cast: np.ndarray) -> bytes:
    """Return a scalar as the 8 bytes that the launch gives; `cast` is it in the dtype asked for."""
    part = (cast.real, cast.imag)[parameter.part]
    return np.asarray(part).tobytes().ljust(8, b"\0")
