"""A million calls of a function that does next to nothing: what recursion costs in all.

Takes the number of rounds; hands on a row. The cell has the mean of two arrays of eight; trees are
random and binary. Beside it stands the recursion alone, whose cell gives back its left argument.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
from engine_work.rows import Turn, at_most, is_so, medians, milliseconds, row
from engine_work.trees import Tree, tree
from kernel_work.measure import Row

import tenfold as tn

TREES, CALLS = 1_000, 1_000
MOST = 0.8
"""Microseconds for a call in all."""
LEAVES, WIDTH = 100, 8


@tn.function
def mean(left: tn.Array, right: tn.Array) -> tn.Array:
    return (left + right) * 0.5


def left_alone(left: Any, _: Any) -> Any:
    return left


def calls(rounds: int, quick: bool) -> Iterator[Row]:
    """The row."""
    source = random.Random(1)
    forest = [tree(CALLS + 1, source) for _ in range(TREES // (20 if quick else 1))]
    leaves = np.random.default_rng(1).uniform(-1, 1, (LEAVES, WIDTH)).astype(np.float32)
    given = [*map(tn.asarray, leaves)]

    def tenfold() -> list[tn.Array]:
        roots = [encode(each, mean, given) for each in forest]
        tn.eval(*roots)
        roots[-1].wait()  # what was submitted together ends together
        return roots

    def recursion() -> None:
        for each in forest:
            encode(each, left_alone, given)

    first = [encode(each, lambda a, b: (a + b) * np.float32(0.5), leaves) for each in forest[:20]]
    same = [np.asarray(root).tobytes() for root in tenfold()[:20]] == [x.tobytes() for x in first]
    turns: dict[str, Turn] = {"tenfold": tenfold, "recursion": recursion}
    found = medians(milliseconds(turns, rounds))
    count = len(forest) * CALLS
    each = {name: time / count * 1e3 for name, time in found.items()}
    yield row(
        "calls",
        f"{count:,} calls of a cell over {len(forest):,} trees, made and computed; the recursion "
        f"alone takes {each['recursion']:.2f} us a call",
        {"tenfold": found["tenfold"]},
        at_most(MOST, each["tenfold"], "us a call in all"),
        is_so("NumPy's values", same),
    )


def encode(tree: Tree, cell: Any, leaves: Any) -> Any:
    """The value of a tree, whose leaves are numbers of arrays."""
    if isinstance(tree, int):
        return leaves[tree]
    left, right = tree
    return cell(encode(left, cell, leaves), encode(right, cell, leaves))
