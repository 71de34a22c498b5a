"""Blocked GEMM: SIMD code for products of any size, (m, k) @ (k, n), and stacks of them.

A unit of work is a block of rows by a panel of columns. The panel of the second operand is widened
and copied to the thread's scratch memory, a slab of k at a time, and read once for each tile of
rows. The sums of a tile stay in registers through a slab. Where a block is only a tile or two high,
and rows of the second operand can be read as packets, they are not copied. The last tile of rows
ends with the last row, so some sums may be computed twice. A panel that is cut by the last column
is padded with zeros. Contracted axes that do not coalesce are walked by slabs: a slab has the
innermost axis for some indices of the others, or a part of it for one.

Any strides will do. The text depends on dtype, processor and tile, not on lengths.

>>> from tenfold.dtypes import FLOAT32
>>> tile = RegisterTile.of(FLOAT32, 64, rows=100, columns=100)
>>> tile.rows, tile.packets, tile.columns
(6, 4, 64)
>>> kernel = BlockedGemm(tile, axes=1)
>>> print(kernel)
product x1 @ x2 of float32, stack of 1 axes
  tiles of 6 rows by 4 packets of 16 lanes
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

from tenfold.codegen.gemm.block import GemmUnit, PackedSlab, TileOperands
from tenfold.codegen.gemm.emitter import (
    advanced,
    carrying,
    either,
    given,
    module,
    read_stack,
    read_sums,
    rounds_of,
    stack_sizes,
    stacked,
    sum_sizes,
    summed,
    times,
    zeros,
)
from tenfold.codegen.gemm.packing import PackedPanel, PanelColumns
from tenfold.codegen.gemm.register_tile import RegisterTile
from tenfold.codegen.llvm.loop_emitter import counted, integer, larger, smaller, where
from tenfold.codegen.llvm.simd_emitter import Packet, type_text
from tenfold.dtypes import INT64

DIRECT_TILES = 2
"""Up to so many tiles of rows a panel is not worth copying."""


@dataclass(frozen=True)
class BlockedGemm:
    """The packet code of a product of any size; `axes` are those of its stack."""

    tile: RegisterTile
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
        stack = stack_sizes(self.axes, 2 + self.added)
        return (*stack, *sum_sizes(self.sums), *names.split(", "), *added)

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
        return BlockedEmitter(self).module()


class BlockedEmitter:
    """Writes the text of a BlockedGemm; that of a part of one (`half_product.py`) has methods of
    its own in the place of some.
    """

    reads_in_place = True
    """Whether rows of the second operand may be read where they lie."""

    def __init__(self, kernel: BlockedGemm) -> None:
        self.kernel, self.tile = kernel, kernel.tile
        self.arithmetic = self.tile.arithmetic
        self.text = text = self.arithmetic.text()
        self.panels = PackedPanel(text, self.tile)
        self.packet, self.packet_bytes = self.panels.packet, self.panels.packet_bytes
        self.alignment = self.panels.alignment
        self.pointers = given(text, "%buffers", 0, 3 + kernel.added)
        begin = (3 + kernel.added) * kernel.axes
        self.stack = read_stack(text, kernel.axes, 2 + kernel.added)
        self.further = read_sums(text, kernel.sums, begin)
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

    def _place(self, index: str) -> GemmUnit:
        """Find the block of a unit of work: panels of columns change fastest."""
        text, tile, (m, n, k) = self.text, self.tile, self.lengths
        itemsize = self.arithmetic.dtype.itemsize
        index, first_column = self._cut(index, n, tile.columns)
        index, first_row = self._cut(index, m, tile.block)
        matrix = integer(text, "mul", integer(text, "mul", m, n), itemsize)
        x1, x2, *third = stacked(text, index, self.stack, [*self.pointers[:2], *self.pointers[3:]])
        left = integer(text, "sub", n, first_column)
        result = times(text, self.pointers[2], index, matrix)
        return GemmUnit(
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

    def unit(self, unit: GemmUnit) -> None:
        """Go through what is contracted besides k, as many indices at a time as fill a slab."""
        text = self.text
        if not self.further:
            self._slabs(unit, PackedSlab("true", "true"))
            return
        rounds = rounds_of(text, self.further)
        fitting = integer(text, "udiv", str(self.tile.slab), larger(text, unit.k, 1))
        together = larger(text, fitting, 1)

        def some(index: str) -> None:
            left = integer(text, "sub", rounds, index)
            first = text.value(f"icmp eq i64 {index}, 0")
            last = text.value(f"icmp sle i64 {left}, {together}")
            self._slabs(unit, PackedSlab(first, last, index, smaller(text, left, together)))

        counted(text, "0", rounds, together, some)

    def _slabs(self, unit: GemmUnit, around: PackedSlab) -> None:
        """Go through the slabs of k; also where there are none, because the sums must be stored."""
        text, tile, arithmetic = self.text, self.tile, self.arithmetic
        begin, end = unit.depths
        slabs = larger(text, end, integer(text, "add", begin, 1))
        beside = text.value(f"icmp eq i64 {unit.strides[3]}, {arithmetic.dtype.itemsize}")
        uncut = text.value(f"and i1 {beside}, {unit.full}")
        packets = beside if arithmetic.masks else uncut
        columns = PanelColumns(unit.columns, unit.strides[2:4], packets, unit.masks)
        direct = "false"
        if arithmetic.memory == arithmetic.wide and self.reads_in_place:
            low = text.value(f"icmp sle i64 {unit.rows}, {DIRECT_TILES * tile.rows}")
            direct = text.value(f"and i1 {low}, {uncut}")

        def one(start: str) -> None:
            reached = integer(text, "add", start, tile.slab)
            first = text.value(f"icmp eq i64 {start}, {begin}")
            last = text.value(f"icmp sge i64 {reached}, {end}")
            slab = around._replace(
                first=text.value(f"and i1 {first}, {around.first}"),
                last=text.value(f"and i1 {last}, {around.last}"),
                start=start,
                depth=smaller(text, integer(text, "sub", end, start), tile.slab),
                direct=direct,
            )
            copied = text.value(f"xor i1 {direct}, true")
            where(text, copied, lambda: self.copy(unit, slab, columns))
            self._tiles(unit, slab)

        counted(text, begin, slabs, tile.slab, one)

    def copy(self, unit: GemmUnit, slab: PackedSlab, columns: PanelColumns) -> None:
        """Copy a slab of the second operand to the panel."""
        text = self.text

        def one(index: str | None) -> None:
            _, source = self._corners(unit, slab, index)
            self.panels.copy(columns, source, slab.depth, self._panel(slab, index))

        if slab.rounds:
            counted(text, "0", slab.rounds, 1, one)
        else:
            one(None)

    def _corners(self, unit: GemmUnit, slab: PackedSlab, index: str | None) -> tuple[str, str]:
        """Return where a slab begins in both operands, for an index of what else is contracted."""
        text, found = self.text, [unit.x1, unit.x2]
        if index is not None:
            found = stacked(text, integer(text, "add", slab.round, index), self.further, found)
        x1, x2 = found
        source = times(text, x2, slab.start, unit.strides[2])
        return times(text, x1, slab.start, unit.strides[1]), source

    def _panel(self, slab: PackedSlab, index: str | None) -> str:
        """Return where the rows of the panel begin for an index of what else is contracted."""
        if index is None:
            return self.panel
        rows = integer(self.text, "mul", slab.depth, index)
        return times(self.text, self.panel, rows, self.tile.row_bytes)

    def _tiles(self, unit: GemmUnit, slab: PackedSlab) -> None:
        """Go through the tiles of rows of a block with one slab."""
        text, tile = self.text, self.tile
        lowest = integer(text, "sub", unit.m, tile.rows)

        def rows(row: str) -> None:
            begin = integer(text, "add", unit.first_row, row)
            at = smaller(text, begin, lowest)
            kept = times(text, self.sums, row, tile.row_bytes * self.arithmetic.parts)
            begun = self._begun(kept, slab.first)
            if self.kernel.added:
                where(text, slab.last, lambda: self._fetch(unit, at))
            sums = self._summed_over(unit, slab, at, begun)

            def keep() -> None:
                for i, value in enumerate(sums):
                    self.panels.keep(value, advanced(text, kept, i * self.packet_bytes))

            either(text, slab.last, lambda: self._finish(unit, at, begin, sums), keep)

        counted(text, self.first_tile(unit), unit.rows, tile.rows, rows)

    def _summed_over(
        self, unit: GemmUnit, slab: PackedSlab, row: str, begun: list[str]
    ) -> list[str]:
        """Add the products of a slab to the sums of a tile, for each index of what else is
        contracted.
        """
        text = self.text

        def one(index: str | None, sums: list[str]) -> list[str]:
            x1, source = self._corners(unit, slab, index)
            copied, stride = self._panel(slab, index), unit.strides[2]
            panel = text.value(f"select i1 {slab.direct}, ptr {source}, ptr {copied}")
            step = text.value(f"select i1 {slab.direct}, i64 {stride}, i64 {self.tile.row_bytes}")
            corner = times(text, x1, row, unit.strides[0])
            return self.summed(
                unit, TileOperands(row, slab.start, slab.depth, corner, panel, step), sums
            )

        if not slab.rounds:
            return one(None, begun)

        def following(index: str, *sums: str) -> Sequence[str]:
            return [integer(text, "add", index, 1), *one(index, list(sums))]

        carried = [("i64", "0"), *((self.packet, value) for value in begun)]
        return carrying(text, slab.rounds, carried, following)[1:]

    def first_tile(self, _unit: GemmUnit) -> str:
        """The row of a block with which its tiles begin."""
        return "0"

    def _fetch(self, unit: GemmUnit, row: str) -> None:
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

    def summed(self, unit: GemmUnit, rounds: TileOperands, sums: list[str]) -> list[str]:
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

    def _finish(self, unit: GemmUnit, row: str, begin: str, sums: list[str]) -> None:
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

    def first_stored(self, _unit: GemmUnit, begin: str) -> str:
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
        unit: GemmUnit,
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

    def _copy_ending(self, unit: GemmUnit, source: str, target: str) -> None:
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
