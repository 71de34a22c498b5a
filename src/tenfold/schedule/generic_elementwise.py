"""Generic elementwise kernel: one operation by itself, for any shapes and layouts of its operands.

Takes an operation, its parameters and dtypes, and how array operands lie along the inner axis,
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
from tenfold.dtypes import PARTS
from tenfold.ops.cast import converted_element
from tenfold.schedule.elementwise_lowering import apply_rule
from tenfold.schedule.vector_width import LONG_BODY, lanes_of_map, pruned, weight_of


def form_of(steps: str) -> str:
    """Return the steps of the loop that is used for operands that lie so: one for each way in which
    one of them is not contiguous, and one for all others, which goes through each by its stride.

    >>> form_of("11"), form_of("10"), form_of("s0"), form_of("0")
    ('11', '10', 'ss', 's')
    """
    contiguous = steps.count("1")
    few = contiguous == len(steps) or (contiguous == len(steps) - 1 and contiguous > 0)
    return steps if few else "s" * len(steps)


@dataclass(frozen=True, eq=False)
class GenericElementwise:
    """An operation on elements, of operands of some dtypes that lie in some way. Equal ones have
    equal texts.
    """

    op: Op[...]
    params: Params
    inputs: tuple[tuple[np.dtype, bool], ...]
    """Of each operand its dtype, and whether it is a Python scalar."""
    operands: tuple[np.dtype, ...]
    """The dtypes in which they enter the computation."""
    result: np.dtype
    steps: str
    """Of each array along the inner axis: contiguous "1", not stepped through "0", strided "s"."""

    @property
    def is_named(self) -> bool:
        """Whether the operation's name says which it is; users may have others of that name."""
        return OPS.get(self.op.full_name) is self.op

    @cached_property
    def text(self) -> str:
        """What tells it from others."""
        if not self.is_named:
            return repr(self.kernel)
        # a scalar comes as what it enters as
        dtypes = " ".join(["*" if scalar else word(dtype) for dtype, scalar in self.inputs])
        entering = " ".join([word(dtype) for dtype in self.operands])
        return (
            f"loop {self.op.full_name}{self.params!r}: {dtypes} as {entering} "
            f"-> {word(self.result)}, steps {self.steps}"
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
        given: list[Operand] = []
        scalars = 0
        for (dtype, scalar), operand in zip(self.inputs, self.operands, strict=True):
            if scalar:
                given.append(_parameter(body, scalars, operand))
                scalars += 1 + (operand in PARTS)
            else:
                made = loaded(body, len(memory), dtype)
                given.append(converted_element(body, made, operand))
                memory.append(InMemory(dtype, "s" + self.steps[len(memory)]))
        made_of_it = apply_rule(body, self.op, self.params, given, self.operands, self.result)
        assert made_of_it is not None, "it has a rule"
        parts = made_of_it if isinstance(made_of_it, ComplexElement) else (made_of_it,)
        stores = [(len(memory), tuple(part.position for part in parts))]
        memory.append(InMemory(self.result, "s1", written=True))
        instructions, kept = pruned(body.instructions, stores)
        weight = weight_of(instructions)
        widest = max([m.dtype.itemsize for m in memory] + [i.dtype.itemsize for i in instructions])
        return Kernel(
            tuple(memory),
            instructions,
            tuple(KernelStore(store.operand, store.elements) for store in kept),
            scalars,
            lanes=lanes_of_map(weight, widest),
            masked=weight > LONG_BODY,
        )


@cache
def word(dtype: np.dtype) -> str:
    """Return a dtype's name: NumPy makes it anew each time, in microseconds."""
    return str(dtype)


def _parameter(body: Body, first: int, dtype: np.dtype) -> Operand:
    if dtype not in PARTS:
        return body.parameter(first, dtype)
    return ComplexElement(*(body.parameter(first + part, PARTS[dtype]) for part in (0, 1)))


def loaded(body: Body, operand: int, dtype: np.dtype) -> Operand:
    """Add what reads an element of an operand."""
    if dtype not in PARTS:
        return body.load(operand, dtype)
    return ComplexElement(
        *(body.apply("load", PARTS[dtype], data=(operand, part)) for part in (0, 1))
    )
