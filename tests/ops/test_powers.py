"""Powers that have a shorter way: each device takes it for every element of such an exponent."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tn
from tenfold.testing import assert_equal_bits, special_values

DTYPES = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")


def base(dtype: str, device: str) -> tn.Array:
    drawn = np.random.default_rng(1).standard_normal((2, 500))
    parts = drawn[0] + 1j * drawn[1] if dtype.startswith("complex") else drawn[0] * 8
    some = np.asarray(tn.astype(tn.asarray(parts), getattr(tn, dtype)))
    return tn.asarray(np.concatenate([special_values(some.dtype), some]), device=device)


@pytest.mark.exhaustive
@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("exponent", [0, 1, 2, -1, 0.5])
@pytest.mark.parametrize("dtype", DTYPES)
def test_power_of_an_array_of_equal_exponents_is_that_of_the_number(
    dtype: str, exponent: float, device: str
) -> None:
    x = base(dtype, device)
    whole = np.asarray(x**exponent)
    assert_equal_bits(x ** tn.full_like(x, exponent), whole)
    mixed = tn.asarray(np.where(np.arange(x.size) % 2, exponent, 3).astype(x.dtype), device=device)
    assert_equal_bits((x**mixed)[1::2], whole[1::2])
    with tn.options(optimise=False):
        assert_equal_bits(x**exponent, whole)
    assert_equal_bits(base(dtype, "reference") ** exponent, whole)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_short_powers_have_the_bits_of_numpys(dtype: str) -> None:
    x = base(dtype, "cpu")
    given = np.asarray(x)
    with np.errstate(all="ignore"):
        for exponent in (0, 1, 2, -1):
            assert_equal_bits(x**exponent, given**exponent)
        finite = np.isfinite(given) & (given != 0)
        assert_equal_bits((x**0.5)[finite], (given**0.5)[finite])


def test_root_as_a_power_of_minus_infinity_is_infinity_and_of_minus_zero_zero() -> None:
    x = tn.asarray([-np.inf, -0.0])
    assert_equal_bits(x**0.5, np.asarray([np.inf, 0.0]))


def test_zeroth_power_of_nan_is_one() -> None:
    assert (tn.asarray([np.nan, np.inf]) ** 0).tolist() == [1.0, 1.0]
