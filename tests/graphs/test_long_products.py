"""Chains of 10,000 products: all of them, and the largest that are optimised as a whole."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tenfold as tn

LENGTHS = (1_900, 10_000)
"""Few enough nodes to be read as one expression, and many more."""


def rotations(count: int) -> list[np.ndarray]:
    """Orthogonal matrices: products of any number of them neither grow nor vanish."""
    random = np.random.default_rng(0)
    return [np.linalg.qr(random.random((4, 4)))[0] for _ in range(count)]


MATRICES = rotations(7)
VECTOR = np.asarray([1.0, -2.0, 0.5, 3.0])


def from_the_left(ones: list, vector: object) -> object:
    product = ones[0]
    for one in ones[1:]:
        product = product @ one
    return product


def on_a_row(ones: list, vector: object) -> object:
    for one in ones:
        vector = vector @ one
    return vector


def on_a_column(ones: list, vector: object) -> object:
    for one in ones:
        vector = one @ vector
    return vector


def by_halves(ones: list, vector: object) -> object:
    while len(ones) > 1:
        paired = [one @ other for one, other in zip(ones[::2], ones[1::2], strict=False)]
        ones = paired + ones[len(ones) // 2 * 2 :]
    return ones[0]


def turned_at_each_step(ones: list, vector: object) -> object:
    product = ones[0]
    for one in ones[1:]:
        product = (product @ one).T
    return product


def around_a_vector(ones: list, vector: object) -> object:
    for place, one in enumerate(ones):
        vector = vector @ one if place % 2 else one @ vector
    return vector


@pytest.mark.exhaustive
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize(
    "make",
    [from_the_left, on_a_row, on_a_column, by_halves, turned_at_each_step, around_a_vector],
    ids=lambda make: make.__name__,
)
def test_a_long_chain_of_products_equals_numpy(make: Callable, length: int) -> None:
    ones = [MATRICES[i % 7] for i in range(length)]
    arrays = [tn.asarray(x) for x in MATRICES]
    expected = make(list(ones), VECTOR)
    with tn.options(device="cpu"):
        found = make([arrays[i % 7] for i in range(length)], tn.asarray(VECTOR))
        np.testing.assert_allclose(np.asarray(found), expected, 1e-9, 1e-9)


def test_ten_thousand_operands_of_one_einsum() -> None:
    text = ",".join(["i"] * 10_000) + "->i"
    x = tn.asarray([1.0, -1.0])
    assert tn.einsum(text, *[x] * 10_000).tolist() == [1.0, 1.0]
