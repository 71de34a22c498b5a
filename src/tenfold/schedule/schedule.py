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
from tenfold.schedule.buffer_reuse import ReusePairs, reuse_buffers
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
    """Something in memory: an item, the Type of its elements, and its strides in bytes."""

    item: int
    shape: Shape
    dtype: str
    strides: Layout
    nbytes: int


@dataclass(frozen=True)
class Step:
    """One thing to do: `reads` are items in memory, `makes` what is there afterwards.

    kernel: a launch; call: the node at `position`, by the reference or a library; window: another
    look at the memory of `reads[0]`, `offset` bytes in; empty: nothing, of arrays without elements.
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
    """How many arrays it copies before it updates a part of them."""
    unaliased_result: bool = False
    """Of a call: whether its result has its own buffer, without aliases."""
    accumulated_operand: int = -1
    """Of a call that may add to one of `reads` in its memory: that item."""

    def __str__(self) -> str:
        results = ", ".join(f"{m.dtype}[{', '.join(map(str, m.shape))}]" for m in self.results)
        how = f" {self.launch.kernel.traversal}" if self.launch else ""
        return f"{self.kind}{how}: {', '.join(self.names)} -> {results}"


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
        seen, over = set(self.live_out), dict(self.reused_buffers)
        for step in reversed(self.steps):
            seen.update(over[m.item] for m in step.results if m.item in seen and m.item in over)
            if step.kind in ("window", "part") and step.results[0].item in seen:
                seen.update(step.reads)
        steps = [step for step in self.steps if step.kind not in ("window", "part", "empty")]
        return frozenset(made.item for step in steps for made in step.results) - seen - set(over)

    @cached
    def items_at(self) -> dict[int, int]:
        """For each node of the graph the item that has its value."""
        return {item.position: number for number, item in enumerate(self.items)}

    def __str__(self) -> str:
        return "\n".join(str(step) for step in self.steps)


def plan_of(graph: Graph, *, fused: bool = True, fma: bool = True) -> Schedule:
    """Plan a graph; `fused=False` gives every operation a kernel of its own; without `fma`, for a
    processor that lacks it, operations that need it are calls.
    """
    if not is_replayable(graph):
        graph = replace(graph, dead_after_read=())
    changes = _UpdateDecisions(graph, together=fused)
    while True:
        runs = runs_of(graph, changes.direct_updates()) if changes.coalesce else UpdateRuns()
        try:
            plan = _Scheduler(graph, fused, fma, changes, runs).plan()
        except NotInPlace as refused:
            changes.fall_back(runs, refused.hazards)
            continue
        if verifies() and not is_symbolic(graph):
            verify_plan(graph, plan)
        return plan


class _UpdateDecisions:
    """How the updates of a graph are done, as far as is known."""

    def __init__(self, graph: Graph, *, together: bool) -> None:
        reasons = {at: copy_reason(graph, at) for at in update_positions(graph)}
        self.copy_reasons = {at: why for at, why in reasons.items() if why}
        """Those that are not done in place, and why."""
        self.directions: dict[int, tuple[int, ...]] = {
            at: () for at, why in reasons.items() if not why
        }
        """Those that are, and the directions of their loops where these must be chosen."""
        self.staged: set[int] = set()
        """Those of them whose part is computed in memory of its own before it is written."""
        self.graph, self.coalesce = graph, together
        """Whether those that are one upon the other may be done together."""

    def fall_back(self, runs: UpdateRuns, hazards: Iterable[InPlaceHazard]) -> None:
        """Try one by one, or in other directions, or not in place: each time there is less."""
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
        """Those that are written as they are computed."""
        return [at for at in self.directions if at not in self.staged]

    def _staging_pays(self, at: int) -> bool:
        """Whether to write and to read a part once more is less than to copy what is around it."""
        node = self.graph.nodes[at]
        _, shape = node.op.writes(*node.params)
        return 2 * product(shape) <= product(node.type.shape)


def is_replayable(graph: Graph) -> bool:
    """Whether native code may run a plan of a graph, and Python again where that fails: nothing in
    it must run once, and nothing runs a user's code.
    """
    operations = (node.op for node in graph.nodes if node.pending and node.op is not None)
    return all(op.pure and not op.opaque for op in operations)


class _Scheduler:
    def __init__(
        self,
        graph: Graph,
        fused: bool,
        fma: bool,
        changes: _UpdateDecisions,
        runs: UpdateRuns,
    ) -> None:
        self.graph, self.copy_reasons = graph, changes.copy_reasons
        self.items = items_of(
            graph, fma=fma, in_place=changes.directions, staged=changes.staged, runs=runs
        )
        self.item_of_node = items_by_node(self.items)
        kept = {
            self.item_of_node[position]
            for position, node in enumerate(graph.nodes)
            if graph.live_out[position] and node.pending
        }
        self.live_out = frozenset(kept)
        self.fusion = Fusion(graph, self.items, kept, fused)
        self.write_order = WriteOrder(graph, self.items, self.fusion)
        self.layouts: dict[int, Layout] = {}
        self.partly_written: set[int] = set()
        """What an earlier step has made a piece of."""
        self.stored_roots = self._find_stored_roots()

    def _find_stored_roots(self) -> set[int]:
        """The roots that must be in memory once their group has run."""
        needed = set(self.live_out)
        fusion = self.fusion
        for number, item in enumerate(self.items):
            if item.kind in ("call", "restride", "part", "join") or number in fusion.aliases:
                needed.update(self._memory_inputs(number))
        for group in fusion.groups:
            needed |= group.reads
        return needed

    def _memory_inputs(self, number: int) -> list[int]:
        """What a call or a window reads; a window looks through views at memory."""
        if number not in self.fusion.aliases:
            base = self.items[number].base
            return [*self.items[number].inputs, *([base] if base >= 0 else [])]
        return [self._alias_base(number)[0]]

    def _alias_base(self, number: int) -> tuple[int, IndexMap]:
        access = identity(self.items[number].shape)
        while True:
            item = self.items[number]
            (below,) = item.inputs
            access = compose_view(access, item.reads)
            number = below
            if self.fusion.is_root(number):
                return number, access

    def layout(self, number: int) -> Layout:
        """The strides, in bytes, of an item in memory."""
        if number not in self.layouts:
            item = self.items[number]
            if item.kind == "value":
                value = self.graph.nodes[item.position].value()
                # a placeholder of a traced rule has none: the device says so when it is read
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
        """Order the steps: each after what makes what it reads."""
        steps: list[Step] = []
        done: set[int] = {
            number
            for number, item in enumerate(self.items)
            if item.kind in ("value", "scalar") and number not in self.fusion.group_of
        }
        todo: list[Unit] = [*self.fusion.groups]
        todo += [
            number
            for number, item in enumerate(self.items)
            if item.kind in ("call", "restride", "part", "join") or number in self.fusion.aliases
        ]
        todo.sort(key=lambda unit: max(unit.roots) if isinstance(unit, FusedGroup) else unit)
        readers = self.write_order.readers(todo, self._inputs)
        while todo:
            waiting: list[Unit] = []
            for unit in todo:
                if self._inputs(unit) | self.write_order.predecessors(unit, readers) <= done:
                    step = self._make_step(unit)
                    if step is not None:
                        steps.append(step)
                    done |= outputs(unit)
                else:
                    waiting.append(unit)
            if len(waiting) == len(todo):
                self.write_order.refuse_cycle(waiting)
            todo = waiting
        last_uses = self._last_uses(steps)
        whole = self.item_of_node.values()
        over = reuse_buffers(
            steps, last_uses, self._reusable_leaves(), whole, self.write_order.overwriter_of
        )
        over = (*over, *self.write_order.overwritten_pairs(steps, last_uses, whole))
        return Schedule(tuple(steps), tuple(self.items), self.live_out, last_uses, over)

    def _reusable_leaves(self) -> dict[int, Buffer]:
        """The earlier values that a replay may overwrite: they have no other live reference."""
        dying = self.graph.dead_after_read
        return {
            number: self._buffer(number)
            for number, item in enumerate(self.items)
            if item.kind == "value" and any(dying) and dying[item.position]
            if number not in self.live_out
        }

    def _inputs(self, unit: Unit) -> set[int]:
        if isinstance(unit, FusedGroup):
            whole = self.fusion.join_of  # a piece that other loops have stored is read there
            return {whole.get(i, i) for i in unit.reads - set(unit.roots)}
        return set(self._memory_inputs(unit))

    def _make_step(self, unit: Unit) -> Step | None:
        if isinstance(unit, FusedGroup):
            return self._kernel_step(unit)
        item = self.items[unit]
        if unit in self.fusion.aliases:
            base, access = self._alias_base(unit)
            below = self.layout(base)
            strides, offset = strides_in(access, below, len(item.shape))
            self.layouts[unit] = strides
            return self._call_or_alias("window", unit, (base,), offset=offset)
        if item.kind == "restride":
            return self._restride(unit)
        if item.kind == "join":
            return None  # its pieces have been computed where they lie
        return self._call_or_alias(item.kind, unit, item.inputs)

    def _restride(self, number: int) -> Step:
        item = self.items[number]
        (source,) = item.inputs
        node = self.graph.nodes[item.position]
        below = self.items[source]
        strides = [stride // below.dtype.itemsize for stride in self.layout(source)]
        found = node.op.strides(below.shape, tuple(strides), *node.params)
        if found is None or item.size == 0:
            return self._call_or_alias("call", number, item.inputs)
        self.layouts[number] = tuple(stride * item.dtype.itemsize for stride in found)
        return self._call_or_alias("window", number, (source,))

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
        """The item to which a call may add in its memory; -1 for none."""
        place = None if node.op.accumulates_into is None else node.op.accumulates_into(*node.params)
        return -1 if place is None or reads.count(reads[place]) > 1 else reads[place]

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
        stored = [root for root in group.roots if root in self.stored_roots]
        if not stored:
            return None
        names = self._op_names(group)
        self._choose_layouts(group, stored)
        wholes = dict.fromkeys(self.fusion.join_of.get(root, root) for root in stored)
        makes = tuple(self._buffer(number) for number in wholes)
        reasons = tuple(
            f"{self.graph.nodes[self.items[root].position].name}: {why}"
            for root in stored
            if root not in self.live_out
            and root not in self.fusion.join_of
            and (why := self._why_stored(root))
        )
        apart = tuple(self.fusion.not_fused_because[group.number])
        if product(group.space) == 0:
            return Step("empty", (), makes, names, reasons=reasons, not_fused_because=apart)
        lowering = Lowering(self.fusion, group, stored, self.layout)
        launch = launch_of(lowering)
        begun = [number for number in wholes if number in self.partly_written]
        read = [m.item for m in launch.memory if not m.written]
        taken = [base for base, whole in self.write_order.overwriter_of.items() if whole in wholes]
        launch = self.write_order.order_loops(launch, group, wholes)
        reads = tuple(dict.fromkeys([*read, *begun, *taken]))
        copies = tuple(self._copy_reasons(wholes))
        self.partly_written.update(wholes)
        return Step(
            *("kernel", reads, makes, names),
            launch=launch,
            reasons=(*reasons, *copies),
            not_fused_because=apart,
            copies=len(copies),
        )

    def _copy_reasons(self, wholes: Iterable[int]) -> list[str]:
        """Of arrays with a part replaced that have memory of their own: why."""
        positions = [self.items[i].position for i in wholes if i not in self.partly_written]
        return [
            f"{self.graph.nodes[at].name}: a copy: {self.copy_reasons[at]}"
            for at in positions
            if at in self.copy_reasons
        ]

    def _choose_layouts(self, group: FusedGroup, stored: Sequence[int]) -> None:
        """Let fresh results lie as what they are computed from, where that agrees."""
        order = common_axis_order(self.fusion, group, self.layout)
        if order is not None:
            for root in stored:
                item = self.items[root]
                self.layouts[root] = strides_in_order(item.shape, order, item.dtype.itemsize)

    def _why_stored(self, root: int) -> str:
        """Why an intermediate result is stored in memory; "" if only windows read it."""
        if root in self.fusion.reasons:
            return self.fusion.reasons[root]
        read = any(root in group.reads for group in self.fusion.groups)
        return "another kernel reads it" if read else ""

    def _op_names(self, group: FusedGroup) -> tuple[str, ...]:
        """The operations that a group computes, in the order of the graph."""
        positions: set[int] = set()
        stack = [(root, True) for root in group.roots]
        seen: set[int] = set()
        while stack:
            number, inside = stack.pop()
            if number in seen:
                continue
            seen.add(number)
            item = self.items[number]
            if not inside and number not in group.roots and self.fusion.is_root(number):
                continue
            computed = item.kind not in ("value", "scalar") or number in group.roots
            if computed and not self._follows_fold(item):
                positions.add(item.position)
            stack.extend((i, False) for i in item.inputs)
        return tuple(self.graph.nodes[position].name for position in sorted(positions))

    def _follows_fold(self, item: ScheduleItem) -> bool:
        """Whether it only makes a result of a fold, which another kernel may have computed."""
        op = self.graph.nodes[item.position].op
        return (
            op is not None and op.folding is not None and item.kind != "fold" and not item.is_first
        )

    def _last_uses(self, steps: Sequence[Step]) -> tuple[tuple[int, ...], ...]:
        last: dict[int, int] = {}
        for number, step in enumerate(steps):
            for item in (*step.reads, *(made.item for made in step.results)):
                last[item] = number
        found: list[list[int]] = [[] for _ in steps]
        for item, number in last.items():
            if item not in self.live_out:
                found[number].append(item)
        return tuple(tuple(items) for items in found)


def key_of(graph: Graph, *options: object) -> tuple[object, ...]:
    """Return what a plan depends on: two graphs with equal keys have the same plan."""
    parts: list[object] = list(options)
    for position, node in enumerate(graph.nodes):
        if node.is_scalar:
            parts.append(node.type.dtype.num)
        elif not node.pending:
            value = node.value()
            type_ = node.type
            dying = bool(graph.dead_after_read) and graph.dead_after_read[position]
            parts.append((type_.shape, type_.dtype, value.strides if value else None, dying))
        else:
            op = node.op
            parts.append(
                (
                    # of several results the first alone stands for a call that is computed
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
