"""Thread module: the text of a kernel for devices that run one thread for each element.

Input: a Kernel with `block`. Output: LLVM IR in the words of a target. The text of a thread depends
on the kernel alone, so that what the emulated device runs is what PTX is made of. A launch has as
many units as threads, and a range of it is a block.

>>> from tenfold.dtypes import FLOAT32
>>> from tenfold.core.loop_ir import KernelOperand, KernelStore
>>> from tenfold.codegen.simt.words import HOST_WORDS
>>> from tenfold.core.scalar_ir import Body
>>> body = Body()
>>> y = body.load(0, FLOAT32) * 3.0
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
from tenfold.codegen.llvm.simd_emitter import SimdEmitter
from tenfold.codegen.simt import shared_tile, warp_reduce
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
    sizes = len(kernel.operands) + kernel.waits + tables
    scalars = sizes + len(kernel.sizes)
    head = f"thread {name} operands {len(kernel.operands)} sizes {sizes} scalars {scalars}"
    head += f" words {scalars + kernel.parameters + 1} shared {max(kernel.shared_bytes, 1)}"
    entry = [f"  {line}" for line in ir.entry]
    ir.entry = []
    head += " waiting:" if kernel.waits else " alone:"
    return "\n".join([head, *entry, *ir.lines, "  ret void", "}"])


def _element(emitter: ThreadEmitter) -> None:
    """A thread computes the element of its number, a block a tile."""
    if emitter.kernel.transposed_operands:
        shared_tile.tile(emitter)
        return
    ir, last, pass_ = emitter.ir, emitter.kernel.axes - 1, warp_reduce.FoldPass(emitter, 0)

    def compute(number: str) -> None:
        position, outer = number, "0"
        if last:
            position = int_op(ir, "urem", number, emitter.length(last))
            outer = int_op(ir, "udiv", number, emitter.length(last))
        emitter.set_indices(outer, last)
        emitter.begin(position)
        pass_.element(position)

    emitter.for_each_thread(emitter.elements(last + 1), compute)


THREAD_EMITTERS: dict[tuple[KernelForm, str], Callable[[ThreadEmitter], None]] = {
    (KernelForm.MAP, "kernel"): _element,
    (KernelForm.ROW, "kernel"): warp_reduce.row,
    (KernelForm.COLUMN, "kernel"): warp_reduce.column,
    (KernelForm.SPLIT, "kernel"): warp_reduce.split,
    (KernelForm.SPLIT, "finish"): warp_reduce.finish,
}
"""The emitter of a thread, by the form of its kernel and the name of its function."""
