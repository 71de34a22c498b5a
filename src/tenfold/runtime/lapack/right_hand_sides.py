"""Right-hand sides: copy them in and out, and solve in place, as steps of LAPACK programs.

Takes a program, the layout of right-hand sides and the Type of the result, adds the steps that copy
them, solve in place, and copy the solutions to the result. In row-major order, as in results, no
copy transposes: BLAS then solves for the transpose from the right side.

>>> float64 = np.dtype(np.float64)
>>> program, right = LapackProgram(float64, 2), Side("m1", 24, 8, float64)
>>> solving = lambda x: [substitution(program, x, "m0", "L")]
>>> solve_in_place(program, right, Type((2, 3), float64, "cpu"), (), 3, solving, rows=True)
>>> [type(step).__name__ for step in program.steps], program.steps[-1].name
(['Move', 'Routine'], 'dtrsm')
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tenfold._native import Type
from tenfold.codegen.lapack.driver_call import Routine
from tenfold.codegen.lapack.driver_call import Step as KernelStep
from tenfold.core.shape_rules import Shape
from tenfold.runtime.lapack.lapack_program import LapackProgram, Side, StackedLayout, operand_of


class RightHandSides(NamedTuple):
    """Right-hand sides in memory, to be solved in place."""

    pointer: str
    width: int
    """The number of columns."""
    columns: str
    """The same, as the name of a launch argument."""
    by_rows: bool
    """Whether they are row-major, else column-major; False for a single column."""


Solving = Callable[[RightHandSides], Sequence[KernelStep]]


def merge_vectors(
    stack: Shape, matrix: StackedLayout, right: StackedLayout
) -> tuple[StackedLayout, StackedLayout, Shape]:
    """Merge a stack of vectors into one matrix, if they share one matrix of coefficients."""
    *_, n, count = right.shape
    if count > 1 or math.prod(matrix.shape[:-2]) > 1 or math.prod(stack) == 1:
        return matrix, right, stack
    operand, units = operand_of(1, right, stack), math.prod(stack)
    merged = StackedLayout((n, units), (operand.side.rows, operand.distance), right.dtype)
    return StackedLayout(matrix.shape[-2:], matrix.strides[-2:], matrix.dtype), merged, ()


def solve_in_place(
    program: LapackProgram,
    right: Side,
    type_: Type,
    stack: Shape,
    count: int,
    solving: Solving,
    *,
    rows: bool = False,
) -> None:
    """Copy right-hand sides, solve in place, and copy the solutions to the result: with `rows` in
    row-major order, else in column-major order, as most of LAPACK requires. A single column is
    both. A merged stack of vectors is column-major in the result.
    """
    merged = not stack and len(type_.shape) > 2
    by_rows = rows and count > 1 and not merged
    in_result = type_.dtype == program.dtype and (by_rows or merged or count == 1)
    pointer = "m2" if in_result else program.scratch_area(program.dtype, program.order * count)
    copy_in = _copy_rows if by_rows else LapackProgram.by_columns
    program.steps += [
        copy_in(program, right, pointer, count),
        *solving(RightHandSides(pointer, count, program.number(count), by_rows)),
    ]
    if in_result:
        return
    if by_rows or merged:
        program.steps.append(_narrow_solutions(program, pointer, type_.dtype, count, by_rows))
    else:
        program.steps.append(program.by_rows(pointer, "m2", type_.dtype, count))


def _copy_rows(program: LapackProgram, right: Side, target: str, count: int) -> KernelStep:
    """The copy of right-hand sides to contiguous rows."""
    inner = (count, right.columns, program.item)
    outer = (program.order, right.rows, count * program.item)
    return program.move(right.pointer, target, (right.dtype, program.dtype), outer, inner)


def _narrow_solutions(
    program: LapackProgram, pointer: str, dtype: np.dtype, count: int, by_rows: bool
) -> KernelStep:
    """The copy to the result in the same layout, in another dtype."""
    lengths = (program.order, count) if by_rows else (count, program.order)
    inner = (lengths[1], program.item, dtype.itemsize)
    outer = (lengths[0], lengths[1] * program.item, lengths[1] * dtype.itemsize)
    return program.move(pointer, "m2", (program.dtype, dtype), outer, inner)


def substitution(
    program: LapackProgram,
    x: RightHandSides,
    matrix: str,
    uplo: str,
    *,
    leading: str = "n",
    transposed: bool = False,
    unit: bool = False,
) -> Routine:
    """Solve with a column-major triangle of a leading dimension, or with its transpose."""
    diagonal = "U" if unit else "N"
    if x.by_rows:  # the transpose: x.T @ op(matrix).T
        arguments = f"'R '{uplo} '{'N' if transposed else 'T'} '{diagonal} {x.columns} n one"
        return program.call(
            "trsm", f"{arguments} {matrix} {leading} {x.pointer} {x.columns}", fails=False
        )
    arguments = f"'{uplo} '{'T' if transposed else 'N'} '{diagonal} n {x.columns}"
    return program.call("trtrs", f"{arguments} {matrix} {leading} {x.pointer} n report")
