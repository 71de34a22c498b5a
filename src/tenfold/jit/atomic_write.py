"""Atomic write: puts a file into a directory as a whole, by a temporary file and a rename.

Takes an open directory, a name and bytes, writes the file. It is written in a directory beside and
renamed when it is whole. The writer holds a lock on it, which the system releases when the writer
dies. So files left by dead writers are told from live ones.

>>> import os, tempfile
>>> with tempfile.TemporaryDirectory() as name:
...     directory = os.open(name, DIRECTORY)
...     print(written(directory, "one", b"content"), sorted(os.listdir(directory)))
...     os.close(directory)
True ['one', 'writing']
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress

OWN = os.O_NOFOLLOW | os.O_CLOEXEC
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | OWN
"""How a directory is opened, not what a link leads to."""
WRITING = "writing"
"""The directory of files that are being written."""
ABANDONED = 3600.0
"""Seconds after which a file is no longer being written, where the system has no locks."""


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

    Raises BlockingIOError where another process has locked it.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return False
    return True


def tidy(directory: int) -> None:
    """Remove drafts that no process is writing any more."""
    try:
        drafts = os.open(WRITING, DIRECTORY, dir_fd=directory)
    except OSError:
        return
    try:
        for name in os.listdir(drafts):  # noqa: PTH208  # an open directory is not a path
            with suppress(OSError):
                if _abandoned(drafts, name):
                    os.unlink(name, dir_fd=drafts)
    finally:
        os.close(drafts)


def _abandoned(drafts: int, name: str) -> bool:
    """Whether no process writes a file any more. Raises OSError, also for a locked file."""
    file = os.open(name, os.O_RDONLY | os.O_NONBLOCK | OWN, dir_fd=drafts)
    try:
        return _lock(file) or time.time() - os.fstat(file).st_mtime > ABANDONED
    finally:
        os.close(file)
