"""Factorisation and solve: the drivers that factor matrices and solve equations.

Takes the layouts of operands and the Types of results, with the parameters of an operation, hands
on a DriverChoice for each operation in `LAPACK_OPS`. The drivers are in
`native/lapack/lu_cholesky.cpp`.

>>> float64 = np.dtype(np.float64)
>>> x = StackedLayout((2, 2), (16, 8), float64)
>>> LAPACK_OPS[linalg.cholesky]((x,), (Type((2, 2), float64, "cpu"),), False).routines
('dpotrf', 'dlaset')
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from tenfold._native import Type
from tenfold.core.op import Op
from tenfold.ops import factors, linalg, lu_and_triangular
from tenfold.schedule.lapack.driver_builder import (
    INT32,
    Area,
    DriverBuilder,
    DriverChoice,
    LengthSource,
    StackedLayout,
    UnsupportedLayout,
    as_matrix,
    driver_dtype,
    driver_operand,
    packed_stack_of,
    stack_of,
)
from tenfold.schedule.lapack.right_hand_sides import IN_PLACE, Work, merge_vectors, right_hand_sides
from tenfold.schedule.lapack.symmetric_solve import symmetric_factors, symmetric_solve
from tenfold.schedule.lapack.triangular_solve import triangular
from tenfold.schedule.target import DEFAULT

Layouts = tuple[StackedLayout, ...]
Types = tuple[Type, ...]


def _cholesky(layouts: Layouts, types: Types, upper: bool) -> DriverChoice:
    x, build = stack_of(layouts)
    n, result = build.order, build.result(types[0])
    work: Work = IN_PLACE if result.dtype == build.dtype else build.area(n * n)
    sizes = (x, result, n, upper, work)
    return build.choice("cholesky", ("potrf", "laset"), (x,), sizes, types, n**3 // 6)


def _inverse(layouts: Layouts, types: Types) -> DriverChoice:
    """The inverse by a solve with the identity; for large matrices by getri, which is faster."""
    x, build = stack_of(layouts)
    n = build.order
    matrix, pivots = _factor_areas(build)
    driver, routines = "inverse", ["getrf", "getri"]
    if n < DEFAULT.libraries.substitution_order:
        driver, routines = "inverse_by_solve", ["getrf", "laset", "getrs"]
        memory: tuple[LengthSource, ...] = build.area(n * n), n * n
    else:
        memory = build.work("getri", _getri_query(n))
    sizes = (x, build.result(types[0]), n, matrix, pivots, *memory)
    return build.choice(driver, routines, (x,), sizes, types, n**3, columns=n)


def _factor_areas(build: DriverBuilder) -> tuple[Area, Area]:
    """Allocate memory for the factors of a matrix and for their pivots."""
    return build.area(build.order**2), build.area(build.order, INT32)


def _getri_query(n: int) -> tuple[str | int | None, ...]:
    return (n, None, n, None, None, -1)


def _determinant(layouts: Layouts, types: Types) -> DriverChoice:
    x, build = stack_of(layouts)
    n = build.order
    sizes = (x, build.vector_result(types[0]), n, *_factor_areas(build))
    return build.choice("determinant", ("getrf",), (x,), sizes, types, n**3 // 3)


def _solve(layouts: Layouts, types: Types) -> DriverChoice:
    first, second = layouts[0], as_matrix(layouts[1])
    stack = np.broadcast_shapes(first.shape[:-2], second.shape[:-2])
    left, right = driver_operand(first, stack), driver_operand(second, stack)
    n, count = second.shape[-2:]
    build = DriverBuilder(driver_dtype(first.dtype, second.dtype), n, math.prod(stack))
    sides = right_hand_sides(build, right, types[0], stack, count)
    sizes, cost = (left, sides, n, *_factor_areas(build)), n**3 // 3 + n * n * count
    return build.choice("solve", ("getrf", "getrs"), (left, right), sizes, types, cost, count)


def _factors(
    layouts: Layouts, types: Types, method: str, *, refuses_singular: bool = False
) -> DriverChoice:
    """The Cholesky factor with pivots 0 if it exists, else the LU factors, per matrix.

    The other triangle of a Cholesky factor is not read.
    """
    if method == "symmetric":
        return symmetric_factors(layouts, types)
    x, build = stack_of(layouts)
    n = build.order
    driver, routines = "lu_factors", ["getrf"]
    if method == "cholesky":
        driver, routines = "cholesky_factors", ["potrf", "getrf"]
    sizes = (x, build.result(types[0]), n, build.area(n, INT32), refuses_singular)
    return build.choice(driver, routines, (x,), sizes, types, n**3 // 3)


def _inverse_factored(layouts: Layouts, types: Types, _: np.dtype) -> DriverChoice:
    packed, build = packed_stack_of(layouts, layouts[0].shape[:-2])
    n = build.order
    matrix, pivots = _factor_areas(build)
    work, length = build.work("getri", _getri_query(n))
    sizes = (packed, build.result(types[0]), n, matrix, pivots, work, length)
    routines = ("potri", "getri")
    return build.choice("inverse_factored", routines, (packed,), sizes, types, n**3, columns=n)


QUANTITIES = {"whole": 0, "sign": 1, "logarithm": 2}
"""The parts of a determinant as native code numbers them."""


def _determinant_factored(
    layouts: Layouts, types: Types, _: np.dtype, *, part: str = "whole"
) -> DriverChoice:
    packed, build = packed_stack_of(layouts, layouts[0].shape[:-2])
    n, result = build.order, build.vector_result(types[0])
    sizes = (packed, result, n, QUANTITIES[part], build.area(n, INT32))
    return build.choice("determinant_factored", (), (packed,), sizes, types, 2 * n)


def _solve_factored(layouts: Layouts, types: Types, transposed: str, _: np.dtype) -> DriverChoice:
    first, second = layouts[0], as_matrix(layouts[1])
    stack = np.broadcast_shapes(first.shape[:-2], second.shape[:-2])
    first, second, stack = merge_vectors(stack, first, second)
    (packed, build), right = packed_stack_of((first,), stack), driver_operand(second, stack)
    n, count = second.shape[-2:]
    if driver_dtype(first.dtype, second.dtype) != first.dtype:
        raise UnsupportedLayout
    symmetric = layouts[0].shape[-2] > n + 1
    sides = right_hand_sides(build, right, types[0], stack, count, rows=symmetric)
    if symmetric:
        conjugated = transposed == "C" and build.is_complex
        return symmetric_solve(build, packed, sides, types, conjugated=conjugated)
    sizes = (packed, sides, n, ord(transposed), build.area(n, INT32))
    operands, cost = (packed, right), n * n * count
    routines = ("potrs", "getrs")
    return build.choice("solve_factored", routines, operands, sizes, types, cost, count)


LAPACK_OPS: dict[Op[...], Callable[..., DriverChoice]] = {
    linalg.cholesky: _cholesky,
    linalg.inv: _inverse,
    linalg.det: _determinant,
    linalg.solve: _solve,
    factors.det_factored: _determinant_factored,
    factors.sign_of: partial(_determinant_factored, part="sign"),
    factors.logarithm_of: partial(_determinant_factored, part="logarithm"),
    factors.inv_factored: _inverse_factored,
    factors.factors: _factors,
    factors.regular_factors: partial(_factors, refuses_singular=True),
    factors.solve_factored: _solve_factored,
    lu_and_triangular.triangular_solve: triangular,
}
