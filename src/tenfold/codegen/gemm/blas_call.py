"""BLAS calls: matrix products by gemm, as kernels with the common kernel ABI.

A unit of work is a panel of rows of one product of the stack: one call of gemm (Dongarra et al., "A
set of level 3 basic linear algebra subprograms", ACM TOMS 16, 1990). The function's address is the
fourth buffer. gemm takes column-major matrices, and a row-major matrix is its transpose in
column-major order. So the kernel computes x2.T @ x1.T, which in row-major order is x1 @ x2.

>>> print(BlasGemm(FLOAT64, ("row", "column"), axes=0))
library product x1 @ x2 of float64 by dgemm, stack of 0 axes
  x1 by rows, x2 by columns
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tenfold.codegen.gemm.emitter import (
    load_arguments,
    module_text,
    offset_ptr,
    read_stack,
    stack_pointers,
    stack_sizes,
    strided_ptr,
)
from tenfold.codegen.llvm.loop_emitter import for_range, int_min, int_op
from tenfold.codegen.llvm.simd_emitter import SimdEmitter
from tenfold.dtypes import COMPLEX64, COMPLEX128, FLOAT32, FLOAT64
from tenfold.schedule.product_forms import BLAS_ROUTINES

ONE_LITERALS = {
    FLOAT32: "float 1.0",
    FLOAT64: "double 1.0",
    COMPLEX64: "<2 x float> <float 1.0, float 0.0>",
    COMPLEX128: "<2 x double> <double 1.0, double 0.0>",
}
FLAGS = {"row": ord("N"), "column": ord("T")}


@dataclass(frozen=True)
class BlasGemm:
    """A product by gemm; each layout is "row" (row-major) or "column" (column-major).

    `axes` is the number of stack axes.
    """

    dtype: np.dtype
    layouts: tuple[str, str]
    axes: int = 0
    conjugated: tuple[bool, bool] = (False, False)
    """Which operands are conjugated; a conjugated operand is column-major."""
    scaled: bool = False
    """Whether alpha and beta are scalars of the launch, 16 bytes apart.

    The result then holds the addend, which is multiplied by beta."""

    def __str__(self) -> str:
        x1, x2 = (
            f"conj({name})" if conjugated else name
            for name, conjugated in zip(("x1", "x2"), self.conjugated, strict=True)
        )
        alpha, added = "alpha * " * self.scaled, " + beta * result" * self.scaled
        return (
            f"library product {alpha}{x1} @ {x2}{added} of {self.dtype} by {self.routine}, "
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
        return (*stack_sizes(self.axes), *names, "rows of a panel")

    def text(self) -> str:
        """Return its LLVM module. Buffers are x1, x2, the result, which is contiguous, and gemm."""
        return _kernel_text(self)


def _kernel_text(kernel: BlasGemm) -> str:
    ir, itemsize = SimdEmitter(), kernel.dtype.itemsize
    x1, x2, result, gemm = load_arguments(ir, "%buffers", 0, 4)
    stack = read_stack(ir, kernel.axes)
    m, n, k, *leading, panel_rows = load_arguments(ir, "%sizes", 3 * kernel.axes, 6)
    flags = [
        _stack_slot(ir, f"i8 {flag}") for flag in map(_flag, kernel.layouts, kernel.conjugated)
    ]
    if kernel.scaled:
        alpha, beta = "%scalars", offset_ptr(ir, "%scalars", 16)
    else:
        alpha, beta = (_stack_slot(ir, value) for value in _one_and_zero(kernel.dtype))
    dimensions = [_stack_slot(ir, f"i32 {_to_int32(ir, number)}") for number in (n, k, *leading)]
    rows = ir.alloca(4)
    panels = int_op(ir, "udiv", int_op(ir, "sub", int_op(ir, "add", m, panel_rows), 1), panel_rows)
    row_step = leading[0] if kernel.layouts[0] == "row" else "1"

    def emit_unit(index: str) -> None:
        outer = int_op(ir, "udiv", index, panels)
        first_row = int_op(ir, "mul", int_op(ir, "urem", index, panels), panel_rows)
        height = int_min(ir, int_op(ir, "sub", m, first_row), panel_rows)
        ir.line(f"store i32 {_to_int32(ir, height)}, ptr {rows}")
        x1_rows, x2_matrix = stack_pointers(ir, outer, stack, (x1, x2))
        x1_rows = strided_ptr(ir, x1_rows, int_op(ir, "mul", first_row, row_step), itemsize)
        row = int_op(ir, "add", int_op(ir, "mul", outer, m), first_row)
        target = strided_ptr(ir, result, int_op(ir, "mul", row, n), itemsize)
        arguments = (
            *(flags[1], flags[0], dimensions[0], rows, dimensions[1], alpha),
            *(x2_matrix, dimensions[3], x1_rows, dimensions[2], beta, target, dimensions[0]),
        )
        ir.line(f"call void {gemm}({', '.join(f'ptr {argument}' for argument in arguments)})")

    for_range(ir, "%begin", "%end", 1, emit_unit)
    ir.line("ret i64 0")
    return module_text(ir, str(kernel))


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
