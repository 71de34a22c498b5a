"""Vector math: elementary functions as primitives, for float32 and float64 on every CPU with FMA.

Takes a Body and its elements, hands on the element of the result. There is one formula for every
CPU. A formula is a function of that name in one of the files here; it calls others as the Python
functions they are. `expanded` puts the formulas into a body.
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
    """Return a body in which formulas stand for the functions called, and where its roots are."""
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
