"""Eigenvalues: complex ones of general matrices, by library calls in double precision. For
Hermitian matrices `linalg.eigh` is faster and more accurate.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tenfold._native import Array, Type
from tenfold.core.op import BoundCall, Inferred
from tenfold.core.op_decorators import array
from tenfold.core.shape_rules import Shape, product
from tenfold.dtypes import COMPLEX64, COMPLEX128, real_part
from tenfold.ops.complex import conj
from tenfold.ops.create import eye
from tenfold.ops.diagonal_tril_triu import diag_embed
from tenfold.ops.linalg import (
    NOT_FINITE,
    adjoint,
    computation_dtype,
    diagonal,
    matrix_operation,
    solve,
    square,
)
from tenfold.ops.selection import where


class EigResult(NamedTuple):
    """What `linalg.eig` returns."""

    eigenvalues: Array
    eigenvectors: Array


def _eigenvalue_types(types: tuple[Type, ...]) -> tuple[Shape, np.dtype, np.dtype]:
    """Return (the shape of the eigenvalues, their dtype, that of the computation)."""
    stack, order = square(types[0].shape)
    compute_dtype = computation_dtype(types)
    is_single = real_part(compute_dtype).itemsize == real_part(COMPLEX64).itemsize
    return (*stack, order), COMPLEX64 if is_single else COMPLEX128, compute_dtype


def _eigvals_rule(types: tuple[Type, ...]) -> Inferred:
    shape, dtype, compute_dtype = _eigenvalue_types(types)
    return Inferred(((shape, dtype),), (compute_dtype,))


def _eig_rule(types: tuple[Type, ...]) -> Inferred:
    shape, dtype, compute_dtype = _eigenvalue_types(types)
    return Inferred(((shape, dtype), ((*shape, shape[-1]), dtype)), (compute_dtype,))


def _eig_reference(x: np.ndarray) -> tuple[np.ndarray, ...]:
    return tuple(np.linalg.eig(x))


def _eig_back(g: tuple[Any, Any], y: tuple[Array, Array], x: Array) -> tuple[Array]:
    """Boeddeker, Hanebrink, Drude, Heymann, Haeb-Umbach 2017, "On the computation of complex-valued
    gradients", 4.2; vectors keep their norms, and their phases. Those of equal values have none.
    """
    (g_values, g_vectors), (values, vectors) = g, y
    inner: Any = 0 if g_values is None else diag_embed(g_values)
    if g_vectors is not None:
        gaps = conj(values[..., None, :] - values[..., :, None])
        is_same = eye(x.shape[-1], dtype=np.bool_, device=x.device)
        turned = adjoint(vectors) @ g_vectors
        lengths = adjoint(vectors) @ vectors * diagonal(turned)[..., None, :]
        inner = inner + where(is_same, 0, (turned - lengths) / where(is_same, 1, gaps))
    return (solve(adjoint(vectors), inner @ adjoint(vectors)),)


def _values_of_eig(x: Array) -> Array:
    return eig(x)[0]


@matrix_operation(
    rule=_eigvals_rule,
    reference=np.linalg.eigvals,
    can_fail=True,
    remedy=NOT_FINITE,
    multiply_adds=lambda types: product(types[0].shape) * types[0].shape[-1] * 5,
    expression=_values_of_eig,
)
def eigvals(x: Array, /) -> BoundCall:
    """Eigenvalues of square matrices, complex and in no order: (..., n, n) to (..., n).

    The dtype is complex64 for float32 and complex64, else complex128; also where all of them are
    real, unlike NumPy's. The vectors as well: `linalg.eig`. Raises ShapeError for matrices that are
    not square, DTypeError for halves, and LinAlgError at the wait for NaN, infinity and where the
    iteration does not converge. By the QR algorithm, 5 n^3 multiply-adds: Golub and Van Loan 2013,
    7.5.6.

    >>> import tenfold as tn
    >>> tn.linalg.eigvals(tn.asarray([[2.0, 0.0], [0.0, 1.0]])).tolist()
    [(2+0j), (1+0j)]
    """
    return BoundCall((array(x),))


@matrix_operation(
    rule=_eig_rule,
    reference=_eig_reference,
    can_fail=True,
    remedy=NOT_FINITE,
    multiply_adds=lambda types: product(types[0].shape) * types[0].shape[-1] * 25 // 2,
    result_type=EigResult,
    vjp=_eig_back,
)
def eig(x: Array, /) -> BoundCall:
    """Eigenvalues and eigenvectors of square matrices, complex: (..., n) and (..., n, n).

    Column i of the eigenvectors, of norm 1, belongs to eigenvalue i: x @ v[:, i] = w[i] * v[:, i].
    Dtypes and errors are those of `linalg.eigvals`. Returns a named tuple. By the QR algorithm,
    25/2 n^3 multiply-adds: Golub and Van Loan 2013, 7.5.6.

    >>> import tenfold as tn
    >>> tn.linalg.eig(tn.asarray([[2.0, 0.0], [0.0, 1.0]])).eigenvectors.tolist()
    [[(1+0j), 0j], [0j, (1+0j)]]
    """
    return BoundCall((array(x),))
