r"""Entry: one compiled kernel as the bytes of a file.

Takes machine code and what it was made of, hands on bytes, and from bytes the same again. Nothing
in them is believed before the hash over all of them is right; any doubt is an error. The numbers
are little-endian:

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

>>> entry = Entry(bytes(32), bytes(32), b"\xc3", (0,), level=2)
>>> unpacked(packed(entry)) == entry
True
>>> unpacked(packed(entry)[:-1])
Traceback (most recent call last):
...
tenfold.devices.entry.Doubt: it is damaged: 144 bytes, not 145
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from tenfold import _native

MAGIC = b"TENFOLD\n"
FORMAT = 1
HEAD = struct.Struct("<8sIIIIQQ32s32s")
HASH = 32
LARGEST = 1 << 24
"""Bytes of a file that is read at all; kernels have thousands."""
MOST_FUNCTIONS = 16
LONGEST_NOTE = 200


class Doubt(Exception):
    """Something on disk is not as we would have left it; the text says what."""


@dataclass(frozen=True)
class Entry:
    """A compiled kernel, and what it was compiled of."""

    key: bytes
    environment: bytes
    code: bytes
    places: tuple[int, ...]
    """Where its functions begin, in the order in which a kernel names them."""
    level: int
    seconds: float = 0.0
    note: str = ""


def packed(entry: Entry) -> bytes:
    """Return the bytes of a file."""
    note = entry.note.encode()[:LONGEST_NOTE]
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


def unpacked(data: bytes) -> Entry:
    """Return what the bytes of a file say. Raises Doubt."""
    if len(data) < HEAD.size + HASH:
        raise Doubt(f"it is damaged: {len(data)} bytes")
    magic, form, level, functions, noted, length, took, environment, key = HEAD.unpack_from(data)
    if magic != MAGIC:
        raise Doubt("it is no kernel")
    if form != FORMAT:
        raise Doubt(f"its format is {form}, not {FORMAT}")
    if functions > MOST_FUNCTIONS or noted > LONGEST_NOTE or length > LARGEST:
        raise Doubt("it is damaged: no kernel has such lengths")
    size = HEAD.size + 8 * functions + noted + length + HASH
    if len(data) != size:
        raise Doubt(f"it is damaged: {len(data)} bytes, not {size}")
    if _native.sha256(data[:-HASH]) != data[-HASH:]:
        raise Doubt("it is damaged: its hash is another")
    places = struct.unpack_from(f"<{functions}Q", data, HEAD.size)
    if any(place >= length for place in places):
        raise Doubt("a function begins behind its end")
    begin = HEAD.size + 8 * functions
    note = data[begin : begin + noted].decode(errors="replace")
    code = data[begin + noted : -HASH]
    return Entry(key, environment, code, places, level, took / 1e6, note)
