"""Read-write lock: orders computations and assignments to external buffers.

Every computation holds it for reading once an external buffer (`tn.wrap`) exists. An assignment to
one waits until no other thread is computing, unless the old value has no other reader. A thread
that reads may read again before waiting writers. The lock is native code
(`native/python/external_buffers.cpp`): a signal that raises an exception cannot leave it locked. In
the child of a fork it is free.

>>> with EXTERNAL_BUFFER_LOCK.read_lock():
...     EXTERNAL_BUFFER_LOCK.is_reading()
True
>>> with EXTERNAL_BUFFER_LOCK.write_lock(lambda: False):
...     EXTERNAL_BUFFER_LOCK.is_reading()
False
"""

from __future__ import annotations

import os

from tenfold import _native

EXTERNAL_BUFFER_LOCK = _native.ReadersWriterLock()
os.register_at_fork(after_in_child=EXTERNAL_BUFFER_LOCK.reset)
