"""Eigenvalues, SVD and QR: the LAPACK programs that compute them.

Takes the layouts of operands and the Types of results, with the parameters of an operation, hands
on a DriverLaunch for each operation in `LAPACK_OPS`. Work lengths without a query are those of
LAPACK's documentation.

>>> x = StackedLayout((3, 2), (16, 8), FLOAT64)
>>> print(LAPACK_OPS[svd_eig.svdvals]((x,), (Type((2,), FLOAT64, "cpu"),)).kernel)
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
    driver_launch,
    operand_of,
)

Layouts = tuple[StackedLayout, ...]
Types = tuple[Type, ...]


def _program_for(layouts: Layouts) -> tuple[MatrixStack, LapackProgram, tuple[int, int, int]]:
    """Return the stack of matrices, a new program, and (rows, columns, number of matrices)."""
    *stack, rows, columns = layouts[0].shape
    operand = operand_of(0, layouts[0], tuple(stack))
    return operand, LapackProgram(layouts[0].dtype, rows), (rows, columns, math.prod(stack))


def _values_target(program: LapackProgram, pointer: str, type_: Type, length: int) -> str:
    """Return the target of a routine's real values: the result at `pointer`, or scratch memory."""
    return pointer if type_.dtype == FLOAT64 else program.scratch_area(FLOAT64, length)


def _narrow_values(
    program: LapackProgram, source: str, target: str, dtype: np.dtype, length: int
) -> None:
    """Copy real values to the result, if they are in scratch memory."""
    if source != target:
        axis = (length, FLOAT64.itemsize, dtype.itemsize)
        program.steps.append(program.move(source, target, (FLOAT64, dtype), (1, 0, 0), axis))


def _qr(layouts: Layouts, types: Types, mode: str) -> DriverLaunch:
    """QR by Householder reflections."""
    operand, program, (m, n, units) = _program_for(layouts)
    rank, inner = min(m, n), m if mode == "complete" else min(m, n)
    count, reflections, width = (program.number(value) for value in (n, rank, inner))
    matrix, q = (
        program.scratch_area(program.dtype, m * n),
        program.scratch_area(program.dtype, m * inner),
    )
    tau, rows_below = program.scratch_area(program.dtype, rank), program.number(m - 1)
    item_offset, prefix = (
        program.number(program.item),
        "un" if kind_of(program.dtype) == "c" else "or",
    )
    factor = program.work("geqrf", (m, n, None, m, None, None, -1))
    expand = program.work(f"{prefix}gqr", (m, inner, rank, None, m, None, None, -1))
    column, item = (m * program.item,) * 2, (program.item,) * 2
    copy_reflectors = program.move(matrix, q, (program.dtype,) * 2, (rank, *column), (m, *item))
    program.steps += [
        program.by_columns(operand.side, matrix, n),
        program.call("geqrf", f"n {count} {matrix} n {tau} {factor} report"),
        copy_reflectors,
        program.call(
            "laset", f"'L {rows_below} {count} zero zero {matrix}+{item_offset} n", fails=False
        ),
        program.by_rows(matrix, "m2", types[1].dtype, n, rows=inner),
        program.call(f"{prefix}gqr", f"n {width} {reflections} {q} n {tau} {expand} report"),
        program.by_rows(q, "m1", types[0].dtype, inner),
    ]
    return driver_launch(program, (operand,), types, units, rank * rank * 3 * max(m, n), columns=n)


def _hermitian(layouts: Layouts, types: Types) -> DriverLaunch:
    """Hermitian eigenvalues by divide and conquer, from the lower triangle."""
    operand, program, (n, _, units) = _program_for(layouts)
    is_complex = kind_of(program.dtype) == "c"
    vectors, job = program.scratch_area(program.dtype, n * n), "V" if len(types) == 2 else "N"
    values = _values_target(program, "m1", types[0], n)
    name = "heevd" if is_complex else "syevd"
    work_areas = [(FLOAT64, 1 + 5 * n + 2 * n * n)] if is_complex else []
    work_areas.append((INT32, 3 + 5 * n))
    query = (job, "L", n, None, n, None, None, -1, *[None, -1] * len(work_areas))
    work = program.work(name, query)
    for dtype, length in work_areas:
        work += f" {program.scratch_area(dtype, length)} {program.number(length)}"
    program.steps += [
        program.square(operand.side, vectors),
        program.call(name, f"'{job} 'L n {vectors} n {values} {work} report"),
    ]
    _narrow_values(program, values, "m1", types[0].dtype, n)
    if job == "V":
        program.steps.append(program.by_rows(vectors, "m2", types[1].dtype, n))
    return driver_launch(program, (operand,), types, units, 9 * n**3 // 2, columns=n)


def _svd(layouts: Layouts, types: Types, full_matrices: bool = False) -> DriverLaunch:
    """SVD by divide and conquer; without vectors only the singular values."""
    operand, program, (m, n, units) = _program_for(layouts)
    rank, longest = min(m, n), max(m, n)
    u_columns, vh_rows = (m, n) if full_matrices else (rank, rank)
    job = "N" if len(types) == 1 else "A" if full_matrices else "S"
    matrix, columns, height = (
        program.scratch_area(program.dtype, m * n),
        program.number(n),
        program.number(vh_rows),
    )
    values_pointer = "m1" if job == "N" else "m2"
    type_ = types[0 if job == "N" else 1]
    values = _values_target(program, values_pointer, type_, rank)
    u = vh = program.scratch_area(program.dtype, 1)  # unused without vectors
    if job != "N":
        u, vh = (
            program.scratch_area(program.dtype, m * u_columns),
            program.scratch_area(program.dtype, vh_rows * n),
        )
    reals = 7 * rank if job == "N" else rank * max(5 * rank + 7, 2 * longest + 2 * rank + 1)
    work_areas = [(FLOAT64, reals)] if kind_of(program.dtype) == "c" else []
    work_areas.append((INT32, 8 * rank))
    query = (job, m, n, None, m, None, None, m, None, vh_rows, None, -1, *[None] * len(work_areas))
    work = program.work("gesdd", query)
    for dtype, length in work_areas:
        work += f" {program.scratch_area(dtype, length)}"
    program.steps += [
        program.by_columns(operand.side, matrix, n),
        program.call(
            "gesdd", f"'{job} n {columns} {matrix} n {values} {u} n {vh} {height} {work} report"
        ),
    ]
    _narrow_values(program, values, values_pointer, type_.dtype, rank)
    if job != "N":
        program.steps += [
            program.by_rows(u, "m1", types[0].dtype, u_columns),
            program.by_rows(vh, "m3", types[2].dtype, n, rows=vh_rows, of=vh_rows),
        ]
    cost = (2 if job == "N" else 9) * longest * rank * rank
    return driver_launch(program, (operand,), types, units, cost, columns=n)


def _eigenvalues(layouts: Layouts, types: Types) -> DriverLaunch:
    """Eigenvalues of finite matrices only: the iteration does not end with NaN."""
    operand, program, (n, _, units) = _program_for(layouts)
    matrix, one = program.scratch_area(program.dtype, n * n), program.number(1)
    no_vectors, result = program.scratch_area(program.dtype, 1), types[0].dtype
    is_complex = kind_of(program.dtype) == "c"
    values = [program.scratch_area(program.dtype, n) for _ in range(1 if is_complex else 2)]
    real_work = [None] if is_complex else []
    query = ("N", "N", n, None, n, *[None] * len(values), None, 1, None, 1, None, -1, *real_work)
    work = program.work("geev", query)
    if is_complex:
        work += f" {program.scratch_area(FLOAT64, 2 * n)}"
    arguments = (
        f"'N 'N n {matrix} n {' '.join(values)} {no_vectors} {one} {no_vectors} {one} {work} report"
    )
    flag = program.scratch_area(INT32, 1)
    program.steps += [
        program.square(operand.side, matrix),
        AllFinite(matrix, program.number(n * n * program.item // 8), flag),
        Branch(flag, (program.call("geev", arguments),), (Fail(),)),
    ]
    part_dtype = result if is_complex else FLOAT64 if result == COMPLEX128 else real_part(result)
    for number, pointer in enumerate(values):
        offset = program.number(number * part_dtype.itemsize)
        axis = (n, program.item, result.itemsize)
        program.steps.append(
            program.move(pointer, f"m1+{offset}", (program.dtype, part_dtype), (1, 0, 0), axis)
        )
    return driver_launch(program, (operand,), types, units, 10 * n**3, columns=n)


def _lu(layouts: Layouts, types: Types) -> DriverLaunch:
    """LU by Gaussian elimination, also of rectangular matrices."""
    operand, program, (m, n, units) = _program_for(layouts)
    rank, item = min(m, n), program.item
    matrix, lower = (
        program.scratch_area(program.dtype, m * n),
        program.scratch_area(program.dtype, m * rank),
    )
    pivots, order = program.scratch_area(INT32, rank), program.scratch_area(INT32, m)
    columns, count, rows_below = (program.number(value) for value in (n, rank, m - 1))
    item_offset, column = program.number(item), (m * item,) * 2
    dtypes = (program.dtype, program.dtype)
    program.steps += [
        program.by_columns(operand.side, matrix, n),
        program.call("getrf", f"n {columns} {matrix} n {pivots} report", fails=False),
        program.move(matrix, lower, dtypes, (rank, *column), (m, item, item)),
        program.call("laset", f"'U n {count} zero one {lower} n", fails=False),
        program.call(
            "laset", f"'L {rows_below} {columns} zero zero {matrix}+{item_offset} n", fails=False
        ),
        Permutation(pivots, count, order, program.n, "m1", types[0].dtype),
        program.by_rows(lower, "m2", types[1].dtype, rank),
        program.by_rows(matrix, "m3", types[2].dtype, n, rows=rank),
    ]
    cost = rank * rank * (3 * max(m, n) - rank) // 6
    return driver_launch(program, (operand,), types, units, cost, columns=n)


LAPACK_OPS: dict[Op[...], Callable[..., DriverLaunch]] = {
    linalg.qr: _qr,
    linalg.eigh: _hermitian,
    linalg.svd: _svd,
    svd_eig.eigvalsh: _hermitian,
    svd_eig.svdvals: _svd,
    eigenvalues.eigvals: _eigenvalues,
    lu_and_triangular.lu: _lu,
}
