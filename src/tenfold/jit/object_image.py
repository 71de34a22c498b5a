r"""Object image: links an ELF object into machine code that runs wherever it is copied to.

Takes LLVM's output for a kernel, a relocatable ELF object of 64 bits (System V ABI, chapter 4; its
supplement for AMD64, chapter 4). Hands on its code and constants side by side, with each distance
between them filled in. A kernel calls nothing and holds no address, so loading it needs no further
work; an object that asks for more is refused.

>>> ObjectImage(b"\xc3", {"kernel": 0}).places["kernel"]
0
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple

HELD, WRITTEN = 0x2, 0x1
"""Flags of a section: it takes memory when the program runs; the program writes to it."""
ENTRIES, SYMBOLS, BARE = 4, 2, 8
"""Types of sections: relocations with addends, the table of symbols, zeros that no file holds."""
FROM_HERE = {2: ("<i", 4), 4: ("<i", 4), 24: ("<q", 8)}
"""PC32, PLT32, PC64: the distance from the place itself to a symbol, in so many bytes."""
UNWINDING = b".eh_frame"
"""How to unwind the stack: kernels throw nothing, and nothing unwinds through them."""
WIDEST = 4096
"""The largest alignment that the beginning of a page has."""


class Unlinkable(Exception):
    """An object needs more than distances inside itself; the text says what."""


@dataclass(frozen=True)
class ObjectImage:
    """Machine code that runs at any address divisible by 4096; where its functions begin."""

    code: bytes
    places: dict[str, int]


class ElfSection(NamedTuple):
    """A header in an ELF object, its fields in their order."""

    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry: int


class ElfSymbol(NamedTuple):
    """An entry of the table of symbols."""

    name: bytes
    seen: bool
    """Whether others may use it."""
    section: int
    value: int


def link(binary: bytes) -> ObjectImage:
    """Return the code of an object. Raises Unlinkable."""
    sections = _sections(binary)
    names = _names(binary, sections)
    begins, length = _laid_out(sections, names)
    code = bytearray(length)
    for number, begin in begins.items():
        section = sections[number]
        code[begin : begin + section.size] = binary[section.offset :][: section.size]
    symbols = _symbols(binary, sections)
    for section in sections:
        if section.type == ENTRIES and section.info in begins:
            _relocate(binary, section, code, begins, symbols)
    places = {
        symbol.name.decode(): begins[symbol.section] + symbol.value
        for symbol in symbols
        if symbol.seen and symbol.section in begins
    }
    return ObjectImage(bytes(code), places)


def _sections(binary: bytes) -> list[ElfSection]:
    (first,) = struct.unpack_from("<Q", binary, 40)
    (count,) = struct.unpack_from("<H", binary, 60)
    form = struct.Struct("<IIQQQQIIQQ")
    return [ElfSection(*form.unpack_from(binary, first + number * 64)) for number in range(count)]


def _names(binary: bytes, sections: list[ElfSection]) -> list[bytes]:
    (number,) = struct.unpack_from("<H", binary, 62)
    return [_word(binary, sections[number].offset + section.name) for section in sections]


def _word(binary: bytes, begin: int) -> bytes:
    return binary[begin : binary.index(b"\0", begin)]


def _laid_out(sections: list[ElfSection], names: list[bytes]) -> tuple[dict[int, int], int]:
    """Where each section begins in the image, and the image's length."""
    begins: dict[int, int] = {}
    length = 0
    for number, (section, name) in enumerate(zip(sections, names, strict=True)):
        if not section.flags & HELD or name == UNWINDING or not section.size:
            continue
        if section.flags & WRITTEN or section.type == BARE:
            raise Unlinkable(f"it has memory of its own, {name.decode()}")
        if section.alignment > WIDEST:
            raise Unlinkable(f"{name.decode()} is aligned to {section.alignment} bytes")
        length += -length % max(section.alignment, 1)
        begins[number] = length
        length += section.size
    return begins, length


def _symbols(binary: bytes, sections: list[ElfSection]) -> list[ElfSymbol]:
    found: list[ElfSymbol] = []
    for section in sections:
        if section.type != SYMBOLS:
            continue
        words = sections[section.link].offset
        for at in range(section.offset, section.offset + section.size, 24):
            name, kind, _, inside, value, _ = struct.unpack_from("<IBBHQQ", binary, at)
            found.append(ElfSymbol(_word(binary, words + name), kind >> 4 != 0, inside, value))
    return found


def _relocate(
    binary: bytes,
    section: ElfSection,
    code: bytearray,
    begins: dict[int, int],
    symbols: list[ElfSymbol],
) -> None:
    """Fill in the distances of one section: AMD64 supplement, 4.4, S + A - P."""
    for at in range(section.offset, section.offset + section.size, 24):
        offset, kind, number, addend = struct.unpack_from("<QIIq", binary, at)
        symbol = symbols[number]
        if symbol.section not in begins:
            raise Unlinkable(f"it calls {symbol.name.decode() or 'a symbol outside of it'}")
        if kind not in FROM_HERE:
            raise Unlinkable(f"it holds an address: relocation {kind}")
        form, size = FROM_HERE[kind]
        place = begins[section.info] + offset
        distance = begins[symbol.section] + symbol.value + addend - place
        code[place : place + size] = struct.pack(form, distance)
