"""Sliding windows with NumPy's name: `tenfold.numpy.lib.stride_tricks`.

>>> sliding_window_view([1, 2, 3], 2).tolist()
[[1, 2], [2, 3]]
"""

from __future__ import annotations

from typing import Any

from tenfold._native import Array
from tenfold.numpy.arguments import as_array
from tenfold.ops import windows

__all__ = ["sliding_window_view"]


def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Array:
    """Return the view of all windows of an array; `+=` and `-=` may write to it."""
    return windows.sliding_window_view(as_array(x), window_shape, axis)
