"""The reference of erfc against series in decimal numbers, over all its ranges."""

from __future__ import annotations

import numpy as np
import pytest

from exact_values import DECIMAL
from grid import distance
from tenfold.ops.elementary import erfc
from tenfold.ops.erfc import erfc_reference

RANGES = [(-6, 0), (-1e-3, 1e-3), (0, 1), (1, 2), (2, 6), (6, 7), (7, 20)]
FARTHER = [(20, 26), (26, 26.6), (26.6, 27.3)]
"""Where a value takes hundreds of digits; the last are subnormal numbers."""


def points(low: float, high: float, count: int) -> np.ndarray:
    return np.random.default_rng(5).uniform(low, high, count)


@pytest.mark.parametrize(
    ("low", "high", "count"), [(*ends, 60) for ends in RANGES] + [(*ends, 4) for ends in FARTHER]
)
def test_float64_is_within_two_steps(low: float, high: float, count: int) -> None:
    x = points(low, high, count)
    exact = np.array([DECIMAL["erfc"](item) for item in x.tolist()])
    assert distance(erfc_reference(x), exact).max() <= 2


@pytest.mark.parametrize(("low", "high"), [(-4, 0), (0, 1), (1, 9), (9, 10.1)])
def test_float32_is_the_nearest(low: float, high: float) -> None:
    x = points(low, high, 100).astype(np.float32)
    exact = np.array([DECIMAL["erfc"](item) for item in x.tolist()]).astype(np.float32)
    assert erfc.reference is not None
    np.testing.assert_array_equal(erfc.reference(x), exact)


def test_limits_and_what_is_no_number() -> None:
    x = np.array([0.0, -0.0, 5e-324, np.inf, 1e300, -np.inf, -30.0, np.nan])
    np.testing.assert_array_equal(erfc_reference(x), [1, 1, 1, 0, 0, 2, 2, np.nan])


def test_shape_is_kept() -> None:
    assert erfc_reference(np.zeros((0, 3))).shape == (0, 3)
    assert erfc_reference(np.asarray(0.5)).shape == ()
