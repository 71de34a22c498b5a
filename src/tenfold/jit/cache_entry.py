r"""Cache entry: the file format of one compiled kernel in the disk cache.

Takes machine code and its key, hands on bytes. Native code reads them (native/jit/cache_entry.cpp),
after it has verified the hash of the whole file. The numbers are little-endian:

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
| 32 | SHA-256 of all preceding bytes |

>>> entry = CacheEntry(bytes(32), bytes(32), b"\xc3", (0,), level=2)
>>> len(pack_entry(entry))
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
MAX_ENTRY_BYTES = _native.MAX_ENTRY_BYTES
"""The largest file in bytes that is read; kernels have thousands."""
InvalidEntry = _native.InvalidEntry


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
    note = entry.note.encode()[: _native.MAX_NOTE_BYTES]
    header = HEAD.pack(
        MAGIC,
        FORMAT,
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
    return content + _native.sha256(content)
