"""Buffer extents: the bytes of each item's buffer that exist.

Takes a Graph and its Schedule, hands on a BufferExtent for each item in memory. It names the item's
buffer, the offset of its element at index 0, the first byte that exists and the end of the last,
counted from the buffer's origin. The extent of a leaf is the range that its strides reach.

>>> import tenfold as tn
>>> from tenfold import _native
>>> from tenfold.schedule.schedule import plan_of
>>> x = tn.asarray([1.0, 2.0, 4.0])
>>> graph = Graph.of([_native.node_of(x + x)])
>>> for extent in extents_of(graph, plan_of(graph)).values():
...     print(extent)
BufferExtent(buffer=0, origin=0, low=0, high=24)
BufferExtent(buffer=1, origin=0, low=0, high=24)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tenfold.core.graph import Graph
from tenfold.schedule.lowering import contiguous_strides
from tenfold.schedule.strided_overlap import StridedRegion

if TYPE_CHECKING:
    from tenfold.schedule.schedule import Buffer, Schedule, Step


@dataclass(frozen=True, slots=True)
class BufferExtent:
    """The position of an item in its buffer, and the range of bytes that exist."""

    buffer: int
    """The item that the buffer was allocated for."""
    origin: int
    low: int
    high: int


def extents_of(graph: Graph, plan: Schedule) -> dict[int, BufferExtent]:
    """Return the extents of the leaves that steps read and of the results of steps."""
    extents: dict[int, BufferExtent] = {}
    reused_buffers = dict(plan.reused_buffers)
    for step in plan.steps:
        for item in step.reads:
            if item not in extents and plan.items[item].kind == "value":
                extents[item] = _leaf_extent(graph, plan, item)
        for result in step.results:
            if result.item not in extents:
                extents[result.item] = _result_extent(
                    step, result, extents, reused_buffers.get(result.item)
                )
    return extents


def _leaf_extent(graph: Graph, plan: Schedule, item: int) -> BufferExtent:
    node = graph.nodes[plan.items[item].position]
    value = node.value()
    shape, dtype = node.type.shape, node.type.dtype
    strides = value.strides if value is not None else ()
    low, high = _byte_range(shape, strides or contiguous_strides(shape, dtype.itemsize), dtype)
    return BufferExtent(item, 0, low, high)


def _byte_range(shape: Sequence[int], strides: Sequence[int], dtype: np.dtype) -> tuple[int, int]:
    """The range of bytes that strides reach; (0, 0) for an empty array."""
    region = StridedRegion(0, tuple(shape), tuple(strides), dtype.itemsize)
    return (0, 0) if region.empty else region.range


def _result_extent(
    step: Step, result: Buffer, extents: dict[int, BufferExtent], reused_item: int | None
) -> BufferExtent:
    if reused_item is not None and reused_item in extents:
        return extents[reused_item]
    if step.kind == "alias" and step.reads[0] in extents:
        source = extents[step.reads[0]]
        return replace(source, origin=source.origin + step.offset)
    return BufferExtent(result.item, 0, 0, result.nbytes)


__all__ = ["BufferExtent", "extents_of"]
