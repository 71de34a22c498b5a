"""Argument reduction: x = quadrant * pi / 2 + remainder, for sines, cosines and tangents.

Input: an element of radians. Output: the remainder, in [-pi / 4, pi / 4] up to its last bits, and
the number of the quadrant, an integer whose two lowest bits are valid.

There are two methods. Up to `SMALL_ANGLES` three parts of pi / 2 are subtracted in turn (W. J. Cody
and W. Waite, Software Manual for the Elementary Functions, 1980, chapter 8). With fma the first
difference is exact although the part fills the significand: it is a multiple of the part's last
bit, and below 2. Above, x is multiplied with those bits of 2 / pi that decide its fraction (M. H.
Payne and R. N. Hanek, Radian Reduction for Trigonometric Functions, SIGNUM Newsletter 18, 1983).
Either remainder is within a unit in the last place, even if x is close to a multiple of pi / 2.

>>> from tenfold.dtypes import FLOAT32
>>> body = Body()
>>> remainder, quadrant = reduce_argument(body, body.load(0, FLOAT32))
>>> print(remainder.dtype, quadrant.dtype, len(body.instructions))
float32 int32 12
"""

from __future__ import annotations

import math

import numpy as np

from tenfold.core.scalar_ir import SIGNED, SIGNIFICAND, Body, Element
from tenfold.dtypes import FLOAT32, FLOAT64, INT64

SMALL_ANGLES = {FLOAT32: 2.0**16, FLOAT64: 2.0**40}
"""The largest angles of the first method: the error of three parts of pi / 2 is below 2^-28 of the
least remainder."""

# Truncated, not rounded: as all parts are positive, -0 stays -0. From
# tools/coefficients/trigonometric.py.
HALF_PI_PARTS = {
    FLOAT32: (1.570796251296997, 7.549789415861596e-08, 5.390302529957765e-15),
    FLOAT64: (1.5707963267948966, 6.123233995736765e-17, 1.0828566739219139e-32),
}

TWO_OVER_PI = int(
    "A2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561"
    "B7246E3A424DD2E006492EEA09D1921CFE1DEB1CB129A73EE88235F52EBB4484"
    "E99C7026B45F7E413991D639835339F49C845F8BBDF9283B1FF897FFDE05980F"
    "EF2F118B5A0A6D1F6D367ECF27CB09B74F463F669E5FEA2D7527BAC7EBE5F17B"
    "3D0739F78A5292EA6BFB5FB11F8D5D08",
    16,
)
TWO_OVER_PI_BITS = 1152
"""The bits of 2 / pi after the binary point (tools/coefficients/trigonometric.py prints them)."""
WORD_BITS, WORD_STRIDE, FIRST_WORD_EXPONENT = 48, 16, 54
"""A word has 48 bits, the next one begins 16 bits later, and a word's first bit counts 2^53."""
LAST_BIT_EXPONENT = FIRST_WORD_EXPONENT - WORD_BITS
"""The table begins with a word of zeros, so that word 0 belongs to angles from 2^6 on."""
WORDS = tuple(
    int(
        np.float64(
            (TWO_OVER_PI >> shift) % 2**WORD_BITS * 2.0 ** (FIRST_WORD_EXPONENT - WORD_BITS)
        ).view(np.int64)
    )
    for shift in range(TWO_OVER_PI_BITS, -1, -WORD_STRIDE)
)


def round_nearest(k: Body, x: Element) -> tuple[Element, Element]:
    """Return the nearest whole float, and an integer with its lowest bits (|x| < 2^21, 2^50).

    By the addition of 1.5 * 2^23 (2^52), whose last place counts 1: one instruction on every CPU.
    """
    return _unshift(k, x + _shifter(x))


def _shifter(x: Element) -> float:
    return 1.5 * 2.0 ** SIGNIFICAND[x.dtype]


def _unshift(k: Body, shifted: Element) -> tuple[Element, Element]:
    return shifted - _shifter(shifted), k.bits(shifted, SIGNED[shifted.dtype.itemsize])


def reduce_argument(k: Body, x: Element) -> tuple[Element, Element]:
    """Return remainder and quadrant of an angle of at most `SMALL_ANGLES`; undefined above."""
    two_over_pi = k.constant(2 / math.pi, x.dtype)
    multiple, quadrant = _unshift(k, k.fma(x, two_over_pi, _shifter(x)))
    remainder = x
    for part in HALF_PI_PARTS[x.dtype]:
        remainder = k.fma(multiple, -part, remainder)
    return remainder, quadrant


def is_large(k: Body, x: Element) -> Element:
    """Return whether an angle, or infinity, is above `SMALL_ANGLES`."""
    return k.abs(x) > SMALL_ANGLES[x.dtype]


def reduce_large_argument(k: Body, x: Element) -> tuple[Element, Element]:
    """Return remainder and quadrant of a float64 of at least 2^6; of infinity, NaN.

    Bits of 2 / pi whose products with x are multiples of 4 are skipped. The products with the next
    four words are exact sums of two floats, of which multiples of 4 are subtracted. The omitted
    rest is below 2^-122, and no float64 is nearer to a multiple of pi / 2 than 2^-61
    (J.-M. Muller, Elementary Functions, 3rd edition, chapter 11).
    """
    exponent = (k.bits(x, INT64) >> SIGNIFICAND[FLOAT64]) & 0x7FF
    excess = exponent - (1023 + LAST_BIT_EXPONENT)
    word_index = k.select(excess > 0, excess >> 4, 0)
    scale = k.bits(
        ((1023 - LAST_BIT_EXPONENT) - (word_index << 4)) << SIGNIFICAND[FLOAT64], FLOAT64
    )
    scaled = x * scale
    products = []
    for number in range(4):
        factor = k.table(word_index + number * (WORD_BITS // WORD_STRIDE), WORDS, FLOAT64)
        part = scaled * 2.0 ** (-WORD_BITS * number)
        product = part * factor
        products.append((product, k.fma(part, factor, -product)))
    return _sum_products(k, products)


def _sum_products(k: Body, products: list[tuple[Element, Element]]) -> tuple[Element, Element]:
    (first, first_rest), (second, second_rest), (third, third_rest), (fourth, _) = products
    high = _modulo_four(k, first) + _modulo_four(k, first_rest)  # exact: multiples of 2^-46
    low = _modulo_four(k, second)
    multiple, quadrant = round_nearest(k, high + low)
    head, head_rest = two_sum(high - multiple, low)
    tail, tail_rest = two_sum(second_rest, third)
    head, rest = two_sum(head, tail)
    rest = ((tail_rest + rest) + head_rest) + (third_rest + fourth)
    fraction = head + rest
    fraction_rest = (head - fraction) + rest
    half_pi, beyond, _ = HALF_PI_PARTS[FLOAT64]
    remainder = fraction * half_pi
    missing = k.fma(fraction, half_pi, -remainder)
    return remainder + k.fma(fraction, beyond, k.fma(fraction_rest, half_pi, missing)), quadrant


def _modulo_four(k: Body, x: Element) -> Element:
    return k.fma(k.rint(x * 0.25), -4.0, x)


def two_sum(x: Element, y: Element) -> tuple[Element, Element]:
    """Return the rounded sum and its rounding error.

    D. E. Knuth, The Art of Computer Programming, volume 2, section 4.2.2, theorem B.
    """
    total = x + y
    y_rounded = total - x
    return total, (x - (total - y_rounded)) + (y - y_rounded)
