"""Right-hand sides: where they are solved in place, and how the solutions reach the result.

Takes a builder, the layout of right-hand sides and the Type of the result, hands on the sizes by
which native code (`native/lapack/right_hand_sides.h`) copies and solves them. In row-major order,
as in results, no copy transposes: BLAS then solves for the transpose from the right side.

>>> from tenfold.dtypes import FLOAT64
>>> build, right = DriverBuilder(FLOAT64, 2, 1), StackedMatrix(48, 24, 8, FLOAT64)
>>> sides = right_hand_sides(build, right, Type((2, 3), FLOAT64, "cpu"), (), 3, rows=True)
>>> sides.row_major, sides.work, sides.substitution
(True, -1, 'trsm')
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tenfold._native import Type
from tenfold.core.shape_rules import Shape
from tenfold.schedule.lapack.driver_builder import (
    Area,
    DriverBuilder,
    StackedLayout,
    StackedMatrix,
    driver_operand,
)

IN_PLACE = -1
"""Instead of scratch memory: the memory of an operand or of a result."""
Work = int | Area
"""Where something is computed: in scratch memory, or in place."""


class RightHandSides(NamedTuple):
    """Right-hand sides and their result, in the order of native code's struct."""

    right: StackedMatrix
    result: StackedMatrix
    columns: int
    row_major: bool
    """Whether they are solved in row-major order; False for a single column."""
    work: Work
    """The scratch memory in which they are solved; IN_PLACE: in the result."""

    @property
    def substitution(self) -> str:
        """The routine that solves with a triangle."""
        return "trsm" if self.row_major else "trtrs"


def merge_vectors(
    stack: Shape, matrix: StackedLayout, right: StackedLayout
) -> tuple[StackedLayout, StackedLayout, Shape]:
    """Merge a stack of vectors into one matrix, if they share one matrix of coefficients."""
    *_, n, count = right.shape
    if count > 1 or math.prod(matrix.shape[:-2]) > 1 or math.prod(stack) == 1:
        return matrix, right, stack
    operand, units = driver_operand(right, stack), math.prod(stack)
    merged = StackedLayout((n, units), (operand.row, operand.distance), right.dtype)
    return StackedLayout(matrix.shape[-2:], matrix.strides[-2:], matrix.dtype), merged, ()


def right_hand_sides(
    build: DriverBuilder,
    right: StackedMatrix,
    type_: Type,
    stack: Shape,
    count: int,
    *,
    rows: bool = False,
) -> RightHandSides:
    """Choose the memory and the order in which right-hand sides are solved: with `rows` row-major,
    else column-major, as most of LAPACK requires. A single column is both. A merged stack of
    vectors is column-major in the result.
    """
    merged = not stack and len(type_.shape) > 2
    by_rows = rows and count > 1 and not merged
    in_result = type_.dtype == build.dtype and (by_rows or merged or count == 1)
    item = type_.dtype.itemsize
    strides = (item, build.order * item) if merged else (count * item, item)
    result = StackedMatrix(type_.size * item // build.units, *strides, type_.dtype)
    work: Work = IN_PLACE if in_result else build.area(build.order * count)
    return RightHandSides(right, result, count, by_rows, work)
