"""Where one part of an array lies in another, against sets of indices."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tenfold.core.index_map import (
    IndexMap,
    Slice,
    are_disjoint,
    compose_view,
    relative_map,
    slice_of,
)
from tenfold.core.shape_rules import Pick, Shape, normalize_slice, product

SHAPES = [(7,), (4, 5), (1, 6), (3, 2, 4), ()]


def pick(chosen: random.Random, length: int) -> Pick:
    if chosen.random() < 0.4:
        return chosen.randrange(length)
    low, high = sorted(chosen.randrange(length + 1) for _ in range(2))
    step = chosen.choice([1, 1, 2, 3, -1, -2])
    if step > 0:
        return normalize_slice(slice(low, high, step), length)
    return normalize_slice(slice(high - 1 if high else 0, low - 1 if low else None, step), length)


def part(chosen: random.Random, shape: Shape) -> Slice:
    """A random part, with new axes of length 1 now and then."""
    picks = [pick(chosen, length) for length in shape]
    left = sum(not isinstance(each, int) for each in picks)
    new = (chosen.randrange(left + 1),) if chosen.random() < 0.3 else ()
    return slice_of(picks, new)


def numbers(whole: Shape, access: IndexMap, shape: Shape) -> np.ndarray:
    """The elements of an array that an access reads, by their numbers in row-major order."""
    all_ = np.arange(product(whole)).reshape(whole)
    places = []
    for axis, by, start in access:
        along = np.zeros(shape, int) if axis is None else np.indices(shape)[axis]
        places.append(start + by * along)
    return all_[tuple(places)] if whole else np.broadcast_to(all_, shape)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_parts_are_apart_or_inside_only_where_they_are(shape: Shape) -> None:
    chosen = random.Random(len(shape))
    found = {"apart": 0, "inside": 0}
    for _ in range(1500):
        (read, read_shape), (access, part_shape) = part(chosen, shape), part(chosen, shape)
        wanted, there = numbers(shape, read, read_shape), numbers(shape, access, part_shape)
        if are_disjoint((read, read_shape), (access, part_shape), shape):
            found["apart"] += 1
            assert not set(wanted.flat) & set(there.flat)
        within = relative_map((read, read_shape), (access, part_shape))
        if within is not None:
            found["inside"] += 1
            assert set(wanted.flat) <= set(there.flat)
            assert (numbers(part_shape, within, read_shape) == wanted_in(there, wanted)).all()
        elif read == access and read_shape == part_shape and product(part_shape):
            pytest.fail(f"{read} is not found in itself")
    assert found["inside"] > 20
    assert found["apart"] > 20 or not shape


def wanted_in(there: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The places, in the row-major order of a part, of elements of it."""
    places = {number: place for place, number in enumerate(there.flat)}
    return np.asarray([places[number] for number in wanted.flat], int).reshape(wanted.shape)


def test_boxes_are_told_apart_exactly() -> None:
    chosen = random.Random(5)
    for _ in range(1000):
        bounds = [sorted(chosen.sample(range(8), 2)) for _ in range(4)]
        boxes = [
            (((0, 1, low), (1, 1, left)), (high - low, right - left))
            for (low, high), (left, right) in (bounds[:2], bounds[2:])
        ]
        meet = set.intersection(*(set(numbers((8, 8), *box).flat) for box in boxes))
        assert are_disjoint(*boxes, (8, 8)) == (not meet)


def test_diagonal_is_apart_from_a_row_that_it_does_not_cross_and_inside_of_nothing() -> None:
    diagonal: IndexMap = ((0, 1, 1), (0, 1, 0))
    row = compose_view(((0, 1, 0),), ((None, 0, 0), (0, 1, 0)))
    assert are_disjoint((row, (4,)), (diagonal, (3,)), (4, 4))
    assert relative_map((((None, 0, 1), (None, 0, 0)), ()), (diagonal, (3,))) is None
