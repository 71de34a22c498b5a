"""Scheduled graph: a graph, its schedule, and where its nodes are in the original graph.

Takes the original graph, the optimised graph and its schedule, hands on the facts to which the
instructions of an executable refer: the position of a node in the walk of the original graph, under
which native code finds it; the nodes that get the value of an item; Types and programs.

>>> import tenfold as tn
>>> from tenfold import _native
>>> from tenfold.rule_registry import optimise_graph
>>> from tenfold.schedule.schedule import schedule_graph
>>> original = Graph.of([_native.node_of(tn.asarray([1.0, 2.0]) * 2)], (0,))
>>> graph, report = optimise_graph(original)
>>> optimised = OptimisedGraph(original, report)
>>> ScheduledGraph(original.structure, optimised, graph, schedule_graph(graph)).nodes_of_item
{1: [1], 2: [2]}
"""

from __future__ import annotations

from tenfold._native import Node, Structure, Type
from tenfold.core.graph import Graph
from tenfold.dtypes import DTYPES
from tenfold.jit.program import Program, Source, program_of
from tenfold.runtime.device import OptimisedGraph
from tenfold.schedule.schedule_ir import Buffer, ItemKind, Schedule, Step
from tenfold.storage import dense


class NotReplayable(Exception):
    """The schedule has a step that native code cannot replay."""


class ScheduledGraph:
    """A graph and its schedule, bound to the original graph whose structure it computes."""

    def __init__(
        self, structure: Structure, original: OptimisedGraph, graph: Graph, plan: Schedule
    ) -> None:
        self.structure, self.original, self.graph, self.plan = structure, original, graph, plan
        self.device = graph.nodes[graph.outputs[0]].type.device
        self.positions = {node: position for position, node in enumerate(original.graph.nodes)}
        self.nodes_of_item = self._nodes_of_items()

    def node_of(self, item: int) -> Node:
        """Return the node of an item."""
        return self.graph.nodes[self.plan.items[item].position]

    def position(self, node: Node) -> int | None:
        """Return the position of a node in the walk; None for a node that a rule has made."""
        return self.positions.get(node)

    def required_position(self, node: Node) -> int:
        """Return the position of a node in the walk. Raises NotReplayable if a rule has made it."""
        position = self.position(node)
        if position is None:
            raise NotReplayable
        return position

    def source_of(self, step: Step) -> int | None:
        """Return the position of the node that a step computes: of several the last one."""
        position = step.position
        if position < 0 and step.results:
            position = self.plan.items[step.results[-1].item].position
        return None if position < 0 else self.position(self.graph.nodes[position])

    def is_node_value(self, item: int) -> bool:
        """Whether an item is the value of its node."""
        return self.plan.items_at[self.plan.items[item].position] == item

    def type_of(self, buffer: Buffer) -> Type:
        """Return the Type of an array in memory."""
        return Type(buffer.shape, DTYPES[buffer.dtype], self.device, dense.DENSE)

    def program_of(self, kernel: Source, elements: int) -> Program:
        """Return the program of a launch."""
        return program_of(kernel, elements, self.plan.target)

    def depends_on_starts(self) -> bool:
        """Whether the schedule is invalid for other starts of slices: they change the copy around a
        slice that is not assigned in place, and the arguments of Python calls.
        """
        assigned_items = [
            self.plan.items_at[position]
            for position, node in enumerate(self.graph.nodes)
            if node.pending and node.op is not None and node.op.lowering.updates
        ]
        in_place = {
            number
            for number, item in enumerate(self.plan.items)
            if item.kind is ItemKind.SLICE_STORE or item.base >= 0
        }
        if not in_place.issuperset(assigned_items):
            return True
        called_ops = (
            self.graph.nodes[step.position].op for step in self.plan.steps if step.kind == "call"
        )
        return any(op is not None and op.lowering.index_map for op in called_ops)

    def _nodes_of_items(self) -> dict[int, list[int]]:
        """For each item the positions of the nodes in the walk that get its value: its own node and
        the nodes that it replaces.
        """
        nodes_of_item: dict[int, list[int]] = {}
        for position, node in enumerate(self.graph.nodes):
            at = self.position(node)
            if at is not None and not self.structure.is_computed(at):
                nodes_of_item.setdefault(self.plan.items_at[position], []).append(at)
        for node, position in self.original.report.replaced_nodes:
            at = self.required_position(node)
            if not self.structure.is_computed(at):
                nodes_of_item.setdefault(self.plan.items_at[position], []).append(at)
        return nodes_of_item
