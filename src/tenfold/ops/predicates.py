"""Predicates: elementwise tests and logic, with bool results."""

from __future__ import annotations

from collections.abc import Callable
from operator import and_, eq, gt, lt, or_
from typing import Any

import numpy as np

from tenfold._native import Array
from tenfold.core.dtype_rules import logical, predicate, real_predicate
from tenfold.core.op_decorators import elementwise
from tenfold.core.scalar_ir import SIGNED, UNSIGNED, Body, ComplexElement, Element, Operand
from tenfold.dtypes import BOOL, kind_of


def _against_infinity(k: Body, x: Element) -> tuple[Element, Element]:
    """Return the bits of a float without its sign and those of infinity, which order its kinds."""
    unsigned = UNSIGNED[x.dtype.itemsize]
    infinity = k.bits(k.constant(np.inf, x.dtype), unsigned)
    return k.bits(x, unsigned) & np.iinfo(unsigned).max // 2, infinity


def _by_magnitude(
    compare: Callable[[Any, Any], Any], of_parts: Callable[[Any, Any], Any], of_whole: bool
) -> Callable[[Body, Operand], Element]:
    """Return the kernel rule that compares magnitudes with infinity; `of_whole` is the result for
    integers.
    """

    def rule(k: Body, x: Operand) -> Element:
        if isinstance(x, ComplexElement):
            joined: Element = of_parts(rule(k, x.real), rule(k, x.imaginary))
            return joined
        if kind_of(x.dtype) != "f":
            return k.constant(of_whole, BOOL)
        result: Element = compare(*_against_infinity(k, x))
        return result

    return rule


def _negative(k: Body, x: Element) -> Element:
    if kind_of(x.dtype) in "bu":
        return k.constant(False, BOOL)
    return k.bits(x, SIGNED[x.dtype.itemsize]) < 0


@elementwise(
    dtypes=predicate,
    reference=np.isfinite,
    kernel=_by_magnitude(lt, and_, of_whole=True),
    takes_halves=True,
)
def isfinite(x: Array, /) -> Array:
    """Whether `x` is neither infinite nor NaN, element by element: bool, for any dtype.

    >>> import tenfold as tn
    >>> tn.isfinite(tn.asarray([1.0, float("inf"), float("nan")])).tolist()
    [True, False, False]
    """


@elementwise(
    dtypes=predicate,
    reference=np.isinf,
    kernel=_by_magnitude(eq, or_, of_whole=False),
    takes_halves=True,
)
def isinf(x: Array, /) -> Array:
    """Whether `x` is infinite, for complex in either part, element by element: bool, for any dtype.

    >>> import tenfold as tn
    >>> tn.isinf(tn.asarray([1.0, float("inf"), float("nan")])).tolist()
    [False, True, False]
    """


@elementwise(
    dtypes=predicate,
    reference=np.isnan,
    kernel=_by_magnitude(gt, or_, of_whole=False),
    takes_halves=True,
)
def isnan(x: Array, /) -> Array:
    """Whether `x` is NaN, for complex in either part, element by element: bool, for any dtype.

    >>> import tenfold as tn
    >>> tn.isnan(tn.asarray([1.0, float("inf"), float("nan")])).tolist()
    [False, False, True]
    """


@elementwise(dtypes=real_predicate, reference=np.signbit, kernel=_negative, takes_halves=True)
def signbit(x: Array, /) -> Array:
    """Whether the sign of `x` is minus, element by element: bool; True for -0. Real dtypes.

    >>> import tenfold as tn
    >>> tn.signbit(tn.asarray([-0.0, 0.0, -3.0])).tolist()
    [True, False, True]
    """


@elementwise(dtypes=logical, reference=np.logical_and, kernel=lambda _, x, y: x & y, commutes=True)
def logical_and(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Whether both `x1` and `x2` are true (not 0), element by element: bool, for any dtypes.

    >>> import tenfold as tn
    >>> tn.logical_and(tn.asarray([0, 1, 2]), True).tolist()
    [False, True, True]
    """


@elementwise(dtypes=logical, reference=np.logical_or, kernel=lambda _, x, y: x | y, commutes=True)
def logical_or(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Whether `x1` or `x2` is true (not 0), element by element: bool, for any dtypes.

    >>> import tenfold as tn
    >>> tn.logical_or(tn.asarray([0, 1, 2]), False).tolist()
    [False, True, True]
    """


@elementwise(dtypes=logical, reference=np.logical_xor, kernel=lambda _, x, y: x ^ y, commutes=True)
def logical_xor(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Whether one of `x1` and `x2` alone is true (not 0), element by element: bool, for any dtypes.

    >>> import tenfold as tn
    >>> tn.logical_xor(tn.asarray([0, 1, 2]), True).tolist()
    [True, False, False]
    """


@elementwise(dtypes=logical, reference=np.logical_not, kernel=lambda _, x: ~x)
def logical_not(x: Array, /) -> Array:
    """Whether `x` is false (0), element by element: bool, for any dtype.

    >>> import tenfold as tn
    >>> tn.logical_not(tn.asarray([0.0, 2.5, float("nan")])).tolist()
    [True, False, False]
    """
