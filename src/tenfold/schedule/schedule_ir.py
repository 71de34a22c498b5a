"""Schedule IR: a graph as the items that the planner schedules.

Takes a Graph, hands on a list of items, inputs before users: each node as its role in a plan. A
reduction becomes folds, one axis each, the innermost first, then its final map, then the view
without the axes.

>>> import tenfold as tn
>>> from tenfold import _native
>>> x = tn.asarray([[1.0, 2.0]])
>>> for item in items_of(Graph.of([_native.node_of(tn.sum(x + x, axis=1))])):
...     print(item.kind, item.shape, item.inputs)
value (1, 2) ()
map (1, 2) (0, 0)
fold (1, 1) (1,)
leave (1, 1) (2,)
view (1,) (3,)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tenfold._native import Type
from tenfold.core.gather_rules import GatherSource, ResultIndex
from tenfold.core.graph import Graph
from tenfold.core.index_map import AxisMap, IndexMap, identity
from tenfold.core.op import Kind, Op
from tenfold.core.scalar_ir import Body, ComplexElement
from tenfold.core.shape_rules import Shape, product
from tenfold.dtypes import BOOL, INT64, REAL_DTYPES
from tenfold.schedule.elementwise_lowering import has_rule

SHORT_ROW = 16
"""Elements of a last axis that leave most of a packet empty: many such rows are dear."""
FEW_ELEMENTS = 1 << 12
"""Elements of which that does not matter."""

LoopDirections = Mapping[int, tuple[int, ...]]
"""For each position of what is done in place the directions along the axes of the part; none: all
go up."""


@dataclass
class UpdateRuns:
    """Updates of parts of one array that are done together (`schedule/update_coalescing.py`); of
    each such run the last one makes the array.
    """

    bases: dict[int, int] = field(default_factory=dict)
    """The node whose memory is taken."""
    parts: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """The updates whose parts are stored: those that no later one replaces again."""
    inner: dict[int, int] = field(default_factory=dict)
    """For each update but the last one whether its part is stored."""
    values: dict[int, int] = field(default_factory=dict)
    """For each view that is nothing but one part, the update that has replaced it."""
    reads: dict[int, tuple[int, IndexMap]] = field(default_factory=dict)
    """For each other view of an array between, the array below, of which it is one too, and how."""


@dataclass(frozen=True, slots=True)
class ScheduleItem:
    """One thing to plan for.

    value: memory that is there; scalar: a number given at the launch; constant: elements of one
    known value; map: elements computed at their own index; view: an input read at other indices,
    by `reads`; located: inputs read at computed indices; join: blocks side by side; piece: one of
    them, computed where it is to lie; fold: one axis folded, which stays with length 1; leave: what
    becomes of folds; scan: running values along an axis; restride: memory seen with other strides;
    part: one result of a call; call: whatever the reference or a library computes.
    """

    kind: str
    position: int
    """Of the node in the graph."""
    shape: Shape
    dtype: np.dtype
    inputs: tuple[int, ...] = ()
    reads: tuple[AxisMap, ...] = ()
    axis: int = -1
    is_first: bool = False
    """Of a fold: whether its input is what the operation was given."""
    start: tuple[int, ...] = ()
    """Of a piece: where it begins in the whole."""
    access: tuple[AxisMap, ...] | None = None
    """Of a piece that is not a block: where its elements lie, for each axis of the whole."""
    staged: int = -1
    """Of a piece: the item that must be complete in memory before the piece is written."""
    base: int = -1
    """Of a join: the item whose buffer it takes over, and in which pieces are written."""
    fill: complex = 0
    """Of a constant: its value."""

    @property
    def size(self) -> int:
        """The number of elements."""
        return product(self.shape)

    @property
    def has_location(self) -> bool:
        """Of a piece: whether it lies in a whole; else it is what a view looks at."""
        return self.access is not None or bool(self.start)


def items_of(
    graph: Graph,
    *,
    fma: bool = True,
    in_place: LoopDirections | None = None,
    aside: Collection[int] = (),
    runs: UpdateRuns | None = None,
) -> list[ScheduleItem]:
    """Return the items of a graph; the last item of a node stands for it (see `items_by_node`).

    Without `fma` what cannot do without it is a call. What replaces a part of an array at one of
    the positions `in_place` writes that part into the array's memory, its axes turned where a
    direction is -1, and is computed `aside` before; the last one of a run writes the parts of all.
    """
    return _ItemBuilder(graph, fma, in_place or {}, aside, runs or UpdateRuns()).items


def items_by_node(items: list[ScheduleItem]) -> dict[int, int]:
    """Return for each node of the graph the item that has its value."""
    return {item.position: number for number, item in enumerate(items)}


class _ItemBuilder:
    def __init__(
        self,
        graph: Graph,
        fma: bool,
        in_place: LoopDirections,
        aside: Collection[int],
        runs: UpdateRuns,
    ) -> None:
        self.graph, self.fma, self.in_place, self.runs = graph, fma, in_place, runs
        self.staged = aside
        self.items: list[ScheduleItem] = []
        self.item_of_node: dict[int, int] = {}
        self.parts: dict[int, int] = {}
        """By the position of what is done in place the piece that it replaces."""
        for position in range(len(graph)):
            self._add_node(position)

    def _add(self, item: ScheduleItem) -> int:
        self.items.append(item)
        self.item_of_node[item.position] = len(self.items) - 1
        return len(self.items) - 1

    def _add_node(self, position: int) -> None:
        node = self.graph.nodes[position]
        type_ = node.type
        inputs = tuple(self.item_of_node[i] for i in self.graph.inputs[position])
        if position in self.in_place:
            self._add_update(position, node, inputs[1])
            return
        if position in self.runs.values or position in self.runs.reads:
            self._add_intermediate_read(position, type_)
            return
        kind, reads = _kind_of(node, self.items, inputs, self.fma)
        if kind == "fold":
            self._add_folds(position, node.op, inputs[0])
            return
        if kind == "join":
            inputs = tuple(self._add_pieces(position, node, inputs))
        axis = node.params[0] if kind == "scan" else -1
        self._add(ScheduleItem(kind, position, type_.shape, type_.dtype, inputs, reads, axis))

    def _add_pieces(self, position: int, node: Any, inputs: tuple[int, ...]) -> Iterator[int]:
        dtype = node.type.dtype
        for piece in node.op.pieces([self.items[i].shape for i in inputs], *node.params):
            shape, number = piece.shape, -1
            if product(shape) == 0:
                continue
            if piece.source is None:
                number = self._add(
                    ScheduleItem("constant", position, shape, dtype, fill=piece.fill)
                )
            else:
                number = inputs[piece.source]
            if piece.reads is not None:
                source = self.items[number].dtype
                number = self._add(
                    ScheduleItem("view", position, shape, source, (number,), piece.reads)
                )
            yield self._add(
                ScheduleItem("piece", position, shape, dtype, (number,), start=piece.start)
            )

    def _add_update(self, position: int, node: Any, value: int) -> None:
        """Compute a part where it is to lie, in the memory of what it is a part of."""
        access, shape = node.op.writes(*node.params)
        given, dtype = self.items[value], node.type.dtype
        missing = len(shape) - len(given.shape)
        turns = self.in_place[position] or (1,) * len(shape)
        reads = tuple(
            _reversed_step((axis, 1, 0), turns, shape) if length != 1 else (None, 0, 0)
            for axis, length in enumerate(given.shape, missing)
        )
        there = tuple(_reversed_step(step, turns, shape) for step in access)
        stored = self.runs.inner.get(position, True)
        number = self._add(ScheduleItem("view", position, shape, given.dtype, (value,), reads))
        lies = there if stored else None
        aside = value if position in self.staged else -1
        lying = ScheduleItem("piece", position, shape, dtype, (number,), access=lies, staged=aside)
        self.parts[position] = self._add(lying)
        if position in self.runs.inner:
            return
        below = self.runs.bases.get(position, self.graph.inputs[position][0])
        parts = tuple(self.parts[i] for i in self.runs.parts.get(position, (position,)))
        self._add(
            ScheduleItem(
                "join", position, node.type.shape, dtype, parts, base=self.item_of_node[below]
            )
        )

    def _add_intermediate_read(self, position: int, type_: Type) -> None:
        """Read a part of an array between, which is not there. It is computed, where it is asked
        for, as what it looks at is written over.
        """
        shape, dtype = type_.shape, type_.dtype
        if position in self.runs.values:
            source, reads = self.parts[self.runs.values[position]], identity(shape)
        else:
            below, reads = self.runs.reads[position]
            source = self.item_of_node[below]
        number = self._add(ScheduleItem("view", position, shape, dtype, (source,), reads))
        self._add(ScheduleItem("piece", position, shape, dtype, (number,)))

    def _add_folds(self, position: int, op: Op[...], source: int) -> None:
        node = self.graph.nodes[position]
        axes, keepdims = node.params[:2]
        shape = self.items[source].shape
        assert op.folding is not None, "it folds"
        dtype = op.folding.dtype(node.operands[0])
        number = source
        for axis in reversed(axes):
            kind = "fold" if shape[axis] else "identity"
            shape = tuple(1 if i == axis else length for i, length in enumerate(shape))
            first = number == source
            number = self._add(
                ScheduleItem(kind, position, shape, dtype, (number,), (), axis, first)
            )
        result = node.type
        first = number == source
        number = self._add(
            ScheduleItem("leave", position, shape, result.dtype, (number,), is_first=first)
        )
        if not keepdims and axes:
            kept = iter(range(len(result.shape)))
            reads = tuple(
                (None, 0, 0) if axis in axes else (next(kept), 1, 0) for axis in range(len(shape))
            )
            self._add(ScheduleItem("view", position, result.shape, result.dtype, (number,), reads))


def _reversed_step(step: AxisMap, turns: Sequence[int], shape: Shape) -> AxisMap:
    """Return how an axis is read where some of those of the part are gone through backwards."""
    axis, coefficient, start = step
    if axis is None or turns[axis] > 0:
        return step
    return axis, -coefficient, start + coefficient * (shape[axis] - 1)


def _kind_of(
    node: Any, items: list[ScheduleItem], inputs: tuple[int, ...], fma: bool
) -> tuple[str, tuple[AxisMap, ...]]:
    if node.is_scalar:
        return "scalar", ()
    if not node.pending:
        return "value", ()
    op = node.op
    if op is None:
        return "part", ()
    if op.folding is not None and _foldable(node):
        return "fold", ()
    if op.scanning and items[inputs[0]].shape[node.params[0]] > 1:
        return "scan", ()
    if op.reads is not None:
        return "view", op.reads(items[inputs[0]].shape, *node.params)
    if op.view and op.strides is not None:
        return "restride", ()
    if op.constant_fill is not None:
        return "scalar", ()
    known = node.params, node.operands, node.type.dtype
    if op.kind is Kind.MAP and has_rule(op, *known, fma=fma):
        return "map", ()
    return _gather_or_call_kind(node, [items[i].shape for i in inputs]), ()


def _gather_or_call_kind(node: Any, shapes: list[Shape]) -> str:
    """The kind of what reads its inputs at other indices, or of what takes a call."""
    op, some = node.op, product(node.type.shape)
    if some and op.pieces is not None and op.pieces(shapes, *node.params) is not NotImplemented:
        return "join"
    return "located" if op.element_at is not None and has_gather_rule(node, shapes) else "call"


def has_gather_rule(node: Any, shapes: Sequence[Shape]) -> bool:
    """Whether the element of a node at an index can be told; of an empty one there is none."""
    shape = node.type.shape
    if product(shape) == 0 or (shape[-1:] < (SHORT_ROW,) and product(shape) > FEW_ELEMENTS):
        return False
    body = Body()

    def source(shape: Shape, dtype: np.dtype) -> GatherSource:
        """An input that is read, whatever the index."""
        part = REAL_DTYPES.get(dtype, dtype)
        found = body.gather(0, part, body.constant(0, INT64), body.constant(True, BOOL))
        return GatherSource(
            shape, dtype, lambda *_: ComplexElement(found, found) if dtype in REAL_DTYPES else found
        )

    axes = tuple(body.index(axis) for axis in range(len(shape)))
    at = ResultIndex(axes, shape, lambda number: body.constant(number, INT64))
    sources = map(source, shapes, node.operands)
    return node.op.element_at(body, at, *sources, *node.params) is not NotImplemented


def _foldable(node: Any) -> bool:
    """Whether an operation that folds one axis only does so; argmax of all axes does not."""
    return not node.op.folding.one_axis or len(node.params[0]) == 1
