"""Reading arrays from files: what is read, and every way in which a file is refused."""

from __future__ import annotations

import io
import os
import pickle
import struct
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tenfold.io import archive
from tenfold.io.arrays import read_array, split_source
from tenfold.io.input_errors import InputError

VALUES = np.arange(24, dtype=np.float64).reshape(2, 3, 4)


def npy_bytes(header: str, data: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    size = struct.pack("<H" if version == b"\x01\x00" else "<I", len(header))
    return b"\x93NUMPY" + version + size + header.encode("latin1") + data


def header_of(descr: str, shape: str, order: str = "False") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"


def refusal(path: Path | str) -> str:
    with pytest.raises(InputError) as caught:
        read_array(str(path))
    message = str(caught.value)
    assert message.isprintable()
    return message


@pytest.mark.parametrize(
    "dtype",
    [
        "?",
        "i1",
        "i2",
        "i4",
        "i8",
        "u1",
        "u2",
        "u4",
        "u8",
        "f2",
        "f4",
        "f8",
        "c8",
        "c16",
        ">i4",
        ">f8",
        ">c16",
        "<u2",
    ],
)
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 0, 3), (2, 3, 4)])
def test_npy_and_npz_give_the_same_values_read_only(
    tmp_path: Path, dtype: str, shape: tuple[int, ...]
) -> None:
    expected = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    np.save(tmp_path / "a.npy", expected)
    np.savez(tmp_path / "a.npz", key=expected)
    np.savez_compressed(tmp_path / "b.npz", key=expected)
    for source in ("a.npy", "a.npz:key", "a.npz", "b.npz:key"):
        found = read_array(str(tmp_path / source))
        assert found.dtype == expected.dtype.newbyteorder("=")
        assert found.dtype.isnative
        assert not found.flags.writeable
        np.testing.assert_array_equal(found, expected)


def test_fortran_order_is_read(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.asfortranarray(VALUES))
    np.savez(tmp_path / "a.npz", a=np.asfortranarray(VALUES))
    np.testing.assert_array_equal(read_array(str(tmp_path / "a.npy")), VALUES)
    np.testing.assert_array_equal(read_array(str(tmp_path / "a.npz")), VALUES)


def test_npy_is_mapped_not_copied(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", VALUES)
    assert isinstance(read_array(str(tmp_path / "a.npy")), np.memmap)


def test_npy_larger_than_memory_is_mapped(tmp_path: Path) -> None:
    shape = (1 << 45,)  # 32 TiB of nothing: a sparse file
    path = tmp_path / "a.npy"
    content = npy_bytes(header_of("'|u1'", str(shape)))
    path.write_bytes(content)
    try:
        os.truncate(path, len(content) + shape[0])
    except OSError:
        shape = (1 << 42,)
        content = npy_bytes(header_of("'|u1'", str(shape)))
        path.write_bytes(content)
        try:
            os.truncate(path, len(content) + shape[0])
        except OSError:
            pytest.skip("this file system has no files of 4 TiB")
    found = read_array(str(path))
    assert found.shape == shape
    assert found[-1] == 0


def test_version_two_header_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(npy_bytes(header_of("'<f8'", "(1,)"), bytes(8), b"\x02\x00"))
    assert read_array(str(path)).shape == (1,)


def test_unaligned_elements_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(
        npy_bytes(header_of("'<f8'", "(1,)").rstrip() + "  \n", struct.pack("<d", 2.5))
    )
    found = read_array(str(path))
    assert found.flags.aligned
    assert found[0] == 2.5


def test_npy_written_by_python_two_is_read_without_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(npy_bytes(header_of("'<f8'", "(1L,)"), bytes(8)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_array(str(path)).shape == (1,)


DAMAGED_NPY = [
    (b"", "the file is empty"),
    (b"hello", "neither a .npy nor a .npz file"),
    (pickle.dumps([1, 2, 3]), "a pickle, which is never loaded"),
    (b"\x93NUMPY", "damaged .npy header"),
    (b"\x93NUMPY\x01\x00\xff\xff{", "damaged .npy header"),
    (b"\x93NUMPY\x09\x00" + bytes(20), "version 9.0"),
    (b"\x93NUMPY\x02\x00\xff\xff\xff\xff", "damaged .npy header"),
    (npy_bytes("'" + "x" * 20_000), "damaged .npy header"),
    (npy_bytes("[" * 9_000), "damaged .npy header"),
    (npy_bytes("-" * 9_000 + "1"), "damaged .npy header"),
    (npy_bytes("__import__('os').abort()"), "damaged .npy header"),
    (npy_bytes("{'descr': '<f8'}"), "damaged .npy header"),
    (npy_bytes(header_of("'<f8'", "(-1,)")), "impossible"),
    (npy_bytes(header_of("'<f8'", "(True,)"), bytes(8)), "impossible"),
    (npy_bytes(header_of("'<f8'", "(1.5,)"), bytes(8)), "damaged .npy header"),
    (npy_bytes(header_of("'<f8'", f"({'1, ' * 80})"), bytes(8)), "impossible"),
    (npy_bytes(header_of("'<f8'", "(1,)", "7"), bytes(8)), "damaged .npy header"),
    (npy_bytes(header_of("'nonsense'", "(1,)"), bytes(8)), "damaged .npy header"),
    (npy_bytes(header_of("'<f8'", "(2,)"), bytes(8)), "truncated: float64 of shape (2,)"),
    (npy_bytes(header_of("'|b1'", "(3,)"), b"\0\1\2"), "booleans that are neither 0 nor 1"),
    (npy_bytes(header_of("'<f8'", "(1,)"), bytes(9)), "its header does not fit its content"),
    (npy_bytes(header_of("'<f8'", "(0,)"), bytes(8)), "its header does not fit its content"),
    (npy_bytes(header_of("'<f8'", "(10**9,)"), bytes(8)), "damaged .npy header"),
    (npy_bytes(header_of("'<f8'", "(10000000000000,)"), bytes(8)), "truncated"),
    (npy_bytes(header_of("'<f8'", "(4294967296, 4294967296)"), bytes(8)), "impossible"),
    (npy_bytes(header_of("'<f8'", "(2305843009213693952,)")), "impossible"),  # 2**64 bytes
    (npy_bytes(header_of("'<f8'", "(0, 99999999999999999999)")), "impossible"),
    (npy_bytes(header_of("'|O'", "(1,)"), pickle.dumps([1])), "holds Python objects (a pickle)"),
    (npy_bytes(header_of("[('a', '|O')]", "(1,)"), bytes(8)), "holds Python objects"),
    (npy_bytes(header_of("[('a', '<f8')]", "(1,)"), bytes(8)), "is not one of ours"),
    (npy_bytes(header_of("'<U4'", "(1,)"), bytes(16)), "is not one of ours"),
    (npy_bytes(header_of("'|S4'", "(1,)"), bytes(4)), "is not one of ours"),
    (npy_bytes(header_of("'<M8[s]'", "(1,)"), bytes(8)), "is not one of ours"),
    (npy_bytes(header_of("'<f16'", "(1,)"), bytes(16)), "is not one of ours"),
    (npy_bytes(header_of("'|V2'", "(1,)"), bytes(2)), "bfloat16 has no name in .npy files"),
    (npy_bytes(header_of("'|V99999999999'", "(1,)"), bytes(2)), "damaged .npy header"),
    (npy_bytes(header_of("('<f8', (9999, 9999))", "(1,)"), bytes(8)), "is not one of ours"),
]


@pytest.mark.parametrize(("content", "reason"), DAMAGED_NPY, ids=range(len(DAMAGED_NPY)))
def test_damaged_file_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(content)
    assert reason in refusal(path)


@pytest.mark.parametrize(("content", "reason"), DAMAGED_NPY[3:], ids=range(3, len(DAMAGED_NPY)))
def test_damaged_member_of_an_archive_is_refused(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("key.npy", content)
    assert reason in refusal(f"{tmp_path / 'a.npz'}:key")


def test_allocation_waits_for_the_check_of_the_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(*args: object) -> None:
        pytest.fail("memory was asked for before the size was checked")

    monkeypatch.setattr(np, "empty", forbidden)
    monkeypatch.setattr(np, "memmap", forbidden)
    content = npy_bytes(header_of("'<f8'", "(1000000000000,)"), bytes(8))
    (tmp_path / "a.npy").write_bytes(content)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("key.npy", content)
    assert "truncated" in refusal(tmp_path / "a.npy")
    assert "truncated" in refusal(tmp_path / "a.npz")


def test_missing_file_and_others_that_are_no_files_are_refused(tmp_path: Path) -> None:
    assert "cannot be read: No such file or directory" in refusal(tmp_path / "a.npy")
    assert "not a regular file" in refusal(tmp_path)
    assert "not a regular file" in refusal("/dev/zero")
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in refusal(tmp_path / "pipe")
    assert "cannot be read" in refusal("x" * 5000)
    assert "not a file name" in refusal("a\0b.npy")


def test_file_that_may_not_be_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(*args: object, **options: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", closed)
    assert "a.npy: cannot be read: Permission denied" in refusal(tmp_path / "a.npy")


def test_keys_of_an_archive(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, one=VALUES, two=VALUES * 2)
    np.testing.assert_array_equal(read_array(f"{path}:two"), VALUES * 2)
    assert "has no array named 'three'; there are: one, two" in refusal(f"{path}:three")
    assert f"holds several arrays; name one, as in {path}:one" in refusal(path)
    np.save(tmp_path / "b.npy", VALUES)
    assert "holds one array without a key" in refusal(f"{tmp_path / 'b.npy'}:key")
    with zipfile.ZipFile(tmp_path / "empty.npz", "w"):
        pass
    assert "the archive is empty" in refusal(tmp_path / "empty.npz")


def test_terminal_escapes_in_keys_are_not_printed(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("\x1b[2Jone.npy", b"x")
        archive.writestr("two.npy", b"x")
    assert "\\x1b[2Jone" in refusal(f"{tmp_path / 'a.npz'}:three")


def test_name_with_a_colon_is_a_file_if_there_is_one(tmp_path: Path) -> None:
    path = tmp_path / "a:b.npy"
    np.save(path, VALUES)
    assert split_source(str(path)) == (str(path), None)
    np.testing.assert_array_equal(read_array(str(path)), VALUES)
    assert split_source("missing.npz:a") == ("missing.npz", "a")
    assert split_source("c:missing.npy") == ("c:missing.npy", None)


def bomb(path: Path, unpacked: int, *, declared: int | None = None) -> None:
    """An archive of zeros whose header promises just what it unpacks to."""
    header = npy_bytes(header_of("'|u1'", f"({unpacked},)"))
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("key.npy", "w", force_zip64=True) as member,
    ):
        member.write(header)
        for _ in range(unpacked >> 20):
            member.write(bytes(1 << 20))
    if declared is not None:
        content = path.read_bytes()
        true = struct.pack("<Q", unpacked + len(header))
        plain = struct.pack("<I", unpacked + len(header))
        content = content.replace(true, struct.pack("<Q", declared))
        path.write_bytes(content.replace(plain, struct.pack("<I", declared)))


def test_bomb_is_refused_by_what_it_declares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "available_memory", lambda: 1 << 22)
    bomb(tmp_path / "a.npz", 1 << 23)
    message = refusal(tmp_path / "a.npz")
    assert "would unpack to 8,388" in message
    assert "4,194,304 are available; save it as .npy" in message


def test_bomb_that_declares_less_is_stopped_while_unpacking(tmp_path: Path) -> None:
    bomb(tmp_path / "a.npz", 1 << 23, declared=1000)
    assert "a.npz" in refusal(tmp_path / "a.npz")


def test_encrypted_and_unusual_compression_is_refused(tmp_path: Path) -> None:
    content = io.BytesIO()
    np.save(content, VALUES)
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("key.npy", content.getvalue())
    assert "unknown compression" in refusal(tmp_path / "a.npz")
    with zipfile.ZipFile(tmp_path / "b.npz", "w") as archive:
        archive.writestr("key.npy", content.getvalue())
    raw = bytearray((tmp_path / "b.npz").read_bytes())
    for place in (raw.index(b"PK\x03\x04") + 6, raw.index(b"PK\x01\x02") + 8):
        raw[place] |= 1
    (tmp_path / "b.npz").write_bytes(raw)
    assert "is encrypted" in refusal(tmp_path / "b.npz")


def test_wrong_checksum_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", key=VALUES)
    raw = bytearray((tmp_path / "a.npz").read_bytes())
    place = raw.index(VALUES.tobytes()[:32]) + 5
    raw[place] ^= 1
    (tmp_path / "a.npz").write_bytes(raw)
    assert "damaged archive: Bad CRC-32" in refusal(tmp_path / "a.npz")


def test_reading_an_archive_reports_progress(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", key=np.zeros(1 << 19))
    seen: list[tuple[int, int]] = []
    read_array(str(tmp_path / "a.npz"), lambda done, total: seen.append((done, total)))
    assert len(seen) > 2
    assert seen[-1] == (1 << 22, 1 << 22)
