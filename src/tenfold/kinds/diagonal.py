"""Diagonal matrices (`tn.diagonal_matrix`): stored as the vectors of their diagonals.

>>> import tenfold as tn
>>> x = diagonal_matrix(tn.asarray([2.0, 4.0]))
>>> (x @ tn.ones((2, 2))).tolist(), tn.linalg.solve(x, tn.ones(2)).tolist()
([[2.0, 2.0], [4.0, 4.0]], [0.5, 0.25])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold._native import Array, Type
from tenfold.core.op import BoundCall, Inferred
from tenfold.core.op_decorators import array, operation
from tenfold.core.structure import Structure
from tenfold.errors import ShapeError
from tenfold.kinds.element_rules import rule_of, with_elements
from tenfold.ops import diagonal_tril_triu, linalg, reduce
from tenfold.ops.arithmetic import multiply
from tenfold.ops.contract import matmul
from tenfold.ops.create import ones, zeros
from tenfold.ops.lu_and_triangular import solve_diagonal
from tenfold.ops.movement import expand_dims, permute_dims
from tenfold.ops.reshaping import broadcast_to
from tenfold.storage.kinds import StorageKind, components, storage_kind


def _rule(types: tuple[Type, ...]) -> Inferred:
    (vectors,) = types
    if not vectors.shape:
        raise ShapeError("", "an array without axes is not a vector", remedy="reshape it to (1,)")
    return Inferred(((((*vectors.shape, vectors.shape[-1])), vectors.dtype),), (vectors.dtype,))


def _reference(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(vectors[..., None] * np.eye(vectors.shape[-1], dtype=vectors.dtype))


@operation(
    rule=_rule,
    reference=_reference,
    storage="diagonal_matrix",
    makes=lambda: (Structure.DIAGONAL,),
    public=False,
    portable=True,
)
def stored_diagonal(vectors: Array, /) -> BoundCall:
    """Return the diagonal matrices (..., n, n) of vectors (..., n)."""
    return BoundCall((vectors,))


def diagonal_matrix(d: Any, /) -> Array:
    """Return the matrices (..., n, n) with the vectors `d`, (..., n), on their diagonals, stored as
    `d` alone.

    Products, solves, inverses, sums, transposes and functions that are 0 at 0 compute with `d`:
    `D @ x` takes no multiply-adds. What has no rule raises UnsupportedError and says what
    `D.to_dense()` would take; so do `np.asarray(D)` and assignments. Elements beside the diagonal
    take part in no arithmetic: 0 times NaN is not formed. `tn.diag` makes a dense matrix.

    Raises ShapeError for an array without axes.

    >>> import tenfold as tn
    >>> d = tn.diagonal_matrix(tn.arange(1, 1_000_001) * 1.0)
    >>> d.shape, d.nnz, (d @ tn.ones(1_000_000))[:3].tolist()
    ((1000000, 1000000), 1000000, [1.0, 2.0, 3.0])
    """
    return DIAGONAL.make(array(np.asarray(d) if isinstance(d, (list, tuple)) else d))


def _to_dense(x: Array) -> Array:
    return diagonal_tril_triu.diag_embed(*components(x))


def _diagonal_of(x: Array, y: Array) -> Array:
    return diagonal_tril_triu.diagonal(broadcast_to(y, x.shape), 0, -2, -1)


DIAGONAL = StorageKind(
    name="diagonal_matrix",
    constructor=stored_diagonal,
    to_dense=_to_dense,
    elementwise=rule_of(_diagonal_of),
)


@DIAGONAL.rule(matmul)
def _product(x: Any, y: Any) -> Any:
    if storage_kind(x) is storage_kind(y):
        return diagonal_matrix(multiply(*components(x), *components(y)))
    if storage_kind(x) is DIAGONAL:
        (d,) = components(x)
        return multiply(d, y) if y.ndim == 1 else multiply(expand_dims(d, axis=-1), y)
    (d,) = components(y)
    return multiply(x, d) if x.ndim == 1 else multiply(x, expand_dims(d, axis=-2))


@DIAGONAL.rule(permute_dims)
def _permuted(x: Array, axes: tuple[int, ...]) -> Any:
    last = x.ndim - 1
    if {*axes[-2:]} != {last - 1, last}:
        return NotImplemented
    (d,) = components(x)
    return with_elements(x, permute_dims(d, (*axes[:-2], last - 1)))


@DIAGONAL.rule(diagonal_tril_triu.diagonal)
def _diagonal(x: Array, offset: int, first: int, second: int) -> Any:
    (d,) = components(x)
    if {first, second} != {x.ndim - 2, x.ndim - 1}:
        return NotImplemented
    if offset == 0:
        return d
    shape = (*d.shape[:-1], max(0, d.shape[-1] - abs(offset)))
    return zeros(shape, dtype=x.dtype, device=x.device)


@DIAGONAL.rule(reduce.sum)
def _sum(x: Array, axes: tuple[int, ...], keepdims: bool, dtype: Any) -> Any:
    (d,) = components(x)
    matrix_axes = {x.ndim - 2, x.ndim - 1} & {*axes}
    if not matrix_axes:
        return (
            NotImplemented if keepdims else with_elements(x, reduce.sum(d, axis=axes, dtype=dtype))
        )
    leading = tuple([axis for axis in axes if axis < x.ndim - 2])
    if len(matrix_axes) == 2:
        total = reduce.sum(d, axis=(*leading, x.ndim - 2), dtype=dtype, keepdims=keepdims)
        return expand_dims(total, axis=-1) if keepdims else total
    column = expand_dims(d, axis=x.ndim - 1)  # the sum of one element is that element
    axis = x.ndim - 1
    total = reduce.sum(column, axis=(*leading, axis), dtype=dtype, keepdims=keepdims)
    if keepdims and x.ndim - 2 in matrix_axes:
        total = permute_dims(total, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))
    return total


@DIAGONAL.rule(linalg.solve)
def _solve(x: Any, y: Any) -> Any:
    if storage_kind(x) is not DIAGONAL:
        return NotImplemented
    (d,) = components(x)
    if storage_kind(y) is DIAGONAL:
        (numerators,) = components(y)
        return diagonal_matrix(solve_diagonal(numerators, d))
    return solve_diagonal(y, d if y.ndim == 1 else expand_dims(d, axis=-1))


@DIAGONAL.rule(linalg.inv)
def _inverse(x: Array) -> Array:
    (d,) = components(x)
    return diagonal_matrix(solve_diagonal(ones((), dtype=d.dtype, device=d.device), d))


@DIAGONAL.rule(linalg.det)
def _determinant(x: Array) -> Array:
    return reduce.prod(*components(x), axis=-1)


__all__ = ["DIAGONAL", "diagonal_matrix"]
