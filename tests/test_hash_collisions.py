"""Whatever is found by a hash is compared in full: with hashes of 8 bits, and of none, the values
are those that they are with whole ones.

The cut holds for all that leads to plans, templates, loops, types, parameters and programs, and for
how often a graph was seen.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import numpy as np
import pytest
from tests.array.assignment_programs import check as check_assignments
from tests.array.test_update_loops import Loop
from tests.conftest import Part
from tests.random.expression_draft import Seeded
from tests.random.random_programs import check, generate
from tests.runtime.random_structures import computed, structure, values

import tenfold as tn
from tenfold import _native, caches
from tenfold._native import Type
from tenfold.testing import assert_equal_bits

CHUNK = 15


@pytest.fixture(params=[8], ids="{} bits".format)
def bits(request: pytest.FixtureRequest) -> Iterator[int]:
    """Hashes are cut to so many bits."""
    caches.truncate_hashes(request.param)
    yield request.param
    caches.truncate_hashes(None)


def test_types_and_parameters_that_meet_are_told_apart() -> None:
    before = [Type((n, 3), np.dtype("float32"), "cpu") for n in range(50)]
    caches.truncate_hashes(0)
    try:
        after = [Type((n, 3), np.dtype("float32"), "cpu") for n in range(100)]
        assert [each.shape for each in after] == [(n, 3) for n in range(100)]
        assert before == after[:50]
        assert len(set(after)) == 100
        x = tn.asarray(np.arange(60.0))
        found = [tn.reshape(x, (n, 60 // n)).shape for n in (1, 2, 3, 4, 5, 6, 10)]
        assert found == [(n, 60 // n) for n in (1, 2, 3, 4, 5, 6, 10)]
    finally:
        caches.truncate_hashes(None)
    assert before == [Type((n, 3), np.dtype("float32"), "cpu") for n in range(50)]


@pytest.mark.parametrize("bits", [0, 8], indirect=True)
def test_plans_that_meet_are_told_apart(bits: int) -> None:
    x = np.random.default_rng(bits).random((4, 5))
    operations = [tn.negative, tn.square, tn.sqrt, tn.abs]
    theirs = [np.negative, np.square, np.sqrt, np.abs]
    chains = [*itertools.product(range(4), repeat=3)]
    with np.errstate(invalid="ignore"), tn.options(tier=0):
        for _ in range(2):
            for chain in chains:
                made, wanted = tn.asarray(x), x
                for each in chain:
                    made, wanted = operations[each](made), theirs[each](wanted)
                made, wanted = made - 0.25, wanted - 0.25
                np.testing.assert_array_equal(np.asarray(made), wanted)
    assert _native.num_cached_plans() >= 20


def test_graphs_that_were_seen_seldom_have_their_values(bits: int) -> None:
    rng = random.Random(bits)
    for shape in itertools.product((1, 2, 3, 7, 40), (1, 2, 5, 9), (1, 4, 6)):
        x, y = (np.random.default_rng(n).uniform(1, 2, shape) for n in (1, 2))
        with tn.options(tier=rng.choice(("auto", 0))):
            a, b = tn.asarray(x), tn.asarray(y)
            for _ in range(3):
                made, wanted = (a - b) * a / 1.5, (x - y) * x / 1.5
                assert_equal_bits(np.asarray(made), wanted)
                total = tn.sum(a, axis=rng.randrange(3))
                assert total.shape in {shape[1:], shape[::2], shape[:2]}


def test_products_and_solutions_have_their_values(bits: int) -> None:
    rng = np.random.default_rng(bits)
    for n, m, k in itertools.product((1, 2, 5, 8), (1, 3, 6), (2, 7)):
        x, y = rng.integers(-4, 5, (n, m)) * 1.0, rng.integers(-4, 5, (m, k)) * 1.0
        a, b = tn.asarray(x), tn.asarray(y)
        np.testing.assert_array_equal(np.asarray(a @ b), x @ y)
        np.testing.assert_array_equal(np.asarray(tn.einsum("ij,jk->ki", a, b)), (x @ y).T)
        np.testing.assert_array_equal(np.asarray(2 * (a @ b) - 3), 2 * (x @ y) - 3)
        square = np.eye(n) * 2 + np.triu(np.ones((n, n)))
        right = square @ rng.integers(-4, 5, (n, k))
        solved = tn.linalg.solve(tn.asarray(square), tn.asarray(right))
        np.testing.assert_allclose(np.asarray(solved), np.linalg.solve(square, right), atol=1e-12)


def test_options_that_meet_are_told_apart(bits: int) -> None:
    x = tn.asarray(np.arange(5.0))
    numbers = set()
    for threads, tier, fuse in itertools.product(range(1, 9), (0, 1), (False, True)):
        with tn.options(threads=threads, tier=tier, fuse=fuse):
            numbers.add(tn.settings.options_fingerprint())
            assert (x * 2 + 1).tolist() == [1, 3, 5, 7, 9]
    assert len(numbers) == 32


@pytest.mark.parametrize("seed", range(2))
def test_structures_have_the_same_bits_for_all_lengths(seed: int, bits: int) -> None:
    made, source = structure(seed), random.Random(seed)
    lengths = [{axis: source.choice((1, 2, 3, 9, 33, 65)) for axis in "nmk"} for _ in range(15)]
    given = [values(made, each, number) for number, each in enumerate(lengths)]
    with tn.options(tier=0):
        found = [computed(made, each) for each in given]
        caches.truncate_hashes(None)
        wanted = [computed(made, each) for each in given]
    for ours, whole in zip(found, wanted, strict=True):
        for one, other in zip(ours, whole, strict=True):
            assert_equal_bits(one, other)


@pytest.mark.exhaustive
@pytest.mark.fuzz
@pytest.mark.parametrize("first", range(0, 45, CHUNK))
def test_random_programs_equal_numpy(first: int, bits: int, part: Part) -> None:
    for seed in part(range(first, first + CHUNK)):
        try:
            check(generate(Seeded(seed)), random.Random(seed))
        except AssertionError as error:
            pytest.fail(f"seed {seed}: {error}", pytrace=False)


@pytest.mark.fuzz
@pytest.mark.parametrize("first", range(0, 30, CHUNK))
def test_random_assignments_equal_the_interpreter(first: int, bits: int) -> None:
    for seed in range(first, first + CHUNK):
        try:
            check_assignments(seed)
        except AssertionError as error:
            pytest.fail(f"seed {seed}: {error}", pytrace=False)


@pytest.mark.fuzz
def test_long_loops_equal_numpy(bits: int) -> None:
    for seed in range(CHUNK):
        with np.errstate(all="ignore"):
            Loop(seed).run()
