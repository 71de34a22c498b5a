"""Functions of one matrix (n, m) for the tests of `tn.blockwise`, by what they do with its rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tenfold as tn

Program = Callable[[Any], Any]


def standardized(x: Any) -> Any:
    y = (x - tn.mean(x, axis=0)) / tn.std(x, axis=0)
    return tn.sum(tn.abs(y) * 2 + 1, axis=1)


FOLDS: dict[str, Program] = {
    "sum": lambda x: tn.sum(x, axis=0),
    "sum of all": tn.sum,
    "prod": lambda x: tn.prod(x, axis=0),
    "mean": lambda x: tn.mean(x, axis=0),
    "var": lambda x: tn.var(x, axis=0),
    "var of all": tn.var,
    "max": lambda x: tn.max(x, axis=0),
    "min": tn.min,
    "argmax": lambda x: tn.argmax(x, axis=0),
    "argmin of all": tn.argmin,
    "any": lambda x: tn.any(x > 0, axis=0),
    "all": lambda x: tn.all(x == x, axis=0),
    "count": lambda x: tn.count_nonzero(x, axis=0),
    "norm": lambda x: tn.linalg.vector_norm(x, axis=0),
    "softmax": lambda x: tn.softmax(x, axis=0),
    "logsumexp": lambda x: tn.logsumexp(x, axis=0),
    "standardized": standardized,
    "three passes": lambda x: x - tn.sum(x - tn.sum(x, axis=0), axis=0),
}
"""These have the bits of the reduction in memory, where chunks begin at multiples of 1,024."""

ROWS: dict[str, Program] = {
    "map": lambda x: x * 2 + 1,
    "row sums": lambda x: tn.sum(x, axis=1),
    "transpose": lambda x: x.T + 1,
    "first row": lambda x: x - x[0],
    "last rows": lambda x: x - x[-1:],
    "differences": lambda x: x[1:] - x[:-1],
    "window of three": lambda x: x[2:] + x[1:-1] * 2 + x[:-2],
    "every second": lambda x: x[::2] * 2,
    "reversed": lambda x: x + tn.flip(x, axis=0),
    "padded": lambda x: tn.pad(x, ((2, 3), (0, 1))),
    "flat": lambda x: tn.reshape(x, (-1,)),
    "stacked": lambda x: tn.stack([x, x * 2], axis=1),
    "joined": lambda x: tn.concat([x, x * 2], axis=0),
    "joined columns": lambda x: tn.concat([x, x * 2], axis=1),
    "broadcast": lambda x: tn.broadcast_to(tn.sum(x, axis=0), x.shape) + x,
    "numbered": lambda x: x * tn.arange(x.shape[0])[:, None],
    "outer": lambda x: x[:, :, None] * x[:, None, :],
    "sorted rows": lambda x: tn.sort(x, axis=1),
    "rolled": lambda x: tn.roll(x, 3, axis=0) + tn.roll(x, 1, axis=1),
    "tiled": lambda x: tn.tile(x, (1, 2)),
    "rolling means": lambda x: tn.mean(tn.sliding_window_view(x, 4, axis=0), axis=-1),
    "assigned column": lambda x: tn.set_at(x, (slice(None), 0), tn.sum(x, axis=1)),
    "assigned rows": lambda x: tn.set_at(tn.set_at(x, slice(5, 20), 7), 30, x[2]),
    "assigned to zeros": lambda x: tn.set_at(tn.zeros(x.shape), slice(1, None), x[:-1]),
    "new axis": lambda x: x[None] * 2,
    "places": lambda x: tn.searchsorted(tn.asarray([-1.0, 0.0, 1.0]), x),
    "diagonals": lambda x: tn.diagonal(x[:, :, None] * x[:, None, :], 0, 1, 2),
    "triangles": lambda x: tn.tril(x[:, :, None] * x[:, None, :]),
    "traced function": lambda x: tn.function(lambda v: v * 2 - tn.sum(v, axis=0))(x),
    "mapped rows": lambda x: tn.vmap(lambda row: row - tn.max(row))(x),
}
"""These compute rows from rows, or from few others."""

SUMS: dict[str, Program] = {
    "gram": lambda x: x.T @ x,
    "projection": lambda x: x @ np.arange(3.0),
    "einsum": lambda x: tn.einsum("ij,ik->jk", x, x),
    "column product": lambda x: x[:, 0] @ x[:, 1],
    "running sum": lambda x: tn.cumulative_sum(x, axis=0),
    "running product": lambda x: tn.cumulative_prod(x, axis=0),
    "with initial": lambda x: tn.cumulative_sum(x, axis=0, include_initial=True),
    "exclusive": lambda x: tn.cumulative_sum(x, axis=0, exclusive=True),
    "differences of sums": lambda x: tn.diff(tn.cumulative_sum(x, axis=0), axis=0),
    "segments": lambda x: tn.segment_sum(x, tn.astype(tn.abs(x[:, 0]) % 8, tn.int64), 8),
    "histogram": lambda x: np.histogram(x, bins=10, range=(-2, 2))[0],
    "fourier": lambda x: tn.fft.fft(x, axis=1),
    "gradient": lambda x: tn.grad(lambda w: tn.sum((x @ w) ** 2))(tn.ones(3)),
}
"""Sums of products or of parts, in an order of their own."""
