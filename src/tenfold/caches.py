"""Cache registry: lists every cache of the library, with one LRU cache class for Python modules.

A cache stores entries and evicts the least recently used ones. A cache with a name is registered;
native code has its own registry (`native/memory/cache_registry.h`). `tn.trim` empties all caches,
`tenfold doctor` lists them.

Not caches: tables with an entry for each operation, dtype or library routine, and facts stored on
an object.

>>> halves: LruCache[int, float] = LruCache(capacity=2)
>>> for number in range(5):
...     halves[number] = number / 2
>>> len(halves) <= 2, halves.get(4), halves.get(0)
(True, 2.0, None)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, Protocol, TypeVar, cast

from tenfold import _native

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")
Function = TypeVar("Function", bound=Callable[..., Any])


class Evictable(Protocol):
    """A cache that can be registered."""

    @property
    def capacity(self) -> int:
        """The maximal number of entries."""

    def __len__(self) -> int: ...

    def clear(self) -> None:
        """Drop all entries."""


@dataclass(frozen=True)
class CacheFacts:
    """The fill level of a cache."""

    name: str
    entries: int
    capacity: int


_caches: dict[str, Evictable] = {}


def register(name: str, cache: Evictable) -> None:
    """Register a cache."""
    assert name not in _caches, f"two caches are called {name!r}"
    _caches[name] = cache


def facts() -> Iterator[CacheFacts]:
    """Yield the fill level of each cache."""
    for name, cache in _caches.items():
        yield CacheFacts(name, len(cache), cache.capacity)
    for name, entries, capacity in _native.caches():
        yield CacheFacts(name, entries, capacity)


def clear_all() -> int:
    """Empty all caches; return the bytes released to the system."""
    for cache in _caches.values():
        cache.clear()
    return _native.trim()


class LruCache(Generic[Key, Item]):
    """A mapping of bounded size that evicts least recently used entries.

    Two generations approximate LRU order: a used entry moves to the young generation. When that
    fills half of the capacity, the old one is dropped. There is no lock: each step is one call,
    atomic under the GIL, and of two threads that store one key at once either may win.
    """

    def __init__(self, capacity: int, name: str = "") -> None:
        self.capacity = capacity
        self._generations: tuple[dict[Any, Item], dict[Any, Item]] = ({}, {})
        if name:
            register(name, self)

    def get(self, key: Key) -> Item | None:
        """Return the item of a key, or None; items are never None."""
        stored_key = key if _bits is None else _TruncatedHash(key)
        recent, old = self._generations
        item = recent.get(stored_key)
        if item is None and old and (item := old.pop(stored_key, None)) is not None:
            self._young()[stored_key] = item
        return item

    def __setitem__(self, key: Key, item: Item) -> None:
        stored_key = key if _bits is None else _TruncatedHash(key)
        if self._generations[1]:
            self._generations[1].pop(stored_key, None)
        self._young()[stored_key] = item

    def setdefault(self, key: Key, item: Item) -> Item:
        """Return the item of a key; store `item` if there is none."""
        cached = self.get(key)
        if cached is not None:
            return cached
        stored_key = key if _bits is None else _TruncatedHash(key)
        return self._young().setdefault(stored_key, item)

    def _young(self) -> dict[Any, Item]:
        """Return the young generation, after eviction if it is full."""
        recent, _ = self._generations
        if len(recent) >= max(self.capacity // 2, 1):
            self._generations = ({}, recent)
        return self._generations[0]

    def __contains__(self, key: Key) -> bool:
        return self.get(key) is not None

    def __len__(self) -> int:
        return sum(map(len, self._generations))

    def drop(self, unwanted: Callable[[Any], bool]) -> None:
        """Drop the entries whose keys satisfy `unwanted`."""
        for generation in self._generations:
            for stored_key in list(generation):
                if unwanted(
                    stored_key.key if isinstance(stored_key, _TruncatedHash) else stored_key
                ):
                    generation.pop(stored_key, None)

    def clear(self) -> None:
        """Drop all entries."""
        self._generations = ({}, {})


class _Memoised:
    """The cached results of a function."""

    def __init__(self, function: Any, capacity: int) -> None:
        self.function, self.capacity = function, capacity

    def __len__(self) -> int:
        return int(self.function.cache_info().currsize)

    def clear(self) -> None:
        self.function.cache_clear()


def memoized(name: str, capacity: int) -> Callable[[Function], Function]:
    """Decorate a function with a registered `functools.lru_cache`."""

    def decorate(function: Function) -> Function:
        wrapped: Any = lru_cache(capacity)(function)
        register(name, _Memoised(wrapped, capacity))
        return cast(Function, wrapped)  # lru_cache's own type forgets the parameters

    return decorate


class _TruncatedHash:
    """A key with a truncated hash, so that different keys collide."""

    __slots__ = ("key",)

    def __init__(self, key: Hashable) -> None:
        self.key = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _TruncatedHash) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key) % (1 << _bits) if _bits is not None else hash(self.key)


_bits: int | None = None


def truncate_hashes(bits: int | None) -> None:
    """Truncate hashes to `bits` bits (None: not at all) and empty all caches.

    For tests: each lookup by hash must compare the whole key. No other thread may run at the time.
    """
    global _bits
    _bits = bits
    clear_all()
    _native.cut_hashes(64 if bits is None else bits)


__all__ = [
    "CacheFacts",
    "Evictable",
    "LruCache",
    "clear_all",
    "facts",
    "memoized",
    "register",
    "truncate_hashes",
]
