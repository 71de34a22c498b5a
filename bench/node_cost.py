"""What making a node costs, beside an eager addition of the same 50 floats by NumPy and PyTorch.

Run: python bench/node_cost.py (PyTorch is measured when it is installed). Medians of 9 rounds, one
run.
"""

from __future__ import annotations

import statistics
import timeit

import numpy as np

import tenfold as tn

ROUNDS, CALLS = 9, 200_000


def cost(statement: str, names: dict[str, object]) -> float:
    """Return the median time of one execution in nanoseconds, the empty loop subtracted."""
    times = timeit.repeat(statement, globals=names, number=CALLS, repeat=ROUNDS)
    empty = timeit.repeat("x", globals=names, number=CALLS, repeat=ROUNDS)
    return (statistics.median(times) - statistics.median(empty)) / CALLS * 1e9


def main() -> None:
    """Print a table."""
    values = np.arange(50, dtype=np.float32)
    rows = {
        "tenfold node x + x": cost("x + x", {"x": tn.asarray(values)}),
        "tenfold node x * 2.0": cost("x * 2.0", {"x": tn.asarray(values)}),
        "tenfold node tn.exp(x)": cost("tn.exp(x)", {"x": tn.asarray(values), "tn": tn}),
        "tenfold node x.sum()": cost("x.sum()", {"x": tn.asarray(values)}),
        "tenfold node x[2:9]": cost("x[2:9]", {"x": tn.asarray(values)}),
        "tenfold node reshape": cost("tn.reshape(x, (5, 10))", {"x": tn.asarray(values), "tn": tn}),
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
        print(f"{name:24s} {nanoseconds:8.1f} ns   {nanoseconds / rows['NumPy x + x']:.2f}x NumPy")


if __name__ == "__main__":
    main()
