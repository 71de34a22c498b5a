"""The stages, read downward: expression -> optimised -> planned -> rendered -> executed.

Takes Arrays, hands on the same Arrays with their values computed. Planned and rendered are the
device's own: the reference has neither, and computes what was written, unchanged by any rule.

>>> import tenfold as tn
>>> x = tn.asarray([1.0, 2.0]) * 1
>>> expression([x]).outputs
(2,)
>>> print(optimised(expression([x]))[0])
%0 = leaf float64[2]
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence

from tenfold import _native
from tenfold._native import Array, Node, Value
from tenfold.devices import forks
from tenfold.devices.device import DEVICES
from tenfold.devices.timeline import debug
from tenfold.ir.graph import Graph
from tenfold.ir.rewrite import Report
from tenfold.plan.plan import key_of
from tenfold.rules import active
from tenfold.rules.partial import part_of
from tenfold.settings import get

MOST_NODES = 4096
"""Nodes up to which a graph is rewritten; a longer one is computed as it was written."""
MOST_QUIET = 4096
"""Structures known to be left alone by every rule that are remembered."""


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
    if not DEVICES[pending[0].type.device].rewrites:
        return _compute_parts(pending)
    graph, report = optimised(Graph.of(pending))
    failure = execute(graph)
    for node, position in report.replaced:
        _hand_over(graph.nodes[position], node)
    return failure


def _compute_parts(pending: Sequence[Node]) -> Exception | None:
    """Compute as written, but of what is read in part for the first time that part only."""
    parts = [part_of(node) or node for node in pending]
    failure = execute(Graph.of(parts))
    for node, part in zip(pending, parts, strict=True):
        if part != node:
            _hand_over(part, node)
    return failure


def _hand_over(source: Node, target: Node) -> None:
    """Give a node the values of the one that was computed in its stead."""
    values: list[Value] = []
    while (value := source.value(len(values))) is not None:
        values.append(value)
    if values and target.pending:
        target.publish(values)


def expression(arrays: Sequence[Array]) -> Graph:
    """Stage one: the nodes below some arrays, as they were written."""
    return Graph.of([_native.node_of(array) for array in arrays])


# The lock protects the keys of the structures that no rule changes.
_lock = forks.lock()
_quiet: OrderedDict[tuple[object, ...], None] = OrderedDict()


def optimised(graph: Graph) -> tuple[Graph, Report]:
    """Stage two: the graph that the rules in force leave, and what they did."""
    if len(graph) > MOST_NODES or not get("optimise") or get("check_nans"):
        return graph, Report()
    views = any(graph.nodes[output].op.view for output in graph.outputs if graph.nodes[output].op)
    if views:  # a part that is read once more is computed otherwise
        return active.optimised(graph)
    key = (active.version(), *map(_scalar_key, graph.nodes), *key_of(graph))
    with _lock:
        if key in _quiet:
            _quiet.move_to_end(key)
            return graph, Report()
    after, report = active.optimised(graph)
    if after is graph:
        with _lock:
            _quiet[key] = None
            if len(_quiet) > MOST_QUIET:
                _quiet.popitem(last=False)
    return after, report


def _scalar_key(node: Node) -> object:
    """What a rule may see of a scalar: its value, -0.0 apart from 0.0."""
    if not node.is_scalar:
        return None
    value = node.scalar
    return type(value), value, math.copysign(1, value.real) if value == 0 else 1


def execute(graph: Graph) -> Exception | None:
    """Last stage: have the graph's device compute it; return the first failure."""
    device = graph.nodes[graph.outputs[0]].type.device
    debug(1, f"device {device} computes {len(graph)} nodes")
    modes = _native.take_float_modes()  # a foreign library may have set others
    try:
        return DEVICES[device].run(graph)
    finally:
        _native.give_float_modes(modes)


def trim() -> int:
    """Give back memory that is kept for reuse and forget what can be made again.

    Returns the bytes given back to the system.

    >>> import tenfold as tn
    >>> tn.trim() >= 0
    True
    """
    with _lock:
        _quiet.clear()
    for device in DEVICES.values():
        device.forget()
    return _native.trim()
