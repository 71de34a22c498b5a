"""Publication: the write-back of values, to which node, and when.

Takes items as steps store them, hands on the instructions that reuse a buffer, and that publish.
Values are published at the end, so that a failed run has changed nothing. Those whose operands are
overwritten, and the results of a user's function, are published at once: they are not computed
again. So `x[1:] = y` publishes x directly after the launch that writes into its buffer.
"""

from __future__ import annotations

from collections.abc import Iterable

from tenfold.runtime.instructions import MarkPassedThrough, Publish, Share
from tenfold.runtime.scheduled_graph import NotReplayable, ScheduledGraph
from tenfold.runtime.slot_table import SlotTable
from tenfold.schedule.buffer_reuse import last_writes
from tenfold.schedule.schedule_ir import Buffer, ItemKind


class Publication:
    """Which items are published already, and which are dead."""

    def __init__(self, scheduled: ScheduledGraph, slots: SlotTable) -> None:
        self.scheduled, self.slots = scheduled, slots
        self.instructions = slots.instructions
        self.computed_later = scheduled.original.graph.computed_later()
        self.last_write = last_writes(scheduled.plan.steps)
        self.reused_buffers = dict(scheduled.plan.reused_buffers)
        self.dead_items: set[int] = set()
        """Items that no later step reads."""
        self.published: dict[int, list[int]] = {}
        """Items that are published already, and the positions of their nodes in the walk."""

    def store(self, results: Iterable[Buffer]) -> bool:
        """Give results the buffers of dead operands, or new ones; return whether a node owned one:
        its value is then lost.
        """
        claims_value = False
        for buffer in results:
            if buffer.item in self.reused_buffers:
                claims_value = self.share_buffer(buffer.item) or claims_value
            elif buffer.item not in self.slots.slots:
                self.slots.allocate(buffer)
        return claims_value

    def share_buffer(self, item: int) -> bool:
        """Reuse an operand's buffer for a result; return whether a node owned it."""
        source = self.reused_buffers[item]
        slot = self.slots.slot(source)
        (target,) = self.slots.new(item)
        if self.scheduled.plan.items[source].kind is ItemKind.VALUE:
            nodes = [self.scheduled.required_position(self.scheduled.node_of(source))]
        else:
            nodes = self.published.get(source, [])
        assert self.computed_later.isdisjoint(nodes), "a live array reads the buffer"
        self.instructions.append(Share(target, slot, nodes))
        return bool(nodes)

    def publish_early(self, step: int) -> None:
        """Publish computed values after a step that has overwritten their inputs: a later step may
        fail.
        """
        plan = self.scheduled.plan
        for item in self.slots.slots:
            computed = plan.items[item].kind is not ItemKind.VALUE and item not in self.dead_items
            if computed and item not in self.published and self._must_be_published(item):
                if self.last_write.get(item, -1) > step:  # another thread may read it
                    raise NotReplayable
                self.publish(item)
                if not self.published[item] and step < len(plan.steps) - 1:
                    raise NotReplayable

    def _must_be_published(self, item: int) -> bool:
        """Whether an item is the value of its node, which is lost otherwise. Named nodes that stay
        pending, and those below them, are computed again, from values that nothing overwrites.
        """
        if not self.scheduled.is_node_value(item):
            return False
        nodes = self.scheduled.nodes_of_item.get(item, [])
        return item in self.scheduled.plan.live_out or self.computed_later.isdisjoint(nodes)

    def publish(self, item: int) -> None:
        """Publish the value of an item now, if it is that of a node."""
        if self.scheduled.is_node_value(item):
            self.published[item] = self.scheduled.nodes_of_item.get(item, [])
            self._give(self.published[item], self.slots.slots[item])

    def _give(self, nodes: list[int], slots: list[int]) -> None:
        for position in nodes:
            self.instructions.append(Publish(position, slots))

    def publish_outputs(self) -> None:
        """Publish the values of the original graph, after all steps."""
        plan, original = self.scheduled.plan, self.scheduled.original.graph
        existing = {number for number, item in enumerate(plan.items) if item.kind is ItemKind.VALUE}
        published_nodes: set[int] = set()
        for item, nodes in self.scheduled.nodes_of_item.items():
            if item in plan.live_out or item in existing:
                published_nodes.update(nodes)
                if item not in self.published:
                    self._give(nodes, self.slots.final(item))
        if not published_nodes >= set(original.outputs):
            raise NotReplayable
        is_computed = self.scheduled.structure.is_computed
        for position in original.named():
            if position not in published_nodes and not is_computed(position):
                self.instructions.append(MarkPassedThrough(position))
