"""The rows that have processes of their own: first results, new graphs, pending nodes, memory.

Takes the number of rounds (0: values alone) and whether a quick look will do; hands on rows for the
table. What each process does stands in the module it runs.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
from kernel_work.measure import Row

from plan_work import fresh

FIRST = 7
"""Processes for a first result; the first of those with a cache fills it and is not counted."""
COLD, WARM = 60.0, 5.0
LARGE, SMALL = 500, 1_000
QUICK, QUICKER = 10, 20
"""How many times fewer programs and how many times fewer evaluations there are in a quick look."""
ROUNDS = 3
"""Of pending nodes."""
NODES = (10_000, 100_000, 1_000_000)
EVALUATIONS, SHAPES, STRUCTURES = 1_000_000, 100_000, 1_000
SECONDS = 3_000
FLAT = 4 << 10
"""Kilobytes by which the memory may rise from the third fifth to the last, or a fiftieth of it."""


def row(name: str, title: str, milliseconds: dict[str, float], *verdicts: Row, **also: Any) -> Row:
    made = {"name": name, "title": title, "wrong": {}, "milliseconds": milliseconds}
    return {**made, "verdicts": list(verdicts), **also}


def at_most(limit: float, found: float, unit: str) -> Row:
    return {"required": f"<= {limit:g} {unit}", "found": found, "met": found <= limit}


def is_so(text: str, met: bool) -> Row:
    return {"required": text, "found": None, "met": met}


def first(rounds: int, _: bool) -> Iterator[Row]:
    """The first result of a process, without a cache on disk and with one."""
    for which in ("operators", "functions"):
        count = FIRST if rounds else 1
        cold = [fresh.run("first", which) for _ in range(count)]
        with tempfile.TemporaryDirectory() as folder:
            warm = [fresh.run("first", which, cache=folder) for _ in range(1 + count)][1:]
        for name, found, limit in (("cold", cold, COLD), ("disk cache", warm, WARM)):
            median = statistics.median(each["milliseconds"] for each in found)
            verdicts = [at_most(limit, median, "ms")]
            if found is warm:
                unused = not any(each["llvmlite"] for each in found)
                verdicts.append(is_so("llvmlite not imported", unused))
            verdicts.append(is_so("NumPy's values", all(each["right"] for each in found)))
            title = f"first result of a process, 10 operations ({which}), {name}"
            yield row(f"first-{which}-{name.split()[0]}", title, {"tenfold": median}, *verdicts)


def seconds_as_milliseconds(found: Row) -> dict[str, float]:
    return {name: found[name] * 1e3 for name in ("tenfold", "numpy")}


def large(rounds: int, quick: bool) -> Iterator[Row]:
    """Random programs, each run once, and then on five new shapes."""
    with tempfile.TemporaryDirectory() as folder:
        warmed = rounds > 0 and fresh.warm_cache(folder)
        found = fresh.run("graphs", "large", LARGE // QUICK if quick else LARGE, cache=folder)
    once, later, count = found["first"], found["later"], found["programs"]
    before = "after cache warm" if warmed else "the compiler started, nothing else warm"
    yield row(
        "graphs-once",
        f"{count} random programs of {found['operations']:.0f} operations, once, {before}; median "
        f"{once['median'] * 1e3:.2f} ms, {once['above']} above 15 ms, {found['compiles']} compiles",
        seconds_as_milliseconds(once),
        at_most(2, once["tenfold"] / once["numpy"], "x numpy's time"),
        at_most(15, once["worst"] * 1e3, "ms the worst"),
        is_so("NumPy's values", not once["wrong"]),
        figures=found,
    )
    yield row(
        "graphs-shapes",
        f"the same on 5 new shapes each; median {later['median'] * 1e3:.2f} ms",
        seconds_as_milliseconds(later),
        at_most(0.6, later["tenfold"] / later["numpy"], "x numpy's time"),
        is_so("NumPy's values", not later["wrong"]),
    )


def small(rounds: int, quick: bool) -> Iterator[Row]:
    """Different small expressions, once each."""
    with tempfile.TemporaryDirectory() as folder:
        warmed = rounds > 0 and fresh.warm_cache(folder)
        found = fresh.run("graphs", "small", SMALL // QUICK if quick else SMALL, cache=folder)
    once, count = found["first"], found["programs"]
    before = "after cache warm" if warmed else "the compiler started, nothing else warm"
    times = seconds_as_milliseconds(once)
    if found["jax"] is not None:
        times["jax"] = found["jax"] * 1e3 / found["jax_programs"] * count
    yield row(
        "graphs-small",
        f"{count} expressions of {found['operations']:.1f} operations, 100 elements, once, "
        f"{before}; {once['median'] * 1e6:.0f} us the median; JAX by {found['jax_programs']}",
        times,
        at_most(3, once["tenfold"] / once["numpy"], "x numpy's time"),
        is_so("NumPy's values", not once["wrong"]),
        figures=found,
    )


def pending(rounds: int, quick: bool) -> Iterator[Row]:
    """Many pending nodes, evaluated once: cut at `pending_depth`, and all at once."""
    for depth, how in ((100_000, "pending_depth as it is"), (0, "no pending_depth")):
        sizes = NODES[:-1] if quick else NODES
        every = [fresh.run("pending", nodes, depth, ROUNDS if rounds else 1) for nodes in sizes]
        times = [found["tenfold"] for found in every]
        slope = float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
        last = every[-1]
        yield row(
            f"pending-{depth}",
            f"{last['nodes']:,} nodes on 50 floats, evaluated once, {how}; "
            f"{last['built'] / last['nodes'] * 1e6:.3f} us a node to the end of the loop",
            seconds_as_milliseconds(last),
            at_most(1.5, last["ratio"], "x numpy's time"),
            at_most(1_000, last["bytes"], "bytes a node"),
            at_most(1.1, slope, "exponent"),
            is_so("NumPy's values", all(found["right"] for found in every)),
            figures=every,
        )


def memory(_: int, quick: bool) -> Iterator[Row]:
    """The memory of a process that evaluates many structures and shapes."""
    fewer = QUICKER if quick else 1
    sizes = EVALUATIONS // fewer, SHAPES // fewer, STRUCTURES // fewer
    found = fresh.run("memory", *sizes, SECONDS)
    done = found["evaluations"]
    begin, end = (
        int(
            statistics.median(
                size for number, size in found["samples"] if low < number / done <= up
            )
        )
        for low, up in ((0.4, 0.6), (0.8, 1.0))
    )
    allowed = max(FLAT, begin // 50)
    yield row(
        "memory",
        f"{done:,} evaluations of {sizes[1]:,} shapes and {sizes[2]:,} structures; "
        f"{begin >> 10} MiB in the third fifth, {end >> 10} MiB in the last",
        {"tenfold": found["seconds"] * 1e3},
        at_most(allowed, end - begin, "kB more"),
        is_so(f"{sizes[0]:,} in {SECONDS} s", done >= sizes[0]),
        is_so("NumPy's values", not found["wrong"]),
        figures=found,
    )


GROUPS = {
    "first": first,
    "graphs": large,
    "small": small,
    "pending": pending,
    "memory": memory,
}
