"""Thread products: what products of matrices and of vectors by threads have in common.

Input: an element type and the parts of a product: `ThreadProduct`. Output: text in the common words
of `words.py`, by an emitter that reads elements, and scales, rounds and stores results as packet
code does (`codegen/gemm/emitter.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tenfold.codegen.gemm.emitter import (
    ADDEND_NOTES,
    Arithmetic,
    offset_ptr,
    read_stack,
    strided_ptr,
)
from tenfold.codegen.llvm.module_emitter import sections_of
from tenfold.codegen.llvm.simd_emitter import Packet, llvm_type
from tenfold.codegen.simt.words import HOST_WORDS, Words, substitute


@dataclass(frozen=True)
class ThreadProduct:
    """A product by threads; `axes` is the number of stack axes."""

    noun: ClassVar[str]
    arithmetic: Arithmetic
    axes: int = 0
    conjugated: bool = False
    second_conjugated: bool = False
    scaled: bool = False
    addend: str = ""

    def __str__(self) -> str:
        x1 = "conj(x1)" if self.conjugated else "x1"
        x2 = "conj(x2)" if self.second_conjugated else "x2"
        text = f"{'alpha * ' * self.scaled}{x1} @ {x2}{ADDEND_NOTES[self.addend]}"
        dtype = self.arithmetic.dtype
        return f"{self.noun} by threads: {text} of {dtype}, stack of {self.axes} axes"

    @property
    def sizes(self) -> tuple[str, ...]:
        """Names of the launch sizes, in order; strides are in bytes."""
        raise NotImplementedError

    @property
    def shared_bytes(self) -> int:
        """The bytes of memory that the threads of a block share."""
        return 0

    def common_text(self) -> str:
        """Return its module in common words."""
        raise NotImplementedError

    def text(self) -> str:
        """Return its module for the emulated device."""
        return self.thread_text(HOST_WORDS)

    def thread_text(self, words: Words) -> str:
        """Return its module in the words of a target."""
        return substitute(self.common_text(), words)


class ProductEmitter:
    """Emits the function of a thread of a product."""

    def __init__(self, kernel: ThreadProduct) -> None:
        self.kernel, self.arithmetic = kernel, kernel.arithmetic
        self.ir = ir = self.arithmetic.new_emitter()
        self.components, self.dtype = self.arithmetic.components, self.arithmetic.sum_dtype
        self.itemsize = self.arithmetic.dtype.itemsize
        added = bool(kernel.addend)
        slots = [ir.value(f"getelementptr i64, ptr %buffers, i64 {i}") for i in range(3 + added)]
        self.buffers = [ir.value(f"load pointer, ptr {slot}") for slot in slots]
        self.stack = read_stack(ir, kernel.axes, 2 + added)
        first = len(self.stack) * (3 + added)
        self.size = {name: self._size(first + i) for i, name in enumerate(kernel.sizes[first:])}
        """By name: the sizes of the launch behind those of the stack."""

    def _size(self, number: int) -> str:
        slot = self.ir.value(f"getelementptr i64, ptr %sizes, i64 {number}")
        return self.ir.value(f"load i64, ptr {slot}, align 8")

    def module(self) -> str:
        """Return the module of the emitted lines, in common words."""
        kernel, operands = self.kernel, len(self.buffers)
        scalars = operands + 1 + len(kernel.sizes)
        words = scalars + 2 * (kernel.scaled + bool(kernel.addend)) + 1
        head = f"thread kernel operands {operands} sizes {operands + 1} scalars {scalars}"
        head += f" words {words} shared {max(kernel.shared_bytes, 1)} waiting:"
        function = "\n".join([head, *self.ir.lines, "  ret void", "}"])
        return "\n".join([f"; {kernel}", *sections_of(self.ir, [function]), ""])

    def load(self, pointer: str) -> list[str]:
        """Read the scalars of an element of an operand, and widen them."""
        ir, dtype = self.ir, self.arithmetic.scalar_dtype
        type_, size = llvm_type(dtype, 1), dtype.itemsize
        places = [offset_ptr(ir, pointer, part * size) for part in range(self.components)]
        loaded = [ir.value(f"load {type_}, ptr {place}, align {size}") for place in places]
        return [self.arithmetic.widen(ir, value, 1) for value in loaded]

    def packet(self, scalars: Sequence[str]) -> str:
        """Return the scalars of an element as a packet."""
        if self.components == 1:
            return scalars[0]
        scalar, type_, packet = llvm_type(self.dtype, 1), llvm_type(self.dtype, 2), "poison"
        for i, value in enumerate(scalars):
            packet = self.ir.value(f"insertelement {type_} {packet}, {scalar} {value}, i64 {i}")
        return packet

    def scalars(self, packet: Packet) -> list[Packet]:
        """Return the scalars of a packet."""
        if self.components == 1:
            return [packet]
        type_ = llvm_type(self.dtype, self.components)
        parts = [f"extractelement {type_} {packet.text}, i64 {i}" for i in range(self.components)]
        return [Packet(self.ir.value(part), self.dtype, 1) for part in parts]

    def _scaled(self, packet: str, offset: int) -> str:
        """Multiply a packet by a scalar of the launch."""
        factors = [
            self.ir.broadcast(Packet(part, self.dtype, 1), self.components)
            for part in self.load(offset_ptr(self.ir, "%scalars", offset))
        ]
        return self.arithmetic.scale(self.ir, packet, factors, self.components)

    def finish(self, sums: Sequence[str], number: str, addend: str) -> None:
        """Store a number of the result: its sums combined and scaled, plus what is at the pointer
        `addend`, if there is one.
        """
        ir, arithmetic, lanes = self.ir, self.arithmetic, self.components
        if self.kernel.second_conjugated:
            sums = [arithmetic.conjugate(ir, text, lanes) for text in sums]
        value = arithmetic.combine_components(ir, sums, lanes, self.kernel.conjugated)
        value = self._scaled(value, 0) if self.kernel.scaled else value
        if addend:
            scaled = self._scaled(self.packet(self.load(addend)), 16)
            value = arithmetic.add(ir, value, scaled, lanes)
        value = arithmetic.narrow(ir, value, lanes)
        target = strided_ptr(ir, self.buffers[2], number, self.itemsize)
        type_, size = llvm_type(arithmetic.scalar_dtype, 1), arithmetic.scalar_dtype.itemsize
        packet_type = llvm_type(arithmetic.scalar_dtype, lanes)
        for part in range(lanes):
            text = value
            if lanes > 1:
                text = ir.value(f"extractelement {packet_type} {value}, i64 {part}")
            place = offset_ptr(ir, target, part * size)
            ir.line(f"store {type_} {text}, ptr {place}, align {size}")
