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
from tenfold.core.op_decorators import elementwise
from tenfold.core.scalar_ir import Body, ComplexElement, Element
from tenfold.core.shape_rules import broadcast
from tenfold.dtypes import BOOL, kind_of
from tenfold.ops.complex_parts import real_or_complex
from tenfold.ops.create import full


def _out_of_range_result(
    *, if_smaller: bool, if_larger: bool
) -> Callable[[tuple[Type, ...], int, bool], Array]:
    """Return the rule for a Python integer beyond the other operand's dtype: a constant result."""

    def constant_result(types: tuple[Type, ...], position: int, negative: bool) -> Array:
        shape = broadcast(*(type_.shape for type_ in types))
        first_is_smaller = (position == 1) != negative
        value = if_smaller if first_is_smaller else if_larger
        return full(shape, value, dtype=BOOL, device=common_device(types))

    return constant_result


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


@elementwise(
    dtypes=comparison,
    reference=np.equal,
    kernel=real_or_complex(_comparison_element(operator.eq), _equal_pairs),
    symbol="==",
    out_of_range=_out_of_range_result(if_smaller=False, if_larger=False),
    commutes=True,
)
def equal(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Whether `x1 == x2`, element by element: bool. NaN equals nothing, -0 equals 0.

    >>> import tenfold as tn
    >>> tn.equal(tn.asarray([1, 2]), 2).tolist()
    [False, True]
    """


@elementwise(
    dtypes=comparison,
    reference=np.not_equal,
    kernel=real_or_complex(_comparison_element(operator.ne), lambda *pairs: ~_equal_pairs(*pairs)),
    symbol="!=",
    out_of_range=_out_of_range_result(if_smaller=True, if_larger=True),
    commutes=True,
)
def not_equal(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Whether `x1 != x2`, element by element: bool. NaN differs from everything.

    >>> import tenfold as tn
    >>> tn.not_equal(tn.asarray([1, 2]), 2).tolist()
    [True, False]
    """


@elementwise(
    dtypes=ordering,
    reference=np.less,
    kernel=_comparison_element(operator.lt),
    symbol="<",
    out_of_range=_out_of_range_result(if_smaller=True, if_larger=False),
)
def less(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Whether `x1 < x2`, element by element: bool; False with NaN. Raises DTypeError for complex.

    >>> import tenfold as tn
    >>> tn.less(tn.asarray([1, 2], dtype=tn.uint8), 300).tolist()
    [True, True]
    """


@elementwise(
    dtypes=ordering,
    reference=np.less_equal,
    kernel=_comparison_element(operator.le),
    symbol="<=",
    out_of_range=_out_of_range_result(if_smaller=True, if_larger=False),
)
def less_equal(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Whether `x1 <= x2`, element by element: bool; False with NaN. Raises DTypeError for complex.

    >>> import tenfold as tn
    >>> tn.less_equal(tn.asarray([1, 2, 3]), 2).tolist()
    [True, True, False]
    """


@elementwise(
    dtypes=ordering,
    reference=np.greater,
    kernel=_comparison_element(operator.gt),
    symbol=">",
    out_of_range=_out_of_range_result(if_smaller=False, if_larger=True),
)
def greater(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Whether `x1 > x2`, element by element: bool; False with NaN. Raises DTypeError for complex.

    >>> import tenfold as tn
    >>> tn.greater(tn.asarray([1, 2, 3]), 2).tolist()
    [False, False, True]
    """


@elementwise(
    dtypes=ordering,
    reference=np.greater_equal,
    kernel=_comparison_element(operator.ge),
    symbol=">=",
    out_of_range=_out_of_range_result(if_smaller=False, if_larger=True),
)
def greater_equal(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Whether `x1 >= x2`, element by element: bool; False with NaN. Raises DTypeError for complex.

    >>> import tenfold as tn
    >>> tn.greater_equal(tn.asarray([1, 2, 3]), 2).tolist()
    [False, True, True]
    """
