"""Philox4x32-10: the counter-based generator behind `tn.random`, and its formulas of distributions.

A block of 128 random bits is a function of a key, a draw number and an element index: J. Salmon, M.
Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011. Every formula is
written once: `k` is a kernel's Body and the words are its Elements, or `k` is ARRAYS and the words
are ndarrays. The formulas use no FMA and no elementary function of the processor's library, so
kernels and NumPy give the same bits on every CPU.

>>> words = (np.asarray([x], np.uint64) for x in (2**64 - 1, 2**64 - 1, 2**64 - 1))
>>> [f"{int(word[0]) & LOW:08x}" for word in block(*words)]
['408f276d', '41c83b0e', 'a20bc7c6', '6d5451fd']
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.core.shape_rules import Shape, product
from tenfold.dtypes import DTYPES, FLOAT32, FLOAT64, INT64

UINT64, UINT32, INT32_DTYPE = DTYPES["uint64"], DTYPES["uint32"], DTYPES["int32"]
Word = Any
"""An Element of a kernel, or an ndarray of the same dtype."""
Block = tuple[Word, Word, Word, Word]
"""The 128 random bits of an element: four uint64, of which the lower 32 bits are defined."""
SAMPLE_KEY = (20260101, 77777)
"""The key and draw of the samples of tests."""
ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
LOW, UPPER_21 = 0xFFFFFFFF, 0xFFFFF800
STREAM_SHIFT = 48
"""The bits of an element index; those above are the stream, of a value's own further blocks."""
STREAMS = 1 << 64 - STREAM_SHIFT
UNIT_STEP = 2.0**-53
"""The distance of uniform float64 numbers: `unit` plus it is `positive_unit`, exactly."""


class Arrays:
    """The methods of a kernel's Body that the formulas use, on ndarrays."""

    def constant(self, value: Any, dtype: np.dtype) -> np.ndarray:
        """Return a number as an array of one element."""
        return np.asarray([value], dtype)

    def convert(self, x: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """Return `x` in another dtype; integers wrap."""
        return x.astype(dtype)

    def bits(self, x: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """Return the same bits in another dtype."""
        return x.view(dtype)

    def select(self, condition: np.ndarray, x: Any, y: Any) -> np.ndarray:
        """Return `x` where the condition holds, else `y`."""
        return np.where(condition, x, y)

    def sqrt(self, x: np.ndarray) -> np.ndarray:
        """Return the square root."""
        return np.sqrt(x)


ARRAYS = Arrays()


def block(key: Word, draw: Word, index: Word) -> Block:
    """Return the four 32-bit words of a key, a draw and an index (uint64), each in a uint64.

    The counter is (index, draw), each the lower half first. Products of 32-bit numbers are taken in
    64 bits; bits above the lower half of a word are undefined, and dropped at its next use.
    """
    c0, c1, c2, c3 = index, index >> 32, draw, draw >> 32
    k0, k1 = key & LOW, key >> 32
    for _ in range(ROUNDS):
        first, second = (c0 & LOW) * MULTIPLIERS[0], (c2 & LOW) * MULTIPLIERS[1]
        c0, c1, c2, c3 = (second >> 32) ^ c1 ^ k0, second, (first >> 32) ^ c3 ^ k1, first
        k0, k1 = (k0 + KEY_STEPS[0]) & LOW, (k1 + KEY_STEPS[1]) & LOW
    return c0, c1, c2, c3


def array_block(key: np.ndarray, draw: np.ndarray, size: Shape, stream: int = 0) -> Block:
    """Return the words of all elements, of shape (key and draw broadcast) + size, 0-d as 1-d."""
    lead = np.broadcast_shapes(key.shape, draw.shape)
    index = np.arange(product(size), dtype=UINT64).reshape((1,) * len(lead) + size)
    words = (np.broadcast_to(x, lead).astype(UINT64) for x in (key, draw))
    keys, draws = (np.atleast_1d(x.reshape(lead + (1,) * len(size))) for x in words)
    return block(keys, draws, np.atleast_1d(index) + np.uint64(stream << STREAM_SHIFT))


def joined(low: Word, high: Word) -> Word:
    """Return two words as one of 64 bits."""
    return (low & LOW) | (high << 32)


def _float64(k: Any, low: Word, high: Word, exponent: int, start: float, first: int = 0) -> Word:
    """Return start + (n + first) * 2**(exponent - 53), exactly, for the upper 53 bits n of two
    words.

    The bits are put into the significands of two floats, of 2**(exponent + 20) and above and of
    2**(exponent - 12) and above; no instruction converts 64-bit integers before AVX-512.
    """
    upper = k.bits((high & LOW) | (1043 + exponent << 52), FLOAT64)
    lower = k.bits((low & UPPER_21) + ((1011 + exponent << 52) + (first << 11)), FLOAT64)
    return (upper - (2.0 ** (exponent + 20) + 2.0 ** (exponent - 12) - start)) + lower


def half_open_unit(k: Any, low: Word, high: Word, dtype: np.dtype) -> Word:
    """Return a uniform float in [0, 1): the upper 53 bits of two words, 24 bits for float32."""
    if dtype == FLOAT32:
        return k.convert(k.convert((high & LOW) >> 8, INT32_DTYPE), FLOAT32) * 2.0**-24
    return _float64(k, low, high, 0, 0.0)


def positive_unit(k: Any, low: Word, high: Word) -> Word:
    """Return a uniform float64 in (0, 1], of 53 bits."""
    return _float64(k, low, high, 0, 0.0, 1)


def symmetric_unit(k: Any, low: Word, high: Word) -> Word:
    """Return a uniform float64 in [-1, 1), of 53 bits."""
    return _float64(k, low, high, 1, -1.0)


def exponential(k: Any, block: Block, dtype: np.dtype) -> Word:
    """Return a standard exponential number: minus the logarithm of a uniform one."""
    return k.convert(-log(k, positive_unit(k, *block[:2])), dtype)


def normal(k: Any, block: Block, dtype: np.dtype) -> Word:
    """Return a standard normal number: Box and Muller's sqrt(-2 log u) sin(pi v / 2).

    With v uniform in [-1, 1) the sine is distributed as the cosine of a full turn. At most 8.6 in
    magnitude; float32 is rounded from float64.
    """
    radius = k.sqrt(log(k, positive_unit(k, *block[:2])) * -2.0)
    return k.convert(radius * sin_half_pi(symmetric_unit(k, *block[2:])), dtype)


def bounded(block: Block, count: Word) -> Word:
    """Return a uniform integer below `count` (uint64): floor(bits * count / 2**128).

    D. Lemire, "Fast random integer generation in an interval", 2019, without his rejection: the 128
    bits keep the bias of every result below count / 2**128. Schoolbook product of 32-bit limbs.
    """
    limbs = [block[at] & LOW for at in (2, 3, 0, 1)]
    low, high = count & LOW, count >> 32
    carry, row = (limbs[0] * low) >> 32, []
    for limb in limbs[1:]:
        term = limb * low + carry
        row.append(term & LOW)
        carry = term >> 32
    row.append(carry)
    term = limbs[0] * high + row[0]
    for limb, addend in zip(limbs[1:], row[1:], strict=True):
        term = limb * high + addend + (term >> 32)
    return term


LOG2_HIGH, LOG2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
LOG_COEFFICIENTS = (
    *(6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01),
    *(2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01),
    1.479819860511658591e-01,
)
"""The logarithm of 2 in two parts, and the minimax polynomial of FreeBSD's msun, e_log.c."""
ROOT_HALF, TWO_52_BITS = 0x3FE6A09E667F3BCD, 0x4330000000000000
"""The bits of sqrt(1/2), and of 2**52, which turn a small integer into a float."""


def log(k: Any, x: Word) -> Word:
    """Return the natural logarithm of normal positive float64, within 1 unit in the last place.

    The method of e_log.c in FreeBSD's msun, in one formula for all arguments.
    """
    shifted = k.bits(x, INT64) + (0x3FF0000000000000 - ROOT_HALF)
    exponent = k.bits((shifted >> 52) | TWO_52_BITS, FLOAT64) - (2.0**52 + 1023.0)
    f = k.bits((shifted & 0x000FFFFFFFFFFFFF) + ROOT_HALF, FLOAT64) - 1.0
    s = f / (f + 2.0)
    z = s * s
    w = z * z
    c1, c2, c3, c4, c5, c6, c7 = LOG_COEFFICIENTS
    even = w * (c2 + w * (c4 + w * c6))
    odd = z * (c1 + w * (c3 + w * (c5 + w * c7)))
    half_square = f * f * 0.5
    correction = s * (half_square + (even + odd)) + exponent * LOG2_LOW
    return exponent * LOG2_HIGH - ((half_square - correction) - f)


SINE_COEFFICIENTS = (
    *(1.5707963267948966, -0.6459640975062463, 0.07969262624616705, -0.004681754135318688),
    *(0.00016044118478735983, -3.598843235212085e-06, 5.692172921967927e-08),
    *(-6.688035109811468e-10, 6.0669357311061955e-12, -4.377065467313742e-14),
    2.571422892860474e-16,
)
"""Those of Taylor's series of sin(pi x / 2): (-1)**n (pi/2)**(2n+1) / (2n+1)!; the next term is
below 2e-18."""


def sin_half_pi(x: Word) -> Word:
    """Return sin(pi x / 2) of float64 in [-1, 1]."""
    square = x * x
    *lower, value = SINE_COEFFICIENTS
    for coefficient in reversed(lower):
        value = square * value + coefficient
    return x * value
