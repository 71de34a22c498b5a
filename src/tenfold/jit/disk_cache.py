r"""Disk cache: stores compiled kernels as files, for later processes.

Takes entries, loads those of a key. Each entry is a file named by its key, in a directory that only
its owner can write to. A file is written to a temporary name and renamed when it is complete, so
other processes see the old file or the new one, and concurrent writers are safe. A corrupt file is
a cache miss and one line in the log; it never fails a computation.

The next process removes the temporary files of a killed writer. A writer holds a lock on its file,
which the system releases when it dies, so no foreign process id is trusted.

>>> import tempfile
>>> from pathlib import Path
>>> with tempfile.TemporaryDirectory() as name:
...     store = DiskCache(Path(name), 1 << 20)
...     store.store(CacheEntry(bytes(32), bytes(32), b"\xc3", (0,), level=2))
...     len(store.load(bytes(32), bytes(32), functions=1))
True
1
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from tenfold import _native
from tenfold._native import EntryPoint
from tenfold.jit.atomic_write import remove_abandoned, write_atomic
from tenfold.jit.cache_entry import (
    MAX_ENTRY_BYTES,
    CacheEntry,
    InvalidEntry,
    open_directory,
    pack_entry,
    read_entry,
)
from tenfold.jit.log_once import log_warning

SUBDIRECTORY = "kernels"
"""The subdirectory of the entries."""
HEXADECIMAL = set("0123456789abcdef")
SWEEP_KEYS = 16
"""The number of first key bytes, of 256, whose writer also checks the total size."""
SWEEP_TARGET = 0.75
"""The share of the limit that remains after old entries are removed."""
READ_ONLY_ERRORS = {errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR}
"""Expected errors on a read-only or missing directory, as in containers."""


class UnusableDirectory(Exception):
    """The directory cannot be used; the text says why."""


class CacheFile(NamedTuple):
    """An entry's file: its name, its bytes on disk, and the time of its last use."""

    name: str
    size: int
    last_used: float


# Directories in which this process has removed abandoned temporary files.
_tidied: set[Path] = set()


@dataclass(frozen=True)
class DiskCache:
    """The entries in a directory, limited to `limit` bytes."""

    base: Path
    limit: int

    @cached_property
    def path(self) -> Path:
        """The directory of the entries."""
        return self.base / SUBDIRECTORY

    def load(self, key: bytes, environment: bytes, functions: int) -> list[EntryPoint] | None:
        """Return the functions of a key's entry, copied to executable memory.

        The list is empty if the system refuses executable memory; None without a valid entry.
        """
        found = self.load_first((key,), environment, functions)
        return None if found is None else found[1]

    def load_first(
        self, keys: tuple[bytes, ...], environment: bytes, functions: int
    ) -> tuple[int, list[EntryPoint]] | None:
        """Return the number of the first of several keys with a valid entry, and its functions."""
        try:
            with self._directory() as directory:
                if self.path not in _tidied:
                    _tidied.add(self.path)
                    remove_abandoned(directory)
                for number, key in enumerate(keys):
                    try:
                        return number, _load(directory, key, environment, functions)
                    except FileNotFoundError:
                        continue
                    except InvalidEntry as error:
                        log_warning(f"{self.path / key.hex()} is not used: {error}")
                    except OSError as error:
                        log_warning(f"{self.path / key.hex()} is not used: {error.strerror}")
        except FileNotFoundError:
            pass
        except UnusableDirectory as error:
            log_warning(str(error), once=True)
        except OSError as error:
            log_warning(f"{self.path} is not used: {error.strerror}")
        return None

    def has(self, key: bytes) -> bool:
        """Whether a file of a key exists, valid or not."""
        return (self.path / key.hex()).is_file()

    def store(self, entry: CacheEntry) -> bool:
        """Store an entry; return whether it succeeded."""
        data = pack_entry(entry)
        if len(data) > min(MAX_ENTRY_BYTES, self.limit):
            return False
        try:
            self._create_directory()
            with self._directory() as directory:
                if not write_atomic(directory, entry.key.hex(), data):
                    return False
                if entry.key[0] < SWEEP_KEYS:
                    self._sweep(directory)
        except UnusableDirectory as error:
            log_warning(str(error), once=True)
            return False
        except OSError as error:
            text = f"kernels cannot be kept in {self.path}: {error.strerror}"
            log_warning(text, once=True, expected=error.errno in READ_ONLY_ERRORS)
            return False
        return True

    def files(self) -> list[CacheFile]:
        """Return the files, most recently used first. Raises UnusableDirectory, OSError."""
        try:
            with self._directory() as directory:
                return sorted(_files(directory), key=lambda file: -file.last_used)
        except FileNotFoundError:
            return []

    def read(self, name: str) -> CacheEntry:
        """Return the entry in a file, for any environment. Raises InvalidEntry, UnusableDirectory,
        OSError.
        """
        with self._directory() as directory:
            return read_entry(directory, name)

    def remove(self, names: list[str]) -> int:
        """Remove files; return the number removed. Raises UnusableDirectory, OSError."""
        removed = 0
        with self._directory() as directory:
            for name in names:
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=directory)
                    removed += 1
        return removed

    def clear(self) -> int:
        """Remove every entry; return the number removed. Raises UnusableDirectory, OSError."""
        removed = self.remove([file.name for file in self.files()])
        with suppress(FileNotFoundError), self._directory() as directory:
            remove_abandoned(directory)
        return removed

    def _create_directory(self) -> None:
        """Create the directory if needed, in a base directory owned by this user."""
        if self.path.is_dir():
            return
        self.base.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.base.stat().st_uid != os.geteuid():
            raise UnusableDirectory(
                f"kernels are not kept in {self.base}: it belongs to another user"
            )
        self.path.mkdir(mode=0o700, exist_ok=True)

    @contextmanager
    def _directory(self) -> Iterator[int]:
        """Open the directory. Raises UnusableDirectory, FileNotFoundError."""
        try:
            directory = open_directory(self.path)
        except FileNotFoundError:
            raise
        except (InvalidEntry, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise UnusableDirectory(f"kernels in {self.path} are not used: {reason}") from error
        try:
            yield directory
        finally:
            os.close(directory)

    def _sweep(self, directory: int) -> None:
        """Remove the least recently used files if the limit is exceeded."""
        files = _files(directory)
        total = sum(file.size for file in files)
        if total <= self.limit:
            return
        for file in sorted(files, key=lambda file: file.last_used):
            with suppress(FileNotFoundError):
                os.unlink(file.name, dir_fd=directory)
            total -= file.size
            if total <= self.limit * SWEEP_TARGET:
                return


def _load(directory: int, key: bytes, environment: bytes, functions: int) -> list[EntryPoint]:
    """Return the functions of a key's entry; none if the system refuses memory for them."""
    entry = read_entry(directory, key.hex(), environment)
    if len(entry.function_offsets) != functions:
        raise InvalidEntry(f"it has {len(entry.function_offsets)} functions, not {functions}")
    return _native.load_code(entry.code, entry.function_offsets)


def _files(directory: int) -> list[CacheFile]:
    """Return the files of entries, recognised by their names."""
    files: list[CacheFile] = []
    with os.scandir(directory) as directory_entries:
        for item in directory_entries:
            if len(item.name) != 64 or not set(item.name) <= HEXADECIMAL:
                continue
            if item.is_dir(follow_symlinks=False):
                continue
            with suppress(FileNotFoundError):
                status = item.stat(follow_symlinks=False)
                size = max(status.st_size, status.st_blocks * 512)
                files.append(CacheFile(item.name, size, status.st_mtime))
    return files
