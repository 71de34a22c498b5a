"""Profiler (`tn.profile`): the counters and the timeline of a block.

Counters are totals of the process; a profile is their difference between the block's end (or now)
and its beginning. `save` writes a timeline for Perfetto or
chrome://tracing: an event for each launch, named as the operations that it computes, joined by "+".

>>> import tenfold as tn
>>> x = tn.asarray([1.0, 2.0])
>>> with tn.profile() as p:
...     y = (x + 1) * 2
>>> p.kernels
0
>>> with tn.options(tier=1), tn.profile() as p:  # fused at the first run
...     y = y.wait()
>>> p.kernels, p.temporaries, [event.name for event in p.events]
(1, 0, ['add+multiply'])
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from errno import ENOENT
from pathlib import Path
from typing import Any, Self

from tenfold import _native
from tenfold._native import Scope
from tenfold.deprecation import warn_renamed
from tenfold.inspect.text_format import count_text, in_time
from tenfold.runtime.timeline import (
    PUSH,
    READY,
    CounterSample,
    TimelineEvent,
    TimelineRecord,
    nothing,
    recording,
)
from tenfold.submission import wait_idle

PRINTED_STEPS = 20
"""The most steps that a profile prints."""


class Profile(Scope):
    """The counters of a block, as attributes, and its events.

    | Counter | Counts |
    |---|---|
    | `kernels` | launches of generated kernels |
    | `calls` | operations computed by BLAS, LAPACK, NumPy or a Python function |
    | `launches` | kernels and calls; a batch of either counts once |
    | `batches`, `gathers` | launches for several operators or nodes; operands copied for them |
    | `temporaries` | array-sized buffers that are neither an input nor a result |
    | `copies` | arrays copied at import, at export, or by an assignment |
    | `allocations`, `bytes_allocated` | memory requested from the system, not from the pool |
    | `compiles` | kernels that LLVM compiled while the program waited; a disk hit is not counted |
    | `background_compiles` | optimised compilations that began in the background |
    | `generic_compiles` | kernels of one operation for any shape, compiled or loaded from disk |
    | `multiply_adds` | m*n*k of a product, nnz*k if sparse; the textbook count of factorisations |
    | `host_syncs` | waits of this program for values |
    | `densified` | arrays of a storage kind that became dense |

    All are ints, of the whole process while the block was open. Memory that the pool reuses is not
    counted; `tn.trim()` empties the pool. A caller that waits for a kernel counts its compilation.
    A launch that starts an optimised compilation in the background counts it when it starts. That
    may depend on other work of the compile thread, so `background_compiles` may differ between
    runs.
    """

    def __init__(self) -> None:
        super().__init__()
        self._begin: dict[str, int] = {}
        self._end: dict[str, int] | None = None
        self._record = TimelineRecord([], [], {})

    def prepare(self) -> tuple[Self, Sequence[tuple[Any, Any]]]:
        """Begin to count; return what the block does to the timeline."""
        wait_idle()  # earlier submissions do not count
        self._record, changes = recording().prepare()
        self._end = None
        self._begin = _native.read_counters()
        return self, (*changes, (nothing, self._finish))

    def _finish(self) -> None:
        wait_idle()
        self._end = _native.read_counters()
        for thread in threading.enumerate():
            self._record.threads.setdefault(thread.ident or 0, thread.name)

    @property
    def events(self) -> list[TimelineEvent]:
        """The events, in the order of their ends; those of engines come at the end of the block."""
        return self._record.events

    def counters(self) -> dict[str, int]:
        """Return every counter by name."""
        if self._end is None:
            wait_idle()
        totals = self._end if self._end is not None else _native.read_counters()
        return {name: totals[name] - self._begin.get(name, totals[name]) for name in totals}

    def __getattr__(self, name: str) -> int:
        if name == "syncs":
            name = warn_renamed("Profile", name)
        counters = self.counters() if not name.startswith("_") else {}
        if name not in counters:
            raise AttributeError(f"a profile has no counter {name!r}; it has {', '.join(counters)}")
        return counters[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.counters()]

    def __repr__(self) -> str:
        nonzero = ", ".join(f"{name}={count}" for name, count in self.counters().items() if count)
        return f"<profile {nonzero or 'of nothing'}>"

    def __str__(self) -> str:
        """The counters, then the time and the number of launches of each step, longest first."""
        nonzero = [f"  {name:<20}{count:>15,}" for name, count in self.counters().items() if count]
        spans: dict[str, list[int]] = {}
        for event in self.events:
            if event.category not in (PUSH, READY):
                spans.setdefault(event.name, []).append(event.end - event.begin)
        longest = sorted(spans.items(), key=lambda step: -sum(step[1]))
        steps = [
            f"  {in_time(sum(times)):>12} {count_text(len(times), 'time'):>12}  {name}"
            for name, times in longest[:PRINTED_STEPS]
        ]
        left_out = len(longest) - len(steps)
        more = [f"  and {count_text(left_out, 'further step')}"] if left_out else []
        return "\n".join(["profile", *(nonzero or ["  of nothing"]), *steps, *more])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the timeline as Chrome trace events (JSON), whole or not at all.

        Raises OSError when `path` cannot be written.
        """
        import json  # costs milliseconds, and only `save` needs it
        import tempfile

        target = Path(path)
        if not target.parent.is_dir():
            raise FileNotFoundError(ENOENT, "the folder does not exist", str(target.parent))
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "w") as file:
                json.dump(self._trace(), file)
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    def _trace(self) -> dict[str, object]:
        events, thread_names = self._record.events, self._record.threads
        used_threads = {event.thread for event in events}
        thread_events = [
            _thread_name_event(thread, thread_names[thread])
            for thread in sorted(used_threads & thread_names.keys())
        ]
        pushed = {event.operators[0] for event in events if event.category == PUSH}
        trace_events = [
            *thread_events,
            *map(_complete_event, events),
            *map(_counter_event, self._record.levels),
        ]
        for event in events:
            trace_events.extend(_flow_events(event, pushed))
        process = os.getpid()
        traced = [{**thread, "pid": process} for thread in trace_events]
        return {"traceEvents": traced, "otherData": self.counters()}


TraceEvent = dict[str, object]


def _thread_name_event(thread: int, name: str) -> TraceEvent:
    return {"name": "thread_name", "ph": "M", "tid": thread, "args": {"name": name}}


def _complete_event(event: TimelineEvent) -> TraceEvent:
    """Return an event with begin and duration in microseconds; an instant without duration."""
    trace_event: TraceEvent = {
        "name": event.name,
        "cat": event.category,
        "ts": event.begin / 1e3,
        "tid": event.thread,
    }
    if event.category == READY:
        return {**trace_event, "ph": "i", "s": "t", "args": {"operators": event.operators}}
    trace_event |= {"ph": "X", "dur": (event.end - event.begin) / 1e3}
    if event.operators:
        trace_event["args"] = {"operators": event.operators, **_event_arguments(event)}
    elif event.members:
        trace_event["args"] = {
            "batch": event.members,
            **({"apart": event.apart} if event.apart else {}),
        }
    return trace_event


def _event_arguments(event: TimelineEvent) -> TraceEvent:
    if event.category == PUSH:
        return {"inputs": event.inputs}
    running = {"running": True} if event.running else {}
    return {"batch": len(event.operators), "depth": event.depth, **running}


def _flow_events(event: TimelineEvent, pushed: set[int]) -> Iterator[TraceEvent]:
    """Yield for each operator a flow event: its start in a push, or its end in a run."""
    is_tail = event.category == PUSH
    for number in () if event.category == READY else event.operators:
        if number in pushed:
            end: TraceEvent = {"ph": "s"} if is_tail else {"ph": "f", "bp": "e"}
            location: TraceEvent = {"ts": event.begin / 1e3, "tid": event.thread, "id": number}
            yield {"name": "run", "cat": PUSH, **end, **location}


def _counter_event(level: CounterSample) -> TraceEvent:
    return {"name": level.name, "ph": "C", "ts": level.time / 1e3, "args": dict(level.values)}


def profile() -> Profile:
    """Return a context manager that counts and records what the process does in its block.

    `compiles` counts the kernels that the block waited for. Small kernels that are optimised in the
    background while it goes on are counted apart, in `background_compiles`.

    >>> import tenfold as tn
    >>> with tn.profile() as p:
    ...     total = tn.sum(tn.asarray([1.0, 2.0])).item()
    >>> p.kernels, p.host_syncs
    (1, 1)
    """
    return Profile()
