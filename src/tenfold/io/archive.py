"""Archive reading: one member of a `.npz` file as an array, within its declared size.

Takes an open `.npz` file and a key, returns an array in memory with a verified checksum.

    read_member("results.npz", "heights", file, progress)

An archive with a declared size above the available memory is refused. An archive that declares a
wrong size is stopped while unpacking, at the size in its array's header.
"""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Callable
from typing import IO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from tenfold.io.header import (
    MAX_HEADER,
    START_BYTES,
    Header,
    check_size,
    read_header,
    unknown_format_error,
)
from tenfold.io.input_errors import InputError, error_text
from tenfold.machine import available_memory

ALLOWED_COMPRESSION = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""The methods that NumPy writes. LZMA may allocate 4 GiB for its window."""

Progress = Callable[[int, int], None]
"""Called with the bytes done and the total bytes."""


def read_member(
    path: str, key: str | None, file: IO[bytes], progress: Progress
) -> NDArray[np.generic]:
    """Return the array of a key, or the only one. Raises only `InputError` and `OSError`."""
    try:
        with zipfile.ZipFile(file) as archive:
            member = _member(path, key, archive)
            return read_member_array(
                f"{path}:{member.filename.removesuffix('.npy')}", archive, member, progress
            )
    except (InputError, OSError):
        raise
    except MemoryError as error:
        raise InputError(
            f"{path}: does not fit in memory; save the array as .npy, read in place"
        ) from error
    except Exception as error:  # zipfile and zlib raise many kinds on damaged bytes
        raise InputError(f"{path}: damaged archive: {error_text(error)}") from error


def _member(path: str, key: str | None, archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    """Return the archive's entry for a key; without a key its only entry."""
    members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
    available_names = ", ".join(list(members)[:20]) + (", ..." if len(members) > 20 else "")
    if not members:
        raise InputError(f"{path}: the archive is empty")
    if key is None and len(members) > 1:
        raise InputError(
            f"{path}: holds several arrays; name one, as in {path}:{next(iter(members))} "
            f"(there are: {available_names})"
        )
    if key is not None and key not in members:
        raise InputError(f"{path}: has no array named {key!r}; there are: {available_names}")
    return members[key] if key is not None else next(iter(members.values()))


def no_progress(bytes_done: int, total_bytes: int) -> None:
    """Show no progress."""


def read_member_array(
    name: str, archive: zipfile.ZipFile, member: zipfile.ZipInfo, progress: Progress = no_progress
) -> NDArray[np.generic]:
    """Return the array in a member; its size is tested first. Raises InputError."""
    if member.flag_bits & 1:
        raise InputError(f"{name}: is encrypted; save it without a password")
    if member.compress_type not in ALLOWED_COMPRESSION:
        raise InputError(
            f"{name}: unknown compression; save it with numpy.savez or savez_compressed"
        )
    available = available_memory()
    if member.file_size > available:
        raise InputError(
            f"{name}: would unpack to {member.file_size:,} bytes, {available:,} are available; "
            "save it as .npy, which is read in place"
        )
    with archive.open(member) as stream:
        start = stream.read(START_BYTES)
        if not start.startswith(npy.MAGIC_PREFIX):
            raise unknown_format_error(name, start[:6])
        header = read_header(name, start)
        check_size(name, header, member.file_size)
    with archive.open(member) as stream:
        counted = _CountedStream(stream, header, progress)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as in read_header
            array: NDArray[np.generic] = npy.read_array(
                counted, allow_pickle=False, max_header_size=MAX_HEADER
            )
        # read to the end of the stream, which verifies the checksum
        if stream.read(1):
            raise InputError(f"{name}: unpacks to another size than its header says")
    return array


class _CountedStream:
    """A stream that reports the bytes read behind its header."""

    def __init__(self, stream: IO[bytes], header: Header, progress: Progress) -> None:
        self.stream, self.total, self.progress = stream, header.size, progress
        self.count = -header.offset

    def read(self, count: int = -1, /) -> bytes:
        """Read up to `count` bytes and report them."""
        chunk = self.stream.read(count)
        self.count += len(chunk)
        if self.count > 0:
            self.progress(self.count, self.total)
        return chunk
