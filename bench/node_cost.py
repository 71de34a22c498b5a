"""What making a node costs, beside an eager addition of the same 50 floats by NumPy and PyTorch.

Run: python bench/node_cost.py (PyTorch is measured when it is installed). Medians of 9 rounds, one
run.
"""

from __future__ import annotations

import statistics
import timeit

import numpy as np
from value_checks import Comparison, smoke_wanted

import tenfold as tn

ROUNDS, CALLS = 9, 200_000


def cost(statement: str, names: dict[str, object]) -> float:
    """Return the median time of one execution in nanoseconds, the empty loop subtracted."""
    times = timeit.repeat(statement, globals=names, number=CALLS, repeat=ROUNDS)
    empty = timeit.repeat("x", globals=names, number=CALLS, repeat=ROUNDS)
    return (statistics.median(times) - statistics.median(empty)) / CALLS * 1e9


NODES = ("x + x", "x * 2.0", "xp.exp(x)", "x.sum()", "x[2:9]", "xp.reshape(x, (5, 10))")


def compare(values: np.ndarray) -> None:
    """Compare the values of every node with those of NumPy."""
    comparison = Comparison()
    for text in NODES:
        found = eval(text, {"x": tn.asarray(values / 50), "xp": tn})
        comparison.values(text, found, eval(text, {"x": values / 50, "xp": np}))
    comparison.end()


def main() -> None:
    """Print a table, or compare values."""
    values = np.arange(50, dtype=np.float32)
    if smoke_wanted():
        compare(values)
        return
    rows = {
        **{
            f"tenfold node {text.replace('xp.', 'tn.')}": cost(
                text, {"x": tn.asarray(values), "xp": tn}
            )
            for text in NODES
        },
        "NumPy x + x": cost("x + x", {"x": values}),
        "NumPy x.sum()": cost("x.sum()", {"x": values}),
    }
    try:
        import torch
    except ImportError:
        print("PyTorch is not installed; its row is left out")
    else:
        torch.set_num_threads(1)
        rows["PyTorch x + x"] = cost("x + x", {"x": torch.from_numpy(values)})
    for name, nanoseconds in rows.items():
        print(f"{name:36s} {nanoseconds:8.1f} ns   {nanoseconds / rows['NumPy x + x']:.2f}x NumPy")


if __name__ == "__main__":
    main()
