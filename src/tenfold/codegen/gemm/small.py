"""Small GEMM: unrolled SIMD code for products (m, k) @ (k, n) of fixed lengths, and stacks.

A unit of work is one product: its sums stay in registers and its loops are unrolled. A packet that
is cut by the last column is masked. Lengths are part of the text. Strides are given at the launch,
save that of a contiguous axis.

>>> from tenfold.dtypes import FLOAT32
>>> kernel = SmallGemm(Arithmetic(FLOAT32, 64), (8, 8, 8), ("row", "row"), axes=1)
>>> print(kernel)
small product (8, 8) @ (8, 8) of float32, stack of 1 axes
  x1 by rows, x2 by rows
>>> kernel.packets, kernel.multiply_adds
((8,), 64)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tenfold.codegen.gemm.emitter import (
    Arithmetic,
    load_arguments,
    module_text,
    offset_ptr,
    read_stack,
    stack_pointers,
    stack_sizes,
    strided_ptr,
    zeros,
)
from tenfold.codegen.llvm.loop_emitter import for_range
from tenfold.codegen.llvm.simd_emitter import llvm_type


@dataclass(frozen=True)
class SmallGemm:
    """The packet code of products of fixed lengths (m, k, n); `axes` are those of the stack.

    A layout is "row" (elements of a row lie beside each other), "column" or "any".
    """

    arithmetic: Arithmetic
    lengths: tuple[int, int, int]
    layouts: tuple[str, str]
    axes: int = 0
    conjugated: bool = False
    second_conjugated: bool = False
    scaled: bool = False
    """Whether the product is multiplied by the first scalar of the launch."""
    added: bool = False
    """Whether the second scalar times x3 is added, which may lie where the result does. The scalars
    are elements, 16 bytes apart."""

    def __str__(self) -> str:
        (m, k, n), factor = self.lengths, "conj" if self.conjugated else ""
        second, alpha = "conj" if self.second_conjugated else "", "alpha * " * self.scaled
        layouts = (
            f"x{i + 1} by {name}s" if name != "any" else f"x{i + 1} by any strides"
            for i, name in enumerate(self.layouts)
        )
        added = " + beta * x3" * self.added
        return (
            f"small product {alpha}{factor}({m}, {k}) @ {second}({k}, {n}){added} "
            f"of {self.arithmetic.dtype}, stack of {self.axes} axes\n  {', '.join(layouts)}"
        )

    @property
    def packets(self) -> tuple[int, ...]:
        """The lanes of the packets of a row of the result; the last may be masked."""
        scalars = self.lengths[2] * self.arithmetic.components
        whole, rest = divmod(scalars, self.arithmetic.register_lanes)
        last = (1 << (rest - 1).bit_length(),) if rest else ()
        return (self.arithmetic.register_lanes,) * whole + last

    @property
    def multiply_adds(self) -> int:
        """The multiply-adds of packets that are written out."""
        m, k, _ = self.lengths
        return m * k * len(self.packets) * self.arithmetic.components

    @property
    def sizes(self) -> tuple[str, ...]:
        """What the launch gives as sizes, in order; strides are in bytes."""
        strides = ("row of x1", "column of x1", "row of x2", "column of x2")
        return (
            *stack_sizes(self.axes, 2 + self.added),
            *strides,
            *("row of x3",) * self.added,
        )

    def text(self) -> str:
        """Return its LLVM module. Buffers are x1, x2, the result, which is contiguous, and x3, of
        which the rows are.
        """
        return SmallGemmEmitter(self).module()


class SmallGemmEmitter:
    """Writes the text of a SmallGemm."""

    def __init__(self, kernel: SmallGemm) -> None:
        self.kernel, self.arithmetic = kernel, kernel.arithmetic
        self.ir = ir = self.arithmetic.new_emitter()
        self.pointers = load_arguments(ir, "%buffers", 0, 3 + kernel.added)
        self.stack = read_stack(ir, kernel.axes, 2 + kernel.added)
        first = (3 + kernel.added) * kernel.axes
        found: list[str | int] = [*load_arguments(ir, "%sizes", first, 4 + kernel.added)]
        for number, layout in enumerate(kernel.layouts):
            if layout != "any":
                found[2 * number + (layout == "row")] = self.arithmetic.dtype.itemsize
        self.strides = found

    def module(self) -> str:
        """Write everything."""
        for_range(self.ir, "%begin", "%end", 1, self._unit)
        self.ir.line("ret i64 0")
        return module_text(self.ir, str(self.kernel))

    def _unit(self, index: str) -> None:
        ir, (m, _, n) = self.ir, self.kernel.lengths
        x1, x2, *third = stack_pointers(
            ir, index, self.stack, [*self.pointers[:2], *self.pointers[3:]]
        )
        result = strided_ptr(ir, self.pointers[2], index, m * n * self.arithmetic.dtype.itemsize)
        height = max(1, 24 * self.arithmetic.register_count // 32 // (len(self.kernel.packets) * 2))
        for first in range(0, m, height):
            self._emit_rows(range(first, min(m, first + height)), x1, x2, result, *third)

    def _emit_rows(self, rows: range, x1: str, x2: str, result: str, x3: str = "") -> None:
        """Compute and store some rows of the result."""
        ir, arithmetic, (_, k, n) = self.ir, self.arithmetic, self.kernel.lengths
        parts, packets = arithmetic.components, self.kernel.packets
        begun = [zeros(arithmetic.sum_dtype, lanes) for lanes in packets for _ in range(parts)]
        sums = {row: list(begun) for row in rows}
        lines = {row: strided_ptr(ir, x1, str(row), self.strides[0]) for row in rows}
        for depth in range(k):
            line = strided_ptr(ir, x2, str(depth), self.strides[2])
            columns = [
                self._load_columns(line, first, lanes) for first, lanes in self._packet_offsets()
            ]
            for row in rows:
                place = strided_ptr(ir, lines[row], str(depth), self.strides[1])
                for i, lanes in enumerate(packets):
                    for part, factor in enumerate(arithmetic.broadcast_factors(ir, place, lanes)):
                        at = i * parts + part
                        sums[row][at] = arithmetic.multiply_add(
                            ir, sums[row][at], factor, columns[i], lanes
                        )
        for row in rows:
            target = offset_ptr(ir, result, row * n * arithmetic.dtype.itemsize)
            third = strided_ptr(ir, x3, str(row), self.strides[-1]) if x3 else ""
            for i, (first, lanes) in enumerate(self._packet_offsets()):
                pair = sums[row][i * parts : (i + 1) * parts]
                self._store_packet(
                    self._scale_and_add(pair, third, first, lanes), target, first, lanes
                )

    def _scale_and_add(self, sums: Sequence[str], x3: str, first: int, lanes: int) -> str:
        """Make a packet of a row of the result: scaled, and what is added to it."""
        ir, arithmetic, kernel = self.ir, self.arithmetic, self.kernel
        if kernel.second_conjugated:
            sums = [arithmetic.conjugate(ir, value, lanes) for value in sums]
        value = arithmetic.combine_components(ir, sums, lanes, kernel.conjugated)
        if kernel.scaled:
            value = arithmetic.scale(ir, value, self._load_scalar(0, lanes), lanes)
        if not x3:
            return value
        place = offset_ptr(ir, x3, first * arithmetic.scalar_dtype.itemsize)
        mask = _mask(self._valid_lanes(first, lanes), lanes)
        other = arithmetic.load(ir, place, lanes, mask)
        other = arithmetic.scale(ir, other, self._load_scalar(16, lanes), lanes)
        return arithmetic.add(ir, value, other, lanes)

    def _load_scalar(self, offset: int, lanes: int) -> list[str]:
        """Load a scalar of the launch; each of its parts fills a packet."""
        place = offset_ptr(self.ir, "%scalars", offset)
        return self.arithmetic.broadcast_factors(self.ir, place, lanes)

    def _packet_offsets(self) -> Iterator[tuple[int, int]]:
        """The first scalar of each packet of a row, and the packet's lanes."""
        first = 0
        for lanes in self.kernel.packets:
            yield first, lanes
            first += lanes

    def _valid_lanes(self, first: int, lanes: int) -> int:
        """How many scalars of a packet are not beyond the last column."""
        return min(lanes, self.kernel.lengths[2] * self.arithmetic.components - first)

    def _load_columns(self, line: str, first: int, lanes: int) -> str:
        """Load a packet of a row of the second operand, and widen it."""
        ir, arithmetic = self.ir, self.arithmetic
        inside = self._valid_lanes(first, lanes)
        if self.kernel.layouts[1] == "row":
            place = offset_ptr(ir, line, first * arithmetic.scalar_dtype.itemsize)
            return arithmetic.load(ir, place, lanes, _mask(inside, lanes))
        return arithmetic.widen(ir, self._gather_columns(line, first, inside, lanes), lanes)

    def _gather_columns(self, line: str, first: int, inside: int, lanes: int) -> str:
        """Put a packet together, element by element."""
        ir, arithmetic = self.ir, self.arithmetic
        type_, scalar = (
            llvm_type(arithmetic.scalar_dtype, lanes),
            llvm_type(arithmetic.scalar_dtype, 1),
        )
        packet = zeros(arithmetic.scalar_dtype, lanes)
        for lane in range(inside):
            column, part = divmod(first + lane, arithmetic.components)
            place = strided_ptr(ir, line, str(column), self.strides[3])
            place = offset_ptr(ir, place, part * arithmetic.scalar_dtype.itemsize)
            value = ir.value(f"load {scalar}, ptr {place}, align 1")
            if lanes == 1:
                return value
            packet = ir.value(f"insertelement {type_} {packet}, {scalar} {value}, i64 {lane}")
        return packet

    def _store_packet(self, value: str, target: str, first: int, lanes: int) -> None:
        """Store a packet of a row of the result."""
        ir, arithmetic = self.ir, self.arithmetic
        place = offset_ptr(ir, target, first * arithmetic.scalar_dtype.itemsize)
        mask = _mask(self._valid_lanes(first, lanes), lanes)
        arithmetic.store(ir, value, place, lanes, mask)


def _mask(inside: int, lanes: int) -> str | None:
    """Return the literal of a mask of the first lanes, or None where it is not needed."""
    bits = ", ".join(f"i1 {'true' if lane < inside else 'false'}" for lane in range(lanes))
    return f"<{bits}>" if inside < lanes else None
