"""Scan: running sums and products along an axis, sequential in blocks of 1,024.

Takes a FunctionEmitter of a kernel that scans, hands on lines. Each result of a block is combined
with the carry into the block, the sequential total of the blocks before. In a "scan" a unit of work
is some rows side by side. Elements are computed into scratch memory, transposed in registers so
that a packet has one element of each row, scanned, and transposed back. Long rows, with blocks side
by side, are in codegen/llvm/blocked_scan.py. In "scan columns" packets lie along another axis, and
the scanned axis is a loop around them.

>>> from tenfold.dtypes import FLOAT64
>>> from tenfold.core.loop_ir import Kernel, KernelOperand, KernelStore
>>> from tenfold.codegen.llvm.simd_emitter import SimdEmitter
>>> body = Body()
>>> made = body.apply("scan", FLOAT64, body.load(0, FLOAT64), data=("add", 0, ""))
>>> operands = (KernelOperand(FLOAT64, "1"), KernelOperand(FLOAT64, "1", written=True))
>>> kernel = Kernel(operands, tuple(body.instructions), (KernelStore(1, (1,)),), form="scan")
>>> values = RunningValues(FunctionEmitter(kernel, SimdEmitter()))
>>> values.neutral  # -0.0: every number added to it keeps its bits
(Packet(text='0x8000000000000000', dtype=dtype('float64'), lanes=1),)
"""

from __future__ import annotations

from collections.abc import Callable

from tenfold.codegen.llvm import load_store
from tenfold.codegen.llvm.function_emitter import FunctionEmitter
from tenfold.codegen.llvm.loop_emitter import (
    Accumulator,
    combine_partials,
    for_range,
    if_then,
    int_min,
    int_op,
    read_packet,
    write_packet,
)
from tenfold.codegen.llvm.simd_emitter import SCALARS, Packet, SimdEmitter, llvm_type
from tenfold.codegen.llvm.transpose import transpose_block
from tenfold.core.loop_ir import BLOCK, PITCH
from tenfold.core.scalar_ir import Body
from tenfold.dtypes import kind_of


class RunningValues:
    """What is scanned, and how running values follow one another."""

    def __init__(self, emitter: FunctionEmitter) -> None:
        self.emitter, self.ir, self.kernel = emitter, emitter.ir, emitter.kernel
        self.scan = emitter.kernel.scan
        self.dtypes = [self.kernel.body[i].dtype for i in self.scan.inputs]
        self.exact = self.scan.kind == "add" or len(self.dtypes) == 1
        """Whether the identity leaves every bit: a complex product with 1 may make NaN of inf."""
        self.neutral = self._identity_packets(negative_zero=True)
        self.identity = self._identity_packets(negative_zero=False)
        named = enumerate(self.kernel.body)
        self.targets = [*self.scan.inputs, *(i for i, made in named if made.name == "fail")]
        (self.store,) = self.kernel.stores

    def _identity_packets(self, *, negative_zero: bool) -> Accumulator:
        found = []
        for part, dtype in enumerate(self.dtypes):
            value: float = int(self.scan.kind == "product" and part == 0)
            if value == 0 and negative_zero and kind_of(dtype) == "f":
                value = -0.0
            body = Body()
            made = body.constant(value, dtype).position
            found.append(self.ir.emit(body.instructions[made], {}, 1))
        return tuple(found)

    def combine(self, before: Accumulator, x: Accumulator, is_first: str | None) -> Accumulator:
        """Return what comes after a running value; `is_first`: an i1 that holds for the first."""
        made = combine_partials(self.ir, self.scan.kind, before, x)
        if self.exact or is_first is None:
            return made
        chosen = []
        for new, own in zip(made, x, strict=True):
            type_ = llvm_type(new.dtype, new.lanes)
            value = self.ir.broadcast(own, new.lanes)
            picked = self.ir.value(f"select i1 {is_first}, {type_} {value}, {type_} {new.text}")
            chosen.append(Packet(picked, new.dtype, new.lanes))
        return tuple(chosen)

    def store_results(self, parts: Accumulator, position: str, mask: str | None) -> None:
        """Store what follows from running values."""
        known = self._results(parts, position, mask)
        self.emitter.store([self.store], known, position, mask)

    def _results(self, parts: Accumulator, position: str, mask: str | None) -> dict[int, Packet]:
        known = {i: p for i, p in zip(self.scan.results, parts, strict=True) if i >= 0}
        self.emitter.compute(self.store.elements, known, position, mask)
        return known

    def store_identity(self) -> None:
        """Store the identity where the pointer of the result stands."""
        known = self._results(self.identity, "0", None)
        packets = [known[i] for i in self.store.elements]
        operand = self.kernel.operands[self.store.operand]
        load_store.store_single(
            self.ir, operand, packets, self.emitter.pointers[self.store.operand]
        )

    def shift_output(self, axis: int) -> None:
        """Let the pointer of the result stand at the element after the first."""
        number = self.store.operand
        stride = self.emitter.size.get(("stride", number, axis))
        if stride is None:
            stride = str(self.kernel.operands[number].dtype.itemsize)
        pointer = self.emitter.pointers[number]
        self.emitter.pointers[number] = self.ir.value(
            f"getelementptr i8, ptr {pointer}, i64 {stride}"
        )

    def for_each_packet(
        self, begin: str, end: str, inside: Callable[[str, str | None], None]
    ) -> None:
        """Add a loop over packets from begin to end; `inside` gets the first lane and the mask."""
        ir, emitter = self.ir, self.emitter
        if self.kernel.masked:
            for_range(ir, begin, end, emitter.lanes, lambda i: inside(i, emitter.mask(i, end)))
            return
        count = int_op(ir, "sub", end, begin)
        whole = int_op(ir, "sub", end, int_op(ir, "urem", count, emitter.lanes))
        for_range(ir, begin, whole, emitter.lanes, lambda i: inside(i, None))
        some = ir.value(f"icmp slt i64 {whole}, {end}")
        if_then(ir, some, lambda: inside(whole, emitter.mask(whole, end)))


def rows(emitter: FunctionEmitter, number: str) -> None:
    """A unit of work is some rows: their blocks, one after the other."""
    ir, kernel = emitter.ir, emitter.kernel
    lanes = ScanLanes(emitter)
    count = "1"
    for axis in range(kernel.axes - 1):
        count = int_op(ir, "mul", count, emitter.length(axis))
    first = int_op(ir, "mul", number, lanes.count)
    valid = int_min(ir, int_op(ir, "sub", count, first), lanes.count)

    def each(inside: Callable[[str], None]) -> None:
        def lane(i: str) -> None:
            emitter.set_indices(int_op(ir, "add", first, i), kernel.axes - 1)
            inside(i)

        for_range(ir, "0", valid, 1, lane)

    def block(start: str) -> None:
        size = int_min(ir, int_op(ir, "sub", lanes.length, start), BLOCK)
        each(lambda i: lanes.fill_block(i, start, size))
        lanes.scan_blocks(size)
        each(lambda i: lanes.finish_block(i, i, start, size))

    for_range(ir, "0", lanes.length, BLOCK, block)


class ScanLanes(RunningValues):
    """Rows or blocks side by side: lane i of a packet is an element of the i-th."""

    def __init__(self, emitter: FunctionEmitter) -> None:
        super().__init__(emitter)
        self.count = self.kernel.side_by_side
        self.length = emitter.length(self.kernel.axes - 1)
        self.itemsize = self.dtypes[0].itemsize
        self.carry_slots = self.ir.alloca(8 * self.count * len(self.dtypes))
        self.running_slots = self.ir.alloca(8 * self.count * len(self.dtypes))

    def _scratch_pointer(self, part: int, lane: str, position: str) -> str:
        ir, pitch = self.ir, PITCH * self.itemsize
        offset = int_op(ir, "add", int_op(ir, "mul", lane, pitch), part * self.count * pitch)
        offset = int_op(ir, "add", offset, int_op(ir, "mul", position, self.itemsize))
        return ir.value(f"getelementptr i8, ptr %scratch, i64 {offset}")

    def fill_block(self, lane: str, start: str, size: str) -> None:
        """Compute the elements of a block into scratch memory."""

        def inside(position: str, mask: str | None) -> None:
            known: dict[int, Packet] = {}
            self.emitter.compute(self.targets, known, position, mask)
            at = int_op(self.ir, "sub", position, start)
            for part, i in enumerate(self.scan.inputs):
                write_packet(
                    self.ir, self._scratch_pointer(part, lane, at), known[i], self.emitter.lanes
                )

        self.for_each_packet(start, int_op(self.ir, "add", start, size), inside)

    def scan_blocks(
        self, size: str, begin: tuple[str, str] | None = None, *, stored: bool = True
    ) -> None:
        """Scan what is in scratch memory, up to `size` elements of each lane.

        `begin`: where the elements of the first lane begin instead, and bytes from lane to lane.
        Without `stored` nothing is left but what each lane comes to.
        """
        for part, packet in enumerate(self.neutral):
            write_packet(self.ir, self.running_pointer(part), packet, self.count)
        name = f"scan.{'blocks' if stored else 'totals'}"
        if name not in self.ir.functions:
            self.ir.functions[name] = self._function(name, stored)
        pointer, step = begin or ("%scratch", str(PITCH * self.itemsize))
        given = f"ptr %scratch, ptr {pointer}, i64 {step}, i64 {size}, ptr {self.running_slots}"
        self.ir.line(f"call void @{name}({given})")

    def _function(self, name: str, stored: bool) -> str:
        """A function of the program: its text is long, and it is called from several places."""
        outer, running = self.ir, self.running_slots
        self.ir, self.running_slots = SimdEmitter(baseline=outer.baseline), "%running"
        inner = self.ir
        for_range(inner, "0", "%size", self.count, lambda at: self._scan_square(at, stored))
        inner.line("ret void")
        self.ir, self.running_slots = outer, running
        given = "ptr %scratch, ptr %begin, i64 %step, i64 %size, ptr %running"
        return f"define internal void @{name}({given}) noinline {{\nentry:\n{inner}\n}}"

    def running_pointer(self, part: int) -> str:
        """Return the pointer to what the lanes have come to."""
        offset = 8 * self.count * part
        return self.ir.value(f"getelementptr i8, ptr {self.running_slots}, i64 {offset}")

    def _read_lanes(self, part: int, position: str) -> list[Packet]:
        """Read a packet of each lane from where the elements lie."""
        ir, before = self.ir, part * self.count * PITCH * self.itemsize
        offset = int_op(ir, "add", int_op(ir, "mul", position, self.itemsize), before)
        place = ir.value(f"getelementptr i8, ptr %begin, i64 {offset}")
        found = []
        for lane in range(self.count):
            if lane:
                place = ir.value(f"getelementptr i8, ptr {place}, i64 %step")
            found.append(read_packet(ir, place, self.dtypes[part], self.count))
        return found

    def _scan_square(self, position: str, stored: bool) -> None:
        ir, parts_ = self.ir, range(len(self.dtypes))
        columns = [self._transpose(self._read_lanes(part, position)) for part in parts_]
        running: Accumulator = tuple(
            read_packet(ir, self.running_pointer(part), dtype, self.count)
            for part, dtype in enumerate(self.dtypes)
        )
        begins = ir.value(f"icmp eq i64 {position}, 0")
        scanned = []
        for i, parts in enumerate(zip(*columns, strict=True)):
            running = self.combine(running, parts, None if i else begins)
            scanned.append(running)
        for part in parts_:
            write_packet(ir, self.running_pointer(part), running[part], self.count)
            if stored:
                for lane, packet in enumerate(self._transpose([x[part] for x in scanned])):
                    write_packet(
                        ir, self._scratch_pointer(part, str(lane), position), packet, self.count
                    )

    def _transpose(self, packets: list[Packet]) -> list[Packet]:
        dtype = packets[0].dtype
        found = transpose_block(self.ir, [packet.text for packet in packets], SCALARS[dtype], 1)
        return [Packet(each, dtype, self.count) for each in found]

    def finish_block(self, lane: str, slot: str, start: str, size: str) -> None:
        """Store a block with its carry, which stands in a slot; then carry its total on."""
        ir = self.ir
        begins = ir.value(f"icmp eq i64 {start}, 0")
        end = int_op(ir, "add", start, size)
        if_then(ir, begins, lambda: self._reset_carry(slot))
        if self.scan.initial_mode:
            if_then(ir, begins, self.store_identity)
            self.shift_output(self.kernel.axes - 1)
        if self.scan.initial_mode == "exclusive":
            end = int_min(ir, end, int_op(ir, "sub", self.length, 1))
        carry = tuple(
            read_packet(ir, self._carry_pointer(part, slot), dtype, 1)
            for part, dtype in enumerate(self.dtypes)
        )

        def inside(position: str, mask: str | None) -> None:
            own = self._read_scratch(lane, int_op(ir, "sub", position, start), self.emitter.lanes)
            self.store_results(self.combine(carry, own, begins), position, mask)

        self.for_each_packet(start, end, inside)
        total = self._read_scratch(lane, int_op(ir, "sub", size, 1), 1)
        for part, packet in enumerate(self.combine(carry, total, begins)):
            write_packet(ir, self._carry_pointer(part, slot), packet, 1)

    def _reset_carry(self, slot: str) -> None:
        for part, packet in enumerate(self.neutral):
            write_packet(self.ir, self._carry_pointer(part, slot), packet, 1)

    def _carry_pointer(self, part: int, slot: str) -> str:
        before = 8 * self.count * part
        offset = int_op(self.ir, "add", int_op(self.ir, "shl", slot, 3), before)
        return self.ir.value(f"getelementptr i8, ptr {self.carry_slots}, i64 {offset}")

    def _read_scratch(self, lane: str, position: str, lanes: int) -> Accumulator:
        return tuple(
            read_packet(self.ir, self._scratch_pointer(part, lane, position), dtype, lanes)
            for part, dtype in enumerate(self.dtypes)
        )


def columns(emitter: FunctionEmitter, number: str) -> None:
    """A unit of work is a part of the columns: the rows, one after the other."""
    ir, last = emitter.ir, emitter.kernel.axes - 1
    length, part = emitter.length(last), emitter.unit_length
    more = int_op(ir, "add", length, int_op(ir, "sub", part, 1))
    parts = int_op(ir, "udiv", more, part)
    emitter.set_indices(int_op(ir, "udiv", number, parts), last - 1)
    begin = int_op(ir, "mul", int_op(ir, "urem", number, parts), part)
    _Columns(emitter, begin, int_min(ir, int_op(ir, "add", begin, part), length)).run()


class _Columns(RunningValues):
    """Running values and carries of a part of the columns, in scratch memory."""

    def __init__(self, emitter: FunctionEmitter, begin: str, end: str) -> None:
        super().__init__(emitter)
        self.begin, self.end = begin, end
        self.axis = self.kernel.axes - 2
        self.pointers = list(emitter.pointers)
        columns_ = int_op(self.ir, "add", emitter.unit_length, emitter.lanes)
        self.width = int_op(self.ir, "shl", columns_, 3)

    def run(self) -> None:
        """Add it all."""
        ir = self.ir
        length = self.emitter.length(self.axis)
        self._reset(carries=True)

        def block(start: str) -> None:
            self._reset(carries=False)
            end = int_min(ir, int_op(ir, "add", start, BLOCK), length)
            first = ir.value(f"icmp eq i64 {start}, 0")
            for_range(ir, start, end, 1, lambda row: self._scan_row(row, start, first))
            self._update_carries(first)

        for_range(ir, "0", length, BLOCK, block)
        self.emitter.indices.pop(self.axis, None)

    def _value_pointer(self, what: int, column: str) -> str:
        """Return the pointer to a column's values: of each part the running one, then the carry."""
        ir = self.ir
        inside = int_op(ir, "shl", int_op(ir, "sub", column, self.begin), 3)
        offset = int_op(ir, "add", int_op(ir, "mul", self.width, what), inside)
        return ir.value(f"getelementptr i8, ptr %scratch, i64 {offset}")

    def _read_values(self, column: str, *, carries: bool) -> Accumulator:
        return tuple(
            read_packet(
                self.ir, self._value_pointer(2 * part + carries, column), dtype, self.emitter.lanes
            )
            for part, dtype in enumerate(self.dtypes)
        )

    def _write_values(self, column: str, parts: Accumulator, *, carries: bool) -> None:
        for part, packet in enumerate(parts):
            at = self._value_pointer(2 * part + carries, column)
            write_packet(self.ir, at, packet, self.emitter.lanes)

    def _reset(self, *, carries: bool) -> None:
        for_range(
            self.ir,
            self.begin,
            self.end,
            self.emitter.lanes,
            lambda column: self._write_values(column, self.neutral, carries=carries),
        )

    def _update_carries(self, is_first: str) -> None:
        def inside(column: str) -> None:
            carry, total = (self._read_values(column, carries=carries) for carries in (True, False))
            self._write_values(column, self.combine(carry, total, is_first), carries=True)

        for_range(self.ir, self.begin, self.end, self.emitter.lanes, inside)

    def _scan_row(self, row: str, start: str, is_first_block: str) -> None:
        ir, emitter = self.ir, self.emitter
        emitter.indices[self.axis] = row
        emitter.pointers = [self._row_pointer(number, row) for number in range(len(self.pointers))]
        begins = ir.value(f"icmp eq i64 {row}, {start}")
        if self.scan.initial_mode:
            some = ir.value(f"icmp eq i64 {row}, 0")
            if_then(
                ir, some, lambda: self.for_each_packet(self.begin, self.end, self._store_identity)
            )
            self.shift_output(self.axis)
        last = int_op(ir, "sub", emitter.length(self.axis), 1)
        is_stored = ir.value(f"icmp slt i64 {row}, {last}")

        def inside(column: str, mask: str | None) -> None:
            known: dict[int, Packet] = {}
            emitter.compute(self.targets, known, column, mask)
            x = tuple(known[i] for i in self.scan.inputs)
            running = self.combine(self._read_values(column, carries=False), x, begins)
            self._write_values(column, running, carries=False)
            made = self.combine(self._read_values(column, carries=True), running, is_first_block)
            if self.scan.initial_mode == "exclusive":
                if_then(ir, is_stored, lambda: self.store_results(made, column, mask))
            else:
                self.store_results(made, column, mask)

        self.for_each_packet(self.begin, self.end, inside)

    def _store_identity(self, column: str, mask: str | None) -> None:
        self.store_results(self.identity, column, mask)

    def _row_pointer(self, number: int, row: str) -> str:
        if self.kernel.operands[number].steps[self.axis] != "s":
            return self.pointers[number]
        stride = self.emitter.size["stride", number, self.axis]
        jump = int_op(self.ir, "mul", row, stride)
        return self.ir.value(f"getelementptr i8, ptr {self.pointers[number]}, i64 {jump}")
