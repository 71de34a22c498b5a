"""Patterns of CSR matrices: where the elements of a result are, and what they are made of.

Takes the indices and row bounds of operands, hands on those of the result and positions in the
operands' data. They are computed once, when the result is made: its shape depends on them. Data
plays no part, so an element stays stored though its value is 0. SciPy's loops sort them.

>>> indices, indptr, order = transposed(np.array([0, 2, 1]), np.array([0, 2, 3]), 3)
>>> indices.tolist(), indptr.tolist(), order.tolist()
([0, 1, 0], [0, 1, 2, 3], [0, 2, 1])
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Pattern(NamedTuple):
    """The indices of the columns, in ascending order in each row, and the bounds of the rows."""

    indices: np.ndarray
    indptr: np.ndarray

    @property
    def rows(self) -> np.ndarray:
        """The row of each element."""
        rows = len(self.indptr) - 1
        return np.repeat(np.arange(rows, dtype=self.indices.dtype), np.diff(self.indptr))


def transposed(
    indices: np.ndarray, indptr: np.ndarray, columns: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the pattern of the transposed matrix, and which element each of its elements is."""
    from scipy.sparse import csr_array

    rows = len(indptr) - 1
    numbered = csr_array((np.arange(len(indices)), indices, indptr), shape=(rows, columns)).tocsc()
    return (
        numbered.indices.astype(indices.dtype),
        numbered.indptr.astype(indptr.dtype),
        numbered.data,
    )


def ordered(
    rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]
) -> tuple[Pattern, np.ndarray, np.ndarray | None]:
    """Return the pattern of elements in any order, the order in which their data stands in it, and,
    if places occur twice, the position of each element, in that order, among the distinct ones.
    """
    counts = np.arange(len(rows) + 1)
    by_column = transposed(columns, counts, shape[1])[0]
    by_row = transposed(rows[by_column], counts, shape[0])
    order = by_column[by_row[0]]
    rows, columns = rows[order], columns[order]
    starts = np.ones(len(rows), bool)
    starts[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
    indptr = np.zeros(shape[0] + 1, by_row[1].dtype)
    np.cumsum(np.bincount(rows[starts], minlength=shape[0]), out=indptr[1:])
    group = None if starts.all() else np.cumsum(starts) - 1
    return Pattern(columns[starts], indptr), order, group


def union(x: Pattern, y: Pattern, shape: tuple[int, int]) -> tuple[Pattern, np.ndarray, np.ndarray]:
    """Return the pattern of all elements of both, and for each the position in the data of `x` and
    of `y`; -1 where that has none.
    """
    rows = np.concatenate((x.rows, y.rows))
    columns = np.concatenate((x.indices, y.indices))
    pattern, order, group = ordered(rows, columns, shape)
    position = np.arange(len(order)) if group is None else group
    positions = np.full((2, len(pattern.indices)), -1)
    is_second = order >= len(x.indices)
    positions[0, position[~is_second]] = order[~is_second]
    positions[1, position[is_second]] = order[is_second] - len(x.indices)
    return pattern, positions[0], positions[1]


def product(
    x: Pattern, y: Pattern, shape: tuple[int, int]
) -> tuple[Pattern, np.ndarray, np.ndarray, np.ndarray]:
    """Return the pattern of the matrix product, and its terms: for each the position in the data of
    `x`, in that of `y`, and in the result. The terms of an element are in the order of `x`.
    """
    starts, counts = y.indptr[x.indices], np.diff(y.indptr)[x.indices]
    first = np.repeat(np.arange(len(x.indices)), counts)
    ends = np.cumsum(counts)
    second = np.arange(len(first)) - np.repeat(ends - counts - starts, counts)
    pattern, order, group = ordered(x.rows[first], y.indices[second], shape)
    position = np.arange(len(order)) if group is None else group
    return pattern, first[order], second[order], position


def taken(pattern: Pattern, rows: np.ndarray) -> tuple[Pattern, np.ndarray]:
    """Return the pattern of rows, and which element each of its elements is."""
    starts = pattern.indptr[rows]
    counts = pattern.indptr[rows + 1] - starts
    indptr = np.zeros(len(rows) + 1, pattern.indptr.dtype)
    np.cumsum(counts, out=indptr[1:])
    offsets = np.repeat(starts - indptr[:-1], counts)
    order = np.arange(len(offsets)) + offsets
    return Pattern(pattern.indices[order], indptr), order


def check(indices: np.ndarray, indptr: np.ndarray, shape: tuple[int, int]) -> str | None:
    """Return what is wrong with a pattern, in any order of its columns; None if nothing is."""
    if len(indptr) != shape[0] + 1:
        return f"indptr has {len(indptr)} bounds, not {shape[0] + 1} for {shape[0]} rows"
    if indptr[0] != 0 or indptr[-1] != len(indices) or (np.diff(indptr) < 0).any():
        return f"indptr does not ascend from 0 to the {len(indices)} elements"
    if len(indices) and not 0 <= indices.min() <= indices.max() < shape[1]:
        return f"a column index is not one of 0 to {shape[1] - 1}"
    return None


def is_ordered(pattern: Pattern) -> bool:
    """Whether the columns of each row ascend, so that none occurs twice."""
    ascends = np.ones(len(pattern.indices), bool)
    ascends[1:] = pattern.indices[1:] > pattern.indices[:-1]
    starts = pattern.indptr[:-1]
    ascends[starts[starts < len(ascends)]] = True
    return bool(ascends.all())
