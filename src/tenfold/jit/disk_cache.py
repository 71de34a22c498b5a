r"""Disk cache: stores compiled kernels as files, for later processes.

Takes entries, loads those of a key. There is one file for each, named by its key, in a directory
that only its owner can write to. A file is written elsewhere and renamed when it is whole, so other
processes see the old one or the new one, and concurrent writers do no harm. A file that is not as
this cache would have left it is a miss and one line in the log: a bad file never fails a
computation.

The next process removes the files of a killed writer. A writer holds a lock on its file, which the
system releases when it dies, so no foreign process number is trusted.

>>> import tempfile
>>> from pathlib import Path
>>> with tempfile.TemporaryDirectory() as name:
...     store = DiskCache(Path(name), 1 << 20)
...     store.put(CacheEntry(bytes(32), bytes(32), b"\xc3", (0,), level=2))
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
from tenfold.jit.atomic_write import tidy, written
from tenfold.jit.cache_entry import LARGEST, CacheEntry, Doubt, packed
from tenfold.jit.log_once import complain

ROOM = "kernels"
"""The directory of entries."""
HEXADECIMAL = set("0123456789abcdef")
SWEPT = 16
"""Of 256 entries so many, by their keys, have their writer look how much there is in all."""
LEFT = 0.75
"""How much of the limit is left when what is old has been removed."""
REFUSING = {errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR}
"""Why nothing can be kept in some places, such as containers, and nothing is wrong."""


class UnusableDirectory(Exception):
    """The directory cannot be used; the text says why."""


class CacheFile(NamedTuple):
    """An entry's file: its name, the bytes that it takes, and when it was used."""

    name: str
    size: int
    used: float


# Directories in which this process has looked for what dead writers have left.
_tidied: set[Path] = set()


@dataclass(frozen=True)
class DiskCache:
    """The entries below a directory, which may take so many bytes."""

    base: Path
    limit: int

    @cached_property
    def place(self) -> Path:
        """The directory of the entries."""
        return self.base / ROOM

    def load(self, key: bytes, environment: bytes, functions: int) -> list[EntryPoint] | None:
        """Return the functions of a key's entry, so many, copied to executable memory.

        The list is empty where the system refuses that. None where no trusted entry exists.
        """
        try:
            with self._directory() as directory:
                if self.place not in _tidied:
                    _tidied.add(self.place)
                    tidy(directory)
                user = os.geteuid()
                return _native.load_entry(directory, key, environment, functions, user)
        except FileNotFoundError:
            pass
        except UnusableDirectory as error:
            complain(str(error), once=True)
        except Doubt as doubt:
            complain(f"{self.place / key.hex()} is not used: {doubt}")
        except OSError as error:
            complain(f"{self.place / key.hex()} is not used: {error.strerror}")
        return None

    def has(self, key: bytes) -> bool:
        """Whether there is a file of a key, whatever it is."""
        return (self.place / key.hex()).is_file()

    def put(self, entry: CacheEntry) -> bool:
        """Keep an entry; False where that is not possible."""
        data = packed(entry)
        if len(data) > min(LARGEST, self.limit):
            return False
        try:
            self._make()
            with self._directory() as directory:
                if not written(directory, entry.key.hex(), data):
                    return False
                if entry.key[0] < SWEPT:
                    self._sweep(directory)
        except UnusableDirectory as error:
            complain(str(error), once=True)
            return False
        except OSError as error:
            text = f"kernels cannot be kept in {self.place}: {error.strerror}"
            complain(text, once=True, expected=error.errno in REFUSING)
            return False
        return True

    def files(self) -> list[CacheFile]:
        """Return what there is, last used first. Raises UnusableDirectory, OSError."""
        try:
            with self._directory() as directory:
                return sorted(_files(directory), key=lambda file: -file.used)
        except FileNotFoundError:
            return []

    def read(self, name: str) -> CacheEntry:
        """Return the entry in a file, whatever it was made for. Raises Doubt, UnusableDirectory,
        OSError.
        """
        with self._directory() as directory:
            return CacheEntry(*_native.read_entry(directory, name, os.geteuid()))

    def remove(self, names: list[str]) -> int:
        """Remove files; return how many were there. Raises UnusableDirectory, OSError."""
        removed = 0
        with self._directory() as directory:
            for name in names:
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=directory)
                    removed += 1
        return removed

    def clear(self) -> int:
        """Remove every entry; return how many there were. Raises UnusableDirectory, OSError."""
        removed = self.remove([file.name for file in self.files()])
        with suppress(FileNotFoundError), self._directory() as directory:
            tidy(directory)
        return removed

    def _make(self) -> None:
        """Make the directory where there is none, in one that is ours."""
        if self.place.is_dir():
            return
        self.base.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.base.stat().st_uid != os.geteuid():
            raise UnusableDirectory(
                f"kernels are not kept in {self.base}: it belongs to another user"
            )
        self.place.mkdir(mode=0o700, exist_ok=True)

    @contextmanager
    def _directory(self) -> Iterator[int]:
        """Open the directory. Raises UnusableDirectory, FileNotFoundError."""
        try:
            directory = _native.open_directory(os.fsencode(self.place), os.geteuid())
        except FileNotFoundError:
            raise
        except (Doubt, OSError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise UnusableDirectory(f"kernels in {self.place} are not used: {why}") from error
        try:
            yield directory
        finally:
            os.close(directory)

    def _sweep(self, directory: int) -> None:
        """Remove what was used longest ago where there is too much."""
        found = _files(directory)
        total = sum(file.size for file in found)
        if total <= self.limit:
            return
        for file in sorted(found, key=lambda file: file.used):
            with suppress(FileNotFoundError):
                os.unlink(file.name, dir_fd=directory)
            total -= file.size
            if total <= self.limit * LEFT:
                return


def _files(directory: int) -> list[CacheFile]:
    """The entries, by their names."""
    found: list[CacheFile] = []
    with os.scandir(directory) as listed:
        for each in listed:
            if len(each.name) != 64 or not set(each.name) <= HEXADECIMAL:
                continue
            if each.is_dir(follow_symlinks=False):
                continue
            with suppress(FileNotFoundError):
                facts = each.stat(follow_symlinks=False)
                size = max(facts.st_size, facts.st_blocks * 512)
                found.append(CacheFile(each.name, size, facts.st_mtime))
    return found
