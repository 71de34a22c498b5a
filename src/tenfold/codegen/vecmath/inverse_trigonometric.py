"""Inverse trigonometric functions: asin, acos, atan and atan2 of packets.

Input: a Body and elements. Output: an element of radians. Each function has one polynomial, for
arguments up to 1/2. Larger ones are reduced by an identity, with selects instead of branches. The
multiple of pi / 4 of the identity is added last, together with its rounding error.

Largest errors seen, in units in the last place. float32 was compared over all 2^32 inputs (atan2:
96 million points) with NumPy's float64. float64 was compared over 3 million inputs each of several
kinds, small, near 1/2, near 1 and subnormal, with NumPy's long double:

    float32: asin 1.65, acos 1.15, atan 1.40, atan2 1.56
    float64: asin 1.75, acos 1.20, atan 1.37, atan2 1.49

>>> from tenfold.dtypes import FLOAT64
>>> body = Body()
>>> print(atan(body, body.load(0, FLOAT64)).dtype)
float64
"""

from __future__ import annotations

from collections.abc import Callable

from tenfold.core.scalar_ir import SIGNED, Body, Element
from tenfold.dtypes import FLOAT32, FLOAT64

# The polynomials in s = x * x, by Remez' exchange for |x| <= 1/2. What
# tools/coefficients/trigonometric.py prints: the largest relative error, the coefficients.
ARCSINE = {
    # 2^-27.3
    FLOAT32: (0.16666752, 0.07495298, 0.04547026, 0.024180023, 0.0421656),
    # 2^-55.7
    FLOAT64: (
        0.16666666666665408,
        0.07500000000337244,
        0.0446428568281714,
        0.030381959142787966,
        0.022371757920765584,
        0.01735970659626075,
        0.01388521849394525,
        0.012169315853785456,
        0.006527554796348948,
        0.0195293366589624,
        -0.016225816170370028,
        0.031913265253684917,
    ),
}
"""P in asin(x) = x + x * s * P(s)."""
ARCTANGENT = {
    # 2^-27.8
    FLOAT32: (-0.33333328, 0.19999489, -0.14272077, 0.10940967, -0.07984, 0.03872234),
    # 2^-57.1
    FLOAT64: (
        -0.33333333333333315,
        0.19999999999993268,
        -0.1428571428496071,
        0.1111111106855146,
        -0.0909090766941473,
        0.07692277074388343,
        -0.06666218944561143,
        0.058777709532922086,
        -0.052298180067666504,
        0.0458874311899054,
        -0.037102335678874755,
        0.023632838761694235,
        -0.008352430278596631,
    ),
}
"""P in atan(x) = x + x * s * P(s)."""
HALF_PI = {
    FLOAT32: (1.5707963705062866, -4.371139000186241e-08),
    FLOAT64: (1.5707963267948966, 6.123233995736766e-17),
}
"""pi / 2 as a float, and its rounding error."""
HUGE = {FLOAT32: 2.0**120, FLOAT64: 2.0**1000}
"""Above it the sum of two numbers may overflow."""


def asin(k: Body, x: Element) -> Element:
    """Return the angle in [-pi/2, pi/2] whose sine is `x`, within 4 ULP; NaN outside [-1, 1].

    Above 1/2 by asin(x) = pi / 2 - 2 * asin(sqrt((1 - x) / 2)).
    """
    high, low = (k.constant(part, x.dtype) for part in HALF_PI[x.dtype])
    magnitude, is_small, square, root = _half_angle(k, x)
    base = k.select(is_small, magnitude, -2.0 * root)
    rest = k.fma(base * square, _arcsine(k, square), k.select(is_small, 0.0, low))
    return k.copysign(k.select(is_small, 0.0, high) + (base + rest), x)


def acos(k: Body, x: Element) -> Element:
    """Return the angle in [0, pi] whose cosine is `x`, within 4 ULP; NaN outside [-1, 1].

    By acos(x) = pi / 2 - asin(x), above 1/2 by 2 * asin(sqrt((1 - x) / 2)), below -1/2 by
    pi - acos(-x).
    """
    high, low = (k.constant(part, x.dtype) for part in HALF_PI[x.dtype])
    _, is_small, square, root = _half_angle(k, x)
    base = k.select(is_small, -x, k.copysign(2.0 * root, x))
    positive = x > 0.0

    def share(part: Element) -> Element:
        return k.select(is_small, part, k.select(positive, 0.0, 2.0 * part))

    rest = k.fma(base * square, _arcsine(k, square), share(low))
    return share(high) + (base + rest)


def _half_angle(k: Body, x: Element) -> tuple[Element, Element, Element, Element]:
    """Return |x|, whether it is at most 1/2, the square of the sine to invert, and its root if not.

    The square is x * x, or (1 - |x|) / 2 (exact).
    """
    magnitude = k.abs(x)
    is_small = magnitude <= 0.5
    half = k.fma(magnitude, -0.5, 0.5)
    return magnitude, is_small, k.select(is_small, x * x, half), k.sqrt(half)


def _arcsine(k: Body, square: Element) -> Element:
    return k.polynomial(square, ARCSINE[square.dtype])


def atan(k: Body, x: Element) -> Element:
    """Return the angle in [-pi/2, pi/2] whose tangent is `x`, within 4 ULP.

    Above 1/2 by atan(x) = pi / 4 + atan((x - 1) / (x + 1)), above 2 by pi / 2 - atan(1 / x).
    """
    magnitude = k.abs(x)
    is_middle, is_large = magnitude > 0.5, magnitude > 2.0
    one = k.constant(1.0, x.dtype)
    top = k.select(is_large, -one, k.select(is_middle, magnitude - one, magnitude))
    bottom = k.select(is_large, magnitude, k.select(is_middle, magnitude + one, one))
    eighths = k.select(is_large, 2.0 * one, k.select(is_middle, one, 0.0))
    return k.copysign(_add_eighths(k, top / bottom, eighths), x)


def atan2(k: Body, y: Element, x: Element) -> Element:
    """Return the angle in [-pi, pi] of the point (x, y), within 4 ULP.

    The smaller magnitude over the larger is the tangent of an angle in [0, pi / 4]. If it is
    above 1/2, the point is rotated by pi / 4 before the division: (y - x) / (y + x). The angle
    between the point and its axis is then added to the angle of the axis, or subtracted. Equal
    magnitudes (both 0, both infinite) are the angle 0 of the axis, or pi / 4.
    """
    height, width = k.abs(y), k.abs(x)
    is_steep = height > width
    is_negative = k.bits(x, SIGNED[x.dtype.itemsize]) < 0
    larger = k.select(is_steep, height, width)
    smaller = k.select(is_steep, width, height)
    scale = k.select(larger > HUGE[x.dtype], k.constant(0.25, x.dtype), 1.0)
    larger, smaller = larger * scale, smaller * scale
    one = k.constant(1.0, x.dtype)
    equal = larger == smaller
    is_middle = (smaller + smaller > larger) | (smaller == float("inf"))
    top = k.select(is_middle, k.select(equal, 0.0, smaller - larger), smaller)
    bottom = k.select(equal, one, k.select(is_middle, smaller + larger, larger))
    backward = is_steep ^ is_negative
    tangent = top / bottom
    angle = k.select(backward, -tangent, tangent)
    middle_turn = k.select(is_middle, k.select(backward, -one, one), 0.0)
    axis = k.select(is_steep, 2.0 * one, k.select(is_negative, 4.0 * one, 0.0))
    return k.copysign(_add_eighths(k, angle, axis + middle_turn), y)


def _add_eighths(k: Body, tangent: Element, eighths: Element) -> Element:
    """Return atan(tangent), |tangent| <= 1/2, plus `eighths` * pi / 4 with one rounding."""
    high, low = (part / 2 for part in HALF_PI[tangent.dtype])
    square = tangent * tangent
    rest = k.fma(tangent * square, k.polynomial(square, ARCTANGENT[tangent.dtype]), eighths * low)
    return k.fma(eighths, high, tangent + rest)


FORMULAS: dict[str, Callable[..., Element]] = {
    "asin": asin,
    "acos": acos,
    "atan": atan,
    "atan2": atan2,
}
