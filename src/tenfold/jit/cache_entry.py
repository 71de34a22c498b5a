r"""Cache entry: the file format of one compiled kernel in the disk cache.

Takes machine code and its key, hands on bytes. Native code reads them (native/jit/cache_entry.cpp):
it believes nothing in them before the hash over all of them is right. The numbers are
little-endian:

| Bytes | What |
|---|---|
| 8 | `TENFOLD\n` |
| 4 | version of this format |
| 4 | LLVM's level of optimisation |
| 4 | functions |
| 4 | bytes of the note |
| 8 | bytes of the code |
| 8 | what compiling took, in microseconds |
| 32 | environment: our version, LLVM's, the processor |
| 32 | key: the hash of environment, level and text |
| 8 for each | where the functions begin in the code |
| | the note, UTF-8: what the kernel computes |
| | the code |
| 32 | SHA-256 of all before |

>>> entry = CacheEntry(bytes(32), bytes(32), b"\xc3", (0,), level=2)
>>> len(packed(entry))
145
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from tenfold import _native

MAGIC = b"TENFOLD\n"
FORMAT = 1
HEAD = struct.Struct("<8sIIIIQQ32s32s")
HASH = 32
LARGEST = _native.LARGEST_ENTRY
"""Bytes of a file that is read at all; kernels have thousands."""
Doubt = _native.Doubt


@dataclass(frozen=True)
class CacheEntry:
    """A compiled kernel, and what it was compiled of."""

    key: bytes
    environment: bytes
    code: bytes
    places: tuple[int, ...]
    """Where its functions begin, in the order in which a kernel names them."""
    level: int
    seconds: float = 0.0
    note: str = ""


def packed(entry: CacheEntry) -> bytes:
    """Return the bytes of a file."""
    note = entry.note.encode()[: _native.LONGEST_NOTE]
    head = HEAD.pack(
        MAGIC,
        FORMAT,
        entry.level,
        len(entry.places),
        len(note),
        len(entry.code),
        round(entry.seconds * 1e6),
        entry.environment,
        entry.key,
    )
    places = struct.pack(f"<{len(entry.places)}Q", *entry.places)
    content = b"".join((head, places, note, entry.code))
    return content + _native.sha256(content)
