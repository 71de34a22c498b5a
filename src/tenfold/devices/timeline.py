"""The timeline: what ran, where and when, while somebody records.

Takes one call per piece of work, hands the events to every recorder that is open.

>>> with recording() as events:
...     record("add", "kernel", begin())
>>> [event.name for event in events]
['add']
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tenfold import _native, settings


@dataclass(frozen=True, slots=True)
class Event:
    """One piece of work: its name and category, begin and end in nanoseconds, the thread's id."""

    name: str
    category: str
    begin: int
    end: int
    thread: int


# No lock of its own: list.append and iteration over a copy are whole under the GIL.
_recorders: list[list[Event]] = []


def begin() -> int:
    """Return the time at which a piece of work begins, in nanoseconds."""
    return time.perf_counter_ns()


def record(name: str, category: str, begun: int) -> None:
    """Say that a piece of work that began at `begun` has ended."""
    if not _recorders and not settings.get("debug"):
        return
    event = Event(name, category, begun, time.perf_counter_ns(), threading.get_ident())
    for events in tuple(_recorders):
        events.append(event)
    debug(2, f"{category} {name} {(event.end - event.begin) / 1e3:.1f} us")


def watched() -> bool:
    """Whether somebody records."""
    return bool(_recorders)


def record_all(events: Iterable[tuple[str, str, int, int]]) -> None:
    """Say what has run: name, category, begin and end of each in nanoseconds."""
    made = [Event(*event, threading.get_ident()) for event in events]
    for recorded in tuple(_recorders):
        recorded.extend(made)


@contextmanager
def recording() -> Iterator[list[Event]]:
    """Collect the events of a block, of all threads."""
    events: list[Event] = []
    _recorders.append(events)
    _native.set_watched(True)
    try:
        yield events
    finally:
        # By identity: two open recorders may hold equal events.
        _recorders[:] = [other for other in _recorders if other is not events]
        _native.set_watched(watched())


def debug(level: int, text: str) -> None:
    """Write a line to stderr when `TENFOLD_DEBUG` (or the option `debug`) is at least `level`."""
    if int(settings.get("debug")) >= level:
        print(f"tenfold: {text}", file=sys.stderr)
