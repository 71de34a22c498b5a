"""Symbolic graph: a graph with symbolic lengths, so that its plan holds for other lengths.

Takes a Graph and the SymInts of the lengths of its leaves, hands on a Graph for the planner. The
Types of results are inferred again by the rules of the operations, which compute shapes with
`core/shape_rules.py` only. Raises NotSymbolic for operations without formulas.

>>> import tenfold as tn
>>> from tenfold import _native
>>> from tenfold.core.symbolic.shape_env import ShapeEnv
>>> x = tn.asarray([[1.0, 2.0, 3.0]])
>>> graph = Graph.of([_native.node_of(tn.sum(x + x, axis=0))])
>>> with_symbolic_lengths(graph, {3: ShapeEnv((3,)).lengths[0]}).nodes[-1].type.shape
(rows,)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tenfold._native import Node, Type
from tenfold.core.graph import Graph
from tenfold.core.index_map import AxisMap, Slice, is_permutation
from tenfold.core.interpreter import interpret
from tenfold.core.op import Kind, Op, Params
from tenfold.core.shape_rules import Shape, product
from tenfold.core.symbolic.sym_int import NotSymbolic, example_value, is_size, values_of
from tenfold.ops.indexing import index
from tenfold.schedule.schedule_ir import ItemKind, Schedule

SYMBOLIC_KINDS = frozenset(
    (
        ItemKind.VALUE,
        ItemKind.SCALAR,
        ItemKind.MAP,
        ItemKind.VIEW,
        ItemKind.CONCAT,
        ItemKind.SLICE_STORE,
        ItemKind.FOLD,
        ItemKind.FINALIZE,
        ItemKind.IDENTITY,
        ItemKind.SCAN,
        ItemKind.SEGMENT_FOLD,
        ItemKind.REPEAT,
    )
)
"""The kinds of items whose plans hold for other lengths."""


@dataclass(frozen=True)
class SymbolicType:
    """A Type for rules and planners, with lengths that may be SymInts."""

    shape: Shape
    dtype: np.dtype
    device: str
    weak: bool
    storage: str = "dense"
    structure: int = 0

    @property
    def size(self) -> int:
        """The number of elements."""
        return product(self.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)


class SymbolicNode:
    """A node for planners, with a SymbolicType."""

    def __init__(self, node: Node, type_: SymbolicType, params: Params) -> None:
        self.node, self.type, self.params = node, type_, params
        self.types = (type_,)
        self.pending, self.is_scalar = node.pending, node.is_scalar
        self.op, self.name, self.operands = node.op, node.name, node.operands

    @property
    def scalar(self) -> Any:
        """The number of a Python scalar."""
        return self.node.scalar

    def value(self, index: int = 0) -> Any:
        """The value of a leaf."""
        return self.node.value(index)


SymbolicLengths = Mapping[int | tuple[int, int], int]
"""SymInts by length, or by axis, counted from the last as 1, and length. Axes distinguish
lengths that are equal by coincidence."""


def with_symbolic_lengths(graph: Graph, lengths: SymbolicLengths) -> Graph:
    """Return a graph with SymInts as lengths of its leaves; 0 and 1 stay ints."""
    nodes: list[SymbolicNode] = []

    def rule(node: Node, inputs: list[SymbolicNode]) -> SymbolicNode:
        nodes.append(symbolic_node(node, inputs, lengths))
        return nodes[-1]

    interpret(graph, {}, rule)
    symbolic_nodes: Any = nodes
    return replace(graph, nodes=symbolic_nodes, structure=None)


def symbolic_node(node: Node, inputs: list[SymbolicNode], lengths: SymbolicLengths) -> SymbolicNode:
    """Return a node with symbolic lengths, from its inputs with such lengths."""
    return _pending_node(node, inputs) if node.pending else _leaf(node, lengths)


def _pending_node(node: Node, inputs: list[SymbolicNode]) -> SymbolicNode:
    params, types = node.params, tuple([x.type for x in inputs])
    if node.op is index:
        params = _symbolic_slice(node, inputs[0].node.type, types[0].shape)
    return SymbolicNode(node, _infer_type(node, types, params), params)


def _leaf(node: Node, lengths: SymbolicLengths) -> SymbolicNode:
    axes = zip(range(node.type.ndim, 0, -1), node.type.shape, strict=True)
    shape = tuple([lengths.get(at, lengths.get(at[1], at[1])) for at in axes])
    if not node.is_scalar:
        _refuse_layout(node)
    return SymbolicNode(node, _symbolic_type(node, shape), node.params)


def _symbolic_type(node: Node, shape: Shape) -> SymbolicType:
    type_ = node.type
    return SymbolicType(shape, type_.dtype, type_.device, node.is_scalar, structure=type_.structure)


def _refuse_layout(node: Node) -> None:
    """Refuse leaves that are not in row-major order: other strides have no formulas."""
    value = node.value()
    if value is None or value.strides or node.value(1) is not None:
        raise NotSymbolic


WORDS_PER_AXIS = 4
"""Numbers per axis of a slice, as native code encodes it (`native/ir/index_map.cpp`)."""


def _symbolic_slice(node: Node, array: Type, lengths: Shape) -> Slice:
    """The slice of an index, as formulas of the lengths of its operand."""
    access, shape = node.params
    words = node.slice_key(array)
    symbolic_access: list[AxisMap] = []
    symbolic_shape = [*shape]
    for number, ((axis, step, _), length) in enumerate(zip(access, lengths, strict=True)):
        kind, begin, _, extent = words[WORDS_PER_AXIS * number :][:WORDS_PER_AXIS]
        start = length - begin if kind & 1 else begin
        symbolic_access.append((axis, step, start))
        if axis is not None:
            symbolic_shape[axis] = _symbolic_length(length, start, step, kind >> 1, extent)
    starts = [example_value(start) for *_, start in symbolic_access]
    if starts != [start for *_, start in access] or values_of(symbolic_shape) != shape:
        raise NotSymbolic
    return tuple(symbolic_access), tuple(symbolic_shape)


def _symbolic_length(length: int, start: int, step: int, kind: int, number: int) -> int:
    """The length of a slice: all that remains, all but a number, or a number."""
    available = length - start if step > 0 else start + 1
    return (-(-available // abs(step)), available - number, number)[kind]


def _infer_type(node: Node, types: tuple[SymbolicType, ...], params: Params) -> SymbolicType:
    op: Any = node.op
    if not isinstance(op, Op) or not types or op.semantics.opaque or len(node.types) > 1:
        raise NotSymbolic
    try:
        results, operands = op.semantics.rule(types, *params)
    except Exception:  # noqa: BLE001  # the rule of a user's operation may need ints
        raise NotSymbolic from None
    ((shape, dtype),) = results
    if dtype != node.type.dtype or operands != node.operands:
        raise NotSymbolic
    if values_of(shape) != node.type.shape:
        raise NotSymbolic
    is_plain_view = op.semantics.kind is Kind.VIEW and op is not index and not op.lowering.joins
    if is_plain_view and not _permutes(op, types[0].shape, params):
        raise NotSymbolic
    return _symbolic_type(node, shape)


def is_length(number: int) -> bool:
    """Whether a length is 0, 1 or the length of a leaf."""
    return number.is_length if is_size(number) else number in (0, 1)


def compare_lengths(lengths: Iterable[int]) -> None:
    """Record which lengths are equal, and which are 0 or 1. Of leaves the shape signature has this;
    of others it becomes a guard. Rewrite rules may distinguish shapes by it.
    """
    distinct: list[int] = [0, 1]
    for length in sorted(lengths, key=is_length, reverse=True):
        if not any(length == known_length for known_length in distinct):
            distinct.append(length)


def _permutes(op: Op[...], shape: Shape, params: Params) -> bool:
    """Whether a view only permutes axes; some may have length 1."""
    return op.is_affine_view and is_permutation(op.reads(shape, params), len(shape))


def is_symbolic(graph: Graph) -> bool:
    """Whether lengths of a graph may be SymInts."""
    return any(isinstance(node, SymbolicNode) for node in graph.nodes[:1])


def refuse_items(schedule: Schedule) -> None:
    """Refuse a schedule with items whose plan may not hold for other lengths: calls other than
    products, and products with a program for their lengths.
    """
    for number, item in enumerate(schedule.items):
        choice = schedule.products.get(number)
        if item.kind not in SYMBOLIC_KINDS and (choice is None or choice.routine == "small"):
            raise NotSymbolic


__all__ = [
    "SymbolicLengths",
    "SymbolicNode",
    "SymbolicType",
    "compare_lengths",
    "is_symbolic",
    "refuse_items",
    "symbolic_node",
    "with_symbolic_lengths",
]
