"""Every elementwise operation and every fold, on every dtype, becomes packets and needs no library.

The kernels are those that the planner makes of one operation; they are compiled and not run.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from tests.ops.grid import ALL_DTYPES, arity_of, elementwise_ops, legal

import tenfold as tn
from tenfold import _native
from tenfold.codegen.llvm.module_emitter import render
from tenfold.core.graph import Graph
from tenfold.core.loop_ir import Kernel
from tenfold.core.op import OPS, Op
from tenfold.jit import llvm_bindings
from tenfold.jit.compiler import llvm_processor
from tenfold.schedule.schedule import schedule_graph
from tenfold.schedule.schedule_ir import Schedule
from tenfold.schedule.target import Simd, target_of

CALLS = {"pow", "log1p", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh"} | {
    *("asinh", "acosh", "atanh"),
}
"""Operations that are NumPy's on complex numbers, one call each."""
FOLDS = [name for name, op in OPS.items() if isinstance(op, Op) and op.lowering.folding is not None]
FORMS = {"row": ((4, 100), 1), "column": ((100, 64), 0), "split": ((100_000,), 0)}
POSITIONS = {"row": "search", "split": "search parts"}
"""The forms that a position has where it is all that is wanted of a row."""


def plan(array: tn.Array, cpu: str = "x86-64-v3") -> Schedule:
    return schedule_graph(Graph.of([_native.node_of(array)]), target_of(cpu))


@cache
def leaf(dtype: str, shape: tuple[int, ...]) -> tn.Array:
    return tn.zeros(shape, dtype=dtype).wait()


def plans_of(op: Op, cpu: str = "x86-64-v3") -> Iterator[tuple[str, Schedule]]:
    """The plan of an operation on operands of each dtype that it takes."""
    for dtype in ALL_DTYPES:
        dtypes = (dtype,) * arity_of(op)
        if legal(op, dtypes):
            yield dtype, plan(op(*(leaf(each, (100,)) for each in dtypes)), cpu)


@cache
def machine(cpu: str) -> Any:
    return llvm_bindings.machine(*llvm_processor(cpu), 0)


def symbols_needed(kernel: Kernel, cpu: str = "native") -> set[str]:
    """What the machine code of a kernel expects from elsewhere."""
    text = render(kernel, Simd(fma=cpu != "x86-64", masked_bytes=1))
    return undefined_symbols(llvm_bindings.emit_object(text, machine(cpu)))


def undefined_symbols(code: bytes) -> set[str]:
    """The undefined symbols of an ELF object of 64 bits (System V ABI, chapter 4)."""
    (sections,) = struct.unpack_from("<Q", code, 40)
    size, count, _ = struct.unpack_from("<3H", code, 58)
    headers = [struct.unpack_from("<2I4Q2I2Q", code, sections + i * size) for i in range(count)]
    found = set()
    for header in headers:
        if header[1] != 2:  # a table of symbols
            continue
        names = headers[header[6]][4]
        for at in range(header[4] + 24, header[4] + header[5], 24):  # the first one is empty
            name, _, _, section = struct.unpack_from("<I2BH", code, at)
            if section == 0:
                end = code.index(0, names + name)
                found.add(code[names + name : end].decode())
    return found


SCALAR = re.compile(r"= (?:load (?:half|float|double|i8|i16|i32)\b|extractelement)")
"""The two ways to come by one element: to read it alone, or to take it out of a packet."""


@pytest.mark.exhaustive
@pytest.mark.parametrize("op", elementwise_ops(), ids=lambda op: op.name)
def test_an_elementwise_operation_is_packets_and_needs_no_library(op: Op) -> None:
    for dtype, planned in plans_of(op):
        (step,) = planned.steps
        if step.kind == "call":
            assert op.name in CALLS, f"{op.name} of {dtype} is a call"
            assert dtype.startswith("complex"), f"{op.name} of {dtype} is a call"
            continue
        assert step.launch is not None
        kernel = step.launch.kernel
        assert kernel.lanes >= 4
        assert not SCALAR.search(render(kernel, target_of("x86-64-v4").simd)), (
            f"{op.name} of {dtype}, one element at a time"
        )
        assert not symbols_needed(kernel), f"{op.name} of {dtype}"


@pytest.mark.exhaustive
@pytest.mark.parametrize("op", elementwise_ops(), ids=lambda op: op.name)
def test_without_fma_what_is_no_call_needs_no_library(op: Op) -> None:
    for dtype, planned in plans_of(op, "x86-64"):
        for step in planned.steps:
            if step.launch is not None:
                # few lanes: this processor has no masks, and code for each lane takes its time
                kernel = replace(step.launch.kernel, lanes=4)
                assert not symbols_needed(kernel, "x86-64"), f"{op.name} of {dtype}"


def test_without_fma_arithmetic_is_packets_and_elementary_functions_are_calls() -> None:
    x = leaf("float32", (100,))
    for array, kinds in (
        (x + x, ["kernel"]),
        (tn.floor(x) // 2, ["kernel"]),
        (tn.astype(x, tn.float16), ["kernel"]),
        (tn.exp(x) + x, ["call", "kernel"]),
        (tn.fma(x, x, x), ["call"]),
    ):
        assert [step.kind for step in plan(array, "x86-64").steps] == kinds
        assert [step.kind for step in plan(array).steps] == ["kernel"]


def reduced(name: str, dtype: str, form: str) -> Schedule | None:
    """The plan of a fold in a form; None where it does not take the dtype."""
    shape, axis = FORMS[form]
    try:
        array = getattr(tn, name)(leaf(dtype, shape), axis=axis)
    except tn.errors.DTypeError:
        return None
    return plan(array)


@pytest.mark.exhaustive
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", FOLDS)
def test_a_fold_is_packets_and_needs_no_library(name: str, form: str) -> None:
    planned = {dtype: reduced(name, dtype, form) for dtype in ALL_DTYPES}
    assert any(planned.values())
    for dtype, found in planned.items():
        for step in found.steps if found else ():
            if step.kind == "alias":
                continue  # the view without the axis
            assert step.launch is not None, f"{name} of {dtype} is a {step.kind}"
            kernel = step.launch.kernel
            positions = POSITIONS if name.startswith("arg") else {}
            assert kernel.traversal == positions.get(form, form)
            assert re.search(
                rf"masked\.(?:load|gather)\.v{kernel.lanes}",
                render(kernel, target_of("x86-64-v4").simd),
            )
            assert not symbols_needed(kernel), f"{name} of {dtype}"


def test_a_library_function_would_be_seen() -> None:
    text = "declare double @sin(double)\ndefine double @f(double %x) {\n"
    text += "%y = call double @sin(double %x)\nret double %y\n}"
    assert undefined_symbols(llvm_bindings.emit_object(text, machine("native"))) == {"sin"}
