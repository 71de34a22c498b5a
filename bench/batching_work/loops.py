"""Loops of small operations written as in NumPy: products with one matrix, products of pairs, maps.

Takes the number of rounds; hands on a row for each loop. A turn makes the list of results and has
them computed; NumPy computes as it goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from engine_work.rows import at_most, medians, milliseconds, ratio, row
from kernel_work.measure import Row

import tenfold as tn

COUNT, ORDER = 20_000, 8
MOST = 0.45
ULPS = 4
"""Of a sum of eight products, and of tanh, beside NumPy's."""

Loop = Callable[[Any, Sequence[Any], Sequence[Any]], list[Any]]
"""Of the library, vectors, and matrices."""


def one_matrix(_: Any, xs: Sequence[Any], matrices: Sequence[Any]) -> list[Any]:
    w = matrices[0]
    return [w @ x for x in xs]


def pairs(_: Any, __: Sequence[Any], matrices: Sequence[Any]) -> list[Any]:
    return [a @ b for a, b in pairwise(matrices)]


def maps(library: Any, xs: Sequence[Any], _: Sequence[Any]) -> list[Any]:
    tanh = library.tanh
    return [tanh(x + 1) for x in xs]


LOOPS: dict[str, tuple[Loop, str]] = {
    "one-matrix": (one_matrix, "`w @ x` of one 8x8 matrix and {:,} vectors"),
    "pairs": (pairs, "`a @ b` of {:,} pairs of 8x8"),
    "maps": (maps, "`tanh(x + 1)` of {:,} vectors of 8"),
}


def loops(rounds: int, quick: bool) -> Iterator[Row]:
    """The rows."""
    count, random = COUNT // (10 if quick else 1), np.random.default_rng(20)
    xs = [*random.uniform(-1, 1, (count, ORDER)).astype(np.float32)]
    matrices = [*random.uniform(-1, 1, (count + 1, ORDER, ORDER)).astype(np.float32)]
    given = [*map(tn.asarray, xs)], [*map(tn.asarray, matrices)]
    for name, (loop, title) in LOOPS.items():
        turns = turns_of(loop, (xs, matrices), given)
        together = zip(turns["tenfold"](), turns["numpy"](), strict=True)
        wrong = max(error(np.asarray(own), other) for own, other in together)
        found = milliseconds(turns, rounds)
        made = row(
            f"loop-{name}",
            title.format(count) + ", float32, made and computed",
            medians(found),
            at_most(MOST, ratio(found, "tenfold", "numpy"), "x numpy's time"),
        )
        yield {**made, "wrong": {} if wrong <= 1 else {"tenfold": f"{wrong:.2g} of the bound"}}


def turns_of(loop: Loop, arrays: Any, given: Any) -> dict[str, Any]:
    """One turn of each; they return the results."""

    def tenfold() -> list[tn.Array]:
        results = loop(tn, *given)
        tn.eval(*results)
        results[-1].wait()  # what was submitted together ends together
        return results

    return {"tenfold": tenfold, "numpy": lambda: loop(np, *arrays)}


def error(own: np.ndarray, other: np.ndarray) -> float:
    """The difference by the bound for it: products are sums of eight numbers of at most 1."""
    bound = ULPS * ORDER * float(np.finfo(np.float32).eps)
    return float(np.abs(own - other).max()) / bound
