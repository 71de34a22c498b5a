"""Patterns of CSR matrices: where the elements of a result are, and what they are made of.

Takes the indices and row bounds of operands, hands on those of the result and positions in the
operands' data. They are computed once, when the result is made: its shape depends on them. Data
plays no part, so an element stays stored though its value is 0. Native code has the loops
(`native/python/csr_patterns.cpp`); the product is that of Gustavson 1978, ACM TOMS 4(3).

>>> pattern, order = transpose_of(RowPattern(np.array([0, 2, 1]), np.array([0, 2, 3])), 3)
>>> pattern.indices.tolist(), pattern.indptr.tolist(), order.tolist()
([0, 1, 0], [0, 1, 2, 3], [0, 2, 1])
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tenfold import _native
from tenfold.settings import get

INT32_MAX = np.iinfo(np.int32).max


class RowPattern(NamedTuple):
    """The indices of the columns, in ascending order in each row, and the bounds of the rows."""

    indices: np.ndarray
    indptr: np.ndarray

    @property
    def rows(self) -> np.ndarray:
        """The row of each element."""
        bounds = self.indptr.astype(np.int64, copy=False)
        return np.repeat(np.arange(len(bounds) - 1), bounds[1:] - bounds[:-1])


def _alike(*parts: np.ndarray, largest: int = 0) -> tuple[np.ndarray, ...]:
    """Return arrays of indices in one dtype: int32, or int64 if one needs it or `largest` does."""
    needs_64 = largest > INT32_MAX or any(part.dtype.itemsize == 8 for part in parts)
    dtype = np.int64 if needs_64 or any(part.dtype == np.uint32 for part in parts) else np.int32
    return tuple([np.ascontiguousarray(part, dtype) for part in parts])


def _threads() -> int:
    return int(get("threads"))


def transpose_of(pattern: RowPattern, columns: int) -> tuple[RowPattern, np.ndarray]:
    """Return the pattern of the transposed matrix, and which element each of its elements is."""
    indices, indptr = _alike(*pattern, largest=len(pattern.indptr))
    indices, indptr, order = _native.transpose_pattern(indices, indptr, columns, _threads())
    return RowPattern(indices, indptr), order


def ordered(
    rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]
) -> tuple[RowPattern, np.ndarray | None, np.ndarray | None]:
    """Return the pattern of elements in any order, the order in which their data stands in it, or
    None if it does; and, if places occur twice, the position of each element, in that order, among
    the distinct ones.
    """
    rows, columns = _alike(rows, columns, largest=len(rows))
    order, indices, indptr, group = _native.sort_elements(rows, columns, *shape, _threads())
    is_sorted = len(order) < len(rows)
    return RowPattern(indices, indptr), None if is_sorted else order, group if len(group) else None


def union(x: RowPattern, y: RowPattern, columns: int) -> tuple[RowPattern, np.ndarray, np.ndarray]:
    """Return the pattern of all elements of both, and for each the position in the data of `x` and
    of `y`; -1 where that has none.
    """
    a, b, c, d = _alike(*x, *y, largest=len(x.indices) + len(y.indices))
    indices, indptr, first, second = _native.merge_patterns(a, b, c, d, columns, _threads())
    return RowPattern(indices, indptr), first, second


def product_of(
    x: RowPattern, y: RowPattern, columns: int
) -> tuple[RowPattern, np.ndarray, np.ndarray, np.ndarray]:
    """Return the pattern of the matrix product, and its terms: the position of each in the data of
    `x` and of `y`, and where the terms of each element begin: in the order of `x`.
    """
    sizes = len(y.indptr) - 1, columns, _threads()
    try:
        a, b, c, d = _alike(*x, *y)
        parts = _native.multiply_patterns(a, b, c, d, *sizes)
    except OverflowError:
        a, b, c, d = _alike(*x, *y, largest=INT32_MAX + 1)
        parts = _native.multiply_patterns(a, b, c, d, *sizes)
    indices, indptr, first, second, bounds = parts
    return RowPattern(indices, indptr), first, second, bounds


def taken(pattern: RowPattern, rows: np.ndarray) -> tuple[RowPattern, np.ndarray]:
    """Return the pattern of rows, and which element each of its elements is."""
    starts = pattern.indptr[rows]
    counts = pattern.indptr[rows + 1] - starts
    indptr = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(counts, out=indptr[1:])
    order = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], counts)
    bounds = pattern.indptr.dtype if len(order) <= INT32_MAX else np.dtype(np.int64)
    return RowPattern(pattern.indices[order], indptr.astype(bounds)), order


def check(pattern: RowPattern, shape: tuple[int, int]) -> str | None:
    """Return what is wrong with a pattern, in any order of its columns; None if nothing is."""
    indices, indptr = pattern
    if len(indptr) != shape[0] + 1:
        return f"indptr has {len(indptr)} bounds, not {shape[0] + 1} for {shape[0]} rows"
    if indptr[0] != 0 or indptr[-1] != len(indices) or (indptr[1:] < indptr[:-1]).any():
        return f"indptr does not ascend from 0 to the {len(indices)} elements"
    if len(indices) and not 0 <= indices.min() <= indices.max() < shape[1]:
        return f"a column index is not one of 0 to {shape[1] - 1}"
    return None


def is_ordered(pattern: RowPattern) -> bool:
    """Whether the columns of each row ascend, so that none occurs twice."""
    ascends = np.ones(len(pattern.indices), bool)
    ascends[1:] = pattern.indices[1:] > pattern.indices[:-1]
    starts = pattern.indptr[:-1]
    ascends[starts[starts < len(ascends)]] = True
    return bool(ascends.all())
