"""Kernels on disks that are full or cannot be written to, real ones: mounted in a namespace of the
process, where the system lets users do so.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

MOUNTED = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-ec"]
DISK = 'mount -t tmpfs -o size=64k,mode=700 tmpfs "$1"\n'
BEGIN = """
import os, sys
from pathlib import Path
from tenfold.jit.cache_entry import CacheEntry
from tenfold.jit.disk_cache import DiskCache

store, place = DiskCache(Path(sys.argv[1]), 1 << 20), bytes(32)
entries = [CacheEntry(bytes([i]) * 32, place, bytes([i]) * 6000, (0,), 2) for i in range(1, 20)]
there = lambda: [store.load(entry.key, place, 1) is not None for entry in entries]
"""
FILLED = """
kept = [store.store(entry) for entry in entries]
drafts = os.listdir(store.path / "writing")
print(2 < sum(kept) < 19, kept == sorted(kept, reverse=True), there() == kept, drafts)
"""
READ = """
print(store.store(entries[-1]), sum(there()) > 2, store.read(store.files()[0].name).level)
"""
COMPUTED = """
import sys
import numpy as np
import tenfold as tn
tn.set_options(cache=True, cache_dir=sys.argv[1], tier="1")
x = tn.asarray(np.arange(5.0))
print(np.asarray(x * x + 1).tolist(), np.asarray(tn.sum(x - 7)).tolist())
"""


def possible() -> bool:
    try:
        done = subprocess.run([*MOUNTED, DISK, "sh", "/tmp"], capture_output=True, check=False)
    except FileNotFoundError:
        return False
    return done.returncode == 0


pytestmark = pytest.mark.skipif(not possible(), reason="nothing can be mounted here")


def run(place: Path, commands: str, *codes: str) -> tuple[str, str]:
    """What processes print with that as their disk, on stdout and on stderr."""
    given = [sys.executable, str(place), *codes]
    script = 'python="$0"\n' + DISK + commands
    done = subprocess.run(
        [*MOUNTED, script, *given], capture_output=True, text=True, timeout=100, check=True
    )
    return done.stdout, done.stderr


def test_a_full_disk_keeps_what_fits_and_nothing_of_what_does_not(tmp_path: Path) -> None:
    out, error = run(tmp_path, '"$python" -c "$2" "$1"', BEGIN + FILLED)
    assert out == "True True True []\n"
    (line,) = error.splitlines()
    assert "No space left on device" in line


def test_a_disk_that_is_only_read_is_read(tmp_path: Path) -> None:
    commands = (
        '"$python" -c "$2" "$1" 2>&1 | wc -l; mount -o remount,ro "$1"; "$python" -c "$3" "$1"'
    )
    out, error = run(tmp_path, commands, BEGIN + FILLED, BEGIN + READ)
    assert out == "2\nFalse True 2\n"
    assert error == ""


def test_a_program_computes_on_a_full_disk(tmp_path: Path) -> None:
    commands = 'head -c 1M /dev/zero > "$1/zeros" 2>/dev/null || true; "$python" -c "$2" "$1"'
    out, error = run(tmp_path, commands, COMPUTED)
    assert out == "[1.0, 2.0, 5.0, 10.0, 17.0] -25.0\n"
    (line,) = error.splitlines()
    assert "kernels cannot be kept" in line
    assert "No space left on device" in line
