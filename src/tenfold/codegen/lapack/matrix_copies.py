"""Matrix copies: converts and transposes matrices between the LAPACK routines of a call.

Input: matrices as operand words (see `Routine`), lengths and strides in bytes as numbers of the
launch. Output: LLVM text. A copy converts, and transposes between row-major and column-major;
float64 is transposed in blocks of 4 x 4.

>>> Move("m0", "w1", (FLOAT32, FLOAT64), ("n0", "n2", "n3"), ("n1", "n4", "n5")).source
'm0'
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tenfold.codegen.gemm.emitter import load_arguments, offset_ptr, strided_ptr
from tenfold.codegen.llvm.loop_emitter import for_range, if_then, int_op
from tenfold.codegen.llvm.simd_emitter import SimdEmitter
from tenfold.dtypes import COMPLEX64, COMPLEX128, DTYPES, FLOAT32, FLOAT64

INT32 = DTYPES["int32"]
SCALAR_PARTS = {
    FLOAT32: ("float", 1),
    FLOAT64: ("double", 1),
    COMPLEX64: ("float", 2),
    COMPLEX128: ("double", 2),
    INT32: ("i32", 1),
}
"""The LLVM type of the scalars of an element, and their number."""
BYTES = {"float": 4, "double": 8, "i32": 4}
BLOCK, PACKET = 4, 8
"""The rows of a transposed block, and the elements of a copied packet."""

Axis = tuple[str, str, str]
"""Length, bytes from one element to the next in the source, and in the target."""


class MatrixUnit:
    """One matrix of a library call: the emitter, and the pointers of its operand words."""

    def __init__(self, ir: SimdEmitter, first_number: int, failure_slot: str) -> None:
        self.ir, self.failure_slot = ir, failure_slot
        self.first_number = first_number
        """The index of number 0 among the sizes."""
        self.pointers = {"report": ir.alloca(4)}
        self.numbers: dict[str, str] = {}
        self.index = ""

    def begin(self, index: str) -> None:
        """Begin a matrix; the caller sets its pointers into buffers."""
        self.index = index

    def number(self, word: str) -> str:
        """Return number `n2` of the launch, or the literal number."""
        if word[0] != "n":
            return word
        return load_arguments(self.ir, "%sizes", self.first_number + int(word[1:]), 1)[0]

    def pointer(self, word: str) -> str:
        """Return the pointer of an operand word."""
        base, _, offset = word.partition("+")
        if offset:
            return offset_ptr(self.ir, self.pointer(base), self.number(offset))
        if word[0] == "w":
            return offset_ptr(self.ir, "%scratch", self.number(f"n{word[1:]}"))
        if word not in self.pointers and word[0] != "m":
            self.pointers[word] = self._store_argument(word)
        return self.pointers.get(word, "")

    def _store_argument(self, word: str) -> str:
        """Store an argument of a routine, and return its pointer."""
        slot = self.ir.alloca(16)
        if word[0] == "'":
            value = f"i8 {ord(word[1])}"
        elif word[0] == "n":
            value = f"i32 {self.ir.value(f'trunc i64 {self.number(word)} to i32')}"
        else:
            number = "1.0" if word == "one" else "0.0"
            value = f"<2 x double> <double {number}, double 0.0>"
        self.ir.line(f"store {value}, ptr {slot}")
        return slot

    def fail_if(self, condition: str) -> None:
        """Store the failure of this matrix if an i1 holds."""
        ir = self.ir
        status = int_op(ir, "add", self.index, 1)
        if_then(ir, condition, lambda: ir.line(f"store i64 {status}, ptr {self.failure_slot}"))


class Move(NamedTuple):
    """Copies a matrix, possibly to another dtype; real to complex sets the imaginary part to 0."""

    source: str
    target: str
    dtypes: tuple[np.dtype, np.dtype]
    outer: Axis
    inner: Axis
    layout: str = "any"
    """ "rows": float64, the inner axis is contiguous in both; "across": float64, the inner axis is
    contiguous in the target, the outer axis in the source; "any": other strides, slower."""

    def add(self, unit: MatrixUnit) -> None:
        """Emit the code."""
        ir, (rows, *_), (columns, *_) = unit.ir, self._outer_axis(unit), self._inner_axis(unit)
        if self.layout == "rows":
            for_range(ir, "0", rows, 1, lambda row: self._copy_packets(unit, row))
        elif self.layout == "across":
            full_rows = int_op(ir, "and", rows, -BLOCK)
            for_range(ir, "0", full_rows, BLOCK, lambda row: self._transpose_blocks(unit, row))
            for_range(
                ir, full_rows, rows, 1, lambda row: self._copy_elements(unit, row, "0", columns)
            )
        else:
            for_range(ir, "0", rows, 1, lambda row: self._copy_elements(unit, row, "0", columns))

    def _outer_axis(self, unit: MatrixUnit) -> tuple[str, str, str]:
        return unit.number(self.outer[0]), unit.number(self.outer[1]), unit.number(self.outer[2])

    def _inner_axis(self, unit: MatrixUnit) -> tuple[str, str, str]:
        return unit.number(self.inner[0]), unit.number(self.inner[1]), unit.number(self.inner[2])

    def _row_pointers(self, unit: MatrixUnit, row: str) -> tuple[str, str]:
        _, source, target = self._outer_axis(unit)
        ir = unit.ir
        return (
            strided_ptr(ir, unit.pointer(self.source), row, source),
            strided_ptr(ir, unit.pointer(self.target), row, target),
        )

    def _copy_elements(self, unit: MatrixUnit, row: str, begin: str, end: str) -> None:
        ir, (source, target) = unit.ir, self._row_pointers(unit, row)
        _, source_step, target_step = self._inner_axis(unit)
        for_range(
            ir,
            begin,
            end,
            1,
            lambda i: self._copy_element(
                ir, strided_ptr(ir, source, i, source_step), strided_ptr(ir, target, i, target_step)
            ),
        )

    def _copy_element(self, ir: SimdEmitter, source: str, target: str) -> None:
        (source_type, source_components), (target_type, target_components) = (
            SCALAR_PARTS[dtype] for dtype in self.dtypes
        )
        item_bytes = [BYTES[dtype] for dtype in (source_type, target_type)]
        for component in range(target_components):
            if component < source_components:
                pointer = offset_ptr(ir, source, component * item_bytes[0])
                value = ir.value(f"load {source_type}, ptr {pointer}, align 1")
                value = convert_scalar(ir, value, source_type, target_type)
            else:
                value = "0.0"
            pointer = offset_ptr(ir, target, component * item_bytes[1])
            ir.line(f"store {target_type} {value}, ptr {pointer}, align 1")

    def _copy_packets(self, unit: MatrixUnit, row: str) -> None:
        """Copy contiguous packets, then the remaining elements."""
        ir, (source, target) = unit.ir, self._row_pointers(unit, row)
        columns = unit.number(self.inner[0])
        full_columns = int_op(ir, "and", columns, -PACKET)

        def copy_packet(i: str) -> None:
            value = ir.value(
                f"load <{PACKET} x double>, ptr {strided_ptr(ir, source, i, 8)}, align 1"
            )
            target_pointer = strided_ptr(ir, target, i, 8)
            ir.line(f"store <{PACKET} x double> {value}, ptr {target_pointer}, align 1")

        for_range(ir, "0", full_columns, PACKET, copy_packet)
        self._copy_elements(unit, row, full_columns, columns)

    def _transpose_blocks(self, unit: MatrixUnit, row: str) -> None:
        """Transpose blocks of rows from `row` on, then copy the remaining columns."""
        ir, (source, target) = unit.ir, self._row_pointers(unit, row)
        columns, source_stride, _ = self._inner_axis(unit)
        target_stride = unit.number(self.outer[2])
        full_columns = int_op(ir, "and", columns, -BLOCK)

        def emit_block(i: str) -> None:
            block_pointer = strided_ptr(ir, source, i, source_stride)
            packets = []
            for number in range(BLOCK):
                pointer = strided_ptr(ir, block_pointer, str(number), source_stride)
                packets.append(ir.value(f"load <{BLOCK} x double>, ptr {pointer}, align 1"))
            block_pointer = strided_ptr(ir, target, i, 8)
            for number, value in enumerate(_transpose_block(ir, packets)):
                pointer = strided_ptr(ir, block_pointer, str(number), target_stride)
                ir.line(f"store <{BLOCK} x double> {value}, ptr {pointer}, align 1")

        for_range(ir, "0", full_columns, BLOCK, emit_block)
        for number in range(BLOCK):
            self._copy_elements(unit, int_op(ir, "add", row, number), full_columns, columns)


def _transpose_block(ir: SimdEmitter, rows: list[str]) -> list[str]:
    """Transpose a 4 x 4 block: exchange pairs of elements, then pairs of pairs."""

    def shuffle(x: str, y: str, order: str) -> str:
        lanes = ", ".join(f"i32 {lane}" for lane in order)
        type_ = f"<{BLOCK} x double>"
        return ir.value(f"shufflevector {type_} {x}, {type_} {y}, <{BLOCK} x i32> <{lanes}>")

    a, b, c, d = rows
    even_ab, odd_ab = shuffle(a, b, "0426"), shuffle(a, b, "1537")
    even_cd, odd_cd = shuffle(c, d, "0426"), shuffle(c, d, "1537")
    return [
        shuffle(even_ab, even_cd, "0145"),
        shuffle(odd_ab, odd_cd, "0145"),
        shuffle(even_ab, even_cd, "2367"),
        shuffle(odd_ab, odd_cd, "2367"),
    ]


def convert_scalar(ir: SimdEmitter, value: str, source: str, target: str) -> str:
    """Convert a scalar from one LLVM type to another."""
    if source == target:
        return value
    names = {
        ("float", "double"): "fpext",
        ("double", "float"): "fptrunc",
        ("i32", "double"): "sitofp",
        ("double", "i32"): "fptosi",
    }
    return ir.value(f"{names[source, target]} {source} {value} to {target}")


class Conjugate(NamedTuple):
    """Conjugates contiguous complex128 elements in place."""

    vector: str
    length: str

    def add(self, unit: MatrixUnit) -> None:
        """Emit the code."""
        ir, vector = unit.ir, unit.pointer(self.vector)

        def negate_imaginary(i: str) -> None:
            pointer = offset_ptr(ir, strided_ptr(ir, vector, i, 16), 8)
            negated = ir.value(f"fneg double {ir.value(f'load double, ptr {pointer}')}")
            ir.line(f"store double {negated}, ptr {pointer}")

        for_range(ir, "0", unit.number(self.length), 1, negate_imaginary)


class Mirror(NamedTuple):
    """Writes the upper triangle of a column-major Hermitian matrix from its lower triangle."""

    matrix: str
    order: str
    dtype: np.dtype

    def add(self, unit: MatrixUnit) -> None:
        """Emit the code."""
        ir, end = unit.ir, unit.number(self.order)
        item, components = self.dtype.itemsize, SCALAR_PARTS[self.dtype][1]
        matrix, column_bytes = unit.pointer(self.matrix), int_op(ir, "mul", end, item)

        def copy_column(j: str) -> None:
            column_pointer = strided_ptr(ir, matrix, j, column_bytes)
            row_pointer = strided_ptr(ir, matrix, j, item)

            def copy_element(i: str) -> None:
                source, target = (
                    strided_ptr(ir, row_pointer, i, column_bytes),
                    strided_ptr(ir, column_pointer, i, item),
                )
                for component in range(components):
                    value = ir.value(f"load double, ptr {offset_ptr(ir, source, 8 * component)}")
                    if component:
                        value = ir.value(f"fneg double {value}")
                    ir.line(f"store double {value}, ptr {offset_ptr(ir, target, 8 * component)}")

            for_range(ir, "0", j, 1, copy_element)

        for_range(ir, "0", end, 1, copy_column)


class Permutation(NamedTuple):
    """Writes the permutation matrix of pivots, which count from 1."""

    pivots: str
    exchanges: str
    """The number of pivots."""
    row_numbers: str
    """Memory for as many i32 as there are rows."""
    rows: str
    target: str
    dtype: np.dtype

    def add(self, unit: MatrixUnit) -> None:
        """Emit the code."""
        ir, rows = unit.ir, unit.number(self.rows)
        pivots, row_numbers, target = map(
            unit.pointer, (self.pivots, self.row_numbers, self.target)
        )
        type_, components = SCALAR_PARTS[self.dtype]

        def number_row(i: str) -> None:
            number = ir.value(f"trunc i64 {i} to i32")
            ir.line(f"store i32 {number}, ptr {strided_ptr(ir, row_numbers, i, 4)}")

        def exchange_rows(i: str) -> None:
            pivot = ir.value(f"load i32, ptr {strided_ptr(ir, pivots, i, 4)}")
            pivot_row = int_op(ir, "sub", ir.value(f"sext i32 {pivot} to i64"), 1)
            pointers = [strided_ptr(ir, row_numbers, index, 4) for index in (i, pivot_row)]
            values = [ir.value(f"load i32, ptr {pointer}") for pointer in pointers]
            for pointer, value in zip(pointers, reversed(values), strict=True):
                ir.line(f"store i32 {value}, ptr {pointer}")

        def clear_element(i: str) -> None:
            ir.line(f"store {type_} 0.0, ptr {strided_ptr(ir, target, i, BYTES[type_])}")

        def set_one(i: str) -> None:
            row = ir.value(f"load i32, ptr {strided_ptr(ir, row_numbers, i, 4)}")
            column = ir.value(f"sext i32 {row} to i64")
            at = int_op(ir, "add", int_op(ir, "mul", column, rows), i)
            ir.line(f"store {type_} 1.0, ptr {strided_ptr(ir, target, at, self.dtype.itemsize)}")

        for_range(ir, "0", rows, 1, number_row)
        for_range(ir, "0", unit.number(self.exchanges), 1, exchange_rows)
        numbers = int_op(ir, "mul", int_op(ir, "mul", rows, rows), components)
        for_range(ir, "0", numbers, 1, clear_element)
        for_range(ir, "0", rows, 1, set_one)
