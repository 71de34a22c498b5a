"""Kernel cache: looks a kernel up on disk before it is compiled, and stores it afterwards.

Takes a kernel's identifying text, its target processor, and the settings `cache`, `cache_dir` and
`cache_limit`; hands on the addresses of kernels that were loaded from disk. With the cache off it
loads and stores nothing.

>>> from tenfold.settings import options
>>> with options(cache=False):
...     print(kept_at("kernel of 1 axis, linear", "native").loaded(2, 1))
None
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tenfold._native import EntryPoint
from tenfold.caches import memoized
from tenfold.jit.cache_entry import CacheEntry
from tenfold.jit.disk_cache import DiskCache
from tenfold.jit.log_once import complain
from tenfold.jit.object_image import ObjectImage
from tenfold.jit.target_key import environment, key_of
from tenfold.settings import get

PLACES = 16
"""How many directories are known by what the settings name."""


@dataclass(frozen=True)
class CachedKernels:
    """The entries of one kernel, at any level of optimisation; without a store there are none."""

    text: str
    store: DiskCache | None
    environment: bytes

    def loaded(self, level: int, functions: int) -> list[EntryPoint] | None:
        """Return the functions of the machine code that was left, if there are so many; none where
        the system refuses memory for them.
        """
        if self.store is None:
            return None
        key = key_of(self.text, level, self.environment)
        return self.store.load(key, self.environment, functions)

    def has(self, level: int) -> bool:
        """Whether something was left; whether it can be trusted is seen when it is loaded."""
        if self.store is None:
            return False
        return self.store.has(key_of(self.text, level, self.environment))

    def keep(
        self, level: int, image: ObjectImage, functions: tuple[str, ...], seconds: float, note: str
    ) -> bool:
        """Leave machine code for later processes; whether that was possible."""
        if self.store is None:
            return False
        key = key_of(self.text, level, self.environment)
        places = tuple(image.places[name] for name in functions)
        entry = CacheEntry(key, self.environment, image.code, places, level, seconds, note)
        return self.store.put(entry)


def kept_at(text: str, cpu: str) -> CachedKernels:
    """Return what is kept of a kernel under the settings in force."""
    found = store()
    try:
        return CachedKernels(text, found, environment(cpu) if found is not None else b"")
    except OSError as error:
        complain(f"kernels are not kept: llvmlite is not as expected, {error}", once=True)
        return CachedKernels(text, None, b"")


def store() -> DiskCache | None:
    """Return the store under the settings in force; None where it is off or has no place."""
    if not get("cache"):
        return None
    named, limit = str(get("cache_dir")), int(get("cache_limit"))
    if named:
        return _store_in(named, limit)
    return _usual_store(os.environ.get("XDG_CACHE_HOME", ""), os.environ.get("HOME"), limit)


@memoized("directories of kernels that are named", PLACES)
def _store_in(named: str, limit: int) -> DiskCache:
    return DiskCache(Path(named), limit << 20)


# Where homes are is asked once: every kernel asks for the store. The arguments are what
# `directory` goes by: others, another place.
@memoized("usual directories of kernels", PLACES)
def _usual_store(caches: str, home: str | None, limit: int) -> DiskCache | None:  # noqa: ARG001
    place = directory()
    return None if place is None else DiskCache(place, limit << 20)


def directory() -> Path | None:
    """Return the directory that the settings name, or the default; None without a home."""
    if named := str(get("cache_dir")):
        return Path(named)
    try:
        usual = usual_directory()
    except RuntimeError:
        usual = None
    # a home that is named but does not exist is not to be made: users of services have such ones
    if usual is None or not (usual.parent.is_dir() or usual.parent.parent.is_dir()):
        complain("kernels are not kept: no home directory was found", once=True, expected=True)
        return None
    return usual


def usual_directory() -> Path:
    """Return the user's default cache directory. Raises RuntimeError without a home directory.

    `XDG_CACHE_HOME` is used only when it is absolute (XDG Base Directory Specification).
    """
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (given if given.is_absolute() else Path.home() / ".cache") / "tenfold"
