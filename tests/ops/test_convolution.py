"""Convolution and correlation against NumPy and SciPy, and how fast they are planned."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import signal
from tests.conftest import Part

import tenfold as tn
from grid import ALL_DTYPES, HALVES
from tenfold.dtypes import DTYPES, kind_of
from tenfold.errors import ShapeError
from tenfold.ops import convolution


def drawn(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    kind = kind_of(DTYPES[dtype])
    low, high = (0, 2) if kind == "b" else (0, 5) if kind == "u" else (-4, 5)
    values = rng.integers(low, high, shape)
    if kind == "c":
        values = values + 1j * rng.integers(low, high, shape)
    return values.astype(DTYPES[dtype])


@pytest.mark.parametrize("mode", convolution.CONVOLUTION_MODES)
@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_sums_of_products_equal_numpy_exactly(name: str, dtype: str, mode: str, part: Part) -> None:
    for n, m in part(itertools.product((1, 2, 3, 4, 7, 40), repeat=2)):
        x, y = drawn((n,), dtype, 1), drawn((m,), dtype, 2)
        wide = [v.astype("float32") if dtype in HALVES else v for v in (x, y)]
        expected = getattr(np, name)(*wide, mode).astype(x.dtype)
        for _ in range(2):
            found = np.asarray(getattr(tn, name)(tn.asarray(x), tn.asarray(y), mode=mode))
            assert found.dtype == expected.dtype
            assert np.array_equal(found, expected), (n, m)


@pytest.mark.parametrize("mode", convolution.CONVOLUTION_MODES)
@pytest.mark.parametrize("name", ["convolve", "correlate"])
@pytest.mark.parametrize("kernel", [(3, 3), (7, 5), (1, 3)])
def test_images_equal_scipy(name: str, mode: str, kernel: tuple[int, int]) -> None:
    x, y = drawn((8, 9), "int64", 1), drawn(kernel, "int64", 2)
    found = getattr(tn, name)(tn.asarray(x), tn.asarray(y), mode=mode)
    assert np.array_equal(np.asarray(found), getattr(signal, name)(x, y, mode, "direct"))


def test_nan_reaches_the_sums_that_contain_it_only() -> None:
    x = np.arange(6.0)
    x[2] = np.nan
    found = np.asarray(tn.convolve(tn.asarray(x), tn.asarray([1.0, 2.0])))
    assert np.array_equal(found, np.convolve(x, [1.0, 2.0]), equal_nan=True)


def test_a_short_kernel_is_one_fused_kernel_and_a_long_one_stores_no_windows() -> None:
    x = tn.asarray(np.random.default_rng(0).standard_normal(100_000))
    with tn.options(tier=1), tn.profile() as profile:
        (tn.convolve(x, tn.asarray([0.25, 0.5, 0.25]), mode="valid") * 2 + 1).wait()
    assert (profile.kernels, profile.calls, profile.temporaries) == (1, 0, 0)
    kernel = tn.asarray(np.random.default_rng(1).standard_normal(100))
    with tn.options(tier=1), tn.profile() as profile:
        tn.convolve(x, kernel, mode="valid").wait()
    assert profile.bytes_allocated < 4 * x.nbytes


def test_members_of_a_batch_have_the_bits_of_single_calls() -> None:
    x, y = drawn((3, 9), "float64", 1), drawn((3, 4), "float64", 2)
    batch = np.asarray(tn.vmap(tn.convolve)(tn.asarray(x), tn.asarray(y)))
    singles = [
        np.asarray(tn.convolve(tn.asarray(a), tn.asarray(b))) for a, b in zip(x, y, strict=True)
    ]
    assert batch.tobytes() == np.stack(singles).tobytes()


@pytest.mark.parametrize(
    ("x", "y", "mode", "text"),
    [
        ((3,), (2,), "whole", "mode 'whole'"),
        ((3,), (2, 2), "full", "arrays of 1 and 2 axes"),
        ((0,), (2,), "full", "no elements to add"),
        ((3, 2), (2, 3), "valid", "neither of the shapes"),
    ],
)
def test_misfit_is_named(x: Any, y: Any, mode: str, text: str) -> None:
    with pytest.raises(ShapeError, match=text):
        tn.convolve(tn.zeros(x), tn.zeros(y), mode=mode)
