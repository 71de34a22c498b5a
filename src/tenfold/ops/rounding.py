"""Rounding: elements to whole numbers in the operand's dtype; integers stay as they are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tenfold._native import Array
from tenfold.core.dtype_rules import real, rounding
from tenfold.core.op import Op, P
from tenfold.core.op_decorators import elementwise
from tenfold.core.scalar_ir import Body, Element
from tenfold.dtypes import kind_of
from tenfold.ops.complex_parts import componentwise


def _to_whole(ufunc: np.ufunc) -> Callable[[Callable[P, Array]], Op[P]]:
    """Declare the rounding of a ufunc, which a kernel body has by the same name."""

    def kernel(k: Body, x: Element) -> Element:
        rounded: Element = getattr(k, ufunc.__name__)(x) if kind_of(x.dtype) == "f" else x
        return rounded

    return elementwise(dtypes=real, reference=ufunc, kernel=kernel, zero_derivative=True)


@_to_whole(np.ceil)
def ceil(x: Array, /) -> Array:
    """Smallest whole number not below `x`, element by element; the dtype of `x`.

    Raises DTypeError for complex.

    >>> import tenfold as tn
    >>> tn.ceil(tn.asarray([1.2, -1.2])).tolist()
    [2.0, -1.0]
    """


@_to_whole(np.floor)
def floor(x: Array, /) -> Array:
    """Largest whole number not above `x`, element by element; the dtype of `x`.

    Raises DTypeError for complex.

    >>> import tenfold as tn
    >>> tn.floor(tn.asarray([1.2, -1.2])).tolist()
    [1.0, -2.0]
    """


@_to_whole(np.trunc)
def trunc(x: Array, /) -> Array:
    """`x` without its fraction, element by element: rounded towards zero; the dtype of `x`.

    Raises DTypeError for complex.

    >>> import tenfold as tn
    >>> tn.trunc(tn.asarray([1.8, -1.8])).tolist()
    [1.0, -1.0]
    """


@componentwise
def _round_element(k: Body, x: Element) -> Element:
    return k.rint(x) if kind_of(x.dtype) == "f" else x


def _round_reference(x: np.ndarray) -> np.ndarray:
    """The nearest whole number, the even one at a tie; NumPy's rint makes floats of integers."""
    return x if kind_of(x.dtype) in "iu" else np.rint(x)


@elementwise(
    dtypes=rounding,
    reference=_round_reference,
    kernel=_round_element,
    numpy=(np.round, np.around),
    zero_derivative=True,
)
def round(x: Array, /) -> Array:
    """Nearest whole number to `x`, element by element, the even one at a tie; the dtype of `x`.

    Complex: both parts. Bool is rounded in float16, as NumPy does.

    >>> import tenfold as tn
    >>> tn.round(tn.asarray([0.5, 1.5, -2.5])).tolist()
    [0.0, 2.0, -2.0]
    """
