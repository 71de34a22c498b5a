"""Read-write lock: orders computations and assignments to external buffers; readers share, a writer
is alone.

Every computation takes it for reading once there is an external buffer (`tn.wrap`). An assignment
to one waits until no other thread is computing, unless the old value has no other reader.

>>> gate = RwLock()
>>> with gate.reading():
...     gate.is_inside()
True
>>> with gate.writing(lambda: False):
...     pass
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

POLL_SECONDS = 0.001
"""Seconds after which a writer checks again for references to the old value."""


class RwLock:
    """Counts the readers inside. It is reentrant: a reader may go in again past waiting writers."""

    def __init__(self) -> None:
        self.enabled = False
        """Whether there ever was a window; before the first one no reader takes the lock."""
        self.on_reader_exit: Callable[[], None] | None = None
        """What is done when a reader has left, if anything is left to do."""
        self.reset()

    def reset(self) -> None:
        """Reset to an unlocked state, as the child of a fork does."""
        self._condition = (
            threading.Condition()
        )  # protects everything here; a handler may go in again
        self._reader_depths: dict[int, int] = {}
        self._writer = 0
        self._waiting_writers = 0

    def is_reading(self) -> bool:
        """Whether this thread is reading."""
        return threading.get_ident() in self._reader_depths

    def read_lock(self) -> ReadLock:
        """Go in to read; waits for a writer that is inside, or at the gate before this thread."""
        return ReadLock(self)

    @contextmanager
    def write_lock(self, is_alone: Callable[[], bool]) -> Iterator[None]:
        """Go in to write, when no other thread is inside or `is_alone()` says that none reads."""
        me = threading.get_ident()
        with self._condition:
            self._waiting_writers += 1
            try:
                while self._writer or (self._reader_depths.keys() - {me} and not is_alone()):
                    self._condition.wait(POLL_SECONDS)
                self._writer = me
            finally:
                self._waiting_writers -= 1
                self._condition.notify_all()
        try:
            yield
        finally:
            with self._condition:
                self._writer = 0
                self._condition.notify_all()

    def _enter(self, me: int) -> None:
        with self._condition:
            while self._writer not in (0, me) or (
                self._waiting_writers and me not in self._reader_depths
            ):
                self._condition.wait()
            self._reader_depths[me] = self._reader_depths.get(me, 0) + 1

    def _exit(self, me: int) -> None:
        with self._condition:
            left = self._reader_depths.get(me, 0) - 1
            if left > 0:
                self._reader_depths[me] = left
            else:
                self._reader_depths.pop(me, None)
            self._condition.notify_all()


class ReadLock:
    """One reader inside; out again at the end of its block, whatever interrupts it."""

    __slots__ = ("_lock", "_thread")

    def __init__(self, gate: RwLock) -> None:
        self._lock, self._thread = gate, 0

    def __enter__(self) -> None:
        me = threading.get_ident()
        self._lock._enter(me)
        self._thread = me

    def __exit__(self, *_: object) -> None:
        thread, self._thread = self._thread, 0
        if thread:
            self._lock._exit(thread)
        if self._lock.on_reader_exit is not None:
            self._lock.on_reader_exit()

    def __del__(self) -> None:
        if self._thread:
            self._lock._exit(self._thread)


EXTERNAL_BUFFER_LOCK = RwLock()
os.register_at_fork(after_in_child=EXTERNAL_BUFFER_LOCK.reset)
