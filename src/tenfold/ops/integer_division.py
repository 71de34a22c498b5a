"""Integer division: kernel rules of floor division, its remainder, and integer powers.

Takes elements of one real dtype, hands on the element of the result, with no trap and no branch:
processors divide packets of floats, not of integers.

>>> from tenfold.dtypes import DTYPES
>>> body = Body()
>>> x, y = (body.load(i, DTYPES["int8"]) for i in range(2))
>>> floor_quotient(body, x, y).dtype
dtype('int8')
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tenfold.core.scalar_ir import SIGNED, UNSIGNED, Body, Element
from tenfold.dtypes import FLOAT32, FLOAT64, kind_of
from tenfold.ops.cast import float64_to_int64

_OFFSET = 1.5 * 2.0**52
"""The last bits of a float64 near it are a whole number, in two's complement."""


def floor_quotient(k: Body, x: Element, y: Element) -> Element:
    """Return `x / y` rounded down: 0 for an integer by 0, and NumPy's for floats."""
    if kind_of(x.dtype) == "f":
        return _float_divmod(k, x, y)[0]
    quotient = _integer_quotient(k, x, y)
    if x.dtype.itemsize == 8:
        quotient = k.rare(_is_wide(k, x, y), "wide_quotient", quotient, x, y)
    return k.select(y == 0, 0, quotient)


def floor_remainder(k: Body, x: Element, y: Element) -> Element:
    """Return the remainder of `floor_quotient`: 0 for an integer by 0, and NumPy's for floats."""
    if kind_of(x.dtype) == "f":
        return _float_divmod(k, x, y)[1]
    remainder = x - _integer_quotient(k, x, y) * y
    if x.dtype.itemsize == 8:
        remainder = k.rare(_is_wide(k, x, y), "wide_remainder", remainder, x, y)
    return k.select(y == 0, 0, remainder)


def _integer_quotient(k: Body, x: Element, y: Element) -> Element:
    """Return the quotient for `y` other than 0, and if of 64 bits below 2**50 in magnitude.

    With half of one more, `x / y` is `1 / (2 * y)` from any whole number at least: more than the
    two rounding errors in more than as many bits as `x` has. So one inverse does for all of `x`.
    """
    if x.dtype.itemsize < 4:
        floored = _floor_quotient(k, k.convert(x, FLOAT32), k.convert(y, FLOAT32))
        return k.convert(k.convert(floored, SIGNED[4]), x.dtype)
    if x.dtype.itemsize == 4:
        floored = _floor_quotient(k, k.convert(x, FLOAT64), k.convert(y, FLOAT64))
        return k.convert(k.bits(floored + _OFFSET, SIGNED[8]), x.dtype)
    offset = k.bits(k.constant(_OFFSET, FLOAT64), x.dtype)
    dividend, divisor = (k.bits(operand + offset, FLOAT64) - _OFFSET for operand in (x, y))
    return k.bits(_floor_quotient(k, dividend, divisor) + _OFFSET, x.dtype) - offset


def _floor_quotient(k: Body, x: Element, y: Element) -> Element:
    """Return the quotient of whole numbers as floats, rounded down."""
    inverse = k.constant(1.0, y.dtype) / y
    signed_half = k.copysign(k.constant(0.5, y.dtype), y)
    return k.floor((x + signed_half) * inverse)


def _is_wide(k: Body, x: Element, y: Element) -> Element:
    """Whether one of two integers of 64 bits is from 2**50 in magnitude."""
    if kind_of(x.dtype) == "u":
        return ((x | y) >> 50) != 0
    x, y = (k.bits(operand + 2**50, UNSIGNED[8]) for operand in (x, y))
    return ((x | y) >> 51) != 0


def _wide_divmod(k: Body, x: Element, y: Element) -> tuple[Element, Element]:
    """Return quotient and remainder of integers of 64 bits for `y` other than 0."""
    if kind_of(x.dtype) == "u":
        return _unsigned_divmod(k, x, y)
    unsigned = UNSIGNED[8]
    magnitudes = k.bits(k.abs(x), unsigned), k.bits(k.abs(y), unsigned)
    quotient, remainder = (k.bits(result, x.dtype) for result in _unsigned_divmod(k, *magnitudes))
    quotient = k.select((x < 0) == (y < 0), quotient, -quotient)
    remainder = k.select(x < 0, -remainder, remainder)
    rounds_down = (remainder != 0) & ((remainder < 0) != (y < 0))
    return k.select(rounds_down, quotient - 1, quotient), k.select(
        rounds_down, remainder + y, remainder
    )


def _unsigned_divmod(k: Body, x: Element, y: Element) -> tuple[Element, Element]:
    """Two digits, each by a quotient in float64 that is never too large, and one step at the end.

    The first digit leaves less than `2 * y + 2**15`, the second less than `2 * y`.
    """
    below_one = 1.0 - 2.0**-50
    inverse = below_one / k.convert(y, FLOAT64)
    first_digit = float64_to_int64(k, k.floor(k.convert(x, FLOAT64) * inverse), x.dtype)
    remainder = x - first_digit * y
    second_digit = float64_to_int64(k, k.floor(k.convert(remainder, FLOAT64) * inverse), x.dtype)
    remainder = remainder - second_digit * y
    one_more = remainder >= y
    quotient = first_digit + second_digit
    return k.select(one_more, quotient + 1, quotient), k.select(one_more, remainder - y, remainder)


def _float_divmod(k: Body, x: Element, y: Element) -> tuple[Element, Element]:
    """Return quotient and remainder, with NumPy's rounding, zeros and infinities (npy_divmod)."""
    remainder = _truncated_remainder(k, x, y)
    rounds_down = (remainder != 0) & ((y < 0) != (remainder < 0))
    quotient = (x - remainder) / y
    quotient = k.select(rounds_down, quotient - 1.0, quotient)
    floored = k.floor(quotient)
    floored = k.select(quotient - floored > 0.5, floored + 1.0, floored)
    zero = k.constant(0.0, x.dtype)
    floored = k.select(quotient == 0, k.copysign(zero, x / y), floored)
    signed = k.select(
        rounds_down, remainder + y, k.select(remainder == 0, k.copysign(zero, y), remainder)
    )
    return k.select(y == 0, x / y, floored), signed


def _truncated_remainder(k: Body, x: Element, y: Element) -> Element:
    """Return C's fmod, exactly. Large quotients go to separate formulas."""
    dividend, divisor = (k.convert(k.abs(operand), FLOAT64) for operand in (x, y))
    ratio = dividend / divisor
    step, limit, formula = (
        (_narrow_remainder_step, 2.0**29, "far_narrow_remainder")
        if x.dtype == FLOAT32
        else (_exact_remainder_step, 2.0**24, "far_remainder")
    )
    remainder = step(k, dividend, divisor, k.rint(ratio))
    remainder = k.select(remainder < 0, remainder + divisor, remainder)
    remainder = k.select(dividend < divisor, dividend, remainder)
    is_far = (ratio >= limit) & (dividend < np.inf) & (divisor > 0)
    remainder = k.rare(is_far, formula, remainder, dividend, divisor)
    return k.copysign(k.convert(remainder, x.dtype), x)


def _narrow_remainder_step(_: Body, x: Element, y: Element, quotient: Element) -> Element:
    """Return `x - quotient * y` in float64, exactly: of 24 bits, a near quotient of 29."""
    return x - quotient * y


def _exact_remainder_step(k: Body, x: Element, y: Element, quotient: Element) -> Element:
    """Return `x - quotient * y` in float64, exactly, for a near quotient of at most 24 bits.

    `y` is split so that no product is rounded, and half of it is taken at a time so that none
    overflows.
    """
    y_high = k.bits(k.bits(y, UNSIGNED[8]) & -(2**27), FLOAT64)
    half_product = 0.5 * quotient * y_high
    return ((x - half_product) - half_product) - quotient * (y - y_high)


def _rounded_quotient(x: Element, y: Element, bits: int) -> Element:
    """Return the quotient in float64, rounded to so many bits by Veltkamp's splitting.

    Dekker 1971, "A floating-point technique for extending the available precision", Numerische
    Mathematik 18.
    """
    ratio = x / y
    scaled = ratio * (2.0 ** (53 - bits) + 1)
    return scaled - (scaled - ratio)


def _far_narrow_remainder(k: Body, x: Element, y: Element) -> Element:
    """Return C's fmod of float32 `x >= y > 0` given in float64."""
    for _ in range(2):
        x = k.rare(k.abs(x / y) >= 2.0**29, "narrow_remainder_steps", x, x, y)
    remainder = _narrow_remainder_step(k, x, y, k.rint(x / y))
    return k.select(remainder < 0, remainder + y, remainder)


def _narrow_remainder_steps(k: Body, x: Element, y: Element) -> Element:
    """Subtract 145 bits of the quotient; the remainder may have either sign."""
    for _ in range(5):
        x = _narrow_remainder_step(k, x, y, k.rint(_rounded_quotient(x, y, 29)))
    return x


def _far_remainder(k: Body, x: Element, y: Element) -> Element:
    """Return C's fmod of finite `x >= y > 0` in float64, whose quotient may have 2,100 bits."""
    for _ in range(6):
        x = k.rare(k.abs(x / y) >= 2.0**24, "remainder_part", x, x, y)
    remainder = _exact_remainder_step(k, x, y, k.rint(x / y))
    return k.select(remainder < 0, remainder + y, remainder)


def _remainder_part(k: Body, x: Element, y: Element) -> Element:
    """Take 384 bits of the quotient, in functions that are short: they take long to compile."""
    for _ in range(4):
        x = k.rare(k.abs(x / y) >= 2.0**24, "remainder_steps", x, x, y)
    return x


def _remainder_steps(k: Body, x: Element, y: Element) -> Element:
    """Take 96 bits of the quotient by `y`, or first by 2**1400 or 2**700 times `y`, lest it
    overflow; the remainder may have either sign.
    """
    for _ in range(2):
        scaled = y * 2.0**700
        y = k.select(scaled <= k.abs(x), scaled, y)
    for _ in range(4):
        x = _exact_remainder_step(k, x, y, k.rint(_rounded_quotient(x, y, 24)))
    return x


def integer_power(k: Body, x: Element, y: Element) -> Element:
    """Return `x` to the power of `y` for integers, `y` from 0; it wraps.

    By squaring; the bits of the exponent above the last four, where it has any, by `high_power`.
    """
    instruction = k.instructions[y.position]
    unit = k.constant(1, x.dtype)
    if instruction.name == "constant":
        assert isinstance(instruction.data, int), "an integer has whole constants"
        return _constant_power(x, instruction.data, unit)
    power, sixteenth = _power_part(k, unit, x, y), _sixteenth_power(k, x)
    return k.rare((y >> 4) != 0, "high_power", power, power, sixteenth, y >> 4)


def _constant_power(x: Element, exponent: int, power: Element) -> Element:
    """Multiply `power` by a power of `x` that is known; a negative one has failed already."""
    while exponent > 0:
        if exponent % 2:
            power = power * x
        exponent //= 2
        x = x * x if exponent else x
    return power


def _power_part(k: Body, power: Element, x: Element, y: Element) -> Element:
    """Multiply `power` by the powers of `x` that the last four bits of `y` name."""
    for bit in range(4):
        power = k.select((y & (1 << bit)) == 0, power, power * x)
        x = x * x
    return power


def _sixteenth_power(_: Body, x: Element) -> Element:
    fourth = (x * x) * (x * x)
    return (fourth * fourth) * (fourth * fourth)


def _high_power(k: Body, power: Element, x: Element, y: Element) -> Element:
    """Multiply `power` by the powers of `x` for the remaining bits of `y`."""
    for _ in range(2 * y.dtype.itemsize - 1):
        power = k.rare(y != 0, "power_part", power, power, x, y)
        y = y >> 4
        x = k.rare(y != 0, "sixteenth_power", x, x)
    return power


def _simple_power(k: Body, x: Element, y: Element) -> Element:
    """Return `x` to the power of 2, 1, 0.5 or -1, rounded once; inf for -inf to that of 0.5."""
    root = k.select((x == 0.0) | (k.abs(x) == np.inf), k.abs(x), k.sqrt(x))
    power = k.select(y == 0.5, root, 1.0 / x)
    return k.select(y == 2.0, x * x, k.select(y == 1.0, x, power))


FORMULAS: dict[str, Callable[..., Element]] = {
    "far_narrow_remainder": _far_narrow_remainder,
    "far_remainder": _far_remainder,
    "high_power": _high_power,
    "narrow_remainder_steps": _narrow_remainder_steps,
    "power_part": _power_part,
    "remainder_part": _remainder_part,
    "remainder_steps": _remainder_steps,
    "simple_power": _simple_power,
    "sixteenth_power": _sixteenth_power,
    "wide_quotient": lambda k, x, y: _wide_divmod(k, x, y)[0],
    "wide_remainder": lambda k, x, y: _wide_divmod(k, x, y)[1],
}
"""Rules that `Body.rare` calls by name, for the packets that need them."""
