"""Loops: operations on elements by themselves, compiled once for any shape.

Takes what native code has found of a node, an operation, its parameters, dtypes and how its array
operands lie, hands on what it needs to launch the loop of all such nodes (`native/singly.cpp`).

>>> from tenfold.dtypes import FLOAT32
>>> from tenfold.ops.arithmetic import add
>>> sizes_of(Loop(add, (), ((FLOAT32, False),) * 2, (FLOAT32,) * 2, FLOAT32, "1s"))
[(0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 1, 0), (1, 1, 1), (1, 2, 0), (2, 0, 0), (3, 0, 0)]
"""

from __future__ import annotations

import numpy as np

from tenfold import _native
from tenfold._native import EntryPoint
from tenfold.devices.bound_numbers import castable
from tenfold.devices.program import PROGRAMS, is_baseline
from tenfold.ir.op import Op, Params
from tenfold.plan.loop import Loop
from tenfold.plan.rules import has_rule
from tenfold.settings import get

LENGTH, STRIDE, PART, NOTHING = range(4)
"""What native code calls the sizes of a kernel: Loop::What in native/loops.h."""


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
    if not has_rule(op, params, operands, result, fma=not is_baseline(cpu)):
        return None
    found = Loop(op, params, inputs, operands, result, steps)
    # one that is compiled quickly is a tenth slower, and there in a third of the time
    program = PROGRAMS.of(found, 0, "0", cpu)
    _native.count("generic_compiles")
    return program.kernel, sizes_of(found)


def sizes_of(loop: Loop) -> list[tuple[int, int, int]]:
    """Return the sizes of its kernel in their order (`Kernel.sizes`): what, of which, which axis.

    The outer axis of each operand is strided.
    """
    strides = []
    for number, step in enumerate((*loop.steps, "1")):
        strides += [(STRIDE, number, axis) for axis in range(2 if step == "s" else 1)]
    return [(LENGTH, 0, 0), (LENGTH, 1, 0), *strides, (PART, 0, 0), (NOTHING, 0, 0)]
