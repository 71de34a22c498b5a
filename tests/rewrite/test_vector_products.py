"""No rule that may change bits matches the product of two vectors that are values or slices of
values, in a graph without other products: the op interpreter computes such graphs as written.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.core.graph import Graph
from tenfold.rewrite import registry
from tenfold.rewrite.registry import optimise_graph

MATRIX = tn.asarray(np.arange(1.0, 50.0).reshape(7, 7))
VECTOR, OTHER = tn.asarray(np.arange(2.0, 9.0)), tn.asarray(np.arange(3.0, 10.0))
FACTS = {rule.name: rule.exactness for rule in registry.list()}

OPERANDS: list[Callable[[], tuple[tn.Array, tn.Array]]] = [
    lambda: (MATRIX[3, :4], VECTOR[:4]),
    lambda: (MATRIX[:5, 2], OTHER[5:0:-1]),
    lambda: (VECTOR, OTHER),
    lambda: (VECTOR[1:], VECTOR[:-1]),
    lambda: (OTHER, OTHER),
    lambda: (MATRIX[2], MATRIX[:, 2]),
]
NUMBERS: list[Callable[[], Any]] = [
    lambda: VECTOR[3],
    lambda: MATRIX[2, 2],
    lambda: 2.5,
    lambda: -1,
    lambda: tn.sum(VECTOR[:3]),
]
VECTORS: list[Callable[[], Any]] = [
    lambda: VECTOR[:3],
    lambda: MATRIX[1, 1:4],
    lambda: MATRIX[:3, 2],
]
UNARY = (tn.negative, tn.sqrt, tn.exp, tn.square, tn.conj, tn.abs)
BINARY = (tn.add, tn.subtract, tn.multiply, tn.divide)


def expression(choices: random.Random) -> tn.Array:
    """A random expression of one product of vectors."""
    first, second = choices.choice(OPERANDS)()
    value = first @ second
    for _ in range(choices.randrange(5)):
        if choices.random() < 0.3:
            value = choices.choice(UNARY)(value)
            continue
        peers = NUMBERS if choices.random() < 0.8 or value.ndim else VECTORS
        operands = [value, choices.choice(peers)()]
        choices.shuffle(operands)
        value = choices.choice(BINARY)(*operands)
    return value


@pytest.mark.parametrize("seed", range(40))
def test_rules_that_may_change_bits_leave_the_product_of_two_vectors(seed: int) -> None:
    choices = random.Random(seed)
    for _ in range(10):
        value = expression(choices)
        target = tn.zeros((7, 3)).wait()
        target[choices.randrange(7)] = value
        for array in (value, target):
            _, report = optimise_graph(Graph.of([_native.node_of(array)], (1,)), describe=True)
            changing = [f for f in report.firings if FACTS.get(f.rule, "bitwise") != "bitwise"]
            assert not changing
