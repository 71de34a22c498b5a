"""Distributions at extreme parameters: NumPy's errors, no NaN of its own, no impossible outcome."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn

TINY, HUGE, INF, NAN = 1e-320, 1e300, float("inf"), float("nan")
ENDS = [0.0, -0.0, TINY, 1e-300, 1e-3, 1.0, 2.5, 1e6, HUGE, -1.0, INF, NAN]
COUNT = 20
ONE = ["standard_gamma", "chisquare", "standard_t", "exponential", "pareto", "power", "rayleigh"]
ONE += ["weibull", "zipf", "poisson", "geometric", "logseries"]
TWO = ["gamma", "beta", "f", "wald", "noncentral_chisquare", "normal", "lognormal", "laplace"]
TWO += ["logistic", "gumbel", "uniform", "vonmises"]
NUMPY_HAS_NAN = {("beta", INF), ("vonmises", INF), ("f", TINY)}
"""Where NumPy has NaN, or an infinite angle, and ours is the limit, or NaN."""


def outcome(generator: Any, name: str, parameters: tuple[Any, ...]) -> Any:
    """Return the class of the error, or whether the numbers are NaN."""
    try:
        with np.errstate(all="ignore"):
            numbers = np.asarray(getattr(generator, name)(*parameters, size=COUNT))
    except (ValueError, OverflowError) as error:
        return OverflowError if isinstance(error, OverflowError) else ValueError
    return np.isnan(numbers)


def check_as_numpy(name: str, parameters: tuple[float, ...]) -> None:
    expected = outcome(np.random.default_rng(0), name, parameters)
    for given in (parameters, tuple(np.asarray([x] * COUNT) for x in parameters)):
        found = outcome(tn.random.default_rng(0), name, given)
        if isinstance(expected, type):
            assert found is expected, parameters
        else:
            assert not isinstance(found, type), parameters
            assert not found.any() or expected.any(), parameters


@pytest.mark.parametrize("name", ONE)
def test_one_parameter_at_its_ends_is_as_in_numpy(name: str) -> None:
    for x in ENDS:
        if (name, x) not in {("poisson", HUGE), ("poisson", INF)}:
            check_as_numpy(name, (x,))


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", TWO)
@pytest.mark.parametrize("x", ENDS)
def test_two_parameters_at_their_ends_are_as_in_numpy(name: str, x: float) -> None:
    for y in ENDS:
        if not {(name, x), (name, y)} & NUMPY_HAS_NAN:
            check_as_numpy(name, (x, y))


def test_parameters_of_a_known_array_are_checked_at_the_call() -> None:
    rng = tn.random.default_rng(0)
    for parameter in ([1.0, -1.0], np.asarray([1.0, -1.0]), tn.asarray([1.0, -1.0])):
        with pytest.raises(ValueError, match="scale >= 0"):
            rng.normal(0.0, parameter)
        with pytest.raises(ValueError, match="shape >= 0"):
            rng.standard_gamma(parameter)
    with pytest.raises(ValueError, match=r"sum\(pvals"):
        rng.multinomial(5, [0.9, 0.9, 0.0])
    with pytest.raises(ValueError, match="nsample"):
        rng.multivariate_hypergeometric([1, 2], 4)


@pytest.mark.parametrize("alpha", [1e-3, 1e-10, 1e-300, TINY])
@pytest.mark.parametrize("length", [1, 3])
def test_shares_of_tiny_alphas_are_one_outcome(alpha: float, length: int) -> None:
    x = np.asarray(tn.random.default_rng(0).dirichlet([alpha] * length, 500))
    np.testing.assert_allclose(x.sum(-1), 1.0)
    assert (x.max(-1) > 0.5).all() or alpha == 1e-3
    if length == 3:  # each is as likely
        assert ((x > 0.5).mean(0) > 0.2).all()


def test_shares_follow_their_alphas_at_any_scale() -> None:
    for scale in (1.0, 1e-5, 1e-200, 1e-305):
        x = np.asarray(tn.random.default_rng(1).dirichlet(np.array([1.0, 3.0]) * scale, 4000))
        assert x.mean(0)[1] == pytest.approx(0.75, abs=0.04)
    x = np.asarray(tn.random.default_rng(0).dirichlet([0.0, 1e-300, 0.0, 1e-320], 100))
    assert (x[:, [0, 2]] == 0.0).all()
    np.testing.assert_array_equal(x.sum(-1), 1.0)


def test_beta_of_tiny_shapes_is_at_an_end() -> None:
    for a in (1e-3, 1e-300, TINY):
        x = np.asarray(tn.random.default_rng(0).beta(a, a, 500))
        assert not np.isnan(x).any()
        assert 0.3 < (x > 0.5).mean() < 0.7


def test_numbers_of_wald_are_positive() -> None:
    for mean, scale in ((2.5, 1e-10), (1e15, 1e-100), (1e18, 0.1), (1.0, 1.0)):
        assert (np.asarray(tn.random.default_rng(0).wald(mean, scale, 500)) > 0).all()


def test_numbers_of_zipf_are_positive() -> None:
    for a in (1.0 + 1e-10, 1.5, 1000.0, 2000.0, 1e18, INF):
        assert (np.asarray(tn.random.default_rng(0).zipf(a, 500)) >= 1).all()


def test_elements_of_probability_0_are_never_chosen() -> None:
    p = [0.5, TINY, 0.0, 0.5, 0.0]
    rng = tn.random.default_rng(0)
    for replace in (False, True):
        for _ in range(20):
            x = np.asarray(rng.choice(5, 3, replace=replace, p=p))
            assert not set(x.tolist()) & {2, 4}
    for _ in range(50):
        assert np.asarray(rng.multinomial(10**6, [0.1] * 10 + [0.0]))[-1] == 0


def test_too_few_possible_elements_are_refused() -> None:
    p = [0.5, 0.5, 0.0, 0.0]
    for given in (p, np.asarray(p), tn.asarray(p), tn.asarray(p) * 1.0):
        with pytest.raises(ValueError, match="Fewer non-zero entries in p than size"):
            tn.random.default_rng(0).choice(4, 3, replace=False, p=given)
    assert sorted(tn.random.default_rng(0).choice(4, 2, replace=False, p=p).tolist()) == [0, 1]
    with pytest.raises(ValueError, match="sum is 1"):
        tn.random.default_rng(0).choice(2, 1, p=tn.asarray([0.5, 0.6]))
