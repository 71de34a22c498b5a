"""The lengths of the tests in this room follow from the constants of the planner."""

import numpy as np
import pytest

import thresholds
from tenfold.schedule.target import DEFAULT


def test_exceptions_name_constants_that_exist():
    assert set(thresholds.NOT_LENGTHS) <= set(thresholds.constants())


@pytest.mark.parametrize("itemsize", [1, 2, 4, 8, 16])
def test_lengths_lie_on_both_sides_of_each_threshold(itemsize):
    lengths = thresholds.lengths(itemsize)
    for at in (
        DEFAULT.work.range_elements,
        DEFAULT.work.split_row_elements,
        DEFAULT.caches.streamed_bytes // (2 * itemsize),
    ):
        assert {at - 1, at, at + 1} <= set(lengths)
    assert max(lengths) * itemsize <= thresholds.MOST_BYTES


def test_new_constants_make_new_lengths(monkeypatch):
    number = 54_321
    assert number not in thresholds.lengths(8)
    constants = thresholds.constants()
    monkeypatch.setattr(thresholds, "constants", lambda: constants | {"schedule.new.LONG": number})
    for cached in (thresholds.thresholds, thresholds.lengths):
        cached.cache_clear()
    try:
        assert {number - 1, number, number + 1} <= set(thresholds.lengths(8))
    finally:
        monkeypatch.undo()
        for cached in (thresholds.thresholds, thresholds.lengths):
            cached.cache_clear()


def test_native_constants_are_found():
    constants = thresholds.constants()
    assert constants["native.TIERS.max_elements"] == 1 << 17
    assert {np.sign(n) for n in thresholds.lengths(8)} == {1}
