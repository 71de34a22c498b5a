"""A runner for formulas of packets, before there is any kernel around them.

Takes a function of (Body, elements) and arrays, hands on the array it makes: the formula is
expanded, written as LLVM text around one loop, compiled for a CPU and run.

>>> import numpy as np
>>> run(lambda k, x: k.fma(x, x, 1.0), np.arange(3.0)).tolist()
[1.0, 2.0, 5.0]
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache

import llvmlite.binding as llvm
import numpy as np

from tenfold.codegen.llvm.simd_emitter import SCALARS, Packet, SimdEmitter, llvm_type
from tenfold.codegen.vecmath import expand_formulas
from tenfold.core.scalar_ir import Body, ComplexElement, Element, Operand
from tenfold.dtypes import BOOL

CPUS = ("x86-64-v3", "x86-64-v4")
"""The CPUs whose bits are to be the same; one without AVX-512 runs the first alone."""
_engines: dict[tuple[str, str], llvm.ExecutionEngine] = {}


@cache
def runnable() -> tuple[str, ...]:
    """Return those of CPUS that this machine can run."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features()
    needed = {"x86-64-v3": ("avx2", "fma"), "x86-64-v4": ("avx512f", "avx512dq", "avx512vl")}
    return tuple(cpu for cpu in CPUS if all(features.get(each) for each in needed[cpu]))


def run(
    formula: Callable[..., Operand],
    *arrays: np.ndarray,
    cpu: str | None = None,
    lanes: int | None = None,
) -> np.ndarray:
    """Return what a formula makes of arrays of one shape; complex ones enter as ComplexElements.

    `cpu`: one of `runnable()`, the last by default. `lanes`: elements of a packet, by default what
    fills 64 bytes with the widest dtype.
    """
    planes, dtypes, lanes, source = _written(formula, arrays, lanes)
    size = arrays[0].size
    padded = max(lanes, -(-size // lanes) * lanes)
    inputs = [np.resize(each, padded) if size else np.zeros(padded, each.dtype) for each in planes]
    results = [np.empty(padded, dtype) for dtype in dtypes]
    buffers = [each.ctypes.data for each in inputs + results]
    engine = _compiled(source, cpu or runnable()[-1])
    entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
    address = engine.get_function_address("formula")
    entry(address)((ctypes.c_void_p * len(buffers))(*buffers), padded)
    made = [each[:size].reshape(arrays[0].shape) for each in results]
    return made[0] if len(made) == 1 else _joined(*made)


def assembly(
    formula: Callable[..., Operand], *arrays: np.ndarray, cpu: str, lanes: int | None = None
) -> str:
    """Return the machine code of what `run` would run, as text; any CPU of LLVM will do."""
    runnable()
    machine = llvm.Target.from_default_triple().create_target_machine(cpu=cpu, opt=2, jit=True)
    *_, source = _written(formula, arrays, lanes)
    return str(machine.emit_assembly(llvm.parse_assembly(source)))


def bits(x: np.ndarray) -> np.ndarray:
    """Return the bits of an array of floats, with one pattern for every NaN."""
    return np.where(np.isnan(x), x.dtype.type(np.nan), x).view(f"u{x.dtype.itemsize}")


def units(found: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Return how far results are from exact values, in units in the last place of the exact ones.

    `exact` is of a wider dtype than `found`. Where it is NaN, infinite or too large for the dtype
    of `found`, the result is 0 if `found` is what it rounds to and inf if not.
    """
    with np.errstate(all="ignore"):
        rounded = exact.astype(found.dtype)
        limits = np.finfo(found.dtype)
        _, exponent = np.frexp(exact)
        exponent = np.where(exact == 0, limits.minexp, exponent)
        last = np.maximum(exponent - limits.nmant - 1, limits.minexp - limits.nmant)
        error = np.abs(found.astype(exact.dtype) - exact) / np.ldexp(exact.dtype.type(1), last)
    same = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
    finite = np.isfinite(rounded) & np.isfinite(found)
    # One of the two overflowed: the largest number stands for the infinite one.
    near = np.isfinite(exact) & (np.abs(exact) > limits.max * 0.99) & ~np.isnan(found)
    edge = np.where(near & (np.sign(found) == np.sign(exact)), 1.0, np.inf)
    return np.where(finite, error, np.where(same, 0.0, edge)).astype(np.float64)


def _written(
    formula: Callable[..., Operand], arrays: Sequence[np.ndarray], lanes: int | None
) -> tuple[list[np.ndarray], list[np.dtype], int, str]:
    """Return the real arrays read, the dtypes made, the lanes of a packet and the LLVM text."""
    planes = [part for array in arrays for part in _parts(array)]
    body, roots, dtypes = _body(formula, arrays)
    widest = max(dtype.itemsize for dtype in (*dtypes, *(each.dtype for each in planes)))
    lanes = lanes or 64 // widest
    source = _source(body, roots, [each.dtype for each in planes], dtypes, lanes)
    return planes, dtypes, lanes, source


def _parts(array: np.ndarray) -> list[np.ndarray]:
    if array.dtype.kind != "c":
        return [np.ascontiguousarray(array).ravel()]
    return [np.ascontiguousarray(array.real).ravel(), np.ascontiguousarray(array.imag).ravel()]


def _joined(real: np.ndarray, imaginary: np.ndarray) -> np.ndarray:
    made = np.empty(real.shape, np.result_type(real, np.complex64))
    made.real, made.imag = real, imaginary
    return made


def _body(
    formula: Callable[..., Operand], arrays: Sequence[np.ndarray]
) -> tuple[Body, list[int], list[np.dtype]]:
    """Return the body of a formula without calls in it, its roots and their dtypes."""
    body = Body()
    loads: list[Element] = []
    operands: list[Operand] = []
    for array in arrays:
        first = len(loads)
        loads += [
            body.load(first + i, part.dtype) for i, part in enumerate(_parts(array.ravel()[:0]))
        ]
        operands.append(ComplexElement(*loads[first:]) if len(loads) - first == 2 else loads[first])
    made = formula(body, *operands)
    outputs = [made] if isinstance(made, Element) else list(made)
    body, roots = expand_formulas(body, [each.position for each in outputs])
    return body, roots, [each.dtype for each in outputs]


def _memory(dtype: np.dtype) -> str:
    return "i8" if dtype == BOOL else SCALARS[dtype]


def _source(
    body: Body, roots: list[int], inputs: list[np.dtype], results: list[np.dtype], lanes: int
) -> str:
    text = SimdEmitter()
    for i in range(len(inputs) + len(results)):
        place = text.value(f"getelementptr ptr, ptr %buffers, i64 {i}")
        text.line(f"%buffer{i} = load ptr, ptr {place}")
    text.line("br label %loop")
    text.label("loop")
    text.line("%i = phi i64 [ 0, %entry ], [ %next, %latch ]")
    values: dict[int, Packet] = {}
    for position, instruction in enumerate(body.instructions):
        if instruction.name == "load":
            values[position] = _loaded(text, int(str(instruction.data)), instruction.dtype, lanes)
        else:
            values[position] = text.emit(instruction, values, lanes)
    for i, (root, dtype) in enumerate(zip(roots, results, strict=True), start=len(inputs)):
        _store(text, i, text.broadcast(values[root], lanes), dtype, lanes)
    text.line("br label %latch")
    text.label("latch")
    text.line(f"%next = add i64 %i, {lanes}")
    text.line("%more = icmp slt i64 %next, %size")
    text.line("br i1 %more, label %loop, label %done")
    text.label("done")
    text.line("ret void")
    tables = [f"{name} = private constant {value}" for name, value in text.globals.items()]
    head = "define void @formula(ptr %buffers, i64 %size) {\nentry:\n"
    rest = [*text.declarations.values(), *text.functions.values(), *tables]
    return "\n".join([f"{head}{text}\n}}", *rest])


def _loaded(text: SimdEmitter, buffer: int, dtype: np.dtype, lanes: int) -> Packet:
    kept = _memory(dtype)
    place = text.value(f"getelementptr {kept}, ptr %buffer{buffer}, i64 %i")
    value = text.value(f"load <{lanes} x {kept}>, ptr {place}, align 1")
    if dtype == BOOL:
        value = text.value(f"icmp ne <{lanes} x i8> {value}, zeroinitializer")
    return Packet(value, dtype, lanes)


def _store(text: SimdEmitter, buffer: int, value: str, dtype: np.dtype, lanes: int) -> None:
    kept = _memory(dtype)
    place = text.value(f"getelementptr {kept}, ptr %buffer{buffer}, i64 %i")
    if dtype == BOOL:
        value = text.value(f"zext {llvm_type(dtype, lanes)} {value} to <{lanes} x i8>")
    text.line(f"store <{lanes} x {kept}> {value}, ptr {place}, align 1")


def _compiled(source: str, cpu: str) -> llvm.ExecutionEngine:
    """Return the machine code of a source, made once; it lives as long as the process."""
    assert cpu in runnable(), f"{cpu} is not among {runnable()}"
    engine = _engines.get((source, cpu))
    if engine is None:
        target = llvm.Target.from_default_triple()
        machine = target.create_target_machine(cpu=cpu, opt=2, jit=True)
        module = llvm.parse_assembly(source)
        module.verify()
        engine = _engines[source, cpu] = llvm.create_mcjit_compiler(module, machine)
        engine.finalize_object()
    return engine
