"""What stands between the routines that factor a symmetric matrix and solve with its factors.

Such a matrix is P L D L^T P^T, where P exchanges rows, L is a triangle with ones on its diagonal,
and D has blocks of 1 or 2 rows on its: J. R. Bunch and L. Kaufman, "Some stable methods for
calculating inertia and solving symmetric linear systems", Mathematics of Computation 31, 1977.
Takes float64 matrices by the words of `Routine`: L by columns with the diagonal of D on its own,
and the elements beside that diagonal in a row of their own, 0 where a block has one row; hands on
LLVM text.

>>> Negative("w0", "w1").target
'w1'
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tenfold.dtypes import FLOAT64
from tenfold.render.library_diagonals import diagonal, folded
from tenfold.render.library_moves import PACKET, Unit
from tenfold.render.loops import counted, integer, larger, where
from tenfold.render.packet import Text
from tenfold.render.product import either, times

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

    def at(self, unit: Unit, row: str) -> str:
        """Return where a row begins."""
        return times(unit.text, unit.pointer(self.place), row, unit.number(self.far))

    def along(
        self, unit: Unit, rows: Sequence[str], inside: Callable[[str, list[str]], None]
    ) -> None:
        """Add a loop along rows that begin at these places; `inside` gets the type of what it is to
        take at once, and where that is in each row.
        """
        text, count, begin = unit.text, unit.number(self.columns), "0"
        near = "8" if self.by_rows else unit.number(self.near)

        def taken(type_: str) -> Callable[[str], None]:
            return lambda j: inside(type_, [times(text, row, j, near) for row in rows])

        if self.by_rows:
            begin = integer(text, "and", count, -PACKET)
            counted(text, "0", begin, PACKET, taken(WIDE))
        counted(text, begin, count, 1, taken("double"))


def _spread(text: Text, type_: str, value: str) -> str:
    """Return a number in every lane."""
    if type_ == "double":
        return value
    first = text.value(f"insertelement {type_} poison, double {value}, i64 0")
    return text.value(
        f"shufflevector {type_} {first}, {type_} poison, <{PACKET} x i32> zeroinitializer"
    )


class _Row(NamedTuple):
    """A row of D."""

    number: str
    """On its diagonal."""
    beside: str
    """Beside that in the next row, 0 where no block of two begins here."""
    begins: str
    """Whether one does, as an i1."""
    ends: str
    """Whether one ends here; not to be asked where one begins."""


def _row(unit: Unit, place: str, beside: str, order: str, i: str) -> _Row:
    """Load a row of D. What stands behind the last row is not of D."""
    text, elements = unit.text, unit.pointer(beside)
    number = diagonal(unit, place, order, FLOAT64, i)[0]
    last = text.value(f"icmp eq i64 {i}, {integer(text, 'sub', unit.number(order), 1)}")
    after = text.value(f"load double, ptr {times(text, elements, i, 8)}")
    after = text.value(f"select i1 {last}, double 0.0, double {after}")
    row = larger(text, integer(text, "sub", i, 1), 0)
    before = text.value(f"load double, ptr {times(text, elements, row, 8)}")
    begins = text.value(f"fcmp une double {after}, 0.0")
    differs = text.value(f"fcmp une double {before}, 0.0")
    later = text.value(f"icmp ne i64 {i}, 0")
    return _Row(number, after, begins, text.value(f"and i1 {later}, {differs}"))


class Regular(NamedTuple):
    """Reports 0 where D is finite and has an inverse, else 1: a block of two rows has one."""

    place: str
    beside: str
    order: str

    def add(self, unit: Unit) -> None:
        """Add its text: a number less itself is 0 or NaN."""
        text = unit.text

        def one(i: str, total: str, singular: str) -> list[str]:
            row = _row(unit, self.place, self.beside, self.order, i)
            for number in (row.number, row.beside):
                nothing = text.value(f"fsub double {number}, {number}")
                total = text.value(f"fadd double {total}, {nothing}")
            zero = text.value(f"fcmp oeq double {row.number}, 0.0")
            block = text.value(f"or i1 {row.begins}, {row.ends}")
            alone = text.value(f"select i1 {block}, i1 false, i1 {zero}")
            return [total, text.value(f"or i1 {singular}, {alone}")]

        begun = [("double", "0.0"), ("i1", "false")]
        total, singular = folded(text, unit.number(self.order), begun, one)
        bad = text.value(f"fcmp uno double {total}, {total}")
        flag = text.value(f"zext i1 {text.value(f'or i1 {bad}, {singular}')} to i32")
        text.line(f"store i32 {flag}, ptr {unit.pointer('report')}")


class Interchanges(NamedTuple):
    """Stores, as float64, which row each was exchanged with, from 1 on and negative, as they are
    never of Gauss's elimination. LAPACK's pivots are negative in both rows of a block of two, of
    which only the second was exchanged.
    """

    pivots: str
    beside: str
    order: str
    target: str

    def add(self, unit: Unit) -> None:
        """Add its text."""
        text = unit.text
        pivots, beside, target = map(unit.pointer, (self.pivots, self.beside, self.target))

        def one(i: str) -> None:
            pivot = text.value(f"load i32, ptr {times(text, pivots, i, 4)}")
            element = text.value(f"load double, ptr {times(text, beside, i, 8)}")
            begins = text.value(f"fcmp une double {element}, 0.0")
            own = text.value(f"trunc i64 {integer(text, 'xor', i, -1)} to i32")  # -(i + 1)
            alone = text.value(f"icmp sgt i32 {pivot}, 0")
            opposite = text.value(f"sub i32 0, {pivot}")
            row = text.value(f"select i1 {begins}, i32 {own}, i32 {pivot}")
            row = text.value(f"select i1 {alone}, i32 {opposite}, i32 {row}")
            number = text.value(f"sitofp i32 {row} to double")
            text.line(f"store double {number}, ptr {times(text, target, i, 8)}")

        counted(text, "0", unit.number(self.order), 1, one)


class Negative(NamedTuple):
    """Stores, as an i32, whether the first pivot is negative: a symmetric matrix was factored."""

    pivots: str
    target: str

    def add(self, unit: Unit) -> None:
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

    def add(self, unit: Unit) -> None:
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
            values = [text.value(f"load {type_}, ptr {place}, align 1") for place in places]
            for place, value in zip(places, reversed(values), strict=True):
                text.line(f"store {type_} {value}, ptr {place}, align 1")

        counted(text, "0", order, 1, one)


class Blocks(NamedTuple):
    """Solves equations with D in place. Of a block of two rows the element beside the diagonal is
    the larger: all are divided by it, so that no product of two of them is taken.
    """

    place: str
    beside: str
    order: str
    rows: Rows

    def add(self, unit: Unit) -> None:
        """Add its text."""

        def one(i: str) -> None:
            row = _row(unit, self.place, self.beside, self.order, i)

            def other() -> None:
                where(
                    unit.text,
                    unit.text.value(f"xor i1 {row.ends}, true"),
                    lambda: self._divided(unit, i, row),
                )

            either(unit.text, row.begins, lambda: self._pair(unit, i, row), other)

        counted(unit.text, "0", unit.number(self.order), 1, one)

    def _divided(self, unit: Unit, i: str, row: _Row) -> None:
        text = unit.text
        factor = text.value(f"fdiv double 1.0, {row.number}")

        def inside(type_: str, places: list[str]) -> None:
            value = text.value(f"load {type_}, ptr {places[0]}, align 1")
            value = text.value(f"fmul {type_} {value}, {_spread(text, type_, factor)}")
            text.line(f"store {type_} {value}, ptr {places[0]}, align 1")

        self.rows.along(unit, [self.rows.at(unit, i)], inside)

    def _pair(self, unit: Unit, i: str, row: _Row) -> None:
        """With a, e and e, b in the block: x = (b/e u - v) / d, y = (a/e v - u) / d of right sides
        u and v over e, where d = a/e b/e - 1 is not near 0, as a/e b/e is less than 1/2.
        """
        text = unit.text
        after = integer(text, "add", i, 1)
        last = diagonal(unit, self.place, self.order, FLOAT64, after)[0]
        first, second = (
            text.value(f"fdiv double {number}, {row.beside}") for number in (row.number, last)
        )
        product = text.value(f"fmul double {first}, {second}")
        divisor = text.value(f"fsub double {product}, 1.0")
        scale = text.value(f"fdiv double {text.value(f'fdiv double 1.0, {divisor}')}, {row.beside}")

        def inside(type_: str, places: list[str]) -> None:
            wide = [_spread(text, type_, each) for each in (scale, second, first)]
            u, v = (
                text.value(
                    f"fmul {type_} {text.value(f'load {type_}, ptr {at}, align 1')}, {wide[0]}"
                )
                for at in places
            )
            for place, factor, (x, y) in zip(places, wide[1:], ((u, v), (v, u)), strict=True):
                made = text.value(f"fmul {type_} {factor}, {x}")
                made = text.value(f"fsub {type_} {made}, {y}")
                text.line(f"store {type_} {made}, ptr {place}, align 1")

        self.rows.along(unit, [self.rows.at(unit, each) for each in (i, after)], inside)
