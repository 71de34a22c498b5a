"""Philox4x32-10: the published vectors, and the formulas of distributions."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tn
from tenfold.ops import philox

# Random123, kat_vectors: counter, key, result.
VECTORS = (
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((2**32 - 1,) * 4, (2**32 - 1,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
)


@pytest.mark.parametrize(("counter", "key", "result"), VECTORS)
def test_block_is_that_of_the_published_vectors(
    counter: tuple[int, ...], key: tuple[int, ...], result: tuple[int, ...]
) -> None:
    words = [
        np.asarray([low + (high << 32)], np.uint64) for low, high in (key, counter[2:], counter[:2])
    ]
    block = philox.block(*words)
    assert tuple(int(word[0]) & philox.LOW for word in block) == result


def test_bits_are_the_first_words_of_the_blocks() -> None:
    assert tn.random.bits(0, 0, 1).tolist() == [0xE169C58D6627E8D5]
    assert tn.random.bits(0, 0, 1, dtype="uint32").tolist() == [0xE169C58D]


def words(values: list[int]) -> np.ndarray:
    return np.asarray(values, np.uint64)


def test_unit_has_the_upper_53_bits_of_two_words() -> None:
    random = np.random.default_rng(1)
    low, high = (random.integers(0, 2**32, 1000, dtype=np.uint64) for _ in range(2))
    expected = (((high << np.uint64(32)) | low) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    junk = random.integers(0, 2**32, 1000, dtype=np.uint64) << np.uint64(32)
    arrays = philox.ARRAYS
    unit = philox.half_open_unit(arrays, low | junk, high | junk, tn.float64)
    assert unit.tolist() == expected.tolist()
    assert philox.positive_unit(arrays, low, high).tolist() == (expected + 2.0**-53).tolist()
    assert philox.symmetric_unit(arrays, low, high).tolist() == (2 * expected - 1).tolist()


def test_unit_reaches_its_least_and_greatest_number() -> None:
    least, greatest = (words([bits]) for bits in (0, 2**32 - 1))
    arrays = philox.ARRAYS
    for dtype, step in ((tn.float64, 2.0**-53), (tn.float32, 2.0**-24)):
        assert philox.half_open_unit(arrays, least, least, dtype).tolist() == [0.0]
        assert philox.half_open_unit(arrays, greatest, greatest, dtype).tolist() == [1.0 - step]
    assert philox.positive_unit(arrays, least, least).tolist() == [2.0**-53]
    assert philox.positive_unit(arrays, greatest, greatest).tolist() == [1.0]
    assert philox.symmetric_unit(arrays, least, least).tolist() == [-1.0]


def test_logarithm_is_within_one_unit_in_the_last_place() -> None:
    random = np.random.default_rng(2)
    x = np.concatenate([random.random(20000), 2.0 ** random.uniform(-53, 60, 20000), [1.0, 2.0]])
    expected = np.log(x.astype(np.longdouble))
    error = np.abs(philox.log(philox.ARRAYS, x) - expected) / np.spacing(np.abs(np.log(x)))
    assert float(error.max()) < 1.0
    assert philox.log(philox.ARRAYS, np.asarray([1.0])).tolist() == [0.0]


def test_sine_of_half_turns_is_within_four_units_in_the_last_place() -> None:
    x = np.random.default_rng(3).uniform(-1, 1, 20000)
    half_pi = np.longdouble("1.57079632679489661923132169163975144")
    expected = np.sin(x.astype(np.longdouble) * half_pi)
    error = np.abs(philox.sin_half_pi(x) - expected) / np.spacing(np.abs(expected.astype(float)))
    assert float(error.max()) < 4.0


@pytest.mark.parametrize("count", [1, 2, 3, 10, 2**32 - 1, 2**32, 2**32 + 1, 2**63, 2**64 - 1])
def test_bounded_is_the_product_of_128_bits_and_the_count(count: int) -> None:
    random = np.random.default_rng(4)
    parts = [random.integers(0, 2**32, 500, dtype=np.uint64) for _ in range(4)]
    parts = [np.append(part, words([0, 2**32 - 1])) for part in parts]
    c0, c1, c2, c3 = ([int(word) for word in part] for part in parts)
    expected = [
        ((a + (b << 32) << 64) + c + (d << 32)) * count >> 128
        for a, b, c, d in zip(c0, c1, c2, c3, strict=True)
    ]
    below = philox.bounded((parts[0], parts[1], parts[2], parts[3]), words([count]))
    assert [int(number) for number in below] == expected
