"""Bunch-Kaufman steps: work between the LAPACK routines that factor a symmetric matrix and solve
with it.

Such a matrix is P L D L^T P^T: J. R. Bunch and L. Kaufman, "Some stable methods for calculating
inertia and solving symmetric linear systems", Mathematics of Computation 31, 1977. P exchanges
rows, L is a unit lower triangle, and D has blocks of 1 or 2 rows on its diagonal. Takes matrices of
float64 or complex128 (symmetric, not Hermitian) by the words of `Routine`, hands on LLVM text. L is
stored by columns, with the diagonal of D on its own. D's off-diagonal elements are a row of their
own, 0 where a block has one row.

>>> Negative("w0", "w1").target
'w1'
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tenfold.codegen.gemm.emitter import advanced, either, times
from tenfold.codegen.lapack.diagonal_steps import diagonal, folded
from tenfold.codegen.lapack.matrix_copies import PACKET, PARTS, MatrixUnit
from tenfold.codegen.llvm.loop_emitter import counted, integer, larger, where
from tenfold.codegen.llvm.simd_emitter import SimdEmitter

WIDE = f"<{PACKET} x double>"


class Rows(NamedTuple):
    """Right sides, row by row."""

    place: str
    far: str
    """Bytes from one row to the next."""
    near: str
    """Bytes from one element of a row to the next."""
    columns: str
    """How many elements a row has."""
    by_rows: bool
    """Whether the elements of a row lie beside each other."""
    dtype: np.dtype

    def at(self, unit: MatrixUnit, row: str) -> str:
        """Return where a row begins."""
        return times(unit.text, unit.pointer(self.place), row, unit.number(self.far))

    def along(
        self, unit: MatrixUnit, rows: Sequence[str], inside: Callable[[str, list[str]], None]
    ) -> None:
        """Add a loop along rows that begin at these places; `inside` gets the type of what it is to
        take at once, and where that is in each row: packets of float64, or all parts of an element.
        """
        text, count, begin = unit.text, unit.number(self.columns), "0"
        item, parts = self.dtype.itemsize, PARTS[self.dtype][1]
        near = str(item) if self.by_rows else unit.number(self.near)

        def taken(type_: str) -> Callable[[str], None]:
            return lambda j: inside(type_, [times(text, row, j, near) for row in rows])

        if self.by_rows and parts == 1:
            begin = integer(text, "and", count, -PACKET)
            counted(text, "0", begin, PACKET, taken(WIDE))
        counted(text, begin, count, 1, taken("double"))

    def load(self, text: SimdEmitter, type_: str, place: str) -> list[str]:
        """Load what stands at a place, part by part."""
        parts = range(PARTS[self.dtype][1])
        return [
            text.value(f"load {type_}, ptr {advanced(text, place, 8 * part)}, align 1")
            for part in parts
        ]

    def store(self, text: SimdEmitter, type_: str, values: list[str], place: str) -> None:
        """Store it there."""
        for part, value in enumerate(values):
            text.line(f"store {type_} {value}, ptr {advanced(text, place, 8 * part)}, align 1")


def _spread(text: SimdEmitter, type_: str, number: list[str]) -> list[str]:
    """Return a number in every lane."""
    if type_ == "double":
        return number
    first = text.value(f"insertelement {type_} poison, double {number[0]}, i64 0")
    order = f"<{PACKET} x i32> zeroinitializer"
    return [text.value(f"shufflevector {type_} {first}, {type_} poison, {order}")]


def _product(text: SimdEmitter, type_: str, x: list[str], y: list[str]) -> list[str]:
    """Multiply two real or two complex numbers."""

    def multiplied(a: str, b: str) -> str:
        return text.value(f"fmul {type_} {a}, {b}")

    if len(x) == 1:
        return [multiplied(x[0], y[0])]
    (a, b), (c, d) = x, y
    real = text.value(f"fsub {type_} {multiplied(a, c)}, {multiplied(b, d)}")
    return [real, text.value(f"fadd {type_} {multiplied(a, d)}, {multiplied(b, c)}")]


def _difference(text: SimdEmitter, type_: str, x: list[str], y: list[str]) -> list[str]:
    return [text.value(f"fsub {type_} {a}, {b}") for a, b in zip(x, y, strict=True)]


def _quotient(text: SimdEmitter, x: list[str], y: list[str]) -> list[str]:
    """Divide two real or two complex numbers; these over the larger part of y first, so that its
    modulus is not squared.
    """
    if len(x) == 1:
        return [text.value(f"fdiv double {x[0]}, {y[0]}")]
    sizes = [text.intrinsic("llvm.fabs.f64", "double", [("double", part)]) for part in y]
    greater = text.value(f"fcmp ogt double {sizes[0]}, {sizes[1]}")
    size = text.value(f"select i1 {greater}, double {sizes[0]}, double {sizes[1]}")
    c, d = (text.value(f"fdiv double {part}, {size}") for part in y)
    squares = (text.value(f"fmul double {part}, {part}") for part in (c, d))
    modulus = text.value(f"fadd double {next(squares)}, {next(squares)}")
    made = _product(text, "double", x, [c, text.value(f"fneg double {d}")])
    scaled = [text.value(f"fdiv double {part}, {modulus}") for part in made]
    return [text.value(f"fdiv double {part}, {size}") for part in scaled]


def _differs(text: SimdEmitter, number: list[str]) -> str:
    """Whether a number is not 0, as an i1."""
    found = [text.value(f"fcmp une double {part}, 0.0") for part in number]
    return found[0] if len(found) == 1 else text.value(f"or i1 {found[0]}, {found[1]}")


def _loaded(text: SimdEmitter, place: str, index: str, dtype: np.dtype) -> list[str]:
    """Load a number of those that lie beside each other."""
    at = times(text, place, index, dtype.itemsize)
    parts = range(PARTS[dtype][1])
    return [text.value(f"load double, ptr {advanced(text, at, 8 * part)}") for part in parts]


class _PivotRow(NamedTuple):
    """A row of D."""

    number: list[str]
    """On its diagonal."""
    beside: list[str]
    """Beside that in the next row, 0 where no block of two begins here."""
    begins: str
    """Whether one does, as an i1."""
    ends: str
    """Whether one ends here; not to be asked where one begins."""


def _row(
    unit: MatrixUnit, place: str, beside: str, order: str, dtype: np.dtype, i: str
) -> _PivotRow:
    """Load a row of D. What stands behind the last row is not of D."""
    text, elements = unit.text, unit.pointer(beside)
    number = diagonal(unit, place, order, dtype, i)
    last = text.value(f"icmp eq i64 {i}, {integer(text, 'sub', unit.number(order), 1)}")
    after = [
        text.value(f"select i1 {last}, double 0.0, double {part}")
        for part in _loaded(text, elements, i, dtype)
    ]
    before = _loaded(text, elements, larger(text, integer(text, "sub", i, 1), 0), dtype)
    later = text.value(f"icmp ne i64 {i}, 0")
    ends = text.value(f"and i1 {later}, {_differs(text, before)}")
    return _PivotRow(number, after, _differs(text, after), ends)


class Regular(NamedTuple):
    """Reports 0 where D is finite and has an inverse, else 1: a block of two rows has one."""

    place: str
    beside: str
    order: str
    dtype: np.dtype

    def add(self, unit: MatrixUnit) -> None:
        """Add its text: a number less itself is 0 or NaN."""
        text = unit.text

        def one(i: str, total: str, singular: str) -> list[str]:
            row = _row(unit, self.place, self.beside, self.order, self.dtype, i)
            for number in (*row.number, *row.beside):
                nothing = text.value(f"fsub double {number}, {number}")
                total = text.value(f"fadd double {total}, {nothing}")
            block = text.value(f"or i1 {row.begins}, {row.ends}")
            fine = text.value(f"or i1 {block}, {_differs(text, row.number)}")
            return [total, text.value(f"or i1 {singular}, {text.value(f'xor i1 {fine}, true')}")]

        begun = [("double", "0.0"), ("i1", "false")]
        total, singular = folded(text, unit.number(self.order), begun, one)
        bad = text.value(f"fcmp uno double {total}, {total}")
        flag = text.value(f"zext i1 {text.value(f'or i1 {bad}, {singular}')} to i32")
        text.line(f"store i32 {flag}, ptr {unit.pointer('report')}")


class Interchanges(NamedTuple):
    """Stores, in the dtype of the factors, which row each was exchanged with, from 1 on and
    negative, as they are never of Gauss's elimination. LAPACK's pivots are negative in both rows of
    a block of two, of which only the second was exchanged.
    """

    pivots: str
    beside: str
    order: str
    target: str
    dtype: np.dtype

    def add(self, unit: MatrixUnit) -> None:
        """Add its text."""
        text = unit.text
        pivots, beside, target = map(unit.pointer, (self.pivots, self.beside, self.target))

        def one(i: str) -> None:
            pivot = text.value(f"load i32, ptr {times(text, pivots, i, 4)}")
            begins = _differs(text, _loaded(text, beside, i, self.dtype))
            own = text.value(f"trunc i64 {integer(text, 'xor', i, -1)} to i32")  # -(i + 1)
            alone = text.value(f"icmp sgt i32 {pivot}, 0")
            opposite = text.value(f"sub i32 0, {pivot}")
            row = text.value(f"select i1 {begins}, i32 {own}, i32 {pivot}")
            row = text.value(f"select i1 {alone}, i32 {opposite}, i32 {row}")
            number = text.value(f"sitofp i32 {row} to double")
            at = times(text, target, i, self.dtype.itemsize)
            for part, value in enumerate([number, "0.0"][: PARTS[self.dtype][1]]):
                text.line(f"store double {value}, ptr {advanced(text, at, 8 * part)}")

        counted(text, "0", unit.number(self.order), 1, one)


class Negative(NamedTuple):
    """Stores, as an i32, whether the first pivot is negative: a symmetric matrix was factored."""

    pivots: str
    target: str

    def add(self, unit: MatrixUnit) -> None:
        """Add its text."""
        text = unit.text
        pivot = text.value(f"load i32, ptr {unit.pointer(self.pivots)}")
        flag = text.value(f"zext i1 {text.value(f'icmp slt i32 {pivot}, 0')} to i32")
        text.line(f"store i32 {flag}, ptr {unit.pointer(self.target)}")


class Exchange(NamedTuple):
    """Exchanges rows of right sides as pivots say, whatever their sign; or `back` from the last."""

    pivots: str
    order: str
    rows: Rows
    back: bool = False

    def add(self, unit: MatrixUnit) -> None:
        """Add its text."""
        text, order, pivots = unit.text, unit.number(self.order), unit.pointer(self.pivots)

        def one(i: str) -> None:
            if self.back:
                i = integer(text, "sub", integer(text, "sub", order, 1), i)
            pivot = text.value(f"load i32, ptr {times(text, pivots, i, 4)}")
            number = text.intrinsic("llvm.abs.i32", "i32", [("i32", pivot), ("i1", "false")])
            other = integer(text, "sub", text.value(f"sext i32 {number} to i64"), 1)
            rows = [self.rows.at(unit, each) for each in (i, other)]
            differs = text.value(f"icmp ne i64 {i}, {other}")
            where(text, differs, lambda: self.rows.along(unit, rows, swapped))

        def swapped(type_: str, places: list[str]) -> None:
            values = [self.rows.load(text, type_, place) for place in places]
            for place, value in zip(places, reversed(values), strict=True):
                self.rows.store(text, type_, value, place)

        counted(text, "0", order, 1, one)


class Blocks(NamedTuple):
    """Solves equations with D in place. Of a block of two rows the element beside the diagonal is
    the larger: all are divided by it, so that no product of two of them is taken.
    """

    place: str
    beside: str
    order: str
    rows: Rows

    def add(self, unit: MatrixUnit) -> None:
        """Add its text."""

        def one(i: str) -> None:
            row = _row(unit, self.place, self.beside, self.order, self.rows.dtype, i)

            def other() -> None:
                where(
                    unit.text,
                    unit.text.value(f"xor i1 {row.ends}, true"),
                    lambda: self._divided(unit, i, row),
                )

            either(unit.text, row.begins, lambda: self._pair(unit, i, row), other)

        counted(unit.text, "0", unit.number(self.order), 1, one)

    def _divided(self, unit: MatrixUnit, i: str, row: _PivotRow) -> None:
        text = unit.text
        factor = _quotient(text, self._one(), row.number)

        def inside(type_: str, places: list[str]) -> None:
            value = self.rows.load(text, type_, places[0])
            made = _product(text, type_, value, _spread(text, type_, factor))
            self.rows.store(text, type_, made, places[0])

        self.rows.along(unit, [self.rows.at(unit, i)], inside)

    def _one(self) -> list[str]:
        return ["1.0", "0.0"][: PARTS[self.rows.dtype][1]]

    def _pair(self, unit: MatrixUnit, i: str, row: _PivotRow) -> None:
        """With a, e and e, b in the block: x = (b/e u - v) / d, y = (a/e v - u) / d of right sides
        u and v over e, where d = a/e b/e - 1 is not near 0, as a/e b/e is less than 1/2.
        """
        text = unit.text
        after = integer(text, "add", i, 1)
        last = diagonal(unit, self.place, self.order, self.rows.dtype, after)
        first, second = (_quotient(text, number, row.beside) for number in (row.number, last))
        product = _product(text, "double", first, second)
        divisor = _difference(text, "double", product, self._one())
        scale = _quotient(text, _quotient(text, self._one(), divisor), row.beside)

        def inside(type_: str, places: list[str]) -> None:
            wide = [_spread(text, type_, each) for each in (scale, second, first)]
            loaded = [self.rows.load(text, type_, place) for place in places]
            u, v = (_product(text, type_, each, wide[0]) for each in loaded)
            for place, factor, (x, y) in zip(places, wide[1:], ((u, v), (v, u)), strict=True):
                made = _difference(text, type_, _product(text, type_, factor, x), y)
                self.rows.store(text, type_, made, place)

        self.rows.along(unit, [self.rows.at(unit, each) for each in (i, after)], inside)
