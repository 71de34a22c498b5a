"""Fusion: decides which items are stored, and which of them one kernel computes.

Takes items, hands on groups in an order in which they can run. A *root*, as in XLA's fusions, is an
item that is stored in memory, or a fold; everything else is inlined where it is read. A root joins
a group whose loops have the same iteration space. It must read the group's other roots at the index
where they are computed. A fold and the reads of its result along its axis share their loops, one
pass after another.

A map with several readers, or one that is broadcast, is recomputed for each, unless storing it is
cheaper: Eigen's inequality, with costs in additions per element.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field

from tenfold.core.graph import Graph
from tenfold.core.index_map import (
    COMPUTED_INDEX,
    FIXED,
    IndexMap,
    broadcast,
    compose_view,
    identity,
    remap_axes,
)
from tenfold.core.op import Op
from tenfold.core.shape_rules import Shape, product
from tenfold.schedule.kernel_splitting import LOAD, MAX_BODY_OPS, STORE, BodySizes, weight_of
from tenfold.schedule.materialize_views import needs_copy
from tenfold.schedule.schedule_ir import ScheduleItem

INLINED = ("map", "view", "leave", "scalar", "identity", "located", "piece", "constant")
"""The kinds of items that are inlined into their readers."""
CACHED_ROW = 1 << 16
"""Elements of a row that stay in the cache from one pass to the next."""

Embedding = tuple[int | None, ...]
"""For each axis of a root the axis of its group's space."""


@dataclass(frozen=True)
class FusedRead:
    """An item in memory, or a fold, that a root reads, and the access in the root's space."""

    item: int
    access: IndexMap


@dataclass
class FusedGroup:
    """The roots of one kernel, and the embedding of each in the iteration space."""

    number: int
    space: Shape
    axis: int | None = None
    """The axis that is reduced or scanned."""
    scanned: bool = False
    """Whether it computes a scan, which no other root joins."""
    roots: dict[int, Embedding] = field(default_factory=dict)
    predecessors: set[int] = field(default_factory=set)
    """The groups that must run before it, transitively."""
    weight: int = 0
    computed: set[tuple[int, IndexMap]] = field(default_factory=set)
    """The inlined items with their accesses; each is computed once for all roots."""
    reads: set[int] = field(default_factory=set)
    """The items in memory that its roots read."""


class Fusion:
    """The items of a graph, which of them are roots, and their groups."""

    def __init__(
        self,
        graph: Graph,
        items: Sequence[ScheduleItem],
        live_out: Iterable[int],
        fused: bool = True,
    ) -> None:
        self.graph, self.items, self.fused = graph, items, fused
        self.users: list[list[int]] = [[] for _ in items]
        for number, item in enumerate(items):
            for i in item.inputs:
                self.users[i].append(number)
        self.live_out = set(live_out)
        self.reasons: dict[int, str] = {}
        """By item: why an intermediate result is stored in memory."""
        self.not_fused_because: dict[int, list[str]] = {}
        """By group number: why the group was not fused into the loops of others."""
        self.join_of: dict[int, int] = {}
        """By piece: the join that it is a part of."""
        self.roots = self._roots()
        staged_items = {item.staged for item in items}
        self.aliases = {i for i in self.roots if i not in staged_items and self._is_alias(i)}
        self.groups: list[FusedGroup] = []
        self.group_of: dict[int, FusedGroup] = {}
        self.computed: dict[int, set[tuple[int, IndexMap]]] = {}
        """By root: the inlined items with their accesses."""
        self.predecessors_of: dict[int, frozenset[int]] = {}
        for number in sorted(self.roots - self.aliases):
            self._assign_group(number)

    def _roots(self) -> set[int]:
        roots: set[int] = set()
        for number in self.live_out:
            self._mark_stored(roots, number, "live-out")
        for number, item in enumerate(self.items):
            if item.kind == "leave" and self._has_parts(item):
                # a reader at another index must read the result, not the folds
                squeezed_views = [i for i in self.users[number] if self._same_node(i, number)]
                roots.add(squeezed_views[0] if squeezed_views else number)
            if item.kind in ("fold", "scan"):
                roots.add(number)
            if item.kind == "fold" and self.items[item.inputs[0]].kind == "fold":
                self._mark_stored(roots, item.inputs[0], "another axis is reduced")
            self._store_operands(roots, number)
            if item.kind in ("map", "located") and not self.fused:
                self._mark_stored(roots, number, "fusion is off (option fuse)")
        self._store_expensive(roots)
        return roots

    def _store_operands(self, roots: set[int], number: int) -> None:
        """Mark the operands that an item reads from memory as stored."""
        item = self.items[number]
        for i in item.inputs:
            if item.kind in ("call", "restride", "part"):
                self._mark_stored(roots, i, f"{self._op_names(number)} reads it from memory")
            elif item.kind == "located" and self.items[i].kind != "scalar":
                self._mark_stored(roots, i, f"{self._op_names(number)} reads it at other indices")
            elif item.kind == "join":
                self._mark_stored(roots, i, "it is a part of a joined array")
                self.join_of[i] = number
        if item.base >= 0:
            self._mark_stored(roots, item.base, "a part of it is updated in place")
        if item.staged >= 0:
            self._mark_stored(
                roots, item.staged, "staged: it reads the array that it is written into"
            )

    def _same_node(self, number: int, other_number: int) -> bool:
        return self.items[number].position == self.items[other_number].position

    def _has_parts(self, item: ScheduleItem) -> bool:
        """Whether a reduction has several partial results, which are not stored."""
        folding = self.op_of(item).folding
        return folding is not None and folding.one_axis

    def _mark_stored(self, roots: set[int], number: int, reason: str) -> None:
        if self.graph.nodes[self.items[number].position].is_scalar:
            return  # a call takes a number without a buffer
        if self.items[number].kind in INLINED or self.items[number].kind == "fold":
            roots.add(number)
            self.reasons.setdefault(number, reason)

    def _is_alias(self, number: int) -> bool:
        """Whether a root is only a view of an item in memory: nothing is computed."""
        if self.items[number].kind != "view":
            return False
        if needs_copy(self.graph, self.items, self.users[number], number):
            return False
        while self.items[number].kind == "view":
            (number,) = self.items[number].inputs
            if number in self.roots:
                return self.items[number].kind != "fold" or number in self.reasons
        return self.items[number].kind in ("value", "call", "part", "restride", "join")

    def _store_expensive(self, roots: set[int]) -> None:
        """Store items that cost more to recompute for each reader, and split long kernels."""
        read_counts, bodies = self._read_counts(), BodySizes(self.items, self.users, self._cost)
        for number, item in enumerate(self.items):
            if item.kind not in INLINED or item.kind in ("view", "scalar"):
                continue
            if bodies.measure(number, roots) > MAX_BODY_OPS:
                crossing = bodies.crossing(number) or ([] if number in roots else [number])
                for i in crossing:
                    self._mark_stored(roots, i, f"a kernel has at most {MAX_BODY_OPS} operations")
                bodies.measure(number, roots)
            read_count = read_counts[number]
            if number in roots or read_count <= item.size:
                continue
            cost = bodies.cost(number)
            recompute_cost, store_cost = (
                cost * read_count,
                (cost + STORE) * item.size + LOAD * read_count,
            )
            if recompute_cost > store_cost:
                self._mark_stored(roots, number, _cost_comparison(recompute_cost, store_cost))
        self._explain_product_operands(bodies)

    def _explain_product_operands(self, bodies: BodySizes) -> None:
        """State the cost comparison for operands of products, which are read many times."""
        for item in self.items:
            if item.kind != "call" or self.op_of(item).multiply_adds is None:
                continue
            read_count = self.graph.multiply_adds(item.position)
            for i in item.inputs:
                if i in self.reasons and self.items[i].kind == "map":
                    cost = bodies.cost(i)
                    recompute_cost = cost * read_count
                    store_cost = (cost + STORE) * self.items[i].size + LOAD * read_count
                    if recompute_cost > store_cost:
                        name = self.op_of(item).name
                        self.reasons[i] = (
                            f"{name} reads it, {_cost_comparison(recompute_cost, store_cost)}"
                        )

    def _read_counts(self) -> list[int]:
        """How many elements of each item are read. Readers at the same index count once, each view
        separately.
        """
        counts = [0] * len(self.items)
        for number in reversed(range(len(self.items))):
            item, is_counted = self.items[number], False
            for user in dict.fromkeys(self.users[number]):
                kind, size = self.items[user].kind, self.items[user].size
                if kind == "view":
                    counts[number] += max(size, counts[user])
                elif kind == "map" and size > item.size:
                    counts[number] += size
                elif not is_counted:
                    is_counted = True
                    counts[number] += item.size
        return counts

    def _cost(self, item: ScheduleItem) -> float:
        if item.kind != "map":
            return 0.0 if item.kind in ("view", "scalar") else 1.0
        return self.op_of(item).cost

    def op_of(self, item: ScheduleItem) -> Op[...]:
        """The operation of an item's node."""
        op: Op[...] = self.graph.nodes[item.position].op
        return op

    def is_root(self, number: int) -> bool:
        """Whether an item is in memory or a fold, not inlined."""
        return number in self.roots or self.items[number].kind not in INLINED

    def operand_accesses(self, number: int, access: IndexMap) -> Iterator[tuple[int, IndexMap]]:
        """The inputs of an inlined item or a root, and the accesses to them."""
        item = self.items[number]
        for i in item.inputs:
            shape = self.items[i].shape
            if item.kind == "view":
                yield i, _without_unit_axes(compose_view(access, item.reads), shape)
            elif item.kind == "map":
                yield i, broadcast(access, shape, item.shape)
            elif item.kind == "located":
                yield i, COMPUTED_INDEX
            elif item.kind != "identity":
                yield i, access

    def memory_reads(self, root: int) -> list[FusedRead]:
        """The items in memory and the folds that a root reads, with the accesses."""
        space = self.iteration_space(root)
        memory_accesses: dict[tuple[int, IndexMap], None] = {}
        visited: set[tuple[int, IndexMap]] = set()
        stack = list(self.operand_accesses(root, identity(space)))
        while stack:
            number, access = stack.pop()
            if (number, access) in visited:
                continue
            visited.add((number, access))
            if self.is_root(number):
                memory_accesses[number, access] = None
            else:
                stack.extend(self.operand_accesses(number, access))
        self.computed[root] = visited - memory_accesses.keys()
        return [FusedRead(number, access) for number, access in memory_accesses]

    def iteration_space(self, root: int) -> Shape:
        """The iteration space of a root: for a fold or a scan, the shape of its operand."""
        item = self.items[root]
        return self.items[item.inputs[0]].shape if item.kind in ("fold", "scan") else item.shape

    def _assign_group(self, root: int) -> None:
        """Put a root into a group with which it shares loops, or into a new one."""
        reads = self.memory_reads(root)
        fusable = {
            self.group_of[read.item].number
            for read in reads
            if read.item in self.group_of and read.access != COMPUTED_INDEX
        }
        ordered_before = {
            number
            for read in reads
            if read.item not in self.group_of
            for number in self._find_predecessors(read.item)
        }
        for read in reads:
            if read.item in self.group_of and read.access == COMPUTED_INDEX:
                group = self.group_of[read.item]
                ordered_before |= {group.number, *group.predecessors}
        ordered_before |= self._overwrite_predecessors(root)
        predecessors = fusable | ordered_before
        not_fused_because = []
        for group in self._candidates(root, reads):
            is_fusable = group.number not in ordered_before
            embedding = self._embedding(root, reads, group) if is_fusable else None
            if not is_fusable:
                objection = "it needs the finished result of that kernel"
            elif embedding is None:
                objection = "it iterates over other indices"
            else:
                objection = self._objection(root, reads, group, embedding, predecessors)
            if embedding is not None and not objection:
                self._add_to_group(root, group, embedding, predecessors, reads)
                return
            not_fused_because.append(
                f"{self._op_names(root)} not fused with {self._op_names(*group.roots)}: {objection}"
            )
        group = FusedGroup(len(self.groups), self.iteration_space(root))
        self.not_fused_because[group.number] = not_fused_because
        self.groups.append(group)
        self._add_to_group(root, group, tuple(range(len(group.space))), predecessors, reads)

    def _overwrite_predecessors(self, root: int) -> Set[int]:
        """The groups that must run before a part of an array is overwritten."""
        base = self.items[self.join_of[root]].base if root in self.join_of else -1
        predecessors: set[int] = set()
        for number in (base, self.items[root].staged):
            if number >= 0:
                group = self.group_of.get(number)
                predecessors |= (
                    {group.number, *group.predecessors}
                    if group
                    else self._find_predecessors(number)
                )
        return predecessors

    def _find_predecessors(self, number: int) -> frozenset[int]:
        """The groups that must run before an item that no kernel computes."""
        cached = self.predecessors_of.get(number)
        if cached is None:
            predecessors: set[int] = set()
            for i in self.items[number].inputs:
                group = self.group_of.get(i)
                predecessors |= (
                    {group.number, *group.predecessors} if group else self._find_predecessors(i)
                )
            cached = self.predecessors_of[number] = frozenset(predecessors)
        return cached

    def _candidates(self, root: int, reads: Sequence[FusedRead]) -> list[FusedGroup]:
        """The groups of its operands, the latest first; then those that read the same memory."""
        operand = self.items[root].inputs[:1]
        squeezes = self.items[root].kind == "view" and self._same_node(root, operand[0])
        if not self.fused and self.items[root].kind != "leave" and not squeezes:
            return []
        if self.items[root].kind == "scan":
            return []
        producers = {
            self.group_of[read.item].number for read in reads if read.item in self.group_of
        }
        candidates = [self.groups[number] for number in sorted(producers, reverse=True)]
        candidates = [group for group in candidates if not group.scanned]
        space = self.iteration_space(root)
        candidates += [
            group
            for group in reversed(self.groups[-8:])
            if group.number not in producers
            and not group.scanned
            and group.space == space
            and (
                not group.reads.isdisjoint(root_read.item for root_read in reads)
                or self._shares_join(root, group)
            )
        ]
        return candidates

    def _shares_join(self, root: int, group: FusedGroup) -> bool:
        """Whether a group writes another part of the same updated array."""
        join = self.join_of.get(root)
        if join is None or self.items[join].base < 0:
            return False
        return any(self.join_of.get(root_of_group) == join for root_of_group in group.roots)

    def _embedding(
        self, root: int, reads: Sequence[FusedRead], group: FusedGroup
    ) -> Embedding | None:
        """The embedding of a root in the group's space, or None where its reads do not align."""
        space = self.iteration_space(root)
        if space == group.space:
            candidate: Embedding | None = tuple(range(len(space)))
            if self._reads_align(reads, group, candidate):
                return candidate
        candidate = self._match_axes(space, reads, group)
        if candidate is None or not self._reads_align(reads, group, candidate):
            return None
        return candidate

    def _match_axes(
        self, space: Shape, reads: Sequence[FusedRead], group: FusedGroup
    ) -> Embedding | None:
        """Match the axes of a root by its reads of a fold of the group."""
        axes: dict[int, int] = {}
        for read in reads:
            embedding = group.roots.get(read.item)
            if embedding is None or group.axis is None:
                continue
            for space_axis, (axis, _, _) in zip(embedding, read.access, strict=True):
                if axis is not None and space_axis is not None and space_axis != group.axis:
                    axes[axis] = space_axis
        unmatched = [i for i, length in enumerate(space) if length != 1 and i not in axes]
        if len(unmatched) > 1 or (unmatched and group.axis is None):
            return None
        if unmatched:
            assert group.axis is not None, "tested above"
            if space[unmatched[0]] != group.space[group.axis]:
                return None
            axes[unmatched[0]] = group.axis
        if any(space[i] != group.space[space_axis] for i, space_axis in axes.items()):
            return None
        if len(set(axes.values())) < len(axes):
            return None
        unused_axes = set(range(len(group.space))) - set(axes.values()) - {group.axis}
        if any(group.space[axis] != 1 for axis in unused_axes):
            return None
        return tuple(axes.get(i) for i in range(len(space)))

    def _reads_align(
        self, reads: Sequence[FusedRead], group: FusedGroup, embedding: Embedding | None
    ) -> bool:
        """Whether each read of a root of the group is at the index where it is computed."""
        assert embedding is not None, "there is a candidate"
        return all(
            read.item not in group.roots
            or remap_axes(read.access, embedding) == self.root_location(group, read.item)
            for read in reads
        )

    def root_location(self, group: FusedGroup, number: int) -> IndexMap:
        """The access at which a root is computed, in the group's space."""
        shape = self.items[number].shape
        return tuple(
            FIXED if length == 1 or space_axis is None else (space_axis, 1, 0)
            for space_axis, length in zip(group.roots[number], shape, strict=True)
        )

    def _op_names(self, *roots: int) -> str:
        """The operations of the given roots, as they were written."""
        names = (self.graph.nodes[self.items[root].position].name for root in roots)
        return "+".join(dict.fromkeys(names))

    def _objection(
        self,
        root: int,
        reads: Sequence[FusedRead],
        group: FusedGroup,
        embedding: Embedding,
        predecessors: set[int],
    ) -> str:
        """Why a root whose reads align cannot join a group; empty where it can."""
        other_predecessors = predecessors - {group.number}
        if any(
            group.number in self.groups[predecessor].predecessors
            for predecessor in other_predecessors
        ):
            return "it also depends on a step that depends on that kernel"  # fused: a cycle
        if group.weight + self._added_weight(root, group, embedding) > MAX_BODY_OPS:
            return f"a kernel has at most {MAX_BODY_OPS} operations"
        item = self.items[root]
        if item.kind == "fold" and group.axis not in (None, item.axis):
            return "another axis is reduced"
        if item.kind == "fold" and embedding != tuple(range(len(group.space))):
            return "it iterates over other indices"
        axis = group.axis if group.axis is not None else item.axis
        reads_reduction = any(
            read.item in group.roots
            and all(step[0] != axis for step in self.root_location(group, read.item))
            for read in reads
        )
        spans_axis = item.kind == "fold" or axis in embedding
        if reads_reduction and spans_axis and axis >= 0:
            rows = product(group.space) // max(group.space[axis], 1)
            if group.space[axis] > CACHED_ROW:
                return f"{group.space[axis]:,} elements of a row do not fit in the cache"
            if rows <= 3 and group.space[axis] > 4096:
                return f"{rows} long rows are split across threads instead"
        return ""

    def _added_weight(self, root: int, group: FusedGroup, embedding: Embedding) -> int:
        """How many operations a root adds to a group, which may share some of them."""
        computed = self.computed[root]
        if embedding == tuple(range(len(group.space))):
            computed = computed - group.computed
        return 1 + sum(weight_of(self.items[number], self._cost) for number, _ in computed)

    def _add_to_group(
        self,
        root: int,
        group: FusedGroup,
        embedding: Embedding,
        predecessors: set[int],
        reads: Sequence[FusedRead],
    ) -> None:
        group.weight += self._added_weight(root, group, embedding)
        if embedding == tuple(range(len(group.space))):
            group.computed |= self.computed[root]
        group.roots[root] = embedding
        group.reads.update(read.item for read in reads if read.item not in group.roots)
        if self.items[root].kind in ("fold", "scan"):
            group.axis = self.items[root].axis
            group.scanned = self.items[root].kind == "scan"
        self.group_of[root] = group
        all_predecessors = set(predecessors) - {group.number}
        for number in tuple(all_predecessors):
            all_predecessors |= self.groups[number].predecessors
        group.predecessors |= all_predecessors
        for later_group in self.groups:
            if group.number in later_group.predecessors:
                later_group.predecessors |= all_predecessors


def _cost_comparison(recompute_cost: float, store_cost: float) -> str:
    return (
        f"recomputed for each reader {recompute_cost:,.0f} additions, stored once {store_cost:,.0f}"
    )


def _without_unit_axes(access: IndexMap, shape: Shape) -> IndexMap:
    """An access without the loops along axes of length 1."""
    return tuple(
        (None, 0, 0) if length == 1 else step for step, length in zip(access, shape, strict=True)
    )
