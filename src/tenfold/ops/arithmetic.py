"""Arithmetic on elements. Integers never trap: x//0 and x%0 are 0, INT_MIN//-1 is INT_MIN.

Integers wrap. Real floating results are rounded once, half types from float32; complex products and
quotients are within 4 units in the last place of their modulus.
"""

from __future__ import annotations

import numpy as np

from tenfold._native import Array
from tenfold.dtypes import kind_of
from tenfold.ir.declare import elementwise
from tenfold.ir.dtype_rules import (
    any_dtype,
    arithmetic,
    division,
    magnitude,
    numeric,
    real_arithmetic,
    real_floating,
)
from tenfold.ops.widening import widened


@elementwise(dtypes=any_dtype, reference=np.add, symbol="+")
def add(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Sum of `x1` and `x2`, element by element; shapes broadcast, dtypes promote. Bool: logical or.

    >>> import tenfold as tn
    >>> tn.add(tn.asarray([1, 2]), 10).tolist()
    [11, 12]
    """


@elementwise(dtypes=numeric, reference=np.subtract, symbol="-")
def subtract(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Difference `x1 - x2`, element by element; shapes broadcast, dtypes promote. Raises DTypeError
    for two bools.

    >>> import tenfold as tn
    >>> tn.subtract(tn.asarray([1, 2]), 10).tolist()
    [-9, -8]
    """


def multiplied(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return `x * y`; complex ones part by part, because NumPy's loop contracts some to FMA.

    It does so for some layouts only: the bits would depend on the layout.
    """
    if x.dtype.kind != "c":
        return np.multiply(x, y)
    product = np.empty(np.broadcast_shapes(x.shape, y.shape), x.dtype)
    product.real = x.real * y.real - x.imag * y.imag
    product.imag = x.real * y.imag + x.imag * y.real
    return product


@elementwise(dtypes=any_dtype, reference=multiplied, numpy=(np.multiply,), symbol="*")
def multiply(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Product of `x1` and `x2`, element by element; shapes broadcast, dtypes promote. Bool: and.

    >>> import tenfold as tn
    >>> tn.multiply(tn.asarray([1, 2]), 10).tolist()
    [10, 20]
    """


@elementwise(dtypes=division, reference=np.divide, symbol="/")
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
    dtypes=real_arithmetic, reference=_floor_quotient, numpy=(np.floor_divide,), symbol="//"
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
    """What is left by the quotient rounded down; NumPy's for floats, 0 by an integer 0."""
    if kind_of(x.dtype) not in "iu":
        return np.remainder(x, y)
    return np.remainder(x, np.where(y == 0, 1, y).astype(y.dtype))


@elementwise(dtypes=real_arithmetic, reference=_modulo, numpy=(np.remainder,), symbol="%")
def remainder(x1: Array | complex, x2: Array | complex, /) -> Array:
    """`x1 - x2 * (x1 // x2)`, element by element, with the sign of `x2`; bool as int8.

    Integers: x%0 is 0. Floats: by zero NaN, and a zero has the sign of `x2`.
    Raises DTypeError for complex.

    >>> import tenfold as tn
    >>> tn.remainder(tn.asarray([7, -7, 7]), tn.asarray([4, 4, 0])).tolist()
    [3, 1, 0]
    """


@widened
def _raised(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """NumPy's power, but inf for -inf and 0 for -0 to the power of 0.5.

    NumPy takes a square root where that is the only exponent: NaN and -0.
    """
    try:
        powers = np.power(x, y)
    except ValueError:
        rule = f"integers cannot be raised to the negative power {y[y < 0].flat[0]}"
        raise ValueError(rule) from None
    if kind_of(x.dtype) != "f":
        return powers
    return np.where((y == 0.5) & ((x == 0) | np.isinf(x)), np.abs(x), powers)


@elementwise(
    dtypes=arithmetic,
    reference=_raised,
    numpy=(np.power,),
    symbol="**",
    whole_exponent=True,
    can_fail=True,
    accuracy=4,
)
def pow(x1: Array | complex, x2: Array | complex, /) -> Array:
    """`x1` to the power of `x2`, element by element, in the common dtype; bool as int8.

    Integers wrap. Raises ValueError for an integer to a negative integer power: a Python scalar at
    the call, an element of an array when the values are computed.

    >>> import tenfold as tn
    >>> tn.pow(tn.asarray([2, 3]), 10).tolist()
    [1024, 59049]
    """


@elementwise(dtypes=numeric, reference=np.negative, symbol="neg")
def negative(x: Array, /) -> Array:
    """`-x`, element by element; the dtype of `x`. Raises DTypeError for bool.

    >>> import tenfold as tn
    >>> tn.negative(tn.asarray([1, -2])).tolist()
    [-1, 2]
    """


@elementwise(dtypes=numeric, reference=np.positive, symbol="pos")
def positive(x: Array, /) -> Array:
    """`x` itself, element by element. Raises DTypeError for bool.

    >>> import tenfold as tn
    >>> tn.positive(tn.asarray([1, -2])).tolist()
    [1, -2]
    """


@elementwise(dtypes=magnitude, reference=np.absolute, symbol="abs")
def abs(x: Array, /) -> Array:
    """Magnitude of `x`, element by element: the dtype of `x`, that of the parts for complex.

    The most negative integer has no positive counterpart and stays itself.

    >>> import tenfold as tn
    >>> tn.abs(tn.asarray([3 + 4j, -1])).tolist()
    [5.0, 1.0]
    """


@elementwise(dtypes=numeric, reference=widened(np.sign), numpy=(np.sign,))
def sign(x: Array, /) -> Array:
    """-1, 0 or 1 as `x` is below, equal to or above 0; NaN for NaN. Complex: `x / abs(x)`, 0 at 0.

    The dtype of `x`; raises DTypeError for bool.

    >>> import tenfold as tn
    >>> tn.sign(tn.asarray([-2.5, 0.0, 7.0])).tolist()
    [-1.0, 0.0, 1.0]
    """


@elementwise(dtypes=arithmetic, reference=np.square)
def square(x: Array, /) -> Array:
    """`x * x`, element by element: the dtype of `x`, int8 for bool; integers wrap.

    >>> import tenfold as tn
    >>> tn.square(tn.asarray([3, -4])).tolist()
    [9, 16]
    """


def _inverse(x: np.ndarray) -> np.ndarray:
    """1 / x; for integers rounded towards zero, 0 by 0."""
    if kind_of(x.dtype) not in "iu":
        return np.reciprocal(x)
    return np.where(np.abs(x) == 1, x, 0).astype(x.dtype)


@elementwise(dtypes=arithmetic, reference=_inverse, numpy=(np.reciprocal,))
def reciprocal(x: Array, /) -> Array:
    """`1 / x`, element by element: the dtype of `x`, int8 for bool.

    Integers are rounded towards zero, and the reciprocal of the integer 0 is 0.

    >>> import tenfold as tn
    >>> tn.reciprocal(tn.asarray([4.0, -0.5])).tolist()
    [0.25, -2.0]
    """


@elementwise(dtypes=real_floating, reference=np.copysign)
def copysign(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Magnitude of `x1` with the sign of `x2`, element by element; signed zeros and NaN count.

    Floating dtypes, integers as NumPy promotes them; raises DTypeError for complex.

    >>> import tenfold as tn
    >>> tn.copysign(tn.asarray([1.0, 2.0]), tn.asarray([-0.0, 3.0])).tolist()
    [-1.0, 2.0]
    """


@elementwise(dtypes=real_floating, reference=np.nextafter)
def nextafter(x1: Array | complex, x2: Array | complex, /) -> Array:
    """The next floating number after `x1` towards `x2`, element by element.

    Where they are equal it is `x2`. Floating dtypes, integers as NumPy promotes them; raises
    DTypeError for complex.

    >>> import tenfold as tn
    >>> tn.nextafter(tn.asarray([1.0]), 2).tolist()
    [1.0000000000000002]
    """
