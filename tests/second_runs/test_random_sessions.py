"""Random sessions: names, views, assignments, functions, batches and pushes in any order."""

import os

import pytest

from named_arrays import FIRST_WIDE
from random_sessions import check

SESSIONS = int(os.environ.get("SECOND_RUN_PROGRAMS", "4"))
"""Of each kind, narrow and wide. `.ci/run` and `make fuzz` ask for more. Of session 63 a live array
was once overwritten.
"""


@pytest.mark.parametrize("seed", [63, *range(SESSIONS), *range(FIRST_WIDE, FIRST_WIDE + SESSIONS)])
def test_session_has_the_values_of_numpy(seed):
    said = check(seed)
    assert not said, said
