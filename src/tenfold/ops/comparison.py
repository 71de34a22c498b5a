"""Comparisons: elementwise, with bool results, exact between int64 and uint64.

A Python integer beyond the other operand's dtype is compared by its value, never refused.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold._native import Array, Type
from tenfold.core.dtype_rules import comparison, ordering
from tenfold.core.inference import common_device
from tenfold.core.op import Op, P
from tenfold.core.op_decorators import elementwise
from tenfold.core.scalar_ir import Body, ComplexElement, Element
from tenfold.core.shape_rules import broadcast
from tenfold.dtypes import BOOL, kind_of
from tenfold.ops.complex_parts import real_or_complex
from tenfold.ops.create import full


def _comparison_element(
    compare: Callable[[Any, Any], Any],
) -> Callable[[Body, Element, Element], Element]:
    """Return the kernel rule of one of Python's comparisons, exact between signed and unsigned."""

    def rule(k: Body, x: Element, y: Element) -> Element:
        kinds = kind_of(x.dtype) + kind_of(y.dtype)
        if kinds == "iu":
            return k.select(x < 0, compare(-1, 0), compare(k.convert(x, y.dtype), y))
        if kinds == "ui":
            return k.select(y < 0, compare(0, -1), compare(x, k.convert(y, x.dtype)))
        result: Element = compare(x, y)
        return result

    return rule


def _equal_pairs(_: Body, x: ComplexElement, y: ComplexElement) -> Element:
    return (x.real == y.real) & (x.imaginary == y.imaginary)


def _comparison(
    ufunc: np.ufunc,
    compare: Callable[[Any, Any], Any],
    symbol: str,
    of_pairs: Callable[..., Element] | None = None,
) -> Callable[[Callable[P, Array]], Op[P]]:
    """Declare one of Python's comparisons; `of_pairs` is its kernel rule on complex numbers.

    A Python integer beyond the other operand's dtype makes the result a constant.
    """

    def constant_result(types: tuple[Type, ...], position: int, negative: bool) -> Array:
        shape = broadcast(*(type_.shape for type_ in types))
        first_is_smaller = (position == 1) != negative
        value = compare(0, 1) if first_is_smaller else compare(1, 0)
        return full(shape, value, dtype=BOOL, device=common_device(types))

    kernel = _comparison_element(compare)
    return elementwise(
        dtypes=comparison if of_pairs else ordering,
        reference=ufunc,
        kernel=real_or_complex(kernel, of_pairs) if of_pairs else kernel,
        symbol=symbol,
        out_of_range=constant_result,
        commutes=of_pairs is not None,
    )


@_comparison(np.equal, operator.eq, "==", _equal_pairs)
def equal(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Whether `x1 == x2`, element by element: bool. NaN equals nothing, -0 equals 0.

    >>> import tenfold as tn
    >>> tn.equal(tn.asarray([1, 2]), 2).tolist()
    [False, True]
    """


@_comparison(np.not_equal, operator.ne, "!=", lambda *pairs: ~_equal_pairs(*pairs))
def not_equal(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Whether `x1 != x2`, element by element: bool. NaN differs from everything.

    >>> import tenfold as tn
    >>> tn.not_equal(tn.asarray([1, 2]), 2).tolist()
    [True, False]
    """


@_comparison(np.less, operator.lt, "<")
def less(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Whether `x1 < x2`, element by element: bool; False with NaN. Raises DTypeError for complex.

    >>> import tenfold as tn
    >>> tn.less(tn.asarray([1, 2], dtype=tn.uint8), 300).tolist()
    [True, True]
    """


@_comparison(np.less_equal, operator.le, "<=")
def less_equal(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Whether `x1 <= x2`, element by element: bool; False with NaN. Raises DTypeError for complex.

    >>> import tenfold as tn
    >>> tn.less_equal(tn.asarray([1, 2, 3]), 2).tolist()
    [True, True, False]
    """


@_comparison(np.greater, operator.gt, ">")
def greater(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Whether `x1 > x2`, element by element: bool; False with NaN. Raises DTypeError for complex.

    >>> import tenfold as tn
    >>> tn.greater(tn.asarray([1, 2, 3]), 2).tolist()
    [False, False, True]
    """


@_comparison(np.greater_equal, operator.ge, ">=")
def greater_equal(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Whether `x1 >= x2`, element by element: bool; False with NaN. Raises DTypeError for complex.

    >>> import tenfold as tn
    >>> tn.greater_equal(tn.asarray([1, 2, 3]), 2).tolist()
    [False, True, True]
    """
