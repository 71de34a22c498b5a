"""Trigonometric functions: sin, cos and tan of packets.

Input: a Body and an element of radians. Output: the element of the result. Both polynomials are
computed for every element and the quadrant selects one of them: there is no branch, and the sine
and the cosine of one angle share all but the selection.

Largest errors seen, in units in the last place. float32 was compared over all 2^32 inputs with
NumPy's float64. float64 was compared with NumPy's long double over 3 million each of small, large,
huge and tiny angles and of those next to multiples of pi / 2:

    float32: sin 1.49, cos 1.49, tan 3.23
    float64: sin 1.50, cos 1.49, tan 3.08

>>> from tenfold.dtypes import FLOAT32
>>> body = Body()
>>> x = body.load(0, FLOAT32)
>>> one = len([sin(body, x)] and body.instructions)
>>> both = len([cos(body, x)] and body.instructions)
>>> both - one < 10
True
"""

from __future__ import annotations

from collections.abc import Callable

from tenfold.codegen.vecmath.argument_reduction import (
    is_large,
    reduce_argument,
    reduce_large_argument,
)
from tenfold.core.scalar_ir import SIGNED, Body, Element
from tenfold.dtypes import FLOAT32, FLOAT64

# The polynomials in s = r * r, by Remez' exchange for |r| <= 0.7905. What
# tools/coefficients/trigonometric.py prints: the largest relative error, the coefficients.
SINE = {
    # 2^-28.0
    FLOAT32: (-0.16666667, 0.008333329, -0.0001983926, 2.717632e-06),
    # 2^-56.5
    FLOAT64: (
        -0.16666666666666627,
        0.008333333333321365,
        -0.00019841269828968294,
        2.7557313399751916e-06,
        -2.5050712164289817e-08,
        1.5894118096706834e-10,
    ),
}
"""P in sin(r) = r + r * s * P(s)."""
COSINE = {
    # 2^-28.7
    FLOAT32: (-0.5, 0.04166662, -0.0013886623, 2.4378041e-05),
    # 2^-58.0
    FLOAT64: (
        -0.5,
        0.041666666666666456,
        -0.0013888888888860167,
        2.4801587283148814e-05,
        -2.7557312871816037e-07,
        2.087555091823292e-09,
        -1.135173564809036e-11,
    ),
}
"""C in cos(r) = 1 + s * C(s)."""

Angle = tuple[Element, Element]
"""A remainder in [-pi / 4, pi / 4] and its quadrant."""


def sin(k: Body, x: Element) -> Element:
    """Return the sine of `x` radians, within 2 ULP for every float; NaN of infinities.

    -0 has the sine -0, and a subnormal number has itself.
    """
    return k.rare(is_large(k, x), "sin_of_large", _sine(k, reduce_argument(k, x)), x)


def cos(k: Body, x: Element) -> Element:
    """Return the cosine of `x` radians, within 2 ULP for every float; NaN of infinities."""
    return k.rare(is_large(k, x), "cos_of_large", _cosine(k, reduce_argument(k, x)), x)


def tan(k: Body, x: Element) -> Element:
    """Return the tangent of `x` radians, within 4 ULP for every float; NaN of infinities."""
    return k.rare(is_large(k, x), "tan_of_large", _tangent(k, reduce_argument(k, x)), x)


def _sin_cos(k: Body, remainder: Element) -> tuple[Element, Element]:
    """Return sine and cosine of a remainder."""
    square, dtype = remainder * remainder, remainder.dtype
    sine = k.fma(remainder * square, k.polynomial(square, SINE[dtype]), remainder)
    # The sum of -0 and 0 is 0.
    return k.copysign(sine, remainder), k.polynomial(square, (1.0, *COSINE[dtype]))


def _sine(k: Body, angle: Angle) -> Element:
    remainder, quadrant = angle
    sine, cosine = _sin_cos(k, remainder)
    selected = k.select((quadrant & 1) == 0, sine, cosine)
    return _negate_in_quadrant(k, selected, quadrant, 2)


def _cosine(k: Body, angle: Angle) -> Element:
    remainder, quadrant = angle
    sine, cosine = _sin_cos(k, remainder)
    selected = k.select((quadrant & 1) == 0, cosine, sine)
    return _negate_in_quadrant(k, selected, quadrant + 1, 2)


def _tangent(k: Body, angle: Angle) -> Element:
    remainder, quadrant = angle
    sine, cosine = _sin_cos(k, remainder)
    is_even = (quadrant & 1) == 0
    quotient = k.select(is_even, sine, cosine) / k.select(is_even, cosine, sine)
    return _negate_in_quadrant(k, quotient, quadrant, 1)


def _negate_in_quadrant(k: Body, x: Element, quadrant: Element, bit: int) -> Element:
    """Return `x`, negated where a bit of the quadrant is set."""
    width = 8 * x.dtype.itemsize
    sign = (quadrant << (width - bit.bit_length())) & (-1 << (width - 1))
    return k.bits(k.bits(x, SIGNED[x.dtype.itemsize]) ^ sign, x.dtype)


def _large_formula(choose: Callable[[Body, Angle], Element]) -> Callable[[Body, Element], Element]:
    """Return the formula for angles above `LIMITS`, in float64 for both dtypes."""

    def formula(k: Body, x: Element) -> Element:
        return k.convert(choose(k, reduce_large_argument(k, k.convert(x, FLOAT64))), x.dtype)

    return formula


FORMULAS: dict[str, Callable[..., Element]] = {
    "sin": sin,
    "cos": cos,
    "tan": tan,
    "sin_of_large": _large_formula(_sine),
    "cos_of_large": _large_formula(_cosine),
    "tan_of_large": _large_formula(_tangent),
}
