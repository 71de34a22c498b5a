"""Thread emitter: emits the function of one thread, which computes one element at a time.

Input: a Kernel whose functions are expanded to formulas. Output: text in the common words of
`words.py`, with the arithmetic of packets of one element, so that each bit is that of the
processor's kernel. An element that fails is reported; its gathers read nothing, and the thread goes
on, since others may wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tenfold.codegen.llvm import load_store
from tenfold.codegen.llvm.function_emitter import FunctionEmitter
from tenfold.codegen.llvm.load_store import PacketAddress
from tenfold.codegen.llvm.loop_emitter import if_then, int_op
from tenfold.codegen.llvm.simd_emitter import SCALARS, Packet, SimdEmitter
from tenfold.codegen.simt.words import WARP
from tenfold.core.loop_ir import Kernel, KernelStore, operand_of, part_of
from tenfold.dtypes import BOOL

THREAD_NUMBER = "%unit"
"""The number of the thread in its launch."""


class ThreadEmitter(FunctionEmitter):
    """The function of a thread, with the indices at the current insertion point."""

    def __init__(self, kernel: Kernel, ir: SimdEmitter) -> None:
        super().__init__(kernel, ir)
        self.lanes = 1
        self.staged: dict[int, str] = {}
        """By operand: the pointer to its element in shared memory."""

    def _load_argument(self, table: str, number: int, type_: str) -> str:
        slot = self.ir.value(f"getelementptr i64, ptr {table}, i64 {number}")
        if type_ == "ptr":
            return self.ir.value(f"load pointer, ptr {slot}")
        return self.ir.value(f"load {type_}, ptr {slot}, align 8")

    def address(self, number: int, position: str, mask: str | None) -> PacketAddress:
        """Return the address of an element, in shared memory if it is staged there."""
        if number in self.staged:
            return PacketAddress(self.staged[number], "0", "0", None, 1)
        return super().address(number, position, mask)

    def for_each_thread(self, total: str, body: Callable[[str], None]) -> None:
        """Let the first `total` threads do what `body` emits for a thread's number."""
        has_work = self.ir.value(f"icmp slt i64 {THREAD_NUMBER}, {total}")
        if_then(self.ir, has_work, lambda: body(THREAD_NUMBER))

    def for_each_warp(self, total: str, body: Callable[[str], None]) -> None:
        """Let the first `total` warps do what `body` emits for a warp's number."""
        number = int_op(self.ir, "udiv", THREAD_NUMBER, WARP)
        has_work = self.ir.value(f"icmp slt i64 {number}, {total}")
        if_then(self.ir, has_work, lambda: body(number))

    def on_first_lane(self, body: Callable[[], None]) -> None:
        """Let the first lane of a warp do what `body` emits."""
        if_then(self.ir, self.ir.value(f"icmp eq i64 {self.lane()}, 0"), body)

    def set_index(self, axis: int, index: str) -> None:
        """Set the index of an axis below the last one."""
        self.indices[axis] = index
        axes = self.kernel.axes - 1
        self.pointers = [self._strided_pointer(number, axes) for number in range(len(self.buffers))]

    def begin(self, position: str) -> None:
        """Compute what is equal for all that the thread computes."""
        self.uniform_values = {}
        uniform = [i for i, level in enumerate(self.kernel.levels) if level < 0]
        self.compute(uniform, self.uniform_values, position, None)

    def elements(self, axes: int) -> str:
        """Return the number of indices of the first axes."""
        total = "1"
        for axis in range(axes):
            total = (
                self.length(axis) if axis == 0 else int_op(self.ir, "mul", total, self.length(axis))
            )
        return total

    def _emit_gather(
        self,
        number: int,
        values: dict[int, Packet],
        mask: str | None,  # noqa: ARG002  # a thread has none
        position: str,
    ) -> Packet:
        ir, instruction = self.ir, self.kernel.body[number]
        offset, valid = (values[i] for i in instruction.inputs)
        readable = valid.text
        for earlier in self.kernel.body[:number]:
            if earlier.name == "fail" and earlier.inputs[0] in values:
                passed = ir.value(f"xor i1 {values[earlier.inputs[0]].text}, true")
                readable = ir.value(f"and i1 {passed}, {readable}")
        operand = self.kernel.operands[operand_of(instruction)]
        byte_offset = int_op(ir, "mul", offset.text, operand.dtype.itemsize)
        base = self.pointer(operand_of(instruction))
        name, dtype, before = ir.name()[1:], instruction.dtype, ir.block
        ir.line(f"br i1 {readable}, label %{name}.read, label %{name}.after")
        ir.label(f"{name}.read")
        pointer = ir.value(f"getelementptr i8, ptr {base}, i64 {byte_offset}")
        address = PacketAddress(pointer, position, "0", None, 1)
        loaded = load_store.load(ir, operand._replace(steps="0"), part_of(instruction), address)
        ir.line(f"br label %{name}.after")
        ir.label(f"{name}.after")
        zero = "false" if dtype == BOOL else "0.0" if SCALARS[dtype] in ("float", "double") else "0"
        edges = f"[ {zero}, %{before} ], [ {loaded.text}, %{name}.read ]"
        return Packet(ir.value(f"phi {SCALARS[dtype]} {edges}"), dtype, 1)

    def _exit_if_failed(
        self,
        condition: Packet,
        position: str,
        mask: str | None,  # noqa: ARG002  # a thread has none
    ) -> None:
        """Report 1 + the row-major number of a failing element; the lowest one remains."""

        def report() -> None:
            status = int_op(self.ir, "add", self.element_number(position), 1)
            self.ir.value(f"atomicrmw umin ptr %status, i64 {status} monotonic")

        if_then(self.ir, condition.text, report)

    def store(
        self,
        stores: Iterable[KernelStore],
        values: dict[int, Packet],
        position: str,
        mask: str | None,
    ) -> None:
        """Emit stores of an element at a position."""
        for store in stores:
            operand, packets = (
                self.kernel.operands[store.operand],
                [values[i] for i in store.elements],
            )
            load_store.store(self.ir, operand, packets, self.address(store.operand, position, mask))

    def shuffle(self, packet: Packet, lane: str) -> Packet:
        """Emit the value that another lane of the warp has, by its number (i32)."""
        return shuffle(self.ir, packet, lane)

    def lane(self) -> str:
        """Return the number of the thread in its warp, i64."""
        return int_op(self.ir, "and", THREAD_NUMBER, WARP - 1)


def shuffle(ir: SimdEmitter, packet: Packet, lane: str) -> Packet:
    """Emit the value that another lane of the warp has, by its number (i32)."""
    scalar, bits = SCALARS[packet.dtype], 8 * packet.dtype.itemsize
    value = packet.text
    if scalar in ("float", "double"):
        value = ir.value(f"bitcast {scalar} {value} to i{bits}")
    width = 1 if packet.dtype == BOOL else bits
    if width == 64:
        high = ir.value(f"trunc i64 {ir.value(f'lshr i64 {value}, 32')} to i32")
        low = ir.value(f"trunc i64 {value} to i32")
        words = [ir.value(f"shuffle i32 {word}, i32 {lane}") for word in (low, high)]
        low, high = (ir.value(f"zext i32 {word} to i64") for word in words)
        value = ir.value(f"or i64 {low}, {ir.value(f'shl i64 {high}, 32')}")
    else:
        if width < 32:
            value = ir.value(f"zext i{width} {value} to i32")
        elif not value.startswith("%"):
            value = ir.value(f"add i32 {value}, 0")
        value = ir.value(f"shuffle i32 {value}, i32 {lane}")
        if width < 32:
            value = ir.value(f"trunc i32 {value} to i{width}")
    if scalar in ("float", "double"):
        value = ir.value(f"bitcast i{bits} {value} to {scalar}")
    return packet._replace(text=value)


__all__ = ["THREAD_NUMBER", "ThreadEmitter", "shuffle"]
