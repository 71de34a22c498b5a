"""Loop kernel: a step of elementwise operations becomes one kernel with the loop inside.

Takes the Subgraph of a step (its inputs: carry, rows, captures; its results: next carry, rows or a
condition), hands on the Kernel of form "loop". All arrays of a step have one shape of at most
64 elements, or no axes: then an element depends on the same element of the step before only, and
has the bits of the step computed by itself.

>>> import tenfold as tn
>>> from tenfold import _native
>>> from tenfold.schedule.target import DEFAULT
>>> x = tn._native.placeholder(tn._native.Type((), tn.float64, "cpu"))
>>> step = Subgraph("double", [_native.node_of(x * 2)], [_native.node_of(x)])
>>> print(loop_kernel_of(step, 1, 0, DEFAULT, until=False).kernel)
kernel of 2 axes, loop
  operand 0: float64, steps 0 0
  operand 1: float64, steps 0 0, written
  %0 = carry float64, (0, 0)
  %1 = constant float64, 4611686018427387904
  %2 = multiply float64 %0 %1
  store %2 in operand 1
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tenfold._native import Node
from tenfold.core.interpreter import interpret
from tenfold.core.loop_ir import Kernel, KernelForm, KernelOperand, KernelStore
from tenfold.core.op import Kind
from tenfold.core.scalar_ir import Body, ComplexElement, Instruction, Operand
from tenfold.core.shape_rules import Shape, product
from tenfold.core.subgraph import Subgraph
from tenfold.dtypes import BOOL, REAL_DTYPES, kind_of
from tenfold.ops.cast import constant_element, convert_element
from tenfold.schedule.elementwise_lowering import apply_rule, has_rule
from tenfold.schedule.target import Target

MAX_STEP_ELEMENTS, MAX_STEP_INSTRUCTIONS = 64, 2000
"""The largest arrays and the longest body of a step that becomes a kernel."""
UNSUPPORTED = frozenset(["fail", "index", "gather", "parameter", "fold", "scan", "scatter"])
"""Instructions that a step cannot have."""


@dataclass(frozen=True)
class LoopKernel:
    """A step as a kernel: the shape of its arrays, and the kernel.

    Of c carried values the operands are the first values, the last values; then the rows, the
    captures, and the rows of results.
    """

    shape: Shape
    kernel: Kernel


def loop_kernel_of(
    step: Subgraph, carry_count: int, row_count: int, target: Target, *, until: bool
) -> LoopKernel | None:
    """Return the loop kernel of a step; None if it has other operations, or several shapes.

    `until`: the last result is the condition of the next step; it is carried, too.
    """
    shapes = {node.type.shape for node in (*step.inputs, *step.outputs)} - {()}
    if len(shapes) > 1 or not step.outputs or not carry_count:
        return None
    (shape,) = shapes or {()}
    if not 1 <= product(shape) <= MAX_STEP_ELEMENTS:
        return None
    lowering = _StepLowering(step, carry_count, row_count, target, until=until)
    kernel = lowering.kernel(product(shape))
    return None if kernel is None else LoopKernel(shape, kernel)


class _StepLowering:
    """The body of a step, and the memory it reads and writes."""

    def __init__(
        self, step: Subgraph, carry_count: int, row_count: int, target: Target, *, until: bool
    ) -> None:
        self.step, self.until, self.target = step, until, target
        self.carry_count = carry_count + until
        self.body = Body()
        inputs = list(step.inputs)
        carried = inputs[:carry_count]
        others = inputs[carry_count:]
        first = [_operand(node, "0") for node in carried]
        if until:
            first.append(KernelOperand(BOOL, "00"))
        self.operands = [*first, *(operand._replace(written=True) for operand in first)]
        self.environment: dict[Node, Operand | Node | None] = {
            node: self._element("carry", number, node.type.dtype)
            for number, node in enumerate(carried)
        }
        for position, node in enumerate(others):
            self.environment[node] = self._element("load", len(self.operands), node.type.dtype)
            self.operands.append(_operand(node, "s" if position < row_count else "0"))

    def _element(self, name: str, number: int, dtype: np.dtype) -> Operand:
        if dtype not in REAL_DTYPES:
            return self.body.apply(name, dtype, data=(number, 0) if name == "carry" else number)
        parts = (self.body.apply(name, REAL_DTYPES[dtype], data=(number, i)) for i in (0, 1))
        return ComplexElement(*parts)

    def _rule(self, node: Node, inputs: list[Operand | Node | None]) -> Operand | Node | None:
        """The element of a node; the node itself of a Python scalar; None without a rule."""
        if node.is_scalar:
            return node
        known = [x for x in inputs if x is not None]
        if node.op is None or node.op.semantics.kind != Kind.MAP or len(known) < len(inputs):
            return None
        operands, dtype = node.operands, node.type.dtype
        if node.op.semantics.can_fail or not has_rule(
            node.op, node.params, operands, dtype, fma=self.target.simd.fma
        ):
            return None
        elements = [
            constant_element(self.body, x.scalar, operand)
            if isinstance(x, Node)
            else convert_element(self.body, x, operand)
            for x, operand in zip(known, operands, strict=True)
        ]
        return apply_rule(self.body, node.op, node.params, elements, operands, dtype)

    def kernel(self, elements: int) -> Kernel | None:
        """Return the kernel of arrays of so many elements; None if an operation has no rule."""
        results = interpret(self.step.graph, self.environment, self._rule)
        stores = []
        for position, (result, node) in enumerate(zip(results, self.step.outputs, strict=True)):
            if result is None or isinstance(result, Node):
                return None
            number = self.carry_count + position  # last values come after the first ones
            if position >= self.carry_count:
                number = len(self.operands)
                self.operands.append(_operand(node, "s")._replace(written=True))
            parts = result if isinstance(result, ComplexElement) else (result,)
            stores.append(KernelStore(number, tuple(part.position for part in parts)))
        if self.until:
            (condition,) = stores[self.carry_count - 1].elements
            self.body.emit(Instruction("continue", BOOL, (condition,)))
        names = {instruction.name for instruction in self.body.instructions}
        if names & UNSUPPORTED or len(self.body.instructions) > MAX_STEP_INSTRUCTIONS:
            return None
        instructions = tuple(self.body.instructions)
        lanes = self._lanes(elements)
        return Kernel(
            tuple(self.operands), instructions, tuple(stores), form=KernelForm.LOOP, lanes=lanes
        )

    def _lanes(self, elements: int) -> int:
        """The elements that are computed at once: of a loop with a condition, or complex, one."""
        dtypes = {operand.dtype for operand in self.operands}
        if self.until or any(kind_of(dtype) == "c" for dtype in dtypes):
            return 1
        widest = max(dtype.itemsize for dtype in dtypes)
        lanes = min(self.target.simd.max_lanes, 4 * self.target.simd.packet_bytes // widest)
        while lanes > elements:
            lanes //= 2
        return lanes


def _operand(node: Node, step: str) -> KernelOperand:
    return KernelOperand(node.type.dtype, step + ("1" if node.type.shape else "0"))


__all__ = ["LoopKernel", "loop_kernel_of"]
