"""Engine: runs pushed operators as soon as their inputs are ready, in batches of one signature.

Takes operators and their inputs, returns Handles of future values. The scheduler is native
(`native/engine/engine.h`); Python describes operators, runs user-defined ones, and raises errors.

>>> import tenfold as tn
>>> with tn.Engine(threads=2) as engine:
...     a = engine.put([[1.0, 2.0]])
...     b = engine.put(tn.asarray([1.0, 2.0]))
...     engine.push(tn.operators.add, b, b).get().tolist()
[2.0, 4.0]
"""

from __future__ import annotations

import atexit
import os
import sys
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType, TracebackType
from typing import Any

from tenfold import _native, settings
from tenfold._native import Handle
from tenfold.engine import limits
from tenfold.engine.store import Store
from tenfold.errors import message
from tenfold.jit import fork_safe_lock

EXIT_SECONDS = 5.0
"""Seconds that interpreter exit waits for impure operators before it cancels them."""

MAX_THREADS = 1024
MAX_BATCH_WAIT = 1.0
"""The largest `batch_wait`, in seconds."""

SHUTDOWN_SECONDS = 1e6
"""Seconds that `shutdown` waits for them: effectively unlimited."""


class Engine(_native.Engine):
    """Runs operators asynchronously, in batches, on its own threads.

    `push` returns at once. Small operators of tenfold are batched with equal ones. A batch runs
    when it has `batch_limit` members, when `get` or `flush` waits for one, or when a thread is idle
    and for `batch_wait` seconds nothing was pushed and nothing ended. The default of each argument
    is the option of that name (`tn.options`), for the device in force; the option `batch_wait` is
    in microseconds, the argument in seconds.

    `memory_limit` is in bytes, or text such as "2GiB". While values exceed it, `push` and `put`
    wait for running work to free memory, and raise MemoryError when no work can.

    As a context manager it flushes and shuts down at the end; after an exception it cancels the
    operators that have not started.

    Raises TypeError for an argument that is not a number, and ValueError for one out of range.

    >>> import tenfold as tn
    >>> with tn.Engine(threads=2, batch_limit=64) as engine:
    ...     x = engine.put(tn.asarray([1.0, 2.0]))
    ...     y = engine.push(tn.operators.multiply, x, 3.0)
    ...     y.get().tolist()
    [3.0, 6.0]
    """

    def __init__(
        self,
        *,
        threads: int | None = None,
        batch_limit: int | None = None,
        batch_wait: float | None = None,
        memory_limit: int | str | None = None,
    ) -> None:
        count, limit = int(settings.get("threads")), settings.batch_limit()
        wait, memory = settings.on_device("batch_wait") / 1e6, int(settings.get("memory_limit"))
        if threads is not None:
            count = limits.positive_integer("threads", threads, maximum=MAX_THREADS)
        if batch_limit is not None:
            limit = limits.positive_integer("batch_limit", batch_limit)
        if batch_wait is not None:
            wait = limits.seconds("batch_wait", batch_wait, maximum=MAX_BATCH_WAIT)
        if memory_limit is not None:
            memory = limits.parse_bytes(memory_limit)
        super().__init__(min(count, MAX_THREADS), limit, int(wait * 1e9), memory)
        _end_at_process_exit()

    def hold(self) -> AbstractContextManager[None]:
        """Start no operators until the block ends, except those that are flushed or awaited.

        >>> import tenfold as tn
        >>> with tn.Engine() as engine:
        ...     x = engine.put(tn.asarray([1.0]))
        ...     with engine.hold():
        ...         y = engine.push(tn.operators.negative, x)
        ...         before = y.done()
        ...     before, y.get().tolist()
        (False, [-1.0])
        """
        return _native.Scope((self._begin_hold, self._end_hold))

    def store(
        self,
        *,
        combine: str = "sum",
        updater: Callable[[Any, Any, Any], Any] | None = None,
        pushes: int = 1,
    ) -> Store:
        """Return a store of values by key, to which any thread may push and from which it may pull.

        >>> import tenfold as tn
        >>> with tn.Engine() as engine:
        ...     store = engine.store()
        ...     store.push("n", 1)
        ...     store.push("n", 2)
        ...     store.pull("n").get()
        3
        """
        return Store(self, combine=combine, updater=updater, pushes=pushes)

    def stats(self) -> Mapping[str, Any]:
        """Return counts: of pushes, of batches by size, and of values that are alive.

        `pending` are those that have not ended, of them `ready` wait for their batch or a thread;
        `queue_depth` is the same as `pending`. `live_bytes` and `peak_bytes` are of values.
        """
        statistics = self._statistics()
        statistics["queue_depth"] = statistics["pending"]
        return MappingProxyType(statistics)

    def graph(self) -> str:
        """Return the pending operators as a graph in DOT, with an arrow to each reader."""
        lines = ["digraph engine {"]
        for number, name, state, inputs in self._pending():
            escaped = name.replace("\\", r"\\").replace('"', r"\"")
            lines.append(f'  n{number} [label="{escaped} {number}\\n{state}"];')
            lines += [f"  n{source} -> n{number};" for source in inputs]
        return "\n".join([*lines, "}"])

    def shutdown(self, wait: bool = True) -> None:
        """End the engine after all operators have run; with `wait=False` cancel the pending ones.

        Running operators may still push, and their pushes run too. Handles keep computed values.
        Other pushes raise RuntimeError. A second call does nothing.
        """
        if self.closed:
            return
        if wait and _native.inside_operator():
            rule = "an operator waits for the end of an engine, which could wait for ever"
            remedy = "shut it down outside, or with wait=False"
            raise RuntimeError(message("shutdown", rule, remedy=remedy))
        if wait:
            self._finish()
        self._close(not wait, SHUTDOWN_SECONDS if wait else 0.0)

    def __enter__(self) -> Engine:
        if self.closed:
            rule = "this engine has been shut down"
            raise RuntimeError(message("with", rule, remedy="make another Engine"))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self.shutdown(wait=error is None)
        except BaseException:  # an interrupt: ends endless pushes as well
            self.shutdown(wait=False)
            raise


def awaitable(handle: Handle) -> Generator[Any, None, Any]:
    """Return the iterator by which asyncio awaits a handle."""
    return _await_handle(handle).__await__()


async def _await_handle(handle: Handle) -> Any:
    import asyncio  # whoever awaits has imported it

    loop = asyncio.get_running_loop()
    future = loop.create_future()

    def set_done() -> None:
        if not future.done():  # a cancelled task does not wait any more
            future.set_result(None)

    def wake() -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(set_done)

    if handle._call_when_settled(wake):
        await future
    return handle.get()


_lock = fork_safe_lock.lock()  # protects _default
_default: list[Engine] = []


def engine() -> Engine:
    """Return the engine of this process; the first call makes it.

    >>> import tenfold as tn
    >>> tn.engine() is tn.engine()
    True
    """
    with _lock:
        if not _default or _default[0].closed:
            _default[:] = [Engine()]
        return _default[0]


def _end_engines() -> None:
    """End all engines with the interpreter, and log the cancelled operators."""
    cancelled = _native.shut_down_engines(EXIT_SECONDS)
    if cancelled:
        import logging  # costs milliseconds, and most programs never come here

        counts = Counter(
            f"{name} (running)" if is_running else name for name, is_running in cancelled
        )
        logging.getLogger("tenfold").warning(
            "operators were cancelled %g s after the end of the program: %s; flush() waits longer",
            EXIT_SECONDS,
            ", ".join(f"{count} x {name}" for name, count in sorted(counts.items())),
        )


_finalizer_pid = 0  # the pid whose `multiprocessing` exit has a finalizer


def _end_at_process_exit() -> None:
    """Register a finalizer in children of `multiprocessing`, which do not run atexit."""
    global _finalizer_pid
    process = sys.modules.get("multiprocessing.process")
    if process is None or process.parent_process() is None or _finalizer_pid == os.getpid():
        return
    from multiprocessing.util import Finalize  # already imported in such a child

    _finalizer_pid = os.getpid()
    Finalize(None, _end_engines, exitpriority=0)


atexit.register(_end_engines)
