"""Symmetric solve: the LAPACK programs that factor symmetric matrices and solve with their factors.

Takes the layouts of operands and the Types of results, hands on a DriverLaunch. A matrix that
Cholesky rejects is factored by Bunch-Kaufman (`codegen/lapack/symmetric_steps.py`), at half the
multiply-adds of Gaussian elimination. A singular or non-finite matrix is factored by Gaussian
elimination, so that its solutions are those without the assumption. `ops/factors.py` documents the
layout.

>>> from tenfold.dtypes import FLOAT64
>>> x = StackedLayout((3, 3), (24, 8), FLOAT64)
>>> print(symmetric_factors((x,), (Type((5, 3), FLOAT64, "cpu"),)).kernel)
library call of dpotrf, dsytrf, dsyconv, dgetrf, 2 buffers
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold._native import Type
from tenfold.codegen.lapack.diagonal_steps import FiniteDiagonal, NonzeroDiagonal, PositiveDiagonal
from tenfold.codegen.lapack.driver_call import Branch
from tenfold.codegen.lapack.driver_call import Step as KernelStep
from tenfold.codegen.lapack.matrix_copies import INT32, Conjugate, Move
from tenfold.codegen.lapack.symmetric_steps import (
    ExchangeRows,
    Interchanges,
    InvertibleBlocks,
    NegativePivot,
    RightSides,
    SolveBlockDiagonal,
)
from tenfold.dtypes import kind_of
from tenfold.runtime.lapack.drivers import DriverLaunch
from tenfold.runtime.lapack.lapack_program import (
    LapackProgram,
    Side,
    StackedLayout,
    driver_launch,
    square_program,
)
from tenfold.runtime.lapack.right_hand_sides import RightHandSides, Solving, substitution


def symmetric_factors(layouts: tuple[StackedLayout, ...], types: tuple[Type, ...]) -> DriverLaunch:
    """Cholesky if the diagonal is positive and it succeeds, else Bunch-Kaufman, per matrix."""
    operand, program, units = square_program(layouts)
    n, item = program.order, program.item
    copy = program.square(_contiguous_side(operand.side), "m1")
    pivots, tried = f"m1+{program.number(n * n * item)}", program.scratch_area(program.dtype, 1)
    flag = f"m1+{program.number(((n + 2) * n - 1) * item)}"
    # NaN passes through a comparison with 0, so LAPACK need not see it
    cholesky_trial = (
        program.call("potrf", "'L n m1 n report", fails=False),
        FiniteDiagonal("m1", program.n, program.dtype),
        Branch("report", (), (_fill(program, "one", tried), copy)),
    )
    factor_steps = _bunch_kaufman(program, copy, pivots, tried)
    if kind_of(program.dtype) != "c":  # a complex symmetric matrix is not Hermitian
        factor_steps = (
            PositiveDiagonal("m1", program.n, program.dtype),
            Branch("report", cholesky_trial, ()),
            _fill(program, "zero", pivots, n),
            Branch("report", (), factor_steps),
        )
    program.steps = [
        copy,
        _fill(program, "zero", tried),
        *factor_steps,
        _fill(program, tried, flag),
    ]
    return driver_launch(program, (operand,), types, units, n**3 // 6)


def _contiguous_side(side: Side) -> Side:
    """Return a symmetric matrix with the axis of smaller stride as its columns."""
    if abs(side.rows) <= abs(side.columns):
        return side
    return side._replace(rows=side.columns, columns=side.rows)


def _fill(program: LapackProgram, source: str, target: str, times: int = 1) -> Move:
    """The fill of `times` elements with a number."""
    return program.move(
        source, target, (program.dtype, program.dtype), (1, 0, 0), (times, 0, program.item)
    )


def _bunch_kaufman(
    program: LapackProgram, copy: Move, pivots: str, tried: str
) -> tuple[KernelStep, ...]:
    """The steps of Bunch-Kaufman: sytrf, then syconv, which applies the row interchanges and moves
    the subdiagonal of D to a separate row.
    """
    n = program.order
    ipiv, work = (
        program.scratch_area(INT32, n),
        program.work("sytrf", ("L", n, None, n, None, None, -1)),
    )
    subdiagonal = f"m1+{program.number((n + 1) * n * program.item)}"
    lu_steps = (
        copy,
        program.call("getrf", f"n n m1 n {ipiv} report", fails=False),
        program.copy_pivots(ipiv, pivots, (INT32, program.dtype)),
        _fill(program, "one", tried),
    )
    return (
        program.call("sytrf", f"'L n m1 n {ipiv} {work} report", fails=False),
        program.call("syconv", f"'L 'C n m1 n {ipiv} {subdiagonal} report", fails=False),
        InvertibleBlocks("m1", subdiagonal, program.n, program.dtype),
        Branch(
            "report", (Interchanges(ipiv, subdiagonal, program.n, pivots, program.dtype),), lu_steps
        ),
    )


def solving_symmetric(program: LapackProgram, pivots: str, conjugated: bool) -> Solving:
    """Return the solve with the factors in m0: two substitutions, and the block diagonal between
    them; `conjugated`: with the conjugate matrix.
    """
    subdiagonal = f"m0+{program.number((program.order + 1) * program.order * program.item)}"
    negative = program.scratch_area(INT32, 1)
    nonzero = NonzeroDiagonal("m0", program.n, program.dtype)

    def solving(x: RightHandSides) -> Sequence[KernelStep]:
        rows = _rows(program, x)
        solve_lower, solve_transposed = (
            substitution(program, x, "m0", "L", unit=True, transposed=is_transposed)
            for is_transposed in (False, True)
        )
        cholesky = (
            nonzero,
            substitution(program, x, "m0", "L"),
            substitution(program, x, "m0", "L", transposed=True),
        )
        upper_solve = (nonzero, substitution(program, x, "m0", "U"))
        symmetric = (
            SolveBlockDiagonal("m0", subdiagonal, program.n, rows),
            solve_transposed,
            ExchangeRows(pivots, program.n, rows, reverse=True),
        )
        permuted = (
            ExchangeRows(pivots, program.n, rows),
            solve_lower,
            NegativePivot(pivots, negative),
            Branch(negative, upper_solve, symmetric),
        )
        steps: list[KernelStep] = [Branch(pivots, cholesky, permuted)]
        if not conjugated:
            return steps
        conjugate = Conjugate(x.pointer, program.number(program.order * x.width))
        return [conjugate, *steps, conjugate]

    return solving


def _rows(program: LapackProgram, x: RightHandSides) -> RightSides:
    """The right-hand sides with their strides."""
    strides = (x.width, 1) if x.by_rows else (1, program.order)
    row_stride, column_stride = (program.number(stride * program.item) for stride in strides)
    return RightSides(x.pointer, row_stride, column_stride, x.columns, x.by_rows, program.dtype)
