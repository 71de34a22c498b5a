"""Thread module: the text of a kernel for devices that run one thread for each element.

Input: a Kernel with `block`. Output: LLVM IR in the words of a target. The text of a thread depends
on the kernel alone, so that what the emulated device runs is what PTX is made of. A launch has as
many units as threads, and a range of it is a block.

>>> from tenfold.dtypes import FLOAT32
>>> from tenfold.core.loop_ir import KernelOperand, KernelStore
>>> from tenfold.core.scalar_ir import Body
>>> body = Body()
>>> y = body.load(0, FLOAT32) * 2.0
>>> operands = (KernelOperand(FLOAT32, "1"), KernelOperand(FLOAT32, "1", written=True))
>>> stores = (KernelStore(1, (y.position,)),)
>>> kernel = Kernel(operands, tuple(body.instructions), stores, lanes=1, block=256)
>>> "fmul float" in render_threads(kernel, HOST_WORDS)
True
"""

from __future__ import annotations

from collections.abc import Callable

from tenfold.codegen.llvm.loop_emitter import int_op
from tenfold.codegen.llvm.module_emitter import sections_of, with_formulas
from tenfold.codegen.llvm.reduce_inner import begin_row, compute_elements, pass_elements
from tenfold.codegen.llvm.simd_emitter import SimdEmitter
from tenfold.codegen.simt.thread_emitter import ThreadEmitter
from tenfold.codegen.simt.words import Words, substitute
from tenfold.core.loop_ir import Kernel, KernelForm


def render_threads(kernel: Kernel, words: Words, *, fma: bool = True) -> str:
    """Return the text of a kernel's module for a target; without `fma`, for a processor that has no
    fused multiply-add.
    """
    return substitute(common_text(kernel, fma=fma), words)


def common_text(kernel: Kernel, *, fma: bool = True) -> str:
    """Return the text in common words."""
    description = "".join([f"; {line}\n" for line in str(kernel).splitlines()])
    kernel, ir = with_formulas(kernel), SimdEmitter(baseline=not fma)
    functions = [_thread(name, kernel, ir) for name in kernel.functions]
    return description + "\n".join([*sections_of(ir, functions), ""])


def _thread(name: str, kernel: Kernel, ir: SimdEmitter) -> str:
    ir.lines, ir.block = [], "entry"
    ir.value_cache.clear()
    emitter = ThreadEmitter(kernel, ir)
    THREAD_EMITTERS[kernel.form, name](emitter)
    tables = sum(len(fold.inputs) for fold in kernel.folds) if "finish" in kernel.functions else 0
    buffers = len(kernel.operands) + tables
    scalars = buffers + len(kernel.sizes)
    words = scalars + kernel.parameters + 1
    waits = "waiting" if kernel.waits else "alone"
    shared = max(kernel.shared_bytes, 1)
    head = f"thread {name} buffers {buffers} scalars {scalars} words {words}"
    entry = [f"  {line}" for line in ir.entry]
    ir.entry = []
    lines = [f"{head} shared {shared} {waits}:", *entry, *ir.lines, "  ret void", "}"]
    return "\n".join(lines)


def _map_element(emitter: ThreadEmitter) -> None:
    """A thread computes the element of its number."""
    kernel, ir = emitter.kernel, emitter.ir
    last = kernel.axes - 1
    stores, targets = pass_elements(kernel, 0)

    def compute(number: str) -> None:
        position, outer = number, "0"
        if last:
            position = int_op(ir, "urem", number, emitter.length(last))
            outer = int_op(ir, "udiv", number, emitter.length(last))
        emitter.set_indices(outer, last)
        begin_row(emitter)
        compute_elements(emitter, 0, targets, stores, position, None)

    emitter.for_each_element(kernel.axes, compute)


THREAD_EMITTERS: dict[tuple[KernelForm, str], Callable[[ThreadEmitter], None]] = {
    (KernelForm.MAP, "kernel"): _map_element,
}
"""The emitter of a thread, by the form of its kernel and the name of its function."""
