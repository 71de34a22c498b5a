"""Matrix factors: a matrix factored once, in one array, and cheap operations on the factors.

`factors` takes matrices (..., n, n), hands on (..., n + 1, n) in double precision. n rows hold the
factors by columns, as LAPACK leaves them; one more row holds the pivots, counted from 1. Where the
matrix is assumed or inferred to be positive definite, and Cholesky succeeded, the lower triangle
holds its factor and the pivots are 0; the upper triangle is not read. Nothing is refused: a zero on
the diagonal says singular.

A matrix that is assumed to be symmetric is factored by Cholesky, too, if it is real and that
succeeds. Else it is factored by Bunch and Kaufman, with as many multiply-adds ("Some stable methods
for calculating inertia and solving symmetric linear systems", Mathematics of Computation 31, 1977).
It is P L D L^T P^T. L stands below the diagonal, which is that of D; the exchanges of rows are
negative pivots. One row more has the off-diagonal elements of D; its last number is not 0 where
another method had failed before. Gaussian elimination handles singular and non-finite matrices.

>>> import tenfold as tn
>>> packed = factors(tn.asarray([[0.0, 2.0], [4.0, 0.0]]), method="gauss")
>>> packed.tolist()  # rows exchanged: the matrix is diag(4, 2) now
[[4.0, 0.0], [0.0, 2.0], [2.0, 2.0]]
>>> solve_factored(packed, tn.asarray([2.0, 4.0]), dtype=tn.float64).tolist()
[1.0, 1.0]
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tenfold import _native
from tenfold._native import Array, Type
from tenfold.core.op import BoundCall, Inferred, Op, P
from tenfold.core.op_decorators import array, as_stack, derived, operation
from tenfold.core.shape_rules import Shape, broadcast, product
from tenfold.dtypes import COMPLEX128, FLOAT64, canonical, kind_of, real_part
from tenfold.errors import ShapeError
from tenfold.ops.complex import conj, imag
from tenfold.ops.linalg import (
    SINGULAR,
    SQUARE_SAMPLES,
    check_rhs,
    computation_dtype,
    computation_dtype_of,
    refuse_singular,
    square,
)
from tenfold.ops.movement import matrix_transpose


class SlogdetResult(NamedTuple):
    """What `linalg.slogdet` returns."""

    sign: Array
    logabsdet: Array


FACTOR_METHODS = ("gauss", "cholesky", "symmetric")
"""Gaussian elimination; Cholesky, with elimination as the fallback; Bunch and Kaufman's for
symmetric matrices, for real ones as the fallback of Cholesky.
"""


def _factors_rule(types: tuple[Type, ...], method: str) -> Inferred:
    stack, order = square(types[0].shape)
    dtype = COMPLEX128 if kind_of(computation_dtype(types)) == "c" else FLOAT64
    rows = order + (2 if method == "symmetric" else 1)
    return Inferred((((*stack, rows, order), dtype),), (dtype,))


def _factors(x: np.ndarray, method: str) -> np.ndarray:
    """SciPy's factorisations, matrix by matrix."""
    n = x.shape[-1]
    packed = np.zeros((*x.shape[:-2], n + (2 if method == "symmetric" else 1), n), x.dtype)
    for at in np.ndindex(x.shape[:-2]) if n else ():
        hermitian = method == "cholesky" or kind_of(x.dtype) != "c"
        if method == "gauss" or not (hermitian and _by_cholesky(x[at], packed[at])):
            if method != "symmetric":
                _by_gauss(x[at], packed[at])
            elif not _by_bunch_and_kaufman(x[at], packed[at]):
                _by_gauss(x[at], packed[at])
                packed[at][-1, -1] = 1
    return packed


def _by_cholesky(x: np.ndarray, packed: np.ndarray) -> bool:
    """Factor by Cholesky and return whether it succeeded; a failure sets the last number."""
    from scipy import linalg  # imported only where it is used

    n = len(x)
    if not (np.diagonal(x).real > 0).all():
        return False
    try:
        factor = linalg.cholesky(x, lower=True, check_finite=False)
    except np.linalg.LinAlgError:
        factor = np.full_like(x, np.nan)
    succeeded = bool(np.isfinite(np.diagonal(factor)).all())
    if succeeded:
        packed[:n] = factor.T
    else:
        packed[n + 1 :, -1:] = 1
    return succeeded


def _by_gauss(x: np.ndarray, packed: np.ndarray) -> None:
    from scipy import linalg  # imported only where it is used

    n = len(x)
    with warnings.catch_warnings(action="ignore"):
        lu, pivots = linalg.lu_factor(x, check_finite=False)
    packed[:n], packed[n] = lu.T, pivots + 1


def _by_bunch_and_kaufman(x: np.ndarray, packed: np.ndarray) -> bool:
    """Factor by Bunch and Kaufman; return whether the matrix is finite and not singular. LAPACK's
    pivots are negative in both rows of a block of two, of which only the second was exchanged.
    """
    from scipy.linalg import lapack  # imported only where it is used

    n = len(x)
    factor, convert = lapack.get_lapack_funcs(("sytrf", "syconv"), (x,))
    ldl, pivots, singular = factor(x, lower=1)
    triangle, off_diagonal, _ = convert(ldl, pivots, lower=1)
    if singular or not (np.isfinite(np.diagonal(triangle)) & np.isfinite(off_diagonal)).all():
        return False
    own_rows = np.arange(1, n + 1)
    packed[:n], packed[n + 1, :-1] = triangle.T, off_diagonal[:-1]
    packed[n] = np.where(pivots > 0, -pivots, np.where(off_diagonal != 0, -own_rows, pivots))
    return True


def _factors_multiply_adds(types: tuple[Type, ...], method: str) -> int:
    """The count of Cholesky wherever it is tried; Bunch and Kaufman's takes as many. The fallback's
    are added by `failed_multiply_adds`.
    """
    stack, order = square(types[0].shape)
    return product(stack) * (
        lu_multiply_adds(order) if method == "gauss" else cholesky_multiply_adds(order)
    )


def lu_multiply_adds(order: int) -> int:
    """Return the multiply-adds of Gaussian elimination."""
    return order**3 // 3


def cholesky_multiply_adds(order: int) -> int:
    """Return the multiply-adds of Cholesky's method, and of Bunch and Kaufman's."""
    return order**3 // 6


@operation(
    rule=_factors_rule,
    reference=_factors,
    multiply_adds=_factors_multiply_adds,
    bind_depends_on="types",
    rebind=lambda x, method: BoundCall((x,), (FACTOR_METHODS[FACTOR_METHODS.index(method)],)),
    public=False,
    portable=True,
    batch_params=as_stack,
    vjp=lambda g, y, x, method: (g,),  # readers give the cotangent of the matrix
)
def factors(x: Array, /, *, method: str) -> BoundCall:
    """Return the factors of square matrices in one array, by one of `FACTOR_METHODS`."""
    return BoundCall((array(x),), (method,))


def _regular_factors(x: np.ndarray, method: str) -> np.ndarray:
    packed = _factors(x, method)
    refuse_zero_pivot(packed)
    return packed


@operation(
    rule=_factors_rule,
    reference=_regular_factors,
    can_fail=True,
    remedy=SINGULAR,
    multiply_adds=_factors_multiply_adds,
    bind_depends_on="types",
    public=False,
    batch_params=as_stack,
)
def regular_factors(x: Array, /, *, method: str) -> BoundCall:
    """Return the factors of square matrices in one array, by "gauss" or "cholesky". Raises
    LinAlgError at the wait for a singular matrix.
    """
    return BoundCall((array(x),), (method,))


FACTOR_OPS = (factors, regular_factors)
"""The operations that factor matrices into one array."""


class FactorParts(NamedTuple):
    """The fields of a packed array of factors."""

    columns: np.ndarray
    """The factors by columns: (..., n, n)."""
    pivots: np.ndarray
    """The rows that were exchanged, from 1 on, int32; 0 where the factor is Cholesky's, negative
    where it is that of Bunch and Kaufman.
    """
    diagonal: np.ndarray
    off_diagonal: np.ndarray
    """The off-diagonal elements of D, 0 for other factors: (..., n)."""

    @property
    def cholesky(self) -> np.ndarray:
        """For each matrix of the stack whether the factor is Cholesky's."""
        return np.asarray((self.pivots == 0).all(-1))


def unpack_factors(packed: np.ndarray) -> FactorParts:
    """Return the fields of a packed array of factors, most of them views."""
    n = packed.shape[-1]
    columns = packed[..., :n, :]
    pivots = packed[..., n, :].real.astype(np.int32)
    off_diagonal = np.zeros_like(packed[..., n, :])
    if packed.shape[-2] > n + 1:
        off_diagonal[..., :-1] = np.where(pivots < 0, packed[..., n + 1, :], 0)[..., :-1]
    return FactorParts(columns, pivots, np.diagonal(columns, 0, -2, -1), off_diagonal)


def sign_and_logarithm(packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return signs and logarithms of determinants: 0 and -inf of a singular matrix.

    An exchange of two rows turns the sign; Cholesky's factor counts twice.
    """
    _, pivots, diagonal, _ = parts = unpack_factors(packed)
    moduli = np.abs(diagonal)
    signs = np.sign(diagonal)
    exchanged = (pivots != 0) & (pivots != np.arange(1, pivots.shape[-1] + 1))
    odd = np.count_nonzero(exchanged, axis=-1) % 2 == 1
    sign = np.where(odd, -1, 1) * signs.prod(-1)
    logarithm = np.log(moduli).sum(-1) * np.where(parts.cholesky & (moduli.shape[-1] > 0), 2, 1)
    return np.asarray(sign), np.asarray(logarithm)


def _of_factors(types: tuple[Type, ...], dtype: np.dtype) -> Inferred:
    return Inferred(((types[0].shape[:-2], dtype),), (types[0].dtype,))


def _logarithm_back(g: Array, y: Array, packed: Array, dtype: np.dtype) -> tuple[Array]:
    """Return the cotangents of the matrices that the factors are of."""
    inverse = inv_factored(packed, dtype=packed.dtype)
    return (g[..., None, None] * conj(matrix_transpose(inverse)),)


def _sign_back(g: Array, y: Array, packed: Array, dtype: np.dtype) -> tuple[Array | None]:
    """The sign of a complex determinant turns with the imaginary part of its logarithm."""
    if kind_of(dtype) != "c":
        return (None,)
    return _logarithm_back(imag(conj(y) * g) * 1j, y, packed, dtype)


def _factored_again(packed: Array, dtype: np.dtype) -> BoundCall:
    """Bind what `factors` makes: the pivots of other arrays may be positions outside of them."""
    if _native.node_of(packed).op is not factors or kind_of(dtype) not in "fc":
        raise ShapeError("", "the operand is not factors", remedy="give what `factors` makes")
    return BoundCall((packed,), (canonical(dtype, "factors"),))


def _reader_of_factors(**facts: Any) -> Callable[[Callable[P, BoundCall]], Op[P]]:
    """Declare what is computed of the factors of matrices, on stacks of them too."""
    return operation(
        rebind=_factored_again,
        portable=True,
        bind_depends_on="types",
        public=False,
        batch_params=as_stack,
        **facts,
    )


@_reader_of_factors(
    rule=_of_factors,
    reference=lambda packed, _: sign_and_logarithm(packed)[0],
    name="sign_of_determinant",
    vjp=_sign_back,
)
def sign_of(packed: Array, /, *, dtype: np.dtype) -> BoundCall:
    """Return the signs of determinants, in `dtype`."""
    return BoundCall((packed,), (dtype,))


@_reader_of_factors(
    rule=_of_factors,
    reference=lambda packed, _: sign_and_logarithm(packed)[1],
    name="logarithm_of_determinant",
    vjp=_logarithm_back,
)
def logarithm_of(packed: Array, /, *, dtype: np.dtype) -> BoundCall:
    """Return the logarithms of the moduli of determinants, in `dtype`."""
    return BoundCall((packed,), (dtype,))


def _determinants(packed: np.ndarray, dtype: np.dtype) -> np.ndarray:
    sign, logarithm = sign_and_logarithm(packed)
    return np.asarray(sign * np.exp(logarithm))


@operation(
    rule=_of_factors, reference=_determinants, name="det", public=False, batch_params=as_stack
)
def det_factored(packed: Array, /, *, dtype: np.dtype) -> BoundCall:
    """Return the determinants, in `dtype`."""
    return BoundCall((packed,), (dtype,))


class FailedAttempt(NamedTuple):
    """The number in a packed matrix that is not 0 if a method failed before the one that factored
    it.
    """

    at: int
    """The position of the number in the matrix, flattened."""
    multiply_adds: int
    """The additional multiply-adds of the failed method."""


def failed_attempt(shape: Shape) -> FailedAttempt:
    """Return the FailedAttempt for packed factors of a shape."""
    rows, order = shape[-2:]
    if rows > order + 1:
        return FailedAttempt(rows * order - 1, cholesky_multiply_adds(order))
    return FailedAttempt(order * order, lu_multiply_adds(order))


def failed_multiply_adds(packed: np.ndarray) -> int:
    """Return the multiply-adds of failed methods."""
    *stack, rows, order = packed.shape
    at, multiply_adds = failed_attempt(packed.shape)
    return int(np.count_nonzero(packed.reshape(*stack, rows * order)[..., at])) * multiply_adds


def refuse_zero_pivot(packed: np.ndarray) -> None:
    """Raise LinAlgError, naming the matrix, where a factor has a zero on its diagonal. A block of
    two rows may have one: factors of Bunch and Kaufman's method are never singular.
    """
    _, pivots, diagonal, _ = unpack_factors(packed)
    zero = ((diagonal == 0) & (pivots >= 0)).any(-1)
    if zero.any():
        shape = (*packed.shape[:-2], packed.shape[-1], packed.shape[-1])
        raise refuse_singular("x1", shape, packed.dtype, zero)


def _solve_factored_rule(types: tuple[Type, ...], transposed: str, dtype: np.dtype) -> Inferred:
    packed, rhs = types[0].shape, types[1].shape
    check_rhs(packed[-1], rhs)
    computation_dtype(types)
    vector = len(rhs) == 1
    stack = packed[:-2] if vector else broadcast(packed[:-2], rhs[:-2])
    shape = (*stack, *(rhs if vector else rhs[-2:]))
    return Inferred(((shape, dtype),), (types[0].dtype, types[0].dtype))


def _solve_factored(
    packed: np.ndarray, rhs: np.ndarray, transposed: str, dtype: np.dtype
) -> np.ndarray:
    """Multiply the factors back to the matrices, and solve with these."""
    refuse_zero_pivot(packed)
    n = packed.shape[-1]
    columns, pivots, diagonal, off_diagonal = parts = unpack_factors(packed)
    matrix = columns.swapaxes(-1, -2)
    cholesky, unit_lower = np.tril(matrix), np.tril(matrix, -1) + np.eye(n)
    definite = cholesky @ np.conj(cholesky.swapaxes(-1, -2))
    general = unit_lower @ np.triu(matrix)
    for at in np.ndindex(packed.shape[:-2]):
        order = np.arange(n)
        for row, pivot_row in enumerate(abs(pivots[at]) - 1):
            if pivot_row >= 0:
                order[[row, pivot_row]] = order[[pivot_row, row]]
        if (pivots[at] < 0).any():
            blocks = np.diag(diagonal[at])
            blocks += np.diag(off_diagonal[at][:-1], 1) + np.diag(off_diagonal[at][:-1], -1)
            general[at][np.ix_(order, order)] = unit_lower[at] @ blocks @ unit_lower[at].T
        else:
            general[at][order] = general[at].copy()
    matrices = np.where(parts.cholesky[..., None, None], definite, general)
    if transposed != "N":
        matrices = matrices.swapaxes(-1, -2)
    return np.asarray(np.linalg.solve(np.conj(matrices) if transposed == "C" else matrices, rhs))


def _solve_factored_multiply_adds(types: tuple[Type, ...], transposed: str, dtype: np.dtype) -> int:
    result = _solve_factored_rule(types, transposed, dtype).results[0][0]
    return product(result) * types[0].shape[-1]


@operation(
    rule=_solve_factored_rule,
    reference=_solve_factored,
    can_fail=True,
    remedy=SINGULAR,
    multiply_adds=_solve_factored_multiply_adds,
    name="solve",
    public=False,
)
def solve_factored(
    packed: Array, rhs: Array, /, *, transposed: str = "N", dtype: np.dtype
) -> BoundCall:
    """Solve equations by the factors of their matrix; "T" by its transpose, "C" by the conjugate
    of that. Raises LinAlgError at the wait for a singular matrix.
    """
    return BoundCall((packed, rhs), (transposed, dtype))


def _inv_factored_rule(types: tuple[Type, ...], dtype: np.dtype) -> Inferred:
    *stack, _, order = types[0].shape
    return Inferred((((*stack, order, order), dtype),), (types[0].dtype,))


def _inv_factored(packed: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return _solve_factored(packed, np.eye(packed.shape[-1]), "N", dtype)


def _inverse_back(g: Array, y: Array, packed: Array, dtype: np.dtype) -> tuple[Array]:
    """Return the cotangents of the matrices that the factors are of."""
    adjoint = conj(matrix_transpose(y))
    return (-(adjoint @ g @ adjoint),)


@_reader_of_factors(
    rule=_inv_factored_rule,
    reference=_inv_factored,
    can_fail=True,
    remedy=SINGULAR,
    multiply_adds=lambda types, _: (
        product(types[0].shape[:-2]) * (types[0].shape[-1] ** 3 - types[0].shape[-1] ** 3 // 3)
    ),
    name="inv",
    vjp=_inverse_back,
)
def inv_factored(packed: Array, /, *, dtype: np.dtype) -> BoundCall:
    """Return the inverse by the factors. Raises LinAlgError at the wait for a singular matrix."""
    return BoundCall((packed,), (dtype,))


@derived(
    namespace="linalg",
    numpy=(np.linalg.slogdet,),
    samples=SQUARE_SAMPLES,
)
def slogdet(x: Array, /) -> Any:
    """Sign and logarithm of the modulus of the determinant: (..., n, n) to (...) and (...).

    The determinant is sign * exp(logabsdet); for a singular matrix the sign is 0 and the logarithm
    -inf, for n = 0 they are 1 and 0. The sign of complex matrices is complex, of modulus 1; the
    logarithm is real. Returns a named tuple. Raises ShapeError for matrices that are not square,
    DTypeError for halves. By the factors of Gauss's elimination (Golub and Van Loan 2013, 3.2).

    >>> import tenfold as tn
    >>> sign, logabsdet = tn.linalg.slogdet(tn.asarray([[0.0, 1.0], [1.0, 0.0]]))
    >>> sign.item(), logabsdet.item()
    (-1.0, 0.0)
    """
    x = array(x)
    square(x.shape)
    return slogdet_factored(factors(x, method="gauss"), computation_dtype_of(x))


def slogdet_factored(packed: Array, dtype: np.dtype) -> SlogdetResult:
    """Return signs and logarithms of determinants by the factors; the signs are in `dtype`."""
    return SlogdetResult(sign_of(packed, dtype=dtype), logarithm_of(packed, dtype=real_part(dtype)))
