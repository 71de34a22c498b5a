"""Read-write lock: orders computations and assignments to external buffers.

Every computation holds it for reading once an external buffer (`tn.wrap`) exists. An assignment to
one waits until no other thread is computing, unless the old value has no other reader.

>>> lock = RwLock()
>>> with lock.read_lock():
...     lock.is_reading()
True
>>> with lock.write_lock(lambda: False):
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
    """A reentrant lock: a reader may acquire it again before waiting writers."""

    def __init__(self) -> None:
        self.enabled = False
        """Whether an external buffer ever existed; before that no reader acquires the lock."""
        self.on_reader_exit: Callable[[], None] | None = None
        """Called after a reader has released the lock."""
        self.reset()

    def reset(self) -> None:
        """Reset to an unlocked state, as the child of a fork does."""
        self._condition = threading.Condition()  # reentrant, as signal handlers may acquire it
        self._reader_depths: dict[int, int] = {}
        self._writer = 0
        self._waiting_writers = 0

    def is_reading(self) -> bool:
        """Whether this thread holds the lock for reading."""
        return threading.get_ident() in self._reader_depths

    def read_lock(self) -> ReadLock:
        """Acquire for reading, after the active writer and writers that wait already."""
        return ReadLock(self)

    @contextmanager
    def write_lock(self, is_alone: Callable[[], bool]) -> Iterator[None]:
        """Acquire for writing, once no other thread holds it or `is_alone()` is true."""
        thread = threading.get_ident()
        with self._condition:
            self._waiting_writers += 1
            try:
                while self._writer or (self._reader_depths.keys() - {thread} and not is_alone()):
                    self._condition.wait(POLL_SECONDS)
                self._writer = thread
            finally:
                self._waiting_writers -= 1
                self._condition.notify_all()
        try:
            yield
        finally:
            with self._condition:
                self._writer = 0
                self._condition.notify_all()

    def _enter(self, thread: int) -> None:
        with self._condition:
            while self._writer not in (0, thread) or (
                self._waiting_writers and thread not in self._reader_depths
            ):
                self._condition.wait()
            self._reader_depths[thread] = self._reader_depths.get(thread, 0) + 1

    def _exit(self, thread: int) -> None:
        with self._condition:
            depth = self._reader_depths.get(thread, 0) - 1
            if depth > 0:
                self._reader_depths[thread] = depth
            else:
                self._reader_depths.pop(thread, None)
            self._condition.notify_all()


class ReadLock:
    """One reader; released at the end of its block, also on interrupts."""

    __slots__ = ("_lock", "_thread")

    def __init__(self, lock: RwLock) -> None:
        self._lock, self._thread = lock, 0

    def __enter__(self) -> None:
        thread = threading.get_ident()
        self._lock._enter(thread)
        self._thread = thread

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
