"""Triangular solve: the drivers for triangular and diagonal equations.

Takes the layouts of a matrix and of right-hand sides, the Type of the result, the triangle of the
matrix, and whether its diagonal is 1; hands on a DriverChoice.

>>> float64 = np.dtype(np.float64)
>>> x, b = StackedLayout((2, 2), (16, 8), float64), StackedLayout((2, 3), (24, 8), float64)
>>> triangular((x, b), (Type((2, 3), float64, "cpu"),), "lower", False).routines
('dtrsm',)
"""

from __future__ import annotations

import math

import numpy as np

from tenfold._native import Type
from tenfold.core.structure import OF_WORD
from tenfold.schedule.lapack.driver_builder import (
    DriverBuilder,
    DriverChoice,
    LengthSource,
    StackedLayout,
    StackedMatrix,
    as_matrix,
    driver_dtype,
    driver_operand,
)
from tenfold.schedule.lapack.right_hand_sides import IN_PLACE, Work, merge_vectors, right_hand_sides


def triangular(
    layouts: tuple[StackedLayout, ...], types: tuple[Type, ...], side: str, unit_diagonal: bool
) -> DriverChoice:
    """Only the triangle is read, in place if LAPACK supports its layout. "triangular": its
    values tell which one.
    """
    first, second = layouts[0], as_matrix(layouts[1])
    stack = np.broadcast_shapes(first.shape[:-2], second.shape[:-2])
    first, second, stack = merge_vectors(stack, first, second)
    left, right = driver_operand(first, stack), driver_operand(second, stack)
    n, count = second.shape[-2:]
    build = DriverBuilder(driver_dtype(first.dtype, second.dtype), n, math.prod(stack))
    is_diagonal = side == "diagonal"
    sides = right_hand_sides(build, right, types[0], stack, count, rows=not is_diagonal)
    layout: tuple[LengthSource, ...]
    if is_diagonal:
        layout, driver, routine = _diagonal_layout(build, left), "diagonal", "tbtrs"
    else:
        layout, driver, routine = _triangle_layout(build, left), "triangular", sides.substitution
        layout = (int(OF_WORD[side]), unit_diagonal, *layout)
    sizes = (left, sides, n, *((unit_diagonal,) if is_diagonal else ()), *layout)
    cost = n * n * count // 2
    return build.choice(driver, (routine,), (left, right), sizes, types, cost, count)


def _diagonal_layout(build: DriverBuilder, matrix: StackedMatrix) -> tuple[int, Work]:
    """Return the stride of a diagonal in elements, and the offset of its copy."""
    stride = matrix.row + matrix.column
    if matrix.dtype == build.dtype and stride > 0 and stride % build.item == 0:
        return stride // build.item, IN_PLACE
    return 1, build.area(build.order)


def _triangle_layout(build: DriverBuilder, matrix: StackedMatrix) -> tuple[bool, int, Work]:
    """Return whether LAPACK reads the transpose of a matrix, its leading dimension, and the offset
    of its copy, if its layout is unsupported.
    """
    n, item = build.order, build.item
    for x, transposed in ((matrix, False), (matrix.transposed, True)):
        fits = x.column >= n * item and x.column % item == 0
        if x.dtype == build.dtype and x.row == item and fits:
            return transposed, x.column // item, IN_PLACE
    return False, n, build.area(n * n)
