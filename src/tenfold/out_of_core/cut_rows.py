"""Cut rows: make the expression of some rows of a node from rows of the sources.

Takes a chunk plan, blocks of its sources, and the values that are known whole. Hands on lazy
arrays. Without blocks nothing can be computed: then it notes which rows would be read.

>>> blocks = Blocks(None)
>>> blocks.noted = [(0, 0, 4), (0, 3, 9), (1, 0, 2)]
>>> blocks.ranges()
[(0, 0, 9), (1, 0, 2)]
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold import _native
from tenfold._native import Array, Node, Type
from tenfold.core.interpreter import rebuild_with_origin
from tenfold.core.op import Kind, Op
from tenfold.core.shape_rules import Pick, whole_axes
from tenfold.interop.asarray import asarray
from tenfold.ops.indexing import index_view
from tenfold.out_of_core.cut_node import with_length

if TYPE_CHECKING:
    from tenfold.out_of_core.chunk_plan import ChunkPlan

ReadRange = tuple[int, int, int]
"""Rows of a source: its number, the first row, and the row behind the last."""


class Blocks:
    """The rows of the sources that a task has read; without them it notes what it would read."""

    def __init__(self, values: Mapping[ReadRange, Any] | None) -> None:
        self.noted = list[ReadRange]()
        self.arrays = None if values is None else {r: as_block(x) for r, x in values.items()}

    def rows(self, node: Node, source: int, axis: int, begin: int, end: int) -> Array:
        """Return rows of a source."""
        if self.arrays is None:
            self.noted.append((source, begin, end))
            type_ = node.type
            shape = with_length(type_.shape, axis, end - begin)
            return _native.placeholder(Type(shape, type_.dtype, type_.device))
        for (number, low, high), block in self.arrays.items():
            if number == source and low <= begin and end <= high:
                return cut(block, axis, begin - low, end - low)
        raise AssertionError(f"rows {begin} to {end} of source {source} were not read")

    def ranges(self) -> list[ReadRange]:
        """Return the rows to be read: ranges that overlap or touch become one."""
        merged: list[ReadRange] = []
        for source, begin, end in sorted({*self.noted}):
            if merged and merged[-1][0] == source and begin <= merged[-1][2]:
                merged[-1] = (source, merged[-1][1], max(end, merged[-1][2]))
            else:
                merged.append((source, begin, end))
        return merged


def as_block(values: Any) -> Array:
    """Return a block as an array that shares its memory: it is read before the task ends."""
    if isinstance(values, Array):
        return values
    block = np.asarray(values)
    return asarray(block, copy=False if block.flags.aligned and block.dtype.isnative else None)


def cut(x: Array, axis: int, begin: int, end: int) -> Array:
    """Return rows of an array; all of it is itself."""
    if (begin, end) == (0, x.shape[axis]):
        return x
    picks: list[Pick] = [*whole_axes(x.shape)]
    picks[axis] = (begin, end - begin, 1)
    return index_view(x, tuple(picks))


class RowBuilder:
    """Makes the expressions of one task; equal requests give one array."""

    def __init__(self, plan: ChunkPlan, blocks: Blocks, known: Mapping[int, np.ndarray]) -> None:
        self.plan, self.blocks, self.known = plan, blocks, known
        self.arrays: dict[Any, Any] = {}

    def forget(self) -> None:
        """Drop the expressions of finished leaves."""
        self.arrays.clear()

    def of(self, at: int) -> NodeRows:
        """Return the operands of a node."""
        return NodeRows(self, at)

    def rows(self, at: int, begin: int, end: int, axis: int | None = None) -> Any:
        """Return rows of a node that comes in chunks, or of a whole one along `axis`."""
        key = (at, begin, end, axis)
        if key not in self.arrays:
            self.arrays[key] = self._rows(at, begin, end, axis)
        return self.arrays[key]

    def whole(self, at: int) -> Any:
        """Return a node that is there whole: a number, a known value, or the expression of it."""
        if at not in self.arrays:
            is_noted = self.blocks.arrays is None and at not in self.known
            will_be_known = is_noted and (at in self.plan.folds or at in self.plan.stored)
            type_ = self.plan.graph.nodes[at].type
            self.arrays[at] = _native.placeholder(type_) if will_be_known else self.make(at)
        return self.arrays[at]

    def _rows(self, at: int, begin: int, end: int, whole_axis: int | None) -> Any:
        plan, node = self.plan, self.plan.graph.nodes[at]
        axis, inputs = plan.axes[at], plan.graph.inputs[at]
        if axis is None:
            assert whole_axis is not None, "the caller knows along which axis"
            return self._rows_of_whole(at, begin, end, whole_axis)
        if at in plan.inputs:
            return self.blocks.rows(node, plan.inputs[at], axis, begin, end)
        if node.op is None:
            return self.rows(inputs[0], begin, end)[node.params[0]]
        return self._ruled(at, begin, end)

    def _ruled(self, at: int, begin: int, end: int) -> Any:
        rows = self.plan.rules[at].rows
        assert rows is not None, "a fold has a value"
        return rows(self.of(at), begin, end)

    def _rows_of_whole(self, at: int, begin: int, end: int, axis: int) -> Any:
        node, inputs = self.plan.graph.nodes[at], self.plan.graph.inputs[at]
        op = node.op
        long = self.plan.long[at] and isinstance(op, Op)
        if not long or op.semantics.kind is not Kind.MAP or not inputs:
            return cut(self.whole(at), axis, begin, end)
        operands: list[Any] = []
        for i in inputs:
            shape = self.plan.graph.nodes[i].type.shape
            own = axis - (len(node.type.shape) - len(shape))
            is_row = own >= 0 and shape[own] == node.type.shape[axis]
            operands.append(self.rows(i, begin, end, own) if is_row else self.whole(i))
        return rebuild_with_origin(node, operands)

    def make(self, at: int) -> Any:
        """Return the expression of a node that is there whole."""
        plan, node = self.plan, self.plan.graph.nodes[at]
        if at in self.known:
            return as_block(self.known[at])
        if node.is_scalar:
            return node.scalar
        if at in plan.rules:  # few rows of an array that comes in chunks
            return self._ruled(at, 0, 0)
        if not node.pending:
            return _native.array_of(node)
        operands = [self.whole(i) for i in plan.graph.inputs[at]]
        return rebuild_pending(node, operands)


def rebuild_pending(node: Node, operands: Sequence[Any]) -> Any:
    """Make a node again, also one without operands: nothing keeps its value."""
    if operands or node.op is None:
        return rebuild_with_origin(node, [*operands])
    return _native.apply(node.op.id, (), node.params)


class NodeRows:
    """The operands of one node, by their numbers."""

    def __init__(self, builder: RowBuilder, at: int) -> None:
        self.builder, self.at = builder, at
        self.inputs = builder.plan.graph.inputs[at]

    def rows(self, operand: int, begin: int, end: int, axis: int | None = None) -> Any:
        """Return the rows of an operand along its chunked axis; of a whole one along `axis`."""
        at = self.inputs[operand]
        own = self.builder.plan.axes[at]
        return self.builder.rows(at, begin, end, axis if own is None else None)

    def whole(self, operand: int) -> Any:
        """Return an operand that is there whole."""
        return self.builder.whole(self.inputs[operand])

    def carry(self, begin: int) -> tuple[int, Array]:
        """Return where the part of this scan with a row begins, and the carry into it."""
        plan = self.builder.plan
        starts = [leaf[1] for leaves in plan.leaves(plan.folds[self.at].length) for leaf in leaves]
        part = max(bisect_right(starts, begin) - 1, 0)
        if self.builder.blocks.arrays is None:
            type_ = plan.graph.nodes[self.at].type
            shape = [n for axis, n in enumerate(type_.shape) if axis != plan.axes[self.at]]
            return starts[part], _native.placeholder(Type(shape, type_.dtype, type_.device))
        return starts[part], as_block(self.builder.known[self.at][part])
