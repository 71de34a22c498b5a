"""Five rounds of trees that this process has not seen, by one library; see new_trees.py.

Takes the library, the number of trees of a round, how many are computed at once, and whether each
node has an array of its own ("distinct") or one of its label ("same"). Prints JSON: the seconds of
each round, the launches by depth of the deepest tree of the worst batch of each round (Tenfold
alone, in a second pass), and the largest difference from NumPy's states.
"""

from __future__ import annotations

# Sets the threads of every library, so it comes before all of them.
import kernel_work  # noqa: F401  # isort: skip  # first: it holds the threads of all

import json
import sys
import time
from collections.abc import Iterator
from itertools import count

import numpy as np

import tenfold as tn
from batching_work import tree_peers
from trees.syntax_trees import Tree, labels, trees
from trees.tree_lstm import weights

HIDDEN, ROUNDS = 128, 5


def main(library: str, per_round: int, size: int, distinct: bool) -> None:
    forest = trees(ROUNDS * per_round)
    if distinct:
        numbers = count()
        forest = [numbered(tree, numbers) for tree in forest]
    given = weights(labels(forest), HIDDEN)
    run = getattr(tree_peers, f"{library}_runner")(given)
    rounds = [forest[i * per_round : (i + 1) * per_round] for i in range(ROUNDS)]
    found: dict[str, list[float]] = {"seconds": [], "launches": [], "errors": []}
    expected = tree_peers.numpy_runner(given)
    for each in rounds:
        begun = time.perf_counter()
        states = [state for batch in batches(each, size) for state in run(batch)]
        found["seconds"].append(time.perf_counter() - begun)
        pairs = zip(states, expected(each), strict=True)
        found["errors"].append(max(float(np.abs(np.asarray(x) - y).max()) for x, y in pairs))
    if library == "tenfold":
        again = tree_peers.tenfold_runner(given)
        found["launches"] = [max(launches(again, b) for b in batches(r, size)) for r in rounds]
    print(json.dumps(found))


def batches(forest: list[Tree], size: int) -> Iterator[list[Tree]]:
    for begin in range(0, len(forest), size):
        yield forest[begin : begin + size]


def launches(run: tree_peers.Runner, batch: list[Tree]) -> float:
    """By depth of the deepest tree."""
    with tn.profile() as p:
        run(batch)
    return p.launches / max(tree.depth for tree in batch)


def numbered(tree: Tree, numbers: count[int]) -> Tree:
    """The same tree with a label of its own for each node."""
    label = f"{tree.label}#{next(numbers)}"
    return Tree(label, tuple(numbered(child, numbers) for child in tree.children))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "distinct")
