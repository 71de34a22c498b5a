"""Snapshot: the stages of a graph, each computed on first access.

Takes a Graph as it was written, hands on the stages of the pipeline. It computes nothing and
changes no cache that an evaluation reads. Its references make nodes live-out as long as it exists.

>>> import tenfold as tn
>>> from tenfold import pipeline
>>> snapshot = Snapshot(pipeline.graph_of([tn.asarray([1.0, 2.0]) + 1]))
>>> snapshot.device, snapshot.pending_operations
('cpu', 1)
>>> print(snapshot.plan)
kernel linear: add -> float64[2]
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tenfold import _native, rule_registry
from tenfold._native import Node
from tenfold.core.cached_property import cached
from tenfold.core.graph import Graph
from tenfold.pipeline import MAX_REWRITE_NODES
from tenfold.rewrite.driver import RewriteReport
from tenfold.runtime.device import DEVICES
from tenfold.runtime.graph_chunks import chunk_length, device_parts, is_divided
from tenfold.schedule.schedule_ir import Schedule
from tenfold.settings import get, override


class Snapshot:
    """The stages of a graph.

    `holders` names the references to the old value of each assignment, by its position in the
    optimised graph.
    """

    def __init__(self, graph: Graph, holders: Mapping[int, str] = MappingProxyType({})) -> None:
        self.graph, self.holders = graph, holders
        self.device = graph.nodes[graph.outputs[0]].type.device

    @cached
    def pending_operations(self) -> int:
        """The number of pending nodes."""
        return sum(node.pending for node in self.graph.nodes)

    @property
    def unrewritten_because(self) -> str:
        """Why no rewrite rule is tried; empty where rules are."""
        if not DEVICES[self.device].rewrites:
            return f"device {self.device} computes what was written"
        if not get("optimise"):
            return "the option optimise is off"
        if self.steps:
            return "it is computed step by step, and rules look at each step by itself"
        if len(self.graph) > MAX_REWRITE_NODES:
            return f"it has more than {MAX_REWRITE_NODES} nodes"
        return ""

    @cached
    def rewritten(self) -> tuple[Graph, RewriteReport]:
        """The graph after the enabled rewrite rules, and their report."""
        if self.unrewritten_because:
            return self.graph, RewriteReport()
        # What rules make has the lines of what it replaces, where all of that has lines.
        lines = all(node.origin or not node.pending for node in self.graph.nodes)
        with override(lines=lines):
            return rule_registry.optimise_graph(self.graph, describe=True)

    @property
    def optimised(self) -> Graph:
        """The graph after the enabled rewrite rules."""
        return self.rewritten[0]

    @property
    def has_schedule(self) -> bool:
        """Whether the device computes by a schedule."""
        return DEVICES[self.device].rewrites

    @property
    def is_cold(self) -> bool:
        """Whether the op interpreter would compute it now, node by node, without its schedule."""
        structure = self.graph.structure
        return structure is not None and structure.is_cold

    @cached
    def steps(self) -> list[tuple[list[Node], int, int]]:
        """The parts in which the steps of a loop are computed, as `_native.steps_of`."""
        if not self.has_schedule or not self.pending_operations:
            return []
        return _native.steps_of([self.graph.nodes[position] for position in self.graph.outputs])

    @cached
    def device_parts(self) -> list[list[Node]]:
        """The outputs of each part of a graph that is computed on several devices; else none."""
        return device_parts(self.graph) if is_divided(self.graph) else []

    @property
    def chunks(self) -> int:
        """The number of parts, each with its own schedule, in which the device computes it."""
        if self.steps:
            return len(self.steps)
        nodes = len(self.optimised)
        return -(-nodes // chunk_length(nodes))

    @cached
    def plan(self) -> Schedule:
        """The schedule of the graph."""
        plan = DEVICES[self.device].plan(self.optimised)
        assert plan is not None, "the device has schedules"
        return plan
