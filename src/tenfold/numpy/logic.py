"""Logic and types: comparison of whole arrays, parts of complex numbers, properties of dtypes.

Takes NumPy's arguments, hands on Arrays and, for whole arrays, Python's truth values.

>>> allclose([1.0, 2.0], [1.0, 2.0 + 1e-9])
True
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold._native import Array
from tenfold.dtypes import BOOL, kind_of
from tenfold.interop.materialize import value_of
from tenfold.numpy.arguments import as_array, as_operand, as_operands, cast, deliver
from tenfold.numpy.by_numpy import placeholders
from tenfold.numpy.elementwise import floating
from tenfold.ops import arithmetic, comparison, complex, predicates, reduce
from tenfold.ops.elementary import atan2

__all__ = [
    "allclose", "angle", "array_equal", "array_equiv", "astype", "can_cast", "common_type", "imag",
    "isclose", "iscomplex", "iscomplexobj", "isfortran", "isneginf", "isposinf", "isreal",
    "isrealobj", "isscalar", "iterable", "may_share_memory", "min_scalar_type", "real",
    "real_if_close", "result_type", "shares_memory",
]  # fmt: skip


def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Array:
    """Return whether elements differ by at most `atol + rtol * |b|`."""
    x, y = (as_array(v) for v in as_operands((a, b)))
    y = y if kind_of(y.dtype) in "fc" else cast(y, np.float64)
    rtol, atol = map(as_operand, (rtol, atol))
    bound = arithmetic.add(arithmetic.multiply(arithmetic.abs(y), rtol), atol)
    close = comparison.less_equal(arithmetic.abs(arithmetic.subtract(x, y)), bound)
    close = predicates.logical_and(close, predicates.isfinite(y))
    close = predicates.logical_or(close, comparison.equal(x, y))
    if equal_nan:
        close = predicates.logical_or(
            close, predicates.logical_and(predicates.isnan(x), predicates.isnan(y))
        )
    return close


def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> bool:
    """Return whether all elements are close; waits."""
    close = reduce.all(isclose(a, b, rtol, atol, equal_nan))
    return bool(value_of(close, "np.allclose"))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    """Return whether shapes and all elements are equal; waits."""
    x, y = as_array(a1), as_array(a2)
    if x.shape != y.shape:
        return False
    equal = comparison.equal(x, y)
    if equal_nan:
        equal = predicates.logical_or(
            equal, predicates.logical_and(predicates.isnan(x), predicates.isnan(y))
        )
    return bool(value_of(reduce.all(equal), "np.array_equal"))


def array_equiv(a1: Any, a2: Any) -> bool:
    """Return whether all elements are equal after broadcasting; waits."""
    x, y = as_array(a1), as_array(a2)
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return False
    return bool(value_of(reduce.all(comparison.equal(x, y)), "np.array_equiv"))


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: str | None = None) -> Array:
    """Return the elements in another dtype."""
    return cast(as_array(x), dtype)


def real(val: Any) -> Array:
    """Return the real parts, a view; of a real array itself."""
    x = as_array(val)
    return complex.real(x) if kind_of(x.dtype) == "c" else x


def imag(val: Any) -> Array:
    """Return the imaginary parts, a view; of real numbers 0, read-only."""
    return complex.imag(as_array(val))


def angle(z: Any, deg: bool = False) -> Array:
    """Return the angles of complex numbers, in radians or degrees."""
    x = as_array(z)
    if kind_of(x.dtype) == "c":
        turned = atan2(complex.imag(x), complex.real(x))
    else:
        values = cast(x, np.float64) if x.dtype == BOOL else floating(x)
        turned = atan2(cast(as_array(0.0), values.dtype), values)
    return arithmetic.multiply(turned, 180 / np.pi) if deg else turned


def isreal(x: Any) -> Array:
    """Return whether imaginary parts are 0."""
    return comparison.equal(imag(x), 0)


def iscomplex(x: Any) -> Array:
    """Return whether imaginary parts are not 0."""
    return comparison.not_equal(imag(x), 0)


def isposinf(x: Any, out: Any = None) -> Any:
    """Return whether elements are plus infinity."""
    values = as_array(x)
    sign = predicates.logical_not(predicates.signbit(values))
    return deliver(predicates.logical_and(predicates.isinf(values), sign), out)


def isneginf(x: Any, out: Any = None) -> Any:
    """Return whether elements are minus infinity."""
    values = as_array(x)
    return deliver(
        predicates.logical_and(predicates.isinf(values), predicates.signbit(values)), out
    )


def real_if_close(a: Any, tol: float = 100) -> Array:
    """Return the real parts if all imaginary parts are close to 0; waits."""
    x = as_array(a)
    if kind_of(x.dtype) != "c":
        return x
    bound = tol * float(np.finfo(x.dtype).eps) if tol > 1 else tol
    small = reduce.all(comparison.less(arithmetic.abs(complex.imag(x)), bound))
    return complex.real(x) if bool(small) else x


def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    """Return the dtype of operands and dtypes together."""
    return np.result_type(*map(placeholders, arrays_and_dtypes))


def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    """Return whether a cast is allowed by a rule."""
    return np.can_cast(from_.dtype if isinstance(from_, Array) else from_, to, casting)


def common_type(*arrays: Any) -> Any:
    """Return the scalar type of floats that holds all arrays."""
    return np.common_type(*(np.empty(0, as_array(x).dtype) for x in arrays))


def min_scalar_type(a: Any, /) -> np.dtype:
    """Return the smallest dtype that holds a number; an array of axes keeps its own."""
    x = a if not isinstance(a, Array) or a.ndim else value_of(a, "np.min_scalar_type")
    return np.min_scalar_type(placeholders(x))


def iscomplexobj(x: Any) -> bool:
    """Return whether the dtype is complex."""
    return bool(np.iscomplexobj(placeholders(x)))


def isrealobj(x: Any) -> bool:
    """Return whether the dtype is real."""
    return not iscomplexobj(x)


def isscalar(element: Any) -> bool:
    """Return whether an object is a number or text; an Array without axes is a number."""
    return not element.ndim if isinstance(element, Array) else bool(np.isscalar(element))


def iterable(y: Any) -> bool:
    """Return whether an object can be iterated."""
    return y.ndim > 0 if isinstance(y, Array) else bool(np.iterable(y))


def isfortran(a: Any) -> bool:
    """Return whether columns are contiguous and rows are not: never for an Array."""
    return False if isinstance(a, Array) else bool(np.isfortran(a))


def shares_memory(a: Any, b: Any, /, max_work: Any = -1) -> bool:
    """Return whether two arrays share memory; waits."""
    x, y = (value_of(v, "np.shares_memory") if isinstance(v, Array) else v for v in (a, b))
    return np.shares_memory(x, y, max_work)


def may_share_memory(a: Any, b: Any, /, max_work: Any = 0) -> bool:
    """Return whether the bounds of two arrays in memory overlap; waits."""
    x, y = (value_of(v, "np.may_share_memory") if isinstance(v, Array) else v for v in (a, b))
    return np.may_share_memory(x, y, max_work)
