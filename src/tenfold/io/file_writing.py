"""Atomic file writing: replaces an output file completely, or keeps the old one.

Takes a path and the data. Afterwards the file is complete and on the disk.

    write_arrays("out.npz", {"sum": a + b, "difference": a - b})

The data is written to a temporary file in the same directory, synchronised to the disk, and renamed
over the old file, which is atomic for readers. On any failure, a full disk or an interrupt
included, the temporary file is removed and the old output is unchanged.
"""

from __future__ import annotations

import os
import stat
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from tenfold.io.input_errors import OutputError, error_text

SUFFIXES = (".npy", ".npz")
ENTRY_DATE = (1980, 1, 1, 0, 0, 0)
"""The constant date of archive entries: equal arrays give equal files."""

WriteCallback = Callable[[int], None]
"""Called with the number of bytes just written."""


def _silent(count: int) -> None:
    """No progress shown."""


def check_output(path: str) -> Path:
    """Return the output file with links resolved. Raises `OutputError` if it is not writable.

    Called before the computation, so that its result is not lost.
    """
    try:
        target = Path(path).resolve()
        _check_target(path, target)
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: links that go in circles
        raise OutputError(f"{path}: cannot be written: {error_text(error)}") from error
    return target


def _check_target(path: str, target: Path) -> None:
    folder = target.parent
    if not folder.is_dir():
        raise OutputError(f"{path}: cannot be written: this directory does not exist: {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(f"{path}: cannot be written: the directory {folder} is closed to writing")
    try:
        status = target.stat()
    except FileNotFoundError:
        return
    if not stat.S_ISREG(status.st_mode):
        raise OutputError(f"{path}: cannot be written: it is there and is not a regular file")
    if not os.access(target, os.W_OK):
        raise OutputError(f"{path}: cannot be written: the file there is read-only")


@contextmanager
def open_replacing(path: str) -> Iterator[IO[bytes]]:
    """Open a file that replaces `path` when the block ends without an error."""
    target = check_output(path)
    # Not derived from the name, which may already have the maximal length.
    temporary = target.parent / f".tenfold-{os.urandom(8).hex()}.tmp"
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
        with os.fdopen(os.open(temporary, flags, 0o666), "wb") as file:
            _keep_mode(file, target)
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
        _synchronise(target.parent)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error_text(error)}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _keep_mode(file: IO[bytes], target: Path) -> None:
    """Keep the permissions of an existing file; a new file follows the umask."""
    try:
        mode = stat.S_IMODE(target.stat().st_mode)
    except FileNotFoundError:
        return
    os.fchmod(file.fileno(), mode & 0o777)


def _synchronise(folder: Path) -> None:
    """Synchronise the directory entry. Some file systems cannot; the file is complete anyway."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class _CountingFile:
    """A file that reports the bytes written; NumPy then writes in chunks."""

    def __init__(self, file: IO[bytes], on_write: WriteCallback) -> None:
        self.file = file
        self.on_write = on_write

    def write(self, data: bytes) -> int:
        """Write all of the bytes and report them."""
        count = self.file.write(data)
        self.on_write(len(data))
        return count


def write_arrays(
    path: str, arrays: Mapping[str, NDArray[np.generic]], on_write: WriteCallback = _silent
) -> None:
    """Write one array as `.npy`, or any number as `.npz` under their names, atomically.

    Raises `OutputError`; the file at `path` is then unchanged.
    """
    for name, array in arrays.items():
        if array.dtype.kind not in "biufc":
            raise OutputError(
                f"{path}: {name} is {array.dtype}, which .npy files have no name for; "
                "add --dtype float32"
            )
    with open_replacing(path) as file:
        if path.endswith(".npz"):
            _write_archive(file, arrays, on_write)
        else:
            (array,) = arrays.values()
            npy.write_array(_CountingFile(file, on_write), array, allow_pickle=False)


def _write_archive(
    file: IO[bytes], arrays: Mapping[str, NDArray[np.generic]], on_write: WriteCallback
) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy", ENTRY_DATE)
            with archive.open(entry, "w", force_zip64=True) as member:
                npy.write_array(_CountingFile(member, on_write), array, allow_pickle=False)
