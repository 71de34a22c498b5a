"""Inner reduction: passes over the packet axis, with folds along it in the canonical tree.

Input: a FunctionEmitter at a row. Output: lines. A pass computes, stores and folds the elements.
Values that depend on the folds alone are computed once after the pass, for the next pass and for
stores of one element per row. A fold takes 32 lanes of a block at a time. A lane's partial results
are held in a counter on the stack, those of blocks in a counter of scalars.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from tenfold.codegen.llvm import load_store
from tenfold.codegen.llvm.function_emitter import FunctionEmitter
from tenfold.codegen.llvm.horizontal_reduce import reduce_lanes
from tenfold.codegen.llvm.loop_emitter import (
    Accumulator,
    FoldCounter,
    combine_partials,
    for_range,
    if_then,
    int_min,
    int_op,
    read_packet,
    write_packet,
)
from tenfold.codegen.llvm.simd_emitter import Packet, SimdEmitter, llvm_type
from tenfold.core.canonical_reduction import BLOCK, LANES
from tenfold.core.loop_ir import Fold, Kernel, KernelStore

LANE_SLOTS = 8
TOTAL, RAGGED = "6", "7"
"""Slots of a lane counter: levels 0 to 5, then the total of the rows, and the ragged row."""
BLOCK_LEVELS = 54
"""2**53 blocks of 1,024 exceed any memory."""


def unit(emitter: FunctionEmitter, number: str) -> None:
    """Emit a unit of work: all passes of a row."""
    kernel = emitter.kernel
    emitter.set_indices(number, kernel.axes - 1)
    begin_row(emitter)
    length = emitter.length(kernel.axes - 1)
    for pass_ in range(kernel.passes):
        folds = folds_of_pass(kernel, pass_)
        if not folds:
            map_elements(emitter, pass_, "0", length)
            continue
        counters = _block_counters(emitter, folds)
        blocks = int_op(emitter.ir, "lshr", length, 10)
        tail = int_op(emitter.ir, "and", length, BLOCK - 1)

        def insert_totals(
            block: str, totals: list[Accumulator], counters: Sequence[FoldCounter] = counters
        ) -> None:
            for counter, components in zip(counters, totals, strict=True):
                counter.insert(components, block)

        _reduce_blocks(emitter, pass_, folds, ("0", blocks), tail, insert_totals)
        count = count_blocks(emitter.ir, blocks, tail)
        for fold, counter in zip(folds, counters, strict=True):
            _bind_results(emitter, fold, counter.flush(count))
        finish_pass(emitter, pass_)


def short_unit(emitter: FunctionEmitter, number: str) -> None:
    """Emit a unit of work: all passes of a row that is one packet, whose elements stay in
    registers.
    """
    kernel, ir = emitter.kernel, emitter.ir
    emitter.set_indices(number, kernel.axes - 1)
    begin_row(emitter)
    length = emitter.length(kernel.axes - 1) if kernel.masked else str(kernel.lanes)
    mask = emitter.mask("0", length) if kernel.masked else None
    elements: dict[int, Packet] = {}
    for pass_ in range(kernel.passes):
        stores, targets = pass_elements(kernel, pass_)
        elements.update(emitter.uniform_values)
        emitter.compute(targets, elements, "0", mask)
        emitter.store(stores, elements, "0", mask)
        folds = folds_of_pass(kernel, pass_)
        for fold in folds:
            packets = [elements[i] for i in fold.inputs]
            parts = tuple(
                Packet(ir.broadcast(packet, kernel.lanes), packet.dtype, kernel.lanes)
                for packet in packets
            )
            _bind_results(emitter, fold, reduce_lanes(ir, fold, parts, length))
        if folds:
            finish_pass(emitter, pass_)


def split_unit(emitter: FunctionEmitter, number: str) -> None:
    """Emit a unit of work: some blocks of a row, whose totals are stored for `finish`."""
    kernel, ir = emitter.kernel, emitter.ir
    length = emitter.length(kernel.axes - 1)
    blocks = int_op(ir, "lshr", length, 10)
    tail = int_op(ir, "and", length, BLOCK - 1)
    count = count_blocks(ir, blocks, tail)
    rounded = int_op(ir, "add", count, int_op(ir, "sub", emitter.unit_length, 1))
    parts = int_op(ir, "udiv", rounded, emitter.unit_length)
    row = int_op(ir, "udiv", number, parts)
    first_block = int_op(ir, "mul", int_op(ir, "urem", number, parts), emitter.unit_length)
    end_block = int_min(ir, int_op(ir, "add", first_block, emitter.unit_length), count)
    emitter.set_indices(row, kernel.axes - 1)
    begin_row(emitter)
    folds = folds_of_pass(kernel, 0)

    def store_totals(block: str, totals: list[Accumulator]) -> None:
        entry = int_op(ir, "add", int_op(ir, "mul", row, count), block)
        for pointer, packet in zip(
            _total_pointers(emitter, folds, entry),
            [p for parts in totals for p in parts],
            strict=True,
        ):
            write_packet(ir, pointer, packet, 1)

    full_end = int_min(ir, end_block, blocks)
    has_tail = int_op(ir, "sub", end_block, full_end)  # 1 if the unit ends with the partial block
    _reduce_blocks(
        emitter, 0, folds, (first_block, full_end), int_op(ir, "mul", tail, has_tail), store_totals
    )


def finish(emitter: FunctionEmitter, number: str) -> None:
    """Emit a unit of work: fold the totals of a split row's blocks, and store the results."""
    kernel, ir = emitter.kernel, emitter.ir
    length = emitter.length(kernel.axes - 1)
    count = int_op(ir, "lshr", int_op(ir, "add", length, BLOCK - 1), 10)
    emitter.set_indices(number, kernel.axes - 1)
    begin_row(emitter)
    folds = folds_of_pass(kernel, 0)
    counters = _block_counters(emitter, folds)
    first_entry = int_op(ir, "mul", number, count)

    def insert_block(block: str) -> None:
        pointers = iter(_total_pointers(emitter, folds, int_op(ir, "add", first_entry, block)))
        for fold, counter in zip(folds, counters, strict=True):
            components = tuple(
                read_packet(ir, next(pointers), dtype, 1) for dtype in _dtypes(kernel, fold)
            )
            counter.insert(components, block)

    for_range(ir, "0", count, 1, insert_block)
    for fold, counter in zip(folds, counters, strict=True):
        _bind_results(emitter, fold, counter.flush(count))
    finish_pass(emitter, 0)


def _total_pointers(emitter: FunctionEmitter, folds: Sequence[Fold], number: str) -> list[str]:
    """Return pointers to the totals of a block."""
    dtypes = [dtype for fold in folds for dtype in _dtypes(emitter.kernel, fold)]
    return emitter.total_pointers(dtypes, number)


def begin_row(emitter: FunctionEmitter) -> None:
    """Compute the values that are uniform for the whole row."""
    emitter.uniform_values = {}
    uniform_elements = [i for i, level in enumerate(emitter.kernel.levels) if level < 0]
    emitter.compute(uniform_elements, emitter.uniform_values, "0", None)


def map_elements(emitter: FunctionEmitter, pass_: int, begin: str, end: str) -> None:
    """Loop over the elements from begin to end without a fold."""
    stores, targets = pass_elements(emitter.kernel, pass_)

    def emit_packet(position: str, mask: str | None) -> None:
        compute_elements(emitter, pass_, targets, stores, position, mask)

    emitter.for_packets(begin, end, emit_packet)


def pass_elements(kernel: Kernel, pass_: int) -> tuple[list[KernelStore], list[int]]:
    """Return the stores of elements in a pass, and all instructions it must compute."""
    stores = [store for store in kernel.stores if max(kernel.pass_of(store), 0) == 2 * pass_]
    targets = [i for store in stores for i in store.elements]
    targets += [i for fold in folds_of_pass(kernel, pass_) for i in fold.inputs]
    numbered = enumerate(zip(kernel.body, kernel.levels, strict=True))
    targets += [
        i
        for i, (instruction, level) in numbered
        if instruction.name == "fail" and level == 2 * pass_
    ]
    targets += [i for i in kernel.cached_elements if kernel.levels[i] == 2 * pass_]
    return stores, targets


def folds_of_pass(kernel: Kernel, pass_: int) -> list[Fold]:
    """Return the folds of a pass."""
    return [
        fold
        for fold in kernel.folds
        if max((kernel.levels[i] for i in fold.results if i >= 0), default=-1) == 2 * pass_ + 1
    ]


def compute_elements(
    emitter: FunctionEmitter,
    pass_: int,
    targets: Iterable[int],
    stores: Iterable[KernelStore],
    position: str,
    mask: str | None,
) -> dict[int, Packet]:
    """Compute, store and cache the packet of a pass at a position."""
    values, kernel = dict(emitter.uniform_values), emitter.kernel
    for number, element in enumerate(kernel.cached_elements):
        if kernel.levels[element] < 2 * pass_:
            pointer = _scratch_pointer(emitter, number, position)
            values[element] = read_packet(
                emitter.ir, pointer, kernel.body[element].dtype, emitter.lanes
            )
    emitter.compute(targets, values, position, mask)
    emitter.store(stores, values, position, mask)
    for number, element in enumerate(kernel.cached_elements):
        if kernel.levels[element] == 2 * pass_:
            pointer = _scratch_pointer(emitter, number, position)
            write_packet(emitter.ir, pointer, values[element], emitter.lanes)
    return values


def _scratch_pointer(emitter: FunctionEmitter, number: int, position: str) -> str:
    """Return the pointer to a cached row; each row has room for a full last packet."""
    ir, kernel = emitter.ir, emitter.kernel
    length = int_op(ir, "add", emitter.length(kernel.axes - 1), emitter.lanes)
    start = int_op(ir, "mul", length, 8 * number)
    size = kernel.body[kernel.cached_elements[number]].dtype.itemsize
    offset = int_op(ir, "add", start, int_op(ir, "mul", position, size))
    return ir.value(f"getelementptr i8, ptr %scratch, i64 {offset}")


def _dtypes(kernel: Kernel, fold: Fold) -> list[np.dtype]:
    return [kernel.body[i].dtype for i in fold.inputs]


def _block_counters(emitter: FunctionEmitter, folds: Sequence[Fold]) -> list[FoldCounter]:
    counters = []
    for fold in folds:
        dtypes = _dtypes(emitter.kernel, fold)
        slots = emitter.ir.alloca(8 * BLOCK_LEVELS * len(dtypes))
        counters.append(FoldCounter(emitter.ir, fold.kind, dtypes, 1, slots, 8))
    return counters


def count_blocks(ir: SimdEmitter, blocks: str, tail: str) -> str:
    """Emit the number of blocks, including a partial one."""
    has_tail = ir.value(f"icmp ne i64 {tail}, 0")
    return int_op(ir, "add", blocks, ir.value(f"zext i1 {has_tail} to i64"))


def _bind_results(emitter: FunctionEmitter, fold: Fold, components: Accumulator) -> None:
    for result, packet in zip(fold.results, components, strict=True):
        if result >= 0:
            emitter.uniform_values[result] = packet


def finish_pass(emitter: FunctionEmitter, pass_: int) -> None:
    """Compute the values that depend on the folds of a pass, and store one element per row."""
    kernel = emitter.kernel
    targets = [i for i, level in enumerate(kernel.levels) if level == 2 * pass_ + 1]
    emitter.compute(targets, emitter.uniform_values, "0", None)
    for store in kernel.stores:
        if kernel.pass_of(store) == 2 * pass_ + 1:
            packets = [emitter.uniform_values[i] for i in store.elements]
            pointer = emitter.pointer(store.operand)
            load_store.store_single(emitter.ir, kernel.operands[store.operand], packets, pointer)


def _reduce_blocks(
    emitter: FunctionEmitter,
    pass_: int,
    folds: Sequence[Fold],
    block_range: tuple[str, str],
    tail: str,
    use_totals: Callable[[str, list[Accumulator]], None],
) -> None:
    """Fold a range of blocks, and a last one of `tail` elements if there are any."""
    ir = emitter.ir
    count = count_blocks(ir, block_range[1], tail)
    end = int_op(ir, "add", int_op(ir, "shl", block_range[1], 10), tail)

    def reduce_block(number: str) -> None:
        start = int_op(ir, "shl", number, 10)
        size = int_min(ir, int_op(ir, "sub", end, start), BLOCK)
        use_totals(number, _Block(emitter, pass_, folds, start, size).reduce())

    for_range(ir, block_range[0], count, 1, reduce_block)


def unroll_factor(kernel: Kernel) -> int:
    """Return the number of rows of 32 that are unrolled, by the length of the body."""
    length = sum(
        level < 0 or level % 2 == 0 for level in kernel.levels
    )  # without values after a pass
    return next((rows for limit, rows in ((10, 8), (24, 4), (60, 2)) if length <= limit), 1)


def push_leaf(
    ir: SimdEmitter, kind: str, pending: list[Accumulator], leaf_index: int, leaf: Accumulator
) -> None:
    """Insert a leaf into a binary counter in registers."""
    while leaf_index & 1:
        leaf = combine_partials(ir, kind, pending.pop(), leaf, in_order=True)
        leaf_index >>= 1
    pending.append(leaf)


class _Block:
    """The fold of up to 1,024 elements from `start`: rows of 32 lanes, the last one ragged."""

    def __init__(
        self, emitter: FunctionEmitter, pass_: int, folds: Sequence[Fold], start: str, size: str
    ) -> None:
        self.emitter, self.ir, self.pass_, self.folds = emitter, emitter.ir, pass_, folds
        self.stores, self.targets = pass_elements(emitter.kernel, pass_)
        self.start, self.size = start, size
        self.full_rows = int_op(self.ir, "lshr", size, 5)
        self.tail_length = int_op(self.ir, "and", size, LANES - 1)
        self.counters = []
        for fold in folds:
            dtypes = _dtypes(emitter.kernel, fold)
            slots = self.ir.alloca(8 * LANES * LANE_SLOTS * len(dtypes))
            self.counters.append(FoldCounter(self.ir, fold.kind, dtypes, LANES, slots, 8 * LANES))

    def reduce(self) -> list[Accumulator]:
        """Emit the fold; return the totals of the block."""
        ir = self.ir
        has_ragged = ir.value(f"icmp ne i64 {self.tail_length}, 0")
        if self.emitter.kernel.masked:
            self._masked_rows()
        else:
            self._full_rows()
            if_then(
                ir,
                has_ragged,
                lambda: self._write_slot(RAGGED, self._load_row(self.full_rows, True)),
            )
        has_full = ir.value(f"icmp ne i64 {self.full_rows}, 0")
        if_then(ir, has_full, self._flush_full)
        if_then(ir, has_ragged, self._flush_ragged)
        valid = ir.value(f"select i1 {has_full}, i64 {LANES}, i64 {self.tail_length}")
        return [
            reduce_lanes(ir, fold, counter.read(TOTAL), valid)
            for fold, counter in zip(self.folds, self.counters, strict=True)
        ]

    def _load_row(self, row: str, masked: bool) -> list[Accumulator]:
        ir, emitter = self.ir, self.emitter
        position = int_op(ir, "add", self.start, int_op(ir, "shl", row, 5))
        end = int_op(ir, "add", self.start, self.size)
        mask = emitter.mask(position, end) if masked else None
        self._prefetch(position)
        values = compute_elements(emitter, self.pass_, self.targets, self.stores, position, mask)
        return [tuple(values[i] for i in fold.inputs) for fold in self.folds]

    def _prefetch(self, position: str) -> None:
        """Prefetch some rows ahead: the fold of a row's lanes would delay the loads."""
        for number, operand in enumerate(self.emitter.kernel.operands):
            if operand.written or operand.steps[-1] != "1":
                continue
            size = operand.dtype.itemsize
            byte_offset = int_op(self.ir, "mul", position, size)
            ahead = int_op(self.ir, "add", byte_offset, self.emitter.kernel.prefetch_distance)
            load_store.prefetch(self.ir, self.emitter.pointer(number), ahead, LANES * size)

    def _write_slot(self, slot: str, leaves: Sequence[Accumulator]) -> None:
        for counter, components in zip(self.counters, leaves, strict=True):
            counter.write(slot, components)

    def _insert_row(self, row: str, leaves: Sequence[Accumulator]) -> None:
        for counter, components in zip(self.counters, leaves, strict=True):
            counter.insert(components, row)

    def _full_rows(self) -> None:
        """Emit unrolled rows, folded in registers, then the remaining rows one by one."""
        ir = self.ir
        side_by_side = unroll_factor(self.emitter.kernel)
        level = side_by_side.bit_length() - 1
        groups = int_op(ir, "lshr", self.full_rows, level)

        def emit_group(number: str) -> None:
            pending_leaves: list[list[Accumulator]] = [[] for _ in self.folds]
            first_row = int_op(ir, "shl", number, level)
            for i in range(side_by_side):
                leaves = self._load_row(int_op(ir, "add", first_row, i), False)
                for fold, pending, components in zip(
                    self.folds, pending_leaves, leaves, strict=True
                ):
                    push_leaf(ir, fold.kind, pending, i, components)
            for counter, (components,) in zip(self.counters, pending_leaves, strict=True):
                counter.insert(components, number, level)

        for_range(ir, "0", groups, 1, emit_group)
        if side_by_side > 1:
            first_row = int_op(ir, "shl", groups, level)
            for_range(
                ir,
                first_row,
                self.full_rows,
                1,
                lambda row: self._insert_row(row, self._load_row(row, False)),
            )

    def _masked_rows(self) -> None:
        """Emit one copy of a long body: every row is masked, the ragged one has its own slot."""
        ir = self.ir
        rows = int_op(ir, "lshr", int_op(ir, "add", self.size, LANES - 1), 5)

        def emit_row(number: str) -> None:
            leaves = self._load_row(number, True)
            is_full = ir.value(f"icmp slt i64 {number}, {self.full_rows}")
            name = ir.name()[1:]
            ir.line(f"br i1 {is_full}, label %{name}.full, label %{name}.ragged")
            ir.label(f"{name}.ragged")
            self._write_slot(RAGGED, leaves)
            ir.line(f"br label %{name}.after")
            ir.label(f"{name}.full")
            self._insert_row(number, leaves)
            ir.line(f"br label %{name}.after")
            ir.label(f"{name}.after")

        for_range(ir, "0", rows, 1, emit_row)

    def _flush_full(self) -> None:
        for counter in self.counters:
            counter.write(TOTAL, counter.flush(self.full_rows))

    def _flush_ragged(self) -> None:
        """Merge the ragged row into the first lanes; without full rows the others are undefined."""
        ir = self.ir
        mask = self.emitter.mask("0", self.tail_length)
        for counter in self.counters:
            with_ragged = counter.flush(self.full_rows, counter.read(RAGGED))
            full_only = counter.read(TOTAL)
            selected = [
                _select_packet(ir, mask, x, y) for x, y in zip(with_ragged, full_only, strict=True)
            ]
            counter.write(TOTAL, tuple(selected))


def _select_packet(ir: SimdEmitter, mask: str, x: Packet, y: Packet) -> Packet:
    type_ = llvm_type(x.dtype, LANES)
    selected = ir.value(f"select <{LANES} x i1> {mask}, {type_} {x.text}, {type_} {y.text}")
    return Packet(selected, x.dtype, LANES)
