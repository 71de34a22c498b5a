"""Loops that name their state: the steps of a long graph are computed one after another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold import pipeline

MATRIX = np.random.default_rng(0).standard_normal((12, 12)) / 12
WEIGHTS = tn.asarray(MATRIX)

Wait = Callable[..., Any]


@tn.function
def cell(h: tn.Array, x: tn.Array) -> tn.Array:
    return tn.tanh(WEIGHTS @ h + x)


@tn.function
def sine(x: tn.Array) -> tn.Array:
    return tn.sin(x) - 0.25 * x


def descent(steps: int, wait: Wait) -> list[tn.Array]:
    x, y = tn.asarray(MATRIX), tn.asarray(MATRIX[0])
    w = tn.zeros(12)
    for _ in range(steps):
        w = w - 0.1 * (x.T @ (x @ w - y) / 12)
        wait(w)
    return [w]


def power_iteration(steps: int, wait: Wait) -> list[tn.Array]:
    g, d = tn.asarray(MATRIX), tn.asarray(MATRIX[0])
    for _ in range(steps):
        d = g @ d
        d = d / tn.linalg.vector_norm(d)
        wait(d)
    return [d]


def swapped(steps: int, wait: Wait) -> list[tn.Array]:
    a, b = tn.asarray(MATRIX[0]), tn.asarray(MATRIX[1])
    for _ in range(steps):
        a, b = b, tn.sin(a + b) @ tn.asarray(MATRIX)
        wait(a, b)
    return [a, b]


def assigned(steps: int, wait: Wait) -> list[tn.Array]:
    u = tn.asarray(MATRIX[0])
    for _ in range(steps):
        u[1:-1] += 0.25 * (u[:-2] + u[2:] - 2 * u[1:-1])
        wait(u)
    return [u]


def drawn(steps: int, wait: Wait) -> list[tn.Array]:
    rng, x, losses = tn.random.default_rng(3), tn.asarray(MATRIX[0]), []
    for k in range(steps):
        x = 0.5 * x + rng.random(12) if k % 7 else tn.roll(x, 1)
        losses.append(tn.mean(x * x))
        wait(x, losses[-1])
    return [x, *losses]


def nested(steps: int, wait: Wait) -> list[tn.Array]:
    a, matrix, kept = tn.asarray(MATRIX[0]), tn.asarray(MATRIX + 3 * np.eye(12)), []
    for k in range(steps // 4):
        for _ in range(4):
            a = tn.linalg.solve(matrix, a) + 0.1
            wait(a)
        a = cell(a, a)
        wait(a)
        if k % 10 == 0:
            kept.append(a)
    return [a, *kept]


LOOPS = (descent, power_iteration, swapped, assigned, drawn, nested)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("steps", [57, 150])
def test_results_have_the_bits_of_waiting_in_each_step(
    loop: Callable[[int, Wait], list[tn.Array]], steps: int
) -> None:
    expected = [np.asarray(x) for x in loop(steps, tn.eval)]
    for _ in range(2):
        found = loop(steps, lambda *_: None)
        tn.eval(*found)
        assert [np.asarray(x).tobytes() for x in found] == [x.tobytes() for x in expected]


Step = Callable[[tn.Array, tn.Array], tuple[tn.Array, tn.Array]]

STEPS: dict[str, Step] = {
    "roll": lambda x, y: (tn.roll(x, -1), y),
    "affine": lambda x, y: (x * 0.5 + 1, y),
    "swap": lambda x, y: (y, tn.maximum(x * y, 0.5) - 0.25),
    "product": lambda x, y: (WEIGHTS @ x, y),
    "sum": lambda x, y: (x / (1 + tn.sum(x * x)), y),
    "call": lambda x, y: (0.5 * cell(x, x), y),
    "calls and a swap": lambda x, y: (y - 0.45 * sine(x), 0.5 * cell(y, sine(x))),
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_equal_steps_are_planned_once_and_more_steps_never(
    step: Step, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, bind_plan = [0], pipeline._bind_plan

    def counted(*arguments: Any) -> Any:
        made[0] += 1
        return bind_plan(*arguments)

    def plans(steps: int) -> int:
        x, y = tn.asarray(MATRIX[0]), tn.asarray(MATRIX[1])
        for _ in range(steps):
            x, y = step(x, y)
        before = made[0]
        x.wait()
        return made[0] - before

    monkeypatch.setattr(pipeline, "_bind_plan", counted)
    with tn.options(tier="1"):  # nothing compiles meanwhile
        tn.trim()
        assert 0 < plans(299) < 10
        assert plans(300) < 3
        assert [plans(steps) for steps in (301, 302, 303, 309, 310, 333, 398, 399)] == [0] * 8


@pytest.mark.usefixtures("fused_multiply_add")  # a function of elements is part of a kernel
@pytest.mark.parametrize("samples", [2, 4, 32])
def test_steps_of_samples_are_batched_in_either_order(samples: int) -> None:
    steps = 128 // samples + 40
    xs = [[tn.asarray(MATRIX[s % 12] * t) for t in range(steps)] for s in range(samples)]

    def launches(order: list[tuple[int, int]]) -> int:
        hs = [tn.zeros(12) for _ in range(samples)]
        for s, t in order:
            hs[s] = cell(hs[s], xs[s][t])
        with tn.profile() as p:
            tn.eval(*hs)
            for h in hs:
                h.wait()
        return p.launches

    by_time = launches([(s, t) for t in range(steps) for s in range(samples)])
    by_sample = launches([(s, t) for s in range(samples) for t in range(steps)])
    assert by_sample == by_time <= 3 * steps + 4


def test_a_function_that_raises_in_a_step_is_called_once() -> None:
    raised = []

    def half(x: np.ndarray) -> np.ndarray:
        if x[0] < 1e-9:
            raised.append(x)
            raise ValueError("too small")
        return x / 2

    @tn.op(reference=half, dtypes="floating")
    def halved(x: tn.Array) -> tn.Array:
        """Half of x."""

    x, other, kept = tn.asarray([1.0]), tn.asarray([0.0]), []
    for _ in range(200):
        x, other = halved(x), other + 1
        kept.append(x)
    results = tn.stack([other, other])
    with pytest.raises(tn.errors.RunError, match="too small"):
        x.wait()
    assert len(raised) == 1
    assert kept[20].tolist() == [2.0**-21]
    assert results.tolist() == [[200.0]] * 2


def test_an_interrupted_loop_goes_on_where_it_was() -> None:
    calls = []

    def half(x: np.ndarray) -> np.ndarray:
        calls.append(x)
        if len(calls) == 50:
            raise KeyboardInterrupt
        return x / 2

    @tn.op(reference=half, dtypes="floating")
    def halved(x: tn.Array) -> tn.Array:
        """Half of x."""

    x = tn.asarray([1.0])
    for _ in range(200):
        x = halved(x) + 1
    with pytest.raises(KeyboardInterrupt):
        x.wait()
    assert x.tolist() == [2.0]
    assert len(calls) <= 210


def test_a_failing_step_has_its_error_and_keeps_what_came_before() -> None:
    regular, singular = tn.asarray(np.eye(3) * 2), tn.zeros((3, 3))
    w, other, kept = tn.ones(3), tn.zeros(4), []
    for k in range(200):
        other = other * 0.5 + 1
        w = tn.linalg.solve(singular if k == 57 else regular, w) + 1
        kept.append(w)
    for _ in range(2):
        tn.eval(other, w)
        with pytest.raises(np.linalg.LinAlgError, match="solve: Singular matrix"):
            w.wait()
    assert kept[56].tolist() == pytest.approx([2.0] * 3)
    assert other.tolist() == [2.0] * 4
