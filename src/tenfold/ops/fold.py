"""The canonical tree in which reductions are folded: it depends on the length alone.

Each reduced axis is folded by itself, the innermost first. Along an axis, element i belongs to block
i // 1024 and lane i % 32; a lane is folded pairwise, neighbours first; the 32 lanes of a block are
folded by halves (lane j with j + 16, then j + 8, ...); blocks are folded pairwise, neighbours first.
What is missing at the end is skipped, never replaced.

>>> fold_axes(np.add, np.arange(3.0), (0,), False, identity=0)
array(3.)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

LANES = 32
BLOCK = 1024

Combine = Callable[[np.ndarray, np.ndarray], np.ndarray]


def fold_axes(
    combine: Combine, x: np.ndarray, axes: tuple[int, ...], keepdims: bool, identity: object = None
) -> np.ndarray:
    """Fold `axes` of `x`; with an identity it is combined at the end and stands for an empty axis."""
    for axis in sorted(axes, reverse=True):
        x = fold_last(combine, np.moveaxis(x, axis, -1), identity)
        x = np.expand_dims(x, axis)
    if identity is not None and axes:
        x = combine(x, np.asarray(identity, x.dtype))
    return x if keepdims else np.squeeze(x, axis=axes) if axes else x


def fold_last(combine: Combine, x: np.ndarray, identity: object) -> np.ndarray:
    """Fold the last axis of `x` by the canonical tree."""
    length = x.shape[-1]
    if length == 0:
        return np.full(x.shape[:-1], identity, x.dtype)
    blocks = -(-length // BLOCK)
    lanes = np.zeros((*x.shape[:-1], blocks * BLOCK), x.dtype)
    lanes[..., :length] = x
    there = np.zeros(blocks * BLOCK, bool)
    there[:length] = True
    lanes = lanes.reshape(*x.shape[:-1], blocks, BLOCK // LANES, LANES)
    there = there.reshape(blocks, BLOCK // LANES, LANES)
    lanes, there = _pairwise(combine, lanes, there, -2)
    lanes, there = _by_halves(combine, lanes[..., 0, :], there[..., 0, :])
    lanes, _ = _pairwise(combine, lanes, there, -1)
    return lanes[..., 0]


def _pairwise(
    combine: Combine, x: np.ndarray, there: np.ndarray, axis: int
) -> tuple[np.ndarray, np.ndarray]:
    """Fold neighbours along `axis` until one is left."""
    while x.shape[axis] > 1:
        if x.shape[axis] % 2:
            pad = [(0, 0)] * x.ndim
            pad[axis] = (0, 1)
            x, there = np.pad(x, pad), np.pad(there, pad[-there.ndim :])
        first, second = _strided(axis, 0), _strided(axis, 1)
        x = _skipping(combine, x[first], x[second], there[second])
        there = there[first]
    return x, there


def _strided(axis: int, start: int) -> tuple[object, ...]:
    return (Ellipsis, slice(start, None, 2), *([slice(None)] * (-1 - axis)))


def _by_halves(
    combine: Combine, x: np.ndarray, there: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Fold the last axis, lane j with lane j + half."""
    while x.shape[-1] > 1:
        half = x.shape[-1] // 2
        x = _skipping(combine, x[..., :half], x[..., half:], there[..., half:])
        there = there[..., :half]
    return x[..., 0], there[..., 0]


def _skipping(combine: Combine, x: np.ndarray, y: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Combine where `y` is there, keep `x` elsewhere."""
    if there.all():
        return combine(x, y)
    return np.where(there, combine(x, y), x)
