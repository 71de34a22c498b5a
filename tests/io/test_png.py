"""Pictures: the bytes decode, by rules written out here, to the pixels that went in."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from tenfold.io.input_errors import OutputError
from tenfold.io.png import encode_png, write_png

SHAPES = st.tuples(st.integers(1, 9), st.integers(1, 9)) | st.tuples(
    st.integers(1, 9), st.integers(1, 9), st.just(3)
)


def chunks(content: bytes) -> list[tuple[bytes, bytes]]:
    """The chunks of a file, each with its checksum compared."""
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    found, place = [], 8
    while place < len(content):
        length, name = struct.unpack_from(">I4s", content, place)
        data = content[place + 8 : place + 8 + length]
        assert struct.unpack_from(">I", content, place + 8 + length) == (zlib.crc32(name + data),)
        found.append((name, data))
        place += 12 + length
    return found


def decode(content: bytes) -> NDArray[np.uint8]:
    (_, header), (_, data), _ = parts = chunks(content)
    assert [name for name, _ in parts] == [b"IHDR", b"IDAT", b"IEND"]
    width, height, depth, colour, *rest = struct.unpack(">IIBBBBB", header)
    assert (depth, rest) == (8, [0, 0, 0])
    channels = {0: 1, 2: 3}[colour]
    rows = np.frombuffer(zlib.decompress(data), np.uint8).reshape(height, 1 + width * channels)
    assert (rows[:, 0] == 2).all()
    pixels = np.add.accumulate(rows[:, 1:], axis=0, dtype=np.uint8)
    return pixels.reshape((height, width, 3) if channels == 3 else (height, width))


@given(SHAPES.flatmap(lambda shape: arrays(np.uint8, shape)))
def test_picture_decodes_to_its_pixels(pixels: NDArray[np.uint8]) -> None:
    np.testing.assert_array_equal(decode(encode_png(pixels)), pixels)


def test_strided_pixels_are_written(tmp_path: Path) -> None:
    pixels = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)[::-1, ::2]
    write_png(str(tmp_path / "a.png"), pixels)
    np.testing.assert_array_equal(decode((tmp_path / "a.png").read_bytes()), pixels)


@pytest.mark.parametrize("shape", [(), (3,), (2, 2, 4), (2, 2, 1), (0, 2), (2, 0, 3), (1, 2, 3, 3)])
def test_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="png"):
        encode_png(np.zeros(shape, np.uint8))


def test_other_dtypes_are_refused() -> None:
    with pytest.raises(TypeError, match="float64, they must be uint8"):
        encode_png(np.zeros((2, 2)))  # type: ignore[arg-type]


def test_picture_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="directory does not exist"):
        write_png(str(tmp_path / "missing" / "a.png"), np.zeros((2, 2), np.uint8))
