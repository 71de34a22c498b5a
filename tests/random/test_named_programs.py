"""Names change no bits: random programs of which a random part is named, computed in random orders,
twice, equal the same programs with one name alone.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

import tenfold as tn

from .expression_draft import Name, Seeded
from .random_programs import Program, _same_bits, built, generate, text_of

CHUNK, PROGRAMS = 20, 300


def computed(program: Program, names: Sequence[Name], order: Sequence[Name]) -> list[np.ndarray]:
    """The values of arrays, asked for one by one, where only `names` refer to the program's."""
    arrays = {name: array for name, array in built(program).items() if name in names}
    return [np.asarray(arrays[name]) for name in order]


def equal_bits(first: np.ndarray, second: np.ndarray) -> bool:
    nan = (first != first) & (second != second)
    return first.dtype == second.dtype and bool((_same_bits(first, second) | nan).all())


def check(program: Program, choices: random.Random) -> None:
    targets = [step.target for step in program if not step.symbol]
    names = choices.sample(targets, choices.randint(1, len(targets)))
    order = choices.sample(names, choices.randint(1, min(4, len(names))))
    alone = [computed(program, [name], [name])[0] for name in order]
    for tier in ("auto", "1", "1"):  # the third run replays the Executables of the second
        with tn.options(tier=tier):
            found = computed(program, names, order)
        for name, values, expected in zip(order, found, alone, strict=True):
            if not equal_bits(values, expected):
                text = f"{name} is {values} with the names {names}, asked for in the order {order}"
                raise AssertionError(f"{text}, but {expected} alone\n{text_of(program)}")


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", range(0, PROGRAMS, CHUNK))
def test_random_names_change_no_bits(first: int) -> None:
    for seed in range(first, first + CHUNK):
        try:
            check(generate(Seeded(seed)), random.Random(seed))
        except AssertionError as error:
            pytest.fail(f"seed {seed}: {error}", pytrace=False)
