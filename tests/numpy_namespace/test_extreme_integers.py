"""Integers at the ends of their dtypes: differences and ranges that leave the dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
import tenfold.numpy as ours

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
DTYPE = pytest.mark.parametrize("dtype", INTEGERS)


def extremes(dtype: str) -> np.ndarray:
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    return np.array([least, most, 0, 100, most // 2, least // 2, 1], dtype)


def compare(name: str, *args: Any, **options: Any) -> None:
    """Check that ours agrees with NumPy's, for Arrays, pending ones and a second call."""
    expected = getattr(np, name)(*args, **options)
    for convert in (tn.asarray, tn.asarray, lambda x: tn.asarray(x) + tn.asarray(0, dtype=x.dtype)):
        arrays = [convert(x) if isinstance(x, np.ndarray) else x for x in args]
        found = getattr(ours, name)(*arrays, **options)
        pairs = (
            zip(found, expected, strict=True)
            if isinstance(expected, tuple)
            else [(found, expected)]
        )
        for mine, numpys in pairs:
            assert np.asarray(mine).dtype == np.asarray(numpys).dtype
            np.testing.assert_allclose(np.asarray(mine), numpys, rtol=1e-12)


@pytest.mark.exhaustive
@DTYPE
@pytest.mark.parametrize("bins", [1, 3, 10])
def test_a_histogram_spans_the_whole_dtype(bins: int, dtype: str) -> None:
    x = extremes(dtype)
    compare("histogram", x, bins)
    compare("histogram", x, bins, density=True)
    compare("histogram", x, bins, weights=np.linspace(0.0, 1.0, x.size))
    compare("histogram", x, bins, (x.min(), x.max()))
    compare("histogram_bin_edges", x, bins)


def test_a_histogram_of_all_of_int8() -> None:
    x = ours.array([-128, 127, 0, 100], dtype="int8")
    assert ours.histogram(x, bins=3)[0].tolist() == [1, 1, 2]


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint64"])
def test_bins_narrower_than_the_distance_of_neighbours_are_refused(dtype: str) -> None:
    x = np.array([2.0**53 if dtype != "float32" else 2.0**24], dtype)
    for call in (np.histogram, ours.histogram):
        with pytest.raises(ValueError, match="Too many bins"):
            call(x if call is np.histogram else tn.asarray(x), bins=10)
    with pytest.raises(ValueError, match="Too many bins"):
        ours.histogram(tn.asarray(x), 10, (x[0], np.nextafter(np.float64(x[0]), np.inf)))


@DTYPE
def test_bins_of_any_integers_are_searched(dtype: str) -> None:
    x = extremes(dtype)
    compare("digitize", x, np.sort(x))
    compare("digitize", x, np.sort(x)[::-1].copy())
    with pytest.raises(ValueError, match="monotonically"):
        ours.digitize(x, [1, 4, 3])
    with pytest.raises(ValueError, match="monotonically"):
        ours.digitize(x, np.array([1, 4, 3], dtype))


@DTYPE
def test_the_step_of_a_falling_range_is_negative(dtype: str) -> None:
    start, stop = np.array([4, 1], dtype)
    compare("linspace", start, stop, 5, retstep=True)
    compare("linspace", *extremes(dtype)[:2], 5, retstep=True)


def test_a_range_to_an_unsigned_number_is_of_floats() -> None:
    for args in ((np.uint64(3),), (0, np.uint64(3)), (0, 3, np.uint64(1))):
        found = ours.arange(*args)
        assert found.dtype == np.arange(*args).dtype == np.float64
        assert found.tolist() == [0.0, 1.0, 2.0]


def test_bool_is_counted() -> None:
    compare("bincount", np.array([True, False, True]))


@pytest.mark.parametrize("name", ["heaviside", "logaddexp2"])
def test_two_integers_have_the_floats_of_each(name: str) -> None:
    for first in ("bool", *INTEGERS, "float16", "float32"):
        for second in ("bool", *INTEGERS, "float16", "float32"):
            x, y = np.ones(2, first), np.ones(2, second)
            found = getattr(ours, name)(tn.asarray(x), tn.asarray(y))
            assert found.dtype == getattr(np, name)(x, y).dtype


@DTYPE
def test_differences_between_quantiles_do_not_wrap(dtype: str) -> None:
    x = extremes(dtype)
    wide = x.astype(np.float64)
    for q in (0.1, 0.5, 0.9):
        expected = np.quantile(wide, q)
        assert ours.quantile(tn.asarray(x), q).item() == pytest.approx(expected, rel=1e-12)
