"""Packing: copies and widens a slab of columns of a product's second operand into scratch memory.

Takes the addresses of a slab and of its copy, hands on the LLVM text that copies it. Rows of
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
    """The columns of the second operand that a panel has."""

    number: str
    strides: Sequence[str]
    """In bytes: from row to row, from column to column."""
    packets: str
    """Whether they can be read as packets."""
    masks: list[str]
    """Of each packet of a row the lanes that it has, where the processor has masks."""


class PackedPanel:
    """Writes the text that fills a panel."""

    def __init__(self, ir: SimdEmitter, tile: RegisterTile) -> None:
        self.ir, self.tile, self.arithmetic = ir, tile, tile.arithmetic
        self.packet = llvm_type(self.arithmetic.sum_dtype, tile.lanes)
        self.packet_bytes = tile.lanes * self.arithmetic.sum_dtype.itemsize
        self.alignment = min(64, self.packet_bytes)

    def store_packet(self, value: str, place: str) -> None:
        """Store a packet."""
        self.ir.line(f"store {self.packet} {value}, ptr {place}, align {self.alignment}")

    def copy(self, columns: PanelColumns, source: str, depth: str, into: str) -> None:
        """Copy so many rows of the second operand."""
        if_else(
            self.ir,
            columns.packets,
            lambda: self._copy_packets(columns, source, depth, into),
            lambda: self._copy_scalars(columns, source, depth, into),
        )

    def _for_each_packet(
        self, depth: str, into: str, store: Callable[[str, int, str], None]
    ) -> None:
        """For each packet of each row of the panel: `store(row, packet, its place)`."""
        ir, tile = self.ir, self.tile

        def one(row: str) -> None:
            line = strided_ptr(ir, into, row, tile.row_bytes)
            for i in range(tile.packets):
                store(row, i, offset_ptr(ir, line, i * self.packet_bytes))

        for_range(ir, "0", depth, 1, one)

    def _copy_packets(self, columns: PanelColumns, source: str, depth: str, into: str) -> None:
        ir, tile, arithmetic = self.ir, self.tile, self.arithmetic

        def copy(row: str, i: int, written: str) -> None:
            read = strided_ptr(ir, source, row, columns.strides[0])
            place = offset_ptr(ir, read, i * tile.lanes * arithmetic.scalar_dtype.itemsize)
            mask = columns.masks[i] if columns.masks else None
            self.store_packet(arithmetic.load(ir, place, tile.lanes, mask), written)

        self._for_each_packet(depth, into, copy)

    def _copy_scalars(self, columns: PanelColumns, source: str, depth: str, into: str) -> None:
        ir, arithmetic = self.ir, self.arithmetic
        nothing = zeros(arithmetic.sum_dtype, self.tile.lanes)
        self._for_each_packet(depth, into, lambda _, __, place: self.store_packet(nothing, place))
        moduli = [
            ir.intrinsic("llvm.abs.i64", "i64", [("i64", stride), ("i1", "false")])
            for stride in columns.strides
        ]
        down = ir.value(f"icmp slt i64 {moduli[0]}, {moduli[1]}")

        def chosen(one: str | int, other: str | int) -> list[str]:
            pairs = ((one, other), (other, one))
            return [ir.value(f"select i1 {down}, i64 {x}, i64 {y}") for x, y in pairs]

        row, column = columns.strides
        counts, read = chosen(columns.number, depth), chosen(column, row)
        written = chosen(arithmetic.components * arithmetic.sum_dtype.itemsize, self.tile.row_bytes)

        def element(place: str, target: str) -> Sequence[str]:
            for part in range(arithmetic.components):
                scalar = offset_ptr(ir, place, part * arithmetic.scalar_dtype.itemsize)
                value = arithmetic.load(ir, scalar, 1)
                kept = offset_ptr(ir, target, part * arithmetic.sum_dtype.itemsize)
                ir.line(f"store {llvm_type(arithmetic.sum_dtype, 1)} {value}, ptr {kept}")
            return offset_ptr(ir, place, read[1]), offset_ptr(ir, target, written[1])

        def line(index: str) -> None:
            begun = (
                strided_ptr(ir, source, index, read[0]),
                strided_ptr(ir, into, index, written[0]),
            )
            carry_loop(ir, counts[1], [("ptr", pointer) for pointer in begun], element)

        for_range(ir, "0", counts[0], 1, line)
