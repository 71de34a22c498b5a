"""`tenfold.numpy.random`: NumPy's functions of one global generator, and RandomState."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import tenfold as tn
import tenfold.numpy as np

CALLS: dict[str, Callable[[Any], Any]] = {
    "rand": lambda r: (r.rand(3, 2), r.rand(4)),
    "randn": lambda r: r.randn(2, 3, 1),
    "randint": lambda r: (r.randint(5, size=4), r.randint(2, 9, (3, 2))),
    "randint int8": lambda r: r.randint(0, 100, 3, "int8"),
    "random_sample": lambda r: (r.random_sample((2, 2)), r.random(3), r.ranf(2), r.sample(2)),
    "normal": lambda r: (r.normal(0, 1, 4), r.normal([0.0, 5.0], 1), r.normal(size=(2, 3))),
    "uniform": lambda r: r.uniform(-1, 1, (2,)),
    "exponential": lambda r: r.exponential(2.0, 3),
    "poisson": lambda r: r.poisson(3, 5),
    "binomial": lambda r: r.binomial(10, 0.5, 5),
    "choice": lambda r: (r.choice(5, 3), r.choice([1, 2, 3], (2, 2)), r.choice(4, 2, False)),
    "permutation": lambda r: (r.permutation(6), r.permutation([3, 1, 2])),
    "multivariate_normal": lambda r: r.multivariate_normal([0, 0], [[1, 0], [0, 1]], 3),
    "standard_normal": lambda r: r.standard_normal((2, 2)),
    "beta": lambda r: r.beta(2, 3, 4),
    "gamma": lambda r: r.gamma(2.0, 1.0, 4),
    "laplace": lambda r: r.laplace(0, 1, 2),
    "dirichlet": lambda r: r.dirichlet([1, 2, 3], 2),
    "multinomial": lambda r: r.multinomial(10, [0.5, 0.5], 3),
    "triangular": lambda r: r.triangular(0, 1, 2, 3),
}


def results(call: Callable[[Any], Any], module: Any) -> list[numpy.ndarray]:
    made = call(module)
    return [numpy.asarray(each) for each in (made if isinstance(made, tuple) else (made,))]


@pytest.mark.parametrize("name", CALLS)
def test_functions_take_the_arguments_of_numpy(name: str) -> None:
    np.random.seed(5)
    found = results(CALLS[name], np.random)
    expected = results(CALLS[name], numpy.random)
    assert [(x.shape, x.dtype) for x in found] == [(x.shape, x.dtype) for x in expected]
    np.random.seed(5)
    for one, other in zip(results(CALLS[name], np.random), found, strict=True):
        assert one.tobytes() == other.tobytes()
    further = results(CALLS[name], np.random)
    assert any(one.tobytes() != other.tobytes() for one, other in zip(further, found, strict=True))


def test_all_functions_of_numpy_are_there() -> None:
    theirs = numpy.random
    names = {name for name in theirs.__all__ if not inspect.isclass(getattr(theirs, name))}
    assert {name for name in names if not callable(getattr(np.random, name, None))} == set()
    assert names <= set(np.random.__all__)
    methods = {name for name in dir(numpy.random.RandomState) if not name.startswith("_")}
    assert {name for name in methods if not hasattr(np.random.RandomState, name)} == {"tomaxint"}


def test_a_random_state_has_a_state_of_its_own() -> None:
    first, second = np.random.RandomState(3), np.random.RandomState(3)
    np.random.seed(3)
    drawn = first.rand(4).tolist()
    assert second.rand(4).tolist() == np.random.rand(4).tolist() == drawn
    state = first.get_state()
    later = first.randn(3).tolist()
    first.set_state(state)
    assert first.randn(3).tolist() == later
    copy = pickle.loads(pickle.dumps(first))
    assert copy.randn(3).tolist() == first.randn(3).tolist()
    first.seed(3)
    assert first.rand(4).tolist() == drawn


def test_shuffle_and_seed_of_nothing() -> None:
    x = np.arange(20)
    np.random.shuffle(x)
    assert sorted(x.tolist()) == list(range(20))
    np.random.seed()
    before = np.random.rand(4).tolist()
    np.random.seed()
    assert np.random.rand(4).tolist() != before


def test_both_bounds_of_random_integers_are_drawn() -> None:
    np.random.seed(1)
    drawn = np.random.random_integers(2, 4, 1000)
    assert (int(drawn.min()), int(drawn.max())) == (2, 4)
    assert int(np.random.random_integers(3, size=1000).min()) == 1


def test_draws_fuse_with_what_follows() -> None:
    with tn.options(tier=1), tn.profile() as counted:
        float(np.mean(np.random.rand(10_000) ** 2))
    assert counted.kernels == 1
