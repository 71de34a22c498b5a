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

from tenfold.codegen.gemm.emitter import advanced, carrying, either, times, zeros
from tenfold.codegen.gemm.register_tile import RegisterTile
from tenfold.codegen.llvm.loop_emitter import counted
from tenfold.codegen.llvm.simd_emitter import SimdEmitter, type_text


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

    def __init__(self, text: SimdEmitter, tile: RegisterTile) -> None:
        self.text, self.tile, self.arithmetic = text, tile, tile.arithmetic
        self.packet = type_text(self.arithmetic.wide, tile.lanes)
        self.packet_bytes = tile.lanes * self.arithmetic.wide.itemsize
        self.alignment = min(64, self.packet_bytes)

    def keep(self, value: str, place: str) -> None:
        """Store a packet."""
        self.text.line(f"store {self.packet} {value}, ptr {place}, align {self.alignment}")

    def copy(self, columns: PanelColumns, source: str, depth: str, into: str) -> None:
        """Copy so many rows of the second operand."""
        either(
            self.text,
            columns.packets,
            lambda: self._copy_packets(columns, source, depth, into),
            lambda: self._copy_scalars(columns, source, depth, into),
        )

    def _rows(self, depth: str, into: str, store: Callable[[str, int, str], None]) -> None:
        """For each packet of each row of the panel: `store(row, packet, its place)`."""
        text, tile = self.text, self.tile

        def one(row: str) -> None:
            line = times(text, into, row, tile.row_bytes)
            for i in range(tile.packets):
                store(row, i, advanced(text, line, i * self.packet_bytes))

        counted(text, "0", depth, 1, one)

    def _copy_packets(self, columns: PanelColumns, source: str, depth: str, into: str) -> None:
        text, tile, arithmetic = self.text, self.tile, self.arithmetic

        def copy(row: str, i: int, written: str) -> None:
            read = times(text, source, row, columns.strides[0])
            place = advanced(text, read, i * tile.lanes * arithmetic.memory.itemsize)
            mask = columns.masks[i] if columns.masks else None
            self.keep(arithmetic.load(text, place, tile.lanes, mask), written)

        self._rows(depth, into, copy)

    def _copy_scalars(self, columns: PanelColumns, source: str, depth: str, into: str) -> None:
        text, arithmetic = self.text, self.arithmetic
        nothing = zeros(arithmetic.wide, self.tile.lanes)
        self._rows(depth, into, lambda _, __, place: self.keep(nothing, place))
        moduli = [
            text.intrinsic("llvm.abs.i64", "i64", [("i64", stride), ("i1", "false")])
            for stride in columns.strides
        ]
        down = text.value(f"icmp slt i64 {moduli[0]}, {moduli[1]}")

        def chosen(one: str | int, other: str | int) -> list[str]:
            pairs = ((one, other), (other, one))
            return [text.value(f"select i1 {down}, i64 {x}, i64 {y}") for x, y in pairs]

        row, column = columns.strides
        counts, read = chosen(columns.number, depth), chosen(column, row)
        written = chosen(arithmetic.parts * arithmetic.wide.itemsize, self.tile.row_bytes)

        def element(place: str, target: str) -> Sequence[str]:
            for part in range(arithmetic.parts):
                scalar = advanced(text, place, part * arithmetic.memory.itemsize)
                value = arithmetic.load(text, scalar, 1)
                kept = advanced(text, target, part * arithmetic.wide.itemsize)
                text.line(f"store {type_text(arithmetic.wide, 1)} {value}, ptr {kept}")
            return advanced(text, place, read[1]), advanced(text, target, written[1])

        def line(index: str) -> None:
            begun = times(text, source, index, read[0]), times(text, into, index, written[0])
            carrying(text, counts[1], [("ptr", pointer) for pointer in begun], element)

        counted(text, "0", counts[0], 1, line)
