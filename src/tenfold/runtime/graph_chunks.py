"""Graph chunks: splits a long graph into short ones, and one of several devices at the moves.

Takes a Graph, hands on the output nodes of each chunk: those that are live-out, or that a later
chunk reads. The outputs of a chunk are computed before those of the next one, which reads their
values.

>>> import tenfold as tn
>>> from tenfold import _native
>>> x = tn.asarray([1.0])
>>> for _ in range(5):
...     x = x + 1
>>> [[node.depth for node in outputs] for outputs in chunks(Graph.of([_native.node_of(x)]), 4)]
[[1], [3], [5]]
"""

from __future__ import annotations

from tenfold._native import Node
from tenfold.core.graph import Graph
from tenfold.core.op import Op
from tenfold.rewrite.inline import is_call

MAX_WHOLE_NODES, CHUNK_NODES = 1024, 256
"""The most nodes of a graph that is planned as a whole, and the nodes per chunk of a longer one."""


def _moves(node: Node) -> bool:
    return isinstance(node.op, Op) and node.op.semantics.moves


def is_divided(graph: Graph) -> bool:
    """Whether a graph is computed in parts, since devices read results of one another."""
    facts = {
        (node.type.device, isinstance(op := node.op, Op) and op.semantics.moves)
        for node in graph.nodes
        if node.pending
    }
    if len(facts) < 2 and True not in dict(facts).values():
        return False  # one device, and no move
    pending = [node for node in graph.nodes if node.pending]
    if not any(map(_moves, pending)):
        return True  # several devices
    return len(device_parts(graph)) > 1 or any(
        _moves(node) and is_call(node.op) for node in pending
    )


def device_parts(graph: Graph) -> list[list[Node]]:
    """Return the pending outputs of each part of a graph that is computed on one device, in order.

    A part reads the values of earlier ones. Copies to a device are parts of their own.
    """
    parts: list[tuple[int, str]] = []
    is_output = [*graph.live_out]
    for node, inputs in zip(graph.nodes, graph.inputs, strict=True):
        stage = 0
        for i in inputs:
            if graph.nodes[i].pending:
                stage = max(stage, parts[i][0] + (_moves(node) or _moves(graph.nodes[i])))
        parts.append((stage, node.type.device))
        for i in inputs:
            is_output[i] |= parts[i] != parts[-1]
    outputs: dict[tuple[int, str], list[Node]] = {}
    for node, part, read_later in zip(graph.nodes, parts, is_output, strict=True):
        if read_later and node.pending:
            outputs.setdefault(part, []).append(node)
    return [outputs[part] for part in sorted(outputs)]


def chunk_length(nodes: int) -> int:
    """Return the most nodes of a chunk of a graph with so many nodes: all, if it is not split."""
    return CHUNK_NODES if nodes > MAX_WHOLE_NODES else nodes


def chunks(graph: Graph, length: int) -> list[list[Node]]:
    """Return the pending outputs of each chunk of `length` nodes, in order."""
    last_reader = [0] * len(graph)
    for position, inputs in enumerate(graph.inputs):
        for i in inputs:
            last_reader[i] = position
    outputs: list[list[Node]] = [[] for _ in range(0, len(graph), length)]
    for position, node in enumerate(graph.nodes):
        number = position // length
        is_output = graph.live_out[position] or last_reader[position] // length > number
        if is_output and node.pending:
            outputs[number].append(node)
    return [nodes for nodes in outputs if nodes]
