"""Batching without hold: trees that are pushed while workers are idle, and pushes with gaps.

Takes the number of rounds; hands on rows. An inner node is `tanh(left @ w + right @ u)`; the trees
are random, pushed by groups whose roots are flushed as each group is there. Gaps are waited for by
looking at the clock, so that the workers see pushes that come so often and no more.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from kernel_work import THREADS
from kernel_work.measure import Row

import tenfold as tn
from engine_work.rows import at_most, is_so, row

GROUPS, GROUP, LEAVES, WIDTH = 20, 8, 16, 16
WORSE = 1.5
"""Times as many launches as under hold."""
GAPS = (0.3, 1.0, 3.0)
"""Microseconds."""
PUSHES = 20_000

Tree = Any
"""A number, of the leaf's array, or a pair of trees."""


def tree(leaves: int, source: random.Random) -> Tree:
    """A random binary tree of so many leaves."""
    if leaves == 1:
        return source.randrange(100)
    left = source.randint(1, leaves - 1)
    return tree(left, source), tree(leaves - left, source)


class Forest:
    """Pushes trees on an engine."""

    def __init__(self, engine: tn.Engine) -> None:
        values = np.random.default_rng(3)
        self.engine = engine
        self.w, self.u = (engine.put(values.uniform(-0.3, 0.3, (WIDTH, WIDTH))) for _ in range(2))
        self.leaves = [engine.put(values.uniform(-1, 1, (1, WIDTH))) for _ in range(100)]

    def push(self, tree: Tree) -> tn.Handle:
        if isinstance(tree, int):
            return self.leaves[tree]
        push, of = self.engine.push, tn.operators
        left, right = (self.push(each) for each in tree)
        return push(of.tanh, push(of.add, push(of.matmul, left, self.w),
                                  push(of.matmul, right, self.u)))  # fmt: skip


def numpy_values(groups: list[list[Tree]]) -> list[np.ndarray]:
    """The values of the roots by NumPy."""
    values = np.random.default_rng(3)
    w, u = (values.uniform(-0.3, 0.3, (WIDTH, WIDTH)) for _ in range(2))
    leaves = [values.uniform(-1, 1, (1, WIDTH)) for _ in range(100)]

    def value(tree: Tree) -> np.ndarray:
        if isinstance(tree, int):
            return leaves[tree]
        left, right = map(value, tree)
        return np.asarray(np.tanh(left @ w + right @ u))

    return [value(each) for group in groups for each in group]


def launched(groups: list[list[Tree]], *, held: bool) -> tuple[int, float, list[bytes]]:
    """Launches, milliseconds and values of the roots."""
    with tn.Engine(threads=THREADS) as engine:
        forest, roots = Forest(engine), []
        begin = time.perf_counter()
        with tn.profile() as p:
            for group in groups:
                if held:
                    with engine.hold():
                        made = [forest.push(each) for each in group]
                    engine.flush()
                else:
                    made = [forest.push(each) for each in group]
                    for root in made:
                        engine.flush(root)
                roots += made
        milliseconds = (time.perf_counter() - begin) * 1e3
        return p.launches, milliseconds, [np.asarray(root.get()).tobytes() for root in roots]


def trees(rounds: int, quick: bool) -> Iterator[Row]:
    """Launches with hold and without, and how large batches are where pushes come with gaps."""
    source = random.Random(8)
    groups = [[tree(LEAVES, source) for _ in range(GROUP)] for _ in range(GROUPS)]
    count = max(rounds, 1)
    pairs = [(launched(groups, held=False), launched(groups, held=True)) for _ in range(count)]
    worst = max(free[0] / held[0] for free, held in pairs)
    expected = np.stack(numpy_values(groups))
    right = all(
        np.allclose(np.frombuffer(b"".join(each[2])).reshape(expected.shape), expected, atol=1e-12)
        for pair in pairs
        for each in pair
    )
    free, held = pairs[0]
    yield row(
        "trees",
        f"{GROUPS * GROUP} trees of {LEAVES} leaves by groups of {GROUP}, each root flushed: "
        f"{free[0]} launches, {held[0]} held; {held[1]:.1f} ms held",
        {"tenfold": free[1]},
        at_most(WORSE, worst, "x the launches under hold, the worst round"),
        is_so("NumPy's values", right),
    )
    for gap in GAPS:
        yield gaps(gap, PUSHES // (5 if quick else 1))


def gaps(microseconds: float, count: int) -> Row:
    """Additions that are pushed one every so many microseconds."""
    with tn.Engine(threads=THREADS) as engine:
        x, y = engine.put(np.ones(50)), engine.put(np.ones(50))
        handles = []
        step = int(microseconds * 1e3)
        begin = next_push = time.perf_counter_ns()
        for _ in range(count):
            handles.append(engine.push(tn.operators.add, x, y))
            next_push += step
            while time.perf_counter_ns() < next_push:
                pass
        took = (time.perf_counter_ns() - begin) / count / 1e3
        engine.flush()
        sizes = engine.stats()["batch_sizes"]
        right = all((np.asarray(handle.get()) == 2).all() for handle in handles)
    title = f"{count:,} pushes, one every {took:.2f} us ({microseconds:g} asked for): "
    return row(f"gaps-{microseconds:g}", title + histogram(sizes), {}, is_so("1 + 1 = 2", right))


def histogram(sizes: Mapping[int, int]) -> str:
    """Batches by powers of two."""
    counts: dict[int, int] = {}
    for size, count in sizes.items():
        power = (size - 1).bit_length()
        counts[power] = counts.get(power, 0) + count
    bars = [f"{count} of up to {1 << power}" for power, count in sorted(counts.items())]
    total, batches = sum(size * count for size, count in sizes.items()), sum(sizes.values())
    return f"batches {', '.join(bars)}; mean {total / max(batches, 1):.1f}"
