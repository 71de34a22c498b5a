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

from tenfold.codegen.gemm.emitter import advanced, given, times
from tenfold.codegen.llvm.loop_emitter import counted, integer, where
from tenfold.codegen.llvm.simd_emitter import SimdEmitter
from tenfold.dtypes import COMPLEX64, COMPLEX128, DTYPES, FLOAT32, FLOAT64

INT32 = DTYPES["int32"]
PARTS = {
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

    def __init__(self, text: SimdEmitter, first: int, failed: str) -> None:
        self.text, self.failed = text, failed
        self.first = first
        """Which of the sizes is number 0."""
        self.pointers = {"report": text.stack(4)}
        self.numbers: dict[str, str] = {}
        self.index = ""

    def begin(self, index: str) -> None:
        """Begin with a matrix: the pointers into buffers are to be given anew."""
        self.index = index

    def number(self, word: str) -> str:
        """Return number `n2` of the launch, or the number that is written there."""
        if word[0] != "n":
            return word
        return given(self.text, "%sizes", self.first + int(word[1:]), 1)[0]

    def pointer(self, word: str) -> str:
        """Return the pointer that a word stands for."""
        place, _, offset = word.partition("+")
        if offset:
            return advanced(self.text, self.pointer(place), self.number(offset))
        if word[0] == "w":
            return advanced(self.text, "%scratch", self.number(f"n{word[1:]}"))
        if word not in self.pointers and word[0] != "m":
            self.pointers[word] = self._stored(word)
        return self.pointers.get(word, "")

    def _stored(self, word: str) -> str:
        """Store what a routine is to be given a pointer to."""
        place = self.text.stack(16)
        if word[0] == "'":
            value = f"i8 {ord(word[1])}"
        elif word[0] == "n":
            value = f"i32 {self.text.value(f'trunc i64 {self.number(word)} to i32')}"
        else:
            number = "1.0" if word == "one" else "0.0"
            value = f"<2 x double> <double {number}, double 0.0>"
        self.text.line(f"store {value}, ptr {place}")
        return place

    def fail_if(self, condition: str) -> None:
        """Remember that this matrix has no answer where an i1 holds."""
        text = self.text
        number = integer(text, "add", self.index, 1)
        where(text, condition, lambda: text.line(f"store i64 {number}, ptr {self.failed}"))


class Move(NamedTuple):
    """A copy of a matrix, in another dtype perhaps; of a real one to complex the real part."""

    source: str
    target: str
    dtypes: tuple[np.dtype, np.dtype]
    outer: Axis
    inner: Axis
    way: str = "any"
    """ "rows": the inner axis is contiguous in both, float64 in both; "across": in the target, as
    the outer axis is in the source; "any" is slower."""

    def add(self, unit: MatrixUnit) -> None:
        """Add its text."""
        text, (rows, *_), (columns, *_) = unit.text, self._outer(unit), self._inner(unit)
        if self.way == "rows":
            counted(text, "0", rows, 1, lambda row: self._row(unit, row))
        elif self.way == "across":
            whole = integer(text, "and", rows, -BLOCK)
            counted(text, "0", whole, BLOCK, lambda row: self._blocks(unit, row))
            counted(text, whole, rows, 1, lambda row: self._elements(unit, row, "0", columns))
        else:
            counted(text, "0", rows, 1, lambda row: self._elements(unit, row, "0", columns))

    def _outer(self, unit: MatrixUnit) -> tuple[str, str, str]:
        return unit.number(self.outer[0]), unit.number(self.outer[1]), unit.number(self.outer[2])

    def _inner(self, unit: MatrixUnit) -> tuple[str, str, str]:
        return unit.number(self.inner[0]), unit.number(self.inner[1]), unit.number(self.inner[2])

    def _places(self, unit: MatrixUnit, row: str) -> tuple[str, str]:
        _, source, target = self._outer(unit)
        text = unit.text
        return (
            times(text, unit.pointer(self.source), row, source),
            times(text, unit.pointer(self.target), row, target),
        )

    def _elements(self, unit: MatrixUnit, row: str, begin: str, end: str) -> None:
        text, (source, target) = unit.text, self._places(unit, row)
        _, step, other = self._inner(unit)
        counted(
            text,
            begin,
            end,
            1,
            lambda i: self._element(
                text, times(text, source, i, step), times(text, target, i, other)
            ),
        )

    def _element(self, text: SimdEmitter, source: str, target: str) -> None:
        (given_, given_parts), (made, made_parts) = (PARTS[each] for each in self.dtypes)
        bytes_ = [BYTES[each] for each in (given_, made)]
        for part in range(made_parts):
            if part < given_parts:
                place = advanced(text, source, part * bytes_[0])
                value = text.value(f"load {given_}, ptr {place}, align 1")
                value = converted(text, value, given_, made)
            else:
                value = "0.0"
            place = advanced(text, target, part * bytes_[1])
            text.line(f"store {made} {value}, ptr {place}, align 1")

    def _row(self, unit: MatrixUnit, row: str) -> None:
        """Copy packets that lie beside each other, then the elements that are left."""
        text, (source, target) = unit.text, self._places(unit, row)
        columns = unit.number(self.inner[0])
        whole = integer(text, "and", columns, -PACKET)

        def packet(i: str) -> None:
            value = text.value(
                f"load <{PACKET} x double>, ptr {times(text, source, i, 8)}, align 1"
            )
            place = times(text, target, i, 8)
            text.line(f"store <{PACKET} x double> {value}, ptr {place}, align 1")

        counted(text, "0", whole, PACKET, packet)
        self._elements(unit, row, whole, columns)

    def _blocks(self, unit: MatrixUnit, row: str) -> None:
        """Transpose blocks of rows that begin at `row`, then the columns that are left."""
        text, (source, target) = unit.text, self._places(unit, row)
        columns, step, _ = self._inner(unit)
        distance = unit.number(self.outer[2])
        whole = integer(text, "and", columns, -BLOCK)

        def block(i: str) -> None:
            first = times(text, source, i, step)
            taken = []
            for number in range(BLOCK):
                place = times(text, first, str(number), step)
                taken.append(text.value(f"load <{BLOCK} x double>, ptr {place}, align 1"))
            first = times(text, target, i, 8)
            for number, value in enumerate(_transposed(text, taken)):
                place = times(text, first, str(number), distance)
                text.line(f"store <{BLOCK} x double> {value}, ptr {place}, align 1")

        counted(text, "0", whole, BLOCK, block)
        for number in range(BLOCK):
            self._elements(unit, integer(text, "add", row, number), whole, columns)


def _transposed(text: SimdEmitter, rows: list[str]) -> list[str]:
    """Transpose four packets of four: pairs of elements are exchanged, then pairs of pairs."""

    def shuffled(x: str, y: str, order: str) -> str:
        lanes = ", ".join(f"i32 {lane}" for lane in order)
        type_ = f"<{BLOCK} x double>"
        return text.value(f"shufflevector {type_} {x}, {type_} {y}, <{BLOCK} x i32> <{lanes}>")

    a, b, c, d = rows
    even, odd = shuffled(a, b, "0426"), shuffled(a, b, "1537")
    other_even, other_odd = shuffled(c, d, "0426"), shuffled(c, d, "1537")
    return [
        shuffled(even, other_even, "0145"),
        shuffled(odd, other_odd, "0145"),
        shuffled(even, other_even, "2367"),
        shuffled(odd, other_odd, "2367"),
    ]


def converted(text: SimdEmitter, value: str, source: str, target: str) -> str:
    """Convert a scalar from one LLVM type to another."""
    if source == target:
        return value
    names = {
        ("float", "double"): "fpext",
        ("double", "float"): "fptrunc",
        ("i32", "double"): "sitofp",
        ("double", "i32"): "fptosi",
    }
    return text.value(f"{names[source, target]} {source} {value} to {target}")


class Conjugate(NamedTuple):
    """The conjugate of complex128 elements that lie beside each other, in their place."""

    place: str
    length: str

    def add(self, unit: MatrixUnit) -> None:
        """Add its text."""
        text, place = unit.text, unit.pointer(self.place)

        def one(i: str) -> None:
            at = advanced(text, times(text, place, i, 16), 8)
            opposite = text.value(f"fneg double {text.value(f'load double, ptr {at}')}")
            text.line(f"store double {opposite}, ptr {at}")

        counted(text, "0", unit.number(self.length), 1, one)


class Mirror(NamedTuple):
    """A Hermitian matrix by columns from its lower triangle: the upper one is written."""

    place: str
    order: str
    dtype: np.dtype

    def add(self, unit: MatrixUnit) -> None:
        """Add its text."""
        text, end = unit.text, unit.number(self.order)
        item, parts = self.dtype.itemsize, PARTS[self.dtype][1]
        place, distance = unit.pointer(self.place), integer(text, "mul", end, item)

        def column(j: str) -> None:
            here = times(text, place, j, distance)
            beside = times(text, place, j, item)

            def element(i: str) -> None:
                source, target = times(text, beside, i, distance), times(text, here, i, item)
                for part in range(parts):
                    value = text.value(f"load double, ptr {advanced(text, source, 8 * part)}")
                    if part:
                        value = text.value(f"fneg double {value}")
                    text.line(f"store double {value}, ptr {advanced(text, target, 8 * part)}")

            counted(text, "0", j, 1, element)

        counted(text, "0", end, 1, column)


class Permutation(NamedTuple):
    """The matrix of the exchanges of rows that pivots say, from 1 on: 1 where a row stood."""

    pivots: str
    exchanges: str
    """How many pivots."""
    order: str
    """Memory for as many i32 as there are rows."""
    rows: str
    target: str
    dtype: np.dtype

    def add(self, unit: MatrixUnit) -> None:
        """Add its text."""
        text, rows = unit.text, unit.number(self.rows)
        pivots, order, target = map(unit.pointer, (self.pivots, self.order, self.target))
        type_, parts = PARTS[self.dtype]

        def numbered(i: str) -> None:
            number = text.value(f"trunc i64 {i} to i32")
            text.line(f"store i32 {number}, ptr {times(text, order, i, 4)}")

        def exchanged(i: str) -> None:
            pivot = text.value(f"load i32, ptr {times(text, pivots, i, 4)}")
            other = integer(text, "sub", text.value(f"sext i32 {pivot} to i64"), 1)
            places = [times(text, order, each, 4) for each in (i, other)]
            values = [text.value(f"load i32, ptr {place}") for place in places]
            for place, value in zip(places, reversed(values), strict=True):
                text.line(f"store i32 {value}, ptr {place}")

        def cleared(i: str) -> None:
            text.line(f"store {type_} 0.0, ptr {times(text, target, i, BYTES[type_])}")

        def set_(i: str) -> None:
            row = text.value(f"load i32, ptr {times(text, order, i, 4)}")
            wide = text.value(f"sext i32 {row} to i64")
            at = integer(text, "add", integer(text, "mul", wide, rows), i)
            text.line(f"store {type_} 1.0, ptr {times(text, target, at, self.dtype.itemsize)}")

        counted(text, "0", rows, 1, numbered)
        counted(text, "0", unit.number(self.exchanges), 1, exchanged)
        numbers = integer(text, "mul", integer(text, "mul", rows, rows), parts)
        counted(text, "0", numbers, 1, cleared)
        counted(text, "0", rows, 1, set_)
