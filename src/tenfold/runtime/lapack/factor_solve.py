"""Factorisation and solve: the LAPACK programs that factor matrices and solve equations.

Takes the layouts of operands and the Types of results, with the parameters of an operation, hands
on a DriverLaunch for each operation in `LAPACK_OPS`.

>>> float64 = np.dtype(np.float64)
>>> x = StackedLayout((2, 2), (16, 8), float64)
>>> print(LAPACK_OPS[linalg.cholesky]((x,), (Type((2, 2), float64, "cpu"),), False).kernel)
library call of dpotrf, dlaset, 2 buffers
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from tenfold._native import Type
from tenfold.codegen.lapack.determinant import Determinant
from tenfold.codegen.lapack.diagonal_steps import FiniteDiagonal, NonzeroDiagonal, PositiveDiagonal
from tenfold.codegen.lapack.driver_call import Branch, Routine
from tenfold.codegen.lapack.driver_call import Step as KernelStep
from tenfold.codegen.lapack.matrix_copies import INT32, Conjugate, Mirror, Move
from tenfold.core.op import Op
from tenfold.dtypes import kind_of
from tenfold.ops import factors, linalg, lu_and_triangular
from tenfold.runtime.lapack.drivers import DriverLaunch
from tenfold.runtime.lapack.lapack_program import (
    LapackProgram,
    Side,
    StackedLayout,
    UnsupportedLayout,
    as_matrix,
    compute_dtype,
    driver_launch,
    load_pivots,
    operand_of,
    square_program,
)
from tenfold.runtime.lapack.right_hand_sides import RightHandSides, merge_vectors, solve_in_place
from tenfold.runtime.lapack.symmetric_solve import solving_symmetric, symmetric_factors
from tenfold.runtime.lapack.triangular_solve import triangular


def _cholesky(
    layouts: tuple[StackedLayout, ...], types: tuple[Type, ...], upper: bool
) -> DriverLaunch:
    """Cholesky. A lower triangle in row-major order is an upper one in column-major order."""
    operand, program, units = square_program(layouts)
    n, side, (result,) = program.order, operand.side, types
    in_place = result.dtype == program.dtype
    pointer = "m1" if in_place else program.scratch_area(program.dtype, n * n)
    transposed = side._replace(rows=side.columns, columns=side.rows)
    triangle, opposite = "LU" if upper else "UL"
    minor_order = program.number(n - 1)
    offset = program.number((n if upper else 1) * program.item)
    program.steps += [
        program.square(transposed, pointer),
        program.call("potrf", f"'{triangle} n {pointer} n report"),
        program.call(
            "laset",
            f"'{opposite} {minor_order} {minor_order} zero zero {pointer}+{offset} n",
            fails=False,
        ),
    ]
    if not in_place:
        factor = Side(pointer, program.item, n * program.item, program.dtype)
        program.steps.append(_narrow_matrix(program, factor, "m1", result.dtype))
    return driver_launch(program, (operand,), types, units, n**3 // 6)


def _narrow_matrix(program: LapackProgram, side: Side, target: str, dtype: np.dtype) -> Move:
    """The copy of a square matrix in the same layout, in another dtype."""
    inner = (program.order, side.rows, dtype.itemsize)
    outer = (program.order, side.columns, program.order * dtype.itemsize)
    return program.move(side.pointer, target, (side.dtype, dtype), outer, inner)


SOLVE_LIMIT = 128
"""The order below which the inverse is a solve with the identity."""


def _inverse(layouts: tuple[StackedLayout, ...], types: tuple[Type, ...]) -> DriverLaunch:
    """The inverse by a solve with the identity; for large matrices by getri, which is faster."""
    operand, program, units = square_program(layouts)
    n = program.order
    matrix, pivots = program.lu_factor(operand.side)
    if n < SOLVE_LIMIT:
        inverse = program.scratch_area(program.dtype, n * n)
        program.steps += [
            program.call("laset", f"'A n n zero one {inverse} n", fails=False),
            program.call("getrs", f"'N n n {matrix} n {pivots} {inverse} n report"),
        ]
    else:
        inverse, work = matrix, program.work("getri", (n, None, n, None, None, -1))
        program.steps.append(program.call("getri", f"n {matrix} n {pivots} {work} report"))
    program.steps.append(program.by_rows(inverse, "m1", types[0].dtype, n))
    return driver_launch(program, (operand,), types, units, n**3, columns=n)


def _determinant(layouts: tuple[StackedLayout, ...], types: tuple[Type, ...]) -> DriverLaunch:
    operand, program, units = square_program(layouts)
    matrix, pivots = program.lu_factor(operand.side)
    factor = program.steps.pop()
    assert isinstance(factor, Routine), "the LU factorisation"
    dtypes = program.dtype, types[0].dtype
    program.steps += [
        factor._replace(fails=False),  # the determinant of a singular matrix is 0
        Determinant(matrix, pivots, program.n, dtypes, "m1"),
    ]
    return driver_launch(program, (operand,), types, units, program.order**3 // 3)


def _solve(layouts: tuple[StackedLayout, ...], types: tuple[Type, ...]) -> DriverLaunch:
    first, second = layouts[0], as_matrix(layouts[1])
    stack = np.broadcast_shapes(first.shape[:-2], second.shape[:-2])
    left, right = operand_of(0, first, stack), operand_of(1, second, stack)
    n, count = second.shape[-2:]
    program = LapackProgram(compute_dtype(first.dtype, second.dtype), n)
    matrix, pivots = program.lu_factor(left.side)
    columns = program.number(count)
    arguments = f"'N n {columns} {matrix} n {pivots}"

    def solving(x: RightHandSides) -> Sequence[KernelStep]:
        return [program.call("getrs", f"{arguments} {x.pointer} n report")]

    solve_in_place(program, right.side, types[0], stack, count, solving)
    return driver_launch(
        program, (left, right), types, math.prod(stack), n**3 // 3 + n * n * count, columns=count
    )


def _factors(
    layouts: tuple[StackedLayout, ...], types: tuple[Type, ...], method: str
) -> DriverLaunch:
    """The Cholesky factor with pivots 0 if it exists, else the LU factors, per matrix.

    The other triangle of a Cholesky factor is not read.
    """
    if method == "symmetric":
        return symmetric_factors(layouts, types)
    operand, program, units = square_program(layouts)
    n, item = program.order, program.item
    copy = program.square(operand.side, "m1")
    pivots, pivots_offset = program.scratch_area(INT32, n), program.number(n * n * item)
    lu_steps: list[KernelStep] = [
        program.call("getrf", f"n n m1 n {pivots} report", fails=False),
        program.copy_pivots(pivots, f"m1+{pivots_offset}", (INT32, program.dtype)),
    ]
    if method == "gauss":
        program.steps = [copy, *lu_steps]
    else:
        clear_pivots = program.move(
            "zero", f"m1+{pivots_offset}", (program.dtype, program.dtype), (1, 0, 0), (n, 0, item)
        )
        potrf = program.call("potrf", "'L n m1 n report", fails=False)
        program.steps = [
            copy,
            PositiveDiagonal("m1", program.n, program.dtype),
            # NaN passes through a comparison with 0, so LAPACK need not see it
            Branch("report", (potrf, FiniteDiagonal("m1", program.n, program.dtype)), ()),
            clear_pivots,
            Branch("report", (), (copy, *lu_steps)),
        ]
    return driver_launch(program, (operand,), types, units, n**3 // 3)


def _inverse_factored(
    layouts: tuple[StackedLayout, ...], types: tuple[Type, ...], _: np.dtype
) -> DriverLaunch:
    packed, program, units = square_program(layouts)
    n = program.order
    pivots, matrix = load_pivots(program, packed), program.scratch_area(program.dtype, n * n)
    work = program.work("getri", (n, None, n, None, None, -1))
    cholesky_inverse = (
        program.call("potri", f"'L n {matrix} n report"),
        Mirror(matrix, program.n, program.dtype),
    )
    lu_inverse = program.call("getri", f"n {matrix} n {pivots} {work} report")
    by_columns = packed.side._replace(rows=program.item, columns=n * program.item)
    program.steps += [
        NonzeroDiagonal("m0", program.n, program.dtype),
        program.square(by_columns, matrix),
        Branch(pivots, cholesky_inverse, (lu_inverse,)),
        program.by_rows(matrix, "m1", types[0].dtype, n),
    ]
    return driver_launch(program, (packed,), types, units, n**3, columns=n)


def _determinant_factored(
    layouts: tuple[StackedLayout, ...], types: tuple[Type, ...], _: np.dtype, *, part: str = "whole"
) -> DriverLaunch:
    packed, program, units = square_program(layouts)
    pivots, dtypes = load_pivots(program, packed), (program.dtype, types[0].dtype)
    determinant = Determinant("m0", pivots, program.n, dtypes, "m1", part)
    program.steps.append(Branch(pivots, (determinant._replace(pivots=""),), (determinant,)))
    return driver_launch(program, (packed,), types, units, 2 * program.order)


def _solve_factored(
    layouts: tuple[StackedLayout, ...], types: tuple[Type, ...], transposed: str, _: np.dtype
) -> DriverLaunch:
    first, second = layouts[0], as_matrix(layouts[1])
    stack = np.broadcast_shapes(first.shape[:-2], second.shape[:-2])
    first, second, stack = merge_vectors(stack, first, second)
    packed, right = operand_of(0, first, stack), operand_of(1, second, stack)
    n, count = second.shape[-2:]
    program = LapackProgram(first.dtype, n)
    if compute_dtype(first.dtype, second.dtype) != first.dtype:
        raise UnsupportedLayout
    pivots, columns = load_pivots(program, packed), program.number(count)
    symmetric = layouts[0].shape[-2] > n + 1
    if not symmetric:
        program.steps.append(NonzeroDiagonal("m0", program.n, program.dtype))

    def solving(sides: RightHandSides) -> Sequence[KernelStep]:
        x = sides.pointer
        cholesky_solve: list[KernelStep] = [
            program.call("potrs", f"'L n {columns} m0 n {x} n report")
        ]
        if transposed == "T" and kind_of(program.dtype) == "c":
            # the transpose is the conjugate, as the matrix is Hermitian
            conjugate = Conjugate(x, program.number(n * count))
            cholesky_solve = [conjugate, *cholesky_solve, conjugate]
        lu_solve = program.call("getrs", f"'{transposed} n {columns} m0 n {pivots} {x} n report")
        return [Branch(pivots, tuple(cholesky_solve), (lu_solve,))]

    conjugated = transposed == "C" and kind_of(program.dtype) == "c"
    solve_step = solving_symmetric(program, pivots, conjugated) if symmetric else solving
    solve_in_place(program, right.side, types[0], stack, count, solve_step, rows=symmetric)
    return driver_launch(
        program, (packed, right), types, math.prod(stack), n * n * count, columns=count
    )


LAPACK_OPS: dict[Op[...], Callable[..., DriverLaunch]] = {
    linalg.cholesky: _cholesky,
    linalg.inv: _inverse,
    linalg.det: _determinant,
    linalg.solve: _solve,
    factors.det_factored: _determinant_factored,
    factors.sign_of: partial(_determinant_factored, part="sign"),
    factors.logarithm_of: partial(_determinant_factored, part="logarithm"),
    factors.inv_factored: _inverse_factored,
    factors.factors: _factors,
    factors.solve_factored: _solve_factored,
    lu_and_triangular.triangular_solve: triangular,
}
