"""Equations with sparse matrices (`tn.linalg.solve`): by SciPy's SuperLU, whose factor is kept.

Source of the method: Li 2005, "An overview of SuperLU", ACM TOMS 31(3).

>>> import tenfold as tn
>>> x = tn.csr([2.0, 4.0], [0, 1], [0, 1, 2], (2, 2))
>>> tn.linalg.solve(x, tn.asarray([2.0, 2.0])).tolist()
[1.0, 0.5]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold._native import Array, Type
from tenfold.caches import LruCache
from tenfold.core.op import BoundCall, Inferred
from tenfold.core.op_decorators import operation
from tenfold.errors import UnsupportedError
from tenfold.kinds import csr_patterns
from tenfold.kinds.csr import CSR
from tenfold.kinds.csr_patterns import RowPattern
from tenfold.ops import linalg
from tenfold.ops.linalg import SINGULAR, check_rhs, computation_dtype, square
from tenfold.storage.kinds import components, storage_kind

_factors: LruCache[bytes, Any] = LruCache(
    8, "factors of sparse matrices", "further right sides of a system need no factorisation"
)


def _rule(types: tuple[Type, ...]) -> Inferred:
    *_, rhs = types
    if len(rhs.shape) > 2:
        rule = f"right sides of shape {rhs.shape} are a stack"
        raise UnsupportedError("", rule, remedy="solve for one matrix (n, k) of right sides")
    dtype = computation_dtype([types[0], rhs])
    return Inferred(((rhs.shape, dtype),), (dtype, types[1].dtype, types[2].dtype, dtype))


def _factor(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray) -> Any:
    """Return the LU factor of a matrix with these elements, computed or kept."""
    import hashlib  # imported only where it is used, as SciPy

    from scipy.sparse import csc_array
    from scipy.sparse.linalg import splu

    digest = hashlib.blake2b(digest_size=16)
    for part in (data, indices, indptr):
        digest.update(f"{part.dtype}{part.shape}".encode())
        digest.update(np.ascontiguousarray(part).data)
    factor = _factors.get(digest.digest())
    if factor is None:
        order = len(indptr) - 1
        # of the transposed matrix, whose compressed columns are these rows
        transposed = csc_array((data.copy(), indices.copy(), indptr.copy()), shape=(order, order))
        factor = _factors[digest.digest()] = splu(transposed)
    return factor


def _reference(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, rhs: np.ndarray
) -> np.ndarray:
    if not rhs.size:
        return np.zeros(rhs.shape, rhs.dtype)
    fault = csr_patterns.check(RowPattern(indices, indptr), (len(rhs), len(rhs)))
    if fault is not None:  # SuperLU trusts it
        raise IndexError(fault)
    try:
        factor = _factor(data, indices, indptr)
    except RuntimeError as error:
        raise np.linalg.LinAlgError(f"Singular matrix: {error}") from None
    return np.asarray(factor.solve(rhs, trans="T"))


@operation(
    rule=_rule,
    reference=_reference,
    name="solve",
    public=False,
    can_fail=True,
    remedy=SINGULAR,
    portable=True,
)
def solve_sparse(data: Array, indices: Array, indptr: Array, rhs: Array, /) -> BoundCall:
    """Solve the equations of a matrix in compressed rows for right sides (n,) or (n, k)."""
    return BoundCall((data, indices, indptr, rhs))


@CSR.rule(linalg.solve)
def _solve(x: Any, y: Any) -> Any:
    if storage_kind(x) is not CSR or storage_kind(y) is not None:
        return NotImplemented
    _, order = square(x.shape)
    check_rhs(order, y.shape)
    data, indices, indptr = components(x)
    return solve_sparse(data, indices, indptr, y)


__all__ = ["solve_sparse"]
