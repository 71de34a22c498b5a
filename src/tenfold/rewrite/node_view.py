"""Node view: a node of a graph that is rewritten, as guards and replacements of rules see it.

Takes the columns of a graph (`rewrite/rewrite_graph.py`) and a position, hands on the facts known
of the node there.

>>> import tenfold as tn
>>> from tenfold.core.graph import Graph
>>> from tenfold.rewrite.rewrite_graph import markers
>>> graph = Graph.of([tn._native.node_of(tn.asarray([1.0]) + 1)])
>>> term = NodeView(RewriteGraph(graph, markers(graph)), 2)
>>> term.op, [each.is_scalar for each in term.inputs], len(list(below(term)))
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
from tenfold.rewrite.rewrite_graph import SCALAR, RewriteGraph


class NodeView:
    """A node of a graph that is being rewritten, as a rule's guard and replacement see it."""

    __slots__ = ("at", "work")

    def __init__(self, work: RewriteGraph, at: int) -> None:
        self.work, self.at = work, at

    @property
    def node(self) -> Node:
        """The node; its inputs may have been replaced since it was made."""
        self.work.looked = self.work.looked or self.is_scalar
        self.work.measured = True
        return self.work.nodes[self.at]

    @property
    def type(self) -> Type:
        """Its Type: shape, dtype, device."""
        self.work.measured = True
        return self.work.nodes[self.at].type

    @property
    def shape(self) -> Shape:
        """The lengths of its axes."""
        self.work.measured = True
        return self.work.nodes[self.at].type.shape

    @property
    def dtype(self) -> np.dtype:
        """Its element type."""
        return self.work.nodes[self.at].type.dtype

    @property
    def size(self) -> int:
        """The number of its elements."""
        return self.type.size

    @property
    def ndim(self) -> int:
        """The number of its axes."""
        return len(self.work.nodes[self.at].type.shape)

    @property
    def operands(self) -> tuple[np.dtype, ...]:
        """The dtypes in which its inputs enter the operation."""
        return self.work.nodes[self.at].operands

    def same_type(self, other: NodeView) -> bool:
        """Whether its Type is that of another: no length is told, but which are equal."""
        return self.work.nodes[self.at].type == self.work.nodes[other.at].type

    def folds_some(self) -> bool:
        """Whether a reduction has fewer elements than what it reads: some axis of it is longer than
        1, and none is empty.
        """
        nodes = self.work.nodes
        (source,) = self.work.refresh(self.at)
        return nodes[self.at].type.size < nodes[source].type.size

    @property
    def op(self) -> Op[...] | None:
        """Its operation; None for a value that is there, and for a Python scalar."""
        op = self.work.ops[self.at]
        return op if isinstance(op, Op) else None

    @property
    def params(self) -> Params:
        """The parameters of its operation."""
        node = self.work.nodes[self.at]
        self.work.measured = self.work.measured or node.takes_part
        return node.params

    @property
    def inputs(self) -> tuple[NodeView, ...]:
        """What its operation reads."""
        work = self.work
        return tuple([NodeView(work, at) for at in work.refresh(self.at)])

    @property
    def width(self) -> int:
        """How many inputs it has."""
        return len(self.work.inputs[self.at])

    @property
    def is_scalar(self) -> bool:
        """Whether it is a Python scalar."""
        return self.work.ops[self.at] is SCALAR

    @property
    def scalar(self) -> Number:
        """The number that a Python scalar is."""
        return self.work.scalar(self.at)

    @property
    def is_varied(self) -> bool:
        """Whether it is a Python scalar that the key of a plan does not hold: what looks at it has
        each number planned anew.
        """
        return self.is_scalar and not _native.is_notable(self.work.nodes[self.at].scalar)

    @property
    def alone(self) -> bool:
        """Whether only the matched node reads it: then computing it otherwise costs nothing."""
        return self.work.alone(self.at)

    @property
    def read_once(self) -> bool:
        """As alone, and by one operand of one node."""
        return self.alone and self.work.uses[self.at] == 1

    @property
    def seen(self) -> bool:
        """Whether a live reference outside the graph needs its whole value (live-out)."""
        return self.work.live_out[self.at] and self.at not in self.work.opened

    @property
    def array(self) -> Any:
        """What it is in a call of tenfold's functions: an Array, or a number for a scalar."""
        self.work.measured = True
        return self.work.given(self.at)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeView) and self.at == other.at

    def __hash__(self) -> int:
        return self.at


def walk_inputs(term: NodeView) -> Iterator[NodeView]:
    """Yield a term and all that it is made of, each once; no recursion."""
    seen = {term}
    stack = [term]
    while stack:
        at = stack.pop()
        yield at
        new = [each for each in at.inputs if each not in seen]
        seen.update(new)
        stack.extend(new)
