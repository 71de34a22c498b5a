"""Dot product: SIMD code for (k,) @ (k,) to one number, and stacks of them.

A unit of work is one number. If both vectors are contiguous, 256 bytes of scalars are accumulated
at a time, then 8 scalars at a time, then one by one. The accumulators are added by halves. So the
bits depend neither on the vector width nor on the thread count; they may depend on layouts, as
those of every product. A matrix times a vector is a stack of dot products, one per row. Products
along further contracted axes are added one by one.

>>> from tenfold.dtypes import FLOAT32
>>> print(DotProduct(Arithmetic(FLOAT32, 64), contiguous=(True, True), axes=1))
dot product x1 . x2 of float32, stack of 1 axes, elements beside each other
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tenfold.codegen.gemm.emitter import (
    ADDEND_NOTES,
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
from tenfold.core.structure import Structure

ACCUMULATED = 256
"""The bytes of scalars that are accumulated at once."""
TAIL_LANES = 8
"""The scalars of a packet after the 256-byte packets."""
LAYOUTS = {
    (True, True): "elements beside each other",
    (True, False): "any stride of x2",
    (False, True): "any stride of x1",
    (False, False): "any strides",
}


@dataclass(frozen=True)
class DotProduct:
    """SIMD code of products of vectors; `axes` is the number of stack axes."""

    arithmetic: Arithmetic
    contiguous: tuple[bool, bool]
    """Whether each vector is contiguous."""
    axes: int = 0
    conjugated: bool = False
    second_conjugated: bool = False
    sums: int = 0
    """The axes that are contracted besides k."""
    scaled: bool = False
    """Whether the product is multiplied by the first scalar of the launch."""
    addend: str = ""
    """"row": x3 is added times the second scalar, and may be the result; "": nothing is.

    The scalars of the launch are 16 bytes apart."""
    triangle: Structure = Structure.GENERAL
    """Of a triangular matrix, whose rows are units: LOWER or UPPER."""

    def __str__(self) -> str:
        x1, x2 = (
            f"conj({name})" if conjugated else name
            for name, conjugated in (("x1", self.conjugated), ("x2", self.second_conjugated))
        )
        layout, alpha = LAYOUTS[self.contiguous], "alpha * " * self.scaled
        product = f"{alpha}{x1} . {x2}{ADDEND_NOTES[self.addend]}"
        if self.triangle:
            layout = f"the {self.triangle} triangle"
        return (
            f"dot product {product} of {self.arithmetic.dtype}, "
            f"stack of {self.axes} axes, {layout}{contraction_note(self.sums)}"
        )

    @property
    def sizes(self) -> tuple[str, ...]:
        """Names of the launch sizes, in order; strides are in bytes."""
        stack = stack_sizes(self.axes, 2 + bool(self.addend))
        return (*stack, *sum_sizes(self.sums), "k", "stride of x1", "stride of x2")

    def text(self) -> str:
        """Return its LLVM module. Buffers are x1, x2, the contiguous result, and x3."""
        return DotEmitter(self).module()


class DotEmitter:
    """Emits the code of a DotProduct."""

    def __init__(self, kernel: DotProduct) -> None:
        self.kernel, self.arithmetic = kernel, kernel.arithmetic
        self.ir = ir = self.arithmetic.new_emitter()
        added = bool(kernel.addend)
        self.pointers = load_arguments(ir, "%buffers", 0, 3 + added)
        self.stack = read_stack(ir, kernel.axes, 2 + added)
        first_size = (3 + added) * kernel.axes
        self.sums = read_sums(ir, kernel.sums, first_size)
        self.length, *strides = load_arguments(ir, "%sizes", first_size + 3 * kernel.sums, 3)
        itemsize = self.arithmetic.dtype.itemsize
        self.strides: Sequence[str | int] = [
            itemsize if is_contiguous else stride
            for is_contiguous, stride in zip(kernel.contiguous, strides, strict=True)
        ]
        self.both_contiguous = all(kernel.contiguous)
        self.row_length = self.length

    def module(self) -> str:
        """Emit the module."""
        for_range(self.ir, "%begin", "%end", 1, self._unit)
        self.ir.line("ret i64 0")
        return module_text(self.ir, str(self.kernel))

    def _unit(self, index: str) -> None:
        ir, arithmetic = self.ir, self.arithmetic
        *pointers, addend = (
            *stack_pointers(ir, index, self.stack, [*self.pointers[:2], *self.pointers[3:]]),
            *([] if self.kernel.addend else [""]),
        )
        if self.kernel.triangle:
            pointers = self._clip_row(pointers, index)
        sums = self._contract_axes(pointers) if self.sums else self._contract_k(pointers)
        value = self._scale_and_add(sums, addend)
        result = strided_ptr(ir, self.pointers[2], index, arithmetic.dtype.itemsize)
        arithmetic.store(ir, value, result, arithmetic.components)

    def _clip_row(self, pointers: Sequence[str], row: str) -> list[str]:
        """Set the length of a row of the triangle; return the pointers to its first elements."""
        if self.kernel.triangle == Structure.LOWER:
            self.row_length = int_op(self.ir, "add", row, 1)
            return [*pointers]
        self.row_length = int_op(self.ir, "sub", self.length, row)
        pairs = zip(pointers, self.strides, strict=True)
        return [strided_ptr(self.ir, pointer, row, stride) for pointer, stride in pairs]

    def _scale_and_add(self, sums: Sequence[str], addend: str) -> str:
        """Combine the components of a number, scale it, and add the addend."""
        ir, arithmetic, kernel = self.ir, self.arithmetic, self.kernel
        lanes = arithmetic.components
        if kernel.second_conjugated:
            sums = [arithmetic.conjugate(ir, value, lanes) for value in sums]
        value = arithmetic.combine_components(ir, sums, lanes, kernel.conjugated)
        if kernel.scaled:
            alpha = arithmetic.broadcast_factors(ir, "%scalars", lanes)
            value = arithmetic.scale(ir, value, alpha, lanes)
        if not addend:
            return value
        beta = arithmetic.broadcast_factors(ir, offset_ptr(ir, "%scalars", 16), lanes)
        scaled = arithmetic.scale(ir, arithmetic.load(ir, addend, lanes), beta, lanes)
        return arithmetic.add(ir, value, scaled, lanes)

    def _contract_axes(self, pointers: Sequence[str]) -> list[str]:
        """Add the products along k over the other contracted axes."""
        ir, arithmetic = self.ir, self.arithmetic
        components = arithmetic.components
        type_ = llvm_type(arithmetic.sum_dtype, components)

        def add_index(index: str, *totals: str) -> Sequence[str]:
            sums = self._contract_k(stack_pointers(ir, index, self.sums, pointers))
            pairs = zip(totals, sums, strict=True)
            updated = [arithmetic.add(ir, total, term, components) for total, term in pairs]
            return [int_op(ir, "add", index, 1), *updated]

        initial = [("i64", "0"), *[(type_, zeros(arithmetic.sum_dtype, components))] * components]
        return carry_loop(ir, contraction_count(ir, self.sums), initial, add_index)[1:]

    def _contract_k(self, pointers: Sequence[str]) -> list[str]:
        """Accumulate along k in fewer and fewer lanes, one accumulator for each component of the
        first factor.
        """
        arithmetic, components = self.arithmetic, self.arithmetic.components
        lanes = ACCUMULATED // arithmetic.sum_dtype.itemsize if self.both_contiguous else TAIL_LANES
        sums = [zeros(arithmetic.sum_dtype, lanes)] * components
        pointers, sums, processed = self._accumulate_packets(pointers, sums, "0", lanes)
        if self.both_contiguous:
            sums = [self._reduce_by_halves(value, lanes, TAIL_LANES) for value in sums]
            pointers, sums, processed = self._accumulate_packets(
                pointers, sums, processed, TAIL_LANES
            )
        sums = [self._reduce_by_halves(value, TAIL_LANES, components) for value in sums]
        return self._accumulate_packets(pointers, sums, processed, components)[1]

    def _accumulate_packets(
        self, pointers: Sequence[str], sums: Sequence[str], processed: str, lanes: int
    ) -> tuple[list[str], list[str], str]:
        """Accumulate full packets of `lanes` lanes of the remaining elements."""
        ir, elements = self.ir, lanes // self.arithmetic.components
        type_ = llvm_type(self.arithmetic.sum_dtype, lanes)
        remaining = int_op(ir, "sub", self.row_length, processed)
        rounds = int_op(ir, "udiv", remaining, elements)

        def multiply_packet(x1: str, x2: str, *totals: str) -> Sequence[str]:
            updated = self._multiply_add(x1, x2, totals, lanes)
            next_pointers = [
                strided_ptr(ir, pointer, str(elements), stride)
                for pointer, stride in zip((x1, x2), self.strides, strict=True)
            ]
            return [*next_pointers, *updated]

        carried = [("ptr", pointer) for pointer in pointers] + [(type_, value) for value in sums]
        results = carry_loop(ir, rounds, carried, multiply_packet)
        processed = int_op(ir, "add", processed, int_op(ir, "mul", rounds, elements))
        return results[:2], results[2:], processed

    def _multiply_add(self, x1: str, x2: str, totals: Sequence[str], lanes: int) -> list[str]:
        ir, arithmetic = self.ir, self.arithmetic
        left, right = (
            self._load(pointer, stride, lanes)
            for pointer, stride in zip((x1, x2), self.strides, strict=True)
        )
        type_ = llvm_type(arithmetic.sum_dtype, lanes)
        updated = []
        for component, total in enumerate(totals):
            factor = left
            if arithmetic.components == 2:  # its real or its imaginary part, in both lanes
                order = ", ".join(f"i32 {lane - lane % 2 + component}" for lane in range(lanes))
                factor = ir.value(
                    f"shufflevector {type_} {left}, {type_} poison, <{lanes} x i32> <{order}>"
                )
            updated.append(arithmetic.multiply_add(ir, total, factor, right, lanes))
        return updated

    def _load(self, pointer: str, stride: str | int, lanes: int) -> str:
        """Load a packet of scalars of elements with a stride in bytes, and widen it."""
        ir, arithmetic = self.ir, self.arithmetic
        if isinstance(stride, int) or lanes == arithmetic.components:
            return arithmetic.load(ir, pointer, lanes)
        type_, scalar = (
            llvm_type(arithmetic.scalar_dtype, lanes),
            llvm_type(arithmetic.scalar_dtype, 1),
        )
        packet = zeros(arithmetic.scalar_dtype, lanes)
        for lane in range(lanes):
            element, component = divmod(lane, arithmetic.components)
            scalar_pointer = strided_ptr(ir, pointer, str(element), stride)
            scalar_pointer = offset_ptr(
                ir, scalar_pointer, component * arithmetic.scalar_dtype.itemsize
            )
            value = ir.value(f"load {scalar}, ptr {scalar_pointer}, align 1")
            packet = ir.value(f"insertelement {type_} {packet}, {scalar} {value}, i64 {lane}")
        return arithmetic.widen(ir, packet, lanes)

    def _reduce_by_halves(self, value: str, lanes: int, target_lanes: int) -> str:
        """Add the lanes of a packet by halves until `target_lanes` are left."""
        ir, arithmetic = self.ir, self.arithmetic
        while lanes > target_lanes:
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
