"""Graph chunks: splits a long graph into short ones, so that equal chunks share an Executable.

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
