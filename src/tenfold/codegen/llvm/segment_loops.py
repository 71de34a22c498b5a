"""Segment loops: folds of rows whose entries are between two offsets, one entry after the other.

Input: a FunctionEmitter of a kernel of form "segments". Output: lines. Its axes are the rows, the
entries of all rows, and perhaps columns. A row folds the entries from its offset to that of the
next row, in order, beginning with the identity; so no bit depends on threads. What depends on the
row alone is computed once, before them.

With columns a packet of columns has its partial results in registers, and makes all passes over the
entries of a row. Without columns entries are folded one by one. Elementary functions are computed
in packets before: into scratch memory, a chunk of the row at a time. So are, in a single pass, the
offsets of gathers; what does not depend on rows is computed for a chunk of entries of all rows.

Unit n has the rows r of which `offset of r + r` divided by the length of a unit is n. So a unit has
about as many entries and rows as another, unless a row is longer. Bounds are clamped: whatever the
offsets are, a kernel reads no entry that does not exist, and writes every row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tenfold.codegen.llvm import load_store
from tenfold.codegen.llvm.function_emitter import FunctionEmitter
from tenfold.codegen.llvm.loop_emitter import (
    Accumulator,
    combine_partials,
    emit_rule,
    for_range,
    for_range_carrying,
    int_max,
    int_min,
    int_op,
    read_packet,
    write_packet,
)
from tenfold.codegen.llvm.reduce_inner import folds_of_pass, pass_elements
from tenfold.codegen.llvm.simd_emitter import Packet
from tenfold.core.loop_ir import SEGMENT_CHUNK, KernelStore, operand_of
from tenfold.core.scalar_ir import Body, Element
from tenfold.dtypes import BOOL, INT64
from tenfold.ops.segment_reductions import highest, lowest

Elements = tuple[Sequence[KernelStore], Sequence[int]]
"""Stores of entries, and the instructions that are computed for each."""
PREFETCHED_ENTRIES = 16
"""How many entries before its use a gathered row is prefetched."""
LARGEST = 2**63 - 1
"""An offset that no row reaches."""


def unit(emitter: FunctionEmitter, number: str) -> None:
    """Emit a unit of work: the rows that begin in it."""
    _Segments(emitter).emit(number)


def identity_of(kind: str, part: int, dtype: np.dtype) -> float:
    """Return the identity of a reducer: of its partial result of this number and dtype.

    >>> identity_of("largest", 0, INT64) == -(2**63)
    True
    """
    value: float = int(kind == "product" and part == 0)
    if kind in ("largest", "smallest"):
        value = lowest(dtype) if kind == "largest" else highest(dtype)
    return value


class _Segments:
    """The rows of one unit."""

    def __init__(self, emitter: FunctionEmitter) -> None:
        self.emitter, self.ir, self.kernel = emitter, emitter.ir, emitter.kernel
        self.rows = self.kernel.folded - 1
        """The axis of the rows."""
        self.has_columns = self.kernel.folded < self.kernel.axes - 1
        self.first_row = self.chunk = "0"
        """The number of the first row at the index of the outer axes, and the first entry of the
        chunk in scratch memory."""
        self.column: tuple[str, str | None] = ("0", None)
        """The first column of the packet, and its mask."""
        numbered = list(enumerate(zip(self.kernel.body, self.kernel.levels, strict=True)))
        self.invariant = [i for i, (x, level) in numbered if level < 0 and x.name != "segment"]
        checks = [i for i, (x, level) in numbered if level == 0 and x.name == "fail"]
        cached, varies = self.kernel.cached_elements, self.kernel.varies_by_row
        in_chunks = self.kernel.passes == 1 and not any(varies[i] for i in (*cached, *checks))
        self.vectorised = (*cached, *checks) if cached and in_chunks else ()
        """What is computed in packets for chunks of entries of all rows."""

    def emit(self, number: str) -> None:
        """Emit the loop over the rows of a unit."""
        emitter, ir = self.emitter, self.ir
        count, length = emitter.length(self.rows), emitter.unit_length
        work = int_op(ir, "add", count, emitter.length(self.kernel.folded))
        units = int_op(ir, "udiv", int_op(ir, "add", work, int_op(ir, "sub", length, 1)), length)
        self.first_row = int_op(ir, "mul", int_op(ir, "udiv", number, units), count)
        start = int_op(ir, "mul", int_op(ir, "urem", number, units), length)
        begin, end = self._find_row(start), self._find_row(int_op(ir, "add", start, length))
        if self.vectorised:
            self._emit_chunks(begin, end)
        else:
            with emitter.packets_of(emitter.lanes if self.has_columns else 1):
                for_range(ir, begin, end, 1, self._emit_row)

    def _find_row(self, start: str) -> str:
        """Return the first row of which offset and number make `start` or more: by bisection."""
        ir, count = self.ir, self.emitter.length(self.rows)
        zeros = ir.intrinsic("llvm.ctlz.i64", "i64", [("i64", count), ("i1", "false")])
        steps = int_op(ir, "sub", "64", zeros)
        first = Packet("0", INT64, 1), Packet(count, INT64, 1)

        def choose(k: Body, x: Element, y: Element, n: Element, c: Element) -> tuple[Element, ...]:
            """Return the first row of the upper part of n rows from x on, or of the lower one."""
            return k.select(c, y + 1, x), k.select(c, n - (y - x) - 1, y - x)

        def halve(_: str, state: Accumulator) -> Accumulator:
            row, remaining = state
            middle = int_op(ir, "add", row.text, int_op(ir, "lshr", remaining.text, 1))
            entries = self.emitter.length(self.kernel.folded)
            offset = int_min(ir, int_max(ir, self._offset(middle), "0"), entries)
            place = int_op(ir, "add", offset, middle)
            is_below = ir.value(f"icmp slt i64 {place}, {start}")
            is_left = ir.value(f"icmp ne i64 {remaining.text}, 0")
            condition = Packet(ir.value(f"and i1 {is_below}, {is_left}"), BOOL, 1)
            return emit_rule(ir, (row, Packet(middle, INT64, 1), remaining, condition), choose)

        return for_range_carrying(ir, "0", steps, first, halve, is_short=True)[0].text

    def _offset(self, row: str) -> str:
        """Return the offset of a row, or of the end of the last one."""
        ir, (number, _) = self.ir, self.kernel.bounds
        while self.kernel.body[number].inputs:  # a conversion
            (number,) = self.kernel.body[number].inputs
        loaded = operand_of(self.kernel.body[number])
        operand = self.kernel.operands[loaded]
        stride = self.emitter.size.get(("stride", loaded, self.rows), "0")
        address = load_store.PacketAddress(self.emitter.buffers[loaded], row, stride, None, 1)
        packet = load_store.load(ir, operand._replace(steps=operand.steps[self.rows]), 0, address)
        return emit_rule(ir, (packet,), lambda k, x: (k.convert(x, INT64),))[0].text

    def _begin_row(self, row: str) -> tuple[str, str]:
        """Set the indices of a row; return its first entry and its end."""
        emitter, kernel = self.emitter, self.kernel
        emitter.set_indices(int_op(self.ir, "add", self.first_row, row), kernel.folded)
        emitter.uniform_values = {}
        emitter.compute(kernel.bounds, emitter.uniform_values, "0", None)
        begin, end = (emitter.uniform_values[i].text for i in kernel.bounds)
        return begin, end

    def _emit_row(self, row: str) -> None:
        """Emit all passes of a row, for one packet of columns after the other."""
        emitter, ir = self.emitter, self.ir
        begin, end = self._begin_row(row)
        bounds = int_max(ir, begin, "0"), int_min(ir, end, emitter.length(self.kernel.folded))

        def emit_packet(column: str, mask: str | None) -> None:
            self.column, values = (column, mask), dict(emitter.uniform_values)
            emitter.compute(self.invariant, values, column, mask)
            for pass_ in range(self.kernel.passes):
                self._finish_pass(pass_, self._fold_row(pass_, values, bounds), values)

        if self.has_columns:
            emitter.for_packets("0", emitter.length(self.kernel.axes - 1), emit_packet)
        else:
            emit_packet("0", None)

    def _identities(self, pass_: int) -> Accumulator:
        """Return the identities of the folds of a pass."""
        packets, lanes = [], self.emitter.lanes if self.has_columns else 1
        for fold in folds_of_pass(self.kernel, pass_):
            for part, i in enumerate(fold.inputs):
                body, dtype = Body(), self.kernel.body[i].dtype
                body.constant(identity_of(fold.kind, part, dtype), dtype)
                packet = self.ir.emit(body.instructions[0], {}, 1)
                packets.append(Packet(self.ir.broadcast(packet, lanes), dtype, lanes))
        return tuple(packets)

    def _fold_row(
        self, pass_: int, values: dict[int, Packet], bounds: tuple[str, str]
    ) -> Accumulator:
        """Emit a pass over all entries of a row; return the results of its folds."""
        ir, kernel, first = self.ir, self.kernel, self._identities(pass_)
        cached = [i for i in kernel.cached_elements if kernel.levels[i] == 2 * pass_]
        elements = pass_elements(kernel, pass_)
        if self.has_columns or (first and not cached):
            return self._fold(pass_, first, values, bounds, elements)
        if not first:
            self._compute_chunk(bounds, elements, (), values)
            return first
        (begin, end), inputs = bounds, [i for f in folds_of_pass(kernel, pass_) for i in f.inputs]

        def fold_chunk(number: str, partials: Accumulator) -> Accumulator:
            self.chunk = int_op(ir, "add", begin, int_op(ir, "mul", number, SEGMENT_CHUNK))
            chunk_end = int_min(ir, int_op(ir, "add", self.chunk, SEGMENT_CHUNK), end)
            part = self.chunk, chunk_end
            self._compute_chunk(part, elements, cached, values)
            return self._fold(pass_, partials, values, part, ([], inputs), cached)

        rounded = int_op(ir, "add", int_op(ir, "sub", end, begin), SEGMENT_CHUNK - 1)
        count = int_op(ir, "sdiv", rounded, SEGMENT_CHUNK)
        return for_range_carrying(ir, "0", count, first, fold_chunk, is_short=True)

    def _fold(
        self,
        pass_: int,
        first: Accumulator,
        values: dict[int, Packet],
        bounds: tuple[str, str],
        elements: Elements,
        cached: Sequence[int] = (),
    ) -> Accumulator:
        """Emit the loop over entries of a row: they are computed, stored and folded."""
        emitter, ir, kernel, (stores, targets) = self.emitter, self.ir, self.kernel, elements
        column, mask = self.column

        def combine_entry(entry: str, partials: Accumulator) -> Accumulator:
            entry_values, combined = dict(values), list[Packet]()
            if self.has_columns:
                self._prefetch(targets, entry, values)
            for i in cached:
                entry_values[i] = read_packet(ir, self._scratch(i, entry), kernel.body[i].dtype, 1)
            with emitter.index_at(kernel.folded, entry):
                position = column if self.has_columns else entry
                emitter.compute(targets, entry_values, position, mask)
                emitter.store(stores, entry_values, position, mask)
            for fold in folds_of_pass(kernel, pass_):
                old = partials[len(combined) : len(combined) + len(fold.inputs)]
                new = tuple(entry_values[i] for i in fold.inputs)
                combined += combine_partials(ir, fold.kind, old, new, in_order=True)
            return tuple(combined)

        if not targets:
            return first
        return for_range_carrying(ir, *bounds, first, combine_entry, is_short=True)

    def _prefetch(self, targets: Sequence[int], entry: str, values: dict[int, Packet]) -> None:
        """Prefetch rows that are gathered some entries later: the processor cannot foresee them."""
        emitter, ir, kernel = self.emitter, self.ir, self.kernel
        last = int_op(ir, "sub", emitter.length(kernel.folded), 1)
        later = int_min(ir, int_op(ir, "add", entry, PREFETCHED_ENTRIES), last)
        for number in sorted(emitter.missing_inputs(targets, values)):
            gather, later_values, (column, mask) = kernel.body[number], dict(values), self.column
            if gather.name != "gather":
                continue
            with emitter.index_at(kernel.folded, later):
                emitter.compute(gather.inputs[:1], later_values, column, mask)
                start = emitter.contiguous_start(gather.inputs[0], later_values)
            if start is not None:  # a row, along which packets are contiguous
                buffer = operand_of(gather)
                size = kernel.operands[buffer].dtype.itemsize
                offset = int_op(ir, "mul", int_op(ir, "add", start, column), size)
                load_store.prefetch(ir, emitter.buffers[buffer], offset, emitter.lanes * size)

    def _finish_pass(self, pass_: int, partials: Accumulator, values: dict[int, Packet]) -> None:
        """Compute and store what depends on the folds of a pass."""
        kernel = self.kernel
        results = [i for fold in folds_of_pass(kernel, pass_) for i in fold.results]
        values.update({i: packet for i, packet in zip(results, partials, strict=True) if i >= 0})
        targets = [i for i, level in enumerate(kernel.levels) if level == 2 * pass_ + 1]
        stores = [store for store in kernel.stores if kernel.pass_of(store) == 2 * pass_ + 1]
        targets += [i for store in stores for i in store.elements]
        self.emitter.compute(targets, values, *self.column)
        self.emitter.store(stores, values, *self.column)

    def _emit_chunks(self, begin: str, end: str) -> None:
        """Emit the rows of a unit of one pass: the entries of a chunk are computed in packets, then
        folded row by row. A row longer than a chunk goes on in the next one.
        """
        emitter, ir, entries = self.emitter, self.ir, self.emitter.length(self.kernel.folded)
        first, last = (
            int_min(ir, int_max(ir, self._offset(row), "0"), entries) for row in (begin, end)
        )
        identities, cached = self._identities(0), self.kernel.cached_elements
        stores, targets = pass_elements(self.kernel, 0)
        elements = stores, [i for i in targets if i in cached or i not in self.vectorised]
        state = Packet(begin, INT64, 1), Packet(first, INT64, 1), *identities
        slots = [ir.alloca(8) for _ in state]
        """On the stack between chunks: the row, its next entry, and its partial results."""
        self._write(slots, state)

        def emit_chunk(chunk: str) -> None:
            chunk_end = int_min(ir, int_op(ir, "add", chunk, SEGMENT_CHUNK), last)
            self._begin_row(begin)
            self.chunk = chunk
            self._compute_chunk((chunk, chunk_end), ([], self.vectorised), cached, {})
            is_last = ir.value(f"icmp sge i64 {chunk_end}, {last}")
            limit = ir.value(f"select i1 {is_last}, i64 {LARGEST}, i64 {chunk_end}")
            exit_ = ir.name()[1:]

            def emit_row(row: str) -> None:
                name, (_, row_end) = ir.name()[1:], self._begin_row(row)
                place, *before = (
                    read_packet(ir, slot, packet.dtype, 1)
                    for slot, packet in zip(slots[1:], state[1:], strict=True)
                )
                stop = int_max(ir, int_min(ir, row_end, chunk_end), place.text)
                values = dict(emitter.uniform_values)
                emitter.compute(self.invariant, values, "0", None)
                bounds = place.text, stop
                partials = self._fold(0, tuple(before), values, bounds, elements, cached)
                self._write(slots[1:2], [Packet(stop, INT64, 1)])
                is_complete = ir.value(f"icmp sle i64 {row_end}, {limit}")
                ir.line(f"br i1 {is_complete}, label %{name}.finish, label %{name}.go_on")
                ir.label(f"{name}.go_on")
                self._write([slots[0], *slots[2:]], [Packet(row, INT64, 1), *partials])
                ir.line(f"br label %{exit_}")
                ir.label(f"{name}.finish")
                self._finish_pass(0, partials, values)
                self._write(slots[2:], identities)

            with emitter.packets_of(1):
                first_row = read_packet(ir, slots[0], INT64, 1).text
                for_range(ir, first_row, end, 1, emit_row)
            ir.line(f"br label %{exit_}")
            ir.label(exit_)

        chunks_end = int_max(ir, last, int_op(ir, "add", first, 1))  # empty rows have a chunk, too
        for_range(ir, first, chunks_end, SEGMENT_CHUNK, emit_chunk)

    def _write(self, slots: Sequence[str], packets: Sequence[Packet]) -> None:
        for slot, packet in zip(slots, packets, strict=True):
            write_packet(self.ir, slot, packet, 1)

    def _compute_chunk(
        self,
        bounds: tuple[str, str],
        elements: Elements,
        cached: Sequence[int],
        values: dict[int, Packet],
    ) -> None:
        """Compute in packets, and store, elements of the entries of a chunk."""
        emitter, (stores, targets) = self.emitter, elements

        def compute_packet(position: str, mask: str | None) -> None:
            packets = dict(values)
            emitter.compute(targets, packets, position, mask)
            emitter.store(stores, packets, position, mask)
            for i in cached:
                write_packet(self.ir, self._scratch(i, position), packets[i], emitter.lanes)

        with emitter.packets_of(self.kernel.lanes):
            emitter.for_packets(*bounds, compute_packet)

    def _scratch(self, number: int, entry: str) -> str:
        """Return the pointer to an element of the chunk in scratch memory."""
        ir, kernel = self.ir, self.kernel
        start = 8 * (SEGMENT_CHUNK + kernel.lanes) * kernel.cached_elements.index(number)
        local = int_op(ir, "sub", entry, self.chunk)
        offset = int_op(ir, "mul", local, kernel.body[number].dtype.itemsize)
        return ir.value(f"getelementptr i8, ptr %scratch, i64 {int_op(ir, 'add', offset, start)}")
