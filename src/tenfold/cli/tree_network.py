"""Tree network of `tenfold demo`: an ordinary recursion over random trees, trained for a second.

A leaf is 0 or 1. The network learns whether a tree has more ones than zeros. Each call of `cell`
is one node of a graph; equal calls run as one batch, forwards and backwards. Hands on one line.

    train()    # "tree network: ..."
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

import tenfold as tn

SECONDS, MIN_TRAINING_STEPS = 1.0, 40
"""Time of the training, and the steps that it takes on a slow machine too."""
TREE_COUNT, LEAF_COUNT, STATE_LENGTH = 32, 7, 16
STEP_SIZE = 0.5
SMOOTHED = 8
"""First and last steps whose mean loss is printed."""

LeafTree = Any
"""0, 1, or a pair of trees."""
Weights = tuple[tn.Array, tn.Array, tn.Array]
"""Of a cell, (n, 2n); of the two leaves, (2, n); of the answer, (n,)."""


@tn.function
def cell(weights: tn.Array, left: tn.Array, right: tn.Array) -> tn.Array:
    """Return the state of a node from those of its children, (n,)."""
    return tn.tanh(weights @ tn.concat([left, right]))


def tree_state(weights: tn.Array, leaves: Sequence[tn.Array], tree: LeafTree) -> tn.Array:
    """Return the state of a tree."""
    if isinstance(tree, int):
        return leaves[tree]
    left, right = (tree_state(weights, leaves, child) for child in tree)
    return cell(weights, left, right)


def loss_of(weights: Weights, forest: Sequence[LeafTree], truths: np.ndarray) -> tn.Array:
    """Return the mean cross-entropy of the answers for some trees."""
    cells, table, last = weights
    z = tn.stack([tree_state(cells, [table[0], table[1]], tree) for tree in forest]) @ last
    return tn.mean(tn.logaddexp(z, 0.0) - truths * z)


def random_tree(random: np.random.Generator, leaves: Sequence[int]) -> LeafTree:
    """Return a tree of random shape with these leaves."""
    if len(leaves) == 1:
        return int(leaves[0])
    cut = int(random.integers(1, len(leaves)))
    return random_tree(random, leaves[:cut]), random_tree(random, leaves[cut:])


def train() -> str:
    """Train on new trees in each step, and return what to print."""
    random = np.random.default_rng(0)
    shapes = (STATE_LENGTH, 2 * STATE_LENGTH), (2, STATE_LENGTH), (STATE_LENGTH,)
    weights = [tn.asarray(random.normal(0, STATE_LENGTH**-0.5, shape)) for shape in shapes]
    step, losses, begin = tn.value_and_grad(loss_of), list[float](), time.perf_counter()
    with tn.profile() as p:
        while len(losses) < MIN_TRAINING_STEPS or time.perf_counter() < begin + SECONDS:
            leaves = random.integers(2, size=(TREE_COUNT, LEAF_COUNT))
            forest = [random_tree(random, row.tolist()) for row in leaves]
            loss, slopes = step(tuple(weights), forest, (leaves.mean(axis=1) > 0.5) * 1.0)
            weights = [w - STEP_SIZE * slope for w, slope in zip(weights, slopes, strict=True)]
            tn.eval(loss, *weights)
            losses.append(loss.item())
    seconds, count = time.perf_counter() - begin, len(losses)
    first, last = np.mean(losses[:SMOOTHED]), np.mean(losses[-SMOOTHED:])
    return (
        f"network over trees, trained for {seconds:.1f} s: loss {first:.2f} -> {last:.2f}, "
        f"{count} steps, {p.compiles} kernels compiled\n"
        f"  a step has {TREE_COUNT * (LEAF_COUNT - 1)} calls of a cell and their gradients, "
        f"in {p.launches // count} launches"
    )
