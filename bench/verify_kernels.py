"""What it takes to verify the launch of a graph, beside planning it.

Run: python bench/verify_kernels.py

Prints a row for each form of a kernel: microseconds, the least of some runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np
from value_checks import smoke_wanted

import tenfold as tn
from tenfold import _native
from tenfold._native import Array
from tenfold.core.graph import Graph
from tenfold.schedule.schedule import schedule_graph
from tenfold.schedule.verify_kernel import verify_plan

RUNS = 50
ROWS, LINE = np.ones((40, 1000)), np.ones(1000)


def graphs() -> dict[str, Array]:
    """Return an expression for each form."""
    x, y = tn.asarray(ROWS), tn.asarray(LINE)
    return {
        "map": y + 1.0,
        "rows and a line": x * y,
        "tiled": x + tn.matrix_transpose(tn.asarray(np.ones((1000, 40)))),
        "row": tn.sum(x, axis=1),
        "column": tn.sum(x, axis=0),
        "search": tn.argmax(x, axis=1),
        "scan": tn.cumulative_sum(x, axis=1),
        "triangle": tn.tril(x),
        "gathered": tn.take(y, tn.asarray([1, 2, 3])),
    }


def microseconds(call: Callable[[], object]) -> float:
    """Return the least of some runs."""
    found = []
    for _ in range(RUNS):
        begun = time.perf_counter()
        call()
        found.append(time.perf_counter() - begun)
    return min(found) * 1e6


def main() -> None:
    """Print the table; in smoke mode verify each form once, which raises where one is wrong."""
    if smoke_wanted():
        for array in graphs().values():
            graph = Graph.of([_native.node_of(array)])
            verify_plan(schedule_graph(graph))
        return
    print(f"{'form':20}{'plan':>8}{'verify':>8}")
    with tn.options(verify=False, verify_kernels=False):
        for name, array in graphs().items():
            graph = Graph.of([_native.node_of(array)])
            plan = schedule_graph(graph)
            planning = microseconds(partial(schedule_graph, graph))
            verifying = microseconds(partial(verify_plan, plan))
            print(f"{name:20}{planning:8.0f}{verifying:8.0f}")


if __name__ == "__main__":
    main()
