"""The gradient of a loop of 2,000 steps by `tn.scan`, beside the loop itself and JAX's.

Takes the number of rounds; hands on one row: value and gradient by the state before the first step
and by the weights of the steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
from engine_work.rows import Turn, at_least, at_most, medians, milliseconds, ratio, row
from kernel_work.measure import Row

import tenfold as tn

STEPS, WIDTH, BOUND = 2000, 50, 1e-9


def inputs() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the first state, weights and rows."""
    random = np.random.default_rng(3)
    return (
        random.standard_normal(WIDTH),
        random.uniform(0.5, 0.9, WIDTH),
        random.standard_normal((STEPS, WIDTH)),
    )


def loss_of(library: Any, scan: Any, h: Any, w: Any, rows: Any) -> Any:
    def step(carry: Any, x: Any) -> tuple[Any, Any]:
        carry = library.tanh(w * carry + x)
        return carry, carry

    states = scan(step, h, rows)[1]
    return library.sum(states * states)


def numpy_gradient(h: np.ndarray, w: np.ndarray, rows: np.ndarray) -> Any:
    """Return the value and the gradients, step by step backwards."""
    states = [h]
    for x in rows:
        states.append(np.tanh(w * states[-1] + x))
    g, by_w = np.zeros(WIDTH), np.zeros(WIDTH)
    for before, after in zip(states[-2::-1], states[:0:-1], strict=True):
        inside = (g + 2 * after) * (1 - after * after)
        g, by_w = inside * w, by_w + inside * before
    return sum(float(np.sum(s * s)) for s in states[1:]), g, by_w


def scan_rows(rounds: int, _quick: bool, installed: set[str]) -> Iterator[Row]:
    """The row."""
    h, w, rows = inputs()
    given = [*map(tn.asarray, (h, w, rows))]
    forward = tn.function(lambda *given: loss_of(tn, tn.scan, *given))
    gradient = tn.function(
        tn.value_and_grad(lambda *given: loss_of(tn, tn.scan, *given), argnums=(0, 1))
    )

    def tenfold() -> Any:
        value, gradients = gradient(*given)
        tn.eval(value, *gradients)
        return value.wait(), gradients[0].wait(), gradients[1].wait()

    turns: dict[str, Turn] = {
        "tenfold": tenfold,
        "forward": lambda: forward(*given).wait(),
    }
    if "jax" in installed:
        jax, jnp = import_module("jax"), import_module("jax.numpy")
        put = [*map(jax.device_put, (h, w, rows))]
        compiled = jax.jit(
            jax.value_and_grad(lambda *given: loss_of(jnp, jax.lax.scan, *given), argnums=(0, 1))
        )
        turns["jax"] = lambda: jax.block_until_ready(compiled(*put))
    wrong = {}
    pairs = zip(tenfold(), numpy_gradient(h, w, rows), strict=True)
    error = max(np.max(np.abs(np.asarray(a) - b)) / np.max(np.abs(b)) for a, b in pairs)
    if not error <= BOUND:
        wrong["tenfold"] = f"differs from NumPy's by {error:.3g}"
    found = milliseconds(turns, rounds)
    made = row(
        "scan",
        f"tn.scan of {STEPS:,} steps of {WIDTH}, value and gradient",
        medians(found),
        at_most(5.0, ratio(found, "tenfold", "forward"), "x forward (backward alone: 4)"),
        at_least(2.0, ratio(found, "jax", "tenfold") if "jax" in found else None, "x jax"),
    )
    yield {**made, "wrong": wrong}
