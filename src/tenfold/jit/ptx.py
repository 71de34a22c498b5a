"""PTX: the assembly of a kernel of threads for a device of NVIDIA, by LLVM.

Takes a Kernel with `block`, a product, or a kernel of rows, and a processor. Hands on the text of
PTX, and the Program that the driver of a device makes of it. The driver keeps what it has compiled
on disk.

>>> from tenfold.core.loop_ir import KernelOperand, KernelStore
>>> from tenfold.core.scalar_ir import Body
>>> from tenfold.dtypes import FLOAT32
>>> body = Body()
>>> y = body.load(0, FLOAT32) * 3.0
>>> operands = (KernelOperand(FLOAT32, "1"), KernelOperand(FLOAT32, "1", written=True))
>>> stores = (KernelStore(1, (y.position,)),)
>>> kernel = Kernel(operands, tuple(body.instructions), stores, lanes=1, block=256)
>>> "mul.rn.f32" in ptx_of(kernel, "sm_90")
True
"""

from __future__ import annotations

import time
from functools import cache
from typing import Any, TypeGuard

from tenfold import _native
from tenfold.caches import LruCache
from tenfold.codegen.simt.module import render_threads
from tenfold.codegen.simt.row_table import RowTable
from tenfold.codegen.simt.thread_product import ThreadProduct
from tenfold.codegen.simt.words import PTX_WORDS
from tenfold.core.loop_ir import Kernel
from tenfold.errors import CompileError
from tenfold.jit import llvm_bindings
from tenfold.jit.program import OPTIMISED, Program, Source, cache_key, functions_of, short_name
from tenfold.schedule.target import Target
from tenfold.settings import debug, device_failure

TRIPLE = "nvptx64-nvidia-cuda"
ThreadKernel = Kernel | ThreadProduct | RowTable
"""What has a form for threads."""
_PROGRAMS: LruCache[tuple[str, str], Program] = LruCache(
    4096, "PTX programs", "generating PTX and compiling it takes 10 to 100 ms"
)


def runs_as_ptx(kernel: Source) -> TypeGuard[ThreadKernel]:
    """Whether a device has a kernel as PTX; others run on the host."""
    has_threads = isinstance(kernel, (ThreadProduct, RowTable))
    return has_threads or (isinstance(kernel, Kernel) and kernel.block > 0)


def ptx_program(kernel: ThreadKernel, target: Target) -> Program:
    """Return the program of a kernel on the device of a target, loaded or cached. Raises
    CompileError when LLVM or the driver rejects it.
    """
    key = target.device, cache_key(kernel)
    if (program := _PROGRAMS.get(key)) is not None:
        return program
    start, names = time.perf_counter(), functions_of(kernel)
    text, number = ptx_of(kernel, target.ptx_processor), int(target.device.rpartition(":")[2])
    may_fail = isinstance(kernel, Kernel) and "fail" in {each.name for each in kernel.body}
    functions, why = _native.load_ptx(number, text, names, may_fail)
    if not functions:
        if (failed := device_failure("compile", target.device)) is not None:
            raise failed
        rule = f"device {target.device!r} refuses {short_name(kernel)}: {why}"
        raise CompileError("compile", rule, remedy="report it, with what TENFOLD_DEBUG=4 prints")
    finish = functions[1] if len(functions) > 1 else None
    program = Program(functions[0], finish, time.perf_counter() - start)
    _native.count("compiles")
    debug(1, f"compiled {short_name(kernel)} in {program.seconds * 1e3:.1f} ms")
    debug(4, text)
    _PROGRAMS[key] = program
    return program


def ptx_source(kernel: ThreadKernel) -> str:
    """Return the LLVM IR of a kernel, from which PTX is made."""
    if isinstance(kernel, Kernel):
        return render_threads(kernel, PTX_WORDS)
    return kernel.thread_text(PTX_WORDS)


def ptx_of(kernel: ThreadKernel, processor: str) -> str:
    """Return the PTX of a kernel, for a processor as "sm_90". Raises CompileError when LLVM rejects
    it.
    """
    try:
        return llvm_bindings.emit_assembly(ptx_source(kernel), _ptx_machine(processor))
    except RuntimeError as error:
        remedy = "report it, with what TENFOLD_DEBUG=4 prints"
        raise CompileError("compile", f"LLVM refuses a kernel: {error}", remedy=remedy) from error


@cache
def _ptx_machine(processor: str) -> Any:
    return llvm_bindings.machine(processor, "", OPTIMISED, TRIPLE)
