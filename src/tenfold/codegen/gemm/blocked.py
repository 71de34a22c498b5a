"""Blocked GEMM: SIMD code for products of any size, (m, k) @ (k, n), and stacks of them.

A unit of work is a block of rows by a panel of columns. The panel of the second operand is packed:
widened and copied to the thread's scratch memory, a slab of k at a time. Each tile of rows reads it
once. The sums of a tile stay in registers through a slab. A block of one or two tiles is not packed
if rows of the second operand are contiguous. The last tile of rows ends with the last row, so some
sums may be computed twice. The last panel is padded with zeros. Contracted axes that do not
coalesce are split into slabs: a slab has the innermost axis for some indices of the others, or a
part of it for one.

Strides are arbitrary. The code depends on dtype, processor and tile, not on lengths.

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
from typing import NamedTuple

from tenfold.codegen.gemm.emitter import (
    ADDEND_NOTES,
    addend_sizes,
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
"""Blocks of at most this many tiles of rows read the second operand in place."""


class GemmUnit(NamedTuple):
    """LLVM values of a unit of work: lengths, strides in bytes, pointers to its first element."""

    m: str
    n: str
    k: str
    rows: str
    first_row: str
    first_column: str
    columns: str
    has_all_columns: str
    """Whether the panel has all its columns."""
    strides: tuple[str, ...]
    x1: str
    x2: str
    result: str
    x3: str
    masks: list[str]
    """The lane mask of each packet of a panel, if the processor has masks."""
    k_range: tuple[str, str]
    """The first k and the end of k."""


class PackedSlab(NamedTuple):
    """LLVM values of the slab that is added to the sums."""

    is_first: str
    """Whether it is the first slab of the sums."""
    is_last: str
    """Whether it is the last slab of the sums."""
    first_round: str = ""
    """The first index of the other contracted axes, if there are any."""
    round_count: str = ""
    """The number of indices of the other contracted axes."""
    first_k: str = ""
    """The first k."""
    k_count: str = ""
    """The number of k."""
    in_place: str = ""
    """Whether the second operand is read in place, not packed."""


class TileOperands(NamedTuple):
    """LLVM values of the operands of one tile and one slab."""

    first_row: str
    """The first row of the tile."""
    first_k: str
    """The first k of the slab."""
    k_count: str
    """The number of k."""
    x1_pointer: str
    """Points to the tile's first row of x1 in the slab."""
    x2_pointer: str
    x2_row_stride: str
    """Pointer to the rows of the second operand, and the bytes from one to the next."""


@dataclass(frozen=True)
class BlockedGemm:
    """SIMD code of a product of any size; `axes` is the number of stack axes."""

    tile: RegisterTile
    axes: int = 0
    conjugated: bool = False
    second_conjugated: bool = False
    scaled: bool = False
    """Whether the product is multiplied by the first scalar of the launch."""
    addend: str = ""
    """The layout of x3, which is added times the second scalar, and may be the result; "": none.

    The scalars of the launch are 16 bytes apart."""
    sums: int = 0
    """The axes that are contracted besides k."""

    def __str__(self) -> str:
        tile = self.tile
        x1_text = "conj(x1)" if self.conjugated else "x1"
        x2_text = "conj(x2)" if self.second_conjugated else "x2"
        alpha, added = "alpha * " * self.scaled, ADDEND_NOTES[self.addend]
        return (
            f"product {alpha}{x1_text} @ {x2_text}{added} of {tile.arithmetic.dtype}, "
            f"stack of {self.axes} axes{contraction_note(self.sums)}\n"
            f"  tiles of {tile.rows} rows by {tile.packets} packets of {tile.lanes} lanes"
        )

    @property
    def sizes(self) -> tuple[str, ...]:
        """Names of the launch sizes, in order; strides are in bytes."""
        names = "m, n, k, row of x1, column of x1, row of x2, column of x2"
        stack = stack_sizes(self.axes, 2 + bool(self.addend))
        return (*stack, *sum_sizes(self.sums), *names.split(", "), *addend_sizes(self.addend))

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
        """Return its LLVM module. Buffers are x1, x2, the contiguous result, and x3."""
        return BlockedEmitter(self).module()


class BlockedEmitter:
    """Emits the code of a BlockedGemm; the emitters of `syrk_trmm.py` override some methods."""

    reads_in_place = True
    """Whether the second operand may be read in place."""

    def __init__(self, kernel: BlockedGemm) -> None:
        self.kernel, self.tile = kernel, kernel.tile
        self.arithmetic = self.tile.arithmetic
        self.ir = ir = self.arithmetic.new_emitter()
        self.packed_panel = PackedPanel(ir, self.tile)
        self.packet, self.packet_bytes = self.packed_panel.packet, self.packed_panel.packet_bytes
        self.alignment = self.packed_panel.alignment
        added = bool(kernel.addend)
        self.pointers = load_arguments(ir, "%buffers", 0, 3 + added)
        first_size = (3 + added) * kernel.axes
        self.stack = read_stack(ir, kernel.axes, 2 + added)
        self.contracted_axes = read_sums(ir, kernel.sums, first_size)
        count = 7 + len(addend_sizes(kernel.addend))
        sizes = load_arguments(ir, "%sizes", first_size + 3 * kernel.sums, count)
        self.lengths, self.strides = sizes[:3], tuple(sizes[3:])
        self.panel_scratch = "%scratch"
        self.sum_scratch = offset_ptr(ir, self.panel_scratch, self.tile.slab * self.tile.row_bytes)
        sum_bytes = self.tile.block * self.tile.row_bytes * self.arithmetic.components
        self.row_end = offset_ptr(ir, self.sum_scratch, sum_bytes)

    def _load_scalar(self, offset: int) -> list[str]:
        """Load a scalar of the launch; each of its components is broadcast to a packet.

        Each tile loads it again: the loop over k has no free register.
        """
        pointer = offset_ptr(self.ir, "%scalars", offset)
        return self.arithmetic.broadcast_factors(self.ir, pointer, self.tile.lanes)

    def module(self) -> str:
        """Emit the module."""
        ir = self.ir
        for_range(ir, "%begin", "%end", 1, lambda index: self.emit_unit(self._locate_unit(index)))
        ir.line("ret i64 0")
        return module_text(ir, str(self.kernel))

    def _locate_unit(self, index: str) -> GemmUnit:
        """Compute the block of a unit of work: panels of columns vary fastest."""
        ir, tile, (m, n, k) = self.ir, self.tile, self.lengths
        itemsize = self.arithmetic.dtype.itemsize
        index, first_column = self._split_index(index, n, tile.columns)
        index, first_row = self._split_index(index, m, tile.block)
        matrix_bytes = int_op(ir, "mul", int_op(ir, "mul", m, n), itemsize)
        x1, x2, *addend = stack_pointers(
            ir, index, self.stack, [*self.pointers[:2], *self.pointers[3:]]
        )
        columns_left = int_op(ir, "sub", n, first_column)
        result = strided_ptr(ir, self.pointers[2], index, matrix_bytes)
        return GemmUnit(
            *(m, n, k),
            rows=int_min(ir, int_op(ir, "sub", m, first_row), tile.block),
            first_row=first_row,
            first_column=first_column,
            columns=int_min(ir, columns_left, tile.columns),
            has_all_columns=ir.value(f"icmp sge i64 {columns_left}, {tile.columns}"),
            strides=self.strides,
            x1=x1,
            x2=strided_ptr(ir, x2, first_column, self.strides[3]),
            result=strided_ptr(ir, result, first_column, itemsize),
            x3=strided_ptr(ir, addend[0], first_column, self._addend_step) if addend else "",
            masks=self._packet_masks(columns_left) if self.arithmetic.has_masks else [],
            k_range=("0", k),
        )

    @property
    def _addend_step(self) -> str | int:
        """The bytes from one column of the addend to the next."""
        is_strided = self.kernel.addend == "any"
        return self.strides[5] if is_strided else self.arithmetic.dtype.itemsize

    def _packet_masks(self, columns: str) -> list[str]:
        """Return the lane mask of each packet of a panel with `columns` columns left."""
        ir, tile, lanes = self.ir, self.tile, self.tile.lanes
        scalars = int_min(ir, columns, tile.columns)
        scalars = int_op(ir, "mul", scalars, self.arithmetic.components)
        masks = []
        for first_scalar in range(0, tile.packets * lanes, lanes):
            remaining = Packet(int_op(ir, "sub", scalars, first_scalar), INT64, 1)
            steps = ", ".join(f"i64 {lane}" for lane in range(lanes))
            order = f"<{steps}>" if lanes > 1 else "0"
            type_ = llvm_type(INT64, lanes)
            masks.append(ir.value(f"icmp sgt {type_} {ir.broadcast(remaining, lanes)}, {order}"))
        return masks

    def _split_index(self, index: str, length: str, block: int) -> tuple[str, str]:
        """Split a flat index: return the outer index, and the first element of the block."""
        ir = self.ir
        blocks = int_op(ir, "udiv", int_op(ir, "add", length, block - 1), block)
        digit = int_op(ir, "urem", index, blocks)
        return int_op(ir, "udiv", index, blocks), int_op(ir, "mul", digit, block)

    def emit_unit(self, unit: GemmUnit) -> None:
        """Loop over the other contracted axes, as many indices at a time as fill a slab."""
        ir = self.ir
        if not self.contracted_axes:
            self._emit_slabs(unit, PackedSlab("true", "true"))
            return
        rounds = contraction_count(ir, self.contracted_axes)
        rounds_that_fit = int_op(ir, "udiv", str(self.tile.slab), int_max(ir, unit.k, 1))
        slab_rounds = int_max(ir, rounds_that_fit, 1)

        def emit_rounds(index: str) -> None:
            rounds_left = int_op(ir, "sub", rounds, index)
            is_first = ir.value(f"icmp eq i64 {index}, 0")
            is_last = ir.value(f"icmp sle i64 {rounds_left}, {slab_rounds}")
            self._emit_slabs(
                unit, PackedSlab(is_first, is_last, index, int_min(ir, rounds_left, slab_rounds))
            )

        for_range(ir, "0", rounds, slab_rounds, emit_rounds)

    def _emit_slabs(self, unit: GemmUnit, outer: PackedSlab) -> None:
        """Loop over the slabs of k; one empty slab if k is 0, because the sums must be stored."""
        ir, tile, arithmetic = self.ir, self.tile, self.arithmetic
        begin, end = unit.k_range
        slabs = int_max(ir, end, int_op(ir, "add", begin, 1))
        contiguous = ir.value(f"icmp eq i64 {unit.strides[3]}, {arithmetic.dtype.itemsize}")
        full_rows = ir.value(f"and i1 {contiguous}, {unit.has_all_columns}")
        packets = contiguous if arithmetic.has_masks else full_rows
        columns = PanelColumns(unit.columns, unit.strides[2:4], packets, unit.masks)
        in_place = "false"
        if arithmetic.scalar_dtype == arithmetic.sum_dtype and self.reads_in_place:
            few_rows = ir.value(f"icmp sle i64 {unit.rows}, {DIRECT_TILES * tile.rows}")
            in_place = ir.value(f"and i1 {few_rows}, {full_rows}")

        def emit_slab(start: str) -> None:
            next_start = int_op(ir, "add", start, tile.slab)
            is_first = ir.value(f"icmp eq i64 {start}, {begin}")
            is_last = ir.value(f"icmp sge i64 {next_start}, {end}")
            slab = outer._replace(
                is_first=ir.value(f"and i1 {is_first}, {outer.is_first}"),
                is_last=ir.value(f"and i1 {is_last}, {outer.is_last}"),
                first_k=start,
                k_count=int_min(ir, int_op(ir, "sub", end, start), tile.slab),
                in_place=in_place,
            )
            needs_copy = ir.value(f"xor i1 {in_place}, true")
            if_then(ir, needs_copy, lambda: self.copy_slab(unit, slab, columns))
            self._emit_tiles(unit, slab)

        for_range(ir, begin, slabs, tile.slab, emit_slab)

    def copy_slab(self, unit: GemmUnit, slab: PackedSlab, columns: PanelColumns) -> None:
        """Pack a slab of the second operand."""
        ir = self.ir

        def copy_round(index: str | None) -> None:
            _, source = self._slab_pointers(unit, slab, index)
            self.packed_panel.copy(columns, source, slab.k_count, self._panel_pointer(slab, index))

        if slab.round_count:
            for_range(ir, "0", slab.round_count, 1, copy_round)
        else:
            copy_round(None)

    def _slab_pointers(
        self, unit: GemmUnit, slab: PackedSlab, index: str | None
    ) -> tuple[str, str]:
        """Return pointers to a slab in both operands, at an index of the other contracted axes."""
        ir, pointers = self.ir, [unit.x1, unit.x2]
        if index is not None:
            pointers = stack_pointers(
                ir, int_op(ir, "add", slab.first_round, index), self.contracted_axes, pointers
            )
        x1, x2 = pointers
        source = strided_ptr(ir, x2, slab.first_k, unit.strides[2])
        return strided_ptr(ir, x1, slab.first_k, unit.strides[1]), source

    def _panel_pointer(self, slab: PackedSlab, index: str | None) -> str:
        """Return the pointer to the packed rows at an index of the other contracted axes."""
        if index is None:
            return self.panel_scratch
        rows = int_op(self.ir, "mul", slab.k_count, index)
        return strided_ptr(self.ir, self.panel_scratch, rows, self.tile.row_bytes)

    def _emit_tiles(self, unit: GemmUnit, slab: PackedSlab) -> None:
        """Loop over the tiles of rows of a block with one slab."""
        ir, tile = self.ir, self.tile
        last_tile_row = int_op(ir, "sub", unit.m, tile.rows)

        def emit_tile(row: str) -> None:
            begin = int_op(ir, "add", unit.first_row, row)
            tile_row = int_min(ir, begin, last_tile_row)
            sums_pointer = strided_ptr(
                ir, self.sum_scratch, row, tile.row_bytes * self.arithmetic.components
            )
            initial = self._initial_sums(sums_pointer, slab.is_first)
            if self.kernel.addend == "row":
                if_then(ir, slab.is_last, lambda: self._prefetch_addend(unit, tile_row))
            sums = self._add_slab(unit, slab, tile_row, initial)

            def store_sums() -> None:
                for i, value in enumerate(sums):
                    self.packed_panel.store_packet(
                        value, offset_ptr(ir, sums_pointer, i * self.packet_bytes)
                    )

            if_else(
                ir, slab.is_last, lambda: self._store_tile(unit, tile_row, begin, sums), store_sums
            )

        for_range(ir, self.first_tile(unit), unit.rows, tile.rows, emit_tile)

    def _add_slab(
        self, unit: GemmUnit, slab: PackedSlab, row: str, initial: list[str]
    ) -> list[str]:
        """Add the products of a slab to the sums of a tile, over the other contracted axes."""
        ir = self.ir

        def add_round(index: str | None, sums: list[str]) -> list[str]:
            x1, source = self._slab_pointers(unit, slab, index)
            copied_panel, stride = self._panel_pointer(slab, index), unit.strides[2]
            panel = ir.value(f"select i1 {slab.in_place}, ptr {source}, ptr {copied_panel}")
            step = ir.value(f"select i1 {slab.in_place}, i64 {stride}, i64 {self.tile.row_bytes}")
            corner = strided_ptr(ir, x1, row, unit.strides[0])
            return self.multiply_slab(
                unit, TileOperands(row, slab.first_k, slab.k_count, corner, panel, step), sums
            )

        if not slab.round_count:
            return add_round(None, initial)

        def next_round(index: str, *sums: str) -> Sequence[str]:
            return [int_op(ir, "add", index, 1), *add_round(index, list(sums))]

        carried = [("i64", "0"), *((self.packet, value) for value in initial)]
        return carry_loop(ir, slab.round_count, carried, next_round)[1:]

    def first_tile(self, _unit: GemmUnit) -> str:
        """Return the first row of the first tile of a block."""
        return "0"

    def _prefetch_addend(self, unit: GemmUnit, row: str) -> None:
        """Prefetch the addend of a tile while the tile is summed."""
        ir, tile = self.ir, self.tile
        line = strided_ptr(ir, unit.x3, row, unit.strides[4])
        for _ in range(tile.rows):
            for offset in range(
                0, tile.packets * tile.lanes * self.arithmetic.scalar_dtype.itemsize, 64
            ):
                arguments = [("ptr", offset_ptr(ir, line, offset)), ("i32", "0"), ("i32", "3")]
                ir.intrinsic("llvm.prefetch.p0", "void", [*arguments, ("i32", "1")])
            line = offset_ptr(ir, line, unit.strides[4])

    def _initial_sums(self, sums_pointer: str, is_first: str) -> list[str]:
        """Return the initial sums of a tile: zero, or the sums after the previous slab."""
        ir, tile = self.ir, self.tile
        zero = zeros(self.arithmetic.sum_dtype, tile.lanes)
        values = []
        for i in range(tile.rows * tile.packets * self.arithmetic.components):
            pointer = offset_ptr(ir, sums_pointer, i * self.packet_bytes)
            stored = ir.value(f"load {self.packet}, ptr {pointer}, align {self.alignment}")
            selected = f"select i1 {is_first}, {self.packet} {zero}, {self.packet} {stored}"
            values.append(ir.value(selected))
        return values

    def multiply_slab(self, unit: GemmUnit, operands: TileOperands, sums: list[str]) -> list[str]:
        """Add the products of a slab to the sums of a tile."""
        ir, tile, arithmetic = self.ir, self.tile, self.arithmetic
        strides = unit.strides
        # Every third row has a pointer; the two after it are at one and two strides.
        double_stride = int_op(ir, "shl", strides[0], 1)
        triple_stride = int_op(ir, "add", double_stride, strides[0])
        leaders = [operands.x1_pointer]
        for _ in range(1, -(-tile.rows // 3)):
            leaders.append(offset_ptr(ir, leaders[-1], triple_stride))

        def multiply_row(panel_row: str, *carried: str) -> Sequence[str]:
            pointers, totals = carried[: len(leaders)], list(carried[len(leaders) :])
            column_pointers = [
                offset_ptr(ir, panel_row, i * self.packet_bytes) for i in range(tile.packets)
            ]
            align = arithmetic.sum_dtype.itemsize
            columns = [
                ir.value(f"load {self.packet}, ptr {p}, align {align}") for p in column_pointers
            ]
            index = 0
            for row in range(tile.rows):
                element = offset_ptr(
                    ir, pointers[row // 3], ("0", strides[0], double_stride)[row % 3]
                )
                factors = arithmetic.broadcast_factors(ir, element, tile.lanes)
                for column, factor in product(columns, factors):
                    totals[index] = arithmetic.multiply_add(
                        ir, totals[index], factor, column, tile.lanes
                    )
                    index += 1
            next_pointers = [offset_ptr(ir, pointer, strides[1]) for pointer in pointers]
            return [offset_ptr(ir, panel_row, operands.x2_row_stride), *next_pointers, *totals]

        initial = [("ptr", pointer) for pointer in (operands.x2_pointer, *leaders)]
        initial += [(self.packet, value) for value in sums]
        return carry_loop(ir, operands.k_count, initial, multiply_row)[1 + len(leaders) :]

    def _store_tile(self, unit: GemmUnit, row: str, begin: str, sums: list[str]) -> None:
        """Store the sums of a tile: rows of full packets, or masked rows.

        With an addend, rows before `begin` were stored by the tile before and are skipped.
        """
        begin = self.first_stored(unit, begin)
        ir, arithmetic = self.ir, self.arithmetic
        row_bytes = int_op(ir, "mul", unit.n, arithmetic.dtype.itemsize)
        corner = strided_ptr(ir, unit.result, row, row_bytes)
        has_addend = bool(self.kernel.addend)
        addend_corner = strided_ptr(ir, unit.x3, row, unit.strides[4]) if has_addend else corner
        alpha = self._load_scalar(0) if self.kernel.scaled else []
        beta = self._load_scalar(16) if has_addend else []
        packets = [
            self._finish_packet(accumulators, alpha)
            for accumulators in batched(sums, arithmetic.components)
        ]

        def store_rows(masked: bool) -> None:
            target, addend = corner, addend_corner
            for number, line in enumerate(batched(packets, self.tile.packets)):
                write = partial(self._store_row, unit, line, target, (addend, beta), masked)
                if self.stores_once and self.tile.rows > 1:
                    row_index = int_op(ir, "add", row, number)
                    if_then(ir, ir.value(f"icmp sge i64 {row_index}, {begin}"), write)
                else:
                    write()
                target = offset_ptr(ir, target, row_bytes)
                addend = offset_ptr(ir, addend, unit.strides[4]) if has_addend else addend

        if_else(ir, unit.has_all_columns, lambda: store_rows(False), lambda: store_rows(True))

    @property
    def stores_once(self) -> bool:
        """Whether each row must be stored only once."""
        return bool(self.kernel.addend)

    def first_stored(self, _unit: GemmUnit, begin: str) -> str:
        """Return the first row to store of a tile that begins at `begin`."""
        return begin

    def _finish_packet(self, sums: Sequence[str], alpha: Sequence[str]) -> str:
        """Combine the accumulators into a packet, conjugated and scaled."""
        ir, lanes, kernel = self.ir, self.tile.lanes, self.kernel
        if kernel.second_conjugated:
            sums = [self.arithmetic.conjugate(ir, value, lanes) for value in sums]
        packet = self.arithmetic.combine_components(ir, sums, lanes, kernel.conjugated)
        return self.arithmetic.scale(ir, packet, alpha, lanes) if alpha else packet

    def _store_row(
        self,
        unit: GemmUnit,
        line: Sequence[str],
        target: str,
        addend: tuple[str, Sequence[str]],
        masked: bool,
    ) -> None:
        """Store a row of a tile plus its addend: a pointer, and beta if there is one."""
        ir, tile, arithmetic = self.ir, self.tile, self.arithmetic
        addend_pointer, beta = addend
        via_scratch = masked and not arithmetic.has_masks
        gathers = self.kernel.addend == "any"
        if beta and (via_scratch or gathers):
            self._copy_row_end(unit, addend_pointer, self.row_end, self._addend_step)
            addend_pointer = self.row_end
        for i, value in enumerate(line):
            offset = i * tile.lanes * arithmetic.scalar_dtype.itemsize
            pointer = offset_ptr(ir, self.row_end if via_scratch else target, offset)
            mask = unit.masks[i] if masked and arithmetic.has_masks else None
            if beta:
                source = offset_ptr(ir, addend_pointer, offset)
                loaded = arithmetic.load(ir, source, tile.lanes, None if gathers else mask)
                loaded = arithmetic.scale(ir, loaded, beta, tile.lanes)
                value = arithmetic.add(ir, value, loaded, tile.lanes)
            arithmetic.store(ir, value, pointer, tile.lanes, mask)
        if via_scratch:
            self._copy_row_end(unit, self.row_end, target, arithmetic.dtype.itemsize)

    def _copy_row_end(self, unit: GemmUnit, source: str, target: str, step: str | int) -> None:
        """Copy the elements of a row up to the last column, `step` bytes apart in the source."""
        ir, arithmetic = self.ir, self.arithmetic
        scalar, itemsize = llvm_type(arithmetic.scalar_dtype, 1), arithmetic.scalar_dtype.itemsize

        def copy_element(index: str) -> None:
            source_pointer = strided_ptr(ir, source, index, step)
            target_pointer = strided_ptr(ir, target, index, arithmetic.dtype.itemsize)
            for offset in range(0, arithmetic.dtype.itemsize, itemsize):
                pointer = offset_ptr(ir, source_pointer, offset)
                value = ir.value(f"load {scalar}, ptr {pointer}, align 1")
                pointer = offset_ptr(ir, target_pointer, offset)
                ir.line(f"store {scalar} {value}, ptr {pointer}, align 1")

        for_range(ir, "0", unit.columns, 1, copy_element)


def batched(values: Sequence[str], count: int) -> list[Sequence[str]]:
    """Split a sequence into parts of `count`."""
    return [values[i : i + count] for i in range(0, len(values), count)]
