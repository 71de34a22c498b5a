"""Factored: matrices factored once by LAPACK, and what is computed of the factors.

Takes and hands on the arrays that `ops/factors.py` describes: the factors by columns, as LAPACK has
them, with the pivots in one more row; and solves with triangles. None where LAPACK reports that
there is no answer, or a stack is of both kinds.

>>> packed = factors(np.array([[4.0, 2.0], [2.0, 5.0]]), True)[0]
>>> packed.tolist()
[[2.0, 1.0], [0.0, 2.0], [0.0, 0.0]]
>>> solve(packed, np.array([2.0, 5.0]), "N", FLOAT64)[0].tolist()
[0.0, 1.0]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tenfold.devices.factorisations import (
    INT32,
    Values,
    by_columns,
    by_rows,
    flat,
    name_of,
)
from tenfold.devices.lapack import placed, run, work_length
from tenfold.dtypes import FLOAT64, kind_of
from tenfold.ops.factors import Parts, parts_of
from tenfold.ops.triangles import side_of
from tenfold.render.library_call import Routine


def factors(x: np.ndarray, definite: bool) -> Values:
    """Return the factors: Cholesky's for the whole stack, or Gauss's for all of it."""
    *stack, n, _ = x.shape
    packed = np.zeros((x.size // n**2, n + 1, n), x.dtype)
    columns = packed[:, :n]
    if definite:
        columns[...] = flat(x).swapaxes(1, 2)
        routines = (Routine(name_of(x, "potrf"), "'L n0 m0 n0 report", fails=True),)
        # NaN passes through a comparison with 0, so LAPACK need not see it
        if run(routines, (columns,), (n,), multiply_adds=n**3 // 6) and _finite(columns):
            columns[...] = np.triu(columns)
            return (packed.reshape(*stack, n + 1, n),)
    columns[...] = flat(x).swapaxes(1, 2)
    pivots = np.empty((len(packed), n), INT32)
    routines = (Routine(name_of(x, "getrf"), "n0 n0 m0 n0 m1 report"),)
    run(routines, (columns, pivots), (n,), multiply_adds=n**3 // 3)
    packed[:, n] = pivots
    return (packed.reshape(*stack, n + 1, n),)


def _finite(columns: np.ndarray) -> bool:
    return bool(np.isfinite(np.einsum("...ii->...i", columns)).all())


def solve(packed: np.ndarray, x2: np.ndarray, transposed: str, _: np.dtype) -> Values | None:
    """Return the solutions; several right sides of one matrix are solved together."""
    parts = parts_of(packed)
    if _refused(parts):
        return None
    n, right = packed.shape[-1], x2[:, None] if x2.ndim == 1 else x2
    stack, count = _stack_of(packed, right), right.shape[-1]
    solutions = _spread(right, stack)
    cholesky = not parts.pivots.flat[0]
    if cholesky and transposed == "T":
        np.conj(solutions, out=solutions)  # the transpose is the conjugate, as the matrix is
    together = solutions.reshape(1, -1, n) if packed.ndim == 2 else solutions
    factor = _each(parts.columns, stack)
    if cholesky:
        routine = Routine(name_of(packed, "potrs"), "'L n0 n1 m1 n0 m0 n0 report", fails=True)
        arrays: tuple[np.ndarray, ...] = (together, factor)
    else:
        words = f"'{transposed} n0 n1 m1 n0 m2 m0 n0 report"
        routine = Routine(name_of(packed, "getrs"), words, fails=True)
        arrays = (together, factor, _each(parts.pivots[..., None, :], stack))
    columns = together.shape[1]
    if not run((routine,), arrays, (n, columns), multiply_adds=n * n * columns):
        return None
    if cholesky and transposed == "T":
        np.conj(solutions, out=solutions)
    return (by_rows(solutions, (*stack, n) if x2.ndim == 1 else (*stack, n, count)),)


def inverse(packed: np.ndarray, _: np.dtype) -> Values | None:
    """Return the inverses."""
    parts = parts_of(packed)
    if _refused(parts):
        return None
    *stack, _, n = packed.shape
    columns = flat(parts.columns).copy(order="C")
    if parts.cholesky.any():
        routine = Routine(name_of(packed, "potri"), "'L n0 m0 n0 report", fails=True)
        if not run((routine,), (columns,), (n,), multiply_adds=n**3 // 3):
            return None
        lower = np.tril(by_rows(columns, (*stack, n, n)))
        return (lower + np.conj(np.tril(lower, -1).swapaxes(-1, -2)),)
    name = name_of(packed, "getri")
    length = work_length(name, (n, None, n, None, None, -1))
    (at,), scratch = placed((packed.dtype, length))
    routine = Routine(name, "n0 m0 n0 m1 w1 n2 report", fails=True)
    arrays, numbers = (columns, parts.pivots.reshape(-1, n)), (n, at, length)
    if not run((routine,), arrays, numbers, work=scratch, multiply_adds=n**3 * 2 // 3):
        return None
    return (by_rows(columns, (*stack, n, n)),)


def _refused(parts: Parts) -> bool:
    """Whether the factors are singular or of both kinds: then the reference computes."""
    if not parts.diagonal.all():
        return True
    return parts.pivots.ndim > 1 and bool(parts.cholesky.any() != parts.cholesky.all())


def _stack_of(matrices: np.ndarray, right: np.ndarray) -> tuple[int, ...]:
    """Return the shape of the stack of solutions."""
    if matrices.ndim == 2:
        return right.shape[:-2]
    return np.broadcast_shapes(matrices.shape[:-2], right.shape[:-2])


def _spread(right: np.ndarray, stack: tuple[int, ...]) -> np.ndarray:
    """Return a copy by columns of right sides, for every matrix of a stack."""
    if right.shape[:-2] != stack:
        right = np.broadcast_to(right, (*stack, *right.shape[-2:]))
    return by_columns(right)


def _each(x: np.ndarray, stack: tuple[int, ...]) -> np.ndarray:
    """Return matrices as a stack with one axis; one for all is met once."""
    if x.ndim == 2:
        return x[None]
    if x.shape[:-2] != stack:
        x = np.broadcast_to(x, (*stack, *x.shape[-2:]))
    return x.reshape(-1, *x.shape[-2:])


def triangular_solve(
    x1: np.ndarray, x2: np.ndarray, side: str, unit_diagonal: bool
) -> Values | None:
    """Return the solutions; of matrices only the triangle is read, where it lies."""
    found = side_of(x1) if side == "either" else side
    if found not in ("lower", "upper"):
        return None
    n, right = x1.shape[-1], x2[:, None] if x2.ndim == 1 else x2
    stack, count = _stack_of(x1, right), right.shape[-1]
    solutions = _spread(right, stack)
    transposed = x1.swapaxes(-1, -2)
    if transposed.flags.c_contiguous:
        matrix, upper, operation = transposed, found == "upper", "N"
    else:  # what lies by rows is the transpose by columns
        matrix, upper, operation = np.ascontiguousarray(x1), found == "lower", "T"
    together = solutions.reshape(1, -1, n) if x1.ndim == 2 else solutions
    words = f"'{'U' if upper else 'L'} '{operation} '{'U' if unit_diagonal else 'N'}"
    routine = Routine(name_of(x1, "trtrs"), f"{words} n0 n1 m1 n0 m0 n0 report", fails=True)
    columns = together.shape[1]
    arrays = (together, _each(matrix, stack))
    if not run((routine,), arrays, (n, columns), multiply_adds=n * n * columns // 2):
        return None
    return (by_rows(solutions, (*stack, n) if x2.ndim == 1 else (*stack, n, count)),)


def _permutation(pivots: Sequence[int], rows: int) -> list[int]:
    """Return which row stands where after the exchanges that pivots say, from 1 on."""
    order = list(range(rows))
    for row, pivot in enumerate(pivots):
        order[row], order[pivot - 1] = order[pivot - 1], order[row]
    return order


def lu(x: np.ndarray) -> Values:
    """Return the permutation, the lower and the upper factor of rectangles."""
    *stack, m, n = x.shape
    short = min(m, n)
    columns = by_columns(x)
    pivots = np.empty((len(columns), short), INT32)
    routine = Routine(name_of(x, "getrf"), "n0 n1 m0 n0 m1 report")
    cost = short * short * (3 * max(m, n) - short) // 6
    run((routine,), (columns, pivots), (m, n), multiply_adds=cost)
    both = by_rows(columns, (len(columns), m, n))
    lower = np.tril(both[:, :, :short], -1)
    np.einsum("...ii->...i", lower[:, :short])[...] = 1
    order = [_permutation(each, m) for each in pivots.tolist()]
    each = np.arange(len(columns))
    exchange = np.zeros((len(columns), m, m), x.dtype)
    exchange[each[:, None], order, np.arange(m)] = 1
    return (
        exchange.reshape(*stack, m, m),
        lower.reshape(*stack, m, short),
        np.triu(both[:, :short]).reshape(*stack, short, n),
    )


def spectrum(x: np.ndarray) -> Values | None:
    """Return the eigenvalues of Hermitian matrices, of the lower triangle, rising."""
    n, is_complex = x.shape[-1], kind_of(x.dtype) == "c"
    columns = by_columns(x)
    values = np.empty((len(columns), n))
    name = name_of(x, "heev" if is_complex else "syev")
    asked = ("N", "L", n, None, n, None, None, -1, *[None] * is_complex)
    length = work_length(name, asked)
    (at, other), scratch = placed((x.dtype, length), (FLOAT64, 3 * n))
    words = "'N 'L n0 m0 n0 m1 w1 n2" + " w3" * is_complex
    routine = Routine(name, f"{words} report", fails=True)
    numbers, cost = (n, at, length, other), 2 * n**3 // 3
    if not run((routine,), (columns, values), numbers, work=scratch, multiply_adds=cost):
        return None
    return (values.reshape(x.shape[:-1]),)
