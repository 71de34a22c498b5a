"""Compilation pipeline: expression -> optimised -> planned -> rendered -> executed.

Takes Arrays, hands on the same Arrays with their values computed. The stages planned and rendered
are the device's own. The reference has neither, and computes the graph as it was written.

>>> import tenfold as tn
>>> x = tn.asarray([1.0, 2.0]) * 1
>>> expression([x]).outputs
(2,)
>>> print(optimised(expression([x]))[0])
%0 = leaf float64[2]
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold import _native, caches, settings
from tenfold._native import Array, Executable, Node, Value
from tenfold.core.bitwise_equal import different
from tenfold.core.graph import Graph
from tenfold.errors import RunError
from tenfold.rewrite import registry
from tenfold.rewrite.driver import RewriteReport
from tenfold.rewrite.inline import is_call
from tenfold.rewrite.rules.partial_expressions import partial_expression
from tenfold.runtime import timeline
from tenfold.runtime.device import DEVICES, OptimisedGraph
from tenfold.runtime.timeline import debug
from tenfold.settings import get
from tenfold.storage import dense
from tenfold.storage.rw_lock import EXTERNAL_BUFFER_LOCK

MAX_REWRITE_NODES = 4096
"""Nodes up to which a graph is rewritten; a longer one is computed as it was written."""


def evaluate(arrays: Sequence[Array], *, planned: bool = False) -> Exception | None:
    """Compute arrays together: what they share is computed once. Return the first failure.

    What does not depend on a failure is computed all the same. A small graph that was seen seldom
    is computed node by node, unless it is to be `planned`.
    """
    return compute([_native.node_of(array) for array in arrays], planned=planned)


def compute(nodes: Sequence[Node], *, planned: bool = False) -> Exception | None:
    """As evaluate, for nodes: what an Array named when they were taken, rebound since or not."""
    if not EXTERNAL_BUFFER_LOCK.enabled:
        return _compute_nodes(nodes, planned)
    with EXTERNAL_BUFFER_LOCK.read_lock():
        return _compute_nodes(nodes, planned)


def _compute_nodes(nodes: Sequence[Node], planned: bool) -> Exception | None:
    """Compute nodes, by a plan that is known if there is one."""
    if get("verify"):
        return _compute_verified(nodes, planned)
    return _compute_by_plan(nodes, planned)


def _compute_verified(nodes: Sequence[Node], planned: bool) -> Exception | None:
    """Shadow mode: compute nodes as without `verify`, and from a plan that is made of the nodes at
    hand. Batches are compared with their members instead.
    """
    pending = [node for node in nodes if node.pending]
    if not pending or _has_batches(pending):
        return _compute_by_plan(nodes, planned)
    shadow = shadow_compute(pending)
    with settings.override(verify=False):
        failure = _compute_by_plan(nodes, planned)
    if failure is not None or shadow is None:
        return failure
    return _shadow_mismatch(pending, shadow)


def _has_batches(pending: Sequence[Node]) -> bool:
    """Whether nodes of a graph may be computed together with others that are alike."""
    graph = Graph.of(pending)
    return len(graph) > _native.LONG or any(is_call(node.op) for node in graph.nodes)


def shadow_compute(pending: Sequence[Node]) -> list[tuple[Value, ...]] | None:
    """Compute nodes by a plan of their own, without any cache, and publish nothing; None where that
    must not be done twice (users' functions), or fails. Nothing is written in place.

    The graph is let go: while it is there its nodes are held, and the next one has another key.
    """
    graph = Graph.of(pending)
    operations = [node.op for node in graph.nodes if node.op is not None]
    if any(op.opaque or not op.pure for op in operations):
        return None
    return DEVICES[graph.nodes[graph.outputs[0]].type.device].anew(optimise(graph)[0])


def _shadow_mismatch(nodes: Sequence[Node], shadow: Sequence[tuple[Value, ...]]) -> RunError | None:
    """Say which node has other bits than a plan of its own gives it."""
    for node, values in zip(nodes, shadow, strict=True):
        for number, wanted in enumerate(values):
            made = node.value(number)
            if made is None or not different(dense.export(made), dense.export(wanted)).any():
                continue
            rule = f"a cached plan gives {dense.export(made)}, a new one {dense.export(wanted)}"
            remedy = "report this: until it is fixed, tn.trim() before the second run"
            return RunError(node.name, rule, remedy=remedy)
    return None


def _compute_by_plan(nodes: Sequence[Node], planned: bool) -> Exception | None:
    options = options_key()
    try:
        if _replay(nodes, options, planned):
            return None
    except RunError as failure:  # under verify=True: a group is not what its members are
        return failure
    pending = [node for node in nodes if node.pending]
    if not pending:  # another thread has computed them meanwhile
        return None
    if not DEVICES[pending[0].type.device].rewrites:
        return _compute_parts(pending)
    made = _bind_plan(pending, options)
    if made is not None and _replay(pending, options, True, made):
        return None
    pending = [node for node in nodes if node.pending]
    return _compute_by_steps(pending) if pending else None


def _compute_by_steps(pending: Sequence[Node]) -> Exception | None:
    """Compute what cannot be replayed, and what a failed replay has left."""
    graph, report = optimise(Graph.of(pending))
    for node in report.parts:
        node.read_in_part()
    failure = execute(graph)
    for node, position in report.replaced:
        _transfer_values(graph.nodes[position], node)
    return failure


def _replay(
    nodes: Sequence[Node], options: Sequence[int], planned: bool, made: Executable | None = None
) -> bool:
    """Compute nodes by a plan that is known, or was just made, or without one if that may be; False
    where neither goes, or a step failed.
    """
    if not timeline.watched():
        return _native.replay(nodes, options, None, planned, made)
    events: list[tuple[str, str, int, int]] = []
    done = _native.replay(nodes, options, events, planned, made)
    timeline.record_all(events)
    return done


def _bind_plan(pending: Sequence[Node], options: Sequence[int]) -> Executable | None:
    """Make a plan known, and return it; None for what must be computed step by step.

    Nothing here outlives the call: what only the nodes hold can be written over in a replay.
    """
    written = Graph.of(pending, options)
    graph, report = optimise(written)
    return DEVICES[pending[0].type.device].bind(graph, OptimisedGraph(written, report))


def plan_of(arrays: Sequence[Array]) -> Executable | None:
    """Return the plan of pending arrays, without computing them, of programs that last."""
    with settings.override(tier="1" if get("tier") == "auto" else get("tier")):
        return _bind_plan([_native.node_of(array) for array in arrays], options_key())


def _compute_parts(pending: Sequence[Node]) -> Exception | None:
    """Compute as written, but of what is read in part for the first time that part only."""
    parts = [partial_expression(node) or node for node in pending]
    failure = execute(Graph.of(parts))
    for node, part in zip(pending, parts, strict=True):
        if part != node:
            _transfer_values(part, node)
    return failure


def _transfer_values(source: Node, target: Node) -> None:
    """Give a node the values of the one that was computed in its stead."""
    values: list[Value] = []
    while (value := source.value(len(values))) is not None:
        values.append(value)
    if values and target.pending:
        target.publish(values)


def graph_of(arrays: Sequence[Array]) -> Graph:
    """Stage one: the nodes below some arrays, as they were written."""
    return Graph.of([_native.node_of(array) for array in arrays], options_key())


def options_key() -> tuple[int, ...]:
    """Return what stands for the options and rules in force in the keys of plans."""
    return (settings.fingerprint(), *registry.fingerprint())


def optimise(graph: Graph) -> tuple[Graph, RewriteReport]:
    """Stage two: the graph that the rules in force leave, and what they did."""
    if len(graph) > MAX_REWRITE_NODES or get("check_nans"):
        return graph, RewriteReport()
    return registry.optimise_graph(graph)


def execute(graph: Graph) -> Exception | None:
    """Last stage: have the graph's device compute it step by step; return the first failure."""
    device = graph.nodes[graph.outputs[0]].type.device
    debug(1, f"device {device} computes {len(graph)} nodes")
    modes = _native.take_float_modes()  # a foreign library may have set others
    try:
        return DEVICES[device].run(graph)
    finally:
        _native.give_float_modes(modes)


def trim() -> int:
    """Give back memory that is kept for reuse and forget what can be made again: all caches, that
    of compiled kernels too, but for what is on disk.

    Returns the bytes given back to the system, without those of what was forgotten. `tenfold
    doctor` lists the caches.

    >>> import tenfold as tn
    >>> tn.trim() >= 0
    True
    """
    return caches.clear_all()
