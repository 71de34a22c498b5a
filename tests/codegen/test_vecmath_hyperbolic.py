"""Hyperbolic functions and their inverses in packets: bounds, special values, bits."""

from __future__ import annotations

import numpy as np
import pytest

from packet_runner import bits, run, runnable, units
from tenfold.codegen.vecmath.hyperbolic import FORMULAS
from tenfold.dtypes import FLOAT32, FLOAT64
from tenfold.ops import elementary

INF, NAN = float("inf"), float("nan")
COUNT = 1 << 15
NUMPY = {
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
}
LIMITS = {"sinh": 2.1, "cosh": 2.1, "tanh": 1.1, "asinh": 2.7, "acosh": 2.0, "atanh": 1.4}
"""What was measured, rounded up; the public bounds are wider."""
REGIMES = {
    "sinh": [(-1, 1), (0.3, 0.5), (-90, 90), (-711, 711), (709, 710.6), (88, 89.5)],
    "cosh": [(-1, 1), (6, 9), (-90, 90), (-711, 711), (709, 710.6), (88, 89.5)],
    "tanh": [(-1, 1), (0.1, 0.6), (8, 9.2), (17.5, 20), (-25, 25)],
    "asinh": [(-1, 1), (0.49, 0.53), (-100, 100), (1e4, 1e5), (1e8, 3e9)],
    "acosh": [(0.9, 1.1), (1.05, 1.2), (1, 2), (1, 100), (1e4, 1e5), (1e8, 3e9)],
    "atanh": [(-1, 1), (0.1, 0.2), (-1.2, -0.8), (0.999, 1)],
}
SPECIAL = {
    "sinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN), (1e5, INF)],
    "cosh": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, INF), (NAN, NAN), (-1e5, INF)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (NAN, NAN), (30.0, 1.0)],
    "asinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN)],
    "acosh": [(1.0, 0.0), (INF, INF)] + [(x, NAN) for x in (NAN, 0.5, 0.0, -1.0, -3.0, -INF)],
    "atanh": [(0.0, 0.0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF)]
    + [(x, NAN) for x in (NAN, 1.5, INF, -INF, -2.0)],
}
NAMES = pytest.mark.parametrize("name", NUMPY)
DTYPES = pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)


def of_all_sizes(dtype: np.dtype) -> np.ndarray:
    """Random bits that are finite numbers: every exponent is as likely, subnormal ones as well."""
    whole = np.random.default_rng(7).integers(0, 256, COUNT * dtype.itemsize, dtype=np.uint8)
    numbers = whole.view(dtype)
    return numbers[np.isfinite(numbers)]


def points(name: str, dtype: np.dtype) -> np.ndarray:
    random = np.random.default_rng(11)
    parts = [random.uniform(low, high, COUNT).astype(dtype) for low, high in REGIMES[name]]
    return np.concatenate([*parts, of_all_sizes(dtype)])


def errors(name: str, x: np.ndarray) -> np.ndarray:
    wide = np.float64 if x.dtype == FLOAT32 else np.longdouble
    with np.errstate(all="ignore"):
        exact = NUMPY[name](x.astype(wide))
    return units(run(FORMULAS[name], x), exact)


@NAMES
@DTYPES
def test_error_is_within_what_was_measured(name: str, dtype: np.dtype) -> None:
    assert errors(name, points(name, dtype)).max() <= LIMITS[name]


@NAMES
def test_public_bound_holds_what_was_measured(name: str) -> None:
    assert LIMITS[name] <= getattr(elementary, name).accuracy


@NAMES
@DTYPES
def test_special_values_are_those_of_numpy(name: str, dtype: np.dtype) -> None:
    x, expected = (np.asarray(column, dtype) for column in zip(*SPECIAL[name], strict=True))
    np.testing.assert_array_equal(bits(run(FORMULAS[name], x)), bits(expected))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(bits(NUMPY[name](x)), bits(expected))


@pytest.mark.parametrize("name", ["sinh", "tanh", "asinh", "atanh"])
@DTYPES
def test_subnormal_numbers_are_their_own(name: str, dtype: np.dtype) -> None:
    first = np.finfo(dtype).smallest_subnormal
    x = first * np.arange(-1000, 1000).astype(dtype)
    np.testing.assert_array_equal(run(FORMULAS[name], x), x)


@pytest.mark.parametrize("name", ["sinh", "cosh"])
@DTYPES
def test_overflow_begins_where_the_exact_result_does(name: str, dtype: np.dtype) -> None:
    largest = np.arcsinh(np.longdouble(np.finfo(dtype).max))
    last = largest.astype(dtype)
    last = last if last <= largest else np.nextafter(last, dtype.type(0))
    x = np.asarray([last, np.nextafter(last, dtype.type(np.inf))])
    assert np.isfinite(run(FORMULAS[name], x)).tolist() == [True, False]


@NAMES
@DTYPES
def test_bits_are_the_same_on_every_cpu_and_for_every_packet(name: str, dtype: np.dtype) -> None:
    x = points(name, dtype)[::7]
    expected = bits(run(FORMULAS[name], x))
    for cpu in runnable():
        for lanes in (2, 8, 32):
            made = run(FORMULAS[name], x, cpu=cpu, lanes=lanes)
            np.testing.assert_array_equal(bits(made), expected, f"{cpu}, {lanes} lanes")
