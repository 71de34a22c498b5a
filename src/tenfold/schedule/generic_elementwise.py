"""Generic elementwise kernel: one unfused operation, for any shapes and layouts of its operands.

Takes an operation, its parameters and dtypes, and the steps of array operands along the inner axis,
hands on its kernel of two axes, which native code launches for any node of that kind
(`native/exec/op_interpreter.cpp`). The kernels of plans, which fuse operations, have the same bits.

>>> from tenfold.dtypes import FLOAT32
>>> from tenfold.ops.arithmetic import add
>>> inputs = ((FLOAT32, False), (np.dtype(float), True))
>>> print(GenericElementwise(add, (), inputs, (FLOAT32, FLOAT32), FLOAT32, "1").kernel)
kernel of 2 axes, inner
  operand 0: float32, steps s 1
  operand 1: float32, steps s 1, written
  %0 = load float32, 0
  %1 = parameter float32, 0
  %2 = add float32 %0 %1
  store %2 in operand 1
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from tenfold.core.loop_ir import Kernel, KernelStore
from tenfold.core.loop_ir import KernelOperand as InMemory
from tenfold.core.op import OPS, Op, Params
from tenfold.core.scalar_ir import Body, ComplexElement, Operand
from tenfold.dtypes import REAL_DTYPES
from tenfold.ops.cast import convert_element
from tenfold.schedule.elementwise_lowering import apply_rule
from tenfold.schedule.target import DEFAULT
from tenfold.schedule.vector_width import eliminate_dead_code, map_lanes, weight_of


def canonical_steps(steps: str) -> str:
    """Return the steps of the kernel that is used for operands with these steps. It is specialised
    where at most one operand is not contiguous; else every operand has a runtime stride.

    >>> canonical_steps("11"), canonical_steps("10"), canonical_steps("s0"), canonical_steps("0")
    ('11', '10', 'ss', 's')
    """
    contiguous = steps.count("1")
    is_specialised = contiguous == len(steps) or (contiguous == len(steps) - 1 and contiguous > 0)
    return steps if is_specialised else "s" * len(steps)


@dataclass(frozen=True, eq=False)
class GenericElementwise:
    """An elementwise operation with the dtypes and the steps of its operands. Equal ones have equal
    texts.
    """

    op: Op[...]
    params: Params
    inputs: tuple[tuple[np.dtype, bool], ...]
    """Of each operand its dtype, and whether it is a Python scalar."""
    operands: tuple[np.dtype, ...]
    """The dtypes in which they enter the computation."""
    result: np.dtype
    steps: str
    """Of each array along the inner axis: contiguous "1", broadcast "0", strided "s"."""

    @property
    def is_named(self) -> bool:
        """Whether the operation's name identifies it; users may have others of that name."""
        return OPS.get(self.op.full_name) is self.op

    @cached_property
    def text(self) -> str:
        """The text that identifies it."""
        if not self.is_named:
            return self.kernel.key
        # a scalar is passed in the dtype of the computation
        dtypes = " ".join(["*" if scalar else dtype_name(dtype) for dtype, scalar in self.inputs])
        entering = " ".join([dtype_name(dtype) for dtype in self.operands])
        return (
            f"loop {self.op.full_name}{self.params!r}: {dtypes} as {entering} "
            f"-> {dtype_name(self.result)}, steps {self.steps}"
        )

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GenericElementwise) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    @property
    def kernel(self) -> Kernel:
        """The kernel of two axes."""
        body = Body()
        memory: list[InMemory] = []
        operand_elements: list[Operand] = []
        scalars = 0
        for (dtype, scalar), operand in zip(self.inputs, self.operands, strict=True):
            if scalar:
                operand_elements.append(_parameter(body, scalars, operand))
                scalars += 1 + (operand in REAL_DTYPES)
            else:
                element = load_operand(body, len(memory), dtype)
                operand_elements.append(convert_element(body, element, operand))
                memory.append(InMemory(dtype, "s" + self.steps[len(memory)]))
        result = apply_rule(
            body, self.op, self.params, operand_elements, self.operands, self.result
        )
        assert result is not None, "it has a rule"
        components = result if isinstance(result, ComplexElement) else (result,)
        stores = [(len(memory), tuple(component.position for component in components))]
        memory.append(InMemory(self.result, "s1", written=True))
        instructions, live_stores = eliminate_dead_code(body.instructions, stores)
        weight = weight_of(instructions)
        widest = max([m.dtype.itemsize for m in memory] + [i.dtype.itemsize for i in instructions])
        return Kernel(
            tuple(memory),
            instructions,
            tuple(KernelStore(store.operand, store.elements) for store in live_stores),
            scalars,
            lanes=map_lanes(weight, widest),
            masked=weight > DEFAULT.simd.long_body_ops,
        )


@cache
def dtype_name(dtype: np.dtype) -> str:
    """Return a dtype's name, cached: NumPy builds it in microseconds at each call."""
    return str(dtype)


def _parameter(body: Body, position: int, dtype: np.dtype) -> Operand:
    if dtype not in REAL_DTYPES:
        return body.parameter(position, dtype)
    return ComplexElement(
        *(body.parameter(position + component, REAL_DTYPES[dtype]) for component in (0, 1))
    )


def load_operand(body: Body, operand: int, dtype: np.dtype) -> Operand:
    """Add the loads of an element of an operand."""
    if dtype not in REAL_DTYPES:
        return body.load(operand, dtype)
    return ComplexElement(
        *(body.apply("load", REAL_DTYPES[dtype], data=(operand, component)) for component in (0, 1))
    )
