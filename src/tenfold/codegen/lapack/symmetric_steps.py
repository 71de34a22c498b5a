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

from tenfold.codegen.gemm.emitter import if_else, offset_ptr, strided_ptr
from tenfold.codegen.lapack.diagonal_steps import fori_loop, load_diagonal
from tenfold.codegen.lapack.matrix_copies import PACKET, SCALAR_PARTS, MatrixUnit
from tenfold.codegen.llvm.loop_emitter import for_range, if_then, int_max, int_op
from tenfold.codegen.llvm.simd_emitter import SimdEmitter

PACKET_TYPE = f"<{PACKET} x double>"


class RightSides(NamedTuple):
    """Right sides, row by row."""

    matrix: str
    row_stride: str
    """Bytes from one row to the next."""
    element_stride: str
    """Bytes from one element of a row to the next."""
    columns: str
    """How many elements a row has."""
    by_rows: bool
    """Whether the elements of a row lie beside each other."""
    dtype: np.dtype

    def row_pointer(self, unit: MatrixUnit, row: str) -> str:
        """Return where a row begins."""
        return strided_ptr(unit.ir, unit.pointer(self.matrix), row, unit.number(self.row_stride))

    def for_each_column(
        self, unit: MatrixUnit, rows: Sequence[str], inside: Callable[[str, list[str]], None]
    ) -> None:
        """Add a loop along rows that begin at these places; `inside` gets the type of what it is to
        take at once, and where that is in each row: packets of float64, or all parts of an element.
        """
        ir, count, begin = unit.ir, unit.number(self.columns), "0"
        item, parts = self.dtype.itemsize, SCALAR_PARTS[self.dtype][1]
        near = str(item) if self.by_rows else unit.number(self.element_stride)

        def taken(type_: str) -> Callable[[str], None]:
            return lambda j: inside(type_, [strided_ptr(ir, row, j, near) for row in rows])

        if self.by_rows and parts == 1:
            begin = int_op(ir, "and", count, -PACKET)
            for_range(ir, "0", begin, PACKET, taken(PACKET_TYPE))
        for_range(ir, begin, count, 1, taken("double"))

    def load(self, ir: SimdEmitter, type_: str, place: str) -> list[str]:
        """Load what stands at a place, part by part."""
        parts = range(SCALAR_PARTS[self.dtype][1])
        return [
            ir.value(f"load {type_}, ptr {offset_ptr(ir, place, 8 * part)}, align 1")
            for part in parts
        ]

    def store(self, ir: SimdEmitter, type_: str, values: list[str], place: str) -> None:
        """Store it there."""
        for part, value in enumerate(values):
            ir.line(f"store {type_} {value}, ptr {offset_ptr(ir, place, 8 * part)}, align 1")


def _broadcast(ir: SimdEmitter, type_: str, number: list[str]) -> list[str]:
    """Return a number in every lane."""
    if type_ == "double":
        return number
    first = ir.value(f"insertelement {type_} poison, double {number[0]}, i64 0")
    order = f"<{PACKET} x i32> zeroinitializer"
    return [ir.value(f"shufflevector {type_} {first}, {type_} poison, {order}")]


def _product(ir: SimdEmitter, type_: str, x: list[str], y: list[str]) -> list[str]:
    """Multiply two real or two complex numbers."""

    def multiplied(a: str, b: str) -> str:
        return ir.value(f"fmul {type_} {a}, {b}")

    if len(x) == 1:
        return [multiplied(x[0], y[0])]
    (a, b), (c, d) = x, y
    real = ir.value(f"fsub {type_} {multiplied(a, c)}, {multiplied(b, d)}")
    return [real, ir.value(f"fadd {type_} {multiplied(a, d)}, {multiplied(b, c)}")]


def _difference(ir: SimdEmitter, type_: str, x: list[str], y: list[str]) -> list[str]:
    return [ir.value(f"fsub {type_} {a}, {b}") for a, b in zip(x, y, strict=True)]


def _quotient(ir: SimdEmitter, x: list[str], y: list[str]) -> list[str]:
    """Divide two real or two complex numbers; these over the larger part of y first, so that its
    modulus is not squared.
    """
    if len(x) == 1:
        return [ir.value(f"fdiv double {x[0]}, {y[0]}")]
    sizes = [ir.intrinsic("llvm.fabs.f64", "double", [("double", part)]) for part in y]
    greater = ir.value(f"fcmp ogt double {sizes[0]}, {sizes[1]}")
    size = ir.value(f"select i1 {greater}, double {sizes[0]}, double {sizes[1]}")
    c, d = (ir.value(f"fdiv double {part}, {size}") for part in y)
    squares = (ir.value(f"fmul double {part}, {part}") for part in (c, d))
    modulus = ir.value(f"fadd double {next(squares)}, {next(squares)}")
    made = _product(ir, "double", x, [c, ir.value(f"fneg double {d}")])
    scaled = [ir.value(f"fdiv double {part}, {modulus}") for part in made]
    return [ir.value(f"fdiv double {part}, {size}") for part in scaled]


def _is_nonzero(ir: SimdEmitter, number: list[str]) -> str:
    """Whether a number is not 0, as an i1."""
    found = [ir.value(f"fcmp une double {part}, 0.0") for part in number]
    return found[0] if len(found) == 1 else ir.value(f"or i1 {found[0]}, {found[1]}")


def _load_number(ir: SimdEmitter, place: str, index: str, dtype: np.dtype) -> list[str]:
    """Load a number of those that lie beside each other."""
    at = strided_ptr(ir, place, index, dtype.itemsize)
    parts = range(SCALAR_PARTS[dtype][1])
    return [ir.value(f"load double, ptr {offset_ptr(ir, at, 8 * part)}") for part in parts]


class _PivotRow(NamedTuple):
    """A row of D."""

    diagonal: list[str]
    """On its diagonal."""
    off_diagonal: list[str]
    """Beside that in the next row, 0 where no block of two begins here."""
    begins_block: str
    """Whether one does, as an i1."""
    ends_block: str
    """Whether one ends here; not to be asked where one begins."""


def _load_pivot_row(
    unit: MatrixUnit, place: str, beside: str, order: str, dtype: np.dtype, i: str
) -> _PivotRow:
    """Load a row of D. What stands behind the last row is not of D."""
    ir, elements = unit.ir, unit.pointer(beside)
    number = load_diagonal(unit, place, order, dtype, i)
    last = ir.value(f"icmp eq i64 {i}, {int_op(ir, 'sub', unit.number(order), 1)}")
    after = [
        ir.value(f"select i1 {last}, double 0.0, double {part}")
        for part in _load_number(ir, elements, i, dtype)
    ]
    before = _load_number(ir, elements, int_max(ir, int_op(ir, "sub", i, 1), 0), dtype)
    later = ir.value(f"icmp ne i64 {i}, 0")
    ends = ir.value(f"and i1 {later}, {_is_nonzero(ir, before)}")
    return _PivotRow(number, after, _is_nonzero(ir, after), ends)


class InvertibleBlocks(NamedTuple):
    """Reports 0 where D is finite and has an inverse, else 1: a block of two rows has one."""

    matrix: str
    off_diagonal: str
    order: str
    dtype: np.dtype

    def add(self, unit: MatrixUnit) -> None:
        """Add its text: a number less itself is 0 or NaN."""
        ir = unit.ir

        def one(i: str, total: str, singular: str) -> list[str]:
            row = _load_pivot_row(unit, self.matrix, self.off_diagonal, self.order, self.dtype, i)
            for number in (*row.diagonal, *row.off_diagonal):
                nothing = ir.value(f"fsub double {number}, {number}")
                total = ir.value(f"fadd double {total}, {nothing}")
            block = ir.value(f"or i1 {row.begins_block}, {row.ends_block}")
            fine = ir.value(f"or i1 {block}, {_is_nonzero(ir, row.diagonal)}")
            return [total, ir.value(f"or i1 {singular}, {ir.value(f'xor i1 {fine}, true')}")]

        begun = [("double", "0.0"), ("i1", "false")]
        total, singular = fori_loop(ir, unit.number(self.order), begun, one)
        bad = ir.value(f"fcmp uno double {total}, {total}")
        flag = ir.value(f"zext i1 {ir.value(f'or i1 {bad}, {singular}')} to i32")
        ir.line(f"store i32 {flag}, ptr {unit.pointer('report')}")


class Interchanges(NamedTuple):
    """Stores, in the dtype of the factors, which row each was exchanged with, from 1 on and
    negative, as they are never of Gauss's elimination. LAPACK's pivots are negative in both rows of
    a block of two, of which only the second was exchanged.
    """

    pivots: str
    off_diagonal: str
    order: str
    target: str
    dtype: np.dtype

    def add(self, unit: MatrixUnit) -> None:
        """Add its text."""
        ir = unit.ir
        pivots, beside, target = map(unit.pointer, (self.pivots, self.off_diagonal, self.target))

        def one(i: str) -> None:
            pivot = ir.value(f"load i32, ptr {strided_ptr(ir, pivots, i, 4)}")
            begins = _is_nonzero(ir, _load_number(ir, beside, i, self.dtype))
            own = ir.value(f"trunc i64 {int_op(ir, 'xor', i, -1)} to i32")  # -(i + 1)
            alone = ir.value(f"icmp sgt i32 {pivot}, 0")
            opposite = ir.value(f"sub i32 0, {pivot}")
            row = ir.value(f"select i1 {begins}, i32 {own}, i32 {pivot}")
            row = ir.value(f"select i1 {alone}, i32 {opposite}, i32 {row}")
            number = ir.value(f"sitofp i32 {row} to double")
            at = strided_ptr(ir, target, i, self.dtype.itemsize)
            for part, value in enumerate([number, "0.0"][: SCALAR_PARTS[self.dtype][1]]):
                ir.line(f"store double {value}, ptr {offset_ptr(ir, at, 8 * part)}")

        for_range(ir, "0", unit.number(self.order), 1, one)


class NegativePivot(NamedTuple):
    """Stores, as an i32, whether the first pivot is negative: a symmetric matrix was factored."""

    pivots: str
    target: str

    def add(self, unit: MatrixUnit) -> None:
        """Add its text."""
        ir = unit.ir
        pivot = ir.value(f"load i32, ptr {unit.pointer(self.pivots)}")
        flag = ir.value(f"zext i1 {ir.value(f'icmp slt i32 {pivot}, 0')} to i32")
        ir.line(f"store i32 {flag}, ptr {unit.pointer(self.target)}")


class ExchangeRows(NamedTuple):
    """Exchanges rows of right sides as pivots say, whatever their sign; or `back` from the last."""

    pivots: str
    order: str
    rows: RightSides
    reverse: bool = False

    def add(self, unit: MatrixUnit) -> None:
        """Add its text."""
        ir, order, pivots = unit.ir, unit.number(self.order), unit.pointer(self.pivots)

        def one(i: str) -> None:
            if self.reverse:
                i = int_op(ir, "sub", int_op(ir, "sub", order, 1), i)
            pivot = ir.value(f"load i32, ptr {strided_ptr(ir, pivots, i, 4)}")
            number = ir.intrinsic("llvm.abs.i32", "i32", [("i32", pivot), ("i1", "false")])
            other = int_op(ir, "sub", ir.value(f"sext i32 {number} to i64"), 1)
            rows = [self.rows.row_pointer(unit, each) for each in (i, other)]
            differs = ir.value(f"icmp ne i64 {i}, {other}")
            if_then(ir, differs, lambda: self.rows.for_each_column(unit, rows, swapped))

        def swapped(type_: str, places: list[str]) -> None:
            values = [self.rows.load(ir, type_, place) for place in places]
            for place, value in zip(places, reversed(values), strict=True):
                self.rows.store(ir, type_, value, place)

        for_range(ir, "0", order, 1, one)


class SolveBlockDiagonal(NamedTuple):
    """Solves equations with D in place. Of a block of two rows the element beside the diagonal is
    the larger: all are divided by it, so that no product of two of them is taken.
    """

    matrix: str
    off_diagonal: str
    order: str
    rows: RightSides

    def add(self, unit: MatrixUnit) -> None:
        """Add its text."""

        def one(i: str) -> None:
            row = _load_pivot_row(
                unit, self.matrix, self.off_diagonal, self.order, self.rows.dtype, i
            )

            def other() -> None:
                if_then(
                    unit.ir,
                    unit.ir.value(f"xor i1 {row.ends_block}, true"),
                    lambda: self._divide_row(unit, i, row),
                )

            if_else(unit.ir, row.begins_block, lambda: self._solve_pair(unit, i, row), other)

        for_range(unit.ir, "0", unit.number(self.order), 1, one)

    def _divide_row(self, unit: MatrixUnit, i: str, row: _PivotRow) -> None:
        ir = unit.ir
        factor = _quotient(ir, self._one(), row.diagonal)

        def inside(type_: str, places: list[str]) -> None:
            value = self.rows.load(ir, type_, places[0])
            made = _product(ir, type_, value, _broadcast(ir, type_, factor))
            self.rows.store(ir, type_, made, places[0])

        self.rows.for_each_column(unit, [self.rows.row_pointer(unit, i)], inside)

    def _one(self) -> list[str]:
        return ["1.0", "0.0"][: SCALAR_PARTS[self.rows.dtype][1]]

    def _solve_pair(self, unit: MatrixUnit, i: str, row: _PivotRow) -> None:
        """With a, e and e, b in the block: x = (b/e u - v) / d, y = (a/e v - u) / d of right sides
        u and v over e, where d = a/e b/e - 1 is not near 0, as a/e b/e is less than 1/2.
        """
        ir = unit.ir
        after = int_op(ir, "add", i, 1)
        last = load_diagonal(unit, self.matrix, self.order, self.rows.dtype, after)
        first, second = (_quotient(ir, number, row.off_diagonal) for number in (row.diagonal, last))
        product = _product(ir, "double", first, second)
        divisor = _difference(ir, "double", product, self._one())
        scale = _quotient(ir, _quotient(ir, self._one(), divisor), row.off_diagonal)

        def inside(type_: str, places: list[str]) -> None:
            wide = [_broadcast(ir, type_, each) for each in (scale, second, first)]
            loaded = [self.rows.load(ir, type_, place) for place in places]
            u, v = (_product(ir, type_, each, wide[0]) for each in loaded)
            for place, factor, (x, y) in zip(places, wide[1:], ((u, v), (v, u)), strict=True):
                made = _difference(ir, type_, _product(ir, type_, factor, x), y)
                self.rows.store(ir, type_, made, place)

        self.rows.for_each_column(
            unit, [self.rows.row_pointer(unit, each) for each in (i, after)], inside
        )
