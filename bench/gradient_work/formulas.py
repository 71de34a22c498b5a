"""Value and gradient of two formulas: a sum of maps, and the loss of a logistic regression.

Takes the number of rounds; hands on a row for each formula. Each library computes a number and the
gradient by one array, in one call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from engine_work.rows import Turn, at_least, at_most, medians, milliseconds, ratio, row
from kernel_work import THREADS
from kernel_work.measure import Row

import tenfold as tn

LENGTH, SAMPLES, FEATURES = 10**7, 10**6, 20
BOUND = 1e-10
"""Of the largest element of a gradient."""


class Formula(NamedTuple):
    """A loss in the words of a library, its arrays, and what is required."""

    name: str
    title: str
    loss: Callable[..., Any]
    """loss(library, array of the gradient, *others)"""
    gradient: Callable[..., tuple[Any, np.ndarray]]
    """By NumPy."""
    arrays: list[np.ndarray]
    of_forward: float | None
    of_jax: float
    of_torch: float
    kernels: int | None


def sum_of_maps(xp: Any, x: Any) -> Any:
    return xp.sum(xp.sin(x) * xp.exp(-x * x))


def gradient_of_maps(x: np.ndarray) -> tuple[Any, np.ndarray]:
    return sum_of_maps(np, x), (np.cos(x) - 2 * x * np.sin(x)) * np.exp(-x * x)


def logistic(xp: Any, w: Any, samples: Any, labels: Any) -> Any:
    z = samples @ w
    return xp.sum(xp.log1p(xp.exp(-xp.abs(z))) + xp.where(z > 0, z, 0.0 * z) - labels * z)


def gradient_of_logistic(
    w: np.ndarray, samples: np.ndarray, labels: np.ndarray
) -> tuple[Any, np.ndarray]:
    z = samples @ w
    return logistic(np, w, samples, labels), samples.T @ (1 / (1 + np.exp(-z)) - labels)


def formulas(quick: bool) -> Iterator[Formula]:
    random, factor = np.random.default_rng(20), 10 if quick else 1
    x = random.uniform(-2, 2, LENGTH // factor)
    title = f"sum(sin(x) * exp(-x * x)), {len(x):,} float64, value and gradient"
    yield Formula("maps", title, sum_of_maps, gradient_of_maps, [x], 1.3, 4.0, 8.0, 1)
    samples = random.standard_normal((SAMPLES // factor, FEATURES))
    w = random.standard_normal(FEATURES)
    labels = (samples @ w > random.standard_normal(len(samples))).astype(float)
    title = f"logistic regression, {len(samples):,} x {FEATURES}, value and gradient"
    arrays = [w, samples, labels]
    yield Formula("logistic", title, logistic, gradient_of_logistic, arrays, None, 1.5, 1.2, None)


def formula_rows(rounds: int, quick: bool, installed: set[str]) -> Iterator[Row]:
    """A row for each formula."""
    for formula in formulas(quick):
        turns = turns_of(formula, installed)
        expected = formula.gradient(*formula.arrays)
        wrong = {}
        for name in turns.keys() - {"forward"}:
            pairs = zip(turns[name](), expected, strict=True)
            errors = [np.max(np.abs(np.asarray(x) - y)) / np.max(np.abs(y)) for x, y in pairs]
            if not max(errors) <= BOUND:
                wrong[name] = f"differs from NumPy's by {max(errors):.3g}"
        with tn.profile() as p:
            turns["tenfold"]()
        found = milliseconds(turns, rounds)
        made = row(formula.name, formula.title, medians(found), *verdicts(formula, found, p))
        yield {**made, "wrong": wrong}


def verdicts(formula: Formula, found: dict[str, list[float]], p: Any) -> Iterator[Row]:
    if formula.of_forward is not None:
        yield at_most(formula.of_forward, ratio(found, "tenfold", "forward"), "x forward")
    if formula.kernels is not None:
        yield {**at_most(formula.kernels, p.kernels + p.calls, "kernel"), "exact": True}
    for name, need in (("jax", formula.of_jax), ("torch", formula.of_torch)):
        yield at_least(need, ratio(found, name, "tenfold") if name in found else None, f"x {name}")


def turns_of(formula: Formula, installed: set[str]) -> dict[str, Turn]:
    """One turn of each, which returns the value and the gradient."""
    arrays = [*map(tn.asarray, formula.arrays)]
    gradient = tn.value_and_grad(lambda *arrays: formula.loss(tn, *arrays))

    def tenfold() -> Any:
        found = gradient(*arrays)
        tn.eval(*found)
        return found[0].wait(), found[1].wait()

    turns: dict[str, Turn] = {
        "tenfold": tenfold,
        "forward": lambda: formula.loss(tn, *arrays).wait(),
    }
    if "jax" in installed:
        turns["jax"] = jax_turn(formula)
    if "torch" in installed:
        turns["torch"] = torch_turn(formula)
    return turns


def jax_turn(formula: Formula) -> Turn:
    jax, jnp = import_module("jax"), import_module("jax.numpy")
    given = [*map(jax.device_put, formula.arrays)]
    function = jax.jit(jax.value_and_grad(lambda *arrays: formula.loss(jnp, *arrays)))
    return lambda: jax.block_until_ready(function(*given))


def torch_turn(formula: Formula) -> Turn:
    torch = import_module("torch")
    torch.set_num_threads(THREADS)
    first, *rest = map(torch.from_numpy, formula.arrays)
    first.requires_grad_()
    loss = torch.compile(lambda *arrays: formula.loss(torch, *arrays))

    def turn() -> Any:
        value = loss(first, *rest)
        (gradient,) = torch.autograd.grad(value, first)
        return value.detach(), gradient

    return turn
