"""Products of matrices that are pushed while Python is busy.

Takes the number of rounds and whether a quick look will do; hands on rows.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
from kernel_work.measure import Row

import tenfold as tn
from engine_work.rows import is_so, medians, row

COUNT, ORDER = 64, 4


def products(rounds: int, quick: bool) -> Iterator[Row]:
    """From the end of a hold until its batch is done, while this thread does not let go of Python's
    lock.
    """
    random = np.random.default_rng(4)
    times: dict[str, list[float]] = {"tenfold": []}
    with tn.Engine(threads=1, batch_limit=COUNT) as engine:
        puts = [engine.put(random.standard_normal((ORDER, ORDER))) for _ in range(COUNT)]
        squares = [np.asarray(put.get()) @ np.asarray(put.get()) for put in puts]
        right = True
        for _ in range(max(rounds, 1) * (2 if quick else 10)):
            with engine.hold():
                handles = [engine.push(tn.operators.matmul, x, x) for x in puts]
                begin = time.perf_counter()
            while not handles[-1].done():
                sum(range(100))
            times["tenfold"].append((time.perf_counter() - begin) * 1e3)
            products = [np.asarray(handle.get()) for handle in handles]
            right &= all(map(np.allclose, products, squares))
    title = f"{COUNT} products {ORDER}x{ORDER}, from the end of the hold until they are done"
    yield row(
        "products",
        f"{title}, while Python is busy",
        medians(times),
        is_so("NumPy's values", right),
    )
