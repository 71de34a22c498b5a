"""Complex parts: lift kernel rules of real elements to complex ones, part by part.

Takes rules on elements, hands on rules on operands, which are elements or ComplexElements.

>>> from tenfold.dtypes import FLOAT32
>>> body = Body()
>>> z = ComplexElement(body.load(0, FLOAT32), body.load(1, FLOAT32))
>>> componentwise(lambda k, x: -x)(body, z)
ComplexElement(real=<%2 float32>, imaginary=<%3 float32>)
>>> real_only(lambda k, x: -x)(body, z)
NotImplemented
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.core.scalar_ir import Body, ComplexElement, Element

RealFormula = Callable[..., Element]
"""A rule of real elements."""


def componentwise(rule: RealFormula) -> Callable[..., Any]:
    """Return a rule that makes the real part of real parts, the imaginary one of imaginary ones."""

    def on_parts(k: Body, *operands: ComplexElement) -> ComplexElement:
        real, imaginary = zip(*operands, strict=True)
        return ComplexElement(rule(k, *real), rule(k, *imaginary))

    return real_or_complex(rule, on_parts)


def real_or_complex(real: RealFormula, of_complex: Callable[..., Any]) -> Callable[..., Any]:
    """Return a rule that is one of two: for real operands, or for complex ones, which are
    ComplexElements.
    """

    def rule(k: Body, *operands: Any) -> Any:
        return (of_complex if isinstance(operands[0], ComplexElement) else real)(k, *operands)

    return rule


def real_only(rule: RealFormula) -> Callable[..., Any]:
    """Return a rule that refuses complex elements: a call computes them."""
    return real_or_complex(rule, lambda *_: NotImplemented)


def product(_: Body, x: ComplexElement, y: ComplexElement) -> ComplexElement:
    """Return `x * y`, each product and each sum rounded."""
    return ComplexElement(
        x.real * y.real - x.imaginary * y.imaginary,
        x.real * y.imaginary + x.imaginary * y.real,
    )


def quotient(k: Body, x: ComplexElement, y: ComplexElement) -> ComplexElement:
    """Return `x / y` by way of the larger part of `y`, as NumPy does; by zero each part alone.

    Smith 1962, "Algorithm 116: Complex division", Communications of the ACM 5(8), page 435.
    """
    by_real = k.abs(y.real) >= k.abs(y.imaginary)
    divisor_large = k.select(by_real, y.real, y.imaginary)
    divisor_small = k.select(by_real, y.imaginary, y.real)
    ratio = divisor_small / divisor_large
    scale = 1.0 / (divisor_large + divisor_small * ratio)
    swapped = k.select(by_real, x.real, x.imaginary), k.select(by_real, x.imaginary, x.real)
    real = swapped[0] + swapped[1] * ratio
    imaginary = k.select(by_real, x.imaginary - x.real * ratio, x.imaginary * ratio - x.real)
    by_zero, zero = (divisor_large == 0) & (divisor_small == 0), k.abs(divisor_large)
    return ComplexElement(
        k.select(by_zero, x.real / zero, real * scale),
        k.select(by_zero, x.imaginary / zero, imaginary * scale),
    )


def reciprocal(k: Body, x: ComplexElement) -> ComplexElement:
    """Return `1 / x`, by way of its larger part, as NumPy does (see `quotient`)."""
    by_real = k.abs(x.imaginary) <= k.abs(x.real)
    divisor_large = k.select(by_real, x.real, x.imaginary)
    divisor_small = k.select(by_real, x.imaginary, x.real)
    ratio = divisor_small / divisor_large
    divisor = divisor_large + divisor_small * ratio
    inverse, scaled_inverse = 1.0 / divisor, ratio / divisor
    return ComplexElement(
        k.select(by_real, inverse, scaled_inverse), k.select(by_real, -scaled_inverse, -inverse)
    )


def modulus(k: Body, x: ComplexElement) -> Element:
    """Return the distance of `x` from 0, without overflow."""
    return k.call("hypot", x.real, x.imaginary)


def direction(k: Body, x: ComplexElement) -> ComplexElement:
    """Return `x / abs(x)`, 0 for 0. Of an infinite number the one infinite part counts alone."""
    length = modulus(k, x)

    def component(a: Element, b: Element) -> Element:
        one = k.copysign(k.constant(1.0, a.dtype), a)
        limit = k.select(k.abs(a) == np.inf, one, 0.0)
        limit = k.select(k.abs(a) == k.abs(b), np.nan, limit)
        result = k.select(length == np.inf, limit, a / length)
        return k.select(length == 0, 0.0, result)

    return ComplexElement(component(x.real, x.imaginary), component(x.imaginary, x.real))
