"""Function emitter: emits one kernel function, and tracks its sizes, pointers, indices and known
values.

Input: a Kernel whose functions are expanded to formulas. Output: the packets of its instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import numpy as np

from tenfold.codegen.llvm import load_store
from tenfold.codegen.llvm.load_store import PacketAddress, iota
from tenfold.codegen.llvm.loop_emitter import for_range, if_then, int_min, int_op
from tenfold.codegen.llvm.simd_emitter import Packet, SimdEmitter, llvm_type
from tenfold.core.loop_ir import Kernel, KernelStore, operand_of, part_of
from tenfold.dtypes import BOOL, INT64

HEADER = "ptr %buffers, ptr %sizes, ptr %scalars, ptr %scratch, i64 %begin, i64 %end"


class FunctionEmitter:
    """One kernel function, with the loop indices at the current insertion point."""

    def __init__(self, kernel: Kernel, ir: SimdEmitter) -> None:
        self.kernel, self.ir, self.lanes = kernel, ir, kernel.lanes
        self.size: dict[tuple[str, int, int], str] = {}
        self.buffers: list[str] = []
        self.pointers: list[str] = []
        """Pointers to the first element of each operand at the index of the outer axes."""
        self.indices: dict[int, str] = {}
        """The current index of each axis except the packet axis."""
        self.uniform_values: dict[int, Packet] = {}
        """Computed values that are equal for the whole unit of work."""
        self.valid_lanes: dict[str, str] = {}
        """The number of lanes of each mask."""
        self.contiguous_starts: dict[int, str] = {}
        """By offset of a gather: the start of its packets, which are contiguous."""
        for number, name in enumerate(kernel.sizes):
            self.size[name] = self._load_argument("%sizes", number, "i64")
        for number in range(len(kernel.operands)):
            self.buffers.append(self._load_argument("%buffers", number, "ptr"))

    def _load_argument(self, table: str, number: int, type_: str) -> str:
        slot = self.ir.value(f"getelementptr i64, ptr {table}, i64 {number}")
        return self.ir.value(f"load {type_}, ptr {slot}")

    def length(self, axis: int) -> str:
        """Return the length of an axis."""
        return self.size["length", axis, 0]

    @property
    def unit_length(self) -> str:
        """The length of one unit of work."""
        return self.size["part", 0, 0]

    def set_indices(self, row: str, axes: int) -> None:
        """Set the indices of the first `axes` axes from a row-major number."""
        ir, remaining = self.ir, row
        for axis in reversed(range(axes)):
            if axis:
                self.indices[axis] = int_op(ir, "urem", remaining, self.length(axis))
                remaining = int_op(ir, "udiv", remaining, self.length(axis))
            else:
                self.indices[axis] = remaining
        self.pointers = [self._strided_pointer(number, axes) for number in range(len(self.buffers))]

    def _strided_pointer(self, number: int, axes: int) -> str:
        offset = None
        for axis in range(axes):
            operand = self.kernel.operands[number]
            if operand.steps[axis] != "0":
                stride = self.size.get(("stride", number, axis), str(operand.dtype.itemsize))
                byte_offset = int_op(self.ir, "mul", self.indices[axis], stride)
                offset = (
                    byte_offset if offset is None else int_op(self.ir, "add", offset, byte_offset)
                )
        buffer = self.buffers[number]
        if offset is None:
            return buffer
        return self.ir.value(f"getelementptr i8, ptr {buffer}, i64 {offset}")

    def pointer(self, number: int) -> str:
        """Return the pointer to an operand's element at position 0 of the packet axis."""
        kernel = self.kernel
        is_last = kernel.folded == kernel.axes - 1
        if is_last or kernel.operands[number].steps[kernel.folded] != "s":
            return self.pointers[number]
        key = ("row", self.pointers[number], self.indices[kernel.folded])
        pointer = self.ir.value_cache.get(key)
        if pointer is None:
            stride = self.size["stride", number, kernel.folded]
            offset = int_op(self.ir, "mul", self.indices[kernel.folded], stride)
            pointer = self.ir.value(f"getelementptr i8, ptr {self.pointers[number]}, i64 {offset}")
            self.ir.value_cache[key] = pointer
        return pointer

    def address(self, number: int, position: str, mask: str | None) -> PacketAddress:
        """Return the address of the packet of an operand at a position."""
        stride = self.size.get(("stride", number, self.kernel.axes - 1), "0")
        valid = self.valid_lanes.get(mask or "")
        return PacketAddress(self.pointer(number), position, stride, mask, self.lanes, valid)

    def total_pointers(self, dtypes: Iterable[np.dtype], number: str) -> list[str]:
        """Return pointers to an entry of the tables of totals, one per dtype.

        The tables follow the operands in the table of buffers.
        """
        pointers = []
        first = len(self.kernel.operands) + self.kernel.waits
        for buffer, dtype in enumerate(dtypes, first):
            start = self._load_argument("%buffers", buffer, "ptr")
            type_ = load_store.memory_type(dtype)
            pointers.append(self.ir.value(f"getelementptr {type_}, ptr {start}, i64 {number}"))
        return pointers

    def mask(self, position: str, end: str) -> str:
        """Emit the mask of the lanes from `position` that are below `end`."""
        ir, lanes = self.ir, self.lanes
        valid = int_min(ir, int_op(ir, "sub", end, position), lanes)
        valid_i32 = ir.value(f"trunc i64 {valid} to i32")
        inserted = ir.value(f"insertelement <{lanes} x i32> poison, i32 {valid_i32}, i64 0")
        zeros = f"<{lanes} x i32> zeroinitializer"
        limit = ir.value(
            f"shufflevector <{lanes} x i32> {inserted}, <{lanes} x i32> poison, {zeros}"
        )
        mask = ir.value(f"icmp slt <{lanes} x i32> {iota(lanes, 'i32')}, {limit}")
        self.valid_lanes[mask] = valid
        return mask

    def for_packets(self, begin: str, end: str, emit: Callable[[str, str | None], None]) -> None:
        """Loop over packets from begin to end; `emit` gets the position, and the mask of the last.

        In a kernel whose packets are all masked each gets one.
        """
        ir, lanes = self.ir, self.lanes
        if self.kernel.masked:
            for_range(ir, begin, end, lanes, lambda i: emit(i, self.mask(i, end)))
            return
        tail = int_op(ir, "urem", int_op(ir, "sub", end, begin), lanes)
        full_end = int_op(ir, "sub", end, tail)
        for_range(ir, begin, full_end, lanes, lambda i: emit(i, None))
        has_tail = ir.value(f"icmp ne i64 {tail}, 0")
        if_then(ir, has_tail, lambda: emit(full_end, self.mask(full_end, end)))

    def compute(
        self, targets: Iterable[int], values: dict[int, Packet], position: str, mask: str | None
    ) -> None:
        """Emit `targets` and their inputs at a position, and add them to `values`."""
        for number in sorted(self.missing_inputs(targets, values)):
            values[number] = self._emit_instruction(number, values, position, mask)

    def missing_inputs(self, targets: Iterable[int], values: dict[int, Packet]) -> set[int]:
        """Return `targets` and their inputs that are not in `values`."""
        missing: set[int] = set()
        stack = [number for number in targets if number not in values]
        while stack:
            number = stack.pop()
            if number not in missing:
                missing.add(number)
                stack += {*self.kernel.body[number].inputs}.difference(values)
        return missing

    def _emit_instruction(
        self, number: int, values: dict[int, Packet], position: str, mask: str | None
    ) -> Packet:
        instruction, ir = self.kernel.body[number], self.ir
        if instruction.name == "load":
            operand = operand_of(instruction)
            address = self.address(operand, position, mask)
            return load_store.load(ir, self.kernel.operands[operand], part_of(instruction), address)
        if instruction.name == "gather":
            return self._emit_gather(number, values, mask, position)
        if instruction.name == "index":
            return self._emit_index(int(str(instruction.data)), position)
        if instruction.name == "parameter":
            number = int(str(instruction.data))
            pointer = ir.value(f"getelementptr i64, ptr %scalars, i64 {number}")
            from tenfold.codegen.llvm.loop_emitter import read_packet

            return read_packet(ir, pointer, instruction.dtype, 1)
        if instruction.name == "fail":
            self._exit_if_failed(values[instruction.inputs[0]], position, mask)
            return Packet("false", BOOL, 1)
        assert instruction.name != "fold", "a fold is known once its pass has ended"
        return ir.emit(instruction, values, self.lanes)

    def _emit_index(self, axis: int, position: str) -> Packet:
        if axis < self.kernel.axes - 1:
            return Packet(self.indices[axis], INT64, 1)
        if self.lanes == 1:
            return Packet(position, INT64, 1)
        return self.positions(position)

    def positions(self, position: str) -> Packet:
        """Return the packet of positions from `position` on."""
        start = self.ir.broadcast(Packet(position, INT64, 1), self.lanes)
        type_ = llvm_type(INT64, self.lanes)
        return Packet(self.ir.value(f"add {type_} {start}, {iota(self.lanes)}"), INT64, self.lanes)

    def _emit_gather(
        self, number: int, values: dict[int, Packet], mask: str | None, position: str
    ) -> Packet:
        ir, lanes, instruction = self.ir, self.lanes, self.kernel.body[number]
        operand = self.kernel.operands[operand_of(instruction)]
        component, base = part_of(instruction), self.pointer(operand_of(instruction))
        offset, valid = (values[i] for i in instruction.inputs)
        if valid.text != "true":
            valid_lanes = ir.broadcast(valid, lanes)
            mask = (
                valid_lanes
                if mask is None
                else ir.value(f"and <{lanes} x i1> {valid_lanes}, {mask}")
            )
        if offset.lanes == 1 and valid.text == "true":
            byte_offset = int_op(ir, "mul", offset.text, operand.dtype.itemsize)
            pointer = ir.value(f"getelementptr i8, ptr {base}, i64 {byte_offset}")
            address = PacketAddress(pointer, position, "0", None, 1)
            return load_store.load(ir, operand._replace(steps="0"), component, address)
        start = self.contiguous_start(instruction.inputs[0], values)
        if start is not None:
            byte_offset = int_op(ir, "mul", start, operand.dtype.itemsize)
            pointer = ir.value(f"getelementptr i8, ptr {base}, i64 {byte_offset}")
            address = PacketAddress(pointer, position, "0", mask, lanes)
            return load_store.load(ir, operand._replace(steps="1"), component, address)
        return load_store.load_offsets(
            ir, operand, component, base, ir.broadcast(offset, lanes), mask, lanes
        )

    def contiguous_start(self, number: int, values: dict[int, Packet]) -> str | None:
        """Return an offset minus the position on the packet axis, if it is equal for the whole
        packet: the read is then contiguous.
        """
        instruction = self.kernel.body[number]
        if number in self.contiguous_starts:
            return self.contiguous_starts[number]
        if instruction.name == "index":
            return "0" if instruction.data == self.kernel.axes - 1 else None
        if instruction.name not in ("add", "subtract"):
            return None
        first, second = instruction.inputs
        if second not in values or first not in values:
            return None
        if instruction.name == "add" and values[first].lanes == 1:
            first, second = second, first
        if values[second].lanes > 1:
            return None
        start = self.contiguous_start(first, values)
        operation = "sub" if instruction.name == "subtract" else "add"
        return start and int_op(self.ir, operation, start, values[second].text)

    def _exit_if_failed(self, condition: Packet, position: str, mask: str | None) -> None:
        """Return 1 + the row-major number of the first failing element from the function."""
        ir, lanes = self.ir, self.lanes
        if condition.lanes == 1:  # equal for the whole packet
            lanes, mask = 1, None
        bits = ir.broadcast(condition, lanes)
        if mask is not None:
            bits = ir.value(f"and <{lanes} x i1> {bits}, {mask}")
        any_failed = bits
        if lanes > 1:
            any_failed = ir.intrinsic(
                f"llvm.vector.reduce.or.v{lanes}i1", "i1", [(f"<{lanes} x i1>", bits)]
            )

        def return_status() -> None:
            lane = "0" if lanes == 1 else self._first_lane(bits)
            number = self.element_number(position)
            status = int_op(ir, "add", int_op(ir, "add", number, lane), 1)
            ir.line(f"ret i64 {status}")
            ir.label(f"{ir.name()[1:]}.unreached")

        if_then(ir, any_failed, return_status)

    def element_number(self, position: str) -> str:
        """Return the row-major number of the element at a position of the packet axis."""
        ir, number = self.ir, "0"
        for axis in range(self.kernel.axes - 1):
            number = int_op(ir, "mul", number, self.length(axis))
            # a value equal along the folded axis of a column counts at index 0
            number = int_op(ir, "add", number, self.indices.get(axis, "0"))
        number = int_op(ir, "mul", number, self.length(self.kernel.axes - 1))
        return int_op(ir, "add", number, position)

    def _first_lane(self, bits: str) -> str:
        """Return the first lane that is set."""
        ir, lanes = self.ir, self.lanes
        bitmask = ir.value(f"bitcast <{lanes} x i1> {bits} to i{lanes}")
        lane = ir.intrinsic(
            f"llvm.cttz.i{lanes}", f"i{lanes}", [(f"i{lanes}", bitmask), ("i1", "true")]
        )
        if lanes == 64:
            return lane
        return ir.value(f"{'zext' if lanes < 64 else 'trunc'} i{lanes} {lane} to i64")

    def store(
        self,
        stores: Iterable[KernelStore],
        values: dict[int, Packet],
        position: str,
        mask: str | None,
    ) -> None:
        """Emit stores of packets at a position."""
        for store in stores:
            packets = [values[i] for i in store.elements]
            address = self.address(store.operand, position, mask)
            operand = self.kernel.operands[store.operand]
            load_store.store(self.ir, operand, packets, address, streamed=self.kernel.streamed)

    @contextmanager
    def index_at(self, axis: int, index: str) -> Iterator[None]:
        """Set the index of the folded axis of a column."""
        self.indices[axis] = index
        yield
        del self.indices[axis]

    @contextmanager
    def packets_of(self, lanes: int) -> Iterator[None]:
        """Compute packets of so many elements."""
        self.lanes, previous = lanes, self.lanes
        yield
        self.lanes = previous

    @contextmanager
    def contiguous_at(self, offset: int, start: str) -> Iterator[None]:
        """Read packets at an offset from `start` plus the position on: they are contiguous."""
        self.contiguous_starts[offset] = start
        yield
        del self.contiguous_starts[offset]
