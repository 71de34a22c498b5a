"""Step loop: a loop over steps, in which each step reads the values that the last one made.

Input: a FunctionEmitter of a kernel of form "loop". Output: lines. A unit of work is one packet
of elements of the arrays, for all steps in turn; the last one begins so that it is full, and
computes some elements again. The axes are the steps, then the elements. Of `c`
carried values, operand `i` has the first value and operand `c + i` gets the last one. "carry" is
the value that a step begins with. "continue" ends the loop after the step in which it is false.
Carried values stand on the stack, which LLVM turns into registers.

>>> from tenfold.core.loop_ir import Kernel, KernelForm, KernelOperand, KernelStore
>>> from tenfold.core.scalar_ir import Body
>>> from tenfold.codegen.llvm.simd_emitter import SimdEmitter
>>> from tenfold.dtypes import FLOAT64
>>> body = Body()
>>> y = body.apply("carry", FLOAT64, data=(0, 0)) * body.load(2, FLOAT64)
>>> steps = ("01", "01", "s1")
>>> operands = tuple(KernelOperand(FLOAT64, s, written=i == 1) for i, s in enumerate(steps))
>>> stores = (KernelStore(1, (y.position,)),)
>>> kernel = Kernel(operands, tuple(body.instructions), stores, form=KernelForm.LOOP, lanes=1)
>>> len(StepLoop(FunctionEmitter(kernel, SimdEmitter())).slots)
1
"""

from __future__ import annotations

from tenfold.codegen.llvm import load_store
from tenfold.codegen.llvm.function_emitter import FunctionEmitter
from tenfold.codegen.llvm.load_store import PacketAddress
from tenfold.codegen.llvm.loop_emitter import int_min, int_op, read_packet, write_packet
from tenfold.codegen.llvm.simd_emitter import Packet
from tenfold.core.loop_ir import KernelOperand, KernelStore, operand_of, part_of


def unit(emitter: FunctionEmitter, number: str) -> None:
    """Emit a unit of work: all steps of one packet."""
    StepLoop(emitter).run(number)


class StepLoop:
    """The loop of one packet."""

    def __init__(self, emitter: FunctionEmitter) -> None:
        self.emitter, self.ir, self.kernel = emitter, emitter.ir, emitter.kernel
        self.lanes = emitter.kernel.lanes
        self.last_values: list[KernelStore] = []
        self.rows: list[KernelStore] = []
        for store in sorted(self.kernel.stores):
            is_row = self.kernel.operands[store.operand].steps[0] == "s"
            (self.rows if is_row else self.last_values).append(store)
        self.invariant = self._invariant()
        self.slots = [
            [self.ir.alloca(8 * self.lanes) for _ in store.elements] for store in self.last_values
        ]
        """The parts of the carried values on the stack."""
        self.pointers: list[str] = []

    def _invariant(self) -> set[int]:
        """The instructions that have the same value in all steps."""
        invariant: set[int] = set()
        for position, instruction in enumerate(self.kernel.body):
            varies = instruction.name in ("carry", "continue")
            if instruction.name == "load":
                varies = self.kernel.operands[operand_of(instruction)].steps[0] == "s"
            if not varies and invariant.issuperset(instruction.inputs):
                invariant.add(position)
        return invariant

    def run(self, number: str) -> None:
        """Emit the first values, the loop, and the last values."""
        ir, operands = self.ir, self.kernel.operands
        first = number
        if self.lanes > 1:
            last = int_op(ir, "sub", self.emitter.length(1), self.lanes)
            first = int_min(ir, int_op(ir, "mul", number, self.lanes), last)
        self.pointers = [self._element_pointer(operand, first) for operand in range(len(operands))]
        values: dict[int, Packet] = {}
        for position in sorted(self.invariant):
            values[position] = self._emit(position, values, self.pointers)
        for carry, slots in enumerate(self.slots):
            for part, slot in enumerate(slots):
                write_packet(ir, slot, self._load(carry, part, self.pointers), self.lanes)
        self._loop(values)
        for store, slots in zip(self.last_values, self.slots, strict=True):
            packets = [
                read_packet(ir, slot, self.kernel.body[element].dtype, self.lanes)
                for slot, element in zip(slots, store.elements, strict=True)
            ]
            self._store(store.operand, packets, self.pointers)

    def _element_pointer(self, operand: int, number: str) -> str:
        buffer = self.emitter.buffers[operand]
        if self.kernel.operands[operand].steps[1] == "0":
            return buffer
        offset = int_op(self.ir, "mul", number, self.kernel.operands[operand].dtype.itemsize)
        return self.ir.value(f"getelementptr i8, ptr {buffer}, i64 {offset}")

    def _loop(self, invariant: dict[int, Packet]) -> None:
        ir, name = self.ir, self.ir.name()[1:]
        entry_block, phi_line = ir.block, len(ir.lines) + 2
        ir.line(f"br label %{name}.test")
        ir.label(f"{name}.test")
        ir.lines.append("")
        goes_on = ir.value(f"icmp slt i64 %{name}, {self.emitter.length(0)}")
        ir.line(f"br i1 {goes_on}, label %{name}.step, label %{name}.done")
        ir.label(f"{name}.step")
        condition = self._step(f"%{name}", dict(invariant))
        next_step = int_op(ir, "add", f"%{name}", 1)
        ir.lines[phi_line] = (
            f"  %{name} = phi i64 [ 0, %{entry_block} ], [ {next_step}, %{ir.block} ]"
        )
        if condition is None:
            ir.line(f"br label %{name}.test")
        else:
            ir.line(f"br i1 {condition}, label %{name}.test, label %{name}.done")
        ir.label(f"{name}.done")

    def _step(self, step: str, values: dict[int, Packet]) -> str | None:
        """Emit a step; return the condition of the next one, if there is any."""
        ir, kernel, condition = self.ir, self.kernel, None
        pointers = [self._row_pointer(number, step) for number in range(len(kernel.operands))]
        for position, instruction in enumerate(kernel.body):
            if instruction.name == "continue":
                condition = values[instruction.inputs[0]].text
            elif position not in values:
                values[position] = self._emit(position, values, pointers)
        for store in self.rows:
            packets = [values[element] for element in store.elements]
            self._store(store.operand, packets, pointers)
        for store, slots in zip(self.last_values, self.slots, strict=True):
            for slot, element in zip(slots, store.elements, strict=True):
                write_packet(ir, slot, values[element], self.lanes)
        return condition

    def _row_pointer(self, number: int, step: str) -> str:
        if self.kernel.operands[number].steps[0] == "0":
            return self.pointers[number]
        offset = int_op(self.ir, "mul", step, self.emitter.size["stride", number, 0])
        return self.ir.value(f"getelementptr i8, ptr {self.pointers[number]}, i64 {offset}")

    def _emit(self, position: int, values: dict[int, Packet], pointers: list[str]) -> Packet:
        instruction = self.kernel.body[position]
        if instruction.name == "load":
            return self._load(operand_of(instruction), part_of(instruction), pointers)
        if instruction.name == "carry":
            slot = self.slots[operand_of(instruction)][part_of(instruction)]
            return read_packet(self.ir, slot, instruction.dtype, self.lanes)
        return self.ir.emit(instruction, values, self.lanes)

    def _load(self, number: int, part: int, pointers: list[str]) -> Packet:
        return load_store.load(self.ir, *self._packet(number, part, pointers))

    def _store(self, number: int, packets: list[Packet], pointers: list[str]) -> None:
        operand, _, address = self._packet(number, 0, pointers)
        if operand.steps == "0":
            load_store.store_single(self.ir, operand, packets, address.base)
        else:
            load_store.store(self.ir, operand, packets, address)

    def _packet(
        self, number: int, part: int, pointers: list[str]
    ) -> tuple[KernelOperand, int, PacketAddress]:
        operand = self.kernel.operands[number]
        address = PacketAddress(pointers[number], "0", "0", None, self.lanes)
        return operand._replace(steps=operand.steps[1]), part, address
