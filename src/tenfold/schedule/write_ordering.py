"""Write ordering: anti-dependences, so that all reads of an array come before it is overwritten.

Takes the items of a graph and their groups, hands on the order of steps: all that reads an array
comes before the step that overwrites it. A launch that does both runs its loops in an order that
allows it (`schedule/in_place_updates.py`). Where there is none, NotInPlace says which updates
cannot be done in place.

    order = WriteOrder(graph, items, fusion)
    readers = order.readers(units, inputs_of)
    ready = inputs_of(unit) | order.before(unit, readers) <= done
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

from tenfold.core.graph import Graph
from tenfold.schedule.buffer_reuse import LivenessStep, may_begin_anew
from tenfold.schedule.dependence import LoopSafety
from tenfold.schedule.fusion import FusedGroup, Fusion
from tenfold.schedule.in_place_updates import (
    APART,
    FAILS,
    LATER,
    SEEN,
    InPlaceHazard,
    NotInPlace,
    direction,
)
from tenfold.schedule.loop_schedule import Launch
from tenfold.schedule.schedule_ir import ScheduleItem

Unit = FusedGroup | int


class WriteOrder:
    """By which item each array is taken over."""

    def __init__(self, graph: Graph, items: Sequence[ScheduleItem], fusion: Fusion) -> None:
        self.graph, self.items, self.fusion = graph, items, fusion
        self.by = {item.base: number for number, item in enumerate(items) if item.base >= 0}
        self.hazards: list[InPlaceHazard] = []
        """What no order of the loops of a launch allows."""
        for base, whole in self.by.items():
            groups = {fusion.group_of[piece].number for piece in items[whole].inputs}
            if len(groups) > 1:
                self.refuse(base, APART)

    def refuse(self, base: int, why: str) -> NoReturn:
        """Raise NotInPlace for what is taken over."""
        raise NotInPlace(InPlaceHazard(self.items[self.by[base]].position, why))

    def readers(
        self, units: Iterable[Unit], inputs_of: Callable[[Unit], set[int]]
    ) -> dict[int, set[int]]:
        """For each item that is taken over, what all others make of it: they read it before."""
        readers: dict[int, set[int]] = {base: set() for base in self.by}
        for unit in units:
            for base in readers.keys() & inputs_of(unit):
                if self._writes(unit, base):
                    continue
                if isinstance(unit, int) and self.items[unit].kind != "call":
                    self.refuse(base, SEEN)
                readers[base] |= outputs(unit)
        return readers

    def _writes(self, unit: Unit, base: int) -> bool:
        """Whether a unit writes over an item, or is the whole that comes of it."""
        if isinstance(unit, int):
            return unit == self.by[base]
        return any(self.fusion.whole.get(root) == self.by[base] for root in unit.roots)

    def before(self, unit: Unit, readers: Mapping[int, set[int]]) -> set[int]:
        """What must be there before a unit runs, beside what it reads."""
        if isinstance(unit, int):
            return set()
        bases = [base for base in readers if self._writes(unit, base)]
        return set(bases).union(*(readers[base] for base in bases))

    def refuse_circle(self, waiting: Collection[Unit]) -> NoReturn:
        """Raise NotInPlace where steps wait for each other."""
        bases = [base for base in self.by if any(self._writes(u, base) for u in waiting)]
        assert bases, "steps need each other in a circle"
        self.refuse(bases[0], LATER)

    def ordered(self, launch: Launch, group: FusedGroup, wholes: Collection[int]) -> Launch:
        """Let loops go in an order in which they may write over what they read; where there is none
        that is noted as a hazard.
        """
        for base, whole in self.by.items():
            if whole not in wholes:
                continue
            found = direction(launch, base, whole, group.space, maps=group.axis is None)
            if found.kind is LoopSafety.FORWARD and not launch.kernel.across:
                launch = replace(launch, upwards=True)
            elif found.kind is not LoopSafety.ANY:
                turns: tuple[int, ...] = ()
                if found.safe and len(self.items[whole].inputs) == 1:
                    (piece,) = self.items[whole].inputs
                    down = {axis for axis, each in enumerate(found.directions) if each < 0}
                    turns = tuple(-1 if place in down else 1 for place in group.roots[piece])
                self.hazards.append(InPlaceHazard(self.items[whole].position, str(found), turns))
        return launch

    def pairs(
        self,
        steps: Sequence[LivenessStep],
        last_uses: Sequence[Sequence[int]],
        wholes: Collection[int],
    ) -> Iterator[tuple[int, int]]:
        """Pairs of an updated item and the item that it overwrites; `wholes` are values of nodes.
        Raises NotInPlace for hazards.
        """
        if self.hazards:
            raise NotInPlace(*self.hazards)
        anew = may_begin_anew(steps, last_uses, wholes) if self.by else []
        for base, whole in self.by.items():
            number = next(
                (n for n, step in enumerate(steps) if any(m.item == whole for m in step.makes)), -1
            )
            if number < 0:
                continue  # dead
            if not anew[number]:
                self.refuse(base, FAILS)
            yield whole, base


def outputs(unit: Unit) -> set[int]:
    """Return the items that are there once a unit has run."""
    return set(unit.roots) if isinstance(unit, FusedGroup) else {unit}


__all__ = ["Unit", "WriteOrder", "outputs"]
