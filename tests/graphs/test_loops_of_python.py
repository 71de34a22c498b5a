"""A loop of Python that is read at its end: its repeated step is planned once, and costs
as much as by itself."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native


def descend(steps: int) -> tn.Array:
    X, y, w = tn.asarray(np.eye(60, 30)), tn.asarray(np.arange(60.0)), tn.zeros(30)
    for _ in range(steps):
        w = w - 0.1 * (X.T @ (X @ w - y) / 60)
    return w


def test_first_evaluation_plans_the_step_of_a_loop_once(planned: list[int]) -> None:
    descend(80).wait()
    assert len(planned) <= 8  # the first step, the others, and with symbolic lengths


def most_joined_steps(step: Callable[[tn.Array], tn.Array]) -> int:
    """The most steps of a loop of 100 that have one plan together."""
    x = tn.asarray(np.linspace(0.0, 1.0, 1000))
    for _ in range(100):
        x = step(x)
    return max(count for _, count, _ in _native.steps_of([_native.node_of(x)]))


@pytest.mark.parametrize("reduce", [tn.max, tn.sum, tn.cumulative_sum, tn.argmax])
def test_steps_with_a_reduction_are_not_joined(reduce: Callable[[tn.Array], tn.Array]) -> None:
    """Joined, each reduction would compute all steps before it again."""

    def step(x: tn.Array) -> tn.Array:
        y = tn.sin(x) + 1
        return y - 0.001 * reduce(y)

    assert most_joined_steps(step) == 1
    assert most_joined_steps(lambda x: tn.sin(x) * 0.5 + 1) > 1


@pytest.mark.parametrize("count", [65, 300])
def test_stack_of_many_results_needs_no_plan(count: int, planned: list[int]) -> None:
    states = [tn.asarray([float(number), 1.0]) for number in range(count)]
    first = tn.stack(states).wait()
    for _ in range(20):
        again = tn.stack(states).wait()
    assert not planned
    np.testing.assert_array_equal(np.asarray(first), np.asarray(again))
