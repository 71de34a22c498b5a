"""Strides with NumPy's names: `tenfold.numpy.lib.stride_tricks`.

>>> sliding_window_view([1, 2, 3], 2).tolist()
[[1, 2], [2, 3]]
>>> as_strided(as_array([1, 2, 3]), (2, 2), (8, 8)).tolist()
[[1, 2], [2, 3]]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold._native import Array
from tenfold.errors import ShapeError
from tenfold.numpy.arguments import as_array
from tenfold.numpy.manipulation import ravel
from tenfold.ops import gathering, windows

__all__ = ["as_strided", "sliding_window_view"]


def as_strided(
    x: Any, shape: Any = None, strides: Any = None, subok: bool = False, writeable: bool = True
) -> Array:
    """Return the elements of a row-major array at steps of `strides` bytes: a copy, so that writes
    do not reach `x`. Raises ShapeError for elements outside of the array, and for steps between
    elements.
    """
    a = as_array(x)
    lengths = a.shape if shape is None else tuple(np.atleast_1d(shape).tolist())
    steps = a.strides if strides is None else tuple(np.atleast_1d(strides).tolist())
    if len(steps) != len(lengths) or any(step % a.itemsize for step in steps):
        rule = f"strides {steps} are not {len(lengths)} multiples of {a.itemsize} bytes"
        raise ShapeError("as_strided", rule, [a], "give one for each axis")
    ends = [(n - 1) * step // a.itemsize for n, step in zip(lengths, steps, strict=True)]
    low, high = sum(end for end in ends if end < 0), sum(end for end in ends if end > 0)
    if 0 not in lengths and (low < 0 or high >= a.size):
        rule = f"shape {lengths} of strides {steps} shows elements {low} to {high} of {a.size}"
        raise ShapeError("as_strided", rule, [a], "stay inside of the array")
    indices = np.zeros(lengths, np.int64)
    for axis, (length, step) in enumerate(zip(lengths, steps, strict=True)):
        places = np.arange(length) * (step // a.itemsize)
        indices += places.reshape((-1,) + (1,) * (len(lengths) - axis - 1))
    chosen = gathering.take(ravel(a), as_array(indices.reshape(-1)), axis=0)
    return chosen.reshape(lengths)


def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Array:
    """Return the view of all windows of an array; `+=` and `-=` may write to it."""
    return windows.sliding_window_view(as_array(x), window_shape, axis)
