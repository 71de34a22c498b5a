"""GEMM block records: names the LLVM values of a unit, a packed slab and a register tile.

Takes nothing, hands on three records that `blocked.py` fills and `syrk_trmm.py` changes.

>>> TileOperands("%row", "%start", "%depth", "%corner", "%panel", "%step").depth
'%depth'
"""

from __future__ import annotations

from typing import NamedTuple


class GemmUnit(NamedTuple):
    """Names of what a unit of work knows: lengths, strides in bytes, pointers to its corner."""

    m: str
    n: str
    k: str
    rows: str
    first_row: str
    first_column: str
    columns: str
    full: str
    """Whether the panel has all its columns."""
    strides: tuple[str, ...]
    x1: str
    x2: str
    result: str
    x3: str
    masks: list[str]
    """Of each packet of a panel the lanes that it has, where the processor has masks."""
    depths: tuple[str, str]
    """Where k begins and ends."""


class PackedSlab(NamedTuple):
    """Names of what is known of the slab that is added to the sums."""

    first: str
    """Whether nothing has been added before."""
    last: str
    """Whether nothing will be added after."""
    round: str = ""
    """The first index of what is contracted besides k, if there is anything."""
    rounds: str = ""
    """Of how many indices of it there are rows."""
    start: str = ""
    """The first k."""
    depth: str = ""
    """How many there are."""
    direct: str = ""
    """Whether rows of the second operand are read where they lie, and are not copied."""


class TileOperands(NamedTuple):
    """Names of what is multiplied in a slab for a tile."""

    row: str
    """The first of the tile."""
    start: str
    """The first k of the slab."""
    depth: str
    """How many there are."""
    corner: str
    """Where the tile's rows of x1 begin in the slab."""
    panel: str
    step: str
    """Where rows of the second operand are, and the bytes from one to the next."""
