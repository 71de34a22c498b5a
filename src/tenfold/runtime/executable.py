"""Executable: a schedule becomes instructions, which the native executor replays.

Takes the original graph, the optimised graph and its schedule, hands on the builder. The executable
is cached in the core under the structure of the original graph. This and each further evaluation,
with other values, is a graph walk, a look-up and launches. Launches and calls have the position of
the node that they compute, so that a failed run names it.

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

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import EntryPoint, Executable, Node, Type, Value
from tenfold.core.graph import Graph
from tenfold.dtypes import DTYPES, kind_of
from tenfold.jit.program import (
    WORTH_OPTIMISING,
    Program,
    Source,
    program_of,
    use_counter,
    uses_left,
)
from tenfold.runtime import interruptible, reference
from tenfold.runtime.blas import product_launch, routines
from tenfold.runtime.blas.product_launch import BoundProduct
from tenfold.runtime.device import OptimisedGraph
from tenfold.runtime.lapack import dispatch, drivers
from tenfold.runtime.reference import ReferenceCall, raise_failure
from tenfold.runtime.thread_count import threads_of
from tenfold.schedule.buffer_reuse import last_writes
from tenfold.schedule.loop_schedule import pack_sizes, parameter_bytes
from tenfold.schedule.schedule_ir import Buffer, Launch, LaunchScalar, Schedule, Step
from tenfold.storage import dense

Caller = Callable[..., tuple[Value, ...]]
"""Computes a call from its node, its operands and the choice for a `product` or the `driver`;
`in_place=True` accumulates into an operand and returns no value."""
Instructions = list[tuple[str, tuple[Any, ...]]]
"""Method names of Executable, and their arguments."""


class NotReplayable(Exception):
    """The schedule has a step that native code cannot replay."""


def bind(
    original: OptimisedGraph, graph: Graph, schedule: Schedule, caller: Caller
) -> ExecutableBuilder | None:
    """Build the executable of a schedule; None if it cannot be replayed."""
    structure = original.graph.structure
    if structure is None:
        return None
    try:
        builder = ExecutableBuilder(structure, original, graph, schedule, caller)
        builder.emit()
        builder.executable = builder.build()
    except NotReplayable:
        return None
    return builder


class ExecutableBuilder:
    """The instructions of one schedule, as method names of Executable and their arguments."""

    def __init__(
        self,
        structure: _native.Structure,
        original: OptimisedGraph,
        graph: Graph,
        plan: Schedule,
        caller: Caller,
    ) -> None:
        self.structure, self.original, self.graph, self.plan = structure, original, graph, plan
        self.caller = caller
        self.device = graph.nodes[graph.outputs[0]].type.device
        self.positions = {node: position for position, node in enumerate(original.graph.nodes)}
        self.reused_buffers = dict(plan.reused_buffers)
        self.slots: dict[int, list[int]] = {}
        self.slot_count = 0
        self.exact_scalars = original.report.read_scalars
        self.replay_limit = -1
        self.node_items = plan.items_at
        self.nodes_of_item = self._nodes_of_items()
        self.computed_later = original.graph.computed_later()
        self.dead_items: set[int] = set()
        """Items that no later step reads."""
        self.step, self.last_step = 0, False
        self.last_write = last_writes(plan.steps)
        self.published: dict[int, list[int]] = {}
        """Items that are published already, and the positions of their nodes in the walk."""
        self.instructions: Instructions = []
        self.executable: Executable | None = None
        self.depends_on_starts = False
        """Whether the schedule depends on the starts of slices."""

    def emit(self) -> None:
        """Emit the instructions."""
        for number, step in enumerate(self.plan.steps):
            self.step, self.last_step = number, number == len(self.plan.steps) - 1
            if step.kind == "kernel":
                assert step.launch is not None, "a kernel step has a launch"
                self._kernel(step, step.launch)
            elif step.kind == "empty":
                for buffer in step.results:
                    self._allocate(buffer)
            elif step.kind == "alias":
                self._view(step)
            elif step.kind == "part":
                self._select_result(step)
            else:
                self._call(step)
            self.dead_items.update(self.plan.last_use[number])
            dropped = [slot for item in self.plan.last_use[number] for slot in self._slots_of(item)]
            if dropped:
                self._add(Executable.drop, dropped)
        self._publish()
        self.depends_on_starts = self._depends_on_starts()

    def build(self) -> Executable:
        """Return the executable; its number of slots is known only after `emit`."""
        return self.build_from(self.instructions)

    def build_from(self, instructions: Instructions) -> Executable:
        """Return the executable of instructions on its slots."""
        executable = Executable.create(
            self.structure,
            self.device,
            self.slot_count,
            self.exact_scalars,
            self.depends_on_starts,
            self.replay_limit,
        )
        for name, arguments in instructions:
            getattr(executable, name)(*arguments)
        return executable

    @property
    def is_general(self) -> bool:
        """Whether it is valid for any scalars and slice starts, and needs no Python."""
        calls = any(name == "call" for name, _ in self.instructions)
        return not (self.exact_scalars or self.depends_on_starts or calls)

    def cache(self) -> None:
        """Cache the executable for all graphs of its structure."""
        assert self.executable is not None, "it is built"
        self.executable.cache(self.structure)
        self._unlink_assignments()

    def _unlink_assignments(self) -> None:
        """Evaluate chained assignments separately in future if chaining them saves no launches."""
        graph = self.original.graph
        assignments = [
            node for node in graph.nodes if node.pending and node.op and node.op.lowering.updates
        ]
        single_output = len(graph.outputs) == 1 and graph.nodes[graph.outputs[0]] in assignments
        steps = self.plan.steps
        saves_launches = 2 * len(steps) <= len(assignments) and not any(
            step.copies for step in steps
        )
        if single_output and len(assignments) > 1 and not saves_launches:
            for node in assignments:
                _native.disable_deferral(node)

    def _depends_on_starts(self) -> bool:
        """Whether the schedule is invalid for other starts of slices: they change the copy around a
        slice that is not assigned in place, and the arguments of Python calls.
        """
        assigned_items = [
            self.plan.items_at[position]
            for position, node in enumerate(self.graph.nodes)
            if node.pending and node.op is not None and node.op.lowering.updates
        ]
        in_place = {
            number
            for number, item in enumerate(self.plan.items)
            if item.kind == "piece" or item.base >= 0
        }
        if not in_place.issuperset(assigned_items):
            return True
        called_ops = (
            self.graph.nodes[step.position].op for step in self.plan.steps if step.kind == "call"
        )
        return any(op is not None and op.lowering.index_map for op in called_ops)

    def _add(self, instruction: Callable[..., None], *arguments: Any) -> None:
        self.instructions.append((instruction.__name__, arguments))

    def _new_slots(self, item: int, count: int = 1) -> list[int]:
        self.slots[item] = [*range(self.slot_count, self.slot_count + count)]
        self.slot_count += count
        return self.slots[item]

    def _slots_of(self, item: int) -> list[int]:
        return self.slots.get(item, [])

    def _slot(self, item: int, index: int = 0) -> int:
        """Return the slot of a value; an existing value is loaded first."""
        if item in self.slots and index < len(self.slots[item]):
            return self.slots[item][index]
        node = self.graph.nodes[self.plan.items[item].position]
        position = self._required_position(node)
        if not self.structure.is_computed(position):
            raise NotReplayable
        loaded = self.slots.setdefault(item, [])
        while len(loaded) <= index:
            self._add(Executable.load, self.slot_count, position, len(loaded))
            loaded.append(self.slot_count)
            self.slot_count += 1
        return loaded[index]

    def _position(self, node: Node) -> int | None:
        return self.positions.get(node)

    def _required_position(self, node: Node) -> int:
        position = self._position(node)
        if position is None:
            raise NotReplayable
        return position

    def _type(self, buffer: Buffer) -> Any:
        return Type(buffer.shape, DTYPES[buffer.dtype], self.device, dense.NAME)

    def _pack_sizes(self, sizes: tuple[int, ...]) -> Any:
        return pack_sizes(sizes)

    def _allocate(self, buffer: Buffer) -> None:
        (slot,) = self._new_slots(buffer.item)
        temporary = buffer.item in self.plan.temporaries
        self._add(
            Executable.allocate, slot, self._type(buffer), buffer.nbytes, buffer.strides, temporary
        )

    def _table(self, size: int) -> int:
        """Allocate scratch bytes; return their slot."""
        table = Buffer(-1, (size,), "uint8", (1,), size)
        self._add(
            Executable.allocate, self.slot_count, self._type(table), size, table.strides, False
        )
        self.slot_count += 1
        return self.slot_count - 1

    def _view(self, step: Step) -> None:
        (result,) = step.results
        source = self._slot(step.reads[0])
        (slot,) = self._new_slots(result.item)
        self._add(Executable.view, slot, source, self._type(result), result.strides, step.offset)

    def _select_result(self, step: Step) -> None:
        (result,) = step.results
        index = self.graph.nodes[step.position].params[0]
        source_node = self.graph.nodes[self.plan.items[step.reads[0]].position]
        value = source_node.value(index)
        source = self._slot(step.reads[0], index)
        (slot,) = self._new_slots(result.item)
        if value is not None and value.strides:
            self._add(Executable.call, _to_row_major, (source,), (slot,), "", 0, False, False)
            return
        type_ = source_node.types[index] if value is None else value.type
        self._add(Executable.view, slot, source, type_, result.strides, 0)

    def _kernel(self, step: Step, launch: Launch) -> None:
        claims_value = False
        for _ in range(step.copies):
            self._add(Executable.count_copy)
        for buffer in step.results:
            if buffer.item in self.reused_buffers:
                claims_value = (
                    self._share_buffer(buffer.item, self.reused_buffers[buffer.item])
                    or claims_value
                )
            elif buffer.item not in self.slots:
                self._allocate(buffer)
        # a hot structure gets the optimised program at once
        elements = WORTH_OPTIMISING if self.structure.is_hot else launch.elements
        program = self._program(launch.kernel, elements)
        self._count_launches(launch.kernel)

        def add_launch(
            kernel: EntryPoint,
            finish: EntryPoint | None,
            finish_units: int,
            slots: Sequence[int] = (),
        ) -> None:
            operands = [(self._slot(memory.item), memory.offset) for memory in launch.memory]
            self._add(
                Executable.launch,
                (kernel, finish),
                finish_units,
                [*operands, *((slot, 0) for slot in slots)],
                () if slots else launch.totals,
                self._pack_sizes(launch.sizes),
                [self._number(parameter) for parameter in launch.parameters],
                launch.scratch,
                launch.parts if slots else launch.units,
                1 if slots else launch.grain,
                threads_of(launch, self.plan.target),
                claims_value,
                "+".join(step.names),
            )
            self._set_source(step)

        if launch.scans_in_parts(
            threads_of(launch, self.plan.target)
        ):  # two launches that share the tables
            tables = [self._table(size) for size in launch.totals]
            totals, carries, parts = program.scan_phases
            add_launch(totals, carries, launch.units, tables)
            add_launch(parts, None, 0, tables)
            self._add(Executable.drop, tables)
        else:
            add_launch(program.kernel, program.finish, launch.finish)
        if claims_value:
            self._publish_early()

    def _share_buffer(self, item: int, source: int) -> bool:
        """Reuse an operand's buffer for a result; return whether a node owns the operand."""
        slot = self._slot(source)
        (target,) = self._new_slots(item)
        self._add(Executable.share, target, slot)
        if self.plan.items[source].kind == "value":
            nodes = [self._required_position(self.graph.nodes[self.plan.items[source].position])]
        else:
            nodes = self.published.get(source, [])
        assert self.computed_later.isdisjoint(nodes), "a live array reads the buffer"
        for position in nodes:
            self._add(Executable.donate, position)
        return bool(nodes)

    def _publish_early(self) -> None:
        """Publish computed values now: their inputs are overwritten, and a later step may fail."""
        for item in self.slots:
            computed = self.plan.items[item].kind != "value" and item not in self.dead_items
            if computed and item not in self.published and self._must_be_published(item):
                if self.last_write.get(item, -1) > self.step:  # another thread may read it
                    raise NotReplayable
                self._publish_item(item)
                if not self.published[item] and not self.last_step:
                    raise NotReplayable

    def _must_be_published(self, item: int) -> bool:
        """Whether an item is the value of its node, which is lost otherwise. Named nodes that stay
        pending, and those below them, are computed again, from values that nothing overwrites.
        """
        if not self.is_node_value(item):
            return False
        nodes = self.nodes_of_item.get(item, [])
        return item in self.plan.live_out or self.computed_later.isdisjoint(nodes)

    def is_node_value(self, item: int) -> bool:
        """Whether an item is the value of its node."""
        return self.node_items[self.plan.items[item].position] == item

    def _program(self, kernel: Source, elements: int) -> Program:
        """Return the program of a launch."""
        return program_of(kernel, elements, self.plan.target)

    def _count_launches(self, kernel: Source) -> None:
        """Count launches of an unoptimised program, and limit the replays.

        After them the executable is built once more, with optimised programs.
        """
        limit = uses_left(kernel, self.plan.target)
        if limit >= 0:
            self.replay_limit = max(self.replay_limit, limit)
            self._add(Executable.count_use, use_counter(kernel, self.plan.target))

    def _set_source(self, step: Step) -> None:
        """Name the node of the last launch or call: of several the last one."""
        position = step.position
        if position < 0 and step.results:
            position = self.plan.items[step.results[-1].item].position
        source = None if position < 0 else self._position(self.graph.nodes[position])
        if source is not None:
            self._add(Executable.set_source, source)

    def _number(self, parameter: LaunchScalar) -> Any:
        """A scalar of a launch: a scalar node of the walk, or constant bytes."""
        if parameter.item < 0:
            return parameter_bytes(parameter, np.asarray(parameter.number))
        node = self.graph.nodes[self.plan.items[parameter.item].position]
        position = self._position(node)
        if node.is_scalar and position is not None and casts_natively(node.scalar, parameter.dtype):
            return position, parameter.dtype, parameter.part == 1
        self.exact_scalars = self.exact_scalars or node.is_scalar
        return scalar_bytes(node, parameter)

    def _call(self, step: Step) -> None:
        node = self.graph.nodes[step.position]
        inputs = [self._input(item) for item in step.reads]
        call = ReferenceCall(node.op, node.params, node.operands, node.types, node.type, node.name)
        if self._product(step, call) or self._lapack(step, call):
            return
        item = step.results[0].item
        on_host = _native.is_host_device(self.device)  # else it has copies there, of other layouts
        choices = (step.product, step.driver) if on_host else (None, None)
        caller = partial(self.caller, product=choices[0], driver=choices[1])
        in_place = item in self.reused_buffers and on_host
        claims_value = in_place and self._share_buffer(item, self.reused_buffers[item])
        if in_place:
            caller = partial(caller, in_place=True)
        operands = [self.plan.items[operand] for operand in step.reads]
        of_user = node.op.semantics.opaque or not node.op.semantics.pure
        self._add(
            Executable.call,
            replay_function(call, caller),
            inputs,
            () if in_place else self._new_slots(item, len(node.types)),
            node.name,
            0 if node.op.semantics.on_values else reference.multiply_adds(call, operands),
            item in self.plan.temporaries and not in_place,
            of_user,
        )
        self._set_source(step)
        if claims_value:
            self._publish_early()
        elif of_user:  # a failure of a later step must not run it again
            self._publish_item(item)

    def _publish_item(self, item: int) -> None:
        """Publish the value of an item now, if it is that of a node."""
        if self.is_node_value(item):
            self.published[item] = self.nodes_of_item.get(item, [])
            for position in self.published[item]:
                self._add(Executable.publish, position, self.slots[item])

    def _product(self, step: Step, call: ReferenceCall) -> bool:
        """Emit a native launch of a product; return False if it needs Python."""
        if step.product is None:
            return False
        items = [self.plan.items[item] for item in step.reads]
        nodes = [self.graph.nodes[item.position] for item in items]
        dtypes = [
            None if node.is_scalar else item.dtype for node, item in zip(nodes, items, strict=True)
        ]
        multiply_adds = self.graph.multiply_adds(step.position)
        bound = product_launch.bound_product(call, dtypes, step.product, multiply_adds)
        if bound is None or not all(
            self._position(node) is not None and casts_natively(node.scalar, call.type.dtype)
            for node in nodes
            if node.is_scalar
        ):
            return False
        self._launch_product(step, bound, call.type.dtype)
        return True

    def _launch_product(self, step: Step, bound: BoundProduct, dtype: np.dtype) -> None:
        (result,) = step.results
        product, reuses_buffer = bound.step, result.item in self.reused_buffers
        claims_value = reuses_buffer and self._share_buffer(
            result.item, self.reused_buffers[result.item]
        )
        if not reuses_buffer:
            self._allocate(result)
        program = self._program(product.kernel, product.multiply_adds)
        self._count_launches(product.kernel)
        items = [step.reads[index] for index in bound.reads]
        items.insert(2, result.item)
        factors = [[self._input(step.reads[at]) for at in scale.operands] for scale in bound.scales]
        self._add(
            Executable.launch,
            (program.kernel, program.finish),
            0,
            [*((self._slot(item), 0) for item in items), *bound.functions],
            (),
            self._pack_sizes(product.sizes),
            [],
            product.scratch,
            product.units,
            product.grain,
            product_launch.threads_of(product),
            claims_value,
            step.names[0],
        )
        self._set_source(step)
        self._add(Executable.set_multiply_adds, bound.multiply_adds)
        self._add(Executable.add_blas_limit, routines.libraries() if bound.functions else (), 1)
        for scale, scale_factors in zip(bound.scales, factors, strict=True):
            signs = scale.negative, scale.conjugated
            self._add(Executable.add_scale, scale.element, dtype, *signs, scale_factors)
        if claims_value:
            self._publish_early()

    def _lapack(self, step: Step, call: ReferenceCall) -> bool:
        """Emit a native call of LAPACK; return False if it needs Python: for copies, to be
        interrupted, and for memory that the host cannot read.
        """
        choice = step.driver
        if choice is None or choice.copies or choice.multiply_adds >= interruptible.LONG:
            return False
        if not _native.is_host_device(self.device):
            return False
        launch, layouts = drivers.bind_driver(choice), choice.operands
        item, label = step.results[0].item, step.names[0]
        slots, temporary = self._new_slots(item, len(choice.results)), item in self.plan.temporaries
        for slot, (type_, size) in zip(slots, choice.results, strict=True):
            self._add(Executable.allocate, slot, type_, size, (), temporary and slot == slots[0])
        buffers = [(slot, 0) for slot in (*map(self._slot, step.reads), *slots)]
        buffers += [(Executable.ADDRESS, address) for address in launch.addresses]
        work = (launch.scratch, choice.units, launch.grain, drivers.threads_of(launch), False)
        count = reference.multiply_adds(call, layouts)
        programs = (launch.kernel, None)
        self._add(Executable.launch, programs, 0, buffers, (), launch.sizes, [], *work, label)
        self._set_source(step)
        self._add(Executable.set_multiply_adds, count)
        if blas_threads := drivers.blas_threads(launch):
            self._add(Executable.add_blas_limit, routines.libraries(), blas_threads)
        if fallback := dispatch.fallback_counter(call):
            self._add(Executable.set_extra_work, slots[0], *fallback)
        return True

    def _input(self, item: int) -> int:
        node = self.graph.nodes[self.plan.items[item].position]
        return ~self._required_position(node) if node.is_scalar else self._slot(item)

    def _nodes_of_items(self) -> dict[int, list[int]]:
        """For each item the positions of the nodes in the walk that get its value: its own node and
        the nodes that it replaces.
        """
        nodes_of_item: dict[int, list[int]] = {}
        for position, node in enumerate(self.graph.nodes):
            at = self._position(node)
            if at is not None and not self.structure.is_computed(at):
                nodes_of_item.setdefault(self.node_items[position], []).append(at)
        for node, position in self.original.report.replaced_nodes:
            at = self._required_position(node)
            if not self.structure.is_computed(at):
                nodes_of_item.setdefault(self.node_items[position], []).append(at)
        return nodes_of_item

    def _publish(self) -> None:
        """Publish the values of the original graph."""
        existing = {number for number, item in enumerate(self.plan.items) if item.kind == "value"}
        published_nodes: set[int] = set()
        for item, nodes in self.nodes_of_item.items():
            if item in self.plan.live_out or item in existing:
                published_nodes.update(nodes)
                if item not in self.published:
                    slots = self._final_slots(item)
                    for position in nodes:
                        self._add(Executable.publish, position, slots)
        if not published_nodes >= set(self.original.graph.outputs):
            raise NotReplayable
        for position in self.original.graph.named():
            if position not in published_nodes and not self.structure.is_computed(position):
                self._add(Executable.mark_passed_through, position)

    def _final_slots(self, item: int) -> list[int]:
        """Return the slots of an item at the end."""
        if self.plan.items[item].kind == "value":
            self.slots.pop(item, None)  # it may have been dropped
            return [self._slot(item)]
        return self._slots_of(item)


def replay_function(call_node: ReferenceCall, caller: Caller) -> Callable[..., Sequence[Value]]:
    """Return the Python callback of a replay; it raises if the op fails for its values.

    It computes on the host, also for a device whose memory the host cannot read.
    """
    value_function, device = call_node.op.semantics.on_values, call_node.type.device
    if not _native.is_host_device(device):
        types = [Type(x.shape, x.dtype, dense.HOST, dense.NAME) for x in call_node.types]
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
        if call_node.type.device == device:
            return results
        return [value.copied_to(device) for value in results]

    return call if value_function is None else on_values


def _to_row_major(value: Value) -> tuple[Value]:
    return (dense.copy_to_pool(dense.export(value), value.type.device),)


def _value(x: Any, device: str) -> Value:
    return x if isinstance(x, Value) else dense.adopt(np.asarray(x), device)


def scalar_bytes(node: Node, parameter: LaunchScalar) -> bytes:
    """Return the scalar argument of a launch for a Python scalar or a constant fill, as 8 bytes.

    >>> import tenfold as tn
    >>> (_, scalar) = _native.node_of(tn.asarray([1.0]) * 2).inputs
    >>> parameter = LaunchScalar(0, DTYPES["float64"])
    >>> scalar_bytes(scalar, parameter) == np.float64(2).tobytes()
    True
    """
    if node.is_scalar:
        value = np.asarray(node.scalar)
    else:
        with np.errstate(all="ignore"):
            value = np.asarray(node.op.rewriting.constant_fill(*node.params)).astype(
                node.type.dtype
            )
    return parameter_bytes(parameter, reference.cast_operand(value, parameter.dtype))


def casts_natively(number: object, dtype: np.dtype) -> bool:
    """Whether native code casts this number to the dtype as NumPy does."""
    if kind_of(dtype) == "f":
        return dtype.itemsize >= 4 and isinstance(number, (bool, int, float))
    return kind_of(dtype) == "c" or isinstance(number, (bool, int))
