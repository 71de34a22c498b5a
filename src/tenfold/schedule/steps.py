"""Steps: what an executable does one after the other, with its reads, results and reasons.

A pass. Takes the ordered groups, calls and views, their layouts and their launches, hands on the
steps: a launch, a call, or a view.

>>> import tenfold as tn
>>> from tenfold import _native
>>> from tenfold.core.graph import Graph
>>> from tenfold.schedule.schedule import schedule_graph
>>> schedule = schedule_graph(Graph.of([_native.node_of(tn.sort(tn.asarray([2.0, 1.0]))[:1] + 1)]))
>>> for step in schedule.steps:
...     print(step, step.reads)
call: sort -> float64[2] (0,)
kernel linear: index, add -> float64[1] (1,)
"""

from __future__ import annotations

from collections.abc import Iterable

from tenfold._native import Node
from tenfold.schedule.pass_rules import require
from tenfold.schedule.schedule_ir import FusedGroup, ItemKind, Schedule, ScheduleItem, Step


def make_steps(schedule: Schedule) -> Schedule:
    """Make the steps of a schedule."""
    partly_written: set[int] = set()
    read_by_groups: set[int] = set().union(*[group.reads for group in schedule.groups])
    steps = [
        _kernel_step(schedule, unit, partly_written, read_by_groups)
        if isinstance(unit, FusedGroup)
        else _call_step(schedule, unit)
        for unit in schedule.order
    ]
    return schedule.updated(steps=tuple(steps))


def verify_steps(schedule: Schedule) -> None:
    """Steps read what earlier ones stored, as it was written, and together store all live-out
    items. A launch reads and writes only what its step says.
    """
    stored = {number for number, item in enumerate(schedule.items) if item.kind in GIVEN}
    for place, step in enumerate(schedule.steps):
        missing = set(step.reads) - stored
        require(not missing, "step {} reads {}, which no earlier step stores", place, missing)
        stored.update([result.item for result in step.results])
        require(
            (step.launch is not None) == (step.kind == "kernel"), "step {} has no launch", place
        )
        if step.launch is not None:
            loaded = {memory.item for memory in step.launch.memory if not memory.written}
            written = {memory.item for memory in step.launch.memory if memory.written}
            require(loaded <= {*step.reads}, "step {} loads more than it reads", place)
            results = {result.item for result in step.results}
            require(written == results, "step {} writes {}, not {}", place, written, results)
        for result in step.results:
            same = result.strides == schedule.layouts[result.item]
            require(same, "step {} stores {} in another layout", place, result.item)
    lost = schedule.live_out - stored
    require(not lost, "the live-out items {} are not stored", lost)


GIVEN = (ItemKind.VALUE, ItemKind.SCALAR)
"""The kinds of items that exist before the first step."""


def _kernel_step(
    schedule: Schedule, group: FusedGroup, partly_written: set[int], read_by_groups: set[int]
) -> Step:
    """A launch, or a step without elements; `partly_written` are the results of earlier steps that
    have parts.
    """
    concat_of = schedule.concat_of
    targets = list(dict.fromkeys([concat_of.get(root, root) for root in group.outputs]))
    results, names = tuple([schedule.buffer(number) for number in targets]), _names(schedule, group)
    reasons = _reasons(schedule, group, read_by_groups)
    launch = schedule.launches.get(group.number)
    if launch is None:
        because = group.not_fused_because
        return Step("empty", (), results, names, reasons=reasons, not_fused_because=because)
    loaded = [memory.item for memory in launch.memory if not memory.written]
    overwritten = [base for base, concat in schedule.overwriter_of.items() if concat in targets]
    continued = [number for number in targets if number in partly_written]
    copies = tuple(_copy_reasons(schedule, [i for i in targets if i not in partly_written]))
    partly_written.update(targets)
    return Step(
        "kernel",
        tuple(dict.fromkeys([*loaded, *continued, *overwritten])),
        results,
        names,
        launch=launch,
        reasons=(*reasons, *copies),
        not_fused_because=group.not_fused_because,
        copies=len(copies),
    )


def _reasons(schedule: Schedule, group: FusedGroup, read_by_groups: set[int]) -> tuple[str, ...]:
    """Why intermediate results of a group are stored in memory."""
    reasons = []
    for root in group.outputs:
        if root in schedule.live_out or root in schedule.concat_of:
            continue
        reason = schedule.stored_because.get(root, "")
        if not reason and root in read_by_groups:
            reason = "another kernel reads it"
        if reason:  # none where only aliases read it
            reasons.append(f"{_node(schedule, root).name}: {reason}")
    return tuple(reasons)


def _copy_reasons(schedule: Schedule, targets: Iterable[int]) -> list[str]:
    """Why updated arrays are copied."""
    copy_reasons = schedule.updates.copy_reasons
    if not copy_reasons:
        return []
    positions = [schedule.items[number].position for number in targets]
    return [
        f"{schedule.graph.nodes[at].name}: a copy: {copy_reasons[at]}"
        for at in positions
        if at in copy_reasons
    ]


def _names(schedule: Schedule, group: FusedGroup) -> tuple[str, ...]:
    """The operations that a group computes, in the order of the graph."""
    numbers = [
        *group.roots,
        *[i for i in group.inlined if schedule.items[i].kind is not ItemKind.SCALAR],
    ]
    positions = {
        item.position
        for item in map(schedule.items.__getitem__, numbers)
        if item.kind is ItemKind.MAP or not _follows_fold(schedule, item)
    }
    return tuple([schedule.graph.nodes[position].name for position in sorted(positions)])


def _follows_fold(schedule: Schedule, item: ScheduleItem) -> bool:
    """Whether it only finishes a reduction whose fold another kernel may have computed."""
    op = schedule.graph.nodes[item.position].op
    return (
        op is not None
        and op.lowering.folding is not None
        and item.kind is not ItemKind.FOLD
        and not item.is_first
    )


def _call_step(schedule: Schedule, number: int) -> Step:
    """A call, one result of a call, or a view."""
    item, node = schedule.items[number], _node(schedule, number)
    alias = schedule.aliases.get(number)
    reads = item.inputs if alias is None else (alias.item,)
    results, names = (schedule.buffer(number),), (node.name,)
    offset = schedule.alias_offsets.get(number)
    if offset is not None:
        return Step("alias", reads, results, names, item.position, offset=offset)
    if item.kind is ItemKind.PART:
        return Step("part", reads, results, names, item.position)
    return Step(
        "call",
        reads,
        results,
        names,
        item.position,
        unaliased_result=node.op.rewriting.contraction is not None,
        product=schedule.products.get(number),
        driver=schedule.drivers.get(number),
        accumulated_operand=_accumulated_operand(node, reads),
    )


def _accumulated_operand(node: Node, reads: tuple[int, ...]) -> int:
    """The item into which a call may accumulate in place; -1 for none."""
    operand = (
        None
        if node.op.lowering.epilogue is None
        else node.op.lowering.epilogue(*node.params).addend
    )
    return -1 if operand is None or reads.count(reads[operand]) > 1 else reads[operand]


def _node(schedule: Schedule, number: int) -> Node:
    return schedule.graph.nodes[schedule.items[number].position]


__all__ = ["make_steps", "verify_steps"]
