"""New shapes of known structures: what binding them costs beside shapes that are known.

Takes nothing; hands on a row for each kind of shape. Each round makes `SHAPES` shapes that were
never seen and evaluates the expression on them once, and then on the same shapes twice more: a
plan is kept when a shape comes for the second time, so that the third time is that of old ones.
Each time the arrays are new, and made before anything is timed.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator

import numpy as np
from kernel_work.measure import Row, median
from kernel_work.thinking import planned

import tenfold as tn
from plan_work.first import FUNCTIONS
from plan_work.warm import LINEAR, function

SHAPES = 50
KNOWN = 40
"""Shapes that are evaluated before any round."""
MOST = 2.0

Shape = tuple[int, ...]
Arrays = list[tn.Array]
Choice = Callable[[random.Random], list[Shape]]


def vectors(choose: random.Random) -> list[Shape]:
    return [(choose.randrange(10, 5_000),)] * 3


def broadcast(choose: random.Random) -> list[Shape]:
    """A matrix, a row and a column."""
    m, n = choose.randrange(2, 70), choose.randrange(2, 70)
    return [(m, n), (n,), (m, 1)]


CASES: tuple[tuple[str, str, str, Choice], ...] = (
    ("shapes-linear", "2a+3b-ca, vectors", LINEAR, vectors),
    ("shapes-functions", "10 operations, vectors", FUNCTIONS, vectors),
    ("shapes-broadcast", "10 operations, matrix, row, column", FUNCTIONS, broadcast),
)


class Stream:
    """Arrays of shapes none of which comes twice."""

    def __init__(self, choice: Choice) -> None:
        self.choose, self.choice = random.Random(7), choice
        self.seen: set[tuple[Shape, ...]] = set()
        self.values = np.random.default_rng(7)

    def take(self, count: int) -> list[Arrays]:
        """The next so many."""
        found: list[Arrays] = []
        while len(found) < count:
            shapes = self.choice(self.choose)
            if tuple(shapes) not in self.seen:
                self.seen.add(tuple(shapes))
                found.append(self._arrays(shapes))
        return found

    def alike(self, several: list[Arrays]) -> list[Arrays]:
        """New arrays of the same shapes."""
        return [self._arrays([array.shape for array in arrays]) for arrays in several]

    def _arrays(self, shapes: list[Shape]) -> Arrays:
        return [tn.asarray(self.values.uniform(0.5, 1.5, each)) for each in shapes]


def seconds(expression: Callable[..., tn.Array], several: list[Arrays]) -> float:
    begin = time.perf_counter()
    for arrays in several:
        expression(*arrays).wait()
    return time.perf_counter() - begin


def right(text: str, several: list[Arrays]) -> bool:
    """Whether the values are NumPy's, bit for bit."""
    return all(
        np.array_equal(function(text, tn)(*arrays), function(text, np)(*map(np.asarray, arrays)))
        for arrays in several
    )


def measure(name: str, title: str, text: str, choice: Choice, rounds: int) -> Row:
    """A row: microseconds for new and old shapes, compiles, and how often Python planned."""
    stream, expression = Stream(choice), function(text, tn)
    seconds(expression, stream.take(KNOWN))
    once, known, again = stream.take(SHAPES), [], []
    with tn.profile() as profile:
        seconds(expression, stream.take(SHAPES))
    # not under a profile, which lets Python see to all that runs
    thought = planned([lambda each=each: expression(*each).wait() for each in once])
    for _ in range(rounds):
        several = stream.take(SHAPES)
        known.append(seconds(expression, several))
        seconds(expression, stream.alike(several))
        again.append(seconds(expression, stream.alike(several)))
    new, old = (median(each) / SHAPES * 1e6 for each in (known, again))
    ratio = median([one / other for one, other in zip(known, again, strict=True)])
    return {
        "name": name,
        "title": f"{SHAPES} new shapes, {title}: {new:,.1f} us each, old {old:,.1f} us",
        "wrong": {},
        "milliseconds": {"tenfold": new * SHAPES / 1e3},
        "microseconds": {"new": new, "old": old},
        "verdicts": [
            {"required": "compiles 0", "found": profile.compiles, "met": profile.compiles == 0},
            {"required": "Python plans 0", "found": thought, "met": thought == 0},
            {"required": f"<= {MOST:g}x old shapes", "found": ratio, "met": ratio <= MOST},
            {"required": "NumPy's values", "found": None, "met": right(text, once)},
        ],
    }


def rows(rounds: int) -> Iterator[Row]:
    """All rows."""
    for case in CASES:
        yield measure(*case, rounds)
