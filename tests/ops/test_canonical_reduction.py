"""The canonical tree: against a scalar re-statement of it, over lengths, layouts and dtypes."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.core.canonical_reduction import fold_axes

LENGTHS = (
    *range(1, 70),
    *(95, 96, 97, 511, 1022, 1023, 1024, 1025, 1055, 1056, 1057, 2047, 2048, 2049),
    *(3071, 3073, 4096, 5000, 7 * 1024, 9999),
)

Leaf = Callable[[int], Any]


def pairwise(count: int, leaf: Leaf) -> Any:
    """Neighbours first: node i of a level joins nodes 2i and 2i + 1 of the level below."""

    def node(level: int, i: int) -> Any:
        if i << level >= count:
            return None
        if level == 0:
            return leaf(i)
        left, right = node(level - 1, 2 * i), node(level - 1, 2 * i + 1)
        return left if right is None else left + right

    return node(max(count - 1, 0).bit_length(), 0)


def by_halves(leaf: Leaf) -> Any:
    """Over 32 lanes: the node of width w at j joins those of width 2w at j and at j + w."""

    def node(width: int, j: int) -> Any:
        if width == 32:
            return leaf(j)
        left, right = node(2 * width, j), node(2 * width, j + width)
        return left if right is None else left + right

    return node(1, 0)


def tree_sum(values: np.ndarray) -> Any:
    """The tree of DESIGN section 5, one scalar addition at a time."""
    length = len(values)

    def block(b: int) -> Any:
        size = min(1024, length - 1024 * b)

        def lane(j: int) -> Any:
            rows = (size - j + 31) // 32
            return pairwise(rows, lambda row: values[1024 * b + 32 * row + j])

        return by_halves(lane)

    return pairwise((length + 1023) // 1024, block)


def folded(values: np.ndarray, axes: tuple[int, ...] = (0,)) -> np.ndarray:
    return fold_axes(np.add, values, axes, False, identity=0)


def random_values(shape: tuple[int, ...], dtype: type = np.float32) -> np.ndarray:
    rng = np.random.default_rng(7)
    return (rng.standard_normal(shape) * 10.0 ** rng.integers(-6, 7, shape)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fold_equals_its_scalar_restatement_bit_for_bit(dtype: type) -> None:
    values = random_values((max(LENGTHS),), dtype)
    for length in LENGTHS:
        expected = tree_sum(values[:length])
        assert folded(values[:length]).tobytes() == dtype(expected).tobytes(), length


@pytest.mark.parametrize("length", [3, 31, 33, 1023, 1025, 2100])
def test_every_row_of_a_matrix_is_folded_as_if_alone(length: int) -> None:
    values = random_values((3, length))
    expected = np.asarray([tree_sum(row) for row in values])
    assert folded(values, (1,)).tobytes() == expected.tobytes()
    assert folded(values.T.copy(), (0,)).tobytes() == expected.tobytes()


def test_axes_are_folded_innermost_first() -> None:
    values = random_values((5, 40, 33))
    one_by_one = folded(folded(folded(values, (2,)), (1,)), (0,))
    assert folded(values, (0, 1, 2)).tobytes() == one_by_one.tobytes()
    assert folded(values, (0, 2)).tobytes() == folded(folded(values, (2,)), (0,)).tobytes()


def test_missing_elements_are_skipped_and_not_replaced_by_zero() -> None:
    for length in (1, 2, 33, 1025):
        values = np.full(length, -0.0)
        assert np.signbit(folded(values))


def test_left_operand_is_the_earlier_one() -> None:
    """Seen with a combination that keeps its first operand: the fold is the first element."""
    values = np.arange(5000.0) + 1
    first = fold_axes(lambda x, y: x + 0 * y, values, (0,), False, identity=0)
    assert first == 1


def test_fold_does_not_change_its_input() -> None:
    values = random_values((3, 1500))
    before = values.copy()
    folded(values, (0, 1))
    assert values.tobytes() == before.tobytes()


@pytest.mark.parametrize(
    ("shape", "axes"), [((100_000, 3), (1,)), ((50_000, 33), (1,)), ((3, 100_000), (0, 1))]
)
def test_short_rows_are_not_padded_to_a_block(
    shape: tuple[int, ...], axes: tuple[int, ...]
) -> None:
    values = np.ones(shape)
    tracemalloc.start()
    folded(values, axes)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * values.nbytes


def worst_case(terms: np.ndarray, length: int) -> float:
    """Higham 1993, equation 4.3: |error| <= gamma_h sum |x|, where h is the height of the tree."""
    height = 5 + 5 + math.ceil(math.log2(max(length / 1024, 1)))
    unit = np.finfo(terms.dtype).eps / 2
    return height * unit / (1 - height * unit) * math.fsum(abs(float(t)) for t in terms)


@pytest.mark.parametrize("length", [10, 1000, 1024, 100_000])
def test_error_of_a_sum_stays_below_the_bound_of_its_height(length: int) -> None:
    values = random_values((length,))
    truth = math.fsum(float(value) for value in values)
    assert abs(float(folded(values)) - truth) <= worst_case(values, length)


def test_a_thousand_ones_beside_a_large_number_are_not_lost() -> None:
    """16777216 + 1000 in float32: adding the ones one by one would leave 16777216."""
    for place in (0, 500, 1000):
        values = np.ones(1001, np.float32)
        values[place] = 2**24
        assert abs(tn.sum(tn.asarray(values)).item() - 16_778_216) <= 8


def test_sixty_four_axes_are_folded() -> None:
    x = tn.reshape(tn.arange(6.0), (*(1,) * 62, 2, 3))
    assert tn.sum(x).item() == 15
    assert tn.sum(x, axis=(0, 62)).shape == (*(1,) * 61, 3)
