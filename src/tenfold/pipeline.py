"""Compilation pipeline: expression -> optimised -> planned -> rendered -> executed.

Takes Arrays and computes their values. The stages planned and rendered belong to the device, whose
Executable native code runs. After a failure the operations are computed one by one. The reference
device has neither stage, and computes the original graph.

>>> import tenfold as tn
>>> x = tn.asarray([1.0, 2.0]) * 1
>>> graph_of([x]).outputs
(2,)
>>> print(optimise(graph_of([x]))[0])
%0 = leaf float64[2]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tenfold import _native, caches, rule_registry, settings
from tenfold._native import Array, Executable, Failure, Node, Value
from tenfold.core.bitwise_equal import different
from tenfold.core.graph import Graph
from tenfold.errors import RunError
from tenfold.rewrite.driver import RewriteReport
from tenfold.rewrite.inline import is_call
from tenfold.rewrite.rules.partial_expressions import partial_expression
from tenfold.runtime import timeline
from tenfold.runtime.device import DEVICES
from tenfold.runtime.failures import error_of
from tenfold.runtime.graph_chunks import chunk_length, chunks, device_parts, is_divided
from tenfold.runtime.reference import Reference, nan_failure
from tenfold.runtime.result_memory import refusal_of
from tenfold.schedule.schedule import is_repeatable
from tenfold.schedule.target import DEFAULT
from tenfold.settings import debug, get
from tenfold.storage import dense
from tenfold.storage.kinds import stored_nodes
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
    """As evaluate, for nodes, which do not follow a rebinding of their Arrays.

    Of a storage kind the components are computed.
    """
    nodes = stored_nodes(nodes)
    if (refused := refusal_of(nodes)) is not None:
        return refused
    if not EXTERNAL_BUFFER_LOCK.enabled:
        return _compute_nodes(nodes, planned)
    with EXTERNAL_BUFFER_LOCK.read_lock():
        return _compute_nodes(nodes, planned)


def _compute_nodes(nodes: Sequence[Node], planned: bool) -> Exception | None:
    """Compute nodes, by a cached plan if there is one."""
    if settings.inspects():
        return _compute_inspected(nodes, planned)
    return _compute_parts([nodes], planned)


def _compute_inspected(nodes: Sequence[Node], planned: bool) -> Exception | None:
    """Compute nodes with logged steps, in shadow mode, or with a check for NaN."""
    if get("debug") and not timeline.is_recording():
        with timeline.recording():
            return _compute_inspected(nodes, planned)
    if get("verify"):
        return _compute_verified(nodes, planned)
    pending = [node for node in nodes if node.pending] if get("check_nans") else []
    if pending and DEVICES[pending[0].type.device].rewrites:
        return _compute_each(pending, None)
    return _compute_parts([nodes], planned)


def _compute_verified(nodes: Sequence[Node], planned: bool) -> Exception | None:
    """Shadow mode: compute nodes by the cached plan and by a new plan, and compare the bits.

    Graphs with batches are not compared here: batches are compared with their members.
    """
    pending = [node for node in nodes if node.pending]
    steps = [outputs for outputs, *_ in _native.steps_of(pending)] if pending else []
    while steps:
        failure = _compute_part_verified(steps.pop(0), planned)
        if failure is not None:
            return failure
    return _compute_part_verified(pending, planned)


def _compute_part_verified(nodes: Sequence[Node], planned: bool) -> Exception | None:
    pending = [node for node in nodes if node.pending]
    if not pending or _has_batches(pending):
        return _compute_parts([nodes], planned, divides=False)
    shadow = shadow_compute(pending)
    with settings.override(verify=False):
        failure = _compute_parts([nodes], planned, divides=False)
    if failure is not None or shadow is None:
        return failure
    return _shadow_mismatch(pending, shadow)


def _has_batches(pending: Sequence[Node]) -> bool:
    """Whether nodes of a graph may be batched."""
    graph = Graph.of(pending)
    return len(graph) > DEFAULT.work.max_planned_nodes or any(
        is_call(node.op) for node in graph.nodes
    )


def shadow_compute(pending: Sequence[Node]) -> list[tuple[Value, ...]] | None:
    """Compute nodes by a new plan, without any cache, in-place write or published result.

    None if users' functions would run twice, or on failure.
    """
    graph = Graph.of(pending, options_key())
    if not is_repeatable(graph):
        return None
    return _run_apart(pending, graph, optimise(graph))


def _run_apart(
    nodes: Sequence[Node], graph: Graph, rewritten: tuple[Graph, RewriteReport] | None = None
) -> list[tuple[Value, ...]] | None:
    """Compute nodes by a plan of their own, and publish nothing; None on failure."""
    optimised, report = rewritten or (graph, RewriteReport())
    apart = _without_live_nodes(optimised), report
    device = DEVICES[nodes[0].type.device]
    executable = device.bind(_without_live_nodes(graph), lambda _: apart, cached=False)
    return None if executable is None else _native.run_apart(executable, nodes)


def _without_live_nodes(graph: Graph) -> Graph:
    """Return a graph of which the outputs alone are live, and no value is dead after it."""
    is_output = [position in graph.outputs for position in range(len(graph))]
    return replace(graph, dead_after_read=(), live_out=is_output, passed_through=())


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


def _compute_parts(
    parts: list[Sequence[Node]], planned: bool, *, divides: bool = True
) -> Exception | None:
    """Compute the nodes of each part in order, each by a cached plan, interpreted if the graph is
    cold, or by a new plan. After a failure compute what does not depend on it.

    A long graph is divided: the equal steps of a loop have one plan.
    """
    options = options_key()
    while parts:
        try:
            outcome = _replay(parts, options, planned, divides=divides)
        except RunError as difference:  # under verify=True: of a batch from its members
            return difference
        if outcome is True:
            return None
        divides = False
        tried = parts.pop(0)
        failure = _compute_unreplayed(tried, options, outcome)
        if failure is not None:
            _compute_remaining(tried, parts)
            return failure
        del tried  # else what the next part reads would not be dead after it
    return None


def _compute_remaining(tried: Sequence[Node], parts: Sequence[Sequence[Node]]) -> None:
    """Compute what does not depend on a failure of nodes that come before.

    What these nodes still lack has failed, or depends on what has: it is not called again.
    """
    pending = [node for node in tried if node.pending]
    failed = _operations(Graph.of(pending)) if pending else []
    remaining = [node for part in parts for node in part if node.pending]
    if remaining:
        _compute_each(remaining, None, failed)


def _compute_unreplayed(
    nodes: Sequence[Node], options: tuple[int, ...], outcome: bool | Failure
) -> Exception | None:
    """Compute nodes that have no plan, or of which an instruction of the plan failed."""
    pending = [node for node in nodes if node.pending]
    if not pending:  # another thread has computed them
        return None
    rewrites = DEVICES[pending[0].type.device].rewrites
    if outcome is False and rewrites:
        outcome = _run_new_plan(pending, options)
        pending = [node for node in pending if node.pending]
    if not pending:
        return None
    if isinstance(outcome, Failure):
        return _compute_each(pending, outcome)
    if is_divided(graph := Graph.of(pending)):
        return _compute_divided(graph)
    return _compute_optimised(pending) if rewrites else _compute_unchanged(pending)


def _compute_divided(graph: Graph) -> Exception | None:
    """Compute a graph of several devices in parts, each on one of them."""
    parts = device_parts(graph)
    del graph  # values of a part are freed after their last reader
    if len(parts) == 1:  # calls that move arrays themselves
        failures = [_compute_unplanned([node]) for node in parts[0]]
        return next(filter(None, failures), None)
    while parts:
        tried = parts.pop(0)
        failure = _compute_parts([tried], planned=True)
        if failure is not None:
            _compute_remaining(tried, parts)
            return failure
    return None


def _replay(
    parts: list[Sequence[Node]],
    options: tuple[int, ...],
    planned: bool,
    executable: Executable | None = None,
    *,
    divides: bool = False,
) -> bool | Failure:
    """Compute parts by cached plans, by `executable`, or interpreted if the graph is cold.

    Return True, or why the first of the parts that are left in the list was not computed: False if
    none of these is possible, the Failure if an instruction of the plan failed.
    """
    if not timeline.is_recording():
        return _native.replay(parts, options, None, planned, executable, divides)
    events: list[tuple[str, str, int, int]] = []
    outcome = _native.replay(parts, options, events, planned, executable, divides)
    timeline.record_all(events)
    return outcome


def _run_new_plan(pending: Sequence[Node], options: tuple[int, ...]) -> bool | Failure:
    """Make a plan of nodes and run it; False if they need several plans."""
    executable = _bind_plan(pending, options)
    pending = [node for node in pending if node.pending]
    return bool(executable and pending) and _replay([pending], options, True, executable)


def _bind_plan(pending: Sequence[Node], options: tuple[int, ...]) -> Executable | None:
    """Make a plan, cache it and return it; None for a graph that needs several.

    No reference may outlive the call: a replay reuses buffers that only the nodes refer to. A graph
    of which another thread computes a node meanwhile is planned again.
    """
    device = pending[0].type.device
    cached = not (get("debug") or get("check_nans"))  # else native code would find it, and not look
    while pending:
        original = Graph.of(pending, options)
        debug(1, f"device {device} computes {len(original)} nodes")
        executable = None
        try:
            if is_divided(original):
                return None
            executable = DEVICES[device].bind(original, optimise, cached=cached)
        except Exception:
            if not original.computed_meanwhile():
                raise
        if executable is not None or not original.computed_meanwhile():
            return executable
        pending = [node for node in pending if node.pending]
    return None


def lasting_tier() -> int | str:
    """Return the tier of programs that no optimised ones replace."""
    tier: int | str = get("tier")
    return "1" if tier == "auto" else tier


def plan_of(arrays: Sequence[Array], **options: bool) -> Executable | None:
    """Return the plan of pending arrays, cached or new, of programs that last; compute nothing."""
    with settings.override(tier=lasting_tier(), **options):
        nodes = stored_nodes([*map(_native.node_of, arrays)])
        cached = _native.find_plan([*map(_native.array_of, nodes)])
        return cached or _bind_plan(nodes, options_key())


def _compute_optimised(pending: Sequence[Node]) -> Exception | None:
    """Compute the nodes of the optimised graph, without further rules: a long graph in chunks, and
    one that reads values which rules have made.
    """
    graph, original = _optimised(pending)
    operations = _operations(graph)
    failure: Exception | None = None
    if len(operations) <= 1:
        failure = _compute_unplanned(operations)
        original.finish()
        return failure
    outputs = chunks(graph, chunk_length(len(graph)))
    if len(outputs) == 1 and not original.replaced and set(outputs[0]) == set(pending):
        return _compute_each(pending, None)
    del graph, operations  # values of a chunk are freed after their last reader
    with settings.override(optimise=False):
        while outputs and failure is None:
            tried = outputs.pop(0)
            failure = _compute_parts([tried], planned=True)
            if failure is not None:
                _compute_remaining(tried, outputs)
    original.finish()
    return failure


def _compute_unplanned(operations: Sequence[Node]) -> Exception | None:
    """Compute at most one operation that had no plan: another thread computed its operands
    meanwhile, or they are too many, or placeholders, or refused by the rule of its kernel.
    """
    pending = [node for node in operations if node.pending]
    if not pending:
        return None
    graph = Graph.of(pending, options_key())
    values = _run_apart(pending, graph) if is_repeatable(graph) else None
    if values is None:
        return Reference(pending[0].type.device).run(graph)
    pending[0].publish([*values[0]])
    return None


def _compute_each(
    pending: Sequence[Node], failed: Failure | None, tried: Sequence[Node] = ()
) -> Exception | None:
    """Compute the operations one by one: those that do not depend on a failure keep their bits.

    Return the exception of the first one that fails, for a single one that of the Failure.
    Operations that were `tried` have failed.
    """
    graph, original = _optimised(pending)
    operations = _operations(graph)
    if failed is not None and len(operations) == 1:
        return error_of(failed, operations[0])
    failure: Exception | None = None
    raised = {*tried}  # they are not called again
    if failed is not None and failed.cause == "exception" and failed.node is not None:
        failure = error_of(failed, failed.node)
        raised.add(failed.node)
    nodes: list[Node | None] = [*graph.nodes]
    inputs, remaining_uses = graph.inputs, [*graph.uses]
    del graph, operations  # values are freed after their last reader
    compute = _compute_checked if get("check_nans") else _compute_single
    with settings.override(optimise=False):
        for position, operands in enumerate(inputs):
            node = nodes[position]
            assert node is not None, "a node comes before its readers"
            if node.pending and node not in raised and not _any_pending(nodes, operands):
                error = compute(node)
                failure = failure or error
            for i in operands:
                remaining_uses[i] -= 1
                if not remaining_uses[i]:
                    nodes[i] = None
    original.finish()
    return failure


def _any_pending(nodes: Sequence[Node | None], positions: Sequence[int]) -> bool:
    return any(node is not None and node.pending for node in map(nodes.__getitem__, positions))


def _compute_single(node: Node) -> Exception | None:
    return _compute_parts([[node]], planned=True)


def _compute_checked(node: Node) -> Exception | None:
    """Compute one operation; return the exception of one that creates NaN, which stays pending."""
    graph = Graph.of([node], options_key())
    if not is_repeatable(graph):  # a function that raises is not called again
        return Reference(node.type.device).run(graph)
    found = _run_apart([node], graph)
    if found is None:
        return _compute_single(node)
    operands = [np.asarray(x.scalar) if x.is_scalar else _exported(x) for x in node.inputs]
    failure = nan_failure(node, operands, tuple(map(dense.export, found[0])))
    if failure is not None:
        return failure.error
    node.publish([*found[0]])
    return None


def _exported(node: Node) -> np.ndarray:
    value = node.value()
    assert value is not None, "an input is computed"
    return dense.export(value)


def _operations(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if node.pending]


class _Replaced(NamedTuple):
    """The nodes of an original graph whose values its optimised graph does not publish."""

    replaced: list[tuple[Node, Node]]
    """Pairs of a node and the one that it replaces."""
    passed_through: list[Node]

    def finish(self) -> None:
        """Publish the values of replaced nodes; mark the live nodes that have none."""
        for source, target in self.replaced:
            _transfer_values(source, target)
        for node in self.passed_through:
            if node.pending:
                node.passed_through()


def _optimised(pending: Sequence[Node]) -> tuple[Graph, _Replaced]:
    """Return the optimised graph of nodes, and those of the original that it replaces."""
    original = Graph.of(pending)
    graph, report = optimise(original)
    replaced = [(graph.nodes[position], node) for node, position in report.replaced_nodes]
    return graph, _Replaced(replaced, [original.nodes[at] for at in original.named()])


def _compute_unchanged(pending: Sequence[Node]) -> Exception | None:
    """Compute nodes unchanged, by the reference device; of a node first read in part that part."""
    computed_nodes = [partial_expression(node) or node for node in pending]
    device, graph = pending[0].type.device, Graph.of(computed_nodes)
    debug(1, f"device {device} computes {len(graph)} nodes")
    modes = _native.reset_float_modes()  # another library may have changed them
    try:
        failure = Reference(device).run(graph)
    finally:
        _native.restore_float_modes(modes)
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
    """Stage one: the original graph of some arrays; of a storage kind, that of its components."""
    return Graph.of(stored_nodes([_native.node_of(array) for array in arrays]), options_key())


def options_key() -> tuple[int, ...]:
    """Return the part of a plan's key that identifies the active options and rules."""
    return (settings.options_fingerprint(), *rule_registry.rules_fingerprint())


def optimise(graph: Graph) -> tuple[Graph, RewriteReport]:
    """Stage two: the graph rewritten by the active rules, and the report of the rewrites."""
    if len(graph) > MAX_REWRITE_NODES or get("check_nans"):
        return graph, RewriteReport()
    return rule_registry.optimise_graph(graph)


def trim() -> int:
    """Release pooled memory and empty all caches in memory, compiled kernels included.

    The disk cache is kept. Returns the bytes released from the pool to the system; those of the
    dropped cache entries are not counted. `tenfold doctor` lists the caches.

    >>> import tenfold as tn
    >>> tn.trim() >= 0
    True
    """
    return caches.clear_all()
