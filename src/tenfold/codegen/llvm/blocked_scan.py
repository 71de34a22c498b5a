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
    Parts,
    counted,
    integer,
    read_packet,
    smaller,
    where,
    write_packet,
)
from tenfold.codegen.llvm.scan import ScanLanes
from tenfold.core.loop_ir import BLOCK, PITCH, operand_of


def blocks(frame: FunctionEmitter, number: str) -> None:
    """A unit of work is a row: some of its blocks, then those after."""
    frame.stand_at(number, frame.kernel.axes - 1)
    row = _BlockRow(frame)

    def some(group: str) -> None:
        row.scan_group(group)
        row.each(group, lambda lane, start, size: row.finish(lane, "0", start, size))

    counted(frame.text, "0", row.blocks, row.count, some)


def totals(frame: FunctionEmitter, number: str) -> None:
    """A unit of work is a part of a row: what its blocks come to is stored."""
    row, first, after = _part(frame, number)

    def some(group: str) -> None:
        row.scan_group(group, stored=False)
        for part, place in enumerate(row.table(group)):
            total = read_packet(frame.text, row.running_of(part), row.dtypes[part], row.count)
            write_packet(frame.text, place, total, row.count)

    counted(frame.text, first, after, row.count, some)


def carries(frame: FunctionEmitter, number: str) -> None:
    """A unit of work is a row: in the place of a total, what all the blocks before come to."""
    text = frame.text
    frame.stand_at(number, frame.kernel.axes - 1)
    row = _BlockRow(frame, number)
    before = [text.stack(dtype.itemsize) for dtype in row.dtypes]

    def read(places: list[str]) -> Parts:
        each = zip(places, row.dtypes, strict=True)
        return tuple(read_packet(text, place, dtype, 1) for place, dtype in each)

    def write(places: list[str], found: Parts) -> None:
        for place, packet in zip(places, found, strict=True):
            write_packet(text, place, packet, 1)

    def inside(block: str) -> None:
        places = row.table(block)
        total, carry = read(places), read(before)
        write(places, carry)
        write(before, row.following(carry, total, text.value(f"icmp eq i64 {block}, 0")))

    write(before, row.neutral)
    counted(text, "0", row.blocks, 1, inside)


def parts(frame: FunctionEmitter, number: str) -> None:
    """A unit of work is a part of a row, of which it is known what comes before each block."""
    row, first, after = _part(frame, number)

    def some(group: str) -> None:
        row.scan_group(group)
        row.each(group, lambda lane, start, size: row.finish(lane, row.block, start, size))

    counted(frame.text, first, after, row.count, some)


def _part(frame: FunctionEmitter, number: str) -> tuple[_BlockRow, str, str]:
    """Stand at the row of a part; return it, and the first block of the part and that after it."""
    text, last = frame.text, frame.kernel.axes - 1
    each = integer(text, "mul", frame.part, BLOCK)
    more = integer(text, "add", frame.length(last), integer(text, "sub", each, 1))
    count = integer(text, "udiv", more, each)
    place = integer(text, "udiv", number, count)
    frame.stand_at(place, last)
    row = _BlockRow(frame, place)
    first = integer(text, "mul", integer(text, "urem", number, count), frame.part)
    return row, first, smaller(text, integer(text, "add", first, frame.part), row.blocks)


class _BlockRow(ScanLanes):
    """The blocks of the row at which the frame stands."""

    def __init__(self, frame: FunctionEmitter, number: str | None = None) -> None:
        """`number`: what comes before its blocks stands in the tables of the row of this number."""
        super().__init__(frame)
        text = self.text
        self.number, self.pointers = number, list(frame.pointers)
        self.blocks = integer(text, "lshr", integer(text, "add", self.length, BLOCK - 1), 10)
        self.full = integer(text, "lshr", self.length, 10)

    def table(self, block: str) -> list[str]:
        """Return pointers to what the tables have of a block; a row has room for whole packets."""
        text = self.text
        more = integer(text, "add", self.blocks, self.count - 1)
        pitch = integer(text, "and", more, -self.count)
        assert self.number is not None, "tables are of rows that have a number"
        entry = integer(text, "add", integer(text, "mul", self.number, pitch), block)
        return self.frame.total_places(self.dtypes, entry)

    def each(self, group: str, inside: Callable[[str, str, str], None]) -> None:
        """Add a loop over blocks side by side; `inside` gets lane, beginning and length."""
        text = self.text
        valid = smaller(text, integer(text, "sub", self.blocks, group), self.count)

        def lane(i: str) -> None:
            self.frame.pointers = list(self.pointers)
            self.block = integer(text, "add", group, i)
            start = integer(text, "shl", self.block, 10)
            inside(i, start, smaller(text, integer(text, "sub", self.length, start), BLOCK))

        counted(text, "0", valid, 1, lane)

    def scan_group(self, group: str, *, stored: bool = True) -> None:
        """Scan blocks in scratch memory, each as if nothing came before."""
        text = self.text
        self.frame.pointers = list(self.pointers)
        left = integer(text, "sub", self.length, integer(text, "shl", group, 10))
        size, lying = smaller(text, left, BLOCK), self._lying()
        if lying is None:
            self.each(group, self.fill)
            self.scan_blocks(size, stored=stored)
            return
        after = integer(text, "add", group, self.count)
        lacks = text.value(f"icmp sgt i64 {after}, {self.full}")
        where(text, lacks, lambda: self.each(group, self.fill))
        first = integer(text, "mul", group, BLOCK * self.size)
        begin = text.value(f"getelementptr i8, ptr {lying}, i64 {first}")
        begin = text.value(f"select i1 {lacks}, ptr %scratch, ptr {begin}")
        pitch, step = PITCH * self.size, BLOCK * self.size
        step_ = text.value(f"select i1 {lacks}, i64 {pitch}, i64 {step}")
        self.scan_blocks(size, (begin, step_), stored=stored)

    def _lying(self) -> str | None:
        """Return the pointer to what is scanned, if that is in memory, element by element."""
        made = self.kernel.body[self.scan.inputs[0]]
        if made.name != "load" or len(self.wanted) > 1:
            return None
        operand = self.kernel.operands[operand_of(made)]
        in_order = operand.steps[-1] == "1" and operand.dtype == made.dtype
        return self.frame.pointer(operand_of(made)) if in_order else None

    def _begin(self, slot: str) -> None:
        if self.number is None:
            super()._begin(slot)

    def _carry(self, part: int, slot: str) -> str:
        return super()._carry(part, slot) if self.number is None else self.table(slot)[part]
