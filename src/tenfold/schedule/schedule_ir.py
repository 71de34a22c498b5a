"""Schedule IR: the Schedule, which passes hand on, and the values that it consists of.

A Schedule begins as a Graph without decisions. Each pass of `schedule/passes.py` takes one and
hands on another with more fields decided. The last one has the steps, each with its reads, its
results and its reasons, in an order in which they can run. It is frozen, printable, and good for
every graph of the same structure and lengths. Scalars are not part of it.

>>> import tenfold as tn
>>> from tenfold import _native
>>> from tenfold.schedule.schedule import schedule_graph
>>> x = tn.asarray([1.0, 2.0])
>>> schedule = schedule_graph(Graph.of([_native.node_of((x + x) * 2)]))
>>> print(schedule)
kernel linear: add, multiply -> float64[2]
>>> [str(item.kind) for item in schedule.items]
['value', 'map', 'scalar', 'map']
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum, auto
from typing import Any, NamedTuple

import numpy as np

from tenfold.core.graph import Graph
from tenfold.core.index_map import AxisMap, IndexMap
from tenfold.core.loop_ir import Kernel
from tenfold.core.shape_rules import Shape, product
from tenfold.dtypes import DTYPE_NAMES
from tenfold.schedule.lapack.driver_builder import DriverChoice
from tenfold.schedule.product_forms import ProductChoice
from tenfold.schedule.target import DEFAULT, Target

Layout = tuple[int, ...]
"""The strides of an array, in bytes."""
Embedding = tuple[int | None, ...]
"""For each axis of a root the axis of its group's space."""
ReusePairs = tuple[tuple[int, int], ...]
"""Pairs of a result and the item whose buffer it reuses."""


@dataclass(frozen=True)
class InPlaceHazard:
    """Why the update at a position of the graph cannot be done in place.

    It can if the loops go in these directions along the axes of its part, unless they are empty.
    """

    position: int
    reason: str
    directions: tuple[int, ...] = ()


@dataclass(frozen=True)
class UpdateDecisions:
    """For each update of a part of an array, by its position: in place, staged, or a copy."""

    copy_reasons: Mapping[int, str] = field(default_factory=dict)
    """By update that is not in place: why."""
    directions: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """By update in place: the directions of the loops along its part; empty: all forward."""
    staged: frozenset[int] = frozenset()
    """Updates in place whose part is first computed into its own buffer."""
    coalesced: bool = True
    """Whether successive updates may be coalesced."""


@dataclass(frozen=True)
class UpdateRuns:
    """Runs of coalesced updates of one array (`schedule/update_coalescing.py`). The last update of
    each run has the array as its result.
    """

    bases: Mapping[int, int] = field(default_factory=dict)
    """The node whose buffer is overwritten, by the last update of a run."""
    parts: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """The updates whose parts are stored: no later one overwrites them."""
    inner: Mapping[int, int] = field(default_factory=dict)
    """For each update but the last one whether its part is stored."""
    values: Mapping[int, int] = field(default_factory=dict)
    """For each view of exactly one updated part, the update."""
    reads: Mapping[int, tuple[int, IndexMap]] = field(default_factory=dict)
    """For each other view of an intermediate array, the base of the run and the access to it."""


class ItemKind(StrEnum):
    """What an item of the schedule is."""

    VALUE = auto()
    """An array in memory."""
    SCALAR = auto()
    """A number passed at the launch."""
    CONSTANT = auto()
    """One known value."""
    MAP = auto()
    """Elements computed at their own index."""
    VIEW = auto()
    """An input read at other indices, by `reads`."""
    GATHER = auto()
    """Inputs read at computed indices."""
    CONCAT = auto()
    """An array of pieces."""
    SLICE_STORE = auto()
    """One piece, computed at its place in a concat."""
    FOLD = auto()
    """One axis reduced, which stays with length 1."""
    IDENTITY = auto()
    """The identity element of a reduction, for an axis of length 0."""
    FINALIZE = auto()
    """The final map of a reduction."""
    SCAN = auto()
    """Running values along an axis."""
    SCATTER = auto()
    """Elements combined in cells at computed indices: its inputs are elements, index arrays of
    their shape, initial values."""
    SEGMENT_FOLD = auto()
    """Rows between offsets reduced to one: its inputs are the rows, the offsets."""
    REPEAT = auto()
    """A row for each entry of its segment: its inputs are the rows, the offsets."""
    COPY = auto()
    """An input in another shape: a view with other strides where there is one, else copied."""
    PART = auto()
    """One result of a call."""
    CALL = auto()
    """An operation computed by the reference or a library."""


class ScheduleItem(NamedTuple):
    """One operation of the schedule."""

    kind: ItemKind
    position: int
    """Of the node in the graph."""
    shape: Shape
    dtype: np.dtype
    inputs: tuple[int, ...] = ()
    reads: tuple[AxisMap, ...] = ()
    axis: int = -1
    is_first: bool = False
    """Of a fold: whether its input is the operand of the reduction."""
    start: tuple[int, ...] = ()
    """Of a slice store: the index of its first element in the concat."""
    access: tuple[AxisMap, ...] | None = None
    """Of a slice store of an update: the access to its elements in the concat."""
    staged: int = -1
    """Of a slice store: the item that must be complete in memory before it is written."""
    base: int = -1
    """Of a concat: the item whose buffer it overwrites in place."""
    initial: int = -1
    """Of a scatter: the input that has the initial values of its cells."""
    fill: complex = 0
    """Of a constant: its value."""
    offsets: int = -1
    """Of a segment fold or a repeat: the input that has the offsets of the segments."""

    @property
    def size(self) -> int:
        """The number of elements."""
        return product(self.shape)

    @property
    def has_location(self) -> bool:
        """Of a slice store: whether it is stored in a concat; else only views read it."""
        return self.access is not None or bool(self.start)


class UnorderedOperand(NamedTuple):
    """An operand before its axes are ordered: item, stride of each axis of the space, offset."""

    item: int
    dtype: np.dtype
    strides: tuple[int, ...]
    offset: int = 0
    written: bool = False


class LaunchScalar(NamedTuple):
    """A scalar of the launch: its item, its dtype, and the part of a complex number.

    A number that follows from shapes, an int64, has no item.
    """

    item: int
    dtype: np.dtype
    part: int = 0
    number: int = 0


@dataclass(frozen=True)
class Launch:
    """A kernel and all arguments of one launch except the addresses."""

    kernel: Kernel
    memory: tuple[UnorderedOperand, ...]
    parameters: tuple[LaunchScalar, ...]
    sizes: tuple[int, ...]
    units: int
    grain: int
    scratch: int
    finish: int = 0
    """Of split rows: how many rows are combined after all units."""
    totals: tuple[int, ...] = ()
    """Of split rows: the bytes of each table of totals."""
    elements: int = 0
    parts: int = 0
    """Of rows that many threads scan: the number of all parts; `totals` has theirs."""
    order: tuple[int, ...] = ()
    """The axes of the space in loop order, outermost first."""
    space: tuple[int, ...] = ()
    """The lengths of the axes of the space, by their numbers."""
    sequential: bool = False
    """Whether one thread must run the units in order."""

    @property
    def multiply_adds(self) -> int:
        """The multiply-adds of sparse products."""
        return self.elements * self.kernel.sparse_products

    def scans_in_parts(self, threads: int) -> bool:
        """Whether this number of threads scans parts of rows. Parts are read twice, so beyond the
        cache two threads are no faster than one.
        """
        return self.parts > 0 and threads > (2 if self.kernel.streamed else 1)


class FusedRead(NamedTuple):
    """An item in memory, or a fold, and the access to it in the space of the reader."""

    item: int
    access: IndexMap


@dataclass(frozen=True)
class FusedGroup:
    """The roots of one kernel, and the embedding of each in the iteration space."""

    number: int
    space: Shape
    axis: int | None
    """The axis that is reduced or scanned."""
    scanned: bool
    """Whether it computes a scan, which no other root joins."""
    scattered: bool
    """Whether it computes a scatter, which no other root joins."""
    roots: Mapping[int, Embedding]
    root_reads: Mapping[int, tuple[FusedRead, ...]]
    """By root: the items in memory and the folds that it reads."""
    inlined: frozenset[int]
    """The inlined items that its roots need."""
    reads: frozenset[int]
    """The items in memory that its roots read."""
    outputs: tuple[int, ...]
    """The roots that it stores; those of a dead group are none."""
    not_fused_because: tuple[str, ...] = ()
    """Why it was not fused into the loops of others."""
    offsets: int = -1
    """The offsets of its segments: then the first axes of its space are rows and entries."""


Unit = FusedGroup | int
"""What becomes one step: a group, or an item that is a call or a view of memory."""


class Buffer(NamedTuple):
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
    product: ProductChoice | None = None
    """Of a call that is a product: how it is computed."""
    driver: DriverChoice | None = None
    """Of a call that a driver of LAPACK computes: which one."""
    accumulated_operand: int = -1
    """Of a call that may accumulate into one of `reads` in place: that item."""

    def __str__(self) -> str:
        results = ", ".join(f"{m.dtype}[{', '.join(map(str, m.shape))}]" for m in self.results)
        traversal = f" {self.launch.kernel.traversal}" if self.launch else ""
        return f"{self.kind}{traversal}: {', '.join(self.names)} -> {results}"


@dataclass(frozen=True)
class Schedule:
    """The decisions of the passes so far, in the order in which they are made."""

    graph: Graph = field(compare=False, repr=False)
    """The graph that is scheduled. A finished schedule refers to no node: this is empty then."""
    target: Target = DEFAULT
    fused: bool = True
    updates: UpdateDecisions = UpdateDecisions()
    update_runs: UpdateRuns = UpdateRuns()
    hazards: tuple[InPlaceHazard, ...] = ()
    """The updates for which a pass found that they cannot be done as decided."""
    items: tuple[ScheduleItem, ...] = ()
    items_at: Mapping[int, int] = field(default_factory=dict)
    """For each node of the graph the item that has its value."""
    live_out: frozenset[int] = frozenset()
    """The live-out items."""
    roots: frozenset[int] = frozenset()
    """The items that are stored in memory, or folds or scans, though readers could inline them."""
    inlined: frozenset[int] = frozenset()
    """The items that are computed where they are read."""
    stored_because: Mapping[int, str] = field(default_factory=dict)
    """By item: why an intermediate result is stored in memory."""
    concat_of: Mapping[int, int] = field(default_factory=dict)
    """By piece: the concat that it is a part of."""
    overwriter_of: Mapping[int, int] = field(default_factory=dict)
    """By item that is updated in place: the concat that overwrites it."""
    segmented: Mapping[int, int] = field(default_factory=dict)
    """By root that is computed segment by segment: the item that has the offsets."""
    aliases: Mapping[int, FusedRead] = field(default_factory=dict)
    """By root that is only a view: the item in memory, and the access to it."""
    groups: tuple[FusedGroup, ...] = ()
    order: tuple[Unit, ...] = ()
    """What becomes a step, each after those that compute its operands."""
    layouts: Mapping[int, Layout] = field(default_factory=dict)
    """The strides of each item in memory."""
    alias_offsets: Mapping[int, int] = field(default_factory=dict)
    """By view without a copy: the offset of its first element, in bytes."""
    products: Mapping[int, ProductChoice] = field(default_factory=dict)
    """By call that is a product: how it is computed."""
    drivers: Mapping[int, DriverChoice] = field(default_factory=dict)
    """By call that a driver of LAPACK computes: which one."""
    launches: Mapping[int, Launch] = field(default_factory=dict)
    """By group number; none for a group without elements."""
    steps: tuple[Step, ...] = ()
    """Steps in an order in which they can run."""
    last_use: tuple[tuple[int, ...], ...] = ()
    """For each step the items that are dead after it."""
    reused_buffers: ReusePairs = ()
    """Results that reuse the buffer of an operand that is dead after that step. Only a replay may
    overwrite an earlier value: it has checked that the value has no other live reference."""
    temporaries: frozenset[int] = frozenset()
    """The items that steps store in their own buffers and of which no element is live-out."""

    def updated(self, **decisions: Any) -> Schedule:
        """Return the schedule with these fields; faster than `dataclasses.replace`."""
        assert decisions.keys() <= self.__dict__.keys(), "the fields exist"
        schedule = object.__new__(Schedule)
        schedule.__dict__.update(self.__dict__, **decisions)
        return schedule

    def buffer(self, number: int) -> Buffer:
        """Return an item as an array in memory."""
        item = self.items[number]
        nbytes = item.size * item.dtype.itemsize
        return Buffer(number, item.shape, DTYPE_NAMES[item.dtype], self.layouts[number], nbytes)

    def op_names(self, *numbers: int) -> str:
        """Return the operations of some items, as they were written."""
        names = (self.graph.nodes[self.items[number].position].name for number in numbers)
        return "+".join(dict.fromkeys(names))

    def __str__(self) -> str:
        return "\n".join(str(step) for step in self.steps)


__all__ = [
    "Buffer",
    "Embedding",
    "FusedGroup",
    "FusedRead",
    "InPlaceHazard",
    "Launch",
    "LaunchScalar",
    "Layout",
    "ReusePairs",
    "Schedule",
    "ScheduleItem",
    "Step",
    "Unit",
    "UnorderedOperand",
    "UpdateDecisions",
    "UpdateRuns",
]
