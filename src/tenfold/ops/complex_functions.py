"""Complex elementary functions: kernel rules on complex elements, by functions of real ones.

Takes a Body and a ComplexElement, hands on a ComplexElement. Errors are small beside the modulus of
the result; a part that is tiny beside the other may have none of its bits right. Infinities and NaN
follow C99, annex G.6, as NumPy does. Complex functions without a rule here are computed by NumPy.

>>> from tenfold.dtypes import FLOAT64
>>> k = Body()
>>> exp(k, ComplexElement(k.load(0, FLOAT64), k.load(1, FLOAT64))).real.dtype
dtype('float64')

`exp_scaled`, `sinh_scaled` and `cosh_scaled` are the functions without a power of 2, `exp_scale`:
so exp(x) * cos(y) is finite where exp(x) alone would not be.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tenfold.core.scalar_ir import Body, ComplexElement, Element

Rule = Callable[[Body, ComplexElement], ComplexElement]


def _where_nan(k: Body, condition: Element, value: Element | float, x: Element) -> Element:
    """Return `x`, but `value` where it is NaN and the condition holds."""
    return k.select(condition & (x != x), value, x)


def exp(k: Body, z: ComplexElement) -> ComplexElement:
    """Return exp(x) * (cos(y) + i * sin(y)).

    The imaginary part of a real number is its own, whatever exp(x) is; exp(-inf) is 0 for any `y`,
    and exp(inf) has an infinite real part.
    """
    x, y = z
    power, scale = k.call("exp_scaled", x), k.call("exp_scale", x)
    cosine = _where_nan(k, k.abs(x) == math.inf, 1.0, k.call("cos", y))
    sine = _where_nan(k, x == -math.inf, 0.0, k.call("sin", y))
    imaginary = k.select(y == 0.0, y, power * sine * scale)
    return ComplexElement(power * cosine * scale, imaginary)


def exp2(k: Body, z: ComplexElement) -> ComplexElement:
    """Return exp(z * log(2)), with the rounding that NumPy's has of the product."""
    return exp(k, ComplexElement(z.real * math.log(2), z.imaginary * math.log(2)))


def expm1(k: Body, z: ComplexElement) -> ComplexElement:
    """Return exp(z) - 1.

    The real part is exp(x) * cos(y) - 1, near 0 expm1(x) * cos(y) - 2 * sin(y / 2)**2.
    """
    x, y = z
    power, half_sine, cosine = k.call("exp", x), k.call("sin", y * 0.5), k.call("cos", y)
    near_zero = k.fma(k.call("expm1", x), cosine, half_sine * half_sine * -2.0)
    real = k.select(k.abs(x) < 0.5, near_zero, k.fma(power, cosine, -1.0))
    return ComplexElement(real, power * k.call("sin", y))


def log(k: Body, z: ComplexElement) -> ComplexElement:
    """Return log|z| + i * atan2(y, x).

    With a the larger and b the smaller magnitude, log|z| = log(a) + log1p((b / a)**2) / 2, which
    cannot overflow. For a near 1 it is log1p((a - 1) * (a + 1) + b**2) / 2, whose error is small
    beside the angle where it cancels.
    """
    x, y = z
    width, height = k.abs(x), k.abs(y)
    a = k.select(width < height, height, width)
    b = k.select(width < height, width, height)
    near_one = (a > 0.7) & (a < 1.42)
    ratio = k.select(b == 0.0, b, b / a)
    square = k.select(near_one, k.fma(a - 1.0, a + 1.0, b * b), ratio * ratio)
    correction = k.call("log1p", square) * 0.5
    real = k.select(near_one, correction, k.call("log", a) + correction)
    infinite = (width == math.inf) | (height == math.inf)
    return ComplexElement(k.select(infinite, math.inf, real), k.call("atan2", y, x))


def log2(k: Body, z: ComplexElement) -> ComplexElement:
    """Return log(z) / log(2), the quotient rounded as NumPy's."""
    real, imaginary = log(k, z)
    return ComplexElement(real * math.log2(math.e), imaginary * math.log2(math.e))


def log10(k: Body, z: ComplexElement) -> ComplexElement:
    """Return log(z) / log(10), as `log2`."""
    real, imaginary = log(k, z)
    return ComplexElement(real * math.log10(math.e), imaginary * math.log10(math.e))


def sqrt(k: Body, z: ComplexElement) -> ComplexElement:
    """Return the square root with a real part that is not negative.

    t = sqrt((|x| + |z|) / 2) is its larger part, y / (2 * t) the other (W. Kahan, Branch cuts for
    complex elementary functions, 1987). Large numbers, and those that a square would lose, are
    scaled by a power of 4.
    """
    one = k.constant(1.0, z.real.dtype)
    max_exponent, digits = (125, 24) if z.real.dtype.itemsize == 4 else (1020, 54)
    a, b = k.abs(z.real), k.abs(z.imaginary)
    magnitude = k.select(a < b, b, a)
    too_large, too_small = magnitude > 2.0**max_exponent, magnitude < 2.0 ** (digits - max_exponent)
    scale_down = k.select(too_large, 2.0**-4, k.select(too_small, 4.0**digits, one))
    scale_up = k.select(too_large, 2.0**2, k.select(too_small, 2.0**-digits, one))
    x, y = z.real * scale_down, z.imaginary * scale_down
    larger_part = k.sqrt((k.abs(x) + k.call("hypot", x, y)) * 2.0) * 0.5
    smaller_part = k.abs(y) / (larger_part + larger_part) * scale_up
    larger_part = larger_part * scale_up
    positive = x >= 0.0
    real = k.select(positive, larger_part, smaller_part)
    imaginary = k.copysign(k.select(positive, smaller_part, larger_part), y)
    # Of 0 and of an infinite imaginary part the quotient is NaN.
    zero, infinite = a + b == 0.0, b == math.inf
    real = k.select(zero, 0.0, k.select(infinite, b, real))
    return ComplexElement(real, k.select(zero | infinite, z.imaginary, imaginary))


def _sine_parts(k: Body, z: ComplexElement) -> tuple[Element, ...]:
    """Return sin(x), cos(x), scaled sinh(y), scaled cosh(y) and the scale of the last two.

    Where `y` is infinite and `x` has no angle, the cosine is 1, and so one part is infinite.
    """
    x, y = z
    cosine = _where_nan(k, k.abs(y) == math.inf, 1.0, k.call("cos", x))
    scale = k.call("exp_scale", k.abs(y))
    return k.call("sin", x), cosine, k.call("sinh_scaled", y), k.call("cosh_scaled", y), scale


def sin(k: Body, z: ComplexElement) -> ComplexElement:
    """Return sin(x) * cosh(y) + i * cos(x) * sinh(y)."""
    x, y = z
    sine, cosine, sinh, cosh, scale = _sine_parts(k, z)
    # 0 stays 0 beside what is infinite or NaN.
    real = k.select(x == 0.0, x, sine * cosh * scale)
    return ComplexElement(real, _where_nan(k, y == 0.0, y, cosine * sinh * scale))


def cos(k: Body, z: ComplexElement) -> ComplexElement:
    """Return cos(x) * cosh(y) - i * sin(x) * sinh(y)."""
    x, y = z
    sine, cosine, sinh, cosh, scale = _sine_parts(k, z)
    zero, one = (k.constant(value, y.dtype) for value in (0.0, 1.0))
    # 0 stays 0 beside what is infinite or NaN.
    signed = k.copysign(zero, x) * k.copysign(one, y)
    imaginary = _where_nan(k, (x == 0.0) | (y == 0.0), signed, sine * sinh * scale)
    return ComplexElement(cosine * cosh * scale, -imaginary)
