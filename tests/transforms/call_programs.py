"""Programs of calls and operations, random and alike, whose nodes a large graph groups."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import tenfold as tn


def several(count: int, *shape: int, dtype: Any = tn.float64, seed: int = 0) -> list[tn.Array]:
    """Arrays that are there, each with memory of its own."""
    given = np.random.default_rng(seed).normal(size=(count, *shape)) * 2
    made = [tn.astype(tn.asarray(one), dtype) for one in given]
    for x in made:
        x.wait()
    return made


def computed(arrays: list[tn.Array]) -> tn.Profile:
    """Compute arrays as one graph."""
    with tn.profile() as p:
        tn.eval(*arrays)
        for x in arrays:
            x.wait()
    return p


class State(NamedTuple):
    h: Any
    c: Any


def cell(x: Any, state: State) -> State:
    gate = tn.sigmoid(x + state.h)
    return State(tn.tanh(state.c) * gate, gate * state.c + x)


def functions(wrap: Callable[..., Any]) -> dict[str, Any]:
    """The functions of a program, as they are or traced."""
    weights = tn.asarray(np.arange(4.0) / 7)
    affine = wrap(lambda x, y: x * 3 - weights * y + tn.sum(weights))
    return {
        "affine": affine,
        "cell": wrap(cell),
        "tree": wrap(lambda t: {"a": (t["x"] + t["y"][0], t["x"]), "b": [t["y"][0] * 0.5]}),
        "folds": wrap(lambda x: (tn.sum(x), tn.max(x, axis=-1) if x.ndim else x)),
        "nested": wrap(lambda x, y: affine(x, y) * affine(y, x)),
        "scaled": wrap(lambda x, by: x * by + by),
    }


def step(name: str, function: dict[str, Any], given: list[tn.Array], number: float) -> list[Any]:
    """Apply what a name says to some of the arrays that are there."""
    x, y, z = given
    match name:
        case "cell":
            return [*function["cell"](x, State(y, z))]
        case "tree":
            made = function["tree"]({"x": x, "y": [y]})
            return [*made["a"], made["b"][0]]
        case "folds":
            return [*function["folds"](x)]
        case "scaled":
            return [function["scaled"](x, 1 + int(number * 2) / 4)]
        case "affine" | "nested":
            return [function[name](x, y)]
    return [PLAIN[name](x, y, number)]


def stored(x: Any, y: Any, number: float) -> tn.Array:
    made: tn.Array = x + number
    if made.ndim:
        made[1:3] = tn.sum(y)
    return made


PLAIN: dict[str, Callable[[Any, Any, float], tn.Array]] = {
    "add": lambda x, y, number: x + y,
    "number": lambda x, y, number: x * number - number,
    "one number": lambda x, y, number: 1.5 - x / 4,
    "unary": lambda x, y, number: tn.tanh(x),
    "where": lambda x, y, number: tn.where(x > y, x, -y),
    "sum": lambda x, y, number: tn.sum(x) * 0.25,
    "mean": lambda x, y, number: tn.mean(x, axis=-1, keepdims=True) if x.ndim else x * 1,
    "view": lambda x, y, number: x[..., ::-1] if x.ndim else x + 1,
    "transposed": lambda x, y, number: x.T + 0 if x.ndim == 2 else x - 2,
    "row": lambda x, y, number: x[int(number * 10) % x.shape[0]] if x.ndim else x * 2,
    "whole numbers": lambda x, y, number: tn.astype(tn.astype(x * 3, tn.int32), x.dtype),
    "stored": stored,
}
STEPS = ("cell", "tree", "folds", "affine", "nested", "scaled", *PLAIN)


def program(seed: int, nodes: int, wrap: Callable[..., Any], done: Callable[[Any], Any]) -> Any:
    """Write a random program; return the results that somebody holds."""
    rng = random.Random(seed)
    function = functions(wrap)
    leaves = [
        x
        for n, shape in enumerate([(), (4,), (4, 4)])
        for x in several(20, *shape, seed=n, dtype=(tn.float64, tn.float32)[seed % 2])
    ]
    there = list(leaves)
    deep = rng.choice([0.02, 0.1, 0.3])
    names = ["affine", *rng.sample(STEPS, 7)]
    held: list[tn.Array] = []
    made = 0
    while made < nodes:
        name, shared = rng.choice(names), rng.choice(leaves)
        by = rng.choice([0.0, 0.1])
        for turn in range(rng.choice([5, 60, 120])):
            drawn = [rng.choice(there if rng.random() < deep else leaves) for _ in range(3)]
            if rng.random() < 0.5:
                drawn[rng.randrange(3)] = shared
            results = [done(x) for x in step(name, function, drawn, 0.5 + turn * by)]
            made += len(results)
            there += results[: rng.randrange(1, 1 + len(results))]  # the others are dropped
            held += [x for x in results if rng.random() < 0.7]
    return held
