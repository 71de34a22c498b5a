"""Special functions: erf, erfc, cbrt and hypot, as packets of float32 and float64.

Input: a Body and its elements. Output: the element of the result.

>>> from tenfold.dtypes import FLOAT64
>>> k = Body()
>>> hypot(k, k.load(0, FLOAT64), k.load(1, FLOAT64)).dtype
dtype('float64')

The largest errors are in the docstrings, in units in the last place of the exact result. float32
was compared over all numbers with float64 (hypot: eight million pairs), float64 over eight million
numbers with 80-bit arithmetic. The coefficients are Remez' best approximations, fitted by
`tools/coefficients/special.py`; the comment of each table is the largest error relative to its
function.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tenfold.codegen.vecmath.hyperbolic import (
    BIAS,
    EXP,
    clamp_above,
    exponent_bits,
    reduce_sum,
    round_to_exponent,
)
from tenfold.core.scalar_ir import SIGNIFICAND, UNSIGNED, Body, Element
from tenfold.dtypes import FLOAT32, FLOAT64

# Table.
NEAR = {
    FLOAT32: (  # 2**-25.3
        0.12837915122509003,
        -0.3761255145072937,
        0.11282455176115036,
        -0.026791462674736977,
        0.00503217987716198,
        -0.0006203241646289825,
    ),
    FLOAT64: (  # 2**-54.9
        0.12837916709551256,
        -0.3761263890318352,
        0.11283791670944186,
        -0.02686617064311153,
        0.005223977606118105,
        -0.000854832592927342,
        0.00012055293575256917,
        -1.4924712265317256e-05,
        1.6447131075434499e-06,
        -1.620630972474621e-07,
        1.3710962196387784e-08,
        -7.779433462932641e-10,
    ),
}
"""P in erf(x) = x + x * P(x**2), |x| <= 0.875 (float64: 1)."""
FAR = {
    FLOAT32: (  # 2**-26.5
        -0.00019352849631104618,
        -1.627264142036438,
        -0.9186246395111084,
        -0.15050604939460754,
        0.03234201297163963,
        -0.004460281692445278,
        0.00028987255063839257,
    ),
    FLOAT64: (  # 2**-55.6
        -1.5715596197764858e-07,
        -1.6279054122304584,
        -0.9184558381833748,
        -0.14824756633367775,
        0.02755428504146175,
        0.00035789171110922196,
        -0.002496514767867741,
        0.0008728261868809632,
        -2.543917071090811e-05,
        -0.00012533498700044638,
        7.670328915958106e-05,
        -2.8506176483628317e-05,
        7.750505476358006e-06,
        -1.6153460489771018e-06,
        2.600344788046836e-07,
        -3.191719097288204e-08,
        2.894513908484476e-09,
        -1.8297104084930658e-10,
        7.199053412124793e-12,
        -1.3269575060946104e-13,
    ),
}
"""P in erf(x) = 1 - 2**P(x), from there up to where it rounds to 1."""
TAIL = {
    FLOAT32: (  # 2**-24.4
        1.0215827226638794,
        -0.6871609091758728,
        0.2794715166091919,
        -0.036435894668102264,
        -0.021502817049622536,
        0.006435187999159098,
        0.0030429239850491285,
        -0.000726322119589895,
        -0.0005291529232636094,
        -4.681802602135576e-05,
    ),
    FLOAT64: (  # 2**-53.8
        1.095995661000491,
        -0.9765487290808824,
        0.7732087022652409,
        -0.540853831313188,
        0.330851587877791,
        -0.17401093724147723,
        0.07638151491422544,
        -0.026370053316611488,
        0.006112055601931882,
        -0.0002809590711168424,
        -0.0004550523573467174,
        0.00017681391784163034,
        -3.63632734549311e-06,
        -1.8864653913341628e-05,
        4.696756504961976e-06,
        1.4324902466277647e-06,
        -8.485383771678159e-07,
        -8.687275374757604e-08,
        1.2435388275147585e-07,
        9.614952135763233e-09,
        -1.384042555304045e-08,
        -2.766524256149727e-09,
    ),
}
"""P in erfc(x) = exp(-x**2) / (x + K) * P((x - K) / (x + K)), K = 2 (float64: 4)."""
TAIL_SLOPE = {
    FLOAT32: (  # 2**-9.2
        -0.6882660388946533,
        0.5574477314949036,
        -0.09238831698894501,
        -0.07916434109210968,
    ),
    FLOAT64: (  # 2**-4.1
        -0.9241923577828106,
        1.5780106169599755,
        -2.372823715546292,
        1.7430914248605367,
    ),
}
"""Approximately the derivative of P of TAIL, for the rounding error of its argument."""
ROOT = {
    FLOAT32: (  # 2**-5.9
        1.2370530366897583,
        -0.29722481966018677,
        0.045897532254457474,
        -0.0025490394327789545,
    ),
    FLOAT64: (  # 2**-8.4
        1.424943821567321,
        -0.5967426114956498,
        0.20386106845049212,
        -0.038618645670693806,
        0.0036967937784423543,
        -0.00013943272542071616,
    ),
}
"""P near x**(-1/3), 1 <= x <= 8."""
ROOT_STEP = {FLOAT32: (1 / 3, 2 / 9), FLOAT64: (1 / 3, 2 / 9, 14 / 81)}
"""The first terms of (1 - e)**(-1/3), past 1, divided by e."""


def erf(k: Body, x: Element) -> Element:
    """Return the error function; errors up to 1.29 (float32) and 1.15 (float64).

    x + x * P(x**2) up to 0.875 (float64: 1), 1 - 2**P(|x|) above.
    """
    dtype = x.dtype
    a = k.abs(x)
    near = k.fma(a, k.polynomial(a * a, NEAR[dtype]), a)
    limit, last = (0.875, 4.0) if dtype == FLOAT32 else (1.0, 6.0)
    logarithm = k.polynomial(clamp_above(k, a, last), FAR[dtype])
    n, exponent = round_to_exponent(k, logarithm, 1.0)
    r = (logarithm - n) * math.log(2)
    power = k.bits(exponent_bits(k, 0, dtype) + exponent, dtype)
    q = k.fma(r * r, k.polynomial(r, EXP[dtype]), r)
    far = k.fma(-q, power, 1.0 - power)
    return k.copysign(k.select(a < limit, near, far), x)


def erfc(k: Body, x: Element) -> Element:
    """Return 1 - erf(x); errors up to 1.94 (float32) and 2.12 (float64), also if subnormal.

    exp(-x**2) / (x + K) * P((x - K) / (x + K)) for x >= 0, after M. Shepherd and J. Laframboise,
    Chebyshev approximation of (1 + 2 x) exp(x**2) erfc x, Mathematics of Computation 36, 1981. The
    square is a sum of two elements: its rounding would grow by x**2 in exp. Below 0 it is
    2 - erfc(-x). The rounding errors of the argument, of P's last step and of the product with the
    inverse are added again before the last sum.
    """
    dtype = x.dtype
    a = clamp_above(k, k.abs(x), 10.5 if dtype == FLOAT32 else 28.0)
    square = a * a
    r, tail, exponent = reduce_sum(k, -square, k.fma(-a, a, square))
    q = r + k.fma(r * r, k.polynomial(r, EXP[dtype]), tail)
    middle = 2.0 if dtype == FLOAT32 else 4.0
    total = a + middle
    total_low = a - (total - middle)
    inverse = 1.0 / total
    inverse_low = k.fma(k.fma(-inverse, total, 1.0), inverse, -(total_low * inverse) * inverse)
    t = k.fma(inverse, -2.0 * middle, 1.0)
    t_low = k.fma(total_low, 1.0 - t, k.fma(-t, total, total - 2.0 * middle)) * inverse
    first, *coefficients = TAIL[dtype]
    slope = k.polynomial(t, coefficients)
    scaled = k.fma(t, slope, first)
    low = k.fma(t_low, k.polynomial(t, TAIL_SLOPE[dtype]), k.fma(t, slope, first - scaled))
    product = scaled * inverse
    rest = k.fma(scaled, inverse, -product) + k.fma(low, inverse, scaled * inverse_low)
    # Exponents stay high up to the last product, which rounds a subnormal result once.
    lift = 64 if dtype == FLOAT32 else 256
    power = k.bits(exponent_bits(k, lift, dtype) + exponent, dtype)
    result = (product + k.fma(product, q, k.fma(rest, q, rest))) * power * 2.0**-lift
    return k.select(x < 0.0, 2.0 - result, result)


def cbrt(k: Body, x: Element) -> Element:
    """Return the cube root; errors up to 0.57 (float32) and 0.57 (float64).

    |x| = m * 2**(3 * n) with m in [1, 8). z near m**(-1/3) is a polynomial, improved by three
    terms of (1 - e)**(-1/3) for e = 1 - m * z**3; m * z**2 by a step of Newton, whose remainder is
    exact but for its last rounding.
    """
    dtype, stored = x.dtype, SIGNIFICAND[x.dtype]
    unsigned = UNSIGNED[dtype.itemsize]
    lift = 24 if dtype == FLOAT32 else 54
    subnormal = k.abs(x) < 2.0 ** (1 - BIAS[dtype])
    a = k.abs(x) * k.select(subnormal, k.constant(2.0**lift, dtype), 1.0)
    bits = k.bits(a, unsigned)
    # The exponent field less its bias and 1, a third of it rounded to nearest.
    rest = (BIAS[dtype] + 1) % 3
    count = k.bits(bits >> stored | exponent_bits(k, stored, dtype), dtype) - (2.0**stored + rest)
    _, exponent = round_to_exponent(k, count, 1 / 3, -((BIAS[dtype] + 1) // 3))
    m = k.bits(bits - exponent - (exponent << 1), dtype)
    z = k.polynomial(m, ROOT[dtype])
    e = k.fma(m * z, -(z * z), 1.0)
    z = k.fma(z * e, k.polynomial(e, ROOT_STEP[dtype]), z)
    slope = z * z
    y = m * slope
    square = y * y
    remainder = k.fma(-y, k.fma(y, y, -square), k.fma(-y, square, m))
    y = k.fma(remainder, slope * (1 / 3), y)
    result = k.bits(k.bits(y, unsigned) + exponent, dtype)
    result = result * k.select(subnormal, k.constant(2.0 ** (-lift / 3), dtype), 1.0)
    usual = (a > 0.0) & (a < math.inf)
    return k.select(usual, k.copysign(result, x), x)


def hypot(k: Body, x: Element, y: Element) -> Element:
    """Return sqrt(x**2 + y**2); errors up to 0.99 (float32) and 0.98 (float64).

    Both are scaled by a power of 2 if a square might overflow or be subnormal. Infinite if one is,
    even with NaN.
    """
    dtype = x.dtype
    a, b = k.abs(x), k.abs(y)
    limit, scale = (2.0**50, 2.0**-80) if dtype == FLOAT32 else (2.0**500, 2.0**-600)
    one = k.constant(1.0, dtype)
    larger = k.select(a < b, b, a)
    is_large, is_small = larger > limit, larger < 1 / limit
    down = k.select(is_large, scale, k.select(is_small, 1 / scale, one))
    up = k.select(is_large, 1 / scale, k.select(is_small, scale, one))
    smaller = k.select(a < b, a, b) * down
    larger = larger * down
    result = k.sqrt(k.fma(larger, larger, smaller * smaller)) * up
    return k.select((a == math.inf) | (b == math.inf), math.inf, result)


FORMULAS: dict[str, Callable[..., Element]] = {
    "erf": erf,
    "erfc": erfc,
    "cbrt": cbrt,
    "hypot": hypot,
}
