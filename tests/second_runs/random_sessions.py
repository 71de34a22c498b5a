"""Random sessions: `python tests/second_runs/random_sessions.py --seconds 60 --seed 1`.

A session names arrays, makes new ones of them, assigns to views, calls functions in batches, pushes
operators, and asks for values in any order. NumPy does the same step by step. The numbers are
small integers, so that each result is exact. Prints what is wrong, with the seed and the steps.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

import tenfold as tn

LENGTHS = (1, 2, 3, 4, 5, 8, 17, 33)
LONG = (0, 257, 1000, 4097)
LARGEST = 300_000
"""Elements of an array."""
MOST_NAMES = 14
STEPS = (10, 25, 60)
EXACT = {"float64": 2.0**50, "float32": 2.0**23, "int64": 2.0**60, "int32": 2.0**30}
"""Below these absolute values sums and products of integers are exact."""


@tn.function
def affine(x: Any, y: Any) -> Any:
    return x * 2 - y


@tn.function
def clipped_product(x: Any, w: Any) -> Any:
    return tn.minimum(w @ x, 1000.0) + 1


@tn.function
def two_results(x: Any) -> Any:
    y = x + 1
    return y * y - x, y


class Session:
    """Arrays of Tenfold and of NumPy under the same names."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.arrays: dict[str, tuple[Any, np.ndarray]] = {}
        self.handles: list[tuple[Any, np.ndarray, str]] = []
        self.steps: list[str] = []
        self.count = 0
        self.engine: Any = None
        self.lengths = [self.rng.choice(LENGTHS) for _ in range(3)]
        if self.rng.random() < 0.1:
            self.lengths[0] = self.rng.choice(LONG)
        self.dtype = self.rng.choice(["float64"] * 4 + ["float32", "int64", "int32"])
        self.options: dict[str, Any] = {}
        if self.rng.random() < 0.3:
            self.options["batch_limit"] = self.rng.choice([1, 7, 64])
        if self.rng.random() < 0.2:
            self.options["threads"] = self.rng.choice([1, 2, 7])
        if self.rng.random() < 0.4:
            self.options["tier"] = "1"

    def run(self) -> None:
        """Take the steps, then compare each array and each result of a pushed operator twice."""
        with tn.options(**self.options), contextlib.ExitStack() as stack:
            self.engine = tn.Engine()
            stack.callback(self.engine.shutdown)
            for _ in range(self.rng.choice(STEPS)):
                self.step()
                while len(self.arrays) > MOST_NAMES:
                    del self.arrays[self.rng.choice(list(self.arrays))]
            names = list(self.arrays)
            self.rng.shuffle(names)
            if self.rng.random() < 0.5:
                tn.eval(*[self.arrays[name][0] for name in names[: len(names) // 2]])
            for name in names * 2:
                self.compare(name)
            for handle, expected, step in self.handles:
                np.testing.assert_array_equal(np.asarray(handle.get()), expected, step)

    def compare(self, name: str) -> None:
        array, expected = self.arrays[name]
        found = np.asarray(array)
        assert found.dtype == expected.dtype, f"{name} is {found.dtype}, not {expected.dtype}"
        np.testing.assert_array_equal(found, expected, name)

    def name(self, array: Any, expected: Any, step: str) -> None:
        """Name a result, unless its sums would not be exact."""
        expected = np.asarray(expected)
        largest = np.abs(expected.astype(float)).max(initial=0)
        if largest < EXACT[self.dtype] and expected.size <= LARGEST:
            self.arrays[f"v{self.count}"] = array, expected
            self.steps.append(f"v{self.count} = {step}")
            self.count += 1

    def pick(self, wanted: Callable[[np.ndarray], bool] = lambda _: True) -> str:
        """Return the name of an array, empty if there is none."""
        names = [name for name, (_, expected) in self.arrays.items() if wanted(expected)]
        return self.rng.choice(names) if names else ""

    def like(self, n: np.ndarray, count: int) -> list[str]:
        """Return the names of arrays of the same shape."""
        return [self.pick(lambda m: m.shape == n.shape) for _ in range(count)]

    def bounds(self, n: np.ndarray) -> slice:
        start = self.rng.randrange(n.shape[0])
        return slice(start, self.rng.randint(start, n.shape[0]))

    def step(self) -> None:
        x = self.pick()
        if not x or self.rng.random() < 0.08:
            self.leaf()
            return
        has_rows = self.arrays[x][1].ndim and self.arrays[x][1].shape[0]
        self.rng.choice(ANY_STEPS + (ROW_STEPS if has_rows else ()))(self, x, *self.arrays[x])

    def leaf(self) -> None:
        axes = self.rng.choice([1, 2, 2, 2, 3])
        shape = tuple(self.rng.choice(self.lengths) for _ in range(axes))
        if np.prod(shape) > LARGEST:
            shape = shape[:1]
        n = self.numbers.integers(-3, 4, size=shape).astype(self.dtype)
        if self.rng.random() < 0.2:
            n = np.ascontiguousarray(n.T).T
        t = tn.asarray(n.copy(order="K"))
        self.name(t if self.rng.random() < 0.8 else t * 1, n, f"leaf {shape} {self.dtype}")

    def elementwise(self, x: str, t: Any, n: np.ndarray) -> None:
        y = self.pick(lambda m: m.shape == n.shape)
        u, m = self.arrays[y]
        which = self.rng.randrange(6)
        rules: tuple[Callable[[Any, Any, Any], Any], ...] = (
            lambda _, a, b: a + b,
            lambda _, a, b: a - b,
            lambda _, a, b: a * b,
            lambda xp, a, b: xp.maximum(a, b),
            lambda _, a, __: a * 3 + 1,
            lambda xp, a, b: xp.where(a > 0, a, b * 2),
        )
        rule = rules[which]
        self.name(rule(tn, t, u), rule(np, n, m), f"elementwise {which} of {x}, {y}")

    def product(self, x: str, t: Any, n: np.ndarray) -> None:
        y = self.pick(lambda m: m.ndim in (1, 2) and n.ndim > 1 and m.shape[0] == n.shape[-1])
        if y:
            u, m = self.arrays[y]
            bound = np.abs(n.astype(float)).max(initial=0) * np.abs(m.astype(float)).max(initial=0)
            is_small = n.size * m.size // max(1, n.shape[-1]) < LARGEST
            if is_small and bound * max(1, n.shape[-1]) < EXACT[self.dtype]:
                self.name(t @ u, n @ m, f"{x} @ {y}")

    def reduction(self, x: str, t: Any, n: np.ndarray) -> None:
        axis = self.rng.choice([None, *range(n.ndim)])
        if self.rng.random() < 0.7:
            found, expected = tn.sum(t, axis=axis, dtype=t.dtype), n.sum(axis=axis, dtype=n.dtype)
        elif n.size:
            found, expected = tn.max(t, axis=axis), n.max(axis=axis)
        else:
            return
        self.name(found, expected, f"reduction of {x} along {axis}")

    def two(self, x: str, t: Any, n: np.ndarray) -> None:
        square, more = two_results(t)
        self.name(square, (n + 1) * (n + 1) - n, f"two_results({x})[0]")
        self.name(more, n + 1, f"two_results({x})[1]")

    def batch(self, x: str, t: Any, n: np.ndarray) -> None:
        names = self.like(n, self.rng.choice([1, 3, 40]))
        calls = [affine(self.arrays[y][0] + i, t) for i, y in enumerate(names)]
        expected = [(self.arrays[y][1] + i) * 2 - n for i, y in enumerate(names)]
        if self.rng.random() < 0.5:
            tn.eval(*calls)
        if self.rng.random() < 0.5:
            self.name(calls[-1], expected[-1], f"one of {len(names)} calls on {x}")
        self.name(tn.stack(calls), np.stack(expected), f"stack of calls on {names}, {x}")

    def product_batch(self, x: str, t: Any, n: np.ndarray) -> None:
        w = self.pick(lambda m: m.ndim == 2 and n.ndim == 1 and m.shape[1] == n.shape[0])
        if w and self.dtype == "float64":
            (u, m), count = self.arrays[w], self.rng.choice([2, 9, 33])
            calls = [clipped_product(t + i, u) for i in range(count)]
            expected = [np.minimum(m @ (n + i), 1000.0) + 1 for i in range(count)]
            self.name(tn.stack(calls), np.stack(expected), f"stack of {count} products {w} @ {x}")

    def push(self, x: str, t: Any, n: np.ndarray) -> None:
        names = self.like(n, self.rng.choice([1, 3, 70]))
        operator, rule = self.rng.choice(
            (
                (tn.operators.add, np.add),
                (tn.operators.multiply, np.multiply),
                (affine, lambda a, b: a * 2 - b),
            )
        )
        with self.engine.hold() if self.rng.random() < 0.6 else contextlib.nullcontext():
            handles = [self.engine.push(operator, self.arrays[y][0], t) for y in names]
        step = f"push of {operator} on {names}, {x}"
        self.steps.append(step)
        with np.errstate(over="ignore"):
            expected = [rule(self.arrays[y][1], n) for y in names]
        self.handles += [
            (handle, value, step)
            for handle, value in zip(handles, expected, strict=True)
            if np.abs(value.astype(float)).max(initial=0) < EXACT[self.dtype]
        ]

    def ask(self, x: str, t: Any, n: np.ndarray) -> None:
        self.steps.append(f"ask for {x}")
        self.compare(x)

    def forget(self, x: str, t: Any, n: np.ndarray) -> None:
        self.steps.append(f"del {x}")
        del self.arrays[x]

    def transposed(self, x: str, t: Any, n: np.ndarray) -> None:
        if n.ndim > 1:
            self.name(tn.matrix_transpose(t), np.swapaxes(n, -1, -2), f"{x}.mT")

    def part(self, x: str, t: Any, n: np.ndarray) -> None:
        key: Any = self.rng.choice([self.bounds(n), slice(None, None, -1), slice(None, None, 2)])
        if n.ndim > 1 and self.rng.random() < 0.3:
            key = key.start or 0
        self.name(t[key], n[key], f"{x}[{key}]")

    def copied(self, x: str, t: Any, n: np.ndarray) -> None:
        u, m, key = tn.asarray(t, copy=True), n.copy(), self.bounds(n)
        u[key], m[key] = -1, -1
        self.name(u, m, f"copy of {x}, then [{key}] = -1")

    def assign(self, x: str, t: Any, n: np.ndarray) -> None:
        """Assign to an array: its views show it too."""
        key, y = self.bounds(n), self.pick(lambda m: m.shape == n.shape)
        u, m = self.arrays[y]
        which = self.rng.randrange(3)
        if which == 0:
            t[key], n[key] = 2, 2
        elif which == 1:
            t[key] += 1
            n[key] += 1
        else:
            t[key], n[key] = u[key], m[key].copy()
        self.steps.append(f"assignment {which} to {x}[{key}] of {y}")

    def joined(self, x: str, t: Any, n: np.ndarray) -> None:
        y = self.pick(lambda m: m.ndim == n.ndim and m.shape[1:] == n.shape[1:])
        u, m = self.arrays[y]
        self.name(tn.concat([t, u]), np.concatenate([n, m]), f"concat of {x}, {y}")

    def gathered(self, x: str, t: Any, n: np.ndarray) -> None:
        rows = self.numbers.integers(0, n.shape[0], size=self.rng.choice([1, 4, 70]))
        self.name(tn.take(t, tn.asarray(rows), axis=0), n[rows], f"rows of {x}")

    def scattered(self, x: str, t: Any, n: np.ndarray) -> None:
        rows = self.numbers.integers(0, n.shape[0], size=6)
        ones, m = np.ones((6, *n.shape[1:]), n.dtype), n.copy()
        np.add.at(m, rows, ones)
        self.name(tn.add_at(t, tn.asarray(rows), tn.asarray(ones)), m, f"add_at of {x}")

    def segments(self, x: str, t: Any, n: np.ndarray) -> None:
        ids = self.numbers.integers(0, 5, size=n.shape[0])
        sums = np.zeros((5, *n.shape[1:]), np.int64 if n.dtype == np.int32 else n.dtype)
        np.add.at(sums, ids, n)
        self.name(tn.segment_sum(t, tn.asarray(ids), 5), sums, f"segment sums of {x}")

    def ordered(self, x: str, t: Any, n: np.ndarray) -> None:
        if self.rng.random() < 0.5:
            self.name(tn.sort(t, axis=-1), np.sort(n, axis=-1), f"sort of {x}")
        elif n.ndim == 1:
            expected = np.cumsum(n, dtype=n.dtype)
            self.name(tn.cumulative_sum(t, dtype=t.dtype), expected, f"running sums of {x}")


Step = Callable[[Session, str, Any, np.ndarray], None]
ANY_STEPS: tuple[Step, ...] = (
    *(Session.elementwise,) * 3,
    *(Session.product,) * 2,
    Session.reduction,
    Session.two,
    Session.batch,
    Session.product_batch,
    Session.push,
    Session.ask,
    Session.forget,
    Session.transposed,
)
ROW_STEPS: tuple[Step, ...] = (
    *(Session.part,) * 2,
    *(Session.copied,) * 2,
    *(Session.assign,) * 2,
    Session.joined,
    Session.gathered,
    Session.scattered,
    Session.segments,
    Session.ordered,
)


def check(seed: int) -> str:
    """Run one session; return what was wrong, empty if nothing was."""
    session = Session(seed)
    try:
        session.run()
    except Exception:  # noqa: BLE001  # what goes wrong is what is looked for
        steps = "\n  ".join(session.steps)
        said = traceback.format_exc(limit=-4)
        return f"seed {seed} {session.options}\n  {steps}\n{said}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    end, seed, wrong = time.monotonic() + given.seconds, given.seed, 0
    while time.monotonic() < end:
        said = check(seed)
        if said:
            wrong += 1
            print(said, flush=True)
        seed += 1
    print(f"{seed - given.seed} sessions, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
