"""One value that is read in the middle of a big pending program.

Takes nothing but whether a quick look will do; hands on a row of counters. The program is the
Tree-LSTM over a batch of trees. When half of it is written, the state of one of these trees is
read; the others are still pending when the second half is written.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from engine_work.rows import at_most, is_so, row
from kernel_work.measure import Row

import tenfold as tn
from trees.syntax_trees import Tree, labels, trees
from trees.tree_lstm import Encoder, tree_lstm, weights

TREES, HIDDEN, DEPTH = 256, 32, 4
WORSE = 1.2
"""Times as many launches as without the read."""
BOUND = 1e-5
"""Between states, of which BLAS multiplies by other batches."""


def reads(_: int, quick: bool) -> Iterator[Row]:
    """The row."""
    forest = trees(TREES // (8 if quick else 1))
    encode = tree_lstm(weights(labels(forest), HIDDEN))
    counts, values, after = {}, {}, {}
    for read in (False, True, False, True):  # the first two compile
        counts[read], values[read], after[read] = launched(forest, encode, read)
    title = f"{len(forest)} trees, and the state of one is read when half of them are written"
    yield row(
        "read",
        f"{title}: {counts[True]} launches, {counts[False]} without the read",
        {},
        at_most(WORSE, counts[True] / counts[False], "x the launches without the read"),
        is_so("the others are pending after it", after[True] > counts[True] / 2),
        is_so("the same values", np.allclose(values[True], values[False], rtol=0, atol=BOUND)),
    )


def launched(forest: list[Tree], encode: Encoder, read: bool) -> tuple[int, np.ndarray, int]:
    """Launches, values of the roots, and how many launches came after the read."""
    half = len(forest) // 2
    with tn.profile() as p:
        roots = [encode(tree) for tree in forest[:half]]
        if read:
            flat = next(k for k, tree in enumerate(forest[:half]) if tree.depth <= DEPTH)
            float(roots[flat][0])
        with tn.profile() as rest:
            roots += [encode(tree) for tree in forest[half:]]
            tn.eval(*roots)
            roots[-1].wait()
    return p.launches, np.array([*map(np.asarray, roots)]), rest.launches
