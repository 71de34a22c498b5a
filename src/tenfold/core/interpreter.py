"""Graph interpreter: the walk that computes something from each node of a graph.

Takes a graph, an environment with the results of some nodes (parameters, leaves), and a rule that
computes the result of any other node from those of its inputs. Returns the results of the outputs.
The walk is iterative and linear. A result is dropped after its last reader, so that a rule on
values holds only live ones. The reverse walk, that of derivatives, is native
(`native/python/derivative_walk.cpp`).

>>> import tenfold as tn
>>> graph = Graph.of([_native.node_of(tn.asarray([1.0, 2.0]) + 1 - 2)])
>>> interpret(graph, {}, lambda node, depths: max(depths, default=-1) + 1)
[2]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, TypeVar

from tenfold import _native
from tenfold._native import Node, Scope
from tenfold.core.graph import Graph

Result = TypeVar("Result")
NodeRule = Callable[[Node, list[Result]], Result]
"""From a node and the results of its inputs to its result: for a node with several results that of
all of them; a part, a node without an op, selects one."""
ORIGIN: ContextVar[tuple[str, int] | None] = ContextVar("tenfold_origin", default=None)
"""The user's line that new nodes get, while they are made from another node."""


def interpret(
    graph: Graph, environment: Mapping[Node, Result], rule: NodeRule[Result]
) -> list[Result]:
    """Return the results of the outputs of a graph."""
    results: list[Any] = []
    remaining_uses = list(graph.uses)
    for output in graph.outputs:
        remaining_uses[output] += 1
    for node, inputs in zip(graph.nodes, graph.inputs, strict=True):
        operands = list(map(results.__getitem__, inputs))
        for i in inputs:
            remaining_uses[i] -= 1
            if not remaining_uses[i]:
                results[i] = None
        results.append(environment[node] if node in environment else rule(node, operands))
    return list(map(results.__getitem__, graph.outputs))


def rebuild(node: Node, operands: list[Any]) -> Any:
    """Make a node again on other operands: the rule of substitution.

    A result is an Array, a Python number, or for several results the tuple of them.
    """
    op = node.op
    if not operands and not node.pending:
        return node.scalar if node.is_scalar else _native.array_of(node)
    if op is None:
        return operands[0][node.params[0]]
    return _native.apply(op.id, tuple(operands), node.params)


def rebuild_with_origin(node: Node, operands: list[Any]) -> Any:
    """As `rebuild`; the new node has the user's line of the old one."""
    with Scope((ORIGIN, node.origin or ORIGIN.get())):
        return rebuild(node, operands)


__all__ = [
    "ORIGIN",
    "NodeRule",
    "interpret",
    "rebuild",
    "rebuild_with_origin",
]
