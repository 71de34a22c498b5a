"""Mixed work for an engine, each piece of it checked: what the soak does over and over.

Takes an engine and a source of random numbers; raises AssertionError where a value is wrong.

    WORKS[0](engine, random.Random(1))
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any

import numpy as np

import tenfold as tn

Work = Callable[[tn.Engine, random.Random], None]
PATIENCE = 120.0
"""Seconds that a wait may take."""
WORKS: list[Work] = []


def work(function: Work) -> Work:
    """Enter a function into the works."""
    WORKS.append(function)
    return function


class Halve(tn.Operator):
    """Fails on odd numbers."""

    def run(self, x: int) -> int:
        if x % 2:
            raise ValueError(f"{x} is odd")
        return x // 2


class Increase(tn.CumulativeOperator):
    def run(self, x: Any) -> Any:
        return x


class Append(tn.InPlaceOperator):
    def run(self, target: list[int], x: int) -> None:
        target.append(x)


class Lengths(tn.BatchedOperator):
    """Batched by how long its inputs are."""

    pure = True

    def signature(self, x: tn.Array) -> object:
        return x.shape

    def run_batch(self, members: list[tuple[tn.Array]]) -> list[float]:
        stacked = np.stack([np.asarray(x) for (x,) in members])
        return [float(each) for each in np.sqrt((stacked**2).sum(axis=1))]


def vector(source: random.Random, length: int) -> np.ndarray:
    return np.array([source.randint(-9, 9) for _ in range(length)], dtype=np.float64)


@work
def chain(engine: tn.Engine, source: random.Random) -> None:
    x, step = vector(source, 50), vector(source, 50)
    count, handle = source.randint(1, 300), engine.put(x)
    other = engine.put(step)
    for _ in range(count):
        handle = engine.push(tn.operators.add, handle, other)
    assert np.array_equal(np.asarray(handle.get(PATIENCE)), x + count * step)


@work
def batch(engine: tn.Engine, source: random.Random) -> None:
    length = source.randint(1, 2000)
    vectors = [vector(source, min(length, 60)) for _ in range(source.randint(1, 100))]
    handles = [engine.push(tn.operators.multiply, x, x) for x in vectors]
    for x, handle in zip(vectors, handles, strict=True):
        assert np.array_equal(np.asarray(handle.get(PATIENCE)), x * x)


@work
def products(engine: tn.Engine, source: random.Random) -> None:
    order = source.randint(1, 12)
    pairs = [
        (vector(source, order * order).reshape(order, order), vector(source, order))
        for _ in range(source.randint(1, 70))
    ]
    with engine.hold():
        handles = [engine.push(tn.operators.matmul, a, b) for a, b in pairs]
    for (a, b), handle in zip(pairs, handles, strict=True):
        assert np.array_equal(np.asarray(handle.get(PATIENCE)), a @ b)


@work
def failures(engine: tn.Engine, source: random.Random) -> None:
    numbers = [source.randint(0, 99) for _ in range(20)]
    handles = [engine.push(Halve(), engine.push(Halve(), 2 * number)) for number in numbers]
    for number, handle in zip(numbers, handles, strict=True):
        error = handle.exception(PATIENCE)
        assert (error is None) == (number % 2 == 0)
        assert error is not None or handle.get() == number // 2


@work
def versions(engine: tn.Engine, source: random.Random) -> None:
    start, target, total = engine.put([]), engine.put(np.zeros(3)), 0
    last, count = start, source.randint(1, 100)
    for number in range(count):
        last = engine.push(Append(), start if source.random() < 0.5 else last, number)
        increment = source.randint(0, 9)
        total += increment
        summed = engine.push(Increase(), target, float(increment))
    assert last.get(PATIENCE) == [*range(count)]
    assert summed.get(PATIENCE).tolist() == [float(total)] * 3
    assert start.get(PATIENCE) == []


@work
def batches_of_users(engine: tn.Engine, source: random.Random) -> None:
    vectors = [vector(source, source.choice((3, 5, 7))) for _ in range(30)]
    handles = [engine.push(Lengths(), x) for x in vectors]
    for x, handle in zip(vectors, handles, strict=True):
        assert abs(handle.get(PATIENCE) - np.sqrt((x**2).sum())) < 1e-9


@work
def dropped(engine: tn.Engine, source: random.Random) -> None:
    x = engine.put(vector(source, 100))
    for _ in range(source.randint(1, 200)):
        engine.push(tn.operators.exp, engine.push(tn.operators.negative, x))
    if source.random() < 0.3:
        engine.flush()


@work
def cancelled(engine: tn.Engine, source: random.Random) -> None:
    x = vector(source, 10)
    handles = [engine.push(tn.operators.add, x, float(i)) for i in range(20)]
    told = [source.random() < 0.5 and handle.cancel() for handle in handles]
    for index, handle in enumerate(handles):
        try:
            found = np.asarray(handle.get(PATIENCE))
        except CancelledError:
            assert told[index]
        else:
            assert not told[index]
            assert np.array_equal(found, x + index)


@work
def own_engine(_: tn.Engine, source: random.Random) -> None:
    x = vector(source, 10)
    with tn.Engine(threads=source.randint(1, 3), batch_limit=source.choice((None, 4))) as engine:
        handles = [engine.push(tn.operators.add, x, 1.0) for _ in range(10)]
    assert all(np.array_equal(np.asarray(handle.get()), x + 1) for handle in handles)


@work
def expression(_: tn.Engine, source: random.Random) -> None:
    x = vector(source, source.randint(1, 100))
    found = tn.eval(tn.asarray(x) * 2 + 1)
    assert np.array_equal(np.asarray(found), x * 2 + 1)


@work
def from_a_thread(engine: tn.Engine, source: random.Random) -> None:
    handle = engine.push(tn.operators.add, vector(source, 5), 1.0)
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(handle.get(PATIENCE)))
    thread.start()
    assert np.array_equal(np.asarray(handle.get(PATIENCE)), np.asarray(handle.get(PATIENCE)))
    thread.join(PATIENCE)
    assert found
