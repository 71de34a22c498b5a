"""Node view: a node of a rewrite graph, for the guards and replacements of rules.

Input: a rewrite graph (`rewrite/rewrite_graph.py`) and a position. Output: the properties of the
node there.

>>> import tenfold as tn
>>> from tenfold.core.graph import Graph
>>> from tenfold.rewrite.rewrite_graph import operators_of
>>> graph = Graph.of([tn._native.node_of(tn.asarray([1.0]) + 1)])
>>> term = NodeView(RewriteGraph(graph, operators_of(graph)), 2)
>>> term.op, [operand.is_scalar for operand in term.inputs], len(list(walk_inputs(term)))
(<op add>, [False, True], 3)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Node, Type
from tenfold.core.op import Op, Params
from tenfold.core.pattern import Number
from tenfold.core.shape_rules import Shape
from tenfold.core.structure import Structure
from tenfold.rewrite.rewrite_graph import SCALAR_OP, RewriteGraph


class NodeView:
    """A node of a rewrite graph, for a rule's guard and replacement."""

    __slots__ = ("at", "graph")

    def __init__(self, graph: RewriteGraph, at: int) -> None:
        self.graph, self.at = graph, at

    @property
    def node(self) -> Node:
        """The node; some of its inputs may have been replaced."""
        self.graph.read_scalars = self.graph.read_scalars or self.is_scalar
        self.graph.read_shapes = True
        return self.graph.nodes[self.at]

    @property
    def type(self) -> Type:
        """Its Type: shape, dtype, device; without the structure."""
        self.graph.read_shapes = True
        return self.graph.nodes[self.at].type.with_structure(0)

    @property
    def has_structure(self) -> bool:
        """Whether something is known of its matrices."""
        return bool(self.graph.nodes[self.at].type.structure)

    @property
    def structure(self) -> Structure:
        """What is known of its matrices."""
        return Structure(self.graph.nodes[self.at].type.structure)

    @property
    def shape(self) -> Shape:
        """The lengths of its axes."""
        return self.graph.shape(self.at)

    @property
    def dtype(self) -> np.dtype:
        """Its element type."""
        return self.graph.nodes[self.at].type.dtype

    @property
    def size(self) -> int:
        """The number of its elements."""
        return self.type.size

    @property
    def ndim(self) -> int:
        """The number of its axes."""
        return len(self.graph.nodes[self.at].type.shape)

    @property
    def operands(self) -> tuple[np.dtype, ...]:
        """The dtypes in which its inputs enter the operation."""
        return self.graph.nodes[self.at].operands

    def same_type(self, other: NodeView) -> bool:
        """Whether two nodes have one Type; this reads no lengths, only their equality."""
        first, second = (self.graph.nodes[at].type for at in (self.at, other.at))
        return first.with_structure(0) == second.with_structure(0)

    def reduces_size(self) -> bool:
        """Whether a reduction has fewer elements than its operand."""
        nodes = self.graph.nodes
        (source,) = self.graph.refresh(self.at)
        return nodes[self.at].type.size < nodes[source].type.size

    @property
    def op(self) -> Op[...] | None:
        """Its operation; None for a computed value and for a Python scalar."""
        op = self.graph.ops[self.at]
        return op if isinstance(op, Op) else None

    @property
    def params(self) -> Params:
        """The parameters of its operation."""
        node = self.graph.nodes[self.at]
        self.graph.read_shapes = self.graph.read_shapes or node.is_slice
        return node.params

    @property
    def inputs(self) -> tuple[NodeView, ...]:
        """The operands of its operation."""
        graph = self.graph
        return tuple([NodeView(graph, at) for at in graph.refresh(self.at)])

    @property
    def input_count(self) -> int:
        """The number of its inputs."""
        return len(self.graph.inputs[self.at])

    @property
    def is_scalar(self) -> bool:
        """Whether it is a Python scalar."""
        return self.graph.ops[self.at] is SCALAR_OP

    @property
    def scalar(self) -> Number:
        """The value of a Python scalar."""
        return self.graph.scalar(self.at)

    @property
    def is_runtime_scalar(self) -> bool:
        """Whether it is a Python scalar that is not part of plan keys.

        A rule that reads its value makes the plan specific to that value.
        """
        return self.is_scalar and not _native.is_special_value(self.graph.nodes[self.at].scalar)

    @property
    def single_reader(self) -> bool:
        """Whether it has a single reader, so that replacing it duplicates no work."""
        return self.graph.single_reader(self.at)

    @property
    def single_use(self) -> bool:
        """Whether it is read by one operand of one node only."""
        return self.single_reader and self.graph.uses[self.at] == 1

    @property
    def live_out(self) -> bool:
        """Whether a live reference outside the graph needs its whole value (live-out)."""
        return self.graph.live_out[self.at] and self.at not in self.graph.splittable

    @property
    def array(self) -> Any:
        """The argument for calls of Tenfold's functions: an Array, or a number for a scalar."""
        self.graph.read_shapes = True
        return self.graph.operand_value(self.at)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeView) and self.at == other.at

    def __hash__(self) -> int:
        return self.at


def walk_inputs(term: NodeView) -> Iterator[NodeView]:
    """Yield a term and its transitive inputs, each once; no recursion."""
    visited = {term}
    stack = [term]
    while stack:
        current = stack.pop()
        yield current
        unvisited = [operand for operand in current.inputs if operand not in visited]
        visited.update(unvisited)
        stack.extend(unvisited)
