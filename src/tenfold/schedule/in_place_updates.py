"""In-place updates: decides which updates of a part of an array write into its buffer.

A pass, the first. Takes the nodes of a graph that update a part (`Op.writes`), and the hazards that
later passes found in earlier decisions. Hands on for each update: in place, staged, or a copy, and
why. After a hazard the decision is less ambitious: successive updates are not coalesced, loops go
backwards, the part is staged, or the array is copied.

>>> import tenfold as tn
>>> from tenfold import _native
>>> from tenfold.schedule.schedule import schedule_graph
>>> x = tn.arange(4.0).wait()
>>> y = x * 2
>>> x[1:] = 0
>>> print(schedule_graph(Graph.of([_native.node_of(x)], (1,))).steps[0].reasons[0])
set_at: a copy: an array or a pending expression still refers to the old value
"""

from __future__ import annotations

from tenfold.core.graph import Graph
from tenfold.core.shape_rules import product
from tenfold.schedule.pass_rules import require
from tenfold.schedule.schedule_ir import Schedule, UpdateDecisions

REFERENCED = "an array or a pending expression still refers to the old value"
READ_LATER = "the old value is read after the new one is written"
CAN_FAIL = "a part of it can fail, and the old value must survive that"
BROADCAST = "the old value is broadcast: one element in memory stands for several"
HAS_VIEWS = "the old value is a view or has views"
SEVERAL_KERNELS = "several kernels compute parts of it"


def choose_updates(schedule: Schedule) -> Schedule:
    """Choose which updates are in place; less ambitiously where `schedule.hazards` says so."""
    if schedule.hazards:
        return schedule.updated(updates=_reconsidered(schedule), hazards=())
    positions = update_positions(schedule.graph)
    if not positions:
        return schedule
    reasons = {position: copy_reason(schedule.graph, position) for position in positions}
    return schedule.updated(
        updates=UpdateDecisions(
            {position: reason for position, reason in reasons.items() if reason},
            {position: () for position, reason in reasons.items() if not reason},
            coalesced=schedule.fused,
        )
    )


def verify_updates(schedule: Schedule) -> None:
    """Each update is in place or a copy, and the old value of one in place is not needed later."""
    graph, updates = schedule.graph, schedule.updates
    decided = {*updates.copy_reasons, *updates.directions}
    undecided = decided.symmetric_difference(update_positions(graph))
    pending = [
        at for at in undecided if graph.nodes[at].pending
    ]  # threads compute others meanwhile
    require(not pending, "updates are decided, not {}", pending)
    require(updates.staged <= updates.directions.keys(), "a staged update is not in place")
    for position, reason in updates.copy_reasons.items():
        require(bool(reason), "update {} is a copy without a reason", position)
    for position, directions in updates.directions.items():
        base = graph.inputs[position][0]
        node = graph.nodes[base]
        require(not graph.live_out[base], "update {} overwrites a live-out value", position)
        if not node.pending:
            dead = bool(graph.dead_after_read) and graph.dead_after_read[base]
            require(dead, "update {} overwrites a value that is still referred to", position)
        _, shape = graph.nodes[position].params
        fits = len(directions) in (0, len(shape)) and {*directions} <= {-1, 1}
        require(fits, "update {} has the directions {}", position, directions)


def _reconsidered(schedule: Schedule) -> UpdateDecisions:
    """The decisions after hazards: no coalescing, other directions, staging, or a copy."""
    updates, graph = schedule.updates, schedule.graph
    copy_reasons, directions = dict(updates.copy_reasons), dict(updates.directions)
    staged = set(updates.staged)
    if any(hazard.position in schedule.update_runs.parts for hazard in schedule.hazards):
        return UpdateDecisions(copy_reasons, directions, updates.staged, coalesced=False)
    for hazard in schedule.hazards:
        at = hazard.position
        if hazard.directions and not directions[at]:
            directions[at] = hazard.directions
        elif at not in staged and _staging_pays(graph, at):
            staged.add(at)
            directions[at] = ()
        else:
            copy_reasons[at] = hazard.reason
            del directions[at]
            staged.discard(at)
    return UpdateDecisions(copy_reasons, directions, frozenset(staged), updates.coalesced)


def _staging_pays(graph: Graph, at: int) -> bool:
    """Whether staging a part moves fewer elements than copying the array."""
    node = graph.nodes[at]
    _, shape = node.params
    return 2 * product(shape) <= product(node.type.shape)


def update_positions(graph: Graph) -> list[int]:
    """Return the positions of nodes that update a part of an array."""
    return [
        position
        for position, node in enumerate(graph.nodes)
        if node.pending
        and node.op is not None
        and node.op.lowering.updates
        and product(node.params[1])
    ]


def copy_reason(graph: Graph, position: int) -> str:
    """Return why an update must copy the array; empty where it may overwrite it."""
    base = graph.inputs[position][0]
    node = graph.nodes[base]
    if graph.live_out[base] or not graph.dead_after_read:
        return REFERENCED
    if node.pending:
        return "" if node.op is not None and not node.op.semantics.view else HAS_VIEWS
    strides = value.strides if (value := node.value()) is not None else ()  # none in C order
    axes = zip(node.type.shape, strides, strict=False)
    reach = node.type.dtype.itemsize + sum(abs(stride) * (length - 1) for length, stride in axes)
    if strides and reach < node.type.size * node.type.dtype.itemsize:  # it is never in place
        return BROADCAST
    return "" if graph.dead_after_read[base] else REFERENCED


__all__ = ["choose_updates", "copy_reason", "update_positions", "verify_updates"]
