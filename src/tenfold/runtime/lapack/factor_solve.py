"""Factorisation and solve: the LAPACK programs that factor matrices and solve equations.

Takes the layouts of operands and the Types of results, with the parameters of an operation, hands
on a DriverLaunch for each operation in `RECIPES`.

>>> float64 = np.dtype(np.float64)
>>> x = StackedLayout((2, 2), (16, 8), float64)
>>> print(RECIPES[linalg.cholesky]((x,), (Type((2, 2), float64, "cpu"),), False).kernel)
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
    Unlike,
    matrix_of,
    operand_of,
    squares,
    step_with,
    wider,
    with_pivots,
)
from tenfold.runtime.lapack.right_hand_sides import RightHandSides, several, solved
from tenfold.runtime.lapack.symmetric_solve import solving_symmetric, symmetric_factors
from tenfold.runtime.lapack.triangular_solve import triangular


def _cholesky(
    layouts: tuple[StackedLayout, ...], types: tuple[Type, ...], upper: bool
) -> DriverLaunch:
    """By rows a lower triangle is an upper one by columns."""
    operand, recipe, units = squares(layouts)
    n, side, (result,) = recipe.order, operand.side, types
    own = result.dtype == recipe.dtype
    place = "m1" if own else recipe.area(recipe.dtype, n * n)
    turned = side._replace(rows=side.columns, columns=side.rows)
    read, other = "LU" if upper else "UL"
    less = recipe.number(n - 1)
    beside = recipe.number((n if upper else 1) * recipe.item)
    recipe.steps += [
        recipe.square(turned, place),
        recipe.call("potrf", f"'{read} n {place} n report"),
        recipe.call("laset", f"'{other} {less} {less} zero zero {place}+{beside} n", fails=False),
    ]
    if not own:
        back = Side(place, recipe.item, n * recipe.item, recipe.dtype)
        recipe.steps.append(_narrowed(recipe, back, "m1", result.dtype))
    return step_with(recipe, (operand,), types, units, n**3 // 6)


def _narrowed(recipe: LapackProgram, side: Side, target: str, dtype: np.dtype) -> Move:
    """The copy of a square matrix as it lies, in another dtype."""
    inner = (recipe.order, side.rows, dtype.itemsize)
    outer = (recipe.order, side.columns, recipe.order * dtype.itemsize)
    return recipe.move(side.place, target, (side.dtype, dtype), outer, inner)


SOLVED = 128
"""The order below which an inverse is solved for, as the columns of the identity."""


def _inverse(layouts: tuple[StackedLayout, ...], types: tuple[Type, ...]) -> DriverLaunch:
    """By the columns of the identity; of large matrices LAPACK is asked for it, which is faster."""
    operand, recipe, units = squares(layouts)
    n = recipe.order
    matrix, pivots = recipe.factored(operand.side)
    if n < SOLVED:
        made = recipe.area(recipe.dtype, n * n)
        recipe.steps += [
            recipe.call("laset", f"'A n n zero one {made} n", fails=False),
            recipe.call("getrs", f"'N n n {matrix} n {pivots} {made} n report"),
        ]
    else:
        made, work = matrix, recipe.work("getri", (n, None, n, None, None, -1))
        recipe.steps.append(recipe.call("getri", f"n {matrix} n {pivots} {work} report"))
    recipe.steps.append(recipe.by_rows(made, "m1", types[0].dtype, n))
    return step_with(recipe, (operand,), types, units, n**3, columns=n)


def _determinant(layouts: tuple[StackedLayout, ...], types: tuple[Type, ...]) -> DriverLaunch:
    operand, recipe, units = squares(layouts)
    matrix, pivots = recipe.factored(operand.side)
    factor = recipe.steps.pop()
    assert isinstance(factor, Routine), "what factored"
    dtypes = recipe.dtype, types[0].dtype
    recipe.steps += [
        factor._replace(fails=False),  # the determinant of a singular matrix is 0
        Determinant(matrix, pivots, recipe.n, dtypes, "m1"),
    ]
    return step_with(recipe, (operand,), types, units, recipe.order**3 // 3)


def _solve(layouts: tuple[StackedLayout, ...], types: tuple[Type, ...]) -> DriverLaunch:
    first, second = layouts[0], matrix_of(layouts[1])
    stack = np.broadcast_shapes(first.shape[:-2], second.shape[:-2])
    left, right = operand_of(0, first, stack), operand_of(1, second, stack)
    n, count = second.shape[-2:]
    recipe = LapackProgram(wider(first.dtype, second.dtype), n)
    matrix, pivots = recipe.factored(left.side)
    columns = recipe.number(count)
    words = f"'N n {columns} {matrix} n {pivots}"

    def solving(x: RightHandSides) -> Sequence[KernelStep]:
        return [recipe.call("getrs", f"{words} {x.at} n report")]

    solved(recipe, right.side, types[0], stack, count, solving)
    return step_with(
        recipe, (left, right), types, math.prod(stack), n**3 // 3 + n * n * count, columns=count
    )


def _factors(layouts: tuple[StackedLayout, ...], types: tuple[Type, ...], way: str) -> DriverLaunch:
    """The Cholesky factor with pivots 0, or the LU factors, as each matrix allows.

    The other triangle of a Cholesky factor is never read.
    """
    if way == "symmetric":
        return symmetric_factors(layouts, types)
    operand, recipe, units = squares(layouts)
    n, item = recipe.order, recipe.item
    copied = recipe.square(operand.side, "m1")
    pivots, last = recipe.area(INT32, n), recipe.number(n * n * item)
    gauss: list[KernelStep] = [
        recipe.call("getrf", f"n n m1 n {pivots} report", fails=False),
        recipe.numbered(pivots, f"m1+{last}", (INT32, recipe.dtype)),
    ]
    if way == "gauss":
        recipe.steps = [copied, *gauss]
    else:
        nothing = recipe.move(
            "zero", f"m1+{last}", (recipe.dtype, recipe.dtype), (1, 0, 0), (n, 0, item)
        )
        potrf = recipe.call("potrf", "'L n m1 n report", fails=False)
        recipe.steps = [
            copied,
            PositiveDiagonal("m1", recipe.n, recipe.dtype),
            # NaN passes through a comparison with 0, so LAPACK need not see it
            Branch("report", (potrf, FiniteDiagonal("m1", recipe.n, recipe.dtype)), ()),
            nothing,
            Branch("report", (), (copied, *gauss)),
        ]
    return step_with(recipe, (operand,), types, units, n**3 // 3)


def _inverse_factored(
    layouts: tuple[StackedLayout, ...], types: tuple[Type, ...], _: np.dtype
) -> DriverLaunch:
    packed, recipe, units = squares(layouts)
    n = recipe.order
    pivots, matrix = with_pivots(recipe, packed), recipe.area(recipe.dtype, n * n)
    work = recipe.work("getri", (n, None, n, None, None, -1))
    cholesky = (
        recipe.call("potri", f"'L n {matrix} n report"),
        Mirror(matrix, recipe.n, recipe.dtype),
    )
    gauss = recipe.call("getri", f"n {matrix} n {pivots} {work} report")
    as_it_is = packed.side._replace(rows=recipe.item, columns=n * recipe.item)
    recipe.steps += [
        NonzeroDiagonal("m0", recipe.n, recipe.dtype),
        recipe.square(as_it_is, matrix),
        Branch(pivots, cholesky, (gauss,)),
        recipe.by_rows(matrix, "m1", types[0].dtype, n),
    ]
    return step_with(recipe, (packed,), types, units, n**3, columns=n)


def _determinant_factored(
    layouts: tuple[StackedLayout, ...], types: tuple[Type, ...], _: np.dtype, *, part: str = "whole"
) -> DriverLaunch:
    packed, recipe, units = squares(layouts)
    pivots, dtypes = with_pivots(recipe, packed), (recipe.dtype, types[0].dtype)
    gauss = Determinant("m0", pivots, recipe.n, dtypes, "m1", part)
    recipe.steps.append(Branch(pivots, (gauss._replace(pivots=""),), (gauss,)))
    return step_with(recipe, (packed,), types, units, 2 * recipe.order)


def _solve_factored(
    layouts: tuple[StackedLayout, ...], types: tuple[Type, ...], transposed: str, _: np.dtype
) -> DriverLaunch:
    first, second = layouts[0], matrix_of(layouts[1])
    stack = np.broadcast_shapes(first.shape[:-2], second.shape[:-2])
    first, second, stack = several(stack, first, second)
    packed, right = operand_of(0, first, stack), operand_of(1, second, stack)
    n, count = second.shape[-2:]
    recipe = LapackProgram(first.dtype, n)
    if wider(first.dtype, second.dtype) != first.dtype:
        raise Unlike
    pivots, columns = with_pivots(recipe, packed), recipe.number(count)
    symmetric = layouts[0].shape[-2] > n + 1
    if not symmetric:
        recipe.steps.append(NonzeroDiagonal("m0", recipe.n, recipe.dtype))

    def solving(place: RightHandSides) -> Sequence[KernelStep]:
        x = place.at
        cholesky: list[KernelStep] = [recipe.call("potrs", f"'L n {columns} m0 n {x} n report")]
        if transposed == "T" and kind_of(recipe.dtype) == "c":
            # the transpose is the conjugate, as the matrix is Hermitian
            conjugate = Conjugate(x, recipe.number(n * count))
            cholesky = [conjugate, *cholesky, conjugate]
        gauss = recipe.call("getrs", f"'{transposed} n {columns} m0 n {pivots} {x} n report")
        return [Branch(pivots, tuple(cholesky), (gauss,))]

    conjugated = transposed == "C" and kind_of(recipe.dtype) == "c"
    by = solving_symmetric(recipe, pivots, conjugated) if symmetric else solving
    solved(recipe, right.side, types[0], stack, count, by, rows=symmetric)
    return step_with(recipe, (packed, right), types, math.prod(stack), n * n * count, columns=count)


RECIPES: dict[Op[...], Callable[..., DriverLaunch]] = {
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
