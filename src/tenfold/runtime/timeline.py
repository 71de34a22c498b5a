"""Timeline: an event for each launch and each push, while a recording is open.

Takes one call per piece of work, hands the events to every recorder that is open.

>>> with recording() as seen:
...     record("add", "kernel", begin())
>>> [event.name for event in seen.events]
['add']
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType

from tenfold import _native, settings

PUSH = "push"
"""The category of events that hand an operator to an engine and compute nothing."""
READY = "ready"
"""The category of moments from which on the inputs of an operator are there."""


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """One piece of work: its name and category, begin and end in nanoseconds, the thread's id.

    What an engine ran says its operators by their numbers, which grow with its pushes, and their
    mean depth; a push says its one operator, and as `inputs` those whose results that one takes.
    What is `running` had not ended when the recording did: its end is that of the recording.
    """

    name: str
    category: str
    begin: int
    end: int
    thread: int
    operators: tuple[int, ...] = ()
    inputs: tuple[int, ...] = ()
    depth: float | None = None
    running: bool = False
    members: int = 0
    """How many equal nodes of a large graph it was computed for together; 0 where there are none.
    """
    apart: str = ""
    """Why these were not computed with an earlier batch of the same operation or function."""


@dataclass(frozen=True, slots=True)
class CounterSample:
    """How much there was of several things at a time in nanoseconds, such as bytes alive."""

    name: str
    time: int
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class TimelineRecord:
    """What a recorder has seen so far, and what threads are called."""

    events: list[TimelineEvent]
    levels: list[CounterSample]
    threads: dict[int, str]


# No lock of its own: list.append and iteration over a copy are whole under the GIL.
_recorders: list[TimelineRecord] = []
_batch: ContextVar[tuple[int, str]] = ContextVar("tenfold_batch", default=(0, ""))


def begin() -> int:
    """Return the time at which a piece of work begins, in nanoseconds."""
    return time.perf_counter_ns()


def record(name: str, category: str, begun: int) -> None:
    """Say that a piece of work that began at `begun` has ended."""
    if not _recorders and not settings.get("debug"):
        return
    end, thread = time.perf_counter_ns(), threading.get_ident()
    members, apart = _batch.get()
    event = TimelineEvent(name, category, begun, end, thread, members=members, apart=apart)
    record_events([event])
    debug(2, f"{category} {name} {(event.end - event.begin) / 1e3:.1f} us")


def watched() -> bool:
    """Whether a recorder is active."""
    return bool(_recorders)


def record_all(events: Iterable[tuple[str, str, int, int]]) -> None:
    """Say what has run: name, category, begin and end of each in nanoseconds."""
    thread, (members, apart) = threading.get_ident(), _batch.get()
    record_events([TimelineEvent(*event, thread, members=members, apart=apart) for event in events])


@contextmanager
def together(members: int, apart: str = "") -> Iterator[None]:
    """Let what runs in the block be for so many members of a group, `apart` from others."""
    token = _batch.set((members, apart))
    try:
        yield
    finally:
        _batch.reset(token)


def record_events(
    events: Sequence[TimelineEvent],
    levels: Sequence[CounterSample] = (),
    threads: Mapping[int, str] = MappingProxyType({}),
) -> None:
    """Say what has run, on any thread, how much there was of what, and what threads are called."""
    for recorded in tuple(_recorders):
        recorded.events.extend(events)
        recorded.levels.extend(levels)
        recorded.threads.update(threads)


def take_engines() -> tuple[list[TimelineEvent], dict[int, str]]:
    """Hand on what engines have noted: pushes, steps, and what was alive after each step.

    Returns the steps that have not ended, which come again once they have, and names of threads.
    """
    noted, begun, alive = _native.take_engine_trace()
    events = [_event(*each) for each in noted]
    running = [_event(*each, running=True) for each in begun]
    levels = [
        CounterSample(
            "engine", time, {"live_bytes": live, "live_objects": objects, "pending": pending}
        )
        for time, live, objects, pending in alive
    ]
    ran = sorted(
        {each.thread for each in (*events, *running) if each.category not in (PUSH, READY)}
    )
    names = {thread: f"engine thread {number}" for number, thread in enumerate(ran, 1)}
    own = {thread.ident for thread in threading.enumerate()}
    names = {thread: name for thread, name in names.items() if thread not in own}
    record_events(events, levels, names)
    return running, names


def _event(
    name: str,
    category: str,
    begun: int,
    end: int,
    thread: int,
    operators: tuple[int, ...],
    inputs: tuple[int, ...],
    depth: float,
    *,
    running: bool = False,
) -> TimelineEvent:
    return TimelineEvent(name, category, begun, end, thread, operators, inputs, depth, running)


@contextmanager
def recording() -> Iterator[TimelineRecord]:
    """Collect the events of a block, of all threads."""
    record = TimelineRecord([], [], {})
    take_engines()  # of those that record already
    _recorders.append(record)
    _native.set_watched(True)
    _native.trace_engines(True)
    try:
        yield record
    finally:
        running, names = take_engines()
        record.events.extend(running)
        record.threads.update(names)
        # By identity: two open recorders may hold equal events.
        _recorders[:] = [other for other in _recorders if other is not record]
        _native.set_watched(watched())
        _native.trace_engines(watched())


def debug(level: int, text: str) -> None:
    """Write a line to stderr when `TENFOLD_DEBUG` (or the option `debug`) is at least `level`."""
    if int(settings.get("debug")) >= level:
        print(f"tenfold: {text}", file=sys.stderr)
