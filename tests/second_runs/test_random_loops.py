"""Random loops: read at the end they have the bits of waiting in each step, and NumPy's values."""

import os

import pytest

from random_loops import check

PROGRAMS = int(os.environ.get("SECOND_RUN_PROGRAMS", "2"))
"""`.ci/run` and `make fuzz` ask for more."""


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_loop_has_the_bits_of_waiting(seed):
    said = check(seed)
    assert not said, said
