"""Triangular solve: the BLAS and LAPACK programs for triangular and diagonal equations.

Takes the layouts of a matrix and of right-hand sides, the Type of the result, the triangle of the
matrix, and whether its diagonal is 1; hands on a DriverLaunch.

>>> float64 = np.dtype(np.float64)
>>> x, b = StackedLayout((2, 2), (16, 8), float64), StackedLayout((2, 3), (24, 8), float64)
>>> print(triangular((x, b), (Type((2, 3), float64, "cpu"),), "lower", False).kernel)
library call of dtrsm, 3 buffers
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tenfold._native import Type
from tenfold.codegen.lapack.diagonal_steps import NonzeroDiagonal, TriangleSide
from tenfold.codegen.lapack.driver_call import Branch
from tenfold.codegen.lapack.driver_call import Step as KernelStep
from tenfold.codegen.lapack.matrix_copies import INT32
from tenfold.runtime.lapack.drivers import DriverLaunch
from tenfold.runtime.lapack.lapack_program import (
    LapackProgram,
    Side,
    StackedLayout,
    as_matrix,
    compute_dtype,
    driver_launch,
    operand_of,
)
from tenfold.runtime.lapack.right_hand_sides import (
    RightHandSides,
    merge_vectors,
    solve_in_place,
    substitution,
)


def triangular(
    layouts: tuple[StackedLayout, ...], types: tuple[Type, ...], side: str, unit_diagonal: bool
) -> DriverLaunch:
    """Only the triangle is read, in place if LAPACK supports its layout. "either": the matrix is
    triangular, and its values tell the triangle.
    """
    first, second = layouts[0], as_matrix(layouts[1])
    stack = np.broadcast_shapes(first.shape[:-2], second.shape[:-2])
    first, second, stack = merge_vectors(stack, first, second)
    left, right = operand_of(0, first, stack), operand_of(1, second, stack)
    n, count = second.shape[-2:]
    program = LapackProgram(compute_dtype(first.dtype, second.dtype), n)

    if side == "diagonal":
        matrix, leading = _diagonal_band(program, left.side)
        flags, leading_number = f"'U 'N '{'U' if unit_diagonal else 'N'} n", program.number(leading)

        def solve_diagonal(x: RightHandSides) -> Sequence[KernelStep]:
            band = program.number(0)
            arguments = f"{flags} {band} {x.columns} {matrix} {leading_number} {x.pointer} n report"
            return [program.call("tbtrs", arguments)]

        solve_in_place(program, right.side, types[0], stack, count, solve_diagonal)
    else:
        matrix, leading, transposed = _triangle_layout(program, left.side)
        leading_number = program.number(leading)

        def substitute(x: RightHandSides, side: str) -> tuple[KernelStep, ...]:
            uplo = "U" if (side == "upper") != transposed else "L"
            step = substitution(
                program,
                x,
                matrix,
                uplo,
                leading=leading_number,
                transposed=transposed,
                unit=unit_diagonal,
            )
            if step.fails or unit_diagonal:
                return (step,)
            return (NonzeroDiagonal(matrix, program.n, program.dtype, leading_number), step)

        def solving(x: RightHandSides) -> Sequence[KernelStep]:
            if side != "either":
                return substitute(x, side)
            by_rows, test = _triangle_test(program, left.side)
            if_zero, if_nonzero = ("lower", "upper") if by_rows else ("upper", "lower")
            branches = substitute(x, if_zero), substitute(x, if_nonzero)
            return [test, Branch(test.target, *branches)]

        solve_in_place(program, right.side, types[0], stack, count, solving, rows=True)
    return driver_launch(
        program, (left, right), types, math.prod(stack), n * n * count // 2, columns=count
    )


def _triangle_test(program: LapackProgram, side: Side) -> tuple[bool, TriangleSide]:
    """The test for a nonzero above or below the diagonal, along the axis of smaller stride."""
    by_rows = abs(side.columns) <= abs(side.rows)
    outer_stride, inner_stride = (side.rows, side.columns) if by_rows else (side.columns, side.rows)
    test = TriangleSide(
        side.pointer,
        program.n,
        program.number(outer_stride),
        program.number(inner_stride),
        side.dtype,
        program.scratch_area(INT32, 1),
        inner_stride == side.dtype.itemsize,
    )
    return by_rows, test


def _diagonal_band(program: LapackProgram, side: Side) -> tuple[str, int]:
    """Return the pointer of a diagonal as a band matrix of one band, and its stride in elements."""
    stride = side.rows + side.columns
    if side.dtype == program.dtype and stride > 0 and stride % program.item == 0:
        return side.pointer, stride // program.item
    pointer = program.scratch_area(program.dtype, program.order)
    inner = (program.order, stride, program.item)
    program.steps.append(
        program.move(side.pointer, pointer, (side.dtype, program.dtype), (1, 0, 0), inner)
    )
    return pointer, 1


def _triangle_layout(program: LapackProgram, side: Side) -> tuple[str, int, bool]:
    """Return the pointer of a matrix for LAPACK, its leading dimension, and whether it is
    transposed; it is copied if its layout is unsupported.
    """
    n, item = program.order, program.item
    for row_stride, column_stride, transposed in (
        (side.rows, side.columns, False),
        (side.columns, side.rows, True),
    ):
        fits = column_stride >= n * item and column_stride % item == 0
        if side.dtype == program.dtype and row_stride == item and fits:
            return side.pointer, column_stride // item, transposed
    pointer = program.scratch_area(program.dtype, n * n)
    program.steps.append(program.square(side, pointer))
    return pointer, n, False
