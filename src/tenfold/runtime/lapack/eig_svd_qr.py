"""Eigenvalues, SVD and QR: the LAPACK programs that compute them.

Takes the layouts of operands and the Types of results, with the parameters of an operation, hands
on a DriverLaunch for each operation in `RECIPES`. The lengths of work memory that no routine tells
are those of LAPACK's documentation.

>>> x = StackedLayout((3, 2), (16, 8), FLOAT64)
>>> print(RECIPES[svd_eig.svdvals]((x,), (Type((2,), FLOAT64, "cpu"),)).kernel)
library call of dgesdd, 2 buffers
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tenfold._native import Type
from tenfold.codegen.lapack.diagonal_steps import AllFinite, Fail
from tenfold.codegen.lapack.driver_call import Branch
from tenfold.codegen.lapack.matrix_copies import INT32, Permutation
from tenfold.core.op import Op
from tenfold.dtypes import COMPLEX128, FLOAT64, kind_of, real_part
from tenfold.ops import eigenvalues, linalg, lu_and_triangular, svd_eig
from tenfold.runtime.lapack.drivers import DriverLaunch
from tenfold.runtime.lapack.lapack_program import (
    LapackProgram,
    MatrixStack,
    StackedLayout,
    operand_of,
    step_with,
)

Layouts = tuple[StackedLayout, ...]
Types = tuple[Type, ...]


def _begun(layouts: Layouts) -> tuple[MatrixStack, LapackProgram, tuple[int, int, int]]:
    """Return the stack of matrices, what begins, and (rows, columns, how many matrices)."""
    *stack, rows, columns = layouts[0].shape
    operand = operand_of(0, layouts[0], tuple(stack))
    return operand, LapackProgram(layouts[0].dtype, rows), (rows, columns, math.prod(stack))


def _values(recipe: LapackProgram, place: str, type_: Type, length: int) -> str:
    """Return where a routine is to leave real values that are the result at a place."""
    return place if type_.dtype == FLOAT64 else recipe.area(FLOAT64, length)


def _narrowed(
    recipe: LapackProgram, source: str, target: str, dtype: np.dtype, length: int
) -> None:
    """Copy real values to the result, if they are not there."""
    if source != target:
        axis = (length, FLOAT64.itemsize, dtype.itemsize)
        recipe.steps.append(recipe.move(source, target, (FLOAT64, dtype), (1, 0, 0), axis))


def _qr(layouts: Layouts, types: Types, mode: str) -> DriverLaunch:
    """By Householder's reflections."""
    operand, recipe, (m, n, units) = _begun(layouts)
    short, inner = min(m, n), m if mode == "complete" else min(m, n)
    count, reflections, width = (recipe.number(each) for each in (n, short, inner))
    given, basis = recipe.area(recipe.dtype, m * n), recipe.area(recipe.dtype, m * inner)
    scales, less = recipe.area(recipe.dtype, short), recipe.number(m - 1)
    below, letter = recipe.number(recipe.item), "un" if kind_of(recipe.dtype) == "c" else "or"
    factor = recipe.work("geqrf", (m, n, None, m, None, None, -1))
    expand = recipe.work(f"{letter}gqr", (m, inner, short, None, m, None, None, -1))
    column, item = (m * recipe.item,) * 2, (recipe.item,) * 2
    kept = recipe.move(given, basis, (recipe.dtype,) * 2, (short, *column), (m, *item))
    recipe.steps += [
        recipe.by_columns(operand.side, given, n),
        recipe.call("geqrf", f"n {count} {given} n {scales} {factor} report"),
        kept,
        recipe.call("laset", f"'L {less} {count} zero zero {given}+{below} n", fails=False),
        recipe.by_rows(given, "m2", types[1].dtype, n, rows=inner),
        recipe.call(f"{letter}gqr", f"n {width} {reflections} {basis} n {scales} {expand} report"),
        recipe.by_rows(basis, "m1", types[0].dtype, inner),
    ]
    return step_with(recipe, (operand,), types, units, short * short * 3 * max(m, n), columns=n)


def _hermitian(layouts: Layouts, types: Types) -> DriverLaunch:
    """By dividing and conquering, of the lower triangle."""
    operand, recipe, (n, _, units) = _begun(layouts)
    is_complex = kind_of(recipe.dtype) == "c"
    vectors, job = recipe.area(recipe.dtype, n * n), "V" if len(types) == 2 else "N"
    values = _values(recipe, "m1", types[0], n)
    name = "heevd" if is_complex else "syevd"
    others = [(FLOAT64, 1 + 5 * n + 2 * n * n)] if is_complex else []
    others.append((INT32, 3 + 5 * n))
    asked = (job, "L", n, None, n, None, None, -1, *[None, -1] * len(others))
    work = recipe.work(name, asked)
    for dtype, length in others:
        work += f" {recipe.area(dtype, length)} {recipe.number(length)}"
    recipe.steps += [
        recipe.square(operand.side, vectors),
        recipe.call(name, f"'{job} 'L n {vectors} n {values} {work} report"),
    ]
    _narrowed(recipe, values, "m1", types[0].dtype, n)
    if job == "V":
        recipe.steps.append(recipe.by_rows(vectors, "m2", types[1].dtype, n))
    return step_with(recipe, (operand,), types, units, 9 * n**3 // 2, columns=n)


def _svd(layouts: Layouts, types: Types, full_matrices: bool = False) -> DriverLaunch:
    """By dividing and conquering; the singular values alone where no more is asked for."""
    operand, recipe, (m, n, units) = _begun(layouts)
    short, long = min(m, n), max(m, n)
    left, right = (m, n) if full_matrices else (short, short)
    job = "N" if len(types) == 1 else "A" if full_matrices else "S"
    given, columns, height = (
        recipe.area(recipe.dtype, m * n),
        recipe.number(n),
        recipe.number(right),
    )
    place = "m1" if job == "N" else "m2"
    type_ = types[0 if job == "N" else 1]
    values = _values(recipe, place, type_, short)
    u = vh = recipe.area(recipe.dtype, 1)  # what is not asked for
    if job != "N":
        u, vh = recipe.area(recipe.dtype, m * left), recipe.area(recipe.dtype, right * n)
    reals = 7 * short if job == "N" else short * max(5 * short + 7, 2 * long + 2 * short + 1)
    others = [(FLOAT64, reals)] if kind_of(recipe.dtype) == "c" else []
    others.append((INT32, 8 * short))
    asked = (job, m, n, None, m, None, None, m, None, right, None, -1, *[None] * len(others))
    work = recipe.work("gesdd", asked)
    for dtype, length in others:
        work += f" {recipe.area(dtype, length)}"
    recipe.steps += [
        recipe.by_columns(operand.side, given, n),
        recipe.call(
            "gesdd", f"'{job} n {columns} {given} n {values} {u} n {vh} {height} {work} report"
        ),
    ]
    _narrowed(recipe, values, place, type_.dtype, short)
    if job != "N":
        recipe.steps += [
            recipe.by_rows(u, "m1", types[0].dtype, left),
            recipe.by_rows(vh, "m3", types[2].dtype, n, rows=right, of=right),
        ]
    cost = (2 if job == "N" else 9) * long * short * short
    return step_with(recipe, (operand,), types, units, cost, columns=n)


def _eigenvalues(layouts: Layouts, types: Types) -> DriverLaunch:
    """Of what is finite alone: NaN would keep the iteration going."""
    operand, recipe, (n, _, units) = _begun(layouts)
    matrix, one = recipe.area(recipe.dtype, n * n), recipe.number(1)
    unused, result = recipe.area(recipe.dtype, 1), types[0].dtype
    is_complex = kind_of(recipe.dtype) == "c"
    values = [recipe.area(recipe.dtype, n) for _ in range(1 if is_complex else 2)]
    last = [None] if is_complex else []
    asked = ("N", "N", n, None, n, *[None] * len(values), None, 1, None, 1, None, -1, *last)
    work = recipe.work("geev", asked)
    if is_complex:
        work += f" {recipe.area(FLOAT64, 2 * n)}"
    words = f"'N 'N n {matrix} n {' '.join(values)} {unused} {one} {unused} {one} {work} report"
    flag = recipe.area(INT32, 1)
    recipe.steps += [
        recipe.square(operand.side, matrix),
        AllFinite(matrix, recipe.number(n * n * recipe.item // 8), flag),
        Branch(flag, (recipe.call("geev", words),), (Fail(),)),
    ]
    part = result if is_complex else FLOAT64 if result == COMPLEX128 else real_part(result)
    for number, place in enumerate(values):
        behind = recipe.number(number * part.itemsize)
        axis = (n, recipe.item, result.itemsize)
        recipe.steps.append(
            recipe.move(place, f"m1+{behind}", (recipe.dtype, part), (1, 0, 0), axis)
        )
    return step_with(recipe, (operand,), types, units, 10 * n**3, columns=n)


def _lu(layouts: Layouts, types: Types) -> DriverLaunch:
    """By Gauss's elimination, of rectangles, too."""
    operand, recipe, (m, n, units) = _begun(layouts)
    short, item = min(m, n), recipe.item
    given, lower = recipe.area(recipe.dtype, m * n), recipe.area(recipe.dtype, m * short)
    pivots, order = recipe.area(INT32, short), recipe.area(INT32, m)
    columns, count, less = (recipe.number(each) for each in (n, short, m - 1))
    below, column = recipe.number(item), (m * item,) * 2
    both = (recipe.dtype, recipe.dtype)
    recipe.steps += [
        recipe.by_columns(operand.side, given, n),
        recipe.call("getrf", f"n {columns} {given} n {pivots} report", fails=False),
        recipe.move(given, lower, both, (short, *column), (m, item, item)),
        recipe.call("laset", f"'U n {count} zero one {lower} n", fails=False),
        recipe.call("laset", f"'L {less} {columns} zero zero {given}+{below} n", fails=False),
        Permutation(pivots, count, order, recipe.n, "m1", types[0].dtype),
        recipe.by_rows(lower, "m2", types[1].dtype, short),
        recipe.by_rows(given, "m3", types[2].dtype, n, rows=short),
    ]
    cost = short * short * (3 * max(m, n) - short) // 6
    return step_with(recipe, (operand,), types, units, cost, columns=n)


RECIPES: dict[Op[...], Callable[..., DriverLaunch]] = {
    linalg.qr: _qr,
    linalg.eigh: _hermitian,
    linalg.svd: _svd,
    svd_eig.eigvalsh: _hermitian,
    svd_eig.svdvals: _svd,
    eigenvalues.eigvals: _eigenvalues,
    lu_and_triangular.lu: _lu,
}
