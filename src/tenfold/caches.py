"""Caches: one class of LRU caches for Python modules, and the registry of all caches.

Each cache has a name, a capacity, and the reason why it exists in one line. Caches of one kind,
such as those of each traced function, share a name. Native code has its own class and registry
(`native/memory/lru_cache.h`). `tenfold doctor` lists all caches, `tn.trim` empties them.

Not caches: tables with an entry for each operation, dtype or library routine; facts stored on an
object; interning, which makes equal things one object for as long as it lives.

>>> halves: LruCache[int, float] = LruCache(2, "halves", "an example")
>>> for number in range(5):
...     halves[number] = number / 2
>>> len(halves) <= 2, halves.get(4), halves.get(0)
(True, 2.0, None)
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import Any, Generic, ParamSpec, TypeVar

from tenfold import _native

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class CacheFacts:
    """The fill level of the caches of one name, and the reason why they exist."""

    name: str
    entries: int
    capacity: int
    reason: str
    bytes: int | None = None
    """The size of its entries, where it is known."""


class LruCache(Generic[Key, Item]):
    """A mapping of bounded size that evicts least recently used entries.

    Two generations approximate LRU order: a used entry moves to the young generation. When that
    fills half of the capacity, the old one is dropped. There is no lock: each step is one call,
    atomic under the GIL, and of two threads that store one key at once either may win.
    """

    def __init__(self, capacity: int, name: str = "", reason: str = "") -> None:
        self.capacity = capacity
        self._generations: tuple[dict[Any, Item], dict[Any, Item]] = ({}, {})
        if name:
            assert reason, f"the cache {name!r} says why it exists"
            _registered.setdefault(name, _CachesOfName(reason)).add(self)

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

    def values(self) -> list[Item]:
        """Return all items."""
        return [item for generation in self._generations for item in generation.values()]

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


class _CachesOfName:
    """The live caches of one name; a cache leaves when it is freed."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        self._references: set[weakref.ref[LruCache[Any, Any]]] = set()

    def add(self, cache: LruCache[Any, Any]) -> None:
        self._references.add(weakref.ref(cache, self._references.discard))

    def live(self) -> list[LruCache[Any, Any]]:
        references = self._references.copy()  # in one step: other threads make and free caches
        return [cache for reference in references if (cache := reference()) is not None]


_registered: dict[str, _CachesOfName] = {}


def facts() -> Iterator[CacheFacts]:
    """Yield the facts of the caches of each name."""
    for name, of_name in _registered.items():
        if live := of_name.live():
            capacity = sum(cache.capacity for cache in live)
            yield CacheFacts(name, sum(map(len, live)), capacity, of_name.reason)
    for native_facts in _native.caches():
        yield CacheFacts(*native_facts)


def clear_all() -> int:
    """Empty all caches; return the bytes released to the system."""
    for of_name in list(_registered.values()):
        for cache in of_name.live():
            cache.clear()
    return _native.trim()


def memoized(name: str, capacity: int, reason: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function of positional arguments with a cache; a result of None is not cached."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        cache: LruCache[Any, R] = LruCache(capacity, name, reason)

        @wraps(function)
        def cached(*args: P.args, **kwargs: P.kwargs) -> R:
            assert not kwargs, "the key is the positional arguments"
            result = cache.get(args)
            return cache.setdefault(args, function(*args, **kwargs)) if result is None else result

        return cached

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
    _native.truncate_hashes(64 if bits is None else bits)


__all__ = ["CacheFacts", "LruCache", "clear_all", "facts", "memoized", "truncate_hashes"]
