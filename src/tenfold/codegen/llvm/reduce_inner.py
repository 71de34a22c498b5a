"""Inner reduction: passes over the packet axis, with folds along it in the canonical tree.

Takes a FunctionEmitter that stands at a row, hands on lines. A pass computes, stores and folds the
elements. Values that follow from the folds alone are computed once when the pass has ended, for the
next pass and for stores of one element a row. A fold takes 32 lanes of a block at a time. A lane's
partial results wait in a counter on the stack, those of blocks in one for scalars.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from tenfold.codegen.llvm import load_store
from tenfold.codegen.llvm.function_emitter import FunctionEmitter
from tenfold.codegen.llvm.horizontal_reduce import lanes_folded
from tenfold.codegen.llvm.loop_emitter import (
    FoldCounter,
    Parts,
    combined,
    counted,
    integer,
    read_packet,
    smaller,
    where,
    write_packet,
)
from tenfold.codegen.llvm.simd_emitter import Packet, SimdEmitter, type_text
from tenfold.core.loop_ir import BLOCK, LANES, Fold, Kernel, KernelStore

LANE_SLOTS = 8
TOTAL, RAGGED = "6", "7"
"""Slots of a lane counter: 0 to 5 are its levels, what the rows come to, and the ragged row."""
BLOCK_LEVELS = 54
"""2**53 blocks of 1,024 are more than memory can hold."""


def unit(frame: FunctionEmitter, number: str) -> None:
    """A unit of work is a row: all its passes."""
    kernel = frame.kernel
    frame.stand_at(number, kernel.axes - 1)
    begin(frame)
    length = frame.length(kernel.axes - 1)
    for pass_ in range(kernel.passes):
        folds = folds_of(kernel, pass_)
        if not folds:
            plain(frame, pass_, "0", length)
            continue
        counters = _block_counters(frame, folds)
        blocks = integer(frame.text, "lshr", length, 10)
        rest = integer(frame.text, "and", length, BLOCK - 1)

        def total(
            block: str, totals: list[Parts], counters: Sequence[FoldCounter] = counters
        ) -> None:
            for counter, parts in zip(counters, totals, strict=True):
                counter.insert(parts, block)

        _blocks(frame, pass_, folds, ("0", blocks), rest, total)
        count = with_rest(frame.text, blocks, rest)
        for fold, counter in zip(folds, counters, strict=True):
            _name(frame, fold, counter.flush(count))
        ended(frame, pass_)


def split_unit(frame: FunctionEmitter, number: str) -> None:
    """A unit of work is some blocks of a row, whose totals are stored for `finish`."""
    kernel, text = frame.kernel, frame.text
    length = frame.length(kernel.axes - 1)
    blocks = integer(text, "lshr", length, 10)
    rest = integer(text, "and", length, BLOCK - 1)
    count = with_rest(text, blocks, rest)
    more = integer(text, "add", count, integer(text, "sub", frame.part, 1))
    parts = integer(text, "udiv", more, frame.part)
    row = integer(text, "udiv", number, parts)
    first = integer(text, "mul", integer(text, "urem", number, parts), frame.part)
    after = smaller(text, integer(text, "add", first, frame.part), count)
    frame.stand_at(row, kernel.axes - 1)
    begin(frame)
    folds = folds_of(kernel, 0)

    def total(block: str, totals: list[Parts]) -> None:
        place = integer(text, "add", integer(text, "mul", row, count), block)
        for pointer, packet in zip(
            _total_places(frame, folds, place), [p for parts in totals for p in parts], strict=True
        ):
            write_packet(text, pointer, packet, 1)

    whole = smaller(text, after, blocks)
    has_rest = integer(text, "sub", after, whole)  # 1 where the part ends with the block not full
    _blocks(frame, 0, folds, (first, whole), integer(text, "mul", rest, has_rest), total)


def finish(frame: FunctionEmitter, number: str) -> None:
    """Fold the totals of a split row's blocks, and store what follows from it."""
    kernel, text = frame.kernel, frame.text
    length = frame.length(kernel.axes - 1)
    count = integer(text, "lshr", integer(text, "add", length, BLOCK - 1), 10)
    frame.stand_at(number, kernel.axes - 1)
    begin(frame)
    folds = folds_of(kernel, 0)
    counters = _block_counters(frame, folds)
    first = integer(text, "mul", number, count)

    def inside(block: str) -> None:
        places = iter(_total_places(frame, folds, integer(text, "add", first, block)))
        for fold, counter in zip(folds, counters, strict=True):
            parts = tuple(
                read_packet(text, next(places), dtype, 1) for dtype in _dtypes(kernel, fold)
            )
            counter.insert(parts, block)

    counted(text, "0", count, 1, inside)
    for fold, counter in zip(folds, counters, strict=True):
        _name(frame, fold, counter.flush(count))
    ended(frame, 0)


def _total_places(frame: FunctionEmitter, folds: Sequence[Fold], number: str) -> list[str]:
    """Pointers to the totals of a block."""
    dtypes = [dtype for fold in folds for dtype in _dtypes(frame.kernel, fold)]
    return frame.total_places(dtypes, number)


def begin(frame: FunctionEmitter) -> None:
    """Compute what is the same for the whole row."""
    frame.known = {}
    uniform = [i for i, level in enumerate(frame.kernel.levels) if level < 0]
    frame.compute(uniform, frame.known, "0", None)


def plain(frame: FunctionEmitter, pass_: int, begin_: str, end: str) -> None:
    """Go through the elements from begin to end without a fold."""
    text, kernel = frame.text, frame.kernel
    stores, wanted = of_pass(kernel, pass_)

    def packet(position: str, mask: str | None) -> None:
        elements(frame, pass_, wanted, stores, position, mask)

    if kernel.masked:
        counted(text, begin_, end, frame.lanes, lambda i: packet(i, frame.mask(i, end)))
        return
    count = integer(text, "sub", end, begin_)
    rest = integer(text, "urem", count, frame.lanes)
    whole = integer(text, "sub", end, rest)
    counted(text, begin_, whole, frame.lanes, lambda i: packet(i, None))
    some = text.value(f"icmp ne i64 {rest}, 0")
    where(text, some, lambda: packet(whole, frame.mask(whole, end)))


def of_pass(kernel: Kernel, pass_: int) -> tuple[list[KernelStore], list[int]]:
    """The stores among a pass's elements, and all the elements it must compute."""
    stores = [store for store in kernel.stores if max(kernel.pass_of(store), 0) == 2 * pass_]
    wanted = [i for store in stores for i in store.elements]
    wanted += [i for fold in folds_of(kernel, pass_) for i in fold.inputs]
    named = enumerate(zip(kernel.body, kernel.levels, strict=True))
    wanted += [i for i, (made, level) in named if made.name == "fail" and level == 2 * pass_]
    wanted += [i for i in kernel.kept if kernel.levels[i] == 2 * pass_]
    return stores, wanted


def folds_of(kernel: Kernel, pass_: int) -> list[Fold]:
    """The folds of a pass."""
    return [
        fold
        for fold in kernel.folds
        if max((kernel.levels[i] for i in fold.results if i >= 0), default=-1) == 2 * pass_ + 1
    ]


def elements(
    frame: FunctionEmitter,
    pass_: int,
    wanted: Iterable[int],
    stores: Iterable[KernelStore],
    position: str,
    mask: str | None,
) -> dict[int, Packet]:
    """Compute, store and keep the packet of a pass at a position."""
    known, kernel = dict(frame.known), frame.kernel
    for number, element in enumerate(kernel.kept):
        if kernel.levels[element] < 2 * pass_:
            place = _kept_place(frame, number, position)
            known[element] = read_packet(frame.text, place, kernel.body[element].dtype, frame.lanes)
    frame.compute(wanted, known, position, mask)
    frame.store(stores, known, position, mask)
    for number, element in enumerate(kernel.kept):
        if kernel.levels[element] == 2 * pass_:
            place = _kept_place(frame, number, position)
            write_packet(frame.text, place, known[element], frame.lanes)
    return known


def _kept_place(frame: FunctionEmitter, number: int, position: str) -> str:
    """Kept rows follow one another in scratch memory, each with room for a whole last packet."""
    text, kernel = frame.text, frame.kernel
    length = integer(text, "add", frame.length(kernel.axes - 1), frame.lanes)
    start = integer(text, "mul", length, 8 * number)
    size = kernel.body[kernel.kept[number]].dtype.itemsize
    offset = integer(text, "add", start, integer(text, "mul", position, size))
    return text.value(f"getelementptr i8, ptr %scratch, i64 {offset}")


def _dtypes(kernel: Kernel, fold: Fold) -> list[np.dtype]:
    return [kernel.body[i].dtype for i in fold.inputs]


def _block_counters(frame: FunctionEmitter, folds: Sequence[Fold]) -> list[FoldCounter]:
    made = []
    for fold in folds:
        dtypes = _dtypes(frame.kernel, fold)
        slots = frame.text.stack(8 * BLOCK_LEVELS * len(dtypes))
        made.append(FoldCounter(frame.text, fold.kind, dtypes, 1, slots, 8))
    return made


def with_rest(text: SimdEmitter, blocks: str, rest: str) -> str:
    """Add the number of blocks, counting one that is not full."""
    some = text.value(f"icmp ne i64 {rest}, 0")
    return integer(text, "add", blocks, text.value(f"zext i1 {some} to i64"))


def _name(frame: FunctionEmitter, fold: Fold, parts: Parts) -> None:
    for result, packet in zip(fold.results, parts, strict=True):
        if result >= 0:
            frame.known[result] = packet


def ended(frame: FunctionEmitter, pass_: int) -> None:
    """Compute what follows from the folds of a pass, and store what has one element a row."""
    kernel = frame.kernel
    wanted = [i for i, level in enumerate(kernel.levels) if level == 2 * pass_ + 1]
    frame.compute(wanted, frame.known, "0", None)
    for store in kernel.stores:
        if kernel.pass_of(store) == 2 * pass_ + 1:
            packets = [frame.known[i] for i in store.elements]
            pointer = frame.pointer(store.operand)
            load_store.store_single(frame.text, kernel.operands[store.operand], packets, pointer)


def _blocks(
    frame: FunctionEmitter,
    pass_: int,
    folds: Sequence[Fold],
    whole: tuple[str, str],
    rest: str,
    total: Callable[[str, list[Parts]], None],
) -> None:
    """Fold the blocks from one to another, and a last one of `rest` elements if there are any."""
    text = frame.text
    count = with_rest(text, whole[1], rest)
    end = integer(text, "add", integer(text, "shl", whole[1], 10), rest)

    def block(number: str) -> None:
        start = integer(text, "shl", number, 10)
        size = smaller(text, integer(text, "sub", end, start), BLOCK)
        total(number, _Block(frame, pass_, folds, start, size).folded())

    counted(text, whole[0], count, 1, block)


def together(kernel: Kernel) -> int:
    """How many rows of 32 are computed side by side, by how much is computed in each."""
    length = sum(level < 0 or level % 2 == 0 for level in kernel.levels)  # not what follows a pass
    return next((rows for limit, rows in ((10, 8), (24, 4), (60, 2)) if length <= limit), 1)


def push(text: SimdEmitter, kind: str, waiting: list[Parts], number: int, parts: Parts) -> None:
    """The counter once more, in registers: the leaf `number` meets its neighbours."""
    while number & 1:
        parts = combined(text, kind, waiting.pop(), parts, in_order=True)
        number >>= 1
    waiting.append(parts)


class _Block:
    """The fold of up to 1,024 elements from `start`: rows of 32 lanes, the last one ragged."""

    def __init__(
        self, frame: FunctionEmitter, pass_: int, folds: Sequence[Fold], start: str, size: str
    ) -> None:
        self.frame, self.text, self.pass_, self.folds = frame, frame.text, pass_, folds
        self.stores, self.wanted = of_pass(frame.kernel, pass_)
        self.start, self.size = start, size
        self.full = integer(self.text, "lshr", size, 5)
        self.longer = integer(self.text, "and", size, LANES - 1)
        self.counters = []
        for fold in folds:
            dtypes = _dtypes(frame.kernel, fold)
            slots = self.text.stack(8 * LANES * LANE_SLOTS * len(dtypes))
            self.counters.append(FoldCounter(self.text, fold.kind, dtypes, LANES, slots, 8 * LANES))

    def folded(self) -> list[Parts]:
        """Add it all; return the totals of the block."""
        text = self.text
        has_ragged = text.value(f"icmp ne i64 {self.longer}, 0")
        if self.frame.kernel.masked:
            self._masked_rows()
        else:
            self._full_rows()
            where(text, has_ragged, lambda: self._write(RAGGED, self._leaf(self.full, True)))
        has_full = text.value(f"icmp ne i64 {self.full}, 0")
        where(text, has_full, self._flush_full)
        where(text, has_ragged, self._flush_ragged)
        valid = text.value(f"select i1 {has_full}, i64 {LANES}, i64 {self.longer}")
        return [
            lanes_folded(text, fold, counter.read(TOTAL), valid)
            for fold, counter in zip(self.folds, self.counters, strict=True)
        ]

    def _leaf(self, row: str, masked: bool) -> list[Parts]:
        text, frame = self.text, self.frame
        position = integer(text, "add", self.start, integer(text, "shl", row, 5))
        end = integer(text, "add", self.start, self.size)
        mask = frame.mask(position, end) if masked else None
        self._prefetch(position)
        known = elements(frame, self.pass_, self.wanted, self.stores, position, mask)
        return [tuple(known[i] for i in fold.inputs) for fold in self.folds]

    def _prefetch(self, position: str) -> None:
        """Ask for what comes some rows later: the fold of a row's lanes would keep loads back."""
        for number, operand in enumerate(self.frame.kernel.operands):
            if operand.written or operand.steps[-1] != "1":
                continue
            size = operand.dtype.itemsize
            at = integer(self.text, "mul", position, size)
            for line in range(0, LANES * size, 64):
                ahead = integer(self.text, "add", at, self.frame.kernel.ahead + line)
                base = self.frame.pointer(number)
                place = self.text.value(f"getelementptr i8, ptr {base}, i64 {ahead}")
                arguments = [("ptr", place), ("i32", "0"), ("i32", "3"), ("i32", "1")]
                self.text.intrinsic("llvm.prefetch.p0", "void", arguments)

    def _write(self, slot: str, leaves: Sequence[Parts]) -> None:
        for counter, parts in zip(self.counters, leaves, strict=True):
            counter.write(slot, parts)

    def _insert(self, row: str, leaves: Sequence[Parts]) -> None:
        for counter, parts in zip(self.counters, leaves, strict=True):
            counter.insert(parts, row)

    def _full_rows(self) -> None:
        """Some rows side by side, folded in registers, then those that are left one by one."""
        text = self.text
        side_by_side = together(self.frame.kernel)
        level = side_by_side.bit_length() - 1
        groups = integer(text, "lshr", self.full, level)

        def group(number: str) -> None:
            gathered: list[list[Parts]] = [[] for _ in self.folds]
            first = integer(text, "shl", number, level)
            for i in range(side_by_side):
                leaves = self._leaf(integer(text, "add", first, i), False)
                for fold, waiting, parts in zip(self.folds, gathered, leaves, strict=True):
                    push(text, fold.kind, waiting, i, parts)
            for counter, (parts,) in zip(self.counters, gathered, strict=True):
                counter.insert(parts, number, level)

        counted(text, "0", groups, 1, group)
        if side_by_side > 1:
            first = integer(text, "shl", groups, level)
            counted(
                text, first, self.full, 1, lambda row: self._insert(row, self._leaf(row, False))
            )

    def _masked_rows(self) -> None:
        """One copy of a long body: every row is masked, and the ragged one waits by itself."""
        text = self.text
        rows = integer(text, "lshr", integer(text, "add", self.size, LANES - 1), 5)

        def row(number: str) -> None:
            leaves = self._leaf(number, True)
            is_full = text.value(f"icmp slt i64 {number}, {self.full}")
            name = text.name()[1:]
            text.line(f"br i1 {is_full}, label %{name}.full, label %{name}.ragged")
            text.label(f"{name}.ragged")
            self._write(RAGGED, leaves)
            text.line(f"br label %{name}.after")
            text.label(f"{name}.full")
            self._insert(number, leaves)
            text.line(f"br label %{name}.after")
            text.label(f"{name}.after")

        counted(text, "0", rows, 1, row)

    def _flush_full(self) -> None:
        for counter in self.counters:
            counter.write(TOTAL, counter.flush(self.full))

    def _flush_ragged(self) -> None:
        """The first lanes have one row more; where no row is full, the other lanes hold nothing."""
        text = self.text
        mask = self.frame.mask("0", self.longer)
        for counter in self.counters:
            longer = counter.flush(self.full, counter.read(RAGGED))
            shorter = counter.read(TOTAL)
            chosen = [_chosen(text, mask, x, y) for x, y in zip(longer, shorter, strict=True)]
            counter.write(TOTAL, tuple(chosen))


def _chosen(text: SimdEmitter, mask: str, x: Packet, y: Packet) -> Packet:
    type_ = type_text(x.dtype, LANES)
    chosen = text.value(f"select <{LANES} x i1> {mask}, {type_} {x.text}, {type_} {y.text}")
    return Packet(chosen, x.dtype, LANES)
