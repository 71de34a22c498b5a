"""How many launches held work makes, and how much memory work takes that nobody waits for.

Takes whether a quick look will do; hands on rows that have no times, but counters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain

import numpy as np
from kernel_work import THREADS
from kernel_work.measure import Row

import tenfold as tn
from engine_work.rows import at_most, is_so, row

LIMIT = 64
DROPPED, MEMORY = 100_000, 1 << 20

Pushed = tuple[list[tn.Handle], list[np.ndarray]]
"""Handles, and the values that NumPy has for them."""
Push = Callable[[tn.Engine], Pushed]


def squares(count: int, order: int) -> Push:
    """Products of so many matrices with themselves."""
    random = np.random.default_rng(order)

    def push(engine: tn.Engine) -> Pushed:
        arrays = [random.standard_normal((order, order)) for _ in range(count)]
        puts = [*map(engine.put, arrays)]
        handles = [engine.push(tn.operators.matmul, x, x) for x in puts]
        return handles, [x @ x for x in arrays]

    return push


def chains(engine: tn.Engine) -> Pushed:
    """Three chains of ten products."""
    matrix = engine.put(np.eye(3) * 0.5)
    ends = [matrix] * 3
    for _ in range(10):
        ends = [engine.push(tn.operators.matmul, end, matrix) for end in ends]
    return ends, [np.eye(3) * 0.5**11] * 3


def several(*pushes: Push) -> Push:
    def push(engine: tn.Engine) -> Pushed:
        handles, expected = zip(*(push(engine) for push in pushes), strict=True)
        return [*chain(*handles)], [*chain(*expected)]

    return push


WORKS: dict[str, tuple[Push, int]] = {
    "64 products 4x4": (squares(64, 4), 1),
    "65 products 4x4": (squares(65, 4), 2),
    "40 products 4x4 and 40 of 5x5": (several(squares(40, 4), squares(40, 5)), 2),
    "3 chains of 10 products 3x3": (chains, 10),
}


def launches(_: int, quick: bool) -> Iterator[Row]:
    """Launches of each work under hold, and the memory of dropped work."""
    for title, (push, most) in WORKS.items():
        with tn.Engine(threads=THREADS, batch_limit=LIMIT) as engine, tn.profile() as p:
            with engine.hold():
                handles, expected = push(engine)
            engine.flush()
            right = all(map(np.allclose, [np.asarray(each.get()) for each in handles], expected))
            del handles
        name = title.replace(" ", "-")
        few = at_most(most, p.launches, "") | {"exact": True}
        said = is_so("NumPy's values", right)
        yield row(name, f"{title}, held, batch_limit {LIMIT}", {}, few, said)
    yield dropped(DROPPED // (10 if quick else 1))


def dropped(count: int) -> Row:
    """Additions whose handles nobody keeps."""
    with tn.Engine(threads=THREADS, memory_limit=MEMORY) as engine:
        x, y = engine.put(np.ones(50)), engine.put(np.ones(50))
        for _ in range(count):
            engine.push(tn.operators.add, x, y)
        del x, y
        engine.flush()
        stats = engine.stats()
    return row(
        "dropped",
        f"{count:,} additions whose handles are dropped, memory_limit 1 MiB",
        {},
        is_so("nothing alive after flush", stats["live_objects"] == 0),
        at_most(MEMORY, stats["peak_bytes"], "bytes at the peak"),
    )
