"""A small part that is made of what it is written over is computed beside the array first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tenfold as tn

pytestmark = pytest.mark.usefixtures("no_history")


@pytest.fixture(autouse=True)
def _planned() -> Iterator[None]:
    """No graph is interpreted while it is cold."""
    with tn.options(tier=1):
        yield


Step = Callable[[Any], object]


def seidel(x: Any) -> None:
    x[3, 1:-1] = 0.25 * (x[2, 1:-1] + x[4, 1:-1] + x[3, :-2] + x[3, 2:])


def transposed(x: Any) -> None:
    x[2:8, 2:8] = x[2:8, 2:8].T


def across(x: Any) -> None:
    x[0:6] = x[6:0:-1] * 2


def reversed_row(x: Any) -> None:
    x[5] = x[5, ::-1]


def around_its_middle(x: Any) -> None:
    x[4] = x[4] * 2 + x[4, 10]


STEPS = [seidel, transposed, across, reversed_row, around_its_middle]


@pytest.mark.parametrize("step", STEPS)
def test_small_part_takes_memory_for_itself_alone(step: Step) -> None:
    expected = np.random.default_rng(4).random((20, 20))
    x = tn.asarray(expected.copy()).wait()
    for _ in range(3):
        step(x)
        step(expected)
        x.wait()
    np.testing.assert_array_equal(np.asarray(x), expected)
    x = tn.asarray(expected.copy()).wait()  # the export above sees its memory
    with tn.profile() as seen:
        for _ in range(4):
            step(x)
            x.wait()
    assert (seen.copies, seen.temporaries) == (0, 4)
    for _ in range(4):
        step(expected)
    np.testing.assert_array_equal(np.asarray(x), expected)


@pytest.mark.parametrize("step", STEPS)
def test_same_bits_on_the_reference(step: Step) -> None:
    values = np.random.default_rng(5).random((20, 20))
    found = []
    for device in ("cpu", "reference"):
        with tn.options(device=device):
            x = tn.asarray(values)
            step(x)
            step(x)
            found.append(np.asarray(x))
    np.testing.assert_array_equal(*found)


def test_most_of_an_array_is_copied_as_before() -> None:
    x = tn.asarray(np.arange(100.0)).wait()
    with tn.profile() as seen:
        x[1:-1] = x[:-2] + x[2:]
        x.wait()
    assert (seen.copies, seen.temporaries) == (1, 0)


def test_old_value_that_is_held_is_kept() -> None:
    values = np.random.default_rng(6).random((20, 20))
    x = tn.asarray(values)
    held = x + 0
    reversed_row(x)
    x.wait()
    np.testing.assert_array_equal(np.asarray(held), values)


def test_failure_leaves_the_old_value() -> None:
    x = tn.asarray(np.arange(12)).wait()
    x[0:3] = tn.take(x, tn.asarray([11, 12, 0]) + tn.sum(x[:1]))
    with pytest.raises(IndexError):
        x.wait()
    x = tn.asarray(np.arange(12)).wait()
    x[0:3] = x[2::-1]
    assert x.tolist()[:4] == [2, 1, 0, 3]
