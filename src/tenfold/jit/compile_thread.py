"""Compile thread: runs uninterruptible work, such as LLVM, in a thread so that Ctrl-C ends the
wait.

Takes uninterruptible functions, such as a compiler, hands on their result or their exception. One
runs at a time, and waiting for it is optional. Ctrl-C ends the wait at once. The work runs to its
end, and a second request for the same work waits for it. A fork waits for it too, so that a child
finds consistent data. So does the end of the interpreter.

>>> background = CompileThread()
>>> background.run("sum", lambda: 1 + 2)
3
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from tenfold import _native
from tenfold._native import Headroom
from tenfold.errors import no_address_space
from tenfold.jit import fork_safe_lock

Result = TypeVar("Result")

POLL_SECONDS = 0.1
"""The interval at which a waiting thread checks that the working thread is alive."""

HEADROOM_BYTES = 64 << 20
"""The address space that is reserved for each task. LLVM ends the process when it finds none; a
kernel of 300 operations takes 14 MiB."""


class CompileThread(Generic[Result]):
    """Runs tasks by name, one after another."""

    def __init__(self) -> None:
        # held while a function runs: protects the state that the functions change
        self._lock = fork_safe_lock.lock()
        # no lock: each use is one call, atomic under the GIL
        self._tasks: dict[Hashable, _CompileTask[Result]] = {}

    def run(self, name: Hashable, function: Callable[[], Result]) -> Result:
        """Return the result of a function, or of the running function of the same name.

        Raises its exception, or that of a signal handler in the meantime. Raises MemoryError when
        `HEADROOM_BYTES` are not free.
        """
        if _outlives_main_thread():
            time.sleep(POLL_SECONDS)
        task = self._tasks.get(name)
        if task is None:
            new_task = self._reserved_task(name, function)
            task = self._tasks.setdefault(name, new_task)
            if task is new_task:  # no other thread was first
                try:
                    new_task.start()
                except RuntimeError:  # no new threads, for instance at the end of the interpreter
                    new_task.run()
        return task.result()

    def _reserved_task(
        self, name: Hashable, function: Callable[[], Result]
    ) -> _CompileTask[Result]:
        """Return a new task, for which address space is reserved until its end."""
        headroom = _native.reserve_headroom(HEADROOM_BYTES)
        if headroom is None:
            raise no_address_space(HEADROOM_BYTES)
        return _CompileTask(self._lock, self._tasks, name, function, headroom)

    def is_running(self, name: Hashable) -> bool:
        """Whether the function of this name is running."""
        task = self._tasks.get(name)
        return task is not None and task.is_alive()

    def busy(self) -> bool:
        """Whether any function is running."""
        return any(task.is_alive() for task in [*self._tasks.values()])

    def wait_idle(self) -> None:
        """Wait until no function runs, including functions that start in the meantime."""
        while running_tasks := [task for task in [*self._tasks.values()] if task.is_alive()]:
            running_tasks[0].join()

    def try_start(self, name: Hashable, function: Callable[[], Result]) -> bool:
        """Start a function on a thread, for a later `run`; False while another function runs.

        It starts one function at a time, so the end of the interpreter waits for one at most. A
        `run` that waits for the function raises its error; otherwise the error is dropped. False
        also without free memory.
        """
        if _outlives_main_thread() or self.busy():
            return False
        try:
            task = self._reserved_task(name, function)
        except MemoryError:
            return False
        self._tasks[name] = task
        try:
            task.start()
        except RuntimeError:
            self._tasks.pop(name, None)
            return False
        return True


def _outlives_main_thread() -> bool:
    """Whether this is a daemon thread and the main one has ended.

    The interpreter ends with the last non-daemon thread. A daemon thread must leave it a moment
    without a compile thread.
    """
    return threading.current_thread().daemon and not threading.main_thread().is_alive()


class _CompileTask(threading.Thread, Generic[Result]):
    """One function on its thread, and the threads that wait for it."""

    def __init__(
        self,
        lock: threading.RLock,
        tasks: dict[Hashable, _CompileTask[Result]],
        name: Hashable,
        function: Callable[[], Result],
        headroom: Headroom,
    ) -> None:
        super().__init__(name="tenfold background", daemon=False)
        self._headroom: Headroom | None = headroom  # free address space until the end
        self._lock, self._tasks, self._key, self._function = lock, tasks, name, function
        self._results: list[Result] = []
        self._error: Exception | None = None
        self._done = False
        # held until the end; a Lock, not an Event, so that it works in the child of a fork
        self._done_lock = threading.Lock()
        self._done_lock.acquire()

    def run(self) -> None:
        """Call the function, unless it is done."""
        with self._lock:
            if self._done:
                return
            try:
                self._results.append(self._function())
            except Exception as error:  # noqa: BLE001  # the waiting thread raises it
                self._error = error
            self._tasks.pop(self._key, None)
            self._headroom = None
            self._done = True
            self._done_lock.release()

    def result(self) -> Result:
        """Wait for the end; signal handlers run meanwhile."""
        while not self._done:
            if self._done_lock.acquire(timeout=POLL_SECONDS):
                self._done_lock.release()
            elif not self.is_alive():
                # it never started, because of a signal; or this is the child of a fork in a
                # signal handler, without the thread
                self.run()
        if self._error is not None:
            raise self._error
        return self._results[0]
