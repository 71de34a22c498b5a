r"""LLVM bindings: calls the functions of llvmlite's library that compile LLVM IR to an object file.

Takes LLVM IR and a target machine, hands on an ELF object. The library is called directly by
ctypes: importing all of `llvmlite.binding` takes 24 ms, the library 6 ms, and the first result of a
process waits for it (`docs/decisions/0030-llvm-bindings.md`).

LLVM's machines and tables are global state of the process, so the lock is global too: each function
here acquires `LOCK` itself.

>>> name, features = host()
>>> text = "define i64 @kernel() {\n  ret i64 3\n}"
>>> emit_object(text, machine(name, features, 0))[:4]
b'\x7fELF'
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_int, c_size_t, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

from tenfold import _native
from tenfold.errors import no_address_space
from tenfold.jit import fork_safe_lock

LIBRARY = "libllvmlite.so"
LIBRARY_BYTES = 256 << 20
"""The address space that the library takes when it is loaded, with its first thread."""
KNOWN_VERSIONS = ("0.45", "0.46", "0.47", "0.48", "0.49", "0.50")
"""Versions of llvmlite with the signatures of `LLVM_FUNCTIONS`; others use its declarations."""
RELOCATION, MODEL = "pic", "small"
"""Position-independent code: it contains no absolute addresses."""

LOCK = fork_safe_lock.lock()
"""Held by each thread that calls into LLVM: protects its tables and every machine. Two threads that
use one machine at once abort the process. It is older than the lock of each `CompileThread`, under
which it is acquired."""

_OUT = ctypes.POINTER(c_char_p)
LLVM_FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "InitializeNativeTarget": (c_int, ()),
    "InitializeNativeAsmPrinter": (c_int, ()),
    "InitializeAllTargetInfos": (c_int, ()),
    "InitializeAllTargets": (c_int, ()),
    "InitializeAllTargetMCs": (c_int, ()),
    "InitializeAllAsmPrinters": (c_int, ()),
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
"""The result type of each function, `c_int` for none, and its argument types."""


@cache
def library() -> dict[str, Any]:
    """Return the functions by name. Raises OSError if the library is not as expected, MemoryError
    if there is no address space for it.
    """
    import llvmlite

    if ".".join(llvmlite.__version__.split(".")[:2]) not in KNOWN_VERSIONS:
        return _llvmlite_declarations()
    folder = Path(llvmlite.__file__).parent / "binding"
    try:
        shared_library = ctypes.CDLL(str(folder / LIBRARY))
    except OSError as error:
        if _native.reserve_headroom(LIBRARY_BYTES) is not None:
            raise
        raise no_address_space(LIBRARY_BYTES) from error
    functions: dict[str, Any] = {}
    for name, (result, arguments) in LLVM_FUNCTIONS.items():
        function = functions[name] = shared_library[f"LLVMPY_{name}"]
        function.restype, function.argtypes = result, arguments
    return functions


def _llvmlite_declarations() -> dict[str, Any]:
    """The functions as llvmlite declares them: a wrong signature is an error, not a crash."""
    from llvmlite.binding.ffi import lib

    return {name: getattr(lib, f"LLVMPY_{name}") for name in LLVM_FUNCTIONS}


def host() -> tuple[str, str]:
    """Return this processor's name, and its features: "+avx2,-sse4a" and so on."""
    with LOCK:
        llvm = library()
        return _text(llvm["GetHostCPUName"]), _text(llvm["GetHostCPUFeatures"])


OTHER_TARGETS = "TargetInfos", "Targets", "TargetMCs", "AsmPrinters"
"""What is initialised for a target that is not this processor."""


def machine(name: str, features: str, level: int, triple: str = "") -> Any:
    """Return the target machine of a processor, at an optimisation level from 0 to 3; that of this
    process without a triple. It is never freed. Raises RuntimeError.
    """
    encoded = [argument.encode() for argument in (name, features, RELOCATION, MODEL)]
    with LOCK:
        llvm = library()
        for part in OTHER_TARGETS if triple else ():
            llvm[f"InitializeAll{part}"]()
        if not triple:
            llvm["InitializeNativeTarget"]()
            llvm["InitializeNativeAsmPrinter"]()
        encoded_triple = (triple or _text(llvm["GetDefaultTargetTriple"])).encode()
        target = _checked_call(llvm["GetTargetFromTriple"], encoded_triple)
        target_machine = llvm["CreateTargetMachine"](
            target, encoded_triple, *encoded[:2], level, *encoded[2:], 0, 0, b""
        )
    if not target_machine:
        raise RuntimeError(f"unknown machine {name} {features}")
    return target_machine


def emit_object(text: str, machine: Any) -> bytes:
    """Return the object file of LLVM IR. Raises RuntimeError when LLVM rejects it."""
    with LOCK:
        return _emit(text, machine, OBJECT)


def emit_assembly(text: str, machine: Any) -> str:
    """Return the assembly of LLVM IR. Raises RuntimeError when LLVM rejects it."""
    with LOCK:
        return _emit(text, machine, ASSEMBLY).decode()


ASSEMBLY, OBJECT = 0, 1


def _emit(text: str, machine: Any, form: int) -> bytes:
    llvm = library()
    context = llvm["ContextCreate"]()  # owns the memory of the module
    try:
        module = _checked_call(llvm["ParseAssembly"], context, text.encode())
        try:
            triple = _text(llvm["GetTargetMachineTriple"], machine)
            llvm["SetTarget"](module, triple.encode())
            error_text = c_char_p()
            has_error = llvm["VerifyModule"](module, byref(error_text))
            error_message = _take_string(error_text)
            if has_error:
                raise RuntimeError(error_message)
            return _take_buffer(
                _checked_call(llvm["TargetMachineEmitToMemory"], machine, module, form)
            )
        finally:
            llvm["DisposeModule"](module)
    finally:
        llvm["ContextDispose"](context)


def _take_buffer(buffer: Any) -> bytes:
    """Return the content of a memory buffer, and free it."""
    llvm = library()
    try:
        return ctypes.string_at(llvm["GetBufferStart"](buffer), llvm["GetBufferSize"](buffer))
    finally:
        llvm["DisposeMemoryBuffer"](buffer)


def _checked_call(function: Any, *arguments: Any) -> Any:
    """Return the result of a function, or raise its message as RuntimeError."""
    error_text = c_char_p()
    result = function(*arguments, byref(error_text))
    error_message = _take_string(error_text)
    if not result:
        raise RuntimeError(error_message)
    return result


def _text(function: Any, *arguments: Any) -> str:
    """Return the string output of a function."""
    out = c_char_p()
    function(*arguments, byref(out))
    return _take_string(out)


def _take_string(out: c_char_p) -> str:
    """Return an output string, and free it."""
    if out.value is None:
        return ""
    text = out.value.decode(errors="replace")
    library()["DisposeString"](out)
    return text


__all__ = [
    "LLVM_FUNCTIONS",
    "LOCK",
    "RELOCATION",
    "emit_assembly",
    "emit_object",
    "host",
    "library",
    "machine",
]
