"""Arithmetic: elementwise operations that never trap: x//0 and x%0 are 0, INT_MIN//-1 is INT_MIN.

Integers wrap. Real floating results are rounded once, half types from float32; complex products and
quotients are within 4 units in the last place of their modulus.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold._native import Array
from tenfold.core.dtype_rules import (
    any_dtype,
    arithmetic,
    division,
    magnitude,
    numeric,
    real_arithmetic,
    real_floating,
)
from tenfold.core.op_decorators import elementwise
from tenfold.core.scalar_ir import UNSIGNED, Body, Element
from tenfold.core.structure import (
    positive_sum_structure,
    quotient_structure,
    scaled_structure,
    sum_structure,
)
from tenfold.core.upcast import widened
from tenfold.dtypes import FLOAT32, HALF_DTYPES, kind_of
from tenfold.ops import complex_parts
from tenfold.ops.complex import conj, real
from tenfold.ops.complex_parts import componentwise, real_only, real_or_complex
from tenfold.ops.elementary import log
from tenfold.ops.integer_division import floor_quotient, floor_remainder, integer_power
from tenfold.ops.selection import where


def _sum(_: Body, x: Element, y: Element) -> Element:
    return x | y if kind_of(x.dtype) == "b" else x + y


@elementwise(
    dtypes=any_dtype,
    reference=np.add,
    kernel=componentwise(_sum),
    symbol="+",
    commutes=True,
    structure=positive_sum_structure,
    partials=(1, 1),
)
def add(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Sum of `x1` and `x2`, element by element; shapes broadcast, dtypes promote. Bool: logical or.

    >>> import tenfold as tn
    >>> tn.add(tn.asarray([1, 2]), 10).tolist()
    [11, 12]
    """


@elementwise(
    dtypes=numeric,
    reference=np.subtract,
    kernel=componentwise(lambda _, x, y: x - y),
    symbol="-",
    structure=sum_structure,
    partials=(1, -1),
)
def subtract(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Difference `x1 - x2`, element by element; shapes broadcast, dtypes promote. Raises DTypeError
    for two bools.

    >>> import tenfold as tn
    >>> tn.subtract(tn.asarray([1, 2]), 10).tolist()
    [-9, -8]
    """


def multiply_unfused(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return `x * y`; complex ones part by part, because NumPy's loop contracts some to FMA.

    It does so for some layouts only: the bits would depend on the layout.
    """
    if x.dtype.kind != "c":
        return np.multiply(x, y)
    product = np.empty(np.broadcast_shapes(x.shape, y.shape), x.dtype)
    product.real = x.real * y.real - x.imag * y.imag
    product.imag = x.real * y.imag + x.imag * y.real
    return product


def _product(_: Body, x: Element, y: Element) -> Element:
    return x & y if kind_of(x.dtype) == "b" else x * y


@elementwise(
    dtypes=any_dtype,
    reference=multiply_unfused,
    kernel=real_or_complex(_product, complex_parts.product),
    numpy=(np.multiply,),
    symbol="*",
    structure=scaled_structure,
    commutes=True,
    partials=(lambda y, x1, x2: x2, lambda y, x1, x2: x1),
)
def multiply(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Product of `x1` and `x2`, element by element; shapes broadcast, dtypes promote. Bool: and.

    >>> import tenfold as tn
    >>> tn.multiply(tn.asarray([1, 2]), 10).tolist()
    [10, 20]
    """


@elementwise(
    keeps_products=True,
    dtypes=division,
    reference=np.divide,
    kernel=real_or_complex(lambda _, x, y: x / y, complex_parts.quotient),
    symbol="/",
    structure=quotient_structure,
    cost=4,
    partials=(lambda y, x1, x2: 1 / x2, lambda y, x1, x2: -y / x2),
)
def divide(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Quotient `x1 / x2`, element by element; integers are divided in float64. By zero: inf or NaN.

    >>> import tenfold as tn
    >>> tn.divide(tn.asarray([1, 2]), 4).tolist()
    [0.25, 0.5]
    """


def _floor_divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    quotient = np.floor_divide(x, np.where(y == 0, 1, y).astype(y.dtype))
    return np.where(y == 0, 0, quotient).astype(x.dtype)


def _floor_quotient(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The quotient rounded down; NumPy's for floats, 0 by an integer 0."""
    return _floor_divide(x, y) if kind_of(x.dtype) in "iu" else np.floor_divide(x, y)


@elementwise(
    dtypes=real_arithmetic,
    reference=_floor_quotient,
    kernel=floor_quotient,
    numpy=(np.floor_divide,),
    symbol="//",
    cost=12,
    zero_derivative=True,
)
def floor_divide(x1: Array | complex, x2: Array | complex, /) -> Array:
    """`x1 / x2` rounded down, element by element, in the common dtype; bool as int8.

    Integers: x//0 is 0, INT_MIN//-1 is INT_MIN. Floats: by zero inf or NaN, as NumPy.
    Raises DTypeError for complex.

    >>> import tenfold as tn
    >>> tn.floor_divide(tn.asarray([7, -7, 7]), tn.asarray([2, 2, 0])).tolist()
    [3, -4, 0]
    """


def _modulo(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The remainder of floor division; NumPy's for floats, 0 for an integer by 0."""
    if kind_of(x.dtype) not in "iu":
        return np.remainder(x, y)
    return np.remainder(x, np.where(y == 0, 1, y).astype(y.dtype))


@elementwise(
    dtypes=real_arithmetic,
    reference=_modulo,
    kernel=floor_remainder,
    numpy=(np.remainder,),
    symbol="%",
    cost=20,
    partials=(1, lambda y, x1, x2: -floor_divide(x1, x2)),
)
def remainder(x1: Array | complex, x2: Array | complex, /) -> Array:
    """`x1 - x2 * (x1 // x2)`, element by element, with the sign of `x2`; bool as int8.

    Integers: x%0 is 0. Floats: by zero NaN, and a zero has the sign of `x2`.
    Raises DTypeError for complex.

    >>> import tenfold as tn
    >>> tn.remainder(tn.asarray([7, -7, 7]), tn.asarray([4, 4, 0])).tolist()
    [3, 1, 0]
    """


def _sqrt_power(x: np.ndarray) -> np.ndarray:
    """The power of 0.5: inf for -inf and 0 for -0, where NumPy's square root has NaN and -0."""
    roots = np.sqrt(x)
    return roots if x.dtype.kind == "c" else np.where((x == 0) | np.isinf(x), np.abs(x), roots)


_SPECIAL_POWERS: dict[float, Callable[[np.ndarray], np.ndarray]] = {
    2: lambda x: multiply_unfused(x, x),
    1: np.positive,
    -1: np.reciprocal,
    0.5: _sqrt_power,
}
"""The exponents for which NumPy has a fast path; NumPy takes it for a scalar exponent only."""


@widened
def _power_reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """NumPy's power, with its fast path for each element whose exponent has one."""
    if kind_of(x.dtype) not in "fc":
        return _integer_power(x, y)
    if y.size == 1 and y.item() in _SPECIAL_POWERS:
        return np.broadcast_to(_SPECIAL_POWERS[y.item()](x), np.broadcast_shapes(x.shape, y.shape))
    powers = np.power(x, y)
    for exponent, power in _SPECIAL_POWERS.items():
        matches = y == exponent
        powers = np.where(matches, power(x), powers) if np.any(matches) else powers
    return powers


def _integer_power(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    try:
        return np.asarray(np.power(x, y))
    except ValueError:
        rule = f"integers cannot be raised to the negative power {y[y < 0].flat[0]}"
        raise ValueError(rule) from None


def _slope_by_base(y: Array, x1: Any, x2: Any) -> Any:
    """Return `x2 * x1 ** (x2 - 1)`, and 0 where `x2` is 0."""
    if isinstance(x2, Array):
        return where(x2 == 0, 0, x2 * pow(x1, where(x2 == 0, 1, x2) - 1))
    return 0 if x2 == 0 else 2 * x1 if x2 == 2 else x2 * pow(x1, x2 - 1)


def _slope_by_exponent(y: Array, x1: Any, x2: Any) -> Array:
    """Return `y * log(x1)`, and 0 where a power of 0 is 0 or 1."""
    flat = (x1 == 0) & (real(x2) >= 0)
    return where(flat, 0, y * log(where(flat, 1, x1)))


def _power(k: Body, x: Element, y: Element) -> Element:
    if kind_of(x.dtype) == "f":  # some powers are exact, as rules have them
        simple = (y == 2.0) | (y == 0.5) | (k.abs(y) == 1.0)
        return k.rare(simple, "simple_power", k.call("pow", x, y), x, y)
    if kind_of(y.dtype) == "i":
        k.fail(y < 0)
    return integer_power(k, x, y)


@elementwise(
    dtypes=arithmetic,
    reference=_power_reference,
    kernel=real_only(_power),
    numpy=(np.power,),
    symbol="**",
    whole_exponent=True,
    can_fail=True,
    remedy="convert the base to a floating dtype",
    accuracy=4,
    cost=40,
    partials=(_slope_by_base, _slope_by_exponent),
)
def pow(x1: Array | complex, x2: Array | complex, /) -> Array:
    """`x1` to the power of `x2`, element by element, in the common dtype; bool as int8.

    Integers wrap. Raises ValueError for an integer to a negative integer power: a Python scalar at
    the call, an element of an array when the values are computed.

    >>> import tenfold as tn
    >>> tn.pow(tn.asarray([2, 3]), 10).tolist()
    [1024, 59049]
    """


def _negated(k: Body, x: Element) -> Element:
    if x.dtype not in HALF_DTYPES:
        return -x
    return k.bits(k.bits(x, UNSIGNED[2]) ^ 0x8000, x.dtype)


@elementwise(
    dtypes=numeric,
    reference=np.negative,
    kernel=componentwise(_negated),
    takes_halves=True,
    symbol="neg",
    partials=(-1,),
)
def negative(x: Array, /) -> Array:
    """`-x`, element by element; the dtype of `x`. Raises DTypeError for bool.

    >>> import tenfold as tn
    >>> tn.negative(tn.asarray([1, -2])).tolist()
    [-1, 2]
    """


@elementwise(
    dtypes=numeric,
    reference=np.positive,
    kernel=lambda _, x: x,
    takes_halves=True,
    symbol="pos",
    partials=(1,),
)
def positive(x: Array, /) -> Array:
    """`x` itself, element by element. Raises DTypeError for bool.

    >>> import tenfold as tn
    >>> tn.positive(tn.asarray([1, -2])).tolist()
    [1, -2]
    """


def _magnitude(k: Body, x: Element) -> Element:
    if x.dtype in HALF_DTYPES:
        return k.bits(k.bits(x, UNSIGNED[2]) & 0x7FFF, x.dtype)
    return x if kind_of(x.dtype) == "b" else k.abs(x)


@elementwise(
    dtypes=magnitude,
    reference=np.absolute,
    kernel=real_or_complex(_magnitude, complex_parts.modulus),
    takes_halves=True,
    symbol="abs",
    vjp=lambda g, y, x: (g * sign(x),),  # type: ignore[has-type]  # below
)
def abs(x: Array, /) -> Array:
    """Magnitude of `x`, element by element: the dtype of `x`, that of the parts for complex.

    The most negative integer has no positive counterpart and stays itself.

    >>> import tenfold as tn
    >>> tn.abs(tn.asarray([3 + 4j, -1])).tolist()
    [5.0, 1.0]
    """


def _turn_of_sign(g: Array, y: Array, x: Array) -> tuple[Array | None]:
    """The direction of a complex number turns with what is orthogonal to it; that of a real not."""
    if kind_of(x.dtype) != "c":
        return (None,)
    radius = abs(x)
    across = g - y * real(conj(y) * g)
    return (where(radius == 0, 0, across / where(radius == 0, 1, radius)),)


def _sign_element(k: Body, x: Element) -> Element:
    one = k.constant(1, x.dtype)
    if kind_of(x.dtype) == "u":
        return k.select(x == 0, 0, one)
    result = k.select(x > 0, one, k.select(x < 0, -one, 0))
    return result if kind_of(x.dtype) == "i" else k.select(x != x, x, result)


@elementwise(
    dtypes=numeric,
    reference=widened(np.sign),
    kernel=real_or_complex(_sign_element, complex_parts.direction),
    vjp=_turn_of_sign,
)
def sign(x: Array, /) -> Array:
    """-1, 0 or 1 as `x` is below, equal to or above 0; NaN for NaN. Complex: `x / abs(x)`, 0 at 0.

    The dtype of `x`; raises DTypeError for bool.

    >>> import tenfold as tn
    >>> tn.sign(tn.asarray([-2.5, 0.0, 7.0])).tolist()
    [-1.0, 0.0, 1.0]
    """


def _square_reference(x: np.ndarray) -> np.ndarray:
    """Return `x * x`; complex by `multiply_unfused`, since NumPy's bits depend on the layout."""
    return multiply_unfused(x, x)


@elementwise(
    dtypes=arithmetic,
    reference=_square_reference,
    numpy=(np.square,),
    kernel=real_or_complex(lambda _, x: x * x, lambda k, x: complex_parts.product(k, x, x)),
    partials=(lambda y, x: 2 * x,),
)
def square(x: Array, /) -> Array:
    """`x * x`, element by element: the dtype of `x`, int8 for bool; integers wrap.

    >>> import tenfold as tn
    >>> tn.square(tn.asarray([3, -4])).tolist()
    [9, 16]
    """


def _reciprocal_reference(x: np.ndarray) -> np.ndarray:
    """1 / x; for integers rounded towards zero, 0 by 0."""
    if kind_of(x.dtype) not in "iu":
        return np.reciprocal(x)
    return np.where(np.abs(x) == 1, x, 0).astype(x.dtype)


def _reciprocal(k: Body, x: Element) -> Element:
    """As _reciprocal_reference."""
    if kind_of(x.dtype) == "f":
        return 1.0 / x
    return k.select(x == 1 if kind_of(x.dtype) == "u" else (x == 1) | (x == -1), x, 0)


@elementwise(
    dtypes=arithmetic,
    reference=_reciprocal_reference,
    kernel=real_or_complex(_reciprocal, complex_parts.reciprocal),
    numpy=(np.reciprocal,),
    partials=(lambda y, x: -y * y,),
)
def reciprocal(x: Array, /) -> Array:
    """`1 / x`, element by element: the dtype of `x`, int8 for bool.

    Integers are rounded towards zero, and the reciprocal of the integer 0 is 0.

    >>> import tenfold as tn
    >>> tn.reciprocal(tn.asarray([4.0, -0.5])).tolist()
    [0.25, -2.0]
    """


def _copysign_element(k: Body, x: Element, y: Element) -> Element:
    if x.dtype not in HALF_DTYPES:
        return k.copysign(x, y)
    magnitude = k.bits(x, UNSIGNED[2]) & 0x7FFF
    return k.bits(magnitude | (k.bits(y, UNSIGNED[2]) & 0x8000), x.dtype)


@elementwise(
    dtypes=real_floating,
    reference=np.copysign,
    kernel=_copysign_element,
    takes_halves=True,
    partials=(lambda y, x1, x2: sign(x1) * sign(y), 0),
)
def copysign(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Magnitude of `x1` with the sign of `x2`, element by element; signed zeros and NaN count.

    Floating dtypes, integers as NumPy promotes them; raises DTypeError for complex.

    >>> import tenfold as tn
    >>> tn.copysign(tn.asarray([1.0, 2.0]), tn.asarray([-0.0, 3.0])).tolist()
    [-1.0, 2.0]
    """


def _nextafter_element(k: Body, x: Element, y: Element) -> Element:
    """One step of the bits, away from zero or towards it; of a zero the least number, signed."""
    dtype, unsigned = x.dtype, UNSIGNED[x.dtype.itemsize]
    x_bits, y_bits = k.bits(x, unsigned), k.bits(y, unsigned)
    if dtype in HALF_DTYPES:
        x, y = k.convert(x, FLOAT32), k.convert(y, FLOAT32)
    away_from_zero = (x < y) == (x > 0)
    next_bits = k.select(away_from_zero, x_bits + 1, x_bits - 1)
    sign = 1 << 8 * dtype.itemsize - 1
    next_bits = k.select(x == 0, (y_bits & sign) | 1, next_bits)
    next_bits = k.select(x == y, y_bits, next_bits)  # a zero may have the other sign
    nan = k.bits(k.constant(np.nan, dtype), unsigned)
    return k.bits(k.select((x != x) | (y != y), nan, next_bits), dtype)


def _nextafter_reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """NumPy's; before 2.5 it returns the first of two zeros of float16, unlike of other dtypes."""
    return np.where(x == y, y, np.nextafter(x, y))


@elementwise(
    dtypes=real_floating,
    reference=_nextafter_reference,
    numpy=(np.nextafter,),
    kernel=_nextafter_element,
    takes_halves=True,
    zero_derivative=True,
)
def nextafter(x1: Array | complex, x2: Array | complex, /) -> Array:
    """The next floating number after `x1` towards `x2`, element by element.

    Where they are equal it is `x2`. Floating dtypes, integers as NumPy promotes them; raises
    DTypeError for complex.

    >>> import tenfold as tn
    >>> tn.nextafter(tn.asarray([1.0]), 2).tolist()
    [1.0000000000000002]
    """
