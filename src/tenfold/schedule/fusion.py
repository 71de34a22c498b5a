"""Fusion: which items get memory of their own, and which of those one kernel computes.

Takes items, hands on groups in an order in which they can run. A *root* is an item that must be in
memory, or a fold, around which a kernel is built; everything else is computed where it is read. A
root joins a group whose loops go over the same space. It must read the group's other roots at the
very index where they are made. A fold and the reads of its result along its axis share their loops,
one pass after another.

A map that is read at several places, or repeated by broadcasting, is computed anew at each, unless
keeping it is cheaper: Eigen's inequality, with costs in additions per element.
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
from tenfold.schedule.kernel_splitting import LARGEST_BODY, LOAD, STORE, BodySizes, weight_of
from tenfold.schedule.materialize_views import needs_copy
from tenfold.schedule.schedule_ir import ScheduleItem

INLINED = ("map", "view", "leave", "scalar", "identity", "located", "piece", "constant")
"""The kinds that are computed where they are read."""
CACHED_ROW = 1 << 16
"""Elements of a row that stay in the cache from one pass to the next."""

Embedding = tuple[int | None, ...]
"""For each axis of a root the axis of its group's space."""


@dataclass(frozen=True)
class FusedRead:
    """Something in memory, or a fold, that a root reads, and where in the root's own space."""

    item: int
    access: IndexMap


@dataclass
class FusedGroup:
    """What one kernel computes: roots, and where each stands in the space of the loops."""

    number: int
    space: Shape
    axis: int | None = None
    """The axis that is folded or scanned."""
    scanned: bool = False
    """Whether it computes a scan, which has its loops for itself."""
    roots: dict[int, Embedding] = field(default_factory=dict)
    predecessors: set[int] = field(default_factory=set)
    """The groups that must have run, and all that those need."""
    weight: int = 0
    computed: set[tuple[int, IndexMap]] = field(default_factory=set)
    """What is computed where it is read, at which index: once for all roots."""
    reads: set[int] = field(default_factory=set)
    """What its roots read of memory."""


class Fusion:
    """The items of a graph, which of them are roots, and their groups."""

    def __init__(
        self, graph: Graph, items: Sequence[ScheduleItem], kept: Iterable[int], fused: bool = True
    ) -> None:
        self.graph, self.items, self.fused = graph, items, fused
        self.users: list[list[int]] = [[] for _ in items]
        for number, item in enumerate(items):
            for i in item.inputs:
                self.users[i].append(number)
        self.live_out = set(kept)
        self.reasons: dict[int, str] = {}
        """By item: why an intermediate result is stored in memory."""
        self.not_fused_because: dict[int, list[str]] = {}
        """By group number: why the group was not fused into the loops of others."""
        self.join_of: dict[int, int] = {}
        """By piece: the item that it is a part of."""
        self.roots = self._roots()
        asides = {item.staged for item in items}
        self.aliases = {i for i in self.roots if i not in asides and self._is_alias(i)}
        self.groups: list[FusedGroup] = []
        self.group_of: dict[int, FusedGroup] = {}
        self.computed: dict[int, set[tuple[int, IndexMap]]] = {}
        """Of each root what is computed where it is read."""
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
                squeezed = [i for i in self.users[number] if self._same_node(i, number)]
                roots.add(squeezed[0] if squeezed else number)
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
        """Keep what an item reads of memory."""
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

    def _same_node(self, number: int, other: int) -> bool:
        return self.items[number].position == self.items[other].position

    def _has_parts(self, item: ScheduleItem) -> bool:
        """Whether what is folded has several parts, which no memory holds."""
        folding = self.op_of(item).folding
        return folding is not None and folding.one_axis

    def _mark_stored(self, roots: set[int], number: int, why: str) -> None:
        if self.graph.nodes[self.items[number].position].is_scalar:
            return  # a call takes a number as it is
        if self.items[number].kind in INLINED or self.items[number].kind == "fold":
            roots.add(number)
            self.reasons.setdefault(number, why)

    def _is_alias(self, number: int) -> bool:
        """Whether a root is nothing but a view of something in memory: nothing is computed."""
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
        """Keep what is dearer to compute at each reader than to store once, and split long ones."""
        reads_of, bodies = self._read_counts(), BodySizes(self.items, self.users, self._cost)
        for number, item in enumerate(self.items):
            if item.kind not in INLINED or item.kind in ("view", "scalar"):
                continue
            if bodies.measure(number, roots) > LARGEST_BODY:
                crossing = bodies.crossing(number) or ([] if number in roots else [number])
                for i in crossing:
                    self._mark_stored(roots, i, f"a kernel has at most {LARGEST_BODY} operations")
                bodies.measure(number, roots)
            reads = reads_of[number]
            if number in roots or reads <= item.size:
                continue
            cost = bodies.cost(number)
            again, once = cost * reads, (cost + STORE) * item.size + LOAD * reads
            if again > once:
                self._mark_stored(roots, number, _cost_comparison(again, once))
        self._explain_product_operands(bodies)

    def _explain_product_operands(self, bodies: BodySizes) -> None:
        """Say of what a product reads what the inequality says: an element is read many times."""
        for item in self.items:
            if item.kind != "call" or self.op_of(item).multiply_adds is None:
                continue
            reads = self.graph.multiply_adds(item.position)
            for i in item.inputs:
                if i in self.reasons and self.items[i].kind == "map":
                    cost = bodies.cost(i)
                    again = cost * reads
                    once = (cost + STORE) * self.items[i].size + LOAD * reads
                    if again > once:
                        name = self.op_of(item).name
                        self.reasons[i] = f"{name} reads it, {_cost_comparison(again, once)}"

    def _read_counts(self) -> list[int]:
        """How many elements of each item are read: all readers at the same index count once, and
        each view by itself.
        """
        reads = [0] * len(self.items)
        for number in reversed(range(len(self.items))):
            item, plain = self.items[number], False
            for user in dict.fromkeys(self.users[number]):
                kind, size = self.items[user].kind, self.items[user].size
                if kind == "view":
                    reads[number] += max(size, reads[user])
                elif kind == "map" and size > item.size:
                    reads[number] += size
                elif not plain:
                    plain = True
                    reads[number] += item.size
        return reads

    def _cost(self, item: ScheduleItem) -> float:
        if item.kind != "map":
            return 0.0 if item.kind in ("view", "scalar") else 1.0
        return self.op_of(item).cost

    def op_of(self, item: ScheduleItem) -> Op[...]:
        """The operation of an item's node."""
        op: Op[...] = self.graph.nodes[item.position].op
        return op

    def is_root(self, number: int) -> bool:
        """Whether an item is in memory or a fold, not computed where it is read."""
        return number in self.roots or self.items[number].kind not in INLINED

    def operand_accesses(self, number: int, access: IndexMap) -> Iterator[tuple[int, IndexMap]]:
        """The inputs of an inlined item or a root, and where they are read."""
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
        """What a root reads of memory and of folds, and where in its own space."""
        space = self.iteration_space(root)
        found: dict[tuple[int, IndexMap], None] = {}
        seen: set[tuple[int, IndexMap]] = set()
        stack = list(self.operand_accesses(root, identity(space)))
        while stack:
            number, access = stack.pop()
            if (number, access) in seen:
                continue
            seen.add((number, access))
            if self.is_root(number):
                found[number, access] = None
            else:
                stack.extend(self.operand_accesses(number, access))
        self.computed[root] = seen - found.keys()
        return [FusedRead(number, access) for number, access in found]

    def iteration_space(self, root: int) -> Shape:
        """The space over which a root is computed: that of what it folds or scans."""
        item = self.items[root]
        return self.items[item.inputs[0]].shape if item.kind in ("fold", "scan") else item.shape

    def _assign_group(self, root: int) -> None:
        """Put a root into the group it shares loops with, or into one of its own."""
        uses = self.memory_reads(root)
        direct = {
            self.group_of[use.item].number
            for use in uses
            if use.item in self.group_of and use.access != COMPUTED_INDEX
        }
        behind = {
            number
            for use in uses
            if use.item not in self.group_of
            for number in self._find_predecessors(use.item)
        }
        for use in uses:
            if use.item in self.group_of and use.access == COMPUTED_INDEX:
                group = self.group_of[use.item]
                behind |= {group.number, *group.predecessors}
        behind |= self._overwrite_predecessors(root)
        needed = direct | behind
        apart = []
        for group in self._candidates(root, uses):
            inside = group.number not in behind
            embedding = self._embedding(root, uses, group) if inside else None
            if not inside:
                objection = "it needs the finished result of that kernel"
            elif embedding is None:
                objection = "it iterates over other indices"
            else:
                objection = self._objection(root, uses, group, embedding, needed)
            if embedding is not None and not objection:
                self._add_to_group(root, group, embedding, needed, uses)
                return
            apart.append(
                f"{self._op_names(root)} not fused with {self._op_names(*group.roots)}: {objection}"
            )
        group = FusedGroup(len(self.groups), self.iteration_space(root))
        self.not_fused_because[group.number] = apart
        self.groups.append(group)
        self._add_to_group(root, group, tuple(range(len(group.space))), needed, uses)

    def _overwrite_predecessors(self, root: int) -> Set[int]:
        """The groups that must have run before a part of an array is written over."""
        base = self.items[self.join_of[root]].base if root in self.join_of else -1
        found: set[int] = set()
        for number in (base, self.items[root].staged):
            if number >= 0:
                group = self.group_of.get(number)
                found |= (
                    {group.number, *group.predecessors}
                    if group
                    else self._find_predecessors(number)
                )
        return found

    def _find_predecessors(self, number: int) -> frozenset[int]:
        """The groups that must have run before an item that no kernel computes."""
        known = self.predecessors_of.get(number)
        if known is None:
            found: set[int] = set()
            for i in self.items[number].inputs:
                group = self.group_of.get(i)
                found |= (
                    {group.number, *group.predecessors} if group else self._find_predecessors(i)
                )
            known = self.predecessors_of[number] = frozenset(found)
        return known

    def _candidates(self, root: int, uses: Sequence[FusedRead]) -> list[FusedGroup]:
        """The groups of what it reads, the latest first; then those that read the same memory."""
        below = self.items[root].inputs[:1]
        squeezes = self.items[root].kind == "view" and self._same_node(root, below[0])
        if not self.fused and self.items[root].kind != "leave" and not squeezes:
            return []
        if self.items[root].kind == "scan":
            return []
        own = {self.group_of[u.item].number for u in uses if u.item in self.group_of}
        found = [self.groups[number] for number in sorted(own, reverse=True)]
        found = [group for group in found if not group.scanned]
        space = self.iteration_space(root)
        found += [
            group
            for group in reversed(self.groups[-8:])
            if group.number not in own
            and not group.scanned
            and group.space == space
            and (
                not group.reads.isdisjoint(use.item for use in uses)
                or self._shares_join(root, group)
            )
        ]
        return found

    def _shares_join(self, root: int, group: FusedGroup) -> bool:
        """Whether a group writes another part of the array that a root is a part of."""
        whole = self.join_of.get(root)
        if whole is None or self.items[whole].base < 0:
            return False
        return any(self.join_of.get(other) == whole for other in group.roots)

    def _embedding(
        self, root: int, uses: Sequence[FusedRead], group: FusedGroup
    ) -> Embedding | None:
        """How the axes of a root stand in the group's space, if all it reads there fits."""
        space = self.iteration_space(root)
        if space == group.space:
            candidate: Embedding | None = tuple(range(len(space)))
            if self._reads_align(uses, group, candidate):
                return candidate
        candidate = self._match_axes(space, uses, group)
        if candidate is None or not self._reads_align(uses, group, candidate):
            return None
        return candidate

    def _match_axes(
        self, space: Shape, uses: Sequence[FusedRead], group: FusedGroup
    ) -> Embedding | None:
        """Match the axes of a root by how it reads a fold of the group."""
        axes: dict[int, int] = {}
        for use in uses:
            stands = group.roots.get(use.item)
            if stands is None or group.axis is None:
                continue
            for place, (axis, _, _) in zip(stands, use.access, strict=True):
                if axis is not None and place is not None and place != group.axis:
                    axes[axis] = place
        left = [i for i, length in enumerate(space) if length != 1 and i not in axes]
        if len(left) > 1 or (left and group.axis is None):
            return None
        if left:
            assert group.axis is not None, "tested above"
            if space[left[0]] != group.space[group.axis]:
                return None
            axes[left[0]] = group.axis
        if any(space[i] != group.space[place] for i, place in axes.items()):
            return None
        if len(set(axes.values())) < len(axes):
            return None
        rest = set(range(len(group.space))) - set(axes.values()) - {group.axis}
        if any(group.space[axis] != 1 for axis in rest):
            return None
        return tuple(axes.get(i) for i in range(len(space)))

    def _reads_align(
        self, uses: Sequence[FusedRead], group: FusedGroup, embedding: Embedding | None
    ) -> bool:
        """Whether everything read of the group is read at the index where it is made."""
        assert embedding is not None, "there is a candidate"
        return all(
            use.item not in group.roots
            or remap_axes(use.access, embedding) == self.root_location(group, use.item)
            for use in uses
        )

    def root_location(self, group: FusedGroup, number: int) -> IndexMap:
        """Where in the group's space a root is made."""
        shape = self.items[number].shape
        return tuple(
            FIXED if length == 1 or place is None else (place, 1, 0)
            for place, length in zip(group.roots[number], shape, strict=True)
        )

    def _op_names(self, *roots: int) -> str:
        """The operations of some roots, as they were written."""
        names = (self.graph.nodes[self.items[root].position].name for root in roots)
        return "+".join(dict.fromkeys(names))

    def _objection(
        self,
        root: int,
        uses: Sequence[FusedRead],
        group: FusedGroup,
        embedding: Embedding,
        needed: set[int],
    ) -> str:
        """Why a root that fits may not join a group; empty where it may."""
        others = needed - {group.number}
        if any(group.number in self.groups[other].predecessors for other in others):
            return "it also depends on a step that depends on that kernel"  # together: a circle
        if group.weight + self._added_weight(root, group, embedding) > LARGEST_BODY:
            return f"a kernel has at most {LARGEST_BODY} operations"
        item = self.items[root]
        if item.kind == "fold" and group.axis not in (None, item.axis):
            return "another axis is reduced"
        if item.kind == "fold" and embedding != tuple(range(len(group.space))):
            return "it iterates over other indices"
        axis = group.axis if group.axis is not None else item.axis
        ended = any(
            use.item in group.roots
            and all(step[0] != axis for step in self.root_location(group, use.item))
            for use in uses
        )
        along = item.kind == "fold" or axis in embedding
        if ended and along and axis >= 0:
            rows = product(group.space) // max(group.space[axis], 1)
            if group.space[axis] > CACHED_ROW:
                return f"{group.space[axis]:,} elements of a row do not fit in the cache"
            if rows <= 3 and group.space[axis] > 4096:
                return f"{rows} long rows are split across threads instead"
        return ""

    def _added_weight(self, root: int, group: FusedGroup, embedding: Embedding) -> int:
        """How many operations a root adds to a group, which may compute a part of it already."""
        computed = self.computed[root]
        if embedding == tuple(range(len(group.space))):
            computed = computed - group.computed
        return 1 + sum(weight_of(self.items[number], self._cost) for number, _ in computed)

    def _add_to_group(
        self,
        root: int,
        group: FusedGroup,
        embedding: Embedding,
        needed: set[int],
        uses: Sequence[FusedRead],
    ) -> None:
        group.weight += self._added_weight(root, group, embedding)
        if embedding == tuple(range(len(group.space))):
            group.computed |= self.computed[root]
        group.roots[root] = embedding
        group.reads.update(use.item for use in uses if use.item not in group.roots)
        if self.items[root].kind in ("fold", "scan"):
            group.axis = self.items[root].axis
            group.scanned = self.items[root].kind == "scan"
        self.group_of[root] = group
        more = set(needed) - {group.number}
        for number in tuple(more):
            more |= self.groups[number].predecessors
        group.predecessors |= more
        for other in self.groups:
            if group.number in other.predecessors:
                other.predecessors |= more


def _cost_comparison(again: float, once: float) -> str:
    return f"recomputed for each reader {again:,.0f} additions, stored once {once:,.0f}"


def _without_unit_axes(access: IndexMap, shape: Shape) -> IndexMap:
    """An access in which what is read of an axis of length 1 does not depend on the loops."""
    return tuple(
        (None, 0, 0) if length == 1 else step for step, length in zip(access, shape, strict=True)
    )
