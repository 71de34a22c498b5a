"""Kernels on disk between processes: killed writers, many at once, forks, and what a process that
finds everything compiled does not do.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import tenfold as tn
from tenfold.jit import disk_cache as stores
from tenfold.jit import program
from tenfold.testing import assert_equal_bits

BEGIN = """
import os, random, signal, sys, time
from dataclasses import replace
from pathlib import Path
from tenfold.jit import disk_cache as stores
from tenfold.jit.cache_entry import CacheEntry
from tenfold.jit.disk_cache import DiskCache

store = DiskCache(Path(sys.argv[1]), 1 << 20)
place = bytes(32)
entries = [
    CacheEntry(bytes([i]) * 32, place, bytes([i]) * (1000 * i), (0,), 2) for i in range(1, 9)
]
"""

KILLED = """
write, choices = os.write, random.Random(0)
os.write = lambda file, data: write(file, data[:512])
litter = 0
for turn in range(120):
    child = os.fork()
    if child == 0:
        while True:
            store.store(entries[choices.randrange(8)])
    time.sleep(choices.random() * 2e-3)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    litter += len(list(store.path.glob("writing/*")))
    stores._tidied.clear()  # as at the start of a process
    for entry in entries:
        found = store.load(entry.key, place, 1)
        assert found is None or store.read(entry.key.hex()) == entry
    assert not list(store.path.glob("writing/*"))
print(litter > 0, len(store.files()))
"""


def run(code: str, place: Path, **environment: str) -> str:
    """What a process prints that says nothing on stderr."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code, str(place)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (done.stderr, done.returncode) == ("", 0)
    return done.stdout


def test_killed_writers_leave_no_damage_and_no_litter(tmp_path: Path) -> None:
    assert run(BEGIN + KILLED, tmp_path) == "True 8\n"


MANY = """
children = []
for number in range(8):
    child = os.fork()
    if child == 0:
        try:
            stores._tidied.clear()
            for turn in range(50):
                store.store(entries[7])
                assert store.load(entries[7].key, place, 1)
                assert store.read(entries[7].key.hex()) == entries[7]
        finally:
            os._exit(int(sys.exc_info()[0] is not None))
    children.append(child)
print({os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children})
print(len(store.files()), len(list((store.path / "writing").iterdir())))
"""


def test_many_processes_keep_one_kernel_at_once(tmp_path: Path) -> None:
    assert run(BEGIN + MANY, tmp_path) == "{0}\n1 0\n"


COMPUTED = """
import os, sys
import numpy as np
import tenfold as tn
tn.set_options(cache=True, cache_dir=sys.argv[1], tier="0")

def compute():
    a, b = tn.asarray(np.arange(1.0, 500.0)), tn.asarray(np.arange(2.0, 501.0))
    return np.asarray(tn.sqrt(a * b) + tn.exp(-a) * 3 - b / (a + 1))
"""
AT_ONCE = """
children = []
for number in range(8):
    child = os.fork()
    if child == 0:
        try:
            compute()
        finally:
            os._exit(int(sys.exc_info()[0] is not None))
    children.append(child)
print({os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children})
"""
AGAIN = """
with tn.profile() as p:
    found = compute()
print(p.compiles, "llvmlite" in sys.modules, found.tobytes().hex()[-64:])
"""


@pytest.mark.usefixtures("fused_multiply_add")
def test_process_that_finds_its_kernels_compiles_nothing_and_imports_no_compiler(
    tmp_path: Path,
) -> None:
    assert run(COMPUTED + AT_ONCE, tmp_path) == "{0}\n"
    assert not list((tmp_path / "kernels" / "writing").iterdir())
    found = run(COMPUTED + AGAIN, tmp_path).split()
    assert found[:2] == ["0", "False"]
    cold = run(COMPUTED + AGAIN, tmp_path / "another").split()
    assert cold[:2] == ["1", "True"]
    assert cold[2] == found[2]


FORKED = """
first = compute()
child = os.fork()
if child == 0:
    same = np.array_equal(first, compute())
    more = np.asarray(tn.cos(tn.asarray(first)) * 2 + 1)  # compiled in the child
    os._exit(int(not (same and np.allclose(more, np.cos(first) * 2 + 1))))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), os.listdir(sys.argv[1]))
"""


@pytest.mark.usefixtures("fused_multiply_add")
def test_the_child_of_a_fork_runs_loaded_kernels_and_keeps_its_own(tmp_path: Path) -> None:
    for _ in range(2):
        assert run(COMPUTED + FORKED, tmp_path) == "0 ['kernels']\n"
    assert len(stores.DiskCache(tmp_path, 1 << 20).files()) == 2


@pytest.mark.usefixtures("fused_multiply_add")
def test_a_damaged_entry_is_a_line_on_stderr_and_no_failure(tmp_path: Path) -> None:
    run(COMPUTED + AGAIN, tmp_path)
    (path,) = (tmp_path / "kernels").glob("?" * 64)
    path.write_bytes(path.read_bytes()[:-1])
    done = subprocess.run(
        [sys.executable, "-c", COMPUTED + AGAIN, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split()[:2] == ["1", "True"]
    (line,) = done.stderr.splitlines()
    assert "is not used: it is damaged" in line


@pytest.mark.parametrize("tier", ["0", "1", "auto"])
def test_cold_warm_and_no_cache_have_the_same_bits(
    tmp_path: Path, own_programs: None, monkeypatch: pytest.MonkeyPatch, tier: str
) -> None:
    x = np.random.default_rng(3).normal(size=(40, 70)).astype(np.float32)

    def compute() -> bytes:
        tn.trim()
        monkeypatch.setattr(program, "PROGRAMS", program.Programs())
        a = tn.asarray(x)
        parts = (tn.softmax(a, axis=1), tn.cumulative_sum(a, axis=0), a @ a.T, tn.sum(a), -a)
        return b"".join(np.asarray(part).tobytes() for part in parts)

    found = []
    for cache in (False, True, True):
        with tn.options(cache=cache, cache_dir=str(tmp_path), tier=tier), tn.profile() as p:
            found.append(compute())
    assert p.compiles == 0
    assert len(set(found)) == 1
    assert_equal_bits(tn.asarray(x) * 2, x * 2)
    tn.trim()


def test_explain_foresees_a_kernel_on_disk(
    tmp_path: Path, own_programs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = tn.asarray(np.ones(30))
    with tn.options(cache=True, cache_dir=str(tmp_path), tier="1"):
        for there in ("to be compiled", "on disk, compiled"):
            tn.trim()
            monkeypatch.setattr(program, "PROGRAMS", program.Programs())
            text = (x * x + 3).explain("executed")
            assert f"a kernel, {there} with optimisation (tier 1)" in text
            (x * x + 3).wait()
    tn.trim()


def test_threads_may_load_the_same_kernel_at_once(
    tmp_path: Path, own_programs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.arange(1.0, 100.0)
    begin = threading.Barrier(8)

    def compute(number: int) -> bytes:
        begin.wait()
        with tn.options(cache=True, cache_dir=str(tmp_path), tier=0):
            return np.asarray(tn.log(tn.asarray(x)) * number - 1).tobytes()

    for turn in range(3):
        tn.trim()
        monkeypatch.setattr(program, "PROGRAMS", program.Programs())
        with ThreadPoolExecutor(8) as threads, tn.profile() as p:
            found = list(threads.map(compute, range(3, 11)))
        assert turn == 0 or p.compiles == 0
        for number, each in enumerate(found, 3):
            assert np.allclose(np.frombuffer(each), np.log(x) * number - 1, rtol=1e-14)
    tn.trim()
