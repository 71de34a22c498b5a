"""Scheduling: plans a graph by the passes, and gives plans their cache keys.

Takes a Graph, hands on the finished Schedule, or the key under which it is cached.

>>> import tenfold as tn
>>> from tenfold import _native
>>> x = tn.asarray([1.0, 2.0])
>>> print(schedule_graph(Graph.of([_native.node_of((x + x) * 2)])))
kernel linear: add, multiply -> float64[2]
"""

from __future__ import annotations

from dataclasses import replace

from tenfold.core.graph import Graph, runs_once
from tenfold.schedule.passes import run_passes
from tenfold.schedule.schedule_ir import Schedule
from tenfold.schedule.target import DEFAULT, Target

NO_GRAPH = Graph((), (), (), (), ())
"""The graph of a finished schedule."""


def schedule_graph(graph: Graph, target: Target = DEFAULT, *, fused: bool = True) -> Schedule:
    """Schedule a graph for a target. `fused=False` gives every operation its own kernel."""
    if graph.dead_after_read and not is_repeatable(graph):
        graph = replace(graph, dead_after_read=())
    return run_passes(Schedule(graph, target, fused)).updated(graph=NO_GRAPH)


def is_repeatable(graph: Graph) -> bool:
    """Whether a graph may be computed again where its plan fails: all its operations are pure and
    none runs Python code of the user.
    """
    operations = {node.op for node in graph.nodes if node.pending} - {None}
    facts = [op.semantics for op in operations]
    if not [x for x in facts if x.opaque or not x.pure or x.body or x.on_values]:
        return True
    return not any(map(runs_once, graph.nodes))


def schedule_key(graph: Graph, *options: object) -> tuple[object, ...]:
    """Return the cache key of a plan: two graphs with equal keys have the same plan."""
    parts: list[object] = [*options, graph.passed_through, graph.new_nodes]
    for position, node in enumerate(graph.nodes):
        if node.is_scalar:
            parts.append(node.type.dtype.num)
        elif not node.pending:
            value = node.value()
            type_ = node.type
            dead_after_read = bool(graph.dead_after_read) and graph.dead_after_read[position]
            parts.append(
                (type_.shape, type_.dtype, value.strides if value else None, dead_after_read)
            )
        else:
            op = node.op
            parts.append(
                (
                    # of several results only the first has the call's operation
                    (node.name, node.type.shape) if op is None else op.id,
                    graph.inputs[position],
                    graph.live_out[position],
                    node.params,
                    node.type.dtype,
                    node.operands,
                )
            )
    return tuple(parts)


__all__ = ["is_repeatable", "schedule_graph", "schedule_key"]
