"""Buffer extents: the bytes of each item's buffer that exist.

Takes a Schedule, hands on a BufferExtent for each item in memory. It names the item's
buffer, the offset of its element at index 0, the first byte that exists and the end of the last,
counted from the buffer's origin. The extent of a leaf is the range that its strides reach.

>>> import tenfold as tn
>>> from tenfold import _native
>>> from tenfold.core.graph import Graph
>>> from tenfold.schedule.schedule import schedule_graph
>>> x = tn.asarray([1.0, 2.0, 4.0])
>>> for extent in extents_of(schedule_graph(Graph.of([_native.node_of(x + x)]))).values():
...     print(extent)
BufferExtent(buffer=0, origin=0, low=0, high=24)
BufferExtent(buffer=1, origin=0, low=0, high=24)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tenfold.core.strided_overlap import StridedRegion
from tenfold.schedule.schedule_ir import ItemKind, Schedule


@dataclass(frozen=True, slots=True)
class BufferExtent:
    """The position of an item in its buffer, and the range of bytes that exist."""

    buffer: int
    """The item that the buffer was allocated for."""
    origin: int
    low: int
    high: int


def extents_of(schedule: Schedule) -> dict[int, BufferExtent]:
    """Return the extents of the items in memory; a layout is decided for each of them."""
    extents: dict[int, BufferExtent] = {}
    shared = {concat: base for base, concat in schedule.overwriter_of.items()}
    shared.update(schedule.reused_buffers)
    for number, strides in schedule.layouts.items():
        item = schedule.items[number]
        if item.kind is ItemKind.VALUE:
            low, high = _byte_range(item.shape, strides, item.dtype)
            extents[number] = BufferExtent(number, 0, low, high)
        elif number in shared and shared[number] in extents:
            extents[number] = extents[shared[number]]
        elif number in schedule.alias_offsets:
            alias = schedule.aliases.get(number)
            source = extents[item.inputs[0] if alias is None else alias.item]
            origin = source.origin + schedule.alias_offsets[number]
            extents[number] = replace(source, origin=origin)
        else:
            extents[number] = BufferExtent(number, 0, 0, item.size * item.dtype.itemsize)
    return extents


def _byte_range(shape: Sequence[int], strides: Sequence[int], dtype: np.dtype) -> tuple[int, int]:
    """The range of bytes that strides reach; (0, 0) for an empty array."""
    region = StridedRegion(0, tuple(shape), tuple(strides), dtype.itemsize)
    return (0, 0) if region.empty else region.range


__all__ = ["BufferExtent", "extents_of"]
