"""Blocked scan: scans long rows in blocks of 1,024, one block per SIMD lane.

Input: a FunctionEmitter of a kernel that scans. Output: lines. Lane i of a packet is an element of
the i-th block. Blocks are scanned in scratch memory as rows are (`scan.py`); elements that need not
be computed are read in place. When the prefix of each is known, it is combined and the block is
stored.

The function `kernel` does this for one group of blocks after the other: a unit of work is a row.
Multi-threaded kernels have three more functions, called one after the other. `totals` sums parts of
rows, `carries` scans the totals of a row to the carry of each part, and `parts` scans again.

>>> from tenfold.dtypes import FLOAT64
>>> from tenfold.core.scalar_ir import Body
>>> from tenfold.core.loop_ir import Kernel, KernelForm, KernelOperand, KernelStore
>>> from tenfold.codegen.llvm.simd_emitter import SimdEmitter
>>> body = Body()
>>> made = body.apply("scan", FLOAT64, body.load(0, FLOAT64), data=("add", 0, ""))
>>> operands = (KernelOperand(FLOAT64, "1"), KernelOperand(FLOAT64, "1", written=True))
>>> stores = (KernelStore(1, (1,)),)
>>> kernel = Kernel(operands, tuple(body.instructions), stores, form=KernelForm.SCAN_BLOCKS)
>>> emitter = FunctionEmitter(kernel, SimdEmitter())
>>> scan_row(emitter, "%unit")
>>> "fadd <8 x double>" in emitter.ir.functions["scan.blocks"]
True
"""

from __future__ import annotations

from collections.abc import Callable

from tenfold.codegen.llvm.function_emitter import FunctionEmitter
from tenfold.codegen.llvm.loop_emitter import (
    Accumulator,
    for_range,
    if_then,
    int_min,
    int_op,
    read_packet,
    write_packet,
)
from tenfold.codegen.llvm.scan import ScanLanes
from tenfold.core.canonical_reduction import BLOCK
from tenfold.core.loop_ir import PITCH, operand_of


def scan_row(emitter: FunctionEmitter, number: str) -> None:
    """Emit a unit of work: a row, one group of blocks after the other."""
    emitter.set_indices(number, emitter.kernel.axes - 1)
    row = _BlockRow(emitter)

    def emit_group(group: str) -> None:
        row.scan_group(group)
        row.for_each_block(
            group, lambda lane, start, size: row.finish_block(lane, "0", start, size)
        )

    for_range(emitter.ir, "0", row.blocks, row.count, emit_group)


def sum_part(emitter: FunctionEmitter, number: str) -> None:
    """Emit a unit of work: store the totals of the blocks of a part of a row."""
    row, first_block, end_block = _part_range(emitter, number)

    def emit_group(group: str) -> None:
        row.scan_group(group, stored=False)
        for component, pointer in enumerate(row.table_pointers(group)):
            total = read_packet(
                emitter.ir, row.running_pointer(component), row.dtypes[component], row.count
            )
            write_packet(emitter.ir, pointer, total, row.count)

    for_range(emitter.ir, first_block, end_block, row.count, emit_group)


def scan_totals(emitter: FunctionEmitter, number: str) -> None:
    """Emit a unit of work: replace each total of a row by the total of the blocks before it."""
    ir = emitter.ir
    emitter.set_indices(number, emitter.kernel.axes - 1)
    row = _BlockRow(emitter, number)
    carry_slots = [ir.alloca(dtype.itemsize) for dtype in row.dtypes]

    def read_packets(pointers: list[str]) -> Accumulator:
        typed_pointers = zip(pointers, row.dtypes, strict=True)
        return tuple(read_packet(ir, pointer, dtype, 1) for pointer, dtype in typed_pointers)

    def write_packets(pointers: list[str], packets: Accumulator) -> None:
        for pointer, packet in zip(pointers, packets, strict=True):
            write_packet(ir, pointer, packet, 1)

    def update_block(block: str) -> None:
        pointers = row.table_pointers(block)
        total, carry = read_packets(pointers), read_packets(carry_slots)
        write_packets(pointers, carry)
        write_packets(carry_slots, row.combine(carry, total, ir.value(f"icmp eq i64 {block}, 0")))

    write_packets(carry_slots, row.neutral)
    for_range(ir, "0", row.blocks, 1, update_block)


def scan_part(emitter: FunctionEmitter, number: str) -> None:
    """Emit a unit of work: scan a part of a row with the known carry of each block."""
    row, first_block, end_block = _part_range(emitter, number)

    def emit_group(group: str) -> None:
        row.scan_group(group)
        row.for_each_block(
            group, lambda lane, start, size: row.finish_block(lane, row.block, start, size)
        )

    for_range(emitter.ir, first_block, end_block, row.count, emit_group)


def _part_range(emitter: FunctionEmitter, number: str) -> tuple[_BlockRow, str, str]:
    """Set the indices of a part's row; return the row, and the part's first and end block."""
    ir, scan_axis = emitter.ir, emitter.kernel.axes - 1
    unit_elements = int_op(ir, "mul", emitter.unit_length, BLOCK)
    rounded = int_op(ir, "add", emitter.length(scan_axis), int_op(ir, "sub", unit_elements, 1))
    count = int_op(ir, "udiv", rounded, unit_elements)
    row_number = int_op(ir, "udiv", number, count)
    emitter.set_indices(row_number, scan_axis)
    row = _BlockRow(emitter, row_number)
    first_block = int_op(ir, "mul", int_op(ir, "urem", number, count), emitter.unit_length)
    return (
        row,
        first_block,
        int_min(ir, int_op(ir, "add", first_block, emitter.unit_length), row.blocks),
    )


class _BlockRow(ScanLanes):
    """The blocks of the current row."""

    def __init__(self, emitter: FunctionEmitter, number: str | None = None) -> None:
        """`number`: the row of the tables with the carries of its blocks."""
        super().__init__(emitter)
        ir = self.ir
        self.number, self.pointers = number, list(emitter.pointers)
        self.blocks = int_op(ir, "lshr", int_op(ir, "add", self.length, BLOCK - 1), 10)
        self.full_blocks = int_op(ir, "lshr", self.length, 10)

    def table_pointers(self, block: str) -> list[str]:
        """Return pointers to the table entries of a block; a row has room for full packets."""
        ir = self.ir
        rounded = int_op(ir, "add", self.blocks, self.count - 1)
        pitch = int_op(ir, "and", rounded, -self.count)
        assert self.number is not None, "tables are of rows that have a number"
        entry = int_op(ir, "add", int_op(ir, "mul", self.number, pitch), block)
        return self.emitter.total_pointers(self.dtypes, entry)

    def for_each_block(self, group: str, body: Callable[[str, str, str], None]) -> None:
        """Emit a loop over the blocks of a group; `body` gets lane, start and length."""
        ir = self.ir
        valid = int_min(ir, int_op(ir, "sub", self.blocks, group), self.count)

        def visit_block(i: str) -> None:
            self.emitter.pointers = list(self.pointers)
            self.block = int_op(ir, "add", group, i)
            start = int_op(ir, "shl", self.block, 10)
            body(i, start, int_min(ir, int_op(ir, "sub", self.length, start), BLOCK))

        for_range(ir, "0", valid, 1, visit_block)

    def scan_group(self, group: str, *, stored: bool = True) -> None:
        """Scan blocks in scratch memory, without their carries."""
        ir = self.ir
        self.emitter.pointers = list(self.pointers)
        remaining = int_op(ir, "sub", self.length, int_op(ir, "shl", group, 10))
        size, contiguous = int_min(ir, remaining, BLOCK), self._contiguous_input()
        if contiguous is None:
            self.for_each_block(group, self.fill_block)
            self.scan_blocks(size, stored=stored)
            return
        group_end = int_op(ir, "add", group, self.count)
        needs_copy = ir.value(f"icmp sgt i64 {group_end}, {self.full_blocks}")
        if_then(ir, needs_copy, lambda: self.for_each_block(group, self.fill_block))
        byte_offset = int_op(ir, "mul", group, BLOCK * self.itemsize)
        begin = ir.value(f"getelementptr i8, ptr {contiguous}, i64 {byte_offset}")
        begin = ir.value(f"select i1 {needs_copy}, ptr %scratch, ptr {begin}")
        pitch, step = PITCH * self.itemsize, BLOCK * self.itemsize
        lane_stride = ir.value(f"select i1 {needs_copy}, i64 {pitch}, i64 {step}")
        self.scan_blocks(size, (begin, lane_stride), stored=stored)

    def _contiguous_input(self) -> str | None:
        """Return the pointer to the scanned elements, if they are contiguous in memory."""
        instruction = self.kernel.body[self.scan.inputs[0]]
        if instruction.name != "load" or len(self.targets) > 1:
            return None
        operand = self.kernel.operands[operand_of(instruction)]
        in_order = operand.steps[-1] == "1" and operand.dtype == instruction.dtype
        return self.emitter.pointer(operand_of(instruction)) if in_order else None

    def _reset_carry(self, slot: str) -> None:
        if self.number is None:
            super()._reset_carry(slot)

    def _carry_pointer(self, component: int, slot: str) -> str:
        return (
            super()._carry_pointer(component, slot)
            if self.number is None
            else self.table_pointers(slot)[component]
        )
