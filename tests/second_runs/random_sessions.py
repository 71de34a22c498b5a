"""Random sessions: `python tests/second_runs/random_sessions.py --seconds 60 --seed 1`.

A session names arrays, makes new ones of them, assigns to views, calls functions in batches, pushes
operators, and asks for values in any order. NumPy does the same step by step. The numbers are
small integers, so that each result is exact. Prints what is wrong, with the seed and the steps.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

import tenfold as tn
from interruption import interrupt
from named_arrays import EXACT, LARGEST, NamedArrays

LONGEST_PUSHED = 4097
"""Elements of an array whose views are pushed."""
NUMBERS = (0, 1, 2, -3)
MOST_STEPS = 1000
"""Steps of a loop."""
MOST_NAMES = 14
STEPS = (10, 25, 60)


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


def clipped_step(carry: Any, row: Any) -> tuple[Any, Any]:
    """Step of a loop whose values stay small."""
    carry = tn.minimum(tn.maximum(carry + row, -9), 9)
    return carry, carry - row


class Session(NamedArrays):
    """The steps of a session, each a method."""

    def run(self) -> None:
        """Take the steps, then compare each array and each result of a pushed operator twice."""
        # What NumPy warns of is not exact, and is not compared.
        with (
            tn.options(**self.options),
            np.errstate(over="ignore"),
            contextlib.ExitStack() as stack,
        ):
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
            for exported, values, step in self.exports:
                np.testing.assert_array_equal(exported, values, step)

    def step(self) -> None:
        x = self.pick()
        if not x or self.rng.random() < 0.08:
            self.leaf()
            return
        has_rows = self.arrays[x][1].ndim and self.arrays[x][1].shape[0]
        steps = ANY_STEPS + (ROW_STEPS if has_rows else ())
        if self.is_wide:
            steps += MORE_ANY_STEPS + (MORE_ROW_STEPS if has_rows else ())
        self.rng.choice(steps)(self, x, *self.arrays[x])

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
        for handle, value in zip(handles, expected, strict=True):
            self.expect(handle, value, step)

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

    def wrapped(self, x: str, t: Any, n: np.ndarray) -> None:
        """Name a window on memory of NumPy's, to which assignments go."""
        memory = n.copy()
        if n.ndim and self.rng.random() < 0.4:
            room = np.zeros((2 * n.shape[0], *n.shape[1:]), n.dtype)
            memory = room[:: self.rng.choice([2, 1])][: n.shape[0]]
            memory[...] = n
        self.windows[f"v{self.count}"] = memory
        self.name(tn.wrap(memory), n.copy(), f"wrapped copy of {x}")

    def exported(self, x: str, t: Any, n: np.ndarray) -> None:
        """Take the memory of an array, which later assignments must not change."""
        if self.rng.random() < 0.5:
            found = np.asarray(t)
        else:
            found = np.asarray(memoryview(t)).reshape(n.shape)
        if not self.windows:  # windows show what is written later
            self.exports.append((found, n.copy(), f"export of {x}"))
        self.steps.append(f"export of {x}")

    def branch(self, x: str, t: Any, n: np.ndarray) -> None:
        found = tn.cond(tn.sum(t) > 0, lambda v: v * 2, lambda v: v - 1, t)
        self.name(found, n * 2 if n.sum() > 0 else n - 1, f"cond of {x}")

    def counted(self, x: str, t: Any, n: np.ndarray) -> None:
        """Loop while a condition holds."""
        end = self.rng.choice([0, 3, 400])
        found = tn.while_loop(
            lambda s: s[1] < end, lambda s: (tn.minimum(s[0] + 1, 9), s[1] + 1), (t, 0)
        )[0]
        self.name(found, n + 0 if end == 0 else np.minimum(n + end, 9), f"{end} steps of {x}")

    def transformed(self, x: str, t: Any, n: np.ndarray) -> None:
        if n.ndim and n.size and self.dtype == "float64" and np.abs(n).max() < 1e6:
            found = tn.round(tn.real(tn.fft.ifft(tn.fft.fft(t))))
            self.name(found + 0.0, n + 0.0, f"transforms of {x}")

    def pushed_lists(self, x: str, t: Any, n: np.ndarray) -> None:
        """Push operations on lists, with texts, and of several results."""
        names, which = self.like(n, self.rng.choice([2, 3, 40])), self.rng.randrange(4)
        which = which if n.ndim == 1 or which in (1, 3) else 3
        self.steps.append(f"push {which} of lists of {names}, {x}")
        with self.engine.hold() if self.rng.random() < 0.6 else contextlib.nullcontext():
            for y in names:
                u, m = self.arrays[y]
                inputs, values = (
                    ((tn.operators.concat, [t, u]), lambda m: np.concatenate([n, m])),
                    ((tn.operators.stack, [u, t, u]), lambda m: np.stack([m, n, m])),
                    ((tn.operators.einsum, "i,j->ji", t, u), lambda m: np.einsum("i,j->ji", n, m)),
                    ((two_results, u), lambda m: np.stack([(m + 1) * (m + 1) - m, m + 1])),
                )[which]
                self.expect(self.engine.push(*inputs), values(m), self.steps[-1])

    def chained_pushes(self, x: str, t: Any, n: np.ndarray) -> None:
        """Push operators on the results of others."""
        largest, names = t, self.like(n, self.rng.choice([2, 20]))
        self.steps.append(f"chain of pushes of {names}, {x}")
        with self.engine.hold() if self.rng.random() < 0.5 else contextlib.nullcontext():
            for y in names:
                largest = self.engine.push(tn.operators.maximum, largest, self.arrays[y][0])
        expected = np.max([n, *(self.arrays[y][1] for y in names)], axis=0)
        self.expect(largest, expected, self.steps[-1])

    def pushed_numbers(self, x: str, t: Any, n: np.ndarray) -> None:
        """Push operations on views and on numbers, which the members of a batch share or not."""
        if n.size > LONGEST_PUSHED:
            return
        views: list[tuple[str, tuple[Any, ...]]] = [
            ("flip", ()),
            ("broadcast_to", ((2, *n.shape),)),
        ]
        view, inputs = self.rng.choice(views + [("matrix_transpose", ())] * 2 * (n.ndim > 1))
        operation = self.rng.choice(["add", "subtract", "multiply", "maximum", "less"])
        names = self.like(n, self.rng.choice([2, 3, 70]))
        numbers = [self.rng.choice(NUMBERS) for _ in names]
        if self.rng.random() < 0.7:
            numbers = numbers[:1] * len(names)
        self.steps.append(f"push {operation} of {view} of {names}, and of {numbers}")
        with self.engine.hold() if self.rng.random() < 0.8 else contextlib.nullcontext():
            for y, number in zip(names, numbers, strict=True):
                u, m = self.arrays[y]
                viewed = self.engine.push(getattr(tn.operators, view), u, *inputs)
                handle = self.engine.push(getattr(tn.operators, operation), viewed, number)
                value = getattr(np, operation)(getattr(np, view)(m, *inputs), number)
                self.expect(handle, value, self.steps[-1])

    def trim(self, x: str, t: Any, n: np.ndarray) -> None:
        tn.trim()
        self.steps.append("trim")

    def elsewhere(self, x: str, t: Any, n: np.ndarray) -> None:
        """Several threads ask at once."""
        names = [self.pick() for _ in range(3)]
        said: list[BaseException] = []

        def ask(name: str) -> None:
            try:
                self.compare(name)
            except BaseException as error:  # noqa: BLE001  # the session raises it
                said.append(error)

        threads = [threading.Thread(target=ask, args=(name,)) for name in names]
        self.steps.append(f"threads ask for {names}")
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if said:
            raise said[0]

    def failed(self, x: str, t: Any, n: np.ndarray) -> None:
        """Compute what fails beside what does not."""
        good = t + 1
        bad = tn.take(tn.reshape(good, (-1,)), tn.asarray([n.size]) + 0, axis=0) * 2
        try:
            tn.eval(good, bad)
            bad.wait()
        except IndexError:
            self.name(good, n + 1, f"{x} + 1 beside a failure")
        else:
            raise AssertionError("no failure")

    def fused_scatter(self, x: str, t: Any, n: np.ndarray) -> None:
        """Sum products of gathered elements by row."""
        if n.ndim != 1:
            return
        count = self.rng.choice([1, 5, 300, 40_000])
        rows = self.numbers.integers(0, n.shape[0], size=count)
        columns = self.numbers.integers(-n.shape[0], n.shape[0], size=count)
        if self.rng.random() < 0.5:
            rows.sort()
        m = n.copy()
        np.add.at(m, rows, n[columns] * 2)
        self.name(
            tn.add_at(t, tn.asarray(rows), t[tn.asarray(columns)] * 2),
            m,
            f"fused add_at of {x}, {count}",
        )

    def put(self, x: str, t: Any, n: np.ndarray) -> None:
        """Put rows where an index array says; the last one stays."""
        count = self.rng.choice([1, 6, 70])
        rows = self.numbers.integers(-n.shape[0], n.shape[0], size=count)
        values = self.numbers.integers(-3, 4, size=(count, *n.shape[1:])).astype(n.dtype)
        m = n.copy()
        for row, value in zip(rows, values, strict=True):
            m[row] = value
        self.name(tn.put_at(t, tn.asarray(rows), tn.asarray(values)), m, f"put_at of {x}")

    def assign_at(self, x: str, t: Any, n: np.ndarray) -> None:
        """Assign to chosen rows, or where a condition holds."""
        which, rows = self.rng.randrange(4), self.numbers.integers(0, n.shape[0], size=5)
        self.steps.append(f"assignment {which} at {rows} to {x}")
        if which == 0:
            t[tn.asarray(rows)], n[rows] = 2, 2
        elif which == 1:
            t[tn.asarray(rows)] += 1
            n[rows] += 1
        elif which == 2:
            t[t > 1], n[n > 1] = 1, 1
        else:
            t[tn.asarray(rows)] = tn.flip(t, axis=0)[:1]
            n[rows] = n[::-1][:1].copy()

    def extremes(self, x: str, t: Any, n: np.ndarray) -> None:
        ids = self.numbers.integers(0, 5, size=n.shape[0])
        m = np.full((5, *n.shape[1:]), -9, n.dtype)
        np.maximum.at(m, ids, n)
        self.name(
            tn.maximum(tn.segment_max(t, tn.asarray(ids), 5), -9), m, f"segment extremes of {x}"
        )

    def loop(self, x: str, t: Any, n: np.ndarray) -> None:
        if not 0 < n.shape[0] <= MOST_STEPS or n.size > 20_000:
            return
        reverse = self.rng.random() < 0.5
        carry, last = t[0] * 0, n[0] * 0
        rows = np.zeros_like(n)
        for i in reversed(range(len(n))) if reverse else range(len(n)):
            last = np.minimum(np.maximum(last + n[i], -9), 9)
            rows[i] = last - n[i]
        found, ys = tn.scan(clipped_step, carry, t, reverse=reverse)
        self.name(found, last, f"last state of a loop over {x}")
        self.name(ys, rows, f"rows of a loop over {x}")

    def steps_read_in_part(self, x: str, t: Any, n: np.ndarray) -> None:
        """Name the last of many steps, each of which reads the one before twice; read a part."""
        count, which, key = self.rng.choice([3, 12, 40]), self.rng.randrange(3), self.bounds(n)
        t, n, before, m = t * 1, n * 1, t, n
        for _ in range(count):
            if which == 0:  # the one before, and the one before that
                t, before = tn.minimum(tn.maximum(t + before, -9), 9), t
                n, m = np.minimum(np.maximum(n + m, -9), 9), n
            elif which == 1:
                t = tn.minimum(tn.maximum(t * t - before, -9), 9)
                n = np.minimum(np.maximum(n * n - m, -9), 9)
            else:
                t = tn.maximum(tn.minimum(t[::-1], 9), -9) - tn.maximum(t[::-1], 0)
                n = np.maximum(np.minimum(n[::-1], 9), -9) - np.maximum(n[::-1], 0)
        self.name(t, n, f"{count} steps {which} from {x}")
        if self.rng.random() < 0.3 and n.ndim > 1:
            found = tn.vmap(lambda row: row[:1])(t)
            self.name(found, n[:, :1].copy(), f"first of each row of {count} steps")
        elif self.rng.random() < 0.5:
            self.name(t[key][::-1], n[key][::-1], f"part {key} of {count} steps, reversed")
        else:
            self.name(t[0], n[0], f"first row of {count} steps")
        last = f"v{self.count - 1}"
        if last in self.arrays:
            self.compare(last)

    def mapped(self, x: str, t: Any, n: np.ndarray) -> None:
        """Batch a function that assigns and reduces over rows."""
        if n.ndim < 2 or not n.shape[1]:
            return

        def function(row: Any) -> Any:
            row = row * 1
            row[0] = tn.max(row, axis=0)
            return tn.flip(row, axis=0) * 2

        m = n.copy()
        m[:, 0] = n.max(axis=1)
        self.name(tn.vmap(function)(t), np.flip(m, 1) * 2, f"vmap over {x}")

    def complex_parts(self, x: str, t: Any, n: np.ndarray) -> None:
        """Write into parts of complex numbers, and name the parts: later assignments go there."""
        if n.dtype.kind != "f":
            return
        dtype = "complex64" if n.dtype == np.float32 else "complex128"
        m = n.astype(dtype) * (1 - 2j)
        if self.rng.random() < 0.3:
            u = tn.wrap(m.copy())
        else:
            u = tn.astype(t, getattr(tn, dtype)) * (1 - 2j)
        for _ in range(self.rng.randrange(4)):
            which, key = self.rng.choice(["real", "imag"]), self.bounds(n)
            if self.rng.random() < 0.5:
                getattr(u, which)[key] = getattr(m, which)[key] = self.rng.randrange(5)
            else:
                getattr(u[key].T, which)[...] += 1
                getattr(m[key].T, which)[...] += 1
        self.name(u.real, m.real, f"real part of {x} as {dtype}")
        self.name(u.imag, m.imag, f"imaginary part of {x} as {dtype}")

    def interrupted(self, x: str, t: Any, n: np.ndarray) -> None:
        """Interrupt reads and assignments somewhere: those of present values change nothing."""
        key, point = self.bounds(n), self.rng.randrange(1, 200)

        def use() -> None:
            (t + 1).wait()
            t[key] = n[key].copy()
            t[key] += 0

        interrupt(use, point)
        self.steps.append(f"interrupt at {point} of a use of {x}[{key}]")

    def reshaped(self, x: str, t: Any, n: np.ndarray) -> None:
        which = self.rng.randrange(5)
        if which == 4:
            width = ((self.rng.randrange(3), self.rng.randrange(2)), *((0, 0),) * (n.ndim - 1))
            found, expected = tn.pad(t + t, width), np.pad(n + n, width)
            self.name(found[: len(n)] * 1, expected[: len(n)] * 1, f"{x} + {x} with {width} zeros")
        elif which == 0:
            self.name(tn.reshape(t, (-1,)) * 1, n.reshape(-1) * 1, f"{x} in one axis")
        elif which == 1:
            self.name(tn.roll(t, 1, axis=0), np.roll(n, 1, axis=0), f"roll of {x}")
        elif which == 2:
            self.name(tn.repeat(t, 2, axis=0), np.repeat(n, 2, axis=0), f"repeat of {x}")
        else:
            self.name(t - t[:1], n - n[:1], f"{x} less its first row")

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
MORE_ANY_STEPS: tuple[Step, ...] = (
    Session.wrapped,
    Session.exported,
    Session.branch,
    Session.counted,
    Session.transformed,
    Session.pushed_lists,
    Session.chained_pushes,
    *(Session.pushed_numbers,) * 2,
    Session.trim,
    Session.elsewhere,
    Session.failed,
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
MORE_ROW_STEPS: tuple[Step, ...] = (
    Session.fused_scatter,
    Session.put,
    *(Session.assign_at,) * 2,
    Session.extremes,
    Session.loop,
    Session.steps_read_in_part,
    Session.mapped,
    Session.reshaped,
    Session.complex_parts,
    Session.interrupted,
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
