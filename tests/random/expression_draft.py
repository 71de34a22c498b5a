"""A draft: the arrays an expression may use so far, and the source of every choice.

Takes a source of whole numbers (a seeded generator, or Hypothesis, which can shrink them), hands on
names, scalars, axes and dtypes that fit.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from tenfold.dtypes import DTYPES

from .error_bounds import Bounded, common, kind

T = TypeVar("T")
LARGEST = 3000
"""Elements of the largest array."""


class Source(Protocol):
    """Where choices come from."""

    def integer(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""


class Seeded:
    """Choices from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        return self._random.randint(low, high)


class Written:
    """Choices read from bytes, the lowest ones when they are used up: short and small is simple."""

    def __init__(self, text: bytes) -> None:
        self._text, self._at = text, 0

    def integer(self, low: int, high: int) -> int:
        count = ((high - low).bit_length() + 7) // 8
        piece = self._text[self._at : self._at + count]
        self._at += count
        return low + int.from_bytes(piece, "little") % (high - low + 1)


class Name(str):
    """The name of an array, which prints as it stands in a program."""

    __slots__ = ()
    __repr__ = str.__str__


class Draft:
    """The arrays at hand by name, and choices among them."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.arrays: dict[Name, Bounded] = {}

    def integer(self, low: int, high: int) -> int:
        return self.source.integer(low, high)

    def choose(self, items: Sequence[T]) -> T:
        return items[self.source.integer(0, len(items) - 1)]

    def value(self, name: Any) -> Bounded:
        return self.arrays[name]

    def dtype(self) -> np.dtype:
        return self.choose(list(DTYPES.values()))

    def array(self, kinds: str, *, exact: bool = False) -> Name | None:
        """The name of an array of one of these kinds; recent ones come more often."""
        fitting = [
            name for name, x in self.arrays.items() if x.kind in kinds and (not exact or x.is_exact)
        ]
        if not fitting:
            return None
        return self.choose(fitting[-4:] if self.integer(0, 1) else fitting)

    def pair(
        self, kinds: str, *, exact: bool = False, near: Name | None = None
    ) -> tuple[Any, Any] | None:
        """Two operands that broadcast together (and with `near`), of which one may be a scalar."""
        first = self.array(kinds, exact=exact)
        if first is None:
            return None
        shapes = [self.arrays[first].shape] + ([self.arrays[near].shape] if near else [])
        second: Any = (
            self._scalar(first) if self.integer(0, 3) == 0 else self._partner(shapes, exact)
        )
        if second is None or not self._fits(first, second, kinds, shapes):
            return None
        return (second, first) if self.integer(0, 3) == 0 else (first, second)

    def _partner(self, shapes: list[tuple[int, ...]], exact: bool) -> Name | None:
        fitting = [
            name
            for name, x in self.arrays.items()
            if broadcast(x.shape, *shapes) and (not exact or x.is_exact)
        ]
        return self.choose(fitting) if fitting else None

    def _fits(self, first: Name, second: Any, kinds: str, shapes: list[Any]) -> bool:
        operands = (self.arrays[first], self.arrays.get(second, second))
        return kind(common(*operands)) in kinds and broadcast(*shapes)

    def _scalar(self, peer: Name) -> Any:
        """A Python number; a whole one fits the peer's dtype."""
        peer_kind = self.arrays[peer].kind
        if peer_kind == "b" and self.integer(0, 1):
            return bool(self.integer(0, 1))
        form = self.integer(0, 5)
        if form == 0:
            return self.choose([0.5, -1.5, 2.0, 0.0, -0.0, 3.25, 1e-3])
        if form == 1 and peer_kind in "fc":
            return self.choose([1j, 1 - 2j, 0.5 + 0j])
        return self.choose([0, 1, 2, 3, 7, 100] if peer_kind == "u" else [0, 1, 2, -1, 3, -7, 100])

    def axis(self, ndim: int) -> int | None:
        """One axis, from either end, or None."""
        return None if not ndim or self.integer(0, 3) == 0 else self.integer(-ndim, ndim - 1)

    def axes(self, ndim: int) -> int | tuple[int, ...] | None:
        """One axis, several, or None."""
        if ndim < 2 or self.integer(0, 2):
            return self.axis(ndim)
        first = self.integer(0, ndim - 1)
        others = [axis for axis in range(ndim) if axis != first]
        return (first, self.choose(others) - ndim)


def broadcast(*shapes: tuple[int, ...]) -> bool:
    """Whether shapes broadcast together, to something small."""
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return int(np.prod(shape)) <= LARGEST
