"""Bitwise comparison: a mask of the elements in which two arrays differ to the last bit.

Takes ndarrays of one shape and dtype, hands on a mask. -0.0 differs from 0.0; NaN equals NaN.

>>> different(np.float32([0.0, np.nan]), np.float32([-0.0, np.nan])).tolist()
[True, False]
"""

from __future__ import annotations

import numpy as np


def different(actual: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Return where elements differ in a bit; any two NaNs are equal."""
    return np.asarray(~(_same_bits(actual, expected) | both_nan(actual, expected)))


def both_nan(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return where both elements are NaN."""
    return np.asarray((a != a) & (b != b))


def _same_bits(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind == "c":
        component_masks = (_same_bits(a.real, b.real), _same_bits(a.imag, b.imag))
        return np.asarray(np.logical_and(*component_masks))
    unsigned = np.dtype(f"uint{8 * a.dtype.itemsize}")
    rows = (np.array(x, order="C").view(unsigned) for x in (a, b))
    return np.asarray(np.equal(*rows))
