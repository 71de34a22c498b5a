"""What evaluating expressions of small matrices costs, beside NumPy's eager calls.

Run: python bench/call_cost.py. Each row makes an expression and waits for it, over and over; the
matrices are 8 x 8, `x` and `y` 1000 x 1000. Medians of 9 rounds in microseconds, one run, by turns.
"""

from __future__ import annotations

import statistics
import timeit
from typing import Any

import numpy as np
from value_checks import Comparison, smoke_wanted

import tenfold as tn

ROUNDS, CALLS = 9, 5_000

ROWS = {
    "a + b": "a + b",
    "a @ b": "a @ b",
    "2.5 * a @ b - 3.7 * c": "2.5 * (a @ b) - 3.7 * c",
    "a @ b @ c": "a @ b @ c",
    "a @ v + v": "a @ v + v",
    "a @ a.T": "a @ a.T",
    "relu(a @ b + c)": "xp.maximum(a @ b + c, 0)",
    "100 products p @ p": "p @ p",
    "(x @ y)[2, 2]": "(x @ y)[2, 2]",
    "x[2] @ y[:, 2]": "x[2] @ y[:, 2]",
}
EAGER = {"(x @ y)[2, 2]": "x[2] @ y[:, 2]"}
"""What a user of NumPy writes by hand instead."""


def cost(statement: str, names: dict[str, Any]) -> float:
    """Return the time of one execution in microseconds."""
    return timeit.timeit(statement, globals=names, number=CALLS) / CALLS * 1e6


def main() -> None:
    """Print a table, or compare values."""
    random = np.random.default_rng(0)
    shapes = {"a": (8, 8), "b": (8, 8), "c": (8, 8), "v": (8,), "p": (100, 8, 8)}
    shapes |= {"x": (1000, 1000), "y": (1000, 1000)}
    values = {name: random.random(shape) for name, shape in shapes.items()}
    lazy = {"xp": tn, **{name: tn.asarray(value) for name, value in values.items()}}
    eager = {"xp": np, **values}
    if smoke_wanted():
        comparison = Comparison()
        for name, text in ROWS.items():
            comparison.values(name, eval(text, dict(lazy)), eval(text, dict(eager)))
        comparison.end()
        return
    print(f"{'':24s} {'tenfold':>8s} {'NumPy':>8s}")
    for name, text in ROWS.items():
        statements = ((f"({text}).wait()", lazy), (EAGER.get(name, text), eager))
        for statement, names in statements:
            cost(statement, names)  # compiled, and compiled again
        times = [[cost(*each) for each in statements] for _ in range(ROUNDS)]
        one, other = (statistics.median(column) for column in zip(*times, strict=True))
        print(f"{name:24s} {one:8.2f} {other:8.2f}")


if __name__ == "__main__":
    main()
