"""Op kernels: compile one elementwise operation by itself, once for any shape.

Takes an operation, its parameters, dtypes and the layouts of its array operands, as native code
found them. Hands on the launch of the loop of all such nodes, or the view of a movement
(`native/exec/op_interpreter.cpp`).

>>> sizes("1s")
[(0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 1, 0), (1, 1, 1), (1, 2, 0), (2, 0, 0), (3, 0, 0)]
"""

from __future__ import annotations

from functools import cache

import numpy as np

from tenfold import _native
from tenfold._native import EntryPoint
from tenfold.core.op import Op, Params
from tenfold.core.shape_rules import Shape
from tenfold.jit.program import PROGRAMS, is_baseline
from tenfold.runtime.executable_scalars import castable
from tenfold.schedule.elementwise_lowering import has_rule
from tenfold.schedule.generic_elementwise import GenericElementwise, canonical_steps
from tenfold.settings import get

LENGTH, STRIDE, PART, NOTHING = range(4)
"""What native code calls the sizes of a kernel: Loop::What in native/exec/strided_kernels.h."""


def loop(
    op: Op[...],
    params: Params,
    inputs: tuple[tuple[np.dtype, bool], ...],
    operands: tuple[np.dtype, ...],
    result: np.dtype,
    steps: str,
) -> tuple[EntryPoint, list[tuple[int, int, int]]] | None:
    """Return where the kernel is, and its sizes; None where the operation has none."""
    cpu = str(get("cpu"))
    for (own, scalar), dtype in zip(inputs, operands, strict=True):
        if scalar and not castable(own.type(0).item(), dtype):
            return None
    steps = canonical_steps(steps)
    found = GenericElementwise(op, params, inputs, operands, result, steps)
    # what was compiled before has a rule, and to look for that takes as long as to load it
    program = PROGRAMS.there(found, cpu) if found.is_named else None
    if program is None:
        if not has_rule(op, params, operands, result, fma=not is_baseline(cpu)):
            return None
        # one that is compiled quickly is a seventh slower, and there in a third of the time
        program = PROGRAMS.of(found, 0, "0", cpu)
    _native.count("generic_compiles")
    return program.kernel, sizes(steps)


def movement(
    op: Op[...], params: Params, shape: Shape
) -> tuple[tuple[int | None, int, int], ...] | None:
    """Return how a view reads its input: of each axis of that the axis of the result along which it
    goes, how many elements a step, and where it begins; () for what has the same bytes in row-major
    order; None where it depends on more.

    >>> from tenfold.ops.indexing import index
    >>> movement(index, ((3, (0, 2, 5)), ()), (4, 7))
    ((None, 0, 3), (0, 5, 0))
    """
    if op.reads is not None:
        return op.reads(shape, *params)
    keeps_order = op.strides is not None and op.inverse_view is not None
    return () if keeps_order else None


@cache
def sizes(steps: str) -> list[tuple[int, int, int]]:
    """Return the sizes of a loop's kernel in their order (`Kernel.sizes`): what, of which, which
    axis. The outer axis of each operand is strided.
    """
    strides = []
    for number, step in enumerate((*steps, "1")):
        strides += [(STRIDE, number, axis) for axis in range(2 if step == "s" else 1)]
    return [(LENGTH, 0, 0), (LENGTH, 1, 0), *strides, (PART, 0, 0), (NOTHING, 0, 0)]
