"""Diagonal steps: tests on matrices between the LAPACK routines of a call.

Takes a factor of float64 or complex128 by its word, hands on LLVM text. The tests: whether to try
Cholesky, whether it has met NaN, whether a triangle is singular, and which triangle holds a matrix.

>>> from tenfold.dtypes import FLOAT64
>>> Finite("w0", "n1", FLOAT64).order
'n1'
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tenfold.codegen.gemm.emitter import advanced, carrying, times
from tenfold.codegen.lapack.matrix_copies import BYTES, PARTS, MatrixUnit
from tenfold.codegen.llvm.loop_emitter import integer, where
from tenfold.codegen.llvm.simd_emitter import SimdEmitter


def diagonal(
    unit: MatrixUnit, place: str, order: str, dtype: np.dtype, i: str, apart: str = ""
) -> list[str]:
    """Load an element of the diagonal, part by part, of a matrix whose columns are so many elements
    apart; of a contiguous one without that.
    """
    text = unit.text
    columns = unit.number(apart or order)
    distance = integer(text, "mul", integer(text, "add", columns, 1), dtype.itemsize)
    at = times(text, unit.pointer(place), i, distance)
    parts = [advanced(text, at, 8 * part) for part in range(PARTS[dtype][1])]
    return [text.value(f"load double, ptr {each}") for each in parts]


class Finite(NamedTuple):
    """Reports 1 where the real diagonal of a factor has something that is not finite."""

    place: str
    order: str
    dtype: np.dtype

    def add(self, unit: MatrixUnit) -> None:
        """Add its text: a number less itself is 0 or NaN."""
        text = unit.text

        def one(i: str, total: str) -> list[str]:
            number = diagonal(unit, self.place, self.order, self.dtype, i)[0]
            nothing = text.value(f"fsub double {number}, {number}")
            return [text.value(f"fadd double {total}, {nothing}")]

        (total,) = folded(text, unit.number(self.order), [("double", "0.0")], one)
        bad = text.value(f"fcmp uno double {total}, {total}")
        report = unit.pointer("report")
        where(text, bad, lambda: text.line(f"store i32 1, ptr {report}"))


class Positive(NamedTuple):
    """Reports 0 where the real parts of a diagonal are all above 0, else 1."""

    place: str
    order: str
    dtype: np.dtype

    def add(self, unit: MatrixUnit) -> None:
        """Add its text."""
        text = unit.text

        def one(i: str, found: str) -> list[str]:
            number = diagonal(unit, self.place, self.order, self.dtype, i)[0]
            other = text.value(f"fcmp ule double {number}, 0.0")
            return [text.value(f"or i1 {found}, {other}")]

        (found,) = folded(text, unit.number(self.order), [("i1", "false")], one)
        text.line(
            f"store i32 {text.value(f'zext i1 {found} to i32')}, ptr {unit.pointer('report')}"
        )


class AllFinite(NamedTuple):
    """Stores, as an i32, whether one of the numbers that lie beside each other, float64, is not
    finite.
    """

    place: str
    length: str
    target: str

    def add(self, unit: MatrixUnit) -> None:
        """Add its text."""
        text, place = unit.text, unit.pointer(self.place)

        def one(i: str, total: str) -> list[str]:
            number = text.value(f"load double, ptr {times(text, place, i, 8)}")
            nothing = text.value(f"fsub double {number}, {number}")
            return [text.value(f"fadd double {total}, {nothing}")]

        (total,) = folded(text, unit.number(self.length), [("double", "0.0")], one)
        bad = text.value(f"fcmp uno double {total}, {total}")
        flag = text.value(f"zext i1 {bad} to i32")
        text.line(f"store i32 {flag}, ptr {unit.pointer(self.target)}")


class Nonzero(NamedTuple):
    """Fails where a diagonal has a 0."""

    place: str
    order: str
    dtype: np.dtype
    apart: str = ""
    """Elements from one column to the next, if not the order."""

    def add(self, unit: MatrixUnit) -> None:
        """Add its text."""
        text = unit.text

        def one(i: str, found: str) -> list[str]:
            parts = diagonal(unit, self.place, self.order, self.dtype, i, self.apart)
            zero = "true"
            for part in parts:
                equal = text.value(f"fcmp oeq double {part}, 0.0")
                zero = text.value(f"and i1 {zero}, {equal}")
            return [text.value(f"or i1 {found}, {zero}")]

        (found,) = folded(text, unit.number(self.order), [("i1", "false")], one)
        unit.fail_if(found)


class Fails(NamedTuple):
    """Says that the matrix has no answer."""

    def add(self, unit: MatrixUnit) -> None:
        """Add its text."""
        unit.fail_if("true")


class Beside(NamedTuple):
    """Stores, as an i32, where the first row that has anything but 0 beside the diagonal has it: 1
    behind it, else 0. Of a triangle that tells which one it is, often by the second row. Columns
    take the place of rows where their elements lie closer.
    """

    place: str
    order: str
    far: str
    """Bytes from one row to the next."""
    near: str
    """Bytes from one element of a row to the next."""
    dtype: np.dtype
    target: str
    contiguous: bool = False
    """Whether the elements of a row lie beside each other: then whole packets are looked at."""

    def add(self, unit: MatrixUnit) -> None:
        """Add its text."""
        text, order = unit.text, unit.number(self.order)
        place, far, near = (
            unit.pointer(self.place),
            unit.number(self.far),
            unit.number(self.near),
        )

        def one(i: str, found: str, behind: str) -> list[str]:
            """Look at no element more once a row has been found."""
            after, row = integer(text, "add", i, 1), times(text, place, i, far)
            parts = (row, i), (times(text, row, after, near), integer(text, "sub", order, after))
            seen = []
            for first, length in parts:
                count = text.value(f"select i1 {found}, i64 0, i64 {length}")
                seen.append(self._in_row(text, first, near, count))
            behind = text.value(f"or i1 {behind}, {seen[1]}")
            anything = text.value(f"or i1 {seen[0]}, {seen[1]}")
            return [text.value(f"or i1 {found}, {anything}"), behind]

        (_, behind) = folded(text, order, [("i1", "false"), ("i1", "false")], one)
        flag = text.value(f"zext i1 {behind} to i32")
        text.line(f"store i32 {flag}, ptr {unit.pointer(self.target)}")

    def _in_row(self, text: SimdEmitter, first: str, near: str, count: str) -> str:
        """Add a loop over elements, and one over packets before it where they are contiguous."""
        type_, parts = PARTS[self.dtype]
        if not self.contiguous:
            return self._elements(text, first, near, count, parts, "false")
        size, bytes_ = LANES[type_], BYTES[type_]
        numbers = integer(text, "mul", count, parts)
        packets = integer(text, "udiv", numbers, size)
        integers = f"<{size} x i{8 * bytes_}>"
        ones = f"<{', '.join([f'i{8 * bytes_} 1'] * size)}>"

        def packet(j: str, seen: str) -> list[str]:
            at = times(text, first, j, size * bytes_)
            value = text.value(f"load {integers}, ptr {at}, align 1")
            # without its sign a number is 0 where all bits are
            unsigned = text.value(f"shl {integers} {value}, {ones}")
            return [text.value(f"or {integers} {seen}, {unsigned}")]

        (seen,) = folded(text, packets, [(integers, "zeroinitializer")], packet)
        number, reduce = f"i{8 * bytes_}", f"llvm.vector.reduce.or.v{size}i{8 * bytes_}"
        bits = text.intrinsic(reduce, number, [(integers, seen)])
        found = text.value(f"icmp ne {number} {bits}, 0")
        done = integer(text, "mul", packets, size)
        rest = integer(text, "sub", numbers, done)
        return self._elements(text, times(text, first, done, bytes_), str(bytes_), rest, 1, found)

    def _elements(
        self, text: SimdEmitter, first: str, near: str, count: str, parts: int, found: str
    ) -> str:
        type_ = PARTS[self.dtype][0]

        def other(j: str, seen: str) -> list[str]:
            at = times(text, first, j, near)
            for part in range(parts):
                value = text.value(
                    f"load {type_}, ptr {advanced(text, at, part * BYTES[type_])}, align 1"
                )
                differs = text.value(f"fcmp une {type_} {value}, 0.0")
                seen = text.value(f"or i1 {seen}, {differs}")
            return [seen]

        return folded(text, count, [("i1", found)], other)[0]


LANES = {"float": 32, "double": 16}
"""The numbers of a packet in which zeros are looked for."""


def folded(
    text: SimdEmitter, end: str, carried: list[tuple[str, str]], inside: Callable[..., list[str]]
) -> list[str]:
    """Add a loop that hands values on; `inside` gets the counter before them."""

    def numbered(i: str, *values: str) -> list[str]:
        return [integer(text, "add", i, 1), *inside(i, *values)]

    return carrying(text, end, [("i64", "0"), *carried], numbered)[1:]
