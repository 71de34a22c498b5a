"""Second runs of random programs: all that a plan may have learnt from its example changes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz import check

PROGRAMS = int(os.environ.get("SECOND_RUN_PROGRAMS", "3"))
"""Each is some hundred pairs of runs; `.ci/run` and `make fuzz` ask for more."""


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_second_runs_have_the_values_of_the_reference(seed):
    pairs, wrong = check(seed)
    assert not wrong, "\n".join(wrong)
    assert pairs > 0


@pytest.mark.parametrize("seed", range(max(PROGRAMS // 8, 1)))
def test_second_runs_on_large_vectors(seed):
    pairs, wrong = check(seed, large=True)
    assert not wrong, "\n".join(wrong)
    assert pairs > 0


def test_another_process_has_the_values_from_the_cache_on_disk(tmp_path):
    program = [sys.executable, str(Path(__file__).with_name("fuzz.py"))]
    environment = {**os.environ, "TENFOLD_CACHE": "1", "TENFOLD_CACHE_DIR": str(tmp_path)}
    for _ in range(2):
        done = subprocess.run(
            [*program, "--programs", "1", "--seed", "50"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert any(tmp_path.rglob("*"))
