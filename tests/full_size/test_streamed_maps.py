"""Maps whose outputs are stored past the cache, on both sides of what the planner decides."""

import numpy as np
import pytest

import tenfold as tn
from tenfold.schedule.target import DEFAULT

ELEMENTS = {np.float64: 2_000_003, np.float32: 4_000_037}
"""Of one operand: with the result more than the bytes from which results bypass the cache."""


def _power(x):
    return x**x


def _quotients(x):
    return x / (x + 1) / (x + 2) / (x + 3)


def _sample(dtype):
    length = ELEMENTS[dtype]
    assert 2 * length * np.dtype(dtype).itemsize > DEFAULT.caches.streamed_bytes
    return np.random.default_rng(0).uniform(0.5, 2, length).astype(dtype)


@pytest.mark.exhaustive
@pytest.mark.parametrize("cpu", ["native", "x86-64-v3", "x86-64-v2", "x86-64"])
@pytest.mark.parametrize("dtype", ELEMENTS)
def test_heavy_bodies_that_bypass_the_cache_have_numpys_values(dtype, cpu):
    sample = _sample(dtype)
    with tn.options(cpu=cpu, tier=1):
        array = tn.asarray(sample)
        quotients, power = np.asarray(_quotients(array)), np.asarray(_power(array))
    np.testing.assert_array_equal(quotients, _quotients(sample))
    np.testing.assert_allclose(power, _power(sample), rtol=4 * np.finfo(dtype).eps)


def test_gelu_of_a_large_array_is_that_of_its_parts():
    sample = _sample(np.float64)
    whole = np.asarray(tn.gelu(tn.asarray(sample)))
    parts = [np.asarray(tn.gelu(tn.asarray(part))) for part in np.array_split(sample, 300)]
    np.testing.assert_array_equal(whole, np.concatenate(parts))


@pytest.mark.parametrize("begin", [1, 3, 8])
def test_results_in_place_of_a_part_that_is_not_aligned(begin):
    sample = _sample(np.float64)

    def part():
        return tn.asarray(sample)[begin:]

    for _ in range(2):
        with tn.options(tier=1):
            array = part()
            array *= 2
            array = array / 3
        np.testing.assert_array_equal(np.asarray(array), sample[begin:] * 2 / 3)


@pytest.mark.parametrize("begin", [0, 1, 5])
def test_windows_that_are_not_aligned_are_written_to(begin):
    sample = _sample(np.float64)
    memory = np.concatenate([np.zeros(begin), sample])
    window = tn.wrap(memory[begin:])
    window += 1
    window *= 3
    window.wait()
    np.testing.assert_array_equal(memory[begin:], (sample + 1) * 3)
    np.testing.assert_array_equal(memory[:begin], 0)
