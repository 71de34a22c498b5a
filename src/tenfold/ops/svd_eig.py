"""Singular values and eigenvalues: the values alone, rank, condition, pseudoinverse and least
squares.

Takes stacks of matrices in any dtype but the halves. The values are library calls, the rest is made
of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tenfold._native import Array, Type
from tenfold.core.op import BoundCall, Inferred, Kind, SampleCall
from tenfold.core.op_decorators import array, as_stack, derived, operation
from tenfold.core.shape_rules import product
from tenfold.dtypes import real_part
from tenfold.errors import ShapeError
from tenfold.ops.cast import astype, convert
from tenfold.ops.complex import abs2
from tenfold.ops.contract import matmul
from tenfold.ops.create import eye, zeros
from tenfold.ops.indexing import get_item
from tenfold.ops.linalg import (
    NOT_FINITE,
    adjoint,
    check_rhs,
    computation_dtype,
    computation_dtype_of,
    eigh,
    matrices,
    matrix_operation,
    square,
    svd,
)
from tenfold.ops.reduce import count_nonzero, max, sum  # noqa: A004  # their public names
from tenfold.ops.reshaping import broadcast_to
from tenfold.ops.selection import where


class LstsqResult(NamedTuple):
    """What `linalg.lstsq` returns."""

    x: Array
    residuals: Array
    rank: Array
    singular_values: Array


def _eigvalsh_rule(types: tuple[Type, ...]) -> Inferred:
    stack, order = square(types[0].shape)
    dtype = computation_dtype(types)
    return Inferred((((*stack, order), real_part(dtype)),), (dtype,))


@matrix_operation(
    bind_depends_on="types",
    rule=_eigvalsh_rule,
    can_fail=True,
    remedy=NOT_FINITE,
    multiply_adds=lambda types: product(types[0].shape[:-1]) * types[0].shape[-1] ** 2 * 2 // 3,
    numpy=(np.linalg.eigvalsh,),
    expression=lambda x: eigh(x)[0],
)
def eigvalsh(x: Array, /) -> BoundCall:
    """Eigenvalues, rising and real, of Hermitian matrices: (..., n, n) to (..., n).

    Only the lower triangle of `x` is read. The vectors as well: `linalg.eigh`. Raises ShapeError
    for matrices that are not square, DTypeError for halves, and LinAlgError at the wait where the
    iteration does not converge. By tridiagonal matrices: Golub and Van Loan 2013, 8.3.

    >>> import tenfold as tn
    >>> tn.linalg.eigvalsh(tn.asarray([[2.0, 0.0], [0.0, 1.0]])).tolist()
    [1.0, 2.0]
    """
    return BoundCall((array(x),))


def _svdvals_rule(types: tuple[Type, ...]) -> Inferred:
    stack, rows, columns = matrices(types[0].shape)
    dtype = computation_dtype(types)
    return Inferred((((*stack, min(rows, columns)), real_part(dtype)),), (dtype,))


def svdvals_multiply_adds(types: tuple[Type, ...]) -> int:
    """2 m n^2 - 2 n^3 / 3 for the longer m: Golub and Van Loan 2013, table 8.6.1."""
    stack, rows, columns = matrices(types[0].shape)
    m, n = sorted((rows, columns), reverse=True)
    return product(stack) * (2 * m * n * n - 2 * n**3 // 3)


def _svdvals_back(g: Array, y: Array, x: Array) -> tuple[Array]:
    """Giles 2008, "Collected matrix derivative results", 3.2."""
    left, _, right = svd(x, full_matrices=False)
    return ((left * g[..., None, :]) @ right,)


@matrix_operation(
    bind_depends_on="types",
    rule=_svdvals_rule,
    can_fail=True,
    remedy=NOT_FINITE,
    multiply_adds=svdvals_multiply_adds,
    numpy=(np.linalg.svdvals,),
    samples=[
        SampleCall(((3, 2),)),
        SampleCall(((2, 3),)),
        SampleCall(((2, 3, 3),)),
        SampleCall(((0, 3),)),
    ],
    vjp=_svdvals_back,
)
def svdvals(x: Array, /) -> BoundCall:
    """Singular values, falling and real, of (..., m, n): (..., k), where k is min(m, n).

    The vectors as well: `linalg.svd`. Raises ShapeError for fewer than two axes, DTypeError for
    halves, and LinAlgError at the wait where the iteration does not converge.

    >>> import tenfold as tn
    >>> tn.linalg.svdvals(tn.asarray([[0.0, 2.0], [1.0, 0.0]])).tolist()
    [2.0, 1.0]
    """
    return BoundCall((array(x),))


def _default_rtol(x: Array) -> float:
    """The default relative tolerance, by the standard: max(m, n) * eps of the dtype."""
    rows, columns = x.shape[-2:]
    units = float(np.finfo(computation_dtype_of(x)).eps)
    return units * (rows if rows > columns else columns)


def _cutoff(x: Array, values: Array, rtol: Any) -> Array:
    """The largest singular value that counts as 0."""
    if rtol is None:
        return max(values, axis=-1, keepdims=True) * _default_rtol(x)
    tolerance = array(rtol)
    if tolerance.ndim > x.ndim - 2:
        raise ShapeError(
            "",
            f"rtol of shape {tolerance.shape} is more than one for each of {x.shape[:-2]} matrices",
            remedy="give a number, or one for each matrix of the stack",
        )
    scaled_tolerance: Array = get_item(astype(tolerance, values.dtype), (Ellipsis, None))
    return max(values, axis=-1, keepdims=True) * scaled_tolerance


@derived(
    namespace="linalg",
    numpy=(np.linalg.matrix_rank,),
    samples=[SampleCall(((3, 2),)), SampleCall(((2, 3, 3),))],
)
def matrix_rank(x: Array, /, *, rtol: Any = None) -> Array:
    """Rank of matrices: how many singular values are larger than `rtol` times the largest one,
    (..., m, n) to (...), int64.

    `rtol` is a number or one for each matrix, max(m, n) * eps of the dtype if None. Matrices
    without elements have rank 0. Raises ShapeError for fewer than two axes, DTypeError for halves,
    and LinAlgError at the wait where the singular values do not converge.

    >>> import tenfold as tn
    >>> tn.linalg.matrix_rank(tn.asarray([[1.0, 2.0], [2.0, 4.0]])).item()
    1
    """
    x = array(x)
    stack, rows, columns = matrices(x.shape)
    values = svdvals(x)
    if not rows or not columns:
        return zeros(stack, dtype=np.int64, device=x.device)
    return count_nonzero(values > _cutoff(x, values, rtol), axis=-1)


def _reciprocals(values: Array, cutoff: Array) -> Array:
    """1 over the singular values above the cutoff, 0 for the others."""
    is_nonzero = values > cutoff
    return where(is_nonzero, 1 / where(is_nonzero, values, 1), 0)


def _minimum_norm_back(
    g: Array, y: Array, _: Array, x1: Array, x2: Array, u: Array, weights: Array, vh: Array
) -> tuple[Array | None, ...]:
    """Golub, Pereyra 1973, "The differentiation of pseudo-inverses and nonlinear least squares
    problems", equation 4.12: the rank stays as it is.
    """
    rows = eye(x1.shape[-2], dtype=x1.dtype, device=x1.device)
    identity = broadcast_to(rows, (*x1.shape[:-1], x1.shape[-2]))
    value = adjoint(vh) @ (weights * adjoint(u))
    inverse = minimum_norm(value, x1, identity, u, weights, vh)
    rhs = adjoint(inverse) @ g
    matrix = (x2 - x1 @ y) @ adjoint(inverse @ rhs) - rhs @ adjoint(y)
    matrix = matrix + adjoint(inverse) @ y @ adjoint(g - adjoint(x1) @ rhs)
    return None, matrix, rhs, None, None, None


@operation(
    rule=lambda types: Inferred(
        ((types[0].shape, types[0].dtype),), tuple([type_.dtype for type_ in types])
    ),
    reference=lambda values, *_: values,
    kind=Kind.VIEW,
    index_map=lambda shape: tuple((axis, 1, 0) for axis in range(len(shape))),
    public=False,
    portable=True,
    batch_params=as_stack,
    vjp=_minimum_norm_back,
)
def minimum_norm(
    values: Array, x1: Array, x2: Array, u: Array, weights: Array, vh: Array, /
) -> BoundCall:
    """Return values that are the least-squares solution of smallest norm of `x1 @ x = x2`, by the
    singular vectors of `x1` and the reciprocals of its singular values.
    """
    return BoundCall((values, x1, x2, u, weights, vh))


def _least_squares(x1: Array, x2: Array, rtol: Any) -> tuple[Array, Array, Array]:
    """Return the solution, the singular values, and the largest one that counts as 0."""
    u, s, vh = svd(x1, full_matrices=False)
    cutoff = _cutoff(x1, s, rtol)
    weights = get_item(_reciprocals(s, cutoff), (Ellipsis, slice(None), None))
    values = matmul(adjoint(vh), weights * matmul(adjoint(u), x2))
    stack = values.shape[:-2]
    operands = [broadcast_to(x, (*stack, *x.shape[-2:])) for x in (x1, x2, u, weights, vh)]
    return minimum_norm(values, *operands), s, cutoff


@derived(
    namespace="linalg",
    reference=lambda x: np.linalg.pinv(x, rtol=None),  # type: ignore[call-overload]  # it may
    numpy=(np.linalg.pinv,),
    samples=[SampleCall(((3, 2),)), SampleCall(((2, 3, 3),)), SampleCall(((0, 3),))],
)
def pinv(x: Array, /, *, rtol: Any = None) -> Array:
    """Pseudo-inverse of Moore and Penrose: (..., m, n) to (..., n, m), floating dtypes.

    Singular values up to `rtol` times the largest one count as 0: a number or one for each matrix,
    max(m, n) * eps of the dtype if None. Raises ShapeError for fewer than two axes, DTypeError for
    halves, and LinAlgError at the wait where the singular values do not converge. By the singular
    value decomposition: Golub and Van Loan 2013, 5.5.2.

    >>> import tenfold as tn
    >>> tn.linalg.pinv(tn.asarray([[2.0, 0.0], [0.0, 0.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    x = array(x)
    stack, rows, columns = matrices(x.shape)
    if 0 in (rows, columns):
        dtype = computation_dtype_of(x)
        return zeros((*stack, columns, rows), dtype=dtype, device=x.device)
    identity = eye(rows, dtype=computation_dtype_of(x), device=x.device)
    return _least_squares(convert(x, identity.dtype), identity, rtol)[0]


@derived(namespace="linalg", samples=[SampleCall(((3, 2), (3,))), SampleCall(((2, 3), (2, 2)))])
def lstsq(x1: Array, x2: Array, /, rcond: float | None = None) -> Any:
    """Least-squares solution of `x1 @ x = x2`, the one of smallest norm if there are several:
    (..., m, n) and (m,) or (..., m, k), floating dtypes.

    Returns a named tuple of x, (n,) or (..., n, k); residuals, the sums of squares of
    `x2 - x1 @ x` for each column, () or (..., k), whatever the rank is; rank, (...); and the
    singular values of `x1`. Those up to `rcond` times the largest one count as 0: max(m, n) * eps
    of the dtype if None. Raises ShapeError for a right side that does not fit, DTypeError for
    halves, and LinAlgError at the wait where the singular values do not converge. By the singular
    value decomposition: Golub and Van Loan 2013, 5.5.2.

    >>> import tenfold as tn
    >>> x = tn.asarray([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> [round(each, 12) for each in tn.linalg.lstsq(x, tn.asarray([1.0, 3.0, 5.0])).x.tolist()]
    [1.0, 2.0]
    """
    x1, x2 = array(x1), array(x2)
    stack, rows, columns = matrices(x1.shape)
    check_rhs(rows, x2.shape)
    rhs = get_item(x2, (slice(None), None)) if x2.ndim == 1 else x2
    dtype = computation_dtype_of(x1, x2)
    x1, rhs = astype(x1, dtype), astype(rhs, dtype)
    if 0 in (rows, columns):
        shape = np.broadcast_shapes(stack, rhs.shape[:-2])
        solution = zeros((*shape, columns, rhs.shape[-1]), dtype=dtype, device=x1.device)
        s = zeros((*stack, 0), dtype=real_part(dtype), device=x1.device)
        rank = zeros(stack, dtype=np.int64, device=x1.device)
    else:
        solution, s, cutoff = _least_squares(x1, rhs, rcond)
        rank = count_nonzero(s > cutoff, axis=-1)
    residuals = sum(abs2(rhs - matmul(x1, solution)), axis=-2)
    if x2.ndim == 1:
        solution, residuals = (get_item(result, (Ellipsis, 0)) for result in (solution, residuals))
    return LstsqResult(solution, residuals, rank, s)
