"""erf, erfc, cbrt and hypot in packets: bounds, special values, bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from packet_runner import bits, run, runnable, units
from tenfold.codegen.vecmath.special import FORMULAS
from tenfold.dtypes import FLOAT32, FLOAT64
from tenfold.ops import elementary

INF, NAN = float("inf"), float("nan")
COUNT = 1 << 13
Wide = NDArray[np.longdouble]
ROOT_OF_PI = np.sqrt(np.longdouble("3.14159265358979323846264338327950288"))
LIMITS = {"erf": 1.4, "erfc": 2.3, "cbrt": 0.6, "hypot": 1.1}
"""What was measured, rounded up; the public bounds are wider."""
REGIMES = {
    "erf": [(-1, 1), (0.8, 1.2), (-6, 6), (3.5, 4.5)],
    "erfc": [(-6, 1), (0, 1), (0.4, 0.6), (0, 6), (6, 26), (26, 28), (9, 10.2)],
    "cbrt": [(1, 8), (-1, 1), (-1e6, 1e6), (-1e-38, 1e-38)],
    "hypot": [(-1, 1), (-1e10, 1e10), (1e-20, 1e-19), (-1e-38, 1e-38), (1e38, 3e38)],
}
SPECIAL = {
    "erf": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (NAN, NAN), (7.0, 1.0)],
    "erfc": [(x, 1.0) for x in (0.0, -0.0, 1e-30)]
    + [(INF, 0.0), (30.0, 0.0), (-INF, 2.0), (-30.0, 2.0), (NAN, NAN)],
    "cbrt": [(x**3, x) for x in (0.0, -0.0, INF, -INF, NAN, 1.0, -2.0, 3.0, 2.0**-42)],
}
PAIRS = [
    *((x, y, INF) for x, y in [(INF, NAN), (-INF, NAN), (NAN, INF), (INF, 1.0), (0.0, -INF)]),
    *((x, y, NAN) for x, y in [(NAN, 1.0), (1.0, NAN), (NAN, NAN), (0.0, NAN)]),
    *((3.0, 4.0, 5.0), (-3.0, -4.0, 5.0), (0.0, -0.0, 0.0), (-0.0, -0.0, 0.0), (-7.0, 0.0, 7.0)),
]
ONE = pytest.mark.parametrize("name", SPECIAL)
ALL = pytest.mark.parametrize("name", LIMITS)
DTYPES = pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)


def gauss(x: Wide) -> Wide:
    """exp(-x**2), for numbers of 64 bits: the square of the upper half of them is exact."""
    head = x.astype(np.float32).astype(np.longdouble)
    return np.asarray(np.exp(-head * head) * np.exp((head - x) * (head + x)))


def erf(x: Wide) -> Wide:
    """A series without cancellation (Abramowitz and Stegun 7.1.6), up to 3.

    Above, what is missing from 1.
    """
    near = np.clip(x, -3, 3)
    term = total = near * 2 / ROOT_OF_PI
    for n in range(1, 80):
        term = term * 2 * near * near / (2 * n + 1)
        total = total + term
    return np.where(np.abs(x) > 3, np.copysign(1 - erfc_far(np.abs(x)), x), gauss(near) * total)


def erfc_far(x: Wide) -> Wide:
    """A continued fraction (Abramowitz and Stegun 7.1.14), from 2."""
    x = np.clip(x, 2, 30)
    below = x
    for n in range(80, 0, -1):
        below = x + n / (2 * below)
    return gauss(x) / below / ROOT_OF_PI


def erfc(x: Wide) -> Wide:
    return np.where(x > 2, erfc_far(x), 1 - erf(x))


EXACT: dict[str, Callable[..., Wide]] = {
    "erf": erf,
    "erfc": erfc,
    "cbrt": np.cbrt,
    "hypot": np.hypot,
}


def operands(name: str, dtype: np.dtype) -> list[np.ndarray]:
    """Numbers of the regimes, and random bits that are finite numbers."""
    random = np.random.default_rng(13)
    parts = [random.uniform(low, high, COUNT).astype(dtype) for low, high in REGIMES[name]]
    whole = random.integers(0, 256, COUNT * dtype.itemsize, dtype=np.uint8).view(dtype)
    x = np.concatenate([*parts, whole[np.isfinite(whole)]])
    if name != "hypot":
        return [x]
    with np.errstate(all="ignore"):
        return [x, x[::-1].copy() * random.uniform(-3, 3, x.size).astype(dtype)]


@ALL
@DTYPES
def test_error_is_within_what_was_measured(name: str, dtype: np.dtype) -> None:
    inputs = operands(name, dtype)
    with np.errstate(all="ignore"):
        exact = EXACT[name](*(x.astype(np.longdouble) for x in inputs))
    assert units(run(FORMULAS[name], *inputs), exact).max() <= LIMITS[name]


@ALL
def test_public_bound_holds_what_was_measured(name: str) -> None:
    assert LIMITS[name] <= getattr(elementary, name).accuracy


@ONE
@DTYPES
def test_special_values(name: str, dtype: np.dtype) -> None:
    x, expected = (np.asarray(column, dtype) for column in zip(*SPECIAL[name], strict=True))
    np.testing.assert_array_equal(bits(run(FORMULAS[name], x)), bits(expected))


@DTYPES
def test_special_values_of_hypot_are_those_of_numpy(dtype: np.dtype) -> None:
    x, y, expected = (np.asarray(column, dtype) for column in zip(*PAIRS, strict=True))
    np.testing.assert_array_equal(bits(run(FORMULAS["hypot"], x, y)), bits(expected))
    np.testing.assert_array_equal(bits(np.hypot(x, y)), bits(expected))


@DTYPES
def test_hypot_neither_overflows_nor_vanishes_before_its_result(dtype: np.dtype) -> None:
    limits = np.finfo(dtype)
    x = np.asarray([limits.max, limits.max / 2, limits.smallest_subnormal, limits.tiny], dtype)
    y = np.asarray([1.0, limits.max / 2, 0.0, limits.tiny], dtype)
    expected = np.hypot(x.astype(np.longdouble), y.astype(np.longdouble)).astype(dtype)
    np.testing.assert_array_equal(run(FORMULAS["hypot"], x, y), expected)


@pytest.mark.parametrize("name", ["erf", "cbrt"])
@DTYPES
def test_subnormal_numbers_keep_their_bits(name: str, dtype: np.dtype) -> None:
    first = np.finfo(dtype).smallest_subnormal
    x = first * np.arange(-1000, 1000).astype(dtype)
    exact = EXACT[name](x.astype(np.longdouble))
    assert units(run(FORMULAS[name], x), exact).max() <= 0.6


@DTYPES
def test_erfc_vanishes_through_the_subnormal_numbers(dtype: np.dtype) -> None:
    x = np.linspace(*((9.1, 10.2) if dtype == FLOAT32 else (26.5, 27.4)), 5000).astype(dtype)
    made = run(FORMULAS["erfc"], x)
    exact = erfc(x.astype(np.longdouble))
    assert made[0] > 0
    assert made[-1] == 0
    assert np.unique(made[made < np.finfo(dtype).tiny]).size > 1000
    assert units(made, exact).max() <= LIMITS["erfc"]


@ALL
@DTYPES
def test_bits_are_the_same_on_every_cpu_and_for_every_packet(name: str, dtype: np.dtype) -> None:
    inputs = [x[::5].copy() for x in operands(name, dtype)]
    expected = bits(run(FORMULAS[name], *inputs))
    for cpu in runnable():
        for lanes in (2, 8, 32):
            made = run(FORMULAS[name], *inputs, cpu=cpu, lanes=lanes)
            np.testing.assert_array_equal(bits(made), expected, f"{cpu}, {lanes} lanes")
