"""Update coalescing: writes successive updates of one array's parts in a single kernel.

Takes a Graph and which of its updates are done in place, hands on the UpdateRuns. In a run each
update replaces a part of the result of the one before, and only parts of that result are read. Such
a part is disjoint from all that were replaced, and is read of the array below; or it is one of
them, and is that value. Then the arrays between need not exist. The parts of a recurrence over rows
are values of one kernel, which reads the array below and stores all of them into its memory.

>>> import tenfold as tn
>>> from tenfold import _native
>>> a = tn.zeros((4, 3)).wait()
>>> node = _native.node_of(a)
>>> for row in (1, 2):
...     node = _native.node_of(tn.set_at(_native.array_of(node), row, 1.0))
>>> del row
>>> runs_of(Graph.of([node]), [2, 4]).parts
{4: (2, 4)}
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tenfold._native import Node
from tenfold.core.graph import Graph
from tenfold.core.index_map import Access, identity, strides_in
from tenfold.core.op import Kind
from tenfold.core.op_decorators import FORMULA_COST
from tenfold.core.shape_rules import Shape, product, row_major
from tenfold.rewrite.rules.update_slices import apart, inside
from tenfold.schedule.kernel_splitting import FORMULA_WEIGHT, LARGEST_BODY
from tenfold.schedule.schedule_ir import UpdateRuns

MOST_PARTS, FEWER, FEW = 64, 8, 4
"""Parts of one run at most; of parts that fill some pages, and of those that fill a cache: more of
them, gone through side by side, would drive each other out of it."""
PAGES, CACHE = 1 << 14, 1 << 19
"""Bytes of a part from which on that holds."""

Part = tuple[Access, Shape]


def runs_of(graph: Graph, in_place: Collection[int]) -> UpdateRuns:
    """Find the runs among the updates at these positions, no longer than a kernel may be."""
    runs = UpdateRuns()
    readers: list[list[int]] = [[] for _ in graph.nodes]
    for user, inputs in enumerate(graph.inputs):
        for i in inputs:
            readers[i].append(user)
    open_: dict[int, _UpdateRun] = {}
    for at in sorted(in_place):
        base = graph.inputs[at][0]
        run = open_.get(base)
        if run is None or not run.goes_on(at, readers[base]):
            run = _UpdateRun(graph, base)
        run.add(at)
        open_[at] = run
    for run in dict.fromkeys(open_.values()):
        run.enter(runs, readers)
    return runs


class _UpdateRun:
    """A run that is being found."""

    def __init__(self, graph: Graph, base: int) -> None:
        self.graph, self.base = graph, base
        node = graph.nodes[base]
        value = None if node.pending else node.value()
        contiguous = (node.type.dtype.itemsize * step for step in row_major(node.type.shape))
        self.strides = (value.strides if value is not None else ()) or tuple(contiguous)
        self.members: list[int] = []
        self.weight = 0
        """How many operations a kernel has that computes all parts, at most."""
        self.stored: dict[int, Part] = {}
        self.values: dict[int, int] = {}
        self.reads: dict[int, tuple[int, Access]] = {}

    def _part(self, at: int) -> Part:
        node = self.graph.nodes[at]
        access, shape = node.op.writes(*node.params)
        return access, shape

    def goes_on(self, at: int, readers: Sequence[int]) -> bool:
        """Whether the array that is there so far need not exist for the next update and all others
        that read it; then these reads are known.
        """
        last, part = self.members[-1], self._part(at)
        if len(self.stored) >= self._most(part):
            return False
        if self.weight + self._weight(last, at) > LARGEST_BODY:
            return False
        for other in self.stored.values():
            if not apart(*part, *other) and inside(*other, *part) is None:
                return False
        found = [(reader, self._found(reader)) for reader in readers if reader != at]
        known = [(reader, place) for reader, place in found if place is not None]
        if len(known) < len(found) or readers.count(at) > 1:
            return False
        for reader, (source, read) in known:
            if source == self.base:
                self.reads[reader] = source, read
            else:
                self.values[reader] = source
        return True

    def _most(self, part: Part) -> int:
        """How many parts like this one may be gone through side by side."""
        access, shape = part
        size = self.graph.nodes[self.base].type.dtype.itemsize * product(shape)
        if size <= PAGES:
            return MOST_PARTS
        strides, offset = strides_in(access, self.strides, len(shape))
        before, there = next(reversed(self.stored.values()))
        apart_by = abs(offset - strides_in(before, self.strides, len(there))[1])
        steps = zip(shape, strides, strict=True)
        nearest = min(abs(stride) for length, stride in steps if length > 1)
        if apart_by < nearest:  # its elements lie between those of the other: columns share lines
            return MOST_PARTS
        return FEWER if size <= CACHE else FEW

    def _weight(self, last: int, at: int) -> int:
        """What computing the next part adds: what stands between the two in the graph's order."""
        return sum(map(_weight_of, self.graph.nodes[last + 1 : at + 1]))

    def _found(self, reader: int) -> tuple[int, Access] | None:
        """Where a view of the array finds its elements: those of one part at their own index, or
        those of the array below.
        """
        node = self.graph.nodes[reader]
        if node.op is None or node.op.reads is None:
            return None
        shape = node.type.shape
        read = node.op.reads(self.graph.nodes[self.base].type.shape, *node.params)
        for at, (access, part) in self.stored.items():
            if not apart(read, shape, access, part):
                same = shape == part and inside(read, shape, access, part) == identity(shape)
                return (at, identity(shape)) if same else None
        return self.base, read

    def add(self, at: int) -> None:
        """Let the run have one more update."""
        access, shape = self._part(at)
        self.weight += self._weight(self.members[-1] if self.members else self.base, at)
        for other, part in list(self.stored.items()):
            if not apart(access, shape, *part):
                del self.stored[other]
        self.members.append(at)
        self.stored[at] = access, shape

    def enter(self, runs: UpdateRuns, readers: Sequence[Sequence[int]]) -> None:
        """Note a run of several updates; what loops read of the last array are its parts too."""
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
            inlined = all(op is not None and (op.kind is Kind.MAP or op.writes) for op in users)
            found = self._found(reader) if inlined and not self.graph.held[reader] else None
            if found is not None and found[0] != self.base:
                runs.values[reader] = found[0]


def _weight_of(node: Node) -> int:
    if not node.pending or node.op is None or node.op.reads is not None:
        return 0
    return FORMULA_WEIGHT if node.op.cost >= FORMULA_COST else 1
