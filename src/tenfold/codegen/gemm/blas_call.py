"""BLAS calls: matrix products by gemm, as kernels with the common kernel ABI.

A unit of work is a panel of rows of one product of the stack: one call of gemm (Dongarra et al., "A
set of level 3 basic linear algebra subprograms", ACM TOMS 16, 1990). The function's address is the
last buffer. gemm takes column-major matrices, and a row-major matrix is its transpose in
column-major order. So the kernel computes x2.T @ x1.T, which in row-major order is x1 @ x2. A panel
of the addend is copied to the result first, unless it is the result. The conjugate of a product is
that of conjugated scalars and addend, conjugated in the end.

BLAS does not read what it multiplies by a zero, so NaN and infinities would be lost. With a zero
alpha or beta the kernel computes strips of the product in scratch memory, and scales them itself.

>>> print(BlasGemm(FLOAT64, ("row", "column"), axes=0))
library product x1 @ x2 of float64 by dgemm, stack of 0 axes
  x1 by rows, x2 by columns
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tenfold.codegen.gemm.emitter import (
    ADDEND_NOTES,
    Arithmetic,
    if_else,
    load_arguments,
    module_text,
    offset_ptr,
    read_stack,
    stack_pointers,
    stack_sizes,
    strided_ptr,
)
from tenfold.codegen.llvm.loop_emitter import for_range, if_then, int_min, int_op
from tenfold.codegen.llvm.simd_emitter import SimdEmitter, llvm_type
from tenfold.dtypes import COMPLEX64, COMPLEX128, FLOAT32, FLOAT64
from tenfold.schedule.product_forms import BLAS_ROUTINES

ONE_LITERALS = {
    FLOAT32: "float 1.0",
    FLOAT64: "double 1.0",
    COMPLEX64: "<2 x float> <float 1.0, float 0.0>",
    COMPLEX128: "<2 x double> <double 1.0, double 0.0>",
}
FLAGS = {"row": ord("N"), "column": ord("T")}
PANEL = 256
"""The rows of one call of gemm."""
STRIP = 32
"""The columns of a strip."""


@dataclass(frozen=True)
class BlasGemm:
    """A product by gemm; each layout is "row" (row-major) or "column" (column-major).

    `axes` is the number of stack axes.
    """

    dtype: np.dtype
    layouts: tuple[str, str]
    axes: int = 0
    conjugated: tuple[bool, bool] = (False, False)
    """Which operands BLAS conjugates; such an operand is column-major."""
    conjugated_result: bool = False
    """Whether their product is conjugated."""
    scaled: bool = False
    """Whether the product is multiplied by the first scalar of the launch."""
    addend: str = ""
    """Not empty: x3, of any strides, is added times the second scalar, and may be the result.

    The scalars of the launch are 16 bytes apart."""

    def __str__(self) -> str:
        x1, x2 = (
            f"conj({name})" if conjugated else name
            for name, conjugated in zip(("x1", "x2"), self.conjugated, strict=True)
        )
        product = f"conj({x1} @ {x2})" if self.conjugated_result else f"{x1} @ {x2}"
        alpha, added = "alpha * " * self.scaled, ADDEND_NOTES[self.addend and "any"]
        return (
            f"library product {alpha}{product}{added} of {self.dtype} by {self.routine}, "
            f"stack of {self.axes} axes"
            f"\n  x1 by {self.layouts[0]}s, x2 by {self.layouts[1]}s"
        )

    @property
    def routine(self) -> str:
        """The name of the BLAS routine it calls."""
        return BLAS_ROUTINES[self.dtype]

    @property
    def sizes(self) -> tuple[str, ...]:
        """Names of the launch sizes, in order: strides in bytes, leading dimensions in elements."""
        names = ("m", "n", "k", "leading dimension of x1", "leading dimension of x2")
        stack = stack_sizes(self.axes, 2 + bool(self.addend))
        addend = ("row of x3", "column of x3") if self.addend else ()
        return (*stack, *names, *addend, "rows of a panel")

    @property
    def scratch(self) -> int:
        """The bytes a thread needs: a strip of a panel, if the product is scaled."""
        return PANEL * STRIP * self.dtype.itemsize if self.scaled else 0

    def text(self) -> str:
        """Return its LLVM module. Buffers are x1, x2, the contiguous result, x3 if it is added, and
        gemm.
        """
        return _BlasEmitter(self).module()


class _Panel(NamedTuple):
    """LLVM values of a unit of work: pointers to the first element, and the rows."""

    x1: str
    x2: str
    x3: str
    target: str
    height: str


class _BlasEmitter:
    """Emits the code of a BlasGemm."""

    def __init__(self, kernel: BlasGemm) -> None:
        self.kernel, self.itemsize, added = kernel, kernel.dtype.itemsize, bool(kernel.addend)
        self.ir = ir = SimdEmitter()
        self.arithmetic = Arithmetic(kernel.dtype, 16)
        *self.buffers, self.gemm = load_arguments(ir, "%buffers", 0, 4 + added)
        self.stack = read_stack(ir, kernel.axes, 2 + added)
        first = (3 + added) * kernel.axes
        numbers = load_arguments(ir, "%sizes", first, 6 + 2 * added)
        self.m, self.n, k, *self.leading = numbers[:5]
        *self.addend_strides, self.panel_rows = numbers[5:]
        self.flags = [
            _stack_slot(ir, f"i8 {flag}") for flag in map(_flag, kernel.layouts, kernel.conjugated)
        ]
        self.one, self.zero = (_stack_slot(ir, value) for value in _one_and_zero(kernel.dtype))
        self.columns, self.depth, *self.leading_slots = (
            _stack_slot(ir, f"i32 {_to_int32(ir, number)}") for number in (self.n, k, *self.leading)
        )
        self.rows, self.width = ir.alloca(4), ir.alloca(4)
        self.alpha, self.beta = self.one, self.zero
        if kernel.scaled:
            self.alpha, self.beta = (self._scalar(offset) for offset in (0, 16))

    def _scalar(self, offset: int) -> str:
        """Return the pointer to a scalar of the launch, or to its conjugate."""
        ir, pointer = self.ir, offset_ptr(self.ir, "%scalars", offset)
        if not self.kernel.conjugated_result:
            return pointer
        slot = ir.alloca(16)
        self._copy_conjugated(pointer, slot)
        return slot

    def _copy_conjugated(self, source: str, target: str) -> None:
        ir, arithmetic, lanes = self.ir, self.arithmetic, self.arithmetic.components
        value = arithmetic.conjugate(ir, arithmetic.load(ir, source, lanes), lanes)
        arithmetic.store(ir, value, target, lanes)

    def module(self) -> str:
        """Emit the module."""
        ir, n = self.ir, self.panel_rows
        panels = int_op(ir, "udiv", int_op(ir, "sub", int_op(ir, "add", self.m, n), 1), n)
        has_zero = self._has_zero_scalar() if self.kernel.scaled else ""

        def emit_unit(index: str) -> None:
            panel = self._locate_panel(index, panels)
            ir.line(f"store i32 {_to_int32(ir, panel.height)}, ptr {self.rows}")
            if has_zero:
                if_else(
                    ir, has_zero, lambda: self._scale_strips(panel), lambda: self._multiply(panel)
                )
            else:
                self._multiply(panel)

        for_range(ir, "%begin", "%end", 1, emit_unit)
        ir.line("ret i64 0")
        return module_text(ir, str(self.kernel))

    def _locate_panel(self, index: str, panels: str) -> _Panel:
        ir = self.ir
        outer = int_op(ir, "udiv", index, panels)
        first_row = int_op(ir, "mul", int_op(ir, "urem", index, panels), self.panel_rows)
        height = int_min(ir, int_op(ir, "sub", self.m, first_row), self.panel_rows)
        x1, x2, *addend = stack_pointers(
            ir, outer, self.stack, [*self.buffers[:2], *self.buffers[3:]]
        )
        row_step = self.leading[0] if self.kernel.layouts[0] == "row" else "1"
        row = int_op(ir, "add", int_op(ir, "mul", outer, self.m), first_row)
        return _Panel(
            x1=strided_ptr(ir, x1, int_op(ir, "mul", first_row, row_step), self.itemsize),
            x2=x2,
            x3=strided_ptr(ir, addend[0], first_row, self.addend_strides[0]) if addend else "",
            target=strided_ptr(ir, self.buffers[2], int_op(ir, "mul", row, self.n), self.itemsize),
            height=height,
        )

    def _has_zero_scalar(self) -> str:
        """Return whether alpha or beta is zero; NaN is not."""
        ir, scalar = self.ir, llvm_type(self.arithmetic.scalar_dtype, 1)
        zeros = []
        for offset in (0, 16)[: 1 + bool(self.kernel.addend)]:
            are_zero = []
            for component in range(self.arithmetic.components):
                at = offset + component * self.arithmetic.scalar_dtype.itemsize
                value = ir.value(f"load {scalar}, ptr {offset_ptr(ir, '%scalars', at)}, align 1")
                are_zero.append(ir.value(f"fcmp oeq {scalar} {value}, 0.0"))
            zeros.append(self._combine("and", are_zero))
        return self._combine("or", zeros)

    def _combine(self, operation: str, conditions: list[str]) -> str:
        first, *others = conditions
        return self.ir.value(f"{operation} i1 {first}, {others[0]}") if others else first

    def _multiply(self, panel: _Panel) -> None:
        """Call gemm for a panel, which has a copy of the addend."""
        ir, conjugated = self.ir, self.kernel.conjugated_result
        if panel.x3 and conjugated:
            self._copy_addend(panel)
        elif panel.x3:
            is_other = ir.value(f"icmp ne ptr {self.buffers[3]}, {self.buffers[2]}")
            if_then(ir, is_other, lambda: self._copy_addend(panel))
        operands = self.columns, panel.x2, panel.x1, panel.target
        self._call(operands, (self.alpha, self.beta if panel.x3 else self.zero), self.columns)
        if conjugated:
            self._conjugate(panel)

    def _copy_addend(self, panel: _Panel) -> None:
        ir, arithmetic, lanes = self.ir, self.arithmetic, self.arithmetic.components

        def copy_element(row: str, column: str) -> None:
            source, target = self._element_pointers(panel, row, column)
            if self.kernel.conjugated_result:
                self._copy_conjugated(source, target)
            else:
                arithmetic.store(ir, arithmetic.load(ir, source, lanes), target, lanes)

        self._for_elements(panel.height, self.n, copy_element)

    def _conjugate(self, panel: _Panel) -> None:
        def conjugate_element(row: str, column: str) -> None:
            _, target = self._element_pointers(panel, row, column)
            self._copy_conjugated(target, target)

        self._for_elements(panel.height, self.n, conjugate_element)

    def _element_pointers(self, panel: _Panel, row: str, column: str) -> tuple[str, str]:
        """Return pointers to an element of the addend, if there is one, and of the result."""
        ir = self.ir
        target = int_op(ir, "add", int_op(ir, "mul", row, self.n), column)
        source = ""
        if panel.x3:
            row_stride, column_stride = self.addend_strides
            source = strided_ptr(ir, panel.x3, row, row_stride)
            source = strided_ptr(ir, source, column, column_stride)
        return source, strided_ptr(ir, panel.target, target, self.itemsize)

    def _for_elements(self, rows: str, columns: str, body: Callable[[str, str], None]) -> None:
        def each_row(row: str) -> None:
            for_range(self.ir, "0", columns, 1, lambda column: body(row, column))

        for_range(self.ir, "0", rows, 1, each_row)

    def _call(self, operands: tuple[str, ...], scalars: tuple[str, str], leading: str) -> None:
        """Call gemm: (columns, x2, x1, target), (alpha, beta), the leading dimension of target."""
        columns, x2, x1, target = operands
        alpha, beta = scalars
        arguments = (
            *(self.flags[1], self.flags[0], columns, self.rows, self.depth, alpha),
            *(x2, self.leading_slots[1], x1, self.leading_slots[0], beta, target, leading),
        )
        text = ", ".join(f"ptr {argument}" for argument in arguments)
        self.ir.line(f"call void {self.gemm}({text})")

    def _scale_strips(self, panel: _Panel) -> None:
        """Compute a panel strip by strip in scratch memory; scale it and add the addend."""
        ir = self.ir
        column_step = "1" if self.kernel.layouts[1] == "row" else self.leading[1]

        def emit_strip(first: str) -> None:
            width = int_min(ir, int_op(ir, "sub", self.n, first), STRIP)
            ir.line(f"store i32 {_to_int32(ir, width)}, ptr {self.width}")
            step = int_op(ir, "mul", first, column_step)
            x2 = strided_ptr(ir, panel.x2, step, self.itemsize)
            scalars = (self.one, self.zero)
            self._call((self.width, x2, panel.x1, "%scratch"), scalars, self.width)

            def store_element(row: str, column: str) -> None:
                at = int_op(ir, "add", int_op(ir, "mul", row, width), column)
                product = strided_ptr(ir, "%scratch", at, self.itemsize)
                self._store_scaled(panel, row, int_op(ir, "add", first, column), product)

            self._for_elements(panel.height, width, store_element)

        for_range(ir, "0", self.n, STRIP, emit_strip)

    def _store_scaled(self, panel: _Panel, row: str, column: str, product: str) -> None:
        ir, arithmetic = self.ir, self.arithmetic
        lanes = arithmetic.components
        source, target = self._element_pointers(panel, row, column)
        alpha = arithmetic.broadcast_factors(ir, "%scalars", lanes)
        value = arithmetic.load(ir, product, lanes)
        if self.kernel.conjugated_result:
            value = arithmetic.conjugate(ir, value, lanes)
        value = arithmetic.scale(ir, value, alpha, lanes)
        if source:
            beta = arithmetic.broadcast_factors(ir, offset_ptr(ir, "%scalars", 16), lanes)
            addend = arithmetic.scale(ir, arithmetic.load(ir, source, lanes), beta, lanes)
            value = arithmetic.add(ir, value, addend, lanes)
        arithmetic.store(ir, value, target, lanes)


def _one_and_zero(dtype: np.dtype) -> tuple[str, str]:
    return ONE_LITERALS[dtype], ONE_LITERALS[dtype].replace("1.0", "0.0")


def _flag(layout: str, conjugated: bool) -> int:
    return ord("C") if conjugated else FLAGS[layout]


def _to_int32(ir: SimdEmitter, number: str) -> str:
    """Truncate an i64 to the 32-bit integer of BLAS."""
    return ir.value(f"trunc i64 {number} to i32")


def _stack_slot(ir: SimdEmitter, value: str) -> str:
    """Store an argument on the stack and return its pointer: BLAS takes pointers only."""
    slot = ir.alloca(16)
    ir.line(f"store {value}, ptr {slot}")
    return slot
