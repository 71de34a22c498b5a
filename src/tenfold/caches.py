"""Cache registry: lists every cache of the library, with one LRU cache class for Python modules.

Takes entries, hands them back as long as there is room; the least recently used go first. Naming a
cache puts it in the list; native code has a list of its own (`native/memory/cache_registry.h`).
`tn.trim` empties all of them, `tenfold doctor` shows them.

A table of bounded size, with an entry for each operation, dtype or routine of a library, is not a
cache. Facts stored on an object, as long as it lives, are not one either.

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
    """What can be in the list."""

    @property
    def capacity(self) -> int:
        """How many entries it has at most."""

    def __len__(self) -> int: ...

    def clear(self) -> None:
        """Forget all entries."""


@dataclass(frozen=True)
class CacheFacts:
    """How full a cache is."""

    name: str
    entries: int
    capacity: int


_caches: dict[str, Evictable] = {}


def register(name: str, cache: Evictable) -> None:
    """Put a cache in the list."""
    assert name not in _caches, f"two caches are called {name!r}"
    _caches[name] = cache


def facts() -> Iterator[CacheFacts]:
    """Say of each cache how full it is."""
    for name, cache in _caches.items():
        yield CacheFacts(name, len(cache), cache.capacity)
    for name, entries, capacity in _native.caches():
        yield CacheFacts(name, entries, capacity)


def clear_all() -> int:
    """Empty all caches; return the bytes that were given back to the system."""
    for cache in _caches.values():
        cache.clear()
    return _native.trim()


class LruCache(Generic[Key, Item]):
    """Entries by key, so many at most.

    Two generations stand for "least recently used": what is asked for is young, and when half of
    the room is taken by young ones the others go. No lock: each step is one call, whole under the
    GIL, and of two threads that keep one key at once either may be first.
    """

    def __init__(self, capacity: int, name: str = "") -> None:
        self.capacity = capacity
        self._generations: tuple[dict[Any, Item], dict[Any, Item]] = ({}, {})
        if name:
            register(name, self)

    def get(self, key: Key) -> Item | None:
        """Return what is kept under a key, or None, which no item is."""
        place = key if _bits is None else _TruncatedHash(key)
        young, old = self._generations
        found = young.get(place)
        if found is None and old and (found := old.pop(place, None)) is not None:
            self._young()[place] = found
        return found

    def __setitem__(self, key: Key, item: Item) -> None:
        place = key if _bits is None else _TruncatedHash(key)
        if self._generations[1]:
            self._generations[1].pop(place, None)
        self._young()[place] = item

    def setdefault(self, key: Key, item: Item) -> Item:
        """Return what is kept under a key; if there is nothing, keep an item."""
        found = self.get(key)
        if found is not None:
            return found
        place = key if _bits is None else _TruncatedHash(key)
        return self._young().setdefault(place, item)

    def _young(self) -> dict[Any, Item]:
        """The young generation, in which there is room."""
        young, _ = self._generations
        if len(young) >= max(self.capacity // 2, 1):
            self._generations = ({}, young)
        return self._generations[0]

    def __contains__(self, key: Key) -> bool:
        return self.get(key) is not None

    def __len__(self) -> int:
        return sum(map(len, self._generations))

    def drop(self, unwanted: Callable[[Any], bool]) -> None:
        """Forget entries by their keys."""
        for generation in self._generations:
            for place in list(generation):
                if unwanted(place.key if isinstance(place, _TruncatedHash) else place):
                    generation.pop(place, None)

    def clear(self) -> None:
        """Forget all entries."""
        self._generations = ({}, {})


class _Memoised:
    """The answers of a function."""

    def __init__(self, function: Any, capacity: int) -> None:
        self.function, self.capacity = function, capacity

    def __len__(self) -> int:
        return int(self.function.cache_info().currsize)

    def clear(self) -> None:
        self.function.cache_clear()


def memoized(name: str, capacity: int) -> Callable[[Function], Function]:
    """Let the answers of a function be kept, by all its arguments: `functools.lru_cache`."""

    def decorate(function: Function) -> Function:
        made: Any = lru_cache(capacity)(function)
        register(name, _Memoised(made, capacity))
        return cast(Function, made)  # lru_cache's own type forgets the parameters

    return decorate


class _TruncatedHash:
    """A key whose hash has been cut, so that different keys meet."""

    __slots__ = ("key",)

    def __init__(self, key: Hashable) -> None:
        self.key = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _TruncatedHash) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key) % (1 << _bits) if _bits is not None else hash(self.key)


_bits: int | None = None


def truncate_hashes(bits: int | None) -> None:
    """Have hashes cut to so many bits, None: to none, and forget everything. For tests: whatever is
    found by a hash must be compared in full. No other thread may run meanwhile.
    """
    global _bits
    _bits = bits
    clear_all()
    _native.cut_hashes(64 if bits is None else bits)


__all__ = [
    "CacheFacts",
    "Evictable",
    "LruCache",
    "cut_hashes",
    "facts",
    "forget",
    "join",
    "remembered",
]
