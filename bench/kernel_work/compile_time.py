"""The last row: how the time to compile an expression grows with its operations.

Takes a function that plans and compiles an expression without running it; hands on the row: medians
in milliseconds, and the exponent by least squares on the logarithms.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tenfold as tn

SIZES = (10, 100, 1_000, 10_000)
EXPONENT = 1.2
FIRST = 20.0
"""Milliseconds that the smallest expression may take."""


def expression(operations: int, seed: int) -> tn.Array:
    """A map of four arrays, of so many operations, each of an earlier value and another one.

    The constants come from the seed, so that no two expressions have the same program.
    """
    choose = random.Random(seed)
    values = [tn.asarray(np.linspace(0.5, 1.5, 64, dtype=np.float32)) + 0 for _ in range(4)]
    values = [value.wait() for value in values]
    combine = (tn.add, tn.subtract, tn.multiply, tn.maximum)
    while len(values) < operations + 4:
        operation, last = combine[choose.randrange(4)], values[-1]
        near = values[-choose.randrange(2, 9) :][0]
        other = near if choose.random() < 0.75 else choose.uniform(0.5, 1.5)
        values.append(operation(last, other))
    return values[-1]


def exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """The slope of the straight line through the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def measure(compiled: Callable[[tn.Array], object], rounds: int) -> dict[str, Any]:
    """The row. Each round compiles an expression of every size that was never compiled before."""
    compiled(expression(SIZES[0], -1))  # the compiler is started before anything is timed
    found: dict[int, list[float]] = {size: [] for size in SIZES}
    for number in range(rounds):
        for size, times in found.items():
            array = expression(size, number * 1_000_003 + size)
            begin = time.perf_counter()
            compiled(array)
            times.append((time.perf_counter() - begin) * 1e3)
    medians = [statistics.median(times) for times in found.values()]
    slope = exponent(SIZES, medians)
    return {
        "name": "compile-time",
        "title": "compile time by number of operations",
        "operations": list(SIZES),
        "milliseconds": medians,
        "verdicts": [
            {"required": f"exponent < {EXPONENT}", "found": slope, "met": slope < EXPONENT},
            {
                "required": f"{SIZES[0]} operations <= {FIRST:g} ms",
                "found": medians[0],
                "met": medians[0] <= FIRST,
            },
        ],
    }
