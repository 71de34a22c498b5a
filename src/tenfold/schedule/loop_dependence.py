"""Loop dependence: the loop order of launches that overwrite arrays which they read.

A pass. Takes the launch of each group, hands on launches whose loops read each element before they
overwrite it (`schedule/dependence.py`). Where no order is safe, it hands on the hazards.

>>> import tenfold as tn
>>> from tenfold import _native
>>> from tenfold.core.graph import Graph
>>> from tenfold.schedule.schedule import schedule_graph
>>> x = tn.arange(100.0).wait()
>>> x[:-1] = x[1:] * 2
>>> schedule_graph(Graph.of([_native.node_of(x)], (1,))).steps[0].launch.sequential
True
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tenfold.core.strided_overlap import StridedRegion, overlap
from tenfold.schedule.buffer_extents import extents_of
from tenfold.schedule.dependence import LoopOrder, LoopSafety, safe_loop_order
from tenfold.schedule.launch_space import loop_space
from tenfold.schedule.schedule_ir import (
    FusedGroup,
    InPlaceHazard,
    Launch,
    Schedule,
    UnorderedOperand,
)
from tenfold.schedule.verify_accesses import refuse_hazards

GATHERED = "the old value is read at computed indices"


def order_loops(schedule: Schedule) -> Schedule:
    """Choose the loop order of launches that update in place."""
    if not schedule.overwriter_of:
        return schedule
    launches, hazards = dict(schedule.launches), []
    for unit in schedule.order:
        if isinstance(unit, int) or unit.number not in launches:
            continue
        stored = {schedule.concat_of.get(root, root) for root in unit.outputs}
        for base, concat in schedule.overwriter_of.items():
            if concat not in stored:
                continue
            launch = launches[unit.number]
            loop_order = update_loop_order(launch, base, concat, unit.space, maps=unit.axis is None)
            if loop_order.kind is LoopSafety.FORWARD and not launch.kernel.transposed_operands:
                launches[unit.number] = replace(launch, sequential=True)
            elif loop_order.kind is not LoopSafety.ANY:
                hazards.append(_hazard(schedule, unit, concat, loop_order))
    return schedule.updated(launches=launches, hazards=tuple(hazards))


def verify_loop_order(schedule: Schedule) -> None:
    """A launch reads no element of an array after it has overwritten it."""
    concats = set(schedule.overwriter_of.values())
    if not concats:
        return
    extents = extents_of(schedule)
    for launch in schedule.launches.values():
        if any(memory.written and memory.item in concats for memory in launch.memory):
            refuse_hazards(loop_space(launch), extents)


def _hazard(
    schedule: Schedule, group: FusedGroup, concat: int, loop_order: LoopOrder
) -> InPlaceHazard:
    """The hazard of an update, with the directions of its loops that would be safe."""
    item = schedule.items[concat]
    directions: tuple[int, ...] = ()
    if loop_order.safe and len(item.inputs) == 1:
        (piece,) = item.inputs
        backward_axes = {
            axis for axis, direction in enumerate(loop_order.directions) if direction < 0
        }
        directions = tuple([-1 if axis in backward_axes else 1 for axis in group.roots[piece]])
    return InPlaceHazard(item.position, str(loop_order), directions)


def update_loop_order(
    launch: Launch, base: int, target_item: int, space: Sequence[int], *, maps: bool
) -> LoopOrder:
    """Return the loop order in which a launch may overwrite the item that it reads: each element is
    read before it is written.

    Loops other than maps may write only elements that they do not read. A read at computed indices
    makes every order unsafe.
    """
    targets = [_region(m, space) for m in launch.memory if m.written and m.item == target_item]
    reads = [_region(m, space) for m in launch.memory if not m.written and m.item == base]
    pairs = [] if maps else [(target, read) for target in targets for read in reads]
    reasons = [str(overlapping) for pair in pairs if not (overlapping := overlap(*pair)).disjoint]
    if _is_gathered(launch, base):
        reasons.append(GATHERED)
    if reasons:
        return LoopOrder(launch.order, (), reasons[0], safe=False)
    orders = [
        safe_loop_order(target, reads if maps else [], axes=launch.order) for target in targets
    ]
    constrained = [loop_order for loop_order in orders if loop_order.kind is not LoopSafety.ANY]
    not_forward = [
        loop_order for loop_order in constrained if loop_order.kind is not LoopSafety.FORWARD
    ]
    return (not_forward or constrained or orders)[0]


def _is_gathered(launch: Launch, base: int) -> bool:
    """Whether an item is read at computed indices."""
    gather_data = [
        instruction.data for instruction in launch.kernel.body if instruction.name == "gather"
    ]
    operands = {data[0] if isinstance(data, tuple) else data for data in gather_data}
    return any(m.item == base for number, m in enumerate(launch.memory) if number in operands)


def _region(memory: UnorderedOperand, space: Sequence[int]) -> StridedRegion:
    return StridedRegion(memory.offset, tuple(space), memory.strides, memory.dtype.itemsize)


__all__ = ["order_loops", "update_loop_order", "verify_loop_order"]
