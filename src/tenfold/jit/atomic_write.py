"""Atomic write: writes a file to a temporary name, then renames it.

Takes an open directory, a name and bytes, writes the file. It is written in a subdirectory and
renamed when it is complete. The writer holds a lock on it, which the system releases when the
writer dies. So abandoned files of dead writers are distinguished from live ones.

>>> import os, tempfile
>>> with tempfile.TemporaryDirectory() as name:
...     directory = os.open(name, DIRECTORY)
...     print(write_atomic(directory, "one", b"content"), sorted(os.listdir(directory)))
...     os.close(directory)
True ['one', 'writing']
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress

OPEN_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | OPEN_FLAGS
"""Flags to open a directory; symbolic links are refused."""
WRITING = "writing"
"""The subdirectory of temporary files."""
ABANDONED = 3600.0
"""The age in seconds of an abandoned file, on systems without locks."""


def write_atomic(directory: int, name: str, data: bytes) -> bool:
    """Write a file atomically; False if another process removed it as abandoned."""
    with suppress(FileExistsError):
        os.mkdir(WRITING, 0o700, dir_fd=directory)
    drafts = os.open(WRITING, DIRECTORY, dir_fd=directory)
    draft = f"{name}.{os.urandom(8).hex()}"
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | OPEN_FLAGS
        file = os.open(draft, flags, 0o600, dir_fd=drafts)
        try:
            _lock(file)
            remaining = memoryview(data)
            while remaining:
                remaining = remaining[os.write(file, remaining) :]
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
    """Lock a file while it is open; False if the system has no locks.

    Raises BlockingIOError if another process holds the lock.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return False
    return True


def remove_abandoned(directory: int) -> None:
    """Remove temporary files of dead writers."""
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
    """Whether the writer of a file is dead. Raises OSError, also for a locked file."""
    file = os.open(name, os.O_RDONLY | os.O_NONBLOCK | OPEN_FLAGS, dir_fd=drafts)
    try:
        return _lock(file) or time.time() - os.fstat(file).st_mtime > ABANDONED
    finally:
        os.close(file)
