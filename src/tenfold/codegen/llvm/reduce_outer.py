"""Outer reduction: folds along an axis outside the packet axis, with packets along a kept axis.

Input: a FunctionEmitter. Output: lines. A unit of work is a range of columns at one index of the
outer axes. The tree is that of a row. For each of the 32 lanes of a block, the rows of that lane
are folded for one packet of columns after the other. The 32 results are rows of scratch memory and
are folded by halves; the totals of blocks are held in a counter there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from tenfold.codegen.llvm.function_emitter import FunctionEmitter
from tenfold.codegen.llvm.loop_emitter import (
    Accumulator,
    FoldCounter,
    combine_partials,
    for_range,
    int_min,
    int_op,
    read_packet,
    write_packet,
)
from tenfold.codegen.llvm.reduce_inner import (
    count_blocks,
    folds_of_pass,
    pass_elements,
    push_leaf,
    unroll_factor,
)
from tenfold.codegen.llvm.simd_emitter import Packet
from tenfold.core.canonical_reduction import BLOCK, LANES
from tenfold.core.loop_ir import Fold

LANE_LEVELS = 6


@dataclass(frozen=True)
class Scratch:
    """Scratch memory of a unit: a row of `width` bytes for each component of a fold or value."""

    width: str
    slots: str

    def lane_row(self, emitter: FunctionEmitter, component: int, number: str) -> str:
        """Return the row of the result of a lane, for a component of a fold."""
        return int_op(emitter.ir, "add", number, component * LANES)

    def block_row(self, emitter: FunctionEmitter, component_count: int, component: int) -> str:
        """Return the first row of the block counter, for a component of a fold."""
        slot_rows = int_op(emitter.ir, "mul", self.slots, component)
        return int_op(emitter.ir, "add", slot_rows, component_count * LANES)

    def value_row(self, emitter: FunctionEmitter, component_count: int, number: int) -> str:
        """Return the row of a value of each column that later passes read."""
        slot_rows = int_op(emitter.ir, "mul", self.slots, component_count)
        return int_op(emitter.ir, "add", slot_rows, component_count * LANES + number)


def unit(emitter: FunctionEmitter, number: str) -> None:
    """Emit a unit of work: all passes over a range of columns."""
    kernel, ir = emitter.kernel, emitter.ir
    last = kernel.axes - 1
    length, unit_length = emitter.length(last), emitter.unit_length
    rounded = int_op(ir, "add", length, int_op(ir, "sub", unit_length, 1))
    unit_count = int_op(ir, "udiv", rounded, unit_length)
    outer = int_op(ir, "udiv", number, unit_count)
    emitter.set_indices(outer, kernel.folded)
    begin = int_op(ir, "mul", int_op(ir, "urem", number, unit_count), unit_length)
    columns = (begin, int_min(ir, int_op(ir, "add", begin, unit_length), length))
    width = int_op(ir, "shl", int_op(ir, "add", unit_length, emitter.lanes), 3)
    column_emitter = _Column(emitter, columns, Scratch(width, emitter.size["slots", 0, 0]))
    column_emitter.check_failures()
    for pass_ in range(kernel.passes):
        column_emitter.emit_pass(pass_)


class _Column:
    """Emits the passes over one range of columns."""

    def __init__(
        self, emitter: FunctionEmitter, columns: tuple[str, str], scratch: Scratch
    ) -> None:
        self.emitter, self.ir, self.kernel = emitter, emitter.ir, emitter.kernel
        self.columns, self.scratch = columns, scratch
        self.component_count = emitter.kernel.most_parts
        self.value_rows = {number: i for i, number in enumerate(emitter.kernel.pass_results)}

    def for_each_packet(self, body: Callable[[str, str], None]) -> None:
        """Emit a loop over the packets of columns; `body` gets the first column and the mask."""

        def visit_packet(column: str) -> None:
            body(column, self.emitter.mask(column, self.columns[1]))

        for_range(self.ir, *self.columns, self.emitter.lanes, visit_packet)

    def row_pointer(self, row: str, column: str, dtype: np.dtype) -> str:
        """Return the pointer to a column of a row of scratch memory."""
        ir = self.ir
        offset = int_op(ir, "mul", row, self.scratch.width)
        column_offset = int_op(ir, "sub", column, self.columns[0])
        offset = int_op(ir, "add", offset, int_op(ir, "mul", column_offset, dtype.itemsize))
        return ir.value(f"getelementptr i8, ptr %scratch, i64 {offset}")

    def check_failures(self) -> None:
        """Emit the failures that are uniform along the folded axis, before any dependent read."""
        kernel = self.kernel
        numbered = enumerate(zip(kernel.body, kernel.levels, strict=True))
        failing = [
            i for i, (instruction, level) in numbered if instruction.name == "fail" and level < 0
        ]
        if failing:
            self.for_each_packet(
                lambda column, mask: self.emitter.compute(failing, {}, column, mask)
            )

    def emit_pass(self, pass_: int) -> None:
        """Emit one pass: the elements, the folds, and the values that depend on them."""
        emitter, ir, kernel = self.emitter, self.ir, self.kernel
        folds = folds_of_pass(kernel, pass_)
        length = emitter.length(kernel.folded)
        if not folds:
            stores, targets = pass_elements(kernel, pass_)
            if stores or targets:
                for_range(ir, "0", length, 1, lambda row: self._map_row(pass_, row))
            return
        blocks = int_op(ir, "lshr", length, 10)
        tail = int_op(ir, "and", length, BLOCK - 1)
        count = count_blocks(ir, blocks, tail)
        for_range(ir, "0", count, 1, lambda block: self._reduce_block(pass_, folds, block, length))
        self._finish_pass(pass_, folds, count)

    def _map_row(self, pass_: int, row: str) -> None:
        stores, targets = pass_elements(self.kernel, pass_)

        def emit_packet(column: str, mask: str) -> None:
            with self.emitter.index_at(self.kernel.folded, row):
                values = self._compute_elements(pass_, targets, column, mask)
                self.emitter.store(stores, values, column, mask)

        self.for_each_packet(emit_packet)

    def _compute_elements(
        self, pass_: int, targets: Iterable[int], column: str, mask: str | None
    ) -> dict[int, Packet]:
        values: dict[int, Packet] = {}
        self._read_values(targets, values, column, pass_)
        self.emitter.compute(targets, values, column, mask)
        return values

    def _read_values(
        self, targets: Iterable[int], values: dict[int, Packet], column: str, pass_: int
    ) -> None:
        """Load the values of earlier passes that `targets` need."""
        stack, visited = list(targets), set()
        while stack:
            number = stack.pop()
            if number in visited or number in values:
                continue
            visited.add(number)
            if number in self.value_rows and self.kernel.levels[number] < 2 * pass_:
                values[number] = self._read_value(number, column)
            else:
                stack.extend(self.kernel.body[number].inputs)

    def _read_value(self, number: int, column: str) -> Packet:
        dtype = self.kernel.body[number].dtype
        row = self.scratch.value_row(self.emitter, self.component_count, self.value_rows[number])
        return read_packet(self.ir, self.row_pointer(row, column, dtype), dtype, self.emitter.lanes)

    def _reduce_block(self, pass_: int, folds: Sequence[Fold], block: str, length: str) -> None:
        ir = self.ir
        start = int_op(ir, "shl", block, 10)
        size = int_min(ir, int_op(ir, "sub", length, start), BLOCK)
        lanes = int_min(ir, size, LANES)

        def reduce_lane(number: str) -> None:
            rounded = int_op(ir, "add", int_op(ir, "sub", size, number), LANES - 1)
            rows = int_op(ir, "lshr", rounded, 5)
            first_row = int_op(ir, "add", start, number)
            self.for_each_packet(
                lambda column, mask: self._reduce_lane(
                    pass_, folds, (number, first_row, rows), column, mask
                )
            )

        for_range(ir, "0", lanes, 1, reduce_lane)
        for fold, component in self._component_offsets(folds):
            self._reduce_lanes(fold, component, lanes)
            self._insert_block(fold, component, block)

    def _component_offsets(self, folds: Sequence[Fold]) -> list[tuple[Fold, int]]:
        """Return each fold with the number of its first component."""
        numbered, offset = [], 0
        for fold in folds:
            numbered.append((fold, offset))
            offset += len(fold.inputs)
        return numbered

    def _dtypes(self, fold: Fold) -> list[np.dtype]:
        return [self.kernel.body[i].dtype for i in fold.inputs]

    def _reduce_lane(
        self,
        pass_: int,
        folds: Sequence[Fold],
        lane: tuple[str, str, str],
        column: str,
        mask: str,
    ) -> None:
        """Fold the rows of one lane for one packet of columns, into scratch memory."""
        ir, kernel, lanes = self.ir, self.kernel, self.emitter.lanes
        number, first_row, rows = lane
        stores, targets = pass_elements(kernel, pass_)
        counters = []
        for fold in folds:
            dtypes = self._dtypes(fold)
            slots = ir.alloca(8 * lanes * LANE_LEVELS * len(dtypes))
            counters.append(FoldCounter(ir, fold.kind, dtypes, lanes, slots, 8 * lanes))

        def leaf(row: str) -> list[Accumulator]:
            index = int_op(ir, "add", first_row, int_op(ir, "shl", row, 5))
            with self.emitter.index_at(kernel.folded, index):
                values = self._compute_elements(pass_, targets, column, mask)
                self.emitter.store(stores, values, column, mask)
            return [tuple(values[i] for i in fold.inputs) for fold in folds]

        def emit_group(index: str, level: int) -> None:
            pending_leaves: list[list[Accumulator]] = [[] for _ in folds]
            for i in range(1 << level):
                row = int_op(ir, "add", int_op(ir, "shl", index, level), i)
                for fold, pending, components in zip(folds, pending_leaves, leaf(row), strict=True):
                    push_leaf(ir, fold.kind, pending, i, components)
            for counter, (components,) in zip(counters, pending_leaves, strict=True):
                counter.insert(components, index, level)

        first = "0"
        most = unroll_factor(kernel).bit_length() - 1
        for level in sorted({most, min(most, 1), 0}, reverse=True):  # pairs for fewer than 256 rows
            end = int_op(ir, "lshr", rows, level)
            group = partial(emit_group, level=level)
            for_range(ir, int_op(ir, "lshr", first, level), end, 1, group)
            first = int_op(ir, "shl", end, level)
        for (fold, component), counter in zip(
            self._component_offsets(folds), counters, strict=True
        ):
            for i, packet in enumerate(counter.flush(rows)):
                row = self.scratch.lane_row(self.emitter, component + i, number)
                write_packet(
                    ir, self.row_pointer(row, column, self._dtypes(fold)[i]), packet, lanes
                )

    def _reduce_lanes(self, fold: Fold, component: int, lanes: str) -> None:
        """Fold the lanes of a block by halves, in place."""
        ir, valid, half = self.ir, lanes, LANES // 2
        while half:
            pairs = int_op(ir, "sub", valid, half)

            def combine_lanes(low: str, half: int = half) -> None:
                high = int_op(ir, "add", low, half)

                def combine_packet(column: str, _: str) -> None:
                    pointers = [
                        [
                            self.row_pointer(
                                self.scratch.lane_row(self.emitter, component + i, lane),
                                column,
                                dtype,
                            )
                            for i, dtype in enumerate(self._dtypes(fold))
                        ]
                        for lane in (low, high)
                    ]
                    left, right = (self._read_components(fold, row) for row in pointers)
                    for pointer, packet in zip(
                        pointers[0], combine_partials(ir, fold.kind, left, right), strict=True
                    ):
                        write_packet(ir, pointer, packet, self.emitter.lanes)

                self.for_each_packet(combine_packet)

            for_range(ir, "0", pairs, 1, combine_lanes)
            valid = int_min(ir, valid, half)
            half //= 2

    def _read_components(self, fold: Fold, pointers: Sequence[str]) -> Accumulator:
        return tuple(
            read_packet(self.ir, pointer, dtype, self.emitter.lanes)
            for pointer, dtype in zip(pointers, self._dtypes(fold), strict=True)
        )

    def _block_counter(self, fold: Fold, component: int, column: str) -> FoldCounter:
        """Return the counter of the blocks of a packet of columns."""
        dtypes = self._dtypes(fold)
        assert len({dtype.itemsize for dtype in dtypes}) > 0, "a fold has parts"
        row = self.scratch.block_row(self.emitter, self.component_count, component)
        column_offset = int_op(self.ir, "sub", column, self.columns[0])
        offset = int_op(self.ir, "mul", row, self.scratch.width)
        offset = int_op(self.ir, "add", offset, int_op(self.ir, "shl", column_offset, 3))
        memory = self.ir.value(f"getelementptr i8, ptr %scratch, i64 {offset}")
        return FoldCounter(
            self.ir, fold.kind, dtypes, self.emitter.lanes, memory, self.scratch.width
        )

    def _insert_block(self, fold: Fold, component: int, block: str) -> None:
        def insert_packet(column: str, _: str) -> None:
            rows = [
                self.row_pointer(
                    self.scratch.lane_row(self.emitter, component + i, "0"), column, dtype
                )
                for i, dtype in enumerate(self._dtypes(fold))
            ]
            self._block_counter(fold, component, column).insert(
                self._read_components(fold, rows), block
            )

        self.for_each_packet(insert_packet)

    def _finish_pass(self, pass_: int, folds: Sequence[Fold], count: str) -> None:
        """Flush the folds, compute the dependent values, and store one element per column."""
        kernel, ir = self.kernel, self.ir
        targets = [i for i in kernel.pass_results if kernel.levels[i] == 2 * pass_ + 1]
        stores = [store for store in kernel.stores if kernel.pass_of(store) == 2 * pass_ + 1]
        numbered = enumerate(zip(kernel.body, kernel.levels, strict=True))
        failing = [
            i
            for i, (instruction, level) in numbered
            if instruction.name == "fail" and level == 2 * pass_ + 1
        ]

        def finish_packet(column: str, mask: str) -> None:
            values: dict[int, Packet] = {}
            for fold, component in self._component_offsets(folds):
                components = self._block_counter(fold, component, column).flush(count)
                values.update(zip(fold.results, components, strict=True))
            values.pop(-1, None)  # -1: unused components
            required = [*targets, *failing, *(i for store in stores for i in store.elements)]
            self._read_values(required, values, column, pass_)
            self.emitter.compute(required, values, column, mask)
            for number in targets:
                dtype = kernel.body[number].dtype
                row = self.scratch.value_row(
                    self.emitter, self.component_count, self.value_rows[number]
                )
                write_packet(
                    ir, self.row_pointer(row, column, dtype), values[number], self.emitter.lanes
                )
            self.emitter.store(stores, values, column, mask)

        self.for_each_packet(finish_packet)
