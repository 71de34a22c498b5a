"""Quantiles: elements are selected, not sorted; values and dtypes are NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from tests.conftest import Part

import tenfold.numpy as tnp

LENGTHS = (1, 2, 3, 16, 33, 64, 65, 1000)
FRACTIONS: tuple[float | list[float], ...] = (0.0, 1.0, 0.5, 0.37, [0.5, 0.0, 1.0, 0.9], [[0.31]])


def _samples(length: int, dtype: str) -> list[np.ndarray]:
    rng = np.random.default_rng(length)
    x = (rng.normal(size=(3, length)) * 20).astype(dtype)
    with_nan, with_infinities = x.copy(), x.copy()
    if x.dtype.kind == "f":
        with_nan[1, length // 2] = np.nan
        with_infinities[:, 0], with_infinities[1, -1] = np.inf, -np.inf
    return [x, np.zeros_like(x), with_nan, with_infinities]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int8", "int64"])
def test_quantiles_of_any_length_are_those_of_numpy(dtype: str, part: Part) -> None:
    for length in part(LENGTHS):
        for x in _samples(length, dtype):
            given = tnp.asarray(x)
            with np.errstate(invalid="ignore"):
                wanted = [np.median(x, 1), np.median(x)]
                wanted += [np.quantile(x, q, axis) for q in FRACTIONS for axis in (1, None)]
            found = [tnp.median(given, 1), tnp.median(given)]
            found += [tnp.quantile(given, q, axis) for q in FRACTIONS for axis in (1, None)]
            for want, got in zip(wanted, map(np.asarray, found), strict=True):
                assert np.asarray(want).dtype == got.dtype
                np.testing.assert_array_equal(got, want, f"length {length}")


def test_median_and_quantile_select_elements_without_a_sort() -> None:
    x = tnp.asarray(np.arange(1000.0))
    for result in (tnp.median(x), tnp.quantile(x, [0.1, 0.9])):
        text = str(result.explain())
        assert "order_statistics" in text
        assert " sort" not in text
