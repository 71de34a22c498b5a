"""What was imported or exported, and is then written to from outside: an Array has the values of
the line that made it, or an exception is raised; never some of these and some of those.

300 random programs each run, 100,000 under `make fuzz`; a failure can be had again by its seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import hypothesis
import numpy as np
import pytest

import tenfold as tn

CHUNK = 50
PROGRAMS = max(300, hypothesis.settings.default.max_examples)
"""The profile "fuzz" raises it."""


def assigned_to_item(source: np.ndarray) -> tn.Array:
    x = tn.zeros((2, *source.shape), dtype=source.dtype)
    x[1] = source
    return x[1] + 0


Import = Callable[[np.ndarray], tn.Array]
IMPORTS: dict[str, Import] = {
    "asarray": tn.asarray,
    "operand": lambda source: tn.zeros(source.shape, dtype=source.dtype) + source,
    "copy": lambda source: tn.asarray(source, copy=True),
    "assigned": lambda source: tn.assign(tn.zeros(source.shape, dtype=source.dtype), source),
    "item": assigned_to_item,
    "dlpack": lambda source: tn.from_dlpack(source, copy=True),
    "reversed": lambda source: tn.asarray(source[::-1])[::-1],
}


EXPORTS: dict[str, Callable[[tn.Array], Any]] = {
    "asarray": np.asarray,
    "array_interface": lambda x: np.asarray(x).view(),
    "from_dlpack": lambda x: np.from_dlpack(x, copy=False),
    "memoryview": lambda x: np.asarray(memoryview(np.asarray(x))),
}


class Program:
    """Arrays made of ndarrays, each with the value it must keep."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.sources: list[np.ndarray] = []
        self.arrays: list[tuple[tn.Array, np.ndarray]] = []

    def import_one(self) -> None:
        shape = (self.random.randrange(1, 40),)
        dtype = self.random.choice(("float64", "int32", "uint8"))
        source = np.arange(shape[0]).astype(dtype)
        self.sources.append(source)
        make = IMPORTS[self.random.choice(list(IMPORTS))]
        self.arrays.append((make(source), source.copy()))

    def build(self) -> None:
        array, value = self.random.choice(self.arrays)
        form = self.random.randrange(4)
        if form == 0:
            self.arrays.append((array * 2 + array, value * 2 + value))
        elif form == 1:
            self.arrays.append((array[::2] + 1, value[::2] + 1))
        elif form == 2:
            self.arrays.append((tn.cumulative_sum(array), np.cumulative_sum(value)))
        else:
            self.arrays.append((tn.flip(array) - array, value[::-1] - value))

    def mutate(self) -> None:
        source = self.random.choice(self.sources)
        source[self.random.randrange(source.size) :] = self.random.randrange(100)

    def write_to_export(self) -> None:
        array, value = self.random.choice(self.arrays)
        shown = EXPORTS[self.random.choice(list(EXPORTS))](array)
        np.testing.assert_array_equal(shown, value)
        with pytest.raises(ValueError, match="read-only"):
            shown[...] = 7
        with pytest.raises(ValueError, match=r"WRITEABLE|read-only"):
            shown.setflags(write=True)

    def assign(self) -> None:
        number = self.random.randrange(len(self.arrays))
        array, value = self.arrays[number]
        if array.base is None:
            value = value.copy()
            value[1:] = value[:-1]
            array[1:] = array[:-1]
            self.arrays = [(a, value if a is array else v) for a, v in self.arrays]

    def run(self) -> None:
        self.import_one()
        steps = (self.import_one, self.build, self.mutate, self.write_to_export, self.assign)
        for _ in range(self.random.randrange(4, 20)):
            self.random.choice(steps)()
        for source in self.sources:
            source[...] = 99
        for array, value in self.arrays:
            np.testing.assert_array_equal(np.asarray(array), value)


@pytest.mark.fuzz
@pytest.mark.parametrize("first", range(0, PROGRAMS, CHUNK))
def test_arrays_keep_the_values_of_the_line_that_made_them(first: int) -> None:
    for seed in range(first, first + CHUNK):
        try:
            with tn.options(device="reference" if seed % 4 == 3 else "cpu"):
                Program(seed).run()
        except AssertionError as error:
            pytest.fail(f"seed {seed}: {error}", pytrace=False)
