"""LU, triangular and diagonal solves: Gaussian elimination, and equations with triangular matrices.

Takes stacks of matrices, hands on solutions and factors: library calls as in `ops/linalg.py`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tenfold._native import Array, Type
from tenfold.core.dtype_rules import division
from tenfold.core.op import BoundCall, Inferred, SampleCall
from tenfold.core.op_decorators import array, elementwise, operation
from tenfold.core.scalar_ir import Body, ComplexElement, Element
from tenfold.core.shape_rules import product
from tenfold.core.structure import OF_WORD, Structure
from tenfold.ops.complex_parts import quotient, real_or_complex
from tenfold.ops.create import zeros_like
from tenfold.ops.diagonal_tril_triu import tril, triu
from tenfold.ops.joining import concat
from tenfold.ops.linalg import (
    SINGULAR,
    adjoint,
    computation_dtype,
    matrices,
    matrix_operation,
    refuse_singular,
    shared_matrix_solve_members,
    solve,
    solve_back,
    solve_rule,
    solve_shapes,
)


class LUResult(NamedTuple):
    """What `linalg.lu` returns."""

    P: Array
    L: Array
    U: Array


def common_triangle(x: np.ndarray) -> Structure:
    """Return the triangle that holds all matrices of a stack; GENERAL if neither does."""
    if not np.triu(x, 1).any():
        return Structure.LOWER
    return Structure.GENERAL if np.tril(x, -1).any() else Structure.UPPER


def _triangular_solve_reference(
    x1: np.ndarray, x2: np.ndarray, side: str, unit_diagonal: bool
) -> np.ndarray:
    """SciPy's substitution, matrix by matrix."""
    from scipy import linalg  # imported only where it is used

    n, rhs = x1.shape[-1], x2[:, None] if x2.ndim == 1 else x2
    singular = (np.einsum("...ii->...i", x1) == 0).any(-1)
    if not unit_diagonal and singular.any():
        raise refuse_singular("x1", x1.shape, x1.dtype, singular)
    stack = np.broadcast_shapes(x1.shape[:-2], rhs.shape[:-2])
    stacked = np.broadcast_to(x1, (*stack, n, n))
    solutions = np.array(np.broadcast_to(rhs, (*stack, n, rhs.shape[-1])))
    for at in np.ndindex(*stack) if solutions.size else ():
        if side == "diagonal":
            solutions[at] /= np.diagonal(stacked[at])[:, None]
            continue
        known = OF_WORD[side]
        triangle = common_triangle(stacked[at]) if known == Structure.TRIANGULAR else known
        solutions[at] = linalg.solve_triangular(
            stacked[at],
            solutions[at],
            lower=triangle == Structure.LOWER,
            unit_diagonal=unit_diagonal,
            check_finite=False,
        )
    return solutions[..., 0] if x2.ndim == 1 else solutions


def _triangular_solve_multiply_adds(types: tuple[Type, ...], side: str, unit_diagonal: bool) -> int:
    """By substitution n (n + 1) / 2 for each column: Golub and Van Loan 2013, 3.1.1."""
    stack, order, rhs = solve_shapes(types)
    columns = product(stack) * product(rhs[1:])
    return columns * (order if side == "diagonal" else order * (order + 1) // 2)


def _triangular_solved_back(
    g: Array, y: Array, x1: Array, x2: Array, side: str, unit_diagonal: bool
) -> tuple[Array, Array]:
    """As for other matrices; a triangle has cotangents where it is read."""
    upper = side == "upper"

    def solve_adjoint(adjoint: Array, rhs: Array) -> Array:
        return triangular_solve(adjoint, rhs, upper=not upper, unit_diagonal=unit_diagonal)

    matrix, rhs = solve_back(solve_adjoint, g, y, x1, x2)
    return (triu(matrix, unit_diagonal) if upper else tril(matrix, -unit_diagonal)), rhs


@operation(
    bind_depends_on="types",
    rebind=lambda x1, x2, half, unit: BoundCall(
        (x1, x2), ("upper" if half == "upper" else "lower", bool(unit))
    ),
    rule=solve_rule,
    reference=_triangular_solve_reference,
    promotes=True,
    can_fail=True,
    remedy="a triangular matrix with 0 on its diagonal has no inverse: drop that row",
    multiply_adds=_triangular_solve_multiply_adds,
    namespace="linalg",
    batch=shared_matrix_solve_members,
    samples=[
        SampleCall(((3, 3), (3,))),
        SampleCall(((3, 3), (3, 2)), {"upper": True}),
        SampleCall(((4, 1, 3, 3), (5, 3, 2)), {"unit_diagonal": True}),
        SampleCall(((0, 0), (0, 2))),
    ],
    vjp=_triangular_solved_back,
)
def triangular_solve(
    x1: Array, x2: Array, /, *, upper: bool = False, unit_diagonal: bool = False
) -> BoundCall:
    """Solve `x1 @ x = x2` for triangular matrices: (..., n, n) and (n,) or (..., n, k), floating
    dtypes.

    Only the lower triangle of `x1` is read, or with `upper` the upper one; with `unit_diagonal`
    ones are taken for its diagonal, too. `x2` is a vector when it has exactly one axis; stacks
    broadcast. Raises ShapeError for matrices that are not square or a right side that does not
    fit, DTypeError for halves, and LinAlgError at the wait for a 0 on the diagonal. By
    substitution: Golub and Van Loan 2013, "Matrix Computations", 4th edition, 3.1.

    >>> import tenfold as tn
    >>> x = tn.asarray([[2.0, 9.0], [1.0, 4.0]])  # the 9 is not read
    >>> tn.linalg.triangular_solve(x, tn.asarray([2.0, 5.0])).tolist()
    [1.0, 1.0]
    """
    return BoundCall((array(x1), array(x2)), ("upper" if upper else "lower", bool(unit_diagonal)))


def _divide_reference(rhs: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    if not diagonal.all():
        raise np.linalg.LinAlgError("Singular matrix: 0 on the diagonal")
    return np.asarray(rhs / diagonal)


def _real_quotient(k: Body, rhs: Element, diagonal: Element) -> Element:
    k.fail(diagonal == 0)
    return rhs / diagonal


def _complex_quotient(k: Body, rhs: ComplexElement, diagonal: ComplexElement) -> ComplexElement:
    k.fail((diagonal.real == 0) & (diagonal.imaginary == 0))
    return quotient(k, rhs, diagonal)


@elementwise(
    dtypes=division,
    reference=_divide_reference,
    kernel=real_or_complex(_real_quotient, _complex_quotient),
    can_fail=True,
    remedy=SINGULAR,
    public=False,
    name="solve",
    cost=4,
    partials=(lambda y, rhs, diagonal: 1 / diagonal, lambda y, rhs, diagonal: -y / diagonal),
)
def solve_diagonal(rhs: Array, diagonal: Array, /) -> Array:
    """Quotient `rhs / diagonal`, element by element: the solution for diagonal matrices.

    Takes the diagonals, shaped to broadcast with the right sides. Rules make it of solves with
    diagonal matrices (`linear_algebra/solve_rules.py`), so that the matrix is not computed. Raises
    LinAlgError at the wait for a 0 on the diagonal.

    >>> solve_diagonal.reference(np.asarray([2.0, 6.0]), np.asarray([1.0, 3.0]))
    array([2., 2.])
    """


def _lu_rule(types: tuple[Type, ...]) -> Inferred:
    stack, rows, columns = matrices(types[0].shape)
    dtype, rank_bound = computation_dtype(types), min(rows, columns)
    shapes = ((*stack, rows, rows), (*stack, rows, rank_bound), (*stack, rank_bound, columns))
    return Inferred(tuple((shape, dtype) for shape in shapes), (dtype,))


def _lu_back(
    g: tuple[Any, Any, Any], y: tuple[Array, Array, Array], x: Array
) -> tuple[Array | None]:
    """De Hoog, Anderssen, Lukas 2011, "Differentiation of matrix functionals using triangular
    factorization"; the exchanges of rows are constant.
    """
    (_, g_l, g_u), (p, lower, upper) = g, y
    if g_l is None and g_u is None:
        return (None,)
    count = lower.shape[-1]
    g_l = zeros_like(lower) if g_l is None else tril(g_l, -1)
    g_u = zeros_like(upper) if g_u is None else triu(g_u)
    head_l, head_u = adjoint(lower[..., :count, :]), adjoint(upper[..., :count])
    below = beside = None
    if lower.shape[-2] > count:  # below the square, L is x @ inv(U)
        below = adjoint(solve(adjoint(head_u), adjoint(g_l[..., count:, :])))
        head = g_u[..., :count] - adjoint(lower[..., count:, :]) @ below
        g_u = concat([head, g_u[..., count:]], axis=-1)
    if upper.shape[-1] > count:  # beside it, U is inv(L) @ x
        beside = solve(head_l, g_u[..., count:])
        g_l = g_l - beside @ adjoint(upper[..., count:])
    inner = tril(head_l @ g_l[..., :count, :], -1) + triu(g_u[..., :count] @ head_u)
    g_x = solve(head_l, adjoint(solve(adjoint(head_u), adjoint(inner))))
    g_x = g_x if below is None else concat([g_x, below], axis=-2)
    g_x = g_x if beside is None else concat([g_x, beside], axis=-1)
    return (p @ g_x,)


_LU_STRUCTURES = (
    Structure.SELECTION | Structure.ORTHOGONAL,
    Structure.LOWER | Structure.UNIT,
    Structure.UPPER,
)


def _lu_reference(x: np.ndarray) -> tuple[np.ndarray, ...]:
    """SciPy's, matrix by matrix."""
    from scipy import linalg  # imported only where it is used

    *stack, m, n = x.shape
    rank_bound = min(m, n)
    shapes = ((m, m), (m, rank_bound), (rank_bound, n))
    p, lower, upper = results = tuple(np.zeros((*stack, *shape), x.dtype) for shape in shapes)
    if not rank_bound:
        p[...] = np.eye(m)
        return results
    for at in np.ndindex(*stack):
        p[at], lower[at], upper[at] = linalg.lu(x[at], check_finite=False)
    return results


def _lu_multiply_adds(types: tuple[Type, ...]) -> int:
    """Each column is eliminated from those after it: n^2 (m - n/3) / 2 for the shorter n."""
    stack, rows, columns = matrices(types[0].shape)
    m, n = max(rows, columns), min(rows, columns)
    return product(stack) * (n * n * (3 * m - n) // 6)


@matrix_operation(
    rule=_lu_rule,
    makes=lambda: _LU_STRUCTURES,
    reference=_lu_reference,
    multiply_adds=_lu_multiply_adds,
    result_type=LUResult,
    samples=[
        SampleCall(((3, 3),)),
        SampleCall(((3, 2),)),
        SampleCall(((2, 2, 3),)),
        SampleCall(((0, 3),)),
    ],
    vjp=_lu_back,
)
def lu(x: Array, /) -> BoundCall:
    """LU decomposition of (..., m, n) with row exchanges: x = P @ L @ U, floating dtypes.

    P is a permutation matrix (..., m, m), L (..., m, k) lower triangular with ones on its diagonal,
    U (..., k, n) upper triangular, where k is min(m, n). Returns a named tuple. A singular matrix
    is factored, too: U then has a 0 on its diagonal. Raises ShapeError for fewer than two axes,
    DTypeError for halves. Golub and Van Loan 2013, 3.4.

    >>> import tenfold as tn
    >>> p, l, u = tn.linalg.lu(tn.asarray([[1.0, 2.0], [4.0, 4.0]]))
    >>> p.tolist(), l.tolist(), u.tolist()
    ([[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.25, 1.0]], [[4.0, 4.0], [0.0, 1.0]])
    """
    return BoundCall((array(x),))
