"""In which order an einsum multiplies: against all orders, counted and timed by nothing."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from math import prod

import numpy as np
import pytest

import tenfold as tn
from tenfold.ops.contraction_order import MAX_OPTIMAL_TERMS, contraction_order

Labels = frozenset[str]


def cheapest(terms: Sequence[Labels], output: Labels, lengths: dict[str, int]) -> int:
    """The fewest multiply-adds, by trying all pairs, then all pairs of what is left."""
    if len(terms) < 2:
        return 0
    costs = []
    for pair in itertools.combinations(terms, 2):
        rest = list(terms)
        for term in pair:
            rest.remove(term)
        both = pair[0] | pair[1]
        made = both & output.union(*rest)
        cost = prod(lengths[label] for label in both)
        costs.append(cost + cheapest([*rest, made], output, lengths))
    return min(costs)


def needed(terms: Sequence[Labels], output: Labels) -> list[Labels]:
    """Terms without what is summed in one of them alone."""
    return [
        term & output.union(*(other for j, other in enumerate(terms) if j != i))
        for i, term in enumerate(terms)
    ]


def draw(seed: int, count: int) -> tuple[list[Labels], Labels, dict[str, int]]:
    chance = random.Random(seed)
    letters = "abcdefg"
    lengths = {letter: chance.randint(2, 9) for letter in letters}
    terms = [frozenset(chance.sample(letters, chance.randint(1, 3))) for _ in range(count)]
    used = sorted(frozenset().union(*terms))
    output = frozenset(letter for letter in used if chance.random() < 0.25)
    return terms, output, lengths


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_the_order_is_the_cheapest_of_all(count: int) -> None:
    for seed in range(60):
        terms, output, lengths = draw(seed, count)
        terms = needed(terms, output)
        found = contraction_order(terms, output, lengths)
        assert found.multiply_adds == cheapest(terms, output, lengths)


def test_every_term_and_product_is_a_factor_once() -> None:
    for seed in range(40):
        terms, output, lengths = draw(seed, 2 + seed % 20)
        pairs = contraction_order(needed(terms, output), output, lengths).pairs
        factors = sorted(number for pair in pairs for number in pair)
        assert factors == list(range(2 * len(terms) - 2))


def test_many_terms_cost_little_more_than_the_best() -> None:
    for seed in range(20):
        terms, output, lengths = draw(seed, MAX_OPTIMAL_TERMS)
        terms = needed(terms, output)
        best = contraction_order(terms, output, lengths).multiply_adds
        # one term more, which costs next to nothing: beyond the limit, so it is not weighed
        found = contraction_order([*terms, frozenset()], output, lengths).multiply_adds
        assert best <= found <= 4 * best + len(terms) * max(prod(lengths.values()), 1)


def test_ten_thousand_terms_of_the_same_labels_are_ordered() -> None:
    found = contraction_order([frozenset("a")] * 10_000, frozenset(), {"a": 3})
    assert found.multiply_adds == 3 * 9_999


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_computed_work_is_the_counted_work(device: str) -> None:
    """Where every product sums over something, the device counts it: all others are maps."""
    compared = 0
    with tn.options(device=device):
        for seed in range(1000):
            terms, output, lengths = draw(seed, 3 + seed % 3)
            if needed(terms, output) != terms:
                continue
            order = contraction_order(terms, output, lengths)
            if not contracts_always(terms, output, order.pairs):
                continue
            letters = ["".join(sorted(term)) for term in terms]
            arrays = [
                tn.asarray(np.random.default_rng(i).random([lengths[x] for x in text]))
                for i, text in enumerate(letters)
            ]
            text = f"{','.join(letters)}->{''.join(sorted(output))}"
            with tn.profile() as counted:
                result = np.asarray(tn.einsum(text, *arrays))
            assert counted.multiply_adds == cheapest(terms, output, lengths)
            np.testing.assert_allclose(result, np.einsum(text, *map(np.asarray, arrays)), 1e-10)
            compared += 1
    assert compared >= 10


def contracts_always(
    terms: Sequence[Labels], output: Labels, pairs: Sequence[tuple[int, int]]
) -> bool:
    left = dict(enumerate(terms))
    for number, (a, b) in enumerate(pairs, len(terms)):
        both = left.pop(a) | left.pop(b)
        left[number] = both & output.union(*left.values())
        if left[number] == both:
            return False
    return True
