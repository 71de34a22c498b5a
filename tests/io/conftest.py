"""What the tests of expressions share: a way to compute the value of a text."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tenfold as tn
from tenfold.io.evaluate import evaluate_expression
from tenfold.io.expression import parse_expression
from tenfold.io.vocabulary import vocabulary

Compute = Callable[..., object]
LIMIT = 10**8
"""Bytes."""


@pytest.fixture(scope="session")
def build() -> Compute:
    """The value of a text over arrays given by name: an Array nobody waits for, or a number."""

    def run(text: str, **inputs: object) -> object:
        arrays = {name: tn.asarray(np.asarray(value)) for name, value in inputs.items()}
        return evaluate_expression(parse_expression(text), arrays, vocabulary(), limit=LIMIT)

    return run


@pytest.fixture(scope="session")
def compute(build: Compute) -> Compute:
    """The value of a text over arrays given by name: computed, or a number of Python."""

    def run(text: str, **inputs: object) -> object:
        value = build(text, **inputs)
        return np.asarray(value) if isinstance(value, tn.Array) else value

    return run
