"""Permutation matrices (`tn.permutation`): stored as the column of the 1 in each row.

>>> import tenfold as tn
>>> p = permutation(tn.asarray([2, 0, 1]))
>>> (p @ tn.asarray([10.0, 20.0, 30.0])).tolist(), (p.T @ p).to_dense().tolist()[0]
([30.0, 10.0, 20.0], [1.0, 0.0, 0.0])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Array, Type
from tenfold.core.op import BoundCall, Inferred
from tenfold.core.op_decorators import array, operation, values
from tenfold.core.structure import Structure
from tenfold.dtypes import FLOAT64, canonical, kind_of, promote
from tenfold.errors import DTypeError, ShapeError, message
from tenfold.ops import diagonal_tril_triu, linalg
from tenfold.ops.arange import arange
from tenfold.ops.assume import declared
from tenfold.ops.cast import astype, convert
from tenfold.ops.comparison import equal
from tenfold.ops.contract import matmul
from tenfold.ops.create import eye
from tenfold.ops.gathering import take
from tenfold.ops.movement import permute_dims
from tenfold.ops.sorting import argsort
from tenfold.storage.kinds import (
    StorageKind,
    components,
    constructor_params,
    kept_indices,
    storage_kind,
)


def _rule(types: tuple[Type, ...], dtype: np.dtype) -> Inferred:
    (columns,) = types
    if len(columns.shape) != 1:
        raise ShapeError(
            "", f"shape {columns.shape} is not (n,)", remedy="give the columns in order"
        )
    if kind_of(columns.dtype) not in "iu":
        raise DTypeError("", "columns are integers", remedy="convert with tn.astype(p, tn.int64)")
    return Inferred((((*columns.shape, *columns.shape), dtype),), (columns.dtype,))


def _reference(columns: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return np.asarray(np.eye(len(columns), dtype=dtype)[columns])


@operation(
    rule=_rule,
    reference=_reference,
    storage="permutation",
    makes=lambda _: (Structure.SELECTION | Structure.ORTHOGONAL,),
    public=False,
    portable=True,
)
def stored_permutation(columns: Array, /, dtype: np.dtype) -> BoundCall:
    """Return the permutation matrix (n, n) with the columns of its ones, (n,) integers."""
    return BoundCall((columns,), (canonical(dtype, "permutation"),))


def permutation(p: Any, /, *, dtype: Any = None) -> Array:
    """Return the matrix `P` with `(P @ x)[i] == x[p[i]]`, (n, n), stored as `p`: (n,) integers.

    Products read rows or columns in another order; the transpose and the inverse are the inverse
    permutation. `dtype` is float64 by default. What has no rule raises UnsupportedError, as for
    `tn.diagonal_matrix`. `tn.random.permutation` draws one.

    `p` is read and checked once, here. Raises ShapeError for another shape, DTypeError unless `p`
    are integers, and ValueError unless each of 0 to n - 1 is there once.

    >>> import tenfold as tn
    >>> tn.permutation(tn.asarray([1, 0])).to_dense().tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    columns = array(np.asarray(p) if isinstance(p, (list, tuple, range)) else p)
    result = PERMUTATION.make(
        columns, params=(FLOAT64 if dtype is None else canonical(dtype, "permutation"),)
    )
    known = values(columns, "permutation")
    if not np.array_equal(np.sort(known), np.arange(len(known))):
        rule = f"the columns are not each of 0 to {len(known) - 1} once"
        remedy = "for rows that repeat take them: x[p]"
        raise ValueError(message("permutation", rule, [columns], remedy))
    return PERMUTATION.make(kept_indices(columns, known), params=constructor_params(result))


def _to_dense(x: Array) -> Array:
    (columns,), (dtype,) = components(x), constructor_params(x)
    return declared(
        take(eye(x.shape[0], dtype=dtype, device=x.device), columns, axis=0), "orthogonal"
    )


PERMUTATION = StorageKind(
    name="permutation",
    constructor=stored_permutation,
    to_dense=_to_dense,
)


def _inverse_of(columns: Array) -> Array:
    return argsort(columns)


@PERMUTATION.rule(matmul)
def _product(x: Any, y: Any) -> Any:
    dtype = promote([_native.node_of(z).type for z in (x, y)])
    first, second = (storage_kind(z) is PERMUTATION for z in (x, y))
    if {storage_kind(z) for z in (x, y)} - {None, PERMUTATION}:
        return NotImplemented
    if first and second:
        (p,), (q,) = components(x), components(y)
        return PERMUTATION.make(take(q, p), params=(dtype,))
    if first:
        (p,) = components(x)
        return convert(take(y, p, axis=max(0, y.ndim - 2)), dtype)
    return convert(take(x, _inverse_of(*components(y)), axis=x.ndim - 1), dtype)


@PERMUTATION.rule(permute_dims)
def _permuted(x: Array, axes: tuple[int, ...]) -> Array:
    return x if axes == (0, 1) else _inverse(x)


@PERMUTATION.rule(linalg.inv)
def _inverse(x: Array) -> Array:
    return PERMUTATION.make(_inverse_of(*components(x)), params=constructor_params(x))


@PERMUTATION.rule(linalg.solve)
def _solve(x: Any, y: Any) -> Any:
    return matmul(_inverse(x), y) if storage_kind(x) is PERMUTATION else NotImplemented


@PERMUTATION.rule(astype)
def _cast(x: Array, dtype: np.dtype) -> Array:
    return PERMUTATION.make(*components(x), params=(dtype,))


@PERMUTATION.rule(diagonal_tril_triu.diagonal)
def _diagonal(x: Array, offset: int, *_axes: int) -> Any:
    if offset:
        return NotImplemented
    (columns,), (dtype,) = components(x), constructor_params(x)
    places = arange(x.shape[0], dtype=columns.dtype, device=x.device)
    return convert(equal(columns, places), dtype)


__all__ = ["PERMUTATION", "permutation"]
