"""Bitwise operations: on integers and bools; shifts past the width give 0, or the sign for >>.

A negative shift count counts as past the width: its bits read unsigned are a huge number.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold._native import Array
from tenfold.core.dtype_rules import integral, shifting
from tenfold.core.op import Op, P
from tenfold.core.op_decorators import elementwise
from tenfold.core.scalar_ir import UNSIGNED, Body, Element
from tenfold.dtypes import kind_of


def _of_bits(
    ufunc: np.ufunc, combine: Callable[[Any, Any], Any], symbol: str
) -> Callable[[Callable[P, Array]], Op[P]]:
    """Declare an operation on each pair of bits."""
    return elementwise(
        dtypes=integral,
        reference=ufunc,
        symbol=symbol,
        kernel=lambda _, x, y: combine(x, y),
        commutes=True,
    )


@_of_bits(np.bitwise_and, operator.and_, "&")
def bitwise_and(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Bits set in both `x1` and `x2`, element by element; bool: logical and. Integers and bool.

    >>> import tenfold as tn
    >>> tn.bitwise_and(tn.asarray([12, 10]), 6).tolist()
    [4, 2]
    """


@_of_bits(np.bitwise_or, operator.or_, "|")
def bitwise_or(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Bits set in `x1` or `x2`, element by element; bool: logical or. Integers and bool.

    >>> import tenfold as tn
    >>> tn.bitwise_or(tn.asarray([12, 10]), 6).tolist()
    [14, 14]
    """


@_of_bits(np.bitwise_xor, operator.xor, "^")
def bitwise_xor(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Bits set in one of `x1` and `x2` alone, element by element; bool: exclusive or.

    Integers and bool.

    >>> import tenfold as tn
    >>> tn.bitwise_xor(tn.asarray([12, 10]), 6).tolist()
    [10, 12]
    """


@elementwise(dtypes=integral, reference=np.bitwise_invert, symbol="~", kernel=lambda _, x: ~x)
def bitwise_invert(x: Array, /) -> Array:
    """Every bit of `x` turned over, element by element; bool: logical not. Integers and bool.

    >>> import tenfold as tn
    >>> tn.bitwise_invert(tn.asarray([0, 5])).tolist()
    [-1, -6]
    """


def _in_range(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Where the shift counts `y` are from 0 to below the width of `x`."""
    return (y >= 0) & (y < 8 * x.dtype.itemsize)


def _left_shift_reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Shift left; 0 past the width."""
    in_range = _in_range(x, y)
    shifted = np.left_shift(x, np.where(in_range, y, 0).astype(y.dtype))
    return np.where(in_range, shifted, x.dtype.type(0))


def _right_shift_reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Shift right; past the width 0, or -1 for what is negative."""
    in_range = _in_range(x, y)
    shifted = np.right_shift(x, np.where(in_range, y, 0).astype(y.dtype))
    return np.where(in_range, shifted, np.where(x < 0, ~x.dtype.type(0), x.dtype.type(0)))


def _left_shift_element(k: Body, x: Element, y: Element) -> Element:
    """As _left_shift_reference."""
    distance = k.bits(y, UNSIGNED[y.dtype.itemsize])
    bits = 8 * x.dtype.itemsize
    return k.select(distance < bits, x << (y & (bits - 1)), 0)


def _right_shift_element(k: Body, x: Element, y: Element) -> Element:
    """As _right_shift_reference: a shift by the width less one leaves only the sign."""
    distance = k.bits(y, UNSIGNED[y.dtype.itemsize])
    bits = 8 * x.dtype.itemsize
    if kind_of(x.dtype) == "i":
        return x >> k.select(distance < bits, y, bits - 1)
    return k.select(distance < bits, x >> (y & (bits - 1)), 0)


@elementwise(
    dtypes=shifting,
    reference=_left_shift_reference,
    numpy=(np.bitwise_left_shift,),
    symbol="<<",
    kernel=_left_shift_element,
)
def bitwise_left_shift(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Bits of `x1` moved `x2` places up, element by element, in the common dtype; bool as int8.

    A count past the width, or a negative one, gives 0.

    >>> import tenfold as tn
    >>> tn.bitwise_left_shift(tn.asarray([1, 3]), tn.asarray([4, 64])).tolist()
    [16, 0]
    """


@elementwise(
    dtypes=shifting,
    reference=_right_shift_reference,
    numpy=(np.bitwise_right_shift,),
    symbol=">>",
    kernel=_right_shift_element,
)
def bitwise_right_shift(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Bits of `x1` moved `x2` places down, element by element, in the common dtype; bool as int8.

    The sign is copied in. A count past the width, or a negative one, gives 0, or -1 for what is
    negative.

    >>> import tenfold as tn
    >>> tn.bitwise_right_shift(tn.asarray([16, -16]), tn.asarray([2, 64])).tolist()
    [4, -1]
    """
