"""Files damaged at random: an array comes out, or one line that says why not, and nothing else."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tenfold.io.arrays import read_array
from tenfold.io.input_errors import InputError


def saved(kind: str) -> bytes:
    file = io.BytesIO()
    values = np.arange(300, dtype=np.int16).reshape(3, 100)
    if kind == "npy":
        np.save(file, values)
    elif kind == "stored":
        np.savez(file, one=values, two=values + 1)
    else:
        np.savez_compressed(file, one=values, two=values + 1)
    return file.getvalue()


WHOLE = {kind: saved(kind) for kind in ("npy", "stored", "packed")}
KINDS = st.sampled_from(sorted(WHOLE))


def read(content: bytes, key: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("a.npz" if key else "a.npy")
        path.write_bytes(content)
        try:
            found = read_array(f"{path}{key}")
            assert isinstance(np.array(found), np.ndarray)
        except InputError as error:
            message = str(error)
            assert message.isprintable(), message


@settings(max_examples=300, deadline=None)
@given(KINDS, st.floats(0, 1))
def test_truncated_file(kind: str, share: float) -> None:
    content = WHOLE[kind]
    read(content[: int(share * len(content))], "" if kind == "npy" else ":one")


@settings(max_examples=600, deadline=None)
@given(
    KINDS,
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)), max_size=6),
    st.booleans(),
)
def test_flipped_bits(kind: str, flips: list[tuple[float, int]], early: bool) -> None:
    content = bytearray(WHOLE[kind])
    for share, mask in flips:
        # Headers are short: half of the examples damage only the first 128 bytes.
        content[int(share * (128 if early else len(content)))] ^= mask
    read(bytes(content), "" if kind == "npy" else ":two")


@settings(max_examples=200, deadline=None)
@given(KINDS, st.integers(0, 2000), st.binary(max_size=40))
def test_inserted_bytes(kind: str, place: int, extra: bytes) -> None:
    content = WHOLE[kind]
    read(content[:place] + extra + content[place:], "" if kind == "npy" else ":one")


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from([b"", b"\x93NUMPY\x01\x00", b"PK\x03\x04", b"\x80"]), st.binary(max_size=300)
)
def test_any_bytes_after_a_signature(start: bytes, rest: bytes) -> None:
    read(start + rest, "")
