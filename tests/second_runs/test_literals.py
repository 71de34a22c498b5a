"""A plan that was made for some numbers is right for others, equal ones and different ones."""

import numpy as np
import pytest

import tenfold as tn

FORMULAS = {
    "map": lambda x, c, d: (x * c + 1) / d,
    "sum": lambda x, c, d: tn.sum(x * c + d, axis=-1),
    "mean": lambda x, c, d: tn.mean((x - c) / d),
    "softmax": lambda x, c, d: tn.exp(x / c) / tn.sum(tn.exp(x / d)),
    "cumulative": lambda x, c, d: tn.cumulative_sum(x * c) / d,
    "concat": lambda x, c, d: tn.concat([x * c, x / d]),
    "product": lambda x, c, d: (x * c) @ (x + d),
    "sort": lambda x, c, d: tn.sort(x * c) - d,
    "where": lambda x, c, d: tn.where(x > c, x, d),
    "deep": lambda x, c, d: ((x * c - d) * c - d) / d,
    "clip": lambda x, c, d: tn.clip(x * 40, c, d * 2),
}
PAIRS = [(20, 20), (20, 19), (19, 20), (33, 33), (20.5, 20.5), (20, 20.5), (1e9, 1e9), (1e9, 20)]


def _assigned(x, c, d):
    x = x + 0
    x[2:] = x[2:] * c
    x[1] = d
    return x / d


FORMULAS["assignment"] = _assigned


@pytest.mark.exhaustive
@pytest.mark.parametrize("tier", ["auto", 1])
@pytest.mark.parametrize("length", [10, 400_000])
@pytest.mark.parametrize("name", FORMULAS)
def test_equal_literals_made_different_and_back(name, length, tier):
    formula = FORMULAS[name]
    if length > 1000 and name == "sort":
        length = 10_000
    x = tn.asarray(np.random.default_rng(1).uniform(1, 2, length))
    turns = [PAIRS[0]] * 4 + PAIRS + PAIRS[::-1]
    for turn, (c, d) in enumerate(turns):
        with tn.options(tier=tier, hot_threshold=3):
            found = np.asarray(formula(x, c, d))
        with tn.options(device="reference"):
            wanted = np.asarray(formula(x, c, d))
        np.testing.assert_allclose(found, wanted, rtol=1e-13, err_msg=f"turn {turn}: {c}, {d}")


@pytest.mark.parametrize("length", [18, 1000])
def test_a_population_covariance_and_then_that_of_a_sample(length):
    sample = np.random.default_rng(2).uniform(1, 2, (3, length))
    x = tn.asarray(sample)

    def covariance(x, n, ddof):
        centred = x - tn.sum(x, axis=1, keepdims=True) / n
        return centred @ centred.T / (n - ddof)

    for ddof in [0] * 4 + [1, 0, 1]:
        with tn.options(hot_threshold=3):
            found = np.asarray(covariance(x, length, ddof))
        np.testing.assert_allclose(found, np.cov(sample, ddof=ddof), rtol=1e-12)
