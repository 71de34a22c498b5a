"""Outer reduction: folds along an axis outside the packet axis, with packets along a kept axis.

Takes a FunctionEmitter, hands on lines. A unit of work is a part of the columns at one index of the
outer axes. The tree is that of a row. For each of the 32 lanes of a block, the rows of that lane
are folded for one packet of columns after the other. The 32 results are rows of scratch memory and
are folded by halves; blocks wait in a counter there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tenfold.codegen.llvm.function_emitter import FunctionEmitter
from tenfold.codegen.llvm.loop_emitter import (
    FoldCounter,
    Parts,
    combined,
    counted,
    integer,
    read_packet,
    smaller,
    write_packet,
)
from tenfold.codegen.llvm.reduce_inner import folds_of, of_pass, push, together, with_rest
from tenfold.codegen.llvm.simd_emitter import Packet
from tenfold.core.loop_ir import BLOCK, LANES, Fold

LANE_LEVELS = 6


@dataclass(frozen=True)
class Scratch:
    """Scratch memory of a unit, in rows of `width` bytes, one for each part of a fold or value."""

    width: str
    slots: str

    def lane(self, frame: FunctionEmitter, part: int, number: str) -> str:
        """Return the offset, in rows, of what a lane of a fold's part has come to."""
        return integer(frame.text, "add", number, part * LANES)

    def block(self, frame: FunctionEmitter, parts: int, part: int) -> str:
        """Return the offset of the slots in which the blocks of a fold's part wait."""
        before = integer(frame.text, "mul", self.slots, part)
        return integer(frame.text, "add", before, parts * LANES)

    def value(self, frame: FunctionEmitter, parts: int, number: int) -> str:
        """Return the offset of what is known of each column once a pass has ended."""
        before = integer(frame.text, "mul", self.slots, parts)
        return integer(frame.text, "add", before, parts * LANES + number)


def unit(frame: FunctionEmitter, number: str) -> None:
    """A unit of work is a part of the columns, all passes."""
    kernel, text = frame.kernel, frame.text
    last = kernel.axes - 1
    length, part = frame.length(last), frame.part
    more = integer(text, "add", length, integer(text, "sub", part, 1))
    parts = integer(text, "udiv", more, part)
    outer = integer(text, "udiv", number, parts)
    frame.stand_at(outer, kernel.folded)
    begin = integer(text, "mul", integer(text, "urem", number, parts), part)
    columns = (begin, smaller(text, integer(text, "add", begin, part), length))
    width = integer(text, "shl", integer(text, "add", part, frame.lanes), 3)
    writer = _Column(frame, columns, Scratch(width, frame.size["slots", 0, 0]))
    writer.check()
    for pass_ in range(kernel.passes):
        writer.run(pass_)


class _Column:
    """The passes over one part of the columns."""

    def __init__(self, frame: FunctionEmitter, columns: tuple[str, str], scratch: Scratch) -> None:
        self.frame, self.text, self.kernel = frame, frame.text, frame.kernel
        self.columns, self.scratch = columns, scratch
        self.parts = frame.kernel.most_parts
        self.values = {number: i for i, number in enumerate(frame.kernel.remembered)}

    def packets(self, inside: Callable[[str, str], None]) -> None:
        """Add a loop over the packets of columns; `inside` gets the first column and the mask."""

        def body(column: str) -> None:
            inside(column, self.frame.mask(column, self.columns[1]))

        counted(self.text, *self.columns, self.frame.lanes, body)

    def at(self, row: str, column: str, dtype: np.dtype) -> str:
        """Return the pointer to a column of a row of scratch memory."""
        text = self.text
        offset = integer(text, "mul", row, self.scratch.width)
        inside = integer(text, "sub", column, self.columns[0])
        offset = integer(text, "add", offset, integer(text, "mul", inside, dtype.itemsize))
        return text.value(f"getelementptr i8, ptr %scratch, i64 {offset}")

    def check(self) -> None:
        """Let fail what is the same all along the folded axis, before anything is read by it."""
        kernel = self.kernel
        named = enumerate(zip(kernel.body, kernel.levels, strict=True))
        failing = [i for i, (made, level) in named if made.name == "fail" and level < 0]
        if failing:
            self.packets(lambda column, mask: self.frame.compute(failing, {}, column, mask))

    def run(self, pass_: int) -> None:
        """Add one pass: the elements, the folds, and what follows from them."""
        frame, text, kernel = self.frame, self.text, self.kernel
        folds = folds_of(kernel, pass_)
        length = frame.length(kernel.folded)
        if not folds:
            stores, wanted = of_pass(kernel, pass_)
            if stores or wanted:
                counted(text, "0", length, 1, lambda row: self._plain_row(pass_, row))
            return
        blocks = integer(text, "lshr", length, 10)
        rest = integer(text, "and", length, BLOCK - 1)
        count = with_rest(text, blocks, rest)
        counted(text, "0", count, 1, lambda block: self._block(pass_, folds, block, length))
        self._ended(pass_, folds, count)

    def _plain_row(self, pass_: int, row: str) -> None:
        stores, wanted = of_pass(self.kernel, pass_)

        def inside(column: str, mask: str) -> None:
            with self.frame.at(self.kernel.folded, row):
                known = self._elements(pass_, wanted, column, mask)
                self.frame.store(stores, known, column, mask)

        self.packets(inside)

    def _elements(
        self, pass_: int, wanted: Iterable[int], column: str, mask: str | None
    ) -> dict[int, Packet]:
        known: dict[int, Packet] = {}
        self._recall(wanted, known, column, pass_)
        self.frame.compute(wanted, known, column, mask)
        return known

    def _recall(
        self, wanted: Iterable[int], known: dict[int, Packet], column: str, pass_: int
    ) -> None:
        """Read what passes before this one have left of these columns, where it is needed."""
        stack, seen = list(wanted), set()
        while stack:
            number = stack.pop()
            if number in seen or number in known:
                continue
            seen.add(number)
            if number in self.values and self.kernel.levels[number] < 2 * pass_:
                known[number] = self._value(number, column)
            else:
                stack.extend(self.kernel.body[number].inputs)

    def _value(self, number: int, column: str) -> Packet:
        dtype = self.kernel.body[number].dtype
        row = self.scratch.value(self.frame, self.parts, self.values[number])
        return read_packet(self.text, self.at(row, column, dtype), dtype, self.frame.lanes)

    def _block(self, pass_: int, folds: Sequence[Fold], block: str, length: str) -> None:
        text = self.text
        start = integer(text, "shl", block, 10)
        size = smaller(text, integer(text, "sub", length, start), BLOCK)
        lanes = smaller(text, size, LANES)

        def lane(number: str) -> None:
            more = integer(text, "add", integer(text, "sub", size, number), LANES - 1)
            rows = integer(text, "lshr", more, 5)
            first = integer(text, "add", start, number)
            self.packets(
                lambda column, mask: self._lane(pass_, folds, (number, first, rows), column, mask)
            )

        counted(text, "0", lanes, 1, lane)
        for fold, part in self._numbered(folds):
            self._fold_lanes(fold, part, lanes)
            self._wait(fold, part, block)

    def _numbered(self, folds: Sequence[Fold]) -> list[tuple[Fold, int]]:
        """Each fold with the number of its first part."""
        numbered, part = [], 0
        for fold in folds:
            numbered.append((fold, part))
            part += len(fold.inputs)
        return numbered

    def _dtypes(self, fold: Fold) -> list[np.dtype]:
        return [self.kernel.body[i].dtype for i in fold.inputs]

    def _lane(
        self,
        pass_: int,
        folds: Sequence[Fold],
        place: tuple[str, str, str],
        column: str,
        mask: str,
    ) -> None:
        """Fold the rows of one lane for one packet of columns; the result goes to scratch."""
        text, kernel, lanes = self.text, self.kernel, self.frame.lanes
        number, first, rows = place
        stores, wanted = of_pass(kernel, pass_)
        counters = []
        for fold in folds:
            dtypes = self._dtypes(fold)
            slots = text.stack(8 * lanes * LANE_LEVELS * len(dtypes))
            counters.append(FoldCounter(text, fold.kind, dtypes, lanes, slots, 8 * lanes))

        def leaf(row: str) -> list[Parts]:
            index = integer(text, "add", first, integer(text, "shl", row, 5))
            with self.frame.at(kernel.folded, index):
                known = self._elements(pass_, wanted, column, mask)
                self.frame.store(stores, known, column, mask)
            return [tuple(known[i] for i in fold.inputs) for fold in folds]

        side_by_side = together(kernel)
        level = side_by_side.bit_length() - 1
        groups = integer(text, "lshr", rows, level)

        def group(index: str) -> None:
            gathered: list[list[Parts]] = [[] for _ in folds]
            for i in range(side_by_side):
                row = integer(text, "add", integer(text, "shl", index, level), i)
                for fold, waiting, parts in zip(folds, gathered, leaf(row), strict=True):
                    push(text, fold.kind, waiting, i, parts)
            for counter, (parts,) in zip(counters, gathered, strict=True):
                counter.insert(parts, index, level)

        def single(row: str) -> None:
            for counter, parts in zip(counters, leaf(row), strict=True):
                counter.insert(parts, row)

        counted(text, "0", groups, 1, group)
        if side_by_side > 1:
            counted(text, integer(text, "shl", groups, level), rows, 1, single)
        for (fold, part), counter in zip(self._numbered(folds), counters, strict=True):
            for i, packet in enumerate(counter.flush(rows)):
                row = self.scratch.lane(self.frame, part + i, number)
                write_packet(text, self.at(row, column, self._dtypes(fold)[i]), packet, lanes)

    def _fold_lanes(self, fold: Fold, part: int, lanes: str) -> None:
        """Fold the lanes of a block by halves, in place."""
        text, valid, half = self.text, lanes, LANES // 2
        while half:
            pairs = integer(text, "sub", valid, half)

            def pair(low: str, half: int = half) -> None:
                high = integer(text, "add", low, half)

                def inside(column: str, _: str) -> None:
                    places = [
                        [
                            self.at(self.scratch.lane(self.frame, part + i, lane), column, dtype)
                            for i, dtype in enumerate(self._dtypes(fold))
                        ]
                        for lane in (low, high)
                    ]
                    left, right = (self._read(fold, row) for row in places)
                    for pointer, packet in zip(
                        places[0], combined(text, fold.kind, left, right), strict=True
                    ):
                        write_packet(text, pointer, packet, self.frame.lanes)

                self.packets(inside)

            counted(text, "0", pairs, 1, pair)
            valid = smaller(text, valid, half)
            half //= 2

    def _read(self, fold: Fold, pointers: Sequence[str]) -> Parts:
        return tuple(
            read_packet(self.text, pointer, dtype, self.frame.lanes)
            for pointer, dtype in zip(pointers, self._dtypes(fold), strict=True)
        )

    def _blocks(self, fold: Fold, part: int, column: str) -> FoldCounter:
        """The counter in which the blocks of a packet of columns wait."""
        dtypes = self._dtypes(fold)
        assert len({dtype.itemsize for dtype in dtypes}) > 0, "a fold has parts"
        row = self.scratch.block(self.frame, self.parts, part)
        inside = integer(self.text, "sub", column, self.columns[0])
        offset = integer(self.text, "mul", row, self.scratch.width)
        offset = integer(self.text, "add", offset, integer(self.text, "shl", inside, 3))
        memory = self.text.value(f"getelementptr i8, ptr %scratch, i64 {offset}")
        return FoldCounter(
            self.text, fold.kind, dtypes, self.frame.lanes, memory, self.scratch.width
        )

    def _wait(self, fold: Fold, part: int, block: str) -> None:
        def inside(column: str, _: str) -> None:
            rows = [
                self.at(self.scratch.lane(self.frame, part + i, "0"), column, dtype)
                for i, dtype in enumerate(self._dtypes(fold))
            ]
            self._blocks(fold, part, column).insert(self._read(fold, rows), block)

        self.packets(inside)

    def _ended(self, pass_: int, folds: Sequence[Fold], count: str) -> None:
        """Name the folds, compute what follows from them, store what has one element a column."""
        kernel, text = self.kernel, self.text
        wanted = [i for i in kernel.remembered if kernel.levels[i] == 2 * pass_ + 1]
        stores = [store for store in kernel.stores if kernel.pass_of(store) == 2 * pass_ + 1]
        named = enumerate(zip(kernel.body, kernel.levels, strict=True))
        failing = [
            i for i, (made, level) in named if made.name == "fail" and level == 2 * pass_ + 1
        ]

        def inside(column: str, mask: str) -> None:
            known: dict[int, Packet] = {}
            for fold, part in self._numbered(folds):
                parts = self._blocks(fold, part, column).flush(count)
                known.update(zip(fold.results, parts, strict=True))
            known.pop(-1, None)  # unnamed parts: their results are not read
            needed = [*wanted, *failing, *(i for store in stores for i in store.elements)]
            self._recall(needed, known, column, pass_)
            self.frame.compute(needed, known, column, mask)
            for number in wanted:
                dtype = kernel.body[number].dtype
                row = self.scratch.value(self.frame, self.parts, self.values[number])
                write_packet(text, self.at(row, column, dtype), known[number], self.frame.lanes)
            self.frame.store(stores, known, column, mask)

        self.packets(inside)
