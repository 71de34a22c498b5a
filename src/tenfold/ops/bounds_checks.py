"""Bounds checks: validate indices along an axis, at the call where known, else at the wait.

>>> normalize_position(-1, 3)
2
"""

from __future__ import annotations

import numpy as np

from tenfold import _native
from tenfold._native import Array, Value
from tenfold.errors import message
from tenfold.storage import dense


def remedy(length: int) -> str:
    """Return which indices an axis has, as text."""
    return f"use {-length} to {length - 1}" if length else "the axis is empty"


def normalize_position(position: int, length: int) -> int | None:
    """Return `position` counted from 0, or None when it is out of bounds."""
    return position % length if -length <= position < length else None


def first_out_of_bounds(positions: np.ndarray, length: int) -> int | None:
    """Return the first of `positions` that is out of bounds, or None."""
    if positions.size == 0:
        return None
    out_of_range = positions >= length
    if positions.dtype.kind == "i":
        out_of_range |= positions < -length
    return int(positions[out_of_range][0]) if out_of_range.any() else None


def known_values(indices: Array) -> np.ndarray | None:
    """Return the values of an Array if they are there and stay: nothing is computed."""
    value = _known_value(indices)
    return None if value is None else dense.export(value)


def _known_value(indices: Array) -> Value | None:
    value = _native.node_of(indices).value()
    return None if value is None or isinstance(value.owner, dense.ExternalMemory) else value


def check_known(indices: Array, axis: int, x: Array, operation: str) -> None:
    """Raise IndexError at the call for an index into `axis` that is known and out of bounds."""
    value, length = _known_value(indices), x.shape[axis]
    if value is None:
        return
    if (found := value.integer_range) and -length <= found[0] and found[1] < length:
        return
    invalid = first_out_of_bounds(dense.export(value), length)
    if invalid is not None:
        rule = out_of_bounds(invalid, axis, length)
        raise IndexError(message(operation, rule, [x], remedy(length)))


def validated_indices(indices: np.ndarray, axis: int, length: int) -> np.ndarray:
    """Return indices as NumPy takes them, or raise IndexError: the check at the wait."""
    invalid = first_out_of_bounds(indices, length)
    if invalid is not None:
        raise IndexError(f"{out_of_bounds(invalid, axis, length)}; {remedy(length)}")
    return indices.astype(np.intp)


def out_of_bounds(position: int, axis: int, length: int) -> str:
    """Return the rule that an index out of bounds breaks, as text."""
    return f"index {position} is out of bounds for axis {axis} with length {length}"
