"""SIMD emitter: LLVM text for the instructions of a body, a vector of `lanes` elements at a time.

Input: instructions. Output: lines of LLVM IR. A packet may be wider than a register: LLVM splits
it, and so interleaves independent instructions. A uniform value (a parameter, a finished fold)
stays a scalar and is broadcast when a packet needs it. A bool is i1 in registers and a byte in
memory; halves are their bits, i16.

>>> from tenfold.dtypes import FLOAT32
>>> from tenfold.core.scalar_ir import Body
>>> body = Body()
>>> y = body.load(0, FLOAT32) + 1.5
>>> ir = SimdEmitter()
>>> values = {0: Packet("%x", FLOAT32, 8)}
>>> for position, instruction in enumerate(body.instructions):
...     if position not in values:
...         values[position] = ir.emit(instruction, values, 8)
>>> print(ir)
  %v0 = fadd <8 x float> %x, splat (float 0x3FF8000000000000)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from tenfold.core.scalar_ir import Body, Element, Instruction
from tenfold.dtypes import BFLOAT16, BOOL, DTYPES, FLOAT16, FLOAT32, FLOAT64, HALF_DTYPES, kind_of

# Table.
SCALARS = {BOOL: "i1", FLOAT16: "i16", BFLOAT16: "i16", FLOAT32: "float", FLOAT64: "double"} | {
    dtype: f"i{8 * dtype.itemsize}" for dtype in DTYPES.values() if kind_of(dtype) in "iu"
}
FLOATS = {"add": "fadd", "subtract": "fsub", "multiply": "fmul", "divide": "fdiv"}
INTEGERS = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "and": "and",
    "or": "or",
    "xor": "xor",
    "shift_left": "shl",
}
INTRINSICS = {
    "absolute": "fabs",
    "sqrt": "sqrt",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "rint": "roundeven",
    "copysign": "copysign",
    "fma": "fma",
}
PREDICATES = {"equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le"}


DTypes = tuple[np.dtype, ...]
"""Those of the operands of an instruction."""
Texts = tuple[str, ...]
"""The texts of the operands of an instruction."""


class Packet(NamedTuple):
    """A value in a register: its name or literal, its dtype, its lanes (1: uniform)."""

    text: str
    dtype: np.dtype
    lanes: int


def llvm_type(dtype: np.dtype, lanes: int) -> str:
    """Return the LLVM type of a packet in a register."""
    scalar = SCALARS[dtype]
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def literal(dtype: np.dtype, data: object) -> str:
    """Return a constant's data (a bool, an int, the bits of a float) as a scalar LLVM literal."""
    assert isinstance(data, int), "a constant carries an int"
    if dtype == BOOL:
        return "true" if data else "false"
    if dtype == FLOAT32:
        value = np.asarray(data, np.uint32).view(np.float32)
        if np.isnan(value):  # payload and sign move to their bits in a double
            bits = (data >> 31 << 63) | (0x7FF << 52) | ((data & 0x7FFFFF) << 29)
        else:
            bits = int(value.astype(np.float64).view(np.uint64))
        return f"0x{bits:016X}"
    return f"0x{data:016X}" if dtype == FLOAT64 else str(data)


class SimdEmitter:
    """The lines of one function, its value names and the intrinsics it declares."""

    def __init__(self, *, baseline: bool = False, masks: int = 1) -> None:
        self.baseline = baseline
        """Whether to replace instructions as in codegen/llvm/legacy_isa.py."""
        self.masks = masks
        """The bytes of the smallest elements with masked loads and stores."""
        self.lines: list[str] = []
        self.entry: list[str] = []
        """Lines of the entry block: allocas."""
        self.declarations: dict[str, str] = {}
        self.globals: dict[str, str] = {}
        self.functions: dict[str, str] = {}
        self.block = "entry"
        self.value_cache: dict[tuple[str, str, str], str] = {}
        self._count = 0

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def name(self) -> str:
        """Return an unused name."""
        self._count += 1
        return f"%v{self._count - 1}"

    def line(self, instruction: str) -> None:
        """Add an instruction without a result."""
        self.lines.append(f"  {instruction}")

    def alloca(self, bytes_: int) -> str:
        """Allocate stack memory, 64-byte aligned, and return its pointer."""
        name = self.name()
        self.entry.append(f"{name} = alloca i8, i64 {bytes_}, align 64")
        return name

    def label(self, name: str) -> None:
        """Begin a block, and clear the cache: values of other blocks may not dominate it."""
        self.lines.append(f"{name}:")
        self.block = name
        self.value_cache.clear()

    def value(self, instruction: str) -> str:
        """Add an instruction and return the name of its result."""
        name = f"%v{self._count}"
        self._count += 1
        self.lines.append(f"  {name} = {instruction}")
        return name

    def intrinsic(self, name: str, result: str, arguments: list[tuple[str, str]]) -> str:
        """Emit a call of an LLVM intrinsic, given (type, value) of each argument."""
        if name not in self.declarations:
            types = ", ".join([type_ for type_, _ in arguments])
            self.declarations[name] = f"declare {result} @{name}({types})"
        values = ", ".join(map(" ".join, arguments))
        call = f"call {result} @{name}({values})"
        if result == "void":
            self.line(call)
            return ""
        return self.value(call)

    def broadcast(self, packet: Packet, lanes: int) -> str:
        """Return the text of a packet with `lanes` lanes; a scalar is broadcast."""
        if packet.lanes == lanes:
            return packet.text
        assert packet.lanes == 1, "only a scalar can be broadcast"
        scalar, vector = llvm_type(packet.dtype, 1), llvm_type(packet.dtype, lanes)
        if not packet.text.startswith("%"):
            return f"splat ({scalar} {packet.text})"
        cached = self.value_cache.get(("spread", packet.text, vector))
        if cached is None:
            inserted = self.value(f"insertelement {vector} poison, {scalar} {packet.text}, i64 0")
            zeros = f"<{lanes} x i32> zeroinitializer"
            cached = self.value(f"shufflevector {vector} {inserted}, {vector} poison, {zeros}")
            self.value_cache["spread", packet.text, vector] = cached
        return cached

    def emit(self, instruction: Instruction, values: Mapping[int, Packet], lanes: int) -> Packet:
        """Emit a primitive on packets; it is a scalar if all its inputs are."""
        dtype = instruction.dtype
        if instruction.name == "constant":
            return Packet(literal(dtype, instruction.data), dtype, 1)
        inputs = list(map(values.__getitem__, instruction.inputs))
        if instruction.name == "rare":
            return self._emit_rare(instruction, inputs)
        if instruction.name == "table":
            return self._emit_table(instruction, inputs[0])
        if self.baseline:
            from tenfold.codegen.llvm.legacy_isa import legacy_formula

            formula = legacy_formula(instruction, inputs[0].dtype)
            if formula is not None and FLOAT16 in (dtype, inputs[0].dtype):
                return self._call_formula(formula, inputs[0], dtype)
            if formula is not None:
                return self.inline(formula, inputs[0])
        texts, dtypes, counts = zip(*inputs, strict=True)
        width = 1 if max(counts) == 1 else lanes
        if counts.count(width) < len(counts):
            texts = tuple([self.broadcast(packet, width) for packet in inputs])
        result = _PRIMITIVES.get(instruction.name, _arithmetic)(
            self, instruction.name, dtypes, texts, dtype, width
        )
        return Packet(result, dtype, width)

    def inline(self, formula: Callable[[Body, Element], Element], x: Packet) -> Packet:
        """Emit a formula of one packet."""
        body = Body()
        root = formula(body, body.load(0, x.dtype))
        values: dict[int, Packet] = {}
        for position, instruction in enumerate(body.instructions):
            values[position] = (
                x if instruction.name == "load" else self.emit(instruction, values, x.lanes)
            )
        return values[root.position]

    def _call_formula(
        self, formula: Callable[[Body, Element], Element], x: Packet, dtype: np.dtype
    ) -> Packet:
        """Call a function of a formula of one packet: halves need it at every operation."""
        name = f"convert.{x.dtype}.{dtype}.x{x.lanes}"
        from_, to = llvm_type(x.dtype, x.lanes), llvm_type(dtype, x.lanes)
        if name not in self.functions:
            inner = SimdEmitter(baseline=True)
            inner.declarations = self.declarations
            result = inner.inline(formula, x._replace(text="%x"))
            inner.line(f"ret {to} {result.text}")
            head = f"define internal {to} @{name}({from_} %x) noinline"
            self.functions[name] = f"{head} {{\nentry:\n{inner}\n}}"
        return x._replace(text=self.value(f"call {to} @{name}({from_} {x.text})"), dtype=dtype)

    def _emit_rare(self, instruction: Instruction, inputs: list[Packet]) -> Packet:
        """Emit a formula that is called only if a lane of the packet needs it."""
        lanes = max(packet.lanes for packet in inputs)
        condition, usual, *operands = (self.broadcast(packet, lanes) for packet in inputs)
        dtype, type_ = instruction.dtype, llvm_type(instruction.dtype, lanes)
        name = _rare_function(self, instruction, [packet.dtype for packet in inputs[2:]], lanes)
        slow_label, after_label = self.name()[1:], self.name()[1:]
        any_lane = condition
        if lanes > 1:
            mask = llvm_type(BOOL, lanes)
            any_lane = self.intrinsic(
                f"llvm.vector.reduce.or.v{lanes}i1", "i1", [(mask, condition)]
            )
        self.line(f"br label %{slow_label}.test")
        self.label(f"{slow_label}.test")
        self.line(f"br i1 {any_lane}, label %{slow_label}, label %{after_label}")
        self.label(slow_label)
        types = [llvm_type(packet.dtype, lanes) for packet in inputs[2:]]
        arguments = ", ".join(f"{t} {v}" for t, v in zip(types, operands, strict=True))
        called = self.value(f"call {type_} @{name}({arguments})")
        mask = llvm_type(BOOL, lanes)
        selected = self.value(f"select {mask} {condition}, {type_} {called}, {type_} {usual}")
        self.line(f"br label %{after_label}")
        self.label(after_label)
        merged = self.value(
            f"phi {type_} [ {usual}, %{slow_label}.test ], [ {selected}, %{slow_label} ]"
        )
        return Packet(merged, dtype, lanes)

    def _emit_table(self, instruction: Instruction, position: Packet) -> Packet:
        dtype, lanes = instruction.dtype, position.lanes
        assert isinstance(instruction.data, tuple), "a table carries its values"
        scalar = SCALARS[dtype]
        entries = ", ".join(f"{scalar} {literal(dtype, value)}" for value in instruction.data)
        content = f"[{len(instruction.data)} x {scalar}] [{entries}]"
        existing = {text: name for name, text in self.globals.items()}
        name = existing.get(content, f"@table.{len(self.globals)}")
        self.globals[name] = content
        if lanes == 1:
            pointer = self.value(f"getelementptr {scalar}, ptr {name}, i64 {position.text}")
            return Packet(self.value(f"load {scalar}, ptr {pointer}"), dtype, 1)
        pointers = self.value(
            f"getelementptr {scalar}, ptr {name}, <{lanes} x i64> {position.text}"
        )
        type_ = llvm_type(dtype, lanes)
        mask = llvm_type(BOOL, lanes)
        gathered = self.intrinsic(
            f"llvm.masked.gather.{intrinsic_suffix(dtype, lanes)}.v{lanes}p0",
            type_,
            [
                (f"<{lanes} x ptr>", pointers),
                ("i32", str(dtype.itemsize)),
                (mask, "splat (i1 true)"),
                (type_, "zeroinitializer"),
            ],
        )
        return Packet(gathered, dtype, lanes)


def _rare_function(
    ir: SimdEmitter, instruction: Instruction, dtypes: list[np.dtype], lanes: int
) -> str:
    """Return the name of the function of a formula, one per dtypes and lanes."""
    from tenfold.codegen.vecmath import (
        FORMULAS,
        expand_formulas,
    )  # the formulas are made of primitives

    assert isinstance(instruction.data, str), "a rare formula has a name"
    name = f"{instruction.data}.{'.'.join(map(str, dtypes))}.x{lanes}"
    if name in ir.functions:
        return name
    ir.functions[name] = ""
    body = Body()
    loads = [body.load(i, dtype) for i, dtype in enumerate(dtypes)]
    result = FORMULAS[instruction.data](body, *loads)
    body, (root,) = expand_formulas(body, [result.position])
    inner = SimdEmitter(baseline=ir.baseline)
    inner.globals, inner.functions, inner.declarations = ir.globals, ir.functions, ir.declarations
    values: dict[int, Packet] = {}
    for position, step in enumerate(body.instructions):
        if step.name == "load":
            values[position] = Packet(f"%a{step.data}", step.dtype, lanes)
        else:
            values[position] = inner.emit(step, values, lanes)
    type_ = llvm_type(instruction.dtype, lanes)
    inner.line(f"ret {type_} {inner.broadcast(values[root], lanes)}")
    arguments = ", ".join(f"{llvm_type(dtype, lanes)} %a{i}" for i, dtype in enumerate(dtypes))
    ir.functions[name] = (
        f"define internal {type_} @{name}({arguments}) noinline cold {{\nentry:\n{inner}\n}}"
    )
    return name


def _arithmetic(
    ir: SimdEmitter, name: str, _: DTypes, inputs: Texts, dtype: np.dtype, lanes: int
) -> str:
    type_ = llvm_type(dtype, lanes)
    if kind_of(dtype) == "f" and name in FLOATS:
        return ir.value(f"{FLOATS[name]} {type_} {inputs[0]}, {inputs[1]}")
    if name == "negative":
        return ir.value(f"fneg {type_} {inputs[0]}")
    if name in INTRINSICS:
        full = f"llvm.{INTRINSICS[name]}.{intrinsic_suffix(dtype, lanes)}"
        return ir.intrinsic(full, type_, [(type_, value) for value in inputs])
    assert kind_of(dtype) in "biu", f"{name} of {dtype} is not a primitive"
    return ir.value(f"{INTEGERS[name]} {type_} {inputs[0]}, {inputs[1]}")


def intrinsic_suffix(dtype: np.dtype, lanes: int, *, memory: bool = False) -> str:
    """Return the suffix of a type in the name of an intrinsic."""
    stored = "i8" if memory and dtype == BOOL else SCALARS[dtype]
    scalar = {"float": "f32", "double": "f64"}.get(stored, stored)
    return scalar if lanes == 1 else f"v{lanes}{scalar}"


def _shift_right(
    ir: SimdEmitter, _: str, __: DTypes, inputs: Texts, dtype: np.dtype, lanes: int
) -> str:
    operation = "ashr" if kind_of(dtype) == "i" else "lshr"
    return ir.value(f"{operation} {llvm_type(dtype, lanes)} {inputs[0]}, {inputs[1]}")


def _compare(
    ir: SimdEmitter, name: str, dtypes: DTypes, inputs: Texts, _: np.dtype, lanes: int
) -> str:
    kind, type_ = kind_of(dtypes[0]), llvm_type(dtypes[0], lanes)
    condition = PREDICATES[name]
    if kind == "f":
        return ir.value(
            f"fcmp {'u' if name == 'not_equal' else 'o'}{condition} {type_} {inputs[0]}, "
            f"{inputs[1]}"
        )
    ordered = "" if condition in ("eq", "ne") else ("s" if kind == "i" else "u")
    return ir.value(f"icmp {ordered}{condition} {type_} {inputs[0]}, {inputs[1]}")


def _select(ir: SimdEmitter, _: str, __: DTypes, inputs: Texts, dtype: np.dtype, lanes: int) -> str:
    condition, type_ = llvm_type(BOOL, lanes), llvm_type(dtype, lanes)
    return ir.value(f"select {condition} {inputs[0]}, {type_} {inputs[1]}, {type_} {inputs[2]}")


def _bits(
    ir: SimdEmitter,
    _: str,
    dtypes: DTypes,
    inputs: Texts,
    dtype: np.dtype,
    lanes: int,
) -> str:
    if SCALARS[dtypes[0]] == SCALARS[dtype]:
        return inputs[0]
    return ir.value(
        f"bitcast {llvm_type(dtypes[0], lanes)} {inputs[0]} to {llvm_type(dtype, lanes)}"
    )


def _convert(
    ir: SimdEmitter,
    _: str,
    dtypes: DTypes,
    inputs: Texts,
    dtype: np.dtype,
    lanes: int,
) -> str:
    source, (value,) = dtypes[0], inputs
    from_, to = llvm_type(source, lanes), llvm_type(dtype, lanes)
    if source in HALF_DTYPES:
        return _widen_half(ir, source, value, lanes)
    if dtype in HALF_DTYPES:
        return _narrow_half(ir, dtype, value, lanes)
    kinds = kind_of(source), kind_of(dtype)
    if kinds == ("f", "f"):
        operation = "fpext" if dtype.itemsize > source.itemsize else "fptrunc"
    elif kinds[0] == "f":
        # frozen: an out-of-range result is poison, which must not propagate
        operation = "fptosi" if kinds[1] == "i" else "fptoui"
        return ir.value(f"freeze {to} {ir.value(f'{operation} {from_} {value} to {to}')}")
    elif kinds[1] == "f":
        operation = "sitofp" if kinds[0] == "i" else "uitofp"
    elif from_ == to:
        return value
    elif source != BOOL and dtype.itemsize < source.itemsize:
        operation = "trunc"
    else:
        operation = "sext" if kinds[0] == "i" else "zext"
    return ir.value(f"{operation} {from_} {value} to {to}")


def _vector(scalar: str, lanes: int) -> str:
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def _constant(scalar: str, value: int, lanes: int) -> str:
    return str(value) if lanes == 1 else f"splat ({scalar} {value})"


def _widen_half(ir: SimdEmitter, source: np.dtype, value: str, lanes: int) -> str:
    bits, wide, to = _vector("i16", lanes), _vector("i32", lanes), _vector("float", lanes)
    if source == FLOAT16:
        half = ir.value(f"bitcast {bits} {value} to {_vector('half', lanes)}")
        return ir.value(f"fpext {_vector('half', lanes)} {half} to {to}")
    extended = ir.value(f"zext {bits} {value} to {wide}")
    shifted = ir.value(f"shl {wide} {extended}, {_constant('i32', 16, lanes)}")
    return ir.value(f"bitcast {wide} {shifted} to {to}")


def _narrow_half(ir: SimdEmitter, dtype: np.dtype, value: str, lanes: int) -> str:
    bits, wide, from_ = _vector("i16", lanes), _vector("i32", lanes), _vector("float", lanes)
    if dtype == FLOAT16:
        half = ir.value(f"fptrunc {from_} {value} to {_vector('half', lanes)}")
        return ir.value(f"bitcast {_vector('half', lanes)} {half} to {bits}")

    # In integers: the processor's own conversion flushes subnormals.
    def constant(number: int) -> str:
        return _constant("i32", number, lanes)

    float_bits = ir.value(f"bitcast {from_} {value} to {wide}")
    shifted = ir.value(f"lshr {wide} {float_bits}, {constant(16)}")
    odd = ir.value(f"and {wide} {shifted}, {constant(1)}")
    half_up = ir.value(f"add {wide} {odd}, {constant(0x7FFF)}")
    rounded = ir.value(f"add {wide} {float_bits}, {half_up}")
    top = ir.value(f"lshr {wide} {rounded}, {constant(16)}")
    quiet = ir.value(f"or {wide} {shifted}, {constant(0x40)}")
    nan = ir.value(f"fcmp uno {from_} {value}, {value}")
    selected = ir.value(f"select {_vector('i1', lanes)} {nan}, {wide} {quiet}, {wide} {top}")
    return ir.value(f"trunc {wide} {selected} to {bits}")


_PRIMITIVES = {
    **dict.fromkeys(PREDICATES, _compare),
    "select": _select,
    "bits": _bits,
    "convert": _convert,
    "shift_right": _shift_right,
}
