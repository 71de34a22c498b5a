"""The stages, read downward: expression -> executed. (Optimised, planned and rendered come between.)

Takes Arrays, hands on the same Arrays with their values computed.

>>> import tenfold as tn
>>> x = tn.asarray([1.0, 2.0]) + 1
>>> expression([x]).outputs
(2,)
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold import _native
from tenfold._native import Array, Node
from tenfold.devices.device import DEVICES
from tenfold.ir.graph import Graph


def evaluate(arrays: Sequence[Array]) -> None:
    """Compute arrays together: what they share is computed once."""
    pending = [node for node in map(_native.node_of, arrays) if node.pending]
    if pending:
        execute(expression_of(pending))


def expression(arrays: Sequence[Array]) -> Graph:
    """Stage one: the nodes below some arrays, as they were written."""
    return expression_of([_native.node_of(array) for array in arrays])


def expression_of(nodes: Sequence[Node]) -> Graph:
    """Stage one, from nodes."""
    return Graph.of(nodes)


def execute(graph: Graph) -> None:
    """Last stage: have the graph's device compute it."""
    device = graph.nodes[graph.outputs[0]].type.device
    DEVICES[device].run(graph)
