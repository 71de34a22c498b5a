"""Register tile: chooses the block of a product's sums that fits into vector registers.

Input: a dtype, the bytes of a vector register and the lengths of a product. Output: the number of
rows and packets that are summed at once, and the lengths of slabs and blocks.

>>> from tenfold.dtypes import FLOAT64
>>> tile = RegisterTile.of(FLOAT64, 32, rows=100, columns=100)
>>> tile.rows, tile.columns, tile.slab, tile.block
(4, 12, 341, 192)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tenfold.codegen.gemm.emitter import Arithmetic
from tenfold.core.symbolic.sym_int import largest, pinned
from tenfold.schedule.target import DEFAULT

# Table: by registers and scalars of an element, the tallest tile for so many packets.
TALLEST = {
    (32, 1): {1: 12, 2: 12, 3: 8, 4: 6, 8: 2},
    (32, 2): {1: 12, 2: 6, 4: 2},
    (16, 1): {1: 8, 2: 6, 3: 4, 4: 2},
    (16, 2): {1: 6, 2: 3},
}
LOW_ROWS = 2
"""Tiles of at most this many rows are as wide as possible."""


@dataclass(frozen=True)
class RegisterTile:
    """The block of sums in registers: `rows` by `packets` of `lanes` scalars."""

    arithmetic: Arithmetic
    rows: int
    packets: int
    lanes: int

    @staticmethod
    def of(
        dtype: np.dtype, width: int, rows: int, columns: int, *, exact: bool = False
    ) -> RegisterTile:
        """Return the tile for products of `rows` by `columns`.

        The rows of an exact tile divide `rows` evenly; others have few heights, so that a new
        shape seldom needs a new program.
        """
        arithmetic = Arithmetic(dtype, width)
        components, lanes = arithmetic.components, arithmetic.register_lanes
        scalars = largest(1, columns) * components
        while lanes >= 2 * scalars:
            lanes //= 2
        tallest = TALLEST[arithmetic.register_count, components]
        widest = max(
            number
            for number, max_rows in tallest.items()
            if max_rows > LOW_ROWS or rows <= LOW_ROWS
        )
        packets = pinned(_even_split(-(-scalars // lanes), widest))
        max_rows = next(max_rows for number, max_rows in tallest.items() if number >= packets)
        height = pinned((_even_split if exact else _round_down)(largest(1, rows), max_rows))
        return RegisterTile(arithmetic, height, packets, lanes)

    @property
    def columns(self) -> int:
        """The columns of a panel, in elements."""
        return self.packets * self.lanes // self.arithmetic.components

    @property
    def row_bytes(self) -> int:
        """The bytes of a row of a copied panel."""
        return self.packets * self.lanes * self.arithmetic.sum_dtype.itemsize

    @property
    def slab(self) -> int:
        """The rows of a panel that are packed at a time."""
        return DEFAULT.caches.slab_bytes // self.row_bytes if self.row_bytes > 64 else 256

    @property
    def block(self) -> int:
        """The rows of a unit of work."""
        return -(-DEFAULT.caches.product_rows // self.rows) * self.rows


def _even_split(count: int, limit: int) -> int:
    """Split `count` into the fewest even parts of at most `limit`, and return the largest."""
    return -(-count // -(-count // limit))


def _round_down(count: int, limit: int) -> int:
    """Return `limit`, or the largest power of 2 that is not above `count`."""
    return limit if count >= limit else 1 << pinned(count.bit_length() - 1)
