"""Loops that assign single elements: what one loop has shown holds for loops of its form alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import tenfold as tn
from tenfold import _native

LENGTH, RUNS = 331, 10
"""A length of its own: what is remembered of an array of another length does not count."""
NOISE = tn.asarray(np.random.default_rng(0).normal(size=LENGTH))


def loop(noise: Callable[[int], tn.Array]) -> tn.Array:
    x = tn.zeros(LENGTH)
    for t in range(1, LENGTH):
        x[t] = 0.9 * x[t - 1] + noise(t)
    return x.wait()


def kernels_of(noise: Callable[[int], tn.Array]) -> int:
    """The kernels of a loop that has run some times."""
    for _ in range(RUNS):
        loop(noise)
    before = _native.read_counters()["kernels"]
    loop(noise)
    return _native.read_counters()["kernels"] - before


def test_a_loop_with_draws_leaves_the_assignments_of_another_one_deferred() -> None:
    def drawn(t: int) -> tn.Array:
        return tn.random.exponential(1, t)

    def known(t: int) -> tn.Array:
        return NOISE[t]

    assert kernels_of(drawn) > LENGTH  # each step by itself
    assert kernels_of(known) < LENGTH  # several at once
    expected = np.zeros(LENGTH)
    for t in range(1, LENGTH):
        expected[t] = 0.9 * expected[t - 1] + np.asarray(NOISE)[t]
    np.testing.assert_allclose(np.asarray(loop(known)), expected, rtol=1e-14)
