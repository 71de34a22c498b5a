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
    carry_loop,
    contraction_count,
    contraction_note,
    if_else,
    load_arguments,
    module_text,
    offset_ptr,
    read_stack,
    read_sums,
    stack_pointers,
    stack_sizes,
    strided_ptr,
    sum_sizes,
    zeros,
)
from tenfold.codegen.gemm.packing import PackedPanel, PanelColumns
from tenfold.codegen.gemm.register_tile import RegisterTile
from tenfold.codegen.llvm.loop_emitter import for_range, if_then, int_max, int_min, int_op
from tenfold.codegen.llvm.simd_emitter import Packet, llvm_type
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
            f"stack of {self.axes} axes{contraction_note(self.sums)}\n"
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
        sums = tile.block * tile.row_bytes * tile.arithmetic.components
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
        self.ir = ir = self.arithmetic.new_emitter()
        self.packed_panel = PackedPanel(ir, self.tile)
        self.packet, self.packet_bytes = self.packed_panel.packet, self.packed_panel.packet_bytes
        self.alignment = self.packed_panel.alignment
        self.pointers = load_arguments(ir, "%buffers", 0, 3 + kernel.added)
        begin = (3 + kernel.added) * kernel.axes
        self.stack = read_stack(ir, kernel.axes, 2 + kernel.added)
        self.contracted_axes = read_sums(ir, kernel.sums, begin)
        found = load_arguments(ir, "%sizes", begin + 3 * kernel.sums, 7 + kernel.added)
        self.lengths, self.strides = found[:3], tuple(found[3:])
        self.panel_scratch = "%scratch"
        self.sum_scratch = offset_ptr(ir, self.panel_scratch, self.tile.slab * self.tile.row_bytes)
        kept = self.tile.block * self.tile.row_bytes * self.arithmetic.components
        self.row_end = offset_ptr(ir, self.sum_scratch, kept)

    def _load_scalar(self, offset: int) -> list[str]:
        """Load a scalar of the launch; each of its parts fills a packet.

        For each tile anew: the loop over k has no register to spare.
        """
        place = offset_ptr(self.ir, "%scalars", offset)
        return self.arithmetic.broadcast_factors(self.ir, place, self.tile.lanes)

    def module(self) -> str:
        """Write everything."""
        ir = self.ir
        for_range(ir, "%begin", "%end", 1, lambda index: self.emit_unit(self._locate_unit(index)))
        ir.line("ret i64 0")
        return module_text(ir, str(self.kernel))

    def _locate_unit(self, index: str) -> GemmUnit:
        """Find the block of a unit of work: panels of columns change fastest."""
        ir, tile, (m, n, k) = self.ir, self.tile, self.lengths
        itemsize = self.arithmetic.dtype.itemsize
        index, first_column = self._split_index(index, n, tile.columns)
        index, first_row = self._split_index(index, m, tile.block)
        matrix = int_op(ir, "mul", int_op(ir, "mul", m, n), itemsize)
        x1, x2, *third = stack_pointers(
            ir, index, self.stack, [*self.pointers[:2], *self.pointers[3:]]
        )
        left = int_op(ir, "sub", n, first_column)
        result = strided_ptr(ir, self.pointers[2], index, matrix)
        return GemmUnit(
            *(m, n, k),
            rows=int_min(ir, int_op(ir, "sub", m, first_row), tile.block),
            first_row=first_row,
            first_column=first_column,
            columns=int_min(ir, left, tile.columns),
            full=ir.value(f"icmp sge i64 {left}, {tile.columns}"),
            strides=self.strides,
            x1=x1,
            x2=strided_ptr(ir, x2, first_column, self.strides[3]),
            result=strided_ptr(ir, result, first_column, itemsize),
            x3=strided_ptr(ir, third[0], first_column, itemsize) if third else "",
            masks=self._packet_masks(left) if self.arithmetic.has_masks else [],
            depths=("0", k),
        )

    def _packet_masks(self, columns: str) -> list[str]:
        """Make the mask of each packet of a panel with so many columns or more."""
        ir, tile, lanes = self.ir, self.tile, self.tile.lanes
        scalars = int_min(ir, columns, tile.columns)
        scalars = int_op(ir, "mul", scalars, self.arithmetic.components)
        found = []
        for first in range(0, tile.packets * lanes, lanes):
            left = Packet(int_op(ir, "sub", scalars, first), INT64, 1)
            steps = ", ".join(f"i64 {lane}" for lane in range(lanes))
            order = f"<{steps}>" if lanes > 1 else "0"
            type_ = llvm_type(INT64, lanes)
            found.append(ir.value(f"icmp sgt {type_} {ir.broadcast(left, lanes)}, {order}"))
        return found

    def _split_index(self, index: str, length: str, part: int) -> tuple[str, str]:
        """Split an index: return (what counts the rest, the first of its part of an axis)."""
        ir = self.ir
        parts = int_op(ir, "udiv", int_op(ir, "add", length, part - 1), part)
        digit = int_op(ir, "urem", index, parts)
        return int_op(ir, "udiv", index, parts), int_op(ir, "mul", digit, part)

    def emit_unit(self, unit: GemmUnit) -> None:
        """Go through what is contracted besides k, as many indices at a time as fill a slab."""
        ir = self.ir
        if not self.contracted_axes:
            self._emit_slabs(unit, PackedSlab("true", "true"))
            return
        rounds = contraction_count(ir, self.contracted_axes)
        fitting = int_op(ir, "udiv", str(self.tile.slab), int_max(ir, unit.k, 1))
        together = int_max(ir, fitting, 1)

        def some(index: str) -> None:
            left = int_op(ir, "sub", rounds, index)
            first = ir.value(f"icmp eq i64 {index}, 0")
            last = ir.value(f"icmp sle i64 {left}, {together}")
            self._emit_slabs(unit, PackedSlab(first, last, index, int_min(ir, left, together)))

        for_range(ir, "0", rounds, together, some)

    def _emit_slabs(self, unit: GemmUnit, around: PackedSlab) -> None:
        """Go through the slabs of k; also where there are none, because the sums must be stored."""
        ir, tile, arithmetic = self.ir, self.tile, self.arithmetic
        begin, end = unit.depths
        slabs = int_max(ir, end, int_op(ir, "add", begin, 1))
        beside = ir.value(f"icmp eq i64 {unit.strides[3]}, {arithmetic.dtype.itemsize}")
        uncut = ir.value(f"and i1 {beside}, {unit.full}")
        packets = beside if arithmetic.has_masks else uncut
        columns = PanelColumns(unit.columns, unit.strides[2:4], packets, unit.masks)
        direct = "false"
        if arithmetic.scalar_dtype == arithmetic.sum_dtype and self.reads_in_place:
            low = ir.value(f"icmp sle i64 {unit.rows}, {DIRECT_TILES * tile.rows}")
            direct = ir.value(f"and i1 {low}, {uncut}")

        def one(start: str) -> None:
            reached = int_op(ir, "add", start, tile.slab)
            first = ir.value(f"icmp eq i64 {start}, {begin}")
            last = ir.value(f"icmp sge i64 {reached}, {end}")
            slab = around._replace(
                first=ir.value(f"and i1 {first}, {around.first}"),
                last=ir.value(f"and i1 {last}, {around.last}"),
                start=start,
                depth=int_min(ir, int_op(ir, "sub", end, start), tile.slab),
                direct=direct,
            )
            copied = ir.value(f"xor i1 {direct}, true")
            if_then(ir, copied, lambda: self.copy_slab(unit, slab, columns))
            self._emit_tiles(unit, slab)

        for_range(ir, begin, slabs, tile.slab, one)

    def copy_slab(self, unit: GemmUnit, slab: PackedSlab, columns: PanelColumns) -> None:
        """Copy a slab of the second operand to the panel."""
        ir = self.ir

        def one(index: str | None) -> None:
            _, source = self._slab_pointers(unit, slab, index)
            self.packed_panel.copy(columns, source, slab.depth, self._panel_pointer(slab, index))

        if slab.rounds:
            for_range(ir, "0", slab.rounds, 1, one)
        else:
            one(None)

    def _slab_pointers(
        self, unit: GemmUnit, slab: PackedSlab, index: str | None
    ) -> tuple[str, str]:
        """Return where a slab begins in both operands, for an index of what else is contracted."""
        ir, found = self.ir, [unit.x1, unit.x2]
        if index is not None:
            found = stack_pointers(
                ir, int_op(ir, "add", slab.round, index), self.contracted_axes, found
            )
        x1, x2 = found
        source = strided_ptr(ir, x2, slab.start, unit.strides[2])
        return strided_ptr(ir, x1, slab.start, unit.strides[1]), source

    def _panel_pointer(self, slab: PackedSlab, index: str | None) -> str:
        """Return where the rows of the panel begin for an index of what else is contracted."""
        if index is None:
            return self.panel_scratch
        rows = int_op(self.ir, "mul", slab.depth, index)
        return strided_ptr(self.ir, self.panel_scratch, rows, self.tile.row_bytes)

    def _emit_tiles(self, unit: GemmUnit, slab: PackedSlab) -> None:
        """Go through the tiles of rows of a block with one slab."""
        ir, tile = self.ir, self.tile
        lowest = int_op(ir, "sub", unit.m, tile.rows)

        def rows(row: str) -> None:
            begin = int_op(ir, "add", unit.first_row, row)
            at = int_min(ir, begin, lowest)
            kept = strided_ptr(
                ir, self.sum_scratch, row, tile.row_bytes * self.arithmetic.components
            )
            begun = self._initial_sums(kept, slab.first)
            if self.kernel.added:
                if_then(ir, slab.last, lambda: self._prefetch_addend(unit, at))
            sums = self._add_slab(unit, slab, at, begun)

            def keep() -> None:
                for i, value in enumerate(sums):
                    self.packed_panel.store_packet(
                        value, offset_ptr(ir, kept, i * self.packet_bytes)
                    )

            if_else(ir, slab.last, lambda: self._store_tile(unit, at, begin, sums), keep)

        for_range(ir, self.first_tile(unit), unit.rows, tile.rows, rows)

    def _add_slab(self, unit: GemmUnit, slab: PackedSlab, row: str, begun: list[str]) -> list[str]:
        """Add the products of a slab to the sums of a tile, for each index of what else is
        contracted.
        """
        ir = self.ir

        def one(index: str | None, sums: list[str]) -> list[str]:
            x1, source = self._slab_pointers(unit, slab, index)
            copied, stride = self._panel_pointer(slab, index), unit.strides[2]
            panel = ir.value(f"select i1 {slab.direct}, ptr {source}, ptr {copied}")
            step = ir.value(f"select i1 {slab.direct}, i64 {stride}, i64 {self.tile.row_bytes}")
            corner = strided_ptr(ir, x1, row, unit.strides[0])
            return self.multiply_slab(
                unit, TileOperands(row, slab.start, slab.depth, corner, panel, step), sums
            )

        if not slab.rounds:
            return one(None, begun)

        def following(index: str, *sums: str) -> Sequence[str]:
            return [int_op(ir, "add", index, 1), *one(index, list(sums))]

        carried = [("i64", "0"), *((self.packet, value) for value in begun)]
        return carry_loop(ir, slab.rounds, carried, following)[1:]

    def first_tile(self, _unit: GemmUnit) -> str:
        """The row of a block with which its tiles begin."""
        return "0"

    def _prefetch_addend(self, unit: GemmUnit, row: str) -> None:
        """Have what is added to a tile on its way while the tile is summed."""
        ir, tile = self.ir, self.tile
        line = strided_ptr(ir, unit.x3, row, unit.strides[-1])
        for _ in range(tile.rows):
            for place in range(
                0, tile.packets * tile.lanes * self.arithmetic.scalar_dtype.itemsize, 64
            ):
                given = [("ptr", offset_ptr(ir, line, place)), ("i32", "0"), ("i32", "3")]
                ir.intrinsic("llvm.prefetch.p0", "void", [*given, ("i32", "1")])
            line = offset_ptr(ir, line, unit.strides[-1])

    def _initial_sums(self, kept: str, first: str) -> list[str]:
        """Return what the sums of a tile begin with: zero, or what the slab before has left."""
        ir, tile = self.ir, self.tile
        nothing = zeros(self.arithmetic.sum_dtype, tile.lanes)
        values = []
        for i in range(tile.rows * tile.packets * self.arithmetic.components):
            place = offset_ptr(ir, kept, i * self.packet_bytes)
            left = ir.value(f"load {self.packet}, ptr {place}, align {self.alignment}")
            choice = f"select i1 {first}, {self.packet} {nothing}, {self.packet} {left}"
            values.append(ir.value(choice))
        return values

    def multiply_slab(self, unit: GemmUnit, rounds: TileOperands, sums: list[str]) -> list[str]:
        """Add the products of a slab to the sums of a tile."""
        ir, tile, arithmetic = self.ir, self.tile, self.arithmetic
        strides = unit.strides
        # Every third row has a pointer; the two after it are reached by one and two strides.
        twice = int_op(ir, "shl", strides[0], 1)
        thrice = int_op(ir, "add", twice, strides[0])
        leaders = [rounds.corner]
        for _ in range(1, -(-tile.rows // 3)):
            leaders.append(offset_ptr(ir, leaders[-1], thrice))

        def multiply_row(at: str, *carried: str) -> Sequence[str]:
            pointers, totals = carried[: len(leaders)], list(carried[len(leaders) :])
            places = [offset_ptr(ir, at, i * self.packet_bytes) for i in range(tile.packets)]
            align = arithmetic.sum_dtype.itemsize
            columns = [ir.value(f"load {self.packet}, ptr {p}, align {align}") for p in places]
            number = 0
            for row in range(tile.rows):
                place = offset_ptr(ir, pointers[row // 3], ("0", strides[0], twice)[row % 3])
                factors = arithmetic.broadcast_factors(ir, place, tile.lanes)
                for column, factor in product(columns, factors):
                    totals[number] = arithmetic.multiply_add(
                        ir, totals[number], factor, column, tile.lanes
                    )
                    number += 1
            moved = [offset_ptr(ir, pointer, strides[1]) for pointer in pointers]
            return [offset_ptr(ir, at, rounds.step), *moved, *totals]

        begun = [("ptr", pointer) for pointer in (rounds.panel, *leaders)]
        begun += [(self.packet, value) for value in sums]
        return carry_loop(ir, rounds.depth, begun, multiply_row)[1 + len(leaders) :]

    def _store_tile(self, unit: GemmUnit, row: str, begin: str, sums: list[str]) -> None:
        """Store the sums of a tile: rows of whole packets, or rows that are cut.

        Where something is added, rows before `begin` have been stored, and are stored no more.
        """
        begin = self.first_stored(unit, begin)
        ir, arithmetic = self.ir, self.arithmetic
        row_bytes = int_op(ir, "mul", unit.n, arithmetic.dtype.itemsize)
        corner = strided_ptr(ir, unit.result, row, row_bytes)
        added = self.kernel.added
        third = strided_ptr(ir, unit.x3, row, unit.strides[-1]) if added else corner
        alpha = self._load_scalar(0) if self.kernel.scaled else []
        beta = self._load_scalar(16) if added else []
        joined = [self._finish_packet(pair, alpha) for pair in batched(sums, arithmetic.components)]

        def store(cut: bool) -> None:
            target, other = corner, third
            for number, line in enumerate(batched(joined, self.tile.packets)):
                write = partial(self._store_row, unit, line, target, (other, beta), cut)
                if self.stores_once and self.tile.rows > 1:
                    at = int_op(ir, "add", row, number)
                    if_then(ir, ir.value(f"icmp sge i64 {at}, {begin}"), write)
                else:
                    write()
                target = offset_ptr(ir, target, row_bytes)
                other = offset_ptr(ir, other, unit.strides[-1]) if added else other

        if_else(ir, unit.full, lambda: store(False), lambda: store(True))

    @property
    def stores_once(self) -> bool:
        """Whether a row that an earlier tile has stored must not be stored again."""
        return self.kernel.added

    def first_stored(self, _unit: GemmUnit, begin: str) -> str:
        """The row from which on a tile is stored, if it begins at `begin`."""
        return begin

    def _finish_packet(self, sums: Sequence[str], alpha: Sequence[str]) -> str:
        """Make the packet of a tile of its accumulators, conjugated and scaled."""
        ir, lanes, kernel = self.ir, self.tile.lanes, self.kernel
        if kernel.second_conjugated:
            sums = [self.arithmetic.conjugate(ir, value, lanes) for value in sums]
        joined = self.arithmetic.combine_components(ir, sums, lanes, kernel.conjugated)
        return self.arithmetic.scale(ir, joined, alpha, lanes) if alpha else joined

    def _store_row(
        self,
        unit: GemmUnit,
        line: Sequence[str],
        target: str,
        addend: tuple[str, Sequence[str]],
        cut: bool,
    ) -> None:
        """Store a row of a tile, with what is added to it: a pointer, and beta if there is one."""
        ir, tile, arithmetic = self.ir, self.tile, self.arithmetic
        third, beta = addend
        aside = cut and not arithmetic.has_masks
        if aside and beta:
            self._copy_row_end(unit, third, self.row_end)
            third = self.row_end
        for i, value in enumerate(line):
            place = i * tile.lanes * arithmetic.scalar_dtype.itemsize
            into = offset_ptr(ir, self.row_end if aside else target, place)
            mask = unit.masks[i] if cut and arithmetic.has_masks else None
            if beta:
                other = arithmetic.load(ir, offset_ptr(ir, third, place), tile.lanes, mask)
                other = arithmetic.scale(ir, other, beta, tile.lanes)
                value = arithmetic.add(ir, value, other, tile.lanes)
            arithmetic.store(ir, value, into, tile.lanes, mask)
        if aside:
            self._copy_row_end(unit, self.row_end, target)

    def _copy_row_end(self, unit: GemmUnit, source: str, target: str) -> None:
        """Copy the scalars of a row that are left of the last column."""
        ir, arithmetic = self.ir, self.arithmetic
        scalar = llvm_type(arithmetic.scalar_dtype, 1)

        def one(index: str) -> None:
            at = strided_ptr(ir, source, index, arithmetic.scalar_dtype.itemsize)
            value = ir.value(f"load {scalar}, ptr {at}, align 1")
            into = strided_ptr(ir, target, index, arithmetic.scalar_dtype.itemsize)
            ir.line(f"store {scalar} {value}, ptr {into}, align 1")

        for_range(ir, "0", int_op(ir, "mul", unit.columns, arithmetic.components), 1, one)


def batched(values: Sequence[str], count: int) -> list[Sequence[str]]:
    """Cut a sequence into parts of `count`."""
    return [values[i : i + count] for i in range(0, len(values), count)]
