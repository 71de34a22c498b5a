"""Index tricks: grids, index arrays and concatenation written as indexing.

Takes slices and shapes, hands on Arrays of what NumPy makes of them at the call.

>>> mgrid[0:2, 0:3].shape
(2, 2, 3)
>>> c_[[1, 2], [3, 4]].tolist()
[[1, 3], [2, 4]]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import index_exp, s_

from tenfold._native import Array
from tenfold.numpy.arguments import Immediate, as_array, export, imported
from tenfold.numpy.creation import fromfunction, tri
from tenfold.ops.joining import stack

__all__ = [
    "c_", "diag_indices", "diag_indices_from", "index_exp", "indices", "ix_", "mask_indices",
    "mgrid", "ogrid", "r_", "ravel_multi_index", "s_", "tril_indices", "tril_indices_from",
    "triu_indices", "triu_indices_from", "unravel_index",
]  # fmt: skip


class IndexTrick:
    """An object of NumPy's that is called by indexing; its results are Arrays."""

    def __init__(self, name: str, function: Any) -> None:
        self.name = name
        self.function = function

    def __getitem__(self, key: Any) -> Any:
        return imported(self.function[export(key, f"np.{self.name}")])

    def __repr__(self) -> str:
        return f"<tenfold.numpy.{self.name}>"


c_ = IndexTrick("c_", np.c_)
mgrid = IndexTrick("mgrid", np.mgrid)
ogrid = IndexTrick("ogrid", np.ogrid)
r_ = IndexTrick("r_", np.r_)


def indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    """Return the index of each element along each axis, (axes, *dimensions)."""
    lengths = tuple(map(int, dimensions))
    if sparse or not lengths:
        return Immediate(np.indices)(lengths, dtype, sparse)
    return fromfunction(lambda *arrays: stack(arrays, 0), lengths, dtype=dtype)


def tril_indices_from(arr: Any, k: int = 0) -> Any:
    """Return the indices of the lower triangle of a matrix."""
    n, m = as_array(arr).shape
    return tril_indices(n, k, m)


def triu_indices_from(arr: Any, k: int = 0) -> Any:
    """Return the indices of the upper triangle of a matrix."""
    n, m = as_array(arr).shape
    return triu_indices(n, k, m)


def diag_indices_from(arr: Any) -> Any:
    """Return the indices of the diagonal of an array of equal axes."""
    x = as_array(arr)
    if x.ndim < 2:
        raise ValueError("input array must be at least 2-d")
    if len(set(x.shape)) != 1:
        raise ValueError("All dimensions of input must be of equal length")
    return diag_indices(x.shape[0], x.ndim)


def mask_indices(n: int, mask_func: Any, k: Any = 0) -> Any:
    """Return the indices where a function of a matrix of ones is not 0."""
    from_ones: Array = mask_func(tri(n, n, n, int), k)
    return imported(np.nonzero(np.asarray(from_ones)))


diag_indices = Immediate(np.diag_indices)
ix_ = Immediate(np.ix_)
ravel_multi_index = Immediate(np.ravel_multi_index)
tril_indices = Immediate(np.tril_indices)
triu_indices = Immediate(np.triu_indices)
unravel_index = Immediate(np.unravel_index)
