"""Symmetric solve: the drivers that factor symmetric matrices and solve with their factors.

Takes the layouts of operands and the Types of results, hands on a DriverChoice. A matrix that
Cholesky rejects is factored by Bunch-Kaufman (`native/lapack/block_diagonal.h`), at half the
multiply-adds of Gaussian elimination. A singular or non-finite matrix is factored by Gaussian
elimination, so that its solutions are those without the assumption. `ops/factors.py` documents the
layout.

>>> from tenfold.dtypes import FLOAT64
>>> x = StackedLayout((3, 3), (24, 8), FLOAT64)
>>> symmetric_factors((x,), (Type((5, 3), FLOAT64, "cpu"),)).routines
('dpotrf', 'dsytrf', 'dsyconv', 'dgetrf')
"""

from __future__ import annotations

from tenfold._native import Type
from tenfold.schedule.lapack.driver_builder import (
    INT32,
    DriverBuilder,
    DriverChoice,
    StackedLayout,
    StackedMatrix,
    stack_of,
)
from tenfold.schedule.lapack.right_hand_sides import RightHandSides


def symmetric_factors(layouts: tuple[StackedLayout, ...], types: tuple[Type, ...]) -> DriverChoice:
    """Cholesky if the diagonal is positive and it succeeds, else Bunch-Kaufman, per matrix."""
    x, build = stack_of(layouts)
    n = build.order
    # the axis of smaller stride as the columns
    contiguous = x if abs(x.row) <= abs(x.column) else x.transposed
    pivots, (work, length) = build.area(n, INT32), build.work("sytrf", _work_query(n))
    # a complex symmetric matrix is not Hermitian
    routines = (*(() if build.is_complex else ("potrf",)), "sytrf", "syconv", "getrf")
    sizes = (contiguous, build.result(types[0]), n, pivots, work, length)
    return build.choice("symmetric_factors", routines, (x,), sizes, types, n**3 // 6)


def _work_query(n: int) -> tuple[str | int | None, ...]:
    return ("L", n, None, n, None, None, -1)


def symmetric_solve(
    build: DriverBuilder,
    packed: StackedMatrix,
    sides: RightHandSides,
    types: tuple[Type, ...],
    *,
    conjugated: bool,
) -> DriverChoice:
    """Solve with packed factors; `conjugated`: with the conjugate matrix."""
    n, operands = build.order, (packed, sides.right)
    sizes = (packed, sides, n, conjugated, build.area(n, INT32))
    cost, routines = n * n * sides.columns, (sides.substitution,)
    return build.choice("symmetric_solve", routines, operands, sizes, types, cost, sides.columns)
