"""Small GEMM: unrolled SIMD code for products (m, k) @ (k, n) of fixed lengths, and stacks.

A unit of work is one product: its sums stay in registers and its loops are unrolled. The packet of
the last column may be masked. Lengths are constants of the code. Strides are given at the launch,
except that of a contiguous axis.

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
    ADDEND_NOTES,
    Arithmetic,
    addend_sizes,
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
from tenfold.schedule.product_choice import simd_multiply_adds


@dataclass(frozen=True)
class SmallGemm:
    """SIMD code of products of fixed lengths (m, k, n); `axes` is the number of stack axes.

    A layout is "row" (row-major), "column" (column-major) or "any".
    """

    arithmetic: Arithmetic
    lengths: tuple[int, int, int]
    layouts: tuple[str, str]
    axes: int = 0
    conjugated: bool = False
    second_conjugated: bool = False
    scaled: bool = False
    """Whether the product is multiplied by the first scalar of the launch."""
    addend: str = ""
    """The layout of x3, which is added times the second scalar, and may be the result; "": none.

    The scalars of the launch are 16 bytes apart."""

    def __str__(self) -> str:
        (m, k, n), x1_conj = self.lengths, "conj" if self.conjugated else ""
        x2_conj, alpha = "conj" if self.second_conjugated else "", "alpha * " * self.scaled
        layouts = (
            f"x{i + 1} by {name}s" if name != "any" else f"x{i + 1} by any strides"
            for i, name in enumerate(self.layouts)
        )
        added = ADDEND_NOTES[self.addend]
        return (
            f"small product {alpha}{x1_conj}({m}, {k}) @ {x2_conj}({k}, {n}){added} "
            f"of {self.arithmetic.dtype}, stack of {self.axes} axes\n  {', '.join(layouts)}"
        )

    @property
    def packets(self) -> tuple[int, ...]:
        """The lanes of the packets of a row of the result; the last may be masked."""
        scalars = self.lengths[2] * self.arithmetic.components
        full_packets, remainder = divmod(scalars, self.arithmetic.register_lanes)
        tail = (1 << (remainder - 1).bit_length(),) if remainder else ()
        return (self.arithmetic.register_lanes,) * full_packets + tail

    @property
    def multiply_adds(self) -> int:
        """The unrolled multiply-adds of packets."""
        return simd_multiply_adds(self.arithmetic.dtype, self.lengths, self.arithmetic.width)

    @property
    def sizes(self) -> tuple[str, ...]:
        """Names of the launch sizes, in order; strides are in bytes."""
        strides = ("row of x1", "column of x1", "row of x2", "column of x2")
        return (
            *stack_sizes(self.axes, 2 + bool(self.addend)),
            *strides,
            *addend_sizes(self.addend),
        )

    def text(self) -> str:
        """Return its LLVM module. Buffers are x1, x2, the contiguous result, and x3."""
        return SmallGemmEmitter(self).module()


class SmallGemmEmitter:
    """Emits the code of a SmallGemm."""

    def __init__(self, kernel: SmallGemm) -> None:
        self.kernel, self.arithmetic = kernel, kernel.arithmetic
        self.ir = ir = self.arithmetic.new_emitter()
        added = bool(kernel.addend)
        self.pointers = load_arguments(ir, "%buffers", 0, 3 + added)
        self.stack = read_stack(ir, kernel.axes, 2 + added)
        count = 4 + len(addend_sizes(kernel.addend))
        first_stride = (3 + added) * kernel.axes
        strides: list[str | int] = [*load_arguments(ir, "%sizes", first_stride, count)]
        for number, layout in enumerate(kernel.layouts):
            if layout != "any":
                strides[2 * number + (layout == "row")] = self.arithmetic.dtype.itemsize
        self.strides = strides

    def module(self) -> str:
        """Emit the module."""
        for_range(self.ir, "%begin", "%end", 1, self._unit)
        self.ir.line("ret i64 0")
        return module_text(self.ir, str(self.kernel))

    def _unit(self, index: str) -> None:
        ir, (m, _, n) = self.ir, self.kernel.lengths
        x1, x2, *addend = stack_pointers(
            ir, index, self.stack, [*self.pointers[:2], *self.pointers[3:]]
        )
        result = strided_ptr(ir, self.pointers[2], index, m * n * self.arithmetic.dtype.itemsize)
        height = max(1, 24 * self.arithmetic.register_count // 32 // (len(self.kernel.packets) * 2))
        for first_row in range(0, m, height):
            self._emit_rows(range(first_row, min(m, first_row + height)), x1, x2, result, *addend)

    def _emit_rows(self, rows: range, x1: str, x2: str, result: str, x3: str = "") -> None:
        """Compute and store some rows of the result."""
        ir, arithmetic, (_, k, n) = self.ir, self.arithmetic, self.kernel.lengths
        components, packets = arithmetic.components, self.kernel.packets
        zero_sums = [
            zeros(arithmetic.sum_dtype, lanes) for lanes in packets for _ in range(components)
        ]
        sums = {row: list(zero_sums) for row in rows}
        lines = {row: strided_ptr(ir, x1, str(row), self.strides[0]) for row in rows}
        for depth in range(k):
            line = strided_ptr(ir, x2, str(depth), self.strides[2])
            columns = [
                self._load_columns(line, offset, lanes) for offset, lanes in self._packet_offsets()
            ]
            for row in rows:
                element = strided_ptr(ir, lines[row], str(depth), self.strides[1])
                for i, lanes in enumerate(packets):
                    for component, factor in enumerate(
                        arithmetic.broadcast_factors(ir, element, lanes)
                    ):
                        index = i * components + component
                        sums[row][index] = arithmetic.multiply_add(
                            ir, sums[row][index], factor, columns[i], lanes
                        )
        for row in rows:
            target = offset_ptr(ir, result, row * n * arithmetic.dtype.itemsize)
            x3_row = strided_ptr(ir, x3, str(row), self.strides[4]) if x3 else ""
            for i, (offset, lanes) in enumerate(self._packet_offsets()):
                packet_sums = sums[row][i * components : (i + 1) * components]
                self._store_packet(
                    self._scale_and_add(packet_sums, x3_row, offset, lanes), target, offset, lanes
                )

    def _scale_and_add(self, sums: Sequence[str], x3: str, offset: int, lanes: int) -> str:
        """Return a packet of a row of the result: scaled, plus the addend."""
        ir, arithmetic, kernel = self.ir, self.arithmetic, self.kernel
        if kernel.second_conjugated:
            sums = [arithmetic.conjugate(ir, value, lanes) for value in sums]
        value = arithmetic.combine_components(ir, sums, lanes, kernel.conjugated)
        if kernel.scaled:
            value = arithmetic.scale(ir, value, self._load_scalar(0, lanes), lanes)
        if not x3:
            return value
        valid = self._valid_lanes(offset, lanes)
        if kernel.addend == "any":
            gathered = self._gather_columns(x3, offset, valid, lanes, self.strides[5])
            addend = arithmetic.widen(ir, gathered, lanes)
        else:
            pointer = offset_ptr(ir, x3, offset * arithmetic.scalar_dtype.itemsize)
            addend = arithmetic.load(ir, pointer, lanes, _mask(valid, lanes))
        addend = arithmetic.scale(ir, addend, self._load_scalar(16, lanes), lanes)
        return arithmetic.add(ir, value, addend, lanes)

    def _load_scalar(self, offset: int, lanes: int) -> list[str]:
        """Load a scalar of the launch; each of its components is broadcast to a packet."""
        pointer = offset_ptr(self.ir, "%scalars", offset)
        return self.arithmetic.broadcast_factors(self.ir, pointer, lanes)

    def _packet_offsets(self) -> Iterator[tuple[int, int]]:
        """The first scalar of each packet of a row, and the packet's lanes."""
        offset = 0
        for lanes in self.kernel.packets:
            yield offset, lanes
            offset += lanes

    def _valid_lanes(self, offset: int, lanes: int) -> int:
        """The number of scalars of a packet up to the last column."""
        return min(lanes, self.kernel.lengths[2] * self.arithmetic.components - offset)

    def _load_columns(self, line: str, offset: int, lanes: int) -> str:
        """Load a packet of a row of the second operand, and widen it."""
        ir, arithmetic = self.ir, self.arithmetic
        valid = self._valid_lanes(offset, lanes)
        if self.kernel.layouts[1] == "row":
            pointer = offset_ptr(ir, line, offset * arithmetic.scalar_dtype.itemsize)
            return arithmetic.load(ir, pointer, lanes, _mask(valid, lanes))
        gathered = self._gather_columns(line, offset, valid, lanes, self.strides[3])
        return arithmetic.widen(ir, gathered, lanes)

    def _gather_columns(
        self, line: str, offset: int, valid: int, lanes: int, stride: str | int
    ) -> str:
        """Gather a packet of a row, element by element."""
        ir, arithmetic = self.ir, self.arithmetic
        type_, scalar = (
            llvm_type(arithmetic.scalar_dtype, lanes),
            llvm_type(arithmetic.scalar_dtype, 1),
        )
        packet = zeros(arithmetic.scalar_dtype, lanes)
        for lane in range(valid):
            column, component = divmod(offset + lane, arithmetic.components)
            pointer = strided_ptr(ir, line, str(column), stride)
            pointer = offset_ptr(ir, pointer, component * arithmetic.scalar_dtype.itemsize)
            value = ir.value(f"load {scalar}, ptr {pointer}, align 1")
            if lanes == 1:
                return value
            packet = ir.value(f"insertelement {type_} {packet}, {scalar} {value}, i64 {lane}")
        return packet

    def _store_packet(self, value: str, target: str, offset: int, lanes: int) -> None:
        """Store a packet of a row of the result."""
        ir, arithmetic = self.ir, self.arithmetic
        pointer = offset_ptr(ir, target, offset * arithmetic.scalar_dtype.itemsize)
        mask = _mask(self._valid_lanes(offset, lanes), lanes)
        arithmetic.store(ir, value, pointer, lanes, mask)


def _mask(valid: int, lanes: int) -> str | None:
    """Return the literal of a mask of the first lanes, or None if all lanes are valid."""
    bits = ", ".join(f"i1 {'true' if lane < valid else 'false'}" for lane in range(lanes))
    return f"<{bits}>" if valid < lanes else None
