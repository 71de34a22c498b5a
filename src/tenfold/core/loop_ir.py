"""Loop IR: a Kernel of loops, loads, stores and folds around a body of primitive operations.

Takes the decisions of a schedule, hands on a frozen value, the whole input of code generation:
equal kernels have equal programs. Lengths and strides are arguments of the launch, in the order of
`Kernel.sizes`. So a new shape of a known structure needs no new kernel.

The loops run over axes, vectorised along the last one in packets of elements. In a kernel of form
"row" the last axis is folded: a unit of work is one index of the axes before it. In one of form
"column" the axis before it is folded: packets of columns, and a loop over the folded axis. In one
of form "segments" an axis has the entries of all rows, the one before it the rows, of which each
folds its own entries.

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
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from tenfold.core.cached_property import cached
from tenfold.core.canonical_reduction import BLOCK, LANES
from tenfold.core.scalar_ir import PRIMITIVES, Instruction
from tenfold.dtypes import DTYPE_NAMES

PITCH = BLOCK + 16
"""Elements from one block to the next in the scratch memory of an interleaved scan, padded against
cache conflicts."""
SCATTER_CHUNK = 512
"""Elements that a scatter computes in packets before it combines them one by one."""
SEGMENT_CHUNK = 64
"""Entries that a fold of segments computes in packets before it folds them one by one: so few that
the processor computes the packets of the next chunk meanwhile."""
SMALL_STEPS = ("2", "3", "4")
"""Small strides in elements that are constants of the kernel: the gap shares cache lines."""
TILE = 64
"""The most rows and columns of a tile."""
TILE_ROW = 256
"""The most bytes of a row of a tile."""


class KernelOperand(NamedTuple):
    """Memory that a kernel reads or writes: its dtype, and its step along each axis.

    "0": broadcast, "1": contiguous, "-": contiguous backwards, "2", "3", "4": a stride of so many
    real elements, "s": a stride in bytes, given at the launch. Numbers and "-" occur only on the
    last axis, and "1" on the one before it if the last one has "s": the operand is transposed, and
    the map is tiled. The rows of segments may have "1", too.
    """

    dtype: np.dtype
    steps: str
    written: bool = False


class KernelStore(NamedTuple):
    """A store of an element (a complex one: two) to an operand."""

    operand: int
    elements: tuple[int, ...]


class Fold(NamedTuple):
    """One reduction: its reducer (codegen/reducers.py), its input instructions, and the
    instructions of its results (-1: unused).
    """

    kind: str
    inputs: tuple[int, ...]
    results: tuple[int, ...]


class Scan(NamedTuple):
    """The scan of a kernel: its reducer (codegen/reducers.py), its input instructions, the
    instructions of its results, and whether the identity comes first: "", "initial" or
    "exclusive".
    """

    kind: str
    inputs: tuple[int, ...]
    results: tuple[int, ...]
    initial_mode: str = ""


class Scatter(NamedTuple):
    """The scatter of a kernel: its reducer (codegen/reducers.py), the instruction of the offset of
    an element's cell, those of a cell's initial value, which depend on the offset alone, those of
    the element, and those of the results.
    """

    kind: str
    offset: int
    initial: tuple[int, ...]
    values: tuple[int, ...]
    results: tuple[int, ...]
    is_contiguous: bool
    """Whether a row of elements has neighbouring cells."""
    row_offset: int | None = None
    """The instruction of the first cell of such a row; None: cell 0."""


class KernelForm(StrEnum):
    """The loops of a kernel."""

    MAP = "map"
    ROW = "row"
    """The last axis is folded."""
    COLUMN = "column"
    """The axis before the last one is folded."""
    SHORT_ROW = "short row"
    """Rows that are one packet each; `masked` unless they fill it."""
    SPLIT = "split"
    """Rows, with each block folded by a separate unit."""
    SEARCH = "search"
    SEARCH_PARTS = "search parts"
    """Rows whose parts are searched by separate units: codegen/llvm/search.py."""
    SCAN = "scan"
    """Interleaved rows: codegen/llvm/scan.py."""
    SCAN_COLUMNS = "scan columns"
    SCAN_BLOCKS = "scan blocks"
    """Interleaved blocks of a row: codegen/llvm/blocked_scan.py."""
    SCAN_PARTS = "scan parts"
    """Parts of a row, in parallel too."""
    LOOP = "loop"
    """Steps that read what the last one made: codegen/llvm/loop_kernel_emitter.py."""
    SCATTER = "scatter"
    """Elements combined in cells, one by one: codegen/llvm/scatter.py."""
    SCATTER_PARTS = "scatter parts"
    SCATTER_ROWS = "scatter rows"
    SEGMENTS = "segments"
    """Rows of entries, whose bounds are loaded: codegen/llvm/segment_loops.py."""

    @property
    def is_scan(self) -> bool:
        """Whether it computes running values."""
        return self.startswith("scan")

    @property
    def is_scatter(self) -> bool:
        """Whether it combines elements in cells."""
        return self.startswith("scatter")


SHARED_MEMORY = 48 << 10
"""The memory that the threads of a block share at most."""
SHARED_PITCH = LANES + 1
"""Elements from one row of a shared tile to the next: the elements of a column are in different
banks."""
THREAD_FORMS = frozenset((KernelForm.MAP, KernelForm.ROW, KernelForm.COLUMN, KernelForm.SPLIT))
"""The forms that threads of a device compute; others are left to the processor."""


@dataclass(frozen=True)
class Kernel:
    """A body, its stores, and the loops around it."""

    operands: tuple[KernelOperand, ...]
    body: tuple[Instruction, ...]
    stores: tuple[KernelStore, ...]
    parameters: int = 0
    """The number of scalar arguments of a launch, 8 bytes each."""
    form: KernelForm = KernelForm.MAP
    streamed: bool = False
    """Whether full packets use non-temporal stores: the outputs are larger than the cache."""
    lanes: int = 64
    """The elements of a packet."""
    masked: bool = False
    """Whether every packet is masked: one copy of a long body, not two."""
    cached_elements: tuple[int, ...] = ()
    """Elements that are stored in scratch memory for a later pass, and so computed once; of
    segments those that are computed in packets before they are folded one by one."""
    pass_results: tuple[int, ...] = ()
    """In a column kernel: results of a pass, stored in scratch memory for a later pass."""
    prefetch_distance: int = 8192
    """In a row kernel: the prefetch distance in bytes."""
    block: int = 0
    """The threads of a block, each of which computes one element at a time; 0: a processor, which
    computes packets."""

    def __hash__(self) -> int:
        return self._hash

    @cached
    def _hash(self) -> int:
        """The hash of the fields, which each look-up of a program needs."""
        return hash((self.operands, self.body, self.stores, self.form, self.lanes, self.block))

    @cached
    def axes(self) -> int:
        """The number of loop axes."""
        return len(self.operands[0].steps)

    @cached
    def transposed_operands(self) -> tuple[int, ...]:
        """The operands that are contiguous along the axis before the packet axis."""
        if self.form is not KernelForm.MAP:
            return ()
        steps = [operand.steps[-2:] for operand in self.operands]
        return tuple(number for number, operand_steps in enumerate(steps) if operand_steps == "1s")

    @property
    def tile(self) -> tuple[int, int]:
        """The rows and columns of a tile, the unit of work if operands are transposed: it fits the
        L1 cache, and its columns are full packets.
        """
        largest = max(self.operands[number].dtype.itemsize for number in self.transposed_operands)
        return TILE, min(TILE, TILE_ROW // largest)

    @property
    def tile_bytes(self) -> int:
        """The bytes of scratch memory for the tile of one operand."""
        largest = max(self.operands[number].dtype.itemsize for number in self.transposed_operands)
        return self.tile[0] * self.tile[1] * largest

    @cached
    def sizes(self) -> tuple[tuple[str, int, int], ...]:
        """The size arguments of a launch: ("length", axis, 0), ("stride", operand, axis) in bytes,
        ("part", 0, 0): the elements of the packet axis (split: the blocks) in one unit of work,
        and ("slots", 0, 0): the partial results of blocks, in a column kernel; in a scatter the
        cells of its result.
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
    def shared_bytes(self) -> int:
        """The bytes of memory that the threads of a block share."""
        sizes = [self.operands[number].dtype.itemsize for number in self.staged_operands]
        return sum(sizes) * LANES * SHARED_PITCH

    @cached
    def staged_operands(self) -> tuple[int, ...]:
        """The transposed operands that the threads of a block read together: as many as fit."""
        staged: list[int] = []
        left = SHARED_MEMORY if self.block else 0
        for number in self.transposed_operands:
            left -= self.operands[number].dtype.itemsize * LANES * SHARED_PITCH
            staged += [number] if left >= 0 else []
        return tuple(staged)

    @property
    def waits(self) -> bool:
        """Whether threads of a block exchange values, so that they wait for each other."""
        if not self.block:
            return False
        return self.form in (KernelForm.ROW, KernelForm.SPLIT) or bool(self.transposed_operands)

    @property
    def functions(self) -> tuple[str, ...]:
        """The functions of its program: `kernel` runs the units of work; `finish` combines the
        parts of rows after all units. The other functions of "scan parts" are its three phases for
        many threads.
        """
        if self.form is KernelForm.SCAN_PARTS:
            return "kernel", "totals", "carries", "parts"
        has_finish = self.form in (
            KernelForm.SPLIT,
            KernelForm.SEARCH_PARTS,
            KernelForm.SCATTER_PARTS,
        )
        return ("kernel", "finish") if has_finish else ("kernel",)

    @cached
    def is_search(self) -> bool:
        """Whether a row kernel computes only an argmax or argmin along the folded axis."""
        if len(self.folds) != 1 or any(instruction.name == "fail" for instruction in self.body):
            return False
        (fold,) = self.folds
        if not fold.kind.startswith("first ") or fold.results[0] >= 0:
            return False
        index = self.body[fold.inputs[1]]
        runs_along_folded = index.name == "index" and index.data == self.folded
        return runs_along_folded and all(self.pass_of(store) == 1 for store in self.stores)

    @cached
    def varies_by_row(self) -> tuple[bool, ...]:
        """For each instruction of a kernel of segments whether it depends on the row."""
        varying: list[bool] = []
        for instruction in self.body:
            varies = instruction.name == "fold"
            varies = varies or (instruction.name, instruction.data) == ("index", self.folded - 1)
            if instruction.name == "load":
                varies = self.operands[operand_of(instruction)].steps[self.folded - 1] != "0"
            varying.append(varies or any(varying[i] for i in instruction.inputs))
        return tuple(varying)

    @cached
    def vectorised_entries(self) -> tuple[int, ...]:
        """In a kernel of segments without columns the elements that are computed in packets before
        entries are folded one by one: what is folded, if it needs elementary functions; else the
        computed offsets of gathers, in a single pass.
        """
        if self.folded < self.axes - 1:
            return ()
        is_long: list[bool] = []
        for instruction, level in zip(self.body, self.levels, strict=True):
            inherits = any(is_long[i] for i in instruction.inputs)
            is_element = level >= 0 and level % 2 == 0
            is_long.append(is_element and (instruction.name not in PRIMITIVES or inherits))
        folded = {i for fold in self.folds for i in fold.inputs if is_long[i]}
        if folded or self.passes > 1:
            return tuple(sorted(folded))
        offsets = {x.inputs[0] for x in self.body if x.name == "gather"}
        computed = [i for i in sorted(offsets) if self.body[i].name != "index"]
        return tuple(i for i in computed if self.levels[i] == 0 and not self.varies_by_row[i])

    @cached
    def levels(self) -> tuple[int, ...]:
        """For each instruction the first pass over the folded axis that computes it, doubled: 2p is
        an element of pass p, 2p + 1 a result after pass p (-1: loop-invariant, before all passes).
        """
        levels: list[int] = []
        for instruction in self.body:
            inputs = list(map(levels.__getitem__, instruction.inputs))
            input_level = max(inputs, default=-1)
            next_pass = (input_level + 1) // 2
            if instruction.name == "fold":
                # the input of a fold is an element of its pass, even if it is invariant
                levels.append(2 * next_pass + 1)
            elif self._is_element(instruction) or 0 in [level % 2 for level in inputs]:
                levels.append(2 * next_pass)
            else:
                levels.append(input_level)
        return tuple(levels)

    def _is_element(self, instruction: Instruction) -> bool:
        """Whether an instruction itself varies along the folded axis (for maps: the last)."""
        axis = self.folded
        if instruction.name == "load":
            return self.operands[operand_of(instruction)].steps[axis] != "0"
        if instruction.name == "scatter":
            return True
        return instruction.name == "index" and instruction.data == axis

    @cached
    def folded(self) -> int:
        """The folded axis; of a map the packet axis."""
        if self.form is KernelForm.SEGMENTS:
            return next(int(str(x.data)) for x in self.body if x.name == "segment")
        return self.axes - (2 if self.form is KernelForm.COLUMN else 1)

    @cached
    def bounds(self) -> tuple[int, int]:
        """In a kernel of segments the instructions of the first entry of a row, and of its end."""
        begin, end = next(x.inputs for x in self.body if x.name == "segment")
        return begin, end

    def pass_of(self, store: KernelStore) -> int:
        """The level of a store: 2p among the elements of pass p, 2p + 1 after it."""
        level = max([self.levels[i] for i in store.elements])
        if self.operands[store.operand].steps[self.folded] == "0":
            return max(level, 1) if self.form is not KernelForm.MAP else level
        return 2 * ((level + 1) // 2)

    @cached
    def passes(self) -> int:
        """The number of passes over the folded axis."""
        last_passes = [self.pass_of(store) // 2 for store in self.stores]
        leveled = zip(self.levels, self.body, strict=True)
        last_passes += [
            level // 2 for level, instruction in leveled if instruction.name in ("fold", "fail")
        ]
        return max(last_passes) + 1

    def cached_bytes(self, length: int) -> int:
        """Return the scratch bytes of the cached elements of a row, with a full last packet."""
        return 8 * len(self.cached_elements) * (length + self.lanes)

    @cached
    def most_parts(self) -> int:
        """The most partial results that the folds of one pass have."""
        counts: dict[int, int] = {}
        for fold in self.folds:
            level = max(self.levels[i] for i in fold.results if i >= 0)
            counts[level] = counts.get(level, 0) + len(fold.inputs)
        return max(counts.values(), default=0)

    def column_bytes(self, columns: int, slots: int) -> int:
        """Return the scratch bytes of a range of columns: lanes, slots, and pass results."""
        rows = self.most_parts * (LANES + slots) + len(self.pass_results)
        return 8 * (columns + self.lanes) * rows

    @cached
    def live_pass_results(self) -> tuple[int, ...]:
        """Results of a pass that a later pass reads."""
        positions: set[int] = set()
        for level, instruction in zip(self.levels, self.body, strict=True):
            positions.update(
                i for i in instruction.inputs if self.levels[i] % 2 and 0 < self.levels[i] < level
            )
        for store in self.stores:
            store_level = self.pass_of(store)
            positions.update(
                i for i in store.elements if self.levels[i] % 2 and 0 < self.levels[i] < store_level
            )
        return tuple(sorted(positions))

    @cached
    def folds(self) -> tuple[Fold, ...]:
        """The folds, each with the instructions of its results."""
        folds: dict[tuple[str, tuple[int, ...]], dict[int, int]] = {}
        for position, instruction in enumerate(self.body):
            if instruction.name == "fold":
                assert isinstance(instruction.data, tuple), "a fold says its kind and its part"
                kind, part_index = instruction.data
                folds.setdefault((kind, instruction.inputs), {})[part_index] = position
        return tuple(
            Fold(kind, inputs, tuple(results.get(i, -1) for i in range(len(inputs))))
            for (kind, inputs), results in folds.items()
        )

    @cached
    def sparse_products(self) -> int:
        """How many folds sum products of which a factor is gathered."""
        is_gathered, is_product = list[bool](), list[bool]()
        for name, _, inputs, _ in self.body:
            is_linear = name in ("multiply", "add", "subtract", "negative", "convert")
            inherits = is_linear and any(is_gathered[i] for i in inputs)
            is_gathered.append(name == "gather" or inherits)
            multiplies = name == "multiply" and inherits
            is_product.append(multiplies or (is_linear and any(is_product[i] for i in inputs)))
        return sum(fold.kind == "add" and is_product[fold.inputs[0]] for fold in self.folds)

    @cached
    def scan(self) -> Scan:
        """The scan of a kernel of a scan form."""
        scans = {
            i: instruction for i, instruction in enumerate(self.body) if instruction.name == "scan"
        }
        results: dict[int, int] = {}
        for position, instruction in scans.items():
            assert isinstance(instruction.data, tuple), (
                "a scan has its kind, its part and its initial mode"
            )
            results[instruction.data[1]] = position
        scan = next(iter(scans.values()))
        assert isinstance(scan.data, tuple), "tested above"
        kind, _, initial_mode = scan.data
        parts = tuple(results.get(i, -1) for i in range(len(scan.inputs)))
        return Scan(kind, scan.inputs, parts, initial_mode)

    @cached
    def scatter(self) -> Scatter:
        """The scatter of a kernel of a scatter form."""
        results = [i for i, instruction in enumerate(self.body) if instruction.name == "scatter"]
        scatter = self.body[results[0]]
        assert isinstance(scatter.data, tuple), "a scatter has its kind and its part"
        offset, *parts = scatter.inputs
        initial, values = parts[: len(parts) // 2], parts[len(parts) // 2 :]
        places, last = [], self.axes - 1
        if self.body[offset].name == "add":
            places = [*self.body[offset].inputs]
        elif self._is_index(offset, last):
            places = [offset]
        rows = [i for i in places if not self._is_index(i, last)]
        contiguous = 0 < len(places) > len(rows) and all(self.levels[i] < 0 for i in rows)
        row_offset = rows[0] if contiguous and rows else None
        kind = str(scatter.data[0])
        return Scatter(
            kind, offset, tuple(initial), tuple(values), tuple(results), contiguous, row_offset
        )

    def _is_index(self, number: int, axis: int) -> bool:
        return self.body[number].name == "index" and self.body[number].data == axis

    @property
    def side_by_side(self) -> int:
        """The number of rows or blocks in an interleaved scan: the lanes of a register."""
        return 8 if self.body[self.scan.inputs[0]].dtype.itemsize == 8 else 16

    @property
    def scanned_bytes(self) -> int:
        """The bytes of scratch memory of an interleaved scan of blocks."""
        sizes = (self.body[i].dtype.itemsize for i in self.scan.inputs)
        return self.side_by_side * PITCH * sum(sizes)

    def __str__(self) -> str:
        return self._text

    @cached
    def _text(self) -> str:
        plural = "axis" if self.axes == 1 else "axes"
        lines = [f"kernel of {self.axes} {plural}, {self.traversal}"]
        for number, operand in enumerate(self.operands):
            written = ", written" if operand.written else ""
            steps = " ".join(operand.steps)
            dtype = DTYPE_NAMES[operand.dtype]
            lines.append(f"  operand {number}: {dtype}, steps {steps}{written}")
        lines += [f"  %{i} = {instruction}" for i, instruction in enumerate(self.body)]
        for store in self.stores:
            elements = " ".join([f"%{i}" for i in store.elements])
            lines.append(f"  store {elements} in operand {store.operand}")
        return "\n".join(lines)

    @property
    def key(self) -> str:
        """All fields as text: equal keys have equal programs."""
        loops = str(self.form), self.lanes, self.streamed, self.masked, self.prefetch_distance
        threads = f"\n{self.block} threads" if self.block else ""
        values = self.parameters, self.cached_elements, self.pass_results
        return f"{self}\n{loops} {values}{threads}"

    @cached
    def traversal(self) -> str:
        """The memory traversal: linear, inner, tiled or gather; for folds row or column."""
        if self.form.is_scatter or self.form is KernelForm.SEGMENTS:
            return str(self.form)
        if "gather" in [instruction.name for instruction in self.body]:
            return "gather"
        if self.form is not KernelForm.MAP:
            return str(self.form)
        if self.transposed_operands:
            return "tiled"
        return "linear" if self.axes == 1 else "inner"


def operand_of(load: Instruction) -> int:
    """Return the operand that a load reads; for a complex operand the data is (operand, part)."""
    data = load.data[0] if isinstance(load.data, tuple) else load.data
    assert isinstance(data, int), "a load names its operand"
    return data


def part_of(load: Instruction) -> int:
    """Return which part of a complex operand a load reads: 0 the real one, 1 the imaginary."""
    return int(load.data[1]) if isinstance(load.data, tuple) else 0
