"""Gradients of many calls: calls of one function have one derivative, and are batched."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tn

COUNT, WIDTH = 400, 5


@tn.function
def pair(x: tn.Array, y: tn.Array) -> tuple[tn.Array, tn.Array]:
    return tn.sin(x) * y, tn.cos(y)


def operands() -> tuple[list[tn.Array], tn.Array]:
    random = np.random.default_rng(0)
    xs = [tn.asarray(random.standard_normal(WIDTH)) for _ in range(COUNT)]
    return xs, tn.asarray(random.standard_normal(WIDTH))


def test_calls_with_constants_have_the_derivative_of_those_without() -> None:
    xs, w = operands()
    half = COUNT // 2
    results = [pair(x, w if at < half else xs[0]) for at, x in enumerate(xs)]
    found = np.asarray(tn.grad_of(sum(tn.sum(a + b) for a, b in results), w))
    y = np.asarray(w)
    expected = sum(np.sin(np.asarray(x)) - np.sin(y) for x in xs[:half])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_results_without_cotangents_count_as_zero() -> None:
    xs, w = operands()
    results = [pair(x, w) for x in xs]
    loss = sum(tn.sum(a) for a, _ in results) + tn.sum(results[0][1])
    found = np.asarray(tn.grad_of(loss, w))
    expected = sum(np.sin(np.asarray(x)) for x in xs) - np.sin(np.asarray(w))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.cpu
def test_calls_are_batched_backwards_whichever_arguments_are_constants() -> None:
    xs, w = operands()
    watched = xs[: COUNT // 2]
    for _ in range(2):
        results = [pair(x, w) for x in xs]
        gradients = tn.grad_of([a for a, _ in results], [*watched, w], [tn.ones(WIDTH)] * COUNT)
        with tn.profile() as p:
            tn.eval(*gradients)
            gradients[0].wait()
    assert max(event.members for event in p.events) == COUNT
