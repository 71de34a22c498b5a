"""Casts: saturating, wrapping, rounding once."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import tenfold as tn

pytestmark = pytest.mark.usefixtures("tier")

FLOATS = [3.7, -3.7, 0.0, -0.0, 1e20, -1e20, np.inf, -np.inf, np.nan, 127.5, 255.99, 2.0**63]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "name", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
)
@pytest.mark.parametrize("source", ["float16", "bfloat16", "float32", "float64"])
def test_float_to_integer_truncates_and_saturates(name: str, source: str) -> None:
    limits = np.iinfo(name)
    x = tn.asarray(np.array(FLOATS)).astype(source)
    seen = np.asarray(x).astype(np.float64)
    whole = [
        0 if np.isnan(v) else limits.max if v == np.inf else limits.min if v == -np.inf else int(v)
        for v in seen
    ]
    expected = [min(max(value, limits.min), limits.max) for value in whole]
    assert x.astype(name).tolist() == expected


def test_integers_wrap() -> None:
    assert tn.asarray([300, -1]).astype("uint8").tolist() == [44, 255]


def test_everything_nonzero_is_true() -> None:
    assert tn.asarray([0.0, -0.0, float("nan"), 0.1]).astype(bool).tolist() == [
        False,
        False,
        True,
        True,
    ]
    assert tn.asarray([0j, 1j]).astype(bool).tolist() == [False, True]


def test_complex_to_real_is_refused() -> None:
    with pytest.raises(tn.errors.DTypeError, match=r"tn\.real"):
        tn.asarray([1j]).astype("float32")


@pytest.mark.parametrize(
    ("value", "rounded"),
    [
        (1.005859375, 1.0078125),
        (1.00390625, 1.0),  # a tie goes to even
        (1 + 2.0**-8 + 2.0**-40, 1.0078125),  # float32 in between would make a tie of it
        (-(1 + 2.0**-8 + 2.0**-40), -1.0078125),
        (1 + 2.0**-8 - 2.0**-40, 1.0),
        (3.39e38, 3.3895313892515355e38),
        (3.3961e38 * 1.01, np.inf),
        (2.0**-133, 2.0**-133),
        (2.0**-134 + 2.0**-160, 2.0**-133),
        (2.0**-134, 0.0),
        (np.inf, np.inf),
    ],
)
def test_bfloat16_is_rounded_once_to_nearest_even(value: float, rounded: float) -> None:
    assert tn.asarray([value]).astype("bfloat16").tolist() == [rounded]


def test_wide_integers_are_rounded_once_to_bfloat16() -> None:
    values = np.random.default_rng(0).integers(-(2**62), 2**62, 200)
    made = np.asarray(tn.asarray(values).astype("bfloat16")).astype(np.float64)
    for value, got in zip(values.tolist(), made.tolist(), strict=True):
        step = Fraction(2) ** (abs(value).bit_length() - 8)
        assert abs(Fraction(got) - value) <= step / 2
