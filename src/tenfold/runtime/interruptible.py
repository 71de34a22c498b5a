"""Interruptible calls: Ctrl-C ends the wait for a long call of LAPACK or NumPy.

Input: a function that no signal reaches, and its work in multiply-adds. Output: its result. On the
main thread a long one runs in a daemon thread, and the main thread waits. After Ctrl-C the call
ends in its thread, which owns its memory, or between two matrices of a stack; its result is
dropped. The interpreter does not wait for it.

>>> call(lambda interrupted: 1 + 2, multiply_adds=LONG)
3
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Generic, TypeVar

from tenfold import _native

Result = TypeVar("Result")
Interruptible = Callable[[threading.Event | None], Result]
"""Takes an event that is set once the result is not wanted any more, None where it always is."""

LONG = 1 << 26
"""Multiply-adds of a call that is worth a thread: tens of milliseconds."""
PATIENCE = 0.1
"""Seconds after which the main thread looks whether there is still a thread that works."""


def call(function: Interruptible[Result], *, multiply_adds: int) -> Result:
    """Return what a function returns. Raises what it raises, and what a signal handler raises."""
    if multiply_adds < LONG or threading.get_ident() != threading.main_thread().ident:
        return function(None)
    work = _Call(function)
    try:
        return work.result() if work.begin() else function(None)
    except BaseException:
        work.interrupted.set()
        raise


class _Call(threading.Thread, Generic[Result]):
    """One function on its thread, under the options of the caller."""

    def __init__(self, function: Interruptible[Result]) -> None:
        super().__init__(name="tenfold library call", daemon=True)
        self.interrupted = threading.Event()
        self._function, self._context = function, copy_context()
        self._made: list[Result] = []
        self._error: BaseException | None = None
        # Held until the end. Of this kind, not an Event: in the child of a fork it can be used.
        self._over = threading.Lock()
        self._over.acquire()

    def begin(self) -> bool:
        """Start the thread; False where none can be had, as when the interpreter ends."""
        try:
            self.start()
        except RuntimeError:
            return False
        return True

    def run(self) -> None:
        """Call the function."""
        _native.begin_library_call()
        try:
            self._made.append(self._context.run(self._function, self.interrupted))
        except BaseException as error:  # noqa: BLE001  # the main thread raises it
            self._error = error
        finally:
            _native.end_library_call()
            self._over.release()

    def result(self) -> Result:
        """Wait for the end; signal handlers run meanwhile."""
        while not self._over.acquire(timeout=PATIENCE):
            if not self.is_alive():  # a signal handler has forked, and this is the child
                return self._function(None)
        if self._error is not None:
            raise self._error
        return self._made[0]
