"""Distributions by rejection: lazy calls of NumPy (`ops/rejection.py`), on the draws of a key.

Parameters are numbers or arrays, which broadcast with `size`. One out of range is a ValueError: at
the call for numbers, at the wait for arrays. Stream s numbers the variables of a composite number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tenfold._native import Array, Type
from tenfold.core.op import BoundCall, Inferred, SampleCall
from tenfold.core.op_decorators import array, derived, operation
from tenfold.core.shape_rules import Shape
from tenfold.dtypes import FLOAT64, INT64
from tenfold.errors import ShapeError, message
from tenfold.ops import philox, rejection
from tenfold.ops.bounds_checks import known_values
from tenfold.ops.gamma_derivatives import gamma_slope
from tenfold.ops.random import (
    Integer,
    Size,
    array_operand,
    checked_stream,
    draw_members,
    draw_rule,
    element_size,
    operand,
    random,
    with_all_axes,
)
from tenfold.ops.reduce import sum as sum_
from tenfold.ops.rejection import Elements
from tenfold.ops.reshaping import reshape
from tenfold.ops.sorting import searchsorted
from tenfold.settings import checked_device

Parameter = Any
"""A number, an Array, or a sequence of numbers."""
SUM_ERROR = 1e-12
"""How far beyond 1 rounding may take the sum of probabilities."""


@dataclass(frozen=True)
class Sampler:
    """A distribution by rejection: the fields of its operation, and the binding of its calls."""

    name: str
    sample: Callable[..., np.ndarray]
    """From the elements and their parameters to their numbers."""
    valid: Callable[..., Any]
    """Whether parameters are in range, elementwise."""
    range_text: str
    values: tuple[Any, ...]
    """Parameters, for the samples of tests."""
    dtype: np.dtype = FLOAT64
    count: int = 1
    """The indices that an element takes."""
    rows: bool = False
    """Whether its numbers are rows of the last axis, which depend on each other."""

    @property
    def facts(self) -> dict[str, Any]:
        """The fields of the operation."""
        key = 20260101, 77777
        return {
            "namespace": "random",
            "rule": self.rule,
            "reference": self.reference,
            "batch": draw_members,
            "rebind": self.rebind,
            "portable": True,
            "creates": True,
            "can_fail": True,
            "remedy": f"give parameters in range: {self.range_text}",
            "samples": [SampleCall((), {"size": n}, (*key, *self.values)) for n in (7, (2, 3), 0)],
        }

    @property
    def derived_facts(self) -> dict[str, Any]:
        """The fields of a function that takes other ways for some parameters."""
        return {name: self.facts[name] for name in ("namespace", "samples")}

    def rule(self, types: tuple[Type, ...], size: Shape, *params: Any) -> Inferred:
        """Infer: key and draw are integers, the parameters float64."""
        result = draw_rule(types[:2], size, *params)
        return Inferred(result.results, (INT64, INT64, *[FLOAT64] * (len(types) - 2)))

    def reference(self, key: np.ndarray, draw: np.ndarray, *args: Any) -> np.ndarray:
        """Compute the numbers; the parameters are arrays with all axes, or 0-d for each key."""
        *parameters, size, stream, _, _ = args
        lead = np.broadcast_shapes(key.shape, draw.shape)
        aligned = [
            x.reshape(x.shape + (1,) * len(size)) if x.ndim <= len(lead) else x for x in parameters
        ]
        flat: list[np.ndarray] = [np.broadcast_to(x, lead + size).reshape(-1) for x in aligned]
        if not np.all(self.valid(*flat)):
            raise ValueError(f"parameters out of range: {self.range_text}")
        elements = Elements(key, draw, size, stream, self.count)
        if self.rows:
            flat = [x.reshape(-1, size[-1]) if x.size else x.reshape(0, size[-1]) for x in flat]
        with np.errstate(all="ignore"):
            return self.sample(elements, *flat).reshape(lead + size)

    def bind(
        self, key: Any, draw: Any, parameters: tuple[Any, ...], size: Any, stream: int
    ) -> BoundCall:
        """Bind a call; raise ValueError for known parameters out of range."""
        operands = [operand(key, "key"), operand(draw, "draw number")]
        values = [parameter(x) for x in parameters]
        if self.rows:
            size = _size_of_rows(values, size)
        refuse_out_of_range(self.name, self.range_text, self.valid, values)
        lengths, arrays = with_all_axes(values, size, operands)
        params = lengths, checked_stream(stream), self.dtype, checked_device(None)
        return BoundCall((*operands, *arrays), params)

    def rebind(self, key: Any, draw: Any, *rest: Any) -> BoundCall:
        """Bind the operands and params of a call again."""
        *parameters, size, stream, _, _ = rest
        return self.bind(key, draw, tuple(parameters), size[:-1] if self.rows else size, stream)


def is_positive(x: Any) -> Any:
    """Whether parameters are above 0, or NaN, which is the result then, as in NumPy."""
    return (np.asarray(x) > 0) | np.isnan(x)


def is_not_negative(x: Any) -> Any:
    """Whether parameters are 0, above, or NaN; -0.0 is negative, as in NumPy."""
    return ~np.signbit(np.asarray(x, np.float64)) | np.isnan(x)


def refuse_out_of_range(
    name: str,
    range_text: str,
    valid: Callable[..., Any],
    parameters: Sequence[Any],
    error: type[Exception] = ValueError,
) -> None:
    """Raise the error if the values of all parameters are known, and one is out of range."""
    values: list[Any] = [known_values(x) if isinstance(x, Array) else x for x in parameters]
    if any(x is None for x in values):
        return
    shapes = [np.shape(x) for x in values]
    with np.errstate(all="ignore"):
        if any(shapes) and not _broadcast(shapes):
            return  # an error of its own
        if not np.all(valid(*values)):
            rule = f"parameters out of range: {range_text}"
            raise error(message(name, rule, (), "give numbers in that range"))


def _broadcast(shapes: Sequence[Shape]) -> bool:
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return True


def _size_of_rows(parameters: Sequence[Any], size: Any) -> Shape:
    """Return the size of rows: `size`, then the length of the parameter that has an axis."""
    lengths = [x.shape[-1] for x in parameters if isinstance(x, Array) and x.ndim]
    if not lengths:
        raise ShapeError("", "no parameter has an axis", remedy="give a list, one for each outcome")
    return (*element_size(size), lengths[0])


def parameter(value: Any) -> Any:
    """Return a parameter as a Python number or an Array."""
    if isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    return array_operand(value)


def _is_sample(good: Any, bad: Any, sample: Any) -> Any:
    return (good >= 0) & (bad >= 0) & (sample >= 0) & (sample <= good + bad)


def _aligned(x: Any, y: Array, size: Shape) -> Any:
    """Return a parameter with the axes of the numbers `y`, of which `size` are the last."""
    if isinstance(x, Array) and x.ndim <= y.ndim - len(size):
        return reshape(x, (*x.shape, *(1,) * len(size)))
    return x


def _cotangent(term: Array, x: Any, size: Shape) -> Array | None:
    """Return the sum of terms of all numbers for each element of a parameter; None for numbers."""
    if not isinstance(x, Array):
        return None
    shape = _aligned(x, term, size).shape
    shape = (1,) * (term.ndim - len(shape)) + shape
    axes = tuple(axis for axis in range(term.ndim) if shape[axis] != term.shape[axis])
    return reshape(sum_(term, axis=axes, keepdims=True) if axes else term, x.shape)


def _gamma_back(
    g: Array, y: Array, key: Any, draw: Any, shape: Any, size: Shape, *_: Any
) -> tuple[Array | None, ...]:
    slope = gamma_slope(_aligned(shape, y, size), y)
    return None, None, _cotangent(g * slope, shape, size)


STANDARD_GAMMA = Sampler("standard_gamma", rejection.gamma, is_not_negative, "shape >= 0", (2.5,))


@operation(**STANDARD_GAMMA.facts, vjp=_gamma_back)
def standard_gamma(
    key: Integer, draw: Integer, /, shape: Parameter, size: Size = None, *, stream: int = 0
) -> BoundCall:
    """Return numbers of the gamma distribution of this shape and scale 1 (Marsaglia and Tsang).

    >>> import tenfold as tn
    >>> tn.random.standard_gamma(1, 2, 2.5, size=3).shape
    (3,)
    """
    return STANDARD_GAMMA.bind(key, draw, (shape,), size, stream)


@operation(**STANDARD_GAMMA.facts, public=False)
def gamma_of_sum(
    key: Any, draw: Any, /, shape: Any, size: Shape | None = None, *, stream: int = 0
) -> BoundCall:
    """Return the sum of gamma numbers that were drawn as shares: it does not depend on these. It
    has no derivative: there are no second ones of shares.
    """
    stream = (stream + 3 * rejection.VARIABLE_STREAMS) % philox.STREAMS
    return STANDARD_GAMMA.bind(key, draw, (shape,), size, stream)


def _beta_back(
    g: Array, y: Array, key: Any, draw: Any, a: Any, b: Any, size: Shape, stream: int, *_: Any
) -> tuple[Array | None, ...]:
    """As shares of gamma numbers, whose sum is drawn."""
    total = gamma_of_sum(key, draw, a + b, size, stream=stream)
    by_a = g * (1 - y) / total * gamma_slope(_aligned(a, y, size), y * total)
    by_b = -g * y / total * gamma_slope(_aligned(b, y, size), (1 - y) * total)
    return None, None, _cotangent(by_a, a, size), _cotangent(by_b, b, size)


def _dirichlet_back(
    g: Array, y: Array, key: Any, draw: Any, alpha: Array, size: Shape, stream: int, *_: Any
) -> tuple[Array | None, ...]:
    total = gamma_of_sum(key, draw, sum_(alpha, axis=-1), size[:-1], stream=stream)[..., None]
    centred = g - sum_(g * y, axis=-1, keepdims=True)
    return None, None, _cotangent(centred / total * gamma_slope(alpha, y * total), alpha, size)


BETA = Sampler(
    "beta",
    rejection.beta,
    lambda a, b: is_positive(a) & is_positive(b),
    "a > 0, b > 0",
    (2.5, 0.5),
    count=2,
)


@operation(**BETA.facts, vjp=_beta_back)
def beta(
    key: Integer,
    draw: Integer,
    /,
    a: Parameter,
    b: Parameter,
    size: Size = None,
    *,
    stream: int = 0,
) -> BoundCall:
    """Return numbers of the beta distribution: the share of one gamma number in the sum of two.

    >>> import tenfold as tn
    >>> tn.random.beta(1, 2, 2.5, 0.5, size=3).shape
    (3,)
    """
    return BETA.bind(key, draw, (a, b), size, stream)


VONMISES = Sampler(
    "vonmises",
    rejection.vonmises,
    lambda _, kappa: is_not_negative(kappa),
    "kappa >= 0",
    (0.5, 4.0),
)


@operation(**VONMISES.facts)
def vonmises(
    key: Integer,
    draw: Integer,
    /,
    mu: Parameter,
    kappa: Parameter,
    size: Size = None,
    *,
    stream: int = 0,
) -> BoundCall:
    """Return angles in [-pi, pi] of the von Mises distribution (Best and Fisher).

    >>> import tenfold as tn
    >>> tn.random.vonmises(1, 2, 0.5, 4.0, size=3).shape
    (3,)
    """
    return VONMISES.bind(key, draw, (mu, kappa), size, stream)


POISSON = Sampler(
    "poisson",
    rejection.poisson,
    lambda lam: (lam >= 0) & (lam < 2.0**62),
    "0 <= lam < 2**62",
    (30.5,),
    dtype=INT64,
)


@operation(name="poisson", public=False, **POISSON.facts)
def poisson_variates(
    key: Any, draw: Any, /, lam: Any, size: Size = None, *, stream: int = 0
) -> BoundCall:
    """Return numbers of the Poisson distribution of any means."""
    return POISSON.bind(key, draw, (lam,), size, stream)


@derived(**POISSON.derived_facts)
def poisson(
    key: Integer, draw: Integer, /, lam: Parameter = 1.0, size: Size = None, *, stream: int = 0
) -> Array:
    """Return numbers of the Poisson distribution of mean `lam`, int64 (inversion, PTRS from 10 on).

    >>> import tenfold as tn
    >>> tn.random.poisson(1, 2, 30.5, size=3).shape
    (3,)
    """
    mean = parameter(lam)
    if isinstance(mean, Array) or not 0 <= mean < rejection.SMALL_MEAN:
        return poisson_variates(key, draw, mean, size, stream=stream)
    return _by_table(rejection.poisson_table(float(mean)), key, draw, size, stream)


BINOMIAL = Sampler(
    "binomial",
    rejection.binomial,
    lambda n, p: (n >= 0) & (n < 2.0**63) & (p >= 0) & (p <= 1),
    "0 <= n < 2**63, 0 <= p <= 1",
    (100, 0.3),
    dtype=INT64,
)


@operation(name="binomial", public=False, **BINOMIAL.facts)
def binomial_variates(
    key: Any, draw: Any, /, n: Any, p: Any, size: Size = None, *, stream: int = 0
) -> BoundCall:
    """Return numbers of the binomial distribution of any parameters."""
    return BINOMIAL.bind(key, draw, (n, p), size, stream)


@derived(**BINOMIAL.derived_facts)
def binomial(
    key: Integer,
    draw: Integer,
    /,
    n: Parameter,
    p: Parameter,
    size: Size = None,
    *,
    stream: int = 0,
) -> Array:
    """Return the successes among `n` trials of probability `p`, int64 (inversion for n p < 10, else
    BTRS).

    >>> import tenfold as tn
    >>> tn.random.binomial(1, 2, 100, 0.3, size=3).shape
    (3,)
    """
    trials, probability = parameter(n), parameter(p)
    are_numbers = not isinstance(trials, Array) and not isinstance(probability, Array)
    if not are_numbers or not BINOMIAL.valid(trials, probability):
        return binomial_variates(key, draw, trials, probability, size, stream=stream)
    rarer = min(float(probability), 1.0 - probability)
    if not trials * rarer < rejection.SMALL_MEAN:
        return binomial_variates(key, draw, trials, probability, size, stream=stream)
    count = _by_table(rejection.binomial_table(float(trials), rarer), key, draw, size, stream)
    return int(trials) - count if probability > 0.5 else count


def _by_table(table: np.ndarray, key: Any, draw: Any, size: Any, stream: int) -> Array:
    """Return the numbers that `rejection._inverted` gives, by a search in the table of sums."""
    steps = random(key, draw, size, stream=stream + rejection.LAST_STREAM)
    return searchsorted(array(table), steps + philox.UNIT_STEP, side="left")


HYPERGEOMETRIC = Sampler(
    "hypergeometric",
    rejection.hypergeometric,
    _is_sample,
    "counts >= 0, nsample <= ngood + nbad",
    (30, 40, 20),
    dtype=INT64,
)


@operation(**HYPERGEOMETRIC.facts)
def hypergeometric(
    key: Integer,
    draw: Integer,
    /,
    ngood: Parameter,
    nbad: Parameter,
    nsample: Parameter,
    size: Size = None,
    *,
    stream: int = 0,
) -> BoundCall:
    """Return the good ones among `nsample` of `ngood` + `nbad` without replacement, int64.

    >>> import tenfold as tn
    >>> tn.random.hypergeometric(1, 2, 30, 40, 20, size=3).shape
    (3,)
    """
    return HYPERGEOMETRIC.bind(key, draw, (ngood, nbad, nsample), size, stream)


ZIPF = Sampler("zipf", rejection.zipf, lambda a: a > 1, "a > 1", (2.5,), dtype=INT64)


@operation(**ZIPF.facts)
def zipf(
    key: Integer, draw: Integer, /, a: Parameter, size: Size = None, *, stream: int = 0
) -> BoundCall:
    """Return numbers of Zipf's distribution of exponent `a`, int64 (Devroye).

    >>> import tenfold as tn
    >>> tn.random.zipf(1, 2, 2.5, size=3).shape
    (3,)
    """
    return ZIPF.bind(key, draw, (a,), size, stream)


LOGSERIES = Sampler(
    "logseries",
    rejection.logseries,
    lambda p: (p >= 0) & (p < 1),
    "0 <= p < 1",
    (0.7,),
    dtype=INT64,
)


@operation(**LOGSERIES.facts)
def logseries(
    key: Integer, draw: Integer, /, p: Parameter, size: Size = None, *, stream: int = 0
) -> BoundCall:
    """Return numbers of the logarithmic series distribution, int64 (Kemp).

    >>> import tenfold as tn
    >>> tn.random.logseries(1, 2, 0.7, size=3).shape
    (3,)
    """
    return LOGSERIES.bind(key, draw, (p,), size, stream)


def _multinomial(elements: Elements, n: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Binomial numbers of what is left, one category after the other."""
    if np.any(p[:, :-1].sum(1) > 1.0 + SUM_ERROR):
        raise ValueError("the sum of pvals[:-1] is more than 1")
    count = p.shape[1]
    result = np.zeros(p.shape, np.int64)
    left, rest = n[:, :1].sum(1), np.ones(len(p))
    for at in range(count - 1):
        share = np.clip(p[:, at] / np.where(rest > 0, rest, 1.0), 0.0, 1.0)
        ends = (rest - p[:, at] < SUM_ERROR) & ~p[:, at + 1 :].any(1)
        share = np.where(ends, 1.0, share)  # rounding leaves nothing to outcomes of probability 0
        result[:, at] = rejection.binomial(elements.part(at, count), left, share)
        left, rest = left - result[:, at], rest - p[:, at]
    result[:, -1:] = left[:, None]
    return result


def _is_multinomial(p: Any) -> Any:
    if np.ndim(p) == 0:
        return True  # the other parameter may have the axis
    return p.shape[-1] > 0 and np.all(p[..., :-1].sum(-1) <= 1.0 + SUM_ERROR)


MULTINOMIAL = Sampler(
    "multinomial",
    _multinomial,
    lambda n, p: (n >= 0) & (p >= 0) & (p <= 1),
    "n >= 0, 0 <= pvals <= 1",
    (20, (0.2, 0.3, 0.5)),
    dtype=INT64,
    rows=True,
)


@operation(**MULTINOMIAL.facts)
def multinomial(
    key: Integer,
    draw: Integer,
    /,
    n: int | Array,
    pvals: Any,
    size: Size = None,
    *,
    stream: int = 0,
) -> BoundCall:
    """Return how many of `n` trials have each of the outcomes of probabilities `pvals` (k,), int64.

    Shape: `size`, then k. The last probability is 1 less the others.

    >>> import tenfold as tn
    >>> int(tn.sum(tn.random.multinomial(1, 2, 20, [0.2, 0.3, 0.5])))
    20
    """
    probabilities = parameter(pvals)
    rule = "one probability at least, and sum(pvals[:-1]) <= 1"
    refuse_out_of_range("multinomial", rule, _is_multinomial, [probabilities])
    return MULTINOMIAL.bind(key, draw, (n, pvals), size, stream)


def _is_draw(colors: Any, sample: Any) -> Any:
    total = np.asarray(colors).sum(-1) if np.ndim(colors) else np.inf
    return np.all(np.asarray(colors) >= 0) & np.all(np.asarray(sample) >= 0) & (sample <= total)


def _colors(elements: Elements, colors: np.ndarray, sample: np.ndarray) -> np.ndarray:
    """Hypergeometric numbers of what is left, one color after the other."""
    count = colors.shape[1]
    result = np.zeros(colors.shape, np.int64)
    left, rest = sample[:, :1].sum(1), colors.sum(1)
    if np.any(left > rest):
        raise ValueError("nsample is more than the sum of colors")
    for at in range(count - 1):
        rest = rest - colors[:, at]
        part = elements.part(at, count)
        result[:, at] = rejection.hypergeometric(part, colors[:, at], rest, left)
        left = left - result[:, at]
    result[:, -1:] = left[:, None]
    return result


DIRICHLET = Sampler(
    "dirichlet",
    rejection.dirichlet,
    lambda alpha: (np.asarray(alpha) >= 0) | np.isnan(alpha),
    "alpha >= 0",
    ((1.0, 2.0, 3.0),),
    rows=True,
)


@operation(**DIRICHLET.facts, vjp=_dirichlet_back)
def dirichlet(
    key: Integer, draw: Integer, /, alpha: Any, size: Size = None, *, stream: int = 0
) -> BoundCall:
    """Return vectors of the Dirichlet distribution: the shares of gamma numbers of shapes `alpha`
    (k,) in their sum. Shape: `size`, then k.

    >>> import tenfold as tn
    >>> tn.random.dirichlet(1, 2, [1.0, 2.0, 3.0], size=2).shape
    (2, 3)
    """
    return DIRICHLET.bind(key, draw, (alpha,), size, stream)


COLORS = Sampler(
    "multivariate_hypergeometric",
    _colors,
    lambda colors, sample: (colors >= 0) & (sample >= 0),
    "colors >= 0, nsample >= 0",
    ((3, 4, 5), 6),
    dtype=INT64,
    rows=True,
)


@operation(**COLORS.facts)
def multivariate_hypergeometric(
    key: Integer,
    draw: Integer,
    /,
    colors: Any,
    nsample: int | Array,
    size: Size = None,
    *,
    stream: int = 0,
) -> BoundCall:
    """Return how many of each color are among `nsample` of `colors` (k,) without replacement.

    Shape: `size`, then k; int64.

    >>> import tenfold as tn
    >>> int(tn.sum(tn.random.multivariate_hypergeometric(1, 2, [3, 4, 5], 6)))
    6
    """
    counts, sample = parameter(colors), parameter(nsample)
    rule = "colors >= 0, 0 <= nsample <= sum(colors)"
    refuse_out_of_range("multivariate_hypergeometric", rule, _is_draw, [counts, sample])
    return COLORS.bind(key, draw, (colors, nsample), size, stream)
