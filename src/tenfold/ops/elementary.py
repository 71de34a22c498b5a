"""Elementary functions: floating dtypes in and out, integers computed as NumPy does.

`accuracy` is a bound in units in the last place of the result, for complex of its modulus; where a
result smaller than `accuracy_floor` comes about by cancellation, in units of that magnitude. The
reference computes float32 in float64 and half types in float32, rounded once (`core/upcast.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold._native import Array
from tenfold.core.dtype_rules import floating, real_floating
from tenfold.core.op import Op, P
from tenfold.core.op_decorators import FORMULA_COST, DtypeRule, elementwise
from tenfold.core.upcast import special, widened
from tenfold.dtypes import kind_of
from tenfold.ops import complex_functions
from tenfold.ops.complex_parts import real_or_complex
from tenfold.ops.erfc import erfc_reference
from tenfold.ops.selection import where


def _quotient(x: Any, y: Array) -> Array:
    """Return `x / y`, and 0 where `y` is 0: the derivative at the origin."""
    return where(y == 0, 0, x / where(y == 0, 1, y))


def _by_square(x: Any, y: Array) -> Array:
    """Return `x / y**2`, whose square neither overflows nor is 0; 0 where `y` is 0."""
    return _quotient(_quotient(x, y), y)


def _function(
    ufunc: np.ufunc,
    of_complex: Callable[..., Any] | None = None,
    *,
    dtypes: DtypeRule = floating,
    accuracy: int = 4,
    **facts: Any,
) -> Callable[[Callable[P, Array]], Op[P]]:
    """Declare the elementary function of a ufunc; `of_complex` is its kernel rule on complex
    numbers.
    """
    facts["elementary"] = of_complex is None
    if of_complex is not None:
        facts["kernel"] = real_or_complex(lambda k, x: k.call(ufunc.__name__, x), of_complex)
        facts["cost"] = FORMULA_COST
    return elementwise(dtypes=dtypes, reference=widened(ufunc), accuracy=accuracy, **facts)


@_function(np.exp, complex_functions.exp, accuracy=2, partials=(lambda y, x: y,))
def exp(x: Array, /) -> Array:
    """e to the power of `x`, element by element.

    Floating and complex dtypes, integers as NumPy promotes them.

    >>> import tenfold as tn
    >>> tn.exp(tn.asarray([0.0])).tolist()
    [1.0]
    """


@_function(np.exp2, complex_functions.exp2, partials=(lambda y, x: y * math.log(2),))
def exp2(x: Array, /) -> Array:
    """2 to the power of `x`, element by element.

    Floating and complex dtypes, integers as NumPy promotes them.

    >>> import tenfold as tn
    >>> tn.exp2(tn.asarray([-1.0, 3.0])).tolist()
    [0.5, 8.0]
    """


@_function(np.expm1, complex_functions.expm1, partials=(lambda y, x: y + 1,))
def expm1(x: Array, /) -> Array:
    """`exp(x) - 1`, element by element, accurate for small `x`.

    Floating and complex dtypes, integers as NumPy promotes them.

    >>> import tenfold as tn
    >>> tn.expm1(tn.asarray([1e-20])).tolist()
    [1e-20]
    """


@_function(np.log, complex_functions.log, accuracy=2, partials=(lambda y, x: 1 / x,))
def log(x: Array, /) -> Array:
    """Natural logarithm of `x`, element by element: -inf at 0, NaN below (real dtypes).

    Floating and complex dtypes, integers as NumPy promotes them.

    >>> import tenfold as tn
    >>> tn.log(tn.asarray([1.0, 0.0])).tolist()
    [0.0, -inf]
    """


@_function(np.log1p, partials=(lambda y, x: 1 / (1 + x),))
def log1p(x: Array, /) -> Array:
    """`log(1 + x)`, element by element, accurate for small `x`.

    Floating and complex dtypes, integers as NumPy promotes them.

    >>> import tenfold as tn
    >>> tn.log1p(tn.asarray([1e-20])).tolist()
    [1e-20]
    """


@_function(np.log2, complex_functions.log2, partials=(lambda y, x: 1 / (x * math.log(2)),))
def log2(x: Array, /) -> Array:
    """Logarithm of `x` to the base 2, element by element: -inf at 0, NaN below (real dtypes).

    Floating and complex dtypes, integers as NumPy promotes them.

    >>> import tenfold as tn
    >>> tn.log2(tn.asarray([8.0, 0.25])).tolist()
    [3.0, -2.0]
    """


@_function(np.log10, complex_functions.log10, partials=(lambda y, x: 1 / (x * math.log(10)),))
def log10(x: Array, /) -> Array:
    """Logarithm of `x` to the base 10, element by element: -inf at 0, NaN below (real dtypes).

    Floating and complex dtypes, integers as NumPy promotes them.

    >>> import tenfold as tn
    >>> tn.log10(tn.asarray([1000.0, 1.0])).tolist()
    [3.0, 0.0]
    """


@_function(
    np.logaddexp,
    dtypes=real_floating,
    accuracy_floor=0.5,
    partials=(
        lambda y, x1, x2: exp(-logaddexp(0, x2 - x1)),  # type: ignore[has-type]  # below
        lambda y, x1, x2: exp(-logaddexp(0, x1 - x2)),  # type: ignore[has-type]  # below
    ),
)
def logaddexp(x1: Array | complex, x2: Array | complex, /) -> Array:
    """`log(exp(x1) + exp(x2))`, element by element, without overflow.

    Floating dtypes, integers as NumPy promotes them; raises DTypeError for complex.

    The error is at most 4 units in the last place of the result, but for results between -0.5 and
    0.5 of 0.5: near 0 the larger operand and the rest cancel.

    >>> import tenfold as tn
    >>> tn.logaddexp(tn.asarray([1000.0]), 1000.0).tolist()
    [1000.6931471805599]
    """


@elementwise(
    dtypes=floating,
    reference=np.sqrt,
    kernel=real_or_complex(lambda k, x: k.sqrt(x), complex_functions.sqrt),
    partials=(lambda y, x: 0.5 / y,),
)
def sqrt(x: Array, /) -> Array:
    """Square root of `x`, element by element: NaN below 0 (real dtypes), -0 at -0.

    Floating and complex dtypes, integers as NumPy promotes them.

    >>> import tenfold as tn
    >>> tn.sqrt(tn.asarray([9.0, 2.0])).tolist()
    [3.0, 1.4142135623730951]
    """


@_function(np.cbrt, dtypes=real_floating, partials=(lambda y, x: 1 / (3 * y * y),))
def cbrt(x: Array, /) -> Array:
    """Cube root of `x`, element by element, with the sign of `x`.

    Floating dtypes, integers as NumPy promotes them; raises DTypeError for complex.

    >>> import tenfold as tn
    >>> tn.cbrt(tn.asarray([27.0, -8.0])).tolist()
    [3.0, -2.0]
    """


@_function(
    np.hypot,
    dtypes=real_floating,
    partials=(lambda y, x1, x2: _quotient(x1, y), lambda y, x1, x2: _quotient(x2, y)),
)
def hypot(x1: Array | complex, x2: Array | complex, /) -> Array:
    """`sqrt(x1**2 + x2**2)`, element by element, without overflow; inf if either is infinite.

    Floating dtypes, integers as NumPy promotes them; raises DTypeError for complex.

    >>> import tenfold as tn
    >>> tn.hypot(tn.asarray([3.0, 1e200]), tn.asarray([4.0, 0.0])).tolist()
    [5.0, 1e+200]
    """


@_function(
    np.sin,
    complex_functions.sin,
    accuracy=2,
    partials=(lambda y, x: cos(x),),  # type: ignore[has-type]  # below
)
def sin(x: Array, /) -> Array:
    """Sine of `x` in radians, element by element.

    Floating and complex dtypes, integers as NumPy promotes them.

    >>> import tenfold as tn
    >>> tn.sin(tn.asarray([0.0])).tolist()
    [0.0]
    """


@_function(np.cos, complex_functions.cos, accuracy=2, partials=(lambda y, x: -sin(x),))
def cos(x: Array, /) -> Array:
    """Cosine of `x` in radians, element by element.

    Floating and complex dtypes, integers as NumPy promotes them.

    >>> import tenfold as tn
    >>> tn.cos(tn.asarray([0.0])).tolist()
    [1.0]
    """


@_function(np.tan, partials=(lambda y, x: 1 + y * y,))
def tan(x: Array, /) -> Array:
    """Tangent of `x` in radians, element by element.

    Floating and complex dtypes, integers as NumPy promotes them.

    >>> import tenfold as tn
    >>> tn.tan(tn.asarray([0.0])).tolist()
    [0.0]
    """


@_function(np.arcsin, partials=(lambda y, x: 1 / sqrt(1 - x * x),))
def asin(x: Array, /) -> Array:
    """Angle in [-pi/2, pi/2] radians whose sine is `x`, element by element: NaN outside [-1, 1]
    (real dtypes).

    Floating and complex dtypes, integers as NumPy promotes them.

    >>> import tenfold as tn
    >>> tn.asin(tn.asarray([0.0, 1.0])).tolist()
    [0.0, 1.5707963267948966]
    """


@_function(np.arccos, partials=(lambda y, x: -1 / sqrt(1 - x * x),))
def acos(x: Array, /) -> Array:
    """Angle in [0, pi] radians whose cosine is `x`, element by element: NaN outside [-1, 1]
    (real dtypes).

    Floating and complex dtypes, integers as NumPy promotes them.

    >>> import tenfold as tn
    >>> tn.acos(tn.asarray([1.0, 0.0])).tolist()
    [0.0, 1.5707963267948966]
    """


@_function(np.arctan, partials=(lambda y, x: 1 / (1 + x * x),))
def atan(x: Array, /) -> Array:
    """Angle in [-pi/2, pi/2] radians whose tangent is `x`, element by element.

    Floating and complex dtypes, integers as NumPy promotes them.

    >>> import tenfold as tn
    >>> tn.atan(tn.asarray([0.0, 1.0])).tolist()
    [0.0, 0.7853981633974483]
    """


@_function(
    np.arctan2,
    dtypes=real_floating,
    partials=(
        lambda y, x1, x2: _by_square(x2, hypot(x1, x2)),
        lambda y, x1, x2: _by_square(-x1, hypot(x1, x2)),
    ),
)
def atan2(x1: Array | complex, x2: Array | complex, /) -> Array:
    """Angle in [-pi, pi] radians of the point (`x2`, `x1`), element by element; signed zeros count.

    Floating dtypes, integers as NumPy promotes them; raises DTypeError for complex.

    >>> import tenfold as tn
    >>> tn.atan2(tn.asarray([1.0, 0.0]), tn.asarray([1.0, -1.0])).tolist()
    [0.7853981633974483, 3.141592653589793]
    """


@_function(
    np.sinh,
    partials=(lambda y, x: cosh(x),),  # type: ignore[has-type]  # below
)
def sinh(x: Array, /) -> Array:
    """Hyperbolic sine of `x`, element by element.

    Floating and complex dtypes, integers as NumPy promotes them.

    >>> import tenfold as tn
    >>> tn.sinh(tn.asarray([0.0])).tolist()
    [0.0]
    """


@_function(np.cosh, partials=(lambda y, x: sinh(x),))
def cosh(x: Array, /) -> Array:
    """Hyperbolic cosine of `x`, element by element.

    Floating and complex dtypes, integers as NumPy promotes them.

    >>> import tenfold as tn
    >>> tn.cosh(tn.asarray([0.0])).tolist()
    [1.0]
    """


@_function(np.tanh, accuracy=2, partials=(lambda y, x: 1 - y * y,))
def tanh(x: Array, /) -> Array:
    """Hyperbolic tangent of `x`, element by element.

    Floating and complex dtypes, integers as NumPy promotes them.

    >>> import tenfold as tn
    >>> tn.tanh(tn.asarray([0.0, 100.0])).tolist()
    [0.0, 1.0]
    """


@_function(
    np.arcsinh,
    partials=(lambda y, x: 1 / (sqrt(1 + x * x) if kind_of(x.dtype) == "c" else hypot(1, x)),),
)
def asinh(x: Array, /) -> Array:
    """Number whose hyperbolic sine is `x`, element by element.

    Floating and complex dtypes, integers as NumPy promotes them.

    >>> import tenfold as tn
    >>> tn.asinh(tn.asarray([0.0])).tolist()
    [0.0]
    """


@_function(np.arccosh, partials=(lambda y, x: 1 / (sqrt(x - 1) * sqrt(x + 1)),))
def acosh(x: Array, /) -> Array:
    """Number at or above 0 whose hyperbolic cosine is `x`, element by element: NaN below 1 (real
    dtypes).

    Floating and complex dtypes, integers as NumPy promotes them.

    >>> import tenfold as tn
    >>> tn.acosh(tn.asarray([1.0])).tolist()
    [0.0]
    """


@_function(np.arctanh, partials=(lambda y, x: 1 / (1 - x * x),))
def atanh(x: Array, /) -> Array:
    """Number whose hyperbolic tangent is `x`, element by element: NaN outside [-1, 1] (real).

    Floating and complex dtypes, integers as NumPy promotes them.

    >>> import tenfold as tn
    >>> tn.atanh(tn.asarray([0.0, 1.0])).tolist()
    [0.0, inf]
    """


@elementwise(
    dtypes=real_floating,
    reference=special("erf"),
    elementary=True,
    accuracy=4,
    partials=(lambda y, x: exp(-x * x) * (2 / math.sqrt(math.pi)),),
)
def erf(x: Array, /) -> Array:
    """Error function `2 / sqrt(pi) * integral of exp(-t**2) from 0 to x`, element by element.

    Floating dtypes, integers as NumPy promotes them; raises DTypeError for complex.

    >>> import tenfold as tn
    >>> tn.erf(tn.asarray([0.0, 6.0])).tolist()
    [0.0, 1.0]
    """


@elementwise(
    dtypes=real_floating,
    reference=widened(erfc_reference),
    elementary=True,
    accuracy=4,
    partials=(lambda y, x: exp(-x * x) * (-2 / math.sqrt(math.pi)),),
)
def erfc(x: Array, /) -> Array:
    """`1 - erf(x)`, element by element, accurate where it is tiny.

    Floating dtypes, integers as NumPy promotes them; raises DTypeError for complex.

    >>> import tenfold as tn
    >>> tn.erfc(tn.asarray([0.0, 30.0])).tolist()
    [1.0, 0.0]
    """
