"""Linear algebra: LAPACK and BLAS operations on stacks of matrices, in a floating dtype.

The dtype holds that of the operands. The last two axes (m, n) are the matrices, the others the
stack. Integers and bool are computed in float64; the half types are refused, since LAPACK has none.
A matrix without an answer raises `numpy.linalg.LinAlgError` at the wait.

Counts of multiply-adds are half the floating-point operations of Golub and Van Loan 2013, "Matrix
Computations", 4th edition: 3.2.9 (LU), 4.2.5 (Cholesky), 5.2.2 and 5.2.3 (QR), table 8.6.1 (SVD),
8.3.3 (symmetric QR).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tenfold._native import Array, Type
from tenfold.core.op import BoundCall, Inferred, Op, P, SampleCall
from tenfold.core.op_decorators import array, as_stack, derived, operation
from tenfold.core.shape_rules import Shape, broadcast, product
from tenfold.core.structure import Structure, inverse_structure
from tenfold.dtypes import FLOAT64, HALF_DTYPES, kind_of, promote, real_part
from tenfold.errors import DTypeError, MatrixError, ShapeError, UnsupportedError
from tenfold.ops import diagonal_tril_triu, reduce
from tenfold.ops.batch_rules import Members
from tenfold.ops.cast import convert
from tenfold.ops.complex import conj, imag
from tenfold.ops.create import eye, zeros_like
from tenfold.ops.joining import concat
from tenfold.ops.movement import expand_dims, matrix_transpose, permute_dims, squeeze
from tenfold.ops.reshaping import reshape
from tenfold.ops.selection import where


class QRResult(NamedTuple):
    """What `linalg.qr` returns."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """What `linalg.svd` returns."""

    U: Array
    S: Array
    Vh: Array


class EighResult(NamedTuple):
    """What `linalg.eigh` returns."""

    eigenvalues: Array
    eigenvectors: Array


def computation_dtype(types: Sequence[Type]) -> np.dtype:
    """The dtype of the computation; halves are refused."""
    dtype = promote(types)
    if dtype in HALF_DTYPES:
        raise DTypeError(
            "",
            f"linear algebra does not support {dtype}",
            remedy="convert with tn.astype(x, tn.float32)",
        )
    return dtype if kind_of(dtype) in "fc" else FLOAT64


def computation_dtype_of(*arrays: Array) -> np.dtype:
    """As computed_in, for arrays."""
    return computation_dtype([Type(x.shape, x.dtype, x.device) for x in arrays])


def matrices(shape: Shape) -> tuple[Shape, int, int]:
    """Return (the stack's shape, rows, columns), or raise MatrixError below two axes."""
    if len(shape) < 2:
        raise MatrixError("", f"shape {shape} is not a matrix", remedy="give at least two axes")
    return shape[:-2], shape[-2], shape[-1]


def square(shape: Shape) -> tuple[Shape, int]:
    """Return (the stack's shape, the order) of square matrices, or raise MatrixError."""
    stack, rows, columns = matrices(shape)
    if rows != columns:
        raise MatrixError(
            "",
            f"matrices of {rows} x {columns} are not square",
            remedy="give as many rows as columns",
        )
    return stack, rows


def _same_shape(types: tuple[Type, ...], *params: Any) -> Inferred:
    square(types[0].shape)
    dtype = computation_dtype(types)
    return Inferred(((types[0].shape, dtype),), (dtype,))


def _per_matrix(count: Callable[[int], int]) -> Callable[..., int]:
    """Return the multiply-adds of a stack of square matrices from those of one of order n."""

    def multiply_adds(types: tuple[Type, ...], *params: Any) -> int:
        stack, order = square(types[0].shape)
        return product(stack) * count(order)

    return multiply_adds


SINGULAR = "add a small multiple of tn.eye(n), or drop dependent rows; tn.linalg.svd shows them"
"""The remedy for a singular matrix."""


def refuse_singular(
    operand: str, shape: Shape, dtype: np.dtype, singular: np.ndarray
) -> np.linalg.LinAlgError:
    """Return the error, to be raised, of the first matrix of a stack that is singular."""
    text = f"Singular matrix{_stack_position(singular)}"
    return np.linalg.LinAlgError(_describe_failure(text, operand, shape, dtype))


def _stack_position(failing: np.ndarray) -> str:
    """Where in a stack the first matrix is that fails; nothing to say of a single one."""
    if not failing.ndim:
        return ""
    at = tuple(int(i) for i in np.argwhere(failing)[0])
    return f" at {at if len(at) > 1 else at[0]} of the stack"


def _describe_failure(text: str, operand: str, shape: Shape, dtype: np.dtype) -> str:
    return f"{text}: {operand}, {dtype} {shape}"


def _singular_or_original(
    operand: str, x: np.ndarray, error: np.linalg.LinAlgError
) -> np.linalg.LinAlgError:
    """Return the error with the operand named, where it is that of a singular matrix."""
    singular = np.asarray(np.linalg.slogdet(x).sign == 0)
    return refuse_singular(operand, x.shape, x.dtype, singular) if singular.any() else error


def _inv_reference(x: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.inv(x)
    except np.linalg.LinAlgError as error:
        raise _singular_or_original("x", x, error) from None


def _solve_reference(x1: np.ndarray, x2: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.solve(x1, x2)
    except np.linalg.LinAlgError as error:
        raise _singular_or_original("x1", x1, error) from None


def adjoint(x: Array) -> Array:
    """Return the conjugate transposes of matrices."""
    transposed: Array = matrix_transpose(x)
    return conj(transposed) if kind_of(x.dtype) == "c" else transposed


def solve_back(
    solve: Callable[[Array, Array], Array], g: Array, y: Array, x1: Array, x2: Array
) -> tuple[Array, Array]:
    """Return the cotangents of matrices and right sides: those of the right sides by `solve` with
    the adjoint matrices. Giles 2008, "Collected matrix derivative results", 2.2.4.
    """
    vector = x2.ndim == 1
    columns, solution = (expand_dims(z, -1) if vector else z for z in (g, y))
    rhs = solve(adjoint(x1), columns)
    return -(rhs @ adjoint(solution)), squeeze(rhs, -1) if vector else rhs


def _solved_back(g: Array, y: Array, x1: Array, x2: Array) -> tuple[Array, Array]:
    return solve_back(solve, g, y, x1, x2)


def _hermitian_part(x: Array) -> Array:
    """Return the mean of matrices and their adjoints: what the cotangent of a Hermitian one is."""
    return (x + adjoint(x)) / 2


def _skew(x: Array) -> Array:
    return x - adjoint(x)


def _diagonal_matrix(x: Array) -> Array:
    return diagonal_tril_triu.diag_embed(x)


def _gaps(values: Array, sums: Any = 1) -> Array:
    """Return `values[j] - values[i]` times sums for all pairs, with 1 on the diagonal."""
    gaps = (values[..., None, :] - values[..., :, None]) * sums
    return gaps + eye(values.shape[-1], dtype=values.dtype, device=values.device)


def _cholesky_back(g: Array, y: Array, x: Array, upper: bool) -> tuple[Array]:
    """Murray 2016, "Differentiation of the Cholesky decomposition", equation 10."""
    factor, cotangent = (adjoint(y), adjoint(g)) if upper else (y, g)
    inner = diagonal_tril_triu.tril(adjoint(factor) @ cotangent)
    inner = inner - _diagonal_matrix(diagonal(inner)) / 2
    left = solve(adjoint(factor), inner)
    return (_hermitian_part(solve(adjoint(factor), adjoint(left))),)


def _eigh_back(g: tuple[Any, Any], y: tuple[Array, Array], x: Array) -> tuple[Array]:
    """Giles 2008, 3.1; vectors of equal values have no derivative: not finite."""
    (g_values, g_vectors), (values, vectors) = g, y
    inner: Any = 0
    if g_values is not None:
        inner = _diagonal_matrix(g_values)
    if g_vectors is not None:
        turned = _skew(adjoint(vectors) @ g_vectors) / 2
        inner = inner + turned / _gaps(values)
    return (_hermitian_part(vectors @ inner @ adjoint(vectors)),)


def _qr_back(g: tuple[Any, Any], y: tuple[Array, Array], x: Array, mode: str) -> tuple[Array]:
    """Roberts, Roberts 2020, "QR and LQ decomposition matrix backpropagation algorithms for square,
    wide, and deep matrices", section 3; the diagonal of R stays real.
    """
    (g_q, g_r), (q, r) = g, y
    rows, columns = matrices(x.shape)[1:]
    inner = rows if rows < columns else columns
    if q.shape[-1] > inner:
        if g_q is not None:
            raise _no_derivative(
                "qr", "Q of mode='complete' has columns that are free", "mode='reduced'"
            )
        q, r, g_r = q[..., :inner], r[..., :inner, :], g_r[..., :inner, :]
    g_q = zeros_like(q) if g_q is None else g_q
    g_r = zeros_like(r) if g_r is None else diagonal_tril_triu.triu(g_r)
    head, g_head, tail = r[..., :inner], g_r[..., :inner], g_r[..., inner:]
    if columns > inner:
        g_q = g_q + convert(x, q.dtype)[..., inner:] @ adjoint(tail)
    along, turns = adjoint(q) @ g_q, g_head @ adjoint(head)
    lower = diagonal_tril_triu.tril(_skew(along - turns))
    turns = turns + lower - _diagonal_matrix(diagonal(lower)) / 2 - along
    g_x = adjoint(solve(head, adjoint(g_q + q @ turns)))
    return (concat([g_x, q @ tail], axis=-1) if columns > inner else g_x,)


def _no_derivative(name: str, rule: str, mode: str) -> UnsupportedError:
    remedy = f"take {mode}, or tn.stop_gradient of what is free"
    return UnsupportedError(f"linalg.{name}", f"it has no derivative: {rule}", remedy=remedy)


def _svd_back(
    g: tuple[Any, Any, Any], y: tuple[Array, Array, Array], x: Array, full_matrices: bool
) -> tuple[Array]:
    """Wan, Zhang 2019, "Automatic differentiation for complex valued SVD"; a phase that both
    vectors may have is shared in halves. Vectors of equal values, and of 0, have no derivative.
    """
    (g_u, g_s, g_vh), (u, s, vh) = g, y
    count = s.shape[-1]
    if u.shape[-1] > count or vh.shape[-2] > count:
        if (u.shape[-1] > count and g_u is not None) or (vh.shape[-2] > count and g_vh is not None):
            rule = "vectors that belong to no singular value are free"
            raise _no_derivative("svd", rule, "full_matrices=False")
        u, vh = u[..., :count], vh[..., :count, :]
    inner = 0 if g_s is None else _diagonal_matrix(convert(g_s, u.dtype))
    if g_u is None and g_vh is None:
        return (u @ inner @ vh,) if g_s is not None else (zeros_like(u @ vh),)
    g_u = zeros_like(u) if g_u is None else g_u
    g_v = zeros_like(adjoint(vh)) if g_vh is None else adjoint(g_vh)
    v, row, column = adjoint(vh), s[..., None, :], s[..., :, None]
    left, right = adjoint(u) @ g_u, vh @ g_v
    squares = _gaps(s, row + column)
    turned = _skew(left) / squares * row + column * (_skew(right) / squares)
    off = 1 - eye(count, dtype=s.dtype, device=s.device)
    inner = inner + turned * off
    if kind_of(u.dtype) == "c":
        inner = inner + _diagonal_matrix(imag(diagonal(left) - diagonal(right)) / (2 * s) * 1j)
    g_x = u @ inner @ vh
    if u.shape[-2] > count:
        g_x = g_x + (g_u - u @ left) / row @ vh
    if v.shape[-2] > count:
        g_x = g_x + u @ adjoint((g_v - v @ right) / row)
    return (g_x,)


SQUARE_SAMPLES = (
    SampleCall(((3, 3),)),
    SampleCall(((2, 4, 4),)),
    SampleCall(((0, 0),)),
    SampleCall(((0, 2, 2),)),
)
NOT_FINITE = "look for NaN or infinity in the matrix"
"""The remedy for an iteration that does not converge."""


def matrix_operation(
    *, samples: Sequence[SampleCall] = SQUARE_SAMPLES, **facts: Any
) -> Callable[[Callable[P, BoundCall]], Op[P]]:
    """Declare an operation on stacks of matrices whose params are those of one matrix."""
    return operation(namespace="linalg", batch_params=as_stack, samples=samples, **facts)


@matrix_operation(
    bind_depends_on="types",
    rule=_same_shape,
    structure=inverse_structure,
    reference=_inv_reference,
    can_fail=True,
    remedy=SINGULAR,
    multiply_adds=_per_matrix(lambda n: n**3),
    shares_factors=True,
    numpy=(np.linalg.inv,),
    vjp=lambda g, y, x: (-(adjoint(y) @ g @ adjoint(y)),),
)
def inv(x: Array, /) -> BoundCall:
    """Inverse of square matrices: (..., n, n) to (..., n, n), floating dtypes.

    Raises ShapeError for matrices that are not square, and LinAlgError at the wait for a singular
    one. To solve equations `linalg.solve` is faster and more accurate.

    >>> import tenfold as tn
    >>> tn.linalg.inv(tn.asarray([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return BoundCall((array(x),))


def _det_back(g: Array, y: Array, x: Array) -> tuple[Array]:
    return (g[..., None, None] * conj(cofactors(x)),)


def _determinant_rule(types: tuple[Type, ...]) -> Inferred:
    stack, _ = square(types[0].shape)
    dtype = computation_dtype(types)
    return Inferred(((stack, dtype),), (dtype,))


@matrix_operation(
    bind_depends_on="types",
    rule=_determinant_rule,
    multiply_adds=_per_matrix(lambda n: n**3 // 3),
    shares_factors=True,
    numpy=(np.linalg.det,),
    vjp=_det_back,
)
def det(x: Array, /) -> BoundCall:
    """Determinant of square matrices: (..., n, n) to (...), floating dtypes; 1 for n = 0.

    Raises ShapeError for matrices that are not square.

    >>> import tenfold as tn
    >>> tn.linalg.det(tn.asarray([[0.0, 1.0], [1.0, 0.0]])).item()
    -1.0
    """
    return BoundCall((array(x),))


def check_rhs(order: int, rhs: Shape) -> None:
    """Raise ShapeError where a right side does not fit so many equations."""
    if not rhs:
        raise ShapeError("", "the right side has no axes", remedy="give a vector or matrices")
    rows = rhs[-1 if len(rhs) == 1 else -2]
    if rows != order:
        raise ShapeError(
            "",
            f"{order} equations have a right side of {rows} rows, shape {rhs}",
            remedy="a right side is a vector (n,) or matrices (..., n, k); x2[..., None] makes "
            "columns of stacked vectors",
        )


def solve_shapes(types: tuple[Type, ...]) -> tuple[Shape, int, Shape]:
    """Return (the stack's shape, the order, the right side's last axes)."""
    stack, order = square(types[0].shape)
    rhs = types[1].shape
    check_rhs(order, rhs)
    if len(rhs) == 1:
        return stack, order, rhs
    return broadcast(stack, rhs[:-2]), order, rhs[-2:]


def solve_rule(types: tuple[Type, ...], *_: object) -> Inferred:
    """The result of a solve with the first operand for the second."""
    stack, _order, rhs = solve_shapes(types)
    dtype = computation_dtype(types)
    return Inferred(((stack + rhs, dtype),), (dtype, dtype))


def _solve_multiply_adds(types: tuple[Type, ...]) -> int:
    """One factorisation for each matrix, two triangular solves for each column."""
    stack, order, rhs = solve_shapes(types)
    factorisations = product(types[0].shape[:-2]) * (order**3 // 3)
    return factorisations + product(stack) * order * product(rhs)


def solve_members(members: Members, *params: Any) -> Array:
    """Batch rule: solve for a stack; a matrix that all members share is factored once.

    >>> sides = np.asarray([[2.0, 8.0], [4.0, 4.0]])
    >>> members = Members(solve, 2, tuple(map(array, (np.eye(2) * 2, sides))), (False, True))
    >>> solve_members(members).tolist()
    [[1.0, 4.0], [2.0, 2.0]]
    """
    matrix_ndim, rhs_ndim = members.ndim(0), members.ndim(1)
    if not members.batched[1]:
        result: Array = members.call((members.aligned(0, rhs_ndim), members.operands[1]), params)
        return result
    rhs = members.operands[1] if rhs_ndim > 1 else members.spread(1, 1, 1)
    ndim = max(matrix_ndim, rhs_ndim, 2)
    columns = replace(members, operands=(members.operands[0], rhs))
    solutions = members.call((columns.aligned(0, ndim), columns.aligned(1, ndim)), params)
    return solutions if rhs_ndim > 1 else squeeze(solutions, -1)


def shared_matrix_solve_members(members: Members, *params: Any) -> Array:
    """Batch rule: a matrix that all members share solves for all right sides in one call."""
    rhs_ndim = members.ndim(1)
    if members.batched[0] or members.ndim(0) > 2 or rhs_ndim > 2:
        return solve_members(members, *params)
    rhs = members.operands[1] if rhs_ndim > 1 else members.spread(1, 1, 1)
    length, order, columns = rhs.shape
    rhs_matrix = reshape(permute_dims(rhs, (1, 0, 2)), (order, length * columns))
    solutions = reshape(
        members.call((members.operands[0], rhs_matrix), params), (order, length, columns)
    )
    solutions = permute_dims(solutions, (1, 0, 2))
    return solutions if rhs_ndim > 1 else squeeze(solutions, -1)


@operation(
    bind_depends_on="types",
    rule=solve_rule,
    reference=_solve_reference,
    promotes=True,
    can_fail=True,
    remedy=SINGULAR,
    multiply_adds=_solve_multiply_adds,
    shares_factors=True,
    namespace="linalg",
    numpy=(np.linalg.solve,),
    batch=solve_members,
    samples=[
        SampleCall(((3, 3), (3,))),
        SampleCall(((3, 3), (3, 2))),
        SampleCall(((4, 3, 3), (3,))),
        SampleCall(((4, 1, 3, 3), (5, 3, 2))),
        SampleCall(((0, 0), (0, 2))),
    ],
    vjp=_solved_back,
)
def solve(x1: Array, x2: Array, /) -> BoundCall:
    """Solve `x1 @ x = x2` for x: (..., n, n) and (n,) or (..., n, k), floating dtypes.

    `x2` is a vector when it has exactly one axis, else a stack of matrices; stacks broadcast.
    Raises ShapeError for matrices that are not square or a right side that does not fit, and
    LinAlgError at the wait for a singular matrix.

    >>> import tenfold as tn
    >>> tn.linalg.solve(tn.asarray([[2.0, 0.0], [0.0, 4.0]]), tn.asarray([2.0, 2.0])).tolist()
    [1.0, 0.5]
    """
    return BoundCall((array(x1), array(x2)))


def _cholesky_reference(x: np.ndarray, upper: bool) -> np.ndarray:
    try:
        return np.linalg.cholesky(x, upper=upper)
    except np.linalg.LinAlgError as error:
        failing = np.array([not _has_cholesky(x[at], upper) for at in np.ndindex(x.shape[:-2])])
        stack_position = _stack_position(failing.reshape(x.shape[:-2]))
        raise np.linalg.LinAlgError(
            _describe_failure(f"{error}{stack_position}", "x", x.shape, x.dtype)
        ) from None


def _has_cholesky(x: np.ndarray, upper: bool) -> bool:
    try:
        np.linalg.cholesky(x, upper=upper)
    except np.linalg.LinAlgError:
        return False
    return True


@matrix_operation(
    bind_depends_on="types",
    rule=_same_shape,
    makes=lambda upper: (Structure.UPPER if upper else Structure.LOWER,),
    reference=_cholesky_reference,
    can_fail=True,
    remedy="give a positive definite matrix, or solve with tn.linalg.solve",
    multiply_adds=_per_matrix(lambda n: n**3 // 6),
    numpy=(np.linalg.cholesky,),
    samples=(),
    vjp=_cholesky_back,
)
def cholesky(x: Array, /, *, upper: bool = False) -> BoundCall:
    """Cholesky factor L of Hermitian positive-definite matrices, x = L @ conj(L).T: (..., n, n).

    `upper` gives U with x = conj(U).T @ U. Only the lower triangle of `x` is read (the upper one
    with `upper`). Raises ShapeError for matrices that are not square, and LinAlgError at the wait
    for one that is not positive definite.

    >>> import tenfold as tn
    >>> tn.linalg.cholesky(tn.asarray([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    return BoundCall((array(x),), (bool(upper),))


def _qr_rule(types: tuple[Type, ...], mode: str) -> Inferred:
    stack, rows, columns = matrices(types[0].shape)
    dtype = computation_dtype(types)
    inner = min(rows, columns) if mode == "reduced" else rows
    q, r = (*stack, rows, inner), (*stack, inner, columns)
    return Inferred(((q, dtype), (r, dtype)), (dtype,))


def _qr_reference(x: np.ndarray, mode: str) -> tuple[np.ndarray, ...]:
    return tuple(np.linalg.qr(x, mode))  # type: ignore[call-overload]  # mode is one of two


def _qr_multiply_adds(types: tuple[Type, ...], mode: str) -> int:
    """Householder: n^2 (m - n/3) for R, as much again for a reduced Q of the longer side's."""
    stack, rows, columns = matrices(types[0].shape)
    m, n = max(rows, columns), min(rows, columns)
    factor = n * n * (3 * m - n) // 3
    reduced = mode == "reduced" or rows <= columns
    basis = n * n * (3 * rows - n) // 3 if reduced else 2 * (m * m * n - m * n * n + n**3 // 3)
    return product(stack) * (factor + basis)


_RECTANGULAR_SAMPLES = (
    SampleCall(((3, 2),)),
    SampleCall(((2, 3),)),
    SampleCall(((2, 3, 3),)),
    SampleCall(((0, 3),)),
)


@matrix_operation(
    rule=_qr_rule,
    makes=lambda _: (Structure.ORTHOGONAL, Structure.UPPER),
    reference=_qr_reference,
    can_fail=True,
    multiply_adds=_qr_multiply_adds,
    result_type=QRResult,
    numpy=(np.linalg.qr,),
    samples=[
        *_RECTANGULAR_SAMPLES,
        *(s._replace(arguments={"mode": "complete"}) for s in _RECTANGULAR_SAMPLES),
    ],
    vjp=_qr_back,
)
def qr(x: Array, /, *, mode: str = "reduced") -> BoundCall:
    """QR decomposition of (..., m, n): Q with orthonormal columns and R upper triangular, x = Q @
    R.

    Q is (..., m, k) and R is (..., k, n), where k is min(m, n), or m when `mode` is "complete".
    Returns a named tuple. Raises ShapeError for fewer than two axes and another mode.

    >>> import tenfold as tn
    >>> q, r = tn.linalg.qr(tn.zeros((3, 2)))
    >>> q.shape, r.shape
    ((3, 2), (2, 2))
    """
    if mode in ("r", "raw"):
        raise UnsupportedError("", f"unknown mode {mode!r}", remedy="take R of mode='reduced'")
    if mode not in ("reduced", "complete"):
        raise ShapeError(
            "", f"mode {mode!r} is neither 'reduced' nor 'complete'", remedy="use one of them"
        )
    return BoundCall((array(x),), (mode,))


def _svd_rule(types: tuple[Type, ...], full_matrices: bool) -> Inferred:
    stack, rows, columns = matrices(types[0].shape)
    dtype = computation_dtype(types)
    inner = min(rows, columns)
    u_columns, vh_rows = (rows, columns) if full_matrices else (inner, inner)
    shapes = ((*stack, rows, u_columns), (*stack, inner), (*stack, vh_rows, columns))
    return Inferred(tuple(zip(shapes, (dtype, real_part(dtype), dtype), strict=True)), (dtype,))


def _svd_reference(x: np.ndarray, full_matrices: bool) -> tuple[np.ndarray, ...]:
    return tuple(np.linalg.svd(x, full_matrices=full_matrices))


def _svd_multiply_adds(types: tuple[Type, ...], full_matrices: bool) -> int:
    stack, rows, columns = matrices(types[0].shape)
    m, n = max(rows, columns), min(rows, columns)
    per_matrix = (
        2 * m * m * n + 4 * m * n * n + 9 * n**3 // 2 if full_matrices else 7 * m * n * n + 4 * n**3
    )
    return product(stack) * per_matrix


@matrix_operation(
    rule=_svd_rule,
    makes=lambda _: (Structure.ORTHOGONAL, Structure.GENERAL, Structure.ORTHOGONAL),
    reference=_svd_reference,
    can_fail=True,
    remedy=NOT_FINITE,
    multiply_adds=_svd_multiply_adds,
    result_type=SVDResult,
    numpy=(np.linalg.svd,),
    samples=[
        *_RECTANGULAR_SAMPLES,
        *(s._replace(arguments={"full_matrices": False}) for s in _RECTANGULAR_SAMPLES),
    ],
    vjp=_svd_back,
)
def svd(x: Array, /, *, full_matrices: bool = True) -> BoundCall:
    """Singular value decomposition of (..., m, n): x = U @ diag(S) @ Vh, S falling and real.

    U is (..., m, m) and Vh (..., n, n), or (..., m, k) and (..., k, n) without `full_matrices`,
    where k is min(m, n); S is (..., k). Returns a named tuple. Raises ShapeError for fewer than two
    axes, and LinAlgError at the wait where the iteration does not converge.

    >>> import tenfold as tn
    >>> tn.linalg.svd(tn.asarray([[0.0, 2.0], [1.0, 0.0]])).S.tolist()
    [2.0, 1.0]
    """
    return BoundCall((array(x),), (bool(full_matrices),))


def _eigh_rule(types: tuple[Type, ...]) -> Inferred:
    stack, order = square(types[0].shape)
    dtype = computation_dtype(types)
    values, vectors = (*stack, order), (*stack, order, order)
    return Inferred(((values, real_part(dtype)), (vectors, dtype)), (dtype,))


def _eigh_reference(x: np.ndarray) -> tuple[np.ndarray, ...]:
    return tuple(np.linalg.eigh(x))


@matrix_operation(
    rule=_eigh_rule,
    makes=lambda: (Structure.GENERAL, Structure.ORTHOGONAL),
    reference=_eigh_reference,
    can_fail=True,
    remedy=NOT_FINITE,
    multiply_adds=_per_matrix(lambda n: 9 * n**3 // 2),
    result_type=EighResult,
    numpy=(np.linalg.eigh,),
    vjp=_eigh_back,
)
def eigh(x: Array, /) -> BoundCall:
    """Eigenvalues, rising and real, and eigenvectors of Hermitian matrices: (..., n), (..., n, n).

    Column i of the eigenvectors belongs to eigenvalue i. Only the lower triangle of `x` is read.
    Returns a named tuple. Raises ShapeError for matrices that are not square, and LinAlgError at
    the wait where the iteration does not converge.

    >>> import tenfold as tn
    >>> tn.linalg.eigh(tn.asarray([[2.0, 0.0], [0.0, 1.0]])).eigenvalues.tolist()
    [1.0, 2.0]
    """
    return BoundCall((array(x),))


def _cofactors(x: np.ndarray) -> np.ndarray:
    """By singular values, after rows and columns are scaled by powers of two; where two of the
    values or more are rounding, all cofactors are 0. Stewart 1998, "On the adjugate matrix".
    """
    n = x.shape[-1]
    if n < 2:
        return np.ones_like(x)
    scaled, exponents = x, 0
    for axis in (-1, -2):
        largest = np.abs(scaled).max(axis, keepdims=True)
        powers = np.frexp(np.where(np.isfinite(largest) & (largest > 0), largest, 1))[1]
        scaled = scaled * np.exp2(-powers)
        exponents = exponents + powers.sum((-1, -2), keepdims=True) - powers
    u, s, vh = np.linalg.svd(scaled)
    s = np.where(s[..., -2:-1] > n * np.finfo(x.dtype).eps * s[..., :1], s, s[..., :1] * 0)
    others = np.where(np.eye(n, dtype=bool), 1, s[..., None, :]).prod(-1)
    signs = (np.linalg.det(u) * np.linalg.det(vh))[..., None, None]
    result = signs * np.conj((u * others[..., None, :]) @ vh) * np.exp2(exponents)
    return np.asarray(result + 0, x.dtype)  # 0.0 for -0.0


def _cofactors_back(g: Array, y: Array, x: Array) -> tuple[Array]:
    """In the bases of singular vectors, where second derivatives are products of all other values.
    Those are quotients: a 0 counts as the smallest number.
    """
    u, s, vh = svd(x)
    s = where(s == 0, float(np.finfo(s.dtype).tiny), s)
    is_same = eye(s.shape[-1], dtype=np.bool_, device=s.device)
    others = reduce.prod(where(is_same, 1, s[..., None, :]), axis=-1)
    pairs = where(is_same, 0, others[..., :, None] / s[..., None, :])
    signs = conj(det(u) * det(vh))[..., None, None]
    inner = signs * (matrix_transpose(u) @ g @ matrix_transpose(vh))
    sums = reduce.sum(pairs * diagonal(inner)[..., None, :], axis=-1)
    return (u @ (_diagonal_matrix(sums) - pairs * matrix_transpose(inner)) @ vh,)


@operation(
    bind_depends_on="types",
    rule=_same_shape,
    reference=_cofactors,
    can_fail=True,
    remedy=NOT_FINITE,
    multiply_adds=_per_matrix(lambda n: 12 * n**3),
    public=False,
    portable=True,
    batch_params=as_stack,
    vjp=_cofactors_back,
)
def cofactors(x: Array, /) -> BoundCall:
    """Return the derivatives of determinants by the elements, for singular matrices, too."""
    return BoundCall((array(x),))


@derived(
    namespace="linalg",
    numpy=(np.linalg.diagonal,),
    samples=[SampleCall(((2, 3, 4),)), SampleCall(((3, 4),), {"offset": -1})],
)
def diagonal(x: Array, /, *, offset: int = 0) -> Array:
    """Return the view of the diagonals of matrices, the last two axes: (..., m, n) to (..., k).

    `offset` names the diagonal: above the main one for positive, below it for negative.

    >>> import tenfold as tn
    >>> tn.linalg.diagonal(tn.asarray([[[1, 2], [3, 4]]])).tolist()
    [[1, 4]]
    """
    return diagonal_tril_triu.diagonal(x, offset, -2, -1)
