r"""LLVM: the functions of llvmlite's library that make an object file of a text.

Takes LLVM IR and what to compile for, hands on an ELF object. The library's functions are called as
they are: the modules of `llvmlite.binding` that wrap all of them take 24 ms to import, the library
6, and the first result of a process waits for that (`docs/decisions/0030-llvm-bindings.md`).

LLVM's machines and tables are state of the process, so their lock stands beside them: each function
here takes `LOCK` itself, whichever cache, thread or test calls it.

>>> name, features = host()
>>> text = "define i64 @kernel() {\n  ret i64 3\n}"
>>> emitted(text, machine(name, features, 0))[:4]
b'\x7fELF'
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_int, c_size_t, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

from tenfold.jit import fork_safe_lock

LIBRARY = "libllvmlite.so"
KNOWN = ("0.45", "0.46", "0.47", "0.48", "0.49", "0.50")
"""Versions of llvmlite whose functions are as `FUNCTIONS` says; others are asked themselves."""
RELOCATION, MODEL = "pic", "small"
"""Code holds distances, no addresses: it runs wherever it lies."""

LOCK = fork_safe_lock.lock()
"""Held by each thread that calls into LLVM: protects its tables and every machine. Two threads that
use one machine at once abort the process. It is older than the locks of each `Background`, under
which it is taken."""

_OUT = ctypes.POINTER(c_char_p)
FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "InitializeNativeTarget": (c_int, ()),
    "InitializeNativeAsmPrinter": (c_int, ()),
    "GetHostCPUName": (c_int, (_OUT,)),
    "GetHostCPUFeatures": (c_int, (_OUT,)),
    "GetDefaultTargetTriple": (c_int, (_OUT,)),
    "GetTargetFromTriple": (c_void_p, (c_char_p, _OUT)),
    "CreateTargetMachine": (
        c_void_p,
        # target, triple, processor, features, level; relocation, model; print, just in time; ABI
        (c_void_p, *(c_char_p,) * 3, c_int, *(c_char_p,) * 2, *(c_int,) * 2, c_char_p),
    ),
    "GetTargetMachineTriple": (c_int, (c_void_p, _OUT)),
    "ContextCreate": (c_void_p, ()),
    "ContextDispose": (c_int, (c_void_p,)),
    "ParseAssembly": (c_void_p, (c_void_p, c_char_p, _OUT)),
    "VerifyModule": (c_int, (c_void_p, _OUT)),
    "SetTarget": (c_int, (c_void_p, c_char_p)),
    "DisposeModule": (c_int, (c_void_p,)),
    "TargetMachineEmitToMemory": (c_void_p, (c_void_p, c_void_p, c_int, _OUT)),
    "GetBufferStart": (c_void_p, (c_void_p,)),
    "GetBufferSize": (c_size_t, (c_void_p,)),
    "DisposeMemoryBuffer": (c_int, (c_void_p,)),
    "DisposeString": (c_int, (c_char_p,)),
}
"""Of each function what it gives, `c_int` for nothing, and what it takes."""


@cache
def library() -> dict[str, Any]:
    """Return the functions by their names. Raises OSError where the library is not as expected."""
    import llvmlite

    if ".".join(llvmlite.__version__.split(".")[:2]) not in KNOWN:
        return _declared_elsewhere()
    folder = Path(llvmlite.__file__).parent / "binding"
    found = ctypes.CDLL(str(folder / LIBRARY))
    functions: dict[str, Any] = {}
    for name, (result, arguments) in FUNCTIONS.items():
        function = functions[name] = found[f"LLVMPY_{name}"]
        function.restype, function.argtypes = result, arguments
    return functions


def _declared_elsewhere() -> dict[str, Any]:
    """The functions as llvmlite declares them: to take others is an error, where it was a crash."""
    from llvmlite.binding.ffi import lib

    return {name: getattr(lib, f"LLVMPY_{name}") for name in FUNCTIONS}


def host() -> tuple[str, str]:
    """Return this processor's name, and its features: "+avx2,-sse4a" and so on."""
    with LOCK:
        llvm = library()
        return _text(llvm["GetHostCPUName"]), _text(llvm["GetHostCPUFeatures"])


def machine(name: str, features: str, level: int) -> Any:
    """Return what compiles for a processor, at a level of optimisation from 0 to 3. It is never
    given back. Raises RuntimeError.
    """
    words = [each.encode() for each in (name, features, RELOCATION, MODEL)]
    with LOCK:
        llvm = library()
        llvm["InitializeNativeTarget"]()
        llvm["InitializeNativeAsmPrinter"]()
        triple = _text(llvm["GetDefaultTargetTriple"]).encode()
        target = _made(llvm["GetTargetFromTriple"], triple)
        made = llvm["CreateTargetMachine"](target, triple, *words[:2], level, *words[2:], 0, 0, b"")
    if not made:
        raise RuntimeError(f"unknown machine {name} {features}")
    return made


def emitted(text: str, machine: Any) -> bytes:
    """Return the object file of a text. Raises RuntimeError where LLVM refuses it."""
    with LOCK:
        return _emitted(text, machine)


def _emitted(text: str, machine: Any) -> bytes:
    llvm = library()
    context = llvm["ContextCreate"]()  # what LLVM keeps of a text goes with it
    try:
        module = _made(llvm["ParseAssembly"], context, text.encode())
        try:
            triple = _text(llvm["GetTargetMachineTriple"], machine)
            llvm["SetTarget"](module, triple.encode())
            wrong = c_char_p()
            refused = llvm["VerifyModule"](module, byref(wrong))
            why = _taken(wrong)
            if refused:
                raise RuntimeError(why)
            return _bytes(_made(llvm["TargetMachineEmitToMemory"], machine, module, 1))
        finally:
            llvm["DisposeModule"](module)
    finally:
        llvm["ContextDispose"](context)


def _bytes(buffer: Any) -> bytes:
    """Take what a buffer of memory holds."""
    llvm = library()
    try:
        return ctypes.string_at(llvm["GetBufferStart"](buffer), llvm["GetBufferSize"](buffer))
    finally:
        llvm["DisposeMemoryBuffer"](buffer)


def _made(function: Any, *arguments: Any) -> Any:
    """What a function makes, or the RuntimeError that it says."""
    wrong = c_char_p()
    made = function(*arguments, byref(wrong))
    why = _taken(wrong)
    if not made:
        raise RuntimeError(why)
    return made


def _text(function: Any, *arguments: Any) -> str:
    """The text that a function hands out."""
    out = c_char_p()
    function(*arguments, byref(out))
    return _taken(out)


def _taken(out: c_char_p) -> str:
    """What was handed out, given back."""
    if out.value is None:
        return ""
    text = out.value.decode(errors="replace")
    library()["DisposeString"](out)
    return text


__all__ = ["FUNCTIONS", "LOCK", "RELOCATION", "emitted", "host", "library", "machine"]
