"""Op kernels: compile one elementwise operation by itself, once for any shape.

Takes an operation, its parameters, dtypes and the layouts of its array operands from native code.
Hands on the kernel of all such nodes, or the index map of a view
(`native/exec/op_interpreter.cpp`); and the kernels that stack rows on a device.

>>> sizes("1s")
[(0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 1, 0), (1, 1, 1), (1, 2, 0), (2, 0, 0), (3, 0, 0)]
"""

from __future__ import annotations

import numpy as np

from tenfold import _native
from tenfold._native import TIERS, EntryPoint
from tenfold.core.index_map import IndexMap
from tenfold.core.op import Op, Params
from tenfold.core.shape_rules import Shape
from tenfold.jit.host import host_target
from tenfold.jit.program import PROGRAMS, program_of
from tenfold.runtime.device import DEVICES
from tenfold.runtime.launch_binding import casts_natively
from tenfold.schedule.elementwise_lowering import has_rule
from tenfold.schedule.generic_elementwise import GenericElementwise, canonical_steps

LENGTHS, STRIDES, PARTS, NO_SIZE = range(4)
"""The codes of kernel sizes in native code: Loop::What in native/exec/strided_kernels.h."""


def loop(
    op: Op[...],
    params: Params,
    inputs: tuple[tuple[np.dtype, bool], ...],
    operands: tuple[np.dtype, ...],
    result: np.dtype,
    steps: str,
) -> tuple[EntryPoint, list[tuple[int, int, int]]] | None:
    """Return the entry point of the kernel, and its sizes; None if the op has no kernel."""
    target = host_target()
    for (input_dtype, scalar), dtype in zip(inputs, operands, strict=True):
        if scalar and not casts_natively(input_dtype.type(0).item(), dtype):
            return None
    steps = canonical_steps(steps)
    kernel_loop = GenericElementwise(op, params, inputs, operands, result, steps)
    # a cached program implies a kernel rule; the check takes as long as loading the program
    program = PROGRAMS.cached(kernel_loop, target.processor) if kernel_loop.is_named else None
    if program is None:
        if not has_rule(op, params, operands, result, fma=target.simd.fma):
            return None
        # without optimisation it runs 1/7 slower but compiles three times as fast
        program = PROGRAMS.of(kernel_loop, 0, "0", target.processor)
    _native.count("generic_compiles")
    return program.kernel, sizes(steps)


def row_kernel(device: str, form: int, dtype: np.dtype) -> EntryPoint:
    """Return the kernel of a device for the rows of a batch."""
    if dtype.kind == "c":
        dtype = np.empty(0, dtype).real.dtype
    from tenfold.codegen.simt.row_table import RowForm, RowTable  # only devices of threads have it

    kernel, target = RowTable(RowForm(form), dtype), DEVICES[device].target()
    if target.ptx_processor:
        from tenfold.jit.ptx import ptx_program, runs_as_ptx  # imported only for such a device

        if runs_as_ptx(kernel):
            return ptx_program(kernel, target).kernel
    return program_of(kernel, TIERS.optimised_elements, target).kernel


def view_access(op: Op[...], params: Params, shape: Shape) -> IndexMap | None:
    """Return the index map of a view; () if the bytes stay the same in row-major order; None if it
    depends on more than the shape.

    >>> from tenfold.ops.indexing import index
    >>> view_access(index, (((None, 0, 3), (0, 5, 0)), (2,)), (4, 7))
    ((None, 0, 3), (0, 5, 0))
    """
    if op.is_affine_view:
        return op.reads(shape, params)
    keeps_order = op.lowering.strides is not None and op.lowering.inverse_view is not None
    return () if keeps_order else None


def fill_element(op: Op[...], params: Params, dtype: np.dtype) -> bytes:
    r"""Return the bytes of the element that a constant fill consists of.

    >>> from tenfold.ops.create import full
    >>> fill_element(full, ((2,), 1, np.dtype("int16"), "cpu"), np.dtype("int16"))
    b'\x01\x00'
    """
    assert op.rewriting.constant_fill is not None, "the op has a constant fill"
    with np.errstate(all="ignore"):
        return np.asarray(op.rewriting.constant_fill(*params)).astype(dtype).tobytes()


def sizes(steps: str) -> list[tuple[int, int, int]]:
    """Return the sizes of a kernel in the order of `Kernel.sizes`: (code, operand or axis, axis).

    The outer axis of each operand is strided.
    """
    strides = []
    for number, step in enumerate((*steps, "1")):
        strides += [(STRIDES, number, axis) for axis in range(2 if step == "s" else 1)]
    return [(LENGTHS, 0, 0), (LENGTHS, 1, 0), *strides, (PARTS, 0, 0), (NO_SIZE, 0, 0)]
