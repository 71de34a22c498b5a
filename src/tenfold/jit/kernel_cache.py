"""Kernel cache: looks a kernel up on disk before it is compiled, and stores it afterwards.

Takes a kernel's identifying text, its target processor, and the settings `cache`, `cache_dir` and
`cache_limit`; hands on the addresses of kernels that were loaded from disk. With the cache off it
loads and stores nothing.

>>> from tenfold.settings import options
>>> with options(cache=False):
...     print(cached_kernels("kernel of 1 axis, linear", "native").load((2,), 1))
None
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tenfold._native import EntryPoint
from tenfold.caches import memoized
from tenfold.jit.cache_entry import CacheEntry
from tenfold.jit.disk_cache import DiskCache
from tenfold.jit.log_once import log_warning
from tenfold.jit.object_image import ObjectImage
from tenfold.jit.target_key import environment, kernel_key
from tenfold.settings import get


@dataclass(frozen=True)
class CachedKernels:
    """The disk entries of one kernel, at any optimisation level; none without a store."""

    text: str
    store: DiskCache | None
    environment: bytes

    def load(self, levels: tuple[int, ...], functions: int) -> tuple[int, list[EntryPoint]] | None:
        """Return the first of these levels with a valid entry, and its functions: an empty list if
        the system refuses executable memory.
        """
        if self.store is None:
            return None
        keys = tuple(map(partial(kernel_key, self.text, environment=self.environment), levels))
        found = self.store.load_first(keys, self.environment, functions)
        return None if found is None else (levels[found[0]], found[1])

    def has(self, level: int) -> bool:
        """Whether an entry exists; `load` validates it."""
        if self.store is None:
            return False
        return self.store.has(kernel_key(self.text, level, self.environment))

    def save(
        self, level: int, image: ObjectImage, functions: tuple[str, ...], seconds: float, note: str
    ) -> bool:
        """Store machine code for later processes; return whether it succeeded."""
        if self.store is None:
            return False
        key = kernel_key(self.text, level, self.environment)
        offsets = tuple(image.function_offsets[name] for name in functions)
        entry = CacheEntry(key, self.environment, image.code, offsets, level, seconds, note)
        return self.store.store(entry)


def cached_kernels(text: str, cpu: str) -> CachedKernels:
    """Return the disk entries of a kernel under the settings in force."""
    cache = configured_cache()
    try:
        return CachedKernels(text, cache, environment(cpu) if cache is not None else b"")
    except OSError as error:
        log_warning(f"kernels are not kept: llvmlite is not as expected, {error}", once=True)
        return CachedKernels(text, None, b"")


def configured_cache() -> DiskCache | None:
    """Return the disk cache under the settings in force; None if it is off or has no directory."""
    if not get("cache"):
        return None
    home = os.environ.get("XDG_CACHE_HOME", ""), os.environ.get("HOME")
    stores = _stores(int(get("cache_limit")), str(get("cache_dir")), home)
    return stores[0] if stores else None


@memoized("disk caches", 16, "each new kernel asks, and looking for a home takes 20 microseconds")
def _stores(
    limit: int,
    named: str,  # noqa: ARG001  # the key: `directory` reads the setting
    home: tuple[str, str | None],  # noqa: ARG001  # the key: `directory` reads the environment
) -> tuple[DiskCache, ...]:
    """Return the disk cache, if it has a directory."""
    path = directory()
    return () if path is None else (DiskCache(path, limit << 20),)


def directory() -> Path | None:
    """Return the directory that the settings name, or the default; None without a home."""
    if path := str(get("cache_dir")):
        return Path(path)
    try:
        default = default_directory()
    except RuntimeError:
        default = None
    # a home directory that does not exist is not created: users of services have such homes
    if default is None or not (default.parent.is_dir() or default.parent.parent.is_dir()):
        log_warning("kernels are not kept: no home directory was found", once=True, expected=True)
        return None
    return default


def default_directory() -> Path:
    """Return the user's default cache directory. Raises RuntimeError without a home directory.

    `XDG_CACHE_HOME` is used only when it is absolute (XDG Base Directory Specification).
    """
    cache_home = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (cache_home if cache_home.is_absolute() else Path.home() / ".cache") / "tenfold"
