"""Increments of one target: what they cost by their number.

Takes the number of rounds; hands on a row.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from kernel_work import THREADS
from kernel_work.measure import Row

import tenfold as tn
from engine_work.rows import at_most, is_so, medians, milliseconds, ratio, row

FEW, MANY = 1_000, 16_000
LIMIT = 20.0


class Increase(tn.CumulativeOperator):
    """Adds its input."""

    def run(self, increment: Any) -> Any:
        return increment


def sums(rounds: int, _: bool) -> Iterator[Row]:
    """The time of many increments beside that of a sixteenth of them."""
    with tn.Engine(threads=THREADS) as engine:
        increment, zero = engine.put(np.ones(50)), np.zeros(50)
        increase = Increase()

        used: dict[int, list[float]] = {FEW: [], MANY: []}

        def add(count: int) -> np.ndarray:
            begin = time.process_time()
            target = engine.put(zero)
            for _ in range(count):
                target = engine.push(increase, target, increment)
            found = np.asarray(target.get())
            used[count].append(time.process_time() - begin)
            return found

        right = all((add(count) == count).all() for count in (FEW, MANY))
        times = milliseconds({"tenfold": lambda: add(MANY), "few": lambda: add(FEW)}, rounds)
    median = medians(times)
    yield row(
        "sums",
        f"{MANY:,} increments of one target, 50 floats; {FEW:,} take {median['few']:.2f} ms",
        {"tenfold": median["tenfold"]},
        at_most(LIMIT, ratio(times, "tenfold", "few"), f"x the time of {FEW:,}"),
        at_most(LIMIT, min(used[MANY]) / min(used[FEW]), "x the processor's time, best rounds"),
        is_so("all of them added", right),
    )
