"""Dot product: SIMD code for (k,) @ (k,) to one number, and stacks of them.

A unit of work is one number. Where both vectors are contiguous, 256 bytes of wide scalars are
accumulated at a time, then 8 scalars at a time, at last one by one. The accumulators are added by
halves. So the bits depend neither on the vector width nor on the thread count; they may depend on
layouts, as those of every product. A matrix times a vector is a stack of dot products, one a row.
Products along further contracted axes are added one by one.

>>> from tenfold.dtypes import FLOAT32
>>> print(DotProduct(Arithmetic(FLOAT32, 64), beside=(True, True), axes=1))
dot product x1 . x2 of float32, stack of 1 axes, elements beside each other
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tenfold.codegen.gemm.emitter import (
    Arithmetic,
    advanced,
    carrying,
    given,
    module,
    read_stack,
    read_sums,
    rounds_of,
    stack_sizes,
    stacked,
    sum_sizes,
    summed,
    times,
    zeros,
)
from tenfold.codegen.llvm.loop_emitter import counted, integer
from tenfold.codegen.llvm.simd_emitter import type_text

ACCUMULATED = 256
"""The bytes of wide scalars that are accumulated beside each other."""
FEW = 8
"""The scalars of the packets that follow."""
LAYOUTS = {
    (True, True): "elements beside each other",
    (True, False): "any stride of x2",
    (False, True): "any stride of x1",
    (False, False): "any strides",
}


@dataclass(frozen=True)
class DotProduct:
    """The packet code of products of vectors; `axes` are those of the stack."""

    arithmetic: Arithmetic
    beside: tuple[bool, bool]
    """Whether the elements of each vector lie beside each other."""
    axes: int = 0
    conjugated: bool = False
    sums: int = 0
    """The axes that are contracted besides k."""

    def __str__(self) -> str:
        factor = "conj(x1)" if self.conjugated else "x1"
        layout = LAYOUTS[self.beside]
        return (
            f"dot product {factor} . x2 of {self.arithmetic.dtype}, "
            f"stack of {self.axes} axes, {layout}{summed(self.sums)}"
        )

    @property
    def sizes(self) -> tuple[str, ...]:
        """What the launch gives as sizes, in order; strides are in bytes."""
        return (*stack_sizes(self.axes), *sum_sizes(self.sums), "k", "stride of x1", "stride of x2")

    def text(self) -> str:
        """Return its LLVM module. Buffers are x1, x2 and the result, which is contiguous."""
        return DotEmitter(self).module()


class DotEmitter:
    """Writes the text of a DotProduct."""

    def __init__(self, kernel: DotProduct) -> None:
        self.kernel, self.arithmetic = kernel, kernel.arithmetic
        self.text = text = self.arithmetic.text()
        self.pointers = given(text, "%buffers", 0, 3)
        self.stack = read_stack(text, kernel.axes)
        self.sums = read_sums(text, kernel.sums, 3 * kernel.axes)
        self.length, *strides = given(text, "%sizes", 3 * (kernel.axes + kernel.sums), 3)
        itemsize = self.arithmetic.dtype.itemsize
        self.strides: Sequence[str | int] = [
            itemsize if beside else stride
            for beside, stride in zip(kernel.beside, strides, strict=True)
        ]
        self.wide = all(kernel.beside)

    def module(self) -> str:
        """Write everything."""
        counted(self.text, "%begin", "%end", 1, self._unit)
        self.text.line("ret i64 0")
        return module(self.text, str(self.kernel))

    def _unit(self, index: str) -> None:
        text, arithmetic = self.text, self.arithmetic
        pointers = stacked(text, index, self.stack, self.pointers[:2])
        sums = self._added_up(pointers) if self.sums else self._along(pointers)
        value = arithmetic.join(text, sums, arithmetic.parts, self.kernel.conjugated)
        result = times(text, self.pointers[2], index, arithmetic.dtype.itemsize)
        arithmetic.store(text, value, result, arithmetic.parts)

    def _added_up(self, pointers: Sequence[str]) -> list[str]:
        """Add the products along k for each index of the other axes that are contracted."""
        text, arithmetic = self.text, self.arithmetic
        parts = arithmetic.parts
        type_ = type_text(arithmetic.wide, parts)

        def one(index: str, *totals: str) -> Sequence[str]:
            sums = self._along(stacked(text, index, self.sums, pointers))
            pairs = zip(totals, sums, strict=True)
            added = [arithmetic.add(text, total, each, parts) for total, each in pairs]
            return [integer(text, "add", index, 1), *added]

        begun = [("i64", "0"), *[(type_, zeros(arithmetic.wide, parts))] * parts]
        return carrying(text, rounds_of(text, self.sums), begun, one)[1:]

    def _along(self, pointers: Sequence[str]) -> list[str]:
        """Accumulate along k in ever fewer lanes; of complex numbers in one accumulator for each
        part of the first factor.
        """
        arithmetic, parts = self.arithmetic, self.arithmetic.parts
        lanes = ACCUMULATED // arithmetic.wide.itemsize if self.wide else FEW
        sums = [zeros(arithmetic.wide, lanes)] * parts
        pointers, sums, done = self._stretch(pointers, sums, "0", lanes)
        if self.wide:
            sums = [self._folded(value, lanes, FEW) for value in sums]
            pointers, sums, done = self._stretch(pointers, sums, done, FEW)
        sums = [self._folded(value, FEW, parts) for value in sums]
        return self._stretch(pointers, sums, done, parts)[1]

    def _stretch(
        self, pointers: Sequence[str], sums: Sequence[str], done: str, lanes: int
    ) -> tuple[list[str], list[str], str]:
        """Accumulate whole packets of so many lanes of what is not done."""
        text, elements = self.text, lanes // self.arithmetic.parts
        type_ = type_text(self.arithmetic.wide, lanes)
        left = integer(text, "sub", self.length, done)
        rounds = integer(text, "udiv", left, elements)

        def packet(x1: str, x2: str, *totals: str) -> Sequence[str]:
            added = self._added(x1, x2, totals, lanes)
            moved = [
                times(text, pointer, str(elements), stride)
                for pointer, stride in zip((x1, x2), self.strides, strict=True)
            ]
            return [*moved, *added]

        carried = [("ptr", pointer) for pointer in pointers] + [(type_, value) for value in sums]
        left_over = carrying(text, rounds, carried, packet)
        done = integer(text, "add", done, integer(text, "mul", rounds, elements))
        return left_over[:2], left_over[2:], done

    def _added(self, x1: str, x2: str, totals: Sequence[str], lanes: int) -> list[str]:
        text, arithmetic = self.text, self.arithmetic
        first, second = (
            self._load(place, stride, lanes)
            for place, stride in zip((x1, x2), self.strides, strict=True)
        )
        type_ = type_text(arithmetic.wide, lanes)
        added = []
        for part, total in enumerate(totals):
            factor = first
            if arithmetic.parts == 2:  # its real or its imaginary part, in both lanes
                order = ", ".join(f"i32 {lane - lane % 2 + part}" for lane in range(lanes))
                factor = text.value(
                    f"shufflevector {type_} {first}, {type_} poison, <{lanes} x i32> <{order}>"
                )
            added.append(arithmetic.multiply_add(text, total, factor, second, lanes))
        return added

    def _load(self, place: str, stride: str | int, lanes: int) -> str:
        """Load a packet of scalars of elements that are `stride` bytes apart, and widen it."""
        text, arithmetic = self.text, self.arithmetic
        if isinstance(stride, int) or lanes == arithmetic.parts:
            return arithmetic.load(text, place, lanes)
        type_, scalar = type_text(arithmetic.memory, lanes), type_text(arithmetic.memory, 1)
        packet = zeros(arithmetic.memory, lanes)
        for lane in range(lanes):
            element, part = divmod(lane, arithmetic.parts)
            at = times(text, place, str(element), stride)
            at = advanced(text, at, part * arithmetic.memory.itemsize)
            value = text.value(f"load {scalar}, ptr {at}, align 1")
            packet = text.value(f"insertelement {type_} {packet}, {scalar} {value}, i64 {lane}")
        return arithmetic.widen(text, packet, lanes)

    def _folded(self, value: str, lanes: int, target: int) -> str:
        """Add the lanes of a packet by halves until `target` are left."""
        text, arithmetic = self.text, self.arithmetic
        while lanes > target:
            type_ = type_text(arithmetic.wide, lanes)
            lanes //= 2
            halves = [
                self._lanes(type_, value, range(start, start + lanes)) for start in (0, lanes)
            ]
            value = arithmetic.add(text, halves[0], halves[1], lanes)
        return value

    def _lanes(self, type_: str, value: str, lanes: range) -> str:
        if len(lanes) == 1:
            return self.text.value(f"extractelement {type_} {value}, i64 {lanes.start}")
        order = ", ".join(f"i32 {lane}" for lane in lanes)
        return self.text.value(
            f"shufflevector {type_} {value}, {type_} poison, <{len(lanes)} x i32> <{order}>"
        )
