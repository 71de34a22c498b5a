"""Integer division: kernel rules of floor division, its remainder, and integer powers.

Takes elements of one real dtype, hands on the element of the result, with no trap and no branch:
processors divide packets of floats, not of integers.

>>> from tenfold.dtypes import DTYPES
>>> body = Body()
>>> x, y = (body.load(i, DTYPES["int8"]) for i in range(2))
>>> floored_quotient(body, x, y).dtype
dtype('int8')
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tenfold.core.scalar_ir import SIGNED, UNSIGNED, Body, Element
from tenfold.dtypes import FLOAT32, FLOAT64, kind_of
from tenfold.ops.cast import whole_bits

_OFFSET = 1.5 * 2.0**52
"""The last bits of a float64 near it are a whole number, in two's complement."""


def floored_quotient(k: Body, x: Element, y: Element) -> Element:
    """Return `x / y` rounded down: 0 for an integer by 0, and NumPy's for floats."""
    if kind_of(x.dtype) == "f":
        return _floats_divided(k, x, y)[0]
    quotient = _integer_quotient(k, x, y)
    if x.dtype.itemsize == 8:
        quotient = k.rare(_is_wide(k, x, y), "wide_quotient", quotient, x, y)
    return k.select(y == 0, 0, quotient)


def floored_remainder(k: Body, x: Element, y: Element) -> Element:
    """Return what `floored_quotient` leaves: 0 for an integer by 0, and NumPy's for floats."""
    if kind_of(x.dtype) == "f":
        return _floats_divided(k, x, y)[1]
    rest = x - _integer_quotient(k, x, y) * y
    if x.dtype.itemsize == 8:
        rest = k.rare(_is_wide(k, x, y), "wide_remainder", rest, x, y)
    return k.select(y == 0, 0, rest)


def _integer_quotient(k: Body, x: Element, y: Element) -> Element:
    """Return the quotient for `y` other than 0, and if of 64 bits below 2**50 in magnitude.

    With half of one more, `x / y` is `1 / (2 * y)` from any whole number at least: more than the
    two rounding errors in more than as many bits as `x` has. So one inverse does for all of `x`.
    """
    if x.dtype.itemsize < 4:
        floored = _floored(k, k.convert(x, FLOAT32), k.convert(y, FLOAT32))
        return k.convert(k.convert(floored, SIGNED[4]), x.dtype)
    if x.dtype.itemsize == 4:
        floored = _floored(k, k.convert(x, FLOAT64), k.convert(y, FLOAT64))
        return k.convert(k.bits(floored + _OFFSET, SIGNED[8]), x.dtype)
    offset = k.bits(k.constant(_OFFSET, FLOAT64), x.dtype)
    dividend, divisor = (k.bits(each + offset, FLOAT64) - _OFFSET for each in (x, y))
    return k.bits(_floored(k, dividend, divisor) + _OFFSET, x.dtype) - offset


def _floored(k: Body, x: Element, y: Element) -> Element:
    """Return the quotient of whole numbers as floats, rounded down."""
    inverse = k.constant(1.0, y.dtype) / y
    half = k.copysign(k.constant(0.5, y.dtype), y)
    return k.floor((x + half) * inverse)


def _is_wide(k: Body, x: Element, y: Element) -> Element:
    """Whether one of two integers of 64 bits is from 2**50 in magnitude."""
    if kind_of(x.dtype) == "u":
        return ((x | y) >> 50) != 0
    x, y = (k.bits(each + 2**50, UNSIGNED[8]) for each in (x, y))
    return ((x | y) >> 51) != 0


def _wide_divided(k: Body, x: Element, y: Element) -> tuple[Element, Element]:
    """Return quotient and remainder of integers of 64 bits for `y` other than 0."""
    if kind_of(x.dtype) == "u":
        return _unsigned_divided(k, x, y)
    unsigned = UNSIGNED[8]
    magnitudes = k.bits(k.abs(x), unsigned), k.bits(k.abs(y), unsigned)
    quotient, rest = (k.bits(part, x.dtype) for part in _unsigned_divided(k, *magnitudes))
    quotient = k.select((x < 0) == (y < 0), quotient, -quotient)
    rest = k.select(x < 0, -rest, rest)
    down = (rest != 0) & ((rest < 0) != (y < 0))
    return k.select(down, quotient - 1, quotient), k.select(down, rest + y, rest)


def _unsigned_divided(k: Body, x: Element, y: Element) -> tuple[Element, Element]:
    """Two digits, each by a quotient in float64 that is never too large, and one step at the end.

    The first digit leaves less than `2 * y + 2**15`, the second less than `2 * y`.
    """
    below = 1.0 - 2.0**-50
    inverse = below / k.convert(y, FLOAT64)
    first = whole_bits(k, k.floor(k.convert(x, FLOAT64) * inverse), x.dtype)
    rest = x - first * y
    second = whole_bits(k, k.floor(k.convert(rest, FLOAT64) * inverse), x.dtype)
    rest = rest - second * y
    more = rest >= y
    quotient = first + second
    return k.select(more, quotient + 1, quotient), k.select(more, rest - y, rest)


def _floats_divided(k: Body, x: Element, y: Element) -> tuple[Element, Element]:
    """Return quotient and remainder, with NumPy's rounding, zeros and infinities (npy_divmod)."""
    rest = _truncated_remainder(k, x, y)
    down = (rest != 0) & ((y < 0) != (rest < 0))
    quotient = (x - rest) / y
    quotient = k.select(down, quotient - 1.0, quotient)
    floored = k.floor(quotient)
    floored = k.select(quotient - floored > 0.5, floored + 1.0, floored)
    zero = k.constant(0.0, x.dtype)
    floored = k.select(quotient == 0, k.copysign(zero, x / y), floored)
    signed = k.select(down, rest + y, k.select(rest == 0, k.copysign(zero, y), rest))
    return k.select(y == 0, x / y, floored), signed


def _truncated_remainder(k: Body, x: Element, y: Element) -> Element:
    """Return C's fmod, exactly. Far quotients are for formulas of their own."""
    dividend, divisor = (k.convert(k.abs(each), FLOAT64) for each in (x, y))
    ratio = dividend / divisor
    step, limit, formula = (
        (_narrow_step, 2.0**29, "far_narrow_remainder")
        if x.dtype == FLOAT32
        else (_step, 2.0**24, "far_remainder")
    )
    rest = step(k, dividend, divisor, k.rint(ratio))
    rest = k.select(rest < 0, rest + divisor, rest)
    rest = k.select(dividend < divisor, dividend, rest)
    far = (ratio >= limit) & (dividend < np.inf) & (divisor > 0)
    rest = k.rare(far, formula, rest, dividend, divisor)
    return k.copysign(k.convert(rest, x.dtype), x)


def _narrow_step(_: Body, x: Element, y: Element, quotient: Element) -> Element:
    """Return `x - quotient * y` in float64, exactly: of 24 bits, a near quotient of 29."""
    return x - quotient * y


def _step(k: Body, x: Element, y: Element, quotient: Element) -> Element:
    """Return `x - quotient * y` in float64, exactly, for a near quotient of at most 24 bits.

    `y` is split so that no product is rounded, and half of it is taken at a time so that none
    overflows.
    """
    high = k.bits(k.bits(y, UNSIGNED[8]) & -(2**27), FLOAT64)
    half = 0.5 * quotient * high
    return ((x - half) - half) - quotient * (y - high)


def _shortened(x: Element, y: Element, bits: int) -> Element:
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
    rest = _narrow_step(k, x, y, k.rint(x / y))
    return k.select(rest < 0, rest + y, rest)


def _narrow_remainder_steps(k: Body, x: Element, y: Element) -> Element:
    """Take 145 bits of the quotient; what is left may have either sign."""
    for _ in range(5):
        x = _narrow_step(k, x, y, k.rint(_shortened(x, y, 29)))
    return x


def _far_remainder(k: Body, x: Element, y: Element) -> Element:
    """Return C's fmod of finite `x >= y > 0` in float64, whose quotient may have 2,100 bits."""
    for _ in range(6):
        x = k.rare(k.abs(x / y) >= 2.0**24, "remainder_part", x, x, y)
    rest = _step(k, x, y, k.rint(x / y))
    return k.select(rest < 0, rest + y, rest)


def _remainder_part(k: Body, x: Element, y: Element) -> Element:
    """Take 384 bits of the quotient, in functions that are short: they take long to compile."""
    for _ in range(4):
        x = k.rare(k.abs(x / y) >= 2.0**24, "remainder_steps", x, x, y)
    return x


def _remainder_steps(k: Body, x: Element, y: Element) -> Element:
    """Take 96 bits of the quotient by `y`, or first by 2**1400 or 2**700 times `y`, lest it
    overflow; what is left may have either sign.
    """
    for _ in range(2):
        larger = y * 2.0**700
        y = k.select(larger <= k.abs(x), larger, y)
    for _ in range(4):
        x = _step(k, x, y, k.rint(_shortened(x, y, 24)))
    return x


def whole_power(k: Body, x: Element, y: Element) -> Element:
    """Return `x` to the power of `y` for integers, `y` from 0; it wraps.

    By squaring; the bits of the exponent above the last four, where it has any, by `high_power`.
    """
    made = k.instructions[y.position]
    one = k.constant(1, x.dtype)
    if made.name == "constant":
        assert isinstance(made.data, int), "an integer has whole constants"
        return _constant_power(x, made.data, one)
    power, high = _power_part(k, one, x, y), _sixteenth_power(k, x)
    return k.rare((y >> 4) != 0, "high_power", power, power, high, y >> 4)


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
    """Multiply `power` by the powers of `x` that `y` names, whose last bits were taken already."""
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
    "wide_quotient": lambda k, x, y: _wide_divided(k, x, y)[0],
    "wide_remainder": lambda k, x, y: _wide_divided(k, x, y)[1],
}
"""Rules that `Body.rare` calls by name, for the packets that need them."""
