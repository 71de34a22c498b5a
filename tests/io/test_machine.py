"""What the system says of memory and processors, read from files played by the tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenfold import machine


def play(monkeypatch: pytest.MonkeyPatch, files: dict[str, str]) -> None:
    monkeypatch.setattr(machine, "_text", lambda path: files.get(str(path), ""))


def test_memory_and_processors_of_this_machine_are_positive() -> None:
    assert machine.available_memory() > 0
    assert machine.affinity() >= 1


def test_memory_is_the_least_of_the_system_and_the_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"/proc/meminfo": "MemTotal: 9 kB\nMemAvailable:  8 kB\n"}
    play(monkeypatch, files)
    assert machine.available_memory() == 8192
    files["/proc/self/cgroup"] = "0::/outer/inner\n"
    files["/sys/fs/cgroup/outer/inner/memory.max"] = "max\n"
    files["/sys/fs/cgroup/outer/memory.max"] = "5000\n"
    files["/sys/fs/cgroup/outer/memory.current"] = "1000\n"
    assert machine.available_memory() == 4000
    files["/sys/fs/cgroup/memory/memory.limit_in_bytes"] = "900"
    files["/sys/fs/cgroup/memory/memory.usage_in_bytes"] = "1000"
    assert machine.available_memory() == 0


@pytest.mark.parametrize(
    ("folder", "limit", "used", "prefix"),
    [
        ("/sys/fs/cgroup/a", "memory.max", "memory.current", ""),
        ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),
    ],
)
def test_contents_of_files_leave_the_memory_of_a_group_to_who_needs_it(
    monkeypatch: pytest.MonkeyPatch, folder: str, limit: str, used: str, prefix: str
) -> None:
    files = {"/proc/meminfo": "MemAvailable: 8 kB\n", "/proc/self/cgroup": "0::/a\n"}
    files |= {f"{folder}/{limit}": "5000\n", f"{folder}/{used}": "5000\n"}
    play(monkeypatch, files)
    assert machine.available_memory() == 0
    files[f"{folder}/memory.stat"] = (
        f"anon 3000\n{prefix}active_file 300\n{prefix}inactive_file 1000\nx\n"
    )
    assert machine.available_memory() == 1300


def test_quota_is_the_least_of_the_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"/proc/self/cgroup": "1:name=x:/\n0::/a\n", "/sys/fs/cgroup/a/cpu.max": "max 100000"}
    play(monkeypatch, files)
    assert machine.group_processors() is None
    files["/sys/fs/cgroup/cpu.max"] = "150000 100000"
    assert machine.group_processors() == 1.5
    files["/sys/fs/cgroup/cpu/cpu.cfs_quota_us"] = "50000"
    files["/sys/fs/cgroup/cpu/cpu.cfs_period_us"] = "100000"
    assert machine.group_processors() == 0.5


def test_processor_without_a_name_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    play(monkeypatch, {})
    assert machine.processor() == ("", frozenset())
    assert machine.group_processors() is None
    play(monkeypatch, {"/proc/cpuinfo": "model name\t: Fast\nflags\t: avx2 fma\nflags\t: avx2\n"})
    assert machine.processor() == ("Fast", frozenset({"avx2", "fma"}))


def test_unreadable_file_reads_as_nothing(tmp_path: Path) -> None:
    assert machine._text(tmp_path / "missing") == ""
