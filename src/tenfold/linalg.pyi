"""The public functions of tenfold.linalg.

Made by `make stubs` from the op table; do not edit.
"""

from tenfold._native import Array
from tenfold.ir.shape import Axis
from typing import Any
import builtins

def matmul(x1: Array, x2: Array, /) -> Array:
    """Matrix product `x1 @ x2`: (..., m, k) @ (..., k, n) is (..., m, n); dtypes promote."""

def outer(x1: Array, x2: Array, /) -> Array:
    """Every element of `x1` times every element of `x2`: (m,) and (n,) to (m, n); dtypes promote."""

def tensordot(x1: Array, x2: Array, /, axes: Any = ...) -> Array:
    """Contract `axes` of `x1` with `axes` of `x2`; the axes of `x1` that are left come first."""

def vecdot(x1: Array, x2: Array, /, *, axis: int = ...) -> Array:
    """Product of vectors along `axis`: the sum of conj(x1) * x2, (..., k) and (..., k) to (...)."""

def cholesky(x: Array, /, *, upper: builtins.bool = ...) -> Array:
    """Cholesky factor L of Hermitian positive-definite matrices, x = L @ conj(L).T: (..., n, n)."""

def det(x: Array, /) -> Array:
    """Determinant of square matrices: (..., n, n) to (...), floating dtypes; 1 for n = 0."""

def diagonal(x: Array, /, *, offset: int = ...) -> Array:
    """Return the view of the diagonals of matrices, the last two axes: (..., m, n) to (..., k)."""

def eigh(x: Array, /) -> Any:
    """Eigenvalues, rising and real, and eigenvectors of Hermitian matrices: (..., n), (..., n, n)."""

def inv(x: Array, /) -> Array:
    """Inverse of square matrices: (..., n, n) to (..., n, n), floating dtypes."""

def qr(x: Array, /, *, mode: str = ...) -> Any:
    """QR decomposition of (..., m, n): Q with orthonormal columns and R upper triangular, x = Q @"""

def solve(x1: Array, x2: Array, /) -> Array:
    """Solve `x1 @ x = x2` for x: (..., n, n) and (n,) or (..., n, k), floating dtypes."""

def svd(x: Array, /, *, full_matrices: builtins.bool = ...) -> Any:
    """Singular value decomposition of (..., m, n): x = U @ diag(S) @ Vh, S falling and real."""

def matrix_transpose(x: Array, /) -> Array:
    """Return a view of the matrices (..., m, n) of `x` transposed: (..., n, m); also `x.mT`."""

def norm(x: Array, /, ord: Any = ..., axis: Axis = ..., keepdims: builtins.bool = ...) -> Array:
    """Norm of vectors (one `axis`) or matrices (two); of all elements when `axis` is None."""

def trace(x: Array, /, *, offset: int = ..., dtype: Any = ...) -> Array:
    """Sum along the diagonals of matrices, the last two axes: (..., m, n) to (...); see `tn.trace`."""
