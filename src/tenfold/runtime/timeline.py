"""Timeline: an event for each launch and each push, while a recording is open.

Takes one call per event, hands the events to every open recorder.

>>> with recording() as seen:
...     record("add", "kernel", begin())
>>> [event.name for event in seen.events]
['add']
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

from tenfold import _native, settings
from tenfold._native import Scope
from tenfold.settings import debug

PUSH = "push"
"""The category of events that hand an operator to an engine and compute nothing."""
READY = "ready"
"""The category of moments at which the inputs of an operator are ready."""


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """One event: its name and category, begin and end in nanoseconds, the thread's id.

    An engine's batch lists its operators by push number, and their mean depth. A push names its
    single operator, and as `inputs` the operators whose results it takes. A `running` event had not
    ended when the recording did: its end is that of the recording.
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
    """The number of equal nodes of a large graph in its batch; 0 without a batch."""
    apart: str = ""
    """Why the batch is separate from an earlier batch of the same operation or function."""


@dataclass(frozen=True, slots=True)
class CounterSample:
    """A sample of several counters at a time in nanoseconds, such as live bytes."""

    name: str
    time: int
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class TimelineRecord:
    """The events and samples of a recorder so far, and the names of threads."""

    events: list[TimelineEvent]
    levels: list[CounterSample]
    threads: dict[int, str]


# By id. No lock: a step of dict and a copy of its values are atomic under the GIL.
_recorders: dict[int, TimelineRecord] = {}
_batch: ContextVar[tuple[int, str]] = ContextVar("tenfold_batch", default=(0, ""))


def begin() -> int:
    """Return the begin of an event, in nanoseconds."""
    return time.perf_counter_ns()


def record(name: str, category: str, start: int) -> None:
    """Record an event from `start` until now."""
    if not _recorders and not settings.get("debug"):
        return
    end, thread = time.perf_counter_ns(), threading.get_ident()
    members, apart = _batch.get()
    event = TimelineEvent(name, category, start, end, thread, members=members, apart=apart)
    record_events([event])
    debug(2, f"{category} {name} {(event.end - event.begin) / 1e3:.1f} us")


def is_recording() -> bool:
    """Whether a recorder is active."""
    return bool(_recorders)


def record_all(events: Iterable[tuple[str, str, int, int]]) -> None:
    """Record events of (name, category, begin, end), in nanoseconds."""
    events = [*events]
    for name, category, begin_ns, end_ns in events:
        debug(2, f"{category} {name} {(end_ns - begin_ns) / 1e3:.1f} us")
    thread, (members, apart) = threading.get_ident(), _batch.get()
    record_events([TimelineEvent(*event, thread, members=members, apart=apart) for event in events])


def batch_members(members: int, apart: str = "") -> Scope:
    """Mark the events of the block as a batch of `members` nodes; `apart`: why it is separate."""
    return Scope((_batch, (members, apart)))


def in_batch() -> bool:
    """Whether a batch is being computed."""
    return _batch.get()[0] > 0


def record_events(
    events: Sequence[TimelineEvent],
    levels: Sequence[CounterSample] = (),
    threads: Mapping[int, str] = MappingProxyType({}),
) -> None:
    """Record events of any thread, counter samples, and names of threads."""
    for recorded in [*_recorders.values()]:
        recorded.events.extend(events)
        recorded.levels.extend(levels)
        recorded.threads.update(threads)


def take_engines() -> tuple[list[TimelineEvent], dict[int, str]]:
    """Record the traces of engines: pushes, batches, and memory samples after each batch.

    Returns the running batches, which come again after their end, and the names of threads.
    """
    ended, started, samples = _native.take_engine_trace()
    events = [_event(*event) for event in ended]
    running = [_event(*event, running=True) for event in started]
    levels = [
        CounterSample(
            "engine", time, {"live_bytes": live, "live_objects": objects, "pending": pending}
        )
        for time, live, objects, pending in samples
    ]
    engine_threads = sorted(
        {event.thread for event in (*events, *running) if event.category not in (PUSH, READY)}
    )
    names = {thread: f"engine thread {number}" for number, thread in enumerate(engine_threads, 1)}
    python_threads = {thread.ident for thread in threading.enumerate()}
    names = {thread: name for thread, name in names.items() if thread not in python_threads}
    record_events(events, levels, names)
    return running, names


def _event(
    name: str,
    category: str,
    start: int,
    end: int,
    thread: int,
    operators: tuple[int, ...],
    inputs: tuple[int, ...],
    depth: float,
    *,
    running: bool = False,
) -> TimelineEvent:
    return TimelineEvent(name, category, start, end, thread, operators, inputs, depth, running)


class recording(Scope):  # noqa: N801  # it is called as a function
    """Collect the events of a block, of all threads: its value is the TimelineRecord."""

    def prepare(self) -> tuple[Any, Sequence[tuple[Any, Any]]]:
        """Return the record, and the steps that open and close it."""
        take_engines()  # for the recorders that are open already
        record = TimelineRecord([], [], {})
        # by identity: two open recorders may have equal events
        opens = partial(_recorders.__setitem__, id(record), record)
        closes = partial(_recorders.pop, id(record), None)
        counts = partial(_native.count_recorders, 1), partial(_native.count_recorders, -1)
        return record, ((opens, closes), counts, (nothing, partial(_finish, record)))


def nothing() -> None:
    """Do nothing: the step before a block with a step after it."""


def _finish(record: TimelineRecord) -> None:
    running, names = take_engines()
    record.events.extend(running)
    record.threads.update(names)
