"""GEMM emitter: the arithmetic, loops and stack addressing that all SIMD product code shares.

Input: an element type and the bytes of a vector register. Output: LLVM text. Products accumulate in
a wider dtype, `sum_dtype`: halves in float32, 8-bit integers in 16 bits (their sum is the same
modulo 256), a bool as a byte of 0 or 1 with `and` and `or`. A complex number is two adjacent
scalars. A packet of them is multiplied by the real and by the imaginary part of the other factor,
in two accumulators that are combined at the end.

Every sum over k runs in increasing order in one accumulator. So its bits depend neither on
blocking, nor on the thread count, nor on the vector width.

>>> from tenfold.dtypes import FLOAT32
>>> arithmetic = Arithmetic(FLOAT32, 64)
>>> text = SimdEmitter()
>>> arithmetic.multiply_add(text, "%sum", "%x", "%y", 16)
'%v0'
>>> print(text)
  %v0 = call <16 x float> @llvm.fma.v16f32(<16 x float> %x, <16 x float> %y, <16 x float> %sum)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from tenfold.codegen.llvm.function_emitter import HEADER
from tenfold.codegen.llvm.loop_emitter import carried_loop, int_op
from tenfold.codegen.llvm.simd_emitter import Packet, SimdEmitter, intrinsic_suffix, llvm_type
from tenfold.core.cached_property import cached
from tenfold.core.scalar_ir import Instruction
from tenfold.dtypes import BOOL, DTYPES, REAL_DTYPES, kind_of
from tenfold.schedule.product_choice import SUM_DTYPES


@dataclass(frozen=True)
class Arithmetic:
    """How elements of a dtype are loaded, multiplied, added and stored, `width` bytes a register.

    Registers of 64 bytes come in 32, narrower ones in 16; those of 16 bytes have no fma.
    """

    dtype: np.dtype
    width: int

    @cached
    def scalar_dtype(self) -> np.dtype:
        """The dtype of a scalar in memory; a complex element has two scalars."""
        return DTYPES["uint8"] if self.dtype == BOOL else REAL_DTYPES.get(self.dtype, self.dtype)

    @cached
    def sum_dtype(self) -> np.dtype:
        """The dtype of the accumulators."""
        return (
            self.scalar_dtype
            if self.dtype == BOOL
            else SUM_DTYPES.get(self.scalar_dtype, self.scalar_dtype)
        )

    @property
    def components(self) -> int:
        """The scalars of an element, and the accumulators of a packet of sums."""
        return self.dtype.itemsize // self.scalar_dtype.itemsize

    @property
    def register_lanes(self) -> int:
        """The accumulated scalars of a full register."""
        return self.width // self.sum_dtype.itemsize

    def new_emitter(self) -> SimdEmitter:
        """Return an empty emitter for a processor with such registers."""
        return SimdEmitter(baseline=self.width == 16)

    @property
    def register_count(self) -> int:
        """The vector registers of the processor."""
        return 32 if self.width == 64 else 16

    @property
    def has_masks(self) -> bool:
        """Whether the processor loads and stores packets of these scalars with masks."""
        return self.width == 64 or (self.width == 32 and self.scalar_dtype.itemsize >= 4)

    def load(self, ir: SimdEmitter, pointer: str, lanes: int, mask: str | None = None) -> str:
        """Load contiguous scalars, 0 outside the mask, and widen them."""
        type_ = llvm_type(self.scalar_dtype, lanes)
        if mask is None or lanes == 1:
            loaded = ir.value(f"load {type_}, ptr {pointer}, align 1")
        else:
            name = f"llvm.masked.load.{intrinsic_suffix(self.scalar_dtype, lanes)}.p0"
            masked = [(f"<{lanes} x i1>", mask), (type_, "zeroinitializer")]
            loaded = ir.intrinsic(name, type_, [("ptr", pointer), ("i32", "1"), *masked])
        return self.widen(ir, loaded, lanes)

    def widen(self, ir: SimdEmitter, value: str, lanes: int) -> str:
        """Convert scalars from the dtype in memory to the accumulator dtype."""
        return _convert(ir, value, self.scalar_dtype, self.sum_dtype, lanes)

    def narrow(self, ir: SimdEmitter, value: str, lanes: int) -> str:
        """Convert sums to the dtype in memory: halves are rounded here, once."""
        return _convert(ir, value, self.sum_dtype, self.scalar_dtype, lanes)

    def broadcast_factors(self, ir: SimdEmitter, element: str, lanes: int) -> list[str]:
        """Load an element of the first operand; each of its scalars is broadcast to a packet."""
        pointers = (
            offset_ptr(ir, element, component * self.scalar_dtype.itemsize)
            for component in range(self.components)
        )
        scalars = [Packet(self.load(ir, pointer, 1), self.sum_dtype, 1) for pointer in pointers]
        return [ir.broadcast(scalar, lanes) for scalar in scalars]

    def multiply_add(self, ir: SimdEmitter, total: str, x: str, y: str, lanes: int) -> str:
        """Add the products of two packets of scalars to a packet of sums."""
        type_ = llvm_type(self.sum_dtype, lanes)
        if kind_of(self.sum_dtype) == "f" and self.width > 16:
            name = f"llvm.fma.{intrinsic_suffix(self.sum_dtype, lanes)}"
            return ir.intrinsic(name, type_, [(type_, x), (type_, y), (type_, total)])
        multiply, _ = self._operations
        return self.add(ir, total, ir.value(f"{multiply} {type_} {x}, {y}"), lanes)

    def add(self, ir: SimdEmitter, x: str, y: str, lanes: int) -> str:
        """Add two packets of sums."""
        return ir.value(f"{self._operations[1]} {llvm_type(self.sum_dtype, lanes)} {x}, {y}")

    @property
    def _operations(self) -> tuple[str, str]:
        if self.dtype == BOOL:
            return "and", "or"
        return ("fmul", "fadd") if kind_of(self.sum_dtype) == "f" else ("mul", "add")

    def combine_components(
        self, ir: SimdEmitter, sums: Sequence[str], lanes: int, conjugated: bool
    ) -> str:
        """Combine the accumulators into one packet of sums; real sums have one accumulator.

        Complex sums have two, of re(x) * y and of im(x) * y. The second is multiplied by i, or by
        -i if x is conjugated.
        """
        if self.components == 1:
            return sums[0]
        type_ = llvm_type(self.sum_dtype, lanes)
        order = ", ".join(f"i32 {lane ^ 1}" for lane in range(lanes))
        swapped = ir.value(
            f"shufflevector {type_} {sums[1]}, {type_} poison, <{lanes} x i32> <{order}>"
        )
        negated = ir.value(f"fneg {type_} {swapped}")
        odd = ", ".join(f"i1 {'true' if lane % 2 else 'false'}" for lane in range(lanes))
        real, imaginary = (swapped, negated) if conjugated else (negated, swapped)
        rotated = ir.value(f"select <{lanes} x i1> <{odd}>, {type_} {imaginary}, {type_} {real}")
        return self.add(ir, sums[0], rotated, lanes)

    def conjugate(self, ir: SimdEmitter, value: str, lanes: int) -> str:
        """Conjugate the elements of a packet: the second of two scalars is negated."""
        if self.components == 1:
            return value
        type_ = llvm_type(self.sum_dtype, lanes)
        odd = ", ".join(f"i1 {'true' if lane % 2 else 'false'}" for lane in range(lanes))
        negated = ir.value(f"fneg {type_} {value}")
        return ir.value(f"select <{lanes} x i1> <{odd}>, {type_} {negated}, {type_} {value}")

    def scale(self, ir: SimdEmitter, value: str, factors: Sequence[str], lanes: int) -> str:
        """Multiply a packet by an element, given its broadcast components."""
        type_ = llvm_type(self.sum_dtype, lanes)
        products = [ir.value(f"fmul {type_} {value}, {factor}") for factor in factors]
        return self.combine_components(ir, products, lanes, conjugated=False)

    def store(
        self, ir: SimdEmitter, value: str, pointer: str, lanes: int, mask: str | None = None
    ) -> None:
        """Round sums to the dtype and store them contiguously, where the mask holds."""
        type_, narrow = llvm_type(self.scalar_dtype, lanes), self.narrow(ir, value, lanes)
        if mask is None or lanes == 1:
            ir.line(f"store {type_} {narrow}, ptr {pointer}, align 1")
            return
        name = f"llvm.masked.store.{intrinsic_suffix(self.scalar_dtype, lanes)}.p0"
        masked = [("i32", "1"), (f"<{lanes} x i1>", mask)]
        ir.intrinsic(name, "void", [(type_, narrow), ("ptr", pointer), *masked])


def _convert(ir: SimdEmitter, value: str, source: np.dtype, target: np.dtype, lanes: int) -> str:
    if source == target:
        return value
    packet = Packet(value, source, lanes)
    return ir.emit(Instruction("convert", target, (0,)), {0: packet}, lanes).text


def zeros(dtype: np.dtype, lanes: int) -> str:
    """Return the literal of a packet of zeros."""
    return "zeroinitializer" if lanes > 1 else ("0.0" if kind_of(dtype) == "f" else "0")


def offset_ptr(ir: SimdEmitter, pointer: str, *offsets: str | int) -> str:
    """Return a pointer plus offsets in bytes."""
    for offset in offsets:
        if offset not in (0, "0"):
            pointer = ir.value(f"getelementptr i8, ptr {pointer}, i64 {offset}")
    return pointer


def strided_ptr(ir: SimdEmitter, pointer: str, index: str, stride: str | int) -> str:
    """Return a pointer plus index times a stride in bytes."""
    return offset_ptr(ir, pointer, int_op(ir, "mul", index, stride))


def carry_loop(
    ir: SimdEmitter,
    end: str,
    carried: Sequence[tuple[str, str]],
    body: Callable[..., Sequence[str]],
) -> list[str]:
    """Emit a loop of `end` iterations with carried values, given as (LLVM type, initial value).

    `body` gets the carried values and returns their next values. Return the final ones.
    """
    index = ir.name()
    names = [ir.name() for _ in carried]
    values = [(name, *first) for name, first in zip(names, carried, strict=True)]

    def next_values() -> Sequence[str]:
        return (int_op(ir, "add", index, 1), *body(*names))

    is_below = partial(ir.value, f"icmp slt i64 {index}, {end}")
    carried_loop(ir, index[1:], [(index, "i64", "0"), *values], is_below, next_values)
    return names


def if_else(
    ir: SimdEmitter, condition: str, then_body: Callable[[], None], else_body: Callable[[], None]
) -> None:
    """Emit an if-else on an i1."""
    name = ir.name()[1:]
    ir.line(f"br i1 {condition}, label %{name}.then, label %{name}.else")
    for branch, body in (("then", then_body), ("else", else_body)):
        ir.label(f"{name}.{branch}")
        body()
        ir.line(f"br label %{name}.after")
    ir.label(f"{name}.after")


def load_arguments(ir: SimdEmitter, table: str, first: int, count: int) -> list[str]:
    """Load entries of the table of sizes (i64) or of buffers (pointers)."""
    type_ = "i64" if table == "%sizes" else "ptr"
    slots = [ir.value(f"getelementptr i64, ptr {table}, i64 {first + i}") for i in range(count)]
    return [ir.value(f"load {type_}, ptr {slot}") for slot in slots]


def stack_sizes(axes: int, operands: int = 2) -> tuple[str, ...]:
    """Names of the launch sizes of a stack, axis by axis, the slowest first."""
    return tuple(
        name
        for axis in range(axes)
        for name in (f"length {axis}", *(f"stride {axis} of x{i + 1}" for i in range(operands)))
    )


def stack_pointers(
    ir: SimdEmitter, index: str, stack: Sequence[Sequence[str]], pointers: Sequence[str]
) -> list[str]:
    """Return pointers to the operands at an index of the stack.

    `stack` has for each axis, the slowest first, its length and its strides in bytes.
    """
    offset_pointers = list(pointers)
    for axis, (length, *strides) in reversed(list(enumerate(stack))):
        digit = index
        if axis:
            digit = int_op(ir, "urem", index, length)
            index = int_op(ir, "udiv", index, length)
        offset_pointers = [
            strided_ptr(ir, p, digit, s) for p, s in zip(offset_pointers, strides, strict=True)
        ]
    return offset_pointers


ADDEND_NOTES = {"": "", "row": " + beta * x3", "any": " + beta * x3 by any strides"}
"""The description of an addend, by its layout."""


def addend_sizes(layout: str) -> tuple[str, ...]:
    """Names of the launch sizes of an addend: the row stride, and the column stride if it is not
    that of contiguous rows.
    """
    return {"": (), "row": ("row of x3",), "any": ("row of x3", "column of x3")}[layout]


def read_stack(ir: SimdEmitter, axes: int, operands: int = 2) -> list[list[str]]:
    """Load the sizes of `stack_sizes`, for `stack_pointers`."""
    per_axis = 1 + operands
    values = load_arguments(ir, "%sizes", 0, per_axis * axes)
    return [values[per_axis * axis : per_axis * (axis + 1)] for axis in range(axes)]


def sum_sizes(axes: int) -> tuple[str, ...]:
    """Names of the launch sizes of the contracted axes besides k."""
    names = ("length", "stride of x1", "stride of x2")
    return tuple(f"{name} of sum {axis}" for axis in range(axes) for name in names)


def read_sums(ir: SimdEmitter, axes: int, first_size: int) -> list[list[str]]:
    """Load the sizes of `sum_sizes`, for `stack_pointers`; `first_size` is their index."""
    values = load_arguments(ir, "%sizes", first_size, 3 * axes)
    return [values[3 * axis : 3 * axis + 3] for axis in range(axes)]


def contraction_count(ir: SimdEmitter, axes: Sequence[Sequence[str]]) -> str:
    """Return the product of the lengths of axes loaded by `read_sums`."""
    count = "1"
    for length, *_ in axes:
        count = int_op(ir, "mul", count, length)
    return count


def contraction_note(axes: int) -> str:
    """Describe the number of contracted axes besides k, if there are any."""
    return f", summed over {axes} more" if axes else ""


def module_text(ir: SimdEmitter, description: str) -> str:
    """Return the LLVM module of a kernel whose lines are in `ir`."""
    comment = [f"; {line}" for line in description.splitlines()]
    constants = [f"{name} = private constant {value}" for name, value in ir.globals.items()]
    entry = [f"  {line}" for line in ir.entry]
    lines = [f"define i64 @kernel({HEADER}) {{", "entry:", *entry, str(ir), "}"]
    return "\n".join(
        [*comment, *constants, *ir.functions.values(), *lines, *ir.declarations.values(), ""]
    )
