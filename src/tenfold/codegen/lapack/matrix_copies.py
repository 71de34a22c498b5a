"""Matrix copies: converts and transposes matrices between the LAPACK routines of a call.

Takes places of a matrix by their words (`Routine` says which there are), lengths and strides in
bytes as numbers of the launch, hands on LLVM text. A copy converts, and transposes where one
matrix lies by rows and the other by columns; float64 is transposed in blocks of 4 x 4.

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
"""Of what an element is made: the LLVM type, and how many there are."""
BYTES = {"float": 4, "double": 8, "i32": 4}
BLOCK, PACKET = 4, 8
"""Elements of a block that is transposed, and of a packet that is copied."""

Axis = tuple[str, str, str]
"""Length, bytes from one element to the next in the source, and in the target."""


class MatrixUnit:
    """One matrix of a library call: the text, and where everything lies."""

    def __init__(self, ir: SimdEmitter, first: int, failed: str) -> None:
        self.ir, self.failure_slot = ir, failed
        self.first_number = first
        """Which of the sizes is number 0."""
        self.pointers = {"report": ir.alloca(4)}
        self.numbers: dict[str, str] = {}
        self.index = ""

    def begin(self, index: str) -> None:
        """Begin with a matrix: the pointers into buffers are to be given anew."""
        self.index = index

    def number(self, word: str) -> str:
        """Return number `n2` of the launch, or the number that is written there."""
        if word[0] != "n":
            return word
        return load_arguments(self.ir, "%sizes", self.first_number + int(word[1:]), 1)[0]

    def pointer(self, word: str) -> str:
        """Return the pointer that a word stands for."""
        place, _, offset = word.partition("+")
        if offset:
            return offset_ptr(self.ir, self.pointer(place), self.number(offset))
        if word[0] == "w":
            return offset_ptr(self.ir, "%scratch", self.number(f"n{word[1:]}"))
        if word not in self.pointers and word[0] != "m":
            self.pointers[word] = self._store_argument(word)
        return self.pointers.get(word, "")

    def _store_argument(self, word: str) -> str:
        """Store what a routine is to be given a pointer to."""
        place = self.ir.alloca(16)
        if word[0] == "'":
            value = f"i8 {ord(word[1])}"
        elif word[0] == "n":
            value = f"i32 {self.ir.value(f'trunc i64 {self.number(word)} to i32')}"
        else:
            number = "1.0" if word == "one" else "0.0"
            value = f"<2 x double> <double {number}, double 0.0>"
        self.ir.line(f"store {value}, ptr {place}")
        return place

    def fail_if(self, condition: str) -> None:
        """Remember that this matrix has no answer where an i1 holds."""
        ir = self.ir
        number = int_op(ir, "add", self.index, 1)
        if_then(ir, condition, lambda: ir.line(f"store i64 {number}, ptr {self.failure_slot}"))


class Move(NamedTuple):
    """A copy of a matrix, in another dtype perhaps; of a real one to complex the real part."""

    source: str
    target: str
    dtypes: tuple[np.dtype, np.dtype]
    outer: Axis
    inner: Axis
    layout: str = "any"
    """ "rows": the inner axis is contiguous in both, float64 in both; "across": in the target, as
    the outer axis is in the source; "any" is slower."""

    def add(self, unit: MatrixUnit) -> None:
        """Add its text."""
        ir, (rows, *_), (columns, *_) = unit.ir, self._outer_axis(unit), self._inner_axis(unit)
        if self.layout == "rows":
            for_range(ir, "0", rows, 1, lambda row: self._copy_packets(unit, row))
        elif self.layout == "across":
            whole = int_op(ir, "and", rows, -BLOCK)
            for_range(ir, "0", whole, BLOCK, lambda row: self._transpose_blocks(unit, row))
            for_range(ir, whole, rows, 1, lambda row: self._copy_elements(unit, row, "0", columns))
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
        _, step, other = self._inner_axis(unit)
        for_range(
            ir,
            begin,
            end,
            1,
            lambda i: self._copy_element(
                ir, strided_ptr(ir, source, i, step), strided_ptr(ir, target, i, other)
            ),
        )

    def _copy_element(self, ir: SimdEmitter, source: str, target: str) -> None:
        (given_, given_parts), (made, made_parts) = (SCALAR_PARTS[each] for each in self.dtypes)
        bytes_ = [BYTES[each] for each in (given_, made)]
        for part in range(made_parts):
            if part < given_parts:
                place = offset_ptr(ir, source, part * bytes_[0])
                value = ir.value(f"load {given_}, ptr {place}, align 1")
                value = convert_scalar(ir, value, given_, made)
            else:
                value = "0.0"
            place = offset_ptr(ir, target, part * bytes_[1])
            ir.line(f"store {made} {value}, ptr {place}, align 1")

    def _copy_packets(self, unit: MatrixUnit, row: str) -> None:
        """Copy packets that lie beside each other, then the elements that are left."""
        ir, (source, target) = unit.ir, self._row_pointers(unit, row)
        columns = unit.number(self.inner[0])
        whole = int_op(ir, "and", columns, -PACKET)

        def packet(i: str) -> None:
            value = ir.value(
                f"load <{PACKET} x double>, ptr {strided_ptr(ir, source, i, 8)}, align 1"
            )
            place = strided_ptr(ir, target, i, 8)
            ir.line(f"store <{PACKET} x double> {value}, ptr {place}, align 1")

        for_range(ir, "0", whole, PACKET, packet)
        self._copy_elements(unit, row, whole, columns)

    def _transpose_blocks(self, unit: MatrixUnit, row: str) -> None:
        """Transpose blocks of rows that begin at `row`, then the columns that are left."""
        ir, (source, target) = unit.ir, self._row_pointers(unit, row)
        columns, step, _ = self._inner_axis(unit)
        distance = unit.number(self.outer[2])
        whole = int_op(ir, "and", columns, -BLOCK)

        def block(i: str) -> None:
            first = strided_ptr(ir, source, i, step)
            taken = []
            for number in range(BLOCK):
                place = strided_ptr(ir, first, str(number), step)
                taken.append(ir.value(f"load <{BLOCK} x double>, ptr {place}, align 1"))
            first = strided_ptr(ir, target, i, 8)
            for number, value in enumerate(_transpose_block(ir, taken)):
                place = strided_ptr(ir, first, str(number), distance)
                ir.line(f"store <{BLOCK} x double> {value}, ptr {place}, align 1")

        for_range(ir, "0", whole, BLOCK, block)
        for number in range(BLOCK):
            self._copy_elements(unit, int_op(ir, "add", row, number), whole, columns)


def _transpose_block(ir: SimdEmitter, rows: list[str]) -> list[str]:
    """Transpose four packets of four: pairs of elements are exchanged, then pairs of pairs."""

    def shuffled(x: str, y: str, order: str) -> str:
        lanes = ", ".join(f"i32 {lane}" for lane in order)
        type_ = f"<{BLOCK} x double>"
        return ir.value(f"shufflevector {type_} {x}, {type_} {y}, <{BLOCK} x i32> <{lanes}>")

    a, b, c, d = rows
    even, odd = shuffled(a, b, "0426"), shuffled(a, b, "1537")
    other_even, other_odd = shuffled(c, d, "0426"), shuffled(c, d, "1537")
    return [
        shuffled(even, other_even, "0145"),
        shuffled(odd, other_odd, "0145"),
        shuffled(even, other_even, "2367"),
        shuffled(odd, other_odd, "2367"),
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
    """The conjugate of complex128 elements that lie beside each other, in their place."""

    vector: str
    length: str

    def add(self, unit: MatrixUnit) -> None:
        """Add its text."""
        ir, place = unit.ir, unit.pointer(self.vector)

        def one(i: str) -> None:
            at = offset_ptr(ir, strided_ptr(ir, place, i, 16), 8)
            opposite = ir.value(f"fneg double {ir.value(f'load double, ptr {at}')}")
            ir.line(f"store double {opposite}, ptr {at}")

        for_range(ir, "0", unit.number(self.length), 1, one)


class Mirror(NamedTuple):
    """A Hermitian matrix by columns from its lower triangle: the upper one is written."""

    matrix: str
    order: str
    dtype: np.dtype

    def add(self, unit: MatrixUnit) -> None:
        """Add its text."""
        ir, end = unit.ir, unit.number(self.order)
        item, parts = self.dtype.itemsize, SCALAR_PARTS[self.dtype][1]
        place, distance = unit.pointer(self.matrix), int_op(ir, "mul", end, item)

        def column(j: str) -> None:
            here = strided_ptr(ir, place, j, distance)
            beside = strided_ptr(ir, place, j, item)

            def element(i: str) -> None:
                source, target = (
                    strided_ptr(ir, beside, i, distance),
                    strided_ptr(ir, here, i, item),
                )
                for part in range(parts):
                    value = ir.value(f"load double, ptr {offset_ptr(ir, source, 8 * part)}")
                    if part:
                        value = ir.value(f"fneg double {value}")
                    ir.line(f"store double {value}, ptr {offset_ptr(ir, target, 8 * part)}")

            for_range(ir, "0", j, 1, element)

        for_range(ir, "0", end, 1, column)


class Permutation(NamedTuple):
    """The matrix of the exchanges of rows that pivots say, from 1 on: 1 where a row stood."""

    pivots: str
    exchanges: str
    """How many pivots."""
    row_numbers: str
    """Memory for as many i32 as there are rows."""
    rows: str
    target: str
    dtype: np.dtype

    def add(self, unit: MatrixUnit) -> None:
        """Add its text."""
        ir, rows = unit.ir, unit.number(self.rows)
        pivots, order, target = map(unit.pointer, (self.pivots, self.row_numbers, self.target))
        type_, parts = SCALAR_PARTS[self.dtype]

        def numbered(i: str) -> None:
            number = ir.value(f"trunc i64 {i} to i32")
            ir.line(f"store i32 {number}, ptr {strided_ptr(ir, order, i, 4)}")

        def exchanged(i: str) -> None:
            pivot = ir.value(f"load i32, ptr {strided_ptr(ir, pivots, i, 4)}")
            other = int_op(ir, "sub", ir.value(f"sext i32 {pivot} to i64"), 1)
            places = [strided_ptr(ir, order, each, 4) for each in (i, other)]
            values = [ir.value(f"load i32, ptr {place}") for place in places]
            for place, value in zip(places, reversed(values), strict=True):
                ir.line(f"store i32 {value}, ptr {place}")

        def cleared(i: str) -> None:
            ir.line(f"store {type_} 0.0, ptr {strided_ptr(ir, target, i, BYTES[type_])}")

        def set_(i: str) -> None:
            row = ir.value(f"load i32, ptr {strided_ptr(ir, order, i, 4)}")
            wide = ir.value(f"sext i32 {row} to i64")
            at = int_op(ir, "add", int_op(ir, "mul", wide, rows), i)
            ir.line(f"store {type_} 1.0, ptr {strided_ptr(ir, target, at, self.dtype.itemsize)}")

        for_range(ir, "0", rows, 1, numbered)
        for_range(ir, "0", unit.number(self.exchanges), 1, exchanged)
        numbers = int_op(ir, "mul", int_op(ir, "mul", rows, rows), parts)
        for_range(ir, "0", numbers, 1, cleared)
        for_range(ir, "0", rows, 1, set_)
