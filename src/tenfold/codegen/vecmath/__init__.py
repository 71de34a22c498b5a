"""Vector math: elementary functions as primitives, for float32 and float64 on every CPU with FMA.

Input: a Body and its elements. Output: the element of the result. Every CPU has the same formula. A
formula is a Python function in a file of this package, and calls other formulas directly.
`expand_formulas` inlines the formulas in a body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tenfold.codegen.vecmath import (
    exponential,
    hyperbolic,
    inverse_trigonometric,
    logarithm,
    power,
    special,
    trigonometric,
)
from tenfold.core.scalar_ir import Body, Element
from tenfold.ops import integer_division

FORMULAS: dict[str, Callable[..., Element]] = {
    **exponential.FORMULAS,
    **logarithm.FORMULAS,
    **power.FORMULAS,
    **trigonometric.FORMULAS,
    **inverse_trigonometric.FORMULAS,
    **hyperbolic.FORMULAS,
    **special.FORMULAS,
    **integer_division.FORMULAS,
}


def expand_formulas(body: Body, roots: Sequence[int]) -> tuple[Body, list[int]]:
    """Return a body with the called functions replaced by formulas, and its new root positions."""
    elements: dict[int, Element] = {}
    result = Body()
    for position, instruction in enumerate(body.instructions):
        inputs = [elements[i] for i in instruction.inputs]
        formula = FORMULAS.get(instruction.name)
        if formula is not None:
            elements[position] = formula(result, *inputs)
        else:
            elements[position] = result.apply(
                instruction.name, instruction.dtype, *inputs, data=instruction.data
            )
    return result, [elements[root].position for root in roots]
