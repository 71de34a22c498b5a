"""The stages, read downward: expression -> executed. (Optimised, planned and rendered come
between.)

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
from tenfold.devices.timeline import debug
from tenfold.ir.graph import Graph
from tenfold.rules.partial import part_of


def evaluate(arrays: Sequence[Array]) -> Exception | None:
    """Compute arrays together: what they share is computed once. Return the first failure.

    What does not depend on a failure is computed all the same.
    """
    return compute([_native.node_of(array) for array in arrays])


def compute(nodes: Sequence[Node]) -> Exception | None:
    """As evaluate, for nodes: what an Array named when they were taken, rebound since or not."""
    pending = [node for node in nodes if node.pending]
    if not pending:
        return None
    parts = [part_of(node) or node for node in pending]
    failure = execute(Graph.of(parts))
    for node, part in zip(pending, parts, strict=True):
        value = part.value()
        if part != node and value is not None:
            node.publish([value])
    return failure


def expression(arrays: Sequence[Array]) -> Graph:
    """Stage one: the nodes below some arrays, as they were written."""
    return Graph.of([_native.node_of(array) for array in arrays])


def execute(graph: Graph) -> Exception | None:
    """Last stage: have the graph's device compute it; return the first failure."""
    device = graph.nodes[graph.outputs[0]].type.device
    debug(1, f"device {device} computes {len(graph)} nodes")
    return DEVICES[device].run(graph)


def trim() -> int:
    """Give back memory that is kept for reuse and forget what can be made again.

    Returns the bytes given back to the system.

    >>> import tenfold as tn
    >>> tn.trim() >= 0
    True
    """
    return _native.trim()
