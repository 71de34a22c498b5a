"""Pass text: all decisions of a schedule as lines, for errors of verifiers and for fixtures.

Takes a Schedule after any pass, hands on its text. Items are %0, %1, and so on; groups, steps and
nodes have their numbers.

>>> import tenfold as tn
>>> from tenfold import _native
>>> from tenfold.core.graph import Graph
>>> from tenfold.schedule.item_selection import select_items
>>> x = tn.asarray([1.0, 2.0])
>>> print(text_of(select_items(Schedule(Graph.of([_native.node_of(x + x)])))))
%0 = value float64[2]
%1 = map add(%0, %0) float64[2]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tenfold.core.index_map import COMPUTED_INDEX, AxisMap
from tenfold.core.loop_ir import Kernel
from tenfold.schedule.schedule_ir import FusedGroup, ItemKind, Launch, Schedule, Step


def text_of(schedule: Schedule) -> str:
    """Return the decisions of a schedule so far, one a line."""
    return "\n".join(_lines(schedule))


def _lines(schedule: Schedule) -> Iterator[str]:
    yield from _update_lines(schedule)
    yield from [_item_line(schedule, number) for number in range(len(schedule.items))]
    for group in schedule.groups:
        yield _group_line(group)
        yield from [f"  {reason}" for reason in group.not_fused_because]
    if schedule.order:
        units = [
            f"group {u.number}" if isinstance(u, FusedGroup) else f"%{u}" for u in schedule.order
        ]
        yield f"order: {', '.join(units)}"
    for number, strides in schedule.layouts.items():
        offset = schedule.alias_offsets.get(number)
        view = "" if offset is None else f", a view at byte {offset}"
        yield f"layout of %{number}: strides {strides}{view}"
    for number, choice in schedule.products.items():
        yield f"product %{number}: {choice.routine}, {choice.reason}"
    for number, driver in schedule.drivers.items():
        copies = ", on row-major copies" if driver.copies else ""
        yield f"driver of %{number}: {', '.join(driver.routines) or driver.driver}{copies}"
    yield from [_launch_line(number, launch) for number, launch in schedule.launches.items()]
    for place, step in enumerate(schedule.steps):
        yield _step_line(place, step)
        yield from [f"  stored, {reason}" for reason in step.reasons]
    for place, dead in enumerate(schedule.last_use):
        if dead:
            yield f"dead after step {place}: {_items(dead)}"
    for result, operand in schedule.reused_buffers:
        yield f"%{result} reuses the buffer of %{operand}"
    if schedule.temporaries:
        yield f"temporaries: {_items(sorted(schedule.temporaries))}"
    for hazard in schedule.hazards:
        directions = f", safe in the directions {hazard.directions}" if hazard.directions else ""
        yield f"hazard of node {hazard.position}: {hazard.reason}{directions}"


def _update_lines(schedule: Schedule) -> Iterator[str]:
    """The updates of the graph, by the numbers of their nodes."""
    updates, runs = schedule.updates, schedule.update_runs
    for position, reason in updates.copy_reasons.items():
        yield f"update {position}: a copy: {reason}"
    for position, directions in updates.directions.items():
        staged = ", staged" if position in updates.staged else ""
        backwards = f", in the directions {directions}" if directions else ""
        yield f"update {position}: in place{staged}{backwards}"
    for last, parts in runs.parts.items():
        members = " and ".join(map(str, parts))
        yield f"run of node {runs.bases[last]}: the parts of {members} become node {last}"
    for view, update in runs.values.items():
        yield f"  node {view} is the part that {update} computes"
    for view, (base, access) in runs.reads.items():
        yield f"  node {view} reads node {base} at {_axes(access)}"


def _item_line(schedule: Schedule, number: int) -> str:
    item = schedule.items[number]
    node = schedule.graph.nodes[item.position] if schedule.graph.nodes else None
    name = (
        ""
        if node is None or item.kind in (ItemKind.VALUE, ItemKind.SCALAR, ItemKind.CONSTANT)
        else f" {node.name}"
    )
    inputs = f"({_items(item.inputs)})" if item.inputs else ""
    shape = f" {item.dtype}[{', '.join(map(str, item.shape))}]"
    facts = [f" at {_axes(item.reads)}"] if item.kind is ItemKind.VIEW else []
    facts += [f" along {item.axis}"] if item.axis >= 0 else []
    facts += [f" at {_axes(item.access)}"] if item.access is not None else []
    facts += [f" from {item.start}"] if item.start else []
    facts += [f" over %{item.base}"] if item.base >= 0 else []
    facts += [f" staged %{item.staged}"] if item.staged >= 0 else []
    return (
        f"%{number} = {item.kind}{name}{inputs}{shape}{''.join(facts)}{_storage(schedule, number)}"
    )


def _storage(schedule: Schedule, number: int) -> str:
    """Whether an item is inlined or stored; nothing where it is in memory in any case."""
    if number in schedule.inlined:
        return "; inlined"
    if number in schedule.aliases:
        return f"; a view of %{schedule.aliases[number].item}"
    if number in schedule.stored_because:
        return f"; stored: {schedule.stored_because[number]}"
    return "; a root" if number in schedule.roots else ""


def _group_line(group: FusedGroup) -> str:
    axis = (
        "" if group.axis is None else f", {'scanned' if group.scanned else 'reduced'} {group.axis}"
    )
    space = f"[{', '.join(map(str, group.space))}]"
    stores = f"stores {_items(group.outputs)}" if group.outputs else "dead"
    reads = f", reads {_items(sorted(group.reads))}" if group.reads else ""
    return f"group {group.number} over {space}{axis}: {_items(group.roots)}{reads}, {stores}"


def _launch_line(number: int, launch: Launch) -> str:
    kernel: Kernel = launch.kernel
    order = " in order" if launch.sequential else ""
    return (
        f"launch of group {number}: {kernel.traversal}, axes {launch.order}, "
        f"packets of {kernel.lanes}, units of work: {launch.units}{order}"
    )


def _step_line(place: int, step: Step) -> str:
    reads = f" reads {_items(step.reads)}," if step.reads else ""
    return f"step {place}: {step};{reads} stores {_items(result.item for result in step.results)}"


def _items(numbers: Iterable[int]) -> str:
    return ", ".join([f"%{number}" for number in numbers])


def _axes(access: tuple[AxisMap, ...]) -> str:
    """An access, by axes of the reader: `[i0, 2*i1 + 3]`."""
    if access == COMPUTED_INDEX:
        return "computed indices"
    return f"[{', '.join(map(_axis, access))}]"


def _axis(axis_map: AxisMap) -> str:
    axis, coefficient, start = axis_map
    if axis is None:
        return str(start)
    factor = {1: "", -1: "-"}.get(coefficient, f"{coefficient}*")
    return f"{factor}i{axis}{f' + {start}' if start else ''}"


__all__ = ["text_of"]
