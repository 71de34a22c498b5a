r"""Object image: links an ELF object into position-independent machine code.

Takes LLVM's output for a kernel, a relocatable ELF object of 64 bits (System V ABI, chapter 4; its
supplement for AMD64, chapter 4). Hands on its code and constants as one image, with PC-relative
relocations applied. A kernel calls nothing and holds no address, so loading it needs no further
work; an object with other relocations is refused.

>>> ObjectImage(b"\xc3", {"kernel": 0}).function_offsets["kernel"]
0
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple

SHF_ALLOC, SHF_WRITE = 0x2, 0x1
"""Section flags: loaded into memory at run time; writable."""
SHT_RELA, SHT_SYMTAB, SHT_NOBITS = 4, 2, 8
"""Section types: relocations with addends, the symbol table, zero-initialised data."""
PC_RELATIVE = {2: ("<i", 4), 4: ("<i", 4), 24: ("<q", 8)}
"""Relocations PC32, PLT32, PC64: struct format and size of a PC-relative distance."""
EH_FRAME = b".eh_frame"
"""The section of unwind tables, which kernels do not need: they throw no exceptions."""
PAGE_BYTES = 4096
"""The page size, the largest alignment of a section."""


class Unlinkable(Exception):
    """An object needs more than PC-relative relocations; the text names the cause."""


@dataclass(frozen=True)
class ObjectImage:
    """Machine code that runs at any page-aligned address, with the offsets of its functions."""

    code: bytes
    function_offsets: dict[str, int]


class ElfSection(NamedTuple):
    """A section header of an ELF object, its fields in file order."""

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
    """An entry of the symbol table."""

    name: bytes
    is_global: bool
    """Whether it is visible to other objects."""
    section: int
    value: int


def link(binary: bytes) -> ObjectImage:
    """Return the image of an object. Raises Unlinkable."""
    sections = _sections(binary)
    names = _names(binary, sections)
    offsets, length = _section_offsets(sections, names)
    code = bytearray(length)
    for index, offset in offsets.items():
        section = sections[index]
        code[offset : offset + section.size] = binary[section.offset :][: section.size]
    symbols = _symbols(binary, sections)
    for section in sections:
        if section.type == SHT_RELA and section.info in offsets:
            _relocate(binary, section, code, offsets, symbols)
    function_offsets = {
        symbol.name.decode(): offsets[symbol.section] + symbol.value
        for symbol in symbols
        if symbol.is_global and symbol.section in offsets
    }
    return ObjectImage(bytes(code), function_offsets)


def _sections(binary: bytes) -> list[ElfSection]:
    (table_offset,) = struct.unpack_from("<Q", binary, 40)
    (count,) = struct.unpack_from("<H", binary, 60)
    header = struct.Struct("<IIQQQQIIQQ")
    return [
        ElfSection(*header.unpack_from(binary, table_offset + number * 64))
        for number in range(count)
    ]


def _names(binary: bytes, sections: list[ElfSection]) -> list[bytes]:
    (number,) = struct.unpack_from("<H", binary, 62)
    return [_c_string(binary, sections[number].offset + section.name) for section in sections]


def _c_string(binary: bytes, begin: int) -> bytes:
    return binary[begin : binary.index(b"\0", begin)]


def _section_offsets(sections: list[ElfSection], names: list[bytes]) -> tuple[dict[int, int], int]:
    """The offset of each loaded section in the image, and the image's length."""
    offsets: dict[int, int] = {}
    length = 0
    for number, (section, name) in enumerate(zip(sections, names, strict=True)):
        if not section.flags & SHF_ALLOC or name == EH_FRAME or not section.size:
            continue
        if section.flags & SHF_WRITE or section.type == SHT_NOBITS:
            raise Unlinkable(f"it has memory of its own, {name.decode()}")
        if section.alignment > PAGE_BYTES:
            raise Unlinkable(f"{name.decode()} is aligned to {section.alignment} bytes")
        length += -length % max(section.alignment, 1)
        offsets[number] = length
        length += section.size
    return offsets, length


def _symbols(binary: bytes, sections: list[ElfSection]) -> list[ElfSymbol]:
    symbols: list[ElfSymbol] = []
    for section in sections:
        if section.type != SHT_SYMTAB:
            continue
        string_table = sections[section.link].offset
        for at in range(section.offset, section.offset + section.size, 24):
            name, info, _, section_index, value, _ = struct.unpack_from("<IBBHQQ", binary, at)
            symbols.append(
                ElfSymbol(
                    _c_string(binary, string_table + name), info >> 4 != 0, section_index, value
                )
            )
    return symbols


def _relocate(
    binary: bytes,
    section: ElfSection,
    code: bytearray,
    offsets: dict[int, int],
    symbols: list[ElfSymbol],
) -> None:
    """Apply the relocations of one section: AMD64 supplement, 4.4, S + A - P."""
    for at in range(section.offset, section.offset + section.size, 24):
        offset, kind, number, addend = struct.unpack_from("<QIIq", binary, at)
        symbol = symbols[number]
        if symbol.section not in offsets:
            raise Unlinkable(f"it calls {symbol.name.decode() or 'a symbol outside of it'}")
        if kind not in PC_RELATIVE:
            raise Unlinkable(f"it holds an address: relocation {kind}")
        form, size = PC_RELATIVE[kind]
        target = offsets[section.info] + offset
        distance = offsets[symbol.section] + symbol.value + addend - target
        code[target : target + size] = struct.pack(form, distance)
