"""Packet code for products of any size, (m, k) @ (k, n), and stacks of them.

A unit of work is a block of rows by a panel of columns. The panel of the second operand is copied,
widened, to the scratch memory of the thread, a slab of k at a time, and read once for each tile of
rows; sums of a tile stay in registers through a slab. Where a block is only a tile or two high and
rows of the second operand can be read as packets, they are read where they lie. The last tile of
rows is moved up to end with the last row, so some sums may be made twice; a panel that is cut by
the last column is copied with zeros beside it. Where several axes are contracted that cannot be
walked as one, slabs of the innermost follow each other for each index of the others.

Any strides will do. The text depends on dtype, processor and tile, not on lengths.

>>> from tenfold.dtypes import FLOAT32
>>> tile = Tile.of(FLOAT32, 64, rows=100, columns=100)
>>> tile.rows, tile.packets, tile.columns
(6, 4, 64)
>>> kernel = BlockedProduct(tile, axes=1)
>>> print(kernel)
product x1 @ x2 of float32, stack of 1 axes
  tiles of 6 rows by 4 packets of 16 lanes
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

from tenfold.dtypes import INT64
from tenfold.render.loops import counted, integer, larger, smaller, where
from tenfold.render.packet import Packet, type_text
from tenfold.render.product import (
    advanced,
    carrying,
    either,
    given,
    module,
    read_stack,
    rounds_of,
    stack_sizes,
    stacked,
    summed,
    times,
    zeros,
)
from tenfold.render.product_tile import Tile
from tenfold.render.product_unit import Rounds, Unit

DIRECT_TILES = 2
"""Up to so many tiles of rows a panel is not worth copying."""


@dataclass(frozen=True)
class BlockedProduct:
    """The packet code of a product of any size; `axes` are those of its stack."""

    tile: Tile
    axes: int = 0
    conjugated: bool = False
    second_conjugated: bool = False
    scaled: bool = False
    """Whether the product is multiplied by the first scalar of the launch."""
    added: bool = False
    """Whether the second scalar times x3 is added, which may lie where the result does. The scalars
    are elements, 16 bytes apart."""
    sums: int = 0
    """The axes that are contracted besides k."""

    def __str__(self) -> str:
        tile = self.tile
        first = "conj(x1)" if self.conjugated else "x1"
        second = "conj(x2)" if self.second_conjugated else "x2"
        alpha, added = "alpha * " * self.scaled, " + beta * x3" * self.added
        return (
            f"product {alpha}{first} @ {second}{added} of {tile.arithmetic.dtype}, "
            f"stack of {self.axes} axes{summed(self.sums)}\n"
            f"  tiles of {tile.rows} rows by {tile.packets} packets of {tile.lanes} lanes"
        )

    @property
    def sizes(self) -> tuple[str, ...]:
        """What the launch gives as sizes, in order; strides are in bytes."""
        names = "m, n, k, row of x1, column of x1, row of x2, column of x2"
        added = ("row of x3",) * self.added
        return (*stack_sizes(self.axes, self.sums, 2 + self.added), *names.split(", "), *added)

    @property
    def scratch(self) -> int:
        """The bytes a thread needs: a slab, the sums of a block, the end of a row."""
        tile = self.tile
        sums = tile.block * tile.row_bytes * tile.arithmetic.parts
        return tile.slab * tile.row_bytes + sums + tile.row_bytes

    def units(self, stack: int, m: int, n: int) -> int:
        """Return the units of work of a stack of so many products."""
        return stack * -(-m // self.tile.block) * -(-n // self.tile.columns)

    def text(self) -> str:
        """Return its LLVM module. Buffers are x1, x2, the result, which is contiguous, and x3, of
        which the rows are.
        """
        return Writer(self).module()


class Writer:
    """Writes the text of a BlockedProduct; that of a part of one (`half_product.py`) has methods of
    its own in the place of some.
    """

    reads_in_place = True
    """Whether rows of the second operand may be read where they lie."""

    def __init__(self, kernel: BlockedProduct) -> None:
        self.kernel, self.tile = kernel, kernel.tile
        self.arithmetic = self.tile.arithmetic
        self.packet = type_text(self.arithmetic.wide, self.tile.lanes)
        self.packet_bytes = self.tile.lanes * self.arithmetic.wide.itemsize
        self.alignment = min(64, self.packet_bytes)
        self.text = text = self.arithmetic.text()
        self.pointers = given(text, "%buffers", 0, 3 + kernel.added)
        begin = (3 + kernel.added) * kernel.axes
        self.stack = read_stack(text, kernel.axes, operands=2 + kernel.added)
        self.further = read_stack(text, kernel.sums, begin)
        found = given(text, "%sizes", begin + 3 * kernel.sums, 7 + kernel.added)
        self.lengths, self.strides = found[:3], tuple(found[3:])
        self.panel = "%scratch"
        self.sums = advanced(text, self.panel, self.tile.slab * self.tile.row_bytes)
        kept = self.tile.block * self.tile.row_bytes * self.arithmetic.parts
        self.ending = advanced(text, self.sums, kept)

    def _scalar(self, offset: int) -> list[str]:
        """Load a scalar of the launch; each of its parts fills a packet.

        For each tile anew: the loop over k has no register to spare.
        """
        place = advanced(self.text, "%scalars", offset)
        return self.arithmetic.factors(self.text, place, self.tile.lanes)

    def module(self) -> str:
        """Write everything."""
        text = self.text
        counted(text, "%begin", "%end", 1, lambda index: self.unit(self._place(index)))
        text.line("ret i64 0")
        return module(text, str(self.kernel))

    def _place(self, index: str) -> Unit:
        """Find the block of a unit of work: panels of columns change fastest."""
        text, tile, (m, n, k) = self.text, self.tile, self.lengths
        itemsize = self.arithmetic.dtype.itemsize
        index, first_column = self._cut(index, n, tile.columns)
        index, first_row = self._cut(index, m, tile.block)
        matrix = integer(text, "mul", integer(text, "mul", m, n), itemsize)
        x1, x2, *third = stacked(text, index, self.stack, [*self.pointers[:2], *self.pointers[3:]])
        left = integer(text, "sub", n, first_column)
        result = times(text, self.pointers[2], index, matrix)
        return Unit(
            *(m, n, k),
            rows=smaller(text, integer(text, "sub", m, first_row), tile.block),
            first_row=first_row,
            first_column=first_column,
            columns=smaller(text, left, tile.columns),
            full=text.value(f"icmp sge i64 {left}, {tile.columns}"),
            strides=self.strides,
            x1=x1,
            x2=times(text, x2, first_column, self.strides[3]),
            result=times(text, result, first_column, itemsize),
            x3=times(text, third[0], first_column, itemsize) if third else "",
            masks=self._masks(left) if self.arithmetic.masks else [],
            depths=("0", k),
        )

    def _masks(self, columns: str) -> list[str]:
        """Make the mask of each packet of a panel with so many columns or more."""
        text, tile, lanes = self.text, self.tile, self.tile.lanes
        scalars = smaller(text, columns, tile.columns)
        scalars = integer(text, "mul", scalars, self.arithmetic.parts)
        found = []
        for first in range(0, tile.packets * lanes, lanes):
            left = Packet(integer(text, "sub", scalars, first), INT64, 1)
            steps = ", ".join(f"i64 {lane}" for lane in range(lanes))
            order = f"<{steps}>" if lanes > 1 else "0"
            type_ = type_text(INT64, lanes)
            found.append(text.value(f"icmp sgt {type_} {text.spread(left, lanes)}, {order}"))
        return found

    def _cut(self, index: str, length: str, part: int) -> tuple[str, str]:
        """Split an index: return (what counts the rest, the first of its part of an axis)."""
        text = self.text
        parts = integer(text, "udiv", integer(text, "add", length, part - 1), part)
        digit = integer(text, "urem", index, parts)
        return integer(text, "udiv", index, parts), integer(text, "mul", digit, part)

    def unit(self, unit: Unit) -> None:
        """Go through the slabs of k, for each index of what else is contracted."""
        text = self.text
        if not self.further:
            return self._slabs(unit, ("true", "true"))
        rounds = rounds_of(text, self.further)
        final = integer(text, "sub", rounds, 1)

        def one(index: str) -> None:
            x1, x2 = stacked(text, index, self.further, (unit.x1, unit.x2))
            ends = (text.value(f"icmp eq i64 {index}, {at}") for at in ("0", final))
            self._slabs(unit._replace(x1=x1, x2=x2), (next(ends), next(ends)))

        return counted(text, "0", rounds, 1, one)

    def _slabs(self, unit: Unit, ends: tuple[str, str]) -> None:
        """Go through the slabs of k; also where there are none, because the sums must be stored.
        `ends`: whether nothing has been added before, and whether nothing will be after.
        """
        text, tile, arithmetic = self.text, self.tile, self.arithmetic
        begin, end = unit.depths
        slabs = larger(text, end, integer(text, "add", begin, 1))
        beside = text.value(f"icmp eq i64 {unit.strides[3]}, {arithmetic.dtype.itemsize}")
        uncut = text.value(f"and i1 {beside}, {unit.full}")
        packets = beside if arithmetic.masks else uncut
        direct = "false"
        if arithmetic.memory == arithmetic.wide and self.reads_in_place:
            low = text.value(f"icmp sle i64 {unit.rows}, {DIRECT_TILES * tile.rows}")
            direct = text.value(f"and i1 {low}, {uncut}")

        def slab(start: str) -> None:
            depth = smaller(text, integer(text, "sub", end, start), tile.slab)
            source = times(text, unit.x2, start, unit.strides[2])
            copied = text.value(f"xor i1 {direct}, true")
            where(text, copied, lambda: self.copy(unit, source, start, depth, packets))
            panel = text.value(f"select i1 {direct}, ptr {source}, ptr {self.panel}")
            step = text.value(f"select i1 {direct}, i64 {unit.strides[2]}, i64 {tile.row_bytes}")
            reached = integer(text, "add", start, tile.slab)
            first = text.value(f"icmp eq i64 {start}, {begin}")
            last = text.value(f"icmp sge i64 {reached}, {end}")
            limits = [
                text.value(f"and i1 {here}, {there}")
                for here, there in zip((first, last), ends, strict=True)
            ]
            self._tiles(unit, start, depth, (panel, step), limits)

        counted(text, begin, slabs, tile.slab, slab)

    def copy(self, unit: Unit, source: str, _start: str, depth: str, packets: str) -> None:
        """Copy rows of the second operand to the panel, as packets or one by one."""
        either(
            self.text,
            packets,
            lambda: self._copy_packets(unit, source, depth),
            lambda: self._copy_scalars(unit, source, depth),
        )

    def _panel_rows(self, depth: str, store: Callable[[str, int, str], None]) -> None:
        """For each packet of each row of the panel: `store(row, packet, its place)`."""
        text, tile = self.text, self.tile

        def one(row: str) -> None:
            line = times(text, self.panel, row, tile.row_bytes)
            for i in range(tile.packets):
                store(row, i, advanced(text, line, i * self.packet_bytes))

        counted(text, "0", depth, 1, one)

    def _copy_packets(self, unit: Unit, source: str, depth: str) -> None:
        text, tile, arithmetic = self.text, self.tile, self.arithmetic

        def copy(row: str, i: int, written: str) -> None:
            read = times(text, source, row, unit.strides[2])
            place = advanced(text, read, i * tile.lanes * arithmetic.memory.itemsize)
            mask = unit.masks[i] if unit.masks else None
            self._keep(arithmetic.load(text, place, tile.lanes, mask), written)

        self._panel_rows(depth, copy)

    def _keep(self, value: str, place: str) -> None:
        self.text.line(f"store {self.packet} {value}, ptr {place}, align {self.alignment}")

    def _copy_scalars(self, unit: Unit, source: str, depth: str) -> None:
        """Copy element by element beside zeros, along the axis with the shorter stride."""
        text, arithmetic = self.text, self.arithmetic
        nothing = zeros(arithmetic.wide, self.tile.lanes)
        self._panel_rows(depth, lambda _, __, place: self._keep(nothing, place))
        moduli = [
            text.intrinsic("llvm.abs.i64", "i64", [("i64", stride), ("i1", "false")])
            for stride in unit.strides[2:]
        ]
        down = text.value(f"icmp slt i64 {moduli[0]}, {moduli[1]}")

        def chosen(one: str | int, other: str | int) -> list[str]:
            pairs = ((one, other), (other, one))
            return [text.value(f"select i1 {down}, i64 {x}, i64 {y}") for x, y in pairs]

        counts, read = chosen(unit.columns, depth), chosen(unit.strides[3], unit.strides[2])
        written = chosen(arithmetic.parts * arithmetic.wide.itemsize, self.tile.row_bytes)

        def element(place: str, into: str) -> Sequence[str]:
            for part in range(arithmetic.parts):
                scalar = advanced(text, place, part * arithmetic.memory.itemsize)
                value = arithmetic.load(text, scalar, 1)
                target = advanced(text, into, part * arithmetic.wide.itemsize)
                text.line(f"store {type_text(arithmetic.wide, 1)} {value}, ptr {target}")
            return advanced(text, place, read[1]), advanced(text, into, written[1])

        def line(index: str) -> None:
            begun = (
                times(text, source, index, read[0]),
                times(text, self.panel, index, written[0]),
            )
            carrying(text, counts[1], [("ptr", pointer) for pointer in begun], element)

        counted(text, "0", counts[0], 1, line)

    def _tiles(
        self, unit: Unit, start: str, depth: str, slab: tuple[str, str], ends: Sequence[str]
    ) -> None:
        """Go through the tiles of rows of a block with one slab: a panel, and the bytes from row to
        row. `ends`: whether it is the first, and whether it is the last.
        """
        text, tile = self.text, self.tile
        first, last = ends
        lowest = integer(text, "sub", unit.m, tile.rows)
        source = times(text, unit.x1, start, unit.strides[1])

        def rows(row: str) -> None:
            begin = integer(text, "add", unit.first_row, row)
            at = smaller(text, begin, lowest)
            kept = times(text, self.sums, row, tile.row_bytes * self.arithmetic.parts)
            begun = self._begun(kept, first)
            corner = times(text, source, at, unit.strides[0])
            if self.kernel.added:
                where(text, last, lambda: self._fetch(unit, at))
            sums = self.summed(unit, Rounds(at, start, depth, corner, *slab), begun)

            def keep() -> None:
                for i, value in enumerate(sums):
                    self._keep(value, advanced(text, kept, i * self.packet_bytes))

            either(text, last, lambda: self._finish(unit, at, begin, sums), keep)

        counted(text, self.first_tile(unit), unit.rows, tile.rows, rows)

    def first_tile(self, _unit: Unit) -> str:
        """The row of a block with which its tiles begin."""
        return "0"

    def _fetch(self, unit: Unit, row: str) -> None:
        """Have what is added to a tile on its way while the tile is summed."""
        text, tile = self.text, self.tile
        line = times(text, unit.x3, row, unit.strides[-1])
        for _ in range(tile.rows):
            for place in range(0, tile.packets * tile.lanes * self.arithmetic.memory.itemsize, 64):
                given = [("ptr", advanced(text, line, place)), ("i32", "0"), ("i32", "3")]
                text.intrinsic("llvm.prefetch.p0", "void", [*given, ("i32", "1")])
            line = advanced(text, line, unit.strides[-1])

    def _begun(self, kept: str, first: str) -> list[str]:
        """Return what the sums of a tile begin with: zero, or what the slab before has left."""
        text, tile = self.text, self.tile
        nothing = zeros(self.arithmetic.wide, tile.lanes)
        values = []
        for i in range(tile.rows * tile.packets * self.arithmetic.parts):
            place = advanced(text, kept, i * self.packet_bytes)
            left = text.value(f"load {self.packet}, ptr {place}, align {self.alignment}")
            choice = f"select i1 {first}, {self.packet} {nothing}, {self.packet} {left}"
            values.append(text.value(choice))
        return values

    def summed(self, unit: Unit, rounds: Rounds, sums: list[str]) -> list[str]:
        """Add the products of a slab to the sums of a tile."""
        text, tile, arithmetic = self.text, self.tile, self.arithmetic
        strides = unit.strides
        # Every third row has a pointer; the two after it are reached by one and two strides.
        twice = integer(text, "shl", strides[0], 1)
        thrice = integer(text, "add", twice, strides[0])
        leaders = [rounds.corner]
        for _ in range(1, -(-tile.rows // 3)):
            leaders.append(advanced(text, leaders[-1], thrice))

        def multiply_row(at: str, *carried: str) -> Sequence[str]:
            pointers, totals = carried[: len(leaders)], list(carried[len(leaders) :])
            places = [advanced(text, at, i * self.packet_bytes) for i in range(tile.packets)]
            align = arithmetic.wide.itemsize
            columns = [text.value(f"load {self.packet}, ptr {p}, align {align}") for p in places]
            number = 0
            for row in range(tile.rows):
                place = advanced(text, pointers[row // 3], ("0", strides[0], twice)[row % 3])
                factors = arithmetic.factors(text, place, tile.lanes)
                for column, factor in product(columns, factors):
                    totals[number] = arithmetic.multiply_add(
                        text, totals[number], factor, column, tile.lanes
                    )
                    number += 1
            moved = [advanced(text, pointer, strides[1]) for pointer in pointers]
            return [advanced(text, at, rounds.step), *moved, *totals]

        begun = [("ptr", pointer) for pointer in (rounds.panel, *leaders)]
        begun += [(self.packet, value) for value in sums]
        return carrying(text, rounds.depth, begun, multiply_row)[1 + len(leaders) :]

    def _finish(self, unit: Unit, row: str, begin: str, sums: list[str]) -> None:
        """Store the sums of a tile: rows of whole packets, or rows that are cut.

        Where something is added, rows before `begin` have been stored, and are stored no more.
        """
        begin = self.first_stored(unit, begin)
        text, arithmetic = self.text, self.arithmetic
        row_bytes = integer(text, "mul", unit.n, arithmetic.dtype.itemsize)
        corner = times(text, unit.result, row, row_bytes)
        added = self.kernel.added
        third = times(text, unit.x3, row, unit.strides[-1]) if added else corner
        alpha = self._scalar(0) if self.kernel.scaled else []
        beta = self._scalar(16) if added else []
        joined = [self._joined(pair, alpha) for pair in batched(sums, arithmetic.parts)]

        def store(cut: bool) -> None:
            target, other = corner, third
            for number, line in enumerate(batched(joined, self.tile.packets)):
                write = partial(self._store_row, unit, line, target, (other, beta), cut)
                if self.stores_once and self.tile.rows > 1:
                    at = integer(text, "add", row, number)
                    where(text, text.value(f"icmp sge i64 {at}, {begin}"), write)
                else:
                    write()
                target = advanced(text, target, row_bytes)
                other = advanced(text, other, unit.strides[-1]) if added else other

        either(text, unit.full, lambda: store(False), lambda: store(True))

    @property
    def stores_once(self) -> bool:
        """Whether a row that an earlier tile has stored must not be stored again."""
        return self.kernel.added

    def first_stored(self, _unit: Unit, begin: str) -> str:
        """The row from which on a tile is stored, if it begins at `begin`."""
        return begin

    def _joined(self, sums: Sequence[str], alpha: Sequence[str]) -> str:
        """Make the packet of a tile of its accumulators, conjugated and scaled."""
        text, lanes, kernel = self.text, self.tile.lanes, self.kernel
        if kernel.second_conjugated:
            sums = [self.arithmetic.conjugate(text, value, lanes) for value in sums]
        joined = self.arithmetic.join(text, sums, lanes, kernel.conjugated)
        return self.arithmetic.scale(text, joined, alpha, lanes) if alpha else joined

    def _store_row(
        self,
        unit: Unit,
        line: Sequence[str],
        target: str,
        addend: tuple[str, Sequence[str]],
        cut: bool,
    ) -> None:
        """Store a row of a tile, with what is added to it: a pointer, and beta if there is one."""
        text, tile, arithmetic = self.text, self.tile, self.arithmetic
        third, beta = addend
        aside = cut and not arithmetic.masks
        if aside and beta:
            self._copy_ending(unit, third, self.ending)
            third = self.ending
        for i, value in enumerate(line):
            place = i * tile.lanes * arithmetic.memory.itemsize
            into = advanced(text, self.ending if aside else target, place)
            mask = unit.masks[i] if cut and arithmetic.masks else None
            if beta:
                other = arithmetic.load(text, advanced(text, third, place), tile.lanes, mask)
                other = arithmetic.scale(text, other, beta, tile.lanes)
                value = arithmetic.add(text, value, other, tile.lanes)
            arithmetic.store(text, value, into, tile.lanes, mask)
        if aside:
            self._copy_ending(unit, self.ending, target)

    def _copy_ending(self, unit: Unit, source: str, target: str) -> None:
        """Copy the scalars of a row that are left of the last column."""
        text, arithmetic = self.text, self.arithmetic
        scalar = type_text(arithmetic.memory, 1)

        def one(index: str) -> None:
            at = times(text, source, index, arithmetic.memory.itemsize)
            value = text.value(f"load {scalar}, ptr {at}, align 1")
            into = times(text, target, index, arithmetic.memory.itemsize)
            text.line(f"store {scalar} {value}, ptr {into}, align 1")

        counted(text, "0", integer(text, "mul", unit.columns, arithmetic.parts), 1, one)


def batched(values: Sequence[str], count: int) -> list[Sequence[str]]:
    """Cut a sequence into parts of `count`."""
    return [values[i : i + count] for i in range(0, len(values), count)]
