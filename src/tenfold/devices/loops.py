"""Loops: kernels of one operation on elements that take operands of any shape and layout.

Takes an operation, its parameters and dtypes, and how array operands lie along the inner axis,
hands on what native code needs to launch it for any node of that kind (`native/singly.cpp`). They
are compiled once; the kernels of plans, which fuse operations, have the same bits.

>>> from tenfold.dtypes import FLOAT32
>>> from tenfold.ops.arithmetic import add
>>> inputs = ((FLOAT32, False), (np.dtype(float), True))
>>> print(loop_kernel(add, (), inputs, (FLOAT32, FLOAT32), FLOAT32, "1"))
kernel of 2 axes, inner
  operand 0: float32, steps s 1
  operand 1: float32, steps s 1, written
  %0 = load float32, 0
  %1 = parameter float32, 0
  %2 = add float32 %0 %1
  store %2 in operand 1
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tenfold import _native
from tenfold.devices.program import PROGRAMS, is_baseline
from tenfold.dtypes import PARTS, kind_of
from tenfold.ir.body import Body, Operand, Pair
from tenfold.ir.kernel import Kernel, Store
from tenfold.ir.kernel import Operand as InMemory
from tenfold.ir.op import Op, Params
from tenfold.ops.cast import converted_element
from tenfold.plan.rules import apply_rule, has_rule
from tenfold.plan.traverse import LONG_BODY, lanes_of_map, pruned, weight_of
from tenfold.settings import get

Inputs = Sequence[tuple[np.dtype, bool]]
"""Of each operand its dtype, and whether it is a Python scalar."""
WHAT = {"length": 0, "stride": 1, "part": 2, "slots": 3}
"""What native code calls the sizes of a kernel: Loop::What in native/loops.h."""


def loop(
    op: Op[...],
    params: Params,
    inputs: Inputs,
    operands: tuple[np.dtype, ...],
    result: np.dtype,
    steps: str,
) -> tuple[int, int, list[tuple[int, int, int]]] | None:
    """Return where the kernel is, its lanes and its sizes; None where the operation has none."""
    cpu = str(get("cpu"))
    if not has_rule(op, params, operands, result, fma=not is_baseline(cpu)):
        return None
    if not all(
        _castable(own, dtype)
        for (own, scalar), dtype in zip(inputs, operands, strict=True)
        if scalar
    ):
        return None
    kernel = loop_kernel(op, params, inputs, operands, result, steps)
    # one that is compiled quickly is a tenth slower, and there in a third of the time
    program = PROGRAMS.of(kernel, 0, "auto", cpu)
    _native.count("generic_compiles")
    sizes = [(WHAT[what], first, axis) for what, first, axis in kernel.sizes]
    return program.kernel, kernel.lanes, sizes


def loop_kernel(
    op: Op[...],
    params: Params,
    inputs: Inputs,
    operands: Sequence[np.dtype],
    result: np.dtype,
    steps: str,
) -> Kernel:
    """Return the kernel of two axes; `steps` has how each array lies along the inner one."""
    body = Body()
    memory: list[InMemory] = []
    given: list[Operand] = []
    scalars = 0
    for (dtype, scalar), operand in zip(inputs, operands, strict=True):
        if scalar:
            given.append(_parameter(body, scalars, operand))
            scalars += 1 + (operand in PARTS)
        else:
            made = _loaded(body, len(memory), dtype)
            given.append(converted_element(body, made, operand))
            memory.append(InMemory(dtype, "s" + steps[len(memory)]))
    made_of_it = apply_rule(body, op, params, given, operands, result)
    assert made_of_it is not None, "it has a rule"
    parts = made_of_it if isinstance(made_of_it, Pair) else (made_of_it,)
    stores = [(len(memory), tuple(part.position for part in parts))]
    memory.append(InMemory(result, "s1", written=True))
    instructions, kept = pruned(body.instructions, stores)
    weight = weight_of(instructions)
    widest = max([m.dtype.itemsize for m in memory] + [i.dtype.itemsize for i in instructions])
    return Kernel(
        tuple(memory),
        instructions,
        tuple(Store(store.operand, store.elements) for store in kept),
        scalars,
        lanes=lanes_of_map(weight, widest),
        masked=weight > LONG_BODY,
    )


def _castable(scalar: np.dtype, dtype: np.dtype) -> bool:
    """Whether native code casts such a Python scalar to the dtype as NumPy does."""
    if kind_of(dtype) == "f":
        return dtype.itemsize >= 4 and kind_of(scalar) in "bif"
    return kind_of(dtype) == "c" or kind_of(scalar) in "bi"


def _parameter(body: Body, first: int, dtype: np.dtype) -> Operand:
    if dtype not in PARTS:
        return body.parameter(first, dtype)
    return Pair(*(body.parameter(first + part, PARTS[dtype]) for part in (0, 1)))


def _loaded(body: Body, operand: int, dtype: np.dtype) -> Operand:
    if dtype not in PARTS:
        return body.load(operand, dtype)
    return Pair(*(body.apply("load", PARTS[dtype], data=(operand, part)) for part in (0, 1)))
