"""Write ordering: anti-dependences, so that all reads of an array come before it is overwritten.

Takes the items of a graph and their groups, hands on the order of steps: all readers of an array
come before the step that overwrites it. A launch that does both runs its loops in a safe order
(`schedule/in_place_updates.py`). Where none exists, NotInPlace names the updates that cannot be in
place.

    order = WriteOrder(graph, items, fusion)
    readers = order.readers(units, inputs_of)
    ready = inputs_of(unit) | order.predecessors(unit, readers) <= done
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

from tenfold.core.graph import Graph
from tenfold.schedule.buffer_reuse import LivenessStep, restartable_steps
from tenfold.schedule.dependence import LoopSafety
from tenfold.schedule.fusion import FusedGroup, Fusion
from tenfold.schedule.in_place_updates import (
    CAN_FAIL,
    HAS_VIEWS,
    READ_LATER,
    SEVERAL_KERNELS,
    InPlaceHazard,
    NotInPlace,
    update_loop_order,
)
from tenfold.schedule.loop_schedule import Launch
from tenfold.schedule.schedule_ir import ScheduleItem

Unit = FusedGroup | int


class WriteOrder:
    """By array: the item that overwrites it."""

    def __init__(self, graph: Graph, items: Sequence[ScheduleItem], fusion: Fusion) -> None:
        self.graph, self.items, self.fusion = graph, items, fusion
        self.overwriter_of = {
            item.base: number for number, item in enumerate(items) if item.base >= 0
        }
        self.hazards: list[InPlaceHazard] = []
        """Updates for which no loop order of a launch is safe."""
        for base, join in self.overwriter_of.items():
            groups = {fusion.group_of[piece].number for piece in items[join].inputs}
            if len(groups) > 1:
                self.refuse(base, SEVERAL_KERNELS)

    def refuse(self, base: int, reason: str) -> NoReturn:
        """Raise NotInPlace for the update of an array."""
        raise NotInPlace(InPlaceHazard(self.items[self.overwriter_of[base]].position, reason))

    def readers(
        self, units: Iterable[Unit], inputs_of: Callable[[Unit], set[int]]
    ) -> dict[int, set[int]]:
        """For each overwritten item the outputs of its other readers, which must run before."""
        readers: dict[int, set[int]] = {base: set() for base in self.overwriter_of}
        for unit in units:
            for base in readers.keys() & inputs_of(unit):
                if self._overwrites(unit, base):
                    continue
                if isinstance(unit, int) and self.items[unit].kind != "call":
                    self.refuse(base, HAS_VIEWS)
                readers[base] |= outputs(unit)
        return readers

    def _overwrites(self, unit: Unit, base: int) -> bool:
        """Whether a unit overwrites an item, or is the join that does."""
        if isinstance(unit, int):
            return unit == self.overwriter_of[base]
        return any(self.fusion.join_of.get(root) == self.overwriter_of[base] for root in unit.roots)

    def predecessors(self, unit: Unit, readers: Mapping[int, set[int]]) -> set[int]:
        """The items that must be computed before a unit, beside its operands."""
        if isinstance(unit, int):
            return set()
        bases = [base for base in readers if self._overwrites(unit, base)]
        return set(bases).union(*(readers[base] for base in bases))

    def refuse_cycle(self, blocked_units: Collection[Unit]) -> NoReturn:
        """Raise NotInPlace where steps depend on each other in a cycle."""
        bases = [
            base
            for base in self.overwriter_of
            if any(self._overwrites(u, base) for u in blocked_units)
        ]
        assert bases, "steps depend on each other in a cycle"
        self.refuse(bases[0], READ_LATER)

    def order_loops(
        self, launch: Launch, group: FusedGroup, stored_items: Collection[int]
    ) -> Launch:
        """Choose a loop order in which a launch may overwrite its operands; where none is safe,
        record a hazard.
        """
        for base, join in self.overwriter_of.items():
            if join not in stored_items:
                continue
            loop_order = update_loop_order(launch, base, join, group.space, maps=group.axis is None)
            if loop_order.kind is LoopSafety.FORWARD and not launch.kernel.transposed_operands:
                launch = replace(launch, sequential=True)
            elif loop_order.kind is not LoopSafety.ANY:
                directions: tuple[int, ...] = ()
                if loop_order.safe and len(self.items[join].inputs) == 1:
                    (piece,) = self.items[join].inputs
                    backward_axes = {
                        axis
                        for axis, axis_direction in enumerate(loop_order.directions)
                        if axis_direction < 0
                    }
                    directions = tuple(
                        -1 if space_axis in backward_axes else 1
                        for space_axis in group.roots[piece]
                    )
                self.hazards.append(
                    InPlaceHazard(self.items[join].position, str(loop_order), directions)
                )
        return launch

    def overwritten_pairs(
        self,
        steps: Sequence[LivenessStep],
        last_uses: Sequence[Sequence[int]],
        node_values: Collection[int],
    ) -> Iterator[tuple[int, int]]:
        """Pairs of an updated item and the overwritten one. Raises NotInPlace for hazards."""
        if self.hazards:
            raise NotInPlace(*self.hazards)
        restartable = restartable_steps(steps, last_uses, node_values) if self.overwriter_of else []
        for base, join in self.overwriter_of.items():
            number = next(
                (n for n, step in enumerate(steps) if any(m.item == join for m in step.results)),
                -1,
            )
            if number < 0:
                continue  # dead
            if not restartable[number]:
                self.refuse(base, CAN_FAIL)
            yield join, base


def outputs(unit: Unit) -> set[int]:
    """Return the items that a unit computes."""
    return set(unit.roots) if isinstance(unit, FusedGroup) else {unit}


__all__ = ["Unit", "WriteOrder", "outputs"]
