"""Compilation pipeline: expression -> optimised -> planned -> rendered -> executed.

Takes Arrays and computes their values. The stages planned and rendered belong to the device. The
reference device has neither, and computes the original graph.

>>> import tenfold as tn
>>> x = tn.asarray([1.0, 2.0]) * 1
>>> graph_of([x]).outputs
(2,)
>>> print(optimise(graph_of([x]))[0])
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
"""Limit of nodes of a graph that is rewritten; a longer graph is computed unchanged."""


def evaluate(arrays: Sequence[Array], *, planned: bool = False) -> Exception | None:
    """Compute arrays together; shared subexpressions are computed once. Return the first failure.

    Results that do not depend on a failure are still computed. A small cold graph is interpreted
    node by node, unless `planned`.
    """
    return compute([_native.node_of(array) for array in arrays], planned=planned)


def compute(nodes: Sequence[Node], *, planned: bool = False) -> Exception | None:
    """As evaluate, for nodes, which do not follow a rebinding of their Arrays."""
    if not EXTERNAL_BUFFER_LOCK.enabled:
        return _compute_nodes(nodes, planned)
    with EXTERNAL_BUFFER_LOCK.read_lock():
        return _compute_nodes(nodes, planned)


def _compute_nodes(nodes: Sequence[Node], planned: bool) -> Exception | None:
    """Compute nodes, by a cached plan if there is one."""
    if get("verify"):
        return _compute_verified(nodes, planned)
    return _compute_by_plan(nodes, planned)


def _compute_verified(nodes: Sequence[Node], planned: bool) -> Exception | None:
    """Shadow mode: compute nodes by the cached plan and by a new plan, and compare the bits.

    Graphs with batches are not compared here: batches are compared with their members.
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
    """Whether nodes of a graph may be batched."""
    graph = Graph.of(pending)
    return len(graph) > _native.LONG_GRAPH_NODES or any(is_call(node.op) for node in graph.nodes)


def shadow_compute(pending: Sequence[Node]) -> list[tuple[Value, ...]] | None:
    """Compute nodes by a new plan, without any cache, in-place write or published result.

    None if users' functions would run twice, or on failure. The graph must not outlive the call:
    its references to nodes would change the key of the next graph.
    """
    graph = Graph.of(pending)
    operations = [node.op for node in graph.nodes if node.op is not None]
    if any(op.semantics.opaque or not op.semantics.pure for op in operations):
        return None
    return DEVICES[graph.nodes[graph.outputs[0]].type.device].anew(optimise(graph)[0])


def _shadow_mismatch(nodes: Sequence[Node], shadow: Sequence[tuple[Value, ...]]) -> RunError | None:
    """Return the error of the first node whose bits differ from those of a new plan."""
    for node, values in zip(nodes, shadow, strict=True):
        for index, expected in enumerate(values):
            cached = node.value(index)
            if cached is None or not different(dense.export(cached), dense.export(expected)).any():
                continue
            rule = f"a cached plan gives {dense.export(cached)}, a new one {dense.export(expected)}"
            remedy = "report this: until it is fixed, tn.trim() before the second run"
            return RunError(node.name, rule, remedy=remedy)
    return None


def _compute_by_plan(nodes: Sequence[Node], planned: bool) -> Exception | None:
    options = options_key()
    try:
        if _replay(nodes, options, planned):
            return None
    except RunError as failure:  # under verify=True: a batch differs from its members
        return failure
    pending = [node for node in nodes if node.pending]
    if not pending:  # another thread has computed them
        return None
    if not DEVICES[pending[0].type.device].rewrites:
        return _compute_parts(pending)
    executable = _bind_plan(pending, options)
    if executable is not None and _replay(pending, options, True, executable):
        return None
    pending = [node for node in nodes if node.pending]
    return _compute_by_steps(pending) if pending else None


def _compute_by_steps(pending: Sequence[Node]) -> Exception | None:
    """Compute nodes that cannot be replayed, and those that a failed replay has not computed."""
    original = Graph.of(pending)
    graph, report = optimise(original)
    for node in (*report.partial_bases, *original.regenerated):
        node.read_in_part()
    failure = execute(graph)
    for node, position in report.replaced_nodes:
        _transfer_values(graph.nodes[position], node)
    return failure


def _replay(
    nodes: Sequence[Node],
    options: Sequence[int],
    planned: bool,
    executable: Executable | None = None,
) -> bool:
    """Compute nodes by a cached plan, by `executable`, or interpreted if the graph is cold.

    False if none of these is possible, or a step failed.
    """
    if not timeline.is_recording():
        return _native.replay(nodes, options, None, planned, executable)
    events: list[tuple[str, str, int, int]] = []
    is_done = _native.replay(nodes, options, events, planned, executable)
    timeline.record_all(events)
    return is_done


def _bind_plan(pending: Sequence[Node], options: Sequence[int]) -> Executable | None:
    """Make a plan, cache it and return it; None for a graph that must be computed step by step.

    No reference may outlive the call: a replay reuses buffers that only the nodes refer to.
    """
    original = Graph.of(pending, options)
    optimised_graph, report = optimise(original)
    return DEVICES[pending[0].type.device].bind(optimised_graph, OptimisedGraph(original, report))


def plan_of(arrays: Sequence[Array]) -> Executable | None:
    """Return the plan of pending arrays, without computing them, of programs that last."""
    with settings.override(tier="1" if get("tier") == "auto" else get("tier")):
        return _bind_plan([_native.node_of(array) for array in arrays], options_key())


def _compute_parts(pending: Sequence[Node]) -> Exception | None:
    """Compute nodes unchanged; of a node first read in part, compute that part only."""
    computed_nodes = [partial_expression(node) or node for node in pending]
    failure = execute(Graph.of(computed_nodes))
    for node, computed_node in zip(pending, computed_nodes, strict=True):
        if computed_node != node:
            _transfer_values(computed_node, node)
    return failure


def _transfer_values(source: Node, target: Node) -> None:
    """Publish the values of a node as those of the node that it replaced."""
    values: list[Value] = []
    while (value := source.value(len(values))) is not None:
        values.append(value)
    if values and target.pending:
        target.publish(values)


def graph_of(arrays: Sequence[Array]) -> Graph:
    """Stage one: the original graph of some arrays."""
    return Graph.of([_native.node_of(array) for array in arrays], options_key())


def options_key() -> tuple[int, ...]:
    """Return the part of a plan's key that identifies the active options and rules."""
    return (settings.fingerprint(), *registry.fingerprint())


def optimise(graph: Graph) -> tuple[Graph, RewriteReport]:
    """Stage two: the graph rewritten by the active rules, and the report of the rewrites."""
    if len(graph) > MAX_REWRITE_NODES or get("check_nans"):
        return graph, RewriteReport()
    return registry.optimise_graph(graph)


def execute(graph: Graph) -> Exception | None:
    """Last stage: compute the graph step by step on its device; return the first failure."""
    device = graph.nodes[graph.outputs[0]].type.device
    debug(1, f"device {device} computes {len(graph)} nodes")
    modes = _native.reset_float_modes()  # another library may have changed them
    try:
        return DEVICES[device].run(graph)
    finally:
        _native.restore_float_modes(modes)


def trim() -> int:
    """Release pooled memory and empty all caches in memory, compiled kernels included.

    The disk cache is kept. Returns the bytes released from the pool to the system; those of the
    dropped cache entries are not counted. `tenfold doctor` lists the caches.

    >>> import tenfold as tn
    >>> tn.trim() >= 0
    True
    """
    return caches.clear_all()
