"""The functions of llvmlite's library, called as they are."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import llvmlite.binding
import pytest
from llvmlite.binding.ffi import lib

import tenfold as tn
from tenfold import _native
from tenfold.codegen.llvm.module_emitter import render
from tenfold.core.graph import Graph
from tenfold.jit import llvm_bindings
from tenfold.jit.compiler import llvm_processor
from tenfold.schedule.schedule import schedule_graph
from tenfold.schedule.target import target_of

TEXT = "define i64 @kernel() {\n  ret i64 3\n}"


def kind(declared: Any) -> str:
    """What is passed: a pointer, a text, a place for a text, or a number of some size."""
    if declared is ctypes.c_char_p:
        return "text"
    if declared is ctypes.POINTER(ctypes.c_char_p):
        return "place"
    pointer = declared is ctypes.c_void_p or issubclass(declared, ctypes._Pointer)
    return "pointer" if pointer else f"{ctypes.sizeof(declared)} bytes"


@pytest.mark.parametrize("name", llvm_bindings.LLVM_FUNCTIONS)
def test_functions_take_and_give_what_llvmlite_says(name: str) -> None:
    result, arguments = llvm_bindings.LLVM_FUNCTIONS[name]
    function = getattr(lib, f"LLVMPY_{name}")
    if function.argtypes is not None:
        assert [*map(kind, arguments)] == [*map(kind, function.argtypes)]
    if name != "VerifyModule":  # bool there; the library's own is int
        assert kind(result) == kind(function.restype)


def texts() -> Iterator[str]:
    """The kernels of some expressions."""
    x, y = (tn.asarray([1.5, 2.5, 3.5], dtype=dtype) for dtype in ("float32", "float64"))
    for array in (x + y, tn.sin(y) * 2, tn.sum(x * x), tn.where(x > y, x, y), tn.pow(x, y)):
        for step in schedule_graph(Graph.of([_native.node_of(array)])).steps:
            if step.launch is not None:
                yield render(step.launch.kernel, target_of("x86-64-v4").simd)


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("cpu", ["native", "x86-64-v3"])
def test_objects_are_those_of_llvmlites_modules(cpu: str, level: int) -> None:
    name, features = llvm_processor(cpu)
    llvmlite.binding.initialize_native_target()
    llvmlite.binding.initialize_native_asmprinter()
    machine = llvmlite.binding.Target.from_default_triple().create_target_machine(
        cpu=name,
        features=features,
        opt=level,
        reloc=llvm_bindings.RELOCATION,
        codemodel=llvm_bindings.MODEL,
    )
    found = [*texts()]
    assert len(found) >= 5
    for text in found:
        module = llvmlite.binding.parse_assembly(text)
        module.triple, module.data_layout = machine.triple, str(machine.target_data)
        own = llvm_bindings.emit_object(text, llvm_bindings.machine(name, features, level))
        assert own == machine.emit_object(module)


def test_versions_that_nobody_has_seen_are_asked_for_their_functions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = llvm_bindings.emit_object(TEXT, llvm_bindings.machine(*llvm_bindings.host(), 0))
    llvm_bindings.library.cache_clear()
    monkeypatch.setattr(llvm_bindings, "KNOWN_VERSIONS", ())
    try:
        assert type(llvm_bindings.library()["GetHostCPUName"]) is type(lib.LLVMPY_GetHostCPUName)
        assert (
            llvm_bindings.emit_object(TEXT, llvm_bindings.machine(*llvm_bindings.host(), 0))
            == before
        )
        with pytest.raises(RuntimeError, match="expected"):
            llvm_bindings.emit_object("define", llvm_bindings.machine(*llvm_bindings.host(), 0))
    finally:
        llvm_bindings.library.cache_clear()


LOOP = "br label %b\nb:\n%c = add i64 %d, 1\n%d = add i64 %c, 1\nret void"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("define i64 @kernel( {", "expected"),
        (f"define void @kernel() {{\n{LOOP}\n}}", "does not dominate"),
    ],
)
def test_text_refused_by_llvm_is_an_error_that_says_why(text: str, why: str) -> None:
    machine = llvm_bindings.machine(*llvm_bindings.host(), 0)
    with pytest.raises(RuntimeError, match=why):
        llvm_bindings.emit_object(text, machine)


def test_a_processor_without_a_machine_is_an_error() -> None:
    with pytest.raises(RuntimeError):
        llvm_bindings._checked_call(
            llvm_bindings.library()["GetTargetFromTriple"], b"no-such-thing"
        )
