"""Loops of Python beside waiting in every step and NumPy; tn.scan beside them and jax.lax.scan.

Run: python bench/loops.py [--seed 0] [--only-scans]. First come the loops of `loop_work`: what
people write, read at the end; the seed varies their shapes a little. Then a row for each loop of
tn.scan: microseconds for one step, the best of some turns, of the loop as one node; of tenfold's
own loop of Python, written as a whole and read in the end, and step by step; of NumPy's; and of the
jitted scan of JAX, where it is installed. Then long loops of numbers: 10^6 steps beside Python's
floats, and a banded solve beside SciPy.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.pop("OPENBLAS_CORETYPE", None)  # NumPy has the kernels of this processor

import numpy as np
from loop_work import measure
from value_checks import Comparison, smoke_wanted

import tenfold as tn

STEPS, TURNS = 1000, 15


class Work(NamedTuple):
    """The body of a loop in the words of a library, and the length of what it carries."""

    name: str
    body: Callable[[Any, Any, Any], tuple[Any, Any]]
    """body(library, carry, row)"""
    length: int


def decay(_: Any, h: Any, x: Any) -> tuple[Any, Any]:
    h = h * 0.5 + x
    return h, h * h


def cell(xp: Any, h: Any, x: Any) -> tuple[Any, Any]:
    h = xp.tanh(h * 0.5 + x)
    return h, h * 2


def norm(xp: Any, h: Any, x: Any) -> tuple[Any, Any]:
    h = h * 0.9 + x
    total = xp.sqrt(xp.sum(h * h))
    return h / total, total


WORKS = (
    Work("decay of 1", decay, 1),
    Work("decay of 50", decay, 50),
    Work("tanh of 50", cell, 50),
    Work("norm of 50", norm, 50),
    Work("tanh of 10,000", cell, 10_000),
)


def loops(work: Work, xs: np.ndarray) -> dict[str, Callable[[], Any]]:
    """Return what is timed, by name."""
    rows, init = tn.asarray(xs), tn.zeros(work.length)

    def body(carry: tn.Array, x: tn.Array) -> tuple[tn.Array, tn.Array]:
        return work.body(tn, carry, x)

    def scanned() -> tn.Array:
        return tn.scan(body, init, rows)[1].wait()

    def unrolled(at_once: bool) -> list[tn.Array]:
        carry, ys = init, []
        for i in range(STEPS):
            carry, y = body(carry, rows[i])
            if at_once:
                tn.eval(carry, y)
            ys.append(y)
        tn.eval(carry, *ys)
        ys[-1].wait()
        return ys

    def numpy_loop() -> np.ndarray:
        carry, ys = np.zeros(work.length), []
        for x in xs:
            carry, y = work.body(np, carry, x)
            ys.append(y)
        return np.stack(ys)

    found: dict[str, Callable[[], Any]] = {
        "tn.scan": scanned,
        "loop of nodes": lambda: unrolled(at_once=False),
        "step by step": lambda: unrolled(at_once=True),
        "NumPy": numpy_loop,
    }
    if find_spec("jax"):
        import jax

        jax.config.update("jax_enable_x64", True)
        given, begin = jax.numpy.asarray(xs), jax.numpy.zeros(work.length)
        jitted = jax.jit(
            lambda c, rows: jax.lax.scan(lambda c, x: work.body(jax.numpy, c, x), c, rows)
        )
        found["jax.lax.scan"] = lambda: jitted(begin, given)[1].block_until_ready()
    return found


LONG, UNKNOWNS = 10**6, 10**5


def long_loop(xs: np.ndarray) -> dict[str, Callable[[], np.ndarray]]:
    """Return a recurrence of numbers by tn.scan, and by Python's floats."""
    rows = tn.asarray(xs)

    def python() -> np.ndarray:
        h, ys = 0.0, np.empty(len(xs))
        for i, x in enumerate(xs.tolist()):
            h = h * 0.5 + x
            ys[i] = h * h
        return ys

    return {
        "tn.scan": lambda: np.asarray(tn.scan(lambda h, x: decay(tn, h, x), 0.0, rows)[1]),
        "Python": python,
    }


def banded(diagonals: np.ndarray) -> dict[str, Callable[[], np.ndarray]]:
    """Return a tridiagonal solve by two scans (Thomas's algorithm), and by LAPACK."""
    lower, diagonal, upper, right = diagonals.copy()
    lower[0], diagonal = 0.0, diagonal + 4.0
    rows = tuple(map(tn.asarray, (lower, diagonal, upper, right)))
    matrix = np.zeros((3, len(right)))
    matrix[0, 1:], matrix[1], matrix[2, :-1] = upper[:-1], diagonal, lower[1:]

    def eliminate(carry: Any, row: Any) -> tuple[Any, Any]:
        (above, solved), (a, b, c, d) = carry, row
        pivot = b - a * above
        carry = c / pivot, (d - a * solved) / pivot
        return carry, carry

    def substitute(x: Any, row: Any) -> tuple[Any, Any]:
        x = row[1] - row[0] * x
        return x, x

    def scanned() -> np.ndarray:
        _, eliminated = tn.scan(eliminate, (0.0, 0.0), rows)
        return np.asarray(tn.scan(substitute, 0.0, eliminated, reverse=True)[1])

    def scipy() -> np.ndarray:
        from scipy.linalg import solve_banded

        solution: np.ndarray = solve_banded((1, 1), matrix, right)
        return solution

    return {"two tn.scan": scanned, "solve_banded": scipy}


def long_loops() -> dict[str, dict[str, Callable[[], np.ndarray]]]:
    """Return the long loops by name."""
    random = np.random.default_rng(0)
    return {
        "decay of 1, 10^6 steps": long_loop(random.standard_normal(LONG)),
        "banded solve, n 10^5": banded(random.random((4, UNKNOWNS))),
    }


def best(run: Callable[[], Any]) -> float:
    """Return the seconds of the fastest turn."""
    run()
    found = []
    for _ in range(TURNS):
        begin = time.perf_counter()
        run()
        found.append(time.perf_counter() - begin)
    return min(found)


def inputs(work: Work) -> np.ndarray:
    """Return the rows of all steps."""
    return np.random.default_rng(0).standard_normal((STEPS, work.length))


def compare() -> None:
    """Compare the values of every step with those of NumPy's loop."""
    comparison = Comparison()
    measure.compare(comparison)
    for work in WORKS:
        found = loops(work, inputs(work))
        expected = found["NumPy"]()
        for name in ("tn.scan", "loop of nodes", "step by step"):
            values = found[name]()
            values = np.stack([*map(np.asarray, values)]) if isinstance(values, list) else values
            comparison.values(f"{work.name}, {name}", values, expected)
    for name, runs in long_loops().items():
        one, other = runs.values()
        comparison.values(name, one(), other())
    comparison.end()


def main() -> None:
    """Print a row for each work, or compare values."""
    if smoke_wanted():
        compare()
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only-scans", action="store_true")
    options = parser.parse_args()
    if not options.only_scans:
        measure.report(options.seed)
    for work in WORKS:
        xs = inputs(work)
        times = {name: best(run) / STEPS * 1e6 for name, run in loops(work, xs).items()}
        shown = "  ".join(f"{name} {microseconds:.2f}" for name, microseconds in times.items())
        print(f"{work.name:16} {shown}")
    for name, runs in long_loops().items():
        milliseconds = {run_name: best(run) * 1e3 for run_name, run in runs.items()}
        shown = "  ".join(f"{run_name} {time:.2f} ms" for run_name, time in milliseconds.items())
        print(f"{name:24} {shown}")


if __name__ == "__main__":
    main()
