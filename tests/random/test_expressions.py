"""Random expressions mean what NumPy makes of them: 200 each run, 1,600 under `make test-all`,
100,000 under `make fuzz`.

Half of them come from seeds, so that a failure can be had again by its number; half from
Hypothesis, which looks for small ones. Their arrays are computed one by one in random order, in
parts, or by two threads at once.
"""

from __future__ import annotations

import random

import hypothesis
import pytest
from hypothesis import HealthCheck, given, strategies

from .expression_draft import Seeded, Written
from .random_programs import check, generate

CHUNK = 25
"""Programs of one test: two seconds at the most."""
EXAMPLES = max(800, hypothesis.settings.default.max_examples // 2)
"""Programs from either source; the profile "fuzz" raises it."""


@pytest.mark.exhaustive
@pytest.mark.fuzz
@pytest.mark.parametrize("first", range(0, EXAMPLES, CHUNK))
def test_random_programs_from_seeds_equal_numpy(first: int) -> None:
    for seed in range(first, first + CHUNK):
        try:
            check(generate(Seeded(seed)), random.Random(seed))
        except AssertionError as error:
            pytest.fail(f"seed {seed}: {error}", pytrace=False)


@pytest.mark.exhaustive
@pytest.mark.fuzz
@pytest.mark.parametrize("part", range(EXAMPLES // CHUNK))
def test_random_programs_from_hypothesis_equal_numpy(part: int) -> None:
    @hypothesis.seed(part)
    @hypothesis.settings(
        max_examples=CHUNK,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategies.binary(min_size=64, max_size=1024), strategies.integers(0, 2**32 - 1))
    def equals_numpy(text: bytes, seed: int) -> None:
        check(generate(Written(text)), random.Random(seed))

    equals_numpy()
