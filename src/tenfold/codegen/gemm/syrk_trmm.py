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
from tenfold.codegen.gemm.emitter import carry_loop, offset_ptr, strided_ptr, zeros
from tenfold.codegen.gemm.packing import PanelColumns
from tenfold.codegen.llvm.loop_emitter import for_range, if_then, int_max, int_min, int_op
from tenfold.codegen.llvm.simd_emitter import Packet, SimdEmitter, llvm_type
from tenfold.dtypes import INT64
from tenfold.ops.syrk import MIRRORED, place_of

# What a kernel says of its half. Table.
HALF_NOTES = {
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
        return f"{super().__str__()}\n  {HALF_NOTES[self.half]}"

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

    def emit_unit(self, unit: GemmUnit) -> None:
        """Make a block, unless all of it lies above the diagonal, and copy it across."""
        ir = self.ir
        end = int_op(ir, "add", unit.first_row, unit.rows)
        below = ir.value(f"icmp slt i64 {unit.first_column}, {end}")

        def made() -> None:
            super(_Mirrored, self).emit_unit(unit)
            self._mirror_block(unit, end)

        if_then(ir, below, made)

    def first_tile(self, unit: GemmUnit) -> str:
        """The last tile that begins no later than the diagonal does in this panel."""
        ir, rows = self.ir, self.tile.rows
        first = int_max(ir, int_op(ir, "sub", unit.first_column, unit.first_row), 0)
        return int_op(ir, "sub", first, int_op(ir, "urem", first, rows))

    def first_stored(self, unit: GemmUnit, begin: str) -> str:
        """Rows above the panel's part of the diagonal belong to the unit that copies there."""
        return int_max(self.ir, begin, unit.first_column)

    def _mirror_block(self, unit: GemmUnit, end: str) -> None:
        """Copy what lies below the diagonal, some rows at a time."""
        ir, itemsize = self.ir, self.arithmetic.dtype.itemsize
        line = int_op(ir, "mul", unit.n, itemsize)
        whole = strided_ptr(ir, self.pointers[2], unit.first_column, itemsize)
        begin = int_max(ir, unit.first_row, unit.first_column)
        across = strided_ptr(ir, self.pointers[2], unit.first_column, line)

        def some(first: str) -> None:
            last = int_min(ir, int_op(ir, "add", first, CHUNK), end)
            limit = int_op(ir, "sub", last, unit.first_column)

            def column(number: str) -> None:
                diagonal = int_op(ir, "add", unit.first_column, number)
                source = strided_ptr(ir, whole, number, itemsize)
                target = strided_ptr(ir, across, number, line)

                def row(at: str) -> None:
                    self._copy_element(
                        strided_ptr(ir, source, at, line), strided_ptr(ir, target, at, itemsize)
                    )

                for_range(ir, int_max(ir, first, int_op(ir, "add", diagonal, 1)), last, 1, row)
                if self.half == "hermitian":
                    self._clear_imaginary(target, diagonal, first, last)

            for_range(ir, "0", int_min(ir, unit.columns, limit), 1, column)

        for_range(ir, begin, end, CHUNK, some)

    def _copy_element(self, source: str, target: str) -> None:
        ir, memory = self.ir, self.arithmetic.scalar_dtype
        scalar = llvm_type(memory, 1)
        for part in range(self.arithmetic.components):
            place = offset_ptr(ir, source, part * memory.itemsize)
            value = ir.value(f"load {scalar}, ptr {place}, align 1")
            if part and self.half == "hermitian":
                value = ir.value(f"fneg {scalar} {value}")
            into = offset_ptr(ir, target, part * memory.itemsize)
            ir.line(f"store {scalar} {value}, ptr {into}, align 1")

    def _clear_imaginary(self, line: str, diagonal: str, first: str, last: str) -> None:
        """Rounding has left something where x times its conjugate has no imaginary part."""
        ir, memory = self.ir, self.arithmetic.scalar_dtype
        above, below = (
            ir.value(f"icmp {order} i64 {diagonal}, {row}")
            for order, row in (("sge", first), ("slt", last))
        )
        place = offset_ptr(
            ir, strided_ptr(ir, line, diagonal, self.arithmetic.dtype.itemsize), memory.itemsize
        )
        if_then(
            ir,
            ir.value(f"and i1 {above}, {below}"),
            lambda: ir.line(f"store {llvm_type(memory, 1)} 0.0, ptr {place}, align 1"),
        )


def _clamp(ir: SimdEmitter, value: str, end: str) -> str:
    """Return a number, or 0 or `end` where it lies beyond."""
    return int_min(ir, int_max(ir, value, 0), end)


class _Triangle(BlockedEmitter):
    """Along k no further than the triangle goes."""

    def __init__(self, kernel: BlockedGemm, side: str) -> None:
        super().__init__(kernel)
        self.lower = side == "lower"


class _FirstTriangle(_Triangle):
    """The rows of a tile have elements up to the diagonal, or from there on."""

    def emit_unit(self, unit: GemmUnit) -> None:
        """As for a whole product, as far as the rows of the block go."""
        ir = self.ir
        if self.lower:
            depths = ("0", int_op(ir, "add", unit.first_row, unit.rows))
        else:  # the last tile is moved up to end with the last row
            lowest = int_op(ir, "sub", unit.m, self.tile.rows)
            depths = (int_min(ir, unit.first_row, lowest), unit.k)
        super().emit_unit(unit._replace(depths=depths))

    def multiply_slab(self, unit: GemmUnit, rounds: TileOperands, sums: list[str]) -> list[str]:
        """Add the products on one side of the diagonal, and row by row those that lie on it."""
        ir = self.ir
        before = int_op(ir, "sub", rounds.row, rounds.start)
        begin = _clamp(ir, before, rounds.depth)
        end = _clamp(ir, int_op(ir, "add", before, self.tile.rows), rounds.depth)
        if self.lower:
            sums = super().multiply_slab(unit, rounds._replace(depth=begin), sums)
            return self._multiply_diagonal(unit, rounds, (begin, end), sums)
        sums = self._multiply_diagonal(unit, rounds, (begin, end), sums)
        rest = rounds._replace(
            depth=int_op(ir, "sub", rounds.depth, end),
            corner=strided_ptr(ir, rounds.corner, end, unit.strides[1]),
            panel=strided_ptr(ir, rounds.panel, end, rounds.step),
        )
        return super().multiply_slab(unit, rest, sums)

    def _multiply_diagonal(
        self, unit: GemmUnit, rounds: TileOperands, depths: tuple[str, str], sums: list[str]
    ) -> list[str]:
        """Add the products of a square of x1 of which one triangle counts."""
        ir, tile, arithmetic = self.ir, self.tile, self.arithmetic
        begin, end = depths
        nothing = zeros(arithmetic.sum_dtype, tile.lanes)

        def multiply_row(at: str, *totals: str) -> Sequence[str]:
            line = strided_ptr(ir, rounds.panel, at, rounds.step)
            places = [offset_ptr(ir, line, i * self.packet_bytes) for i in range(tile.packets)]
            align = arithmetic.sum_dtype.itemsize
            columns = [ir.value(f"load {self.packet}, ptr {p}, align {align}") for p in places]
            corner = strided_ptr(ir, rounds.corner, at, unit.strides[1])
            k = int_op(ir, "add", rounds.start, at)
            made: list[str] = []
            for row in range(tile.rows):
                diagonal = int_op(ir, "add", rounds.row, row)
                order = "sle" if self.lower else "sge"
                counts = ir.value(f"icmp {order} i64 {k}, {diagonal}")
                factors = [
                    ir.value(f"select i1 {counts}, {self.packet} {each}, {self.packet} {nothing}")
                    for each in arithmetic.broadcast_factors(ir, corner, tile.lanes)
                ]
                for column, factor in product(columns, factors):
                    total = totals[len(made)]
                    made.append(arithmetic.multiply_add(ir, total, factor, column, tile.lanes))
                corner = offset_ptr(ir, corner, unit.strides[0])
            return [int_op(ir, "add", at, 1), *made]

        begun = [("i64", begin), *((self.packet, value) for value in sums)]
        return carry_loop(ir, int_op(ir, "sub", end, begin), begun, multiply_row)[1:]


class _SecondTriangle(_Triangle):
    """The columns of a panel have elements from the diagonal on, or up to it."""

    reads_in_place = False

    def emit_unit(self, unit: GemmUnit) -> None:
        """As for a whole product, as far as the columns of the panel go."""
        ir = self.ir
        if self.lower:
            depths = (unit.first_column, unit.k)
        else:
            depths = ("0", int_op(ir, "add", unit.first_column, unit.columns))
        super().emit_unit(unit._replace(depths=depths))

    def copy_slab(self, unit: GemmUnit, slab: PackedSlab, columns: PanelColumns) -> None:
        """Copy a slab, and put zeros where the matrix is 0 beside the diagonal."""
        super().copy_slab(unit, slab, columns)
        ir, tile, parts = self.ir, self.tile, self.arithmetic.components
        before = int_op(ir, "sub", unit.first_column, slab.start)
        begin = _clamp(ir, before, slab.depth)
        end = _clamp(ir, int_op(ir, "add", before, unit.columns), slab.depth)
        lanes, nothing = tile.lanes, zeros(self.arithmetic.sum_dtype, tile.lanes)

        def row(at: str) -> None:
            line = strided_ptr(ir, self.panel_scratch, at, tile.row_bytes)
            diagonal = int_op(ir, "mul", int_op(ir, "sub", at, before), parts)
            for i in range(tile.packets):
                place = offset_ptr(ir, line, i * self.packet_bytes)
                first = int_op(ir, "sub", diagonal, i * lanes)
                if self.lower:  # the scalars of the element on the diagonal are the last
                    first = int_op(ir, "add", first, parts - 1)
                steps = ", ".join(f"i64 {lane}" for lane in range(lanes))
                limits = ir.broadcast(Packet(first, INT64, 1), lanes)
                order = f"<{steps}>" if lanes > 1 else "0"
                compared = f"icmp {'sge' if self.lower else 'sle'} {llvm_type(INT64, lanes)}"
                counts = ir.value(f"{compared} {limits}, {order}")
                value = ir.value(f"load {self.packet}, ptr {place}, align {self.alignment}")
                kind = f"<{lanes} x i1>" if lanes > 1 else "i1"
                kept = ir.value(
                    f"select {kind} {counts}, {self.packet} {value}, {self.packet} {nothing}"
                )
                ir.line(f"store {self.packet} {kept}, ptr {place}, align {self.alignment}")

        for_range(ir, begin, end, 1, row)
