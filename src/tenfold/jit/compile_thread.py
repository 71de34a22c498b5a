"""Compile thread: runs uninterruptible work, such as LLVM, in a thread so that Ctrl-C ends the
wait.

Takes functions that no signal reaches, such as a compiler, hands on their result or their
exception. One runs at a time, and waiting for it is optional. Ctrl-C ends the wait at once. The
work goes on to its end; a second request for the same work waits for that. A fork waits for it too:
a child finds nothing half made. The interpreter does not end before.

>>> background = CompileThread()
>>> background.run("sum", lambda: 1 + 2)
3
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from tenfold.jit import fork_safe_lock

Result = TypeVar("Result")

PATIENCE = 0.1
"""Seconds after which who waits looks whether there is still a thread that works."""


class CompileThread(Generic[Result]):
    """Pieces of work by name, one after another."""

    def __init__(self) -> None:
        # Held while a function runs: protects what the functions change.
        self._lock = fork_safe_lock.lock()
        # No lock: each use of it is one call, whole under the GIL.
        self._begun: dict[Hashable, _CompileTask[Result]] = {}

    def run(self, name: Hashable, function: Callable[[], Result]) -> Result:
        """Return what a function returns, or what that of this name returns which runs already.

        Raises what it raises, and what a signal handler raises meanwhile.
        """
        if _is_left_over():
            time.sleep(PATIENCE)
        own = _CompileTask(self._lock, self._begun, name, function)
        work = self._begun.setdefault(name, own)
        if work is own:
            try:
                own.start()
            except RuntimeError:  # no thread can be had, as when the interpreter ends
                own.run()
        return work.result()

    def runs(self, name: Hashable) -> bool:
        """Whether the function of this name has begun and not ended."""
        work = self._begun.get(name)
        return work is not None and work.is_alive()

    def busy(self) -> bool:
        """Whether any function has begun and not ended."""
        return any(work.is_alive() for work in [*self._begun.values()])

    def wait_idle(self) -> None:
        """Wait until every started function has ended, including those that start meanwhile."""
        while running := [work for work in [*self._begun.values()] if work.is_alive()]:
            running[0].join()

    def begin(self, name: Hashable, function: Callable[[], Result]) -> bool:
        """Start a function on a thread, for a later `run`; False while another one still runs.

        It starts one function at a time, so the end of the interpreter waits for one at most. A
        `run` that waits for the function meanwhile raises its error; otherwise the error is lost.
        """
        if _is_left_over() or self.busy():
            return False
        work = _CompileTask(self._lock, self._begun, name, function)
        self._begun[name] = work
        try:
            work.start()
        except RuntimeError:
            self._begun.pop(name, None)
            return False
        return True


def _is_left_over() -> bool:
    """Whether this is a daemon thread and the main one has ended.

    The interpreter ends with the last non-daemon thread. It needs a moment in which none of these
    runs for this thread.
    """
    return threading.current_thread().daemon and not threading.main_thread().is_alive()


class _CompileTask(threading.Thread, Generic[Result]):
    """One function on its thread, and the threads that wait for it."""

    def __init__(
        self,
        lock: threading.RLock,
        begun: dict[Hashable, _CompileTask[Result]],
        name: Hashable,
        function: Callable[[], Result],
    ) -> None:
        super().__init__(name="tenfold background", daemon=False)
        self._lock, self._begun, self._key, self._function = lock, begun, name, function
        self._made: list[Result] = []
        self._error: Exception | None = None
        self._ended = False
        # Held until the end. Of this kind, not an Event: in the child of a fork it can be used.
        self._over = threading.Lock()
        self._over.acquire()

    def run(self) -> None:
        """Call the function, unless that has been done."""
        with self._lock:
            if self._ended:
                return
            try:
                self._made.append(self._function())
            except Exception as error:  # noqa: BLE001  # the waiting thread raises it
                self._error = error
            self._begun.pop(self._key, None)
            self._ended = True
            self._over.release()

    def result(self) -> Result:
        """Wait for the end; signal handlers run meanwhile."""
        while not self._ended:
            if self._over.acquire(timeout=PATIENCE):
                self._over.release()
            elif not self.is_alive():
                # It never began, for a signal came before; or a signal handler has forked, and
                # this is the child, without the thread.
                self.run()
        if self._error is not None:
            raise self._error
        return self._made[0]
