"""Named arrays: what the steps of a random session make, in Tenfold and in NumPy.

>>> NamedArrays(0).arrays
{}
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

LENGTHS = (1, 2, 3, 4, 5, 8, 17, 33)
LONG = (0, 257, 1000, 4097)
LARGEST = 300_000
"""Elements of an array."""
FIRST_WIDE = 1000
"""The first seed of sessions that have windows, loops, scatters, failures and threads, too."""
EXACT = {"float64": 2.0**50, "float32": 2.0**23, "int64": 2.0**60, "int32": 2.0**30}
"""Below these absolute values sums and products of integers are exact."""


class NamedArrays:
    """Arrays of Tenfold and of NumPy under the same names."""

    def __init__(self, seed: int) -> None:
        self.is_wide = seed >= FIRST_WIDE
        self.rng = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.arrays: dict[str, tuple[Any, np.ndarray]] = {}
        self.handles: list[tuple[Any, np.ndarray, str]] = []
        self.windows: dict[str, np.ndarray] = {}
        """The memory that wrapped arrays write to."""
        self.exports: list[tuple[np.ndarray, np.ndarray, str]] = []
        """Exported memory, which nothing may change, and its values."""
        self.steps: list[str] = []
        self.count = 0
        self.engine: Any = None
        self.lengths = [self.rng.choice(LENGTHS) for _ in range(3)]
        if self.rng.random() < 0.1:
            self.lengths[0] = self.rng.choice(LONG)
        self.dtype = self.rng.choice(["float64"] * 4 + ["float32", "int64", "int32"])
        self.options: dict[str, Any] = {}
        if self.rng.random() < 0.3:
            self.options["batch_limit"] = self.rng.choice([1, 7, 64])
        if self.rng.random() < 0.2:
            self.options["threads"] = self.rng.choice([1, 2, 7])
        if self.rng.random() < 0.4:
            self.options["tier"] = "1"

    def compare(self, name: str) -> None:
        array, expected = self.arrays[name]
        found = np.asarray(array)
        assert found.dtype == expected.dtype, f"{name} is {found.dtype}, not {expected.dtype}"
        np.testing.assert_array_equal(found, expected, name)
        if name in self.windows:
            np.testing.assert_array_equal(self.windows[name], expected, f"memory of {name}")

    def name(self, array: Any, expected: Any, step: str) -> None:
        """Name a result, unless its sums would not be exact."""
        expected = np.asarray(expected)
        largest = np.abs(expected.astype(float)).max(initial=0)
        if largest < EXACT[self.dtype] and expected.size <= LARGEST:
            self.arrays[f"v{self.count}"] = array, expected
            self.steps.append(f"v{self.count} = {step}")
            self.count += 1

    def pick(self, wanted: Callable[[np.ndarray], bool] = lambda _: True) -> str:
        """Return the name of an array, empty if there is none."""
        names = [name for name, (_, expected) in self.arrays.items() if wanted(expected)]
        return self.rng.choice(names) if names else ""

    def like(self, n: np.ndarray, count: int) -> list[str]:
        """Return the names of arrays of the same shape."""
        return [self.pick(lambda m: m.shape == n.shape) for _ in range(count)]

    def bounds(self, n: np.ndarray) -> slice:
        start = self.rng.randrange(n.shape[0])
        return slice(start, self.rng.randint(start, n.shape[0]))

    def expect(self, handle: Any, value: np.ndarray, step: str) -> None:
        """Compare the result of a pushed operator at the end, unless it would not be exact."""
        if np.abs(value.astype(float)).max(initial=0) < EXACT[self.dtype]:
            self.handles.append((handle, value.copy(), step))
