"""Slot table: the register allocation of an executable, which slots hold the results of an item.

Takes items of a schedule as they are computed and read, hands on their slots, and the instructions
that load, allocate and drop. A slot is used once: a dropped one is not given out again. Of `x * 2`
slot 0 gets the value of x, slot 1 the new array; then slot 0 is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable

from tenfold.runtime.instructions import Allocate, Drop, Load, ReplayInstruction
from tenfold.runtime.scheduled_graph import NotReplayable, ScheduledGraph
from tenfold.schedule.schedule_ir import Buffer, ItemKind


class SlotTable:
    """The slots of items, and the instructions so far, of which it writes those on slots."""

    def __init__(self, scheduled: ScheduledGraph) -> None:
        self.scheduled = scheduled
        self.instructions: list[ReplayInstruction] = []
        self.slots: dict[int, list[int]] = {}
        self.count = 0

    def new(self, item: int, count: int = 1) -> list[int]:
        """Return new slots for the results of an item."""
        self.slots[item] = [*range(self.count, self.count + count)]
        self.count += count
        return self.slots[item]

    def slot(self, item: int, index: int = 0) -> int:
        """Return the slot of a result; an existing value is loaded first."""
        if item in self.slots and index < len(self.slots[item]):
            return self.slots[item][index]
        position = self.scheduled.required_position(self.scheduled.node_of(item))
        if not self.scheduled.structure.is_computed(position):
            raise NotReplayable
        loaded = self.slots.setdefault(item, [])
        while len(loaded) <= index:
            self.instructions.append(Load(self.count, position, len(loaded)))
            loaded.append(self.count)
            self.count += 1
        return loaded[index]

    def operand(self, item: int) -> int:
        """Return the slot of an item, or ~position of a scalar node."""
        node = self.scheduled.node_of(item)
        return ~self.scheduled.required_position(node) if node.is_scalar else self.slot(item)

    def allocate(self, buffer: Buffer) -> None:
        """Allocate the array of an item."""
        (slot,) = self.new(buffer.item)
        temporary = buffer.item in self.scheduled.plan.temporaries
        self._allocate(slot, buffer, temporary)

    def allocate_scratch(self, size: int) -> int:
        """Allocate scratch bytes; return their slot."""
        self._allocate(self.count, Buffer(-1, (size,), "uint8", (1,), size), False)
        self.count += 1
        return self.count - 1

    def _allocate(self, slot: int, buffer: Buffer, temporary: bool) -> None:
        type_ = self.scheduled.type_of(buffer)
        self.instructions.append(Allocate(slot, type_, buffer.nbytes, buffer.strides, temporary))

    def drop(self, items: Iterable[int]) -> None:
        """Drop the slots of dead items."""
        dropped = [slot for item in items for slot in self.slots.get(item, [])]
        if dropped:
            self.instructions.append(Drop(dropped))

    def final(self, item: int) -> list[int]:
        """Return the slots of an item after all steps."""
        if self.scheduled.plan.items[item].kind is ItemKind.VALUE:
            self.slots.pop(item, None)  # it may have been dropped
            return [self.slot(item)]
        return self.slots.get(item, [])
