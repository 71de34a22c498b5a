"""A million additions of fifty floats, from the push to the result, beside NumPy and PyTorch.

Takes the number of rounds and whether a quick look will do; hands on rows. Additions go in blocks:
one block's results are all kept until its last is there, by everybody, and then given up. The
turns of a round are as many blocks as make the rounds a million additions together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import numpy as np
from kernel_work import THREADS
from kernel_work.measure import Row

import tenfold as tn
from engine_work.rows import Turn, at_most, is_so, medians, milliseconds, ratio, row

ADDITIONS, BLOCK = 1_000_000, 10_000
PAIRS = 100
"""Different pairs of arrays."""
PUSH = 0.3
"""Microseconds that a push may take of its caller."""


def pairs() -> list[tuple[np.ndarray, np.ndarray]]:
    random = np.random.default_rng(50)
    return [tuple(random.uniform(0.5, 1.5, (2, 50))) for _ in range(PAIRS)]


def additions(rounds: int, quick: bool, found: Mapping[str, object]) -> Iterator[Row]:
    """The rows of additions that need nothing of each other, and of a chain of them."""
    blocks = max(ADDITIONS // (20 if quick else 1) // (BLOCK * max(rounds, 1)), 1)
    arrays = pairs()
    with tn.Engine(threads=THREADS) as engine:
        puts = [(engine.put(a), engine.put(b)) for a, b in arrays]
        one_block = [puts[index % PAIRS] for index in range(BLOCK)]

        def tenfold() -> list[tn.Handle]:
            push, add = engine.push, tn.operators.add
            for _ in range(blocks):
                handles = [push(add, a, b) for a, b in one_block]
                engine.flush()
            return handles

        turns: dict[str, Turn] = {"tenfold": tenfold, **others(arrays, blocks, found)}
        expected = [(a + b).tobytes() for a, b in arrays]
        handles = tenfold()
        found_bytes = [np.asarray(handle.get()).tobytes() for handle in handles]
        right = found_bytes == expected * (BLOCK // PAIRS)
        del handles, found_bytes
        times = milliseconds(turns, rounds)
        count = blocks * BLOCK
        yield row(
            "additions",
            f"{count * rounds:,} additions of 50 floats in {rounds} rounds, pushed and done; "
            f"{medians(times)['tenfold'] / count * 1e3:.2f} us each",
            medians(times),
            at_most(1, ratio(times, "tenfold", "numpy"), "x numpy's time"),
            is_so("NumPy's values", right),
        )
        yield from pushes(engine, one_block, rounds)
    yield chain(arrays, rounds, blocks)


def others(
    arrays: list[tuple[np.ndarray, np.ndarray]], blocks: int, found: Mapping[str, object]
) -> dict[str, Turn]:
    """The turns of NumPy and, where it is there, of PyTorch."""
    made: dict[str, Turn] = {"numpy": adding(np.add, arrays, blocks)}
    if found.get("torch") is not None:
        torch = import_module("torch")
        torch.set_num_threads(THREADS)
        tensors = [(torch.from_numpy(a), torch.from_numpy(b)) for a, b in arrays]
        made["torch"] = torch.inference_mode()(adding(torch.add, tensors, blocks))
    return made


def adding(add: Any, arrays: list[tuple[Any, Any]], blocks: int) -> Turn:
    """So many blocks of additions that are computed at once."""
    one_block = [arrays[index % PAIRS] for index in range(BLOCK)]

    def turn() -> list[Any]:
        for _ in range(blocks):
            results = [add(a, b) for a, b in one_block]
        return results

    return turn


def pushes(engine: tn.Engine, one_block: list[tuple[Any, Any]], rounds: int) -> Iterator[Row]:
    """What the caller's thread pays for a push, when nothing runs beside it."""
    kept: list[Any] = []

    def push_block() -> None:
        push, add = engine.push, tn.operators.add
        kept.extend([push(add, a, b) for a, b in one_block])

    def nothing(*_: Any) -> None:
        return None

    def loop() -> None:
        add = tn.operators.add
        kept.extend([nothing(add, a, b) for a, b in one_block])

    times: dict[str, list[float]] = {"push": [], "loop": []}
    for _ in range(rounds):
        with engine.hold():
            for name, turn in (("push", push_block), ("loop", loop)):
                times[name] += milliseconds({name: turn}, 1)[name]
        engine.flush()
        kept.clear()
    each = {name: value / BLOCK * 1e3 for name, value in medians(times).items()}
    title = f"a push under hold, {BLOCK:,} of them; a call of nothing takes {each['loop']:.3f} us"
    yield row("push", title, {"tenfold": medians(times)["push"]}, at_most(PUSH, each["push"], "us"))


def chain(arrays: list[tuple[np.ndarray, np.ndarray]], rounds: int, blocks: int) -> Row:
    """Additions each of which needs the one before: there is nothing to batch."""
    (x, step), count = arrays[0], BLOCK * blocks
    with tn.Engine(threads=THREADS) as engine:
        begin, other = engine.put(x), engine.put(step)

        def tenfold() -> np.ndarray:
            push, add, handle = engine.push, tn.operators.add, begin
            for _ in range(count):
                handle = push(add, handle, other)
            return np.asarray(handle.get()).copy()

        def numpy() -> np.ndarray:
            value = x
            for _ in range(count):
                value = np.add(value, step)
            return value

        right = tenfold().tobytes() == numpy().tobytes()
        times = milliseconds({"tenfold": tenfold, "numpy": numpy}, rounds)
    title = f"a chain of {count:,} additions of 50 floats, pushed and awaited"
    return row("chain", title, medians(times), is_so("NumPy's values", right))
