r"""Cache entry: the file format of one compiled kernel in the disk cache.

Takes machine code and its key, hands on bytes, and reads them again. A file is accepted if it is
regular, not a link, belongs to the user and is closed to others. Its lengths are checked first, the
hash of all of it next, its content last. `jit/atomic_write.py` writes it. The numbers are
little-endian:

| Bytes | Content |
|---|---|
| 8 | `TENFOLD\n` |
| 4 | version of this format |
| 4 | optimisation level of LLVM |
| 4 | number of functions |
| 4 | bytes of the note |
| 8 | bytes of the code |
| 8 | compile time in microseconds |
| 32 | environment: our version, LLVM's, the processor |
| 32 | key: the hash of environment, level and text |
| 8 each | offsets of the functions in the code |
| | the note, UTF-8: a description of the kernel |
| | the code |
| 32 | BLAKE2b of all preceding bytes |

>>> entry = CacheEntry(bytes(32), bytes(32), b"\xc3", (0,), level=2)
>>> len(pack_entry(entry))
145
>>> unpack_entry(pack_entry(entry)) == entry
True
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import time
from contextlib import suppress
from dataclasses import dataclass

from tenfold.jit.digest import digest

MAGIC = b"TENFOLD\n"
ENTRY_FORMAT = 2
HEAD = struct.Struct("<8sIIIIQQ32s32s")
HASH = 32
MAX_ENTRY_BYTES = 1 << 24
"""The largest file in bytes that is read; kernels have thousands."""
MAX_NOTE_BYTES = 200
MAX_FUNCTIONS = 16
TOUCH_INTERVAL_SECONDS = 3600
"""The age from which on a file that is read is marked as used."""
READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


class InvalidEntry(Exception):
    """A file or folder of the disk cache that is not as Tenfold leaves it; the text says why."""


@dataclass(frozen=True)
class CacheEntry:
    """A compiled kernel, with its key and its target environment."""

    key: bytes
    environment: bytes
    code: bytes
    function_offsets: tuple[int, ...]
    """The offsets of its functions in the code, in the order of the kernel."""
    level: int
    seconds: float = 0.0
    note: str = ""


def pack_entry(entry: CacheEntry) -> bytes:
    """Return an entry as the bytes of a file."""
    note = entry.note.encode()[:MAX_NOTE_BYTES]
    header = HEAD.pack(
        MAGIC,
        ENTRY_FORMAT,
        entry.level,
        len(entry.function_offsets),
        len(note),
        len(entry.code),
        round(entry.seconds * 1e6),
        entry.environment,
        entry.key,
    )
    offsets = struct.pack(f"<{len(entry.function_offsets)}Q", *entry.function_offsets)
    content = b"".join((header, offsets, note, entry.code))
    return content + digest(content)


def unpack_entry(content: bytes) -> CacheEntry:
    """Return the entry in the bytes of a file. Raises InvalidEntry."""
    if len(content) < HEAD.size + HASH:
        raise _damaged(len(content))
    magic, version, level, functions, note_bytes, code_bytes, microseconds, environment, key = (
        HEAD.unpack_from(content)
    )
    if magic != MAGIC:
        raise InvalidEntry("it is not a kernel")
    if version != ENTRY_FORMAT:
        raise InvalidEntry(f"its format is {version}, not {ENTRY_FORMAT}")
    if functions > MAX_FUNCTIONS or note_bytes > MAX_NOTE_BYTES or code_bytes > MAX_ENTRY_BYTES:
        raise InvalidEntry("it is damaged: no kernel has such lengths")
    note = HEAD.size + 8 * functions
    code = note + note_bytes
    end = code + code_bytes
    if len(content) != end + HASH:
        raise InvalidEntry(f"{_damaged(len(content))}, not {end + HASH}")
    if digest(content[:end]) != content[end:]:
        raise InvalidEntry("it is damaged: its hash is another")
    offsets = struct.unpack_from(f"<{functions}Q", content, HEAD.size)
    if any(offset >= code_bytes for offset in offsets):
        raise InvalidEntry("a function begins behind its end")
    text = content[note:code].decode(errors="replace")
    seconds = microseconds / 1e6
    return CacheEntry(key, environment, content[code:end], offsets, level, seconds, text)


def read_entry(directory: int, name: str, environment: bytes = b"") -> CacheEntry:
    """Return the entry in a file of an open directory, which is named by its key.

    A non-empty environment must be the entry's, and the file's modification time then records the
    use. Raises InvalidEntry, OSError.
    """
    # without waiting: a pipe in its stead would let us wait for ever
    file = _open(name, os.O_NONBLOCK, "it is a symbolic link", directory)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise InvalidEntry("it is not a file")
        _check_owner(status)
        if status.st_size > MAX_ENTRY_BYTES:
            raise _damaged(status.st_size)
        entry = unpack_entry(os.read(file, status.st_size + 1))  # one more: it may have grown
        if entry.key.hex() != name:
            raise InvalidEntry("it is the entry of another kernel")
        if environment and entry.environment != environment:
            raise InvalidEntry("it is for another processor, or by another version")
        if environment and time.time() - status.st_mtime > TOUCH_INTERVAL_SECONDS:
            with suppress(OSError):  # a readable entry is usable, whatever its time
                os.utime(file)
        return entry
    finally:
        os.close(file)


def open_directory(path: str | os.PathLike[str]) -> int:
    """Open a directory, not a link, that belongs to this user and is closed to others.

    Raises InvalidEntry, OSError.
    """
    directory = _open(path, os.O_DIRECTORY, "it is not a directory")
    try:
        _check_owner(os.fstat(directory))
    except BaseException:
        os.close(directory)
        raise
    return directory


def _open(
    path: str | os.PathLike[str], flags: int, refusal: str, directory: int | None = None
) -> int:
    try:
        return os.open(path, READ_FLAGS | flags, dir_fd=directory)
    except OSError as error:
        if error.errno == errno.ELOOP or isinstance(error, NotADirectoryError):
            raise InvalidEntry(refusal) from error
        raise


def _check_owner(status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        raise InvalidEntry("it belongs to another user")
    if status.st_mode & 0o077:
        mode = stat.S_IMODE(status.st_mode)
        raise InvalidEntry(f"others may use it, its mode is {mode:o}")


def _damaged(length: int) -> InvalidEntry:
    return InvalidEntry(f"it is damaged: {length} bytes")
