"""Bunch-Kaufman steps: emits the work between LAPACK routines that factor a symmetric matrix and
solve with it.

Such a matrix is P L D L^T P^T: J. R. Bunch and L. Kaufman, "Some stable methods for calculating
inertia and solving symmetric linear systems", Mathematics of Computation 31, 1977. P exchanges
rows, L is a unit lower triangle, and D has blocks of 1 or 2 rows on its diagonal. Input: matrices
of float64 or complex128 (symmetric, not Hermitian) as operand words (see `Routine`). Output: LLVM
text. L is column-major, with the diagonal of D on its diagonal. D's off-diagonal elements are a
separate vector, 0 if a block has one row.

>>> NegativePivot("w0", "w1").target
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
    """The right-hand sides of equations, by rows."""

    matrix: str
    row_stride: str
    """Bytes from one row to the next."""
    element_stride: str
    """Bytes from one element of a row to the next."""
    columns: str
    """The number of elements of a row."""
    by_rows: bool
    """Whether rows are contiguous."""
    dtype: np.dtype

    def row_pointer(self, unit: MatrixUnit, row: str) -> str:
        """Return the pointer to a row."""
        return strided_ptr(unit.ir, unit.pointer(self.matrix), row, unit.number(self.row_stride))

    def for_each_column(
        self, unit: MatrixUnit, rows: Sequence[str], body: Callable[[str, list[str]], None]
    ) -> None:
        """Emit a loop along rows, given pointers to them; `body` gets an LLVM type and a pointer
        into each row. The type is a packet of float64, or a scalar of an element.
        """
        ir, count, begin = unit.ir, unit.number(self.columns), "0"
        item, components = self.dtype.itemsize, SCALAR_PARTS[self.dtype][1]
        stride = str(item) if self.by_rows else unit.number(self.element_stride)

        def at_column(type_: str) -> Callable[[str], None]:
            return lambda j: body(type_, [strided_ptr(ir, row, j, stride) for row in rows])

        if self.by_rows and components == 1:
            begin = int_op(ir, "and", count, -PACKET)
            for_range(ir, "0", begin, PACKET, at_column(PACKET_TYPE))
        for_range(ir, begin, count, 1, at_column("double"))

    def load(self, ir: SimdEmitter, type_: str, pointer: str) -> list[str]:
        """Load the components at a pointer."""
        components = range(SCALAR_PARTS[self.dtype][1])
        return [
            ir.value(f"load {type_}, ptr {offset_ptr(ir, pointer, 8 * component)}, align 1")
            for component in components
        ]

    def store(self, ir: SimdEmitter, type_: str, values: list[str], pointer: str) -> None:
        """Store the components at a pointer."""
        for component, value in enumerate(values):
            ir.line(f"store {type_} {value}, ptr {offset_ptr(ir, pointer, 8 * component)}, align 1")


def _broadcast(ir: SimdEmitter, type_: str, number: list[str]) -> list[str]:
    """Broadcast a number to every lane."""
    if type_ == "double":
        return number
    inserted = ir.value(f"insertelement {type_} poison, double {number[0]}, i64 0")
    order = f"<{PACKET} x i32> zeroinitializer"
    return [ir.value(f"shufflevector {type_} {inserted}, {type_} poison, {order}")]


def _product(ir: SimdEmitter, type_: str, x: list[str], y: list[str]) -> list[str]:
    """Multiply two real or two complex numbers."""

    def multiply(a: str, b: str) -> str:
        return ir.value(f"fmul {type_} {a}, {b}")

    if len(x) == 1:
        return [multiply(x[0], y[0])]
    (a, b), (c, d) = x, y
    real = ir.value(f"fsub {type_} {multiply(a, c)}, {multiply(b, d)}")
    return [real, ir.value(f"fadd {type_} {multiply(a, d)}, {multiply(b, c)}")]


def _difference(ir: SimdEmitter, type_: str, x: list[str], y: list[str]) -> list[str]:
    return [ir.value(f"fsub {type_} {a}, {b}") for a, b in zip(x, y, strict=True)]


def _quotient(ir: SimdEmitter, x: list[str], y: list[str]) -> list[str]:
    """Divide two real or two complex numbers.

    A complex y is scaled by its larger component first, so that its modulus is not squared.
    """
    if len(x) == 1:
        return [ir.value(f"fdiv double {x[0]}, {y[0]}")]
    magnitudes = [
        ir.intrinsic("llvm.fabs.f64", "double", [("double", component)]) for component in y
    ]
    is_greater = ir.value(f"fcmp ogt double {magnitudes[0]}, {magnitudes[1]}")
    largest = ir.value(f"select i1 {is_greater}, double {magnitudes[0]}, double {magnitudes[1]}")
    c, d = (ir.value(f"fdiv double {component}, {largest}") for component in y)
    squares = (ir.value(f"fmul double {component}, {component}") for component in (c, d))
    modulus = ir.value(f"fadd double {next(squares)}, {next(squares)}")
    numerator = _product(ir, "double", x, [c, ir.value(f"fneg double {d}")])
    scaled = [ir.value(f"fdiv double {component}, {modulus}") for component in numerator]
    return [ir.value(f"fdiv double {component}, {largest}") for component in scaled]


def _is_nonzero(ir: SimdEmitter, number: list[str]) -> str:
    """Return whether a number is not 0, as an i1."""
    flags = [ir.value(f"fcmp une double {component}, 0.0") for component in number]
    return flags[0] if len(flags) == 1 else ir.value(f"or i1 {flags[0]}, {flags[1]}")


def _load_number(ir: SimdEmitter, vector: str, index: str, dtype: np.dtype) -> list[str]:
    """Load the components of a number of a contiguous vector."""
    pointer = strided_ptr(ir, vector, index, dtype.itemsize)
    components = range(SCALAR_PARTS[dtype][1])
    return [
        ir.value(f"load double, ptr {offset_ptr(ir, pointer, 8 * component)}")
        for component in components
    ]


class _PivotRow(NamedTuple):
    """A row of D."""

    diagonal: list[str]
    """The element on the diagonal."""
    off_diagonal: list[str]
    """The element below it, 0 unless a block of two rows begins here."""
    begins_block: str
    """Whether a block of two rows begins here, as an i1."""
    ends_block: str
    """Whether one ends here, as an i1; undefined if one begins here."""


def _load_pivot_row(
    unit: MatrixUnit, matrix: str, off_diagonal: str, order: str, dtype: np.dtype, i: str
) -> _PivotRow:
    """Load a row of D; memory after the last row is not part of D."""
    ir, vector = unit.ir, unit.pointer(off_diagonal)
    diagonal = load_diagonal(unit, matrix, order, dtype, i)
    is_last = ir.value(f"icmp eq i64 {i}, {int_op(ir, 'sub', unit.number(order), 1)}")
    next_element = [
        ir.value(f"select i1 {is_last}, double 0.0, double {component}")
        for component in _load_number(ir, vector, i, dtype)
    ]
    previous_element = _load_number(ir, vector, int_max(ir, int_op(ir, "sub", i, 1), 0), dtype)
    not_first = ir.value(f"icmp ne i64 {i}, 0")
    ends = ir.value(f"and i1 {not_first}, {_is_nonzero(ir, previous_element)}")
    return _PivotRow(diagonal, next_element, _is_nonzero(ir, next_element), ends)


class InvertibleBlocks(NamedTuple):
    """Reports 0 if D is finite and invertible, else 1; blocks of two rows are invertible."""

    matrix: str
    off_diagonal: str
    order: str
    dtype: np.dtype

    def add(self, unit: MatrixUnit) -> None:
        """Emit the code: a finite number minus itself is 0, else NaN."""
        ir = unit.ir

        def check_row(i: str, total: str, singular: str) -> list[str]:
            row = _load_pivot_row(unit, self.matrix, self.off_diagonal, self.order, self.dtype, i)
            for number in (*row.diagonal, *row.off_diagonal):
                difference = ir.value(f"fsub double {number}, {number}")
                total = ir.value(f"fadd double {total}, {difference}")
            in_block = ir.value(f"or i1 {row.begins_block}, {row.ends_block}")
            invertible = ir.value(f"or i1 {in_block}, {_is_nonzero(ir, row.diagonal)}")
            return [total, ir.value(f"or i1 {singular}, {ir.value(f'xor i1 {invertible}, true')}")]

        initial = [("double", "0.0"), ("i1", "false")]
        total, singular = fori_loop(ir, unit.number(self.order), initial, check_row)
        not_finite = ir.value(f"fcmp uno double {total}, {total}")
        flag = ir.value(f"zext i1 {ir.value(f'or i1 {not_finite}, {singular}')} to i32")
        ir.line(f"store i32 {flag}, ptr {unit.pointer('report')}")


class Interchanges(NamedTuple):
    """Stores the row that each row was exchanged with, in the dtype of the factors.

    Rows count from 1 and are stored negative, unlike the pivots of LU. LAPACK's pivots are
    negative in both rows of a block of two, of which only the second was exchanged.
    """

    pivots: str
    off_diagonal: str
    order: str
    target: str
    dtype: np.dtype

    def add(self, unit: MatrixUnit) -> None:
        """Emit the code."""
        ir = unit.ir
        pivots, off_diagonal, target = map(
            unit.pointer, (self.pivots, self.off_diagonal, self.target)
        )

        def store_row(i: str) -> None:
            pivot = ir.value(f"load i32, ptr {strided_ptr(ir, pivots, i, 4)}")
            begins_block = _is_nonzero(ir, _load_number(ir, off_diagonal, i, self.dtype))
            negated_row = ir.value(f"trunc i64 {int_op(ir, 'xor', i, -1)} to i32")  # -(i + 1)
            is_single = ir.value(f"icmp sgt i32 {pivot}, 0")
            negated = ir.value(f"sub i32 0, {pivot}")
            row = ir.value(f"select i1 {begins_block}, i32 {negated_row}, i32 {pivot}")
            row = ir.value(f"select i1 {is_single}, i32 {negated}, i32 {row}")
            number = ir.value(f"sitofp i32 {row} to double")
            pointer = strided_ptr(ir, target, i, self.dtype.itemsize)
            for component, value in enumerate([number, "0.0"][: SCALAR_PARTS[self.dtype][1]]):
                ir.line(f"store double {value}, ptr {offset_ptr(ir, pointer, 8 * component)}")

        for_range(ir, "0", unit.number(self.order), 1, store_row)


class NegativePivot(NamedTuple):
    """Stores, as an i32, whether the first pivot is negative: Bunch-Kaufman, not LU."""

    pivots: str
    target: str

    def add(self, unit: MatrixUnit) -> None:
        """Emit the code."""
        ir = unit.ir
        pivot = ir.value(f"load i32, ptr {unit.pointer(self.pivots)}")
        flag = ir.value(f"zext i1 {ir.value(f'icmp slt i32 {pivot}, 0')} to i32")
        ir.line(f"store i32 {flag}, ptr {unit.pointer(self.target)}")


class ExchangeRows(NamedTuple):
    """Exchanges rows of right-hand sides by pivots of any sign; `reverse` begins with the last."""

    pivots: str
    order: str
    rows: RightSides
    reverse: bool = False

    def add(self, unit: MatrixUnit) -> None:
        """Emit the code."""
        ir, order, pivots = unit.ir, unit.number(self.order), unit.pointer(self.pivots)

        def exchange_row(i: str) -> None:
            if self.reverse:
                i = int_op(ir, "sub", int_op(ir, "sub", order, 1), i)
            pivot = ir.value(f"load i32, ptr {strided_ptr(ir, pivots, i, 4)}")
            number = ir.intrinsic("llvm.abs.i32", "i32", [("i32", pivot), ("i1", "false")])
            pivot_row = int_op(ir, "sub", ir.value(f"sext i32 {number} to i64"), 1)
            rows = [self.rows.row_pointer(unit, index) for index in (i, pivot_row)]
            differs = ir.value(f"icmp ne i64 {i}, {pivot_row}")
            if_then(ir, differs, lambda: self.rows.for_each_column(unit, rows, swap))

        def swap(type_: str, pointers: list[str]) -> None:
            values = [self.rows.load(ir, type_, pointer) for pointer in pointers]
            for pointer, value in zip(pointers, reversed(values), strict=True):
                self.rows.store(ir, type_, value, pointer)

        for_range(ir, "0", order, 1, exchange_row)


class SolveBlockDiagonal(NamedTuple):
    """Solves equations with D in place.

    In a block of two rows the off-diagonal element is the largest: all are divided by it, so
    that no two of them are multiplied.
    """

    matrix: str
    off_diagonal: str
    order: str
    rows: RightSides

    def add(self, unit: MatrixUnit) -> None:
        """Emit the code."""

        def solve_row(i: str) -> None:
            row = _load_pivot_row(
                unit, self.matrix, self.off_diagonal, self.order, self.rows.dtype, i
            )

            def solve_single() -> None:
                if_then(
                    unit.ir,
                    unit.ir.value(f"xor i1 {row.ends_block}, true"),
                    lambda: self._divide_row(unit, i, row),
                )

            if_else(unit.ir, row.begins_block, lambda: self._solve_pair(unit, i, row), solve_single)

        for_range(unit.ir, "0", unit.number(self.order), 1, solve_row)

    def _divide_row(self, unit: MatrixUnit, i: str, row: _PivotRow) -> None:
        ir = unit.ir
        factor = _quotient(ir, self._one_literal(), row.diagonal)

        def divide_packet(type_: str, pointers: list[str]) -> None:
            value = self.rows.load(ir, type_, pointers[0])
            quotient = _product(ir, type_, value, _broadcast(ir, type_, factor))
            self.rows.store(ir, type_, quotient, pointers[0])

        self.rows.for_each_column(unit, [self.rows.row_pointer(unit, i)], divide_packet)

    def _one_literal(self) -> list[str]:
        return ["1.0", "0.0"][: SCALAR_PARTS[self.rows.dtype][1]]

    def _solve_pair(self, unit: MatrixUnit, i: str, row: _PivotRow) -> None:
        """Solve a block [[a, e], [e, b]]: x = (b/e u - v) / d, y = (a/e v - u) / d, for right-hand
        sides u and v divided by e. d = a/e b/e - 1 is not near 0, as a/e b/e is less than 1/2.
        """
        ir = unit.ir
        next_row = int_op(ir, "add", i, 1)
        next_diagonal = load_diagonal(unit, self.matrix, self.order, self.rows.dtype, next_row)
        first, second = (
            _quotient(ir, number, row.off_diagonal) for number in (row.diagonal, next_diagonal)
        )
        product = _product(ir, "double", first, second)
        divisor = _difference(ir, "double", product, self._one_literal())
        scale = _quotient(ir, _quotient(ir, self._one_literal(), divisor), row.off_diagonal)

        def solve_packet(type_: str, pointers: list[str]) -> None:
            factors = [_broadcast(ir, type_, value) for value in (scale, second, first)]
            loaded = [self.rows.load(ir, type_, pointer) for pointer in pointers]
            u, v = (_product(ir, type_, value, factors[0]) for value in loaded)
            for pointer, factor, (x, y) in zip(
                pointers, factors[1:], ((u, v), (v, u)), strict=True
            ):
                solution = _difference(ir, type_, _product(ir, type_, factor, x), y)
                self.rows.store(ir, type_, solution, pointer)

        self.rows.for_each_column(
            unit, [self.rows.row_pointer(unit, value) for value in (i, next_row)], solve_packet
        )
