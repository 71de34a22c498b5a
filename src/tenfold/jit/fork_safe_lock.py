"""Fork-safe lock: a lock that is always free in the child of a fork.

A fork acquires such a lock first, so the child finds consistent data. It acquires the newest lock
first; a thread that holds one acquires only older ones, which prevents deadlocks. Before that it
waits for imports of other threads: in the child they would never end.

>>> with lock():
...     pass
"""

from __future__ import annotations

import os
import sys
import threading
import time
from itertools import count
from weakref import WeakValueDictionary

_numbers = count()
# no lock: each use is one call, atomic under the GIL
_locks: WeakValueDictionary[int, threading.RLock] = WeakValueDictionary()
_forks = threading.local()  # `held`: the locks of each fork of this thread that is going on


def lock() -> threading.RLock:
    """Return a reentrant lock that a fork acquires and releases, as long as the lock exists.

    It is reentrant since a signal handler may fork while its thread holds the lock.
    """
    rlock = threading.RLock()
    _locks[next(_numbers)] = rlock
    return rlock


IMPORTED_LATE = ("tenfold", "numpy", "scipy", "llvmlite")
"""The packages of which tenfold imports modules at their first use."""
MAX_IMPORT_SECONDS = 1.0
"""The time that a fork waits for them: the importing thread may need what the forking one holds."""


def _imports_late() -> bool:
    """Whether a thread is importing a module of these packages."""
    for name, module in [*sys.modules.items()]:
        if name.partition(".")[0] in IMPORTED_LATE:
            spec = getattr(module, "__spec__", None)
            if getattr(spec, "_initializing", False):
                return True
    return False


def _acquire_all() -> None:
    end = time.monotonic() + MAX_IMPORT_SECONDS
    while _imports_late() and time.monotonic() < end:
        time.sleep(1e-3)
    newest_first = [found for _, found in sorted(_locks.items(), reverse=True)]
    for each in newest_first:
        each.acquire()
    _forks.__dict__.setdefault("held", []).append(newest_first)


def _release_all() -> None:
    for each in reversed(_forks.held.pop()):
        each.release()


os.register_at_fork(before=_acquire_all, after_in_parent=_release_all, after_in_child=_release_all)
