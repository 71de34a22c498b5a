"""Inlining: replaces calls of traced functions by the operations of their bodies.

Input: a rewrite graph after the rules, and the function that rewrites a body; the graph is changed
in place. A body is rewritten by itself, then inlined. So rules apply inside a function as anywhere,
and do not cross the boundary of a call.
"""

from __future__ import annotations

from collections.abc import Callable

from tenfold import _native
from tenfold._native import Array, Scope
from tenfold.core.graph import Graph
from tenfold.core.interpreter import ORIGIN, interpret
from tenfold.core.op import Op
from tenfold.core.subgraph import Subgraph
from tenfold.rewrite.rewrite_graph import Operator, RewriteGraph

RULE_NAME = "inline"
"""The name of an inlining in the report."""


def is_call(op: Operator) -> bool:
    """Whether a node is a call of a traced function."""
    return isinstance(op, Op) and op.semantics.body is not None


BodyRewrite = Callable[[Subgraph, int], Graph]
"""Returns the rewritten graph of a body, from it and the position of its call."""


def inline(graph: RewriteGraph, rewrite_body: BodyRewrite) -> list[tuple[int, str]]:
    """Replace each call, and each call in its body; return the position and text of each."""
    inlined: list[tuple[int, str]] = []
    bodies: dict[Subgraph, Graph] = {}
    at = 0
    while at < len(graph.nodes):  # new nodes are appended
        if is_call(graph.ops[at]) and graph.is_live(at) and not _is_output(graph, at):
            position, body = graph.original_node(at), _body_of(graph, at)
            inlined.append((position, graph.text(at, 1)))
            if body not in bodies:
                bodies[body] = rewrite_body(body, position)
            _inline_call(graph, at, bodies[body])
        at += 1
    return inlined


def _is_output(graph: RewriteGraph, at: int) -> bool:
    """Whether a call with several results is an output: then it is not inlined."""
    return len(graph.nodes[at].types) > 1 and at in map(graph.find, graph.outputs)


def _body_of(graph: RewriteGraph, at: int) -> Subgraph:
    op = graph.ops[at]
    assert isinstance(op, Op), "a call has an op"
    assert op.semantics.body is not None, "with a body"
    return op.semantics.body


def _inline_call(graph: RewriteGraph, at: int, rewritten: Graph) -> None:
    node, body = graph.nodes[at], _body_of(graph, at)
    # a scalar becomes an array, so that the plan does not depend on its value
    arguments = [_native.array_of(graph.nodes[i]) for i in graph.refresh(at)]
    with Scope((ORIGIN, node.origin)):  # a failure names the line of the call
        environment = dict(zip(body.inputs, arguments, strict=True))
        nodes = map(_native.node_of, interpret(rewritten, environment, body.rule))
        results = tuple(map(_native.array_of, nodes))
    result_nodes = list(graph.readers(at)) if len(node.types) > 1 else []
    if not result_nodes:
        _replace_node(graph, at, results[0])
    for result_node in result_nodes:
        _replace_node(graph, result_node, results[graph.nodes[result_node].params[0]])


def _replace_node(graph: RewriteGraph, at: int, result: Array) -> None:
    graph.root = at
    position = graph.adopt(result)
    if position != at:
        graph.replace(at, position)
    graph.root = -1
