"""Rows for the table, and the turns by which their times are taken.

Takes functions of no arguments that do one turn each; hands on milliseconds of every round.

    yield row("add", "a million additions", milliseconds(turns, rounds), at_most(1, ratio, "x"))
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from kernel_work.measure import Row, by_turns, median

Turn = Callable[[], object]


def row(name: str, title: str, found: Mapping[str, float], *verdicts: Row, **also: Any) -> Row:
    made = {"name": name, "title": title, "wrong": {}, "milliseconds": dict(found)}
    return {**made, "verdicts": list(verdicts), **also}


def at_most(limit: float, found: float, unit: str) -> Row:
    return {"required": f"<= {limit:g} {unit}", "found": found, "met": found <= limit}


def at_least(limit: float, found: float | None, unit: str) -> Row:
    """`met` is None if the other library is not installed."""
    met = None if found is None else found >= limit
    return {"required": f">= {limit:g} {unit}", "found": found, "met": met}


def is_so(text: str, met: bool) -> Row:
    return {"required": text, "found": None, "met": met}


def milliseconds(turns: Mapping[str, Turn], rounds: int) -> dict[str, list[float]]:
    """Of every round by name, each round begun by another one."""
    return by_turns({name: partial(seconds_of, turn) for name, turn in turns.items()}, rounds)


def seconds_of(turn: Turn) -> float:
    begin = time.perf_counter()
    turn()
    return time.perf_counter() - begin


def medians(found: Mapping[str, list[float]]) -> dict[str, float]:
    return {name: median(times) for name, times in found.items()}


def ratio(found: Mapping[str, list[float]], own: str, other: str) -> float:
    """The median of the ratios of the rounds."""
    pairs = zip(found[own], found[other], strict=True)
    return median([one / another for one, another in pairs])
