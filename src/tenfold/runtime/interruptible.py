"""Interruptible calls: Ctrl-C ends the wait for a long call of LAPACK or NumPy.

Input: an uninterruptible function, and its work in multiply-adds. Output: its result. On the main
thread a long call runs in a daemon thread, and the main thread waits. After Ctrl-C the call ends in
its thread, which owns its memory, or between two matrices of a stack; its result is dropped. The
interpreter does not wait for it.

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
"""Takes an event that is set on cancellation; None if it cannot be cancelled."""

LONG = 1 << 26
"""Multiply-adds from which a call runs in a thread: tens of milliseconds."""
PATIENCE = 0.1
"""The interval at which the main thread checks that the worker is alive."""


def call(function: Interruptible[Result], *, multiply_adds: int) -> Result:
    """Return a function's result. Raises its exception, or that of a signal handler."""
    if multiply_adds < LONG or threading.get_ident() != threading.main_thread().ident:
        return function(None)
    work = _Call(function)
    try:
        return work.result() if work.try_start() else function(None)
    except BaseException:
        work.interrupted.set()
        raise


class _Call(threading.Thread, Generic[Result]):
    """One function on its thread, under the options of the caller."""

    def __init__(self, function: Interruptible[Result]) -> None:
        super().__init__(name="tenfold library call", daemon=True)
        self.interrupted = threading.Event()
        self._function, self._context = function, copy_context()
        self._results: list[Result] = []
        self._error: BaseException | None = None
        # held until the end; a Lock, not an Event, so that it works in the child of a fork
        self._done_lock = threading.Lock()
        self._done_lock.acquire()

    def try_start(self) -> bool:
        """Start the thread; False if no thread can start, as at the end of the interpreter."""
        try:
            self.start()
        except RuntimeError:
            return False
        return True

    def run(self) -> None:
        """Call the function."""
        _native.begin_library_call()
        try:
            self._results.append(self._context.run(self._function, self.interrupted))
        except BaseException as error:  # noqa: BLE001  # the main thread raises it
            self._error = error
        finally:
            _native.end_library_call()
            self._done_lock.release()

    def result(self) -> Result:
        """Wait for the end; signal handlers run meanwhile."""
        while not self._done_lock.acquire(timeout=PATIENCE):
            if not self.is_alive():  # a signal handler has forked, and this is the child
                return self._function(None)
        if self._error is not None:
            raise self._error
        return self._results[0]
