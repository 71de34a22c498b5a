"""Item selection: each node of a graph becomes the items that the planner schedules.

A pass. Takes the Graph and the decisions about its updates, hands on items, inputs before users:
each node as its role in the schedule. A reduction becomes folds, one axis each, the innermost
first, then its final map, then the view without the axes.

>>> import tenfold as tn
>>> from tenfold import _native
>>> from tenfold.core.graph import Graph
>>> x = tn.asarray([[1.0, 2.0]])
>>> graph = Graph.of([_native.node_of(tn.sum(x + x, axis=1))])
>>> for item in select_items(Schedule(graph)).items:
...     print(item.kind, item.shape, item.inputs)
value (1, 2) ()
map (1, 2) (0, 0)
fold (1, 1) (1,)
finalize (1, 1) (2,)
view (1,) (3,)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tenfold._native import Type
from tenfold.core.gather_rules import GatherSource, ResultIndex
from tenfold.core.index_map import IndexMap, broadcast_access, identity, remap_axes, reverse_axes
from tenfold.core.op import Kind, Op
from tenfold.core.scalar_ir import Body, ComplexElement
from tenfold.core.shape_rules import Shape, product
from tenfold.core.shape_rules import broadcast as broadcast_shapes
from tenfold.dtypes import BOOL, INT64, REAL_DTYPES, compute_dtype
from tenfold.schedule.elementwise_lowering import has_rule
from tenfold.schedule.pass_rules import require
from tenfold.schedule.schedule_ir import ItemKind, Schedule, ScheduleItem
from tenfold.schedule.target import Target

UNARY_KINDS = (
    ItemKind.VIEW,
    ItemKind.SLICE_STORE,
    ItemKind.FOLD,
    ItemKind.FINALIZE,
    ItemKind.IDENTITY,
    ItemKind.SCAN,
    ItemKind.COPY,
    ItemKind.PART,
)
"""The kinds of items that read one other."""


def select_items(schedule: Schedule) -> Schedule:
    """Select the items of a graph; the last item of a node has its value.

    Without FMA operations that need it are calls. An update in place writes its part into the
    array's memory, along reversed axes where a direction is -1. Parts of staged updates are
    computed into their own buffer first. The last update of a run writes the parts of all.
    """
    graph = schedule.graph
    builder = _ItemBuilder(schedule)
    live_out = [
        builder.item_of_node[position]
        for position, is_live_out in enumerate(graph.live_out)
        if is_live_out and graph.nodes[position].pending
    ]
    return schedule.updated(
        items=tuple(builder.items),
        items_at=builder.item_of_node,
        live_out=frozenset(live_out),
        concat_of=builder.concat_of,
        overwriter_of=builder.overwriter_of,
    )


def verify_items(schedule: Schedule) -> None:
    """Each node has an item of its shape and dtype; items read earlier ones, within their shapes.
    A concat that overwrites has the shape of the overwritten item.
    """
    items = schedule.items
    for position, node in enumerate(schedule.graph.nodes):
        number = schedule.items_at.get(position, -1)
        require(number >= 0, "node {} has no item", position)
        item = items[number]
        require(item.position == position, "item {} is of another node", number)
        if position not in schedule.update_runs.inner:  # of these only parts are computed
            same = item.shape == node.type.shape and item.dtype == node.type.dtype
            require(same, "item {} has another type than its node", number)
    for number, item in enumerate(items):
        require(all(0 <= i < number for i in item.inputs), "item {} reads a later one", number)
        if item.kind in UNARY_KINDS:
            require(
                len(item.inputs) == 1, "item {}, a {}, reads {}", *(number, item.kind, item.inputs)
            )
        if item.kind is ItemKind.VIEW:
            _verify_view(schedule, number)
        if item.kind in (ItemKind.FOLD, ItemKind.SCAN):
            shape = items[item.inputs[0]].shape
            require(0 <= item.axis < len(shape), "item {} has no axis {}", number, item.axis)
        if item.kind is ItemKind.CONCAT:
            pieces = {items[i].kind for i in item.inputs} <= {ItemKind.SLICE_STORE}
            require(pieces, "item {} joins something else than pieces", number)
        if item.base >= 0:
            base = items[item.base]
            same = (base.shape, base.dtype) == (item.shape, item.dtype)
            require(same, "item {} overwrites item {} of another type", number, item.base)


def _verify_view(schedule: Schedule, number: int) -> None:
    """A view reads each axis of its input at indices that exist."""
    item = schedule.items[number]
    shape = schedule.items[item.inputs[0]].shape
    require(len(item.reads) == len(shape), "item {} reads {} axes", number, len(item.reads))
    if not item.size:
        return
    for (axis, coefficient, start), length in zip(item.reads, shape, strict=True):
        last = start if axis is None else start + coefficient * (item.shape[axis] - 1)
        inside = 0 <= start < length and 0 <= last < length
        require(inside, "item {} reads {} of {} elements", number, (start, last), length)


class _ItemBuilder:
    def __init__(self, schedule: Schedule) -> None:
        self.graph, self.target = schedule.graph, schedule.target
        self.runs = schedule.update_runs
        self.in_place, self.staged = schedule.updates.directions, schedule.updates.staged
        self.items: list[ScheduleItem] = []
        self.item_of_node: dict[int, int] = {}
        self.parts: dict[int, int] = {}
        """By position of an in-place update: the piece that it writes."""
        self.concat_of: dict[int, int] = {}
        self.overwriter_of: dict[int, int] = {}
        for position in range(len(self.graph.nodes)):
            self._add_node(position)

    def _add(self, item: ScheduleItem) -> int:
        self.items.append(item)
        number = self.item_of_node[item.position] = len(self.items) - 1
        if item.kind is ItemKind.CONCAT:
            self.concat_of.update(dict.fromkeys(item.inputs, number))
        if item.base >= 0:
            self.overwriter_of[item.base] = number
        return number

    def _add_node(self, position: int) -> None:
        node = self.graph.nodes[position]
        type_ = node.type
        inputs = tuple(map(self.item_of_node.__getitem__, self.graph.inputs[position]))
        if position in self.in_place:
            self._add_update(position, node, inputs[1])
            return
        if position in self.runs.values or position in self.runs.reads:
            self._add_intermediate_read(position, type_)
            return
        kind, reads = _kind_of(node, self.items, inputs, self.target)
        if kind is ItemKind.FOLD:
            self._add_folds(position, node.op, inputs[0])
            return
        if kind is ItemKind.SCATTER:
            self._add_scatter(position, node, inputs)
            return
        if kind is ItemKind.CONCAT:
            inputs = tuple(self._add_pieces(position, node, inputs))
        if kind in (ItemKind.SEGMENT_FOLD, ItemKind.REPEAT):
            self._add_segments(kind, position, node, inputs)
            return
        if kind is ItemKind.VIEW:
            inputs = inputs[:1]  # further ones are for derivatives
        axis = node.params[0] if kind is ItemKind.SCAN else -1
        self._add(ScheduleItem(kind, position, type_.shape, type_.dtype, inputs, reads, axis))

    def _add_pieces(self, position: int, node: Any, inputs: tuple[int, ...]) -> Iterator[int]:
        dtype = node.type.dtype
        for piece in node.op.lowering.pieces([self.items[i].shape for i in inputs], *node.params):
            shape, number = piece.shape, -1
            if product(shape) == 0:
                continue
            if piece.source is None:
                number = self._add(
                    ScheduleItem(ItemKind.CONSTANT, position, shape, dtype, fill=piece.fill)
                )
            else:
                number = inputs[piece.source]
            if piece.reads is not None:
                source = self.items[number].dtype
                number = self._add(
                    ScheduleItem(ItemKind.VIEW, position, shape, source, (number,), piece.reads)
                )
            yield self._add(
                ScheduleItem(
                    ItemKind.SLICE_STORE, position, shape, dtype, (number,), start=piece.start
                )
            )

    def _add_scatter(self, position: int, node: Any, inputs: tuple[int, ...]) -> None:
        """Add views of elements and indices along the same axes, the scatter, and the conversion of
        its result. Initial values are read in row-major order: others are copied before.
        """
        rule, shape = node.op.lowering.scatter, node.type.shape
        dtype = rule.dtype(node.operands[rule.value])
        shapes = [self.items[i].shape for i in inputs[rule.indices]]
        space = rule.space(shape, shapes, *node.params)
        index_shape = broadcast_shapes(*shapes)
        index_axes = [rule.place(*node.params)[1] + axis for axis in range(len(index_shape))]
        reads = [broadcast_access(identity(space), self.items[inputs[rule.value]].shape, space)]
        for index in shapes:
            access = broadcast_access(identity(index_shape), index, index_shape)
            reads.append(remap_axes(access, index_axes))
        operands = [
            self._add(ScheduleItem(ItemKind.VIEW, position, space, self.items[i].dtype, (i,), read))
            for i, read in zip((inputs[rule.value], *inputs[rule.indices]), reads, strict=True)
        ]
        initial = -1
        if rule.base is not None:
            initial = self._row_major(position, inputs[rule.base])
            operands.append(initial)
        number = self._add(
            ScheduleItem(ItemKind.SCATTER, position, shape, dtype, tuple(operands), initial=initial)
        )
        if dtype != node.type.dtype:
            self._add(
                ScheduleItem(ItemKind.SLICE_STORE, position, shape, node.type.dtype, (number,))
            )

    def _add_segments(
        self, kind: ItemKind, position: int, node: Any, inputs: tuple[int, ...]
    ) -> None:
        """Add a repeat, or the fold of segments and the conversion of its result."""
        shape, dtype = node.type.shape, node.operands[0]
        dtype = dtype if kind is ItemKind.REPEAT else compute_dtype(dtype)
        number = self._add(ScheduleItem(kind, position, shape, dtype, inputs, offsets=inputs[1]))
        if dtype != node.type.dtype:
            self._add(
                ScheduleItem(ItemKind.SLICE_STORE, position, shape, node.type.dtype, (number,))
            )

    def _row_major(self, position: int, number: int) -> int:
        """Return an item that has the elements of another in memory in row-major order."""
        item = self.items[number]
        node = self.graph.nodes[item.position]
        value = node.value() if item.kind is ItemKind.VALUE else None
        if item.kind is ItemKind.SCALAR or (value is not None and not value.strides):
            return number
        return self._add(
            ScheduleItem(ItemKind.SLICE_STORE, position, item.shape, item.dtype, (number,))
        )

    def _add_update(self, position: int, node: Any, value: int) -> None:
        """Add the items that write a part of an array in place."""
        access, shape = node.params
        source, dtype = self.items[value], node.type.dtype
        directions = self.in_place[position] or (1,) * len(shape)
        result_access = reverse_axes(identity(shape), shape, directions)
        reads = broadcast_access(result_access, source.shape, shape)
        target_access = reverse_axes(access, shape, directions)
        is_stored = self.runs.inner.get(position, True)
        number = self._add(
            ScheduleItem(ItemKind.VIEW, position, shape, source.dtype, (value,), reads)
        )
        stored_access = target_access if is_stored else None
        staged = value if position in self.staged else -1
        piece = ScheduleItem(
            ItemKind.SLICE_STORE,
            position,
            shape,
            dtype,
            (number,),
            access=stored_access,
            staged=staged,
        )
        self.parts[position] = self._add(piece)
        if position in self.runs.inner:
            return
        base = self.runs.bases.get(position, self.graph.inputs[position][0])
        parts = tuple(self.parts[i] for i in self.runs.parts.get(position, (position,)))
        self._add(
            ScheduleItem(
                ItemKind.CONCAT,
                position,
                node.type.shape,
                dtype,
                parts,
                base=self.item_of_node[base],
            )
        )

    def _add_intermediate_read(self, position: int, type_: Type) -> None:
        """Add a view of an intermediate array of a run, which does not exist in memory. The piece
        makes it read its source before that is overwritten.
        """
        shape, dtype = type_.shape, type_.dtype
        if position in self.runs.values:
            source, reads = self.parts[self.runs.values[position]], identity(shape)
        else:
            base, reads = self.runs.reads[position]
            source = self.item_of_node[base]
        number = self._add(ScheduleItem(ItemKind.VIEW, position, shape, dtype, (source,), reads))
        self._add(ScheduleItem(ItemKind.SLICE_STORE, position, shape, dtype, (number,)))

    def _add_folds(self, position: int, op: Op[...], source: int) -> None:
        node = self.graph.nodes[position]
        axes, keepdims = node.params[:2]
        shape = self.items[source].shape
        assert op.lowering.folding is not None, "it folds"
        dtype = op.lowering.folding.dtype(node.operands[0])
        number = source
        for axis in reversed(axes):
            kind = ItemKind.FOLD if shape[axis] else ItemKind.IDENTITY
            shape = tuple(1 if i == axis else length for i, length in enumerate(shape))
            is_first = number == source
            number = self._add(
                ScheduleItem(kind, position, shape, dtype, (number,), (), axis, is_first)
            )
        result = node.type
        is_first = number == source
        number = self._add(
            ScheduleItem(
                ItemKind.FINALIZE, position, shape, result.dtype, (number,), is_first=is_first
            )
        )
        if not keepdims and axes:
            result_axes = iter(range(len(result.shape)))
            reads = tuple(
                (None, 0, 0) if axis in axes else (next(result_axes), 1, 0)
                for axis in range(len(shape))
            )
            self._add(
                ScheduleItem(ItemKind.VIEW, position, result.shape, result.dtype, (number,), reads)
            )


def _kind_of(
    node: Any, items: list[ScheduleItem], inputs: tuple[int, ...], target: Target
) -> tuple[ItemKind, IndexMap]:
    if node.is_scalar:
        return ItemKind.SCALAR, ()
    if not node.pending:
        return ItemKind.VALUE, ()
    op = node.op
    if op is None:
        return ItemKind.PART, ()
    if op.lowering.folding is not None and _foldable(node):
        return ItemKind.FOLD, ()
    if op.lowering.scanning and items[inputs[0]].shape[node.params[0]] > 1:
        return ItemKind.SCAN, ()
    if op.is_affine_view:
        return ItemKind.VIEW, op.reads(items[inputs[0]].shape, node.params)
    if op.semantics.view and op.lowering.strides is not None:
        return ItemKind.COPY, ()
    if op.rewriting.constant_fill is not None:
        return ItemKind.SCALAR, ()
    signature = node.params, node.operands, node.type.dtype
    if op.semantics.kind is Kind.MAP and has_rule(op, *signature, fma=target.simd.fma):
        return ItemKind.MAP, ()
    return _indexed_or_call_kind(node, [items[i].shape for i in inputs]), ()


def _indexed_or_call_kind(node: Any, shapes: list[Shape]) -> ItemKind:
    """The kind of an operation that moves elements: a scatter, a concat, a gather or a call."""
    op, size = node.op, product(node.type.shape)
    if op.lowering.scatter is not None and _scatters(node, shapes):
        return ItemKind.SCATTER
    if op.lowering.segments and size and product(shapes[0]):
        repeats = op.lowering.segments == "repeat"
        entries = node.type.shape[0] if repeats else shapes[0][0]
        kind = ItemKind.REPEAT if repeats else ItemKind.SEGMENT_FOLD
        return kind if entries > 1 else ItemKind.CALL  # a loop over one entry is dropped
    if (
        size
        and op.lowering.pieces is not None
        and op.lowering.pieces(shapes, *node.params) is not NotImplemented
    ):
        return ItemKind.CONCAT
    return (
        ItemKind.GATHER
        if op.lowering.element_at is not None and has_gather_rule(node, shapes)
        else ItemKind.CALL
    )


def _scatters(node: Any, shapes: list[Shape]) -> bool:
    """Whether a scatter has cells and elements; else it is a call, which tests the indices."""
    rule = node.op.lowering.scatter
    space = rule.space(node.type.shape, shapes[rule.indices], *node.params)
    return bool(node.type.size and product(space))


def has_gather_rule(node: Any, shapes: Sequence[Shape]) -> bool:
    """Whether an operation with computed read indices has a rule for kernels, else it is a call.

    The rule is run on a body that is discarded.
    """
    shape = node.type.shape
    if product(shape) == 0:
        return False
    body = Body()

    def source(shape: Shape, dtype: np.dtype) -> GatherSource:
        """An input; the element does not depend on the index."""
        part_dtype = REAL_DTYPES.get(dtype, dtype)
        element = body.gather(0, part_dtype, body.constant(0, INT64), body.constant(True, BOOL))
        return GatherSource(
            shape,
            dtype,
            lambda *_: ComplexElement(element, element) if dtype in REAL_DTYPES else element,
        )

    axes = tuple(body.index(axis) for axis in range(len(shape)))
    result_index = ResultIndex(axes, shape, lambda number: body.constant(number, INT64))
    sources = map(source, shapes, node.operands)
    return (
        node.op.lowering.element_at(body, result_index, *sources, *node.params)
        is not NotImplemented
    )


def _foldable(node: Any) -> bool:
    """Whether a reduction that supports one axis only has one; argmax of all axes has not."""
    return not node.op.lowering.folding.one_axis or len(node.params[0]) == 1
