r"""Compiler driver: compiles the LLVM IR of a kernel to an object image.

Takes LLVM IR, the processor by its name in the settings and LLVM's optimisation level, hands on an
ObjectImage. LLVM is loaded when the first text is compiled, not earlier.

>>> text = "define i64 @kernel() {\n  ret i64 3\n}"
>>> sorted(compiled(text, "native", 0).places)
['kernel']
"""

from __future__ import annotations

from typing import Any

from tenfold.errors import CompileError
from tenfold.jit import llvm_bindings
from tenfold.jit.object_image import ObjectImage, Unlinkable, link

REFUSED = ("avx512bf16", "avx512fp16")
"""Features of a processor that kernels must not use: the conversion of the one flushes subnormals,
the arithmetic of the other rounds differently."""

# What LLVM compiles for, by the processor's name and the level of optimisation: one for all
# `Programs`. `llvm.LOCK` protects it.
_machines: dict[tuple[str, int], Any] = {}


def compiled(text: str, cpu: str, level: int) -> ObjectImage:
    """Compile a text. Raises CompileError when LLVM refuses it."""
    try:
        return link(llvm_bindings.emitted(text, _machine(cpu, level)))
    except (RuntimeError, Unlinkable) as error:
        rule = f"LLVM refuses a kernel: {error}"
        if isinstance(error, Unlinkable):
            rule = f"a kernel cannot be loaded: {error}"
        remedy = "report it, with what TENFOLD_DEBUG=4 prints"
        raise CompileError("compile", rule, remedy=remedy) from error


def _machine(cpu: str, level: int) -> Any:
    """Return the machine of a processor and a level, made when first asked for."""
    with llvm_bindings.LOCK:
        if (cpu, level) not in _machines:
            _machines[cpu, level] = llvm_bindings.machine(*processor(cpu), level)
        return _machines[cpu, level]


def processor(cpu: str) -> tuple[str, str]:
    """Return LLVM's name and features of a processor by its name in the settings."""
    if cpu != "native":
        return cpu, ""
    name, features = llvm_bindings.host()
    return name, ",".join((features, *(f"-{refused}" for refused in REFUSED)))
