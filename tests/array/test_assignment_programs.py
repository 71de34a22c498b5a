"""Random programs of assignments mean what an interpreter that copies everything makes of them.

100 of them each run, 300 under `make test-all`, 100,000 under `make fuzz`; a failure can be had
again by its seed.
"""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest

from .assignment_programs import check
from .copying_interpreter import Name, Refused

CHUNK = 50
"""Seeds of one test."""
PROGRAMS = max(300, hypothesis.settings.default.max_examples)
"""The profile "fuzz" raises it."""


@pytest.mark.exhaustive
@pytest.mark.fuzz
@pytest.mark.parametrize("first", range(0, PROGRAMS, CHUNK))
def test_random_programs_of_assignments_equal_the_interpreter(first: int) -> None:
    for seed in range(first, first + CHUNK):
        try:
            check(seed)
        except AssertionError as error:
            pytest.fail(f"seed {seed}: {error}", pytrace=False)


# The interpreter itself, where NumPy has the same meaning.


def test_interpreter_writes_through_views_as_numpy() -> None:
    values = np.arange(24).reshape(4, 6)
    name = Name.of(values)
    view = name.view(lambda x: x[1:, ::-2].T)
    view.assign((slice(1, None), 0), [50, 60])
    view.assign(0, 2, "*")
    theirs = values[1:, ::-2].T
    theirs[1:, 0] = [50, 60]
    theirs[0] *= 2
    assert name.read().tolist() == values.tolist()
    assert view.read().tolist() == theirs.tolist()


def test_interpreter_adds_once_where_an_index_occurs_twice() -> None:
    name = Name.of(np.zeros(3))
    name.assign(np.array([0, 0, 2]), np.array([1.0, 2.0, 3.0]), "+")
    assert name.read().tolist() == [2.0, 0.0, 3.0]


def test_interpreter_keeps_what_was_copied_and_refuses_what_does_not_fit() -> None:
    name = Name.of(np.arange(4))
    flat = name.view(lambda x: np.reshape(x, (2, 2)).T).view(lambda x: np.reshape(x, (-1,)))
    for given, why in ((1.5, "dtype"), (np.zeros(3, int), "shape")):
        with pytest.raises(Refused, match=why):
            name.assign(..., given)
    name.assign(..., 7)
    assert flat.read().tolist() == [0, 2, 1, 3]
