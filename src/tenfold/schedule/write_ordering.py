"""Write ordering: anti-dependences, so that all reads of an array come before it is overwritten.

A pass. Takes the items of a graph and their groups, hands on the order of steps: each comes after
those that compute its operands, and all readers of an array come before the step that overwrites
it. Where no such order exists, it hands on the hazard of an update.

>>> import tenfold as tn
>>> from tenfold import _native
>>> from tenfold.core.graph import Graph
>>> from tenfold.schedule.schedule import schedule_graph
>>> x = tn.arange(4.0).wait()
>>> x[1:] = tn.sort(x)[:3]
>>> print(schedule_graph(Graph.of([_native.node_of(x)], (1,))))
call: sort -> float64[4]
kernel linear: index, set_at -> float64[4]
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tenfold.schedule.in_place_updates import HAS_VIEWS, READ_LATER, SEVERAL_KERNELS
from tenfold.schedule.pass_rules import require
from tenfold.schedule.schedule_ir import FusedGroup, InPlaceHazard, ItemKind, Schedule, Unit

OWN_STEPS = frozenset((ItemKind.CALL, ItemKind.COPY, ItemKind.PART, ItemKind.CONCAT))
"""The kinds of items that are units of their own."""


def order_units(schedule: Schedule) -> Schedule:
    """Order the groups, the calls and the views of memory."""
    items, aliases = schedule.items, schedule.aliases
    available = {
        number
        for number, item in enumerate(items)
        if item.kind is ItemKind.VALUE
        or (item.kind is ItemKind.SCALAR and number not in schedule.roots)
    }
    units: list[tuple[int, Unit]] = [(max(group.roots), group) for group in schedule.groups]
    units += [
        (number, number)
        for number, item in enumerate(items)
        if item.kind in OWN_STEPS or number in aliases
    ]
    units.sort(key=_position)
    needs = [(unit, inputs_of(schedule, unit)) for _, unit in units]
    if schedule.overwriter_of:
        refused = _add_anti_dependences(schedule, needs)
        if refused is not None:
            return schedule.updated(hazards=(refused,))
    order: list[Unit] = []
    while needs:
        blocked = []
        for need in needs:
            unit, inputs = need
            if inputs <= available:
                order.append(unit)
                available |= outputs(unit)
            else:
                blocked.append(need)
        if len(blocked) == len(needs):
            return schedule.updated(hazards=(_cycle(schedule, [unit for unit, _ in blocked]),))
        needs = blocked
    return schedule.updated(order=tuple([unit for unit in order if _is_step(schedule, unit)]))


def verify_order(schedule: Schedule) -> None:
    """Each unit comes once, after those that store its operands, and what overwrites an array comes
    after all that read it.
    """
    stored_by: dict[int, int] = {}
    for place, unit in enumerate(schedule.order):
        for number in outputs(unit):
            require(number not in stored_by, "item {} is computed twice", number)
            stored_by[number] = place
    for number in schedule.live_out:
        computed = number in stored_by or number in schedule.overwriter_of.values()
        known = schedule.items[number].kind in (ItemKind.VALUE, ItemKind.CONCAT)
        require(computed or known, "live-out item {} is in no step", number)
    last_read: dict[int, int] = {}
    for place, unit in enumerate(schedule.order):
        for number in inputs_of(schedule, unit):
            for read in _memory_of(schedule, number):
                last_read[read] = place
            item = schedule.items[number]
            for stored in item.inputs if item.kind is ItemKind.CONCAT else (number,):
                late = stored_by.get(stored, -1) >= place
                require(not late, "step {} reads item {} of a later step", place, number)
    for base, concat in schedule.overwriter_of.items():
        writes = [stored_by[i] for i in schedule.items[concat].inputs if i in stored_by]
        in_time = not writes or last_read.get(base, -1) <= min(writes)
        require(in_time, "item {} is read after it is overwritten", base)


def inputs_of(schedule: Schedule, unit: Unit) -> set[int]:
    """Return the items in memory that a unit reads; stored pieces are read in their concat."""
    if isinstance(unit, FusedGroup):
        concat_of = schedule.concat_of
        return {concat_of.get(i, i) for i in unit.reads if i not in unit.roots}
    alias = schedule.aliases.get(unit)
    if alias is not None:
        return {alias.item}
    item = schedule.items[unit]
    return {*item.inputs, *([item.base] if item.base >= 0 else [])}


def _memory_of(schedule: Schedule, number: int) -> list[int]:
    """An item in memory, and those of which it is a view."""
    numbers = [number]
    while numbers[-1] in schedule.aliases:
        numbers.append(schedule.aliases[numbers[-1]].item)
    return numbers


def outputs(unit: Unit) -> set[int]:
    """Return the items that a unit computes."""
    return set(unit.roots) if isinstance(unit, FusedGroup) else {unit}


def _position(numbered: tuple[int, Unit]) -> int:
    return numbered[0]


def _is_step(schedule: Schedule, unit: Unit) -> bool:
    """Whether a unit does something: a dead group does not, and a concat is written by others."""
    if isinstance(unit, FusedGroup):
        return bool(unit.outputs)
    return schedule.items[unit].kind is not ItemKind.CONCAT


def _add_anti_dependences(
    schedule: Schedule, needs: Sequence[tuple[Unit, set[int]]]
) -> InPlaceHazard | None:
    """Let each unit that overwrites an array need the array's other readers, by views too; return a
    hazard.
    """
    group_of = {root: group.number for group in schedule.groups for root in group.roots}
    readers: dict[int, set[int]] = {}
    for base, concat in schedule.overwriter_of.items():
        if len({group_of[piece] for piece in schedule.items[concat].inputs}) > 1:
            return _hazard(schedule, base, SEVERAL_KERNELS)
        readers[base] = set()
    base_of = {base: base for base in readers}
    for unit, inputs in needs:
        for number in base_of.keys() & inputs:
            base = base_of[number]
            overwrites = _overwrites(schedule, unit, base)
            if overwrites and number == base:
                continue
            if overwrites or _exposes_memory(schedule, unit):
                return _hazard(schedule, base, HAS_VIEWS)
            if isinstance(unit, int) and unit in schedule.aliases:
                base_of[unit] = base
            readers[base] |= outputs(unit)
    _add_readers(schedule, needs, readers)
    return None


def _exposes_memory(schedule: Schedule, unit: Unit) -> bool:
    """Whether a unit is a view of memory of which not all readers are known."""
    if isinstance(unit, FusedGroup) or schedule.items[unit].kind is ItemKind.CALL:
        return False
    return unit not in schedule.aliases or unit in schedule.live_out


def _add_readers(
    schedule: Schedule,
    needs: Sequence[tuple[Unit, set[int]]],
    readers: Mapping[int, Collection[int]],
) -> None:
    for unit, inputs in needs:
        if isinstance(unit, FusedGroup):
            bases = [base for base in readers if _overwrites(schedule, unit, base)]
            inputs.update(bases, *[readers[base] for base in bases])


def _overwrites(schedule: Schedule, unit: Unit, base: int) -> bool:
    """Whether a unit overwrites an item, or is the concat that does."""
    concat = schedule.overwriter_of[base]
    if isinstance(unit, int):
        return unit == concat
    return any(schedule.concat_of.get(root) == concat for root in unit.roots)


def _cycle(schedule: Schedule, blocked_units: Sequence[Unit]) -> InPlaceHazard:
    """The hazard of steps that depend on each other in a cycle."""
    bases = [
        base
        for base in schedule.overwriter_of
        if any(_overwrites(schedule, unit, base) for unit in blocked_units)
    ]
    assert bases, "steps depend on each other in a cycle"
    return _hazard(schedule, bases[0], READ_LATER)


def _hazard(schedule: Schedule, base: int, reason: str) -> InPlaceHazard:
    """The hazard of the update of an array."""
    return InPlaceHazard(schedule.items[schedule.overwriter_of[base]].position, reason)


__all__ = ["inputs_of", "order_units", "outputs", "verify_order"]
