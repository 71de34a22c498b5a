"""Shared bytes: whether two arrays show the same bytes, of memory or of one file mapped twice.

Takes two ndarrays. Addresses tell what lies in one mapping; of a file that is mapped twice, each
time at other addresses, the table of mappings of the process does.

>>> x = np.zeros(6)
>>> shares_bytes(x[:4], x[2:]), shares_bytes(x[:3], x[3:])
(True, False)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from tenfold import _native
from tenfold._native import Array
from tenfold.core.strided_overlap import overlap
from tenfold.mutation.external_buffer import region_of
from tenfold.storage.dense import export

MAPPINGS = Path("/proc/self/maps")


def shares_bytes(x: np.ndarray, y: np.ndarray) -> bool:
    """Return whether a byte of one may be a byte of the other."""
    if not x.nbytes or not y.nbytes:
        return False
    if not overlap(region_of(x), region_of(y)).disjoint:
        return True
    first, second = _file_bytes(x), _file_bytes(y)
    if first is None or second is None or first[0] != second[0]:
        return False
    (_, begin, end), (_, other_begin, other_end) = first, second
    same_mapping = byte_bounds(x)[0] - begin == byte_bounds(y)[0] - other_begin
    return not same_mapping and begin < other_end and other_begin < end


def is_same_array(x: np.ndarray, y: np.ndarray) -> bool:
    """Return whether two arrays have the same elements at the same addresses."""
    first, second = (
        (a.__array_interface__["data"][0], a.strides, a.shape, a.dtype) for a in (x, y)
    )
    return first == second


def _file_bytes(x: np.ndarray) -> tuple[str, int, int] | None:
    """Return the file that an array is mapped from, and its first byte there and that behind its
    last; None for memory.
    """
    low, high = byte_bounds(x)
    if not MAPPINGS.exists():
        return None
    for line in MAPPINGS.read_text(encoding="utf-8", errors="replace").splitlines():
        addresses, _, offset, device, inode, *_ = line.split()
        begin, end = (int(address, 16) for address in addresses.split("-"))
        if begin <= low < end:
            at = int(offset, 16) + low - begin
            return (f"{device} {inode}", at, at + high - low) if inode != "0" else None
    return None


__all__ = ["is_same_array", "shares_bytes"]


def memory_of(values: Any) -> Any:
    """Return the memory of an Array, which is computed, as an ndarray; another object as it is."""
    if not isinstance(values, Array):
        return values
    value = _native.node_of(values.wait()).value()
    assert value is not None, "it is computed"
    return export(value)


def is_same_store(one: Any, other: Any) -> bool:
    """Whether two objects that are no ndarrays are one array: two handles of a dataset are."""
    return one is other or (type(one) is type(other) and (one == other) is True)
