"""A target that refuses an assignment keeps its value, and so do those who read it."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import DTypeError, ShapeError


def test_a_target_keeps_its_shape_and_values_when_the_result_has_another_shape() -> None:
    x = tn.zeros((2, 2))
    for other in (tn.ones((3, 2, 2)), tn.ones((3, 3))):
        with pytest.raises(ShapeError):
            x += other
    tn.testing.assert_equal_bits(x, np.zeros((2, 2)))


def test_a_target_keeps_its_dtype_and_values_when_the_result_has_another_kind() -> None:
    x = tn.asarray([1, 2])
    with pytest.raises(DTypeError):
        x += 1.5
    with pytest.raises(DTypeError):
        x *= 1j
    tn.testing.assert_equal_bits(x, np.array([1, 2]))


def test_a_target_keeps_its_values_when_a_scalar_does_not_fit() -> None:
    x = tn.asarray([1, 2], dtype=tn.uint8)
    with pytest.raises(OverflowError):
        x += 300
    tn.testing.assert_equal_bits(x, np.uint8([1, 2]))


def test_a_view_and_its_base_keep_their_values_when_the_view_refuses() -> None:
    x = tn.asarray([[1, 2], [3, 4]])
    row = x[0]
    with pytest.raises(DTypeError):
        row += 1.5
    with pytest.raises(ShapeError):
        x[0] = [5, 6, 7]
    with pytest.raises(ShapeError):
        tn.broadcast_to(row, (3, 2))[0] = 5
    assert row.tolist() == [1, 2]
    assert x.tolist() == [[1, 2], [3, 4]]


def test_a_narrower_result_of_the_same_kind_is_cast_to_the_target() -> None:
    x = tn.asarray([1.0, 2.0], dtype=tn.float32)
    x += tn.asarray([0.5, 0.25])
    tn.testing.assert_equal_bits(x, np.float32([1.5, 2.25]))


def test_options_of_a_block_that_raised_are_gone_after_it() -> None:
    def mix() -> tn.Array:
        return tn.asarray([1]) + tn.asarray([1.0])

    with pytest.raises(DTypeError), tn.options(strict_dtypes=True):
        mix()
    assert mix().tolist() == [2.0]


def test_a_wrong_option_beside_a_right_one_sets_neither() -> None:
    with pytest.raises(ValueError, match="pending_depth"):
        tn.set_options(strict_dtypes=True, pending_depth=1)
    assert tn.settings.get("strict_dtypes") is False
