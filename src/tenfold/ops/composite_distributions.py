"""Composite distributions: lazy operations on the draws of a key, which fuse with their readers.

Parameters are numbers or arrays, which broadcast with `size`. One out of range is a ValueError if
its value is known at the call; others give NaN or what the formula gives. NaN gives NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold._native import Array
from tenfold.core.op import SampleCall
from tenfold.core.op_decorators import derived
from tenfold.core.shape_rules import Shape, product
from tenfold.dtypes import INT64
from tenfold.ops.arithmetic import pow, square  # noqa: A004  # its public name
from tenfold.ops.cast import astype
from tenfold.ops.distributions import (
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

Formula = Callable[..., Array]
SECOND = VARIABLE_STREAMS
"""The first stream of a second variable."""
MAX_COUNTED_MEAN = 2.0**60
"""The mean from which a Poisson number has the relative deviation 2**-30."""
MAX_POISSON_MEAN = 2.0**63 - 10.0 * 2.0**31.5
"""NumPy's limit, 10 deviations below the end of int64."""


def _composite(formula: Formula, key: Any, draw: Any, size: Any, *parameters: Any) -> Array:
    """Return `formula(key, draw, size, *parameters)`. With numbers as parameters, rows that are
    shorter than a packet are made as one long row.
    """
    operands = operand(key, "key"), operand(draw, "draw number")
    values = [parameter(x) for x in parameters]
    lengths, arrays = with_all_axes(values, size, operands)
    if any(isinstance(x, Array) for x in (*operands, *arrays)) or not has_short_rows(lengths):
        return formula(*operands, lengths, *arrays)
    return reshape(formula(*operands, (product(lengths),), *arrays), lengths)


def _require(name: str, text: str, valid: Callable[..., Any], *parameters: Any) -> None:
    """Raise ValueError where known parameters are out of range."""
    refuse_out_of_range(name, text, valid, [parameter(x) for x in parameters])


def _is_finite(low: Any, high: Any) -> Any:
    return np.isfinite(np.subtract(high, low))


def _are_positive(*parameters: Any) -> Any:
    return np.logical_and.reduce(np.broadcast_arrays(*map(is_positive, parameters)))


def _poisson_float(key: Any, draw: Any, mean: Any, lengths: Shape, stream: int) -> Any:
    """Return numbers of the Poisson distribution as floats; a mean whose deviation is below its
    rounding, infinity and NaN stand for themselves.
    """
    if not isinstance(mean, Array):
        large = not mean < MAX_COUNTED_MEAN
        return mean if large else poisson(key, draw, mean, lengths, stream=stream)
    counted = mean < MAX_COUNTED_MEAN
    count = poisson(key, draw, where(counted, mean, 0.0), lengths, stream=stream)
    return where(counted, astype(count, mean.dtype), mean)


@derived(namespace="random", samples=[SampleCall((), {"size": (2, 3)}, (*SAMPLE_KEY, -1, 1))])
def uniform(
    key: int | Array,
    draw: int | Array,
    /,
    low: float | Array | Sequence[float] = 0.0,
    high: float | Array | Sequence[float] = 1.0,
    size: int | Shape | None = None,
) -> Array:
    """Return uniform numbers in [low, high).

    >>> import tenfold as tn
    >>> tn.random.uniform(1, 2, -1, 1, size=3).shape
    (3,)
    """

    def formula(key: Any, draw: Any, lengths: Shape, low: Any, high: Any) -> Array:
        return low + (high - low) * random(key, draw, lengths)

    ends = [parameter(low), parameter(high)]
    refuse_out_of_range("uniform", "high - low is finite", _is_finite, ends, OverflowError)
    _require(
        "uniform",
        "low <= high",
        lambda low, high: is_not_negative(np.subtract(high, low)),
        low,
        high,
    )
    return _composite(formula, key, draw, size, low, high)


@derived(namespace="random", samples=[SampleCall((), {"size": (2, 3)}, (*SAMPLE_KEY, 5, 2))])
def normal(
    key: int | Array,
    draw: int | Array,
    /,
    loc: float | Array | Sequence[float] = 0.0,
    scale: float | Array | Sequence[float] = 1.0,
    size: int | Shape | None = None,
) -> Array:
    """Return numbers of the normal distribution of mean `loc` and standard deviation `scale`.

    >>> import tenfold as tn
    >>> tn.random.normal(1, 2, 5, 2, size=3).shape
    (3,)
    """

    def formula(key: Any, draw: Any, lengths: Shape, loc: Any, scale: Any) -> Array:
        return loc + scale * standard_normal(key, draw, lengths)

    _require("normal", "scale >= 0", is_not_negative, scale)
    return _composite(formula, key, draw, size, loc, scale)


@derived(namespace="random", samples=[SampleCall((), {"size": (2, 3)}, (*SAMPLE_KEY, 0, 0.5))])
def lognormal(
    key: int | Array,
    draw: int | Array,
    /,
    mean: float | Array | Sequence[float] = 0.0,
    sigma: float | Array | Sequence[float] = 1.0,
    size: int | Shape | None = None,
) -> Array:
    """Return numbers whose logarithm is normal, of mean `mean` and standard deviation `sigma`.

    >>> import tenfold as tn
    >>> tn.random.lognormal(1, 2, 0, 0.5, size=3).shape
    (3,)
    """

    def formula(key: Any, draw: Any, lengths: Shape, mean: Any, sigma: Any) -> Array:
        return exp(mean + sigma * standard_normal(key, draw, lengths))

    _require("lognormal", "sigma >= 0", is_not_negative, sigma)
    return _composite(formula, key, draw, size, mean, sigma)


@derived(namespace="random", samples=[SampleCall((), {"size": (2, 3)}, (*SAMPLE_KEY, 2))])
def exponential(
    key: int | Array,
    draw: int | Array,
    /,
    scale: float | Array | Sequence[float] = 1.0,
    size: int | Shape | None = None,
) -> Array:
    """Return numbers of the exponential distribution of mean `scale`.

    >>> import tenfold as tn
    >>> tn.random.exponential(1, 2, 2, size=3).shape
    (3,)
    """

    def formula(key: Any, draw: Any, lengths: Shape, scale: Any) -> Array:
        return scale * standard_exponential(key, draw, lengths)

    _require("exponential", "scale >= 0", is_not_negative, scale)
    return _composite(formula, key, draw, size, scale)


@derived(namespace="random", samples=[SampleCall((), {"size": (2, 3)}, (*SAMPLE_KEY, 1, 2))])
def laplace(
    key: int | Array,
    draw: int | Array,
    /,
    loc: float | Array | Sequence[float] = 0.0,
    scale: float | Array | Sequence[float] = 1.0,
    size: int | Shape | None = None,
) -> Array:
    """Return numbers of Laplace's distribution: the difference of two exponential ones.

    >>> import tenfold as tn
    >>> tn.random.laplace(1, 2, 1, 2, size=3).shape
    (3,)
    """

    def formula(key: Any, draw: Any, lengths: Shape, loc: Any, scale: Any) -> Array:
        pair = [standard_exponential(key, draw, lengths, stream=s) for s in (0, SECOND)]
        return loc + scale * (pair[0] - pair[1])

    _require("laplace", "scale >= 0", is_not_negative, scale)
    return _composite(formula, key, draw, size, loc, scale)


@derived(namespace="random", samples=[SampleCall((), {"size": (2, 3)}, (*SAMPLE_KEY, 1, 2))])
def logistic(
    key: int | Array,
    draw: int | Array,
    /,
    loc: float | Array | Sequence[float] = 0.0,
    scale: float | Array | Sequence[float] = 1.0,
    size: int | Shape | None = None,
) -> Array:
    """Return numbers of the logistic distribution.

    >>> import tenfold as tn
    >>> tn.random.logistic(1, 2, 1, 2, size=3).shape
    (3,)
    """

    def formula(key: Any, draw: Any, lengths: Shape, loc: Any, scale: Any) -> Array:
        x = standard_exponential(key, draw, lengths)
        return loc + scale * log(expm1(x))

    _require("logistic", "scale >= 0", is_not_negative, scale)
    return _composite(formula, key, draw, size, loc, scale)


@derived(namespace="random", samples=[SampleCall((), {"size": (2, 3)}, (*SAMPLE_KEY, 1, 2))])
def gumbel(
    key: int | Array,
    draw: int | Array,
    /,
    loc: float | Array | Sequence[float] = 0.0,
    scale: float | Array | Sequence[float] = 1.0,
    size: int | Shape | None = None,
) -> Array:
    """Return numbers of Gumbel's distribution.

    >>> import tenfold as tn
    >>> tn.random.gumbel(1, 2, 1, 2, size=3).shape
    (3,)
    """

    def formula(key: Any, draw: Any, lengths: Shape, loc: Any, scale: Any) -> Array:
        return loc - scale * log(standard_exponential(key, draw, lengths))

    _require("gumbel", "scale >= 0", is_not_negative, scale)
    return _composite(formula, key, draw, size, loc, scale)


@derived(namespace="random", samples=[SampleCall((), {"size": (2, 3)}, (*SAMPLE_KEY, 3))])
def pareto(
    key: int | Array,
    draw: int | Array,
    /,
    a: float | Array | Sequence[float],
    size: int | Shape | None = None,
) -> Array:
    """Return numbers of the Pareto II (Lomax) distribution of shape `a`, from 0 on.

    >>> import tenfold as tn
    >>> tn.random.pareto(1, 2, 3, size=3).shape
    (3,)
    """

    def formula(key: Any, draw: Any, lengths: Shape, a: Any) -> Array:
        return expm1(standard_exponential(key, draw, lengths) / a)

    _require("pareto", "a > 0", is_positive, a)
    return _composite(formula, key, draw, size, a)


@derived(namespace="random", samples=[SampleCall((), {"size": (2, 3)}, (*SAMPLE_KEY, 3))])
def power(
    key: int | Array,
    draw: int | Array,
    /,
    a: float | Array | Sequence[float],
    size: int | Shape | None = None,
) -> Array:
    """Return numbers in [0, 1] with density a x**(a - 1).

    >>> import tenfold as tn
    >>> tn.random.power(1, 2, 3, size=3).shape
    (3,)
    """

    def formula(key: Any, draw: Any, lengths: Shape, a: Any) -> Array:
        return pow(-expm1(-standard_exponential(key, draw, lengths)), 1.0 / a)

    _require("power", "a > 0", is_positive, a)
    return _composite(formula, key, draw, size, a)


@derived(namespace="random", samples=[SampleCall((), {"size": (2, 3)}, (*SAMPLE_KEY, 2))])
def rayleigh(
    key: int | Array,
    draw: int | Array,
    /,
    scale: float | Array | Sequence[float] = 1.0,
    size: int | Shape | None = None,
) -> Array:
    """Return numbers of Rayleigh's distribution of mode `scale`.

    >>> import tenfold as tn
    >>> tn.random.rayleigh(1, 2, 2, size=3).shape
    (3,)
    """

    def formula(key: Any, draw: Any, lengths: Shape, scale: Any) -> Array:
        return scale * sqrt(2.0 * standard_exponential(key, draw, lengths))

    _require("rayleigh", "scale >= 0", is_not_negative, scale)
    return _composite(formula, key, draw, size, scale)


@derived(namespace="random", samples=[SampleCall((), {"size": (2, 3)}, (*SAMPLE_KEY, 2))])
def weibull(
    key: int | Array,
    draw: int | Array,
    /,
    a: float | Array | Sequence[float],
    size: int | Shape | None = None,
) -> Array:
    """Return numbers of Weibull's distribution of shape `a` and scale 1.

    >>> import tenfold as tn
    >>> tn.random.weibull(1, 2, 2, size=3).shape
    (3,)
    """

    def formula(key: Any, draw: Any, lengths: Shape, a: Any) -> Array:
        numbers = standard_exponential(key, draw, lengths)
        if isinstance(a, Array):
            return where(a == 0.0, 0.0, pow(numbers, 1.0 / a))
        return pow(numbers, 1.0 / a) if a else numbers * 0.0

    _require("weibull", "a >= 0", is_not_negative, a)
    return _composite(formula, key, draw, size, a)


@derived(namespace="random", samples=[SampleCall((), {"size": (2, 3)}, SAMPLE_KEY)])
def standard_cauchy(
    key: int | Array,
    draw: int | Array,
    /,
    size: int | Shape | None = None,
) -> Array:
    """Return numbers of Cauchy's distribution: the quotient of two normal ones.

    >>> import tenfold as tn
    >>> tn.random.standard_cauchy(1, 2, size=3).shape
    (3,)
    """

    def formula(key: Any, draw: Any, lengths: Shape) -> Array:
        pair = [standard_normal(key, draw, lengths, stream=s) for s in (0, SECOND)]
        return pair[0] / pair[1]

    return _composite(formula, key, draw, size)


@derived(namespace="random", samples=[SampleCall((), {"size": (2, 3)}, (*SAMPLE_KEY, 0, 1, 3))])
def triangular(
    key: int | Array,
    draw: int | Array,
    /,
    left: float | Array | Sequence[float],
    mode: float | Array | Sequence[float],
    right: float | Array | Sequence[float],
    size: int | Shape | None = None,
) -> Array:
    """Return numbers of the triangular distribution over [left, right].

    >>> import tenfold as tn
    >>> tn.random.triangular(1, 2, 0, 1, 3, size=3).shape
    (3,)
    """

    def formula(key: Any, draw: Any, lengths: Shape, left: Any, mode: Any, right: Any) -> Array:
        u, width = random(key, draw, lengths), right - left
        rising = left + sqrt(u * (width * (mode - left)))
        falling = right - sqrt((1.0 - u) * (width * (right - mode)))
        return where(u * width < mode - left, rising, falling)

    _require(
        "triangular",
        "left <= mode, mode <= right, left < right",
        lambda left, mode, right: (
            ~(np.greater(left, mode) | np.greater(mode, right) | np.equal(left, right))
        ),
        left,
        mode,
        right,
    )
    return _composite(formula, key, draw, size, left, mode, right)


@derived(namespace="random", samples=[SampleCall((), {"size": (2, 3)}, (*SAMPLE_KEY, 0.3))])
def geometric(
    key: int | Array,
    draw: int | Array,
    /,
    p: float | Array | Sequence[float],
    size: int | Shape | None = None,
) -> Array:
    """Return the trials up to the first success, of probability `p` each: int64, from 1 on.

    >>> import tenfold as tn
    >>> tn.random.geometric(1, 2, 0.3, size=3).shape
    (3,)
    """

    def formula(key: Any, draw: Any, lengths: Shape, p: Any) -> Array:
        count = ceil(standard_exponential(key, draw, lengths) / -log1p(-p))
        return astype(maximum(count, 1.0), INT64)

    _require("geometric", "p > 0, p <= 1", lambda p: (np.asarray(p) > 0) & (p <= 1), p)
    return _composite(formula, key, draw, size, p)


@derived(namespace="random", samples=[SampleCall((), {"size": (2, 3)}, (*SAMPLE_KEY, 2.5, 2))])
def gamma(
    key: int | Array,
    draw: int | Array,
    /,
    shape: float | Array | Sequence[float],
    scale: float | Array | Sequence[float] = 1.0,
    size: int | Shape | None = None,
) -> Array:
    """Return numbers of the gamma distribution.

    >>> import tenfold as tn
    >>> tn.random.gamma(1, 2, 2.5, 2, size=3).shape
    (3,)
    """

    def formula(key: Any, draw: Any, lengths: Shape, shape: Any, scale: Any) -> Array:
        return scale * standard_gamma(key, draw, shape, lengths)

    _require("gamma", "scale >= 0", is_not_negative, scale)
    return _composite(formula, key, draw, size, shape, scale)


@derived(namespace="random", samples=[SampleCall((), {"size": (2, 3)}, (*SAMPLE_KEY, 3))])
def chisquare(
    key: int | Array,
    draw: int | Array,
    /,
    df: float | Array | Sequence[float],
    size: int | Shape | None = None,
) -> Array:
    """Return numbers of the chi-square distribution with `df` degrees of freedom.

    >>> import tenfold as tn
    >>> tn.random.chisquare(1, 2, 3, size=3).shape
    (3,)
    """

    def formula(key: Any, draw: Any, lengths: Shape, df: Any) -> Array:
        return 2.0 * standard_gamma(key, draw, df * 0.5, lengths)

    _require("chisquare", "df > 0", is_positive, df)
    return _composite(formula, key, draw, size, df)


@derived(namespace="random", samples=[SampleCall((), {"size": (2, 3)}, (*SAMPLE_KEY, 3, 5))])
def f(
    key: int | Array,
    draw: int | Array,
    /,
    dfnum: float | Array | Sequence[float],
    dfden: float | Array | Sequence[float],
    size: int | Shape | None = None,
) -> Array:
    """Return numbers of Fisher's F distribution.

    >>> import tenfold as tn
    >>> tn.random.f(1, 2, 3, 5, size=3).shape
    (3,)
    """

    def formula(key: Any, draw: Any, lengths: Shape, dfnum: Any, dfden: Any) -> Array:
        numerator = standard_gamma(key, draw, dfnum * 0.5, lengths)
        denominator = standard_gamma(key, draw, dfden * 0.5, lengths, stream=SECOND)
        return (numerator * dfden) / (denominator * dfnum)

    _require("f", "dfnum > 0, dfden > 0", _are_positive, dfnum, dfden)
    return _composite(formula, key, draw, size, dfnum, dfden)


@derived(namespace="random", samples=[SampleCall((), {"size": (2, 3)}, (*SAMPLE_KEY, 5))])
def standard_t(
    key: int | Array,
    draw: int | Array,
    /,
    df: float | Array | Sequence[float],
    size: int | Shape | None = None,
) -> Array:
    """Return numbers of Student's t distribution with `df` degrees of freedom.

    >>> import tenfold as tn
    >>> tn.random.standard_t(1, 2, 5, size=3).shape
    (3,)
    """

    def formula(key: Any, draw: Any, lengths: Shape, df: Any) -> Array:
        chi = standard_gamma(key, draw, df * 0.5, lengths, stream=SECOND)
        return standard_normal(key, draw, lengths) * sqrt(df * 0.5 / chi)

    _require("standard_t", "df > 0", is_positive, df)
    return _composite(formula, key, draw, size, df)


@derived(namespace="random", samples=[SampleCall((), {"size": (2, 3)}, (*SAMPLE_KEY, 2, 3))])
def wald(
    key: int | Array,
    draw: int | Array,
    /,
    mean: float | Array | Sequence[float],
    scale: float | Array | Sequence[float],
    size: int | Shape | None = None,
) -> Array:
    """Return numbers of the inverse Gaussian distribution (Michael, Schucany, Haas 1976).

    >>> import tenfold as tn
    >>> tn.random.wald(1, 2, 2, 3, size=3).shape
    (3,)
    """

    def formula(key: Any, draw: Any, lengths: Shape, mean: Any, scale: Any) -> Array:
        t = square(standard_normal(key, draw, lengths)) * mean / scale
        u = random(key, draw, lengths, stream=SECOND)
        root = square(sqrt(4.0 + t) + sqrt(t)) * 0.25  # of the smaller solution: no difference
        return where(u * (1.0 + 1.0 / root) <= 1.0, mean / root, mean * root)

    _require("wald", "mean > 0, scale > 0", _are_positive, mean, scale)
    return _composite(formula, key, draw, size, mean, scale)


@derived(namespace="random", samples=[SampleCall((), {"size": (2, 3)}, (*SAMPLE_KEY, 3, 0.4))])
def negative_binomial(
    key: int | Array,
    draw: int | Array,
    /,
    n: float | Array | Sequence[float],
    p: float | Array | Sequence[float],
    size: int | Shape | None = None,
) -> Array:
    """Return the failures before `n` successes, of probability `p` each: int64.

    >>> import tenfold as tn
    >>> tn.random.negative_binomial(1, 2, 3, 0.4, size=3).shape
    (3,)
    """

    def formula(key: Any, draw: Any, lengths: Shape, n: Any, p: Any) -> Array:
        mean = standard_gamma(key, draw, n, lengths, stream=SECOND) * ((1.0 - p) / p)
        return poisson(key, draw, mean, lengths)

    _require(
        "negative_binomial",
        "n > 0, 0 < p <= 1, and n (1 - p) / p fits in int64",
        lambda n, p: (
            (np.asarray(n) > 0)
            & (np.asarray(p) > 0)
            & (p <= 1)
            & ((1.0 - p) / np.where(p, p, 1.0) * (n + 10.0 * np.sqrt(n)) <= MAX_POISSON_MEAN)
        ),
        n,
        p,
    )
    return _composite(formula, key, draw, size, n, p)


@derived(namespace="random", samples=[SampleCall((), {"size": (2, 3)}, (*SAMPLE_KEY, 3, 2))])
def noncentral_chisquare(
    key: int | Array,
    draw: int | Array,
    /,
    df: float | Array | Sequence[float],
    nonc: float | Array | Sequence[float],
    size: int | Shape | None = None,
) -> Array:
    """Return numbers of the noncentral chi-square distribution: a Poisson mixture of central ones.

    >>> import tenfold as tn
    >>> tn.random.noncentral_chisquare(1, 2, 3, 2, size=3).shape
    (3,)
    """

    def formula(key: Any, draw: Any, lengths: Shape, df: Any, nonc: Any) -> Array:
        count = _poisson_float(key, draw, nonc * 0.5, lengths, SECOND)
        return 2.0 * standard_gamma(key, draw, df * 0.5 + count, lengths)

    _require(
        "noncentral_chisquare",
        "df > 0, nonc >= 0",
        lambda df, nonc: is_positive(df) & is_not_negative(nonc),
        df,
        nonc,
    )
    return _composite(formula, key, draw, size, df, nonc)


@derived(namespace="random", samples=[SampleCall((), {"size": (2, 3)}, (*SAMPLE_KEY, 3, 5, 2))])
def noncentral_f(
    key: int | Array,
    draw: int | Array,
    /,
    dfnum: float | Array | Sequence[float],
    dfden: float | Array | Sequence[float],
    nonc: float | Array | Sequence[float],
    size: int | Shape | None = None,
) -> Array:
    """Return numbers of the noncentral F distribution.

    >>> import tenfold as tn
    >>> tn.random.noncentral_f(1, 2, 3, 5, 2, size=3).shape
    (3,)
    """

    def formula(key: Any, draw: Any, lengths: Shape, dfnum: Any, dfden: Any, nonc: Any) -> Array:
        count = _poisson_float(key, draw, nonc * 0.5, lengths, 2 * SECOND)
        numerator = standard_gamma(key, draw, dfnum * 0.5 + count, lengths)
        denominator = standard_gamma(key, draw, dfden * 0.5, lengths, stream=SECOND)
        return (numerator * dfden) / (denominator * dfnum)

    _require(
        "noncentral_f",
        "dfnum > 0, dfden > 0, nonc >= 0",
        lambda dfnum, dfden, nonc: _are_positive(dfnum, dfden) & is_not_negative(nonc),
        dfnum,
        dfden,
        nonc,
    )
    return _composite(formula, key, draw, size, dfnum, dfden, nonc)
