"""Masked access: loads and stores of some lanes on processors without masked instructions.

Input: the type in memory, addresses and a mask. Output: a call of a function of the module. LLVM
itself would emit a branch and an access for each lane: seconds of compile time for a long body. The
functions loop over the lanes; a full mask of contiguous lanes takes one access.

>>> ir = SimdEmitter()
>>> load(ir, "i8", 16, "%p", "%mask")
'%v2'
>>> print(ir)
  %v0 = bitcast <16 x i1> %mask to i16
  %v1 = zext i16 %v0 to i64
  %v2 = call <16 x i8> @masked.load.i8.x16(ptr %p, i64 %v1)
>>> list(ir.functions)
['masked.load.i8.x16']
"""

from __future__ import annotations

from tenfold.codegen.llvm.simd_emitter import SimdEmitter

MASK_LANES = 64
"""The most lanes of a packet whose mask is a number of 64 bits."""
SCALAR_BYTES = {"i8": 1, "i16": 2, "i32": 4, "float": 4, "i64": 8, "double": 8}


def load(ir: SimdEmitter, scalar: str, lanes: int, pointer: str, mask: str) -> str:
    """Load contiguous elements from a pointer on; 0 outside the mask."""
    return ir.value(_call(ir, "load", scalar, lanes, [f"ptr {pointer}"], mask))


def store(ir: SimdEmitter, scalar: str, lanes: int, value: str, pointer: str, mask: str) -> None:
    """Store contiguous elements from a pointer on, inside the mask."""
    arguments = [f"<{lanes} x {scalar}> {value}", f"ptr {pointer}"]
    ir.line(_call(ir, "store", scalar, lanes, arguments, mask))


def gather(ir: SimdEmitter, scalar: str, lanes: int, pointers: str, mask: str) -> str:
    """Load an element from each address; 0 outside the mask."""
    return ir.value(_call(ir, "gather", scalar, lanes, [f"<{lanes} x ptr> {pointers}"], mask))


def scatter(ir: SimdEmitter, scalar: str, lanes: int, value: str, pointers: str, mask: str) -> None:
    """Store an element at each address inside the mask, the first lane first."""
    arguments = [f"<{lanes} x {scalar}> {value}", f"<{lanes} x ptr> {pointers}"]
    ir.line(_call(ir, "scatter", scalar, lanes, arguments, mask))


def _call(
    ir: SimdEmitter, operation: str, scalar: str, lanes: int, arguments: list[str], mask: str
) -> str:
    name = f"masked.{operation}.{scalar}.x{lanes}"
    if name not in ir.functions:
        ir.declarations["llvm.cttz.i64"] = "declare i64 @llvm.cttz.i64(i64, i1)"
        ir.functions[name] = _function(name, operation, scalar, lanes)
    result = f"<{lanes} x {scalar}>" if operation in ("load", "gather") else "void"
    return f"call {result} @{name}({', '.join([*arguments, f'i64 {_mask_bits(ir, mask, lanes)}'])})"


def _mask_bits(ir: SimdEmitter, mask: str, lanes: int) -> str:
    """Return a mask as an integer: lane i is bit i."""
    if not mask.startswith("%"):
        return _full_mask(lanes)
    key = ("mask", mask, str(lanes))
    if key not in ir.value_cache:
        bits = ir.value(f"bitcast <{lanes} x i1> {mask} to i{lanes}")
        ir.value_cache[key] = (
            bits if lanes == MASK_LANES else ir.value(f"zext i{lanes} {bits} to i64")
        )
    return ir.value_cache[key]


def _full_mask(lanes: int) -> str:
    return "-1" if lanes == MASK_LANES else str((1 << lanes) - 1)


_LOOP = """\
  br label %test
test:
  %left = phi i64 [ %mask, %some ], [ %rest, %next ]
  %more = icmp ne i64 %left, 0
  br i1 %more, label %next, label %done
next:
  %lane = call i64 @llvm.cttz.i64(i64 %left, i1 true)
  %below = sub i64 %left, 1
  %rest = and i64 %left, %below"""


def _function(name: str, operation: str, scalar: str, lanes: int) -> str:
    """Return the text of a function, which copies lane by lane through the stack."""
    packet, align = f"<{lanes} x {scalar}>", f"align {SCALAR_BYTES[scalar]}"
    loads, contiguous = operation in ("load", "gather"), operation in ("load", "store")
    value = "zeroinitializer" if loads else "%value"
    arguments = [] if loads else [f"{packet} %value"]
    arguments.append("ptr %place" if contiguous else f"<{lanes} x ptr> %places")
    return_lines = [f"%made = load {packet}, ptr %space, align 64", f"ret {packet} %made"]
    arguments.append("i64 %mask")
    result = packet if loads else "void"
    lines = [
        f"define internal {result} @{name}({', '.join(arguments)}) noinline {{",
        "entry:",
        f"  %space = alloca {packet}, align 64",
        f"  store {packet} {value}, ptr %space, align 64",
    ]
    if contiguous:
        lines += [
            f"  %all = icmp eq i64 %mask, {_full_mask(lanes)}",
            "  br i1 %all, label %whole, label %some",
            "whole:",
            f"  %there = load {packet}, ptr {'%place' if loads else '%space'}, {align}",
            f"  ret {packet} %there"
            if loads
            else f"  store {packet} %there, ptr %place, {align}\n  ret void",
        ]
    else:
        lines += [
            f"  %table = alloca <{lanes} x ptr>, align 64",
            f"  store <{lanes} x ptr> %places, ptr %table, align 64",
            "  br label %some",
        ]
    lines += ["some:", _LOOP, f"  %own = getelementptr {scalar}, ptr %space, i64 %lane"]
    if contiguous:
        lines.append(f"  %address = getelementptr {scalar}, ptr %place, i64 %lane")
    else:
        lines.append("  %known = getelementptr ptr, ptr %table, i64 %lane")
        lines.append("  %address = load ptr, ptr %known")
    source, target = ("%address", "%own") if loads else ("%own", "%address")
    lines += [
        f"  %element = load {scalar}, ptr {source}, {align}",
        f"  store {scalar} %element, ptr {target}, {align}",
        "  br label %test",
        "done:",
        *(f"  {line}" for line in (return_lines if loads else ["ret void"])),
        "}",
    ]
    return "\n".join(lines)
