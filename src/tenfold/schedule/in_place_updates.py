"""In-place updates: decides which updates of a part of an array write into its buffer.

Takes the nodes of a graph that update a part (`Op.writes`), and the launch that computes it, hands
on whether the loops may write there: no element may be read after it was overwritten. An update
that needs its own buffer states why.

>>> import tenfold as tn
>>> from tenfold import _native
>>> from tenfold.core.graph import Graph
>>> from tenfold.schedule.schedule import plan_of
>>> x = tn.arange(4.0).wait()
>>> y = x * 2
>>> x[1:] = 0
>>> print(plan_of(Graph.of([_native.node_of(x)], (1,))).steps[0].reasons[0])
set_at: a copy: an array or a pending expression still refers to the old value
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tenfold.core.graph import Graph
from tenfold.core.shape_rules import product
from tenfold.schedule.dependence import LoopOrder, LoopSafety, safe_loop_order
from tenfold.schedule.loop_schedule import Launch
from tenfold.schedule.lowering import UnorderedOperand
from tenfold.schedule.strided_overlap import StridedRegion, overlap

REFERENCED = "an array or a pending expression still refers to the old value"
READ_LATER = "the old value is read after the new one is written"
CAN_FAIL = "a part of it can fail, and the old value must survive that"
BROADCAST = "the old value is broadcast: one element in memory stands for several"
HAS_VIEWS = "the old value is a view or has views"
GATHERED = "the old value is read at computed indices"
SEVERAL_KERNELS = "several kernels compute parts of it"


@dataclass(frozen=True)
class InPlaceHazard:
    """Why the update at a position of the graph cannot be done in place.

    It can if the loops go in these directions along the axes of its part, unless they are empty.
    """

    position: int
    reason: str
    directions: tuple[int, ...] = ()


class NotInPlace(Exception):
    """Some updates cannot be done in place."""

    def __init__(self, *hazards: InPlaceHazard) -> None:
        super().__init__("; ".join(hazard.reason for hazard in hazards))
        self.hazards = hazards


def update_positions(graph: Graph) -> list[int]:
    """Return the positions of nodes that update a part of an array."""
    return [
        position
        for position, node in enumerate(graph.nodes)
        if node.pending
        and node.op is not None
        and node.op.writes is not None
        and product(node.op.writes(*node.params)[1])
    ]


def copy_reason(graph: Graph, position: int) -> str:
    """Return why an update must copy the array; empty where it may overwrite it."""
    base = graph.inputs[position][0]
    node = graph.nodes[base]
    if graph.live_out[base] or not graph.dead_after_read:
        return REFERENCED
    if node.pending:
        return "" if node.op is not None and not node.op.view else HAS_VIEWS
    if not graph.dead_after_read[base]:
        return REFERENCED
    value = node.value()
    assert value is not None, "a value that is dead after the read is computed"
    strides = zip(node.type.shape, value.strides, strict=False)  # none in C order
    return BROADCAST if any(length > 1 and not stride for length, stride in strides) else ""


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


__all__ = ["InPlaceHazard", "NotInPlace", "copy_reason", "update_loop_order", "update_positions"]
