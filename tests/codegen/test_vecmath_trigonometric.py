"""Sines and their inverses in packets: bounds over all kinds of arguments, special values, bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from packet_runner import bits, run, runnable, units
from tenfold.codegen.vecmath.trigonometric import cos, sin
from tenfold.core.scalar_ir import Body, Element
from tenfold.dtypes import FLOAT32, FLOAT64

NUMPY = {
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
}
BOUNDS = dict.fromkeys(NUMPY, 4.0) | {"sin": 2.0, "cos": 2.0}
ANGLES = ("sin", "cos", "tan")
DTYPES = (FLOAT32, FLOAT64)
WIDER = {FLOAT32: np.float64, FLOAT64: np.longdouble}
"""What the exact values are computed in."""
COUNT = 20_000


def call(name: str) -> Callable[..., Element]:
    return lambda k, *operands: k.call(name, *operands)


def error(name: str, *operands: np.ndarray) -> float:
    """The largest error of a function for these operands, in units in the last place."""
    wider = WIDER[operands[0].dtype]
    with np.errstate(all="ignore"):
        exact = NUMPY[name](*(each.astype(wider) for each in operands))
    return float(units(run(call(name), *operands), exact).max())


def spread(generator: np.random.Generator, low: int, high: int, dtype: np.dtype) -> np.ndarray:
    """Numbers of both signs whose exponents are spread over [low, high)."""
    numbers = generator.uniform(1, 2, COUNT) * generator.choice([-1, 1], COUNT)
    with np.errstate(under="ignore"):
        return np.ldexp(numbers.astype(dtype), generator.integers(low, high, COUNT))


def angles(regime: str, dtype: np.dtype) -> np.ndarray:
    generator = np.random.default_rng(len(regime))
    limits = np.finfo(dtype)
    if regime == "usual":
        return generator.uniform(-100, 100, COUNT).astype(dtype)
    if regime == "many turns":
        return spread(generator, 5, 17 if dtype == FLOAT32 else 41, dtype)
    if regime == "huge":
        return spread(generator, 15, limits.maxexp, dtype)
    if regime == "tiny":
        return spread(generator, limits.minexp - limits.nmant, -5, dtype)
    turns = generator.integers(-(2**20), 2**20, COUNT) * (np.longdouble(np.pi) / 2)
    return (turns.astype(dtype) * (1 + generator.integers(-3, 4, COUNT) * limits.eps)).astype(dtype)


def plane(regime: str, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(len(regime))
    limits = np.finfo(dtype)
    if regime == "usual":
        return tuple(generator.normal(size=(2, COUNT)).astype(dtype))
    ranges = {
        "wide": (limits.minexp // 2, limits.maxexp // 2),
        "all": (limits.minexp - limits.nmant, limits.maxexp),
        "subnormal": (limits.minexp - limits.nmant, limits.minexp - limits.nmant + 12),
        "largest": (limits.maxexp - 3, limits.maxexp),
    }
    y, x = (spread(generator, *ranges[regime], dtype) for _ in range(2))
    return y, x


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("regime", ["usual", "many turns", "multiples", "huge", "tiny"])
@pytest.mark.parametrize("name", ANGLES)
def test_functions_of_angles_keep_their_bound(name, regime, dtype):
    assert error(name, angles(regime, dtype)) <= BOUNDS[name]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", ["asin", "acos", "atan"])
def test_inverse_functions_keep_their_bound(name, dtype):
    generator = np.random.default_rng(3)
    limits = np.finfo(dtype)
    near_one = 1 - spread(generator, -limits.nmant - 1, -1, FLOAT64) ** 2
    regimes = [
        generator.uniform(-1, 1, COUNT).astype(dtype),
        generator.uniform(0.45, 0.55, COUNT).astype(dtype),
        near_one.astype(dtype),
        -near_one.astype(dtype),
        spread(generator, limits.minexp - limits.nmant, 0, dtype),
    ]
    if name == "atan":
        regimes.append(spread(generator, -3, limits.maxexp, dtype))
    for regime in regimes:
        assert error(name, regime) <= BOUNDS[name]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("regime", ["usual", "wide", "all", "subnormal", "largest"])
def test_the_angle_of_a_point_keeps_its_bound(regime, dtype):
    assert error("atan2", *plane(regime, dtype)) <= BOUNDS["atan2"]


@pytest.mark.parametrize("name", ["sin", "cos", "tan", "asin", "acos", "atan"])
def test_float32_keeps_its_bound_over_a_grid_of_all_its_bits(name):
    every = np.arange(0, 2**32, 65521, dtype=np.uint64).astype(np.uint32).view(np.float32)
    assert error(name, every) <= BOUNDS[name]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", ["sin", "cos", "tan", "asin", "acos", "atan"])
def test_special_values_are_those_of_numpy(name, dtype):
    limits = np.finfo(dtype)
    values = [0.0, 1.0, 2.0, 0.5, np.inf, np.nan, limits.smallest_subnormal, limits.tiny]
    x = np.array(values + [-each for each in values], dtype)
    with np.errstate(all="ignore"):
        expected = NUMPY[name](x.astype(WIDER[dtype])).astype(dtype)
    found = run(call(name), x)
    zero_or_nan = (expected == 0) | ~np.isfinite(expected)
    assert (bits(found)[zero_or_nan] == bits(expected)[zero_or_nan]).all()
    assert (np.isfinite(found) == np.isfinite(expected)).all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_angles_of_zeros_and_infinities_are_those_of_numpy(dtype):
    limits = np.finfo(dtype)
    values = [0.0, limits.smallest_subnormal, 1.0, limits.max, np.inf, np.nan]
    both_signs = np.array([*values, *(-each for each in values)], dtype)
    y, x = np.repeat(both_signs, 12), np.tile(both_signs, 12)
    # In the wider dtype: NumPy's own atan2(1, 1) of float32 is not pi / 4.
    expected = np.arctan2(y.astype(WIDER[dtype]), x.astype(WIDER[dtype])).astype(dtype)
    assert (bits(run(call("atan2"), y, x)) == bits(expected)).all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", ["sin", "tan", "asin", "atan"])
def test_subnormal_numbers_are_their_own_values(name, dtype):
    x = np.arange(-1000, 1000).astype(dtype) * np.finfo(dtype).smallest_subnormal
    assert (bits(run(call(name), x)) == bits(x)).all()


def test_the_float64_nearest_to_a_multiple_of_a_quarter_turn_has_its_cosine():
    # J.-M. Muller, Elementary Functions, 3rd edition, chapter 11.
    x = np.full(8, np.ldexp(6381956970095103.0, 797))
    assert (run(call("cos"), x) == -4.6871659242546276e-19).all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", NUMPY)
def test_the_bits_depend_on_neither_cpu_nor_lanes(name, dtype):
    if name == "atan2":
        operands = plane("usual", dtype)
    elif name in ANGLES:
        operands = (np.concatenate([angles(each, dtype) for each in ("usual", "huge")]),)
    else:
        operands = (np.random.default_rng(7).uniform(-1, 1, COUNT).astype(dtype),)
    made = [
        bits(run(call(name), *operands, cpu=cpu, lanes=lanes))
        for cpu in runnable()
        for lanes in (4, 16)
    ]
    assert all((each == made[0]).all() for each in made[1:])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_huge_lane_changes_no_other_lane(dtype):
    x = np.linspace(-9, 9, 64).astype(dtype)
    mixed = x.copy()
    mixed[::5] = np.finfo(dtype).max
    alone, beside = run(call("sin"), x), run(call("sin"), mixed)
    usual = mixed == x
    assert (bits(alone)[usual] == bits(beside)[usual]).all()


def test_sine_and_cosine_of_one_angle_share_their_polynomials():
    body = Body()
    x = body.load(0, FLOAT64)
    sin(body, x)
    one = len(body.instructions)
    cos(body, x)
    assert len(body.instructions) - one <= 8
