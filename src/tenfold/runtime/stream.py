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

from contextlib import AbstractContextManager
from contextvars import ContextVar
from itertools import count
from typing import NamedTuple

from tenfold import _native
from tenfold.errors import RunError
from tenfold.settings import checked_device

_numbers = count()


class _OpenBlock(NamedTuple):
    """An open block; native code reads the queues of all devices."""

    queues: bytes
    stream: Stream
    outer: _OpenBlock | None


_blocks: ContextVar[_OpenBlock | None] = ContextVar("tenfold_streams", default=None)
"""The innermost open block of the thread or task."""


class Stream:
    """A queue of a device. A block `with` it gives it the work of the thread or task."""

    def __init__(self, device: str) -> None:
        self.device = device
        self._number = 1 + next(_numbers) % (_native.MAX_QUEUES - 1)

    def __enter__(self) -> Stream:
        _open(self, _blocks.get())
        return self

    def __exit__(self, *error: object) -> None:
        inner, block = [], _blocks.get()
        while block is not None and block.stream is not self:
            inner.append(block.stream)
            block = block.outer
        if block is None:
            rule = f"the block of {self!r} was not entered in this thread or task"
            remedy = "leave a block where it was entered: let no generator cross threads with one"
            raise RunError("stream", rule, remedy=remedy)
        _blocks.set(block.outer)
        for stream in reversed(inner):  # a generator's may end before those that are inside
            _open(stream, _blocks.get())

    def __repr__(self) -> str:
        return f"<stream {self._number} of {self.device}>"


def _open(stream: Stream, outer: _OpenBlock | None) -> None:
    queues = bytearray(outer.queues if outer is not None else _native.MAX_DEVICES)
    queues[_native.device_number(stream.device)] = stream._number
    _blocks.set(_OpenBlock(bytes(queues), stream, outer))


_native.set_queues_variable(_blocks)


def stream(device: str | None = None) -> AbstractContextManager[object]:
    """Return a queue of a device; None means that of the option `device`.

    Work that is computed in a block `with` it, by this thread or task of asyncio, runs in the order
    of its queue, and beside that of others. It waits by itself for work of other queues whose
    arrays it reads or whose memory it uses again. A device has seven such queues, which further
    streams share. The CPU has none: a block changes nothing there. Raises DeviceError for a device
    that does not exist, RunError where a block is left by another thread or task than entered it.

    >>> import tenfold as tn
    >>> with tn.stream("cpu") as queue:
    ...     tn.asarray([1, 2]).tolist()
    [1, 2]
    """
    return Stream(checked_device(device, "stream"))
