"""Packing: copies and widens a slab of columns of a product's second operand into scratch memory.

Input: the addresses of a slab and of its copy. Output: the LLVM text that copies it. Rows of
contiguous elements are copied as packets. Others are copied one by one, along the axis with the
shorter stride, and padded with zeros.

>>> from tenfold.dtypes import FLOAT64
>>> panel = PackedPanel(SimdEmitter(), RegisterTile.of(FLOAT64, 32, rows=100, columns=100))
>>> panel.packet, panel.packet_bytes
('<4 x double>', 32)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tenfold.codegen.gemm.emitter import carry_loop, if_else, offset_ptr, strided_ptr, zeros
from tenfold.codegen.gemm.register_tile import RegisterTile
from tenfold.codegen.llvm.loop_emitter import for_range
from tenfold.codegen.llvm.simd_emitter import SimdEmitter, llvm_type


class PanelColumns(NamedTuple):
    """The columns of the second operand in a panel."""

    number: str
    strides: Sequence[str]
    """In bytes: from row to row, from column to column."""
    packets: str
    """Whether they are read as packets."""
    masks: list[str]
    """The lane mask of each packet of a row, if the processor has masks."""


class PackedPanel:
    """Emits the code that fills a panel."""

    def __init__(self, ir: SimdEmitter, tile: RegisterTile) -> None:
        self.ir, self.tile, self.arithmetic = ir, tile, tile.arithmetic
        self.packet = llvm_type(self.arithmetic.sum_dtype, tile.lanes)
        self.packet_bytes = tile.lanes * self.arithmetic.sum_dtype.itemsize
        self.alignment = min(64, self.packet_bytes)

    def store_packet(self, value: str, pointer: str) -> None:
        """Store a packet."""
        self.ir.line(f"store {self.packet} {value}, ptr {pointer}, align {self.alignment}")

    def copy(self, columns: PanelColumns, source: str, depth: str, target: str) -> None:
        """Copy `depth` rows of the second operand."""
        if_else(
            self.ir,
            columns.packets,
            lambda: self._copy_packets(columns, source, depth, target),
            lambda: self._copy_scalars(columns, source, depth, target),
        )

    def _for_each_packet(
        self, depth: str, target: str, store: Callable[[str, int, str], None]
    ) -> None:
        """For each packet of each row of the panel: `store(row, packet, pointer)`."""
        ir, tile = self.ir, self.tile

        def visit_row(row: str) -> None:
            row_pointer = strided_ptr(ir, target, row, tile.row_bytes)
            for i in range(tile.packets):
                store(row, i, offset_ptr(ir, row_pointer, i * self.packet_bytes))

        for_range(ir, "0", depth, 1, visit_row)

    def _copy_packets(self, columns: PanelColumns, source: str, depth: str, target: str) -> None:
        ir, tile, arithmetic = self.ir, self.tile, self.arithmetic

        def copy(row: str, i: int, target_pointer: str) -> None:
            row_pointer = strided_ptr(ir, source, row, columns.strides[0])
            source_pointer = offset_ptr(
                ir, row_pointer, i * tile.lanes * arithmetic.scalar_dtype.itemsize
            )
            mask = columns.masks[i] if columns.masks else None
            self.store_packet(arithmetic.load(ir, source_pointer, tile.lanes, mask), target_pointer)

        self._for_each_packet(depth, target, copy)

    def _copy_scalars(self, columns: PanelColumns, source: str, depth: str, target: str) -> None:
        ir, arithmetic = self.ir, self.arithmetic
        zero = zeros(arithmetic.sum_dtype, self.tile.lanes)
        self._for_each_packet(
            depth, target, lambda _, __, source_pointer: self.store_packet(zero, source_pointer)
        )
        moduli = [
            ir.intrinsic("llvm.abs.i64", "i64", [("i64", stride), ("i1", "false")])
            for stride in columns.strides
        ]
        down = ir.value(f"icmp slt i64 {moduli[0]}, {moduli[1]}")

        def ordered(down_value: str | int, across_value: str | int) -> list[str]:
            pairs = ((down_value, across_value), (across_value, down_value))
            return [ir.value(f"select i1 {down}, i64 {x}, i64 {y}") for x, y in pairs]

        row, column = columns.strides
        counts, read_strides = ordered(columns.number, depth), ordered(column, row)
        write_strides = ordered(
            arithmetic.components * arithmetic.sum_dtype.itemsize, self.tile.row_bytes
        )

        def copy_element(source_pointer: str, element_target: str) -> Sequence[str]:
            for component in range(arithmetic.components):
                scalar = offset_ptr(
                    ir, source_pointer, component * arithmetic.scalar_dtype.itemsize
                )
                value = arithmetic.load(ir, scalar, 1)
                target_scalar = offset_ptr(
                    ir, element_target, component * arithmetic.sum_dtype.itemsize
                )
                ir.line(f"store {llvm_type(arithmetic.sum_dtype, 1)} {value}, ptr {target_scalar}")
            return offset_ptr(ir, source_pointer, read_strides[1]), offset_ptr(
                ir, element_target, write_strides[1]
            )

        def copy_line(index: str) -> None:
            starts = (
                strided_ptr(ir, source, index, read_strides[0]),
                strided_ptr(ir, target, index, write_strides[0]),
            )
            carry_loop(ir, counts[1], [("ptr", pointer) for pointer in starts], copy_element)

        for_range(ir, "0", counts[0], 1, copy_line)
