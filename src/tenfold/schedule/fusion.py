"""Fusion: partitions the roots into groups, each of which becomes one kernel.

A pass. Takes the stored items, hands on groups in an order in which they can run. A root joins a
group whose loops have the same iteration space. It must read the group's other roots at the index
where they are computed. A fold and the reads of its result along its axis share their loops, one
pass after another. Everything that is inlined is computed in the loops of its readers.

>>> import tenfold as tn
>>> from tenfold import _native
>>> from tenfold.core.graph import Graph
>>> from tenfold.schedule.schedule import schedule_graph
>>> x = tn.asarray([[1.0, 2.0], [3.0, 4.0]])
>>> graph = Graph.of([_native.node_of(x - tn.max(x, axis=1, keepdims=True))])
>>> (group,) = schedule_graph(graph).groups
>>> group.space, group.axis, sorted(group.roots), group.outputs
((2, 2), 1, [1, 3], (3,))
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from tenfold.core.index_map import (
    COMPUTED_INDEX,
    FIXED,
    IndexMap,
    broadcast_access,
    compose_view,
    identity,
    remap_axes,
)
from tenfold.core.shape_rules import Shape, product
from tenfold.schedule.kernel_splitting import weights_of
from tenfold.schedule.pass_rules import require
from tenfold.schedule.schedule_ir import (
    Embedding,
    FusedGroup,
    FusedRead,
    ItemKind,
    Schedule,
    ScheduleItem,
)

MEMORY_USERS = (ItemKind.CALL, ItemKind.COPY, ItemKind.PART, ItemKind.CONCAT)
"""The kinds of items, other than roots, that read others in memory."""
OPERAND_LOOPS = (ItemKind.FOLD, ItemKind.SCAN, ItemKind.SCATTER, ItemKind.SEGMENT_FOLD)
"""The kinds of items whose loops are those of their operand."""


def fuse(schedule: Schedule) -> Schedule:
    """Partition the roots into groups."""
    fusion = _Fusion(schedule)
    return schedule.updated(groups=fusion.frozen_groups())


def verify_groups(schedule: Schedule) -> None:
    """Each root that computes something is in one group, which reads what it computes itself where
    it computes it. Groups can run in some order, and each stores what others read.
    """
    group_of: dict[int, int] = {}
    for number, group in enumerate(schedule.groups):
        require(group.number == number, "group {} has the number {}", number, group.number)
        for root, embedding in group.roots.items():
            require(root not in group_of, "root {} is in two groups", root)
            group_of[root] = number
            _verify_root(schedule, group, root, embedding)
        stored = set(group.outputs)
        require(stored <= group.roots.keys(), "group {} stores what it does not compute", number)
    computed = schedule.roots - schedule.aliases.keys()
    require(group_of.keys() == computed, "the groups compute other items than the roots")
    outputs = {number for group in schedule.groups for number in group.outputs}
    for number in schedule.live_out & computed:
        require(number in outputs, "item {} is live-out and not stored", number)
    for group in schedule.groups:
        if group.outputs:
            missing = (group.reads & computed) - outputs
            require(not missing, "group {} reads {}, not stored", group.number, missing)
    _verify_acyclic(schedule, group_of)


def _verify_root(schedule: Schedule, group: FusedGroup, root: int, embedding: Embedding) -> None:
    """A root's loops are loops of its group, and reduce the axis that the group reduces."""
    space, item = iteration_space(schedule, root), schedule.items[root]
    require(len(embedding) == len(space), "root {} has {} axes", root, len(embedding))
    used = [axis for axis in embedding if axis is not None]
    require(len(set(used)) == len(used), "root {} has two axes in one loop", root)
    for axis, length in zip(embedding, space, strict=True):
        fits = length == 1 if axis is None else group.space[axis] == length
        require(fits, "root {} has {} elements in a loop of another length", root, length)
    if item.kind in (ItemKind.FOLD, ItemKind.SCAN):
        require(group.axis == item.axis, "root {} reduces another axis than its group", root)
    if item.kind is ItemKind.SCAN:
        require(group.scanned and len(group.roots) == 1, "scan {} shares its loops", root)
    if item.kind is ItemKind.SCATTER:
        require(group.scattered and len(group.roots) == 1, "scatter {} shares its loops", root)
    if root in schedule.segmented:
        same = group.offsets == schedule.segmented[root] and embedding == (*range(len(space)),)
        require(same, "root {} has other segments than its group", root)
    elif group.offsets >= 0:
        rows = (0, *range(2, len(group.space)))
        require(embedding == rows, "root {} is no row of the segments of its group", root)
    for read in group.root_reads[root]:
        require(read.item not in schedule.inlined, "root {} reads inlined {}", root, read.item)
        if read.item in group.roots:
            same = remap_axes(read.access, embedding) == root_location(
                schedule.items, group, read.item
            )
            require(same, "root {} reads root {} of its group elsewhere", root, read.item)


def _verify_acyclic(schedule: Schedule, group_of: Mapping[int, int]) -> None:
    """No group needs its own result through other steps. Group n is the unit -1 - n, an item that
    no group computes is its own unit.
    """
    units = {number: -1 - group for number, group in group_of.items()}
    needed: dict[int, Iterable[int]] = {-1 - group.number: group.reads for group in schedule.groups}
    for number, item in enumerate(schedule.items):
        if number not in schedule.inlined and number not in group_of:
            units[number] = number
            alias = schedule.aliases.get(number)
            needed[number] = item.inputs if alias is None else (alias.item,)
    waiting = {
        unit: {units[i] for i in reads if i in units} - {unit} for unit, reads in needed.items()
    }
    readers: dict[int, list[int]] = {unit: [] for unit in waiting}
    for unit, predecessors in waiting.items():
        for predecessor in predecessors:
            readers[predecessor].append(unit)
    ready = [unit for unit, predecessors in waiting.items() if not predecessors]
    done = 0
    while ready:
        unit = ready.pop()
        done += 1
        for reader in readers[unit]:
            waiting[reader].discard(unit)
            if not waiting[reader]:
                ready.append(reader)
    require(done == len(waiting), "groups need each other's results")


def operand_accesses(
    items: Sequence[ScheduleItem], number: int, access: IndexMap
) -> list[tuple[int, IndexMap]]:
    """Return the inputs of an inlined item or a root, and the accesses to them."""
    item = items[number]
    kind, inputs = item.kind, item.inputs
    if kind is ItemKind.VIEW:
        (i,) = inputs
        return [(i, _without_unit_axes(compose_view(access, item.reads), items[i].shape))]
    if kind is ItemKind.MAP:
        shape = item.shape
        return [
            (i, access if own == shape else broadcast_access(access, own, shape))
            for i in inputs
            for own in [items[i].shape]
        ]
    if kind is ItemKind.GATHER:
        return [(i, COMPUTED_INDEX) for i in inputs]
    if kind is ItemKind.SCATTER:
        return [(i, COMPUTED_INDEX if i == item.initial else access) for i in inputs]
    if kind is ItemKind.SEGMENT_FOLD:
        return [(inputs[0], access), (inputs[1], COMPUTED_INDEX)]
    if kind is ItemKind.REPEAT:  # axis 0 of its loops are the rows
        rows = _without_unit_axes(((0, 1, 0), *access[1:]), items[inputs[0]].shape)
        return [(inputs[0], rows), (inputs[1], COMPUTED_INDEX)]
    return [(i, access) for i in inputs] if kind is not ItemKind.IDENTITY else []


def iteration_space(schedule: Schedule, root: int) -> Shape:
    """Return the space of a root's loops: for a fold, scan or scatter, the shape of its operand;
    the rows come before the entries of segments.
    """
    items, item = schedule.items, schedule.items[root]
    shape = items[item.inputs[0]].shape if item.kind in OPERAND_LOOPS else item.shape
    offsets = schedule.segmented.get(root)
    return shape if offsets is None else (items[offsets].shape[0] - 1, *shape)


def element_access(schedule: Schedule, root: int) -> IndexMap:
    """Return the access of the elements of a root, or of its operand, in the space of its loops."""
    return identity(iteration_space(schedule, root))[root in schedule.segmented :]


def root_location(
    items: Sequence[ScheduleItem], group: FusedGroup | _OpenGroup, number: int
) -> IndexMap:
    """Return the access at which a root is computed, in the group's space."""
    if items[number].kind is ItemKind.SCATTER:
        return COMPUTED_INDEX
    embedding = group.roots[number]
    if items[number].kind is ItemKind.SEGMENT_FOLD:
        embedding = (embedding[0], *embedding[2:])
    embedding = embedding[len(embedding) - len(items[number].shape) :]  # without rows of segments
    return tuple(
        [
            FIXED if length == 1 or space_axis is None else (space_axis, 1, 0)
            for space_axis, length in zip(embedding, items[number].shape, strict=True)
        ]
    )


@dataclass
class _OpenGroup:
    """A group that further roots may join."""

    number: int
    space: Shape
    axis: int | None = None
    scanned: bool = False
    scattered: bool = False
    offsets: int = -1
    is_closed: bool = False
    """Whether no further root may join it."""
    roots: dict[int, Embedding] = field(default_factory=dict)
    root_reads: dict[int, tuple[FusedRead, ...]] = field(default_factory=dict)
    predecessors: set[int] = field(default_factory=set)
    """The groups that must run before it, transitively."""
    weight: int = 0
    computed: set[tuple[int, IndexMap]] = field(default_factory=set)
    """The inlined items with their accesses; each is computed once for all roots."""
    reads: set[int] = field(default_factory=set)
    not_fused_because: list[str] = field(default_factory=list)


class _Fusion:
    def __init__(self, schedule: Schedule) -> None:
        self.schedule, self.items = schedule, schedule.items
        self.weights = weights_of(schedule.graph, schedule.items)
        self.concat_of, self.inlined = schedule.concat_of, schedule.inlined
        self.groups: list[_OpenGroup] = []
        self.group_of: dict[int, _OpenGroup] = {}
        self.computed: dict[int, set[tuple[int, IndexMap]]] = {}
        """By root: the inlined items that it needs, with their accesses."""
        self.predecessors_of: dict[int, frozenset[int]] = {}
        for number in sorted(schedule.roots - schedule.aliases.keys()):
            self._assign_group(number)

    def frozen_groups(self) -> tuple[FusedGroup, ...]:
        """Return the groups, each with the roots that it stores."""
        stored, computed = self._stored_roots(), self.computed
        return tuple(
            [
                FusedGroup(
                    group.number,
                    group.space,
                    group.axis,
                    group.scanned,
                    group.scattered,
                    group.roots,
                    group.root_reads,
                    frozenset([number for root in group.roots for number, _ in computed[root]]),
                    frozenset(group.reads),
                    tuple([root for root in group.roots if root in stored]),
                    tuple(group.not_fused_because),
                    group.offsets,
                )
                for group in self.groups
            ]
        )

    def _stored_roots(self) -> set[int]:
        """The roots that their group must store."""
        schedule = self.schedule
        stored = set(schedule.live_out)
        for item in self.items:
            if item.kind in MEMORY_USERS:
                stored.update(item.inputs)
                if item.base >= 0:
                    stored.add(item.base)
        stored.update([alias.item for alias in schedule.aliases.values()])
        for group in self.groups:
            stored |= group.reads
        return stored

    def _memory_reads(self, root: int) -> tuple[FusedRead, ...]:
        """The items in memory and the folds that a root reads, with the accesses."""
        items, inlined = self.items, self.inlined
        memory_accesses: dict[tuple[int, IndexMap], None] = {}
        visited: set[tuple[int, IndexMap]] = set()
        stack = operand_accesses(items, root, element_access(self.schedule, root))
        while stack:
            read = number, access = stack.pop()
            if read in visited:
                continue
            visited.add(read)
            if number in inlined:
                stack += operand_accesses(items, number, access)
            else:
                memory_accesses[read] = None
        self.computed[root] = visited - memory_accesses.keys()
        return tuple([FusedRead(number, access) for number, access in memory_accesses])

    def _assign_group(self, root: int) -> None:
        """Put a root into a group with which it shares loops, or into a new one."""
        reads = self._memory_reads(root)
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
                f"{self.schedule.op_names(root)} not fused with "
                f"{self.schedule.op_names(*group.roots)}: {objection}"
            )
        group = _OpenGroup(len(self.groups), iteration_space(self.schedule, root))
        group.not_fused_because = not_fused_because
        self.groups.append(group)
        self._add_to_group(root, group, tuple(range(len(group.space))), predecessors, reads)

    def _overwrite_predecessors(self, root: int) -> Set[int]:
        """The groups that must run before a part of an array is overwritten."""
        base = self.items[self.concat_of[root]].base if root in self.concat_of else -1
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

    def _candidates(self, root: int, reads: Sequence[FusedRead]) -> list[_OpenGroup]:
        """The groups of its operands, the latest first; then those that read the same memory."""
        operand = self.items[root].inputs[:1]
        squeezes = (
            self.items[root].kind is ItemKind.VIEW
            and self.items[operand[0]].position == self.items[root].position
        )
        if (
            not self.schedule.fused
            and self.items[root].kind is not ItemKind.FINALIZE
            and not squeezes
        ):
            return []
        if self.items[root].kind in (ItemKind.SCAN, ItemKind.SCATTER):
            return []
        producers = {
            self.group_of[read.item].number for read in reads if read.item in self.group_of
        }
        candidates = [self.groups[number] for number in sorted(producers, reverse=True)]
        candidates = [group for group in candidates if not group.is_closed]
        space = iteration_space(self.schedule, root)
        candidates += [
            group
            for group in reversed(self.groups[-8:])
            if group.number not in producers
            and not group.is_closed
            and group.space == space
            and (
                not group.reads.isdisjoint(root_read.item for root_read in reads)
                or self._shares_concat(root, group)
            )
        ]
        return candidates

    def _shares_concat(self, root: int, group: _OpenGroup) -> bool:
        """Whether a group writes another part of the same updated array."""
        concat = self.concat_of.get(root)
        if concat is None or self.items[concat].base < 0:
            return False
        return any(self.concat_of.get(root_of_group) == concat for root_of_group in group.roots)

    def _embedding(
        self, root: int, reads: Sequence[FusedRead], group: _OpenGroup
    ) -> Embedding | None:
        """The embedding of a root in the group's space, or None where its reads do not align."""
        space = iteration_space(self.schedule, root)
        candidate: Embedding | None
        offsets = self.schedule.segmented.get(root, -1)
        if offsets >= 0 or group.offsets >= 0:
            return self._segment_embedding(offsets, space, reads, group)
        if space == group.space:
            candidate = tuple(range(len(space)))
            if self._reads_align(reads, group, candidate):
                return candidate
        candidate = self._match_axes(space, reads, group)
        if candidate is None or not self._reads_align(reads, group, candidate):
            return None
        return candidate

    def _segment_embedding(
        self, offsets: int, space: Shape, reads: Sequence[FusedRead], group: _OpenGroup
    ) -> Embedding | None:
        """The embedding of entries, or of rows, in the space of a group of segments."""
        axes = range(len(group.space))
        embedding = (*axes,) if offsets >= 0 else (0, *axes[2:])
        same = group.offsets >= 0 and offsets in (-1, group.offsets)
        same = same and space == tuple([group.space[axis] for axis in embedding])
        return embedding if same and self._reads_align(reads, group, embedding) else None

    def _match_axes(
        self, space: Shape, reads: Sequence[FusedRead], group: _OpenGroup
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
        self, reads: Sequence[FusedRead], group: _OpenGroup, embedding: Embedding | None
    ) -> bool:
        """Whether each read of a root of the group is at the index where it is computed."""
        assert embedding is not None, "there is a candidate"
        return all(
            read.item not in group.roots
            or remap_axes(read.access, embedding) == root_location(self.items, group, read.item)
            for read in reads
        )

    def _objection(
        self,
        root: int,
        reads: Sequence[FusedRead],
        group: _OpenGroup,
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
        work = self.schedule.target.work
        is_long = group.weight + self._added_weight(root, group, embedding) > work.max_body_ops
        if is_long and not self._finishes(root, group):
            return f"a kernel has at most {work.max_body_ops} operations"
        item = self.items[root]
        if item.kind is ItemKind.FOLD and group.axis not in (None, item.axis):
            return "another axis is reduced"
        if item.kind is ItemKind.FOLD and embedding != tuple(range(len(group.space))):
            return "it iterates over other indices"
        if group.offsets >= 0:
            return ""  # the rows of segments have any length
        axis = group.axis if group.axis is not None else item.axis
        reads_reduction = any(
            read.item in group.roots
            and all(step[0] != axis for step in root_location(self.items, group, read.item))
            for read in reads
        )
        spans_axis = item.kind is ItemKind.FOLD or axis in embedding
        if reads_reduction and spans_axis and axis >= 0:
            rows = product(group.space) // max(group.space[axis], 1)
            if group.space[axis] > self.schedule.target.caches.fused_row_elements:
                return f"{group.space[axis]:,} elements of a row do not fit in the cache"
            if rows <= work.unfused_rows and group.space[axis] > work.unfused_row_elements:
                return f"{rows} long rows are split across threads instead"
        return ""

    def _finishes(self, root: int, group: _OpenGroup) -> bool:
        """Whether a root is the result of a fold of the group: it takes what cannot be stored, if
        the fold has several accumulator values.
        """
        position = self.items[root].position
        return any(
            self.items[i].kind is ItemKind.FOLD and self.items[i].position == position
            for i in group.roots
        )

    def _added_weight(self, root: int, group: _OpenGroup, embedding: Embedding) -> int:
        """How many operations a root adds to a group, which may share some of them."""
        computed = self.computed[root]
        if embedding == tuple(range(len(group.space))):
            computed = computed - group.computed
        return 1 + sum([self.weights[number] for number, _ in computed])

    def _add_to_group(
        self,
        root: int,
        group: _OpenGroup,
        embedding: Embedding,
        predecessors: set[int],
        reads: tuple[FusedRead, ...],
    ) -> None:
        group.weight += self._added_weight(root, group, embedding)
        if embedding == tuple(range(len(group.space))):
            group.computed |= self.computed[root]
        group.roots[root] = embedding
        group.root_reads[root] = reads
        group.reads.update([read.item for read in reads if read.item not in group.roots])
        if self.items[root].kind in (ItemKind.FOLD, ItemKind.SCAN):
            group.axis = self.items[root].axis
            group.scanned = self.items[root].kind is ItemKind.SCAN
        if root in self.schedule.segmented:
            group.axis, group.offsets = 1, self.schedule.segmented[root]
        group.scattered = group.scattered or self.items[root].kind is ItemKind.SCATTER
        group.is_closed = group.scanned or group.scattered
        self.group_of[root] = group
        all_predecessors = set(predecessors) - {group.number}
        for number in tuple(all_predecessors):
            all_predecessors |= self.groups[number].predecessors
        group.predecessors |= all_predecessors
        for later_group in self.groups:
            if group.number in later_group.predecessors:
                later_group.predecessors |= all_predecessors


def _without_unit_axes(access: IndexMap, shape: Shape) -> IndexMap:
    """An access without the loops along axes of length 1."""
    return tuple(
        [(None, 0, 0) if length == 1 else step for step, length in zip(access, shape, strict=True)]
    )


__all__ = [
    "element_access",
    "fuse",
    "iteration_space",
    "operand_accesses",
    "root_location",
    "verify_groups",
]
