r"""Compiler driver: compiles the LLVM IR of a kernel to an object image.

Takes LLVM IR, the processor by its name in the settings and LLVM's optimisation level, hands on an
ObjectImage. LLVM is loaded lazily, at the first compilation.

>>> text = "define i64 @kernel() {\n  ret i64 3\n}"
>>> sorted(compile_ir(text, "native", 0).function_offsets)
['kernel']
"""

from __future__ import annotations

from typing import Any

from tenfold.errors import CompileError
from tenfold.jit import llvm_bindings
from tenfold.jit.object_image import ObjectImage, Unlinkable, link

DISABLED_FEATURES = ("avx512bf16", "avx512fp16")
"""Features of a processor that kernels must not use: conversion by avx512bf16 flushes subnormals,
arithmetic by avx512fp16 rounds differently."""

# Target machines by processor name and optimisation level, shared by all `Programs`; protected by
# `llvm_bindings.LOCK`.
_machines: dict[tuple[str, int], Any] = {}


def compile_ir(text: str, cpu: str, level: int) -> ObjectImage:
    """Compile LLVM IR. Raises CompileError when LLVM rejects it."""
    try:
        return link(llvm_bindings.emit_object(text, _machine(cpu, level)))
    except (RuntimeError, Unlinkable) as error:
        rule = f"LLVM refuses a kernel: {error}"
        if isinstance(error, Unlinkable):
            rule = f"a kernel cannot be loaded: {error}"
        remedy = "report it, with what TENFOLD_DEBUG=4 prints"
        raise CompileError("compile", rule, remedy=remedy) from error


def _machine(cpu: str, level: int) -> Any:
    """Return the target machine of a processor and a level, created on first use."""
    with llvm_bindings.LOCK:
        if (cpu, level) not in _machines:
            _machines[cpu, level] = llvm_bindings.machine(*llvm_processor(cpu), level)
        return _machines[cpu, level]


def llvm_processor(cpu: str) -> tuple[str, str]:
    """Return LLVM's name and features of a processor by its name in the settings."""
    if cpu != "native":
        return cpu, ""
    name, features = llvm_bindings.host()
    return name, ",".join((features, *(f"-{feature}" for feature in DISABLED_FEATURES)))
