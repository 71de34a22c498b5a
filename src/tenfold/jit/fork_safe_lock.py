"""Fork-safe lock: a lock that is free in the child of a fork, whatever other threads were doing.

A fork waits for such a lock and so never finds its data half made. It takes the newest lock first;
a thread that holds one takes only older ones, so that no two wait for each other.

>>> with lock():
...     pass
"""

from __future__ import annotations

import os
import threading


def lock() -> threading.RLock:
    """Return a lock, for as long as the process lives, that a fork takes and gives back.

    Its own thread may take it again: a signal handler may fork where it is held.
    """
    made = threading.RLock()
    os.register_at_fork(
        before=made.acquire, after_in_parent=made.release, after_in_child=made.release
    )
    return made
