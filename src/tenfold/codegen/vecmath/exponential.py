"""Exponentials: exp, exp2 and expm1 of packets.

Input: a Body and an element of float32 or float64. Output: the element of the result.

    x = n * log(2) + r,  |r| <= log(2) / 2,  exp(x) = 2**n * exp(r)

The integer n is computed by adding a number so large that the last bit of the sum counts ones;
those bits are then the exponent. 2**n is applied in two factors, so that subnormal results are
rounded once and those too large become infinite. log(2) is split in two parts (W. J. Cody and W.
Waite, Software Manual for the Elementary Functions, 1980, chapter 6). The polynomials are minimax
ones, fitted by `tools/coefficients/exponential.py`, which prints the lines quoted below.

Largest errors seen, in units in the last place, over all numbers of float32 and over two million
in each of ten regimes of float64:

    exp    float32 0.92   float64 0.94
    exp2   float32 0.96   float64 0.94
    expm1  float32 1.31   float64 1.70

>>> from tenfold.dtypes import FLOAT32
>>> body = Body()
>>> exp(body, body.load(0, FLOAT32)).dtype
dtype('float32')
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tenfold.core.scalar_ir import SIGNED, SIGNIFICAND, Body, Element
from tenfold.dtypes import FLOAT32, FLOAT64


class Constants(NamedTuple):
    """The constants of the formulas of one dtype.

    `head` + `tail` is log(2), with the head rounded to the dtype; `shift` + n ends in the bits of
    n + 2 * bias; at `overflow` exp is infinite, beyond `limit` every exp is 0 or infinite, beyond
    `limit2` every exp2.
    """

    inverse: float
    head: float
    tail: float
    bias: int
    shift: float
    overflow: float
    limit: float
    limit2: float
    expm1: tuple[float, ...]
    exp2: tuple[float, ...]


EXP_CONSTANTS = {
    FLOAT32: Constants(
        1.442695,
        0.6931472,
        -1.9046543e-09,
        127,
        1.5 * 2**23 + 2 * 127,
        89.0,
        120.0,
        170.0,
        # EXPM1: (exp(r) - 1 - r) / r**2 float32 2^-25.8
        (0.49999997, 0.16666543, 0.041667204, 0.00836651, 0.001388218),
        # EXP2: (2**r - 1) / r float32 2^-25.9
        (0.6931472, 0.24022648, 0.055503324, 0.009618438, 0.0013398879, 0.00015353161),
    ),
    FLOAT64: Constants(
        1.4426950408889634,
        0.6931471805599453,
        2.3190468138462996e-17,
        1023,
        1.5 * 2**52 + 2 * 1023,
        710.0,
        800.0,
        1150.0,
        # EXPM1: (exp(r) - 1 - r) / r**2 float64 2^-54.7
        (
            *(0.5000000000000006, 0.16666666666666588, 0.04166666666657685, 0.008333333333389757),
            *(0.0013888888931536095, 0.0001984126971870008, 2.4801505308975783e-05),
            *(2.7557407738247443e-06, 2.7626023475738067e-07, 2.5053727959576352e-08),
        ),
        # EXP2: (2**r - 1) / r float64 2^-55.0
        (
            *(0.6931471805599453, 0.2402265069591013, 0.055504108664820084, 0.009618129107594128),
            *(0.0013333558146775, 0.00015403530457104133, 1.5252733492765956e-05),
            *(1.3215435285728762e-06, 1.0178199715213405e-07, 7.073782751051815e-09),
            4.434751259499918e-10,
        ),
    ),
}


def clamp(k: Body, x: Element, limit: float) -> Element:
    """Return `x` within [-limit, limit]; NaN stays NaN."""
    x = k.select(k.constant(limit, x.dtype) < x, limit, x)
    return k.select(k.constant(-limit, x.dtype) > x, -limit, x)


def scale_by_exp2(k: Body, x: Element, shifted: Element) -> Element:
    """Return `x * 2**n`, rounded once, where `shifted` is n + `shift`: |n| below 1.5 * bias."""
    width = SIGNIFICAND[x.dtype]
    exponent = k.bits(shifted, SIGNED[x.dtype.itemsize])
    first_half = (exponent << (width - 1)) & (-1 << width)
    second_half = (exponent << width) - first_half
    return x * k.bits(first_half, x.dtype) * k.bits(second_half, x.dtype)


def reduce_exponent(k: Body, x: Element) -> tuple[Element, Element]:
    """Return n + `shift` and r for x = n * log(2) + r."""
    c = EXP_CONSTANTS[x.dtype]
    shifted = k.fma(x, c.inverse, c.shift)
    n = shifted - c.shift
    return shifted, k.fma(n, -c.tail, k.fma(n, -c.head, x))


def exp(k: Body, x: Element) -> Element:
    """Return e to the power of `x`: 0 at -inf, inf at inf."""
    c = EXP_CONSTANTS[x.dtype]
    shifted, r = reduce_exponent(k, clamp(k, x, c.limit))
    power = k.polynomial(r, (1.0, 1.0, *c.expm1))
    return scale_by_exp2(k, power, shifted)


def exp2(k: Body, x: Element) -> Element:
    """Return 2 to the power of `x`: exact where `x` is whole, 0 at -inf, inf at inf."""
    c = EXP_CONSTANTS[x.dtype]
    x = clamp(k, x, c.limit2)
    shifted = x + c.shift
    r = x - (shifted - c.shift)
    power = k.polynomial(r, (1.0, *c.exp2))
    return scale_by_exp2(k, power, shifted)


def expm1(k: Body, x: Element) -> Element:
    """Return `exp(x) - 1`, accurate near 0: -1 at -inf, inf at inf, -0 at -0."""
    c = EXP_CONSTANTS[x.dtype]
    width = SIGNIFICAND[x.dtype]
    clamped = k.select(k.constant(c.overflow, x.dtype) < x, c.overflow, x)
    clamped = k.select(k.constant(-60.0, x.dtype) > clamped, -60.0, clamped)
    shifted, r = reduce_exponent(k, clamped)
    # 2**n for the largest n is infinite: the result is doubled instead.
    max_shifted = k.constant(c.shift + c.bias, x.dtype)
    is_top = shifted > max_shifted
    exponent = k.bits(k.select(is_top, max_shifted, shifted), SIGNED[x.dtype.itemsize])
    power = k.bits((exponent - c.bias) << width, x.dtype)
    # With n = 0 the head is r, otherwise it is larger than the rest. r**2 is not computed: it could
    # be subnormal, and is then slow.
    head = k.fma(power, r, power - 1.0)
    result = k.fma(power * r, r * k.polynomial(r, c.expm1), head)
    return k.copysign(k.select(is_top, result + result, result), x)


FORMULAS: dict[str, Callable[..., Element]] = {"exp": exp, "exp2": exp2, "expm1": expm1}
