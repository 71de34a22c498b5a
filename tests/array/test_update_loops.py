"""Random loops over parts that move: long enough that assignments wait for each other, with
readers, views, copies and other arrays in between. Tenfold and NumPy run the same lines.

100 of them each run, 100,000 under `make fuzz`; a failure can be had again by its seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import hypothesis
import numpy as np
import pytest

import tenfold as tn

CHUNK = 10
PROGRAMS = max(100, hypothesis.settings.default.max_examples)
"""The profile "fuzz" raises it."""

Key = tuple[Any, ...]


class Loop:
    """One loop: which part is assigned at each step, and what of."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        pick = self.random.choice
        self.rank = pick((1, 2, 2, 2, 3))
        self.axis = self.random.randrange(self.rank)
        self.width = pick((0, 0, 0, 1, 2, 3))  # 0: an int
        self.march = pick((1, 1, 1, 2, -1))
        self.count = pick((45, 60, 75))
        most = abs(self.march)
        length = most * (self.count + 4) + self.width + 4
        sides = [pick((1, 3, 8, 17, 33)) for _ in range(self.rank)]
        sides[self.axis] = length
        self.dtype = pick(("float64", "float64", "float32", "int64", "complex64"))
        values = np.random.default_rng(seed).integers(-9, 10, (2, *sides)).astype(self.dtype)
        self.numpy = [values[0].copy(), values[1].copy()]
        self.ours = [tn.asarray(each) for each in values]
        self.begin = 2 * most if self.march > 0 else length - self.width - 2 * most - 1
        self.trim = self.random.randrange(4) == 0
        self.body = self._body()
        self.views = [(self.ours[0][1:], self.numpy[0][1:])] if pick((0, 0, 1)) else []
        self.held: list[tuple[Any, np.ndarray]] = []

    def key(self, step: int, shift: int = 0, slide: int = 0) -> Key:
        """The part at a step; `shift`: of the one so many before, `slide`: along other axes."""
        at = self.begin + self.march * (step - shift)
        key: list[Any] = [slice(None)] * self.rank
        key[self.axis] = slice(at, at + self.width) if self.width else at
        if self.trim:
            for axis in range(self.rank):
                if axis != self.axis and self.numpy[0].shape[axis] > 2:
                    key[axis] = slice(1 + slide, self.numpy[0].shape[axis] - 1 + slide)
        return tuple(key)

    def _body(self) -> Callable[[list[Any], int], None]:
        pick = self.random.choice
        factor: Any = pick((2, 0.5, 1, 3)) if self.dtype != "int64" else pick((1, 2, -1))
        shift, slide = pick((1, 1, 1, 0, 2, -1)), pick((0, 0, 0, 1, -1)) if self.trim else 0
        other = pick((0, 0, 1))

        def value(arrays: list[Any], step: int) -> Any:
            return arrays[other][self.key(step, shift, slide)] * factor

        def compound(arrays: list[Any], step: int) -> None:
            arrays[0][self.key(step)] += value(arrays, step)

        def blend(arrays: list[Any], step: int) -> None:
            own = arrays[0][self.key(step)]
            arrays[0][self.key(step)] = value(arrays, step) - own

        def in_turn(arrays: list[Any], step: int) -> None:
            arrays[0][self.key(step)] = value(arrays, step)
            arrays[1][self.key(step)] -= arrays[0][self.key(step, shift)]

        return pick((compound, compound, blend, in_turn))

    def disturb(self, step: int) -> None:
        """What a user may do between two steps."""
        form = self.random.randrange(8)
        ours, truth = self.ours[0], self.numpy[0]
        if form == 0:
            np.testing.assert_array_equal(np.asarray(ours), truth)
        elif form == 1:
            key = self.key(step)
            np.testing.assert_array_equal(np.asarray(ours[key]), truth[key])
        elif form == 2:
            self.held.append((ours + 1, truth + 1))
        elif form == 3:
            self.held.append((np.asarray(ours), truth.copy()))
        elif form == 4:
            ours[..., :1] = 3
            truth[..., :1] = 3
        elif form == 5:
            ours += 1
            truth += np.ones((), self.dtype)
        elif form == 6:
            self.views.append((ours[..., ::2], truth[..., ::2]))
        else:
            self.ours[1], self.numpy[1] = tn.asarray(self.ours[1], copy=True), self.numpy[1].copy()

    def run(self) -> None:
        seldom = self.random.choice((10**9, 40, 15))
        for step in range(self.count - 2):
            self.body(self.ours, step)
            self.body(self.numpy, step)
            if self.random.randrange(seldom) == 0:
                self.disturb(step)
        for ours, truth in [*zip(self.ours, self.numpy, strict=True), *self.views]:
            np.testing.assert_array_equal(np.asarray(ours), truth)
        for found, value in self.held:
            np.testing.assert_array_equal(np.asarray(found), value)


@pytest.mark.exhaustive
@pytest.mark.fuzz
@pytest.mark.parametrize("first", range(0, PROGRAMS, CHUNK))
def test_long_loops_equal_numpy(first: int) -> None:
    for seed in range(first, first + CHUNK):
        with np.errstate(all="ignore"):
            try:
                Loop(seed).run()
            except AssertionError as error:
                pytest.fail(f"seed {seed}: {error}", pytrace=False)
