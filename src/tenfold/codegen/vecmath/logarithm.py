"""Logarithms: log, log2, log10, log1p and logaddexp of packets.

Input: a Body and elements of float32 or float64. Output: the element of the result.

    x = 2**e * (1 + f),  log(x) = e * log(2) + log(1 + f)

float32 has f in [-1/3, 1/3] and a polynomial in it. float64 has 1 + f in [sqrt(1/2), sqrt(2)] and s
= f / (2 + f). Then log(1 + f) = 2 * atanh(s) = f + s * (R(s**2) - f), with R(s**2) = 2 / 3 * s**2 +
2 / 5 * s**4 + ... Here f is exact, and the rest small (the idea of log in FDLIBM, Sun Microsystems,
1993, e_log.c). The polynomials are minimax ones, fitted by `tools/coefficients/exponential.py`,
which prints the lines quoted below.

Largest errors seen, in units in the last place, over all numbers of float32 and over two million
in each of ten regimes of float64:

    log    float32 0.94   float64 1.16
    log2   float32 1.12   float64 1.12
    log10  float32 1.15   float64 1.05
    log1p  float32 1.57   float64 1.71

>>> from tenfold.dtypes import FLOAT32
>>> body = Body()
>>> log(body, body.load(0, FLOAT32)).dtype
dtype('float32')
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tenfold.codegen.vecmath.exponential import EXP_CONSTANTS, exp
from tenfold.core.scalar_ir import SIGNIFICAND, UNSIGNED, Body, Element
from tenfold.dtypes import FLOAT32, FLOAT64


class FloatFormat(NamedTuple):
    """The bits of 1.0 and of the smallest 1 + f, the bias of exponents, the smallest normal."""

    one_bits: int
    low_bits: int
    bias: int
    smallest_normal: float


class Base(NamedTuple):
    """Logarithms to a base: of 2 as `head` + `tail`, of e as `factor` + `factor_low`.

    An exponent times the head is exact.
    """

    head: float
    tail: float
    factor: float
    factor_low: float


FLOAT_FORMATS = {
    FLOAT32: FloatFormat(0x3F800000, 0x3F2AAAAB, 127, 2.0**-126),
    FLOAT64: FloatFormat(0x3FF0000000000000, 0x3FE6A09E667F3BCD, 1023, 2.0**-1022),
}
BASE_TWO = {
    FLOAT32: Base(1.0, 0.0, 1.442695, 1.925963e-08),
    FLOAT64: Base(1.0, 0.0, 1.4426950408889634, 2.0355273740931033e-17),
}
DECIMAL = {
    FLOAT32: Base(0.3010254, 4.605039e-06, 0.4342945, -1.010305e-08),
    FLOAT64: Base(
        *(0.30102999566395283, 2.8363394551044964e-14),
        *(0.4342944819032518, 1.098319650216765e-17),
    ),
}
# LOG1P: (log(1 + f) - f + f**2 / 2) / f**3 float32 2^-27.3
LOG1P = (
    *(0.33333215, -0.24999797, 0.20010407, -0.16680513, 0.14005843, -0.12183941, 0.13984588),
    -0.12892981,
)
# ATANH: (2 * atanh(s) - 2 * s) / s**3 in s**2 float64 2^-58.9
ATANH = (
    *(0.6666666666666734, 0.39999999999414554, 0.2857142874240437, 0.222221985725323),
    *(0.1818356431589428, 0.15314051670466805, 0.14795932160292366),
)


def split_exponent(k: Body, x: Element, offset: Element | float) -> tuple[Element, Element]:
    """Return e and f of a positive normal `x`; `offset` is 2**(bits of the significand) + bias."""
    one, low, _, _ = FLOAT_FORMATS[x.dtype]
    width = SIGNIFICAND[x.dtype]
    offset_bits = k.bits(x, UNSIGNED[x.dtype.itemsize]) + (one - low)
    m = k.bits((offset_bits & ((1 << width) - 1)) + low, x.dtype)
    # As the last bits of 2**width the exponent is a number: converting int64 takes AVX-512.
    number = k.bits(k.constant(2.0**width, x.dtype), offset_bits.dtype)
    return k.bits((offset_bits >> width) | number, x.dtype) - offset, m - 1.0


def normal_offset(x: Element) -> float:
    """Return the offset of `split_exponent` for normal numbers."""
    return 2.0 ** SIGNIFICAND[x.dtype] + FLOAT_FORMATS[x.dtype].bias


def split_positive(k: Body, x: Element) -> tuple[Element, Element]:
    """Return e and f of a positive finite `x`, which may be subnormal."""
    lift = SIGNIFICAND[x.dtype] + 2
    is_subnormal = x < FLOAT_FORMATS[x.dtype].smallest_normal
    offset = k.constant(normal_offset(x), x.dtype)
    lifted = k.select(is_subnormal, x * 2.0**lift, x)
    return split_exponent(k, lifted, k.select(is_subnormal, offset + float(lift), offset))


def log1p_factors(k: Body, f: Element) -> tuple[Element, Element]:
    """Return two factors whose product is log(1 + f) - f."""
    if f.dtype == FLOAT32:
        return f, f * k.fma(f, k.polynomial(f, LOG1P), -0.5)
    s = f / (f + 2.0)
    z = s * s
    return s, k.fma(z, k.polynomial(z, ATANH), -f)


def join_exponent(k: Body, e: Element, f: Element) -> Element:
    """Return e * log(2) + log(1 + f)."""
    c = EXP_CONSTANTS[f.dtype]
    return k.fma(e, c.head, k.fma(e, c.tail, k.fma(*log1p_factors(k, f), f)))


def with_special_values(k: Body, x: Element, zero: float, y: Element) -> Element:
    """Return `y`, but -inf if `x` is `zero`, NaN below and for NaN, inf at inf."""
    nan = k.constant(np.nan, x.dtype)
    y = k.select(x > zero, y, k.select(x == zero, -np.inf, nan))
    return k.select(x == np.inf, x, y)


def log(k: Body, x: Element) -> Element:
    """Return the natural logarithm: -inf at 0, NaN below, inf at inf."""
    return with_special_values(k, x, 0.0, join_exponent(k, *split_positive(k, x)))


def _product(k: Body, f: Element, base: Base) -> tuple[Element, Element]:
    """Return log(1 + f) to a base as the unevaluated sum of f * factor and the rest."""
    head = f * base.factor
    low = k.fma(f, base.factor_low, k.fma(f, base.factor, -head))
    first, second = log1p_factors(k, f)
    return head, k.fma(first * second, base.factor, low)


def log2(k: Body, x: Element) -> Element:
    """Return the logarithm to the base 2: exact at powers of 2; special values as of log."""
    e, f = split_positive(k, x)
    head, low = _product(k, f, BASE_TWO[x.dtype])
    y = e + head
    return with_special_values(k, x, 0.0, y + ((e - y) + head + low))


def log10(k: Body, x: Element) -> Element:
    """Return the logarithm to the base 10; special values as of log."""
    base = DECIMAL[x.dtype]
    e, f = split_positive(k, x)
    head, low = _product(k, f, base)
    scaled_exponent = e * base.head
    y = scaled_exponent + head
    return with_special_values(
        k, x, 0.0, y + ((scaled_exponent - y) + head + k.fma(e, base.tail, low))
    )


def log1p_inside(k: Body, x: Element) -> Element:
    """Return log(1 + x) for finite x above -1."""
    one, low, _, _ = FLOAT_FORMATS[x.dtype]
    width = SIGNIFICAND[x.dtype]
    u = x + 1.0
    # u + rest is 1 + x exactly (Knuth, The Art of Computer Programming 2, section 4.2.2).
    part = u - 1.0
    rest = (1.0 - (u - part)) + (x - part)
    e, f = split_exponent(k, u, normal_offset(x))
    exponent = (k.bits(u, UNSIGNED[x.dtype.itemsize]) + (one - low)) & (-1 << width)
    power = k.bits(2 * one - exponent, x.dtype)
    # Far above 1 the rest is 0, and 2**-e does not exist for the last e; NaN stays NaN.
    f = f + k.select(x > 2.0 ** (width + 2), 0.0, rest * power)
    return join_exponent(k, e, f)


def log1p(k: Body, x: Element) -> Element:
    """Return log(1 + x), accurate near 0: -inf at -1, NaN below, inf at inf, -0 at -0."""
    return with_special_values(k, x, -1.0, k.copysign(log1p_inside(k, x), x))


def logaddexp(k: Body, x: Element, y: Element) -> Element:
    """Return log(exp(x) + exp(y)) without overflow.

    The larger operand is added to log(1 + exp(-|x - y|)); infinite operands that are equal have
    the distance 0. Near a result of 0 the two cancel: the largest error seen is 1.2 units of 0.5
    where the result is smaller than that, and 1.8 units of the result elsewhere.
    """
    distance = k.select(x == y, 0.0, k.abs(x - y))
    return k.select(x < y, y, x) + log1p_inside(k, exp(k, -distance))


FORMULAS: dict[str, Callable[..., Element]] = {
    "log": log,
    "log2": log2,
    "log10": log10,
    "log1p": log1p,
    "logaddexp": logaddexp,
}
