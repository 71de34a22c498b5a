"""Profiler (`tn.profile`): the counters and the timeline of a block.

Counters are totals of the process, raised where the work is done; a profile is their difference
between the block's end (or now) and its beginning. `save` writes a timeline for Perfetto or
chrome://tracing: an event for each launch, named as the operations that it computes, joined by "+".

>>> import tenfold as tn
>>> x = tn.asarray([1.0, 2.0])
>>> with tn.profile() as p:
...     y = (x + 1) * 2
>>> p.kernels
0
>>> with tn.options(tier=1), tn.profile() as p:  # fused though it has not been seen often
...     y = y.wait()
>>> p.kernels, p.temporaries, [event.name for event in p.events]
(1, 0, ['add+multiply'])
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from errno import ENOENT
from pathlib import Path
from types import TracebackType

from tenfold import _native
from tenfold.deprecation import warn_renamed
from tenfold.runtime.timeline import (
    PUSH,
    READY,
    CounterSample,
    TimelineEvent,
    TimelineRecord,
    recording,
)
from tenfold.submission import wait_idle


class Profile:
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
    | `multiply_adds` | m*n*k for each product, the textbook count for factorisations |
    | `host_syncs` | waits of this program for values |

    All are ints, of the whole process while the block was open. Memory that the pool reuses is not
    counted; `tn.trim()` empties the pool. A caller that waits for a kernel counts its compilation.
    A launch that starts an optimised compilation in the background counts it when it starts. That
    may depend on other work of the compile thread, so `background_compiles` may differ between
    runs.
    """

    def __init__(self) -> None:
        self._begin: dict[str, int] = {}
        self._end: dict[str, int] | None = None
        self._recording: AbstractContextManager[TimelineRecord] | None = None
        self._record = TimelineRecord([], [], {})

    def __enter__(self) -> Profile:
        wait_idle()  # what was submitted before is not of this block
        self._recording = recording()
        self._record = self._recording.__enter__()
        self._end = None
        self._begin = _native.read_counters()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        wait_idle()
        self._end = _native.read_counters()
        if self._recording is not None:
            self._recording.__exit__(kind, error, traceback)
        for thread in threading.enumerate():
            self._record.threads.setdefault(thread.ident or 0, thread.name)

    @property
    def events(self) -> list[TimelineEvent]:
        """What ran, in the order in which it ended; engines' are told at the end of the block."""
        return self._record.events

    def counters(self) -> dict[str, int]:
        """Return every counter by name."""
        if self._end is None:
            wait_idle()
        now = self._end if self._end is not None else _native.read_counters()
        return {name: now[name] - self._begin.get(name, now[name]) for name in now}

    def __getattr__(self, name: str) -> int:
        if name == "syncs":
            name = warn_renamed("Profile", name)
        found = self.counters() if not name.startswith("_") else {}
        if name not in found:
            raise AttributeError(f"a profile has no counter {name!r}; it has {', '.join(found)}")
        return found[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.counters()]

    def __repr__(self) -> str:
        raised = ", ".join(f"{name}={count}" for name, count in self.counters().items() if count)
        return f"<profile {raised or 'of nothing'}>"

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
        events, known = self._record.events, self._record.threads
        used = {event.thread for event in events}
        named = [_thread_name_event(each, known[each]) for each in sorted(used & known.keys())]
        pushed = {event.operators[0] for event in events if event.category == PUSH}
        found = [*named, *map(_complete_event, events), *map(_counter_event, self._record.levels)]
        for event in events:
            found.extend(_flow_events(event, pushed))
        process = os.getpid()
        traced = [{**each, "pid": process} for each in found]
        return {"traceEvents": traced, "otherData": self.counters()}


TraceEvent = dict[str, object]


def _thread_name_event(thread: int, name: str) -> TraceEvent:
    return {"name": "thread_name", "ph": "M", "tid": thread, "args": {"name": name}}


def _complete_event(event: TimelineEvent) -> TraceEvent:
    """Return an event with its begin and its duration, in microseconds; a moment without that."""
    found: TraceEvent = {
        "name": event.name,
        "cat": event.category,
        "ts": event.begin / 1e3,
        "tid": event.thread,
    }
    if event.category == READY:
        return {**found, "ph": "i", "s": "t", "args": {"operators": event.operators}}
    found |= {"ph": "X", "dur": (event.end - event.begin) / 1e3}
    if event.operators:
        found["args"] = {"operators": event.operators, **_event_arguments(event)}
    elif event.members:
        found["args"] = {"batch": event.members, **({"apart": event.apart} if event.apart else {})}
    return found


def _event_arguments(event: TimelineEvent) -> TraceEvent:
    if event.category == PUSH:
        return {"inputs": event.inputs}
    still = {"running": True} if event.running else {}
    return {"batch": len(event.operators), "depth": event.depth, **still}


def _flow_events(event: TimelineEvent, pushed: set[int]) -> Iterator[TraceEvent]:
    """Yield an arrow's tail in a push, or its head in what ran, for each operator of an event."""
    tail = event.category == PUSH
    for number in () if event.category == READY else event.operators:
        if number in pushed:
            end: TraceEvent = {"ph": "s"} if tail else {"ph": "f", "bp": "e"}
            where: TraceEvent = {"ts": event.begin / 1e3, "tid": event.thread, "id": number}
            yield {"name": "run", "cat": PUSH, **end, **where}


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
