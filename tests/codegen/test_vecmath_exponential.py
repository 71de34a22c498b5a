"""The packets of exp, log, pow and their kin: errors by regime, ends, the same bits everywhere.

What is exact is computed in NumPy's longdouble, which has 64 bits of significand on x86.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from packet_runner import CPUS, bits, run, runnable, units
from tenfold.codegen.vecmath import FORMULAS, exponential, logarithm, power
from tenfold.core.op import OPS

FLOATS = (np.float32, np.float64)
COUNT = 1 << 14
BOUNDS = {
    "exp": 1.0,
    "exp2": 1.0,
    "expm1": 2.0,
    "log": 1.5,
    "log2": 1.5,
    "log10": 1.5,
    "log1p": 2.0,
}
"""In units in the last place: what the formulas keep, below what the operations promise."""
ENDS = (
    *(0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 2.5, -2.5),
    *(1e300, -1e300, 5e-324, -5e-324, 1e-45, 1e-40, 1e-310, 1 - 2**-53, 1 + 2**-52, -1 - 2**-52),
    *(2.0**53, 2.0**53 + 2, -(2.0**53) + 1, 1e20, 1e-20, 88.8, 89.0, -104.0, 710.0, -746.0),
    *(127.5, 128.0, -149.0, -149.5, -150.0, 1023.5, 1024.0, -1074.0, -1074.5, -1075.0, -1076.0),
)

every_float = pytest.mark.parametrize("dtype", FLOATS, ids=["float32", "float64"])
every_unary = pytest.mark.parametrize("name", BOUNDS)


def samples(dtype: type) -> dict[str, np.ndarray]:
    """Arguments by regime: all bit patterns, around 0 and 1, to both ends of the results."""
    random = np.random.default_rng(7)
    limits = np.finfo(dtype)
    size = limits.dtype.itemsize
    largest, smallest = np.log(float(limits.max)), -np.log(float(limits.smallest_subnormal))
    signs = random.choice([-1.0, 1.0], COUNT)
    found = {
        "any bits": random.integers(0, 2 ** (8 * size), COUNT, f"u{size}").view(dtype),
        "around 1": 1 + random.uniform(-0.5, 1, COUNT),
        "close to 1": 1 + signs * 10 ** random.uniform(-16, -1, COUNT),
        "around 0": signs * 10 ** random.uniform(-300, 0, COUNT),
        "moderate": random.uniform(-10, 10, COUNT),
        "to the ends": random.uniform(-1.05, 1.05, COUNT) * smallest,
        "at overflow": random.uniform(0.98, 1.01, COUNT) * largest,
        "at overflow of 2": random.uniform(0.98, 1.01, COUNT) * largest / np.log(2),
        "to results below normal": -random.uniform(largest, smallest * 1.01, COUNT),
        "below normal": random.uniform(-1, 1, COUNT) * float(limits.tiny),
    }
    with np.errstate(all="ignore"):
        return {name: np.asarray(x).astype(dtype) for name, x in found.items()}


def exact(function: Callable[..., np.ndarray], *arguments: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return function(*(x.astype(np.longdouble) for x in arguments))


def reference(name: str, *arguments: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(OPS[name].reference(*arguments))


def combined(dtype: type) -> tuple[np.ndarray, np.ndarray]:
    """Every pair of ENDS."""
    with np.errstate(all="ignore"):
        values = np.array(ENDS).astype(dtype)
    x, y = np.meshgrid(values, values)
    return x.ravel(), y.ravel()


def same_ends(found: np.ndarray, right: np.ndarray, arguments: tuple[np.ndarray, ...]) -> None:
    """Zeros, infinities and NaN are the same, with the signs of zeros; the rest is close."""
    ends = (right == 0) | ~np.isfinite(right) | (found == 0) | ~np.isfinite(found)
    wrong = ends & (bits(found) != bits(right))
    with np.errstate(all="ignore"):
        wrong |= ~ends & (np.abs(found - right) > 4 * np.spacing(np.abs(right)))
    shown = [(*(x[i] for x in arguments), found[i], right[i]) for i in np.flatnonzero(wrong)]
    assert not shown


@every_float
@every_unary
def test_error_is_bounded_in_every_regime(name: str, dtype: type) -> None:
    for regime, x in samples(dtype).items():
        error = units(run(FORMULAS[name], x), exact(getattr(np, name), x))
        worst = error.argmax()
        assert error[worst] <= BOUNDS[name], (regime, x[worst])


@every_float
@every_unary
def test_ends_are_those_of_the_reference(name: str, dtype: type) -> None:
    with np.errstate(all="ignore"):
        x = np.array(ENDS).astype(dtype)
    same_ends(run(FORMULAS[name], x), reference(name, x), (x,))


@every_float
@pytest.mark.parametrize("name", ["pow", "logaddexp"])
def test_ends_of_pairs_are_those_of_the_reference(name: str, dtype: type) -> None:
    x, y = combined(dtype)
    same_ends(run(FORMULAS[name], x, y), reference(name, x, y), (x, y))


def pairs(dtype: type) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Bases and exponents by regime."""
    random = np.random.default_rng(8)
    limits = np.finfo(dtype)
    size = limits.dtype.itemsize
    largest = np.log(float(limits.max))
    low = random.uniform(-1, 1, COUNT)
    any_bits = random.integers(0, 2 ** (8 * size), (2, COUNT), f"u{size}").view(dtype)
    whole = random.integers(-40, 41, COUNT)
    found = {
        "any bits": (any_bits[0], any_bits[1]),
        "wide bases": (np.exp(low * largest), random.uniform(-2, 2, COUNT)),
        "to the ends": (np.exp(low), random.uniform(-1.1, 1.1, COUNT) * largest / low),
        "bases close to 1": (1 + low * 1e-5, random.uniform(-1, 1, COUNT) * largest * 1e5),
        "moderate": (np.exp(low * 2), random.uniform(-3, 3, COUNT)),
        "bases below normal": (np.abs(low) * float(limits.tiny), random.uniform(-1, 1, COUNT)),
        "whole": (whole, random.integers(-30, 31, COUNT)),
        "negative bases": (-np.exp(low), random.integers(-300, 300, COUNT)),
    }
    with np.errstate(all="ignore"):
        return {
            name: (np.asarray(x).astype(dtype), np.asarray(y).astype(dtype))
            for name, (x, y) in found.items()
        }


@pytest.mark.parametrize(
    ("dtype", "bound"), [(np.float32, 0.51), (np.float64, 1.6)], ids=["float32", "float64"]
)
def test_error_of_pow_is_bounded_in_every_regime(dtype: type, bound: float) -> None:
    for regime, (x, y) in pairs(dtype).items():
        error = units(run(FORMULAS["pow"], x, y), exact(np.power, x, y))
        worst = error.argmax()
        assert error[worst] <= bound, (regime, x[worst], y[worst])


@every_float
def test_error_of_logaddexp_is_bounded_in_units_of_its_floor_and_above(dtype: type) -> None:
    random = np.random.default_rng(9)
    pairs = [random.normal(size=(2, COUNT)) * spread for spread in (1e-3, 1.0, 10.0, 100.0)]
    near = -random.uniform(0, 6, COUNT)
    pairs.append(np.array([near, np.log(-np.expm1(near))]))  # the result is near 0
    floor = OPS["logaddexp"].accuracy_floor
    for pair in pairs:
        x, y = pair.astype(dtype)
        right = exact(np.logaddexp, x, y)
        scale = np.maximum(np.abs(right), floor).astype(dtype)
        error = np.abs(run(FORMULAS["logaddexp"], x, y) - right) / np.spacing(scale)
        assert error.max() <= 2.0


@pytest.mark.skipif(runnable() != CPUS, reason="this processor has no AVX-512")
@every_float
@every_unary
def test_bits_are_the_same_on_every_cpu_and_for_any_lanes(name: str, dtype: type) -> None:
    x = np.concatenate(list(samples(dtype).values()))
    first = bits(run(FORMULAS[name], x, cpu="x86-64-v4"))
    for lanes in (4, 32):
        assert (bits(run(FORMULAS[name], x, cpu="x86-64-v3", lanes=lanes)) == first).all()


@pytest.mark.skipif(runnable() != CPUS, reason="this processor has no AVX-512")
@every_float
@pytest.mark.parametrize("name", ["pow", "logaddexp"])
def test_bits_of_pairs_are_the_same_on_every_cpu_and_for_any_lanes(name: str, dtype: type) -> None:
    x, y = map(np.concatenate, zip(*pairs(dtype).values(), strict=True))
    first = bits(run(FORMULAS[name], x, y, cpu="x86-64-v4"))
    for lanes in (4, 16):
        found = run(FORMULAS[name], x, y, cpu="x86-64-v3", lanes=lanes)
        assert (bits(found) == first).all()


@every_float
def test_exp2_of_a_whole_number_and_log2_of_its_power_are_exact(dtype: type) -> None:
    limits = np.finfo(dtype)
    whole = np.arange(limits.minexp - limits.nmant, limits.maxexp).astype(dtype)
    powers = np.ldexp(dtype(1), whole.astype(int))
    assert (run(FORMULAS["exp2"], whole) == powers).all()
    assert (run(FORMULAS["log2"], powers) == whole).all()


def test_log10_of_a_power_of_ten_is_exact() -> None:
    tens = np.array([float(f"1e{i}") for i in range(309)])
    assert (run(FORMULAS["log10"], tens) == np.arange(309)).all()
    short = tens[:11].astype(np.float32)
    assert (run(FORMULAS["log10"], short) == np.arange(11)).all()


@every_float
def test_pow_is_exact_where_the_power_is_a_number_of_the_dtype(dtype: type) -> None:
    x, y = (each.ravel().astype(dtype) for each in np.meshgrid(np.arange(1, 40), np.arange(5)))
    assert (run(FORMULAS["pow"], x, y) == x.astype(np.int64) ** y.astype(np.int64)).all()
    roots = np.arange(1, 2000).astype(dtype)
    halves = np.full_like(roots, 0.5)
    assert (run(FORMULAS["pow"], roots * roots, halves) == roots).all()


@every_float
def test_pow_of_one_rare_element_leaves_its_neighbours_as_they_are(dtype: type) -> None:
    x, y = np.linspace(0.5, 9, 64).astype(dtype), np.linspace(-3, 3, 64).astype(dtype)
    usual = run(FORMULAS["pow"], x, y)
    x[10], y[10] = -2.0, 3.0
    found = run(FORMULAS["pow"], x, y)
    assert found[10] == -8.0
    assert (np.delete(found, 10) == np.delete(usual, 10)).all()


@every_float
@pytest.mark.parametrize("name", ["expm1", "log1p"])
def test_numbers_below_normal_are_themselves_near_zero(name: str, dtype: type) -> None:
    tiny = np.finfo(dtype).tiny * np.linspace(-1, 1, 101).astype(dtype)
    assert (bits(run(FORMULAS[name], tiny)) == bits(tiny)).all()


def test_every_formula_of_these_files_is_tested() -> None:
    made = {**exponential.FORMULAS, **logarithm.FORMULAS, **power.FORMULAS}
    rare = {name for name in made if "." in name}
    assert made.keys() - rare == {*BOUNDS, "pow", "logaddexp"}
    assert made.keys() <= FORMULAS.keys()
