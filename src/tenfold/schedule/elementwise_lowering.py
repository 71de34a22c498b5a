"""Elementwise lowering: translates an elementwise operation to instructions of the scalar IR.

Takes an operation and its operands as elements of the dtypes that its dtype rule names, hands on
the element of its result. It uses the kernel rule, the elementary function of that name, or the
element rule. Half types are computed in float32 and rounded, unless the operation takes their bits.

>>> from tenfold.dtypes import FLOAT16
>>> from tenfold.ops.arithmetic import add
>>> body = Body()
>>> x = body.load(0, FLOAT16)
>>> y = apply_rule(body, add, (), [x, x], (FLOAT16, FLOAT16), FLOAT16)
>>> print(body)
%0 = load float16, 0
%1 = convert float32 %0
%2 = add float32 %1 %1
%3 = convert float16 %2
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Node, Type
from tenfold.caches import memoized
from tenfold.core.graph import Graph
from tenfold.core.interpreter import interpret
from tenfold.core.op import Op, Params
from tenfold.core.scalar_ir import PRIMITIVES, Body, ComplexElement, Element, Instruction, Operand
from tenfold.dtypes import FLOAT32, HALF_DTYPES, REAL_DTYPES, kind_of
from tenfold.ops import integer_division
from tenfold.ops.cast import constant_element, convert_element

_HALVES = frozenset(HALF_DTYPES)
_DEVICE = "reference"
"""The device of placeholders; they are not computed."""


def apply_rule(
    k: Body,
    op: Op[...],
    params: Params,
    operands: Sequence[Operand],
    operand_dtypes: Sequence[np.dtype],
    result_dtype: np.dtype,
) -> Operand | None:
    """Return the element of an operation's result; None where it has no rule for these dtypes.

    `operands` have the dtypes `operand_dtypes`, a complex one as a ComplexElement.
    """
    if op.lowering.kernel is None and op.semantics.element is not None:
        return _apply_element_rule(k, op, operands, operand_dtypes, result_dtype)
    if not op.lowering.takes_halves and not _HALVES.isdisjoint(operand_dtypes):
        operands = [_half_to_float32(k, x) for x in operands]
    result = _apply_kernel_rule(k, op, params, operands)
    if result is None or isinstance(result, ComplexElement) or result.dtype == result_dtype:
        return result
    assert result_dtype in HALF_DTYPES, f"{op.name} made {result.dtype}"
    return k.convert(result, result_dtype)


def _half_to_float32(k: Body, x: Operand) -> Operand:
    """A half-precision element as float32; any other one unchanged."""
    return k.convert(x, FLOAT32) if isinstance(x, Element) and x.dtype in HALF_DTYPES else x


def _apply_kernel_rule(
    k: Body, op: Op[...], params: Params, operands: Sequence[Operand]
) -> Operand | None:
    if op.lowering.kernel is not None:
        result: Any = op.lowering.kernel(k, *operands, *params)
        return None if result is NotImplemented else result
    elements = [x for x in operands if isinstance(x, Element) and kind_of(x.dtype) == "f"]
    if not op.lowering.elementary or len(elements) < len(operands):
        return None
    return k.call(op.name, *elements)


def _apply_element_rule(
    k: Body,
    op: Op[...],
    operands: Sequence[Operand],
    operand_dtypes: Sequence[np.dtype],
    result_dtype: np.dtype,
) -> Operand | None:
    """Run an element rule on placeholders, and apply the rules of its operations."""
    assert op.semantics.element is not None, "an operation has a reference or an element rule"
    leaves = [_native.placeholder(Type((), dtype, _DEVICE)) for dtype in operand_dtypes]
    graph = Graph.of([_native.node_of(op.semantics.element(*leaves))])
    elements: dict[Node, Operand | Node | None] = dict(
        zip(map(_native.node_of, leaves), operands, strict=True)
    )

    def rule(node: Node, inputs: list[Operand | Node | None]) -> Operand | Node | None:
        if node.is_scalar:
            return node
        operand_elements = []
        for x, dtype in zip(inputs, node.operands, strict=True):
            if x is None:
                return None
            operand_elements.append(
                constant_element(k, x.scalar, dtype)
                if isinstance(x, Node)
                else convert_element(k, x, dtype)
            )
        return apply_rule(k, node.op, node.params, operand_elements, node.operands, node.type.dtype)

    (root,) = interpret(graph, elements, rule)
    if root is None or isinstance(root, Node):
        return None
    return convert_element(k, root, result_dtype)


def has_rule(
    op: Op[...],
    params: Params,
    operand_dtypes: tuple[np.dtype, ...],
    result_dtype: np.dtype,
    *,
    fma: bool = True,
) -> bool:
    """Whether an operation on these dtypes has a rule; `fma=False`: one without FMA."""
    if op.semantics.dtypes is None and op.lowering.kernel is None:
        return False
    lookup = _has_rule if op.permanent else _compute_has_rule  # a cache would keep it alive
    return lookup(op, params, operand_dtypes, result_dtype, fma)


def _compute_has_rule(
    op: Op[...],
    params: Params,
    operand_dtypes: tuple[np.dtype, ...],
    result_dtype: np.dtype,
    fma: bool,
) -> bool:
    k, operands = Body(), []
    for number, dtype in enumerate(operand_dtypes):
        part_dtype = REAL_DTYPES.get(dtype, dtype)
        loads = [
            k.apply("load", part_dtype, data=(number, i)) for i in range(1 + (dtype in REAL_DTYPES))
        ]
        operands.append(ComplexElement(*loads) if len(loads) == 2 else loads[0])
    if apply_rule(k, op, params, operands, operand_dtypes, result_dtype) is None:
        return False
    return fma or not _needs_fma(k.instructions)


_has_rule = memoized("element rules", 4096, "the answer needs the scalar IR of the operation")(
    _compute_has_rule
)


def _needs_fma(body: Sequence[Instruction]) -> bool:
    """Whether a body or its formulas contain `fma`; those of elementary functions do."""
    for instruction in body:
        name = instruction.data if instruction.name == "rare" else instruction.name
        if name == "fma":
            return True
        if name in PRIMITIVES:
            continue
        formula: Callable[..., Element] | None = integer_division.FORMULAS.get(str(name))
        if formula is None:
            return True
        formula_body = Body()
        inputs = instruction.inputs[2:] if instruction.name == "rare" else instruction.inputs
        formula(
            formula_body,
            *(formula_body.load(i, body[operand].dtype) for i, operand in enumerate(inputs)),
        )
        if _needs_fma(formula_body.instructions):
            return True
    return False
