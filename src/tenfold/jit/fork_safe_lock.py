"""Fork-safe lock: a lock that is always free in the child of a fork.

A fork acquires such a lock first, so the child finds consistent data. It acquires the newest lock
first; a thread that holds one acquires only older ones, which prevents deadlocks.

>>> with lock():
...     pass
"""

from __future__ import annotations

import os
import threading


def lock() -> threading.RLock:
    """Return a reentrant lock that a fork acquires and releases; it lives as long as the process.

    It is reentrant since a signal handler may fork while its thread holds the lock.
    """
    rlock = threading.RLock()
    os.register_at_fork(
        before=rlock.acquire, after_in_parent=rlock.release, after_in_child=rlock.release
    )
    return rlock
