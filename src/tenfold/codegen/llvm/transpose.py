"""Tiled transpose: maps whose operand is contiguous along the axis before the packet axis.

Takes a FunctionEmitter, hands on lines. A unit of work is a tile: some rows and columns at one
index of the outer axes. The transposed operand is loaded as packets along the rows, 8 x 8 or 16 x
16 elements at a time, transposed in registers and stored in scratch memory. That memory has the
size of the tile, which stays in the cache. Then the body runs along the columns as in any map,
reading it from there.

At an edge a block begins earlier, so that it is whole: some elements are transposed twice, and none
is masked. Both axes are at least a block long, which the plan guarantees.

>>> text = SimdEmitter()
>>> turned(text, ["%a", "%b"], "i32", 1)
['%v0', '%v1']
>>> print(text)
  %v0 = shufflevector <2 x i32> %a, <2 x i32> %b, <2 x i32> <i32 0, i32 2>
  %v1 = shufflevector <2 x i32> %a, <2 x i32> %b, <2 x i32> <i32 1, i32 3>
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from tenfold.codegen.llvm import reduce_inner
from tenfold.codegen.llvm.function_emitter import FunctionEmitter
from tenfold.codegen.llvm.loop_emitter import counted, integer, smaller
from tenfold.codegen.llvm.simd_emitter import SimdEmitter
from tenfold.core.loop_ir import Kernel


class AxisRange(NamedTuple):
    """Part of an axis: its begin and end, and from where on it is turned."""

    begin: str
    end: str
    first: str


def unit(frame: FunctionEmitter, number: str) -> None:
    """A unit of work is a tile."""
    kernel, text = frame.kernel, frame.text
    rows_axis, columns_axis = kernel.axes - 2, kernel.axes - 1
    height, width = kernel.tile
    columns_parts = _parts(frame, columns_axis, width)
    rows_parts = _parts(frame, rows_axis, height)
    rest = integer(text, "udiv", number, rows_parts)
    rows = _range(frame, rows_axis, height, integer(text, "urem", number, rows_parts))
    columns = _range(frame, columns_axis, width, integer(text, "urem", rest, columns_parts))
    frame.stand_at(integer(text, "udiv", rest, columns_parts), rows_axis)
    outer = list(frame.pointers)
    for place, operand in enumerate(kernel.across):
        _turn(frame, operand, place, rows, columns)

    def inside(index: str) -> None:
        frame.indices[rows_axis] = index
        frame.pointers = [
            _read_at(frame, kernel, each, pointer, index, (rows, columns))
            for each, pointer in enumerate(outer)
        ]
        reduce_inner.begin(frame)
        reduce_inner.plain(frame, 0, columns.begin, columns.end)

    frame.kernel = _as_turned(kernel)
    counted(text, rows.begin, rows.end, 1, inside)
    frame.kernel = kernel


def _as_turned(kernel: Kernel) -> Kernel:
    """Return the kernel as the body sees it: what lies across is contiguous in scratch memory."""
    operands = tuple(
        replace(operand, steps=operand.steps[:-1] + "1") if number in kernel.across else operand
        for number, operand in enumerate(kernel.operands)
    )
    return replace(kernel, operands=operands)


def _parts(frame: FunctionEmitter, axis: int, size: int) -> str:
    more = integer(frame.text, "add", frame.length(axis), size - 1)
    return integer(frame.text, "udiv", more, size)


def _range(frame: FunctionEmitter, axis: int, size: int, number: str) -> AxisRange:
    text, length = frame.text, frame.length(axis)
    begin = integer(text, "mul", number, size)
    end = smaller(text, integer(text, "add", begin, size), length)
    latest = integer(text, "sub", length, _most(frame.kernel))
    return AxisRange(begin, end, smaller(text, begin, latest))


def _most(kernel: Kernel) -> int:
    return max(block_of(kernel.operands[number].dtype.itemsize) for number in kernel.across)


def block_of(itemsize: int) -> int:
    """Return how many rows and columns are turned in registers: a row fills one at most."""
    return min(16, 64 // itemsize)


def _turn(
    frame: FunctionEmitter, number: int, place: int, rows: AxisRange, columns: AxisRange
) -> None:
    """Put the tile of an operand, turned, into scratch memory."""
    kernel, text = frame.kernel, frame.text
    size = kernel.operands[number].dtype.itemsize
    block = block_of(size)
    scalar, per = (f"i{8 * size}", 1) if size <= 8 else ("i64", size // 8)
    type_ = f"<{block * per} x {scalar}>"
    stride = frame.size["stride", number, kernel.axes - 1]
    pitch = kernel.tile[1] * size
    begin = kernel.tile_bytes * place
    row_latest = integer(text, "sub", frame.length(kernel.axes - 2), block)
    column_latest = integer(text, "sub", frame.length(kernel.axes - 1), block)

    def inside(column: str, row_: str) -> None:
        column, row_ = smaller(text, column, column_latest), smaller(text, row_, row_latest)
        offset = integer(text, "mul", column, stride)
        offset = integer(text, "add", offset, integer(text, "mul", row_, size))
        found = []
        for i in range(block):
            jump = integer(text, "add", offset, integer(text, "mul", stride, i))
            source = text.value(f"getelementptr i8, ptr {frame.pointers[number]}, i64 {jump}")
            found.append(text.value(f"load {type_}, ptr {source}, align {min(size, 8)}"))
            _fetch_ahead(text, source, kernel.tile[0] * size)
        down = integer(text, "mul", integer(text, "sub", row_, rows.first), pitch)
        right = integer(text, "mul", integer(text, "sub", column, columns.first), size)
        target = integer(text, "add", integer(text, "add", down, right), begin)
        for i, packet in enumerate(turned(text, found, scalar, per)):
            at = integer(text, "add", target, i * pitch)
            to = text.value(f"getelementptr i8, ptr %scratch, i64 {at}")
            text.line(f"store {type_} {packet}, ptr {to}, align {min(size, 8)}")

    def along(column: str) -> None:
        counted(text, rows.first, rows.end, block, lambda row_: inside(column, row_))

    counted(text, columns.first, columns.end, block, along)


def _fetch_ahead(text: SimdEmitter, pointer: str, bytes_: int) -> None:
    """Ask for what the next tile reads: its rows are too short for the processor to foresee it."""
    ahead = text.value(f"getelementptr i8, ptr {pointer}, i64 {bytes_}")
    reading, kept, data = ("i32", "0"), ("i32", "2"), ("i32", "1")
    text.intrinsic("llvm.prefetch.p0", "void", [("ptr", ahead), reading, kept, data])


def turned(text: SimdEmitter, packets: Sequence[str], scalar: str, per: int) -> list[str]:
    """Turn a block: from its packets along one axis to those along the other, by shuffles of pairs
    at distances 1, 2, 4, ... (Eklundh, IEEE Trans. Computers C-21, 1972, p. 801).

    `per` scalars are one element.
    """
    block = len(packets)
    type_ = f"<{block * per} x {scalar}>"
    found, distance = list(packets), 1
    while distance < block:
        for i in range(block):
            if i & distance:
                continue
            first, second = found[i], found[i + distance]
            low = [c if not c & distance else block + c - distance for c in range(block)]
            high = [c + distance if not c & distance else block + c for c in range(block)]
            for place, picked in ((i, low), (i + distance, high)):
                order = ", ".join(f"i32 {c * per + p}" for c in picked for p in range(per))
                found[place] = text.value(
                    f"shufflevector {type_} {first}, {type_} {second}, "
                    f"<{block * per} x i32> <{order}>"
                )
        distance *= 2
    return found


def _read_at(
    frame: FunctionEmitter,
    kernel: Kernel,
    number: int,
    pointer: str,
    index: str,
    tile: tuple[AxisRange, AxisRange],
) -> str:
    """Return the pointer to an operand's element at position 0 of a row of the tile."""
    text = frame.text
    rows, columns = tile
    if number in kernel.across:
        size = kernel.operands[number].dtype.itemsize
        begin = kernel.tile_bytes * kernel.across.index(number)
        down = integer(text, "sub", index, rows.first)
        down = integer(text, "mul", down, kernel.tile[1] * size)
        back = integer(text, "mul", columns.first, size)
        offset = integer(text, "add", integer(text, "sub", down, back), begin)
        return text.value(f"getelementptr i8, ptr %scratch, i64 {offset}")
    if kernel.operands[number].steps[-2] != "s":
        return pointer
    jump = integer(text, "mul", index, frame.size["stride", number, kernel.axes - 2])
    return text.value(f"getelementptr i8, ptr {pointer}, i64 {jump}")
