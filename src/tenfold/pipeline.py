"""The stages, read downward: expression -> executed. (Optimised, planned and rendered come between.)

Takes Arrays, hands on the same Arrays with their values computed.

>>> import tenfold as tn
>>> x = tn.asarray([1.0, 2.0]) + 1
>>> expression([x]).outputs
(2,)
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from tenfold import _native
from tenfold._native import Array, Node
from tenfold.devices.device import DEVICES
from tenfold.ir.graph import Graph
from tenfold.rules.partial import part_of


def evaluate(arrays: Sequence[Array]) -> None:
    """Compute arrays together: what they share is computed once."""
    pending = [node for node in map(_native.node_of, arrays) if node.pending]
    if not pending:
        return
    parts = [part_of(node) or node for node in pending]
    execute(expression_of(parts))
    for node, part in zip(pending, parts, strict=True):
        if part != node:
            value = part.value()
            assert value is not None, "a device publishes every output"
            node.publish([value])


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


def trim() -> int:
    """Give back memory that is kept for reuse and forget what can be made again.

    Returns the bytes given back to the system.

    >>> import tenfold as tn
    >>> tn.trim() >= 0
    True
    """
    return _native.trim()


def install() -> None:
    """Prepare the process for fork: no lock of the core is held by a thread the child lacks."""
    os.register_at_fork(
        before=_native.hold_all_locks,
        after_in_parent=_native.release_all_locks,
        after_in_child=_native.release_all_locks,
    )
