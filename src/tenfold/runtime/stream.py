"""Streams: queues of a device, so that independent work overlaps.

Takes a device, hands on a context manager. Work of the block is given to a queue of its own; what
it shares with the work of other queues is ordered by itself (`native/threads/stream_order.h`).

>>> import tenfold as tn
>>> x = tn.asarray([1.0, 2.0], device="emulated")
>>> with tn.stream("emulated"):
...     y = tn.eval(tn.exp(x * 0))
>>> (x + y).tolist()
[2.0, 3.0]
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from itertools import count

from tenfold import _native
from tenfold.errors import RunError
from tenfold.settings import checked_device

_numbers = count()


class Stream:
    """A queue of a device. A block `with` it gives it the work of the thread."""

    def __init__(self, device: str) -> None:
        self.device = device
        self._number = 1 + next(_numbers) % (_native.MAX_QUEUES - 1)
        self._before: dict[int, list[int]] = {}  # by thread: the queues outside its open blocks

    def __enter__(self) -> Stream:
        before = self._before.setdefault(threading.get_ident(), [])
        before.append(_native.use_queue(self.device, self._number))
        return self

    def __exit__(self, *error: object) -> None:
        before = self._before.get(threading.get_ident())
        if not before:
            rule = "this thread is in no block of the stream: another has entered it"
            raise RunError("stream", rule, remedy="enter and leave a block in one thread")
        _native.use_queue(self.device, before.pop())

    def __repr__(self) -> str:
        return f"<stream {self._number} of {self.device}>"


def stream(device: str | None = None) -> AbstractContextManager[object]:
    """Return a queue of a device; None means that of the option `device`.

    Work that is computed in a block `with` it, by this thread, runs in the order of its queue, and
    beside that of others. It waits by itself for work of other queues whose arrays it reads or
    whose memory it uses again. A device has seven such queues, which further streams share; so do
    the tasks of a thread (asyncio) while a block is open. The CPU has none: a block changes nothing
    there. Raises DeviceError for a device that does not exist, RunError where a block is left by
    another thread than has entered it.

    >>> import tenfold as tn
    >>> with tn.stream("cpu") as queue:
    ...     tn.asarray([1, 2]).tolist()
    [1, 2]
    """
    return Stream(checked_device(device, "stream"))
