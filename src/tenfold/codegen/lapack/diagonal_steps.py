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

from tenfold.codegen.gemm.emitter import carry_loop, offset_ptr, strided_ptr
from tenfold.codegen.lapack.matrix_copies import BYTES, SCALAR_PARTS, MatrixUnit
from tenfold.codegen.llvm.loop_emitter import if_then, int_op
from tenfold.codegen.llvm.simd_emitter import SimdEmitter


def load_diagonal(
    unit: MatrixUnit, place: str, order: str, dtype: np.dtype, i: str, apart: str = ""
) -> list[str]:
    """Load an element of the diagonal, part by part, of a matrix whose columns are so many elements
    apart; of a contiguous one without that.
    """
    ir = unit.ir
    columns = unit.number(apart or order)
    distance = int_op(ir, "mul", int_op(ir, "add", columns, 1), dtype.itemsize)
    at = strided_ptr(ir, unit.pointer(place), i, distance)
    parts = [offset_ptr(ir, at, 8 * part) for part in range(SCALAR_PARTS[dtype][1])]
    return [ir.value(f"load double, ptr {each}") for each in parts]


class FiniteDiagonal(NamedTuple):
    """Reports 1 where the real diagonal of a factor has something that is not finite."""

    matrix: str
    order: str
    dtype: np.dtype

    def add(self, unit: MatrixUnit) -> None:
        """Add its text: a number less itself is 0 or NaN."""
        ir = unit.ir

        def one(i: str, total: str) -> list[str]:
            number = load_diagonal(unit, self.matrix, self.order, self.dtype, i)[0]
            nothing = ir.value(f"fsub double {number}, {number}")
            return [ir.value(f"fadd double {total}, {nothing}")]

        (total,) = fori_loop(ir, unit.number(self.order), [("double", "0.0")], one)
        bad = ir.value(f"fcmp uno double {total}, {total}")
        report = unit.pointer("report")
        if_then(ir, bad, lambda: ir.line(f"store i32 1, ptr {report}"))


class PositiveDiagonal(NamedTuple):
    """Reports 0 where the real parts of a diagonal are all above 0, else 1."""

    matrix: str
    order: str
    dtype: np.dtype

    def add(self, unit: MatrixUnit) -> None:
        """Add its text."""
        ir = unit.ir

        def one(i: str, found: str) -> list[str]:
            number = load_diagonal(unit, self.matrix, self.order, self.dtype, i)[0]
            other = ir.value(f"fcmp ule double {number}, 0.0")
            return [ir.value(f"or i1 {found}, {other}")]

        (found,) = fori_loop(ir, unit.number(self.order), [("i1", "false")], one)
        ir.line(f"store i32 {ir.value(f'zext i1 {found} to i32')}, ptr {unit.pointer('report')}")


class AllFinite(NamedTuple):
    """Stores, as an i32, whether one of the numbers that lie beside each other, float64, is not
    finite.
    """

    vector: str
    length: str
    target: str

    def add(self, unit: MatrixUnit) -> None:
        """Add its text."""
        ir, place = unit.ir, unit.pointer(self.vector)

        def one(i: str, total: str) -> list[str]:
            number = ir.value(f"load double, ptr {strided_ptr(ir, place, i, 8)}")
            nothing = ir.value(f"fsub double {number}, {number}")
            return [ir.value(f"fadd double {total}, {nothing}")]

        (total,) = fori_loop(ir, unit.number(self.length), [("double", "0.0")], one)
        bad = ir.value(f"fcmp uno double {total}, {total}")
        flag = ir.value(f"zext i1 {bad} to i32")
        ir.line(f"store i32 {flag}, ptr {unit.pointer(self.target)}")


class NonzeroDiagonal(NamedTuple):
    """Fails where a diagonal has a 0."""

    matrix: str
    order: str
    dtype: np.dtype
    leading_dimension: str = ""
    """Elements from one column to the next, if not the order."""

    def add(self, unit: MatrixUnit) -> None:
        """Add its text."""
        ir = unit.ir

        def one(i: str, found: str) -> list[str]:
            parts = load_diagonal(
                unit, self.matrix, self.order, self.dtype, i, self.leading_dimension
            )
            zero = "true"
            for part in parts:
                equal = ir.value(f"fcmp oeq double {part}, 0.0")
                zero = ir.value(f"and i1 {zero}, {equal}")
            return [ir.value(f"or i1 {found}, {zero}")]

        (found,) = fori_loop(ir, unit.number(self.order), [("i1", "false")], one)
        unit.fail_if(found)


class Fail(NamedTuple):
    """Says that the matrix has no answer."""

    def add(self, unit: MatrixUnit) -> None:
        """Add its text."""
        unit.fail_if("true")


class TriangleSide(NamedTuple):
    """Stores, as an i32, where the first row that has anything but 0 beside the diagonal has it: 1
    behind it, else 0. Of a triangle that tells which one it is, often by the second row. Columns
    take the place of rows where their elements lie closer.
    """

    matrix: str
    order: str
    row_stride: str
    """Bytes from one row to the next."""
    element_stride: str
    """Bytes from one element of a row to the next."""
    dtype: np.dtype
    target: str
    contiguous: bool = False
    """Whether the elements of a row lie beside each other: then whole packets are looked at."""

    def add(self, unit: MatrixUnit) -> None:
        """Add its text."""
        ir, order = unit.ir, unit.number(self.order)
        place, far, near = (
            unit.pointer(self.matrix),
            unit.number(self.row_stride),
            unit.number(self.element_stride),
        )

        def one(i: str, found: str, behind: str) -> list[str]:
            """Look at no element more once a row has been found."""
            after, row = int_op(ir, "add", i, 1), strided_ptr(ir, place, i, far)
            parts = (
                (row, i),
                (strided_ptr(ir, row, after, near), int_op(ir, "sub", order, after)),
            )
            seen = []
            for first, length in parts:
                count = ir.value(f"select i1 {found}, i64 0, i64 {length}")
                seen.append(self._any_nonzero(ir, first, near, count))
            behind = ir.value(f"or i1 {behind}, {seen[1]}")
            anything = ir.value(f"or i1 {seen[0]}, {seen[1]}")
            return [ir.value(f"or i1 {found}, {anything}"), behind]

        (_, behind) = fori_loop(ir, order, [("i1", "false"), ("i1", "false")], one)
        flag = ir.value(f"zext i1 {behind} to i32")
        ir.line(f"store i32 {flag}, ptr {unit.pointer(self.target)}")

    def _any_nonzero(self, ir: SimdEmitter, first: str, near: str, count: str) -> str:
        """Add a loop over elements, and one over packets before it where they are contiguous."""
        type_, parts = SCALAR_PARTS[self.dtype]
        if not self.contiguous:
            return self._any_nonzero_element(ir, first, near, count, parts, "false")
        size, bytes_ = LANES[type_], BYTES[type_]
        numbers = int_op(ir, "mul", count, parts)
        packets = int_op(ir, "udiv", numbers, size)
        integers = f"<{size} x i{8 * bytes_}>"
        ones = f"<{', '.join([f'i{8 * bytes_} 1'] * size)}>"

        def packet(j: str, seen: str) -> list[str]:
            at = strided_ptr(ir, first, j, size * bytes_)
            value = ir.value(f"load {integers}, ptr {at}, align 1")
            # without its sign a number is 0 where all bits are
            unsigned = ir.value(f"shl {integers} {value}, {ones}")
            return [ir.value(f"or {integers} {seen}, {unsigned}")]

        (seen,) = fori_loop(ir, packets, [(integers, "zeroinitializer")], packet)
        number, reduce = f"i{8 * bytes_}", f"llvm.vector.reduce.or.v{size}i{8 * bytes_}"
        bits = ir.intrinsic(reduce, number, [(integers, seen)])
        found = ir.value(f"icmp ne {number} {bits}, 0")
        done = int_op(ir, "mul", packets, size)
        rest = int_op(ir, "sub", numbers, done)
        return self._any_nonzero_element(
            ir, strided_ptr(ir, first, done, bytes_), str(bytes_), rest, 1, found
        )

    def _any_nonzero_element(
        self, ir: SimdEmitter, first: str, near: str, count: str, parts: int, found: str
    ) -> str:
        type_ = SCALAR_PARTS[self.dtype][0]

        def other(j: str, seen: str) -> list[str]:
            at = strided_ptr(ir, first, j, near)
            for part in range(parts):
                value = ir.value(
                    f"load {type_}, ptr {offset_ptr(ir, at, part * BYTES[type_])}, align 1"
                )
                differs = ir.value(f"fcmp une {type_} {value}, 0.0")
                seen = ir.value(f"or i1 {seen}, {differs}")
            return [seen]

        return fori_loop(ir, count, [("i1", found)], other)[0]


LANES = {"float": 32, "double": 16}
"""The numbers of a packet in which zeros are looked for."""


def fori_loop(
    ir: SimdEmitter, end: str, carried: list[tuple[str, str]], inside: Callable[..., list[str]]
) -> list[str]:
    """Add a loop that hands values on; `inside` gets the counter before them."""

    def numbered(i: str, *values: str) -> list[str]:
        return [int_op(ir, "add", i, 1), *inside(i, *values)]

    return carry_loop(ir, end, [("i64", "0"), *carried], numbered)[1:]
