"""What elementwise operations should give, by other means than their references; see `expected`.

Functions of real floats are computed wider: half types and float32 in float64, float64 in the long
double of the platform where that is wider. Integers are computed with Python's, then cut to their
width. What neither NumPy nor `math` gives to the last digit (erfc, gelu) is summed as a series in
decimal numbers, and the fused multiply-add is done in fractions.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import cache

import ml_dtypes
import numpy as np

import tenfold as tn
from tenfold.core.op import Op
from tenfold.dtypes import DTYPES, kind_of

WIDEST = np.longdouble if np.finfo(np.longdouble).nmant > 52 else np.float64
FLOAT64 = DTYPES["float64"]
Function = Callable[..., np.ndarray]


def expected(op: Op, operands: tuple[np.ndarray, ...], result: np.dtype) -> np.ndarray:
    """What the op should give for operands on one axis, in the dtypes of the computation."""
    dtype = operands[-1].dtype
    kind = kind_of(dtype)
    table = {"i": WHOLE, "u": WHOLE, "f": REAL, "c": COMPLEX}.get(kind, {})
    function = table.get(op.name) or (op.numpy[0] if op.numpy else op.reference) or _element(op)
    with np.errstate(all="ignore"):
        if kind == "f" and op.name == "fma":
            return fused(*operands)
        if kind == "f" and dtype == FLOAT64 and op.name in DECIMAL:
            return _each(DECIMAL[op.name])(*operands)
        if kind == "f" and op.name not in IN_THEIR_OWN_DTYPE:
            operands, narrow = _widened(op, operands), dtype.itemsize == 2
            values = np.asarray(function(*operands))
            # Half types are float32 rounded once more: so they are specified.
            return (
                values.astype(np.float32) if narrow and values.dtype != bool else values
            ).astype(result)
        values = np.asarray(function(*operands))
        return values.astype(result) if values.dtype != result else values


def _element(op: Op) -> Function:
    """The element rule itself, for an op that says no more: in wider numbers it is the truth."""

    def compute(*operands: np.ndarray) -> np.ndarray:
        double = {"f": "float64", "c": "complex128"}
        wide = [x.astype(double.get(kind_of(x.dtype), x.dtype)) for x in operands]
        assert op.semantics.element is not None
        return np.asarray(op.semantics.element(*map(tn.asarray, wide)))

    return compute


def _widened(op: Op, operands: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """The operands in a wider dtype, where the operation is not one that rounds exactly."""
    dtype = operands[-1].dtype
    if op.accuracy == 0:
        wide = np.float32 if dtype.itemsize == 2 else dtype
    else:
        wide = WIDEST if dtype == FLOAT64 else np.float64
    return tuple(x if x.dtype == bool else x.astype(wide) for x in operands)


def _each(function: Callable[[float], float]) -> Function:
    return lambda x: np.array([function(item) for item in x.ravel().tolist()]).reshape(x.shape)


def _python(function: Callable[..., int]) -> Function:
    """A function of Python's integers on arrays, its results cut to the width of the operands."""

    def compute(*operands: np.ndarray) -> np.ndarray:
        width = operands[0].dtype.itemsize
        columns = (x.tolist() for x in operands)
        found = [function(*row) % 256**width for row in zip(*columns, strict=True)]
        return np.array(found, f"u{width}").view(operands[0].dtype)

    return compute


def _shifting(function: Callable[[int, int], int]) -> Function:
    """As _python; a count that is negative or beyond the width is one of 64 bits."""
    return _python(lambda a, b: function(a, b if 0 <= b < 64 else 64))


WHOLE: dict[str, Function] = {
    "add": _python(lambda a, b: a + b),
    "subtract": _python(lambda a, b: a - b),
    "multiply": _python(lambda a, b: a * b),
    "floor_divide": _python(lambda a, b: a // b if b else 0),
    "remainder": _python(lambda a, b: a % b if b else 0),
    "pow": lambda x, y: _python(lambda a, b: pow(a, b, 256**x.dtype.itemsize))(x, y),
    "negative": _python(lambda a: -a),
    "abs": _python(abs),
    "square": _python(lambda a: a * a),
    "reciprocal": _python(lambda a: a if abs(a) == 1 else 0),
    "sign": _python(lambda a: (a > 0) - (a < 0)),
    "bitwise_left_shift": _shifting(lambda a, b: a << b),
    "bitwise_right_shift": _shifting(lambda a, b: a >> b),
    "round": _python(lambda a: a),
    "maximum": _python(max),
    "minimum": _python(min),
    "relu": _python(lambda a: max(a, 0)),
    "fma": _python(lambda a, b, c: a * b + c),
}
"""For integers, where NumPy has no meaning of its own or another one."""


def _larger(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    found = np.where((x > y) | ((x == y) & ~np.signbit(x)), x, y)
    return np.where(np.isnan(x) | np.isnan(y), np.nan, found)


def _power(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The long double power of glibc 2.36 is inf for (-inf) ** -2.0**63, which is 0."""
    limits = np.power(x.astype(np.float64), y.astype(np.float64))
    return np.where(np.isinf(x), limits, np.power(x, y))


REAL: dict[str, Function] = {
    "pow": _power,
    "maximum": _larger,
    "minimum": lambda x, y: -_larger(-x, -y),
    "nextafter": lambda x, y: np.where(x == y, y, np.nextafter(x, y)),
    "round": np.rint,
    "sign": lambda x: np.where(np.isnan(x), x, (x > 0).astype(x.dtype) - (x < 0)),
    "erf": _each(math.erf),
    "erfc": _each(math.erfc),
    "sigmoid": lambda x: np.where(x < 0, np.exp(-np.abs(x)), 1) / (1 + np.exp(-np.abs(x))),
    "softplus": lambda x: np.logaddexp(x, 0),
    "relu": lambda x: np.where(x <= 0, 0, x),
    "gelu": lambda x: np.maximum(x, -40) * _each(math.erfc)(-x * math.sqrt(0.5)) / 2,
}
"""For real floats, likewise."""


def _complex_power(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """NumPy's for an array of exponents is NaN where x is infinite, and for a number right."""
    powers = np.power(x, y)
    for exponent in (1, 2, -1, 0.5):
        powers = np.where(y == exponent, x**exponent, powers)
    return powers


COMPLEX: dict[str, Function] = {"pow": _complex_power}
"""For complex numbers, likewise."""

IN_THEIR_OWN_DTYPE = {"nextafter"}
"""Functions that mean something else in a wider dtype."""


def _erf(x: Decimal, digits: int) -> Decimal:
    """The error function by its Taylor series; digits must suffice for the cancellation, too."""
    with decimal.localcontext() as context:
        context.prec = digits
        square, term, total, n = x * x, x, x, 0
        while abs(term) > Decimal(10) ** -digits:
            n += 1
            term *= -square / n
            total += term / (2 * n + 1)
        return total * 2 / _root_of_pi(digits)


@cache
def _root_of_pi(digits: int) -> Decimal:
    """sqrt(pi), by Machin's formula."""
    with decimal.localcontext() as context:
        context.prec = digits + 5
        return (16 * _inverse_tangent(5) - 4 * _inverse_tangent(239)).sqrt()


def _inverse_tangent(inverse: int) -> Decimal:
    """atan(1 / inverse)."""
    power = total = Decimal(1) / inverse
    n = 1
    while abs(power) > Decimal(10) ** -decimal.getcontext().prec:
        power /= -inverse * inverse
        n += 2
        total += power / n
    return total


def _erfc(x: Decimal) -> Decimal:
    digits = 60 + int(x * x)
    with decimal.localcontext() as context:
        context.prec = digits
        return 1 - _erf(x, digits)


def _decimal(
    function: Callable[[Decimal], Decimal], below: Callable[[float], float], limit: int
) -> Callable[[float], float]:
    """A function of floats by one of decimals; `below` gives it where abs(x) is above the limit."""

    def compute(x: float) -> float:
        if math.isnan(x) or abs(x) > limit:
            return x if math.isnan(x) else below(x)
        return float(function(Decimal(x)))

    return compute


def _gaussian(x: Decimal) -> Decimal:
    with decimal.localcontext() as context:
        context.prec = 60
        return x / 2 * _erfc(-x / Decimal(2).sqrt())


DECIMAL = {
    "erf": _decimal(lambda x: _erf(x, 100), lambda x: math.copysign(1.0, x), 7),
    "erfc": _decimal(_erfc, lambda x: 0.0 if x > 0 else 2.0, 28),
    "gelu": _decimal(_gaussian, lambda x: x if x > 0 else -0.0, 39),
}
"""float64 to the last digit."""


def nearest(exact: Fraction, dtype: np.dtype) -> float:
    """The value of a floating dtype nearest to a fraction, the even one at a tie."""
    limits = ml_dtypes.finfo(dtype)
    digits = limits.nmant + 1
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > abs(exact)
    unit = Fraction(2) ** (max(exponent, limits.minexp) - digits + 1)
    value = round(exact / unit) * unit
    return (
        math.copysign(math.inf, value) if abs(value) > Fraction(float(limits.max)) else float(value)
    )


def fused(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """x * y + z in fractions, rounded once; what is not finite by the rules for infinities."""
    found = []
    for a, b, c in zip(
        *(operand.astype(np.float64).tolist() for operand in (x, y, z)), strict=True
    ):
        if not all(map(math.isfinite, (a, b, c))):
            found.append(c if math.isfinite(a) and math.isfinite(b) else a * b + c)
        elif exact := Fraction(a) * Fraction(b) + Fraction(c):
            found.append(math.copysign(nearest(exact, x.dtype), exact))
        else:
            found.append(a * b + c if 0 in (a, b) else 0.0)
    return np.array(found).astype(x.dtype)
