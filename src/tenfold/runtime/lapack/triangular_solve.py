"""Triangular solve: the BLAS and LAPACK programs for triangular and diagonal equations.

Takes the layouts of a matrix and of right sides, the Type of the result, which side holds the
matrix, and whether ones are taken for its diagonal; hands on a DriverLaunch.

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
    matrix_of,
    operand_of,
    step_with,
    wider,
)
from tenfold.runtime.lapack.right_hand_sides import RightHandSides, several, solved, substitution


def triangular(
    layouts: tuple[StackedLayout, ...], types: tuple[Type, ...], side: str, unit_diagonal: bool
) -> DriverLaunch:
    """Of matrices only the triangle is read, where it lies if LAPACK can read it there; of "either"
    the one that holds the matrix, which must be one.
    """
    first, second = layouts[0], matrix_of(layouts[1])
    stack = np.broadcast_shapes(first.shape[:-2], second.shape[:-2])
    first, second, stack = several(stack, first, second)
    left, right = operand_of(0, first, stack), operand_of(1, second, stack)
    n, count = second.shape[-2:]
    recipe = LapackProgram(wider(first.dtype, second.dtype), n)

    if side == "diagonal":
        matrix, distance = _on_the_diagonal(recipe, left.side)
        words, apart = f"'U 'N '{'U' if unit_diagonal else 'N'} n", recipe.number(distance)

        def divided(x: RightHandSides) -> Sequence[KernelStep]:
            band = recipe.number(0)
            arguments = f"{words} {band} {x.columns} {matrix} {apart} {x.at} n report"
            return [recipe.call("tbtrs", arguments)]

        solved(recipe, right.side, types[0], stack, count, divided)
    else:
        matrix, distance, turned = _as_it_lies(recipe, left.side)
        apart = recipe.number(distance)

        def substituted(x: RightHandSides, side: str) -> tuple[KernelStep, ...]:
            uplo = "U" if (side == "upper") != turned else "L"
            step = substitution(
                recipe, x, matrix, uplo, apart=apart, transposed=turned, unit=unit_diagonal
            )
            if step.fails or unit_diagonal:
                return (step,)
            return (NonzeroDiagonal(matrix, recipe.n, recipe.dtype, apart), step)

        def solving(x: RightHandSides) -> Sequence[KernelStep]:
            if side != "either":
                return substituted(x, side)
            by_rows, beside = _beside(recipe, left.side)
            before, behind = ("lower", "upper") if by_rows else ("upper", "lower")
            ways = substituted(x, before), substituted(x, behind)
            return [beside, Branch(beside.target, *ways)]

        solved(recipe, right.side, types[0], stack, count, solving, rows=True)
    return step_with(
        recipe, (left, right), types, math.prod(stack), n * n * count // 2, columns=count
    )


def _beside(recipe: LapackProgram, side: Side) -> tuple[bool, TriangleSide]:
    """Look beside the diagonal, along rows or, where those lie closer, along columns."""
    by_rows = abs(side.columns) <= abs(side.rows)
    far, near = (side.rows, side.columns) if by_rows else (side.columns, side.rows)
    look = TriangleSide(
        side.place,
        recipe.n,
        recipe.number(far),
        recipe.number(near),
        side.dtype,
        recipe.area(INT32, 1),
        near == side.dtype.itemsize,
    )
    return by_rows, look


def _on_the_diagonal(recipe: LapackProgram, side: Side) -> tuple[str, int]:
    """Return where a diagonal is for LAPACK, as a matrix of one band, and how many elements further
    on the next of its elements is.
    """
    distance = side.rows + side.columns
    if side.dtype == recipe.dtype and distance > 0 and distance % recipe.item == 0:
        return side.place, distance // recipe.item
    place = recipe.area(recipe.dtype, recipe.order)
    inner = (recipe.order, distance, recipe.item)
    recipe.steps.append(
        recipe.move(side.place, place, (side.dtype, recipe.dtype), (1, 0, 0), inner)
    )
    return place, 1


def _as_it_lies(recipe: LapackProgram, side: Side) -> tuple[str, int, bool]:
    """Return where a matrix is for LAPACK, the elements from a column to the next, and whether it
    is transposed there; it is copied if it must be.
    """
    n, item = recipe.order, recipe.item
    for near, far, turned in ((side.rows, side.columns, False), (side.columns, side.rows, True)):
        fits = far >= n * item and far % item == 0
        if side.dtype == recipe.dtype and near == item and fits:
            return side.place, far // item, turned
    place = recipe.area(recipe.dtype, n * n)
    recipe.steps.append(recipe.square(side, place))
    return place, n, False
