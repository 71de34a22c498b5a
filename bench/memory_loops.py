"""Memory of endless loops: bytes that a turn of each of 26 kinds of loops leaves behind.

Run: python bench/memory_loops.py [--turns 100000] [--seconds 60] [--only scan] [--most 8]

Samples the resident memory over the turns after a warm-up. The slope is the median of all slopes
between two samples (Theil and Sen), which steps, as of a heap that grows once, do not move. A row
fails if its slope is more than `--most` bytes a turn; then the program ends with status 1. With
`--seconds` a kind makes as many turns as fit, half of them before the first sample.
"""

from __future__ import annotations

import argparse
import gc
import io
import itertools
import os
import pickle
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import tenfold as tn

SAMPLES = 24
"""Of the second half of the turns; the first is the warm-up, in which caches fill."""
PAGE = os.sysconf("SC_PAGE_SIZE")

X = tn.asarray(np.arange(8.0))
M = tn.asarray(np.eye(4) + 0.1)
MEMORY = np.zeros(16)
FOLDER = Path(tempfile.mkdtemp())
ENGINE = tn.Engine(threads=1)
PUSHED = tn.function(lambda x: tn.exp(x) + 1)


def new_expression(i: int) -> None:
    """Another sequence of eight operations for each turn."""
    y, operators = X, (tn.add, tn.multiply, tn.subtract, tn.maximum)
    for k in range(8):
        y = operators[i >> 2 * k & 3](y, X)
    y.wait()


def new_constant(i: int) -> None:
    (X * float(i) + 1).wait()


def new_shape(i: int) -> None:
    tn.sum(tn.ones((i % 997 + 1, i // 997 % 89 + 1)) * 2).wait()


def new_function(i: int) -> None:
    tn.function(lambda x: x * float(i) + 1)(X).wait()


def new_vmap(i: int) -> None:
    tn.vmap(lambda x: x * float(i))(M).wait()


def new_scan(i: int) -> None:
    tn.scan(lambda s, v: (s + v * float(i), s), tn.asarray(0.0), X)[0].wait()


def new_cond(i: int) -> None:
    tn.cond(X[0] < 1, lambda x: x * float(i), lambda x: x, X).wait()


def new_while(i: int) -> None:
    tn.while_loop(lambda s: s < 3.0, lambda s: s + float(i + 1), tn.asarray(0.0)).wait()


def new_op(i: int) -> None:
    @tn.op
    def shifted(x: tn.Array) -> tn.Array:
        return x + float(i)

    shifted(X).wait()


def push(i: int) -> None:
    ENGINE.push(PUSHED, X * float(i)).get()


def window(i: int) -> None:
    tn.wrap(MEMORY[i % 8 :])[:2] = float(i)


def view(i: int) -> None:
    tn.reshape(X[i % 8 :], (-1, 1)).T.wait()


def set_item(i: int) -> None:
    x = tn.zeros(8)
    x[i % 8 :] += float(i)
    x.wait()


def concat(i: int) -> None:
    tn.concat([X[: i % 8] * 2, X * float(i)]).wait()


def solve(i: int) -> None:
    (tn.linalg.solve(M + float(i), M) @ M).wait()


def sort(i: int) -> None:
    tn.sort(X * float(-i)).wait()


def pickled(i: int) -> None:
    pickle.loads(pickle.dumps(X * float(i))).wait()


def dlpack(i: int) -> None:
    tn.from_dlpack(np.from_dlpack((X * float(i)).wait())).wait()


def file(i: int) -> None:
    np.save(FOLDER / "x.npy", X * float(i))
    tn.asarray(np.load(FOLDER / "x.npy")).wait()


def explained(i: int) -> None:
    with tn.profile():
        y = X * float(i) + 1
        io.StringIO().write(str(tn.explain(y)))
        y.wait()


def new_rule(i: int) -> None:
    (x,) = tn.rules.variables("x")
    rule = tn.Rule("endless", x * 3.0, x + x + x, exactness="fast")
    tn.rules.add(rule)
    (X * 3.0 + float(i)).wait()
    tn.rules.remove(rule)


def block_of_rules(i: int) -> None:
    (x,) = tn.rules.variables("x")
    with tn.rules.using(tn.Rule("endless", x * 3.0, x + x + x, exactness="fast")):
        (X * 3.0 + float(i)).wait()


def new_operator(i: int) -> None:
    class Scaled(tn.Operator):
        pure = True

        def run(self, x: np.ndarray) -> np.ndarray:
            return x * i

    ENGINE.push(Scaled(), np.ones(4)).get()


def product(i: int) -> None:
    (M @ (M * float(i))).wait()


def set_tail(i: int) -> None:
    x = X * 2
    x[i % 8 :] += 1
    x.wait()


def failed(i: int) -> None:
    try:
        tn.linalg.cholesky(M * float(-i - 1)).wait()
    except (ValueError, RuntimeError, ArithmeticError):
        return
    raise AssertionError("a negative matrix has a Cholesky factor")


LOOPS: dict[str, Callable[[int], None]] = {
    each.__name__.replace("_", "-"): each
    for each in (
        new_expression, new_constant, new_shape, new_function, new_vmap, new_scan, new_cond,
        new_while, new_op, push, window, view, set_item, concat, solve, sort, pickled, dlpack,
        file, explained, new_rule, block_of_rules, new_operator, product, set_tail, failed,
    )
}  # fmt: skip


def resident() -> int:
    """Return the resident memory in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def warmed(loop: Callable[[int], None], turns: int, seconds: float) -> int:
    """Run half of the turns, or as many as half of the seconds hold; return how many."""
    end = time.perf_counter() + seconds / 2
    for i in range(turns // 2):
        loop(i)
        if time.perf_counter() > end:
            return i + 1
    return turns // 2


def slope_of(loop: Callable[[int], None], turns: int, seconds: float) -> tuple[int, float]:
    """Return how many turns there were, and how many bytes one leaves behind after the warm-up."""
    first = warmed(loop, turns, seconds)
    part = max(first // SAMPLES, 1)
    samples = []
    for number in range(SAMPLES):
        for i in range(part):
            loop(first + number * part + i)
        gc.collect()
        samples.append(resident())
    pairs = itertools.combinations(enumerate(samples), 2)
    slope = statistics.median((b - a) / ((j - i) * part) for (i, a), (j, b) in pairs)
    return first + part * SAMPLES, slope


def main() -> int:
    """Print a row for each loop; return 1 if one of them leaves memory behind."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--turns", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of a kind, about")
    parser.add_argument("--only", action="append", choices=LOOPS)
    parser.add_argument("--most", type=float, default=8.0, help="bytes a turn")
    parser.add_argument("--smoke", action="store_true", help="three turns of each; no slopes")
    given = parser.parse_args()
    if given.smoke:
        for name in given.only or LOOPS:
            for turn in range(3):
                LOOPS[name](turn)
        print(f"{len(LOOPS)} kinds of loops run")
        return 0
    failures = 0
    print(f"{'loop':16s} {'turns':>8s} {'bytes a turn':>13s}")
    for name in given.only or LOOPS:
        turns, slope = slope_of(LOOPS[name], given.turns, given.seconds)
        failures += slope > given.most
        mark = "" if slope <= given.most else "  grows"
        print(f"{name:16s} {turns:8d} {slope:13.1f}{mark}", flush=True)
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
