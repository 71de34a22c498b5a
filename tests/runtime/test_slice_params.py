"""Loops over parts that move: one plan serves all of them, and only where it is the right one.

All is planned here (tier 1); `tests/array/test_new_lengths.py` has such loops while they are cold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native

Step = Callable[[Any, int], object]


@pytest.fixture(autouse=True)
def _planned() -> Iterator[None]:
    with tn.options(tier=1):
        yield


def both(shape: tuple[int, ...], step: Step, count: int) -> int:
    """Do the steps on an Array and on an ndarray; return how many plans the Array needed."""
    expected = np.random.default_rng(1).random(shape)
    x = tn.asarray(expected.copy())
    before = _native.num_cached_plans()
    for number in range(count):
        step(x, number)
        step(expected, number)
        if number % 7 == 0:
            np.testing.assert_array_equal(np.asarray(x), expected)
    np.testing.assert_array_equal(np.asarray(x), expected)
    return _native.num_cached_plans() - before


def rows(x: Any, n: int) -> None:
    x[n + 1] += 0.5 * x[n]


def columns(x: Any, n: int) -> None:
    x[:, n + 1] = x[:, n] * 0.7 + x[:, n + 1]


def blocks(x: Any, n: int) -> None:
    x[n : n + 3, 2:9] = x[n + 1 : n + 4, 1:8] * 0.5 + x[n : n + 3, 2:9]


def backwards(x: Any, n: int) -> None:
    x[40 - n : 30 - n : -2] = x[39 - n : 29 - n : -2] + x[n, 0] * 0


@pytest.mark.parametrize("step", [rows, columns, blocks])
def test_parts_that_move_need_a_plan_for_each_alignment_at_most(
    own_programs: None, step: Step
) -> None:
    assert 1 <= both((50, 51), step, 40) <= 8 + 2


def test_rows_of_whole_packets_need_one_plan(own_programs: None) -> None:
    assert both((40, 64), rows, 39) == 1


def test_steps_backwards_and_parts_at_other_distances() -> None:
    both((50, 5), backwards, 25)


def test_parts_whose_distance_changes_are_told_apart() -> None:
    def step(x: Any, n: int) -> None:
        x[n % 20] = x[(3 * n) % 20] + x[(7 * n) % 20] * 0.25

    both((20, 8), step, 60)


def test_part_that_comes_to_overlap_what_it_reads() -> None:
    def step(x: Any, n: int) -> None:
        x[n : n + 4] = x[5:9] * 0.5 + 1

    both((20, 8), step, 16)


def test_array_that_is_read_as_a_whole_too() -> None:
    def step(x: Any, n: int) -> None:
        x[n] = x[n] + (tn.sum(x) if isinstance(x, tn.Array) else np.sum(x)) * 0

    both((20, 8), step, 20)


def test_copies_for_who_holds_the_old_value_are_right_at_every_place() -> None:
    held: list[tuple[Any, Any]] = []
    x, expected = tn.zeros((12, 6)), np.zeros((12, 6))
    for n in range(12):
        held.append((x + 0, expected.copy()))
        x[n] = float(n + 1)
        expected[n] = n + 1
    for old, value in held:
        np.testing.assert_array_equal(np.asarray(old), value)
    np.testing.assert_array_equal(np.asarray(x), expected)


def test_edge_to_edge_and_inside_are_not_the_same_copy() -> None:
    base = np.random.default_rng(2).random((9, 8))
    x = tn.asarray(base).wait()
    made = [tn.set_at(x, slice(n, n + 3), 7.0).wait() for n in range(7)]
    for n, each in enumerate(made):
        expected = base.copy()
        expected[n : n + 3] = 7
        np.testing.assert_array_equal(np.asarray(each), expected)


def test_parts_of_parts_and_of_several_arrays() -> None:
    base = np.random.default_rng(3).random((30, 30))
    x, y = tn.asarray(base), tn.asarray(base * 2)
    for n in range(12):
        found = (x[n:, n:][2:5, 1:4] + y[2 * n, 3:6]) * x[n + 1, 0]
        expected = (base[n:, n:][2:5, 1:4] + base[2 * n, 3:6] * 2) * base[n + 1, 0]
        np.testing.assert_array_equal(np.asarray(found), expected)


def test_views_that_outlive_the_run_show_their_own_place() -> None:
    base = np.arange(200.0).reshape(10, 20)
    x = tn.asarray(base).wait()
    views = [tn.flip(x[n]).wait() for n in range(10)]
    for n, each in enumerate(views):
        np.testing.assert_array_equal(np.asarray(each), base[n, ::-1])


def test_step_is_native_once_it_is_known(own_programs: None) -> None:
    x = tn.zeros((64, 8))

    def sweep() -> None:
        for n in range(63):
            x[n + 1] += 0.5 * x[n]

    sweep()
    x.wait()
    with tn.profile() as seen:
        sweep()
        x.wait()
    # The first 32 one by one, then eight at once.
    assert (seen.kernels, seen.copies, seen.allocations) == (36, 0, 0)


def test_long_rows_of_assignments_are_computed_several_at_once(own_programs: None) -> None:
    assert both((200, 50), rows, 40) > 0
    values = np.random.default_rng(7).random((200, 50))
    x = tn.asarray(values.copy())
    for n in range(199):
        rows(x, n)
        rows(values, n)
    old, before = x + 0, values.copy()
    for n in range(0, 100, 3):
        x[n], values[n] = x[n + 1] * 2, values[n + 1] * 2
        x[n + 1 : n + 3], values[n + 1 : n + 3] = 5.0, 5.0
    np.testing.assert_array_equal(np.asarray(x), values)
    np.testing.assert_array_equal(np.asarray(old), before)


def test_reading_in_between_sees_every_assignment() -> None:
    values = np.random.default_rng(8).random((120, 6))
    x = tn.asarray(values.copy())
    for n in range(119):
        rows(x, n)
        rows(values, n)
        if n % 11 == 3:
            assert x[n + 1, 2].item() == values[n + 1, 2]
        if n % 29 == 7:
            np.testing.assert_array_equal(np.asarray(x[n:]), values[n:])
    np.testing.assert_array_equal(np.asarray(x), values)


def test_parts_that_cannot_be_computed_at_once_still_are_right() -> None:
    values = np.random.default_rng(9).random((150, 12))
    x = tn.asarray(values.copy())
    for n in range(1, 149):
        for each in (x, values):
            each[n, 1:-1] = 0.25 * (
                each[n - 1, 1:-1] + each[n + 1, 1:-1] + each[n, :-2] + each[n, 2:]
            )
    np.testing.assert_array_equal(np.asarray(x), values)
