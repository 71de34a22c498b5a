"""A loop of Python that is read at its end: its repeated step is planned once."""

from __future__ import annotations

import numpy as np

import tenfold as tn


def descend(steps: int) -> tn.Array:
    X, y, w = tn.asarray(np.eye(60, 30)), tn.asarray(np.arange(60.0)), tn.zeros(30)
    for _ in range(steps):
        w = w - 0.1 * (X.T @ (X @ w - y) / 60)
    return w


def test_first_evaluation_plans_the_step_of_a_loop_once(planned: list[int]) -> None:
    descend(80).wait()
    assert len(planned) <= 8  # the first step, the others, and with symbolic lengths
