"""Loop IR: a Kernel of loops, loads, stores and folds around a body of primitive operations.

Takes the decisions of a plan, hands on a frozen value that holds all that code generation needs:
equal kernels have equal programs. Lengths and strides are given at the launch, in the order of
`Kernel.sizes`. So a new shape of a known structure needs no new kernel.

The loops run over axes. Packets of elements lie along the last one. In a kernel of form "row" the
last axis is folded: a unit of work is one index of the axes before it. In one of form "column" the
axis before it is folded: packets of columns, and a loop over the folded axis.

>>> from tenfold.dtypes import FLOAT32
>>> from tenfold.core.scalar_ir import Body
>>> body = Body()
>>> y = body.load(0, FLOAT32) * 2.0
>>> operands = (KernelOperand(FLOAT32, "1"), KernelOperand(FLOAT32, "1", written=True))
>>> print(Kernel(operands, tuple(body.instructions), (KernelStore(1, (y.position,)),)))
kernel of 1 axis, linear
  operand 0: float32, steps 1
  operand 1: float32, steps 1, written
  %0 = load float32, 0
  %1 = constant float32, 1073741824
  %2 = multiply float32 %0 %1
  store %2 in operand 1
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tenfold.core.cached_property import cached
from tenfold.core.scalar_ir import Instruction

LANES = 32
BLOCK = 1024
"""Of the tree in which sums are folded: core/canonical_reduction.py."""
PITCH = BLOCK + 16
"""Elements from one block to the next that are scanned side by side, in scratch memory: not all in
the same lines of the cache."""
STEPS = ("2", "3", "4")
"""Steps of some elements that are known to the kernel: what is between them is near enough."""
TILE = 64
"""The most rows and columns of a tile."""
TILE_ROW = 256
"""The most bytes of a row of a tile."""


@dataclass(frozen=True, slots=True)
class KernelOperand:
    """Memory that a kernel reads or writes: its dtype, and for each axis how it is stepped through.

    "0": not at all, "1": element by element, "-": backwards element by element, "2", "3", "4": so
    many real elements on, "s": by a stride in bytes given at the launch. Numbers and "-" occur
    on the last axis alone, and "1" on the one before where the last one has "s": the operand lies
    across, and the map goes by tiles.
    """

    dtype: np.dtype
    steps: str
    written: bool = False


@dataclass(frozen=True, slots=True)
class KernelStore:
    """An element (a complex one: two) that is written to an operand."""

    operand: int
    elements: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Fold:
    """One fold: how it combines (codegen/reducers.py), what it folds, and which instructions name
    its results (-1: none does).
    """

    kind: str
    inputs: tuple[int, ...]
    results: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Scan:
    """The scan of a kernel: how it combines (codegen/reducers.py), what it scans, which
    instructions name its results, and whether the identity comes first: "", "initial" or
    "exclusive".
    """

    kind: str
    inputs: tuple[int, ...]
    results: tuple[int, ...]
    first: str = ""


@dataclass(frozen=True)
class Kernel:
    """A body, what of it is stored, and how the loops around it run."""

    operands: tuple[KernelOperand, ...]
    body: tuple[Instruction, ...]
    stores: tuple[KernelStore, ...]
    parameters: int = 0
    """The number of scalars that are given at the launch, 8 bytes each."""
    form: str = "map"
    """map, row or column; split: rows whose blocks are folded by units of their own; search, search
    parts (codegen/llvm/search.py); scan: rows side by side, scan columns (codegen/llvm/scan.py),
    scan blocks: blocks of a row side by side, scan parts: parts of it too
    (codegen/llvm/blocked_scan.py)."""
    streamed: bool = False
    """Whether whole packets are stored past the cache: the outputs are larger than it is."""
    lanes: int = 64
    """The elements of a packet."""
    masked: bool = False
    """Whether every packet is masked: one copy of a long body, not two."""
    kept: tuple[int, ...] = ()
    """Elements that a later pass reads from memory of the kernel's own: computed once."""
    remembered: tuple[int, ...] = ()
    """Of a column: what is known once a pass has ended and a later one reads, from such memory."""
    ahead: int = 8192
    """Of a row: bytes from what is computed to what is asked for, so that it comes in time."""

    @property
    def axes(self) -> int:
        """The number of loop axes."""
        return len(self.operands[0].steps)

    @cached
    def across(self) -> tuple[int, ...]:
        """The operands that are contiguous along the axis before the packet axis."""
        steps = [operand.steps[-2:] for operand in self.operands]
        return tuple(number for number, each in enumerate(steps) if each == "1s")

    @property
    def tile(self) -> tuple[int, int]:
        """The rows and columns of a tile, of which one is a unit of work where operands lie across:
        it fits the first cache, and its columns are whole packets.
        """
        largest = max(self.operands[number].dtype.itemsize for number in self.across)
        return TILE, min(TILE, TILE_ROW // largest)

    @property
    def tile_bytes(self) -> int:
        """The bytes of scratch memory that the tile of one operand takes."""
        largest = max(self.operands[number].dtype.itemsize for number in self.across)
        return self.tile[0] * self.tile[1] * largest

    @cached
    def sizes(self) -> tuple[tuple[str, int, int], ...]:
        """What the launch gives as sizes: ("length", axis, 0), ("stride", operand, axis) in bytes,
        ("part", 0, 0): how much of the packet axis (split: how many blocks) is one unit of work,
        and ("slots", 0, 0): room for partial results of blocks, in a column.
        """
        lengths = [("length", axis, 0) for axis in range(self.axes)]
        strides = [
            ("stride", number, axis)
            for number, operand in enumerate(self.operands)
            for axis, step in enumerate(operand.steps)
            if step == "s"
        ]
        return (*lengths, *strides, ("part", 0, 0), ("slots", 0, 0))

    @property
    def functions(self) -> tuple[str, ...]:
        """The functions of its program: of the units of work, and where these are parts of rows of
        the rows that are finished once all units have run. Those of a "scan parts" beside it do the
        same as its units, one after the other, for many threads.
        """
        if self.form == "scan parts":
            return "kernel", "totals", "carries", "parts"
        return ("kernel", "finish") if self.form in ("split", "search parts") else ("kernel",)

    @cached
    def searches(self) -> bool:
        """Whether a row is gone through for one thing alone: the position of its first largest or
        smallest element.
        """
        if len(self.folds) != 1 or any(made.name == "fail" for made in self.body):
            return False
        (fold,) = self.folds
        if not fold.kind.startswith("first ") or fold.results[0] >= 0:
            return False
        index = self.body[fold.inputs[1]]
        along = index.name == "index" and index.data == self.folded
        return along and all(self.pass_of(store) == 1 for store in self.stores)

    @cached
    def levels(self) -> tuple[int, ...]:
        """For each instruction the pass over the folded axis in which it is known first, doubled:
        even numbers 2p are elements of pass p, odd ones 2p + 1 are known once pass p has ended
        (-1: before the first).
        """
        found: list[int] = []
        for instruction in self.body:
            inputs = [found[i] for i in instruction.inputs]
            below = max(inputs, default=-1)
            next_pass = (below + 1) // 2
            if instruction.name == "fold":
                # what is folded is an element of its pass, also where it is the same for all
                found.append(2 * next_pass + 1)
            elif self._is_element(instruction) or any(level % 2 == 0 for level in inputs):
                found.append(2 * next_pass)
            else:
                found.append(below)
        return tuple(found)

    def _is_element(self, instruction: Instruction) -> bool:
        """Whether an instruction by itself differs along the folded axis (for maps: the last)."""
        axis = self.folded
        if instruction.name == "load":
            return self.operands[operand_of(instruction)].steps[axis] != "0"
        return instruction.name == "index" and instruction.data == axis

    @property
    def folded(self) -> int:
        """The axis that is folded; of a map the packet axis."""
        return self.axes - (2 if self.form == "column" else 1)

    def pass_of(self, store: KernelStore) -> int:
        """In which pass a store happens: 2p among its elements, 2p + 1 when it has ended."""
        level = max(self.levels[i] for i in store.elements)
        if self.operands[store.operand].steps[self.folded] == "0":
            return max(level, 1) if self.form != "map" else level
        return 2 * ((level + 1) // 2)

    @cached
    def passes(self) -> int:
        """How often the folded axis is gone through."""
        last = [self.pass_of(store) // 2 for store in self.stores]
        named = zip(self.levels, self.body, strict=True)
        last += [level // 2 for level, made in named if made.name in ("fold", "fail")]
        return max(last) + 1

    def kept_bytes(self, length: int) -> int:
        """Return the memory that the kept elements of a row take, with a whole last packet."""
        return 8 * len(self.kept) * (length + self.lanes)

    @cached
    def most_parts(self) -> int:
        """The most parts that the folds of one pass have."""
        counts: dict[int, int] = {}
        for fold in self.folds:
            level = max(self.levels[i] for i in fold.results if i >= 0)
            counts[level] = counts.get(level, 0) + len(fold.inputs)
        return max(counts.values(), default=0)

    def column_bytes(self, part: int, slots: int) -> int:
        """Return the memory that a part of the columns takes: lanes, slots, what is remembered."""
        rows = self.most_parts * (LANES + slots) + len(self.remembered)
        return 8 * (part + self.lanes) * rows

    @cached
    def read_later(self) -> tuple[int, ...]:
        """What is known once a pass has ended and read by a later one."""
        found: set[int] = set()
        for level, made in zip(self.levels, self.body, strict=True):
            found.update(
                i for i in made.inputs if self.levels[i] % 2 and 0 < self.levels[i] < level
            )
        for store in self.stores:
            last = self.pass_of(store)
            found.update(
                i for i in store.elements if self.levels[i] % 2 and 0 < self.levels[i] < last
            )
        return tuple(sorted(found))

    @cached
    def folds(self) -> tuple[Fold, ...]:
        """The folds, each with the instructions that name its parts."""
        found: dict[tuple[str, tuple[int, ...]], dict[int, int]] = {}
        for position, made in enumerate(self.body):
            if made.name == "fold":
                assert isinstance(made.data, tuple), "a fold says its kind and its part"
                kind, part = made.data
                found.setdefault((kind, made.inputs), {})[part] = position
        return tuple(
            Fold(kind, inputs, tuple(results.get(i, -1) for i in range(len(inputs))))
            for (kind, inputs), results in found.items()
        )

    @cached
    def scan(self) -> Scan:
        """The scan of a kernel whose form says that it has one."""
        scans = {i: made for i, made in enumerate(self.body) if made.name == "scan"}
        results: dict[int, int] = {}
        for position, made in scans.items():
            assert isinstance(made.data, tuple), "a scan says its kind, its part, what is first"
            results[made.data[1]] = position
        one = next(iter(scans.values()))
        assert isinstance(one.data, tuple), "tested above"
        kind, _, first = one.data
        parts = tuple(results.get(i, -1) for i in range(len(one.inputs)))
        return Scan(kind, one.inputs, parts, first)

    @property
    def side_by_side(self) -> int:
        """How many rows or blocks are scanned side by side: the lanes of a register."""
        return 8 if self.body[self.scan.inputs[0]].dtype.itemsize == 8 else 16

    @property
    def scanned_bytes(self) -> int:
        """The bytes of scratch memory that blocks side by side take."""
        sizes = (self.body[i].dtype.itemsize for i in self.scan.inputs)
        return self.side_by_side * PITCH * sum(sizes)

    def __str__(self) -> str:
        plural = "axis" if self.axes == 1 else "axes"
        lines = [f"kernel of {self.axes} {plural}, {self.traversal}"]
        for number, operand in enumerate(self.operands):
            written = ", written" if operand.written else ""
            steps = " ".join(operand.steps)
            lines.append(f"  operand {number}: {operand.dtype}, steps {steps}{written}")
        lines.extend(f"  %{i} = {made}" for i, made in enumerate(self.body))
        for store in self.stores:
            elements = " ".join(f"%{i}" for i in store.elements)
            lines.append(f"  store {elements} in operand {store.operand}")
        return "\n".join(lines)

    @property
    def traversal(self) -> str:
        """How memory is gone through: linear, inner, tiled or gather; folds say row or column."""
        if any(made.name == "gather" for made in self.body):
            return "gather"
        if self.form != "map":
            return self.form
        if self.across:
            return "tiled"
        return "linear" if self.axes == 1 else "inner"


def operand_of(load: Instruction) -> int:
    """Return the operand that a load reads; the data of a part of a complex one is (it, part)."""
    data = load.data[0] if isinstance(load.data, tuple) else load.data
    assert isinstance(data, int), "a load names its operand"
    return data


def part_of(load: Instruction) -> int:
    """Return which part of a complex operand a load reads: 0 the real one, 1 the imaginary."""
    return int(load.data[1]) if isinstance(load.data, tuple) else 0
