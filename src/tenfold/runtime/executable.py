"""Executable: a schedule becomes instructions, which the native executor replays.

Takes the graph as it was written, the graph that is computed in its stead and its plan, hands on
whether that succeeded. The executable is cached in the core under the structure of the written
graph. This and each further evaluation of it, with other values, is a walk, a look-up and launches.
A failed replay is computed anew, step by step, so that the error names its cause.

>>> import tenfold as tn
>>> x = tn.asarray([1.0, 2.0])
>>> with tn.options(tier=1):
...     _ = (x + 5.3).wait()
...     before = _native.kept_plans()
...     _ = (x + 7.9).wait()
>>> _native.kept_plans() - before
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
from tenfold.dtypes import DTYPES
from tenfold.jit.program import WORTH_OPTIMISING, Source, note_use, program_of, uses_left
from tenfold.runtime import interruptible, reference
from tenfold.runtime.blas import multiply, routines
from tenfold.runtime.blas.product_forms import ProductOperand
from tenfold.runtime.device import OptimisedGraph
from tenfold.runtime.executable_calls import Caller, calling
from tenfold.runtime.executable_products import BoundProduct, bound_product
from tenfold.runtime.executable_scalars import castable, scalar_bytes
from tenfold.runtime.lapack import dispatch, drivers
from tenfold.runtime.reference import ReferenceCall
from tenfold.schedule.loop_schedule import Launch, pack_sizes, parameter_bytes
from tenfold.schedule.lowering import LaunchScalar, contiguous_strides
from tenfold.schedule.schedule import Buffer, Schedule, Step
from tenfold.schedule.schedule_ir import items_by_node
from tenfold.settings import get
from tenfold.storage import dense

Threads = Callable[[Launch], int]
"""On how many threads a launch may run."""


class NotReplayable(Exception):
    """Something that native code cannot replay."""


def bind(
    written: OptimisedGraph, graph: Graph, plan: Schedule, threads: Threads, caller: Caller
) -> ExecutableBuilder | None:
    """Compile a plan's kernels and keep what replays it; None for what cannot be replayed."""
    structure = written.graph.structure
    if structure is None:
        return None
    try:
        binding = ExecutableBuilder(structure, written, graph, plan, caller)
        binding.write(threads)
        binding.kept = binding.bound()
        binding.kept.keep(structure)
        binding.tell_assignments()
    except NotReplayable:
        return None
    return binding


class ExecutableBuilder:
    """The instructions of one plan, as names of methods of Executable and their arguments."""

    def __init__(
        self,
        structure: _native.Structure,
        written: OptimisedGraph,
        graph: Graph,
        plan: Schedule,
        caller: Caller,
    ) -> None:
        self.structure, self.written, self.graph, self.plan = structure, written, graph, plan
        self.caller = caller
        self.at = {node: position for position, node in enumerate(written.graph.nodes)}
        self.reused_buffers = dict(plan.reused_buffers)
        self.slots: dict[int, list[int]] = {}
        self.layouts: dict[int, ProductOperand] = {}
        """How items lie that steps have made."""
        self.count = 0
        self.exact = written.report.looked
        self.runs = -1
        self.last = items_by_node(list(plan.items))
        self.given = self._given()
        self.gone: set[int] = set()
        """Items that no later step needs."""
        self.last_step = False
        self.published: dict[int, list[int]] = {}
        """Items that nodes have been given already, and the places of these in the walk."""
        self.todo: list[tuple[str, tuple[Any, ...]]] = []
        self.kept: Executable | None = None
        self.parts = False
        """Whether the plan depends on where parts begin."""

    def write(self, threads: Threads) -> None:
        """Write the instructions."""
        for number, step in enumerate(self.plan.steps):
            self.last_step = number == len(self.plan.steps) - 1
            if step.kind == "kernel":
                assert step.launch is not None, "a kernel step has a launch"
                self._kernel(step, step.launch, threads)
            elif step.kind == "empty":
                for made in step.results:
                    self._allocate(made)
            elif step.kind == "window":
                self._window(step)
            elif step.kind == "part":
                self._part(step)
            else:
                self._call(step)
            self._note(step)
            self.gone.update(self.plan.last_use[number])
            dropped = [slot for item in self.plan.last_use[number] for slot in self._all(item)]
            if dropped:
                self._add(Executable.drop, dropped)
        self._publish()
        self.parts = self._depends_on_starts()

    def bound(self) -> Executable:
        """Return what replays it; how many slots it needs is known only at the end."""
        plan = Executable.of(self.structure, self.count, self.exact, self.parts, self.runs)
        for name, arguments in self.todo:
            getattr(plan, name)(*arguments)
        return plan

    @property
    def is_reusable(self) -> bool:
        """Whether it is good for any scalars and places, for ever, and calls nothing of Python."""
        calls = any(name == "call" for name, _ in self.todo)
        return not (self.exact or self.parts or calls or self.runs >= 0)

    def _note(self, step: Step) -> None:
        """Note how lies what a step has made; what stands where an operand stood lies as that."""
        for made in step.results:
            if made.item in self.reused_buffers:
                self.layouts[made.item] = self._layout(self.reused_buffers[made.item])
            else:
                dtype = DTYPES[made.dtype]
                self.layouts[made.item] = ProductOperand(made.shape, made.strides, dtype)

    def _layout(self, item: int) -> ProductOperand:
        if item in self.layouts:
            return self.layouts[item]
        value = self.graph.nodes[self.plan.items[item].position].value()
        if value is None:
            raise NotReplayable
        shape, dtype = value.type.shape, value.type.dtype
        return ProductOperand(shape, value.strides or contiguous_strides(shape, dtype.itemsize), dtype)

    def tell_assignments(self) -> None:
        """Let assignments that waited for each other do so no more if that saves no launches."""
        graph = self.written.graph
        waited = [node for node in graph.nodes if node.pending and node.op and node.op.writes]
        alone = len(graph.outputs) == 1 and graph.nodes[graph.outputs[0]] in waited
        steps = self.plan.steps
        saves = 2 * len(steps) <= len(waited) and not any(step.copies for step in steps)
        if alone and len(waited) > 1 and not saves:
            for node in waited:
                _native.keep_apart(node)

    def _depends_on_starts(self) -> bool:
        """Whether the plan is not right any more where all parts of an array begin further on: what
        lies around a part that is not replaced in place, and what Python computes, is another then.
        """
        written = [
            self.plan.items_at[position]
            for position, node in enumerate(self.graph.nodes)
            if node.pending and node.op is not None and node.op.writes is not None
        ]
        in_place = {
            number
            for number, item in enumerate(self.plan.items)
            if item.kind == "piece" or item.base >= 0
        }
        if not in_place.issuperset(written):
            return True
        called = (self.graph.nodes[s.position].op for s in self.plan.steps if s.kind == "call")
        return any(op is not None and (op.reads or op.writes) for op in called)

    def _add(self, instruction: Callable[..., None], *arguments: Any) -> None:
        self.todo.append((instruction.__name__, arguments))

    def _new(self, item: int, several: int = 1) -> list[int]:
        self.slots[item] = [*range(self.count, self.count + several)]
        self.count += several
        return self.slots[item]

    def _all(self, item: int) -> list[int]:
        return self.slots.get(item, [])

    def _slot(self, item: int, index: int = 0) -> int:
        """Where a value stands; one that was there before the plan is taken first."""
        if item in self.slots and index < len(self.slots[item]):
            return self.slots[item][index]
        node = self.graph.nodes[self.plan.items[item].position]
        position = self._walked(node)
        if not self.structure.computed(position):
            raise NotReplayable
        known = self.slots.setdefault(item, [])
        while len(known) <= index:
            self._add(Executable.load, self.count, position, len(known))
            known.append(self.count)
            self.count += 1
        return known[index]

    def _position(self, node: Node) -> int | None:
        return self.at.get(node)

    def _walked(self, node: Node) -> int:
        position = self._position(node)
        if position is None:
            raise NotReplayable
        return position

    def _type(self, made: Buffer) -> Any:
        return Type(made.shape, DTYPES[made.dtype], "cpu", dense.NAME)

    def _packed(self, sizes: tuple[int, ...]) -> Any:
        return pack_sizes(sizes)

    def _allocate(self, made: Buffer) -> None:
        (slot,) = self._new(made.item)
        temporary = made.item in self.plan.temporaries
        self._add(Executable.allocate, slot, self._type(made), made.nbytes, made.strides, temporary)

    def _table(self, size: int) -> int:
        """Let bytes be allocated; return where they stand."""
        table = Buffer(-1, (size,), "uint8", (1,), size)
        self._add(Executable.allocate, self.count, self._type(table), size, table.strides, False)
        self.count += 1
        return self.count - 1

    def _window(self, step: Step) -> None:
        (made,) = step.results
        source = self._slot(step.reads[0])
        (slot,) = self._new(made.item)
        self._add(Executable.view, slot, source, self._type(made), made.strides, step.offset)

    def _part(self, step: Step) -> None:
        (made,) = step.results
        index = self.graph.nodes[step.position].params[0]
        whole = self.graph.nodes[self.plan.items[step.reads[0]].position]
        value = whole.value(index)
        if value is not None and value.strides:
            raise NotReplayable
        source = self._slot(step.reads[0], index)
        (slot,) = self._new(made.item)
        type_ = whole.types[index] if value is None else value.type
        self._add(Executable.view, slot, source, type_, made.strides, 0)

    def _kernel(self, step: Step, launch: Launch, threads: Threads) -> None:
        over_seen = False
        for _ in range(step.copies):
            self._add(Executable.count_copy)
        for made in step.results:
            if made.item in self.reused_buffers:
                over_seen = self._take_over(made.item, self.reused_buffers[made.item]) or over_seen
            elif made.item not in self.slots:
                self._allocate(made)
        # what came often needs no quickly compiled program that is counted once more
        worth = WORTH_OPTIMISING if self.structure.hot else 0
        program = program_of(launch.kernel, max(launch.elements, worth))
        self._quickly(launch.kernel)

        def run(
            kernel: EntryPoint, finish: EntryPoint | None, finished: int, slots: Sequence[int] = ()
        ) -> None:
            operands = [(self._slot(memory.item), memory.offset) for memory in launch.memory]
            self._add(
                Executable.launch,
                (kernel, finish),
                finished,
                [*operands, *((slot, 0) for slot in slots)],
                () if slots else launch.totals,
                self._packed(launch.sizes),
                [self._number(parameter) for parameter in launch.parameters],
                launch.scratch,
                launch.parts if slots else launch.units,
                1 if slots else launch.grain,
                threads(launch),
                over_seen,
                "+".join(step.names),
            )

        if launch.scans_in_parts(threads(launch)):  # two launches, between which the tables stay
            tables = [self._table(size) for size in launch.totals]
            totals, carries, parts = program.parts
            run(totals, carries, launch.units, tables)
            run(parts, None, 0, tables)
            self._add(Executable.drop, tables)
        else:
            run(program.kernel, program.finish, launch.finish)
        if over_seen:
            self._publish_what_is_there()

    def _take_over(self, item: int, source: int) -> bool:
        """Let a result stand where an operand stood; whether that is the value of a node."""
        slot = self._slot(source)
        (own,) = self._new(item)
        self._add(Executable.share, own, slot)
        if self.plan.items[source].kind == "value":
            places = [self._walked(self.graph.nodes[self.plan.items[source].position])]
        else:
            places = self.published.get(source, [])
        for place in places:
            self._add(Executable.claim, place)
        return bool(places)

    def _publish_what_is_there(self) -> None:
        """Give nodes their values at once: what they were computed from has been written over, and
        a later step may fail.
        """
        for item, slots in self.slots.items():
            made = self.plan.items[item].kind != "value" and item not in self.gone
            if made and item not in self.published and self.last_of(item):
                self.published[item] = self.given.get(item, [])
                if not self.published[item] and not self.last_step:
                    raise NotReplayable
                for place in self.published[item]:
                    self._add(Executable.publish, place, slots)

    def last_of(self, item: int) -> bool:
        """Whether an item is the value of its node."""
        return self.last[self.plan.items[item].position] == item

    def _quickly(self, kernel: Source) -> None:
        """Have launches of what was quickly compiled counted: after some it is compiled again, all
        kernels of a plan at once, so that Python plans once more and no oftener.
        """
        left, cpu = uses_left(kernel), str(get("cpu"))
        if left < 0:
            return
        self.runs = max(self.runs, left)

        def used() -> tuple[Value, ...]:
            note_use(kernel, cpu)
            return ()

        self._add(Executable.call, used, (), (), "")

    def _number(self, parameter: LaunchScalar) -> Any:
        """A scalar of a launch: of the walk, or the bytes that it has whatever the values are."""
        if parameter.item < 0:
            return parameter_bytes(parameter, np.asarray(parameter.number))
        node = self.graph.nodes[self.plan.items[parameter.item].position]
        at = self._position(node)
        if node.is_scalar and at is not None and castable(node.scalar, parameter.dtype):
            return at, parameter.dtype, parameter.part == 1
        self.exact = self.exact or node.is_scalar
        return scalar_bytes(node, parameter)

    def _call(self, step: Step) -> None:
        node = self.graph.nodes[step.position]
        inputs = [self._input(item) for item in step.reads]
        called = ReferenceCall(
            node.op, node.params, node.operands, node.types, node.type, node.name
        )
        if self._product(step, called) or self._solved(step, called):
            return
        item = step.results[0].item
        if item in self.reused_buffers:
            over_seen = self._take_over(item, self.reused_buffers[item])
            caller = partial(self.caller, in_place=True)
            self._add(Executable.call, calling(called, caller, False), inputs, (), node.name)
            if over_seen:
                self._publish_what_is_there()
            return
        outputs = self._new(item, len(node.types))
        temporary = item in self.plan.temporaries
        self._add(
            Executable.call, calling(called, self.caller, temporary), inputs, outputs, node.name
        )

    def _product(self, step: Step, called: ReferenceCall) -> bool:
        """Have a product launched without Python; False where that cannot be."""
        if called.op.contraction is None and called.op.accumulates_into is None:
            return False
        nodes = [self.graph.nodes[self.plan.items[item].position] for item in step.reads]
        operands = [
            None if node.is_scalar else self._layout(item)
            for node, item in zip(nodes, step.reads, strict=True)
        ]
        found = bound_product(called, operands)
        if found is None or not all(
            node in self.at and castable(node.scalar, called.type.dtype)
            for node in nodes
            if node.is_scalar
        ):
            return False
        self._launch_product(step, found, called.type.dtype)
        return True

    def _launch_product(self, step: Step, found: BoundProduct, dtype: np.dtype) -> None:
        (made,) = step.results
        product, over = found.step, made.item in self.reused_buffers
        over_seen = over and self._take_over(made.item, self.reused_buffers[made.item])
        if not over:
            self._allocate(made)
        program = program_of(product.kernel, product.multiply_adds)
        self._quickly(product.kernel)
        items = [step.reads[place] for place in found.reads]
        items.insert(2, made.item)
        factors = [[self._input(step.reads[at]) for at in scale.places] for scale in found.scales]
        self._add(
            Executable.launch,
            (program.kernel, program.finish),
            0,
            [*((self._slot(item), 0) for item in items), *found.functions],
            (),
            found.sizes,
            [],
            product.scratch,
            product.units,
            product.grain,
            multiply.threads_of(product),
            over_seen,
            step.names[0],
        )
        self._add(Executable.product, found.multiply_adds)
        self._add(Executable.holding, routines.libraries() if found.functions else (), 1)
        for scale, places in zip(found.scales, factors, strict=True):
            self._add(Executable.scale, scale.element, dtype, scale.negative, places)
        if over_seen:
            self._publish_what_is_there()

    def _solved(self, step: Step, called: ReferenceCall) -> bool:
        """Have LAPACK called without Python; False where that cannot be."""
        if called.op not in dispatch.RECIPES:
            return False
        layouts = tuple([self._layout(item) for item in step.reads])
        found = dispatch.step_of(called.op, called.params, layouts, called.types)
        if found is None or found.multiply_adds >= interruptible.LONG:
            return False
        item, label = step.results[0].item, step.names[0]
        slots, temporary = self._new(item, len(found.results)), item in self.plan.temporaries
        for slot, (type_, size) in zip(slots, found.results, strict=True):
            self._add(Executable.allocate, slot, type_, size, (), temporary and slot == slots[0])
        programs = (program_of(found.kernel, found.work).kernel, None)
        self._quickly(found.kernel)
        buffers = [(slot, 0) for slot in (*map(self._slot, step.reads), *slots)]
        work = (found.scratch, found.units, found.grain, drivers.threads_of(found), False)
        count = reference.multiply_adds(called, layouts)
        self._add(Executable.launch, programs, 0, buffers, (), found.sizes, [], *work, label)
        self._add(Executable.product, count)
        if held := drivers.held_to(found):
            self._add(Executable.holding, routines.libraries(), held)
        if more := dispatch.counted_more(called):
            self._add(Executable.more, slots[0], *more)
        return True

    def _input(self, item: int) -> int:
        node = self.graph.nodes[self.plan.items[item].position]
        return ~self._walked(node) if node.is_scalar else self._slot(item)

    def _given(self) -> dict[int, list[int]]:
        """For each item the nodes of the walk whose value it is: of its own node, and of those in
        whose stead that was computed.
        """
        given: dict[int, list[int]] = {}
        for position, node in enumerate(self.graph.nodes):
            at = self._position(node)
            if at is not None and not self.structure.computed(at):
                given.setdefault(self.last[position], []).append(at)
        for node, position in self.written.report.replaced:
            at = self._walked(node)
            if not self.structure.computed(at):
                given.setdefault(self.last[position], []).append(at)
        return given

    def _publish(self) -> None:
        """Give what was written its values."""
        there = {number for number, item in enumerate(self.plan.items) if item.kind == "value"}
        seen: set[int] = set()
        for item, places in self.given.items():
            if item in self.plan.live_out or item in there:
                seen.update(places)
                if item not in self.published:
                    found = self._found(item)
                    for place in places:
                        self._add(Executable.publish, place, found)
        if not seen >= set(self.written.graph.outputs):
            raise NotReplayable
        for node in self.written.report.parts:
            self._add(Executable.mark, self._walked(node))

    def _found(self, item: int) -> list[int]:
        """Where the values of an item stand at the end."""
        if self.plan.items[item].kind == "value":
            self.slots.pop(item, None)  # it may have been dropped
            return [self._slot(item)]
        return self._all(item)
