"""Products and solves with matrices that are joined of blocks: NumPy's values, fewer operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn

SIDE = 5
VALUES = np.random.default_rng(3).standard_normal((4, SIDE, SIDE)) + 4 * np.eye(SIDE)
RIGHT = np.random.default_rng(4).standard_normal((2 * SIDE, 3))
LAYOUTS = ("1001", "1011", "1101", "0110", "1000", "0010", "0000")
"""Which of four blocks are there, row by row; the others are 0."""


def blocks(xp: Any, layout: str, by_rows: bool) -> Any:
    """The four blocks joined, by rows first or by columns first."""
    made = [
        xp.asarray(values) if there == "1" else xp.zeros((SIDE, SIDE))
        for values, there in zip(VALUES, layout, strict=True)
    ]
    if by_rows:
        lines = [xp.concat(made[:2], axis=1), xp.concat(made[2:], axis=1)]
        return xp.concat(lines, axis=0)
    lines = [xp.concat(made[::2], axis=0), xp.concat(made[1::2], axis=0)]
    return xp.concat(lines, axis=1)


def both(formula: Callable[..., Any], *arrays: np.ndarray) -> int:
    """Compare tenfold's values with NumPy's; return the multiply-adds."""
    with tn.profile() as p:
        found = np.asarray(formula(tn, *map(tn.asarray, arrays)))
    np.testing.assert_allclose(found, formula(np, *arrays), rtol=1e-12, atol=1e-12)
    return p.multiply_adds


@pytest.mark.parametrize("by_rows", [True, False])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_product_with_blocks_multiplies_those_that_are_there(layout: str, by_rows: bool) -> None:
    there = layout.count("1")
    left = both(lambda xp, b: blocks(xp, layout, by_rows) @ b, RIGHT)
    right = both(lambda xp, b: b.T @ blocks(xp, layout, by_rows), RIGHT)
    assert left == right == there * SIDE * SIDE * 3
    vector = both(lambda xp, b: blocks(xp, layout, by_rows) @ b, RIGHT[:, 0])
    assert vector == there * SIDE * SIDE


def test_blocks_times_blocks_are_products_of_those_that_meet() -> None:
    found = both(lambda xp: blocks(xp, "1001", True) @ blocks(xp, "1001", False))
    assert found == 2 * SIDE**3


@pytest.mark.parametrize("layout", ["1001", "1011", "1101"])
def test_solve_with_blocks_factors_each(layout: str) -> None:
    found = both(lambda xp, b: xp.linalg.solve(blocks(xp, layout, True), b), RIGHT)
    beside = (layout.count("1") - 2) * SIDE * SIDE * 3
    assert found == 2 * (SIDE**3 // 3 + SIDE * SIDE * 3) + beside
    both(lambda xp, b: xp.linalg.inv(blocks(xp, layout, False)) @ b, RIGHT[:, 0])


def test_solve_with_blocks_on_both_sides_is_done_as_a_whole() -> None:
    values = np.concatenate(
        [np.concatenate(VALUES[:2], axis=1), np.concatenate(VALUES[2:], axis=1)]
    )
    both(lambda xp, b: xp.linalg.solve(blocks(xp, "1111", True), b), RIGHT)
    assert np.linalg.matrix_rank(values) == 2 * SIDE


def test_singular_block_raises_where_somebody_waits() -> None:
    x = tn.linalg.solve(blocks(tn, "1000", True), tn.asarray(RIGHT))
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        x.wait()


def test_products_stay_as_written_where_they_are_not_to_be_reassociated() -> None:
    with tn.options(reassociate=False):
        found = both(lambda xp, b: blocks(xp, "1001", True) @ b, RIGHT)
    assert found == (2 * SIDE) ** 2 * 3
