"""SYRK and TRMM: SIMD code for symmetric products and triangular operands, at half the work.

Takes what a BlockedGemm takes and which half is enough, hands on a kernel with the same buffers and
sizes. Of a symmetric (n, k) @ (k, n), tiles above the diagonal are left out; a unit copies its
results below the diagonal to the other side. Each element is written by one thread, and the result
is symmetric bit for bit. Of a product with a triangular matrix each tile goes only through those k
where the matrix may be nonzero; the other half is not used.

>>> from tenfold.dtypes import FLOAT64
>>> from tenfold.codegen.gemm.register_tile import RegisterTile
>>> print(SyrkTrmm(RegisterTile.of(FLOAT64, 64, rows=100, columns=100), half="symmetric"))
product x1 @ x2 of float64, stack of 0 axes
  tiles of 6 rows by 4 packets of 8 lanes
  of a symmetric result the lower half, copied to the upper one
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from tenfold.codegen.gemm.block import GemmUnit, PackedSlab, TileOperands
from tenfold.codegen.gemm.blocked import BlockedEmitter, BlockedGemm
from tenfold.codegen.gemm.emitter import advanced, carrying, times, zeros
from tenfold.codegen.gemm.packing import PanelColumns
from tenfold.codegen.llvm.loop_emitter import counted, integer, larger, smaller, where
from tenfold.codegen.llvm.simd_emitter import Packet, SimdEmitter, type_text
from tenfold.dtypes import INT64
from tenfold.ops.syrk import MIRRORED, place_of

# What a kernel says of its half. Table.
HALVES = {
    "symmetric": "of a symmetric result the lower half, copied to the upper one",
    "hermitian": "of a Hermitian result the lower half, conjugated to the upper one",
    "first lower": "of x1 the lower triangle",
    "first upper": "of x1 the upper triangle",
    "second lower": "of x2 the lower triangle",
    "second upper": "of x2 the upper triangle",
}
CHUNK = 8
"""The rows that are copied to the other side together: a line of memory is written at once."""


@dataclass(frozen=True)
class SyrkTrmm(BlockedGemm):
    """The packet code of a product, (n, k) @ (k, n) or with one (n, n), of which half is known."""

    half: str = "symmetric"
    """One of HALVES."""

    def __post_init__(self) -> None:
        even = self.tile.block % self.tile.columns == 0
        assert even or self.tile.rows <= 2, "a panel's part of the diagonal lies in one block"
        assert not (self.added and self.half in MIRRORED), "both halves would have to be read"

    def __str__(self) -> str:
        return f"{super().__str__()}\n  {HALVES[self.half]}"

    def text(self) -> str:
        """Return its LLVM module, with the buffers of a BlockedGemm."""
        if self.half in MIRRORED:
            return _Mirrored(self, self.half).module()
        place, side = place_of(self.half)
        return (_FirstTriangle, _SecondTriangle)[place](self, side).module()


class _Mirrored(BlockedEmitter):
    """Below the diagonal, then the other side."""

    stores_once = True

    def __init__(self, kernel: BlockedGemm, half: str) -> None:
        super().__init__(kernel)
        self.half = half

    def unit(self, unit: GemmUnit) -> None:
        """Make a block, unless all of it lies above the diagonal, and copy it across."""
        text = self.text
        end = integer(text, "add", unit.first_row, unit.rows)
        below = text.value(f"icmp slt i64 {unit.first_column}, {end}")

        def made() -> None:
            super(_Mirrored, self).unit(unit)
            self._mirror(unit, end)

        where(text, below, made)

    def first_tile(self, unit: GemmUnit) -> str:
        """The last tile that begins no later than the diagonal does in this panel."""
        text, rows = self.text, self.tile.rows
        first = larger(text, integer(text, "sub", unit.first_column, unit.first_row), 0)
        return integer(text, "sub", first, integer(text, "urem", first, rows))

    def first_stored(self, unit: GemmUnit, begin: str) -> str:
        """Rows above the panel's part of the diagonal belong to the unit that copies there."""
        return larger(self.text, begin, unit.first_column)

    def _mirror(self, unit: GemmUnit, end: str) -> None:
        """Copy what lies below the diagonal, some rows at a time."""
        text, itemsize = self.text, self.arithmetic.dtype.itemsize
        line = integer(text, "mul", unit.n, itemsize)
        whole = times(text, self.pointers[2], unit.first_column, itemsize)
        begin = larger(text, unit.first_row, unit.first_column)
        across = times(text, self.pointers[2], unit.first_column, line)

        def some(first: str) -> None:
            last = smaller(text, integer(text, "add", first, CHUNK), end)
            limit = integer(text, "sub", last, unit.first_column)

            def column(number: str) -> None:
                diagonal = integer(text, "add", unit.first_column, number)
                source = times(text, whole, number, itemsize)
                target = times(text, across, number, line)

                def row(at: str) -> None:
                    self._copy_element(
                        times(text, source, at, line), times(text, target, at, itemsize)
                    )

                counted(text, larger(text, first, integer(text, "add", diagonal, 1)), last, 1, row)
                if self.half == "hermitian":
                    self._make_real(target, diagonal, first, last)

            counted(text, "0", smaller(text, unit.columns, limit), 1, column)

        counted(text, begin, end, CHUNK, some)

    def _copy_element(self, source: str, target: str) -> None:
        text, memory = self.text, self.arithmetic.memory
        scalar = type_text(memory, 1)
        for part in range(self.arithmetic.parts):
            place = advanced(text, source, part * memory.itemsize)
            value = text.value(f"load {scalar}, ptr {place}, align 1")
            if part and self.half == "hermitian":
                value = text.value(f"fneg {scalar} {value}")
            into = advanced(text, target, part * memory.itemsize)
            text.line(f"store {scalar} {value}, ptr {into}, align 1")

    def _make_real(self, line: str, diagonal: str, first: str, last: str) -> None:
        """Rounding has left something where x times its conjugate has no imaginary part."""
        text, memory = self.text, self.arithmetic.memory
        above, below = (
            text.value(f"icmp {order} i64 {diagonal}, {row}")
            for order, row in (("sge", first), ("slt", last))
        )
        place = advanced(
            text, times(text, line, diagonal, self.arithmetic.dtype.itemsize), memory.itemsize
        )
        where(
            text,
            text.value(f"and i1 {above}, {below}"),
            lambda: text.line(f"store {type_text(memory, 1)} 0.0, ptr {place}, align 1"),
        )


def _within(text: SimdEmitter, value: str, end: str) -> str:
    """Return a number, or 0 or `end` where it lies beyond."""
    return smaller(text, larger(text, value, 0), end)


class _Triangle(BlockedEmitter):
    """Along k no further than the triangle goes."""

    def __init__(self, kernel: BlockedGemm, side: str) -> None:
        super().__init__(kernel)
        self.lower = side == "lower"


class _FirstTriangle(_Triangle):
    """The rows of a tile have elements up to the diagonal, or from there on."""

    def unit(self, unit: GemmUnit) -> None:
        """As for a whole product, as far as the rows of the block go."""
        text = self.text
        if self.lower:
            depths = ("0", integer(text, "add", unit.first_row, unit.rows))
        else:  # the last tile is moved up to end with the last row
            lowest = integer(text, "sub", unit.m, self.tile.rows)
            depths = (smaller(text, unit.first_row, lowest), unit.k)
        super().unit(unit._replace(depths=depths))

    def summed(self, unit: GemmUnit, rounds: TileOperands, sums: list[str]) -> list[str]:
        """Add the products on one side of the diagonal, and row by row those that lie on it."""
        text = self.text
        before = integer(text, "sub", rounds.row, rounds.start)
        begin = _within(text, before, rounds.depth)
        end = _within(text, integer(text, "add", before, self.tile.rows), rounds.depth)
        if self.lower:
            sums = super().summed(unit, rounds._replace(depth=begin), sums)
            return self._on_diagonal(unit, rounds, (begin, end), sums)
        sums = self._on_diagonal(unit, rounds, (begin, end), sums)
        rest = rounds._replace(
            depth=integer(text, "sub", rounds.depth, end),
            corner=times(text, rounds.corner, end, unit.strides[1]),
            panel=times(text, rounds.panel, end, rounds.step),
        )
        return super().summed(unit, rest, sums)

    def _on_diagonal(
        self, unit: GemmUnit, rounds: TileOperands, depths: tuple[str, str], sums: list[str]
    ) -> list[str]:
        """Add the products of a square of x1 of which one triangle counts."""
        text, tile, arithmetic = self.text, self.tile, self.arithmetic
        begin, end = depths
        nothing = zeros(arithmetic.wide, tile.lanes)

        def multiply_row(at: str, *totals: str) -> Sequence[str]:
            line = times(text, rounds.panel, at, rounds.step)
            places = [advanced(text, line, i * self.packet_bytes) for i in range(tile.packets)]
            align = arithmetic.wide.itemsize
            columns = [text.value(f"load {self.packet}, ptr {p}, align {align}") for p in places]
            corner = times(text, rounds.corner, at, unit.strides[1])
            k = integer(text, "add", rounds.start, at)
            made: list[str] = []
            for row in range(tile.rows):
                diagonal = integer(text, "add", rounds.row, row)
                order = "sle" if self.lower else "sge"
                counts = text.value(f"icmp {order} i64 {k}, {diagonal}")
                factors = [
                    text.value(f"select i1 {counts}, {self.packet} {each}, {self.packet} {nothing}")
                    for each in arithmetic.factors(text, corner, tile.lanes)
                ]
                for column, factor in product(columns, factors):
                    total = totals[len(made)]
                    made.append(arithmetic.multiply_add(text, total, factor, column, tile.lanes))
                corner = advanced(text, corner, unit.strides[0])
            return [integer(text, "add", at, 1), *made]

        begun = [("i64", begin), *((self.packet, value) for value in sums)]
        return carrying(text, integer(text, "sub", end, begin), begun, multiply_row)[1:]


class _SecondTriangle(_Triangle):
    """The columns of a panel have elements from the diagonal on, or up to it."""

    reads_in_place = False

    def unit(self, unit: GemmUnit) -> None:
        """As for a whole product, as far as the columns of the panel go."""
        text = self.text
        if self.lower:
            depths = (unit.first_column, unit.k)
        else:
            depths = ("0", integer(text, "add", unit.first_column, unit.columns))
        super().unit(unit._replace(depths=depths))

    def copy(self, unit: GemmUnit, slab: PackedSlab, columns: PanelColumns) -> None:
        """Copy a slab, and put zeros where the matrix is 0 beside the diagonal."""
        super().copy(unit, slab, columns)
        text, tile, parts = self.text, self.tile, self.arithmetic.parts
        before = integer(text, "sub", unit.first_column, slab.start)
        begin = _within(text, before, slab.depth)
        end = _within(text, integer(text, "add", before, unit.columns), slab.depth)
        lanes, nothing = tile.lanes, zeros(self.arithmetic.wide, tile.lanes)

        def row(at: str) -> None:
            line = times(text, self.panel, at, tile.row_bytes)
            diagonal = integer(text, "mul", integer(text, "sub", at, before), parts)
            for i in range(tile.packets):
                place = advanced(text, line, i * self.packet_bytes)
                first = integer(text, "sub", diagonal, i * lanes)
                if self.lower:  # the scalars of the element on the diagonal are the last
                    first = integer(text, "add", first, parts - 1)
                steps = ", ".join(f"i64 {lane}" for lane in range(lanes))
                limits = text.spread(Packet(first, INT64, 1), lanes)
                order = f"<{steps}>" if lanes > 1 else "0"
                compared = f"icmp {'sge' if self.lower else 'sle'} {type_text(INT64, lanes)}"
                counts = text.value(f"{compared} {limits}, {order}")
                value = text.value(f"load {self.packet}, ptr {place}, align {self.alignment}")
                kind = f"<{lanes} x i1>" if lanes > 1 else "i1"
                kept = text.value(
                    f"select {kind} {counts}, {self.packet} {value}, {self.packet} {nothing}"
                )
                text.line(f"store {self.packet} {kept}, ptr {place}, align {self.alignment}")

        counted(text, begin, end, 1, row)
