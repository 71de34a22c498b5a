"""Arithmetic on elements. Integers never trap: x//0 and x%0 are 0, INT_MIN//-1 is INT_MIN."""

from __future__ import annotations

import numpy as np

from tenfold._native import Array
from tenfold.dtypes import kind_of
from tenfold.ir.declare import elementwise
from tenfold.ir.dtype_rules import any_dtype, division, magnitude, numeric, real


def _guarded_divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.floor_divide(x, y)  # NumPy's integer quotient of 0 is 0, of INT_MIN by -1 INT_MIN


@elementwise(dtypes=any_dtype, reference=np.add, symbol="+")
def add(x1: Array, x2: Array, /) -> Array:
    """Sum of `x1` and `x2`, element by element; shapes broadcast, dtypes promote. Bool: logical or.

    >>> import tenfold as tn
    >>> tn.add(tn.asarray([1, 2]), 10).tolist()
    [11, 12]
    """


@elementwise(dtypes=numeric, reference=np.subtract, symbol="-")
def subtract(x1: Array, x2: Array, /) -> Array:
    """Difference `x1 - x2`, element by element; shapes broadcast, dtypes promote. Raises DTypeError
    for two bools.

    >>> import tenfold as tn
    >>> tn.subtract(tn.asarray([1, 2]), 10).tolist()
    [-9, -8]
    """


@elementwise(dtypes=any_dtype, reference=np.multiply, symbol="*")
def multiply(x1: Array, x2: Array, /) -> Array:
    """Product of `x1` and `x2`, element by element; shapes broadcast, dtypes promote. Bool: and.

    >>> import tenfold as tn
    >>> tn.multiply(tn.asarray([1, 2]), 10).tolist()
    [10, 20]
    """


@elementwise(dtypes=division, reference=np.divide, symbol="/")
def divide(x1: Array, x2: Array, /) -> Array:
    """Quotient `x1 / x2`, element by element; integers are divided in float64. By zero: inf or NaN.

    >>> import tenfold as tn
    >>> tn.divide(tn.asarray([1, 2]), 4).tolist()
    [0.25, 0.5]
    """


@elementwise(dtypes=numeric, reference=np.negative, symbol="neg")
def negative(x: Array, /) -> Array:
    """`-x`, element by element; the dtype of `x`. Raises DTypeError for bool.

    >>> import tenfold as tn
    >>> tn.negative(tn.asarray([1, -2])).tolist()
    [-1, 2]
    """
