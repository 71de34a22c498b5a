"""Mutated files of exported functions give an error, or the right result: a share of the fuzz."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "fuzz_functions.py"


def test_mutated_files_have_no_fault() -> None:
    command = [sys.executable, str(TOOL), "--count", "400", "--seed", "7000000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 of 400 files have a fault" in done.stdout
    assert "computed" in done.stdout
