"""Stored items: which items are stored in memory, and why; readers inline all others.

A pass. Takes items, hands on the roots, the inlined items, and the roots that are only views. A
*root*, as in XLA's fusions, is an item that is stored in memory, or a fold or a scan.

A map with several readers, or one that is broadcast, is recomputed for each, unless storing it is
cheaper: Eigen's inequality, with costs in additions per element. A long body is split
(`schedule/kernel_splitting.py`), and some views are copied (`schedule/materialize_views.py`).

>>> import tenfold as tn
>>> from tenfold import _native
>>> from tenfold.core.graph import Graph
>>> from tenfold.schedule.item_selection import select_items
>>> graph = Graph.of([_native.node_of(tn.sort(tn.asarray([2.0, 1.0]) * 3) + 1)])
>>> choose_stored_items(select_items(Schedule(graph))).stored_because
{5: 'live-out', 2: 'sort reads it from memory'}
"""

from __future__ import annotations

from tenfold.core.index_map import compose_view, identity
from tenfold.core.op import Op
from tenfold.core.shape_rules import product
from tenfold.schedule.kernel_splitting import LOAD, STORE, BodySizes, costs_of
from tenfold.schedule.materialize_views import needs_copy
from tenfold.schedule.pass_rules import require
from tenfold.schedule.schedule_ir import FusedRead, ItemKind, Schedule, ScheduleItem

INLINED = frozenset(
    (
        ItemKind.MAP,
        ItemKind.VIEW,
        ItemKind.FINALIZE,
        ItemKind.SCALAR,
        ItemKind.IDENTITY,
        ItemKind.GATHER,
        ItemKind.SLICE_STORE,
        ItemKind.CONSTANT,
        ItemKind.REPEAT,
    )
)
"""The kinds of items that may be inlined into their readers."""
IN_MEMORY = frozenset(
    (ItemKind.VALUE, ItemKind.CALL, ItemKind.PART, ItemKind.COPY, ItemKind.CONCAT)
)
"""The kinds of items that are in memory in any case."""
FOLDS = frozenset((ItemKind.FOLD, ItemKind.SEGMENT_FOLD))
"""The kinds of items that are stored only if something outside of their kernel reads them."""
MIN_RATIO = 8
"""The elements of an array by those of one that it is small beside."""
CALLS = frozenset((ItemKind.CALL, ItemKind.COPY, ItemKind.PART))
"""The kinds of items that read all their operands from memory."""
MEMORY_READERS = CALLS | {ItemKind.GATHER, ItemKind.CONCAT}
"""The kinds of items that read operands from memory."""


def choose_stored_items(schedule: Schedule) -> Schedule:
    """Choose the items that are stored."""
    choice = _StorageChoice(schedule)
    roots = choice.roots
    inlined = [
        number
        for number, item in enumerate(schedule.items)
        if item.kind in INLINED and number not in roots
    ]
    return schedule.updated(
        roots=frozenset(roots),
        inlined=frozenset(inlined),
        stored_because=choice.reasons,
        segmented=choice.segmented,
        live_out=schedule.live_out.union(choice.small),
        aliases=choice.aliases(),
    )


def verify_stored_items(schedule: Schedule) -> None:
    """What is live-out, and what a call, a concat or a view of memory reads, is in memory."""
    items, graph = schedule.items, schedule.graph
    stored = schedule.stored_because.keys()

    def require_memory(number: int, reader: str) -> None:
        item = items[number]
        in_memory = (
            item.kind in IN_MEMORY
            or item.kind in (ItemKind.SCAN, ItemKind.SCATTER)
            or number in stored
        )
        is_number = graph.nodes[item.position].is_scalar
        require(in_memory or is_number, "{} reads item {}, which is not stored", reader, number)

    for number in schedule.live_out:
        require_memory(number, "the caller")
    for number, item in enumerate(items):
        if item.kind in CALLS or item.kind is ItemKind.CONCAT:
            for i in item.inputs:
                require_memory(i, f"item {number}, a {item.kind},")
        for i in (item.base, item.staged):
            if i >= 0:
                require_memory(i, f"item {number}, an update,")
        if item.offsets >= 0:
            require_memory(item.offsets, f"item {number}, a {item.kind},")
        if number in schedule.inlined:
            require(item.kind in INLINED, "item {}, a {}, is inlined", number, item.kind)
            require(number not in stored, "item {} is stored and inlined", number)
        elif item.kind in INLINED:
            require(number in schedule.roots, "item {} is no root and not inlined", number)
    for number, alias in schedule.aliases.items():
        require(items[number].kind is ItemKind.VIEW, "item {} is no view", number)
        require(alias.item not in schedule.inlined, "item {} views an inlined item", number)


class _StorageChoice:
    def __init__(self, schedule: Schedule) -> None:
        self.schedule, self.graph, self.items = schedule, schedule.graph, schedule.items
        self.users: list[list[int]] = [[] for _ in self.items]
        for number, item in enumerate(self.items):
            for i in item.inputs:
                self.users[i].append(number)
        self.costs = costs_of(self.graph, self.items)
        self.sizes = [product(item.shape) for item in self.items]
        self.reasons: dict[int, str] = {}
        self.roots: set[int] = set()
        self.small: list[int] = []
        """Items that are live-out although nothing asks for them."""
        self.segmented: dict[int, int] = {}
        """By item that is computed segment by segment: the offsets of its segments."""
        self._choose_roots()
        self.segmented = self._segmented_roots()

    def _choose_roots(self) -> None:
        roots = self.roots
        for number in self.schedule.live_out:
            self._mark_stored(number, "live-out")
        for number, item in enumerate(self.items):
            if item.kind is ItemKind.FINALIZE and self._has_parts(item):
                # a reader at another index must read the result, not the folds
                squeezed_views = [i for i in self.users[number] if self._same_node(i, number)]
                roots.add(squeezed_views[0] if squeezed_views else number)
            if item.kind in FOLDS or item.kind in (ItemKind.SCAN, ItemKind.SCATTER):
                roots.add(number)
            if item.offsets >= 0:
                because = f"{self.schedule.op_names(number)} reads its bounds"
                self._mark_stored(item.offsets, because)
            if item.initial >= 0 and self.items[item.initial].kind is ItemKind.SLICE_STORE:
                because = f"{self.schedule.op_names(number)} begins with it"
                self._mark_stored(item.initial, because)
            if item.kind is ItemKind.FOLD and self.items[item.inputs[0]].kind is ItemKind.FOLD:
                self._mark_stored(item.inputs[0], "another axis is reduced")
            if item.kind in MEMORY_READERS or item.staged >= 0:
                self._store_operands(number)
            computed = (ItemKind.MAP, ItemKind.GATHER, ItemKind.REPEAT)
            if item.kind in computed and not self.schedule.fused:
                self._mark_stored(number, "fusion is off (option fuse)")
        if self.graph.passed_through:
            self._store_small()
        self._segmented_roots()
        self._store_expensive()

    def _segmented_roots(self) -> dict[int, int]:
        """Return the roots that are computed segment by segment, each with its offsets. A repeat is
        stored where a reader is at other entries than its own, or has other segments.
        """
        segmented: dict[int, int] = {}
        for number, item in enumerate(self.items):
            offsets = item.offsets
            for i in item.inputs:
                if i not in segmented or i in self.roots:
                    continue
                if self._reads_entries(item, i) and offsets in (-1, segmented[i]):
                    offsets = segmented[i]
                else:
                    because = f"{self.schedule.op_names(number)} reads it at other entries"
                    self._mark_stored(i, because)
            if offsets >= 0:
                segmented[number] = offsets
        return {number: offsets for number, offsets in segmented.items() if number in self.roots}

    def _reads_entries(self, item: ScheduleItem, number: int) -> bool:
        """Whether an item reads another at the entry that it computes."""
        shape = self.items[number].shape
        if item.kind is ItemKind.MAP:
            return len(shape) == len(item.shape) and shape[0] == item.shape[0]
        if item.kind is ItemKind.VIEW:
            return shape[:1] == item.shape[:1] and item.reads[0] == (0, 1, 0)
        return item.kind is ItemKind.SEGMENT_FOLD

    def _store_small(self) -> None:
        """Store the live nodes that nothing asks for where they are small beside what they read: a
        value that only they keep in memory, or elements that would be reduced again. What an update
        overwrites stays pending.
        """
        graph, items_at = self.graph, self.schedule.items_at
        overwritten = self.schedule.overwriter_of
        passed_through = {*graph.passed_through}
        largest = [0] * len(graph)  # the elements that each node would keep, or reduce again
        for at, inputs in enumerate(graph.inputs):
            number, op = items_at[at], graph.nodes[at].op
            in_memory = self.items[number].kind in IN_MEMORY
            if graph.live_out[at] or graph.nodes[at].is_scalar:
                continue
            largest[at] = (
                self.sizes[number] if in_memory else max([largest[i] for i in inputs], default=0)
            )
            if op is not None and op.lowering.folding is not None and inputs:
                largest[at] = self.sizes[items_at[inputs[0]]]
            is_small = MIN_RATIO * self.sizes[number] <= largest[at]
            is_kept = at in passed_through and number not in overwritten
            if is_kept and is_small and not in_memory:
                self._mark_stored(number, "live-out")
                self.small.append(number)
                largest[at] = 0

    def _store_operands(self, number: int) -> None:
        """Mark the operands that an item reads from memory as stored."""
        item = self.items[number]
        for i in item.inputs:
            if item.kind in CALLS:
                self._mark_stored(i, f"{self.schedule.op_names(number)} reads it from memory")
            elif item.kind is ItemKind.GATHER and self.items[i].kind is not ItemKind.SCALAR:
                self._mark_stored(i, f"{self.schedule.op_names(number)} reads it at other indices")
            elif item.kind is ItemKind.CONCAT:
                self._mark_stored(i, "it is a part of a joined array")
        if item.base >= 0:
            self._mark_stored(item.base, "a part of it is updated in place")
        if item.staged >= 0:
            self._mark_stored(item.staged, "staged: it reads the array that it is written into")

    def _same_node(self, number: int, other_number: int) -> bool:
        return self.items[number].position == self.items[other_number].position

    def _has_parts(self, item: ScheduleItem) -> bool:
        """Whether a reduction has several partial results, which are not stored."""
        folding = _op_of(self.schedule, item).lowering.folding
        return folding is not None and folding.one_axis

    def _mark_stored(self, number: int, reason: str) -> None:
        if self.graph.nodes[self.items[number].position].is_scalar:
            return  # a call takes a number without a buffer
        if self.items[number].kind in INLINED or self.items[number].kind in FOLDS:
            self.roots.add(number)
            self.reasons.setdefault(number, reason)

    def aliases(self) -> dict[int, FusedRead]:
        """Return the roots that are only views of items in memory, and what they view."""
        views = [number for number in self.roots if self.items[number].kind is ItemKind.VIEW]
        if not views:
            return {}
        staged = {item.staged for item in self.items}
        return {
            number: self._viewed(number)
            for number in views
            if number not in staged and self._is_alias(number)
        }

    def _viewed(self, number: int) -> FusedRead:
        """The item in memory that a view reads, through others, and the access to it."""
        access = identity(self.items[number].shape)
        while True:
            access = compose_view(access, self.items[number].reads)
            (number,) = self.items[number].inputs
            if number in self.roots or self.items[number].kind not in INLINED:
                return FusedRead(number, access)

    def _is_alias(self, number: int) -> bool:
        """Whether a view is one of an item in memory: nothing is computed."""
        if needs_copy(self.graph, self.items, self.users[number], number):
            return False
        while self.items[number].kind is ItemKind.VIEW:
            (number,) = self.items[number].inputs
            if number in self.roots:
                return self.items[number].kind not in FOLDS or number in self.reasons
        return self.items[number].kind in IN_MEMORY

    def _store_expensive(self) -> None:
        """Store items that cost more to recompute for each reader, and split long kernels."""
        read_counts, bodies = self._read_counts(), BodySizes(self.items, self.users, self.costs)
        roots, max_body_ops = self.roots, self.schedule.target.work.max_body_ops
        for number, item in enumerate(self.items):
            if item.kind not in INLINED or item.kind in (ItemKind.VIEW, ItemKind.SCALAR):
                continue
            if bodies.measure(number, roots) > max_body_ops:
                crossing = bodies.crossing(number) or ([] if number in roots else [number])
                for i in crossing:
                    self._mark_stored(i, f"a kernel has at most {max_body_ops} operations")
                bodies.measure(number, roots)
            read_count = read_counts[number]
            if number in roots or read_count <= self.sizes[number]:
                continue
            cost = bodies.cost(number)
            recompute_cost, store_cost = (
                cost * read_count,
                (cost + STORE) * self.sizes[number] + LOAD * read_count,
            )
            if recompute_cost > store_cost:
                self._mark_stored(number, _cost_comparison(recompute_cost, store_cost))
        self._explain_product_operands(bodies)

    def _explain_product_operands(self, bodies: BodySizes) -> None:
        """State the cost comparison for operands of products, which are read many times."""
        for item in self.items:
            if (
                item.kind is not ItemKind.CALL
                or _op_of(self.schedule, item).lowering.multiply_adds is None
            ):
                continue
            read_count = self.graph.multiply_adds(item.position)
            for i in item.inputs:
                if i in self.reasons and self.items[i].kind is ItemKind.MAP:
                    cost = bodies.cost(i)
                    recompute_cost = cost * read_count
                    store_cost = (cost + STORE) * self.sizes[i] + LOAD * read_count
                    if recompute_cost > store_cost:
                        name = _op_of(self.schedule, item).name
                        self.reasons[i] = (
                            f"{name} reads it, {_cost_comparison(recompute_cost, store_cost)}"
                        )

    def _read_counts(self) -> list[int]:
        """How many elements of each item are read. Readers at the same index count once, each view
        separately.
        """
        counts, sizes = [0] * len(self.items), self.sizes
        for number in reversed(range(len(self.items))):
            is_counted = False
            for user in dict.fromkeys(self.users[number]):
                kind, size = self.items[user].kind, sizes[user]
                if kind is ItemKind.VIEW:
                    counts[number] += max(size, counts[user])
                elif kind is ItemKind.MAP and size > sizes[number]:
                    counts[number] += size
                elif not is_counted:
                    is_counted = True
                    counts[number] += sizes[number]
        return counts


def _op_of(schedule: Schedule, item: ScheduleItem) -> Op[...]:
    """Return the operation of an item's node."""
    op: Op[...] = schedule.graph.nodes[item.position].op
    return op


def _cost_comparison(recompute_cost: float, store_cost: float) -> str:
    return (
        f"recomputed for each reader {recompute_cost:,.0f} additions, stored once {store_cost:,.0f}"
    )


__all__ = ["INLINED", "choose_stored_items", "verify_stored_items"]
