"""Kernels on disk: what is kept is found, and whatever is wrong there is a miss and one line."""

from __future__ import annotations

import ctypes
import logging
import os
import random
import re
import stat
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import tenfold as tn
from tenfold.dtypes import FLOAT32
from tenfold.jit import atomic_write, kernel_cache, log_once
from tenfold.jit import disk_cache as stores
from tenfold.jit import target_key as environments
from tenfold.jit.cache_entry import (
    ENTRY_FORMAT,
    HASH,
    HEAD,
    CacheEntry,
    InvalidEntry,
    pack_entry,
    unpack_entry,
)
from tenfold.jit.compiler import compile_ir
from tenfold.jit.digest import digest
from tenfold.jit.disk_cache import DiskCache
from tenfold.jit.program import source_of
from tenfold.jit.target_key import environment, kernel_key
from tenfold.ops.arithmetic import multiply
from tenfold.schedule.generic_elementwise import GenericElementwise
from tenfold.schedule.target import target_of

KEY, OTHER, PLACE = bytes(range(32)), bytes(range(1, 33)), b"the processor and the versions.."
ENTRY = CacheEntry(KEY, PLACE, bytes(range(256)) * 9, (0, 512), 2, 0.25, "linear float64: add")
MIB = 1 << 20
ANOTHER = os.geteuid() + 1


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DiskCache:
    """A store in a directory that does not exist yet, with nothing said so far."""
    monkeypatch.setattr(stores, "_tidied", set())
    monkeypatch.setattr(log_once, "_logged", set())
    return DiskCache(tmp_path / "cache", MIB)


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """What has been logged since one asked last."""
    caplog.set_level(logging.INFO, "tenfold")

    def found() -> list[str]:
        said = [record.getMessage() for record in caplog.records]
        caplog.clear()
        return said

    return found


Lines = Callable[[], list[str]]


def signed(content: bytes) -> bytes:
    """Content with the hash that belongs to it."""
    return content + digest(content)


def test_stored_kernel_is_found(store: DiskCache, lines: Lines) -> None:
    assert store.load(KEY, PLACE, 2) is None
    assert store.store(ENTRY)
    assert store.read(KEY.hex()) == ENTRY
    assert store.load(OTHER, PLACE, 2) is None
    assert lines() == []


def test_loaded_functions_lie_as_far_apart_as_they_did(store: DiskCache) -> None:
    store.store(ENTRY)
    functions = store.load(KEY, PLACE, 2) or ()  # their code stays as long as they do
    first, second = (each.address for each in functions)
    assert first % 4096 == 0
    assert second - first == 512
    assert ctypes.string_at(first, len(ENTRY.code)) == ENTRY.code


def test_entries_and_their_directory_are_the_users_alone(store: DiskCache) -> None:
    before = os.umask(0)
    try:
        store.store(ENTRY)
    finally:
        os.umask(before)
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o700
    assert stat.S_IMODE((store.path / KEY.hex()).stat().st_mode) == 0o600


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[HEAD.size + 700] ^= 16
    path.write_bytes(data)


def link(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.symlink_to("moved")


def dangle(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def open_to_others(path: Path) -> None:
    path.chmod(0o660)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def make_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def make_a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.truncate(1 << 30)


def lengthen(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


def write_something_else(path: Path) -> None:
    path.write_bytes(b"something else\n" * 100)


def give_another_format(path: Path) -> None:
    data = path.read_bytes()[:-HASH]
    path.write_bytes(signed(data[:8] + b"\x63\0\0\0" + data[12:]))


def compile_for_another_processor(path: Path) -> None:
    path.write_bytes(pack_entry(replace(ENTRY, environment=OTHER)))


def give_it_more_functions(path: Path) -> None:
    path.write_bytes(pack_entry(replace(ENTRY, function_offsets=(0, 512, 513))))


def swap(path: Path) -> None:
    path.write_bytes(pack_entry(replace(ENTRY, key=OTHER)))


def begin_behind_the_end(path: Path) -> None:
    path.write_bytes(pack_entry(replace(ENTRY, function_offsets=(0, len(ENTRY.code)))))


def claim_huge_lengths(path: Path) -> None:
    head = HEAD.pack(b"TENFOLD\n", ENTRY_FORMAT, 2, 2, 19, 1 << 62, 0, PLACE, KEY)
    path.write_bytes(signed(head + bytes(2000)))


WRONG: dict[Callable[[Path], None], str] = {
    cut: "it is damaged: [0-9]+ bytes, not",
    flip: "it is damaged: its hash is another",
    link: "it is a symbolic link",
    dangle: "it is a symbolic link",
    open_to_others: "others may use it, its mode is 660",
    empty: "it is damaged: 0 bytes",
    make_a_pipe: "it is not a file",
    make_a_directory: "it is not a file",
    grow: "it is damaged: 1073741824 bytes",
    lengthen: "it is damaged: [0-9]+ bytes, not",
    write_something_else: "it is not a kernel",
    give_another_format: f"its format is 99, not {ENTRY_FORMAT}",
    compile_for_another_processor: "it is for another processor, or by another version",
    give_it_more_functions: "it has 3 functions, not 2",
    swap: "it is the entry of another kernel",
    begin_behind_the_end: "a function begins behind its end",
    claim_huge_lengths: "it is damaged: no kernel has such lengths",
}


@pytest.mark.parametrize("spoil", WRONG, ids=lambda spoil: spoil.__name__)
def test_changed_entry_is_a_miss_and_one_line(
    store: DiskCache, lines: Lines, spoil: Callable[[Path], None]
) -> None:
    store.store(ENTRY)
    path = store.path / KEY.hex()
    spoil(path)
    assert store.load(KEY, PLACE, 2) is None
    (line,) = lines()
    assert KEY.hex() in line
    assert re.search(WRONG[spoil], line)
    if spoil is make_a_directory:
        return
    assert store.store(ENTRY)  # the next to compile it puts it right
    assert store.read(KEY.hex()) == ENTRY
    assert lines() == []


def test_foreign_entry_is_a_miss(
    store: DiskCache, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.store(ENTRY)
    own = os.geteuid()
    owners = iter([own, own + 1])  # the directory's, then the file's
    monkeypatch.setattr(os, "geteuid", lambda: next(owners))
    assert store.load(KEY, PLACE, 2) is None
    (line,) = lines()
    assert "it belongs to another user" in line
    assert KEY.hex() in line


@pytest.mark.skipif(os.geteuid() != 0, reason="who is not root gives no file away")
def test_entry_that_was_given_away_is_a_miss(store: DiskCache, lines: Lines) -> None:
    store.store(ENTRY)
    os.chown(store.path / KEY.hex(), ANOTHER, -1)
    assert store.load(KEY, PLACE, 2) is None
    assert "it belongs to another user" in lines()[0]
    os.chown(store.path, ANOTHER, -1)
    assert store.load(KEY, PLACE, 2) is None
    assert "it belongs to another user" in lines()[0]


def test_foreign_directory_is_not_used(
    store: DiskCache, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.store(ENTRY)
    monkeypatch.setattr(os, "geteuid", lambda: ANOTHER)
    for _ in range(3):  # said once: a program has many kernels
        assert store.load(KEY, PLACE, 2) is None
        assert not store.store(ENTRY)
    (line,) = lines()
    assert "it belongs to another user" in line


def test_directory_that_others_can_use_is_not_used(store: DiskCache, lines: Lines) -> None:
    store.store(ENTRY)
    store.path.chmod(0o770)
    assert store.load(KEY, PLACE, 2) is None
    assert not store.store(ENTRY)
    (line,) = lines()
    assert "its mode is 770" in line


def test_directory_that_is_a_link_is_not_used(store: DiskCache, lines: Lines) -> None:
    store.store(ENTRY)
    store.path.rename(store.base / "elsewhere")
    store.path.symlink_to("elsewhere")
    assert store.load(KEY, PLACE, 2) is None
    assert not store.store(ENTRY)
    (line,) = lines()
    assert "it is not a directory" in line


def test_no_directory_is_made_in_one_of_another_user(
    store: DiskCache, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.base.mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: ANOTHER)
    assert not store.store(ENTRY)
    assert not store.path.exists()
    assert len(lines()) == 1


@pytest.mark.parametrize("number", [28, 30, 13, 122])  # full, read-only, no right, over quota
def test_failing_writes_are_one_line_and_leave_nothing(
    store: DiskCache, lines: Lines, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", refuse)
        for _ in range(3):
            assert not store.store(ENTRY)
    (line,) = lines()
    assert os.strerror(number) in line
    assert list((store.path / atomic_write.WRITING).iterdir()) == []
    assert store.store(ENTRY)


def test_short_writes_are_continued(store: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda file, data: write(file, data[:7]))
        assert store.store(ENTRY)
    assert store.read(KEY.hex()) == ENTRY


def test_a_place_that_cannot_be_is_one_line(store: DiskCache, lines: Lines) -> None:
    store.base.write_text("a file, no directory")
    for _ in range(3):
        assert not store.store(ENTRY)
        assert store.load(KEY, PLACE, 2) is None
    assert len(lines()) == 2  # of reading and of writing


def test_flipped_bits_are_never_loaded(store: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(stores, "log_warning", said.append)
    store.store(ENTRY)
    data, choices, path = pack_entry(ENTRY), random.Random(0), store.path / KEY.hex()
    with path.open("r+b", buffering=0) as file:
        for _ in range(10_000):
            bit = choices.randrange(8 * len(data))
            spoilt = data[bit // 8] ^ 1 << bit % 8
            os.pwrite(file.fileno(), bytes([spoilt]), bit // 8)
            assert store.load(KEY, PLACE, 2) is None
            os.pwrite(file.fileno(), data[bit // 8 : bit // 8 + 1], bit // 8)
    assert len(said) == 10_000
    assert store.read(KEY.hex()) == ENTRY


def test_every_end_is_refused() -> None:
    data = pack_entry(replace(ENTRY, code=b"\xc3" * 100))
    for length in range(len(data)):
        with pytest.raises(InvalidEntry):
            unpack_entry(data[:length])


def test_whatever_has_its_hash_is_an_entry_or_is_refused() -> None:
    content, choices = pack_entry(replace(ENTRY, code=b"\xc3" * 100))[:-HASH], random.Random(0)
    for _ in range(2_000):
        spoilt = bytearray(content)
        for _ in range(choices.randrange(1, 6)):
            spoilt[choices.randrange(HEAD.size)] = choices.choice((0, 1, choices.randrange(256)))
        try:
            entry = unpack_entry(signed(bytes(spoilt)))
        except InvalidEntry:
            continue
        assert all(offset < len(entry.code) for offset in entry.function_offsets)


def test_least_recently_used_kernel_is_removed_first(store: DiskCache) -> None:
    size = 1 << 16
    entries = [replace(ENTRY, key=bytes([0, i]) + KEY[2:], code=bytes(size)) for i in range(40)]
    for age, entry in enumerate(entries):
        store.store(entry)
        used = 1e9 + age
        os.utime(store.path / entry.key.hex(), (used, used))
    found = store.files()
    assert sum(file.size for file in found) <= MIB
    kept = {file.name for file in found}
    newest = {entry.key.hex() for entry in entries[-8:]}
    assert newest <= kept
    assert entries[0].key.hex() not in kept


def test_use_is_noted_in_the_file(store: DiskCache) -> None:
    store.store(ENTRY)
    path = store.path / KEY.hex()
    os.utime(path, (1e9, 1e9))
    store.read(KEY.hex())  # as who lists what there is
    assert path.stat().st_mtime == 1e9
    store.load(KEY, PLACE, 2)
    assert path.stat().st_mtime > 1.5e9


def test_an_entry_larger_than_the_limit_is_not_kept(tmp_path: Path) -> None:
    assert not DiskCache(tmp_path, 1000).store(ENTRY)


def test_clearing_leaves_what_is_not_ours(store: DiskCache) -> None:
    store.store(ENTRY)
    store.store(replace(ENTRY, key=OTHER))
    (store.path / "notes").write_text("not ours")
    assert store.clear() == 2
    assert sorted(path.name for path in store.path.iterdir()) == ["notes", atomic_write.WRITING]


def test_directory_is_that_of_the_settings_or_the_users_caches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with tn.options(cache_dir=""):
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        assert kernel_cache.directory() == tmp_path / ".cache" / "tenfold"
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
        assert kernel_cache.directory() == tmp_path / "caches" / "tenfold"
        monkeypatch.setenv("XDG_CACHE_HOME", "caches")  # not absolute: not used
        assert kernel_cache.directory() == tmp_path / ".cache" / "tenfold"
    with tn.options(cache_dir=str(tmp_path / "own")):
        assert kernel_cache.directory() == tmp_path / "own"


def test_a_home_that_does_not_exist_is_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: Lines
) -> None:
    monkeypatch.setattr(log_once, "_logged", set())
    monkeypatch.setenv("HOME", str(tmp_path / "nowhere"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    with tn.options(cache_dir="", cache=True):
        assert kernel_cache.configured_cache() is None
        assert kernel_cache.cached_kernels("a text", "native").load((2,), 1) is None
    assert lines() == ["kernels are not kept: no home directory was found"]


def test_an_entry_is_for_one_text_level_processor_and_version() -> None:
    here = environment("native")
    keys = {
        kernel_key(text, level, at) for text in "ab" for level in (0, 2) for at in (here, PLACE)
    }
    assert len(keys) == 8
    assert len({environment(cpu) for cpu in ("native", "x86-64", "x86-64-v2")}) == 3


def test_another_build_of_the_compiler_is_another_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = environment("native")
    monkeypatch.setattr(environments, "_llvm_build", lambda: b"another")
    assert environment.__wrapped__("native") != here


def test_code_generator_is_part_of_the_environment() -> None:
    ran: set[str] = set()
    loop = GenericElementwise(
        multiply, (), ((FLOAT32, False), (FLOAT32, True)), (FLOAT32,) * 2, FLOAT32, "s"
    )
    compile_ir(source_of(loop, target_of("native")), "native", 0)  # imports what it needs
    sys.setprofile(lambda frame, event, given: ran.add(frame.f_code.co_filename))
    try:
        compile_ir(source_of(loop, target_of("native")), "native", 0)
    finally:
        sys.setprofile(None)
    package = Path(tn.__file__).parent
    places = {Path(name).relative_to(package).parts[0] for name in ran if str(package) in name}
    assert (
        {"schedule", "codegen"}
        < places
        <= {*environments.SOURCE_FOLDERS, "dtypes.py", "settings.py"}
    )


def test_other_sources_are_another_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    hash_of = environment.__wrapped__
    before = hash_of("native")
    assert hash_of("native") == before
    monkeypatch.setattr(environments, "SOURCE_FOLDERS", environments.SOURCE_FOLDERS[1:])
    assert hash_of("native") != before


def test_a_compiler_in_an_unexpected_place_is_one_line(
    monkeypatch: pytest.MonkeyPatch, lines: Lines, tmp_path: Path
) -> None:
    monkeypatch.setattr(log_once, "_logged", set())
    monkeypatch.setattr(environments, "LIBRARY", "another.so")
    monkeypatch.setattr(kernel_cache, "environment", environment.__wrapped__)
    with tn.options(cache=True, cache_dir=str(tmp_path)):
        for _ in range(2):
            assert kernel_cache.cached_kernels("a text", "native").store is None
    (line,) = lines()
    assert "llvmlite is not as expected" in line
