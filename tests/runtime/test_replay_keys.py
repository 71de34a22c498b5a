"""Plans that are replayed are those of the strides and holders of their operands."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.testing import assert_equal_bits


def laid_out(values: np.ndarray, axes: tuple[int, ...]) -> tn.Array:
    """Return values whose axes lie in this order, outer ones first."""
    inverse = tuple(int(axis) for axis in np.argsort(axes))
    lies = tn.asarray(np.ascontiguousarray(values.transpose(axes)))
    return (tn.permute_dims(lies, inverse) + 0.0).wait()


@pytest.mark.parametrize("length", [4, 52])
def test_layouts_of_one_shape_have_plans_of_their_own(length: int) -> None:
    values = np.random.default_rng(0).normal(size=(length, length, length))
    orders = [*permutations(range(3))]
    arrays = [laid_out(values, axes) for axes in orders]
    with tn.options(tier=1):
        for _ in range(3):
            for x in arrays:
                assert_equal_bits(x * 2.5 + x[::-1], values * 2.5 + values[::-1])
                assert_equal_bits(x - arrays[1] * x, values - values * values)
                assert_equal_bits(tn.max(x * 3.5, axis=1), np.max(values * 3.5, axis=1))


@pytest.mark.parametrize("length", [40, 200_000])
def test_held_node_is_computed_once_though_a_replay_did_not_keep_it(length: int) -> None:
    x = tn.asarray(np.arange(float(length))).wait()
    with tn.options(tier=1):
        for is_held in (False, False, True, False, True):
            part = x * 3.25
            total = tn.sum(part - x)
            if not is_held:
                del part
            else:
                _native.node_of(part).passed_through()  # by an earlier evaluation
            total.wait()
            if is_held:
                with tn.profile() as p:
                    assert_equal_bits(part, np.arange(float(length)) * 3.25)
                assert p.kernels == 0


@pytest.mark.parametrize("length", [40, 200_000])
def test_array_that_is_kept_is_not_written_over_though_a_replay_wrote_over_others(
    length: int,
) -> None:
    values = np.arange(float(length))
    with tn.options(tier=1):
        for is_kept in (False, False, True, False, True):
            x = (tn.asarray(values) + 1.5).wait()
            y = x * 3.25
            if not is_kept:
                del x
            assert_equal_bits(y, (values + 1.5) * 3.25)
            if is_kept:
                assert_equal_bits(x, values + 1.5)


@pytest.mark.parametrize("fill", [2, True, 2.25, 0j, 2.25 - 1j])
def test_parameters_of_every_kind_of_number_are_those_of_one_plan(fill: complex) -> None:
    matrix = tn.asarray(np.arange(9.0).reshape(3, 3) + np.eye(3)).wait()
    kept = []
    for _ in range(3):
        filled = tn.full((3, 3), fill)
        (filled + tn.linalg.inv(matrix)).wait()
        kept.append(_native.num_cached_plans())
    assert kept[1] == kept[2]
