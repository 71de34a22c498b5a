"""Factors: a matrix factored once, in one array, and what is cheap to compute of it.

`factors` takes matrices (..., n, n), hands on (..., n + 1, n) in double precision: n rows that hold
the factors by columns, as LAPACK leaves them, and the pivots in one more row, counted from 1. Where
the matrix was promised or seen to be positive definite, or promised to be symmetric, and Cholesky's
factorisation went, the lower factor stands there, above it what nobody reads, and the pivots are 0.
Nothing is refused: a zero on the diagonal says singular.

>>> import tenfold as tn
>>> packed = factors(tn.asarray([[0.0, 2.0], [4.0, 0.0]]), definite=False)
>>> packed.tolist()  # rows exchanged: the matrix is diag(4, 2) now
[[4.0, 0.0], [0.0, 2.0], [2.0, 2.0]]
>>> solve_factored(packed, tn.asarray([2.0, 4.0]), dtype=tn.float64).tolist()
[1.0, 1.0]
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from tenfold._native import Array, Type
from tenfold.dtypes import COMPLEX128, FLOAT64, kind_of, real_part
from tenfold.ir.declare import array, derived, operation
from tenfold.ir.op import Call, Inferred, Sample
from tenfold.ir.shape import broadcast, product
from tenfold.ops.linalg import (
    SINGULAR,
    computed_in,
    computed_of,
    refuse_singular,
    square,
)


class SlogdetResult(NamedTuple):
    """What `linalg.slogdet` returns."""

    sign: Array
    logabsdet: Array


def _factors_rule(types: tuple[Type, ...], definite: bool) -> Inferred:
    stack, order = square(types[0].shape)
    dtype = COMPLEX128 if kind_of(computed_in(types)) == "c" else FLOAT64
    return Inferred((((*stack, order + 1, order), dtype),), (dtype,))


def _factors(x: np.ndarray, definite: bool) -> np.ndarray:
    """SciPy's factorisations, matrix by matrix."""
    from scipy import linalg  # imported only where it is used

    n = x.shape[-1]
    packed = np.zeros((*x.shape[:-2], n + 1, n), x.dtype)
    for at in np.ndindex(x.shape[:-2]) if n else ():
        try:
            if not definite:
                raise np.linalg.LinAlgError
            packed[at][:n] = linalg.cholesky(x[at], lower=True, check_finite=False).T
        except np.linalg.LinAlgError:
            with warnings.catch_warnings(action="ignore"):
                made, pivots = linalg.lu_factor(x[at], check_finite=False)
            packed[at][:n], packed[at][n] = made.T, pivots + 1
    return packed


def _factors_multiply_adds(types: tuple[Type, ...], definite: bool) -> int:
    """Of Cholesky's way where that may go, even if the diagonal rules it out; `gone_back` has what
    comes to it.
    """
    stack, order = square(types[0].shape)
    return product(stack) * (order**3 // 6 if definite else by_gauss(order))


def by_gauss(order: int) -> int:
    """Return the multiply-adds of Gauss's elimination."""
    return order**3 // 3


@operation(
    rule=_factors_rule,
    reference=_factors,
    multiply_adds=_factors_multiply_adds,
    public=False,
)
def factors(x: Array, /, *, definite: bool) -> Call:
    """Return the factors of square matrices in one array: by Cholesky's way if `definite` and that
    goes, else by Gauss's with row exchanges.
    """
    return Call((array(x),), (definite,))


class Parts(NamedTuple):
    """What an array of factors holds."""

    columns: np.ndarray
    """The factors by columns: (..., n, n)."""
    pivots: np.ndarray
    """The rows that were exchanged, from 1 on, int32; 0 where the factor is Cholesky's."""
    diagonal: np.ndarray

    @property
    def cholesky(self) -> np.ndarray:
        """For each matrix of the stack whether the factor is Cholesky's."""
        return np.asarray((self.pivots == 0).all(-1))


def parts_of(packed: np.ndarray) -> Parts:
    """Return what an array of factors holds, as views of it."""
    columns = packed[..., :-1, :]
    pivots = packed[..., -1, :].real.astype(np.int32)
    return Parts(columns, pivots, np.diagonal(columns, 0, -2, -1))


def sign_and_logarithm(packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return signs and logarithms of determinants: 0 and -inf of a singular matrix.

    An exchange of two rows turns the sign; Cholesky's factor counts twice.
    """
    _, pivots, diagonal = found = parts_of(packed)
    moduli = np.abs(diagonal)
    signs = np.sign(diagonal)
    exchanged = (pivots != 0) & (pivots != np.arange(1, pivots.shape[-1] + 1))
    odd = np.count_nonzero(exchanged, axis=-1) % 2 == 1
    sign = np.where(odd, -1, 1) * signs.prod(-1)
    logarithm = np.log(moduli).sum(-1) * np.where(found.cholesky & (moduli.shape[-1] > 0), 2, 1)
    return np.asarray(sign), np.asarray(logarithm)


def _of_factors(types: tuple[Type, ...], dtype: np.dtype) -> Inferred:
    return Inferred(((types[0].shape[:-2], dtype),), (types[0].dtype,))


@operation(
    rule=_of_factors,
    reference=lambda packed, _: sign_and_logarithm(packed)[0],
    name="sign_of_determinant",
    public=False,
)
def sign_of(packed: Array, /, *, dtype: np.dtype) -> Call:
    """Return the signs of determinants, in `dtype`."""
    return Call((packed,), (dtype,))


@operation(
    rule=_of_factors,
    reference=lambda packed, _: sign_and_logarithm(packed)[1],
    name="logarithm_of_determinant",
    public=False,
)
def logarithm_of(packed: Array, /, *, dtype: np.dtype) -> Call:
    """Return the logarithms of the moduli of determinants, in `dtype`."""
    return Call((packed,), (dtype,))


def _determinants(packed: np.ndarray, dtype: np.dtype) -> np.ndarray:
    sign, logarithm = sign_and_logarithm(packed)
    return np.asarray(sign * np.exp(logarithm))


@operation(rule=_of_factors, reference=_determinants, name="det", public=False)
def det_factored(packed: Array, /, *, dtype: np.dtype) -> Call:
    """Return the determinants, in `dtype`."""
    return Call((packed,), (dtype,))


def gone_back(packed: np.ndarray) -> int:
    """Return the multiply-adds of the matrices that were factored by Gauss's way after all."""
    order = packed.shape[-1]
    return int(np.count_nonzero(packed[..., -1, :1])) * by_gauss(order)


def refuse_zero_pivot(packed: np.ndarray) -> None:
    """Raise LinAlgError, naming the matrix, where a factor has a zero on its diagonal."""
    zero = (parts_of(packed).diagonal == 0).any(-1)
    if zero.any():
        shape = (*packed.shape[:-2], packed.shape[-1], packed.shape[-1])
        raise refuse_singular("x1", shape, packed.dtype, zero)


def _solve_factored_rule(types: tuple[Type, ...], transposed: str, dtype: np.dtype) -> Inferred:
    packed, right = types[0].shape, types[1].shape
    vector = len(right) == 1
    stack = packed[:-2] if vector else broadcast(packed[:-2], right[:-2])
    shape = (*stack, *(right if vector else right[-2:]))
    return Inferred(((shape, dtype),), (types[0].dtype, types[0].dtype))


def _solve_factored(
    packed: np.ndarray, right: np.ndarray, transposed: str, dtype: np.dtype
) -> np.ndarray:
    """By the matrices that the factors multiply to."""
    refuse_zero_pivot(packed)
    n = packed.shape[-1]
    columns, pivots, _ = found = parts_of(packed)
    by_rows = columns.swapaxes(-1, -2)
    cholesky = np.tril(by_rows)
    definite = cholesky @ np.conj(cholesky.swapaxes(-1, -2))
    general = (np.tril(by_rows, -1) + np.eye(n)) @ np.triu(by_rows)
    for at in np.ndindex(packed.shape[:-2]):
        order = np.arange(n)
        for row, other in enumerate(pivots[at] - 1):
            if other >= 0:
                order[[row, other]] = order[[other, row]]
        general[at][order] = general[at].copy()
    matrices = np.where(found.cholesky[..., None, None], definite, general)
    if transposed != "N":
        matrices = matrices.swapaxes(-1, -2)
    return np.asarray(np.linalg.solve(np.conj(matrices) if transposed == "C" else matrices, right))


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
    packed: Array, right: Array, /, *, transposed: str = "N", dtype: np.dtype
) -> Call:
    """Solve equations by the factors of their matrix; "T" by its transpose, "C" by the conjugate
    of that. Raises LinAlgError at the wait for a singular matrix.
    """
    return Call((packed, right), (transposed, dtype))


def _inv_factored_rule(types: tuple[Type, ...], dtype: np.dtype) -> Inferred:
    *stack, _, order = types[0].shape
    return Inferred((((*stack, order, order), dtype),), (types[0].dtype,))


def _inv_factored(packed: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return _solve_factored(packed, np.eye(packed.shape[-1]), "N", dtype)


@operation(
    rule=_inv_factored_rule,
    reference=_inv_factored,
    can_fail=True,
    remedy=SINGULAR,
    multiply_adds=lambda types, _: (
        product(types[0].shape[:-2]) * (types[0].shape[-1] ** 3 - types[0].shape[-1] ** 3 // 3)
    ),
    name="inv",
    public=False,
)
def inv_factored(packed: Array, /, *, dtype: np.dtype) -> Call:
    """Return the inverse by the factors. Raises LinAlgError at the wait for a singular matrix."""
    return Call((packed,), (dtype,))


@derived(
    namespace="linalg",
    numpy=(np.linalg.slogdet,),
    reference=np.linalg.slogdet,
    samples=[Sample(((3, 3),)), Sample(((2, 4, 4),)), Sample(((0, 0),)), Sample(((0, 2, 2),))],
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
    dtype = computed_of(x)
    packed = factors(x, definite=False)
    return SlogdetResult(sign_of(packed, dtype=dtype), logarithm_of(packed, dtype=real_part(dtype)))
