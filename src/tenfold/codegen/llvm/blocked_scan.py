"""Blocked scan: scans long rows in blocks of 1,024, one block per SIMD lane.

Takes a FunctionEmitter of a kernel that scans, hands on lines. Lane i of a packet is an element of
the i-th block. Blocks are scanned in scratch memory as rows are (`scan.py`); elements that need not
be computed are read in place. When the prefix of each is known, it is added and the block is
stored.

The function `kernel` does this for one group of blocks after the other: a unit of work is a row.
Some kernels have three more functions, for many threads, called one after the other. `totals` sums
parts of rows, `carries` turns the totals of a row into the carry of each part, and `parts` scans
again.

>>> from tenfold.dtypes import FLOAT64
>>> from tenfold.core.scalar_ir import Body
>>> from tenfold.core.loop_ir import Kernel, KernelOperand, KernelStore
>>> from tenfold.codegen.llvm.simd_emitter import SimdEmitter
>>> body = Body()
>>> made = body.apply("scan", FLOAT64, body.load(0, FLOAT64), data=("add", 0, ""))
>>> operands = (KernelOperand(FLOAT64, "1"), KernelOperand(FLOAT64, "1", written=True))
>>> stores = (KernelStore(1, (1,)),)
>>> kernel = Kernel(operands, tuple(body.instructions), stores, form="scan blocks")
>>> frame = FunctionEmitter(kernel, SimdEmitter())
>>> blocks(frame, "%unit")
>>> "fadd <8 x double>" in frame.text.functions["scan.blocks"]
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
from tenfold.core.loop_ir import BLOCK, PITCH, operand_of


def blocks(emitter: FunctionEmitter, number: str) -> None:
    """A unit of work is a row: some of its blocks, then those after."""
    emitter.set_indices(number, emitter.kernel.axes - 1)
    row = _BlockRow(emitter)

    def some(group: str) -> None:
        row.scan_group(group)
        row.for_each_block(
            group, lambda lane, start, size: row.finish_block(lane, "0", start, size)
        )

    for_range(emitter.ir, "0", row.blocks, row.count, some)


def totals(emitter: FunctionEmitter, number: str) -> None:
    """A unit of work is a part of a row: what its blocks come to is stored."""
    row, first, after = _part_range(emitter, number)

    def some(group: str) -> None:
        row.scan_group(group, stored=False)
        for part, place in enumerate(row.table_pointers(group)):
            total = read_packet(emitter.ir, row.running_pointer(part), row.dtypes[part], row.count)
            write_packet(emitter.ir, place, total, row.count)

    for_range(emitter.ir, first, after, row.count, some)


def carries(emitter: FunctionEmitter, number: str) -> None:
    """A unit of work is a row: in the place of a total, what all the blocks before come to."""
    ir = emitter.ir
    emitter.set_indices(number, emitter.kernel.axes - 1)
    row = _BlockRow(emitter, number)
    before = [ir.alloca(dtype.itemsize) for dtype in row.dtypes]

    def read(places: list[str]) -> Accumulator:
        each = zip(places, row.dtypes, strict=True)
        return tuple(read_packet(ir, place, dtype, 1) for place, dtype in each)

    def write(places: list[str], found: Accumulator) -> None:
        for place, packet in zip(places, found, strict=True):
            write_packet(ir, place, packet, 1)

    def inside(block: str) -> None:
        places = row.table_pointers(block)
        total, carry = read(places), read(before)
        write(places, carry)
        write(before, row.combine(carry, total, ir.value(f"icmp eq i64 {block}, 0")))

    write(before, row.neutral)
    for_range(ir, "0", row.blocks, 1, inside)


def parts(emitter: FunctionEmitter, number: str) -> None:
    """A unit of work is a part of a row, of which it is known what comes before each block."""
    row, first, after = _part_range(emitter, number)

    def some(group: str) -> None:
        row.scan_group(group)
        row.for_each_block(
            group, lambda lane, start, size: row.finish_block(lane, row.block, start, size)
        )

    for_range(emitter.ir, first, after, row.count, some)


def _part_range(emitter: FunctionEmitter, number: str) -> tuple[_BlockRow, str, str]:
    """Stand at the row of a part; return it, and the first block of the part and that after it."""
    ir, last = emitter.ir, emitter.kernel.axes - 1
    each = int_op(ir, "mul", emitter.unit_length, BLOCK)
    more = int_op(ir, "add", emitter.length(last), int_op(ir, "sub", each, 1))
    count = int_op(ir, "udiv", more, each)
    place = int_op(ir, "udiv", number, count)
    emitter.set_indices(place, last)
    row = _BlockRow(emitter, place)
    first = int_op(ir, "mul", int_op(ir, "urem", number, count), emitter.unit_length)
    return row, first, int_min(ir, int_op(ir, "add", first, emitter.unit_length), row.blocks)


class _BlockRow(ScanLanes):
    """The blocks of the row at which the frame stands."""

    def __init__(self, emitter: FunctionEmitter, number: str | None = None) -> None:
        """`number`: what comes before its blocks stands in the tables of the row of this number."""
        super().__init__(emitter)
        ir = self.ir
        self.number, self.pointers = number, list(emitter.pointers)
        self.blocks = int_op(ir, "lshr", int_op(ir, "add", self.length, BLOCK - 1), 10)
        self.full_blocks = int_op(ir, "lshr", self.length, 10)

    def table_pointers(self, block: str) -> list[str]:
        """Return pointers to what the tables have of a block; a row has room for whole packets."""
        ir = self.ir
        more = int_op(ir, "add", self.blocks, self.count - 1)
        pitch = int_op(ir, "and", more, -self.count)
        assert self.number is not None, "tables are of rows that have a number"
        entry = int_op(ir, "add", int_op(ir, "mul", self.number, pitch), block)
        return self.emitter.total_pointers(self.dtypes, entry)

    def for_each_block(self, group: str, inside: Callable[[str, str, str], None]) -> None:
        """Add a loop over blocks side by side; `inside` gets lane, beginning and length."""
        ir = self.ir
        valid = int_min(ir, int_op(ir, "sub", self.blocks, group), self.count)

        def lane(i: str) -> None:
            self.emitter.pointers = list(self.pointers)
            self.block = int_op(ir, "add", group, i)
            start = int_op(ir, "shl", self.block, 10)
            inside(i, start, int_min(ir, int_op(ir, "sub", self.length, start), BLOCK))

        for_range(ir, "0", valid, 1, lane)

    def scan_group(self, group: str, *, stored: bool = True) -> None:
        """Scan blocks in scratch memory, each as if nothing came before."""
        ir = self.ir
        self.emitter.pointers = list(self.pointers)
        left = int_op(ir, "sub", self.length, int_op(ir, "shl", group, 10))
        size, lying = int_min(ir, left, BLOCK), self._contiguous_input()
        if lying is None:
            self.for_each_block(group, self.fill_block)
            self.scan_blocks(size, stored=stored)
            return
        after = int_op(ir, "add", group, self.count)
        lacks = ir.value(f"icmp sgt i64 {after}, {self.full_blocks}")
        if_then(ir, lacks, lambda: self.for_each_block(group, self.fill_block))
        first = int_op(ir, "mul", group, BLOCK * self.itemsize)
        begin = ir.value(f"getelementptr i8, ptr {lying}, i64 {first}")
        begin = ir.value(f"select i1 {lacks}, ptr %scratch, ptr {begin}")
        pitch, step = PITCH * self.itemsize, BLOCK * self.itemsize
        step_ = ir.value(f"select i1 {lacks}, i64 {pitch}, i64 {step}")
        self.scan_blocks(size, (begin, step_), stored=stored)

    def _contiguous_input(self) -> str | None:
        """Return the pointer to what is scanned, if that is in memory, element by element."""
        made = self.kernel.body[self.scan.inputs[0]]
        if made.name != "load" or len(self.targets) > 1:
            return None
        operand = self.kernel.operands[operand_of(made)]
        in_order = operand.steps[-1] == "1" and operand.dtype == made.dtype
        return self.emitter.pointer(operand_of(made)) if in_order else None

    def _reset_carry(self, slot: str) -> None:
        if self.number is None:
            super()._reset_carry(slot)

    def _carry_pointer(self, part: int, slot: str) -> str:
        return (
            super()._carry_pointer(part, slot)
            if self.number is None
            else self.table_pointers(slot)[part]
        )
