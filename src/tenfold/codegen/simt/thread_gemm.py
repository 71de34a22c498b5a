"""Products by threads: a block computes a tile of 64 rows and columns, each thread 4 x 4 of them.

Input: an element type and the parts of a product. Output: text in the common words of `words.py`. A
slab of 16 columns of x1 and rows of x2 is read into shared memory and widened there; then each
thread adds its products in increasing order of k, in one accumulator for each sum, as the packet
code does (`codegen/gemm/emitter.py`), and so has its bits.

>>> from tenfold.codegen.gemm.emitter import Arithmetic
>>> from tenfold.dtypes import FLOAT32
>>> print(ThreadGemm(Arithmetic(FLOAT32, 64)))
tiles of products by threads: x1 @ x2 of float32, stack of 0 axes
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from tenfold.codegen.gemm.emitter import (
    addend_sizes,
    contraction_count,
    contraction_note,
    offset_ptr,
    read_sums,
    stack_pointers,
    stack_sizes,
    strided_ptr,
    sum_sizes,
    zeros,
)
from tenfold.codegen.llvm.loop_emitter import (
    Accumulator,
    for_range_carrying,
    if_then,
    int_min,
    int_op,
)
from tenfold.codegen.llvm.simd_emitter import Packet, llvm_type
from tenfold.codegen.simt.thread_product import ProductEmitter, ThreadProduct
from tenfold.codegen.simt.words import BLOCK_THREADS
from tenfold.core.structure import Half, Structure

TILE_ROWS = 64
"""Rows and columns of the tile of a block."""
SLAB = 16
"""Columns of x1 and rows of x2 in shared memory."""
SIDE = 16
"""Threads of a block along rows, and along columns."""
RUNS = range(TILE_ROWS // SIDE)
"""The rows of a thread, and its columns: each 16 further."""
PITCHES = SLAB + 1, TILE_ROWS + 1
"""Elements from one row to the next in shared memory, of x1 and x2: columns are in all banks."""


@dataclass(frozen=True)
class ThreadGemm(ThreadProduct):
    """Products of a stack of matrices, with any strides; `sums` contracted axes besides k."""

    noun = "tiles of products"
    sums: int = 0
    triangle: Half = Half.NONE
    """A half that suffices, as in `ops/syrk.py`; a symmetric result is computed whole."""

    def __str__(self) -> str:
        half = f", {self.triangle}" if self.triangle else ""
        return super().__str__() + contraction_note(self.sums) + half

    @property
    def sizes(self) -> tuple[str, ...]:
        """Names of the launch sizes, in order; strides are in bytes."""
        names = "m", "n", "k", "row of x1", "column of x1", "row of x2", "column of x2"
        stack = stack_sizes(self.axes, 2 + bool(self.addend))
        return (*stack, *sum_sizes(self.sums), *names, *addend_sizes(self.addend))

    @property
    def shared_bytes(self) -> int:
        """The bytes of memory that the threads of a block share."""
        element = self.arithmetic.components * self.arithmetic.sum_dtype.itemsize
        return (TILE_ROWS * PITCHES[0] + SLAB * PITCHES[1]) * element

    def common_text(self) -> str:
        """Return its module in common words."""
        return _TileEmitter(self).common_text()

    @staticmethod
    def threads(count: int, m: int, n: int) -> int:
        """Return the threads of a stack of products."""
        return count * -(-m // TILE_ROWS) * -(-n // TILE_ROWS) * BLOCK_THREADS


class _TileEmitter(ProductEmitter):
    kernel: ThreadGemm

    def __init__(self, kernel: ThreadGemm) -> None:
        super().__init__(kernel)
        self.thread = int_op(self.ir, "and", "%unit", BLOCK_THREADS - 1)
        self.row = self.column = "0"
        first_size = kernel.axes * (3 + bool(kernel.addend))
        self.axes = read_sums(self.ir, kernel.sums, first_size)

    def common_text(self) -> str:
        """Emit the module in common words."""
        ir, size = self.ir, self.size
        number = int_op(ir, "udiv", "%unit", BLOCK_THREADS)
        begins = []
        for name in ("n", "m"):
            tiles = int_op(ir, "lshr", int_op(ir, "add", size[name], TILE_ROWS - 1), 6)
            begins.append(int_op(ir, "mul", int_op(ir, "urem", number, tiles), TILE_ROWS))
            number = int_op(ir, "udiv", number, tiles)
        self.column, self.row = begins
        x1, x2, *addend = stack_pointers(
            ir, number, self.stack, [*self.buffers[:2], *self.buffers[3:]]
        )
        zero = Packet(zeros(self.dtype, self.components), self.dtype, self.components)
        slabs = int_op(ir, "lshr", int_op(ir, "add", size["k"], SLAB - 1), 4)
        first = (zero,) * (len(RUNS) ** 2 * self.components)

        def add_slab(number: str, sums: Accumulator) -> Accumulator:
            slab, sources = number, [x1, x2]
            if self.axes:
                slab, others = (int_op(ir, each, number, slabs) for each in ("urem", "udiv"))
                sources = stack_pointers(ir, others, self.axes, sources)
            return self._add_slab(slab, sums, *sources)

        count = int_op(ir, "mul", slabs, contraction_count(ir, self.axes)) if self.axes else slabs
        sums = for_range_carrying(ir, "0", count, first, add_slab)
        rows = int_op(ir, "mul", number, size["m"])
        for place, (i, j) in enumerate(product(RUNS, RUNS)):
            begin = place * self.components
            self._store(i, j, sums[begin : begin + self.components], rows, "".join(addend))
        return self.module()

    def _add_slab(self, slab: str, sums: Accumulator, x1: str, x2: str) -> Accumulator:
        """Read a slab of both operands, and add its products."""
        ir, first = self.ir, int_op(self.ir, "mul", slab, SLAB)
        for i in range(TILE_ROWS * SLAB // BLOCK_THREADS):
            element = int_op(ir, "add", self.thread, BLOCK_THREADS * i)
            row, depth = (int_op(ir, each, element, SLAB) for each in ("udiv", "urem"))
            self._stage("x1", x1, (self.row, row, "m"), (first, depth, "k"), 0)
            depth, column = (int_op(ir, each, element, TILE_ROWS) for each in ("udiv", "urem"))
            self._stage("x2", x2, (first, depth, "k"), (self.column, column, "n"), 1)
        ir.lines.append("  barrier")
        depths = int_min(ir, int_op(ir, "sub", self.size["k"], first), SLAB)
        row, column = (int_op(ir, each, self.thread, SIDE) for each in ("udiv", "urem"))

        def add(depth: str, sums: Accumulator) -> Accumulator:
            x = [self._read(0, int_op(ir, "add", row, SIDE * i), depth) for i in RUNS]
            y = [self._read(1, depth, int_op(ir, "add", column, SIDE * j)) for j in RUNS]
            columns, lanes = [self.packet(scalars) for scalars in y], self.components
            factors = [
                [ir.broadcast(Packet(part, self.dtype, 1), lanes) for part in scalars]
                for scalars in x
            ]
            k, texts, totals = int_op(ir, "add", first, depth), [], iter(sums)
            for i, j in product(RUNS, RUNS):
                is_read = self._is_read(k, (i, j))
                for factor in factors[i]:
                    old = next(totals).text
                    new = self.arithmetic.multiply_add(ir, old, factor, columns[j], lanes)
                    type_ = llvm_type(self.dtype, lanes)
                    if is_read:
                        new = ir.value(f"select i1 {is_read}, {type_} {new}, {type_} {old}")
                    texts.append(new)
            return tuple(t._replace(text=text) for t, text in zip(sums, texts, strict=True))

        result = for_range_carrying(ir, "0", depths, sums, add)
        ir.lines.append("  barrier")
        return result

    def _is_read(self, k: str, runs: tuple[int, int]) -> str:
        """Return whether the element of a triangle counts; no text for other products."""
        half = self.kernel.triangle
        if half.is_result or not half:
            return ""
        at = int_op(self.ir, ("udiv", "urem")[half.operand], self.thread, SIDE)
        at = int_op(self.ir, "add", (self.row, self.column)[half.operand], at)
        at = int_op(self.ir, "add", at, SIDE * runs[half.operand])
        compared = "sle" if (half.side == Structure.LOWER) == (half.operand == 0) else "sge"
        return self.ir.value(f"icmp {compared} i64 {k}, {at}")

    def _stage(
        self,
        name: str,
        pointer: str,
        row: tuple[str, str, str],
        column: tuple[str, str, str],
        number: int,
    ) -> None:
        """Copy an element to shared memory, if there is one; a place along an axis is its begin in
        the tile, an index from there, and the name of the length.
        """
        ir = self.ir
        at_row, at_column = (int_op(ir, "add", begin, index) for begin, index, _ in (row, column))
        inside = [
            ir.value(f"icmp slt i64 {at}, {self.size[length]}")
            for at, (_, _, length) in ((at_row, row), (at_column, column))
        ]

        def copy() -> None:
            source = strided_ptr(ir, pointer, at_row, self.size[f"row of {name}"])
            source = strided_ptr(ir, source, at_column, self.size[f"column of {name}"])
            target = self._shared(number, row[1], column[1])
            for part, value in enumerate(self.load(source)):
                size, type_ = self.dtype.itemsize, llvm_type(self.dtype, 1)
                place = offset_ptr(ir, target, part * size)
                ir.line(f"store {type_} {value}, ptr {place}, align {size}")

        if_then(ir, ir.value(f"and i1 {inside[0]}, {inside[1]}"), copy)

    def _shared(self, number: int, row: str, column: str) -> str:
        """Return the pointer to an element in shared memory."""
        ir, size = self.ir, self.components * self.dtype.itemsize
        element = int_op(ir, "add", int_op(ir, "mul", row, PITCHES[number]), column)
        begin = TILE_ROWS * PITCHES[0] * size * number
        return offset_ptr(ir, "%scratch", int_op(ir, "mul", element, size), begin)

    def _read(self, number: int, row: str, column: str) -> list[str]:
        """Read the scalars of an element in shared memory."""
        ir, pointer = self.ir, self._shared(number, row, column)
        size, type_ = self.dtype.itemsize, llvm_type(self.dtype, 1)
        places = [offset_ptr(ir, pointer, part * size) for part in range(self.components)]
        return [ir.value(f"load {type_}, ptr {place}, align {size}") for place in places]

    def _store(self, i: int, j: int, sums: Accumulator, rows: str, x3: str) -> None:
        """Store an element of the tile."""
        ir = self.ir
        row, column = (int_op(ir, each, self.thread, SIDE) for each in ("udiv", "urem"))
        row = int_op(ir, "add", self.row, int_op(ir, "add", row, SIDE * i))
        column = int_op(ir, "add", self.column, int_op(ir, "add", column, SIDE * j))

        def store() -> None:
            source = ""
            if x3:
                step = self.size.get("column of x3", self.itemsize)
                source = strided_ptr(ir, x3, row, self.size["row of x3"])
                source = strided_ptr(ir, source, column, step)
            number = int_op(ir, "mul", int_op(ir, "add", rows, row), self.size["n"])
            self.finish([packet.text for packet in sums], int_op(ir, "add", number, column), source)

        inside = [
            ir.value(f"icmp slt i64 {at}, {self.size[name]}")
            for at, name in ((row, "m"), (column, "n"))
        ]
        if_then(ir, ir.value(f"and i1 {inside[0]}, {inside[1]}"), store)
