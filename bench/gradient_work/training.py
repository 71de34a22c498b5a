"""A step of training a network of three layers: loss, gradients, and SGD in place.

Takes the number of rounds; hands on one row. Every library has its own weights, which its steps
change; NumPy's step is written by hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
from engine_work.rows import Turn, at_least, at_most, medians, milliseconds, ratio, row
from kernel_work import THREADS
from kernel_work.measure import Row

import tenfold as tn

SIZES, BATCH, RATE = (256, 512, 512, 10), 4096, np.float32(0.05)
STEPS, BOUND = 3, 1e-4
"""Steps after which weights are compared, and how far the largest one may be off."""
NEEDS = {"jax": 0.95, "torch": 1.2}

Arrays = Sequence[Any]


def weights(seed: int) -> list[np.ndarray]:
    """Return a matrix and a row of zeros for each layer."""
    random, found = np.random.default_rng(seed), []
    for rows, columns in pairwise(SIZES):
        matrix = random.standard_normal((rows, columns), dtype=np.float32)
        found += [matrix * np.float32(rows**-0.5), np.zeros(columns, np.float32)]
    return found


def samples(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and the classes that they have, one-hot."""
    random = np.random.default_rng(1)
    x = random.standard_normal((count, SIZES[0]), dtype=np.float32)
    return x, np.eye(SIZES[-1], dtype=np.float32)[random.integers(0, SIZES[-1], count)]


def logits(xp: Any, parameters: Arrays, x: Any) -> Any:
    w1, b1, w2, b2, w3, b3 = parameters
    return xp.tanh(xp.tanh(x @ w1 + b1) @ w2 + b2) @ w3 + b3


def training_rows(rounds: int, quick: bool, installed: set[str]) -> Iterator[Row]:
    """The row."""
    x, y = samples(BATCH // (8 if quick else 1))
    parameters, turns = turns_of(x, y, installed)
    for _ in range(STEPS - 1):
        for turn in turns.values():
            turn()
    with tn.profile() as p:
        turns["tenfold"]()
    for name in turns.keys() - {"tenfold"}:
        turns[name]()
    wrong = {}
    for name in turns.keys() - {"numpy"}:
        pairs = zip(parameters[name], parameters["numpy"], strict=True)
        error = max(np.max(np.abs(to_numpy(a) - b)) for a, b in pairs)
        if not error <= BOUND:
            wrong[name] = f"differs from NumPy's by {error:.3g}"
    forward = {"forward": lambda: loss_of(parameters["tenfold"], *map(tn.asarray, (x, y))).wait()}
    found = milliseconds({**turns, **forward}, rounds)
    made = row(
        "network",
        f"step of {'-'.join(map(str, SIZES))}, {len(x):,} rows, float32, SGD in place",
        medians(found),
        *(at_least(n, ratio(found, k, "tenfold") if k in found else None, f"x {k}")
          for k, n in NEEDS.items()),
        {**at_most(0, p.copies, "copies"), "exact": True},
    )  # fmt: skip
    yield {**made, "wrong": wrong}


def to_numpy(x: Any) -> np.ndarray:
    return np.asarray(x.detach() if hasattr(x, "detach") else x)


def loss_of(parameters: Arrays, x: tn.Array, y: tn.Array) -> tn.Array:
    return -tn.sum(tn.log_softmax(logits(tn, parameters, x), axis=-1) * y) / len(x)


def turns_of(x: np.ndarray, y: np.ndarray, installed: set[str]) -> tuple[Any, dict[str, Turn]]:
    """The weights of each library, and a turn that changes them."""
    parameters: dict[str, Any] = {"numpy": weights(0), "tenfold": [*map(tn.asarray, weights(0))]}
    turns = {
        "tenfold": tenfold_turn(parameters["tenfold"], x, y),
        "numpy": lambda: numpy_step(parameters["numpy"], x, y),
    }
    if "jax" in installed:
        parameters["jax"], turns["jax"] = jax_turn(x, y)
    if "torch" in installed:
        parameters["torch"], turns["torch"] = torch_turn(x, y)
    return parameters, turns


def tenfold_turn(parameters: list[tn.Array], x: np.ndarray, y: np.ndarray) -> Turn:
    rows, classes = tn.asarray(x), tn.asarray(y)
    gradient = tn.value_and_grad(lambda given: loss_of(given, rows, classes))

    def turn() -> tn.Array:
        loss, gradients = gradient(parameters)
        for w, g in zip(parameters, gradients, strict=True):
            w -= RATE * g
        tn.eval(loss, *parameters)
        for w in parameters:
            w.wait()
        return loss

    return turn


def numpy_step(parameters: list[np.ndarray], x: np.ndarray, y: np.ndarray) -> None:
    w1, b1, w2, b2, w3, b3 = parameters
    first = np.tanh(x @ w1 + b1)
    second = np.tanh(first @ w2 + b2)
    z = second @ w3 + b3
    powers = np.exp(z - z.max(axis=-1, keepdims=True))
    g3 = (powers / powers.sum(axis=-1, keepdims=True) - y) / np.float32(len(x))
    g2 = (g3 @ w3.T) * (1 - second * second)
    g1 = (g2 @ w2.T) * (1 - first * first)
    for w, g in ((w3, second.T @ g3), (w2, first.T @ g2), (w1, x.T @ g1)):
        w -= RATE * g
    for b, g in ((b3, g3), (b2, g2), (b1, g1)):
        b -= RATE * g.sum(axis=0)


def jax_turn(x: np.ndarray, y: np.ndarray) -> tuple[Any, Turn]:
    jax, jnp = import_module("jax"), import_module("jax.numpy")
    rows, classes = jax.device_put(x), jax.device_put(y)
    parameters = [*map(jax.device_put, weights(0))]

    def loss(given: Arrays) -> Any:
        return -jnp.sum(jax.nn.log_softmax(logits(jnp, given, rows)) * classes) / len(x)

    def step(given: Arrays) -> Any:
        return [w - RATE * g for w, g in zip(given, jax.grad(loss)(given), strict=True)]

    compiled = jax.jit(step, donate_argnums=0)

    def turn() -> None:
        parameters[:] = jax.block_until_ready(compiled([*parameters]))

    return parameters, turn


def torch_turn(x: np.ndarray, y: np.ndarray) -> tuple[Any, Turn]:
    torch = import_module("torch")
    torch.set_num_threads(THREADS)
    rows, classes = torch.from_numpy(x), torch.from_numpy(y)
    parameters = [torch.from_numpy(w).requires_grad_() for w in weights(0)]

    @torch.compile
    def loss(*given: Any) -> Any:
        return -(torch.log_softmax(logits(torch, given, rows), -1) * classes).sum() / len(x)

    def turn() -> None:
        gradients = torch.autograd.grad(loss(*parameters), parameters)
        with torch.no_grad():
            torch._foreach_add_(parameters, gradients, alpha=-float(RATE))

    return parameters, turn
