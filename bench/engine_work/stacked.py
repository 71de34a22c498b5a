"""Small operations pushed under hold: products, sums, and an own operator on stacked arrays.

Takes the number of rounds and whether a quick look will do; hands on rows. All inputs are put
before. The run part is from the end of the pushes until all has run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from kernel_work import THREADS
from kernel_work.measure import Row, median

import tenfold as tn
from engine_work.rows import at_most, is_so, row

COUNT, FEW = 10_000, 1_000


class Halved(tn.BatchedOperator):
    """Half of each input."""

    pure = True
    stacked = True

    def run_batch(self, x: tn.Array) -> tn.Array:
        return x * 0.5


Work = tuple[Any, Callable[..., Any], int, tuple[int, ...], Any]
"""An operator, NumPy's function, inputs of a member, their shape and dtype."""
WORKS: dict[str, Work] = {
    "products": (tn.operators.matmul, np.matmul, 2, (4, 4), np.float64),
    "add": (tn.operators.add, np.add, 2, (50,), np.float32),
    "exp": (tn.operators.exp, np.exp, 1, (50,), np.float32),
    "own": (Halved(), lambda x: x * 0.5, 1, (8,), np.float64),
}
ULPS = 8


def stacked(rounds: int, quick: bool) -> Iterator[Row]:
    """The rows."""
    for name, (operator, function, inputs, shape, dtype) in WORKS.items():
        for count in (FEW, COUNT // (5 if quick else 1)):
            random = np.random.default_rng(4)
            members = [[*random.random((inputs, *shape)).astype(dtype)] for _ in range(count)]
            yield of_work(name, operator, function, members, rounds)


def of_work(
    name: str,
    operator: Any,
    function: Callable[..., Any],
    members: Sequence[Sequence[np.ndarray]],
    rounds: int,
) -> Row:
    count = len(members)
    found: dict[str, list[float]] = {"run": [], "all": [], "numpy": []}
    with tn.Engine(threads=THREADS) as engine:
        puts = [[*map(engine.put, member)] for member in members]

        def turn() -> list[tn.Handle]:
            begin = time.perf_counter()
            with engine.hold():
                handles = [engine.push(operator, *inputs) for inputs in puts]
                pushed = time.perf_counter()
            engine.flush()
            end = time.perf_counter()
            found["run"].append(end - pushed)
            found["all"].append(end - begin)
            return handles

        results = zip(turn(), members, strict=True)
        right = all(is_close(handle.get(), function(*member)) for handle, member in results)
        for _ in range(rounds):
            turn()
            begin = time.perf_counter()
            [function(*member) for member in members]
            found["numpy"].append(time.perf_counter() - begin)
    each = {key: median(times[1:] or times or [0.0]) / count * 1e6 for key, times in found.items()}
    verdicts = {
        "products": [at_most(0.10, each["run"], "us to run"), at_most(0.6, each["all"], "us")],
        "own": [at_most(1.0, each["all"], "us")],
    }.get(name, [at_most(0.6, each["all"] / (each["numpy"] or 1.0), "x numpy's time")])
    return row(
        f"pushed-{name}-{count}",
        f"{count:,} {name} held: {each['run']:.2f} us each to run, {each['all']:.2f} in all",
        {"tenfold": each["all"] * count / 1e3, "numpy": each["numpy"] * count / 1e3},
        *verdicts,
        is_so("NumPy's values", right),
    )


def is_close(own: tn.Array, other: np.ndarray) -> bool:
    error = np.abs(np.asarray(own) - other).max()
    return bool(error <= ULPS * np.finfo(other.dtype).eps * np.abs(other).max())
