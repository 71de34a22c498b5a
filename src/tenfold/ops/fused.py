"""Fused multiply-add: one rounding, emulated in arithmetic that rounds after every step.

float32 and the half types: the product of two is exact in float64. The sum is rounded there to odd
(to the neighbour whose last bit is 1, if it is not exact). Rounding that to a format at least two
bits shorter is as good as rounding once. float64: the product and the sums are split into a rounded
value and its exact error, added by way of one rounding to odd. Elements with exponents too near the
ends for that are computed in rational numbers. Boldo, Melquiond 2008, "Emulation of FMA and
correctly rounded sums: proved algorithms using rounding to odd", IEEE Transactions on Computers
57(4).

>>> one = np.asarray(1 + 2.0**-30)
>>> print(fused_multiply_add(one, one, np.asarray(-1 - 2.0**-29)) == 2.0**-60)
True
"""

from __future__ import annotations

import numpy as np

from tenfold._native import Array
from tenfold.core.dtype_rules import real_numeric
from tenfold.core.op_decorators import elementwise
from tenfold.core.scalar_ir import UNSIGNED, Body, Element
from tenfold.dtypes import FLOAT32, FLOAT64, HALF_DTYPES, kind_of
from tenfold.ops.cast import round_to_half

FloatPair = tuple[np.ndarray, np.ndarray]
"""A rounded value and its exact error."""


def fused_multiply_add(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return x * y + z of one dtype, rounded once; integers wrap."""
    dtype = x.dtype
    if kind_of(dtype) in "iu":
        return x * y + z
    if dtype == FLOAT64:
        return _fma64(*np.broadcast_arrays(x, y, z))
    total = _sum_to_odd(x.astype(FLOAT64) * y.astype(FLOAT64), z.astype(FLOAT64))
    if dtype in HALF_DTYPES:
        # ml_dtypes itself goes through float32, with a rounding that would be one more.
        narrow = total.astype(FLOAT32)
        return _round_to_odd(narrow, total - narrow.astype(FLOAT64)).astype(dtype)
    return total.astype(dtype)


def _round_to_odd(rounded: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Return the neighbour of `rounded` on the side of `error` where the last bit of it is 0."""
    bits = rounded.view(f"u{rounded.dtype.itemsize}")
    inexact = (error != 0) & np.isfinite(error) & (bits % 2 == 0)
    outward = (error > 0) == (rounded > 0)
    next_float = np.where(outward, bits + bits.dtype.type(1), bits - bits.dtype.type(1))
    towards = np.copysign(np.finfo(rounded.dtype).smallest_subnormal, error)
    next_float = np.where(rounded == 0, towards, next_float.view(rounded.dtype))
    return np.where(inexact, next_float, rounded).astype(rounded.dtype)


def _sum_to_odd(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return _round_to_odd(*two_sum(x, y))


def two_sum(x: np.ndarray, y: np.ndarray) -> FloatPair:
    """Knuth's exact sum: rounded value and error."""
    total = x + y
    virtual = total - x
    return total, (x - (total - virtual)) + (y - virtual)


def two_product(x: np.ndarray, y: np.ndarray) -> FloatPair:
    """Dekker's exact product: rounded value and error, if no exponent is near the ends."""
    product = x * y
    x_high, x_low = _veltkamp_split(x)
    y_high, y_low = _veltkamp_split(y)
    error = x_low * y_low - (((product - x_high * y_high) - x_low * y_high) - x_high * y_low)
    return product, error


def _veltkamp_split(x: np.ndarray) -> FloatPair:
    scaled = x * 134217729.0  # 2**27 + 1
    high = scaled - (scaled - x)
    return high, x - high


def _fma64(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    result = np.asarray(x * y + z)
    finite = np.isfinite(x) & np.isfinite(y)
    result = np.where(finite & np.isinf(z), z, result)  # whose product may have overflowed
    inexact = finite & np.isfinite(z) & (x != 0) & (y != 0)
    exponents = [np.frexp(np.where(inexact, operand, 1))[1] for operand in (x, y, z)]
    product = exponents[0] + exponents[1]
    in_range = (np.abs(product) < 900) & (exponents[2] < 1000)
    in_range &= (exponents[0] < 990) & (exponents[1] < 990)
    fast, slow = inexact & in_range, inexact & ~in_range
    result[fast] = _fma_by_exact_terms(x[fast], y[fast], z[fast])
    result[slow] = [
        _fma_by_fractions(*items)
        for items in zip(x[slow].tolist(), y[slow].tolist(), z[slow].tolist(), strict=True)
    ]
    return result


def _fma_by_exact_terms(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Boldo and Melquiond's algorithm, where nothing overflows and no error underflows."""
    product, product_error = two_product(x, y)
    low, low_error = two_sum(z, product_error)
    high, high_error = two_sum(product, low)
    return high + _sum_to_odd(low_error, high_error)


def _fma_by_fractions(x: float, y: float, z: float) -> float:
    """Python's rational numbers are exact, and become floats with one rounding."""
    from fractions import Fraction  # imported only where it is used

    exact = Fraction(x) * Fraction(y) + Fraction(z)
    try:
        return float(exact)
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")


def _fma_element(k: Body, x: Element, y: Element, z: Element) -> Element:
    """As fused_multiply_add, of the processor where it has it."""
    dtype = x.dtype
    if kind_of(dtype) in "iu":
        return x * y + z
    if dtype not in HALF_DTYPES:
        return k.fma(x, y, z)
    operands = [k.convert(k.convert(operand, FLOAT32), FLOAT64) for operand in (x, y, z)]
    product, term = (
        operands[0] * operands[1],
        operands[2],
    )  # exact: the product of two halves has 22 bits
    total = product + term
    virtual = total - product
    error = (product - (total - virtual)) + (term - virtual)
    return round_to_half(k, _round_to_odd_element(k, total, error), dtype)


def _round_to_odd_element(k: Body, rounded: Element, error: Element) -> Element:
    """As _round_to_odd; `rounded` is not 0 where there is an error."""
    bits = k.bits(rounded, UNSIGNED[8])
    next_bits = k.select((error > 0) == (rounded > 0), bits + 1, bits - 1)
    exact = (error == 0) | (error != error) | ((bits & 1) != 0)
    return k.bits(k.select(exact, bits, next_bits), rounded.dtype)


@elementwise(
    dtypes=real_numeric,
    reference=fused_multiply_add,
    kernel=_fma_element,
    takes_halves=True,
    partials=(lambda y, x1, x2, x3: x2, lambda y, x1, x2, x3: x1, 1),
)
def fma(x1: Array | complex, x2: Array | complex, x3: Array | complex, /) -> Array:
    """`x1 * x2 + x3`, element by element, rounded once; shapes broadcast, dtypes promote.

    Integers wrap. Raises DTypeError for bool and complex.

    >>> import tenfold as tn
    >>> tn.fma(tn.asarray([2.0, 3.0]), 10.0, 1.0).tolist()
    [21.0, 31.0]
    """
