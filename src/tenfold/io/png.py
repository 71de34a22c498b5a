r"""PNG encoder: writes grey or RGB pictures of eight bits a sample.

Takes uint8 of shape (height, width) or (height, width, 3), returns the file's bytes.

    >>> encode_png(np.zeros((2, 3), np.uint8))[:8]
    b'\x89PNG\r\n\x1a\n'

Format: W3C PNG Specification (Third Edition), sections 5, 9 and 10: a signature, then chunks of
(length, name, content, CRC-32). Rows are filtered by "up", the difference to the row above, and
then deflated. That filter is one subtraction and compresses smooth pictures well.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

from tenfold.io.file_writing import open_replacing

SIGNATURE = b"\x89PNG\r\n\x1a\n"
UP_FILTER = 2
GREY, RGB = 0, 2
MAX_SIDE = 2**31 - 1


def encode_png(pixels: NDArray[np.uint8]) -> bytes:
    """Return the bytes of a PNG file of pixels, uint8 (height, width) or (height, width, 3).

    Raises `TypeError` for another dtype and `ValueError` for another shape.
    """
    if pixels.dtype != np.uint8:
        raise TypeError(f"png: pixels are {pixels.dtype}, they must be uint8 (0 to 255)")
    if pixels.ndim not in (2, 3) or (pixels.ndim == 3 and pixels.shape[2] != 3):
        raise ValueError(
            f"png: shape {pixels.shape}, must be (height, width) or (height, width, 3)"
        )
    height, width = pixels.shape[:2]
    if not (0 < height <= MAX_SIDE and 0 < width <= MAX_SIDE):
        raise ValueError(f"png: {height} by {width} pixels; each side needs 1 to {MAX_SIDE}")
    colour = RGB if pixels.ndim == 3 else GREY
    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    data = zlib.compress(_filter_rows(pixels.reshape(height, -1)), level=6)
    return SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def _filter_rows(rows: NDArray[np.uint8]) -> bytes:
    """Return each row minus the row above it, modulo 256, after the filter's number."""
    filtered = np.empty((rows.shape[0], rows.shape[1] + 1), np.uint8)
    filtered[:, 0] = UP_FILTER
    filtered[0, 1:] = rows[0]
    np.subtract(rows[1:], rows[:-1], out=filtered[1:, 1:])
    return filtered.tobytes()


def _chunk(name: bytes, content: bytes) -> bytes:
    return (
        struct.pack(">I", len(content))
        + name
        + content
        + struct.pack(">I", zlib.crc32(name + content))
    )


def write_png(path: str, pixels: NDArray[np.uint8]) -> None:
    """Write a picture atomically; raises `OutputError` if the file cannot be written."""
    content = encode_png(pixels)
    with open_replacing(path) as file:
        file.write(content)
