"""Files: read with suspicion, written whole.

Takes an open directory and a name, hands on what stands there or puts it there. A file is believed
to be ours if it is a plain one, no link, that belongs to us and that others cannot use. It is
written in a directory beside and renamed when it is whole; who writes holds a lock on it, which the
system takes back when the writer dies, so what dead ones have left is known from what lives.

>>> import os, tempfile
>>> with tempfile.TemporaryDirectory() as name:
...     directory = os.open(name, DIRECTORY)
...     _ = written(directory, "one", b"content")
...     print(read(directory, "one"))
...     os.close(directory)
b'content'
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from contextlib import suppress

from tenfold.devices.entry import LARGEST, Doubt

OWN = os.O_NOFOLLOW | os.O_CLOEXEC
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | OWN
"""How a directory is opened, not what a link leads to."""
WRITING = "writing"
"""The directory of files that are being written."""
TOUCHED = 3600.0
"""Seconds from which on a file that is read is marked as used again."""
ABANDONED = 3600.0
"""Seconds after which a file is no longer being written, where the system has no locks."""


def doubt_of(facts: os.stat_result) -> str:
    """Why what we have opened may not be trusted; nothing: no words."""
    if facts.st_uid != os.geteuid():
        return "it belongs to another user"
    if facts.st_mode & 0o077:
        return f"others may use it, its mode is {stat.S_IMODE(facts.st_mode):o}"
    return ""


def read(directory: int, name: str) -> bytes:
    """Return what stands in a file. Raises Doubt, OSError."""
    try:
        # without waiting: a pipe in its stead would let us wait for ever
        file = os.open(name, os.O_RDONLY | os.O_NONBLOCK | OWN, dir_fd=directory)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise Doubt("it is a symbolic link") from error
        raise
    try:
        facts = os.fstat(file)
        if not stat.S_ISREG(facts.st_mode):
            raise Doubt("it is no file")
        if doubt := doubt_of(facts):
            raise Doubt(doubt)
        if facts.st_size > LARGEST:
            raise Doubt(f"it is damaged: {facts.st_size} bytes")
        data = b""
        while part := os.read(file, facts.st_size + 1 - len(data)):
            data += part
        if time.time() - facts.st_mtime > TOUCHED:
            with suppress(OSError):  # what can be read can be used
                os.utime(file)
        return data
    finally:
        os.close(file)


def written(directory: int, name: str, data: bytes) -> bool:
    """Write a file whole, or not at all; False where another process took it for left behind."""
    with suppress(FileExistsError):
        os.mkdir(WRITING, 0o700, dir_fd=directory)
    drafts = os.open(WRITING, DIRECTORY, dir_fd=directory)
    draft = f"{name}.{os.urandom(8).hex()}"
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | OWN
        file = os.open(draft, flags, 0o600, dir_fd=drafts)
        try:
            _lock(file)
            left = memoryview(data)
            while left:
                left = left[os.write(file, left) :]
            os.rename(draft, name, src_dir_fd=drafts, dst_dir_fd=directory)
        except BaseException:
            with suppress(OSError):
                os.unlink(draft, dir_fd=drafts)
            raise
        finally:
            os.close(file)
    except (BlockingIOError, FileNotFoundError):
        return False
    finally:
        os.close(drafts)
    return True


def _lock(file: int) -> bool:
    """Lock a file as long as it is open; False where the system has no locks.

    Raises BlockingIOError where somebody else has locked it.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return False
    return True


def tidy(directory: int) -> None:
    """Remove files that nobody writes any more."""
    try:
        drafts = os.open(WRITING, DIRECTORY, dir_fd=directory)
    except OSError:
        return
    try:
        for name in os.listdir(drafts):  # noqa: PTH208  # an open directory is no path
            with suppress(OSError):
                if _abandoned(drafts, name):
                    os.unlink(name, dir_fd=drafts)
    finally:
        os.close(drafts)


def _abandoned(drafts: int, name: str) -> bool:
    """Whether nobody writes a file any more. Raises OSError, and that somebody does."""
    file = os.open(name, os.O_RDONLY | os.O_NONBLOCK | OWN, dir_fd=drafts)
    try:
        return _lock(file) or time.time() - os.fstat(file).st_mtime > ABANDONED
    finally:
        os.close(file)
