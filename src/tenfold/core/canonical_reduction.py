"""Canonical reduction: folds by a tree that depends on the length alone, so results are
reproducible.

Takes an ndarray and a function that combines two, hands on the folded ndarray. Each reduced axis is
folded by itself, the innermost first. Along an axis, element i stands in block i // 1024, in row i
% 1024 // 32 and lane i % 32 of it. A lane is folded pairwise, neighbouring rows first; the lanes of
a block are folded by halves (lane j with j + 16, then j + 8, ...); blocks are folded pairwise,
neighbours first. Elements missing at the end are skipped. Why this tree: docs/decisions/0001.

>>> fold_axes(np.add, np.arange(6.0).reshape(2, 3), (0, 1), False, identity=0)
array(15.)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tenfold._native import Type
from tenfold.core.shape_rules import MAX_AXES
from tenfold.dtypes import accumulator, compute_dtype, kind_of
from tenfold.errors import DTypeError

LANES = 32
BLOCK = 1024
MAX_UNSPLIT = MAX_AXES - 2
"""The most axes of an array that is folded without a reshape: folding adds two axes."""

Combine = Callable[[np.ndarray, np.ndarray], np.ndarray]


def fold_axes(
    combine: Combine, x: np.ndarray, axes: tuple[int, ...], keepdims: bool, identity: object
) -> np.ndarray:
    """Fold `axes` of `x`, given in rising order; an empty axis gives `identity`."""
    for axis in reversed(axes):
        folded = fold_last(combine, np.moveaxis(x, axis, -1), identity)
        x = np.expand_dims(folded, axis)
    return x if keepdims else np.squeeze(x, axes)


def fold_last(combine: Combine, x: np.ndarray, identity: object) -> np.ndarray:
    """Fold the last axis of `x`, (..., n), to (...)."""
    length = x.shape[-1]
    if length == 0:
        return np.full(x.shape[:-1], identity, x.dtype)
    if x.ndim > MAX_UNSPLIT:
        rows = fold_last(combine, x.reshape(-1, length), identity)
        return rows.reshape(x.shape[:-1])
    full_length = length - length % BLOCK
    blocks = []
    if full_length:
        rows = x[..., :full_length].reshape(
            *x.shape[:-1], full_length // BLOCK, BLOCK // LANES, LANES
        )
        blocks.append(_fold_lanes(combine, _fold_rows(combine, rows)))
    if full_length < length:
        lanes = _fold_ragged_rows(combine, x[..., full_length:])
        blocks.append(_fold_lanes(combine, lanes)[..., None])
    if len(blocks) == 1 and blocks[0].shape[-1] == 1:
        return blocks[0][..., 0]
    return _fold_rows(combine, np.concatenate(blocks, axis=-1)[..., None])[..., 0]


def _fold_rows(combine: Combine, x: np.ndarray) -> np.ndarray:
    """Fold (..., rows, lanes) to (..., lanes), pairwise: rows 0 and 1, 2 and 3, ..."""
    while (rows := x.shape[-2]) > 1:
        pairs = combine(x[..., 0 : rows - 1 : 2, :], x[..., 1::2, :])
        x = np.concatenate((pairs, x[..., -1:, :]), axis=-2) if rows % 2 else pairs
    return x[..., 0, :]


def _fold_ragged_rows(combine: Combine, x: np.ndarray) -> np.ndarray:
    """Fold the rows of a block that is not full, (..., n), to (..., lanes).

    The first n % 32 lanes have one row more than the remaining lanes.
    """
    length = x.shape[-1]
    rows, longer_lanes = divmod(length, LANES)
    lanes = []
    full = x[..., : rows * LANES].reshape(*x.shape[:-1], rows, LANES)
    if longer_lanes:
        last_row = x[..., None, rows * LANES :]
        lanes.append(
            _fold_rows(combine, np.concatenate((full[..., :longer_lanes], last_row), axis=-2))
        )
    if rows:
        lanes.append(_fold_rows(combine, full[..., longer_lanes:]))
    return lanes[0] if len(lanes) == 1 else np.concatenate(lanes, axis=-1)


def _fold_lanes(combine: Combine, x: np.ndarray) -> np.ndarray:
    """Fold (..., lanes) to (...) by halving: lane j with j + 16, then with j + 8, ..."""
    half = LANES // 2
    while half:
        lanes = x.shape[-1]
        if lanes > half:
            pairs = combine(x[..., : lanes - half], x[..., half:])
            unpaired = x[..., lanes - half : half]
            x = np.concatenate((pairs, unpaired), axis=-1) if unpaired.shape[-1] else pairs
        half //= 2
    return x[..., 0]


def accumulation_dtypes(type_: Type, dtype: np.dtype | None) -> tuple[np.dtype, np.dtype]:
    """Return the dtype in which `type_` is accumulated, and that of the result."""
    result = accumulator(type_.dtype) if dtype is None else dtype
    if kind_of(type_.dtype) == "c" and kind_of(result) != "c":
        raise DTypeError(
            "",
            f"cannot accumulate {type_.dtype} in {result}",
            remedy="take tn.real(x) or tn.abs(x), or leave dtype out",
        )
    return compute_dtype(result), result
