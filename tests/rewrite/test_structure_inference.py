"""What nobody asked for is not computed: counted multiply-adds, temporaries and calls; and the same
values, of special ones too, as the reference device and NumPy have.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from tests.rewrite.test_rule_pairs import FUNCTIONS, PAIRS, Pair, computed, dtypes_of, graph_of

import tenfold as tn
from tenfold.rule_registry import optimise_graph
from tenfold.testing import assert_close, assert_equal_bits, special_values

N = 64
EXACT = {rule.name for rule in tn.rules.list() if rule.exactness == "bitwise"}


def matrices(*shapes: tuple[int, ...], seed: int = 0) -> list[Any]:
    generator = np.random.default_rng(seed)
    return [tn.asarray(generator.standard_normal(shape)) for shape in shapes]


@pytest.fixture
def square() -> tuple[tn.Array, tn.Array, tn.Array]:
    first, second, vector = matrices((N, N), (N, N), (N,))
    return first, second, vector


Written = Callable[[Any, Any, Any], Any]

COUNTS: dict[str, tuple[Written, int, int, int]] = {
    # multiply-adds, temporaries, calls of a library
    "a row": (lambda a, b, u: (a @ b)[3], N * N, 0, 1),
    "a column": (lambda a, b, u: (a @ b)[:, 3], N * N, 0, 1),
    "a row of the transpose": (lambda a, b, u: (a @ b).T[3], N * N, 0, 1),
    "an element": (lambda a, b, u: (a @ b)[3, 4], N, 0, 1),
    "a block": (lambda a, b, u: (a @ b)[3:7, 4:9], 4 * 5 * N, 0, 1),
    "every other row": (lambda a, b, u: (a @ b)[::2], N * N * N // 2, 0, 1),
    "a row of a chain": (lambda a, b, u: (a @ b @ a)[3], 2 * N * N, 1, 2),
    "an element of a sum": (lambda a, b, u: (a @ b + a)[3, 4] * 2, N, 0, 1),
    "a diagonal": (lambda a, b, u: np.diagonal(a @ b), N * N, 0, 1),
    "a diagonal above": (lambda a, b, u: np.diagonal(a @ b, 3), (N - 3) * N, 0, 1),
    "a trace": (lambda a, b, u: np.trace(a @ b), N * N, 0, 1),
    "a trace of a transpose": (lambda a, b, u: np.trace((a @ b).T), N * N, 0, 1),
    "sums of columns": (lambda a, b, u: np.sum(a @ b, axis=0), N * N, 1, 1),
    "sums of rows": (lambda a, b, u: np.sum(a @ b, axis=1), N * N, 1, 1),
    "a sum": (lambda a, b, u: np.sum(a @ b), N, 2, 1),
    "an outer product times a vector": (lambda a, b, u: np.outer(u, a[0]) @ b[1], N, 1, 1),
    "a vector times an outer product": (lambda a, b, u: b[1] @ np.outer(u, a[0]), N, 1, 1),
    "a scaling of rows": (lambda a, b, u: np.diag(u) @ a, 0, 0, 0),
    "a scaling of columns": (lambda a, b, u: a @ np.diag(u), 0, 0, 0),
    "a scaling between": (lambda a, b, u: a @ np.diag(u) @ b[0], N * N, 1, 1),
    "a sum of outer products": (
        lambda a, b, u: np.sum(a[:, :, None] * b[:, None, :8], axis=0),
        N * N * 8,
        0,
        1,
    ),
    "a sum of one outer product": (lambda a, b, u: np.sum(np.outer(u, a[0]), axis=0), 0, 0, 0),
}


@pytest.mark.parametrize("name", COUNTS)
def test_unread_result_is_not_computed(
    name: str, square: tuple[tn.Array, tn.Array, tn.Array]
) -> None:
    written, multiply_adds, temporaries, calls = COUNTS[name]
    with tn.options(fast="outer product" in name), tn.profile() as p:
        result = written(*square).wait()
    assert (p.multiply_adds, p.temporaries, p.calls) == (multiply_adds, temporaries, calls)
    expected = written(*(np.asarray(x) for x in square))
    assert_close(result, expected, atol=1e-12 * N, rtol=1e-12)


@pytest.mark.parametrize("name", ["a row", "a diagonal", "a trace", "sums of rows", "a sum"])
def test_product_is_computed_as_written_without_reassociation(
    name: str, square: tuple[tn.Array, tn.Array, tn.Array]
) -> None:
    with tn.options(reassociate=False), tn.profile() as p:
        COUNTS[name][0](*square).wait()
    assert p.multiply_adds == N**3


def test_identity_is_no_product(square: tuple[tn.Array, tn.Array, tn.Array]) -> None:
    first, second, _ = square
    with tn.profile() as p:
        result = (tn.eye(N) @ first - second @ (2 * tn.eye(N))).wait()
    assert (p.multiply_adds, p.kernels, p.temporaries) == (0, 1, 0)
    assert_equal_bits(result, np.asarray(first) - np.asarray(second) * 2)


def test_product_that_somebody_holds_is_computed_once_and_whole_when_it_is_read_again(
    square: tuple[tn.Array, tn.Array, tn.Array],
) -> None:
    first, second, _ = square
    whole = first @ second
    counts = []
    for read in (whole[3], whole[:, 4], whole[5], whole):
        with tn.profile() as p:
            read.wait()
        counts.append(p.multiply_adds)
    assert counts == [N * N, N**3, 0, 0]
    assert_close(whole, np.asarray(first) @ np.asarray(second), atol=1e-12)


def test_product_that_is_read_as_a_whole_too_is_not_computed_in_parts_beside_it(
    square: tuple[tn.Array, tn.Array, tn.Array],
) -> None:
    first, second, _ = square
    whole = first @ second
    with tn.profile() as p:
        tn.eval(whole[3], whole)
        whole.wait()
    assert p.multiply_adds == N**3
    other = second @ first
    with tn.profile() as p:
        (tn.trace(other) + tn.sum(other) + other[0, 0]).wait()
    assert p.multiply_adds == N**3


def test_operands_of_a_product_that_somebody_holds_are_still_theirs(
    square: tuple[tn.Array, tn.Array, tn.Array],
) -> None:
    first, second, _ = square
    inner = first @ second
    row = (inner @ first)[3].wait()
    with tn.profile() as p:
        inner.wait()
    assert p.multiply_adds in (0, N**3)
    a, b = np.asarray(first), np.asarray(second)
    assert_close(row, (a @ b @ a)[3], atol=1e-11)
    assert_close(inner, a @ b, atol=1e-12)


def key(chosen: random.Random, shape: tuple[int, ...]) -> tuple[Any, ...]:
    terms: list[Any] = []
    for length in shape:
        kind = chosen.randrange(4)
        if kind == 0 and length:
            terms.append(chosen.randrange(-length, length))
        elif kind == 1:
            low, high = sorted(chosen.randrange(length + 1) for _ in range(2))
            terms.append(slice(low, high, chosen.choice([1, 2])))
        else:
            terms.append(slice(None, None, chosen.choice([1, 1, -1, 2])))
        if chosen.random() < 0.1:
            terms.append(None)
    return tuple(terms)


def operands(chosen: random.Random, values: Callable[[tuple[int, ...]], np.ndarray]) -> Any:
    """Two operands of a matrix product: vectors, matrices, stacks that broadcast, empty ones."""
    m, k, n = (chosen.choice([0, 1, 2, 3, 5]) for _ in range(3))
    stack = [chosen.choice([1, 2, 3]) for _ in range(chosen.choice([0, 0, 1, 2]))]

    def ahead() -> tuple[int, ...]:
        lengths = [1 if chosen.random() < 0.3 else length for length in stack]
        return tuple(lengths[chosen.randrange(len(stack) + 1) :])

    left = (k,) if chosen.random() < 0.15 else (*ahead(), m, k)
    right = (k,) if chosen.random() < 0.15 else (*ahead(), k, n)
    return values(left), values(right)


def read(chosen: random.Random, x: Any, kind: int) -> Any:
    """Read a part of a product, by NumPy's names."""
    if kind == 0:
        return x[key(chosen, x.shape)]
    if kind == 1 and len(x.shape) > 1:
        first = chosen.randrange(2)
        axes = (-2, -1) if first else (-1, -2)
        return np.diagonal(x, chosen.randrange(-3, 4), *axes)
    if kind == 2 and len(x.shape) > 1:
        return np.trace(x, chosen.randrange(-2, 3), -2, -1)
    axes = tuple(axis for axis in range(len(x.shape)) if chosen.random() < 0.5)
    return np.sum(x, axis=axes, keepdims=chosen.random() < 0.3)


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", ["float64", "complex128", "int64", "int8", "float32", "float16"])
def test_random_parts_of_products_equal_those_of_numpy(dtype: str) -> None:
    fired: set[str] = set()
    for seed in range(150):
        chosen, generator = random.Random(seed), np.random.default_rng(seed)

        def values(shape: tuple[int, ...], generator: Any = generator) -> np.ndarray:
            found = generator.integers(-4, 5, shape).astype(dtype)
            return found * (1 + 2j) if found.dtype.kind == "c" else found

        first, second = operands(chosen, values)
        kind, state = seed % 4, chosen.getstate()
        expected = read(chosen, np.matmul(first, second), kind)
        chosen.setstate(state)
        result = read(chosen, tn.asarray(first) @ tn.asarray(second), kind)
        fired |= optimise_graph(tn.pipeline.graph_of([result]))[1].counts.keys()
        desired = np.asarray(expected).astype(np.asarray(result).dtype)
        assert_equal_bits(np.asarray(result) + 0, desired + 0)  # all sums are exact
    wanted = {"index-product", "diagonal-product"}
    assert fired >= wanted | ({"sum-product"} if dtype not in ("int8", "float16") else set())


def test_parts_of_products_of_special_values_are_those_of_numpy() -> None:
    values = [-np.inf, -1.5, -0.0, 0.0, 2.0, np.inf, np.nan, 1.0, 3.0, -1.0]
    for seed in range(60):
        chosen, generator = random.Random(seed), np.random.default_rng(seed)
        first, second = operands(chosen, lambda shape, g=generator: g.choice(values, shape))
        state = chosen.getstate()
        with np.errstate(all="ignore"):
            expected = read(chosen, np.matmul(first, second), seed % 2)
        chosen.setstate(state)
        result = np.asarray(read(chosen, tn.asarray(first) @ tn.asarray(second), seed % 2))
        assert_equal_bits(result + 0.0, np.asarray(expected) + 0.0)


FAMILIES = ("reductions", "orders", "booleans", "diagonals")
BITWISE = [p for p in PAIRS if p.file in FAMILIES and p.after and p.rule in EXACT]


@pytest.mark.exhaustive
@pytest.mark.parametrize("pair", BITWISE, ids=lambda pair: f"{pair.rule}: {pair.before}")
def test_bitwise_rule_changes_no_bit_of_special_values(pair: Pair) -> None:
    """Few special values at a time: one NaN in each of them would hide all others."""
    shapes = {"m": (3, 4), "t": (2, 3, 4), "u": (3, 1), "v": (12,), "e": (0, 3), "w": (4, 3)}
    shapes |= {"x": (3, 4), "y": (3, 4), "s": ()}
    for dtype, seed in product(dtypes_of(pair), range(6)):
        generator = np.random.default_rng(seed)
        few = generator.choice(special_values(dtype), generator.integers(1, 5))
        leaves = {name: tn.asarray(generator.choice(few, shape)) for name, shape in shapes.items()}
        leaves["b"] = tn.asarray(generator.integers(0, 2, (3, 4)).astype(bool))
        names = {**FUNCTIONS, **leaves, "seen": lambda x: x}
        plain = graph_of(pair.before, names)
        changed, report = optimise_graph(plain)
        assert pair.rule in report.counts
        with np.errstate(all="ignore"):
            assert_equal_bits(computed(changed), computed(graph_of(pair.before, names)))
