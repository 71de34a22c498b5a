"""Selection: `where`, `maximum`, `minimum` and `clip`, elementwise."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold._native import Array
from tenfold.core.dtype_rules import real, selection
from tenfold.core.op import SampleCall
from tenfold.core.op_decorators import array, derived, elementwise
from tenfold.core.scalar_ir import UNSIGNED, Body, Element, Operand
from tenfold.dtypes import FLOAT32, HALF_DTYPES, dtype_names, kind_of, promote_dtypes
from tenfold.errors import DTypeError
from tenfold.ops.cast import astype
from tenfold.ops.complex_parts import componentwise


def _where_element(k: Body, condition: Element, x: Operand, y: Operand) -> Operand:
    return componentwise(lambda k, x, y: k.select(condition, x, y))(k, x, y)


@elementwise(
    dtypes=selection,
    reference=np.where,
    kernel=_where_element,
    takes_halves=True,
    numpy=(np.where,),
    section="searching",
    vjp=lambda g, y, condition, x1, x2: (
        None,
        where(condition, g, 0),  # type: ignore[has-type]  # below
        where(condition, 0, g),  # type: ignore[has-type]  # below
    ),
)
def where(condition: Array | complex, x1: Array | complex, x2: Array | complex, /) -> Array:
    """`x1` where `condition` is true (not 0) and `x2` elsewhere, element by element.

    All three broadcast; the result has the common dtype of `x1` and `x2`, in which Python scalars
    are weak.

    >>> import tenfold as tn
    >>> tn.where(tn.asarray([True, False]), 1, tn.asarray([5, 6])).tolist()
    [1, 6]
    """


def _maximum_reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The larger; NaN if either is, 0 of -0 and 0, where NumPy takes the first."""
    largest = np.maximum(x, y)
    return _order_zeros(largest, x, y, np.signbit(x)) if kind_of(x.dtype) == "f" else largest


def _minimum_reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The smaller; NaN if either is, -0 of -0 and 0, where NumPy takes the first."""
    smallest = np.minimum(x, y)
    return _order_zeros(smallest, x, y, ~np.signbit(x)) if kind_of(x.dtype) == "f" else smallest


def _order_zeros(
    selected: np.ndarray, x: np.ndarray, y: np.ndarray, takes_second: np.ndarray
) -> np.ndarray:
    """Of two zeros select `y` where `takes_second`, `x` elsewhere."""
    return np.where((x == 0) & (y == 0), np.where(takes_second, y, x), selected)


def _maximum_element(k: Body, x: Element, y: Element) -> Element:
    """As the reference: of equal floats the bitwise and, for the sign of zeros."""
    if kind_of(x.dtype) == "b":
        return x | y
    first, second = _to_comparable(k, x), _to_comparable(k, y)
    if kind_of(x.dtype) != "f":
        return k.select(first < second, y, x)
    unsigned = UNSIGNED[x.dtype.itemsize]
    common = k.bits(k.bits(x, unsigned) & k.bits(y, unsigned), x.dtype)
    result = k.select((first > second) | (first != first), x, y)
    return k.select(first == second, common, result)


def _minimum_element(k: Body, x: Element, y: Element) -> Element:
    """As the reference: of equal floats the bitwise or, for the sign of zeros."""
    if kind_of(x.dtype) == "b":
        return x & y
    first, second = _to_comparable(k, x), _to_comparable(k, y)
    if kind_of(x.dtype) != "f":
        return k.select(second < first, y, x)
    unsigned = UNSIGNED[x.dtype.itemsize]
    union = k.bits(k.bits(x, unsigned) | k.bits(y, unsigned), x.dtype)
    result = k.select((first < second) | (first != first), x, y)
    return k.select(first == second, union, result)


def _share(loses: Array, ties: Array, y: Array) -> Array:
    """Return the derivative of an extreme by one operand: 1, 0, half of it at a tie, 1 at NaN."""
    return where(loses, where(ties, array(y.dtype.type(0.5)), 0), 1)


def _to_comparable(k: Body, x: Element) -> Element:
    """Return a half type as float32, which can be compared."""
    return k.convert(x, FLOAT32) if x.dtype in HALF_DTYPES else x


@elementwise(
    keeps_products=True,
    dtypes=real,
    reference=_maximum_reference,
    kernel=_maximum_element,
    takes_halves=True,
    numpy=(np.maximum,),
    commutes=True,
    partials=(
        lambda y, x1, x2: _share(x1 <= x2, x1 == x2, y),
        lambda y, x1, x2: _share(x2 <= x1, x1 == x2, y),
    ),
)
def maximum(x1: Array | complex, x2: Array | complex, /) -> Array:
    """The larger of `x1` and `x2`, element by element: NaN if either is NaN, and 0 is above -0.

    The common dtype; raises DTypeError for complex.

    >>> import tenfold as tn
    >>> tn.maximum(tn.asarray([1.0, float("nan")]), 2).tolist()
    [2.0, nan]
    """


@elementwise(
    keeps_products=True,
    dtypes=real,
    reference=_minimum_reference,
    kernel=_minimum_element,
    takes_halves=True,
    numpy=(np.minimum,),
    commutes=True,
    partials=(
        lambda y, x1, x2: _share(x1 >= x2, x1 == x2, y),
        lambda y, x1, x2: _share(x2 >= x1, x1 == x2, y),
    ),
)
def minimum(x1: Array | complex, x2: Array | complex, /) -> Array:
    """The smaller of `x1` and `x2`, element by element: NaN if either is NaN, and -0 is below 0.

    The common dtype; raises DTypeError for complex.

    >>> import tenfold as tn
    >>> tn.minimum(tn.asarray([1.0, float("nan")]), 2).tolist()
    [1.0, nan]
    """


@elementwise(
    keeps_products=True,
    dtypes=real,
    name="maximum",
    public=False,
    partials=(lambda y, x, low: ~(x < low), lambda y, x, low: x < low),
)
def at_least(x: Array | complex, low: Array | complex, /) -> Array:
    """`maximum`, whose derivative by `x` is 1 at the bound."""
    return maximum(x, low)


@elementwise(
    keeps_products=True,
    dtypes=real,
    name="minimum",
    public=False,
    partials=(lambda y, x, high: ~(x > high), lambda y, x, high: x > high),
)
def at_most(x: Array | complex, high: Array | complex, /) -> Array:
    """`minimum`, whose derivative by `x` is 1 at the bound."""
    return minimum(x, high)


@derived(
    numpy=(np.clip,),
    samples=[
        SampleCall(((2, 3),), positional=(-1, 1)),
        SampleCall(((0, 3),), {"max": 2}),
        SampleCall(((),), {"min": 0}),
    ],
)
def clip(x: Array, /, min: Any = None, max: Any = None) -> Array:
    """`x` held between `min` and `max`, element by element: shapes broadcast, the dtype of `x`.

    A bound is an array, a number, or None for no bound. NaN in `x` or in a bound gives NaN; where
    `min` is above `max` the result is `max`. An integer bound is never wrapped: one that no element
    could pass has no effect. Raises DTypeError for bool and complex, and for a bound of a kind that
    the dtype of `x` cannot hold; OverflowError for a Python integer that every element would pass.

    >>> import tenfold as tn
    >>> tn.clip(tn.asarray([-5, 5, 300]), 0, 255).tolist()
    [0, 5, 255]
    """
    x = array(x)
    if kind_of(x.dtype) in "bc":
        rule = f"needs real numbers, not {x.dtype}"
        raise DTypeError("", rule, remedy="take tn.abs(x) of complex numbers, convert booleans")
    low, high = _normalize_bound(min, x, is_lower=True), _normalize_bound(max, x, is_lower=False)
    if low is not None:
        x = at_least(x, low)
    return x if high is None else at_most(x, high)


def _normalize_bound(bound: Any, x: Array, *, is_lower: bool) -> Any:
    """Return a bound of `x` that promotes to its dtype; None if it has no effect."""
    if bound is None or (isinstance(bound, float) and kind_of(x.dtype) == "f"):
        return bound
    if isinstance(bound, float):
        raise _bound_dtype_error(np.dtype(float), x)
    if isinstance(bound, int):
        return None if _has_no_effect(bound, x.dtype, is_lower) else bound
    bound = array(bound)
    if promote_dtypes(x.dtype, bound.dtype) == x.dtype:
        return bound
    kinds = kind_of(x.dtype) + kind_of(bound.dtype)
    if kinds[0] in "iu" and kinds[1] in "iu":
        return _saturate_bound(bound, x.dtype)
    if kinds == "ff":
        return astype(bound, x.dtype)
    raise _bound_dtype_error(bound.dtype, x)


def _has_no_effect(bound: int, dtype: np.dtype, is_lower: bool) -> bool:
    if kind_of(dtype) not in "iu":
        return False
    limits = np.iinfo(dtype)
    return bound <= limits.min if is_lower else bound >= limits.max


def _saturate_bound(bound: Array, dtype: np.dtype) -> Array:
    """Return an integer bound in an integer dtype, saturated at its limits."""
    target, source = np.iinfo(dtype), np.iinfo(bound.dtype)
    if source.min < target.min:
        bound = maximum(bound, int(target.min))
    if source.max > target.max:
        bound = minimum(bound, int(target.max))
    return astype(bound, dtype)


def _bound_dtype_error(dtype: np.dtype, x: Array) -> DTypeError:
    kind = dtype_names([dtype])
    rule = f"the result keeps the dtype of x, which {kind} bounds do not fit: {x.dtype}"
    return DTypeError("", rule, remedy="convert x, or round the bounds, with tn.astype")
