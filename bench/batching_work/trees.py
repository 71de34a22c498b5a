"""Tree-LSTM inference over the syntax trees of the standard library, by batches of trees.

Takes the number of rounds; hands on a row for each size of a batch. A turn is all trees, batch by
batch; who does not batch has the same turn at every size. JAX has a few trees, and its time is
that of as many nodes as the others have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np
from engine_work.rows import Turn, at_least, at_most, medians, milliseconds, ratio, row
from kernel_work.measure import Row

import tenfold as tn
from batching_work import tree_peers
from trees.syntax_trees import Tree, labels, trees
from trees.tree_lstm import Weights, weights

TREES, HIDDEN, FEW = 512, 128, 4
SIZES = (1, 16, 64, 256, 512)
"""Trees in a batch."""
LEAST = 16
"""From this size on speed is required."""
NEEDS = {"numpy": 3.0, "torch": 8.0, "jax": 30.0}
DYNET, LAUNCHES = 3.0, 6.0
BOUND = 1e-5
"""Between states, which are from -1 to 1."""
RUNNERS = {
    "torch": tree_peers.torch_runner,
    "jax": tree_peers.jax_runner,
    "dynet": tree_peers.dynet_runner,
}

Times = Mapping[str, list[float]]


def tree_lstm_rows(rounds: int, quick: bool, installed: Mapping[str, object]) -> Iterator[Row]:
    """A row for each size of a batch, of times that were taken by turns all together."""
    forest = trees(TREES // (8 if quick else 1))
    given = weights(labels(forest), HIDDEN)
    sizes = [size for size in SIZES if size <= len(forest)]
    nodes = sum(tree.size for tree in forest)
    expected = tree_peers.numpy_runner(given)(forest)
    turns, wrong = turns_of(forest, given, sizes, installed, expected)
    found = milliseconds(turns, rounds)
    if "jax" in found:
        share = nodes / sum(tree.size for tree in forest[:FEW])
        found["jax"] = [time * share for time in found["jax"]]
    middle = medians(found)
    for size in sizes:
        own = f"tenfold-{size}"
        times = {"tenfold": middle[own]} | {n: middle[n] for n in NEEDS if n in middle}
        if f"dynet-{size}" in middle:
            times["dynet"] = middle[f"dynet-{size}"]
        launches, error = worst_launches(forest, size, given, expected)
        if not error <= BOUND:
            wrong = {**wrong, "tenfold": f"differs from NumPy's by {error:.3g}"}
        verdicts = [*speeds(found, own, sizes)] if size >= LEAST else []
        title = f"Tree-LSTM, {len(forest)} trees of {nodes:,} nodes, {size} at once"
        made = row(
            f"trees-{size}",
            f"{title}; {middle[own] / nodes * 1e3:.2f} us a node",
            times,
            *verdicts,
            at_most(LAUNCHES, launches, "launches by depth of the deepest tree"),
        )
        yield {**made, "wrong": wrong}


def turns_of(
    forest: list[Tree],
    given: Weights,
    sizes: list[int],
    installed: Mapping[str, object],
    expected: list[np.ndarray],
) -> tuple[dict[str, Turn], dict[str, str]]:
    """Everybody's turns, and whose values differ from NumPy's."""
    runners = {"tenfold": tree_peers.tenfold_runner(given), "numpy": tree_peers.numpy_runner(given)}
    present = (name for name in RUNNERS if installed.get(name) is not None)
    runners |= {name: RUNNERS[name](given) for name in present}
    turns: dict[str, Turn] = {}
    wrong: dict[str, str] = {}
    for name, run in runners.items():
        some = forest[:FEW] if name == "jax" else forest
        pairs = zip(run(some), expected, strict=False)
        error = max(np.abs(np.asarray(root) - state).max() for root, state in pairs)
        if not error <= BOUND:
            wrong[name] = f"differs from NumPy's by {error:.3g}"
        if name in ("tenfold", "dynet"):
            turns |= {f"{name}-{size}": partial(by_batches, run, some, size) for size in sizes}
        else:
            turns[name] = partial(run, some)
    return turns, wrong


def by_batches(run: tree_peers.Runner, forest: list[Tree], size: int) -> None:
    for begin in range(0, len(forest), size):
        run(forest[begin : begin + size])


def speeds(found: Times, own: str, sizes: list[int]) -> Iterator[Row]:
    """How many times as fast as the others, and as the best of DyNet's sizes."""
    by_size = [f"dynet-{size}" for size in sizes]
    best = min(by_size, key=lambda name: medians(found)[name]) if by_size[0] in found else None
    fastest = "dynet" if best is None else f"DyNet's best ({best.removeprefix('dynet-')} at once)"
    yield at_least(DYNET, None if best is None else ratio(found, best, own), f"x {fastest}")
    for name, need in NEEDS.items():
        yield at_least(need, ratio(found, name, own) if name in found else None, f"x {name}")


def worst_launches(
    forest: list[Tree], size: int, given: Weights, expected: list[np.ndarray]
) -> tuple[float, float]:
    """Of all batches, the most launches by depth of the deepest tree, and the largest error."""
    run, worst, error = tree_peers.tenfold_runner(given), 0.0, 0.0
    for begin in range(0, len(forest), size):
        batch = forest[begin : begin + size]
        with tn.profile() as p:
            roots = run(batch)
        pairs = zip(roots, expected[begin : begin + size], strict=True)
        error = max(error, *(np.abs(np.asarray(root) - state).max() for root, state in pairs))
        worst = max(worst, p.launches / max(tree.depth for tree in batch))
    return worst, error
