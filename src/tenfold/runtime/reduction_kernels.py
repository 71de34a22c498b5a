"""Reduction kernels: compile one reduction along one axis, once for any shape and layout.

Takes an operation, dtypes and the layout of its operand from native code. Hands on the kernel of
all such nodes (`native/exec/reduction_kernels.cpp`).

    kernel, made, lanes, parts = fold_loop(sum, x.dtype, x.dtype, x.dtype, True, False, True, True)
"""

from __future__ import annotations

import numpy as np

from tenfold import _native
from tenfold._native import EntryPoint
from tenfold.core.op import Op
from tenfold.jit.host import host_target
from tenfold.jit.program import PROGRAMS
from tenfold.schedule.generic_reduction import GenericReduction


def fold_loop(
    op: Op[...],
    source: np.dtype,
    operand: np.dtype,
    result: np.dtype,
    column: bool,
    strided: bool,
    enters: bool,
    leaves: bool,
) -> tuple[EntryPoint, np.dtype, int, int]:
    """Return the entry point of the kernel, its output dtype and, for a column, the elements of a
    packet and the parts of a partial result: `GenericReduction` in native/exec/reduction_kernels.h.
    """
    reduction = GenericReduction(op, source, operand, result, column, strided, enters, leaves)
    # without optimisation it runs three times as long
    program = PROGRAMS.of(reduction, 0, "1", host_target().processor)
    _native.count("generic_compiles")
    if not column:  # rows do not use these numbers, and generating a kernel takes time
        return program.kernel, reduction.stored_dtype, 1, 1
    return (
        program.kernel,
        reduction.stored_dtype,
        reduction.kernel.lanes,
        reduction.kernel.most_parts,
    )
