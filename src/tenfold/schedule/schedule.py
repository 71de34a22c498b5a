"""Schedule: the steps that compute a graph, each with its reads, its writes and its reasons.

Takes a Graph and the layouts of its computed values, hands on a Schedule: frozen, printable, good
for every graph of the same structure and lengths. Scalars are not part of it.

>>> import tenfold as tn
>>> from tenfold import _native
>>> x = tn.asarray([1.0, 2.0])
>>> print(plan_of(Graph.of([_native.node_of((x + x) * 2)])))
kernel linear: add, multiply -> float64[2]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tenfold._native import Node
from tenfold.core.cached_property import cached
from tenfold.core.graph import Graph
from tenfold.core.index_map import IndexMap, compose_view, identity, strides_in
from tenfold.core.shape_rules import Shape, product
from tenfold.schedule.buffer_reuse import ReusePairs, dead_after_steps, reuse_buffers
from tenfold.schedule.fusion import FusedGroup, Fusion
from tenfold.schedule.in_place_updates import (
    InPlaceHazard,
    NotInPlace,
    copy_reason,
    update_positions,
)
from tenfold.schedule.loop_schedule import Launch, launch_of
from tenfold.schedule.lowering import Lowering, contiguous_strides
from tenfold.schedule.output_layout import common_axis_order, strides_in_order
from tenfold.schedule.schedule_ir import ScheduleItem, UpdateRuns, items_by_node, items_of
from tenfold.schedule.symbolic_graph import is_symbolic
from tenfold.schedule.update_coalescing import runs_of
from tenfold.schedule.verify_kernel import verifies, verify_plan
from tenfold.schedule.write_ordering import Unit, WriteOrder, outputs

Layout = tuple[int, ...]


@dataclass(frozen=True)
class Buffer:
    """An array in memory: its item, shape, dtype and strides in bytes."""

    item: int
    shape: Shape
    dtype: str
    strides: Layout
    nbytes: int


@dataclass(frozen=True)
class Step:
    """One step: `reads` are items in memory, `results` the arrays that it stores.

    kernel: a launch; call: the node at `position`, by the reference or a library; alias: a view of
    the buffer of `reads[0]`, `offset` bytes in; part: one result of a call; empty: no operation, of
    arrays without elements.
    """

    kind: str
    reads: tuple[int, ...]
    results: tuple[Buffer, ...]
    names: tuple[str, ...]
    """The operations, as they were written."""
    position: int = -1
    launch: Launch | None = None
    offset: int = 0
    reasons: tuple[str, ...] = ()
    """Why intermediate results of the step are stored in memory."""
    not_fused_because: tuple[str, ...] = ()
    """Why it was not fused into the loops of others."""
    copies: int = 0
    """How many arrays it copies because it cannot update them in place."""
    unaliased_result: bool = False
    """Of a call: whether its result has its own buffer, without aliases."""
    accumulated_operand: int = -1
    """Of a call that may accumulate into one of `reads` in place: that item."""

    def __str__(self) -> str:
        results = ", ".join(f"{m.dtype}[{', '.join(map(str, m.shape))}]" for m in self.results)
        traversal = f" {self.launch.kernel.traversal}" if self.launch else ""
        return f"{self.kind}{traversal}: {', '.join(self.names)} -> {results}"


@dataclass(frozen=True)
class Schedule:
    """Steps in an order in which they can run."""

    steps: tuple[Step, ...]
    items: tuple[ScheduleItem, ...]
    live_out: frozenset[int]
    """The live-out items."""
    last_use: tuple[tuple[int, ...], ...]
    """For each step the items that are dead after it."""
    reused_buffers: ReusePairs
    """Results that reuse the buffer of an operand that is dead after that step. Only a replay may
    overwrite an earlier value: it has checked that the value has no other live reference."""

    @cached
    def temporaries(self) -> frozenset[int]:
        """The items that steps store in their own buffers and of which no element is live-out."""
        not_temporary, reused_buffers = set(self.live_out), dict(self.reused_buffers)
        for step in reversed(self.steps):
            not_temporary.update(
                reused_buffers[buffer.item]
                for buffer in step.results
                if buffer.item in not_temporary and buffer.item in reused_buffers
            )
            if step.kind in ("alias", "part") and step.results[0].item in not_temporary:
                not_temporary.update(step.reads)
        steps = [step for step in self.steps if step.kind not in ("alias", "part", "empty")]
        return (
            frozenset(result.item for step in steps for result in step.results)
            - not_temporary
            - set(reused_buffers)
        )

    @cached
    def items_at(self) -> dict[int, int]:
        """For each node of the graph the item that has its value."""
        return {item.position: number for number, item in enumerate(self.items)}

    def __str__(self) -> str:
        return "\n".join(str(step) for step in self.steps)


def plan_of(graph: Graph, *, fused: bool = True, fma: bool = True) -> Schedule:
    """Schedule a graph. `fused=False` gives every operation its own kernel; with `fma=False`, for a
    processor without FMA, operations that need it are calls.
    """
    if not is_replayable(graph):
        graph = replace(graph, dead_after_read=())
    decisions = _UpdateDecisions(graph, coalesce=fused)
    while True:
        runs = runs_of(graph, decisions.direct_updates()) if decisions.coalesce else UpdateRuns()
        try:
            plan = _Scheduler(graph, fused, fma, decisions, runs).plan()
        except NotInPlace as error:
            decisions.fall_back(runs, error.hazards)
            continue
        if verifies() and not is_symbolic(graph):
            verify_plan(graph, plan)
        return plan


class _UpdateDecisions:
    """For each update of a graph: in place, staged, or a copy."""

    def __init__(self, graph: Graph, *, coalesce: bool) -> None:
        reasons_to_copy = {
            position: copy_reason(graph, position) for position in update_positions(graph)
        }
        self.copy_reasons = {
            position: reason for position, reason in reasons_to_copy.items() if reason
        }
        """By update that is not in place: why."""
        self.directions: dict[int, tuple[int, ...]] = {
            position: () for position, reason in reasons_to_copy.items() if not reason
        }
        """By update in place: the directions of its loops; empty: all forward."""
        self.staged: set[int] = set()
        """In-place updates whose part is first computed into its own buffer."""
        self.graph, self.coalesce = graph, coalesce
        """Whether successive updates may be coalesced."""

    def fall_back(self, runs: UpdateRuns, hazards: Iterable[InPlaceHazard]) -> None:
        """Decide less ambitiously: no coalescing, other directions, staging, or a copy."""
        if any(hazard.position in runs.parts for hazard in hazards):
            self.coalesce = False
            return
        for hazard in hazards:
            at = hazard.position
            if hazard.directions and not self.directions[at]:
                self.directions[at] = hazard.directions
            elif at not in self.staged and self._staging_pays(at):
                self.staged.add(at)
                self.directions[at] = ()
            else:
                self.copy_reasons[at] = hazard.reason
                del self.directions[at]
                self.staged.discard(at)

    def direct_updates(self) -> list[int]:
        """In-place updates that are not staged."""
        return [at for at in self.directions if at not in self.staged]

    def _staging_pays(self, at: int) -> bool:
        """Whether staging a part moves fewer elements than copying the array."""
        node = self.graph.nodes[at]
        _, shape = node.op.writes(*node.params)
        return 2 * product(shape) <= product(node.type.shape)


def is_replayable(graph: Graph) -> bool:
    """Whether native code may run a plan of a graph, and Python again where that fails: all its
    operations are pure and none runs Python code of the user.
    """
    operations = (node.op for node in graph.nodes if node.pending and node.op is not None)
    return all(op.pure and not op.opaque for op in operations)


class _Scheduler:
    def __init__(
        self,
        graph: Graph,
        fused: bool,
        fma: bool,
        decisions: _UpdateDecisions,
        runs: UpdateRuns,
    ) -> None:
        self.graph, self.copy_reasons = graph, decisions.copy_reasons
        self.items = items_of(
            graph, fma=fma, in_place=decisions.directions, staged=decisions.staged, update_runs=runs
        )
        self.item_of_node = items_by_node(self.items)
        live_out = {
            self.item_of_node[position]
            for position, node in enumerate(graph.nodes)
            if graph.live_out[position] and node.pending
        }
        self.live_out = frozenset(live_out)
        self.fusion = Fusion(graph, self.items, live_out, fused)
        self.write_order = WriteOrder(graph, self.items, self.fusion)
        self.layouts: dict[int, Layout] = {}
        self.partly_written: set[int] = set()
        """The items of which an earlier step has written a part."""
        self.stored_roots = self._find_stored_roots()

    def _find_stored_roots(self) -> set[int]:
        """The roots that their group must store."""
        stored = set(self.live_out)
        fusion = self.fusion
        for number, item in enumerate(self.items):
            if item.kind in ("call", "restride", "part", "join") or number in fusion.aliases:
                stored.update(self._memory_inputs(number))
        for group in fusion.groups:
            stored |= group.reads
        return stored

    def _memory_inputs(self, number: int) -> list[int]:
        """The items that a call or an alias reads; an alias reads the base of its views."""
        if number not in self.fusion.aliases:
            base = self.items[number].base
            return [*self.items[number].inputs, *([base] if base >= 0 else [])]
        return [self._alias_base(number)[0]]

    def _alias_base(self, number: int) -> tuple[int, IndexMap]:
        access = identity(self.items[number].shape)
        while True:
            item = self.items[number]
            (operand,) = item.inputs
            access = compose_view(access, item.reads)
            number = operand
            if self.fusion.is_root(number):
                return number, access

    def layout(self, number: int) -> Layout:
        """The strides, in bytes, of an item in memory."""
        if number not in self.layouts:
            item = self.items[number]
            if item.kind == "value":
                value = self.graph.nodes[item.position].value()
                # a placeholder of a traced rule has none: the device raises when it is read
                strides = value.strides if value is not None else ()
                self.layouts[number] = strides or contiguous_strides(
                    item.shape, item.dtype.itemsize
                )
            elif item.base >= 0:
                self.layouts[number] = self.layout(item.base)
            else:
                self.layouts[number] = contiguous_strides(item.shape, item.dtype.itemsize)
        return self.layouts[number]

    def plan(self) -> Schedule:
        """Order the steps: each after those that compute its operands."""
        steps: list[Step] = []
        available: set[int] = {
            number
            for number, item in enumerate(self.items)
            if item.kind in ("value", "scalar") and number not in self.fusion.group_of
        }
        remaining: list[Unit] = [*self.fusion.groups]
        remaining += [
            number
            for number, item in enumerate(self.items)
            if item.kind in ("call", "restride", "part", "join") or number in self.fusion.aliases
        ]
        remaining.sort(key=lambda unit: max(unit.roots) if isinstance(unit, FusedGroup) else unit)
        readers = self.write_order.readers(remaining, self._inputs)
        while remaining:
            blocked: list[Unit] = []
            for unit in remaining:
                if self._inputs(unit) | self.write_order.predecessors(unit, readers) <= available:
                    step = self._make_step(unit)
                    if step is not None:
                        steps.append(step)
                    available |= outputs(unit)
                else:
                    blocked.append(unit)
            if len(blocked) == len(remaining):
                self.write_order.refuse_cycle(blocked)
            remaining = blocked
        last_uses = dead_after_steps(steps, self.live_out)
        node_values = self.item_of_node.values()
        reused_buffers = reuse_buffers(
            steps, last_uses, self._reusable_leaves(), node_values, self.write_order.overwriter_of
        )
        reused_buffers = (
            *reused_buffers,
            *self.write_order.overwritten_pairs(steps, last_uses, node_values),
        )
        return Schedule(tuple(steps), tuple(self.items), self.live_out, last_uses, reused_buffers)

    def _reusable_leaves(self) -> dict[int, Buffer]:
        """The earlier values that a replay may overwrite: they have no other live reference."""
        dead_after_read = self.graph.dead_after_read
        return {
            number: self._buffer(number)
            for number, item in enumerate(self.items)
            if item.kind == "value" and any(dead_after_read) and dead_after_read[item.position]
            if number not in self.live_out
        }

    def _inputs(self, unit: Unit) -> set[int]:
        if isinstance(unit, FusedGroup):
            join_of = self.fusion.join_of  # stored pieces are read in their join
            return {join_of.get(i, i) for i in unit.reads - set(unit.roots)}
        return set(self._memory_inputs(unit))

    def _make_step(self, unit: Unit) -> Step | None:
        if isinstance(unit, FusedGroup):
            return self._kernel_step(unit)
        item = self.items[unit]
        if unit in self.fusion.aliases:
            base, access = self._alias_base(unit)
            base_layout = self.layout(base)
            strides, offset = strides_in(access, base_layout, len(item.shape))
            self.layouts[unit] = strides
            return self._call_or_alias("alias", unit, (base,), offset=offset)
        if item.kind == "restride":
            return self._restride(unit)
        if item.kind == "join":
            return None  # its pieces have been written in place
        return self._call_or_alias(item.kind, unit, item.inputs)

    def _restride(self, number: int) -> Step:
        item = self.items[number]
        (source,) = item.inputs
        node = self.graph.nodes[item.position]
        source_item = self.items[source]
        strides = [stride // source_item.dtype.itemsize for stride in self.layout(source)]
        result_strides = node.op.strides(source_item.shape, tuple(strides), *node.params)
        if result_strides is None or item.size == 0:
            return self._call_or_alias("call", number, item.inputs)
        self.layouts[number] = tuple(stride * item.dtype.itemsize for stride in result_strides)
        return self._call_or_alias("alias", number, (source,))

    def _call_or_alias(
        self, kind: str, number: int, reads: Sequence[int], *, offset: int = 0
    ) -> Step:
        node = self.graph.nodes[self.items[number].position]
        return Step(
            kind,
            tuple(reads),
            (self._buffer(number),),
            (node.name,),
            self.items[number].position,
            offset=offset,
            unaliased_result=kind == "call"
            and (node.op.contraction or node.op.accumulates_into) is not None,
            accumulated_operand=self._find_accumulated_operand(node, reads)
            if kind == "call"
            else -1,
        )

    def _find_accumulated_operand(self, node: Node, reads: Sequence[int]) -> int:
        """The item into which a call may accumulate in place; -1 for none."""
        operand = (
            None if node.op.accumulates_into is None else node.op.accumulates_into(*node.params)
        )
        return -1 if operand is None or reads.count(reads[operand]) > 1 else reads[operand]

    def _buffer(self, number: int) -> Buffer:
        item = self.items[number]
        return Buffer(
            number,
            item.shape,
            str(item.dtype),
            self.layout(number),
            item.size * item.dtype.itemsize,
        )

    def _kernel_step(self, group: FusedGroup) -> Step | None:
        outputs = [root for root in group.roots if root in self.stored_roots]
        if not outputs:
            return None
        names = self._op_names(group)
        self._choose_layouts(group, outputs)
        targets = dict.fromkeys(self.fusion.join_of.get(root, root) for root in outputs)
        results = tuple(self._buffer(number) for number in targets)
        reasons = tuple(
            f"{self.graph.nodes[self.items[root].position].name}: {reason}"
            for root in outputs
            if root not in self.live_out
            and root not in self.fusion.join_of
            and (reason := self._why_stored(root))
        )
        not_fused_because = tuple(self.fusion.not_fused_because[group.number])
        if product(group.space) == 0:
            return Step(
                "empty", (), results, names, reasons=reasons, not_fused_because=not_fused_because
            )
        lowering = Lowering(self.fusion, group, outputs, self.layout)
        launch = launch_of(lowering)
        partly_written = [number for number in targets if number in self.partly_written]
        loaded = [m.item for m in launch.memory if not m.written]
        overwritten = [
            base for base, join in self.write_order.overwriter_of.items() if join in targets
        ]
        launch = self.write_order.order_loops(launch, group, targets)
        reads = tuple(dict.fromkeys([*loaded, *partly_written, *overwritten]))
        copies = tuple(self._copy_reasons(targets))
        self.partly_written.update(targets)
        return Step(
            *("kernel", reads, results, names),
            launch=launch,
            reasons=(*reasons, *copies),
            not_fused_because=not_fused_because,
            copies=len(copies),
        )

    def _copy_reasons(self, targets: Iterable[int]) -> list[str]:
        """Why updated arrays are copied."""
        positions = [self.items[i].position for i in targets if i not in self.partly_written]
        return [
            f"{self.graph.nodes[at].name}: a copy: {self.copy_reasons[at]}"
            for at in positions
            if at in self.copy_reasons
        ]

    def _choose_layouts(self, group: FusedGroup, outputs: Sequence[int]) -> None:
        """Give new results the common layout of their operands, if there is one."""
        order = common_axis_order(self.fusion, group, self.layout)
        if order is not None:
            for root in outputs:
                item = self.items[root]
                self.layouts[root] = strides_in_order(item.shape, order, item.dtype.itemsize)

    def _why_stored(self, root: int) -> str:
        """Why an intermediate result is stored in memory; "" if only aliases read it."""
        if root in self.fusion.reasons:
            return self.fusion.reasons[root]
        is_read = any(root in group.reads for group in self.fusion.groups)
        return "another kernel reads it" if is_read else ""

    def _op_names(self, group: FusedGroup) -> tuple[str, ...]:
        """The operations that a group computes, in the order of the graph."""
        positions: set[int] = set()
        stack = [(root, True) for root in group.roots]
        visited: set[int] = set()
        while stack:
            number, is_start = stack.pop()
            if number in visited:
                continue
            visited.add(number)
            item = self.items[number]
            if not is_start and number not in group.roots and self.fusion.is_root(number):
                continue
            computed = item.kind not in ("value", "scalar") or number in group.roots
            if computed and not self._follows_fold(item):
                positions.add(item.position)
            stack.extend((i, False) for i in item.inputs)
        return tuple(self.graph.nodes[position].name for position in sorted(positions))

    def _follows_fold(self, item: ScheduleItem) -> bool:
        """Whether it only finishes a reduction whose fold another kernel may have computed."""
        op = self.graph.nodes[item.position].op
        return (
            op is not None and op.folding is not None and item.kind != "fold" and not item.is_first
        )


def key_of(graph: Graph, *options: object) -> tuple[object, ...]:
    """Return the cache key of a plan: two graphs with equal keys have the same plan."""
    parts: list[object] = list(options)
    for position, node in enumerate(graph.nodes):
        if node.is_scalar:
            parts.append(node.type.dtype.num)
        elif not node.pending:
            value = node.value()
            type_ = node.type
            dead_after_read = bool(graph.dead_after_read) and graph.dead_after_read[position]
            parts.append(
                (type_.shape, type_.dtype, value.strides if value else None, dead_after_read)
            )
        else:
            op = node.op
            parts.append(
                (
                    # of several results only the first has the call's operation
                    (node.name, node.type.shape) if op is None else op.id,
                    graph.inputs[position],
                    graph.live_out[position],
                    node.params,
                    node.type.dtype,
                    node.operands,
                )
            )
    return tuple(parts)


__all__ = ["Buffer", "Schedule", "Step", "is_replayable", "key_of", "plan_of"]
