"""Machine resources: the memory and processors that this process may use, within its cgroup.

Returns numbers of bytes and processors, within the limits of a container (cgroup).

    >>> available_memory() > 0
    True
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

CGROUP_ROOT = Path("/sys/fs/cgroup")
DEFAULT_MEMORY = 2**33
"""Assumed available bytes where the system does not report them: 8 GiB."""


def available_memory() -> int:
    """Return the bytes that can be allocated without swapping, within the container's limit."""
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
    """Yield the remaining memory of each enclosing cgroup: version 2, then version 1."""
    for folder in _cgroups():
        yield from _cgroup_headroom(folder, "memory.max", "memory.current", "")
    yield from _cgroup_headroom(
        CGROUP_ROOT / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_"
    )


def _cgroup_headroom(folder: Path, limit: str, usage: str, prefix: str) -> Iterator[int]:
    """Yield the remaining memory of one cgroup. The page cache counts as available.

    The kernel counts it as used, but reclaims it on demand.
    """
    limit_text, usage_text = _text(folder / limit).strip(), _text(folder / usage).strip()
    if not (limit_text.isdigit() and usage_text.isdigit()):
        return
    pairs = [line.split() for line in _text(folder / "memory.stat").splitlines()]
    counts = {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}
    cached = sum(counts.get(f"{prefix}{kind}_file", 0) for kind in ("active", "inactive"))
    yield int(limit_text) - int(usage_text) + cached


def group_processors() -> float | None:
    """Return the CPU quota of the container in processors, or None without a quota."""
    quotas = []
    for folder in _cgroups():
        fields = _text(folder / "cpu.max").split()
        if len(fields) == 2 and fields[0].isdigit() and int(fields[1]) > 0:
            quotas.append(int(fields[0]) / int(fields[1]))
    cgroup_v1 = CGROUP_ROOT / "cpu"
    quota, period = _text(cgroup_v1 / "cpu.cfs_quota_us"), _text(cgroup_v1 / "cpu.cfs_period_us")
    if quota.strip().isdigit() and period.strip().isdigit() and int(period) > 0:
        quotas.append(int(quota) / int(period))
    return min(quotas, default=None)


def _cgroups() -> list[Path]:
    """Return the version 2 cgroup of this process and its ancestors."""
    for line in _text(Path("/proc/self/cgroup")).splitlines():
        if line.startswith("0::"):
            cgroup = CGROUP_ROOT / line[3:].strip().lstrip("/")
            return [cgroup, *(p for p in cgroup.parents if p.is_relative_to(CGROUP_ROOT))]
    return []


def usable_processors() -> int:
    """Return the number of processors that affinity and the container leave to this process."""
    quota = group_processors()
    return affinity() if quota is None else min(affinity(), max(1, round(quota)))


def affinity() -> int:
    """Return the number of processors that this process may be scheduled on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processor() -> tuple[str, frozenset[str]]:
    """Return the processor's name and feature flags, both empty where they are unknown."""
    name, flags = "", frozenset[str]()
    for line in _text(Path("/proc/cpuinfo")).splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            name = name or value.strip()
        elif key.strip() in ("flags", "Features"):
            flags = flags or frozenset(value.split())
    return name, flags


def _text(path: Path) -> str:
    """Return the text of an optional file, or "" if it does not exist."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
