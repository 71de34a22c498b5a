"""Elementwise functions: NumPy's ufuncs by name. Table.

Each row is an operation with NumPy's ufunc, or a short definition by other operations. A ufunc
without an operation computes at the call.

>>> arctan2(0.0, 1.0).item()
0.0
>>> modf(2.5)[1].item()
2.0
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold._native import Array
from tenfold.dtypes import kind_of
from tenfold.numpy.arguments import NUMBERS, as_array, cast, constant, export, imported
from tenfold.numpy.ufuncs import Ufunc
from tenfold.ops import arithmetic as arith
from tenfold.ops import bitwise, comparison, complex, contract, elementary, predicates, rounding
from tenfold.ops.reshaping import reshape
from tenfold.ops.selection import maximum as _maximum
from tenfold.ops.selection import minimum as _minimum
from tenfold.ops.selection import where as _select

__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_count",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "cbrt",
    "ceil",
    "conj",
    "conjugate",
    "copysign",
    "cos",
    "cosh",
    "deg2rad",
    "degrees",
    "divide",
    "divmod",
    "equal",
    "exp",
    "exp2",
    "expm1",
    "fabs",
    "float_power",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "frexp",
    "gcd",
    "greater",
    "greater_equal",
    "heaviside",
    "hypot",
    "invert",
    "isfinite",
    "isinf",
    "isnan",
    "isnat",
    "lcm",
    "ldexp",
    "left_shift",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "matmul",
    "matvec",
    "maximum",
    "minimum",
    "mod",
    "modf",
    "multiply",
    "negative",
    "nextafter",
    "not_equal",
    "positive",
    "pow",
    "power",
    "rad2deg",
    "radians",
    "reciprocal",
    "remainder",
    "right_shift",
    "rint",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "spacing",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "true_divide",
    "trunc",
    "vecdot",
    "vecmat",
]  # fmt: skip


def floating(x: Any) -> Array:
    """Return a real Array of floats: integers in the float that NumPy's functions compute in."""
    x = as_array(x)
    kind = kind_of(x.dtype)
    if kind == "c":
        raise TypeError("the function is not defined for complex numbers")
    return x if kind == "f" else cast(x, np.sqrt(np.ones((), x.dtype)).dtype)


def _floats(x: Any, y: Any) -> tuple[Array, Array]:
    """Return two operands in the float in which NumPy's functions compute both."""
    is_weak = type(x) in NUMBERS or type(y) in NUMBERS
    common = arith.add(x, y) if is_weak else arith.add(floating(x), floating(y))
    dtype = floating(constant(common, 0)).dtype
    return as_array(x, dtype), as_array(y, dtype)


def conjugated(x: Array) -> Array:
    """Return complex conjugates; real numbers as they are, bool too."""
    return complex.conj(x) if kind_of(x.dtype) == "c" else x


def _ordering(ufunc: np.ufunc, operation: Callable[..., Any]) -> Ufunc:
    """Return a ufunc that orders; NumPy orders complex numbers, real parts first, at the call."""

    def function(x: Any, y: Any) -> Any:
        if "c" in (kind_of(as_array(x).dtype), kind_of(as_array(y).dtype)):
            return imported(ufunc(*export((x, y), ufunc.__name__)))
        return operation(x, y)

    function.__doc__ = operation.__doc__ or getattr(operation, "doc", None)
    return Ufunc(ufunc, function)


def _divmod(x: Any, y: Any) -> tuple[Array, Array]:
    """Floor of the quotient, and the remainder."""
    return arith.floor_divide(x, y), arith.remainder(x, y)


def _deg2rad(x: Any) -> Array:
    """Degrees as radians."""
    return arith.multiply(floating(x), math.pi / 180)


def _rad2deg(x: Any) -> Array:
    """Radians as degrees."""
    return arith.multiply(floating(x), 180 / math.pi)


def _fabs(x: Any) -> Array:
    """Absolute value, in floats."""
    return arith.abs(floating(x))


def _rint(x: Any) -> Array:
    """Nearest whole number, the even one of two, in floats."""
    x = as_array(x)
    return rounding.round(x if kind_of(x.dtype) == "c" else floating(x))


def _float_power(x: Any, y: Any) -> Array:
    """Power in float64 or complex128."""
    wide = np.complex128 if "c" in (kind_of(as_array(v).dtype) for v in (x, y)) else np.float64
    return arith.pow(cast(as_array(x), wide), cast(as_array(y), wide))


def _fmax(x: Any, y: Any) -> Array:
    """The larger of two numbers; the other one for NaN."""
    return _without_nan(x, y, _maximum(x, y))


def _fmin(x: Any, y: Any) -> Array:
    """The smaller of two numbers; the other one for NaN."""
    return _without_nan(x, y, _minimum(x, y))


def _without_nan(x: Any, y: Any, chosen: Array) -> Array:
    if kind_of(chosen.dtype) not in "fc":
        return chosen
    x, y = as_array(x, chosen.dtype), as_array(y, chosen.dtype)
    return _select(predicates.isnan(x), y, _select(predicates.isnan(y), x, chosen))


def _fmod(x: Any, y: Any) -> Array:
    """Remainder with the sign of the dividend, as C's."""
    rest = arith.remainder(x, y)  # with the sign of the divisor
    if kind_of(rest.dtype) == "f":
        x, y = as_array(x, rest.dtype), as_array(y, rest.dtype)
        return arith.copysign(arith.remainder(arith.abs(x), arith.abs(y)), x)
    if kind_of(rest.dtype) != "i":
        return rest
    other_sign = comparison.less(x, 0) != comparison.less(rest, 0)
    moved = predicates.logical_and(comparison.not_equal(rest, 0), other_sign)
    return _select(moved, arith.subtract(rest, y), rest)


def _heaviside(x: Any, value: Any) -> Array:
    """0 below 0, 1 above, `value` at 0."""
    x, value = _floats(x, value)
    step = _select(comparison.less(x, 0), 0.0, 1.0)
    zero = arith.multiply(arith.add(x, value), 0.0)  # for its dtype
    step = _select(comparison.equal(x, 0), value, cast(step, zero.dtype))
    return _select(predicates.isnan(as_array(x)), cast(as_array(x), step.dtype), step)


def _modf(x: Any) -> tuple[Array, Array]:
    """Fraction and whole part, both with the sign of `x`."""
    x = floating(x)
    whole = rounding.trunc(x)
    fraction = _select(predicates.isinf(x), 0.0, arith.subtract(x, whole))
    return arith.copysign(fraction, x), whole


def _logaddexp2(x: Any, y: Any) -> Array:
    """Logarithm to base 2 of a sum of powers of 2."""
    x, y = _floats(x, y)
    distance = arith.negative(arith.abs(arith.subtract(x, y)))
    more = arith.multiply(elementary.log1p(elementary.exp2(distance)), 1 / math.log(2))
    return _select(comparison.equal(x, y), arith.add(x, 1.0), arith.add(_maximum(x, y), more))


def _matvec(matrix: Any, vector: Any) -> Array:
    """Products of matrices (..., m, n) and vectors (..., n)."""
    vector = as_array(vector)
    product = contract.matmul(as_array(matrix), reshape(vector, (*vector.shape, 1)))
    return reshape(product, product.shape[:-1])


def _vecmat(vector: Any, matrix: Any) -> Array:
    """Products of conjugated vectors (..., m) and matrices (..., m, n)."""
    vector = conjugated(as_array(vector))
    row = reshape(vector, (*vector.shape[:-1], 1, vector.shape[-1]))
    product = contract.matmul(row, as_array(matrix))
    return reshape(product, (*product.shape[:-2], product.shape[-1]))


absolute = abs = Ufunc(np.absolute, arith.abs)
add = Ufunc(np.add, arith.add)
arccos = acos = Ufunc(np.arccos, elementary.acos)
arccosh = acosh = Ufunc(np.arccosh, elementary.acosh)
arcsin = asin = Ufunc(np.arcsin, elementary.asin)
arcsinh = asinh = Ufunc(np.arcsinh, elementary.asinh)
arctan = atan = Ufunc(np.arctan, elementary.atan)
arctan2 = atan2 = Ufunc(np.arctan2, elementary.atan2)
arctanh = atanh = Ufunc(np.arctanh, elementary.atanh)
bitwise_and = Ufunc(np.bitwise_and, bitwise.bitwise_and)
bitwise_count = Ufunc(np.bitwise_count)
bitwise_or = Ufunc(np.bitwise_or, bitwise.bitwise_or)
bitwise_xor = Ufunc(np.bitwise_xor, bitwise.bitwise_xor)
cbrt = Ufunc(np.cbrt, elementary.cbrt)
ceil = Ufunc(np.ceil, rounding.ceil)
conjugate = conj = Ufunc(np.conjugate, complex.conj)
copysign = Ufunc(np.copysign, arith.copysign)
cos = Ufunc(np.cos, elementary.cos)
cosh = Ufunc(np.cosh, elementary.cosh)
deg2rad = Ufunc(np.deg2rad, _deg2rad)
radians = Ufunc(np.radians, _deg2rad)
divide = true_divide = Ufunc(np.divide, arith.divide)
divmod = Ufunc(np.divmod, _divmod)
equal = Ufunc(np.equal, comparison.equal)
exp = Ufunc(np.exp, elementary.exp)
exp2 = Ufunc(np.exp2, elementary.exp2)
expm1 = Ufunc(np.expm1, elementary.expm1)
fabs = Ufunc(np.fabs, _fabs)
float_power = Ufunc(np.float_power, _float_power)
floor = Ufunc(np.floor, rounding.floor)
floor_divide = Ufunc(np.floor_divide, arith.floor_divide)
fmax = _ordering(np.fmax, _fmax)
fmin = _ordering(np.fmin, _fmin)
fmod = Ufunc(np.fmod, _fmod)
frexp = Ufunc(np.frexp)
gcd = Ufunc(np.gcd)
greater = _ordering(np.greater, comparison.greater)
greater_equal = _ordering(np.greater_equal, comparison.greater_equal)
heaviside = Ufunc(np.heaviside, _heaviside)
hypot = Ufunc(np.hypot, elementary.hypot)
invert = bitwise_invert = bitwise_not = Ufunc(np.invert, bitwise.bitwise_invert)
isfinite = Ufunc(np.isfinite, predicates.isfinite)
isinf = Ufunc(np.isinf, predicates.isinf)
isnan = Ufunc(np.isnan, predicates.isnan)
isnat = Ufunc(np.isnat)
lcm = Ufunc(np.lcm)
ldexp = Ufunc(np.ldexp)
left_shift = bitwise_left_shift = Ufunc(np.left_shift, bitwise.bitwise_left_shift)
less = _ordering(np.less, comparison.less)
less_equal = _ordering(np.less_equal, comparison.less_equal)
log = Ufunc(np.log, elementary.log)
log10 = Ufunc(np.log10, elementary.log10)
log1p = Ufunc(np.log1p, elementary.log1p)
log2 = Ufunc(np.log2, elementary.log2)
logaddexp = Ufunc(np.logaddexp, elementary.logaddexp)
logaddexp2 = Ufunc(np.logaddexp2, _logaddexp2)
logical_and = Ufunc(np.logical_and, predicates.logical_and)
logical_not = Ufunc(np.logical_not, predicates.logical_not)
logical_or = Ufunc(np.logical_or, predicates.logical_or)
logical_xor = Ufunc(np.logical_xor, predicates.logical_xor)
matmul = Ufunc(np.matmul, contract.matmul)
matvec = Ufunc(np.matvec, _matvec)
maximum = _ordering(np.maximum, _maximum)
minimum = _ordering(np.minimum, _minimum)
modf = Ufunc(np.modf, _modf)
multiply = Ufunc(np.multiply, arith.multiply)
negative = Ufunc(np.negative, arith.negative)
nextafter = Ufunc(np.nextafter, arith.nextafter)
not_equal = Ufunc(np.not_equal, comparison.not_equal)
positive = Ufunc(np.positive, arith.positive)
power = pow = Ufunc(np.power, arith.pow)
rad2deg = Ufunc(np.rad2deg, _rad2deg)
degrees = Ufunc(np.degrees, _rad2deg)
reciprocal = Ufunc(np.reciprocal, arith.reciprocal)
remainder = mod = Ufunc(np.remainder, arith.remainder)
right_shift = bitwise_right_shift = Ufunc(np.right_shift, bitwise.bitwise_right_shift)
rint = Ufunc(np.rint, _rint)
sign = Ufunc(np.sign, arith.sign)
signbit = Ufunc(np.signbit, predicates.signbit)
sin = Ufunc(np.sin, elementary.sin)
sinh = Ufunc(np.sinh, elementary.sinh)
spacing = Ufunc(np.spacing)
sqrt = Ufunc(np.sqrt, elementary.sqrt)
square = Ufunc(np.square, arith.square)
subtract = Ufunc(np.subtract, arith.subtract)
tan = Ufunc(np.tan, elementary.tan)
tanh = Ufunc(np.tanh, elementary.tanh)
trunc = Ufunc(np.trunc, rounding.trunc)
vecdot = Ufunc(np.vecdot, contract.vecdot)
vecmat = Ufunc(np.vecmat, _vecmat)
