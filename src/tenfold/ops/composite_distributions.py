"""Composite distributions: lazy operations on the draws of a key, which fuse with their readers.

Parameters are numbers or arrays, which broadcast with `size`. One out of range is a ValueError if
its value is known at the call; others give NaN or what the formula gives. NaN gives NaN.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tenfold._native import Array
from tenfold.core.op import Derived, P, SampleCall
from tenfold.core.op_decorators import binder, derived
from tenfold.core.shape_rules import product
from tenfold.dtypes import FLOAT64, INT64, kind_of
from tenfold.errors import DTypeError
from tenfold.ops.arithmetic import pow, square  # noqa: A004  # its public name
from tenfold.ops.cast import astype
from tenfold.ops.distributions import (
    Parameter,
    is_not_negative,
    is_positive,
    parameter,
    poisson,
    refuse_out_of_range,
    standard_gamma,
)
from tenfold.ops.elementary import exp, expm1, log, log1p, sqrt
from tenfold.ops.philox import SAMPLE_KEY
from tenfold.ops.random import (
    Integer,
    Size,
    has_short_rows,
    operand,
    random,
    standard_exponential,
    standard_normal,
    with_all_axes,
)
from tenfold.ops.rejection import VARIABLE_STREAMS
from tenfold.ops.reshaping import reshape
from tenfold.ops.rounding import ceil
from tenfold.ops.selection import maximum, where

SECOND = VARIABLE_STREAMS
"""The first stream of a second variable."""
MAX_COUNTED_MEAN = 2.0**60
"""The mean from which a Poisson number has the relative deviation 2**-30."""
MAX_POISSON_MEAN = 2.0**63 - 10.0 * 2.0**31.5
"""NumPy's limit, 10 deviations below the end of int64."""


class Range(NamedTuple):
    """The range of some parameters, which is checked at the call if their values are known."""

    text: str
    valid: Callable[..., Any]
    names: str
    """The parameters that `valid` takes."""
    error: type[Exception] = ValueError


def _real_parameter(value: Any, name: str) -> Any:
    value = parameter(value)
    if isinstance(value, complex) or (isinstance(value, Array) and kind_of(value.dtype) == "c"):
        raise DTypeError(name, "a parameter is complex", remedy="take its real part")
    return value


def _as_float(value: Any) -> Any:
    """Return a parameter whose elements are float64: formulas in integers would overflow."""
    return astype(value, FLOAT64) if isinstance(value, Array) else value


def _of_floats(valid: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *values: valid(*[np.asarray(value, FLOAT64) for value in values])


def _composite(
    *ranges: Range, values: tuple[Any, ...]
) -> Callable[[Callable[P, Array]], Derived[P]]:
    """Declare a distribution by its formula, which gets numbers or arrays with all axes, and the
    shape of the result. `values` are parameters for the samples of tests.

    With numbers as parameters, rows that are shorter than a packet are made as one long row.
    """

    def declare(function: Callable[P, Array]) -> Derived[P]:
        formula: Callable[..., Array] = function
        bound_arguments = binder(formula)

        @functools.wraps(function)
        def draws(*args: P.args, **kwargs: P.kwargs) -> Array:
            arguments = bound_arguments(args, kwargs).arguments
            key, draw, *given, size = arguments.values()
            operands = operand(key, "key"), operand(draw, "draw number")
            parameters = [_real_parameter(x, formula.__name__) for x in given]
            by_name = dict(zip([*arguments][2:], parameters, strict=False))
            for text, valid, checked, error in ranges:
                known = [by_name[name] for name in checked.split()]
                refuse_out_of_range(formula.__name__, text, _of_floats(valid), known, error)
            lengths, arrays = with_all_axes([*map(_as_float, parameters)], size, operands)
            is_array = any(isinstance(x, Array) for x in (*operands, *arrays))
            if is_array or not has_short_rows(lengths):
                return formula(*operands, *arrays, lengths)
            return reshape(formula(*operands, *arrays, (product(lengths),)), lengths)

        sample = SampleCall((), {"size": (2, 3)}, (*SAMPLE_KEY, *values))
        return derived(namespace="random", samples=[sample])(draws)

    return declare


def _is_finite(low: Any, high: Any) -> Any:
    return np.isfinite(np.subtract(high, low))


def _are_positive(*parameters: Any) -> Any:
    return np.logical_and.reduce(np.broadcast_arrays(*map(is_positive, parameters)))


def _poisson_float(key: Integer, draw: Integer, mean: Any, lengths: Size, stream: int) -> Any:
    """Return numbers of the Poisson distribution as floats; a mean whose deviation is below its
    rounding, infinity and NaN stand for themselves.
    """
    if not isinstance(mean, Array):
        large = not mean < MAX_COUNTED_MEAN
        return mean if large else poisson(key, draw, mean, lengths, stream=stream)
    counted = mean < MAX_COUNTED_MEAN
    count = poisson(key, draw, where(counted, mean, 0.0), lengths, stream=stream)
    return where(counted, astype(count, mean.dtype), mean)


SCALE_RANGE = Range("scale >= 0", is_not_negative, "scale")


@_composite(
    Range("high - low is finite", _is_finite, "low high", OverflowError),
    Range("low <= high", lambda low, high: is_not_negative(np.subtract(high, low)), "low high"),
    values=(-1, 1),
)
def uniform(
    key: Integer, draw: Integer, /, low: Parameter = 0.0, high: Parameter = 1.0, size: Size = None
) -> Array:
    """Return uniform numbers in [low, high).

    >>> import tenfold as tn
    >>> tn.random.uniform(1, 2, -1, 1, size=3).shape
    (3,)
    """
    return low + (high - low) * random(key, draw, size)


@_composite(SCALE_RANGE, values=(5, 2))
def normal(
    key: Integer, draw: Integer, /, loc: Parameter = 0.0, scale: Parameter = 1.0, size: Size = None
) -> Array:
    """Return numbers of the normal distribution of mean `loc` and standard deviation `scale`.

    >>> import tenfold as tn
    >>> tn.random.normal(1, 2, 5, 2, size=3).shape
    (3,)
    """
    return loc + scale * standard_normal(key, draw, size)


@_composite(Range("sigma >= 0", is_not_negative, "sigma"), values=(0, 0.5))
def lognormal(
    key: Integer, draw: Integer, /, mean: Parameter = 0.0, sigma: Parameter = 1.0, size: Size = None
) -> Array:
    """Return numbers whose logarithm is normal, of mean `mean` and standard deviation `sigma`.

    >>> import tenfold as tn
    >>> tn.random.lognormal(1, 2, 0, 0.5, size=3).shape
    (3,)
    """
    return exp(mean + sigma * standard_normal(key, draw, size))


@_composite(SCALE_RANGE, values=(2,))
def exponential(key: Integer, draw: Integer, /, scale: Parameter = 1.0, size: Size = None) -> Array:
    """Return numbers of the exponential distribution of mean `scale`.

    >>> import tenfold as tn
    >>> tn.random.exponential(1, 2, 2, size=3).shape
    (3,)
    """
    return scale * standard_exponential(key, draw, size)


@_composite(SCALE_RANGE, values=(1, 2))
def laplace(
    key: Integer, draw: Integer, /, loc: Parameter = 0.0, scale: Parameter = 1.0, size: Size = None
) -> Array:
    """Return numbers of Laplace's distribution: the difference of two exponential ones.

    >>> import tenfold as tn
    >>> tn.random.laplace(1, 2, 1, 2, size=3).shape
    (3,)
    """
    pair = [standard_exponential(key, draw, size, stream=s) for s in (0, SECOND)]
    return loc + scale * (pair[0] - pair[1])


@_composite(SCALE_RANGE, values=(1, 2))
def logistic(
    key: Integer, draw: Integer, /, loc: Parameter = 0.0, scale: Parameter = 1.0, size: Size = None
) -> Array:
    """Return numbers of the logistic distribution.

    >>> import tenfold as tn
    >>> tn.random.logistic(1, 2, 1, 2, size=3).shape
    (3,)
    """
    x = standard_exponential(key, draw, size)
    return loc + scale * log(expm1(x))


@_composite(SCALE_RANGE, values=(1, 2))
def gumbel(
    key: Integer, draw: Integer, /, loc: Parameter = 0.0, scale: Parameter = 1.0, size: Size = None
) -> Array:
    """Return numbers of Gumbel's distribution.

    >>> import tenfold as tn
    >>> tn.random.gumbel(1, 2, 1, 2, size=3).shape
    (3,)
    """
    return loc - scale * log(standard_exponential(key, draw, size))


@_composite(Range("a > 0", is_positive, "a"), values=(3,))
def pareto(key: Integer, draw: Integer, /, a: Parameter, size: Size = None) -> Array:
    """Return numbers of the Pareto II (Lomax) distribution of shape `a`, from 0 on.

    >>> import tenfold as tn
    >>> tn.random.pareto(1, 2, 3, size=3).shape
    (3,)
    """
    return expm1(standard_exponential(key, draw, size) / a)


@_composite(Range("a > 0", is_positive, "a"), values=(3,))
def power(key: Integer, draw: Integer, /, a: Parameter, size: Size = None) -> Array:
    """Return numbers in [0, 1] with density a x**(a - 1).

    >>> import tenfold as tn
    >>> tn.random.power(1, 2, 3, size=3).shape
    (3,)
    """
    return pow(-expm1(-standard_exponential(key, draw, size)), 1.0 / a)


@_composite(SCALE_RANGE, values=(2,))
def rayleigh(key: Integer, draw: Integer, /, scale: Parameter = 1.0, size: Size = None) -> Array:
    """Return numbers of Rayleigh's distribution of mode `scale`.

    >>> import tenfold as tn
    >>> tn.random.rayleigh(1, 2, 2, size=3).shape
    (3,)
    """
    return scale * sqrt(2.0 * standard_exponential(key, draw, size))


@_composite(Range("a >= 0", is_not_negative, "a"), values=(2,))
def weibull(key: Integer, draw: Integer, /, a: Parameter, size: Size = None) -> Array:
    """Return numbers of Weibull's distribution of shape `a` and scale 1.

    >>> import tenfold as tn
    >>> tn.random.weibull(1, 2, 2, size=3).shape
    (3,)
    """
    numbers = standard_exponential(key, draw, size)
    if isinstance(a, Array):
        return where(a == 0.0, 0.0, pow(numbers, 1.0 / a))
    return pow(numbers, 1.0 / a) if a else numbers * 0.0


@_composite(values=())
def standard_cauchy(key: Integer, draw: Integer, /, size: Size = None) -> Array:
    """Return numbers of Cauchy's distribution: the quotient of two normal ones.

    >>> import tenfold as tn
    >>> tn.random.standard_cauchy(1, 2, size=3).shape
    (3,)
    """
    pair = [standard_normal(key, draw, size, stream=s) for s in (0, SECOND)]
    return pair[0] / pair[1]


@_composite(
    Range(
        "left <= mode, mode <= right, left < right",
        lambda left, mode, right: (
            ~(np.greater(left, mode) | np.greater(mode, right) | np.equal(left, right))
        ),
        "left mode right",
    ),
    values=(0, 1, 3),
)
def triangular(
    key: Integer,
    draw: Integer,
    /,
    left: Parameter,
    mode: Parameter,
    right: Parameter,
    size: Size = None,
) -> Array:
    """Return numbers of the triangular distribution over [left, right].

    >>> import tenfold as tn
    >>> tn.random.triangular(1, 2, 0, 1, 3, size=3).shape
    (3,)
    """
    u, width = random(key, draw, size), right - left
    rising = left + sqrt(u * (width * (mode - left)))
    falling = right - sqrt((1.0 - u) * (width * (right - mode)))
    return where(u * width < mode - left, rising, falling)


@_composite(Range("p > 0, p <= 1", lambda p: (np.asarray(p) > 0) & (p <= 1), "p"), values=(0.3,))
def geometric(key: Integer, draw: Integer, /, p: Parameter, size: Size = None) -> Array:
    """Return the trials up to the first success, of probability `p` each: int64, from 1 on.

    >>> import tenfold as tn
    >>> tn.random.geometric(1, 2, 0.3, size=3).shape
    (3,)
    """
    count = ceil(standard_exponential(key, draw, size) / -log1p(-p))
    return astype(maximum(count, 1.0), INT64)


@_composite(SCALE_RANGE, values=(2.5, 2))
def gamma(
    key: Integer, draw: Integer, /, shape: Parameter, scale: Parameter = 1.0, size: Size = None
) -> Array:
    """Return numbers of the gamma distribution.

    >>> import tenfold as tn
    >>> tn.random.gamma(1, 2, 2.5, 2, size=3).shape
    (3,)
    """
    return scale * standard_gamma(key, draw, shape, size)


@_composite(Range("df > 0", is_positive, "df"), values=(3,))
def chisquare(key: Integer, draw: Integer, /, df: Parameter, size: Size = None) -> Array:
    """Return numbers of the chi-square distribution with `df` degrees of freedom.

    >>> import tenfold as tn
    >>> tn.random.chisquare(1, 2, 3, size=3).shape
    (3,)
    """
    return 2.0 * standard_gamma(key, draw, df * 0.5, size)


@_composite(Range("dfnum > 0, dfden > 0", _are_positive, "dfnum dfden"), values=(3, 5))
def f(
    key: Integer, draw: Integer, /, dfnum: Parameter, dfden: Parameter, size: Size = None
) -> Array:
    """Return numbers of Fisher's F distribution.

    >>> import tenfold as tn
    >>> tn.random.f(1, 2, 3, 5, size=3).shape
    (3,)
    """
    numerator = standard_gamma(key, draw, dfnum * 0.5, size)
    denominator = standard_gamma(key, draw, dfden * 0.5, size, stream=SECOND)
    return (numerator * dfden) / (denominator * dfnum)


@_composite(Range("df > 0", is_positive, "df"), values=(5,))
def standard_t(key: Integer, draw: Integer, /, df: Parameter, size: Size = None) -> Array:
    """Return numbers of Student's t distribution with `df` degrees of freedom.

    >>> import tenfold as tn
    >>> tn.random.standard_t(1, 2, 5, size=3).shape
    (3,)
    """
    chi = standard_gamma(key, draw, df * 0.5, size, stream=SECOND)
    return standard_normal(key, draw, size) * sqrt(df * 0.5 / chi)


@_composite(Range("mean > 0, scale > 0", _are_positive, "mean scale"), values=(2, 3))
def wald(
    key: Integer, draw: Integer, /, mean: Parameter, scale: Parameter, size: Size = None
) -> Array:
    """Return numbers of the inverse Gaussian distribution (Michael, Schucany, Haas 1976).

    >>> import tenfold as tn
    >>> tn.random.wald(1, 2, 2, 3, size=3).shape
    (3,)
    """
    t = square(standard_normal(key, draw, size)) * mean / scale
    u = random(key, draw, size, stream=SECOND)
    root = square(sqrt(4.0 + t) + sqrt(t)) * 0.25  # of the smaller solution: no difference
    return where(u * (1.0 + 1.0 / root) <= 1.0, mean / root, mean * root)


@_composite(
    Range(
        "n > 0, 0 < p <= 1, and n (1 - p) / p fits in int64",
        lambda n, p: (
            (np.asarray(n) > 0)
            & (np.asarray(p) > 0)
            & (p <= 1)
            & ((1.0 - p) / np.where(p, p, 1.0) * (n + 10.0 * np.sqrt(n)) <= MAX_POISSON_MEAN)
        ),
        "n p",
    ),
    values=(3, 0.4),
)
def negative_binomial(
    key: Integer, draw: Integer, /, n: Parameter, p: Parameter, size: Size = None
) -> Array:
    """Return the failures before `n` successes, of probability `p` each: int64.

    >>> import tenfold as tn
    >>> tn.random.negative_binomial(1, 2, 3, 0.4, size=3).shape
    (3,)
    """
    mean = standard_gamma(key, draw, n, size, stream=SECOND) * ((1.0 - p) / p)
    return poisson(key, draw, mean, size)


@_composite(
    Range("df > 0, nonc >= 0", lambda df, nonc: is_positive(df) & is_not_negative(nonc), "df nonc"),
    values=(3, 2),
)
def noncentral_chisquare(
    key: Integer, draw: Integer, /, df: Parameter, nonc: Parameter, size: Size = None
) -> Array:
    """Return numbers of the noncentral chi-square distribution: a Poisson mixture of central ones.

    >>> import tenfold as tn
    >>> tn.random.noncentral_chisquare(1, 2, 3, 2, size=3).shape
    (3,)
    """
    count = _poisson_float(key, draw, nonc * 0.5, size, SECOND)
    return 2.0 * standard_gamma(key, draw, df * 0.5 + count, size)


@_composite(
    Range(
        "dfnum > 0, dfden > 0, nonc >= 0",
        lambda dfnum, dfden, nonc: _are_positive(dfnum, dfden) & is_not_negative(nonc),
        "dfnum dfden nonc",
    ),
    values=(3, 5, 2),
)
def noncentral_f(
    key: Integer,
    draw: Integer,
    /,
    dfnum: Parameter,
    dfden: Parameter,
    nonc: Parameter,
    size: Size = None,
) -> Array:
    """Return numbers of the noncentral F distribution.

    >>> import tenfold as tn
    >>> tn.random.noncentral_f(1, 2, 3, 5, 2, size=3).shape
    (3,)
    """
    count = _poisson_float(key, draw, nonc * 0.5, size, 2 * SECOND)
    numerator = standard_gamma(key, draw, dfnum * 0.5 + count, size)
    denominator = standard_gamma(key, draw, dfden * 0.5, size, stream=SECOND)
    return (numerator * dfden) / (denominator * dfnum)
