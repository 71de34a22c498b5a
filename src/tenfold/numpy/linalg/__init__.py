"""Linear algebra in NumPy's form: `tenfold.numpy.linalg`.

Takes NumPy's positions and keywords, hands on Arrays of the operations of `tn.linalg`. Functions
that raise LinAlgError raise it at the call, as NumPy's do (`numpy/linalg/factoring.py`).

>>> solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 2.0]).tolist()
[1.0, 0.5]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from tenfold import _native
from tenfold._native import Array
from tenfold.dtypes import COMPLEX128, FLOAT64, HALF_DTYPES, kind_of
from tenfold.errors import ShapeError
from tenfold.numpy.arguments import (
    Immediate,
    as_array,
    as_arrays,
    as_operand,
    cast,
    deliver,
    may_wait,
)
from tenfold.numpy.elementwise import matmul, vecdot
from tenfold.numpy.linalg.factoring import (
    at_call,
    factors_of,
    kept_factors,
    result_dtype,
)
from tenfold.numpy.manipulation import matrix_transpose
from tenfold.numpy.products import outer as _outer_of_flat
from tenfold.numpy.products import tensordot
from tenfold.ops import (
    complex,
    factors,
    matrix_functions,
    movement,
    powers,
    reshaping,
    svd_eig,
)
from tenfold.ops import linalg as decompositions
from tenfold.ops import norm as norms
from tenfold.ops.diagonal_tril_triu import diagonal as _diagonal

__all__ = [
    "LinAlgError", "cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals",
    "eigvalsh", "inv", "lstsq", "matmul", "matrix_norm", "matrix_power", "matrix_rank",
    "matrix_transpose", "multi_dot", "norm", "outer", "pinv", "qr", "slogdet", "solve", "svd",
    "svdvals", "tensordot", "tensorinv", "tensorsolve", "trace", "vecdot", "vector_norm",
]  # fmt: skip

_inv: Callable[..., Array] = decompositions.inv.call
_det: Callable[..., Array] = decompositions.det.call
_solve: Callable[..., Array] = decompositions.solve.call
"""The calls that run no Python for Arrays of known Types."""


def inv(a: Any) -> Array:
    """Return the inverses of matrices. Factors them at the call, and keeps the factors."""
    x = as_array(a)
    packed = factors_of(x)
    if packed is None:
        return at_call(_inv(x), x)
    params = (result_dtype(x.dtype),)
    inverse: Array = _native.apply(factors.inv_factored.id, (packed,), params)
    return inverse


def det(a: Any) -> Array:
    """Return the determinants of matrices, by their factors if these were kept."""
    x = as_array(a)
    packed = kept_factors(x)
    if packed is None:
        return _det(x)
    return factors.det_factored(packed, dtype=result_dtype(x.dtype))


def slogdet(a: Any) -> Any:
    """Return signs and logarithms of the determinants of matrices."""
    x = as_array(a)
    packed = kept_factors(x)
    if packed is None:
        return factors.slogdet(x)
    return factors.slogdet_factored(packed, result_dtype(x.dtype))


def _floats(a: Any) -> Array:
    """Return an operand of equations, integers in float64."""
    x = as_array(a)
    return x if kind_of(x.dtype) in "fc" else cast(x, FLOAT64)


def solve(a: Any, b: Any) -> Array:
    """Return the solutions of linear equations. Factors the matrices at the call, and keeps the
    factors.
    """
    x, y = as_array(a), _floats(b)
    packed = factors_of(x)
    if packed is None or y.dtype in HALF_DTYPES:
        return at_call(_solve(_floats(x), y), x)
    dtype = result_dtype(x.dtype, y.dtype)
    if dtype.kind == "c":
        packed = cast(packed, COMPLEX128)
    solution: Array = _native.apply(factors.solve_factored.id, (packed, y), ("N", dtype))
    return solution


def cholesky(a: Any, /, *, upper: bool = False) -> Array:
    """Return the Cholesky factors of matrices. Computes at the call."""
    x = as_array(a)
    return at_call(decompositions.cholesky(x, upper=upper), x)


def qr(a: Any, mode: str = "reduced") -> Any:
    """Return the QR factors of matrices; `mode="r"` returns R only."""
    if mode == "raw":
        return Immediate(np.linalg.qr)(a, mode)
    result: Any = decompositions.qr(as_array(a), mode="reduced" if mode == "r" else mode)
    return result[1] if mode == "r" else result


def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    """Return singular values of matrices, with their vectors unless `compute_uv=False`. Computes
    at the call.
    """
    x = as_array(a)
    if not compute_uv:
        return svdvals(x)
    return at_call(decompositions.svd(x, full_matrices=full_matrices), x)


def svdvals(x: Any, /) -> Array:
    """Return the singular values of matrices. Computes at the call."""
    matrices = as_array(x)
    return at_call(svd_eig.svdvals(matrices), matrices)


def _lower(a: Any, UPLO: str) -> Array:  # NumPy's name
    """Return Hermitian matrices whose lower triangle is the one to read."""
    x = as_array(a)
    if UPLO.upper() not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    return x if UPLO.upper() == "L" else complex.conj(movement.matrix_transpose(x))


def eigh(a: Any, UPLO: str = "L") -> Any:  # NumPy's name
    """Return eigenvalues and eigenvectors of Hermitian matrices. Computes at the call."""
    x = _lower(a, UPLO)
    return at_call(decompositions.eigh(x), x)


def eigvalsh(a: Any, UPLO: str = "L") -> Array:  # NumPy's name
    """Return the eigenvalues of Hermitian matrices. Computes at the call."""
    x = _lower(a, UPLO)
    return at_call(svd_eig.eigvalsh(x), x)


def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Array:
    """Return the pseudo-inverses of matrices. Computes the singular values at the call."""
    x, tolerance = as_array(a), rcond if rtol is None else rtol
    return at_call(svd_eig.pinv(x, rtol=1e-15 if tolerance is None else tolerance), x)


def matrix_rank(
    A: Any,
    tol: Any = None,
    hermitian: bool = False,
    *,
    rtol: Any = None,  # NumPy's
) -> Array:
    """Return the ranks of matrices. Computes the singular values at the call."""
    x = as_array(A)
    if tol is not None or x.ndim < 2:
        result: Array = Immediate(np.linalg.matrix_rank)(x, tol, hermitian)
        return result
    return at_call(svd_eig.matrix_rank(x, rtol=None if rtol is None else as_operand(rtol)), x)


def cond(x: Any, p: Any = None) -> Array:
    """Return the condition numbers of matrices. Computes at the call."""
    matrices = as_array(x)
    return at_call(norms.cond(matrices, p), matrices)


def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """Return least squares solutions, residuals, rank and singular values. Computes the rank at the
    call: the residuals are empty below full rank, and for equations that have a solution. In a
    trace the rank is taken for full.
    """
    x, y = _floats(a), _floats(b)
    if rcond is not None and rcond < 0:  # LAPACK's own choice
        rcond = np.finfo(result_dtype(x.dtype, y.dtype)).eps
    result: Any = at_call(svd_eig.lstsq(x, y, rcond), x, y)
    if x.ndim > 2:
        return result
    rows, columns = x.shape
    residuals = reshaping.reshape(result.residuals, (-1,))
    if rows <= columns or (may_wait() and result.rank.item() < columns):
        residuals = residuals[:0]
    return result._replace(residuals=residuals)


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
    """Return norms of vectors or matrices. Computes singular values at the call."""
    y = as_array(x)
    return at_call(norms.norm(y, ord, axis, keepdims), y)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Array:
    """Return norms of vectors along axes."""
    return norms.vector_norm(as_array(x), axis=axis, keepdims=keepdims, ord=ord)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """Return norms of matrices. Computes singular values at the call."""
    matrices = as_array(x)
    return at_call(norms.matrix_norm(matrices, keepdims=keepdims, ord=ord), matrices)


def matrix_power(a: Any, n: int) -> Array:
    """Return powers of matrices with a whole exponent. Factors at the call for one below 0."""
    x = as_array(a)
    return at_call(powers.matrix_power(x, n), x)


def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    """Return the product of matrices, multiplied in the cheapest order."""
    return deliver(matrix_functions.multi_dot(as_arrays(arrays)), out)


def outer(x1: Any, x2: Any, /) -> Array:
    """Return the product of each element of one vector with each of another."""
    x, y = as_arrays((x1, x2))
    if (x.ndim, y.ndim) != (1, 1):
        rule = f"operands of {x.ndim} and {y.ndim} axes are not two vectors"
        raise ShapeError("", rule, (), "use np.outer, which flattens them")
    result: Array = _outer_of_flat(x, y)
    return result


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """Return the cross products of vectors of three numbers."""
    return powers.cross(as_array(x1), as_array(x2), axis=axis)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """Return the sums of the diagonals of matrices."""
    return norms.trace(as_array(x), offset, -2, -1, dtype)


def diagonal(x: Any, /, *, offset: int = 0) -> Array:
    """Return the diagonals of matrices."""
    return _diagonal(as_array(x), offset, -2, -1)


def tensorinv(a: Any, ind: int = 2) -> Array:
    """Return the inverse of an array as an operator of `tensordot`. Computes at the call."""
    x = as_array(a)
    return at_call(matrix_functions.tensorinv(x, ind), x)


def tensorsolve(a: Any, b: Any, axes: Any = None) -> Array:
    """Return the solution x of `tensordot(a, x, x.ndim) = b`. Computes at the call."""
    x, y = _floats(a), _floats(b)
    return at_call(matrix_functions.tensorsolve(x, y, axes), x, y)


eig: Callable[..., Any] = Immediate(np.linalg.eig)
"""Its dtype depends on the values: real if all eigenvalues are. `tn.linalg.eig` is lazy."""
eigvals: Callable[..., Any] = Immediate(np.linalg.eigvals)
