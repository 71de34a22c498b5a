"""Elementary functions of complex elements: bounds in units of the modulus, ends, bits."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from grid import same_or_close
from packet_runner import bits, run, runnable
from tenfold.ops import complex_functions

COUNT = 4_000
NUMPY = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
}
OF_PRODUCTS = ("exp2",)
"""NumPy computes them of a rounded product: exact values are no measure."""
ENDS = (0.0, -0.0, 1.0, -1.0, 0.5, 3.0, 80.0, -800.0, 1e-40, 1e30, np.inf, -np.inf, np.nan)
NAMES = pytest.mark.parametrize("name", NUMPY)
DTYPES = pytest.mark.parametrize("dtype", [np.complex64, np.complex128])


def joined(real: np.ndarray, imaginary: np.ndarray, dtype: type) -> np.ndarray:
    made = np.empty(real.shape, dtype)
    with np.errstate(all="ignore"):
        made.real, made.imag = real, imaginary
    return made


def numbers(dtype: type) -> np.ndarray:
    """Near 0, near 1, on the unit circle, of all magnitudes, and where exp overflows."""
    random = np.random.default_rng(5)
    limits = np.finfo(dtype)
    last = np.log(limits.max)

    def magnitudes(low: float, high: float) -> np.ndarray:
        signs = random.choice([-1, 1], COUNT)
        return np.exp2(random.uniform(low, high, COUNT)) * signs

    def even(low: float, high: float) -> np.ndarray:
        return random.uniform(low, high, COUNT)

    turns = even(-4, 4)
    parts = [
        (even(-3, 3), even(-3, 3)),
        (1 + magnitudes(-25, -1), magnitudes(-25, -1)),
        (np.cos(turns), np.sin(turns)),
        (magnitudes(-30, 9), magnitudes(-30, 9)),
        (magnitudes(limits.minexp - 20, limits.maxexp), magnitudes(limits.minexp, limits.maxexp)),
        (even(-1.1 * last, 1.1 * last), even(-1.1 * last, 1.1 * last)),
    ]
    return np.concatenate([joined(*each, dtype) for each in parts])


@NAMES
@DTYPES
def test_result_is_numpys_within_4_units_of_its_modulus(name: str, dtype: type) -> None:
    z = numbers(dtype)
    with np.errstate(all="ignore"):
        same_or_close(run(getattr(complex_functions, name), z), NUMPY[name](z), 4)


@pytest.mark.parametrize("name", [name for name in NUMPY if name not in OF_PRODUCTS])
@DTYPES
def test_error_is_within_4_units_of_the_modulus(name: str, dtype: type) -> None:
    z = numbers(dtype)
    with np.errstate(all="ignore"):
        exact = NUMPY[name](z.astype(np.clongdouble))
        found = run(getattr(complex_functions, name), z)
        inside = np.abs(exact) < np.finfo(dtype).max
        unit = np.spacing(np.abs(exact[inside]).astype(np.finfo(dtype).dtype))
        error = np.abs(found[inside].astype(np.clongdouble) - exact[inside]) / unit
    assert error.max() <= 4


@NAMES
@DTYPES
def test_infinite_parts_and_nan_are_where_numpys_are(name: str, dtype: type) -> None:
    parts = np.asarray(list(itertools.product(ENDS, repeat=2)))
    z = joined(parts[:, 0], parts[:, 1], dtype)
    with np.errstate(all="ignore"):
        expected = NUMPY[name](z)
    found = run(getattr(complex_functions, name), z)
    for made, right in ((found.real, expected.real), (found.imag, expected.imag)):
        np.testing.assert_array_equal(np.isnan(made), np.isnan(right))
        # C99 leaves the sign of some open.
        np.testing.assert_array_equal(np.isinf(made), np.isinf(right))


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "sin"])
@DTYPES
def test_zero_parts_keep_their_sign(name: str, dtype: type) -> None:
    zeros = (0.0, -0.0)
    real = 2.0 if name == "log" else 0.0
    z = joined(np.asarray([real, real]), np.asarray(zeros), dtype)
    found = run(getattr(complex_functions, name), z)
    np.testing.assert_array_equal(np.signbit(found.imag), [False, True])


@pytest.mark.exhaustive
@NAMES
@DTYPES
def test_bits_are_the_same_on_every_cpu_and_for_every_packet(name: str, dtype: type) -> None:
    z = numbers(dtype)[::11].copy()
    rule = getattr(complex_functions, name)
    expected = run(rule, z)
    for cpu in runnable():
        for lanes in (2, 16):
            made = run(rule, z, cpu=cpu, lanes=lanes)
            np.testing.assert_array_equal(bits(made.real), bits(expected.real))
            np.testing.assert_array_equal(bits(made.imag), bits(expected.imag))
