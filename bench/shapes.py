"""What a known expression costs with 50 shapes that are new, and with the same 50 the third time.

Run: python bench/shapes.py. Each round takes shapes that no round before had, and a plan is kept
when a shape comes for the second time; making an expression and computing it are timed apart, since
making one runs the rules of its operations for new shapes. Medians of the rounds in microseconds an
expression, one run.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from value_checks import Comparison, smoke_wanted

import tenfold as tn

ROUNDS, SHAPES = 15, 50


def softmax(x: Any, xp: Any = tn) -> Any:
    """Of each row."""
    powers = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return powers / xp.sum(powers, axis=-1, keepdims=True)


ROWS: dict[str, tuple[Callable[..., Any], int]] = {
    "2 * a + 3 * b - c * a": (lambda a, b, c: 2 * a + 3 * b - c * a, 3),
    "sum((a - b)**2, axis=1)": (lambda a, b: tn.sum((a - b) ** 2, axis=1), 2),
    "softmax(a)": (softmax, 1),
}


def shapes() -> Iterator[tuple[int, int]]:
    """Yield shapes of some thousand elements, each once."""
    for rows in range(20, 60):
        for columns in range(64, 128):
            yield rows, columns


def times(expression: Callable[..., Any], operands: list[list[tn.Array]]) -> tuple[float, float]:
    """Return how long making and computing takes."""
    begun = time.perf_counter()
    made = [expression(*each) for each in operands]
    between = time.perf_counter()
    for each in made:
        tn.eval(each)
    ended = time.perf_counter()
    return (between - begun) / SHAPES * 1e6, (ended - between) / SHAPES * 1e6


EXPECTED: dict[str, Callable[..., Any]] = {
    "sum((a - b)**2, axis=1)": lambda a, b: np.sum((a - b) ** 2, axis=1),
    "softmax(a)": lambda x: softmax(x, np),
}
"""The same for NumPy, where it is written in another way."""


def compare() -> None:
    """Compare the values of every row, of new shapes and of known ones, with those of NumPy."""
    comparison, random = Comparison(), np.random.default_rng(0)
    for name, (expression, count) in ROWS.items():
        fresh = shapes()
        for shape in [next(fresh) for _ in range(SHAPES)]:
            for _ in range(3):
                arrays = [random.standard_normal(shape) for _ in range(count)]
                expected = EXPECTED.get(name, expression)(*arrays)
                comparison.values(f"{name} {shape}", expression(*map(tn.asarray, arrays)), expected)
    comparison.end()


def main() -> None:
    """Print a table, or compare values."""
    tn.set_options(tier=1)
    if smoke_wanted():
        compare()
        return
    print(f"{'':24s} {'made new':>9s} {'again':>7s} {'computed new':>13s} {'again':>7s}")
    for name, (expression, count) in ROWS.items():
        fresh, rounds = shapes(), []
        for _ in range(ROUNDS):
            taken = [next(fresh) for _ in range(SHAPES)]
            operands = [[tn.asarray(np.ones(shape)) for _ in range(count)] for shape in taken]
            new, _, again = (times(expression, operands) for _ in range(3))
            rounds.append((new[0], again[0], new[1], again[1]))
        cost = [statistics.median(column) for column in zip(*rounds, strict=True)]
        print(f"{name:24s} {cost[0]:9.2f} {cost[1]:7.2f} {cost[2]:13.2f} {cost[3]:7.2f}")


if __name__ == "__main__":
    main()
