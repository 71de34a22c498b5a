"""Array facts: a mapping from live Arrays to facts about them, which Arrays cannot hold themselves.

An entry goes with its Array, so the mapping needs no capacity. Arrays are compared by identity.

>>> import tenfold as tn
>>> x, names = tn.ones(2), ArrayFacts()
>>> names[x] = "weights"
>>> x in names, names.get(x), names.get(tn.ones(2))
(True, 'weights', None)
>>> del x
>>> len(names)
0
"""

from __future__ import annotations

import weakref
from functools import partial
from typing import Generic, TypeVar

from tenfold._native import Array

Fact = TypeVar("Fact")


class ArrayFacts(Generic[Fact]):
    """A mapping from Arrays, by identity, to facts about them."""

    def __init__(self) -> None:
        self._facts: dict[int, tuple[weakref.ref[Array], Fact]] = {}

    def get(self, x: Array) -> Fact | None:
        """Return the fact about an Array, or None."""
        entry = self._facts.get(id(x))
        return None if entry is None else entry[1]

    def __getitem__(self, x: Array) -> Fact:
        return self._facts[id(x)][1]

    def __setitem__(self, x: Array, fact: Fact) -> None:
        # the callback is C: a signal that ended it would leave a fact about the next Array there
        forget = partial(self._facts.pop, id(x))
        self._facts[id(x)] = weakref.ref(x, forget), fact

    def __contains__(self, x: Array) -> bool:
        return id(x) in self._facts

    def __len__(self) -> int:
        return len(self._facts)

    def discard(self, x: Array) -> None:
        """Drop the fact about an Array, if there is one."""
        self._facts.pop(id(x), None)


__all__ = ["ArrayFacts"]
