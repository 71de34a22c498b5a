"""Mutated files of exported functions give an error, or the right result: a share of the fuzz."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tenfold as tn

TOOL = Path(__file__).parents[2] / "tools" / "fuzz_functions.py"


def test_mutated_files_have_no_fault() -> None:
    command = [sys.executable, str(TOOL), "--count", "200", "--seed", "7000000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 of 200 files have a fault" in done.stdout
    assert "computed" in done.stdout


def test_damaged_place_of_the_directory_is_a_damaged_file(tmp_path: Path) -> None:
    tn.function(lambda x: tn.sin(x)).save(tmp_path / "f.tn", tn.ones(3))
    data = bytearray((tmp_path / "f.tn").read_bytes())
    offset = data.rindex(b"PK\x05\x06") + 16
    for place in (2**32 - 2, 2**31, 10**6):
        data[offset : offset + 4] = place.to_bytes(4, "little")
        (tmp_path / "damaged.tn").write_bytes(data)
        with pytest.raises(ValueError, match="is not an exported function, or damaged"):
            tn.load_function(tmp_path / "damaged.tn")


@pytest.mark.parametrize("limit", ["a", 1.5, -1])
def test_limit_that_is_no_number_of_bytes_is_refused(tmp_path: Path, limit: Any) -> None:
    with pytest.raises(ValueError, match=r"limit .* is not a number of bytes\n  remedy: give an"):
        tn.load_function(tmp_path / "f.tn", limit=limit)
