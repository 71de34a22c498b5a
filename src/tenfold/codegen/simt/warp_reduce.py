"""Folds by threads: rows by warps, columns by one thread each, in the canonical tree.

Input: a ThreadEmitter. Output: lines. The 32 lanes of a block of 1,024 elements are the lanes of a
warp: each folds its own elements pairwise, then they are folded by halves through shuffles, which
all lanes do, whether they have elements or not. A thread that has a column folds the lanes of a
block one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

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
from tenfold.codegen.llvm.reduce_inner import (
    BLOCK_LEVELS,
    LANE_SLOTS,
    TOTAL,
    compute_elements,
    folds_of_pass,
    pass_elements,
    push_leaf,
    unroll_factor,
)
from tenfold.codegen.llvm.simd_emitter import SCALARS, Packet
from tenfold.codegen.simt.thread_emitter import ThreadEmitter
from tenfold.core.canonical_reduction import BLOCK, LANES

Leaves = Callable[[str], list[Accumulator]]
"""What each fold folds of the element at a position."""


class FoldPass:
    """A pass over the folded axis: its folds, and the elements that it computes and stores."""

    def __init__(self, emitter: ThreadEmitter, number: int) -> None:
        self.emitter, self.number = emitter, number
        self.folds = folds_of_pass(emitter.kernel, number)
        self.stores, self.targets = pass_elements(emitter.kernel, number)

    def element(self, position: str) -> dict[int, Packet]:
        """Compute and store an element."""
        stores, targets = self.stores, self.targets
        return compute_elements(self.emitter, self.number, targets, stores, position, None)

    def leaves(self, position: str) -> list[Accumulator]:
        """Compute and store an element; return what each fold folds of it."""
        values = self.element(position)
        return [tuple(values[i] for i in fold.inputs) for fold in self.folds]

    def counters(self, levels: int) -> list[FoldCounter]:
        """Return a counter for each fold, in the memory of the thread."""
        ir, body = self.emitter.ir, self.emitter.kernel.body
        counters = []
        for fold in self.folds:
            dtypes = [body[i].dtype for i in fold.inputs]
            memory = ir.alloca(8 * levels * len(dtypes))
            counters.append(FoldCounter(ir, fold.kind, dtypes, 1, memory, 8))
        return counters

    def bind(self, results: Sequence[Accumulator], position: str) -> dict[int, Packet]:
        """Compute what depends on the results of folds, for later passes and stores."""
        kernel, values = self.emitter.kernel, self.emitter.uniform_values
        for fold, packets in zip(self.folds, results, strict=True):
            values.update({i: p for i, p in zip(fold.results, packets, strict=True) if i >= 0})
        level = 2 * self.number + 1
        targets = [i for i, known in enumerate(kernel.levels) if known == level]
        self.emitter.compute(targets, values, position, None)
        return values

    def store_results(self, position: str) -> None:
        """Store the results of folds."""
        kernel, level = self.emitter.kernel, 2 * self.number + 1
        stores = [store for store in kernel.stores if kernel.pass_of(store) == level]
        self.emitter.store(stores, self.emitter.uniform_values, position, None)


def row(emitter: ThreadEmitter) -> None:
    """A warp computes a row, pass by pass."""
    ir, kernel, last = emitter.ir, emitter.kernel, emitter.kernel.axes - 1

    def compute(number: str) -> None:
        emitter.set_indices(number, last)
        emitter.begin("0")
        lane, length = emitter.lane(), emitter.length(last)
        for pass_ in [FoldPass(emitter, i) for i in range(kernel.passes)]:
            if not pass_.folds:
                for_range(ir, lane, length, LANES, pass_.element)
                continue
            counters, blocks = pass_.counters(BLOCK_LEVELS), _blocks(emitter, length)
            for_range(ir, "0", blocks, 1, partial(_insert_block, pass_, counters))
            _finish_row(pass_, [counter.flush(blocks) for counter in counters])

    emitter.for_each_warp(emitter.elements(last), compute)


def split(emitter: ThreadEmitter) -> None:
    """A warp folds a block of a row, whose totals are stored for `finish`."""
    ir, last, pass_ = emitter.ir, emitter.kernel.axes - 1, FoldPass(emitter, 0)
    blocks = _blocks(emitter, emitter.length(last))

    def compute(number: str) -> None:
        emitter.set_indices(int_op(ir, "udiv", number, blocks), last)
        emitter.begin("0")
        totals = _fold_block(pass_, int_op(ir, "urem", number, blocks))
        packets = [packet for total in totals for packet in total]
        pointers = emitter.total_pointers([packet.dtype for packet in packets], number)

        def store() -> None:
            for pointer, packet in zip(pointers, packets, strict=True):
                write_packet(ir, pointer, packet, 1)

        emitter.on_first_lane(store)

    emitter.for_each_warp(int_op(ir, "mul", emitter.elements(last), blocks), compute)


def finish(emitter: ThreadEmitter) -> None:
    """A warp folds the totals of a row's blocks: each lane 32 neighbours, then lanes pairwise."""
    ir, last, pass_ = emitter.ir, emitter.kernel.axes - 1, FoldPass(emitter, 0)
    count = _blocks(emitter, emitter.length(last))
    chunks = _blocks(emitter, count)

    def compute(number: str) -> None:
        emitter.set_indices(number, last)
        emitter.begin("0")
        counters, first = pass_.counters(BLOCK_LEVELS), int_op(ir, "mul", number, count)

        def insert(chunk: str) -> None:
            totals = _fold_neighbours(pass_, first, count, chunk)
            for counter, total in zip(counters, totals, strict=True):
                counter.insert(total, chunk)

        for_range(ir, "0", chunks, 1, insert)
        _finish_row(pass_, [counter.flush(chunks) for counter in counters])

    emitter.for_each_warp(emitter.elements(last), compute)


def column(emitter: ThreadEmitter) -> None:
    """A thread computes a column, pass by pass."""
    ir, kernel = emitter.ir, emitter.kernel
    last, folded = kernel.axes - 1, kernel.folded

    def compute(number: str) -> None:
        position = int_op(ir, "urem", number, emitter.length(last))
        emitter.set_indices(int_op(ir, "udiv", number, emitter.length(last)), folded)
        emitter.begin(position)
        length = emitter.length(folded)
        for pass_ in [FoldPass(emitter, i) for i in range(kernel.passes)]:

            def leaves(index: str, pass_: FoldPass = pass_) -> list[Accumulator]:
                with emitter.index_at(folded, index):
                    return pass_.leaves(position)

            if not pass_.folds:
                for_range(ir, "0", length, 1, leaves)
                continue
            pass_.bind(_fold_column(pass_, length, leaves), position)
            pass_.store_results(position)

    columns = int_op(ir, "mul", emitter.elements(folded), emitter.length(last))
    emitter.for_each_thread(columns, compute)


def _blocks(emitter: ThreadEmitter, length: str) -> str:
    """Emit the number of blocks, the last of which may not be full."""
    return int_op(emitter.ir, "lshr", int_op(emitter.ir, "add", length, BLOCK - 1), 10)


def _insert_block(pass_: FoldPass, counters: Sequence[FoldCounter], block: str) -> None:
    for counter, total in zip(counters, _fold_block(pass_, block), strict=True):
        counter.insert(total, block)


def _finish_row(pass_: FoldPass, results: Sequence[Accumulator]) -> None:
    """Give all lanes the results of the first one, which stores them."""
    emitter = pass_.emitter
    pass_.bind([tuple(emitter.shuffle(p, "0") for p in packets) for packets in results], "0")
    emitter.on_first_lane(lambda: pass_.store_results("0"))


def _fold_block(pass_: FoldPass, block: str) -> list[Accumulator]:
    """Fold a block by a warp; the first lane has the totals."""
    emitter, ir = pass_.emitter, pass_.emitter.ir
    start, lane = int_op(ir, "shl", block, 10), emitter.lane()
    length = emitter.length(emitter.kernel.axes - 1)
    size = int_min(ir, int_op(ir, "sub", length, start), BLOCK)
    counters = pass_.counters(LANE_SLOTS)
    _fold_lane(pass_, counters, TOTAL, (start, size, lane), pass_.leaves)
    valid, half = int_min(ir, size, LANES), LANES // 2
    totals = [counter.read(TOTAL) for counter in counters]
    while half:
        paired = ir.value(f"icmp slt i64 {int_op(ir, 'add', lane, half)}, {valid}")
        totals = _with_partners(pass_, totals, half, paired)
        valid = int_min(ir, valid, half)
        half //= 2
    return totals


def _with_partners(
    pass_: FoldPass,
    totals: Sequence[Accumulator],
    distance: int,
    paired: str,
    in_order: bool = False,
) -> list[Accumulator]:
    """Combine the totals of each paired lane with those of the lane at a distance."""
    emitter, ir = pass_.emitter, pass_.emitter.ir
    partner = ir.value(f"trunc i64 {int_op(ir, 'add', emitter.lane(), distance)} to i32")
    partner = ir.value(f"and i32 {partner}, {LANES - 1}")
    combined = []
    for fold, low in zip(pass_.folds, totals, strict=True):
        high = tuple(emitter.shuffle(packet, partner) for packet in low)
        merged = combine_partials(ir, fold.kind, low, high, in_order=in_order)
        combined.append(
            tuple(_selected(emitter, paired, m, x) for m, x in zip(merged, low, strict=True))
        )
    return combined


def _selected(emitter: ThreadEmitter, condition: str, x: Packet, y: Packet) -> Packet:
    type_ = SCALARS[x.dtype]
    return x._replace(
        text=emitter.ir.value(f"select i1 {condition}, {type_} {x.text}, {type_} {y.text}")
    )


def _fold_lane(
    pass_: FoldPass,
    counters: Sequence[FoldCounter],
    slot: str,
    place: tuple[str, str, str],
    leaves: Leaves,
) -> None:
    """Fold the elements of a lane of a block pairwise, and store the total, if there are any."""
    ir, (start, size, lane) = pass_.emitter.ir, place
    after = int_op(ir, "add", int_op(ir, "sub", size, lane), LANES - 1)
    count, first = int_op(ir, "lshr", after, 5), int_op(ir, "add", start, lane)
    unrolled = unroll_factor(pass_.emitter.kernel)
    level = unrolled.bit_length() - 1
    groups = int_op(ir, "lshr", count, level)

    def leaf(number: str) -> list[Accumulator]:
        return leaves(int_op(ir, "add", first, int_op(ir, "shl", number, 5)))

    def insert_group(number: str) -> None:
        pending: list[list[Accumulator]] = [[] for _ in pass_.folds]
        begin = int_op(ir, "shl", number, level)
        for i in range(unrolled):
            for fold, stack, packets in zip(
                pass_.folds, pending, leaf(int_op(ir, "add", begin, i)), strict=True
            ):
                push_leaf(ir, fold.kind, stack, i, packets)
        for counter, (packets,) in zip(counters, pending, strict=True):
            counter.insert(packets, number, level)

    def insert(number: str) -> None:
        for counter, packets in zip(counters, leaf(number), strict=True):
            counter.insert(packets, number)

    for_range(ir, "0", groups, 1, insert_group)
    if unrolled > 1:
        for_range(ir, int_op(ir, "shl", groups, level), count, 1, insert)

    def flush() -> None:
        for counter in counters:
            counter.write(slot, counter.flush(count))

    if_then(ir, ir.value(f"icmp ne i64 {count}, 0"), flush)


def _fold_neighbours(pass_: FoldPass, first: str, count: str, chunk: str) -> list[Accumulator]:
    """Fold up to 1,024 totals by a warp, neighbours first."""
    emitter, ir = pass_.emitter, pass_.emitter.ir
    lane, counters = emitter.lane(), pass_.counters(LANE_SLOTS)
    begin = int_op(ir, "add", int_op(ir, "shl", chunk, 10), int_op(ir, "shl", lane, 5))
    own = int_min(ir, int_op(ir, "sub", count, begin), LANES)

    def insert(number: str) -> None:
        entry = int_op(ir, "add", first, int_op(ir, "add", begin, number))
        dtypes = [dtype for counter in counters for dtype in counter.dtypes]
        pointers = iter(emitter.total_pointers(dtypes, entry))
        for counter in counters:
            total = tuple(read_packet(ir, next(pointers), dtype, 1) for dtype in counter.dtypes)
            counter.insert(total, number)

    def flush() -> None:
        for counter in counters:
            counter.write(TOTAL, counter.flush(own))

    for_range(ir, "0", own, 1, insert)
    if_then(ir, ir.value(f"icmp sgt i64 {own}, 0"), flush)
    totals, distance = [counter.read(TOTAL) for counter in counters], 1
    while distance < LANES:
        partner = int_op(ir, "add", begin, distance * LANES)
        exists = ir.value(f"icmp slt i64 {partner}, {count}")
        offset = int_op(ir, "and", lane, 2 * distance - 1)
        is_left = ir.value(f"icmp eq i64 {offset}, 0")
        paired = ir.value(f"and i1 {exists}, {is_left}")
        totals = _with_partners(pass_, totals, distance, paired, in_order=True)
        distance *= 2
    return totals


def _fold_column(pass_: FoldPass, length: str, leaves: Leaves) -> list[Accumulator]:
    """Fold a column by one thread: the lanes of a block one by one, then by halves."""
    ir, emitter = pass_.emitter.ir, pass_.emitter
    blocks, counters = _blocks(emitter, length), pass_.counters(BLOCK_LEVELS)
    lanes, inner = pass_.counters(LANES), pass_.counters(LANE_SLOTS)

    def insert_block(block: str) -> None:
        start = int_op(ir, "shl", block, 10)
        size = int_min(ir, int_op(ir, "sub", length, start), BLOCK)
        valid, half = int_min(ir, size, LANES), LANES // 2

        def fold_lane(lane: str) -> None:
            _fold_lane(pass_, inner, TOTAL, (start, size, lane), leaves)
            for slots, counter in zip(lanes, inner, strict=True):
                slots.write(lane, counter.read(TOTAL))

        def combine(lane: str, distance: int) -> None:
            partner = int_op(ir, "add", lane, distance)
            for slots in lanes:
                pair = slots.read(lane), slots.read(partner)
                slots.write(lane, combine_partials(ir, slots.kind, *pair))

        for_range(ir, "0", valid, 1, fold_lane)
        while half:
            pairs = int_min(ir, int_op(ir, "sub", valid, half), half)
            for_range(ir, "0", pairs, 1, partial(combine, distance=half))
            valid = int_min(ir, valid, half)
            half //= 2
        for slots, counter in zip(lanes, counters, strict=True):
            counter.insert(slots.read("0"), block)

    for_range(ir, "0", blocks, 1, insert_block)
    return [counter.flush(blocks) for counter in counters]
