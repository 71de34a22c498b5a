"""Writing: the new file whole, or the old one untouched, and never anything left behind."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import numpy as np
import pytest

from tenfold.io import file_writing
from tenfold.io.arrays import read_array
from tenfold.io.file_writing import check_output, open_replacing, write_arrays
from tenfold.io.input_errors import OutputError

VALUES = np.arange(6, dtype=np.float32).reshape(2, 3)
DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_written_file_is_read_by_us_and_by_numpy(
    tmp_path: Path, dtype: str, shape: tuple[int, ...]
) -> None:
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    write_arrays(str(tmp_path / "a.npy"), {"result": values})
    write_arrays(str(tmp_path / "a.npz"), {"one": values, "file": values})
    for found in (
        np.load(tmp_path / "a.npy"),
        np.load(tmp_path / "a.npz")["file"],
        read_array(str(tmp_path / "a.npy")),
        read_array(f"{tmp_path / 'a.npz'}:one"),
    ):
        assert found.dtype == values.dtype
        np.testing.assert_array_equal(found, values)
    assert names(tmp_path) == ["a.npy", "a.npz"]


def test_layouts_are_written_in_their_logical_order(tmp_path: Path) -> None:
    for values in (VALUES.T, VALUES[:, ::-1], np.broadcast_to(VALUES, (4, 2, 3))):
        write_arrays(str(tmp_path / "a.npy"), {"result": values})
        np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), values)


def test_equal_arrays_give_equal_archives(tmp_path: Path) -> None:
    for name in ("a.npz", "b.npz"):
        write_arrays(str(tmp_path / name), {"one": VALUES})
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_bytes_written_are_reported(tmp_path: Path) -> None:
    seen: list[int] = []
    write_arrays(str(tmp_path / "a.npy"), {"result": VALUES}, seen.append)
    assert sum(seen) == (tmp_path / "a.npy").stat().st_size


def test_dtype_without_a_name_in_files_is_refused(tmp_path: Path) -> None:
    import ml_dtypes

    with pytest.raises(OutputError, match=r"bfloat16.*add --dtype float32"):
        write_arrays(str(tmp_path / "a.npy"), {"result": VALUES.astype(ml_dtypes.bfloat16)})
    assert names(tmp_path) == []


@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
def test_old_file_is_untouched_when_writing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(b"old")

    def full(descriptor: int) -> None:
        raise failure

    monkeypatch.setattr(os, "fsync", full)
    expected = OutputError if isinstance(failure, OSError) else KeyboardInterrupt
    with pytest.raises(expected):
        write_arrays(str(path), {"result": VALUES})
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a.npy"]


def test_full_disk_is_told_in_one_line(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    with pytest.raises(OutputError, match="No space left"), open_replacing(str(tmp_path / "a")):
        Path("/dev/full").write_bytes(bytes(10))
    assert names(tmp_path) == []


def test_file_is_not_there_before_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    with open_replacing(str(path)) as file:
        file.write(b"half")
        assert not path.exists()
    assert path.read_bytes() == b"half"


def test_old_permissions_are_kept_and_new_ones_follow_the_umask(tmp_path: Path) -> None:
    old, new = tmp_path / "old.npy", tmp_path / "new.npy"
    old.write_bytes(b"")
    old.chmod(0o640)
    before = os.umask(0o027)
    try:
        for path in (old, new):
            write_arrays(str(path), {"result": VALUES})
    finally:
        os.umask(before)
    assert stat.S_IMODE(old.stat().st_mode) == 0o640
    assert stat.S_IMODE(new.stat().st_mode) == 0o640


def test_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "a.npy").symlink_to(tmp_path / "folder" / "b.npy")
    write_arrays(str(tmp_path / "a.npy"), {"result": VALUES})
    assert (tmp_path / "a.npy").is_symlink()
    np.testing.assert_array_equal(np.load(tmp_path / "folder" / "b.npy"), VALUES)


def test_input_may_be_the_output(tmp_path: Path) -> None:
    path = str(tmp_path / "a.npy")
    write_arrays(path, {"result": VALUES})
    mapped = read_array(path)
    write_arrays(path, {"result": mapped[::-1]})
    np.testing.assert_array_equal(read_array(path), VALUES[::-1])
    np.testing.assert_array_equal(mapped, VALUES)


def test_longest_name_can_be_written(tmp_path: Path) -> None:
    name = "a" * 251 + ".npy"
    write_arrays(str(tmp_path / name), {"result": VALUES})
    assert names(tmp_path) == [name]


def test_unwritable_result_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder.npy").mkdir()
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    os.mkfifo(tmp_path / "pipe")
    cases = {
        str(tmp_path / "missing" / "a.npy"): "directory does not exist",
        str(tmp_path / "folder.npy"): "not a regular file",
        str(tmp_path / "pipe"): "not a regular file",
        str(tmp_path / "circle"): "cannot be written",
        "/dev/null": "not a regular file",
        str(tmp_path / ("a" * 300)): "File name too long",
        "a\0b": "cannot be written",
    }
    for path, reason in cases.items():
        with pytest.raises(OutputError, match=reason):
            check_output(path)
    # A superuser may write anywhere, so permission itself is played.
    (tmp_path / "a.npy").write_bytes(b"old")
    monkeypatch.setattr(file_writing.os, "access", lambda path, mode: not Path(path).is_dir())
    with pytest.raises(OutputError, match="closed to writing"):
        check_output(str(tmp_path / "a.npy"))
    monkeypatch.setattr(file_writing.os, "access", lambda path, mode: Path(path).is_dir())
    with pytest.raises(OutputError, match="the file there is read-only"):
        check_output(str(tmp_path / "a.npy"))
