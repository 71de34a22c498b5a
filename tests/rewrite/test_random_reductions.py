"""Random reductions of reductions, broadcasts, maps and products: what the rules leave has the bits
of the reference device where they are bitwise, and the value of NumPy elsewhere.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.rewrite.test_rule_pairs import computed

import tenfold as tn
from tenfold import _native
from tenfold.core.graph import Graph
from tenfold.rule_registry import optimise_graph
from tenfold.testing import assert_equal_bits, special_values

REDUCTIONS = ("sum", "prod", "max", "min", "any", "all")
MAPS: tuple[Callable[[Any], Any], ...] = (
    tn.floor,
    tn.trunc,
    tn.logical_not,
    lambda x: -x if x.dtype.kind in "fi" else x,
    lambda x: tn.maximum(x, 1),
    lambda x: tn.minimum(x, 0),
    lambda x: x != 0,
    lambda x: x == 0,
    lambda x: ~x if x.dtype == bool else x,
    lambda x: tn.astype(x, "float64"),
    lambda x: tn.broadcast_to(x, (2, *x.shape)),
    lambda x: tn.broadcast_to(tn.sum(x, axis=0, keepdims=True), x.shape) if x.ndim else x,
)


def program(seed: int, device: str) -> tn.Array:
    """Return a random expression, the same for the same seed."""
    chosen, generator = random.Random(seed), np.random.default_rng(seed)
    dtype = chosen.choice(["float64", "float32", "int8", "int64", "uint16", "bool", "float16"])
    few = generator.choice(special_values(dtype), generator.integers(1, 6))
    shape = tuple(chosen.choice([1, 2, 3, 5]) for _ in range(3))
    x = tn.asarray(generator.choice(few, shape), device=device)
    for _ in range(chosen.randrange(2, 7)):
        if chosen.random() < 0.5 and x.ndim:
            axes = tuple(axis for axis in range(x.ndim) if chosen.random() < 0.5)
            keepdims = chosen.random() < 0.4
            x = getattr(tn, chosen.choice(REDUCTIONS))(x, axis=axes or None, keepdims=keepdims)
        else:
            x = chosen.choice(MAPS)(x)
    return x


def graph(seed: int) -> Graph:
    return Graph.of([_native.node_of(program(seed, "reference"))])


def test_random_reductions_keep_every_bit() -> None:
    fired: set[str] = set()
    with tn.options(reassociate=False):
        for seed in range(1000):
            after, report = optimise_graph(graph(seed))
            fired |= report.counts.keys()
            try:
                assert_equal_bits(computed(after), computed(graph(seed)))
            except AssertionError as error:
                pytest.fail(f"seed {seed}, {report.counts}: {error}", pytrace=False)
    assert fired >= {"any-nonzero", "max-negative", "max-max", "all-not", "sum-sum"}


def test_random_reductions_have_the_bits_of_the_reference_device() -> None:
    with tn.options(reassociate=False):
        for seed in range(40):
            assert_equal_bits(program(seed, "cpu"), np.asarray(program(seed, "reference")))


def factors(chosen: random.Random, generator: np.random.Generator) -> tuple[Any, Any]:
    """Two operands that broadcast: along most axes one of them is repeated."""
    axes = [
        (chosen.choice([1, 3, 4, 4]), chosen.choice(["first", "second", "both"])) for _ in "abc"
    ]

    def values(*names: str) -> np.ndarray:
        lengths = tuple(length if name in names else 1 for length, name in axes)
        return generator.integers(-4, 5, lengths[lengths[0] == 1 and chosen.random() < 0.5 :])

    return values("first", "both"), values("second", "both")


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", ["int64", "float32", "complex128"])
def test_random_sums_of_products_of_what_is_repeated_equal_those_of_numpy(dtype: str) -> None:
    fired: set[str] = set()
    for seed in range(120):
        chosen, generator = random.Random(seed), np.random.default_rng(seed)
        first, second = (each.astype(dtype) for each in factors(chosen, generator))
        whole = first * second
        axes = tuple(axis for axis in range(whole.ndim) if chosen.random() < 0.4)
        keepdims = chosen.random() < 0.3
        written = tn.asarray(first) * tn.asarray(second)
        result = tn.sum(written, axis=axes, keepdims=keepdims) if axes else tn.sum(written)
        del written
        expected = np.sum(whole, axis=axes or None, keepdims=keepdims and bool(axes))
        with tn.options(fast=True):
            fired |= optimise_graph(tn.pipeline.graph_of([result]))[1].counts.keys()
            found = np.asarray(result)
        assert_equal_bits(found + 0, np.asarray(expected) + 0)  # all sums are exact
    assert fired >= {"sum-factors", "sum-outer"}


SQUARE = (4, 4)
PIECES: tuple[Callable[[Any, Any], Any], ...] = (
    lambda values, n: tn.eye(4),
    lambda values, n: tn.eye(4) * n,
    lambda values, n: tn.diag(values(4)),
    lambda values, n: tn.outer(values(4), values(4)),
    lambda values, n: values(SQUARE),
)


def pair(seed: int) -> tuple[tn.Array, tn.Array]:
    """A matrix that is combined of others, and one that it is multiplied with."""
    chosen, generator = random.Random(seed), np.random.default_rng(seed)

    def values(shape: Any) -> tn.Array:
        return tn.asarray(generator.integers(-4, 5, shape).astype(float))

    made = chosen.choice(PIECES)(values, chosen.randrange(-3, 4))
    for _ in range(chosen.randrange(3)):
        other = chosen.choice(PIECES)(values, 2)
        made = chosen.choice([made + other, made - other, -made, 2 * made])
    return made, values((4, chosen.choice([1, 3, 4])) if chosen.random() < 0.6 else 4)


def product(matrix: Any, other: Any, *, before: bool) -> Any:
    return matrix @ other if before else np.transpose(other) @ matrix


def test_random_sums_of_structured_matrices_times_another_equal_those_of_numpy() -> None:
    fired: set[str] = set()
    for seed in range(150):
        before = bool(seed % 2)
        result = product(*pair(seed), before=before)
        fired |= optimise_graph(tn.pipeline.graph_of([result]))[1].counts.keys()
        expected = product(*(np.asarray(each) for each in pair(seed)), before=before)
        assert_equal_bits(np.asarray(result) + 0, expected + 0)  # all sums are exact
    assert fired >= {"add-times", "times-add", "multiply-times", "times-subtract"}
