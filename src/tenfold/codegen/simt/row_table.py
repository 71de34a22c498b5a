"""Row table: kernels of the rows of a batch, which they find by a table among their arguments.

Input: what is done with rows of a dtype. Output: text in the common words of `words.py`. So a batch
is stacked by one launch, wherever the arrays of its members are, and without a copy from the host.

>>> from tenfold.dtypes import FLOAT32
>>> print(RowTable(RowForm.COPY, FLOAT32))
copy of rows of float32
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from tenfold.codegen.llvm.loop_emitter import (
    Accumulator,
    FoldCounter,
    combine_partials,
    for_range,
    for_range_carrying,
    if_then,
    int_op,
    read_packet,
    write_packet,
)
from tenfold.codegen.llvm.module_emitter import sections_of
from tenfold.codegen.llvm.simd_emitter import Packet, SimdEmitter
from tenfold.codegen.simt.thread_emitter import THREAD_NUMBER
from tenfold.codegen.simt.words import HOST_WORDS, Words, substitute
from tenfold.dtypes import INT64

TABLE_AXES = 16
"""Axes of a row, at most."""
ARGUMENT_WORDS = 512
"""Words of the arguments of a kernel: 4 KiB on each device of NVIDIA."""
TABLE_SIZES = 3 + 2 * TABLE_AXES
"""Of a copy: threads, elements of a row, axes; length and stride in bytes of each, the innermost
first. Of a sum: threads, leaves, and rows that are added to their sum one by one.
"""
TABLE_ROWS = ARGUMENT_WORDS - TABLE_SIZES - 2
"""Rows of a launch, beside the sizes, the address of the result and the status."""


class RowForm(IntEnum):
    """What is done with rows; native code has the same numbers."""

    COPY = 0
    NUMBERS = 1
    """Stores numbers of the launch."""
    SUM = 2
    """Adds rows pairwise, as `run_fold` in native/engine/batch_rows.cpp."""


@dataclass(frozen=True)
class RowTable:
    """A kernel of rows; the elements of a complex dtype are its parts."""

    form: RowForm
    dtype: np.dtype

    def __str__(self) -> str:
        return f"{self.form.name.lower()} of rows of {self.dtype}"

    def text(self) -> str:
        """Return its module for the emulated device."""
        return self.thread_text(HOST_WORDS)

    def thread_text(self, words: Words) -> str:
        """Return its module in the words of a target."""
        ir = SimdEmitter()
        emit = {RowForm.COPY: _copy, RowForm.NUMBERS: _number, RowForm.SUM: _sum}[self.form]
        has_work = ir.value(f"icmp slt i64 {THREAD_NUMBER}, {_word(ir, 'sizes', 0)}")
        if_then(ir, has_work, lambda: emit(ir, self.dtype))
        operands = 1 if self.form is RowForm.NUMBERS else 1 + TABLE_ROWS
        head = f"thread kernel operands {operands} sizes {operands}"
        head += f" scalars {operands + TABLE_SIZES} words {ARGUMENT_WORDS} shared 1 alone:"
        entry = [f"  {line}" for line in ir.entry]
        function = "\n".join([head, *entry, *ir.lines, "  ret void", "}"])
        return substitute("\n".join([f"; {self}", *sections_of(ir, [function]), ""]), words)


def _word(ir: SimdEmitter, table: str, number: str | int) -> str:
    slot = ir.value(f"getelementptr i64, ptr %{table}, i64 {number}")
    return ir.value(f"load i64, ptr {slot}, align 8")


def _row(ir: SimdEmitter, number: str | int) -> str:
    """Return the pointer to a row; row 0 is the result."""
    slot = ir.value(f"getelementptr i64, ptr %buffers, i64 {number}")
    return ir.value(f"load pointer, ptr {slot}")


def _element(ir: SimdEmitter, row: str | int, dtype: np.dtype) -> str:
    """Return the pointer to the element of a thread."""
    offset = int_op(ir, "mul", THREAD_NUMBER, dtype.itemsize)
    return ir.value(f"getelementptr i8, ptr {_row(ir, row)}, i64 {offset}")


def _copy(ir: SimdEmitter, dtype: np.dtype) -> None:
    elements, axes = _word(ir, "sizes", 1), _word(ir, "sizes", 2)
    number = int_op(ir, "udiv", THREAD_NUMBER, elements)
    row = _row(ir, int_op(ir, "add", number, 1))

    def step(axis: str, carried: Accumulator) -> Accumulator:
        index, offset = (packet.text for packet in carried)
        pair = int_op(ir, "mul", axis, 2)
        length, stride = (_word(ir, "sizes", int_op(ir, "add", pair, 3 + i)) for i in range(2))
        distance = int_op(ir, "mul", int_op(ir, "urem", index, length), stride)
        rest = int_op(ir, "udiv", index, length)
        return _packets([rest, int_op(ir, "add", offset, distance)])

    first = _packets([int_op(ir, "urem", THREAD_NUMBER, elements), "0"])
    _, offset = for_range_carrying(ir, "0", axes, first, step)
    place = ir.value(f"getelementptr i8, ptr {row}, i64 {offset.text}")
    write_packet(ir, _element(ir, 0, dtype), read_packet(ir, place, dtype, 1), 1)


def _packets(numbers: Sequence[str]) -> Accumulator:
    return tuple(Packet(number, INT64, 1) for number in numbers)


def _number(ir: SimdEmitter, dtype: np.dtype) -> None:
    place = ir.value(f"getelementptr i64, ptr %scalars, i64 {THREAD_NUMBER}")
    write_packet(ir, _element(ir, 0, dtype), read_packet(ir, place, dtype, 1), 1)


def _sum(ir: SimdEmitter, dtype: np.dtype) -> None:
    leaves, firsts = _word(ir, "sizes", 1), _word(ir, "sizes", 2)
    counter = FoldCounter(ir, "add", [dtype], 1, ir.alloca(8 * TABLE_ROWS.bit_length()), 8)

    def load(number: str) -> Accumulator:
        place = _element(ir, int_op(ir, "add", number, 1), dtype)
        return (read_packet(ir, place, dtype, 1),)

    def insert(leaf: str) -> None:
        counter.insert(load(int_op(ir, "add", firsts, leaf)), leaf)

    def add(step: str, total: Accumulator) -> Accumulator:
        last = int_op(ir, "sub", int_op(ir, "sub", firsts, step), 1)
        return combine_partials(ir, "add", load(last), total, in_order=True)

    for_range(ir, "0", leaves, 1, insert)
    (total,) = for_range_carrying(ir, "0", firsts, counter.flush(leaves), add)
    write_packet(ir, _element(ir, 0, dtype), total, 1)
