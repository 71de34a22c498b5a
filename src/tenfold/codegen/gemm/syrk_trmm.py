"""SYRK and TRMM: SIMD code for symmetric products and triangular operands, at half the work.

Input: the fields of a BlockedGemm and the half to compute. Output: a kernel with the same buffers
and sizes. A symmetric (n, k) @ (k, n) skips tiles above the diagonal; a unit copies its results
below the diagonal to the other side. Each element is written by one thread, and the result is
symmetric bit for bit. With a triangular matrix each tile loops only over those k where the matrix
may be nonzero; the other half is not used.

>>> from tenfold.dtypes import FLOAT64
>>> from tenfold.codegen.gemm.register_tile import RegisterTile
>>> print(SyrkTrmm(RegisterTile.of(FLOAT64, 64, rows=100, columns=100), half=Half.SYMMETRIC))
product x1 @ x2 of float64, stack of 0 axes
  tiles of 6 rows by 4 packets of 8 lanes
  of a symmetric result the lower half, copied to the upper one
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from tenfold.codegen.gemm.blocked import (
    BlockedEmitter,
    BlockedGemm,
    GemmUnit,
    PackedSlab,
    TileOperands,
)
from tenfold.codegen.gemm.emitter import carry_loop, offset_ptr, strided_ptr, zeros
from tenfold.codegen.gemm.packing import PanelColumns
from tenfold.codegen.llvm.loop_emitter import for_range, if_then, int_max, int_min, int_op
from tenfold.codegen.llvm.simd_emitter import Packet, SimdEmitter, llvm_type
from tenfold.core.structure import Half, Structure
from tenfold.dtypes import INT64

MIRRORED_ROWS = 8
"""The rows that are copied to the other side at once: a full cache line is written."""


@dataclass(frozen=True)
class SyrkTrmm(BlockedGemm):
    """SIMD code of a product of which one half suffices, (n, k) @ (k, n) or with one (n, n)."""

    half: Half = Half.NONE

    def __post_init__(self) -> None:
        is_aligned = self.tile.block % self.tile.columns == 0
        assert is_aligned or self.tile.rows <= 2, "a panel's part of the diagonal is in one block"
        assert not (self.addend and self.half.is_result), "both halves would have to be read"

    def __str__(self) -> str:
        return f"{super().__str__()}\n  {self.half.note}"

    def text(self) -> str:
        """Return its LLVM module, with the buffers of a BlockedGemm."""
        if self.half.is_result:
            return _Mirrored(self, self.half).module()
        emitter = (_FirstTriangle, _SecondTriangle)[self.half.operand]
        return emitter(self, self.half.side).module()


class _Mirrored(BlockedEmitter):
    """Emits the half below the diagonal, then copies it to the other side."""

    stores_once = True

    def __init__(self, kernel: BlockedGemm, half: Half) -> None:
        super().__init__(kernel)
        self.half = half

    def emit_unit(self, unit: GemmUnit) -> None:
        """Emit a block, unless all of it is above the diagonal, and mirror it."""
        ir = self.ir
        end = int_op(ir, "add", unit.first_row, unit.rows)
        reaches_diagonal = ir.value(f"icmp slt i64 {unit.first_column}, {end}")

        def emit_block() -> None:
            super(_Mirrored, self).emit_unit(unit)
            self._mirror_block(unit, end)

        if_then(ir, reaches_diagonal, emit_block)

    def first_tile(self, unit: GemmUnit) -> str:
        """Return the last tile that begins at or before the panel's part of the diagonal."""
        ir, rows = self.ir, self.tile.rows
        offset = int_max(ir, int_op(ir, "sub", unit.first_column, unit.first_row), 0)
        return int_op(ir, "sub", offset, int_op(ir, "urem", offset, rows))

    def first_stored(self, unit: GemmUnit, begin: str) -> str:
        """Return the first row at the panel's part of the diagonal: rows above are mirrored."""
        return int_max(self.ir, begin, unit.first_column)

    def _mirror_block(self, unit: GemmUnit, end: str) -> None:
        """Copy the elements below the diagonal to the other side, some rows at a time."""
        ir, itemsize = self.ir, self.arithmetic.dtype.itemsize
        line = int_op(ir, "mul", unit.n, itemsize)
        source_columns = strided_ptr(ir, self.pointers[2], unit.first_column, itemsize)
        begin = int_max(ir, unit.first_row, unit.first_column)
        target_rows = strided_ptr(ir, self.pointers[2], unit.first_column, line)

        def copy_rows(first_row: str) -> None:
            end_row = int_min(ir, int_op(ir, "add", first_row, MIRRORED_ROWS), end)
            column_count = int_op(ir, "sub", end_row, unit.first_column)

            def copy_column(column: str) -> None:
                diagonal = int_op(ir, "add", unit.first_column, column)
                source = strided_ptr(ir, source_columns, column, itemsize)
                target = strided_ptr(ir, target_rows, column, line)

                def copy_row(row: str) -> None:
                    self._copy_element(
                        strided_ptr(ir, source, row, line), strided_ptr(ir, target, row, itemsize)
                    )

                for_range(
                    ir, int_max(ir, first_row, int_op(ir, "add", diagonal, 1)), end_row, 1, copy_row
                )
                if self.half is Half.HERMITIAN:
                    self._clear_imaginary(target, diagonal, first_row, end_row)

            for_range(ir, "0", int_min(ir, unit.columns, column_count), 1, copy_column)

        for_range(ir, begin, end, MIRRORED_ROWS, copy_rows)

    def _copy_element(self, source: str, target: str) -> None:
        ir, memory = self.ir, self.arithmetic.scalar_dtype
        scalar = llvm_type(memory, 1)
        for component in range(self.arithmetic.components):
            source_pointer = offset_ptr(ir, source, component * memory.itemsize)
            value = ir.value(f"load {scalar}, ptr {source_pointer}, align 1")
            if component and self.half is Half.HERMITIAN:
                value = ir.value(f"fneg {scalar} {value}")
            target_pointer = offset_ptr(ir, target, component * memory.itemsize)
            ir.line(f"store {scalar} {value}, ptr {target_pointer}, align 1")

    def _clear_imaginary(
        self, row_pointer: str, diagonal: str, first_row: str, end_row: str
    ) -> None:
        """Set the imaginary parts on the diagonal to 0: they are only rounding errors."""
        ir, memory = self.ir, self.arithmetic.scalar_dtype
        at_or_after, before_end = (
            ir.value(f"icmp {order} i64 {diagonal}, {row}")
            for order, row in (("sge", first_row), ("slt", end_row))
        )
        pointer = offset_ptr(
            ir,
            strided_ptr(ir, row_pointer, diagonal, self.arithmetic.dtype.itemsize),
            memory.itemsize,
        )
        if_then(
            ir,
            ir.value(f"and i1 {at_or_after}, {before_end}"),
            lambda: ir.line(f"store {llvm_type(memory, 1)} 0.0, ptr {pointer}, align 1"),
        )


def _clamp(ir: SimdEmitter, value: str, end: str) -> str:
    """Clamp a number to [0, end]."""
    return int_min(ir, int_max(ir, value, 0), end)


class _Triangle(BlockedEmitter):
    """Emits a product that loops over k within the triangle."""

    def __init__(self, kernel: BlockedGemm, side: Structure) -> None:
        super().__init__(kernel)
        self.lower = side == Structure.LOWER


class _FirstTriangle(_Triangle):
    """x1 is triangular: rows of a tile have elements up to the diagonal, or from there on."""

    def emit_unit(self, unit: GemmUnit) -> None:
        """Emit a block over the k of its rows in the triangle."""
        ir = self.ir
        if self.lower:
            k_range = ("0", int_op(ir, "add", unit.first_row, unit.rows))
        else:  # the last tile ends with the last row
            last_tile_row = int_op(ir, "sub", unit.m, self.tile.rows)
            k_range = (int_min(ir, unit.first_row, last_tile_row), unit.k)
        super().emit_unit(unit._replace(k_range=k_range))

    def multiply_slab(self, unit: GemmUnit, operands: TileOperands, sums: list[str]) -> list[str]:
        """Add the products on one side of the diagonal, and row by row those on it."""
        ir = self.ir
        diagonal_start = int_op(ir, "sub", operands.first_row, operands.first_k)
        begin = _clamp(ir, diagonal_start, operands.k_count)
        end = _clamp(ir, int_op(ir, "add", diagonal_start, self.tile.rows), operands.k_count)
        if self.lower:
            sums = super().multiply_slab(unit, operands._replace(k_count=begin), sums)
            return self._multiply_diagonal(unit, operands, (begin, end), sums)
        sums = self._multiply_diagonal(unit, operands, (begin, end), sums)
        remaining = operands._replace(
            k_count=int_op(ir, "sub", operands.k_count, end),
            x1_pointer=strided_ptr(ir, operands.x1_pointer, end, unit.strides[1]),
            x2_pointer=strided_ptr(ir, operands.x2_pointer, end, operands.x2_row_stride),
        )
        return super().multiply_slab(unit, remaining, sums)

    def _multiply_diagonal(
        self, unit: GemmUnit, operands: TileOperands, depths: tuple[str, str], sums: list[str]
    ) -> list[str]:
        """Add the products of a square of x1, masked to one triangle."""
        ir, tile, arithmetic = self.ir, self.tile, self.arithmetic
        begin, end = depths
        zero = zeros(arithmetic.sum_dtype, tile.lanes)

        def multiply_row(offset: str, *totals: str) -> Sequence[str]:
            panel_row = strided_ptr(ir, operands.x2_pointer, offset, operands.x2_row_stride)
            pointers = [
                offset_ptr(ir, panel_row, i * self.packet_bytes) for i in range(tile.packets)
            ]
            align = arithmetic.sum_dtype.itemsize
            columns = [ir.value(f"load {self.packet}, ptr {p}, align {align}") for p in pointers]
            corner = strided_ptr(ir, operands.x1_pointer, offset, unit.strides[1])
            k = int_op(ir, "add", operands.first_k, offset)
            updated: list[str] = []
            for row in range(tile.rows):
                diagonal = int_op(ir, "add", operands.first_row, row)
                comparison = "sle" if self.lower else "sge"
                in_triangle = ir.value(f"icmp {comparison} i64 {k}, {diagonal}")
                factors = [
                    ir.value(
                        f"select i1 {in_triangle}, {self.packet} {scalar}, {self.packet} {zero}"
                    )
                    for scalar in arithmetic.broadcast_factors(ir, corner, tile.lanes)
                ]
                for column, factor in product(columns, factors):
                    total = totals[len(updated)]
                    updated.append(arithmetic.multiply_add(ir, total, factor, column, tile.lanes))
                corner = offset_ptr(ir, corner, unit.strides[0])
            return [int_op(ir, "add", offset, 1), *updated]

        initial = [("i64", begin), *((self.packet, value) for value in sums)]
        return carry_loop(ir, int_op(ir, "sub", end, begin), initial, multiply_row)[1:]


class _SecondTriangle(_Triangle):
    """x2 is triangular: columns of a panel have elements from the diagonal on, or up to it."""

    reads_in_place = False

    def emit_unit(self, unit: GemmUnit) -> None:
        """Emit a block over the k of its columns in the triangle."""
        ir = self.ir
        if self.lower:
            k_range = (unit.first_column, unit.k)
        else:
            k_range = ("0", int_op(ir, "add", unit.first_column, unit.columns))
        super().emit_unit(unit._replace(k_range=k_range))

    def copy_slab(self, unit: GemmUnit, slab: PackedSlab, columns: PanelColumns) -> None:
        """Pack a slab, with zeros outside the triangle."""
        super().copy_slab(unit, slab, columns)
        ir, tile, components = self.ir, self.tile, self.arithmetic.components
        diagonal_start = int_op(ir, "sub", unit.first_column, slab.first_k)
        begin = _clamp(ir, diagonal_start, slab.k_count)
        end = _clamp(ir, int_op(ir, "add", diagonal_start, unit.columns), slab.k_count)
        lanes, zero = tile.lanes, zeros(self.arithmetic.sum_dtype, tile.lanes)

        def mask_row(offset: str) -> None:
            panel_row = strided_ptr(ir, self.panel_scratch, offset, tile.row_bytes)
            diagonal = int_op(ir, "mul", int_op(ir, "sub", offset, diagonal_start), components)
            for i in range(tile.packets):
                pointer = offset_ptr(ir, panel_row, i * self.packet_bytes)
                diagonal_lane = int_op(ir, "sub", diagonal, i * lanes)
                if self.lower:  # both scalars of the element on the diagonal count
                    diagonal_lane = int_op(ir, "add", diagonal_lane, components - 1)
                steps = ", ".join(f"i64 {lane}" for lane in range(lanes))
                limits = ir.broadcast(Packet(diagonal_lane, INT64, 1), lanes)
                order = f"<{steps}>" if lanes > 1 else "0"
                comparison = f"icmp {'sge' if self.lower else 'sle'} {llvm_type(INT64, lanes)}"
                in_triangle = ir.value(f"{comparison} {limits}, {order}")
                value = ir.value(f"load {self.packet}, ptr {pointer}, align {self.alignment}")
                mask_type = f"<{lanes} x i1>" if lanes > 1 else "i1"
                masked = ir.value(
                    f"select {mask_type} {in_triangle}, {self.packet} {value}, {self.packet} {zero}"
                )
                ir.line(f"store {self.packet} {masked}, ptr {pointer}, align {self.alignment}")

        for_range(ir, begin, end, 1, mask_row)
