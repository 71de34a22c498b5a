"""Hyperbolic functions: sinh, cosh, tanh and their inverses, as packets of float32 and float64.

Input: a Body and its element. Output: the element of the result. The first three use an exponential
whose argument may be a sum of two elements, the inverses a logarithm of such a sum. A sum of two
stays unrounded if rounding would cost the result more than half a unit.

>>> from tenfold.dtypes import FLOAT32
>>> k = Body()
>>> tanh(k, k.load(0, FLOAT32)).dtype
dtype('float32')

The largest errors are in the docstrings, in units in the last place of the exact result: float32
of all numbers against float64, float64 of eight million numbers against 80-bit arithmetic.
The coefficients are Remez' best approximations, fitted by `tools/coefficients/hyperbolic.py`;
the comment of each table is the largest error relative to its function.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tenfold.codegen.vecmath.exponential import EXP_CONSTANTS
from tenfold.codegen.vecmath.logarithm import (
    FLOAT_FORMATS,
    log1p_factors,
    normal_offset,
    split_exponent,
)
from tenfold.core.scalar_ir import SIGNIFICAND, UNSIGNED, Body, Element
from tenfold.dtypes import FLOAT32, FLOAT64

# Table.
SINH = {
    FLOAT32: (  # 2**-26.1
        0.1666654348373413,
        0.008366573601961136,
    ),
    FLOAT64: (  # 2**-60.6
        0.16666666666666677,
        0.008333333333321627,
        0.0001984126988614408,
        2.755724418314929e-06,
        2.5109048880319203e-08,
    ),
}
"""P in sinh(r) = r + r**3 * P(r**2), |r| <= log(2) / 2."""
COSH = {
    FLOAT32: (  # 2**-29.9
        0.5,
        0.041666265577077866,
        0.001394628663547337,
    ),
    FLOAT64: (  # 2**-56.9
        0.5000000000000013,
        0.04166666666651373,
        0.0013888888947417243,
        2.4801489552157058e-05,
        2.7631413621131554e-07,
    ),
}
"""P in cosh(r) = 1 + r**2 * P(r**2), |r| <= log(2) / 2."""
ASINH = {
    FLOAT32: (  # 2**-28.9
        -0.1666664332151413,
        0.0749865248799324,
        -0.04438450559973717,
        0.02816903032362461,
        -0.01323732640594244,
    ),
    FLOAT64: (  # 2**-55.8
        -0.16666666666665694,
        0.0749999999977093,
        -0.04464285695517142,
        0.03038193675649834,
        -0.022371975428210397,
        0.017349989445459305,
        -0.013937127070627565,
        0.011364939555578482,
        -0.008909047610239246,
        0.005794602025258239,
        -0.002184643512739008,
    ),
}
"""P in asinh(x) = x + x**3 * P(x**2), |x| <= 1 / 2."""
EXP = {dtype: constants.expm1 for dtype, constants in EXP_CONSTANTS.items()}
"""P in exp(r) = 1 + r + r**2 * P(r), |r| <= log(2) / 2."""
LN2_PARTS = {
    FLOAT32: (0.693145751953125, 1.4286068203094172e-06),
    FLOAT64: (0.6931471805598903, 5.497923018708371e-14),
}
"""log(2) as a sum: the first term has enough trailing zeros that its multiples by n are exact."""
BIAS = {FLOAT32: 127, FLOAT64: 1023}
"""The exponent bias of a float."""
SCALED_RANGES = {FLOAT32: (60.0, 64, 133.1), FLOAT64: (350.0, 512, 1065.0)}
"""Limit, exponent shift, overflow: above the limit, exponentials have exponents lower by the shift;
from the overflow on they are infinite."""


def exponent_bits(k: Body, exponent: int, dtype: np.dtype) -> Element:
    """Return the bits of 2**exponent, as an unsigned integer."""
    value = (BIAS[dtype] + exponent) << SIGNIFICAND[dtype]
    return k.constant(value, UNSIGNED[dtype.itemsize])


def round_to_exponent(
    k: Body, x: Element, factor: float, shift: int = 0
) -> tuple[Element, Element]:
    """Return x * factor + shift rounded to an integer (ties to even): as a float, and shifted to
    the exponent field, so that adding it to the bits of a float multiplies by that power of 2.

    Adding 1.5 * 2**52 (float32: 2**23) leaves the integer in the last bits of the sum.
    """
    stored = SIGNIFICAND[x.dtype]
    magic = 1.5 * 2.0**stored
    total = k.fma(x, factor, magic + shift)
    return total - magic, k.bits(total, UNSIGNED[x.dtype.itemsize]) << stored


def clamp_above(k: Body, x: Element, largest: float) -> Element:
    """Return min(x, largest); NaN stays NaN."""
    return k.select(x > largest, largest, x)


def reduce_sum(k: Body, x: Element, tail: Element | None = None) -> tuple[Element, ...]:
    """Return r, its tail, n as an integer for exponents: x + tail = r + its tail + n * log(2).

    n is an integer and |r| at most log(2) / 2 (plus rounding). W. J. Cody and W. Waite,
    Software Manual for the Elementary Functions, 1980, chapter 6.
    """
    high, low = LN2_PARTS[x.dtype]
    n, exponent = round_to_exponent(k, x, 1 / math.log(2))
    first = k.fma(n, -high, x)  # exact
    low_part = n * -low if tail is None else k.fma(n, -low, tail)
    r = first + low_part
    return r, low_part - (r - first), exponent


def tanh(k: Body, x: Element) -> Element:
    """Return the hyperbolic tangent; errors up to 1.00 (float32) and 1.00 (float64).

    With 2 * |x| = r + n * log(2), s = 2**-n and q = exp(r) - 1 it is (1 - s + q) / (1 + s + q).
    The rounding errors of the sums and the division are added again.
    """
    dtype = x.dtype
    double = clamp_above(k, k.abs(x), 9.5 if dtype == FLOAT32 else 20.0) * 2.0
    r, tail, exponent = reduce_sum(k, double)
    inverse = k.bits(exponent_bits(k, 0, dtype) - exponent, dtype)
    exp_tail = k.fma(r * r, k.polynomial(r, EXP[dtype]), tail)
    numerator, numerator_low = _sum(1.0 - inverse, r, exp_tail)
    one_plus = 1.0 + inverse
    denominator, denominator_low = _sum(one_plus, r, exp_tail)
    denominator_low = denominator_low + (inverse - (one_plus - 1.0))
    reciprocal = 1.0 / denominator
    quotient = numerator * reciprocal
    remainder = k.fma(-quotient, denominator, numerator) + k.fma(
        -quotient, denominator_low, numerator_low
    )
    return k.copysign(k.fma(remainder, reciprocal, quotient), x)


def _sum(x: Element, y: Element, z: Element) -> tuple[Element, Element]:
    """Return x + y + z and its rounding error, for x = 0 or |x| >= |y|, |x + y| >= |z|.

    T. J. Dekker, A floating-point technique for extending the available precision, Numerische
    Mathematik 18, 1971.
    """
    first = x + y
    second = first + z
    return second, (z - (second - first)) + (y - (first - x))


def _exp_sums(k: Body, a: Element, base: Element) -> tuple[Element, ...]:
    """Return (up + down), (up - down), sinh(r), cosh(r) - 1 for a = r + n * log(2), not below 0.

    up is 2**n times the power of 2 whose bits are `base`, down is 2**-n times the same.
    """
    dtype = a.dtype
    r, tail, exponent = reduce_sum(k, a)
    up = k.bits(base + exponent, dtype)
    # Above 40 the inverse is negligible, and its exponent would not fit.
    down = k.select(a > 40.0, 0.0, k.bits(base - exponent, dtype))
    z = r * r
    sinh_r = r + k.fma(r * z, k.polynomial(z, SINH[dtype]), tail)
    return up + down, up - down, sinh_r, z * k.polynomial(z, COSH[dtype])


def _sinh(k: Body, x: Element, a: Element, base: Element) -> Element:
    plus, minus, sinh_r, cosh_r = _exp_sums(k, a, base)
    result = (minus + k.fma(minus, cosh_r, plus * sinh_r)) * 2.0
    # Below, x is its own sine; a quarter of a subnormal one would lose bits.
    threshold = 2.0**-13 if x.dtype == FLOAT32 else 2.0**-28
    return k.copysign(k.select(k.abs(x) < threshold, k.abs(x), result), x)


def _cosh(k: Body, a: Element, base: Element) -> Element:
    plus, minus, sinh_r, cosh_r = _exp_sums(k, a, base)
    return (plus + k.fma(plus, cosh_r, minus * sinh_r)) * 2.0


def _clamp_magnitude(k: Body, x: Element) -> tuple[Element, Element]:
    """Return |x|, clamped where sinh is infinite, and the bits of 1/4: no half overflows."""
    return clamp_above(k, k.abs(x), 89.5 if x.dtype == FLOAT32 else 710.5), exponent_bits(
        k, -2, x.dtype
    )


def sinh(k: Body, x: Element) -> Element:
    """Return the hyperbolic sine; errors up to 1.92 (float32) and 1.80 (float64).

    With |x| = r + n * log(2), by sinh(r) and cosh(r): nothing is divided.
    """
    return _sinh(k, x, *_clamp_magnitude(k, x))


def cosh(k: Body, x: Element) -> Element:
    """Return the hyperbolic cosine, as `sinh`; errors up to 2.00 (float32) and 1.68 (float64)."""
    return _cosh(k, *_clamp_magnitude(k, x))


def exp_scale(k: Body, x: Element) -> Element:
    """Return the power of 2 that `exp_scaled` omits: 1 except for large arguments."""
    limit, lift, _ = SCALED_RANGES[x.dtype]
    down = k.select(x < -limit, k.constant(2.0**-lift, x.dtype), 1.0)
    return k.select(x > limit, 2.0**lift, down)


def exp_scaled(k: Body, x: Element) -> Element:
    """Return exp(x) / exp_scale(x), which is in range far beyond exp(x): for complex functions."""
    dtype = x.dtype
    limit, lift, overflow = SCALED_RANGES[dtype]
    clamped = clamp_above(k, k.select(x < 5.0 - overflow, 5.0 - overflow, x), overflow)
    r, tail, exponent = reduce_sum(k, clamped)
    base = k.select(clamped < -limit, exponent_bits(k, lift, dtype), exponent_bits(k, 0, dtype))
    base = k.select(clamped > limit, exponent_bits(k, -lift, dtype), base)
    q = r + k.fma(r * r, k.polynomial(r, EXP[dtype]), tail)
    return (q + 1.0) * k.bits(base + exponent, dtype)


def _scaled_magnitude(k: Body, x: Element) -> tuple[Element, Element, Element]:
    """Return whether |x| is past `exp_scaled`, clamped |x|, and the bits of 1/4 or far less."""
    limit, lift, overflow = SCALED_RANGES[x.dtype]
    a = k.abs(x)
    base = k.select(a > limit, exponent_bits(k, -2 - lift, x.dtype), exponent_bits(k, -2, x.dtype))
    return a > overflow - 2.0, clamp_above(k, a, overflow - 2.0), base


def sinh_scaled(k: Body, x: Element) -> Element:
    """Return sinh(x) / exp_scale(|x|)."""
    past, a, base = _scaled_magnitude(k, x)
    return k.select(past, k.copysign(k.constant(math.inf, x.dtype), x), _sinh(k, x, a, base))


def cosh_scaled(k: Body, x: Element) -> Element:
    """Return cosh(x) / exp_scale(|x|)."""
    past, a, base = _scaled_magnitude(k, x)
    return k.select(past, math.inf, _cosh(k, a, base))


def _log(k: Body, x: Element, tail: Element, exponent_offset: Element | None = None) -> Element:
    """Return log(x + tail) + exponent_offset * log(2).

    x is between 0.7 and half the largest number, tail is small.
    The result is undefined if x is not finite.
    """
    constants, layout, stored = EXP_CONSTANTS[x.dtype], FLOAT_FORMATS[x.dtype], SIGNIFICAND[x.dtype]
    n, first = split_exponent(k, x, normal_offset(x))
    n = n if exponent_offset is None else n + exponent_offset
    bits = k.bits(x, UNSIGNED[x.dtype.itemsize]) + (layout.one_bits - layout.low_bits)
    tail = tail * k.bits(2 * layout.one_bits - (bits & (-1 << stored)), x.dtype)
    f = first + tail
    rest = k.fma(*log1p_factors(k, f), tail - (f - first))
    return k.fma(n, constants.head, k.fma(n, constants.tail, f + rest))


def _log_sum(k: Body, larger: Element, smaller: Element, x: Element) -> Element:
    """Return the log of the sum of |x| and the root of x**2 + 1 or x**2 - 1, whichever is larger.

    If the square might overflow, the 1 is negligible and the result is log(2 * |x|).
    """
    dtype = x.dtype
    is_big = x > (2.0**14 if dtype == FLOAT32 else 2.0**30)
    total = larger + smaller
    tail = smaller - (total - larger)  # exact
    two = k.constant(2.0, dtype)
    # Halved: the logarithm's tail is scaled by a power of 2 that must fit.
    total, tail = k.select(is_big, x * 0.5, total), k.select(is_big, 0.0, tail)
    result = _log(k, total, tail, k.select(is_big, two, 0.0))
    return k.select(x < math.inf, result, x)


def asinh(k: Body, x: Element) -> Element:
    """Return the inverse of the hyperbolic sine; errors up to 2.53 (float32) and 2.60 (float64).

    A polynomial up to 1/2, log(|x| + sqrt(x**2 + 1)) above.
    """
    a = k.abs(x)
    z = a * a
    near = k.fma(a * z, k.polynomial(z, ASINH[x.dtype]), a)
    far = _log_sum(k, k.sqrt(k.fma(a, a, 1.0)), a, a)
    return k.copysign(k.select(a < 0.5, near, far), x)


def acosh(k: Body, x: Element) -> Element:
    """Return the inverse of the hyperbolic cosine; errors up to 1.82 (float32) and 1.86 (float64).

    log(x + sqrt(x**2 - 1)) with x**2 - 1 = t**2 + 2 * t for t = x - 1.
    """
    t = x - 1.0
    result = _log_sum(k, x, k.sqrt(k.fma(t, t, t + t)), x)
    return k.select(x < 1.0, math.nan, result)


def atanh(k: Body, x: Element) -> Element:
    """Return the inverse of the hyperbolic tangent; errors up to 1.16 (float32) and 1.32 (float64).

    Half the log of 1 + q for q = 2 * |x| / (1 - |x|), with 1 / (1 - |x|) = 1 + q / 2 for the
    remainder of that division.
    """
    a = k.abs(x)
    denominator = 1.0 - a
    double = a + a
    q = double / denominator
    remainder = k.fma(-q, denominator, double) - q * ((1.0 - denominator) - a)
    total = q + 1.0
    tail = k.fma(remainder, k.fma(q, 0.5, 1.0), q - (total - 1.0))
    result = _log(k, total, tail) * 0.5
    edge = k.select(a == 1.0, k.constant(math.inf, x.dtype), math.nan)
    return k.copysign(k.select(a < 1.0, result, edge), x)


FORMULAS: dict[str, Callable[..., Element]] = {
    "sinh": sinh,
    "cosh": cosh,
    "tanh": tanh,
    "asinh": asinh,
    "acosh": acosh,
    "atanh": atanh,
    "exp_scale": exp_scale,
    "exp_scaled": exp_scaled,
    "sinh_scaled": sinh_scaled,
    "cosh_scaled": cosh_scaled,
}
