"""The public functions of tenfold.linalg.

Made by `make stubs` from the op table; do not edit.
"""

from collections.abc import Sequence
from tenfold._native import Array
from tenfold.core.shape_rules import Axis
from typing import Any
import builtins

from numpy.linalg import LinAlgError as LinAlgError

from tenfold.transforms.conjugate_gradient import cg as cg
def solve_banded(l_and_u: tuple[int, int], ab: Array, b: Array, /) -> Array:
    """Solve equations whose matrices have `l_and_u` = (l, u) diagonals below and above the main"""

def solve_triangular(a: Array, b: Array, /, trans: int | str = ..., lower: builtins.bool = ..., unit_diagonal: builtins.bool = ...) -> Array:
    """Solve `a @ x = b` for triangular matrices, upper ones unless `lower`, with the arguments of"""

def matmul(x1: Array, x2: Array, /) -> Array:
    """Matrix product `x1 @ x2`: (..., m, k) @ (..., k, n) is (..., m, n); dtypes promote."""

def outer(x1: Array, x2: Array, /) -> Array:
    """Every element of `x1` times every element of `x2`: (m,) and (n,) to (m, n); dtypes promote."""

def tensordot(x1: Array, x2: Array, /, axes: Any = ...) -> Array:
    """Contract `axes` of `x1` with `axes` of `x2`; the axes of `x1` that are left come first."""

def vecdot(x1: Array, x2: Array, /, *, axis: int = ...) -> Array:
    """Product of vectors along `axis`: the sum of conj(x1) * x2, (..., k) and (..., k) to (...)."""

def eig(x: Array, /) -> Any:
    """Eigenvalues and eigenvectors of square matrices, complex: (..., n) and (..., n, n)."""

def eigvals(x: Array, /) -> Array:
    """Eigenvalues of square matrices, complex and in no order: (..., n, n) to (..., n)."""

def slogdet(x: Array, /) -> Any:
    """Sign and logarithm of the modulus of the determinant: (..., n, n) to (...) and (...)."""

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

def lu(x: Array, /) -> Any:
    """LU decomposition of (..., m, n) with row exchanges: x = P @ L @ U, floating dtypes."""

def triangular_solve(x1: Array, x2: Array, /, *, upper: builtins.bool = ..., unit_diagonal: builtins.bool = ...) -> Array:
    """Solve `x1 @ x = x2` for triangular matrices: (..., n, n) and (n,) or (..., n, k), floating"""

def expm(x: Array, /) -> Array:
    """Exponential of square matrices, the sum of x^k / k!: (..., n, n), floating dtypes."""

def multi_dot(arrays: Sequence[Array], /) -> Array:
    """Return the product of two or more matrices; the first and the last may be vectors."""

def sqrtm(x: Array, /) -> Array:
    """Principal square root of square matrices, s @ s = x: (..., n, n), complex."""

def tensorinv(x: Array, /, ind: int = ...) -> Array:
    """Return the inverse of `x` as a map from its last axes to its first `ind` ones, the axes of"""

def tensorsolve(x1: Array, x2: Array, /, axes: Sequence[int] | None = ...) -> Array:
    """Solve `tn.tensordot(x1, x, x.ndim) = x2` for x, whose axes are the last ones of `x1`."""

def matrix_transpose(x: Array, /) -> Array:
    """Return a view of the matrices (..., m, n) of `x` transposed: (..., n, m); also `x.mT`."""

def cond(x: Array, /, p: Any = ...) -> Array:
    """Condition of matrices: (..., m, n) to (...), real; infinite for singular ones."""

def matrix_norm(x: Array, /, *, keepdims: builtins.bool = ..., ord: Any = ...) -> Array:
    """Norm of matrices, the last two axes: (..., m, n) to (...)."""

def norm(x: Array, /, ord: Any = ..., axis: Axis = ..., keepdims: builtins.bool = ...) -> Array:
    """Norm of vectors (one `axis`) or matrices (two); of all elements when `axis` is None."""

def trace(x: Array, /, *, offset: int = ..., dtype: Any = ...) -> Array:
    """Sum along the diagonals of matrices, the last two axes: (..., m, n) to (...); see `tn.trace`."""

def vector_norm(x: Array, /, *, axis: Axis = ..., keepdims: builtins.bool = ..., ord: Any = ...) -> Array:
    """Norm of vectors, whose elements are along `axis`: one, several together, or all when None."""

def cross(x1: Array, x2: Array, /, *, axis: int = ...) -> Array:
    """Cross product of vectors with three components along `axis`; dtypes promote."""

def matrix_power(x: Array, n: int, /) -> Array:
    """Matrix to the power `n`, an int: (..., m, m) to (..., m, m), the dtype of `x`."""

def block_diag(*arrays: Array) -> Array:
    """Return matrices (..., m, n) joined along the diagonal, 0 elsewhere; of their common dtype."""

def cho_factor(a: Array, /, lower: builtins.bool = ...) -> Any:
    """Cholesky factor in SciPy's form of Hermitian positive-definite matrices: (..., n, n)."""

def cho_solve(c_and_lower: tuple[Array, builtins.bool], b: Array, /) -> Array:
    """Solve `a @ x = b` with the factor that `cho_factor` made of `a`: (..., n, n), and (n,) or"""

def lu_factor(a: Array, /) -> Any:
    """LU decomposition in SciPy's form: (..., m, n), floating dtypes, to a pair of arrays."""

def lu_solve(lu_and_piv: tuple[Array, Array], b: Array, /, trans: int = ...) -> Array:
    """Solve `a @ x = b` with the factors that `lu_factor` made of `a`: (..., n, n), and (n,) or"""

def null_space(A: Array, /, rcond: float | None = ...) -> Array:
    """Return an orthonormal basis of the vectors x with `A @ x = 0`: (m, n) to (n, n - rank),"""

def polar(a: Array, /, side: str = ...) -> Any:
    """Polar form of (..., m, n): a = u @ p, or a = p @ u for `side="left"`, floating dtypes."""

def schur(a: Array, /, output: str = ...) -> Any:
    """Schur form of square matrices, a = Z @ T @ conj(Z).T: (..., n, n), floating dtypes."""

def toeplitz(c: Array, r: Array | None = ..., /) -> Array:
    """Return the matrices with constant diagonals whose first column is `c` (..., m) and whose"""

def eigvalsh(x: Array, /) -> Array:
    """Eigenvalues, rising and real, of Hermitian matrices: (..., n, n) to (..., n)."""

def lstsq(x1: Array, x2: Array, /, rcond: float | None = ...) -> Any:
    """Least-squares solution of `x1 @ x = x2`, the one of smallest norm if there are several:"""

def matrix_rank(x: Array, /, *, rtol: Any = ...) -> Array:
    """Rank of matrices: how many singular values are larger than `rtol` times the largest one,"""

def pinv(x: Array, /, *, rtol: Any = ...) -> Array:
    """Pseudo-inverse of Moore and Penrose: (..., m, n) to (..., n, m), floating dtypes."""

def svdvals(x: Array, /) -> Array:
    """Singular values, falling and real, of (..., m, n): (..., k), where k is min(m, n)."""
