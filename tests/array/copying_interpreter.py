"""An interpreter that copies everything: what assignments mean, with nothing shared and nothing
lazy.

A name holds a value that never changes; a view is a name with the numbers of the elements it shows,
found by NumPy's own views of an array of numbers. Writing makes a new value of the whole, one
element after the other.

>>> x = Name.of(np.zeros((2, 2)))
>>> row = x.view(lambda numbers: numbers[0])
>>> row.assign(..., np.array([1.0, 2.0]))
>>> x.read().tolist()
[[1.0, 2.0], [0.0, 0.0]]
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


class Refused(Exception):
    """The assignment has no meaning; nothing has changed."""


class Value:
    """What a name holds: one copy after the other."""

    def __init__(self, elements: np.ndarray) -> None:
        self.elements = elements.copy()


class Name:
    """A name for a value, or for some elements of another name's."""

    def __init__(self, value: Value, numbers: np.ndarray, *, repeats: bool = False) -> None:
        self.value, self.numbers = value, numbers
        self.repeats = repeats or _repeats(numbers)
        """Whether an element is shown twice, here or in what this is a view of: it is read-only."""

    @staticmethod
    def of(elements: np.ndarray) -> Name:
        numbers = np.arange(elements.size).reshape(elements.shape)
        return Name(Value(elements.reshape(-1)), numbers)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.numbers.shape

    @property
    def dtype(self) -> np.dtype:
        return self.value.elements.dtype

    def read(self) -> np.ndarray:
        return self.value.elements[self.numbers]

    def view(self, move: Callable[[np.ndarray], np.ndarray]) -> Name:
        """What a movement shows: a view where NumPy's would be one, else a name of its own."""
        moved = move(self.numbers)
        if moved.size and not np.shares_memory(moved, self.numbers):
            return Name.of(self.value.elements[moved])
        return Name(self.value, moved, repeats=self.repeats)

    def assign(self, key: Any, given: Any, symbol: str = "") -> None:
        """`self[key] = given`, or `self[key] op= given`."""
        places = self.numbers[key]
        value = np.asarray(given)
        try:
            if symbol:
                value = np.asarray(OPERATORS[symbol](self.value.elements[places], given))
            while not symbol and value.ndim > places.ndim and value.shape[0] == 1:
                value = value[0]
            spread = np.broadcast_to(value, places.shape)
        except ValueError:
            raise Refused("shape") from None
        weak = isinstance(given, (int, float)) and not symbol
        source = np.result_type(self.dtype, given) if weak else value.dtype
        if not np.can_cast(source, self.dtype, "same_kind"):
            raise Refused("dtype")
        if self.repeats:
            raise Refused("repeats")
        self._write(places, spread.astype(self.dtype))

    def _write(self, places: np.ndarray, values: np.ndarray) -> None:
        changed = self.value.elements.copy()
        for place, element in zip(places.reshape(-1), values.reshape(-1), strict=True):
            changed[place] = element  # in order: the last one wins
        self.value.elements = changed


def _repeats(numbers: np.ndarray) -> bool:
    pairs = zip(numbers.shape, numbers.strides, strict=True)
    return any(length > 1 and stride == 0 for length, stride in pairs)
