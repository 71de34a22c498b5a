"""Packet code for products of any size, (m, k) @ (k, n), and stacks of them.

A unit of work is a block of rows by a panel of columns. The panel of the second operand is copied,
widened, to the scratch memory of the thread, a slab of k at a time, and read once for each tile of
rows; sums of a tile stay in registers through a slab. Where a block is only a tile or two high and
rows of the second operand can be read as packets, they are read where they lie. The last tile of
rows is moved up to end with the last row, so some sums may be made twice; a panel that is cut by
the last column is copied with zeros beside it.

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
from itertools import product
from typing import NamedTuple

import numpy as np

from tenfold.dtypes import INT64
from tenfold.render.loops import counted, integer, smaller, where
from tenfold.render.packet import Packet, type_text
from tenfold.render.product import (
    Arithmetic,
    advanced,
    carrying,
    either,
    given,
    module,
    read_stack,
    stack_sizes,
    stacked,
    times,
    zeros,
)

SLAB_BYTES = 32768
"""What a slab of a panel takes of the first-level cache."""
BLOCK_ROWS = 192
"""About how many rows read a slab that has been copied."""
DIRECT_TILES = 2
"""Up to so many tiles of rows a panel is not worth copying."""
# Table: by registers and scalars of an element, the tallest tile for so many packets.
TALLEST = {
    (32, 1): {1: 12, 2: 12, 3: 8, 4: 6, 8: 2},
    (32, 2): {1: 12, 2: 6, 4: 2},
    (16, 1): {1: 8, 2: 6, 3: 4, 4: 2},
    (16, 2): {1: 6, 2: 3},
}
LOW = 2
"""A tile of so few rows is made as wide as it can be."""


@dataclass(frozen=True)
class Tile:
    """The block of sums that is kept in registers: `rows` by `packets` of `lanes` scalars."""

    arithmetic: Arithmetic
    rows: int
    packets: int
    lanes: int

    @staticmethod
    def of(dtype: np.dtype, width: int, rows: int, columns: int, *, exact: bool = False) -> Tile:
        """Return the tile for products of so many rows and columns.

        An exact one has rows that divide them evenly; others come in few heights, so that a new
        shape seldom needs a new program.
        """
        arithmetic = Arithmetic(dtype, width)
        parts, lanes = arithmetic.parts, arithmetic.lanes
        scalars = max(1, columns) * parts
        while lanes >= 2 * scalars:
            lanes //= 2
        tallest = TALLEST[arithmetic.registers, parts]
        widest = max(number for number, most in tallest.items() if most > LOW or rows <= LOW)
        packets = _shared(-(-scalars // lanes), widest)
        most = next(most for number, most in tallest.items() if number >= packets)
        height = (_shared if exact else _rounded)(max(1, rows), most)
        return Tile(arithmetic, height, packets, lanes)

    @property
    def columns(self) -> int:
        """The columns of a panel, in elements."""
        return self.packets * self.lanes // self.arithmetic.parts

    @property
    def row_bytes(self) -> int:
        """The bytes of a row of a copied panel."""
        return self.packets * self.lanes * self.arithmetic.wide.itemsize

    @property
    def slab(self) -> int:
        """The rows of a panel that are copied at a time."""
        return SLAB_BYTES // self.row_bytes if self.row_bytes > 64 else 256

    @property
    def block(self) -> int:
        """The rows of a unit of work."""
        return -(-BLOCK_ROWS // self.rows) * self.rows


def _shared(count: int, most: int) -> int:
    """Cut `count` into the fewest even parts of at most `most`, and return the largest."""
    return -(-count // -(-count // most))


def _rounded(count: int, most: int) -> int:
    """Return `most`, or the largest of 1, 2, 4 and 8 that is not above `count`."""
    return most if count >= most else 1 << (count.bit_length() - 1)


@dataclass(frozen=True)
class BlockedProduct:
    """The packet code of a product of any size; `axes` are those of its stack."""

    tile: Tile
    axes: int = 0
    conjugated: bool = False

    def __str__(self) -> str:
        tile = self.tile
        factor = "conj(x1)" if self.conjugated else "x1"
        return (
            f"product {factor} @ x2 of {tile.arithmetic.dtype}, stack of {self.axes} axes\n"
            f"  tiles of {tile.rows} rows by {tile.packets} packets of {tile.lanes} lanes"
        )

    @property
    def sizes(self) -> tuple[str, ...]:
        """What the launch gives as sizes, in order; strides are in bytes."""
        names = "m, n, k, row of x1, column of x1, row of x2, column of x2"
        return (*stack_sizes(self.axes), *names.split(", "))

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
        """Return its LLVM module. Buffers are x1, x2 and the result, which is contiguous."""
        return _Writer(self).module()


class _Unit(NamedTuple):
    """Names of what a unit of work knows: lengths, strides in bytes, pointers to its corner."""

    m: str
    n: str
    k: str
    rows: str
    first_row: str
    columns: str
    full: str
    """Whether the panel has all its columns."""
    strides: tuple[str, ...]
    x1: str
    x2: str
    result: str
    masks: list[str]
    """Of each packet of a panel the lanes that it has, where the processor has masks."""


class _Writer:
    """Writes the text of a BlockedProduct."""

    def __init__(self, kernel: BlockedProduct) -> None:
        self.kernel, self.tile = kernel, kernel.tile
        self.arithmetic = self.tile.arithmetic
        self.packet = type_text(self.arithmetic.wide, self.tile.lanes)
        self.packet_bytes = self.tile.lanes * self.arithmetic.wide.itemsize
        self.alignment = min(64, self.packet_bytes)
        self.text = text = self.arithmetic.text()
        self.pointers = given(text, "%buffers", 0, 3)
        self.stack = read_stack(text, kernel.axes)
        found = given(text, "%sizes", 3 * kernel.axes, 7)
        self.lengths, self.strides = found[:3], tuple(found[3:])
        self.panel = "%scratch"
        self.sums = advanced(text, self.panel, self.tile.slab * self.tile.row_bytes)
        kept = self.tile.block * self.tile.row_bytes * self.arithmetic.parts
        self.ending = advanced(text, self.sums, kept)

    def module(self) -> str:
        """Write everything."""
        text = self.text
        counted(text, "%begin", "%end", 1, lambda index: self._unit(self._place(index)))
        text.line("ret i64 0")
        return module(text, str(self.kernel))

    def _place(self, index: str) -> _Unit:
        """Find the block of a unit of work: panels of columns change fastest."""
        text, tile, (m, n, k) = self.text, self.tile, self.lengths
        itemsize = self.arithmetic.dtype.itemsize
        index, first_column = self._cut(index, n, tile.columns)
        index, first_row = self._cut(index, m, tile.block)
        matrix = integer(text, "mul", integer(text, "mul", m, n), itemsize)
        x1, x2 = stacked(text, index, self.stack, self.pointers[:2])
        left = integer(text, "sub", n, first_column)
        result = times(text, self.pointers[2], index, matrix)
        return _Unit(
            *(m, n, k),
            rows=smaller(text, integer(text, "sub", m, first_row), tile.block),
            first_row=first_row,
            columns=smaller(text, left, tile.columns),
            full=text.value(f"icmp sge i64 {left}, {tile.columns}"),
            strides=self.strides,
            x1=x1,
            x2=times(text, x2, first_column, self.strides[3]),
            result=times(text, result, first_column, itemsize),
            masks=self._masks(left) if self.arithmetic.masks else [],
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

    def _unit(self, unit: _Unit) -> None:
        """Go through the slabs of k; also where k is 0, because the sums must be stored."""
        text, tile, arithmetic = self.text, self.tile, self.arithmetic
        slabs = text.intrinsic("llvm.smax.i64", "i64", [("i64", unit.k), ("i64", "1")])
        beside = text.value(f"icmp eq i64 {unit.strides[3]}, {arithmetic.dtype.itemsize}")
        uncut = text.value(f"and i1 {beside}, {unit.full}")
        packets = beside if arithmetic.masks else uncut
        direct = "false"
        if arithmetic.memory == arithmetic.wide:
            low = text.value(f"icmp sle i64 {unit.rows}, {DIRECT_TILES * tile.rows}")
            direct = text.value(f"and i1 {low}, {uncut}")

        def slab(start: str) -> None:
            depth = smaller(text, integer(text, "sub", unit.k, start), tile.slab)
            source = times(text, unit.x2, start, unit.strides[2])
            copied = text.value(f"xor i1 {direct}, true")
            where(text, copied, lambda: self._copy(unit, source, depth, packets))
            panel = text.value(f"select i1 {direct}, ptr {source}, ptr {self.panel}")
            step = text.value(f"select i1 {direct}, i64 {unit.strides[2]}, i64 {tile.row_bytes}")
            self._tiles(unit, start, depth, panel, step)

        counted(text, "0", slabs, tile.slab, slab)

    def _copy(self, unit: _Unit, source: str, depth: str, packets: str) -> None:
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

    def _copy_packets(self, unit: _Unit, source: str, depth: str) -> None:
        text, tile, arithmetic = self.text, self.tile, self.arithmetic

        def copy(row: str, i: int, written: str) -> None:
            read = times(text, source, row, unit.strides[2])
            place = advanced(text, read, i * tile.lanes * arithmetic.memory.itemsize)
            mask = unit.masks[i] if unit.masks else None
            self._keep(arithmetic.load(text, place, tile.lanes, mask), written)

        self._panel_rows(depth, copy)

    def _keep(self, value: str, place: str) -> None:
        self.text.line(f"store {self.packet} {value}, ptr {place}, align {self.alignment}")

    def _copy_scalars(self, unit: _Unit, source: str, depth: str) -> None:
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

    def _tiles(self, unit: _Unit, start: str, depth: str, panel: str, step: str) -> None:
        """Go through the tiles of rows of a block with one slab."""
        text, tile = self.text, self.tile
        first = text.value(f"icmp eq i64 {start}, 0")
        reached = integer(text, "add", start, tile.slab)
        last = text.value(f"icmp sge i64 {reached}, {unit.k}")
        lowest = integer(text, "sub", unit.m, tile.rows)
        source = times(text, unit.x1, start, unit.strides[1])

        def rows(row: str) -> None:
            at = smaller(text, integer(text, "add", unit.first_row, row), lowest)
            kept = times(text, self.sums, row, tile.row_bytes * self.arithmetic.parts)
            begun = self._begun(kept, first)
            corner = times(text, source, at, unit.strides[0])
            sums = self._inner(corner, unit.strides, panel, step, depth, begun)

            def keep() -> None:
                for i, value in enumerate(sums):
                    self._keep(value, advanced(text, kept, i * self.packet_bytes))

            either(text, last, lambda: self._finish(unit, at, sums), keep)

        counted(text, "0", unit.rows, tile.rows, rows)

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

    def _inner(
        self,
        corner: str,
        strides: tuple[str, ...],
        panel: str,
        step: str,
        depth: str,
        sums: list[str],
    ) -> list[str]:
        """Add the products of a slab to the sums of a tile."""
        text, tile, arithmetic = self.text, self.tile, self.arithmetic
        # Every third row has a pointer; the two after it are reached by one and two strides.
        twice = integer(text, "shl", strides[0], 1)
        thrice = integer(text, "add", twice, strides[0])
        leaders = [corner]
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
            return [advanced(text, at, step), *moved, *totals]

        begun = [("ptr", pointer) for pointer in (panel, *leaders)]
        begun += [(self.packet, value) for value in sums]
        return carrying(text, depth, begun, multiply_row)[1 + len(leaders) :]

    def _finish(self, unit: _Unit, row: str, sums: list[str]) -> None:
        """Store the sums of a tile: rows of whole packets, or rows that are cut."""
        text, tile, arithmetic = self.text, self.tile, self.arithmetic
        row_bytes = integer(text, "mul", unit.n, arithmetic.dtype.itemsize)
        corner = times(text, unit.result, row, row_bytes)
        joined = [
            arithmetic.join(text, pair, tile.lanes, self.kernel.conjugated)
            for pair in batched(sums, arithmetic.parts)
        ]

        def store(cut: bool) -> None:
            target = corner
            aside = cut and not arithmetic.masks
            for line in batched(joined, tile.packets):
                for i, value in enumerate(line):
                    place = i * tile.lanes * arithmetic.memory.itemsize
                    into = advanced(text, self.ending if aside else target, place)
                    mask = unit.masks[i] if cut and arithmetic.masks else None
                    arithmetic.store(text, value, into, tile.lanes, mask)
                if aside:
                    self._copy_ending(unit, target)
                target = advanced(text, target, row_bytes)

        either(text, unit.full, lambda: store(False), lambda: store(True))

    def _copy_ending(self, unit: _Unit, target: str) -> None:
        """Copy the scalars of a row that are left of the last column."""
        text, arithmetic = self.text, self.arithmetic
        scalar = type_text(arithmetic.memory, 1)

        def one(index: str) -> None:
            at = times(text, self.ending, index, arithmetic.memory.itemsize)
            value = text.value(f"load {scalar}, ptr {at}")
            into = times(text, target, index, arithmetic.memory.itemsize)
            text.line(f"store {scalar} {value}, ptr {into}, align 1")

        counted(text, "0", integer(text, "mul", unit.columns, arithmetic.parts), 1, one)


def batched(values: Sequence[str], count: int) -> list[Sequence[str]]:
    """Cut a sequence into parts of `count`."""
    return [values[i : i + count] for i in range(0, len(values), count)]
