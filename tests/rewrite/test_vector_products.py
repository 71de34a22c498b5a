"""No rule that may change bits matches products of two vectors that are values, slices of values or
of arrays that are being assigned to, or gathered, nor a product of matrices that is only assigned:
the op interpreter computes such graphs as written.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native, rule_registry
from tenfold.core.graph import Graph
from tenfold.core.op import OPS, Op
from tenfold.rule_registry import optimise_graph

MATRIX = tn.asarray(np.arange(1.0, 50.0).reshape(7, 7))
VECTOR, OTHER = tn.asarray(np.arange(2.0, 9.0)), tn.asarray(np.arange(3.0, 10.0))
FACTS = {rule.name: rule.exactness for rule in rule_registry.list()}

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


INDEX = tn.asarray(np.array([0, 2, 5]))


def changing_rules(array: tn.Array) -> list[str]:
    """The rules that fire and may change bits."""
    _, report = optimise_graph(Graph.of([_native.node_of(array)], (1,)), describe=True)
    return [f.rule for f in report.firings if FACTS.get(f.rule, "bitwise") != "bitwise"]


def product(choices: random.Random, assigned: tn.Array) -> tn.Array:
    """The product of two vectors: values, slices, of an array with pending updates, or gathered."""
    operands: list[Callable[[], tuple[tn.Array, tn.Array]]] = [
        *OPERANDS,
        lambda: (tn.take(VECTOR, INDEX), OTHER[:3]),
        lambda: (tn.take(assigned, INDEX), MATRIX[1, 2:5]),
        lambda: (assigned[:4], OTHER[:4]),
        lambda: (assigned[2:5], assigned[3:6]),
    ]
    first, second = choices.choice(operands)()
    return first @ second


@pytest.mark.parametrize("seed", range(40))
def test_rules_that_may_change_bits_leave_several_products_of_vectors(seed: int) -> None:
    choices = random.Random(seed)
    for _ in range(10):
        x = tn.asarray(np.arange(7.0), copy=True).wait()
        x[choices.randrange(7)] = product(choices, VECTOR)
        if choices.random() < 0.3:
            x[2:5] = VECTOR[:3] * MATRIX[1, 1]
        value = product(choices, x)
        for _ in range(choices.randrange(6)):
            if choices.random() < 0.25:
                value = choices.choice(UNARY)(value)
                continue
            many = choices.random() < 0.6
            operands = [value, product(choices, x) if many else choices.choice(NUMBERS)()]
            choices.shuffle(operands)
            value = choices.choice(BINARY)(*operands)
        target = tn.zeros((7, 3)).wait()
        target[choices.randrange(7)] = value
        for array in (value, target, x):
            assert not changing_rules(array)


MATRIX_PRODUCTS: list[Callable[[], tn.Array]] = [
    lambda: VECTOR[:5] @ MATRIX[:5, 1:4],
    lambda: MATRIX[1:4, :5] @ VECTOR[:5],
    lambda: MATRIX[1:4, :5] @ MATRIX[:5, 2:5],
    lambda: MATRIX[:, 2] @ MATRIX[:, 3:5],
    lambda: MATRIX @ MATRIX,
    lambda: tn.take(MATRIX, INDEX, axis=0) @ VECTOR,
]
KEEPING: list[Callable[[Any, Any], Any]] = [
    lambda p, number: p / number,
    lambda p, number: tn.maximum(p, number),
    lambda p, number: tn.minimum(number, p),
    lambda p, number: number / p,
]


def test_operations_that_keep_products_are_those_tested_here() -> None:
    keeping = {op.name for op in OPS.values() if isinstance(op, Op) and op.rewriting.keeps_products}
    assert keeping == {"divide", "maximum", "minimum"}


@pytest.mark.parametrize("number", [2.0, 0.5, 3.0, 4, 1.0, -1.0, np.inf, "array", "element"])
def test_rules_that_may_change_bits_leave_a_product_of_matrices_that_is_only_assigned(
    number: Any,
) -> None:
    number = {"array": tn.asarray(3.0), "element": VECTOR[2]}.get(str(number), number)
    for make in MATRIX_PRODUCTS:
        for first in (lambda p, _: p, *KEEPING):
            for second in (lambda p, _: p, *KEEPING):
                value = second(first(make(), number), number)
                key = tuple(slice(0, length) for length in value.shape)
                target = tn.zeros((8, 8)).wait()
                target[key if value.ndim == 2 else (key[0], 3)] = value
                assert not changing_rules(target)
                if value.ndim == 1:  # then in a row, too
                    target[4, key[0]] = target[key[0], 3]
                    assert not changing_rules(target)


@pytest.mark.parametrize("seed", range(20))
def test_rules_that_may_change_bits_leave_products_of_arrays_with_earlier_updates(
    seed: int,
) -> None:
    """No array names the earlier ones: rules may look through an update of a single number."""
    choices = random.Random(seed)
    for _ in range(10):
        x = tn.asarray(np.arange(7.0), copy=True).wait()
        for _ in range(choices.randrange(1, 5)):
            first, second = sorted(choices.sample(range(8), 2))
            if second - first < 2:
                continue
            operands = (
                x[first:second],
                choices.choice(
                    (MATRIX[3, first:second], x[first:second], VECTOR[: second - first])
                ),
            )
            value = expression(choices) if choices.random() < 0.3 else 0.0
            value = operands[0] @ operands[1] - (value if not np.ndim(value) else 1.0)
            x = tn.set_at(x, choices.randrange(7), value * choices.choice((0.5, -1.0, 2.5)))
        if _native.node_of(x).pending:
            assert not changing_rules(x)
