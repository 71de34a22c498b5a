"""Factors and matrices in SciPy's form: pairs of factors and their solves, Schur and polar forms.

Takes stacks of matrices, hands on compositions of the decompositions that `tn.linalg` has; Schur
forms are library calls, matrix by matrix.

>>> import tenfold as tn
>>> lu_solve(lu_factor(tn.asarray([[0.0, 2.0], [4.0, 0.0]])), tn.asarray([2.0, 4.0])).tolist()
[1.0, 1.0]
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tenfold import _native
from tenfold._native import Array, Type
from tenfold.core.op import BoundCall, Inferred
from tenfold.core.op_decorators import array, as_stack, derived, operation, refuse_derivative
from tenfold.core.op_decorators import values as read_values
from tenfold.core.shape_rules import broadcast, product
from tenfold.dtypes import COMPLEX64, COMPLEX128, DTYPES, FLOAT64, kind_of, real_part
from tenfold.errors import MatrixError, ShapeError
from tenfold.ops.banded_solve import TRANSPOSITIONS, solve_triangular
from tenfold.ops.complex import conj
from tenfold.ops.create import zeros
from tenfold.ops.diagonal_tril_triu import tril
from tenfold.ops.gathering import take_along_axis
from tenfold.ops.joining import concat
from tenfold.ops.linalg import (
    NOT_FINITE,
    adjoint,
    check_rhs,
    cholesky,
    computation_dtype,
    matrices,
    matrix_operation,
    square,
    svd,
)
from tenfold.ops.lu_and_triangular import lu
from tenfold.ops.movement import flip, matrix_transpose
from tenfold.ops.pad import pad
from tenfold.ops.reduce import count_nonzero
from tenfold.ops.reduce import max as largest
from tenfold.ops.reshaping import broadcast_to, reshape
from tenfold.ops.sorting import argsort
from tenfold.ops.windows import sliding_window_view


class LUFactors(NamedTuple):
    """What `linalg.lu_factor` returns."""

    lu: Array
    piv: Array


class CholeskyFactor(NamedTuple):
    """What `linalg.cho_factor` returns."""

    c: Array
    lower: bool


class SchurResult(NamedTuple):
    """What `linalg.schur` returns."""

    T: Array
    Z: Array


class PolarResult(NamedTuple):
    """What `linalg.polar` returns."""

    u: Array
    p: Array


def _row_exchanges(permutation: np.ndarray, count: int) -> np.ndarray:
    """Return LAPACK's pivots, from 0 on: the row that each of the first `count` steps exchanges
    with its own. `P @ L @ U` has row j of the product in the row where column j of P has its 1.
    """
    *stack, n, _ = permutation.shape
    order = np.nonzero(permutation.swapaxes(-1, -2))[-1].reshape(product(tuple(stack)), n)
    pivots = np.zeros((len(order), count), np.int32)
    rows, members = np.tile(np.arange(n), (len(order), 1)), np.arange(len(order))
    for step in range(count):
        pivots[:, step] = at = (rows == order[:, step, None]).argmax(-1)
        rows[members, at], rows[:, step] = rows[:, step].copy(), order[:, step]
    return pivots.reshape(*stack, count)


@operation(
    rule=lambda types, count: Inferred(
        (((*types[0].shape[:-2], count), DTYPES["int32"]),), (types[0].dtype,)
    ),
    reference=_row_exchanges,
    public=False,
    batch_params=as_stack,
)
def row_exchanges(permutation: Array, /, count: int) -> BoundCall:
    """Return the pivots of permutation matrices (..., n, n): (..., count), int32."""
    return BoundCall((permutation,), (count,))


def _exchanged_rows(pivots: np.ndarray, rows: int) -> np.ndarray:
    *stack, count = pivots.shape
    steps = pivots.reshape(product(tuple(stack)), count)
    if ((steps < 0) | (steps >= rows)).any():
        raise np.linalg.LinAlgError(f"pivots name rows that {rows} rows have not")
    order, members = np.tile(np.arange(rows), (len(steps), 1)), np.arange(len(steps))
    for step, at in enumerate(steps.T):
        order[members, at], order[:, step] = order[:, step].copy(), order[members, at]
    return order.reshape(*stack, rows)


@operation(
    rule=lambda types, rows: Inferred(
        (((*types[0].shape[:-1], rows), DTYPES["int64"]),), (types[0].dtype,)
    ),
    reference=_exchanged_rows,
    can_fail=True,
    remedy="give the pivots of tn.linalg.lu_factor",
    public=False,
    name="lu_solve",
    batch_params=as_stack,
)
def exchanged_rows(pivots: Array, /, rows: int) -> BoundCall:
    """Return the order of rows after the exchanges of pivots: (..., rows), int64."""
    return BoundCall((pivots,), (rows,))


@derived(namespace="linalg")
def lu_factor(a: Array, /) -> LUFactors:
    """LU decomposition in SciPy's form: (..., m, n), floating dtypes, to a pair of arrays.

    `lu` (..., m, n) has U at and above the diagonal and L, whose diagonal is 1, below it. `piv`
    (..., k), int32, where k is min(m, n): row i was exchanged with row `piv[i]`. Returns a named
    tuple, which `lu_solve` takes. A singular matrix is factored, too. Raises ShapeError for fewer
    than two axes, DTypeError for halves. Golub and Van Loan 2013, 3.4.

    >>> import tenfold as tn
    >>> lu, piv = tn.linalg.lu_factor(tn.asarray([[1.0, 2.0], [4.0, 4.0]]))
    >>> lu.tolist(), piv.tolist()
    ([[4.0, 4.0], [0.25, 1.0]], [1, 1])
    """
    permutation, lower, upper = lu(a)
    *stack, m, k = lower.shape
    n = upper.shape[-1]
    outer = [(0, 0)] * len(stack)
    below = pad(tril(lower, -1), [*outer, (0, 0), (0, n - k)])
    above = pad(upper, [*outer, (0, m - k), (0, 0)])
    return LUFactors(below + above, row_exchanges(permutation, k))


def _columns(order: int, stack: tuple[int, ...], b: Any) -> tuple[Array, bool]:
    """Return the right sides of a stack as matrices, and whether `b` is one vector."""
    b = array(b)
    check_rhs(order, b.shape)
    is_vector = b.ndim == 1
    columns = b[:, None] if is_vector else b
    lengths = broadcast(stack, columns.shape[:-2])
    return broadcast_to(columns, (*lengths, *columns.shape[-2:])), is_vector


@derived(namespace="linalg")
def lu_solve(lu_and_piv: tuple[Array, Array], b: Array, /, trans: int = 0) -> Array:
    """Solve `a @ x = b` with the factors that `lu_factor` made of `a`: (..., n, n), and (n,) or
    (..., n, k), floating dtypes.

    `trans` 1 solves with the transposed matrices, 2 with the conjugate transposed ones. `b` is a
    vector when it has exactly one axis; stacks broadcast. Raises ShapeError for shapes that do not
    fit and for another `trans`, DTypeError for halves, and LinAlgError at the wait for a singular
    matrix or for pivots that are no rows. `tn.linalg.solve` shares the factors of one matrix by
    itself.

    >>> import tenfold as tn
    >>> factors = tn.linalg.lu_factor(tn.asarray([[0.0, 2.0], [4.0, 4.0]]))
    >>> tn.linalg.lu_solve(factors, tn.asarray([2.0, 8.0])).tolist()
    [1.0, 1.0]
    """
    packed, pivots = map(array, lu_and_piv)
    stack, order = square(packed.shape)
    columns, is_vector = _columns(order, stack, b)
    if pivots.shape[-1:] != (order,):
        rule = f"pivots of shape {pivots.shape} are not {order} for each matrix"
        raise ShapeError("", rule, remedy="give those of tn.linalg.lu_factor")
    rows = exchanged_rows(pivots, order)[..., None]
    both = broadcast(columns.shape[:-2], rows.shape[:-2])
    rows = broadcast_to(rows, (*both, order, 1))
    columns = broadcast_to(columns, (*both, *columns.shape[-2:]))
    if trans not in TRANSPOSITIONS:
        rule = f"trans {trans!r} is none of 0, 1, 2"
        raise ShapeError("", rule, remedy="use one of them")
    if TRANSPOSITIONS[trans] == "N":
        y = take_along_axis(columns, rows, axis=-2)
        y = solve_triangular(packed, y, lower=True, unit_diagonal=True)
        x = solve_triangular(packed, y)
    else:
        y = solve_triangular(packed, columns, trans)
        y = solve_triangular(packed, y, trans, lower=True, unit_diagonal=True)
        x = take_along_axis(y, argsort(rows, axis=-2), axis=-2)
    return x[..., 0] if is_vector else x


@derived(namespace="linalg")
def cho_factor(a: Array, /, lower: bool = False) -> CholeskyFactor:
    """Cholesky factor in SciPy's form of Hermitian positive-definite matrices: (..., n, n).

    The factor is upper triangular unless `lower`; only that triangle of `a` is read, and the other
    one of the result is 0, where SciPy leaves what `a` has. Returns the named tuple (c, lower),
    which `cho_solve` takes. Raises ShapeError for matrices that are not square, DTypeError for
    halves, and LinAlgError at the wait for one that is not positive definite.

    >>> import tenfold as tn
    >>> tn.linalg.cho_factor(tn.asarray([[4.0, 2.0], [2.0, 5.0]])).c.tolist()
    [[2.0, 1.0], [0.0, 2.0]]
    """
    return CholeskyFactor(cholesky(a, upper=not lower), bool(lower))


@derived(namespace="linalg")
def cho_solve(c_and_lower: tuple[Array, bool], b: Array, /) -> Array:
    """Solve `a @ x = b` with the factor that `cho_factor` made of `a`: (..., n, n), and (n,) or
    (..., n, k), floating dtypes.

    `b` is a vector when it has exactly one axis; stacks broadcast. Raises ShapeError for shapes
    that do not fit, DTypeError for halves, and LinAlgError at the wait for a 0 on the diagonal.

    >>> import tenfold as tn
    >>> factor = tn.linalg.cho_factor(tn.asarray([[4.0, 0.0], [0.0, 1.0]]))
    >>> tn.linalg.cho_solve(factor, tn.asarray([4.0, 1.0])).tolist()
    [1.0, 1.0]
    """
    factor, lower = array(c_and_lower[0]), bool(c_and_lower[1])
    stack, order = square(factor.shape)
    columns, is_vector = _columns(order, stack, b)
    y = solve_triangular(factor, columns, "N" if lower else "C", lower)
    x = solve_triangular(factor, y, "C" if lower else "N", lower)
    return x[..., 0] if is_vector else x


def _schur_rule(types: tuple[Type, ...], output: str) -> Inferred:
    square(types[0].shape)
    dtype = computation_dtype(types)
    if output == "complex" and kind_of(dtype) != "c":
        dtype = COMPLEX128 if dtype == FLOAT64 else COMPLEX64
    return Inferred(((types[0].shape, dtype),) * 2, (dtype,))


def _schur_reference(x: np.ndarray, output: str) -> tuple[np.ndarray, ...]:
    """SciPy's, matrix by matrix."""
    from scipy import linalg  # imported only where it is used

    if not np.isfinite(x).all():
        raise np.linalg.LinAlgError("Array must not contain infs or NaNs")
    results = np.empty_like(x), np.empty_like(x)
    for at in np.ndindex(*x.shape[:-2]) if x.size else ():
        results[0][at], results[1][at] = linalg.schur(x[at], output, check_finite=False)
    return results


@matrix_operation(
    rule=_schur_rule,
    reference=_schur_reference,
    can_fail=True,
    remedy=NOT_FINITE,
    multiply_adds=lambda types, _: product(types[0].shape) * types[0].shape[-1] * 25 // 2,
    result_type=SchurResult,
    samples=(),
)
def schur(a: Array, /, output: str = "real") -> BoundCall:
    """Schur form of square matrices, a = Z @ T @ conj(Z).T: (..., n, n), floating dtypes.

    Z is unitary and T upper triangular; for `output="real"` and real matrices both are real, and T
    has blocks of two rows for complex eigenvalues. `output="complex"` makes a triangular, complex
    T. Returns a named tuple. It has no derivative: take those of `linalg.eig`. Raises ShapeError
    for matrices that are not square and another `output`, DTypeError for halves, and LinAlgError at
    the wait for NaN, infinity and where the iteration does not converge. By the QR algorithm, 25/2
    n^3 multiply-adds: Golub and Van Loan 2013, 7.5.6.

    >>> import tenfold as tn
    >>> tn.linalg.schur(tn.asarray([[2.0, 1.0], [0.0, 3.0]])).T.tolist()
    [[2.0, 1.0], [0.0, 3.0]]
    """
    names = {"real": "real", "r": "real", "complex": "complex", "c": "complex"}
    if output not in names:
        rule = f"output {output!r} is neither 'real' nor 'complex'"
        raise ShapeError("", rule, remedy="use one of them")
    return BoundCall((array(a),), (names[output],))


@derived(namespace="linalg")
def polar(a: Array, /, side: str = "right") -> PolarResult:
    """Polar form of (..., m, n): a = u @ p, or a = p @ u for `side="left"`, floating dtypes.

    u (..., m, n) has orthonormal columns, or rows where there are more columns; p is Hermitian and
    has no negative eigenvalue, (..., n, n), or (..., m, m) for the left side. Returns a named
    tuple. By the singular value decomposition (Higham 2008, "Functions of matrices", 8.1), whose
    derivative is not finite for equal singular values. Raises ShapeError for fewer than two axes
    and another `side`, DTypeError for halves, LinAlgError at the wait for NaN and infinity.

    >>> import tenfold as tn
    >>> u, p = tn.linalg.polar(tn.asarray([[0.0, -2.0], [3.0, 0.0]]))
    >>> tn.abs(tn.round(u)).tolist(), tn.round(p).tolist()
    ([[0.0, 1.0], [1.0, 0.0]], [[3.0, 0.0], [0.0, 2.0]])
    """
    if side not in ("left", "right"):
        raise ShapeError("", f"side {side!r} is no side", remedy="use 'left' or 'right'")
    left, s, right = svd(a, full_matrices=False)
    if side == "right":
        return PolarResult(left @ right, (adjoint(right) * s[..., None, :]) @ right)
    return PolarResult(left @ right, (left * s[..., None, :]) @ adjoint(left))


@derived(namespace="linalg")
def block_diag(*arrays: Array) -> Array:
    """Return matrices (..., m, n) joined along the diagonal, 0 elsewhere; of their common dtype.

    A vector is a row, a number is (1, 1); stacks broadcast. Without arrays the result is (1, 0).
    Raises ShapeError for stacks that do not broadcast.

    >>> import tenfold as tn
    >>> tn.linalg.block_diag(tn.asarray([[1, 2]]), tn.asarray(3)).tolist()
    [[1, 2, 0], [0, 0, 3]]
    """
    blocks = [array(x) for x in arrays]
    blocks = [reshape(x, (1,) * (2 - x.ndim) + x.shape) if x.ndim < 2 else x for x in blocks]
    if not blocks:
        return zeros((1, 0))
    stack: tuple[int, ...] = ()
    for block in blocks:
        stack = broadcast(stack, block.shape[:-2])
    width, offset, rows = sum(block.shape[-1] for block in blocks), 0, []
    for block in blocks:
        m, n = block.shape[-2:]
        sides = [(0, 0)] * (len(stack) + 1) + [(offset, width - offset - n)]
        rows.append(pad(broadcast_to(block, (*stack, m, n)), sides))
        offset += n
    return concat(rows, axis=-2)


@derived(namespace="linalg")
def toeplitz(c: Array, r: Array | None = None, /) -> Array:
    """Return the matrices with constant diagonals whose first column is `c` (..., m) and whose
    first row is `r` (..., n), conj(c) if None: (..., m, n), of their common dtype.

    The first element of `r` is not read; numbers are vectors of one element, stacks broadcast.
    Raises ShapeError for stacks that do not broadcast.

    >>> import tenfold as tn
    >>> tn.linalg.toeplitz(tn.asarray([1, 2, 3]), tn.asarray([1, 4])).tolist()
    [[1, 4], [2, 1], [3, 2]]
    """
    column = array(c)
    column = column if column.ndim else column[None]
    row = (conj(column) if kind_of(column.dtype) == "c" else column) if r is None else array(r)
    row = row if row.ndim else row[None]
    m, n, stack = column.shape[-1], row.shape[-1], broadcast(column.shape[:-1], row.shape[:-1])
    ends = broadcast_to(flip(column, axis=-1), (*stack, m)), broadcast_to(row, (*stack, n))
    if not m or not n:
        return zeros((*stack, m, n), dtype=concat(ends, axis=-1).dtype)
    values = concat([ends[0], ends[1][..., 1:]], axis=-1)
    matrices = flip(sliding_window_view(values, n, -1), axis=-2)
    return _native.array_of(_native.node_of(matrices))  # to which one may assign, as it is no view


@derived(namespace="linalg")
def null_space(A: Array, /, rcond: float | None = None) -> Array:  # noqa: N803  # SciPy's name
    """Return an orthonormal basis of the vectors x with `A @ x = 0`: (m, n) to (n, n - rank),
    floating dtypes. Computes `A`, on whose values the shape depends.

    Singular values up to `rcond` times the largest one count as 0, max(m, n) * eps of the dtype if
    None. Raises MatrixError unless `A` is one matrix, DTypeError for halves, UnsupportedError for
    a watched array, and LinAlgError for NaN and infinity.

    >>> import tenfold as tn
    >>> tn.linalg.null_space(tn.asarray([[1.0, 0.0], [2.0, 0.0]])).shape
    (2, 1)
    """
    x = array(A)
    if x.ndim != 2:
        rule = f"shape {x.shape} is not one matrix: ranks of a stack may differ"
        raise MatrixError("", rule, remedy="give one matrix (m, n)")
    refuse_derivative(x)
    _, m, n = matrices(x.shape)
    s, vh = svd(x, full_matrices=True)[1:]
    if rcond is None:
        rcond = float(np.finfo(real_part(vh.dtype)).eps) * max(m, n)
    is_nonzero = s > largest(s, axis=-1, keepdims=True) * rcond if min(m, n) else s > 0
    rank = int(read_values(count_nonzero(is_nonzero), "null_space"))
    return adjoint(vh[rank:]) if kind_of(vh.dtype) == "c" else matrix_transpose(vh[rank:])
