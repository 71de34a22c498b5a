"""Kernel splitting: limits the length of a kernel's body by storing intermediate values.

Takes items, in order, and which of them are stored in memory. Hands on the length and the cost of
the body of each, where shared subexpressions count once, and the values that cross a cut. A cut
stores all values that are read after it: no subexpression is computed on both sides.

    bodies = BodySizes(items, users, costs)
    for number in range(len(items)):
        if bodies.measure(number, stored) > target.work.max_body_ops:
            stored.update(bodies.crossing(number))
            bodies.measure(number, stored)
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.core.graph import Graph
from tenfold.core.op_decorators import FORMULA_COST
from tenfold.schedule.schedule_ir import ItemKind, ScheduleItem

FORMULA_WEIGHT = 10
"""Operations that an elementary function counts as: it is compiled to many instructions."""
STORE, LOAD = 2.0, 1.0
"""The cost of writing and of reading an element of memory, in additions."""
MAX_CROSSING_VALUES = 16
"""Values that cross a cut at most; with more of them recomputing some is cheaper."""


def costs_of(graph: Graph, items: Sequence[ScheduleItem]) -> list[float]:
    """Return the cost of computing an element of each item, in additions."""
    return [
        graph.nodes[item.position].op.lowering.cost
        if item.kind in (ItemKind.MAP, ItemKind.GATHER)
        else 0.0
        if item.kind in (ItemKind.VIEW, ItemKind.SCALAR)
        else 1.0
        for item in items
    ]


def weights_of(graph: Graph, items: Sequence[ScheduleItem]) -> list[int]:
    """Return how many operations of a kernel's body each item counts as."""
    return [
        0
        if item.kind in (ItemKind.VIEW, ItemKind.SCALAR)
        or (item.kind is ItemKind.SLICE_STORE and not item.has_location)
        else FORMULA_WEIGHT
        if cost >= FORMULA_COST
        else 1
        for item, cost in zip(items, costs_of(graph, items), strict=True)
    ]


class BodySizes:
    """The sizes and costs of the bodies of inlined items."""

    def __init__(
        self, items: Sequence[ScheduleItem], users: Sequence[Sequence[int]], costs: Sequence[float]
    ) -> None:
        self.items, self._costs = items, costs
        self._last_reader = _last_readers(items, users)
        self._ancestor_bits = [0] * len(items)
        """For each item a bit set of itself and the inlined items that it depends on. Unions and
        counts need no loop."""
        self._formulas = 0

    def measure(self, number: int, stored: set[int]) -> int:
        """Return how many operations an item takes, down to items in memory."""
        if self._costs[number] >= FORMULA_COST:
            self._formulas |= 1 << number
        bits = 1 << number
        for i in self.items[number].inputs:
            while self.items[i].kind is ItemKind.VIEW and i not in stored:
                (i,) = self.items[i].inputs
            if i not in stored:
                bits |= self._ancestor_bits[i]
        self._ancestor_bits[number] = bits
        return bits.bit_count() + (FORMULA_WEIGHT - 1) * (bits & self._formulas).bit_count()

    def cost(self, number: int) -> float:
        """Return the cost of an element, in additions."""
        return sum([self._costs[i] for i in _bit_positions(self._ancestor_bits[number])])

    def crossing(self, number: int) -> list[int]:
        """Return the values that cross a cut before an item: it or later items read them. Empty if
        they are too many, or larger than the item. Cheap values are recomputed instead.
        """
        crossing_values = [
            i
            for i in _bit_positions(self._ancestor_bits[number])
            if i != number
            and self._last_reader[i] >= number
            and self.items[i].kind is ItemKind.MAP
            and self.cost(i) > STORE + LOAD
        ]
        size = self.items[number].size
        if len(crossing_values) > MAX_CROSSING_VALUES or any(
            self.items[i].size > size for i in crossing_values
        ):
            return []
        return crossing_values


def _last_readers(items: Sequence[ScheduleItem], users: Sequence[Sequence[int]]) -> list[int]:
    """For each item its last reader, directly or through views."""
    last_reader = [-1] * len(items)
    for number in reversed(range(len(items))):
        for user in users[number]:
            reader = last_reader[user] if items[user].kind is ItemKind.VIEW else user
            last_reader[number] = max(last_reader[number], reader)
    return last_reader


def _bit_positions(bits: int) -> list[int]:
    """The positions of the set bits of a number, the lowest first."""
    positions = []
    while bits:
        lowest = bits & -bits
        positions.append(lowest.bit_length() - 1)
        bits ^= lowest
    return positions
