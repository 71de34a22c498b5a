"""Machine resources: the memory and processors that this process may use, within its cgroup.

Takes nothing. Hands on numbers: bytes and processors, within the limits of a container (cgroup).

    >>> available_memory() > 0
    True
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

CGROUP_ROOT = Path("/sys/fs/cgroup")
DEFAULT_MEMORY = 2**33
"""Bytes taken to be available where the system does not say: 8 GiB."""


def available_memory() -> int:
    """Bytes that can be allocated now without swapping, and within the container's limit."""
    return max(min([_system_memory(), *_cgroup_memory()]), 0)


def _system_memory() -> int:
    for line in _text(Path("/proc/meminfo")).splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return DEFAULT_MEMORY


def _cgroup_memory() -> Iterator[int]:
    """What each enclosing cgroup still allows: version 2, then version 1."""
    for folder in _cgroups():
        yield from _cgroup_headroom(folder, "memory.max", "memory.current", "")
    yield from _cgroup_headroom(
        CGROUP_ROOT / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_"
    )


def _cgroup_headroom(folder: Path, limit: str, used: str, prefix: str) -> Iterator[int]:
    """What one cgroup still allows. The contents of files in memory are counted as used, but give
    way to who needs it: in a container that has read or written much they fill it to its limit.
    """
    most, now = _text(folder / limit).strip(), _text(folder / used).strip()
    if not (most.isdigit() and now.isdigit()):
        return
    pairs = [line.split() for line in _text(folder / "memory.stat").splitlines()]
    counts = {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}
    cached = sum(counts.get(f"{prefix}{kind}_file", 0) for kind in ("active", "inactive"))
    yield int(most) - int(now) + cached


def group_processors() -> float | None:
    """Processors the container may use on average (its CPU quota), or None without a quota."""
    quotas = []
    for folder in _cgroups():
        words = _text(folder / "cpu.max").split()
        if len(words) == 2 and words[0].isdigit() and int(words[1]) > 0:
            quotas.append(int(words[0]) / int(words[1]))
    old = CGROUP_ROOT / "cpu"
    quota, period = _text(old / "cpu.cfs_quota_us"), _text(old / "cpu.cfs_period_us")
    if quota.strip().isdigit() and period.strip().isdigit() and int(period) > 0:
        quotas.append(int(quota) / int(period))
    return min(quotas, default=None)


def _cgroups() -> list[Path]:
    """The version 2 cgroup of this process and those around it."""
    for line in _text(Path("/proc/self/cgroup")).splitlines():
        if line.startswith("0::"):
            own = CGROUP_ROOT / line[3:].strip().lstrip("/")
            return [own, *(p for p in own.parents if p.is_relative_to(CGROUP_ROOT))]
    return []


def affinity() -> int:
    """Processors this process may be scheduled on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processor() -> tuple[str, frozenset[str]]:
    """The processor's name and its feature flags, both empty where the system does not say."""
    name, flags = "", frozenset[str]()
    for line in _text(Path("/proc/cpuinfo")).splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            name = name or value.strip()
        elif key.strip() in ("flags", "Features"):
            flags = flags or frozenset(value.split())
    return name, flags


def _text(path: Path) -> str:
    """The file's text, or "" if the file does not exist: it is optional."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
