"""Linear algebra in NumPy's form: `tenfold.numpy.linalg`.

Takes NumPy's positions and keywords, hands on Arrays of the operations of `tn.linalg`.

>>> solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 2.0]).tolist()
[1.0, 0.5]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from tenfold._native import Array
from tenfold.numpy.arguments import Immediate, as_array, as_arrays, deliver
from tenfold.numpy.elementwise import matmul, vecdot
from tenfold.numpy.manipulation import matrix_transpose
from tenfold.numpy.products import outer as _outer_of_flat
from tenfold.numpy.products import tensordot
from tenfold.ops import complex, factors, matrix_functions, movement, powers, svd_eig
from tenfold.ops import linalg as decompositions
from tenfold.ops import norm as norms
from tenfold.ops.diagonal_tril_triu import diagonal as _diagonal

__all__ = [
    "LinAlgError", "cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals",
    "eigvalsh", "inv", "lstsq", "matmul", "matrix_norm", "matrix_power", "matrix_rank",
    "matrix_transpose", "multi_dot", "norm", "outer", "pinv", "qr", "slogdet", "solve", "svd",
    "svdvals", "tensordot", "tensorinv", "tensorsolve", "trace", "vecdot", "vector_norm",
]  # fmt: skip


def inv(a: Any) -> Array:
    """Return the inverses of matrices."""
    return decompositions.inv(as_array(a))


def det(a: Any) -> Array:
    """Return the determinants of matrices."""
    return decompositions.det(as_array(a))


def slogdet(a: Any) -> Any:
    """Return signs and logarithms of the determinants of matrices."""
    return factors.slogdet(as_array(a))


def solve(a: Any, b: Any) -> Array:
    """Return the solutions of linear equations."""
    return decompositions.solve(as_array(a), as_array(b))


def cholesky(a: Any, /, *, upper: bool = False) -> Array:
    """Return the Cholesky factors of matrices."""
    return decompositions.cholesky(as_array(a), upper=upper)


def qr(a: Any, mode: str = "reduced") -> Any:
    """Return the QR factors of matrices; `mode="r"` returns R only."""
    if mode == "raw":
        return Immediate(np.linalg.qr)(a, mode)
    result: Any = decompositions.qr(as_array(a), mode="reduced" if mode == "r" else mode)
    return result[1] if mode == "r" else result


def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    """Return singular values of matrices, with their vectors unless `compute_uv=False`."""
    x = as_array(a)
    if not compute_uv:
        return svd_eig.svdvals(x)
    return decompositions.svd(x, full_matrices=full_matrices)


def svdvals(x: Any, /) -> Array:
    """Return the singular values of matrices."""
    return svd_eig.svdvals(as_array(x))


def _lower(a: Any, UPLO: str) -> Array:  # NumPy's name
    """Return Hermitian matrices whose lower triangle is the one to read."""
    x = as_array(a)
    if UPLO.upper() not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    return x if UPLO.upper() == "L" else complex.conj(movement.matrix_transpose(x))


def eigh(a: Any, UPLO: str = "L") -> Any:  # NumPy's name
    """Return eigenvalues and eigenvectors of Hermitian matrices."""
    return decompositions.eigh(_lower(a, UPLO))


def eigvalsh(a: Any, UPLO: str = "L") -> Array:  # NumPy's name
    """Return the eigenvalues of Hermitian matrices."""
    return svd_eig.eigvalsh(_lower(a, UPLO))


def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Array:
    """Return the pseudo-inverses of matrices."""
    tolerance = rcond if rtol is None else rtol
    return svd_eig.pinv(as_array(a), rtol=1e-15 if tolerance is None else tolerance)


def matrix_rank(
    A: Any,
    tol: Any = None,
    hermitian: bool = False,
    *,
    rtol: Any = None,  # NumPy's
) -> Array:
    """Return the ranks of matrices."""
    x = as_array(A)
    if tol is not None or x.ndim < 2:
        result: Array = Immediate(np.linalg.matrix_rank)(x, tol, hermitian)
        return result
    return svd_eig.matrix_rank(x, rtol=rtol)


def cond(x: Any, p: Any = None) -> Array:
    """Return the condition numbers of matrices."""
    return svd_eig.cond(as_array(x), p)


def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """Return least squares solutions, residuals, rank and singular values."""
    return svd_eig.lstsq(as_array(a), as_array(b), rcond)


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
    """Return norms of vectors or matrices."""
    return norms.norm(as_array(x), ord, axis, keepdims)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Array:
    """Return norms of vectors along axes."""
    return norms.vector_norm(as_array(x), axis=axis, keepdims=keepdims, ord=ord)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """Return norms of matrices."""
    return norms.matrix_norm(as_array(x), keepdims=keepdims, ord=ord)


def matrix_power(a: Any, n: int) -> Array:
    """Return powers of matrices with a whole exponent."""
    return powers.matrix_power(as_array(a), n)


def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    """Return the product of matrices, multiplied in the cheapest order."""
    return deliver(matrix_functions.multi_dot(as_arrays(arrays)), out)


def outer(x1: Any, x2: Any, /) -> Array:
    """Return the product of each element of one vector with each of another."""
    result: Array = _outer_of_flat(x1, x2)
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
    """Return the inverse of an array as an operator of `tensordot`."""
    return matrix_functions.tensorinv(as_array(a), ind)


def tensorsolve(a: Any, b: Any, axes: Any = None) -> Array:
    """Return the solution x of `tensordot(a, x, x.ndim) = b`."""
    return matrix_functions.tensorsolve(as_array(a), as_array(b), axes)


eig: Callable[..., Any] = Immediate(np.linalg.eig)
"""Its dtype depends on the values: real if all eigenvalues are. `tn.linalg.eig` is lazy."""
eigvals: Callable[..., Any] = Immediate(np.linalg.eigvals)
