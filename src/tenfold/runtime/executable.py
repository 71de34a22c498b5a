"""Executable: a schedule becomes instructions, which the native executor replays.

Takes the original graph, the optimised graph and its schedule, hands on the builder. The executable
is cached in the core under the structure of the original graph. This and each further evaluation,
with other values, is a graph walk, a look-up and launches. Its parts: the slots of items
(`slot_table.py`), the write-back of values (`publication.py`), launches (`launch_binding.py`).

>>> import tenfold as tn
>>> x = tn.asarray([1.0, 2.0])
>>> with tn.options(tier=1):
...     _ = (x + 5.3).wait()
...     before = _native.num_cached_plans()
...     _ = (x + 7.9).wait()
>>> _native.num_cached_plans() - before
0
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Executable, Type, Value
from tenfold.core.graph import Graph
from tenfold.runtime import reference
from tenfold.runtime.device import OptimisedGraph
from tenfold.runtime.instructions import Call, ReplayInstruction, View, append_to
from tenfold.runtime.launch_binding import LaunchBinder
from tenfold.runtime.publication import Publication
from tenfold.runtime.reference import ReferenceCall, raise_failure
from tenfold.runtime.scheduled_graph import NotReplayable, ScheduledGraph
from tenfold.runtime.slot_table import SlotTable
from tenfold.schedule.schedule_ir import Schedule, Step
from tenfold.storage import dense

Caller = Callable[..., tuple[Value, ...]]
"""Computes a call from its node, its operands and the choice for a `product` or the `driver`;
`in_place=True` accumulates into an operand and returns no value."""


def bind(
    original: OptimisedGraph, graph: Graph, schedule: Schedule, caller: Caller
) -> ExecutableBuilder | None:
    """Build the executable of a schedule; None if it cannot be replayed."""
    structure = original.graph.structure
    if structure is None:
        return None
    try:
        scheduled = ScheduledGraph(structure, original, graph, schedule)
        builder = ExecutableBuilder(scheduled, caller)
        builder.executable = builder.build(builder.instructions)
    except NotReplayable:
        return None
    return builder


class ExecutableBuilder:
    """The instructions of a schedule, and the executable that they become."""

    def __init__(self, scheduled: ScheduledGraph, caller: Caller) -> None:
        """Emit the instructions. Raises NotReplayable where native code cannot replay a step."""
        self.scheduled, self.caller = scheduled, caller
        self.slots = SlotTable(scheduled)
        self.instructions = self.slots.instructions
        self.publication = Publication(scheduled, self.slots)
        self.launches = LaunchBinder(scheduled, self.slots, self.publication)
        self.executable: Executable | None = None
        plan = scheduled.plan
        for number, (step, dead_items) in enumerate(zip(plan.steps, plan.last_use, strict=True)):
            if self._emit(step):
                self.publication.publish_early(number)
            self.publication.dead_items.update(dead_items)
            self.slots.drop(dead_items)
        self.publication.publish_outputs()
        self.depends_on_starts = scheduled.depends_on_starts()

    def _emit(self, step: Step) -> bool:
        """Emit the instructions of a step; return whether it overwrites the value of a node."""
        if step.kind == "kernel":
            return self.launches.bind_kernel(step)
        if step.kind == "call":
            return self._call(step)
        if step.kind == "empty":
            for buffer in step.results:
                self.slots.allocate(buffer)
        elif step.kind == "alias":
            self._view(step)
        else:
            self._select_result(step)
        return False

    def _view(self, step: Step) -> None:
        (result,) = step.results
        source = self.slots.slot(step.reads[0])
        (slot,) = self.slots.new(result.item)
        type_ = self.scheduled.type_of(result)
        self.instructions.append(View(slot, source, type_, result.strides, step.offset))

    def _select_result(self, step: Step) -> None:
        (result,) = step.results
        index = self.scheduled.graph.nodes[step.position].params[0]
        source_node = self.scheduled.node_of(step.reads[0])
        value = source_node.value(index)
        source = self.slots.slot(step.reads[0], index)
        (slot,) = self.slots.new(result.item)
        if value is not None and value.strides:
            self.instructions.append(Call(_to_row_major, (source,), (slot,)))
            return
        type_ = source_node.types[index] if value is None else value.type
        self.instructions.append(View(slot, source, type_, result.strides, 0))

    def _call(self, step: Step) -> bool:
        """Emit the native launch or the Python callback of a call."""
        scheduled, publication = self.scheduled, self.publication
        node = scheduled.graph.nodes[step.position]
        inputs = [self.slots.operand(item) for item in step.reads]
        call = ReferenceCall(node.op, node.params, node.operands, node.types, node.type, node.name)
        claims_value = self.launches.bind_product(step, call)
        if claims_value is None:
            claims_value = self.launches.bind_driver(step, call)
        if claims_value is not None:
            return claims_value
        item = step.results[0].item
        on_host = _native.is_host_device(scheduled.device)  # else copies there, of other layouts
        choices = (step.product, step.driver) if on_host else (None, None)
        caller = partial(self.caller, product=choices[0], driver=choices[1])
        in_place = item in publication.reused_buffers and on_host
        claims_value = in_place and publication.share_buffer(item)
        if in_place:
            caller = partial(caller, in_place=True)
        operands = [scheduled.plan.items[operand] for operand in step.reads]
        of_user = node.op.semantics.opaque or not node.op.semantics.pure
        self.instructions.append(
            Call(
                replay_function(call, caller),
                inputs,
                () if in_place else self.slots.new(item, len(node.types)),
                node.name,
                0 if node.op.semantics.on_values else reference.multiply_adds(call, operands),
                item in scheduled.plan.temporaries and not in_place,
                of_user,
                scheduled.source_of(step),
            )
        )
        if of_user and not claims_value:  # a failure of a later step must not run it again
            publication.publish(item)
        return claims_value

    def build(self, instructions: Iterable[ReplayInstruction]) -> Executable:
        """Return the executable of instructions on the slots."""
        executable = Executable.create(
            self.scheduled.structure,
            self.scheduled.device,
            self.slots.count,
            self.launches.exact_scalars,
            self.depends_on_starts,
            self.launches.replay_limit,
        )
        append_to(executable, instructions)
        return executable

    @property
    def is_general(self) -> bool:
        """Whether it is valid for any scalars and slice starts, and needs no Python."""
        calls = any(isinstance(each, Call) for each in self.instructions)
        return not (self.launches.exact_scalars or self.depends_on_starts or calls)

    def cache(self) -> None:
        """Cache the executable for all graphs of its structure."""
        assert self.executable is not None, "it is built"
        self.executable.cache(self.scheduled.structure)
        self._unlink_assignments()

    def _unlink_assignments(self) -> None:
        """Evaluate chained assignments separately in future if chaining them saves no launches."""
        graph = self.scheduled.original.graph
        assignments = [
            node for node in graph.nodes if node.pending and node.op and node.op.lowering.updates
        ]
        single_output = len(graph.outputs) == 1 and graph.nodes[graph.outputs[0]] in assignments
        steps = self.scheduled.plan.steps
        saves_launches = 2 * len(steps) <= len(assignments) and not any(
            step.copies for step in steps
        )
        if single_output and len(assignments) > 1 and not saves_launches:
            for node in assignments:
                _native.disable_deferral(node)


def replay_function(call_node: ReferenceCall, caller: Caller) -> Callable[..., Sequence[Value]]:
    """Return the Python callback of a replay; it raises if the op fails for its values.

    It computes on the host, also for a device whose memory the host cannot read.
    """
    value_function, device = call_node.op.semantics.on_values, call_node.type.device
    is_on_host = _native.is_host_device(device)
    if not is_on_host:
        types = [Type(x.shape, x.dtype, dense.HOST, dense.DENSE) for x in call_node.types]
        call_node = call_node._replace(types=tuple(types), type=types[0])

    def on_values(*inputs: Any) -> Sequence[Value]:
        assert value_function is not None, "this function is used only with on_values"
        values = [_value(x, device) for x in inputs]
        try:
            return value_function(values, *call_node.params)
        except Exception as error:
            raise_failure(call_node, error)
            raise

    def call(*inputs: Any) -> Sequence[Value]:
        arrays = [dense.export(x) if isinstance(x, Value) else np.asarray(x) for x in inputs]
        results = caller(call_node, arrays)
        if not is_on_host:
            _native.count("copies", sum(isinstance(x, Value) for x in inputs) + len(results))
        return [x if x.type.device == device else x.copied_to(device) for x in results]

    return call if value_function is None else on_values


def _to_row_major(value: Value) -> tuple[Value]:
    return (dense.copy_to_pool(dense.export(value), value.type.device),)


def _value(x: Any, device: str) -> Value:
    return x if isinstance(x, Value) else dense.adopt(np.asarray(x), device)
