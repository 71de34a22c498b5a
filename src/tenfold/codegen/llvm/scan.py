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
    Parts,
    combined,
    counted,
    integer,
    read_packet,
    smaller,
    where,
    write_packet,
)
from tenfold.codegen.llvm.simd_emitter import SCALARS, Packet, SimdEmitter, type_text
from tenfold.codegen.llvm.transpose import turned
from tenfold.core.loop_ir import BLOCK, PITCH
from tenfold.core.scalar_ir import Body
from tenfold.dtypes import kind_of


class RunningValues:
    """What is scanned, and how running values follow one another."""

    def __init__(self, frame: FunctionEmitter) -> None:
        self.frame, self.text, self.kernel = frame, frame.text, frame.kernel
        self.scan = frame.kernel.scan
        self.dtypes = [self.kernel.body[i].dtype for i in self.scan.inputs]
        self.exact = self.scan.kind == "add" or len(self.dtypes) == 1
        """Whether the identity leaves every bit: a complex product with 1 may make NaN of inf."""
        self.neutral = self._numbers(negative_zero=True)
        self.identity = self._numbers(negative_zero=False)
        named = enumerate(self.kernel.body)
        self.wanted = [*self.scan.inputs, *(i for i, made in named if made.name == "fail")]
        (self.store,) = self.kernel.stores

    def _numbers(self, *, negative_zero: bool) -> Parts:
        found = []
        for part, dtype in enumerate(self.dtypes):
            value: float = int(self.scan.kind == "product" and part == 0)
            if value == 0 and negative_zero and kind_of(dtype) == "f":
                value = -0.0
            body = Body()
            made = body.constant(value, dtype).position
            found.append(self.text.primitive(body.instructions[made], {}, 1))
        return tuple(found)

    def following(self, before: Parts, x: Parts, is_first: str | None) -> Parts:
        """Return what comes after a running value; `is_first`: an i1 that holds for the first."""
        made = combined(self.text, self.scan.kind, before, x)
        if self.exact or is_first is None:
            return made
        chosen = []
        for new, own in zip(made, x, strict=True):
            type_ = type_text(new.dtype, new.lanes)
            value = self.text.spread(own, new.lanes)
            picked = self.text.value(f"select i1 {is_first}, {type_} {value}, {type_} {new.text}")
            chosen.append(Packet(picked, new.dtype, new.lanes))
        return tuple(chosen)

    def stored(self, parts: Parts, position: str, mask: str | None) -> None:
        """Store what follows from running values."""
        known = self._results(parts, position, mask)
        self.frame.store([self.store], known, position, mask)

    def _results(self, parts: Parts, position: str, mask: str | None) -> dict[int, Packet]:
        known = {i: p for i, p in zip(self.scan.results, parts, strict=True) if i >= 0}
        self.frame.compute(self.store.elements, known, position, mask)
        return known

    def put_first(self) -> None:
        """Store the identity where the pointer of the result stands."""
        known = self._results(self.identity, "0", None)
        packets = [known[i] for i in self.store.elements]
        operand = self.kernel.operands[self.store.operand]
        load_store.store_single(
            self.text, operand, packets, self.frame.pointers[self.store.operand]
        )

    def shift(self, axis: int) -> None:
        """Let the pointer of the result stand at the element after the first."""
        number = self.store.operand
        stride = self.frame.size.get(("stride", number, axis))
        if stride is None:
            stride = str(self.kernel.operands[number].dtype.itemsize)
        pointer = self.frame.pointers[number]
        self.frame.pointers[number] = self.text.value(
            f"getelementptr i8, ptr {pointer}, i64 {stride}"
        )

    def packets(self, begin: str, end: str, inside: Callable[[str, str | None], None]) -> None:
        """Add a loop over packets from begin to end; `inside` gets the first lane and the mask."""
        text, frame = self.text, self.frame
        if self.kernel.masked:
            counted(text, begin, end, frame.lanes, lambda i: inside(i, frame.mask(i, end)))
            return
        count = integer(text, "sub", end, begin)
        whole = integer(text, "sub", end, integer(text, "urem", count, frame.lanes))
        counted(text, begin, whole, frame.lanes, lambda i: inside(i, None))
        some = text.value(f"icmp slt i64 {whole}, {end}")
        where(text, some, lambda: inside(whole, frame.mask(whole, end)))


def rows(frame: FunctionEmitter, number: str) -> None:
    """A unit of work is some rows: their blocks, one after the other."""
    text, kernel = frame.text, frame.kernel
    lanes = ScanLanes(frame)
    count = "1"
    for axis in range(kernel.axes - 1):
        count = integer(text, "mul", count, frame.length(axis))
    first = integer(text, "mul", number, lanes.count)
    valid = smaller(text, integer(text, "sub", count, first), lanes.count)

    def each(inside: Callable[[str], None]) -> None:
        def lane(i: str) -> None:
            frame.stand_at(integer(text, "add", first, i), kernel.axes - 1)
            inside(i)

        counted(text, "0", valid, 1, lane)

    def block(start: str) -> None:
        size = smaller(text, integer(text, "sub", lanes.length, start), BLOCK)
        each(lambda i: lanes.fill(i, start, size))
        lanes.scan_blocks(size)
        each(lambda i: lanes.finish(i, i, start, size))

    counted(text, "0", lanes.length, BLOCK, block)


class ScanLanes(RunningValues):
    """Rows or blocks side by side: lane i of a packet is an element of the i-th."""

    def __init__(self, frame: FunctionEmitter) -> None:
        super().__init__(frame)
        self.count = self.kernel.side_by_side
        self.length = frame.length(self.kernel.axes - 1)
        self.size = self.dtypes[0].itemsize
        self.carries = self.text.stack(8 * self.count * len(self.dtypes))
        self.running = self.text.stack(8 * self.count * len(self.dtypes))

    def _place(self, part: int, lane: str, position: str) -> str:
        text, pitch = self.text, PITCH * self.size
        offset = integer(text, "add", integer(text, "mul", lane, pitch), part * self.count * pitch)
        offset = integer(text, "add", offset, integer(text, "mul", position, self.size))
        return text.value(f"getelementptr i8, ptr %scratch, i64 {offset}")

    def fill(self, lane: str, start: str, size: str) -> None:
        """Compute the elements of a block into scratch memory."""

        def inside(position: str, mask: str | None) -> None:
            known: dict[int, Packet] = {}
            self.frame.compute(self.wanted, known, position, mask)
            at = integer(self.text, "sub", position, start)
            for part, i in enumerate(self.scan.inputs):
                write_packet(self.text, self._place(part, lane, at), known[i], self.frame.lanes)

        self.packets(start, integer(self.text, "add", start, size), inside)

    def scan_blocks(
        self, size: str, begin: tuple[str, str] | None = None, *, stored: bool = True
    ) -> None:
        """Scan what is in scratch memory, up to `size` elements of each lane.

        `begin`: where the elements of the first lane begin instead, and bytes from lane to lane.
        Without `stored` nothing is left but what each lane comes to.
        """
        for part, packet in enumerate(self.neutral):
            write_packet(self.text, self.running_of(part), packet, self.count)
        name = f"scan.{'blocks' if stored else 'totals'}"
        if name not in self.text.functions:
            self.text.functions[name] = self._function(name, stored)
        pointer, step = begin or ("%scratch", str(PITCH * self.size))
        given = f"ptr %scratch, ptr {pointer}, i64 {step}, i64 {size}, ptr {self.running}"
        self.text.line(f"call void @{name}({given})")

    def _function(self, name: str, stored: bool) -> str:
        """A function of the program: its text is long, and it is called from several places."""
        outer, running = self.text, self.running
        self.text, self.running = SimdEmitter(baseline=outer.baseline), "%running"
        inner = self.text
        counted(inner, "0", "%size", self.count, lambda at: self._square(at, stored))
        inner.line("ret void")
        self.text, self.running = outer, running
        given = "ptr %scratch, ptr %begin, i64 %step, i64 %size, ptr %running"
        return f"define internal void @{name}({given}) noinline {{\nentry:\n{inner}\n}}"

    def running_of(self, part: int) -> str:
        """Return the pointer to what the lanes have come to."""
        offset = 8 * self.count * part
        return self.text.value(f"getelementptr i8, ptr {self.running}, i64 {offset}")

    def _read_lanes(self, part: int, position: str) -> list[Packet]:
        """Read a packet of each lane from where the elements lie."""
        text, before = self.text, part * self.count * PITCH * self.size
        offset = integer(text, "add", integer(text, "mul", position, self.size), before)
        place = text.value(f"getelementptr i8, ptr %begin, i64 {offset}")
        found = []
        for lane in range(self.count):
            if lane:
                place = text.value(f"getelementptr i8, ptr {place}, i64 %step")
            found.append(read_packet(text, place, self.dtypes[part], self.count))
        return found

    def _square(self, position: str, stored: bool) -> None:
        text, parts_ = self.text, range(len(self.dtypes))
        columns = [self._turned(self._read_lanes(part, position)) for part in parts_]
        running: Parts = tuple(
            read_packet(text, self.running_of(part), dtype, self.count)
            for part, dtype in enumerate(self.dtypes)
        )
        begins = text.value(f"icmp eq i64 {position}, 0")
        scanned = []
        for i, parts in enumerate(zip(*columns, strict=True)):
            running = self.following(running, parts, None if i else begins)
            scanned.append(running)
        for part in parts_:
            write_packet(text, self.running_of(part), running[part], self.count)
            if stored:
                for lane, packet in enumerate(self._turned([x[part] for x in scanned])):
                    write_packet(text, self._place(part, str(lane), position), packet, self.count)

    def _turned(self, packets: list[Packet]) -> list[Packet]:
        dtype = packets[0].dtype
        found = turned(self.text, [packet.text for packet in packets], SCALARS[dtype], 1)
        return [Packet(each, dtype, self.count) for each in found]

    def finish(self, lane: str, slot: str, start: str, size: str) -> None:
        """Store a block with its carry, which stands in a slot; then carry its total on."""
        text = self.text
        begins = text.value(f"icmp eq i64 {start}, 0")
        end = integer(text, "add", start, size)
        where(text, begins, lambda: self._begin(slot))
        if self.scan.first:
            where(text, begins, self.put_first)
            self.shift(self.kernel.axes - 1)
        if self.scan.first == "exclusive":
            end = smaller(text, end, integer(text, "sub", self.length, 1))
        carry = tuple(
            read_packet(text, self._carry(part, slot), dtype, 1)
            for part, dtype in enumerate(self.dtypes)
        )

        def inside(position: str, mask: str | None) -> None:
            own = self._read(lane, integer(text, "sub", position, start), self.frame.lanes)
            self.stored(self.following(carry, own, begins), position, mask)

        self.packets(start, end, inside)
        total = self._read(lane, integer(text, "sub", size, 1), 1)
        for part, packet in enumerate(self.following(carry, total, begins)):
            write_packet(text, self._carry(part, slot), packet, 1)

    def _begin(self, slot: str) -> None:
        for part, packet in enumerate(self.neutral):
            write_packet(self.text, self._carry(part, slot), packet, 1)

    def _carry(self, part: int, slot: str) -> str:
        before = 8 * self.count * part
        offset = integer(self.text, "add", integer(self.text, "shl", slot, 3), before)
        return self.text.value(f"getelementptr i8, ptr {self.carries}, i64 {offset}")

    def _read(self, lane: str, position: str, lanes: int) -> Parts:
        return tuple(
            read_packet(self.text, self._place(part, lane, position), dtype, lanes)
            for part, dtype in enumerate(self.dtypes)
        )


def columns(frame: FunctionEmitter, number: str) -> None:
    """A unit of work is a part of the columns: the rows, one after the other."""
    text, last = frame.text, frame.kernel.axes - 1
    length, part = frame.length(last), frame.part
    more = integer(text, "add", length, integer(text, "sub", part, 1))
    parts = integer(text, "udiv", more, part)
    frame.stand_at(integer(text, "udiv", number, parts), last - 1)
    begin = integer(text, "mul", integer(text, "urem", number, parts), part)
    _Columns(frame, begin, smaller(text, integer(text, "add", begin, part), length)).run()


class _Columns(RunningValues):
    """Running values and carries of a part of the columns, in scratch memory."""

    def __init__(self, frame: FunctionEmitter, begin: str, end: str) -> None:
        super().__init__(frame)
        self.begin, self.end = begin, end
        self.axis = self.kernel.axes - 2
        self.pointers = list(frame.pointers)
        columns_ = integer(self.text, "add", frame.part, frame.lanes)
        self.width = integer(self.text, "shl", columns_, 3)

    def run(self) -> None:
        """Add it all."""
        text = self.text
        length = self.frame.length(self.axis)
        self._reset(carries=True)

        def block(start: str) -> None:
            self._reset(carries=False)
            end = smaller(text, integer(text, "add", start, BLOCK), length)
            first = text.value(f"icmp eq i64 {start}, 0")
            counted(text, start, end, 1, lambda row: self._row(row, start, first))
            self._carry_on(first)

        counted(text, "0", length, BLOCK, block)
        self.frame.indices.pop(self.axis, None)

    def _at(self, what: int, column: str) -> str:
        """Return the pointer to a column's values: of each part the running one, then the carry."""
        text = self.text
        inside = integer(text, "shl", integer(text, "sub", column, self.begin), 3)
        offset = integer(text, "add", integer(text, "mul", self.width, what), inside)
        return text.value(f"getelementptr i8, ptr %scratch, i64 {offset}")

    def _read(self, column: str, *, carries: bool) -> Parts:
        return tuple(
            read_packet(self.text, self._at(2 * part + carries, column), dtype, self.frame.lanes)
            for part, dtype in enumerate(self.dtypes)
        )

    def _write(self, column: str, parts: Parts, *, carries: bool) -> None:
        for part, packet in enumerate(parts):
            at = self._at(2 * part + carries, column)
            write_packet(self.text, at, packet, self.frame.lanes)

    def _reset(self, *, carries: bool) -> None:
        counted(
            self.text,
            self.begin,
            self.end,
            self.frame.lanes,
            lambda column: self._write(column, self.neutral, carries=carries),
        )

    def _carry_on(self, is_first: str) -> None:
        def inside(column: str) -> None:
            carry, total = (self._read(column, carries=carries) for carries in (True, False))
            self._write(column, self.following(carry, total, is_first), carries=True)

        counted(self.text, self.begin, self.end, self.frame.lanes, inside)

    def _row(self, row: str, start: str, is_first_block: str) -> None:
        text, frame = self.text, self.frame
        frame.indices[self.axis] = row
        frame.pointers = [self._stepped(number, row) for number in range(len(self.pointers))]
        begins = text.value(f"icmp eq i64 {row}, {start}")
        if self.scan.first:
            some = text.value(f"icmp eq i64 {row}, 0")
            where(text, some, lambda: self.packets(self.begin, self.end, self._identity))
            self.shift(self.axis)
        last = integer(text, "sub", frame.length(self.axis), 1)
        is_stored = text.value(f"icmp slt i64 {row}, {last}")

        def inside(column: str, mask: str | None) -> None:
            known: dict[int, Packet] = {}
            frame.compute(self.wanted, known, column, mask)
            x = tuple(known[i] for i in self.scan.inputs)
            running = self.following(self._read(column, carries=False), x, begins)
            self._write(column, running, carries=False)
            made = self.following(self._read(column, carries=True), running, is_first_block)
            if self.scan.first == "exclusive":
                where(text, is_stored, lambda: self.stored(made, column, mask))
            else:
                self.stored(made, column, mask)

        self.packets(self.begin, self.end, inside)

    def _identity(self, column: str, mask: str | None) -> None:
        self.stored(self.identity, column, mask)

    def _stepped(self, number: int, row: str) -> str:
        if self.kernel.operands[number].steps[self.axis] != "s":
            return self.pointers[number]
        stride = self.frame.size["stride", number, self.axis]
        jump = integer(self.text, "mul", row, stride)
        return self.text.value(f"getelementptr i8, ptr {self.pointers[number]}, i64 {jump}")
