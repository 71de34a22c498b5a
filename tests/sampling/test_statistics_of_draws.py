"""Statistical tests of draws, at one key: the numbers are the same in every run.

Of NIST SP 800-22 (A. Rukhin and others, 2010): frequency, frequency within a block, runs and serial
tests of bits; besides moments, Kolmogorov-Smirnov and chi-square tests of distributions, and serial
correlation along elements, draws, streams and keys. A test fails below a p-value of 0.0001.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

import tenfold as tn

KEY, DRAW = 20261126, 314159265358979
N = 100_000
LEAST = 1e-4


def bits_of(words: tn.Array) -> np.ndarray:
    return np.unpackbits(np.asarray(words).view(np.uint8))


BITS: dict[str, Callable[[], np.ndarray]] = {
    "elements": lambda: bits_of(tn.random.bits(KEY, DRAW, N // 4)),
    "draws": lambda: bits_of(tn.random.bits(KEY, DRAW + tn.arange(N // 4))),
    "streams": lambda: bits_of(tn.concat([tn.random.bits(KEY, 1, 4, stream=s) for s in range(60)])),
    "keys": lambda: bits_of(tn.random.bits(tn.arange(N // 4), DRAW)),
    "low words": lambda: bits_of(tn.random.bits(KEY, DRAW, N // 4, dtype="uint32")),
}


@cache
def drawn_bits(name: str) -> np.ndarray:
    return BITS[name]()


@pytest.mark.parametrize("name", BITS)
def test_ones_and_zeros_are_balanced(name: str) -> None:
    bits = drawn_bits(name).astype(np.int64)
    assert special.erfc(abs(2 * bits.sum() - bits.size) / np.sqrt(2 * bits.size)) > LEAST


@pytest.mark.parametrize("name", BITS)
def test_every_bit_of_a_word_is_balanced(name: str) -> None:
    columns = drawn_bits(name).reshape(-1, 32)
    deviations = (2 * columns.sum(axis=0, dtype=np.int64) - len(columns)) / np.sqrt(len(columns))
    assert stats.chi2.sf(np.sum(deviations**2), 32) > LEAST


@pytest.mark.parametrize("name", BITS)
def test_blocks_of_128_bits_are_balanced(name: str) -> None:
    bits = drawn_bits(name)
    blocks = bits[: bits.size // 128 * 128].reshape(-1, 128).mean(axis=1)
    assert stats.chi2.sf(4 * 128 * np.sum((blocks - 0.5) ** 2), len(blocks)) > LEAST


@pytest.mark.parametrize("name", BITS)
def test_runs_of_equal_bits_have_their_number(name: str) -> None:
    bits = drawn_bits(name)
    share = bits.mean()
    runs = 1 + np.count_nonzero(bits[1:] != bits[:-1])
    spread = 2 * np.sqrt(2 * bits.size) * share * (1 - share)
    assert special.erfc(abs(runs - 2 * bits.size * share * (1 - share)) / spread) > LEAST


@pytest.mark.parametrize("name", BITS)
def test_groups_of_four_bits_are_equally_frequent(name: str) -> None:
    groups = drawn_bits(name).reshape(-1, 4) @ np.asarray([8, 4, 2, 1])
    assert stats.chisquare(np.bincount(groups, minlength=16)).pvalue > LEAST


@pytest.mark.parametrize("distance", [1, 2, 3, 4, 16, 32, 1000])
def test_numbers_at_a_distance_are_not_correlated(distance: int) -> None:
    for x in (tn.random.random(KEY, DRAW, N), tn.random.standard_normal(KEY, DRAW, N)):
        values = np.asarray(x)
        assert stats.pearsonr(values[:-distance], values[distance:]).pvalue > LEAST


def test_draws_streams_and_keys_are_not_correlated() -> None:
    first = np.asarray(tn.random.random(KEY, DRAW, N))
    for other in (
        tn.random.random(KEY, DRAW + 1, N),
        tn.random.random(KEY + 1, DRAW, N),
        tn.random.random(KEY, DRAW, N, stream=1),
        tn.random.random(DRAW, KEY, N),
    ):
        assert stats.pearsonr(first, np.asarray(other)).pvalue > LEAST


def test_pairs_fill_the_square_evenly() -> None:
    x, y = (np.asarray(tn.random.random(KEY, DRAW + i, N)) for i in (0, 1))
    for a, b in ((x, y), (x[:-1], x[1:])):
        cells = np.histogram2d(a, b, bins=20, range=[[0, 1], [0, 1]])[0].ravel()
        assert stats.chisquare(cells).pvalue > LEAST


def test_normal_numbers_have_the_moments_of_theirs() -> None:
    x = np.asarray(tn.random.standard_normal(KEY, DRAW, 10 * N))
    for power, moment, deviation in ((1, 0, 1), (2, 1, 2**0.5), (3, 0, 15**0.5), (4, 3, 96**0.5)):
        assert abs((x**power).mean() - moment) < 4 * deviation / len(x) ** 0.5


CONTINUOUS: dict[str, tuple[Any, Any]] = {
    "random": ((), stats.uniform),
    "standard_normal": ((), stats.norm),
    "standard_exponential": ((), stats.expon),
    "uniform": ((-1, 3), stats.uniform(-1, 4)),
    "normal": ((5, 2), stats.norm(5, 2)),
    "lognormal": ((0, 0.5), stats.lognorm(0.5)),
    "exponential": ((2,), stats.expon(scale=2)),
    "laplace": ((1, 2), stats.laplace(1, 2)),
    "logistic": ((1, 2), stats.logistic(1, 2)),
    "gumbel": ((1, 2), stats.gumbel_r(1, 2)),
    "pareto": ((3,), stats.lomax(3)),
    "power": ((3,), stats.powerlaw(3)),
    "rayleigh": ((2,), stats.rayleigh(scale=2)),
    "weibull": ((2,), stats.weibull_min(2)),
    "standard_cauchy": ((), stats.cauchy),
    "triangular": ((0, 1, 3), stats.triang(1 / 3, 0, 3)),
    "standard_gamma 0.05": ((0.05,), stats.gamma(0.05)),
    "standard_gamma 1": ((1,), stats.gamma(1)),
    "gamma": ((2.5, 2), stats.gamma(2.5, scale=2)),
    "gamma 100": ((100, 2), stats.gamma(100, scale=2)),
    "chisquare": ((3,), stats.chi2(3)),
    "f": ((3, 5), stats.f(3, 5)),
    "standard_t": ((5,), stats.t(5)),
    "wald": ((2, 3), stats.invgauss(2 / 3, scale=3)),
    "noncentral_chisquare": ((3, 2), stats.ncx2(3, 2)),
    "noncentral_f": ((3, 5, 2), stats.ncf(3, 5, 2)),
    "beta": ((2, 5), stats.beta(2, 5)),
    "beta below 1": ((0.3, 0.2), stats.beta(0.3, 0.2)),
    "vonmises 0": ((0.0, 0.0), stats.uniform(-np.pi, 2 * np.pi)),
    "vonmises 0.1": ((0.0, 0.1), stats.vonmises(0.1)),
    "vonmises 4": ((0.0, 4.0), stats.vonmises(4.0)),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_distribution_fits_by_kolmogorov_and_smirnov(name: str) -> None:
    parameters, distribution = CONTINUOUS[name]
    draw = getattr(tn.random, name.split()[0])
    x = np.asarray(draw(KEY, DRAW, *parameters, size=N // 5))
    assert stats.kstest(x, distribution.cdf).pvalue > LEAST


DISCRETE: dict[str, tuple[Any, Any]] = {
    "integers": ((0, 7), stats.randint(0, 7)),
    "geometric": ((0.3,), stats.geom(0.3)),
    "negative_binomial": ((3, 0.4), stats.nbinom(3, 0.4)),
    "poisson 0.1": ((0.1,), stats.poisson(0.1)),
    "poisson 9.99": ((9.99,), stats.poisson(9.99)),
    "poisson 10": ((10.0,), stats.poisson(10.0)),
    "poisson 50": ((50.0,), stats.poisson(50.0)),
    "poisson 10000": ((1e4,), stats.poisson(1e4)),
    "binomial 5": ((5, 0.3), stats.binom(5, 0.3)),
    "binomial 20": ((20, 0.5), stats.binom(20, 0.5)),
    "binomial 100": ((100, 0.9), stats.binom(100, 0.9)),
    "binomial 1e6": ((10**6, 0.4), stats.binom(10**6, 0.4)),
    "binomial 1e12": ((10**12, 1e-9), stats.binom(10**12, 1e-9)),
    "hypergeometric 5": ((5, 5, 4), stats.hypergeom(10, 5, 4)),
    "hypergeometric 40": ((40, 30, 50), stats.hypergeom(70, 40, 50)),
    "hypergeometric 1000": ((1000, 2000, 500), stats.hypergeom(3000, 1000, 500)),
    "zipf": ((3.5,), stats.zipf(3.5)),
    "logseries": ((0.7,), stats.logser(0.7)),
}


@pytest.mark.parametrize("name", DISCRETE)
def test_distribution_fits_by_chi_square(name: str) -> None:
    parameters, distribution = DISCRETE[name]
    draw = getattr(tn.random, name.split()[0])
    x = np.asarray(draw(KEY, DRAW, *parameters, size=N // 5))
    low, high = (int(bound) for bound in np.quantile(x, [0.0005, 0.9995]))
    step = max(1, (high - low) // 50)
    edges = np.arange(low, high + step, step)
    steps = np.concatenate([[0.0], distribution.cdf(edges), [1.0]])
    expected = np.diff(steps) * len(x)
    observed = np.histogram(x, [-np.inf, *(edges + 0.5), np.inf])[0]
    frequent = expected > 5
    observed = np.append(observed[frequent], observed[~frequent].sum())
    expected = np.append(expected[frequent], expected[~frequent].sum())
    used = expected > 1e-9
    statistic = np.sum((observed[used] - expected[used]) ** 2 / expected[used])
    assert stats.chi2.sf(statistic, np.count_nonzero(used) - 1) > LEAST


def test_multinomial_numbers_have_binomial_margins_and_their_sum() -> None:
    x = np.asarray(tn.random.multinomial(KEY, DRAW, 20, [0.2, 0.3, 0.5], N // 4))
    assert np.all(x.sum(axis=1) == 20)
    for at, p in enumerate((0.2, 0.3, 0.5)):
        expected = stats.binom(20, p).pmf(np.arange(21)) * len(x)
        keep = expected > 5
        observed = np.bincount(x[:, at], minlength=21)
        statistic = np.sum((observed[keep] - expected[keep]) ** 2 / expected[keep])
        assert stats.chi2.sf(statistic, np.count_nonzero(keep) - 1) > LEAST


def test_multivariate_hypergeometric_numbers_have_their_means_and_sum() -> None:
    x = np.asarray(tn.random.multivariate_hypergeometric(KEY, DRAW, [30, 40, 50], 24, N // 4))
    assert np.all(x.sum(axis=1) == 24)
    assert np.allclose(x.mean(axis=0), [6, 8, 10], atol=0.06)


@pytest.mark.parametrize("method", ["svd", "eigh", "cholesky"])
def test_multivariate_normal_numbers_have_their_covariance(method: str) -> None:
    covariance = np.asarray([[2.0, 1.0], [1.0, 3.0]])
    x = tn.random.multivariate_normal(KEY, DRAW, [1.0, 2.0], covariance, N, method=method)
    assert np.allclose(np.cov(np.asarray(x).T), covariance, atol=0.06)
    assert np.allclose(np.asarray(x).mean(axis=0), [1.0, 2.0], atol=0.03)


def test_dirichlet_vectors_have_their_means() -> None:
    x = np.asarray(tn.random.dirichlet(KEY, DRAW, [1.0, 2.0, 3.0], N))
    assert np.allclose(x.sum(axis=1), 1.0)
    assert np.allclose(x.mean(axis=0), [1 / 6, 2 / 6, 3 / 6], atol=0.01)


def test_every_permutation_of_four_is_equally_frequent() -> None:
    order = np.argsort(np.asarray(tn.random.bits(KEY, DRAW, (24_000, 4))), axis=1)
    ours = np.asarray(tn.random.permuted(KEY, DRAW, tn.zeros((24_000, 1)) + tn.arange(4), axis=1))
    assert ours.tolist() == order.tolist()
    numbers = ours.astype(np.int64) @ np.asarray([64, 16, 4, 1])
    _, counts = np.unique(numbers, return_counts=True)
    assert len(counts) == 24
    assert stats.chisquare(counts).pvalue > LEAST


def test_weighted_choices_have_their_frequencies() -> None:
    weights = np.asarray([0.1, 0.2, 0.3, 0.4])
    x = np.asarray(tn.random.choice(KEY, DRAW, 4, N, p=weights))
    assert stats.chisquare(np.bincount(x, minlength=4), weights * N).pvalue > LEAST
