"""Segments: folds of rows whose entries are between two offsets, one entry after the other.

Input: a FunctionEmitter of a kernel of form "segments". Output: lines. The last axes are the rows,
the entries of all rows, and the columns. A row folds the entries from its offset to that of the
next row, in order, beginning with the identity; so no bit depends on threads. A packet of columns
has its partial results in registers, and makes all passes over the entries of a row. Without
columns a packet is one element. What depends on the row alone is computed once, before them.

Unit n has the rows r of which `offset of r + r` divided by the length of a unit is n. So a unit has
about as many entries and rows as another, unless a row is longer. Bounds are clamped: a kernel
reads no entry that does not exist, whatever the offsets are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tenfold.codegen.llvm import load_store
from tenfold.codegen.llvm.function_emitter import FunctionEmitter
from tenfold.codegen.llvm.loop_emitter import (
    Accumulator,
    combine_partials,
    emit_rule,
    for_range,
    for_range_carrying,
    if_then,
    int_max,
    int_min,
    int_op,
    read_packet,
    write_packet,
)
from tenfold.codegen.llvm.reduce_inner import folds_of_pass, pass_elements
from tenfold.codegen.llvm.simd_emitter import Packet
from tenfold.core.loop_ir import SCATTER_CHUNK, Fold, KernelStore, operand_of
from tenfold.core.scalar_ir import Body, Element
from tenfold.dtypes import BOOL, INT64, kind_of


def unit(emitter: FunctionEmitter, number: str) -> None:
    """Emit a unit of work: the rows that begin in it."""
    _Segments(emitter).emit(number)


def identity_of(kind: str, part: int, dtype: np.dtype) -> float:
    """Return the identity of a reducer: of its partial result of this number and dtype.

    >>> identity_of("largest", 0, INT64) == -(2**63)
    True
    """
    if kind in ("add", "product"):
        return int(kind == "product" and part == 0)
    is_lowest = kind == "largest"
    if kind_of(dtype) == "f":
        return -np.inf if is_lowest else np.inf
    if dtype == BOOL:
        return not is_lowest
    return int(np.iinfo(dtype).min if is_lowest else np.iinfo(dtype).max)


class _Segments:
    """The rows of one unit."""

    def __init__(self, emitter: FunctionEmitter) -> None:
        self.emitter, self.ir, self.kernel = emitter, emitter.ir, emitter.kernel
        self.rows = self.kernel.folded - 1
        """The axis of the rows."""
        self.first = "0"
        """The number of the first row at the index of the outer axes."""
        numbered = list(enumerate(zip(self.kernel.body, self.kernel.levels, strict=True)))
        self.invariant = [i for i, (x, level) in numbered if level < 0 and x.name != "segment"]
        self.checks = [i for i, (x, level) in numbered if level == 0 and x.name == "fail"]

    def emit(self, number: str) -> None:
        """Emit the loop over the rows of a unit."""
        emitter, ir = self.emitter, self.ir
        count, length = emitter.length(self.rows), emitter.unit_length
        work = int_op(ir, "add", count, emitter.length(self.kernel.folded))
        units = int_op(ir, "udiv", int_op(ir, "add", work, int_op(ir, "sub", length, 1)), length)
        self.first = int_op(ir, "mul", int_op(ir, "udiv", number, units), count)
        start = int_op(ir, "mul", int_op(ir, "urem", number, units), length)
        begin = self._first_row(start)
        end = self._first_row(int_op(ir, "add", start, length))
        if self.kernel.folded < self.kernel.axes - 1:
            for_range(ir, begin, end, 1, self._emit_columns)
        elif self.kernel.cached_elements:
            self._emit_chunks(begin, end)
        else:
            with emitter.single_elements():
                for_range(ir, begin, end, 1, self._emit_row)

    def _first_row(self, start: str) -> str:
        """Return the first row of which offset and number make `start` or more: by bisection."""
        ir, count = self.ir, self.emitter.length(self.rows)
        zeros = ir.intrinsic("llvm.ctlz.i64", "i64", [("i64", count), ("i1", "false")])
        steps = int_op(ir, "sub", "64", zeros)
        first = Packet("0", INT64, 1), Packet(count, INT64, 1)

        def choose(k: Body, x: Element, y: Element, z: Element, c: Element) -> tuple[Element, ...]:
            return k.select(c, y + 1, x), k.select(c, z - (y - x) - 1, y - x)

        def halve(_: str, state: Accumulator) -> Accumulator:
            row, remaining = state
            middle = int_op(ir, "add", row.text, int_op(ir, "lshr", remaining.text, 1))
            place = int_op(ir, "add", self._offset(middle), middle)
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
        operand, stride = (
            self.kernel.operands[loaded],
            self.emitter.size.get(("stride", loaded, self.rows), "0"),
        )
        address = load_store.PacketAddress(self.emitter.buffers[loaded], row, stride, None, 1)
        packet = load_store.load(ir, operand._replace(steps="s"), 0, address)
        return emit_rule(ir, (packet,), lambda k, x: (k.convert(x, INT64),))[0].text

    def _begin_row(self, row: str) -> tuple[str, str]:
        """Compute what depends on a row alone; return its first entry and its end."""
        emitter, ir, kernel = self.emitter, self.ir, self.kernel
        emitter.set_indices(int_op(ir, "add", self.first, row), kernel.folded)
        emitter.uniform_values = {}
        emitter.compute(kernel.bounds, emitter.uniform_values, "0", None)
        begin, end = (emitter.uniform_values[i].text for i in kernel.bounds)
        return begin, end

    def _emit_columns(self, row: str) -> None:
        """Emit a row for one packet of columns after the other."""
        emitter, ir = self.emitter, self.ir
        bounds = self._clamped(self._begin_row(row), "0", emitter.length(self.kernel.folded))
        length, lanes = emitter.length(self.kernel.axes - 1), emitter.lanes
        tail = int_op(ir, "urem", length, lanes)
        full_end = int_op(ir, "sub", length, tail)

        def emit_packet(column: str, mask: str | None = None) -> None:
            self._emit_passes(bounds, column, mask)

        for_range(ir, "0", full_end, lanes, emit_packet)
        has_tail = ir.value(f"icmp ne i64 {tail}, 0")
        if_then(ir, has_tail, lambda: emit_packet(full_end, emitter.mask(full_end, length)))

    def _emit_row(self, row: str) -> None:
        """Emit a row without columns, one element after the other."""
        entries = self.emitter.length(self.kernel.folded)
        self._emit_passes(self._clamped(self._begin_row(row), "0", entries), "0", None)

    def _clamped(self, bounds: tuple[str, str], first: str, end: str) -> tuple[str, str]:
        """Return the bounds of the entries of a row that are in a range."""
        return int_max(self.ir, bounds[0], first), int_min(self.ir, bounds[1], end)

    def _emit_passes(self, bounds: tuple[str, str], column: str, mask: str | None) -> None:
        values = dict(self.emitter.uniform_values)
        self.emitter.compute(self.invariant, values, column, mask)
        for pass_ in range(self.kernel.passes):
            folds = folds_of_pass(self.kernel, pass_)
            stores, targets = pass_elements(self.kernel, pass_)

            def combine_entry(
                entry: str,
                partials: Accumulator,
                stores: Sequence[KernelStore] = stores,
                targets: Sequence[int] = targets,
                folds: Sequence[Fold] = folds,
            ) -> Accumulator:
                entry_values = dict(values)
                self._compute_entry(entry, targets, stores, entry_values, column, mask)
                return self._combine(folds, partials, entry_values)

            if targets:
                first = self._identities(folds)
                partials = for_range_carrying(self.ir, *bounds, first, combine_entry, is_short=True)
                self._bind(folds, partials, values)
            self._finish_pass(pass_, values, column, mask)

    def _compute_entry(
        self,
        entry: str,
        targets: Iterable[int],
        stores: Iterable[KernelStore],
        values: dict[int, Packet],
        column: str,
        mask: str | None,
    ) -> None:
        """Compute and store an entry: for a packet of columns, or one element."""
        emitter, folded = self.emitter, self.kernel.folded
        with emitter.index_at(folded, entry):
            position = column if folded < self.kernel.axes - 1 else entry
            emitter.compute(targets, values, position, mask)
            emitter.store(stores, values, position, mask)

    def _combine(
        self, folds: Sequence[Fold], partials: Accumulator, values: dict[int, Packet]
    ) -> Accumulator:
        """Combine the partial results of all folds with an entry."""
        remaining, combined = list(partials), list[Packet]()
        for fold in folds:
            old = tuple(remaining[: len(fold.inputs)])
            del remaining[: len(fold.inputs)]
            new = tuple(values[i] for i in fold.inputs)
            combined += combine_partials(self.ir, fold.kind, old, new, in_order=True)
        return tuple(combined)

    def _bind(
        self, folds: Sequence[Fold], partials: Accumulator, values: dict[int, Packet]
    ) -> None:
        results = [i for fold in folds for i in fold.results]
        values.update({i: packet for i, packet in zip(results, partials, strict=True) if i >= 0})

    def _finish_pass(
        self, pass_: int, values: dict[int, Packet], column: str, mask: str | None
    ) -> None:
        """Compute and store what depends on the folds of a pass."""
        kernel = self.kernel
        targets = [i for i, level in enumerate(kernel.levels) if level == 2 * pass_ + 1]
        stores = [store for store in kernel.stores if kernel.pass_of(store) == 2 * pass_ + 1]
        targets += [i for store in stores for i in store.elements]
        self.emitter.compute(targets, values, column, mask)
        self.emitter.store(stores, values, column, mask)

    def _identities(self, folds: Iterable[Fold]) -> Accumulator:
        packets, lanes = [], self.emitter.lanes
        for fold in folds:
            for part, i in enumerate(fold.inputs):
                body, dtype = Body(), self.kernel.body[i].dtype
                body.constant(identity_of(fold.kind, part, dtype), dtype)
                packet = self.ir.emit(body.instructions[0], {}, 1)
                packets.append(Packet(self.ir.broadcast(packet, lanes), dtype, lanes))
        return tuple(packets)

    def _emit_chunks(self, begin: str, end: str) -> None:
        """Emit the rows of a unit of one pass: the entries of a chunk are computed in packets, then
        folded row by row. A row longer than a chunk goes on in the next one.
        """
        emitter, ir, entries = self.emitter, self.ir, self.emitter.length(self.kernel.folded)
        folds = folds_of_pass(self.kernel, 0)
        first, last = (
            int_min(ir, int_max(ir, self._offset(row), "0"), entries) for row in (begin, end)
        )
        with emitter.single_elements():
            identities = self._identities(folds)
        state = [(ir.alloca(8), packet) for packet in (Packet(begin, INT64, 1), *identities)]
        """On the stack between chunks: the row, and its partial results."""
        for slot, packet in state:
            write_packet(ir, slot, packet, 1)

        def emit_chunk(chunk: str) -> None:
            chunk_end = int_min(ir, int_op(ir, "add", chunk, SCATTER_CHUNK), last)
            self._compute_chunk(begin, chunk, chunk_end)
            is_last = ir.value(f"icmp sge i64 {chunk_end}, {last}")
            exit_, row = ir.name()[1:], read_packet(ir, state[0][0], INT64, 1).text

            def emit_row(row: str) -> None:
                bounds = self._begin_row(row)
                partials = self._fold_chunk(folds, state[1:], bounds, chunk, chunk_end)
                is_complete = ir.value(f"icmp sle i64 {bounds[1]}, {chunk_end}")
                is_complete = ir.value(f"or i1 {is_complete}, {is_last}")
                name = ir.name()[1:]
                ir.line(f"br i1 {is_complete}, label %{name}.finish, label %{name}.go_on")
                ir.label(f"{name}.go_on")
                for (slot, _), packet in zip(
                    state, (Packet(row, INT64, 1), *partials), strict=True
                ):
                    write_packet(ir, slot, packet, 1)
                ir.line(f"br label %{exit_}")
                ir.label(f"{name}.finish")
                values = dict(emitter.uniform_values)
                self._bind(folds, partials, values)
                self._finish_pass(0, values, "0", None)
                for slot, packet in state[1:]:
                    write_packet(ir, slot, packet, 1)

            with emitter.single_elements():
                for_range(ir, row, end, 1, emit_row)
            ir.line(f"br label %{exit_}")
            ir.label(exit_)

        for_range(
            ir, first, int_max(ir, last, int_op(ir, "add", first, 1)), SCATTER_CHUNK, emit_chunk
        )

    def _compute_chunk(self, row: str, begin: str, end: str) -> None:
        """Compute the entries of a chunk that do not depend on rows, in packets."""
        emitter, ir, kernel = self.emitter, self.ir, self.kernel
        self._begin_row(row)
        targets = (*kernel.cached_elements, *self.checks)

        def compute_packet(position: str, mask: str | None = None) -> None:
            values: dict[int, Packet] = {}
            emitter.compute(targets, values, position, mask)
            for i in kernel.cached_elements:
                pointer = self._scratch_pointer(i, int_op(ir, "sub", position, begin))
                write_packet(ir, pointer, values[i], emitter.lanes)

        tail = int_op(ir, "urem", int_op(ir, "sub", end, begin), emitter.lanes)
        full_end = int_op(ir, "sub", end, tail)
        for_range(ir, begin, full_end, emitter.lanes, compute_packet)
        has_tail = ir.value(f"icmp ne i64 {tail}, 0")
        if_then(ir, has_tail, lambda: compute_packet(full_end, emitter.mask(full_end, end)))

    def _scratch_pointer(self, number: int, local: str) -> str:
        """Return the pointer to a vectorised element, by its position in the chunk."""
        ir, kernel = self.ir, self.kernel
        start = 8 * (SCATTER_CHUNK + kernel.lanes) * kernel.cached_elements.index(number)
        offset = int_op(ir, "mul", local, kernel.body[number].dtype.itemsize)
        return ir.value(f"getelementptr i8, ptr %scratch, i64 {int_op(ir, 'add', offset, start)}")

    def _fold_chunk(
        self,
        folds: Sequence[Fold],
        state: Sequence[tuple[str, Packet]],
        bounds: tuple[str, str],
        chunk: str,
        chunk_end: str,
    ) -> Accumulator:
        """Fold the entries of a row that are in a chunk."""
        emitter, ir, kernel = self.emitter, self.ir, self.kernel
        emitter.compute(self.invariant, emitter.uniform_values, "0", None)
        stores, targets = pass_elements(kernel, 0)
        targets = [i for i in targets if i not in self.checks]

        def combine_entry(entry: str, partials: Accumulator) -> Accumulator:
            local, values = int_op(ir, "sub", entry, chunk), dict(emitter.uniform_values)
            for i in kernel.cached_elements:
                pointer = self._scratch_pointer(i, local)
                values[i] = read_packet(ir, pointer, kernel.body[i].dtype, 1)
            self._compute_entry(entry, targets, stores, values, "0", None)
            return self._combine(folds, partials, values)

        partials = tuple(read_packet(ir, slot, packet.dtype, 1) for slot, packet in state)
        bounds = self._clamped(bounds, chunk, chunk_end)
        return for_range_carrying(ir, *bounds, partials, combine_entry, is_short=True)
