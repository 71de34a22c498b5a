"""tn.testing: what it takes for equal and for near, and the values it offers."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tn
from tenfold.testing import (
    all_dtypes,
    assert_close,
    assert_equal_bits,
    random_array,
    special_values,
)


def test_equal_bits_compares_arrays_of_every_kind() -> None:
    for dtype in all_dtypes():
        x = random_array((2, 3), dtype, seed=1)
        assert_equal_bits(x, np.asarray(x).copy())
        assert_equal_bits(np.asarray(x), x)
    assert_equal_bits([1, 2], tn.asarray([1, 2]))


@pytest.mark.parametrize(
    ("actual", "desired", "message"),
    [
        ([1.0, -0.0], [1.0, 0.0], r"1 of 2 elements differ, first at \(1,\): -0.0 is not 0.0"),
        ([1.0], [[1.0]], r"shape \(1,\) is not \(1, 1\)"),
        (np.float32([1]), np.float64([1]), "dtype float32 is not float64"),
        (np.float64(1.0), np.nextafter(1.0, 2), "1 of 1 elements differ"),
        ([np.nan], [1.0], "nan is not 1.0"),
        (np.array([complex(1, -0.0)]), np.array([complex(1, 0.0)]), "1 of 1 elements differ"),
    ],
)
def test_unequal_bits_are_named(actual: object, desired: object, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        assert_equal_bits(actual, desired)


def test_nan_of_any_bits_equals_nan() -> None:
    other = np.array([0x7FC00001], np.uint32).view(np.float32)
    assert_equal_bits(np.float32([np.nan]), other)
    assert_close(np.float32([np.nan]), other)


@pytest.mark.parametrize("dtype", all_dtypes("f"), ids=str)
def test_units_in_the_last_place_are_those_of_the_desired_value(dtype: np.dtype) -> None:
    one = np.ones(1, dtype)
    above = (one.view(f"uint{8 * dtype.itemsize}") + 3).view(dtype)
    assert_close(above, one, ulp=3)
    with pytest.raises(AssertionError):
        assert_close(above, one, ulp=2)


def test_units_in_the_last_place_of_complex_are_those_of_the_modulus() -> None:
    assert_close(np.array([1e8 + 1e-8j]), np.array([1e8 + 0j]), ulp=1)
    with pytest.raises(AssertionError):
        assert_close(np.array([1 + 1e-8j]), np.array([1 + 0j]), ulp=1)


def test_close_is_relative_or_absolute() -> None:
    assert_close([1.0, 100.0], [1.0, 101.0], rtol=0.01)
    assert_close([0.0], [0.1], atol=0.1)
    assert_close([3, 5], [4, 5], atol=1)
    assert_close([np.inf], [np.inf])
    for wrong in ([np.inf], [-np.inf], [np.nan], [2.0]):
        with pytest.raises(AssertionError):
            assert_close(wrong, [1.0], rtol=0.1, atol=0.1)
    with pytest.raises(AssertionError):
        assert_close([1.0], [np.inf], rtol=10)


def test_special_values_hold_limits_zeros_and_nan() -> None:
    for dtype in all_dtypes("f"):
        values = special_values(dtype)
        assert values.dtype == dtype
        assert {"-0.0", "0.0", "inf", "-inf", "nan"} <= {str(float(v)) for v in values}
    assert special_values("uint8").tolist() == [0, 1, 254, 255]
    assert special_values(bool).tolist() == [False, True]
    assert special_values(tn.complex64).dtype == np.complex64


def test_random_arrays_are_the_same_for_the_same_seed() -> None:
    for dtype in all_dtypes():
        x, y, z = (np.asarray(random_array((50,), dtype, seed=seed)) for seed in (1, 1, 2))
        assert x.dtype == dtype
        assert x.tobytes() == y.tobytes() != z.tobytes()
    assert random_array((), "int8").shape == ()
    assert random_array(3).dtype == tn.float64


def test_an_unknown_dtype_is_refused() -> None:
    with pytest.raises(tn.errors.DTypeError):
        special_values("text")
