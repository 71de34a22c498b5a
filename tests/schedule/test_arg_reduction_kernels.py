"""Positions over several axes as kernels: one fold along the flattened array."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tn
from tenfold.testing import random_array


@pytest.fixture(autouse=True)
def _on_cpu():
    with tn.options(device="cpu"):
        yield


def both(x: np.ndarray, **options: bool) -> None:
    """Compare the first largest and smallest with NumPy's."""
    for find, reference in ((tn.argmax, np.argmax), (tn.argmin, np.argmin)):
        found = np.asarray(find(tn.asarray(x), **options))
        assert np.array_equal(found, reference(x, **options))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 1025), (70, 2, 31)])
def test_first_of_equals_in_row_major_order(dtype, shape):
    x = (np.asarray(random_array(shape, np.dtype("float64"), seed=3)) > 0).astype(dtype)
    for seen in (x, x.T, x[::-1], x[..., ::2]):
        both(seen)
        both(seen, keepdims=True)


@pytest.mark.parametrize("places", [[0], [1500, 40], [3074]])
def test_first_nan_is_the_largest_and_the_smallest(places):
    x = np.arange(3075.0).reshape(3, 1025)
    x.flat[places] = np.nan
    for seen in (x, x.T, x[:, ::-1]):
        both(seen)


def test_position_over_all_axes_is_one_kernel():
    x = tn.asarray(np.arange(12.0).reshape(3, 4))
    with tn.profile() as profile:
        assert tn.argmax(x).item() == 11
        assert tn.argmin(x, keepdims=True).tolist() == [[0]]
    assert profile.calls == 0
