"""Windows: `tn.wrap`, and assignments that go into the caller's memory."""

from __future__ import annotations

import array
import gc
import mmap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import AliasError, DeviceError, DTypeError, RunError, ShapeError

from .interpreter import Name, Refused, Value
from .programs import MANNERS, Machine, bits

CHUNK = 50
PROGRAMS = max(300, hypothesis.settings.default.max_examples)
"""The profile "fuzz" raises it."""


class WindowMachine(Machine):
    """A program whose buffers are windows, some of them on parts of one memory."""

    def __init__(self, seed: int, device: str) -> None:
        super().__init__(seed, device)
        self.memories: list[tuple[np.ndarray, Name]] = []

    def leaf(self) -> None:
        if self.chance(5):
            super().leaf()
            return
        rank = self.random.choice((1, 1, 2, 2, 3))
        shape = tuple(self.random.randrange(1, 7) for _ in range(rank))
        dtype = np.dtype(self.random.choice(("float64", "int64", "float32", "uint8", "complex128")))
        memory = (np.arange(int(np.prod(shape))).reshape(shape) % 97).astype(dtype)
        truth = Name.of(memory)
        self.memories.append((memory, truth))
        for _ in range(self.random.choice((1, 2, 2, 3))):
            move, text = self.regular(shape)
            part = move(memory)
            self.add(tn.wrap(part), truth.view(move), f"wrap {shape} {dtype}{text}")

    def regular(self, shape: tuple[int, ...]) -> tuple[Callable[[Any], Any], str]:
        """A movement that NumPy makes by strides."""
        if self.chance(2):
            return (lambda x: x), ""
        key = (*self.basic_key(shape), ...)
        if self.chance(3):
            return (lambda x: x[key].T), f"[{key}].T"
        return (lambda x: x[key]), f"[{key}]"

    def run(self) -> None:
        super().run()
        for memory, truth in self.memories:
            if bits(memory) != bits(truth.read()):
                self.fail("the memory", memory, truth.read())


@pytest.mark.fuzz
@pytest.mark.parametrize("first", range(0, PROGRAMS, CHUNK))
def test_random_programs_over_windows_equal_the_interpreter(first: int) -> None:
    for seed in range(first, first + CHUNK):
        manner = MANNERS[seed % len(MANNERS)]
        try:
            with tn.options(**manner):
                WindowMachine(seed, str(manner["device"])).run()
        except AssertionError as error:
            pytest.fail(f"seed {seed}: {error}", pytrace=False)
