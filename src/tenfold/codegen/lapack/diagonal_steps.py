"""Diagonal steps: tests on matrices between the LAPACK routines of a call.

Input: a factor of float64 or complex128 as an operand word. Output: LLVM text. The tests: whether
to try Cholesky, whether it met NaN, whether a triangle is singular, and which triangle is nonzero.

>>> from tenfold.dtypes import FLOAT64
>>> FiniteDiagonal("w0", "n1", FLOAT64).order
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
    unit: MatrixUnit, matrix: str, order: str, dtype: np.dtype, i: str, leading_dimension: str = ""
) -> list[str]:
    """Load the components of a diagonal element; without `leading_dimension` the matrix is
    contiguous.
    """
    ir = unit.ir
    columns = unit.number(leading_dimension or order)
    stride = int_op(ir, "mul", int_op(ir, "add", columns, 1), dtype.itemsize)
    element = strided_ptr(ir, unit.pointer(matrix), i, stride)
    pointers = [
        offset_ptr(ir, element, 8 * component) for component in range(SCALAR_PARTS[dtype][1])
    ]
    return [ir.value(f"load double, ptr {pointer}") for pointer in pointers]


class FiniteDiagonal(NamedTuple):
    """Reports 1 if the real diagonal of a factor has a value that is not finite."""

    matrix: str
    order: str
    dtype: np.dtype

    def add(self, unit: MatrixUnit) -> None:
        """Emit the code: a finite number minus itself is 0, else NaN."""
        ir = unit.ir

        def accumulate(i: str, total: str) -> list[str]:
            value = load_diagonal(unit, self.matrix, self.order, self.dtype, i)[0]
            difference = ir.value(f"fsub double {value}, {value}")
            return [ir.value(f"fadd double {total}, {difference}")]

        (total,) = fori_loop(ir, unit.number(self.order), [("double", "0.0")], accumulate)
        not_finite = ir.value(f"fcmp uno double {total}, {total}")
        report = unit.pointer("report")
        if_then(ir, not_finite, lambda: ir.line(f"store i32 1, ptr {report}"))


class PositiveDiagonal(NamedTuple):
    """Reports 0 if all real parts of a diagonal are above 0, else 1."""

    matrix: str
    order: str
    dtype: np.dtype

    def add(self, unit: MatrixUnit) -> None:
        """Emit the code."""
        ir = unit.ir

        def check_element(i: str, any_failed: str) -> list[str]:
            value = load_diagonal(unit, self.matrix, self.order, self.dtype, i)[0]
            not_positive = ir.value(f"fcmp ule double {value}, 0.0")
            return [ir.value(f"or i1 {any_failed}, {not_positive}")]

        (any_failed,) = fori_loop(ir, unit.number(self.order), [("i1", "false")], check_element)
        ir.line(
            f"store i32 {ir.value(f'zext i1 {any_failed} to i32')}, ptr {unit.pointer('report')}"
        )


class AllFinite(NamedTuple):
    """Stores, as an i32, whether a contiguous float64 vector has a value that is not finite."""

    vector: str
    length: str
    target: str

    def add(self, unit: MatrixUnit) -> None:
        """Emit the code."""
        ir, vector = unit.ir, unit.pointer(self.vector)

        def accumulate(i: str, total: str) -> list[str]:
            value = ir.value(f"load double, ptr {strided_ptr(ir, vector, i, 8)}")
            difference = ir.value(f"fsub double {value}, {value}")
            return [ir.value(f"fadd double {total}, {difference}")]

        (total,) = fori_loop(ir, unit.number(self.length), [("double", "0.0")], accumulate)
        not_finite = ir.value(f"fcmp uno double {total}, {total}")
        flag = ir.value(f"zext i1 {not_finite} to i32")
        ir.line(f"store i32 {flag}, ptr {unit.pointer(self.target)}")


class NonzeroDiagonal(NamedTuple):
    """Fails if a diagonal has a 0."""

    matrix: str
    order: str
    dtype: np.dtype
    leading_dimension: str = ""
    """Elements from one column to the next; the order if empty."""

    def add(self, unit: MatrixUnit) -> None:
        """Emit the code."""
        ir = unit.ir

        def check_element(i: str, has_zero: str) -> list[str]:
            components = load_diagonal(
                unit, self.matrix, self.order, self.dtype, i, self.leading_dimension
            )
            is_zero = "true"
            for component in components:
                equal = ir.value(f"fcmp oeq double {component}, 0.0")
                is_zero = ir.value(f"and i1 {is_zero}, {equal}")
            return [ir.value(f"or i1 {has_zero}, {is_zero}")]

        (has_zero,) = fori_loop(ir, unit.number(self.order), [("i1", "false")], check_element)
        unit.fail_if(has_zero)


class Fail(NamedTuple):
    """Fails always."""

    def add(self, unit: MatrixUnit) -> None:
        """Emit the code."""
        unit.fail_if("true")


class TriangleSide(NamedTuple):
    """Stores, as an i32, the side of the first nonzero off-diagonal element: 1 right of it, else 0.

    This tells an upper from a lower triangle, often by the second row. If columns are the
    contiguous axis, they are tested as rows.
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
    """Whether rows are contiguous: then packets are tested."""

    def add(self, unit: MatrixUnit) -> None:
        """Emit the code."""
        ir, order = unit.ir, unit.number(self.order)
        matrix, row_stride, element_stride = (
            unit.pointer(self.matrix),
            unit.number(self.row_stride),
            unit.number(self.element_stride),
        )

        def check_row(i: str, is_found: str, above_diagonal: str) -> list[str]:
            """Test no more elements once a row has been found."""
            next_index, row = int_op(ir, "add", i, 1), strided_ptr(ir, matrix, i, row_stride)
            segments = (
                (row, i),
                (
                    strided_ptr(ir, row, next_index, element_stride),
                    int_op(ir, "sub", order, next_index),
                ),
            )
            nonzero = []
            for start, length in segments:
                count = ir.value(f"select i1 {is_found}, i64 0, i64 {length}")
                nonzero.append(self._any_nonzero(ir, start, element_stride, count))
            above_diagonal = ir.value(f"or i1 {above_diagonal}, {nonzero[1]}")
            any_nonzero = ir.value(f"or i1 {nonzero[0]}, {nonzero[1]}")
            return [ir.value(f"or i1 {is_found}, {any_nonzero}"), above_diagonal]

        (_, above_diagonal) = fori_loop(ir, order, [("i1", "false"), ("i1", "false")], check_row)
        flag = ir.value(f"zext i1 {above_diagonal} to i32")
        ir.line(f"store i32 {flag}, ptr {unit.pointer(self.target)}")

    def _any_nonzero(self, ir: SimdEmitter, start: str, element_stride: str, count: str) -> str:
        """Emit a loop over elements, after one over packets if rows are contiguous."""
        type_, components = SCALAR_PARTS[self.dtype]
        if not self.contiguous:
            return self._any_nonzero_element(ir, start, element_stride, count, components, "false")
        size, bytes_ = LANES[type_], BYTES[type_]
        numbers = int_op(ir, "mul", count, components)
        packets = int_op(ir, "udiv", numbers, size)
        integers = f"<{size} x i{8 * bytes_}>"
        ones = f"<{', '.join([f'i{8 * bytes_} 1'] * size)}>"

        def merge_packet(j: str, bits_seen: str) -> list[str]:
            at = strided_ptr(ir, start, j, size * bytes_)
            value = ir.value(f"load {integers}, ptr {at}, align 1")
            # without the sign bit, a number is 0 if all bits are 0
            unsigned = ir.value(f"shl {integers} {value}, {ones}")
            return [ir.value(f"or {integers} {bits_seen}, {unsigned}")]

        (bits_seen,) = fori_loop(ir, packets, [(integers, "zeroinitializer")], merge_packet)
        number, reduce = f"i{8 * bytes_}", f"llvm.vector.reduce.or.v{size}i{8 * bytes_}"
        bits = ir.intrinsic(reduce, number, [(integers, bits_seen)])
        nonzero = ir.value(f"icmp ne {number} {bits}, 0")
        processed = int_op(ir, "mul", packets, size)
        remaining = int_op(ir, "sub", numbers, processed)
        return self._any_nonzero_element(
            ir, strided_ptr(ir, start, processed, bytes_), str(bytes_), remaining, 1, nonzero
        )

    def _any_nonzero_element(
        self,
        ir: SimdEmitter,
        start: str,
        element_stride: str,
        count: str,
        components: int,
        initial: str,
    ) -> str:
        type_ = SCALAR_PARTS[self.dtype][0]

        def check_element(j: str, result: str) -> list[str]:
            at = strided_ptr(ir, start, j, element_stride)
            for component in range(components):
                value = ir.value(
                    f"load {type_}, ptr {offset_ptr(ir, at, component * BYTES[type_])}, align 1"
                )
                is_nonzero = ir.value(f"fcmp une {type_} {value}, 0.0")
                result = ir.value(f"or i1 {result}, {is_nonzero}")
            return [result]

        return fori_loop(ir, count, [("i1", initial)], check_element)[0]


LANES = {"float": 32, "double": 16}
"""The numbers of a packet that is tested for zeros."""


def fori_loop(
    ir: SimdEmitter, end: str, carried: list[tuple[str, str]], body: Callable[..., list[str]]
) -> list[str]:
    """Emit a loop with carried values; `body` gets the index before them."""

    def next_values(i: str, *values: str) -> list[str]:
        return [int_op(ir, "add", i, 1), *body(i, *values)]

    return carry_loop(ir, end, [("i64", "0"), *carried], next_values)[1:]
