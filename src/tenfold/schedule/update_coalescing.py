"""Update coalescing: writes successive updates of one array's parts in a single kernel.

A pass. Takes a Graph and its in-place updates, hands on the UpdateRuns. In a run each update
replaces a part of the result of the one before, and only parts of that result are read. Such a part
is disjoint from all updated ones, and is read from the base array; or it is one of them. Then the
intermediate arrays need not exist. The parts of a recurrence over rows are values of one
kernel, which reads the base array and stores all of them into its buffer.

>>> import tenfold as tn
>>> from tenfold import _native
>>> from tenfold.core.graph import Graph
>>> a = tn.zeros((4, 3)).wait()
>>> node = _native.node_of(a)
>>> for row in (1, 2):
...     node = _native.node_of(tn.set_at(_native.array_of(node), row, 1.0))
>>> del row
>>> _find_runs(Schedule(Graph.of([node])), [2, 4]).parts
{4: (2, 4)}
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold._native import Node
from tenfold.core.index_map import (
    IndexMap,
    Slice,
    are_disjoint,
    identity,
    relative_map,
    strides_in,
)
from tenfold.core.op import Kind
from tenfold.core.op_decorators import FORMULA_COST
from tenfold.core.shape_rules import Shape, product, row_major
from tenfold.schedule.kernel_splitting import FORMULA_WEIGHT
from tenfold.schedule.pass_rules import require
from tenfold.schedule.schedule_ir import Schedule, UpdateRuns


def coalesce_updates(schedule: Schedule) -> Schedule:
    """Find the runs among the updates in place, each at most one kernel long."""
    updates = schedule.updates
    in_place = sorted(updates.directions.keys() - updates.staged)
    if not updates.coalesced or not in_place:
        return schedule.updated(update_runs=UpdateRuns())
    return schedule.updated(update_runs=_find_runs(schedule, in_place))


def verify_runs(schedule: Schedule) -> None:
    """The intermediate arrays of a run are only updated, or read where a part of the run or the
    base array has the elements.
    """
    graph, runs = schedule.graph, schedule.update_runs
    in_place = schedule.updates.directions.keys() - schedule.updates.staged
    replaced = {*runs.values, *runs.reads}
    for last, base in runs.bases.items():
        array, members = graph.inputs[last][0], {last}
        while array != base:
            require(array in runs.inner, "array {} between {} and {} exists", array, base, last)
            members.add(array)
            array = graph.inputs[array][0]
        require(members <= in_place, "updates {} of a run are not in place", members - in_place)
        parts = {*runs.parts[last]}
        stored = {member for member in members if runs.inner.get(member, True)}
        require(parts == stored, "the run {} stores {}, not {}", last, parts, stored)
    for position, inputs in enumerate(graph.inputs):
        for place, number in enumerate(inputs):
            if number in runs.inner:
                known = position in replaced or (place == 0 and position in in_place)
                require(known, "node {} reads {}, which is not computed", position, number)
                require(not graph.live_out[number], "node {} is live-out", number)


def _find_runs(schedule: Schedule, in_place: Sequence[int]) -> UpdateRuns:
    """Find the runs among the updates at these positions, in order."""
    graph, found = schedule.graph, _Runs()
    readers: list[list[int]] = [[] for _ in graph.nodes]
    for user, inputs in enumerate(graph.inputs):
        for i in inputs:
            readers[i].append(user)
    runs_by_last: dict[int, _UpdateRun] = {}
    for at in in_place:
        base = graph.inputs[at][0]
        run = runs_by_last.get(base)
        if run is None or not run.can_extend(at, readers[base]):
            run = _UpdateRun(schedule, base)
        run.add(at)
        runs_by_last[at] = run
    for run in dict.fromkeys(runs_by_last.values()):
        run.record(found, readers)
    return UpdateRuns(found.bases, found.parts, found.inner, found.values, found.reads)


class _Runs:
    """The fields of UpdateRuns, while runs are recorded."""

    def __init__(self) -> None:
        self.bases: dict[int, int] = {}
        self.parts: dict[int, tuple[int, ...]] = {}
        self.inner: dict[int, int] = {}
        self.values: dict[int, int] = {}
        self.reads: dict[int, tuple[int, IndexMap]] = {}


class _UpdateRun:
    """A run under construction."""

    def __init__(self, schedule: Schedule, base: int) -> None:
        self.graph, self.target, self.base = schedule.graph, schedule.target, base
        node = self.graph.nodes[base]
        self.shape: Shape = node.type.shape
        value = None if node.pending else node.value()
        contiguous = (node.type.dtype.itemsize * step for step in row_major(self.shape))
        self.strides = (value.strides if value is not None else ()) or tuple(contiguous)
        self.members: list[int] = []
        self.weight = 0
        """An upper bound of the operations of a kernel that computes all parts."""
        self.stored: dict[int, Slice] = {}
        self.values: dict[int, int] = {}
        self.reads: dict[int, tuple[int, IndexMap]] = {}

    def can_extend(self, at: int, readers: Sequence[int]) -> bool:
        """Whether the next update can join: no reader needs the current array in memory. Then the
        sources of these reads are recorded.
        """
        last, updated_part = self.members[-1], self.graph.nodes[at].params
        if len(self.stored) >= self._part_limit(updated_part):
            return False
        if self.weight + self._added_weight(last, at) > self.target.work.max_body_ops:
            return False
        for stored_part in self.stored.values():
            if (
                not are_disjoint(updated_part, stored_part, self.shape)
                and relative_map(stored_part, updated_part) is None
            ):
                return False
        sources = [(reader, self._find_source(reader)) for reader in readers if reader != at]
        known_sources = [
            (reader, found_source) for reader, found_source in sources if found_source is not None
        ]
        if len(known_sources) < len(sources) or readers.count(at) > 1:
            return False
        for reader, (source, access) in known_sources:
            if source == self.base:
                self.reads[reader] = source, access
            else:
                self.values[reader] = source
        return True

    def _part_limit(self, updated_part: Slice) -> int:
        """The most parts of this size in one run."""
        access, shape = updated_part
        size = self.graph.nodes[self.base].type.dtype.itemsize * product(shape)
        caches = self.target.caches
        if size <= caches.copied_part_bytes:
            return caches.max_parts
        strides, offset = strides_in(access, self.strides, len(shape))
        last_access, last_shape = next(reversed(self.stored.values()))
        distance = abs(offset - strides_in(last_access, self.strides, len(last_shape))[1])
        steps = zip(shape, strides, strict=True)
        smallest_stride = min(abs(stride) for length, stride in steps if length > 1)
        if distance < smallest_stride:  # interleaved parts: columns share cache lines
            return caches.max_parts
        cached = size <= caches.cached_part_bytes
        return caches.max_large_parts if cached else caches.max_huge_parts

    def _added_weight(self, last: int, at: int) -> int:
        """The operations between two updates in graph order."""
        return sum(map(_weight_of, self.graph.nodes[last + 1 : at + 1]))

    def _find_source(self, reader: int) -> tuple[int, IndexMap] | None:
        """The source of a view of the array: one updated part, at its own index, or the base array.
        None: several sources.
        """
        node = self.graph.nodes[reader]
        if node.op is None or not node.op.is_affine_view:
            return None
        shape = node.type.shape
        read_access = node.op.reads(self.shape, node.params)
        read = read_access, shape
        for at, stored_part in self.stored.items():
            if not are_disjoint(read, stored_part, self.shape):
                same_shape = shape == stored_part[1]
                is_whole_part = same_shape and relative_map(read, stored_part) == identity(shape)
                return (at, identity(shape)) if is_whole_part else None
        return self.base, read_access

    def add(self, at: int) -> None:
        """Append an update to the run."""
        part: Slice = self.graph.nodes[at].params
        self.weight += self._added_weight(self.members[-1] if self.members else self.base, at)
        for stored_at, stored_part in list(self.stored.items()):
            if not are_disjoint(part, stored_part, self.shape):
                del self.stored[stored_at]
        self.members.append(at)
        self.stored[at] = part

    def record(self, runs: _Runs, readers: Sequence[Sequence[int]]) -> None:
        """Record a run of several updates. Fused readers of the last array read its parts too."""
        if len(self.members) < 2:
            return
        *inner, last = self.members
        runs.bases[last] = self.base
        runs.parts[last] = tuple(self.stored)
        runs.inner |= {at: at in self.stored for at in inner}
        runs.values |= self.values
        runs.reads |= self.reads
        for reader in readers[last]:
            users = [self.graph.nodes[i].op for i in readers[reader]]
            inlined = all(
                op is not None and (op.semantics.kind is Kind.MAP or op.lowering.updates)
                for op in users
            )
            source = (
                self._find_source(reader) if inlined and not self.graph.live_out[reader] else None
            )
            if source is not None and source[0] != self.base:
                runs.values[reader] = source[0]


def _weight_of(node: Node) -> int:
    if not node.pending or node.op is None or node.op.is_affine_view:
        return 0
    return FORMULA_WEIGHT if node.op.lowering.cost >= FORMULA_COST else 1
