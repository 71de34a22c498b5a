"""Scan: running sums and products along an axis, sequential in blocks of 1,024.

Input: a FunctionEmitter of a kernel that scans. Output: lines. Each result of a block is combined
with the carry into the block, the sequential total of the blocks before. In a "scan" a unit of work
is one row per lane. Elements are computed into scratch memory, transposed in registers so that a
packet has one element of each row, scanned, and transposed back. Long rows, with one block per
lane, are in codegen/llvm/blocked_scan.py. In "scan columns" packets run along another axis, and the
scanned axis is a loop around them.

>>> from tenfold.dtypes import FLOAT64
>>> from tenfold.core.loop_ir import Kernel, KernelForm, KernelOperand, KernelStore
>>> from tenfold.codegen.llvm.simd_emitter import SimdEmitter
>>> body = Body()
>>> made = body.apply("scan", FLOAT64, body.load(0, FLOAT64), data=("add", 0, ""))
>>> operands = (KernelOperand(FLOAT64, "1"), KernelOperand(FLOAT64, "1", written=True))
>>> stores = (KernelStore(1, (1,)),)
>>> kernel = Kernel(operands, tuple(body.instructions), stores, form=KernelForm.SCAN)
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
from tenfold.core.canonical_reduction import BLOCK
from tenfold.core.loop_ir import PITCH
from tenfold.core.scalar_ir import Body
from tenfold.dtypes import kind_of


class RunningValues:
    """The scanned values, and the combination of running values."""

    def __init__(self, emitter: FunctionEmitter) -> None:
        self.emitter, self.ir, self.kernel = emitter, emitter.ir, emitter.kernel
        self.scan = emitter.kernel.scan
        self.dtypes = [self.kernel.body[i].dtype for i in self.scan.inputs]
        self.exact = self.scan.kind == "add" or len(self.dtypes) == 1
        """Whether the identity is exact: a complex product of inf with 1 may be NaN."""
        self.neutral = self._identity_packets(negative_zero=True)
        self.identity = self._identity_packets(negative_zero=False)
        numbered = enumerate(self.kernel.body)
        self.targets = [
            *self.scan.inputs,
            *(i for i, instruction in numbered if instruction.name == "fail"),
        ]
        (self.store,) = self.kernel.stores

    def _identity_packets(self, *, negative_zero: bool) -> Accumulator:
        packets = []
        for component, dtype in enumerate(self.dtypes):
            value: float = int(self.scan.kind == "product" and component == 0)
            if value == 0 and negative_zero and kind_of(dtype) == "f":
                value = -0.0
            body = Body()
            position = body.constant(value, dtype).position
            packets.append(self.ir.emit(body.instructions[position], {}, 1))
        return tuple(packets)

    def combine(self, previous: Accumulator, x: Accumulator, is_first: str | None) -> Accumulator:
        """Return the next running value; `is_first`: an i1 that holds for the first one."""
        result = combine_partials(self.ir, self.scan.kind, previous, x)
        if self.exact or is_first is None:
            return result
        selected = []
        for combined, element in zip(result, x, strict=True):
            type_ = llvm_type(combined.dtype, combined.lanes)
            value = self.ir.broadcast(element, combined.lanes)
            choice = self.ir.value(
                f"select i1 {is_first}, {type_} {value}, {type_} {combined.text}"
            )
            selected.append(Packet(choice, combined.dtype, combined.lanes))
        return tuple(selected)

    def store_results(self, running: Accumulator, position: str, mask: str | None) -> None:
        """Store the results that depend on running values."""
        values = self._results(running, position, mask)
        self.emitter.store([self.store], values, position, mask)

    def _results(self, running: Accumulator, position: str, mask: str | None) -> dict[int, Packet]:
        values = {i: p for i, p in zip(self.scan.results, running, strict=True) if i >= 0}
        self.emitter.compute(self.store.elements, values, position, mask)
        return values

    def store_identity(self) -> None:
        """Store the identity at the pointer of the result."""
        values = self._results(self.identity, "0", None)
        packets = [values[i] for i in self.store.elements]
        operand = self.kernel.operands[self.store.operand]
        load_store.store_single(
            self.ir, operand, packets, self.emitter.pointers[self.store.operand]
        )

    def shift_output(self, axis: int) -> None:
        """Advance the pointer of the result by one element."""
        number = self.store.operand
        stride = self.emitter.size.get(("stride", number, axis))
        if stride is None:
            stride = str(self.kernel.operands[number].dtype.itemsize)
        pointer = self.emitter.pointers[number]
        self.emitter.pointers[number] = self.ir.value(
            f"getelementptr i8, ptr {pointer}, i64 {stride}"
        )

    def for_each_packet(
        self, begin: str, end: str, body: Callable[[str, str | None], None]
    ) -> None:
        """Emit a loop over packets from begin to end; `body` gets the first lane and the mask."""
        ir, emitter = self.ir, self.emitter
        if self.kernel.masked:
            for_range(ir, begin, end, emitter.lanes, lambda i: body(i, emitter.mask(i, end)))
            return
        count = int_op(ir, "sub", end, begin)
        full_end = int_op(ir, "sub", end, int_op(ir, "urem", count, emitter.lanes))
        for_range(ir, begin, full_end, emitter.lanes, lambda i: body(i, None))
        has_tail = ir.value(f"icmp slt i64 {full_end}, {end}")
        if_then(ir, has_tail, lambda: body(full_end, emitter.mask(full_end, end)))


def scan_rows(emitter: FunctionEmitter, number: str) -> None:
    """Emit a unit of work: one row per lane, block after block."""
    ir, kernel = emitter.ir, emitter.kernel
    lanes = ScanLanes(emitter)
    count = "1"
    for axis in range(kernel.axes - 1):
        count = int_op(ir, "mul", count, emitter.length(axis))
    first_row = int_op(ir, "mul", number, lanes.count)
    valid = int_min(ir, int_op(ir, "sub", count, first_row), lanes.count)

    def for_each_lane(body: Callable[[str], None]) -> None:
        def visit_lane(i: str) -> None:
            emitter.set_indices(int_op(ir, "add", first_row, i), kernel.axes - 1)
            body(i)

        for_range(ir, "0", valid, 1, visit_lane)

    def scan_block(start: str) -> None:
        size = int_min(ir, int_op(ir, "sub", lanes.length, start), BLOCK)
        for_each_lane(lambda i: lanes.fill_block(i, start, size))
        lanes.scan_blocks(size)
        for_each_lane(lambda i: lanes.finish_block(i, i, start, size))

    for_range(ir, "0", lanes.length, BLOCK, scan_block)


class ScanLanes(RunningValues):
    """One row or block per lane: lane i of a packet is an element of the i-th."""

    def __init__(self, emitter: FunctionEmitter) -> None:
        super().__init__(emitter)
        self.count = self.kernel.side_by_side
        self.length = emitter.length(self.kernel.axes - 1)
        self.itemsize = self.dtypes[0].itemsize
        self.carry_slots = self.ir.alloca(8 * self.count * len(self.dtypes))
        self.running_slots = self.ir.alloca(8 * self.count * len(self.dtypes))

    def _scratch_pointer(self, component: int, lane: str, position: str) -> str:
        ir, pitch = self.ir, PITCH * self.itemsize
        offset = int_op(ir, "add", int_op(ir, "mul", lane, pitch), component * self.count * pitch)
        offset = int_op(ir, "add", offset, int_op(ir, "mul", position, self.itemsize))
        return ir.value(f"getelementptr i8, ptr %scratch, i64 {offset}")

    def fill_block(self, lane: str, start: str, size: str) -> None:
        """Compute the elements of a block into scratch memory."""

        def compute_packet(position: str, mask: str | None) -> None:
            values: dict[int, Packet] = {}
            self.emitter.compute(self.targets, values, position, mask)
            offset = int_op(self.ir, "sub", position, start)
            for component, i in enumerate(self.scan.inputs):
                write_packet(
                    self.ir,
                    self._scratch_pointer(component, lane, offset),
                    values[i],
                    self.emitter.lanes,
                )

        self.for_each_packet(start, int_op(self.ir, "add", start, size), compute_packet)

    def scan_blocks(
        self, size: str, begin: tuple[str, str] | None = None, *, stored: bool = True
    ) -> None:
        """Scan the elements in scratch memory, up to `size` of each lane.

        `begin`: another pointer to the first lane, and the bytes from lane to lane. Without
        `stored` only the total of each lane is stored.
        """
        for component, packet in enumerate(self.neutral):
            write_packet(self.ir, self.running_pointer(component), packet, self.count)
        name = f"scan.{'blocks' if stored else 'totals'}"
        if name not in self.ir.functions:
            self.ir.functions[name] = self._function(name, stored)
        pointer, step = begin or ("%scratch", str(PITCH * self.itemsize))
        arguments = f"ptr %scratch, ptr {pointer}, i64 {step}, i64 {size}, ptr {self.running_slots}"
        self.ir.line(f"call void @{name}({arguments})")

    def _function(self, name: str, stored: bool) -> str:
        """Return a function of the module: its text is long, and several places call it."""
        outer, running = self.ir, self.running_slots
        self.ir, self.running_slots = SimdEmitter(baseline=outer.baseline), "%running"
        inner = self.ir
        for_range(inner, "0", "%size", self.count, lambda at: self._scan_square(at, stored))
        inner.line("ret void")
        self.ir, self.running_slots = outer, running
        parameters = "ptr %scratch, ptr %begin, i64 %step, i64 %size, ptr %running"
        return f"define internal void @{name}({parameters}) noinline {{\nentry:\n{inner}\n}}"

    def running_pointer(self, component: int) -> str:
        """Return the pointer to the running values of the lanes."""
        offset = 8 * self.count * component
        return self.ir.value(f"getelementptr i8, ptr {self.running_slots}, i64 {offset}")

    def _read_lanes(self, component: int, position: str) -> list[Packet]:
        """Load a packet of each lane."""
        ir, component_offset = self.ir, component * self.count * PITCH * self.itemsize
        offset = int_op(ir, "add", int_op(ir, "mul", position, self.itemsize), component_offset)
        pointer = ir.value(f"getelementptr i8, ptr %begin, i64 {offset}")
        packets = []
        for lane in range(self.count):
            if lane:
                pointer = ir.value(f"getelementptr i8, ptr {pointer}, i64 %step")
            packets.append(read_packet(ir, pointer, self.dtypes[component], self.count))
        return packets

    def _scan_square(self, position: str, stored: bool) -> None:
        ir, component_range = self.ir, range(len(self.dtypes))
        columns = [
            self._transpose(self._read_lanes(component, position)) for component in component_range
        ]
        running: Accumulator = tuple(
            read_packet(ir, self.running_pointer(component), dtype, self.count)
            for component, dtype in enumerate(self.dtypes)
        )
        is_first = ir.value(f"icmp eq i64 {position}, 0")
        scanned = []
        for i, row in enumerate(zip(*columns, strict=True)):
            running = self.combine(running, row, None if i else is_first)
            scanned.append(running)
        for component in component_range:
            write_packet(ir, self.running_pointer(component), running[component], self.count)
            if stored:
                for lane, packet in enumerate(self._transpose([x[component] for x in scanned])):
                    write_packet(
                        ir,
                        self._scratch_pointer(component, str(lane), position),
                        packet,
                        self.count,
                    )

    def _transpose(self, packets: list[Packet]) -> list[Packet]:
        dtype = packets[0].dtype
        transposed = transpose_block(
            self.ir, [packet.text for packet in packets], SCALARS[dtype], 1
        )
        return [Packet(packet_text, dtype, self.count) for packet_text in transposed]

    def finish_block(self, lane: str, slot: str, start: str, size: str) -> None:
        """Store a block combined with the carry of a slot; then update the carry."""
        ir = self.ir
        is_first = ir.value(f"icmp eq i64 {start}, 0")
        end = int_op(ir, "add", start, size)
        if_then(ir, is_first, lambda: self._reset_carry(slot))
        if self.scan.initial_mode:
            if_then(ir, is_first, self.store_identity)
            self.shift_output(self.kernel.axes - 1)
        if self.scan.initial_mode == "exclusive":
            end = int_min(ir, end, int_op(ir, "sub", self.length, 1))
        carry = tuple(
            read_packet(ir, self._carry_pointer(component, slot), dtype, 1)
            for component, dtype in enumerate(self.dtypes)
        )

        def store_packet(position: str, mask: str | None) -> None:
            elements = self._read_scratch(
                lane, int_op(ir, "sub", position, start), self.emitter.lanes
            )
            self.store_results(self.combine(carry, elements, is_first), position, mask)

        self.for_each_packet(start, end, store_packet)
        total = self._read_scratch(lane, int_op(ir, "sub", size, 1), 1)
        for component, packet in enumerate(self.combine(carry, total, is_first)):
            write_packet(ir, self._carry_pointer(component, slot), packet, 1)

    def _reset_carry(self, slot: str) -> None:
        for component, packet in enumerate(self.neutral):
            write_packet(self.ir, self._carry_pointer(component, slot), packet, 1)

    def _carry_pointer(self, component: int, slot: str) -> str:
        component_offset = 8 * self.count * component
        offset = int_op(self.ir, "add", int_op(self.ir, "shl", slot, 3), component_offset)
        return self.ir.value(f"getelementptr i8, ptr {self.carry_slots}, i64 {offset}")

    def _read_scratch(self, lane: str, position: str, lanes: int) -> Accumulator:
        return tuple(
            read_packet(self.ir, self._scratch_pointer(component, lane, position), dtype, lanes)
            for component, dtype in enumerate(self.dtypes)
        )


def scan_columns(emitter: FunctionEmitter, number: str) -> None:
    """Emit a unit of work: a range of columns, row after row."""
    ir, last = emitter.ir, emitter.kernel.axes - 1
    length, unit_length = emitter.length(last), emitter.unit_length
    rounded = int_op(ir, "add", length, int_op(ir, "sub", unit_length, 1))
    unit_count = int_op(ir, "udiv", rounded, unit_length)
    emitter.set_indices(int_op(ir, "udiv", number, unit_count), last - 1)
    begin = int_op(ir, "mul", int_op(ir, "urem", number, unit_count), unit_length)
    _ColumnScan(emitter, begin, int_min(ir, int_op(ir, "add", begin, unit_length), length)).run()


class _ColumnScan(RunningValues):
    """Running values and carries of a range of columns, in scratch memory."""

    def __init__(self, emitter: FunctionEmitter, begin: str, end: str) -> None:
        super().__init__(emitter)
        self.begin, self.end = begin, end
        self.axis = self.kernel.axes - 2
        self.pointers = list(emitter.pointers)
        padded_columns = int_op(self.ir, "add", emitter.unit_length, emitter.lanes)
        self.width = int_op(self.ir, "shl", padded_columns, 3)

    def run(self) -> None:
        """Emit the scan."""
        ir = self.ir
        length = self.emitter.length(self.axis)
        self._reset(carries=True)

        def scan_block(start: str) -> None:
            self._reset(carries=False)
            end = int_min(ir, int_op(ir, "add", start, BLOCK), length)
            is_first = ir.value(f"icmp eq i64 {start}, 0")
            for_range(ir, start, end, 1, lambda row: self._scan_row(row, start, is_first))
            self._update_carries(is_first)

        for_range(ir, "0", length, BLOCK, scan_block)
        self.emitter.indices.pop(self.axis, None)

    def _value_pointer(self, value_row: int, column: str) -> str:
        """Return the pointer to a column's values: per component running value and carry."""
        ir = self.ir
        column_offset = int_op(ir, "shl", int_op(ir, "sub", column, self.begin), 3)
        offset = int_op(ir, "add", int_op(ir, "mul", self.width, value_row), column_offset)
        return ir.value(f"getelementptr i8, ptr %scratch, i64 {offset}")

    def _read_values(self, column: str, *, carries: bool) -> Accumulator:
        return tuple(
            read_packet(
                self.ir,
                self._value_pointer(2 * component + carries, column),
                dtype,
                self.emitter.lanes,
            )
            for component, dtype in enumerate(self.dtypes)
        )

    def _write_values(self, column: str, components: Accumulator, *, carries: bool) -> None:
        for component, packet in enumerate(components):
            pointer = self._value_pointer(2 * component + carries, column)
            write_packet(self.ir, pointer, packet, self.emitter.lanes)

    def _reset(self, *, carries: bool) -> None:
        for_range(
            self.ir,
            self.begin,
            self.end,
            self.emitter.lanes,
            lambda column: self._write_values(column, self.neutral, carries=carries),
        )

    def _update_carries(self, is_first: str) -> None:
        def update_packet(column: str) -> None:
            carry, total = (self._read_values(column, carries=carries) for carries in (True, False))
            self._write_values(column, self.combine(carry, total, is_first), carries=True)

        for_range(self.ir, self.begin, self.end, self.emitter.lanes, update_packet)

    def _scan_row(self, row: str, start: str, is_first_block: str) -> None:
        ir, emitter = self.ir, self.emitter
        emitter.indices[self.axis] = row
        emitter.pointers = [self._row_pointer(number, row) for number in range(len(self.pointers))]
        is_block_start = ir.value(f"icmp eq i64 {row}, {start}")
        if self.scan.initial_mode:
            is_first_row = ir.value(f"icmp eq i64 {row}, 0")
            if_then(
                ir,
                is_first_row,
                lambda: self.for_each_packet(self.begin, self.end, self._store_identity),
            )
            self.shift_output(self.axis)
        last = int_op(ir, "sub", emitter.length(self.axis), 1)
        is_stored = ir.value(f"icmp slt i64 {row}, {last}")

        def scan_packet(column: str, mask: str | None) -> None:
            values: dict[int, Packet] = {}
            emitter.compute(self.targets, values, column, mask)
            x = tuple(values[i] for i in self.scan.inputs)
            running = self.combine(self._read_values(column, carries=False), x, is_block_start)
            self._write_values(column, running, carries=False)
            result = self.combine(self._read_values(column, carries=True), running, is_first_block)
            if self.scan.initial_mode == "exclusive":
                if_then(ir, is_stored, lambda: self.store_results(result, column, mask))
            else:
                self.store_results(result, column, mask)

        self.for_each_packet(self.begin, self.end, scan_packet)

    def _store_identity(self, column: str, mask: str | None) -> None:
        self.store_results(self.identity, column, mask)

    def _row_pointer(self, number: int, row: str) -> str:
        if self.kernel.operands[number].steps[self.axis] != "s":
            return self.pointers[number]
        stride = self.emitter.size["stride", number, self.axis]
        byte_offset = int_op(self.ir, "mul", row, stride)
        return self.ir.value(f"getelementptr i8, ptr {self.pointers[number]}, i64 {byte_offset}")
