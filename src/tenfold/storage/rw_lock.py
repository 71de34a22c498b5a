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

PATIENCE = 0.001
"""Seconds after which a writer checks again for references to the old value."""


class RwLock:
    """Counts the readers inside. It is reentrant: a reader may go in again past waiting writers."""

    def __init__(self) -> None:
        self.used = False
        """Whether there ever was a window; before the first one no reader takes the lock."""
        self.leave: Callable[[], None] | None = None
        """What is done when a reader has left, if anything is left to do."""
        self.free()

    def free(self) -> None:
        """Reset to an unlocked state, as the child of a fork does."""
        self._changed = threading.Condition()  # protects everything here; a handler may go in again
        self._inside: dict[int, int] = {}
        self._writer = 0
        self._waiting = 0

    def is_inside(self) -> bool:
        """Whether this thread is reading."""
        return threading.get_ident() in self._inside

    def reading(self) -> ReadLock:
        """Go in to read; waits for a writer that is inside, or at the gate before this thread."""
        return ReadLock(self)

    @contextmanager
    def writing(self, is_alone: Callable[[], bool]) -> Iterator[None]:
        """Go in to write, when no other thread is inside or `is_alone()` says that none reads."""
        me = threading.get_ident()
        with self._changed:
            self._waiting += 1
            try:
                while self._writer or (self._inside.keys() - {me} and not is_alone()):
                    self._changed.wait(PATIENCE)
                self._writer = me
            finally:
                self._waiting -= 1
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._writer = 0
                self._changed.notify_all()

    def _enter(self, me: int) -> None:
        with self._changed:
            while self._writer not in (0, me) or (self._waiting and me not in self._inside):
                self._changed.wait()
            self._inside[me] = self._inside.get(me, 0) + 1

    def _exit(self, me: int) -> None:
        with self._changed:
            left = self._inside.get(me, 0) - 1
            if left > 0:
                self._inside[me] = left
            else:
                self._inside.pop(me, None)
            self._changed.notify_all()


class ReadLock:
    """One reader inside; out again at the end of its block, whatever interrupts it."""

    __slots__ = ("_gate", "_thread")

    def __init__(self, gate: RwLock) -> None:
        self._gate, self._thread = gate, 0

    def __enter__(self) -> None:
        me = threading.get_ident()
        self._gate._enter(me)
        self._thread = me

    def __exit__(self, *_: object) -> None:
        thread, self._thread = self._thread, 0
        if thread:
            self._gate._exit(thread)
        if self._gate.leave is not None:
            self._gate.leave()

    def __del__(self) -> None:
        if self._thread:
            self._gate._exit(self._thread)


GATE = RwLock()
os.register_at_fork(after_in_child=GATE.free)
