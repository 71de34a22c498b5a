"""The Tree-LSTM with states so large that products are what takes time, beside nothing but these.

Takes the number of rounds; hands on one row. The ideal is what somebody has who knows all trees
beforehand: one product of all inputs, and for each level one product of all states of that height
that a parent wants, by `np.matmul` into arrays that are there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
from engine_work.rows import Turn, at_least, medians, milliseconds, ratio, row
from kernel_work.measure import Row

from batching_work import tree_peers
from trees.syntax_trees import Tree, labels, trees
from trees.tree_lstm import Weights, weights

TREES, HIDDEN = 256, 512
SHARE = 0.9
BOUND = 1e-5
CHECKED = 8
"""The roots of one in so many trees are compared."""


def levels(rounds: int, quick: bool) -> Iterator[Row]:
    """The row."""
    forest = trees(TREES // (8 if quick else 1))
    given = weights(labels(forest), HIDDEN)
    run = tree_peers.tenfold_runner(given)
    expected = tree_peers.numpy_runner(given)(forest[::CHECKED])  # node by node: it takes long
    pairs = zip(run(forest)[::CHECKED], expected, strict=True)
    error = max(np.abs(np.asarray(root) - state).max() for root, state in pairs)
    sizes = sizes_of(forest)
    found = milliseconds({"tenfold": lambda: run(forest), "numpy": products(sizes, given)}, rounds)
    multiply_adds = sum(sizes) * given.w.size
    title = f"Tree-LSTM of {HIDDEN}, {len(forest)} trees; for NumPy the products alone, by levels"
    made = row(
        "levels",
        f"{title}: {len(sizes)} products, {multiply_adds / 1e9:.1f} G multiply-adds, "
        f"{multiply_adds / medians(found)['numpy'] * 2e-6:.0f} GFLOP/s",
        medians(found),
        at_least(SHARE, ratio(found, "numpy", "tenfold"), "of the speed of ideal products"),
    )
    yield {**made, "wrong": {} if error <= BOUND else {"tenfold": f"differs by {error:.3g}"}}


def sizes_of(forest: list[Tree]) -> list[int]:
    """How many inputs there are, and how many children of each height."""
    heights: Counter[int] = Counter()

    def height(tree: Tree) -> int:
        below = [height(child) for child in tree.children]
        heights.update(below)
        return 1 + max(below, default=0)

    for tree in forest:
        height(tree)
    return [heights.total() + len(forest), *(count for _, count in sorted(heights.items()))]


def products(sizes: list[int], given: Weights) -> Turn:
    """So many rows times the weights, one size after the other."""
    random = np.random.default_rng(5)
    operands = [random.uniform(-1, 1, (size, HIDDEN)).astype(np.float32) for size in sizes]
    results = [np.empty((size, 4 * HIDDEN), np.float32) for size in sizes]
    transposed = given.w.T.copy()

    def turn() -> None:
        for operand, result in zip(operands, results, strict=True):
            np.matmul(operand, transposed, out=result)

    return turn
