"""Power: `x ** y` of packets.

Input: a Body and two elements of float32 or float64. Output: the element of the result.

    |x| ** y = 2 ** (y * log2(|x|)),  |x| = 2**e * m,  log2(m) = 2 / log(2) * atanh(s),
    s = (m - 1) / (m + 1),  m in [sqrt(1/2), sqrt(2)]

An error of the exponent is an error of the power up to 1,024 times as large. So float32 is
computed in float64, and float64 has the logarithm as an unevaluated sum of two, to about 2^-62
(T. J. Dekker, A floating-point technique for extending the available precision, Numerische
Mathematik 18, 1971; products by fma). Negative bases, zeros, infinities, NaN and results far from 1
are corrected by a function that is called only for packets with such elements. The polynomials are
minimax ones, fitted by `tools/coefficients/exponential.py`, which prints the lines quoted below.

Largest errors seen, in units in the last place, over two million pairs in each of eight regimes:
float32 0.506, float64 1.46.

>>> from tenfold.dtypes import FLOAT32
>>> body = Body()
>>> power(body, body.load(0, FLOAT32), body.load(1, FLOAT32)).dtype
dtype('float32')
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tenfold.codegen.vecmath.exponential import EXP_CONSTANTS, clamp, scale_by_exp2
from tenfold.codegen.vecmath.logarithm import normal_offset, split_exponent, split_positive
from tenfold.core.scalar_ir import SIGNED, SIGNIFICAND, Body, Element
from tenfold.dtypes import FLOAT32, FLOAT64

FIRST_TERM, FIRST_TERM_LOW = 2.8853900817779268, 4.0710547481862066e-17
"""2 / log(2)."""
SECOND_TERM, SECOND_TERM_LOW = 0.9617966939259756, 5.0577616648125907e-17
"""2 / (3 * log(2))."""
# POW: (2 * atanh(s) / log(2) - 2 * s / log(2) * (1 + s**2 / 3)) / s**5 in s**2 float64 2^-65.9
POW = (
    *(0.5770780163555851, 0.4121985831113708, 0.32059889790777824, 0.2623081991789959),
    *(0.2219522394702557, 0.19240237385158387, 0.16843234993272624, 0.1729622638700717),
)
# SHORT_POW: (2 * atanh(s) / log(2) - 2 * s / log(2)) / s**3 in s**2 float64 2^-37.6
SHORT_POW = (0.9617966791805745, 0.5770828544431812, 0.41170621313651645, 0.34022053028030674)
# SHORT_EXP2: (2**r - 1) / r float64 2^-34.3
SHORT_EXP2 = (
    *(0.693147180704845, 0.24022651066239326, 0.055504103641623795, 0.009618038165216516),
    *(0.001333393668302702, 0.00015466748580425217, 1.5195780699848707e-05),
)


def power(k: Body, x: Element, y: Element) -> Element:
    """Return `x` to the power of `y`: NaN for a finite negative `x` unless `y` is an integer."""
    positive = (x > 0) & (x < np.inf)
    if x.dtype == FLOAT32:
        usual = _float32_power(k, k.convert(k.abs(x), FLOAT64), k.convert(y, FLOAT64))
        finite = k.abs(y) < np.inf
        return k.rare(~(positive & finite), "pow.ends", usual, usual, x, y)
    exponent, rest = _exponent(k, k.abs(x), y)
    fraction, shifted = _exp2(k, exponent, rest)
    usual = _scale_by_exp2(k, fraction, shifted, 2 * EXP_CONSTANTS[FLOAT64].bias)
    # Beyond it 2**n is not a normal number; NaN compares false.
    near = k.abs(exponent) < 1020.0
    return k.rare(~(positive & near), "pow.far", usual, exponent, rest, x, y)


def _scale_by_exp2(k: Body, power: Element, shifted: Element, offset: int) -> Element:
    """Return `power * 2**n` for a normal result; `shifted` ends in the bits of n + offset."""
    integer = SIGNED[8]
    n = k.bits(shifted, integer) - offset
    return k.bits(k.bits(power, integer) + (n << SIGNIFICAND[FLOAT64]), FLOAT64)


def _float32_power(k: Body, x: Element, y: Element) -> Element:
    """Return `x ** y` in float32, computed in float64, for positive finite `x` and finite `y`."""
    e, f = split_exponent(k, x, normal_offset(x))
    s = f / (f + 2.0)
    z = s * s
    logarithm = k.fma(s, k.fma(z, k.polynomial(z, SHORT_POW), FIRST_TERM), e)
    exponent = clamp(k, y * logarithm, 200.0)
    shift = 1.5 * 2**52
    shifted = exponent + shift
    r = exponent - (shifted - shift)
    power = k.fma(r, k.polynomial(r, SHORT_EXP2), 1.0)
    return k.convert(_scale_by_exp2(k, power, shifted, 0), FLOAT32)


def _logarithm(k: Body, x: Element) -> tuple[Element, Element]:
    """Return the logarithm of a positive finite `x` to the base 2 as an unevaluated sum."""
    e, f = split_positive(k, x)
    s, s_rest = _quotient(k, f)
    z = s * s
    z_rest = k.fma(s, s_rest + s_rest, k.fma(s, s, -z))
    second = z * SECOND_TERM
    low = k.fma(z, SECOND_TERM_LOW, k.fma(z_rest, SECOND_TERM, k.fma(z, SECOND_TERM, -second)))
    further = z * z * k.polynomial(z, POW)
    bend = second + further
    bend_rest = (second - bend) + further + low
    slope = bend + FIRST_TERM
    slope_rest = (FIRST_TERM - slope) + bend + (bend_rest + FIRST_TERM_LOW)
    head = s * slope
    head_rest = k.fma(s, slope_rest, k.fma(s_rest, slope, k.fma(s, slope, -head)))
    logarithm = e + head
    return logarithm, (e - logarithm) + head + head_rest


def _quotient(k: Body, f: Element) -> tuple[Element, Element]:
    """Return s = f / (2 + f) as an unevaluated sum."""
    m = f + 1.0
    divisor = m + 1.0
    divisor_rest = m - (divisor - 1.0)
    inverse = 1.0 / divisor
    s = f * inverse
    residual = k.fma(-s, divisor_rest, k.fma(-s, divisor, f))
    return s, residual * inverse


def _exponent(k: Body, x: Element, y: Element) -> tuple[Element, Element]:
    """Return y * log2(x) for positive finite `x` as an unevaluated sum."""
    logarithm, rest = _logarithm(k, x)
    exponent = y * logarithm
    return exponent, k.fma(y, rest, k.fma(y, logarithm, -exponent))


def _exp2(k: Body, exponent: Element, rest: Element) -> tuple[Element, Element]:
    """Return 2**r and n + `shift` for an exponent n + r."""
    c = EXP_CONSTANTS[FLOAT64]
    shifted = exponent + c.shift
    r = exponent - (shifted - c.shift) + rest
    return k.fma(r, k.polynomial(r, c.exp2), 1.0), shifted


def power_out_of_range(
    k: Body, exponent: Element, rest: Element, x: Element, y: Element
) -> Element:
    """Return 2 ** (exponent + rest) for any exponent, with the special values of `x ** y`."""
    limit = EXP_CONSTANTS[FLOAT64].limit2
    rest = k.select(k.abs(exponent) < limit, rest, 0.0)
    return power_special_values(
        k, scale_by_exp2(k, *_exp2(k, clamp(k, exponent, limit), rest)), x, y
    )


def power_special_values(k: Body, power: Element, x: Element, y: Element) -> Element:
    """Return `power` = |x| ** y with its sign and the results of infinities, zeros and NaN."""
    magnitude, infinite = k.abs(x), k.constant(np.inf, x.dtype)
    limit = k.select((magnitude == 0) ^ (y < 0), 0.0, infinite)
    power = k.select((magnitude == 0) | (magnitude == np.inf), limit, power)
    limit = k.select((magnitude > 1) ^ (y < 0), infinite, 0.0)
    power = k.select(k.abs(y) == np.inf, k.select(magnitude == 1, 1.0, limit), power)
    half_y, is_whole = y * 0.5, k.rint(y) == y
    negative = k.bits(x, SIGNED[x.dtype.itemsize]) < 0
    power = k.select(negative & is_whole & (k.rint(half_y) != half_y), -power, power)
    unknown = ((x < 0) & ~is_whole & (magnitude != np.inf)) | (x != x) | (y != y)
    power = k.select(unknown, k.constant(np.nan, x.dtype), power)
    return k.select((x == 1) | (y == 0), 1.0, power)


FORMULAS: dict[str, Callable[..., Element]] = {
    "pow": power,
    "pow.ends": power_special_values,
    "pow.far": power_out_of_range,
}
"""Includes the rare parts of pow, by the names in its calls."""
