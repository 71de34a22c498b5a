"""Rows for the table, and the turns by which their times are taken.

Takes functions of no arguments that do one turn each; hands on milliseconds of every round.

    yield row("add", "a million additions", milliseconds(turns, rounds), at_most(1, ratio, "x"))
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

from kernel_work.measure import REST, Row

Turn = Callable[[], object]


def row(name: str, title: str, found: Mapping[str, float], *verdicts: Row, **also: Any) -> Row:
    made = {"name": name, "title": title, "wrong": {}, "milliseconds": dict(found)}
    return {**made, "verdicts": list(verdicts), **also}


def at_most(limit: float, found: float, unit: str) -> Row:
    return {"required": f"<= {limit:g} {unit}", "found": found, "met": found <= limit}


def is_so(text: str, met: bool) -> Row:
    return {"required": text, "found": None, "met": met}


def by_turns(turns: Mapping[str, Turn], rounds: int) -> dict[str, list[float]]:
    """Milliseconds of every round by name, each round begun by another one."""
    found: dict[str, list[float]] = {name: [] for name in turns}
    names = list(turns)
    gc.collect()
    gc.disable()
    try:
        for number in range(rounds):
            first = number % len(names)
            for name in names[first:] + names[:first]:
                time.sleep(REST)
                begin = time.perf_counter()
                turns[name]()
                found[name].append((time.perf_counter() - begin) * 1e3)
    finally:
        gc.enable()
    return found


def medians(found: Mapping[str, list[float]]) -> dict[str, float]:
    return {name: statistics.median(times) for name, times in found.items()}


def ratio(found: Mapping[str, list[float]], own: str, other: str) -> float:
    """The median of the ratios of the rounds."""
    pairs = zip(found[own], found[other], strict=True)
    return statistics.median(one / another for one, another in pairs)
