"""The public functions of tenfold.random.

Made by `make stubs` from the op table; do not edit.
"""

from collections.abc import Sequence
from tenfold._native import Array
from tenfold.core.shape_rules import Shape
from typing import Any
import builtins

from tenfold.namespace.random_generator import Generator as Generator
from tenfold.namespace.random_generator import NumpyDraws as NumpyDraws
from tenfold.namespace.random_generator import default_rng as default_rng
def chisquare(key: int | Array, draw: int | Array, /, df: float | Array | Sequence[float], size: int | tuple[int, ...] | None = ...) -> Array:
    """Return numbers of the chi-square distribution with `df` degrees of freedom."""

def exponential(key: int | Array, draw: int | Array, /, scale: float | Array | Sequence[float] = ..., size: int | tuple[int, ...] | None = ...) -> Array:
    """Return numbers of the exponential distribution of mean `scale`."""

def f(key: int | Array, draw: int | Array, /, dfnum: float | Array | Sequence[float], dfden: float | Array | Sequence[float], size: int | tuple[int, ...] | None = ...) -> Array:
    """Return numbers of Fisher's F distribution."""

def gamma(key: int | Array, draw: int | Array, /, shape: float | Array | Sequence[float], scale: float | Array | Sequence[float] = ..., size: int | tuple[int, ...] | None = ...) -> Array:
    """Return numbers of the gamma distribution."""

def geometric(key: int | Array, draw: int | Array, /, p: float | Array | Sequence[float], size: int | tuple[int, ...] | None = ...) -> Array:
    """Return the trials up to the first success, of probability `p` each: int64, from 1 on."""

def gumbel(key: int | Array, draw: int | Array, /, loc: float | Array | Sequence[float] = ..., scale: float | Array | Sequence[float] = ..., size: int | tuple[int, ...] | None = ...) -> Array:
    """Return numbers of Gumbel's distribution."""

def laplace(key: int | Array, draw: int | Array, /, loc: float | Array | Sequence[float] = ..., scale: float | Array | Sequence[float] = ..., size: int | tuple[int, ...] | None = ...) -> Array:
    """Return numbers of Laplace's distribution: the difference of two exponential ones."""

def logistic(key: int | Array, draw: int | Array, /, loc: float | Array | Sequence[float] = ..., scale: float | Array | Sequence[float] = ..., size: int | tuple[int, ...] | None = ...) -> Array:
    """Return numbers of the logistic distribution."""

def lognormal(key: int | Array, draw: int | Array, /, mean: float | Array | Sequence[float] = ..., sigma: float | Array | Sequence[float] = ..., size: int | tuple[int, ...] | None = ...) -> Array:
    """Return numbers whose logarithm is normal, of mean `mean` and standard deviation `sigma`."""

def negative_binomial(key: int | Array, draw: int | Array, /, n: float | Array | Sequence[float], p: float | Array | Sequence[float], size: int | tuple[int, ...] | None = ...) -> Array:
    """Return the failures before `n` successes, of probability `p` each: int64."""

def noncentral_chisquare(key: int | Array, draw: int | Array, /, df: float | Array | Sequence[float], nonc: float | Array | Sequence[float], size: int | tuple[int, ...] | None = ...) -> Array:
    """Return numbers of the noncentral chi-square distribution: a Poisson mixture of central ones."""

def noncentral_f(key: int | Array, draw: int | Array, /, dfnum: float | Array | Sequence[float], dfden: float | Array | Sequence[float], nonc: float | Array | Sequence[float], size: int | tuple[int, ...] | None = ...) -> Array:
    """Return numbers of the noncentral F distribution."""

def normal(key: int | Array, draw: int | Array, /, loc: float | Array | Sequence[float] = ..., scale: float | Array | Sequence[float] = ..., size: int | tuple[int, ...] | None = ...) -> Array:
    """Return numbers of the normal distribution of mean `loc` and standard deviation `scale`."""

def pareto(key: int | Array, draw: int | Array, /, a: float | Array | Sequence[float], size: int | tuple[int, ...] | None = ...) -> Array:
    """Return numbers of the Pareto II (Lomax) distribution of shape `a`, from 0 on."""

def power(key: int | Array, draw: int | Array, /, a: float | Array | Sequence[float], size: int | tuple[int, ...] | None = ...) -> Array:
    """Return numbers in [0, 1] with density a x**(a - 1)."""

def rayleigh(key: int | Array, draw: int | Array, /, scale: float | Array | Sequence[float] = ..., size: int | tuple[int, ...] | None = ...) -> Array:
    """Return numbers of Rayleigh's distribution of mode `scale`."""

def standard_cauchy(key: int | Array, draw: int | Array, /, size: int | tuple[int, ...] | None = ...) -> Array:
    """Return numbers of Cauchy's distribution: the quotient of two normal ones."""

def standard_t(key: int | Array, draw: int | Array, /, df: float | Array | Sequence[float], size: int | tuple[int, ...] | None = ...) -> Array:
    """Return numbers of Student's t distribution with `df` degrees of freedom."""

def triangular(key: int | Array, draw: int | Array, /, left: float | Array | Sequence[float], mode: float | Array | Sequence[float], right: float | Array | Sequence[float], size: int | tuple[int, ...] | None = ...) -> Array:
    """Return numbers of the triangular distribution over [left, right]."""

def uniform(key: int | Array, draw: int | Array, /, low: float | Array | Sequence[float] = ..., high: float | Array | Sequence[float] = ..., size: int | tuple[int, ...] | None = ...) -> Array:
    """Return uniform numbers in [low, high)."""

def wald(key: int | Array, draw: int | Array, /, mean: float | Array | Sequence[float], scale: float | Array | Sequence[float], size: int | tuple[int, ...] | None = ...) -> Array:
    """Return numbers of the inverse Gaussian distribution (Michael, Schucany, Haas 1976)."""

def weibull(key: int | Array, draw: int | Array, /, a: float | Array | Sequence[float], size: int | tuple[int, ...] | None = ...) -> Array:
    """Return numbers of Weibull's distribution of shape `a` and scale 1."""

def beta(key: int | Array, draw: int | Array, /, a: float | Array | Sequence[float], b: float | Array | Sequence[float], size: int | tuple[int, ...] | None = ..., *, stream: int = ...) -> Array:
    """Return numbers of the beta distribution: the share of one gamma number in the sum of two."""

def binomial(key: int | Array, draw: int | Array, /, n: float | Array | Sequence[float], p: float | Array | Sequence[float], size: int | tuple[int, ...] | None = ..., *, stream: int = ...) -> Array:
    """Return the successes among `n` trials of probability `p`, int64 (inversion for n p < 10, else"""

def dirichlet(key: int | Array, draw: int | Array, /, alpha: Any, size: int | tuple[int, ...] | None = ..., *, stream: int = ...) -> Array:
    """Return vectors of the Dirichlet distribution: the shares of gamma numbers of shapes `alpha`"""

def hypergeometric(key: int | Array, draw: int | Array, /, ngood: float | Array | Sequence[float], nbad: float | Array | Sequence[float], nsample: float | Array | Sequence[float], size: int | tuple[int, ...] | None = ..., *, stream: int = ...) -> Array:
    """Return the good ones among `nsample` of `ngood` + `nbad` without replacement, int64."""

def logseries(key: int | Array, draw: int | Array, /, p: float | Array | Sequence[float], size: int | tuple[int, ...] | None = ..., *, stream: int = ...) -> Array:
    """Return numbers of the logarithmic series distribution, int64 (Kemp)."""

def multinomial(key: int | Array, draw: int | Array, /, n: int | Array, pvals: Any, size: int | tuple[int, ...] | None = ..., *, stream: int = ...) -> Array:
    """Return how many of `n` trials have each of the outcomes of probabilities `pvals` (k,), int64."""

def multivariate_hypergeometric(key: int | Array, draw: int | Array, /, colors: Any, nsample: int | Array, size: int | tuple[int, ...] | None = ..., *, stream: int = ...) -> Array:
    """Return how many of each color are among `nsample` of `colors` (k,) without replacement."""

def poisson(key: int | Array, draw: int | Array, /, lam: float | Array | Sequence[float] = ..., size: int | tuple[int, ...] | None = ..., *, stream: int = ...) -> Array:
    """Return numbers of the Poisson distribution of mean `lam`, int64 (inversion, PTRS from 10 on)."""

def standard_gamma(key: int | Array, draw: int | Array, /, shape: float | Array | Sequence[float], size: int | tuple[int, ...] | None = ..., *, stream: int = ...) -> Array:
    """Return numbers of the gamma distribution of this shape and scale 1 (Marsaglia and Tsang)."""

def vonmises(key: int | Array, draw: int | Array, /, mu: float | Array | Sequence[float], kappa: float | Array | Sequence[float], size: int | tuple[int, ...] | None = ..., *, stream: int = ...) -> Array:
    """Return angles in [-pi, pi] of the von Mises distribution (Best and Fisher)."""

def zipf(key: int | Array, draw: int | Array, /, a: float | Array | Sequence[float], size: int | tuple[int, ...] | None = ..., *, stream: int = ...) -> Array:
    """Return numbers of Zipf's distribution of exponent `a`, int64 (Devroye)."""

def choice(key: int | Array, draw: int | Array, /, a: int | Array, size: int | Shape | None = ..., replace: builtins.bool = ..., p: Any = ..., axis: int = ...) -> Array:
    """Return random elements of `a` along an axis, or of the ints below it, with probabilities `p`."""

def multivariate_normal(key: int | Array, draw: int | Array, /, mean: Any, cov: Any, size: int | Shape | None = ..., *, method: str = ...) -> Array:
    """Return vectors of the normal distribution of mean `mean` (k,) and covariance `cov` (k, k), by"""

def permutation(key: int | Array, draw: int | Array, /, x: int | Array, *, axis: int = ...) -> Array:
    """Return `x`, or the ints below it, with its parts along an axis in random order."""

def permuted(key: int | Array, draw: int | Array, /, x: Array, *, axis: int | None = ...) -> Array:
    """Return `x` with the elements of each line along an axis in a random order of its own; of all"""

def bits(key: int | Array, draw: int | Array, /, size: int | tuple[int, ...] | None = ..., *, dtype: Any = ..., stream: int = ...) -> Array:
    """Return random bits, as uint64 or uint32: those of Philox4x32-10 for this key and draw number."""

def integers(key: int | Array, draw: int | Array, /, low: int | Array | Sequence[int], high: int | Array | Sequence[int] | None = ..., size: int | tuple[int, ...] | None = ..., *, dtype: Any = ..., endpoint: builtins.bool = ..., stream: int = ...) -> Array:
    """Return integers from `low` (0 when only one bound is given) to below `high`, to `high` itself"""

def random(key: int | Array, draw: int | Array, /, size: int | tuple[int, ...] | None = ..., *, dtype: Any = ..., stream: int = ...) -> Array:
    """Return uniform numbers in [0, 1): multiples of 2**-53, for float32 of 2**-24."""

def standard_exponential(key: int | Array, draw: int | Array, /, size: int | tuple[int, ...] | None = ..., *, dtype: Any = ..., stream: int = ...) -> Array:
    """Return numbers of the exponential distribution of mean 1, by the inverse of its distribution."""

def standard_normal(key: int | Array, draw: int | Array, /, size: int | tuple[int, ...] | None = ..., *, dtype: Any = ..., stream: int = ...) -> Array:
    """Return numbers of the standard normal distribution, by Box and Muller's method."""
