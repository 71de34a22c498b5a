"""Product kernels: choose and compile the kernels of products that the op interpreter runs.

Takes an operation, a dtype and the layouts of operands from native code. Hands on the launch that a
schedule chooses (`native/exec/matrix_product.cpp`). The kernel of two vectors serves any length and
strides: native code asks for it once for vectors that are contiguous, and once for others.

    kernel, *sizes = product_launch(matmul, FLOAT64, (2,), (8,), (2,), (16,))
"""

from __future__ import annotations

import numpy as np

from tenfold import _native
from tenfold._native import EntryPoint, Type
from tenfold.core.op import Op
from tenfold.core.shape_rules import Shape
from tenfold.jit.host import host_target
from tenfold.jit.program import PROGRAMS
from tenfold.runtime.blas.product_dispatch import bind_product
from tenfold.runtime.blas.product_launch import threads_of
from tenfold.schedule.lowering import contiguous_strides
from tenfold.schedule.product_choice import choose_product
from tenfold.schedule.product_forms import ProductOperand


def product_launch(
    op: Op[...],
    dtype: np.dtype,
    first_shape: Shape,
    first_strides: tuple[int, ...],
    second_shape: Shape,
    second_strides: tuple[int, ...],
) -> tuple[EntryPoint, bool, tuple[int, ...], int, int, int, int, int] | None:
    """Return the launch that a plan has for operands of these layouts: entry point, whether the
    operands are swapped, sizes, scratch bytes, units, grain, threads, multiply-adds. Empty strides
    are those of C order. None where a plan copies an operand first or calls a library.
    """
    contraction = op.rewriting.contraction
    assert contraction is not None, "a product says what it contracts"
    shapes = first_shape, second_shape
    x1, x2 = (
        ProductOperand(shape, strides or contiguous_strides(shape, dtype.itemsize), dtype)
        for shape, strides in zip(shapes, (first_strides, second_strides), strict=True)
    )
    types = tuple(Type(shape, dtype, "cpu") for shape in shapes)
    choice = choose_product(contraction(types), x1, x2, target=host_target())
    if choice.copy_order or choice.is_blas:
        return None
    step = bind_product(choice)
    # without optimisation it runs several times as long
    program = PROGRAMS.of(step.kernel, step.multiply_adds, "1", host_target().processor)
    if program.finish is not None:
        return None
    if len(first_shape) == len(second_shape) == 1:
        _native.count("generic_compiles")
    swapped = step.operands == (1, 0)
    return (
        *(program.kernel, swapped, step.sizes, step.scratch),
        *(step.units, step.grain, threads_of(step), step.multiply_adds),
    )
