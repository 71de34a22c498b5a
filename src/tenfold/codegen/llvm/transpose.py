"""Tiled transpose: maps whose operand is contiguous along the axis before the packet axis.

Input: a FunctionEmitter. Output: lines. A unit of work is a tile: some rows and columns at one
index of the outer axes. The transposed operand is loaded as packets along the rows, 8 x 8 or 16 x
16 elements at a time, transposed in registers and stored in scratch memory. That memory has the
size of the tile, which stays in the cache. Then the body runs along the columns as in any map, and
reads the operand from there.

At an edge a block begins earlier, so that it is full: some elements are transposed twice, and none
is masked. Both axes are at least a block long, which the plan guarantees.

>>> ir = SimdEmitter()
>>> transpose_block(ir, ["%a", "%b"], "i32", 1)
['%v0', '%v1']
>>> print(ir)
  %v0 = shufflevector <2 x i32> %a, <2 x i32> %b, <2 x i32> <i32 0, i32 2>
  %v1 = shufflevector <2 x i32> %a, <2 x i32> %b, <2 x i32> <i32 1, i32 3>
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from tenfold.codegen.llvm import reduce_inner
from tenfold.codegen.llvm.function_emitter import FunctionEmitter
from tenfold.codegen.llvm.loop_emitter import for_range, int_min, int_op
from tenfold.codegen.llvm.simd_emitter import SimdEmitter
from tenfold.core.loop_ir import Kernel


class AxisRange(NamedTuple):
    """Part of an axis: its begin and end, and the begin of its transposed blocks."""

    begin: str
    end: str
    tile_begin: str


def unit(emitter: FunctionEmitter, number: str) -> None:
    """A unit of work is a tile."""
    kernel, ir = emitter.kernel, emitter.ir
    rows_axis, columns_axis = kernel.axes - 2, kernel.axes - 1
    height, width = kernel.tile
    column_tiles = _part_count(emitter, columns_axis, width)
    row_tiles = _part_count(emitter, rows_axis, height)
    remaining = int_op(ir, "udiv", number, row_tiles)
    rows = _range(emitter, rows_axis, height, int_op(ir, "urem", number, row_tiles))
    columns = _range(emitter, columns_axis, width, int_op(ir, "urem", remaining, column_tiles))
    emitter.set_indices(int_op(ir, "udiv", remaining, column_tiles), rows_axis)
    outer = list(emitter.pointers)
    for slot, operand_number in enumerate(kernel.transposed_operands):
        _transpose_tile(emitter, operand_number, slot, rows, columns)

    def emit_row(index: str) -> None:
        emitter.indices[rows_axis] = index
        emitter.pointers = [
            _row_pointer(emitter, kernel, operand_index, pointer, index, (rows, columns))
            for operand_index, pointer in enumerate(outer)
        ]
        reduce_inner.begin_row(emitter)
        reduce_inner.map_elements(emitter, 0, columns.begin, columns.end)

    emitter.kernel = _transposed_kernel(kernel)
    for_range(ir, rows.begin, rows.end, 1, emit_row)
    emitter.kernel = kernel


def _transposed_kernel(kernel: Kernel) -> Kernel:
    """Return the kernel of the body: transposed operands are contiguous in scratch memory."""
    operands = tuple(
        operand._replace(steps=operand.steps[:-1] + "1")
        if number in kernel.transposed_operands
        else operand
        for number, operand in enumerate(kernel.operands)
    )
    return replace(kernel, operands=operands)


def _part_count(emitter: FunctionEmitter, axis: int, size: int) -> str:
    rounded = int_op(emitter.ir, "add", emitter.length(axis), size - 1)
    return int_op(emitter.ir, "udiv", rounded, size)


def _range(emitter: FunctionEmitter, axis: int, size: int, number: str) -> AxisRange:
    ir, length = emitter.ir, emitter.length(axis)
    begin = int_op(ir, "mul", number, size)
    end = int_min(ir, int_op(ir, "add", begin, size), length)
    last_begin = int_op(ir, "sub", length, _largest_block(emitter.kernel))
    return AxisRange(begin, end, int_min(ir, begin, last_begin))


def _largest_block(kernel: Kernel) -> int:
    return max(
        block_size(kernel.operands[number].dtype.itemsize) for number in kernel.transposed_operands
    )


def block_size(itemsize: int) -> int:
    """Return the rows and columns of a block in registers: a row fills one at most."""
    return min(16, 64 // itemsize)


def _transpose_tile(
    emitter: FunctionEmitter, number: int, slot: int, rows: AxisRange, columns: AxisRange
) -> None:
    """Transpose the tile of an operand into scratch memory."""
    kernel, ir = emitter.kernel, emitter.ir
    size = kernel.operands[number].dtype.itemsize
    block = block_size(size)
    scalar, scalars = (f"i{8 * size}", 1) if size <= 8 else ("i64", size // 8)
    type_ = f"<{block * scalars} x {scalar}>"
    stride = emitter.size["stride", number, kernel.axes - 1]
    pitch = kernel.tile[1] * size
    begin = kernel.tile_bytes * slot
    row_latest = int_op(ir, "sub", emitter.length(kernel.axes - 2), block)
    column_latest = int_op(ir, "sub", emitter.length(kernel.axes - 1), block)

    def transpose_at(column: str, row_: str) -> None:
        column, row_ = int_min(ir, column, column_latest), int_min(ir, row_, row_latest)
        offset = int_op(ir, "mul", column, stride)
        offset = int_op(ir, "add", offset, int_op(ir, "mul", row_, size))
        packets = []
        for i in range(block):
            byte_offset = int_op(ir, "add", offset, int_op(ir, "mul", stride, i))
            source = ir.value(
                f"getelementptr i8, ptr {emitter.pointers[number]}, i64 {byte_offset}"
            )
            packets.append(ir.value(f"load {type_}, ptr {source}, align {min(size, 8)}"))
            _prefetch(ir, source, kernel.tile[0] * size)
        row_offset = int_op(ir, "mul", int_op(ir, "sub", row_, rows.tile_begin), pitch)
        column_offset = int_op(ir, "mul", int_op(ir, "sub", column, columns.tile_begin), size)
        target = int_op(ir, "add", int_op(ir, "add", row_offset, column_offset), begin)
        for i, packet in enumerate(transpose_block(ir, packets, scalar, scalars)):
            at = int_op(ir, "add", target, i * pitch)
            to = ir.value(f"getelementptr i8, ptr %scratch, i64 {at}")
            ir.line(f"store {type_} {packet}, ptr {to}, align {min(size, 8)}")

    def transpose_column(column: str) -> None:
        for_range(ir, rows.tile_begin, rows.end, block, lambda row_: transpose_at(column, row_))

    for_range(ir, columns.tile_begin, columns.end, block, transpose_column)


def _prefetch(ir: SimdEmitter, pointer: str, bytes_: int) -> None:
    """Prefetch the next tile: its rows are too short for the hardware prefetcher."""
    ahead = ir.value(f"getelementptr i8, ptr {pointer}, i64 {bytes_}")
    read_access, locality, data_cache = ("i32", "0"), ("i32", "2"), ("i32", "1")
    ir.intrinsic("llvm.prefetch.p0", "void", [("ptr", ahead), read_access, locality, data_cache])


def transpose_block(
    ir: SimdEmitter, packets: Sequence[str], scalar: str, scalars: int
) -> list[str]:
    """Transpose a block by shuffles of pairs at distances 1, 2, 4, ... (Eklundh, IEEE
    Trans. Computers C-21, 1972, p. 801).

    `scalars` is the number of scalars of an element.
    """
    block = len(packets)
    type_ = f"<{block * scalars} x {scalar}>"
    rows, distance = list(packets), 1
    while distance < block:
        for i in range(block):
            if i & distance:
                continue
            first, second = rows[i], rows[i + distance]
            low = [c if not c & distance else block + c - distance for c in range(block)]
            high = [c + distance if not c & distance else block + c for c in range(block)]
            for index, lanes in ((i, low), (i + distance, high)):
                order = ", ".join(f"i32 {c * scalars + p}" for c in lanes for p in range(scalars))
                rows[index] = ir.value(
                    f"shufflevector {type_} {first}, {type_} {second}, "
                    f"<{block * scalars} x i32> <{order}>"
                )
        distance *= 2
    return rows


def _row_pointer(
    emitter: FunctionEmitter,
    kernel: Kernel,
    number: int,
    pointer: str,
    index: str,
    tile: tuple[AxisRange, AxisRange],
) -> str:
    """Return the pointer to an operand's element at position 0 of a row of the tile."""
    ir = emitter.ir
    rows, columns = tile
    if number in kernel.transposed_operands:
        size = kernel.operands[number].dtype.itemsize
        begin = kernel.tile_bytes * kernel.transposed_operands.index(number)
        row_offset = int_op(ir, "sub", index, rows.tile_begin)
        row_offset = int_op(ir, "mul", row_offset, kernel.tile[1] * size)
        column_offset = int_op(ir, "mul", columns.tile_begin, size)
        offset = int_op(ir, "add", int_op(ir, "sub", row_offset, column_offset), begin)
        return ir.value(f"getelementptr i8, ptr %scratch, i64 {offset}")
    if kernel.operands[number].steps[-2] != "s":
        return pointer
    byte_offset = int_op(ir, "mul", index, emitter.size["stride", number, kernel.axes - 2])
    return ir.value(f"getelementptr i8, ptr {pointer}, i64 {byte_offset}")
