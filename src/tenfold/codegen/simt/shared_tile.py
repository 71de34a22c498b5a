"""Shared tiles: maps whose operands are contiguous along the axis before the last one.

Input: a ThreadEmitter. Output: lines. A block computes a tile of 32 rows and columns. Its warps
read the transposed operands along their contiguous axis into shared memory. There a row is one
element longer than the tile, so that no two lanes of a column use one bank. After a barrier each
warp computes rows of the tile, along the last axis.
"""

from __future__ import annotations

from tenfold.codegen.llvm.loop_emitter import for_range, if_then, int_op
from tenfold.codegen.simt.thread_emitter import THREAD_NUMBER, ThreadEmitter
from tenfold.codegen.simt.warp_reduce import FoldPass
from tenfold.codegen.simt.words import BLOCK_THREADS, WARP
from tenfold.core.loop_ir import SHARED_PITCH
from tenfold.dtypes import REAL_DTYPES

WARPS = BLOCK_THREADS // WARP


def tile(emitter: ThreadEmitter) -> None:
    """A block computes a tile."""
    ir, last = emitter.ir, emitter.kernel.axes - 1
    lane, warp = emitter.lane(), int_op(ir, "udiv", THREAD_NUMBER, WARP)
    warp = int_op(ir, "and", warp, WARPS - 1)
    number = int_op(ir, "udiv", THREAD_NUMBER, BLOCK_THREADS)
    begins = []
    for axis in (last - 1, last):
        tiles = int_op(ir, "lshr", int_op(ir, "add", emitter.length(axis), WARP - 1), 5)
        begins.append(int_op(ir, "shl", int_op(ir, "urem", number, tiles), 5))
        number = int_op(ir, "udiv", number, tiles)
    emitter.set_indices(number, last - 1)
    outer = [*emitter.pointers]

    def at(row: str, column: str) -> tuple[str, str, str]:
        row, column = int_op(ir, "add", begins[0], row), int_op(ir, "add", begins[1], column)
        inside = [
            ir.value(f"icmp slt i64 {index}, {emitter.length(axis)}")
            for index, axis in ((row, last - 1), (column, last))
        ]
        return row, column, ir.value(f"and i1 {inside[0]}, {inside[1]}")

    def stage(index: str) -> None:
        row, column, is_inside = at(lane, index)
        if_then(
            ir,
            is_inside,
            lambda: _stage(emitter, outer, row, column, _shared(emitter, index, lane)),
        )

    def compute(index: str) -> None:
        row, column, is_inside = at(index, lane)

        def element() -> None:
            emitter.staged = _shared(emitter, lane, index)
            emitter.set_index(last - 1, row)
            emitter.begin(column)
            FoldPass(emitter, 0).element(column)

        if_then(ir, is_inside, element)

    for_range(ir, warp, str(WARP), WARPS, stage)
    ir.lines.append("  barrier")
    for_range(ir, warp, str(WARP), WARPS, compute)


def _shared(emitter: ThreadEmitter, column: str, row: str) -> dict[int, str]:
    """Return the pointers to an element of each transposed operand in shared memory."""
    ir, begin = emitter.ir, 0
    element = int_op(ir, "add", int_op(ir, "mul", column, SHARED_PITCH), row)
    pointers = {}
    for number in emitter.kernel.staged_operands:
        size = emitter.kernel.operands[number].dtype.itemsize
        offset = int_op(ir, "add", int_op(ir, "mul", element, size), begin)
        pointers[number] = ir.value(f"getelementptr i8, ptr %scratch, i64 {offset}")
        begin += WARP * SHARED_PITCH * size
    return pointers


def _stage(
    emitter: ThreadEmitter, outer: list[str], row: str, column: str, shared: dict[int, str]
) -> None:
    """Copy an element of each transposed operand to shared memory, part by part."""
    ir, kernel = emitter.ir, emitter.kernel
    for number, target in shared.items():
        dtype = kernel.operands[number].dtype
        stride = emitter.size["stride", number, kernel.axes - 1]
        offset = int_op(ir, "mul", column, stride)
        offset = int_op(ir, "add", offset, int_op(ir, "mul", row, dtype.itemsize))
        source = ir.value(f"getelementptr i8, ptr {outer[number]}, i64 {offset}")
        size = REAL_DTYPES.get(dtype, dtype).itemsize
        for part in range(dtype.itemsize // size):
            from_, to = (
                ir.value(f"getelementptr i8, ptr {pointer}, i64 {part * size}")
                for pointer in (source, target)
            )
            value = ir.value(f"load i{8 * size}, ptr {from_}, align {size}")
            ir.line(f"store i{8 * size} {value}, ptr {to}, align {size}")
