"""Derivatives of gamma numbers and of what is made of them, by their parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special

import tenfold as tn
from tenfold.errors import UnsupportedError
from tenfold.ops.gamma_derivatives import gamma_slope
from tenfold.testing import check_gradients

R = tn.random
SHAPES = [0.05, 0.5, 1.0, 2.5, 40.0, 1e3]
COUNT = 50_000


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("share", [1e-3, 0.2, 0.5, 0.9, 1 - 1e-6])
def test_slope_is_that_of_the_quantile(shape: float, share: float) -> None:
    def quantile(a: float) -> float:
        upper = share > 0.5
        return float(special.gammainccinv(a, 1 - share) if upper else special.gammaincinv(a, share))

    step = 1e-3 * shape
    near, far = ((quantile(shape + d) - quantile(shape - d)) / (2 * d) for d in (step, 2 * step))
    found = gamma_slope(tn.asarray(shape), tn.asarray(quantile(shape))).item()
    assert np.isclose(found, (4 * near - far) / 3, rtol=1e-6)


def test_slopes_have_derivatives_by_shape_and_number() -> None:
    a, z = np.asarray([0.3, 2.0, 30.0]), np.asarray([0.1, 3.0, 25.0])
    check_gradients(lambda a, z: gamma_slope(a, z), a, z)


def test_gradients_of_gamma_numbers_are_pathwise() -> None:
    a = tn.asarray([0.4, 3.0])
    y, pull = tn.vjp(lambda a: R.standard_gamma(1, 2, a, size=(5, 2)), a)
    (found,) = pull(tn.ones((5, 2)))
    wanted = gamma_slope(tn.broadcast_to(a, (5, 2)), y)
    assert np.allclose(np.asarray(found), np.asarray(wanted).sum(0), rtol=1e-14)
    along = tn.jvp(lambda a: R.standard_gamma(1, 2, a, size=(5, 2)), (a,), (tn.ones(2),))[1]
    assert np.allclose(np.asarray(along), np.asarray(wanted), rtol=1e-14)
    keys, shapes = tn.arange(3), tn.asarray([1.0, 2.0, 3.0])

    def gradient(key: Any, a: Any) -> Any:
        return tn.grad(lambda a: tn.sum(R.standard_gamma(key, 2, a, size=3)))(a)

    alone = [gradient(keys[at], shapes[at]).item() for at in range(3)]
    assert np.allclose(tn.vmap(gradient)(keys, shapes).tolist(), alone, rtol=1e-14)


def is_near(draws: Any, parameter: Any, wanted: Any) -> bool:
    """Whether the gradient of a mean is what it is of many numbers, within 5 deviations."""
    samples = np.asarray(tn.jvp(draws, (parameter,), (tn.ones_like(parameter),))[1])
    return bool(abs(samples.mean() - wanted) < 5 * samples.std() / np.sqrt(samples.size))


def test_gradients_of_means_are_those_of_their_formulas() -> None:
    a = tn.asarray(2.5)
    assert is_near(lambda a: R.gamma(1, 3, a, 2.0, size=COUNT) ** 2, a, 24)
    assert is_near(lambda a: R.chisquare(1, 3, a, size=COUNT), a, 1)
    assert is_near(lambda a: R.f(1, 2, 3.0, a, size=COUNT), tn.asarray(9.0), -2 / 49)
    assert is_near(lambda a: R.standard_t(1, 2, a, size=COUNT) ** 2, tn.asarray(9.0), -2 / 49)
    by_a, by_b = 1.5 / 16, -2.5 / 16  # of the mean a / (a + b)
    assert is_near(lambda a: R.beta(1, 3, a, 1.5, size=COUNT), a, by_a)
    assert is_near(lambda b: R.beta(1, 3, 2.5, b, size=COUNT), tn.asarray(1.5), by_b)

    def share(a: Any) -> Any:
        return R.dirichlet(1, 3, tn.stack([a, tn.asarray(1.0), tn.asarray(0.5)]), size=COUNT)[:, 0]

    assert is_near(share, a, by_a)


def test_second_derivatives_are_of_gamma_numbers_alone() -> None:
    def second(f: Any) -> Any:
        return tn.grad(tn.grad(f))(2.5).item()

    mean = second(lambda a: tn.mean(R.standard_gamma(1, 3, a, size=COUNT) ** 3))
    assert np.isclose(mean, 6 * 2.5 + 6, rtol=0.05)  # a (a + 1) (a + 2)
    with pytest.raises(UnsupportedError, match="gamma_of_sum"):
        second(lambda a: tn.mean(R.beta(1, 3, a, 2.0, size=3)))
    with pytest.raises(UnsupportedError, match="third"):
        tn.grad(lambda a: second_of(a))(2.5)


def second_of(a: Any) -> Any:
    return tn.grad(tn.grad(lambda a: tn.mean(R.standard_gamma(1, 3, a, size=3))))(a)
