"""SciPy's sparse arrays: imported and exported in compressed rows.

>>> from scipy import sparse
>>> import tenfold as tn
>>> x = tn.asarray(sparse.coo_array([[0.0, 2.0], [3.0, 0.0]]))
>>> x.storage, to_scipy(2 * x).toarray().tolist()
('csr', [[0.0, 4.0], [6.0, 0.0]])
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Array
from tenfold.errors import ShapeError, UnsupportedError, message
from tenfold.interop.materialize import value_of
from tenfold.kinds import csr_patterns
from tenfold.kinds.csr import CSR, csr
from tenfold.kinds.csr_patterns import RowPattern
from tenfold.storage import dense
from tenfold.storage.kinds import as_general, components, refusal, storage_kind


def is_sparse(value: Any) -> bool:
    """Whether a value is a sparse array or matrix of SciPy, which is not imported for that."""
    sparse: Any = sys.modules.get("scipy.sparse")  # not imported: there is none
    return sparse is not None and bool(sparse.issparse(value))


def from_scipy(matrix: Any, dtype: Any, device: str, *, copy: bool | None) -> Array:
    """Return a sparse matrix of SciPy as `tn.csr`: read-only buffers in compressed rows are shared,
    others copied; `copy=False` shares, and is the caller's promise not to write.

    The matrix itself is not changed: SciPy sums duplicates in place where it is asked for them.
    """
    if matrix.ndim != 2:
        rule = f"a sparse array of shape {matrix.shape} is not a matrix"
        raise ShapeError("asarray", rule, remedy="make it dense with .toarray(), or reshape it")
    rows = matrix if matrix.format == "csr" else matrix.tocsr()
    must_copy = copy if rows is matrix else False  # else the buffers are new
    values = rows.data if dtype is None else rows.data.astype(dtype, copy=False)
    data, indices, indptr = (
        _native.value_array(dense.import_values(part, device, copy=must_copy))
        for part in (values, rows.indices, rows.indptr)
    )
    return csr(data, indices, indptr, rows.shape)


def to_scipy(self: Array) -> Any:
    """Return the matrix as a `scipy.sparse.csr_array` with buffers of its own; waits.

    A diagonal matrix and a permutation become one, too. Raises UnsupportedError for a dense array.

    >>> import tenfold as tn
    >>> tn.csr([1.0, 2.0], [1, 0], [0, 1, 2], (2, 2)).to_scipy().toarray().tolist()
    [[0.0, 1.0], [2.0, 0.0]]
    """
    kind = storage_kind(self)
    if kind is None:
        remedy = "take scipy.sparse.csr_array(np.asarray(x))"
        raise UnsupportedError("to_scipy", "the array is dense", [self], remedy)
    matrix = as_general(self)
    if storage_kind(matrix) is not CSR:
        raise refusal("to_scipy", self)
    from scipy.sparse import csr_array

    parts = [np.array(value_of(part, "to_scipy")) for part in components(matrix)]
    fault = csr_patterns.check(RowPattern(parts[1], parts[2]), (matrix.shape[0], matrix.shape[1]))
    if fault is not None:  # SciPy trusts it
        raise IndexError(message("to_scipy", fault, [self], "make it with tn.csr, which checks it"))
    result = csr_array((parts[0], parts[1], parts[2]), shape=self.shape)
    result.has_canonical_format = True
    return result


__all__ = ["from_scipy", "is_sparse", "to_scipy"]
