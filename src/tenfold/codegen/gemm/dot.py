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
    carry_loop,
    contraction_count,
    contraction_note,
    load_arguments,
    module_text,
    offset_ptr,
    read_stack,
    read_sums,
    stack_pointers,
    stack_sizes,
    strided_ptr,
    sum_sizes,
    zeros,
)
from tenfold.codegen.llvm.loop_emitter import for_range, int_op
from tenfold.codegen.llvm.simd_emitter import llvm_type

ACCUMULATED = 256
"""The bytes of wide scalars that are accumulated beside each other."""
TAIL_LANES = 8
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
    contiguous: tuple[bool, bool]
    """Whether the elements of each vector lie beside each other."""
    axes: int = 0
    conjugated: bool = False
    sums: int = 0
    """The axes that are contracted besides k."""

    def __str__(self) -> str:
        factor = "conj(x1)" if self.conjugated else "x1"
        layout = LAYOUTS[self.contiguous]
        return (
            f"dot product {factor} . x2 of {self.arithmetic.dtype}, "
            f"stack of {self.axes} axes, {layout}{contraction_note(self.sums)}"
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
        self.ir = ir = self.arithmetic.new_emitter()
        self.pointers = load_arguments(ir, "%buffers", 0, 3)
        self.stack = read_stack(ir, kernel.axes)
        self.sums = read_sums(ir, kernel.sums, 3 * kernel.axes)
        self.length, *strides = load_arguments(ir, "%sizes", 3 * (kernel.axes + kernel.sums), 3)
        itemsize = self.arithmetic.dtype.itemsize
        self.strides: Sequence[str | int] = [
            itemsize if beside else stride
            for beside, stride in zip(kernel.contiguous, strides, strict=True)
        ]
        self.both_contiguous = all(kernel.contiguous)

    def module(self) -> str:
        """Write everything."""
        for_range(self.ir, "%begin", "%end", 1, self._unit)
        self.ir.line("ret i64 0")
        return module_text(self.ir, str(self.kernel))

    def _unit(self, index: str) -> None:
        ir, arithmetic = self.ir, self.arithmetic
        pointers = stack_pointers(ir, index, self.stack, self.pointers[:2])
        sums = self._contract_axes(pointers) if self.sums else self._contract_k(pointers)
        value = arithmetic.combine_components(
            ir, sums, arithmetic.components, self.kernel.conjugated
        )
        result = strided_ptr(ir, self.pointers[2], index, arithmetic.dtype.itemsize)
        arithmetic.store(ir, value, result, arithmetic.components)

    def _contract_axes(self, pointers: Sequence[str]) -> list[str]:
        """Add the products along k for each index of the other axes that are contracted."""
        ir, arithmetic = self.ir, self.arithmetic
        parts = arithmetic.components
        type_ = llvm_type(arithmetic.sum_dtype, parts)

        def one(index: str, *totals: str) -> Sequence[str]:
            sums = self._contract_k(stack_pointers(ir, index, self.sums, pointers))
            pairs = zip(totals, sums, strict=True)
            added = [arithmetic.add(ir, total, each, parts) for total, each in pairs]
            return [int_op(ir, "add", index, 1), *added]

        begun = [("i64", "0"), *[(type_, zeros(arithmetic.sum_dtype, parts))] * parts]
        return carry_loop(ir, contraction_count(ir, self.sums), begun, one)[1:]

    def _contract_k(self, pointers: Sequence[str]) -> list[str]:
        """Accumulate along k in ever fewer lanes; of complex numbers in one accumulator for each
        part of the first factor.
        """
        arithmetic, parts = self.arithmetic, self.arithmetic.components
        lanes = ACCUMULATED // arithmetic.sum_dtype.itemsize if self.both_contiguous else TAIL_LANES
        sums = [zeros(arithmetic.sum_dtype, lanes)] * parts
        pointers, sums, done = self._accumulate_packets(pointers, sums, "0", lanes)
        if self.both_contiguous:
            sums = [self._reduce_by_halves(value, lanes, TAIL_LANES) for value in sums]
            pointers, sums, done = self._accumulate_packets(pointers, sums, done, TAIL_LANES)
        sums = [self._reduce_by_halves(value, TAIL_LANES, parts) for value in sums]
        return self._accumulate_packets(pointers, sums, done, parts)[1]

    def _accumulate_packets(
        self, pointers: Sequence[str], sums: Sequence[str], done: str, lanes: int
    ) -> tuple[list[str], list[str], str]:
        """Accumulate whole packets of so many lanes of what is not done."""
        ir, elements = self.ir, lanes // self.arithmetic.components
        type_ = llvm_type(self.arithmetic.sum_dtype, lanes)
        left = int_op(ir, "sub", self.length, done)
        rounds = int_op(ir, "udiv", left, elements)

        def packet(x1: str, x2: str, *totals: str) -> Sequence[str]:
            added = self._multiply_add(x1, x2, totals, lanes)
            moved = [
                strided_ptr(ir, pointer, str(elements), stride)
                for pointer, stride in zip((x1, x2), self.strides, strict=True)
            ]
            return [*moved, *added]

        carried = [("ptr", pointer) for pointer in pointers] + [(type_, value) for value in sums]
        left_over = carry_loop(ir, rounds, carried, packet)
        done = int_op(ir, "add", done, int_op(ir, "mul", rounds, elements))
        return left_over[:2], left_over[2:], done

    def _multiply_add(self, x1: str, x2: str, totals: Sequence[str], lanes: int) -> list[str]:
        ir, arithmetic = self.ir, self.arithmetic
        first, second = (
            self._load(place, stride, lanes)
            for place, stride in zip((x1, x2), self.strides, strict=True)
        )
        type_ = llvm_type(arithmetic.sum_dtype, lanes)
        added = []
        for part, total in enumerate(totals):
            factor = first
            if arithmetic.components == 2:  # its real or its imaginary part, in both lanes
                order = ", ".join(f"i32 {lane - lane % 2 + part}" for lane in range(lanes))
                factor = ir.value(
                    f"shufflevector {type_} {first}, {type_} poison, <{lanes} x i32> <{order}>"
                )
            added.append(arithmetic.multiply_add(ir, total, factor, second, lanes))
        return added

    def _load(self, place: str, stride: str | int, lanes: int) -> str:
        """Load a packet of scalars of elements that are `stride` bytes apart, and widen it."""
        ir, arithmetic = self.ir, self.arithmetic
        if isinstance(stride, int) or lanes == arithmetic.components:
            return arithmetic.load(ir, place, lanes)
        type_, scalar = (
            llvm_type(arithmetic.scalar_dtype, lanes),
            llvm_type(arithmetic.scalar_dtype, 1),
        )
        packet = zeros(arithmetic.scalar_dtype, lanes)
        for lane in range(lanes):
            element, part = divmod(lane, arithmetic.components)
            at = strided_ptr(ir, place, str(element), stride)
            at = offset_ptr(ir, at, part * arithmetic.scalar_dtype.itemsize)
            value = ir.value(f"load {scalar}, ptr {at}, align 1")
            packet = ir.value(f"insertelement {type_} {packet}, {scalar} {value}, i64 {lane}")
        return arithmetic.widen(ir, packet, lanes)

    def _reduce_by_halves(self, value: str, lanes: int, target: int) -> str:
        """Add the lanes of a packet by halves until `target` are left."""
        ir, arithmetic = self.ir, self.arithmetic
        while lanes > target:
            type_ = llvm_type(arithmetic.sum_dtype, lanes)
            lanes //= 2
            halves = [
                self._slice_lanes(type_, value, range(start, start + lanes)) for start in (0, lanes)
            ]
            value = arithmetic.add(ir, halves[0], halves[1], lanes)
        return value

    def _slice_lanes(self, type_: str, value: str, lanes: range) -> str:
        if len(lanes) == 1:
            return self.ir.value(f"extractelement {type_} {value}, i64 {lanes.start}")
        order = ", ".join(f"i32 {lane}" for lane in lanes)
        return self.ir.value(
            f"shufflevector {type_} {value}, {type_} poison, <{len(lanes)} x i32> <{order}>"
        )
