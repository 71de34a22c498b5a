"""PTX: the assembly of a kernel of threads for a device of NVIDIA, by LLVM.

Takes a Kernel with `block`, a product, or a kernel of rows, and a processor. Hands on the text of
PTX, which the driver of a device loads.

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

from functools import cache
from typing import Any

from tenfold.codegen.simt.module import render_threads
from tenfold.codegen.simt.row_table import RowTable
from tenfold.codegen.simt.thread_product import ThreadProduct
from tenfold.codegen.simt.words import PTX_WORDS
from tenfold.core.loop_ir import Kernel
from tenfold.errors import CompileError
from tenfold.jit import llvm_bindings
from tenfold.jit.program import OPTIMISED

TRIPLE = "nvptx64-nvidia-cuda"
ThreadKernel = Kernel | ThreadProduct | RowTable
"""What has a form for threads."""


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
