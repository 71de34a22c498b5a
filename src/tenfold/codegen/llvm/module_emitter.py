"""Module emitter: the LLVM IR text of a kernel's whole program.

Input: a Kernel. Output: LLVM IR with one function of the kernel ABI, `kernel` (and, for split rows,
`finish`). Its signature is `int64 kernel(void** buffers, const int64* sizes, const double* scalars,
void* scratch, int64 begin, int64 end)`. It runs the units of work from begin to end, and returns 0,
or 1 + the number of the first element that failed. The text depends on the kernel alone.

>>> from tenfold.dtypes import FLOAT32
>>> from tenfold.core.loop_ir import KernelOperand
>>> from tenfold.core.scalar_ir import Body
>>> from tenfold.schedule.target import Simd
>>> body = Body()
>>> y = body.load(0, FLOAT32) * 2.0
>>> operands = (KernelOperand(FLOAT32, "1"), KernelOperand(FLOAT32, "1", written=True))
>>> stores = (KernelStore(1, (y.position,)),)
>>> text = render(Kernel(operands, tuple(body.instructions), stores, lanes=16), Simd())
>>> "fmul <16 x float>" in text
True
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tenfold.codegen.llvm import (
    blocked_scan,
    loop_kernel_emitter,
    reduce_inner,
    reduce_outer,
    scan,
    scatter,
    search,
    segment_loops,
    transpose,
)
from tenfold.codegen.llvm.function_emitter import HEADER, FunctionEmitter
from tenfold.codegen.llvm.loop_emitter import for_range, int_min, int_op
from tenfold.codegen.llvm.simd_emitter import SimdEmitter
from tenfold.codegen.vecmath import FORMULAS, expand_formulas
from tenfold.core.loop_ir import Kernel, KernelForm, KernelStore
from tenfold.core.scalar_ir import Body
from tenfold.schedule.target import Simd

__all__ = ["Kernel", "KernelStore", "render"]

UNIT_EMITTERS = {
    KernelForm.ROW: reduce_inner.unit,
    KernelForm.SHORT_ROW: reduce_inner.short_unit,
    KernelForm.SPLIT: reduce_inner.split_unit,
    KernelForm.COLUMN: reduce_outer.unit,
    KernelForm.SEARCH: search.unit,
    KernelForm.SEARCH_PARTS: search.split_unit,
    KernelForm.SCAN: scan.scan_rows,
    KernelForm.SCAN_BLOCKS: blocked_scan.scan_row,
    KernelForm.SCAN_PARTS: blocked_scan.scan_row,
    KernelForm.SCAN_COLUMNS: scan.scan_columns,
    KernelForm.LOOP: loop_kernel_emitter.unit,
    KernelForm.SEGMENTS: segment_loops.unit,
    KernelForm.SCATTER: scatter.scatter_all,
    KernelForm.SCATTER_PARTS: scatter.scatter_part,
}
"""The emitter of one unit of work, by the form of a kernel; maps have theirs below. Rows of
a scatter are emitted for all units together."""
AUXILIARY_UNITS = {
    (KernelForm.SPLIT, "finish"): reduce_inner.finish,
    (KernelForm.SEARCH_PARTS, "finish"): search.finish,
    (KernelForm.SCATTER_PARTS, "finish"): scatter.finish,
    (KernelForm.SCAN_PARTS, "totals"): blocked_scan.sum_part,
    (KernelForm.SCAN_PARTS, "carries"): blocked_scan.scan_totals,
    (KernelForm.SCAN_PARTS, "parts"): blocked_scan.scan_part,
}
"""The emitter of one unit of work of the other functions, by form and name."""


def render(kernel: Kernel, simd: Simd) -> str:
    """Return the text of a kernel's module, for these vector instructions."""
    description = "".join([f"; {line}\n" for line in str(kernel).splitlines()])
    kernel = with_formulas(kernel)
    ir = SimdEmitter(baseline=not simd.fma, masks=simd.masked_bytes)
    sections = sections_of(ir, [_function(name, kernel, ir) for name in kernel.functions])
    metadata = ["!0 = !{i32 1}"]
    if kernel.form is KernelForm.SEGMENTS:
        metadata += ["!1 = distinct !{!1, !2}", '!2 = !{!"llvm.loop.unroll.count", i32 2}']
    return description + "\n".join([*sections, *metadata, ""])


def sections_of(ir: SimdEmitter, functions: Sequence[str]) -> list[str]:
    """Return the parts of a module of these functions, with all that they refer to."""
    constants = [
        f"{name} = private unnamed_addr constant {content}" for name, content in ir.globals.items()
    ]
    return [*constants, *ir.functions.values(), *functions, *ir.declarations.values()]


def with_formulas(kernel: Kernel) -> Kernel:
    """Return a kernel with formulas in place of elementary functions."""
    if FORMULAS.keys().isdisjoint([instruction.name for instruction in kernel.body]):
        return kernel
    body = Body()
    body.instructions = list(kernel.body)
    expanded, positions = expand_formulas(body, range(len(kernel.body)))
    stores = tuple(
        KernelStore(store.operand, tuple(positions[i] for i in store.elements))
        for store in kernel.stores
    )
    cached_elements = tuple(positions[i] for i in kernel.cached_elements)
    pass_results = tuple(positions[i] for i in kernel.pass_results)
    return replace(
        kernel,
        body=tuple(expanded.instructions),
        stores=stores,
        cached_elements=cached_elements,
        pass_results=pass_results,
    )


def _function(name: str, kernel: Kernel, ir: SimdEmitter) -> str:
    ir.lines = []
    ir.block = "entry"
    ir.value_cache.clear()
    emitter = FunctionEmitter(kernel, ir)
    if name != "kernel":
        emit_unit = AUXILIARY_UNITS[kernel.form, name]
        for_range(ir, "%begin", "%end", 1, lambda unit: emit_unit(emitter, unit))
    elif kernel.transposed_operands:
        for_range(ir, "%begin", "%end", 1, lambda unit: transpose.unit(emitter, unit))
    elif kernel.form is KernelForm.MAP:
        _map_units(emitter)
    elif kernel.form is KernelForm.SCATTER_ROWS:
        scatter.scatter_rows(emitter)
    else:
        emit_unit_ = UNIT_EMITTERS[kernel.form]
        for_range(ir, "%begin", "%end", 1, lambda unit: emit_unit_(emitter, unit))
    ir.line("ret i64 0")
    entry = [f"  {line}" for line in ir.entry]
    ir.entry = []
    return "\n".join([f"define i64 @{name}({HEADER}) {{", "entry:", *entry, *ir.lines, "}"])


def _map_units(emitter: FunctionEmitter) -> None:
    """A unit of work is a part of the packet axis at one index of the others."""
    ir, kernel = emitter.ir, emitter.kernel
    last = kernel.axes - 1
    length, unit_length = emitter.length(last), emitter.unit_length
    rounded = int_op(ir, "add", length, int_op(ir, "sub", unit_length, 1))
    unit_count = int_op(ir, "udiv", rounded, unit_length)

    def emit_unit(number: str) -> None:
        unit_index, outer = number, "0"
        if last:
            outer = int_op(ir, "udiv", number, unit_count)
            unit_index = int_op(ir, "urem", number, unit_count)
        emitter.set_indices(outer, last)
        begin = int_op(ir, "mul", unit_index, unit_length)
        end = int_min(ir, int_op(ir, "add", begin, unit_length), length)
        reduce_inner.begin_row(emitter)
        reduce_inner.map_elements(emitter, 0, begin, end)

    for_range(ir, "%begin", "%end", 1, emit_unit)
