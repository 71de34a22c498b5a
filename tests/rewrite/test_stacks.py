"""Random sums and products of stacks of matrices, matrices, rows: the values of NumPy, and the same
bits in a second evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.testing import assert_equal_bits

STACKS = ((2,), (70,), (3, 30), (1,), (0,), (2, 1))
FORMS = (
    lambda x: x,
    lambda x: x[..., ::-1],
    lambda x: x[..., ::2],
    lambda x: x.mT if x.ndim > 1 else x,
)
"""What is done to a leaf; the third has twice the columns."""
OPERATIONS = (
    lambda a, b, c, s: a @ b,
    lambda a, b, c, s: a + b,
    lambda a, b, c, s: a - b,
    lambda a, b, c, s: s * a,
    lambda a, b, c, s: a.mT @ b if a.ndim > 1 else a @ b,
    lambda a, b, c, s: a @ b + c,
    lambda a, b, c, s: c - s * (a @ b),
    lambda a, b, c, s: (a + c) @ b,
)


class Drawn:
    """A random program: leaves, and operations on what is there."""

    def __init__(self, seed: int) -> None:
        random = Random(seed)
        self.length, stack = random.choice((1, 2, 3, 8)), random.choice(STACKS)
        square = (self.length, self.length)
        others = ((*stack, *square), (*stack, *square), square, square[:1], (1, self.length))
        self.shapes = [(*stack, *square), *(random.choice(others) for _ in range(3))]
        self.forms = [random.randrange(len(FORMS)) for _ in self.shapes]
        self.operations = [
            (random.choice(OPERATIONS), [random.randrange(99) for _ in range(3)])
            for _ in range(random.randint(2, 6))
        ]
        self.complex = random.random() < 0.3

    def leaves(self, seed: int) -> list[np.ndarray]:
        """Small whole numbers: products are exact, whatever their order."""
        random = np.random.default_rng(seed)
        made = []
        for shape, form in zip(self.shapes, self.forms, strict=True):
            lengths = (*shape[:-1], shape[-1] * (2 if form == 2 else 1))
            if form == 3 and len(shape) > 1:
                lengths = (*shape[:-2], shape[-1], shape[-2])
            values = random.integers(-2, 3, (2, *lengths))
            made.append(values[0] + 1j * values[1] if self.complex else values[0] * 1.0)
        return made

    def result(self, leaves: Sequence[Any], scale: float) -> Any:
        there = [FORMS[form](x) for x, form in zip(leaves, self.forms, strict=True)]
        for operation, places in self.operations:
            made = operation(*(there[place % len(there)] for place in places), scale)
            there.append(made if made.ndim else made + there[0])
        return there[-1]


@pytest.mark.parametrize("seed", range(60))
def test_random_sums_and_products_of_stacks_have_numpys_values(seed: int) -> None:
    drawn = Drawn(seed)
    try:
        wanted = [drawn.result(drawn.leaves(n), scale) for n, scale in enumerate((2.5, -1.25))]
    except ValueError:
        return  # shapes that do not fit
    found = []
    for n, scale in ((0, 2.5), (1, -1.25), (0, 2.5)):
        found.append(np.asarray(drawn.result([*map(tn.asarray, drawn.leaves(n))], scale)))
    assert_equal_bits(found[0], found[2])
    for one, right in zip(found, wanted, strict=False):
        most = abs(right).max(initial=1)
        np.testing.assert_allclose(one / most, right / most, rtol=1e-9, atol=1e-11)
