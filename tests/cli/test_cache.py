"""`tenfold cache`: what it lists, checks, removes and compiles beforehand."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.cli import cache, warming
from tenfold.jit import program

Command = Callable[..., Any]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directory of a cache that is on, and no kernel compiled yet."""
    tn.trim()
    monkeypatch.setattr(program, "PROGRAMS", program.Programs())
    monkeypatch.setattr(cache, "PROGRAMS", program.PROGRAMS)
    with tn.options(cache=True, cache_dir=str(tmp_path), tier="0"):  # else no plan would be made
        yield tmp_path / "kernels"
    tn.trim()


def compute() -> None:
    """Leave two kernels: one of a formula, one of a sum."""
    x = tn.asarray(np.arange(10.0))
    (x * 3.5 + tn.exp(x)).wait()
    tn.sum(x).wait()


@pytest.mark.usefixtures("fused_multiply_add")
def test_list_says_of_each_kernel_what_it_computes(tenfold: Command, place: Path) -> None:
    assert tenfold("cache", "list").out == "0 kernels, 0.0 of 256 MiB\n"
    compute()
    *lines, total = tenfold("cache", "list").out.splitlines()
    assert total == "2 kernels, 0.0 of 256 MiB"
    size, date = r"[0-9a-f]{12} +[0-9.]+ KiB", r"\d{4}-\d\d-\d\d \d\d:\d\d"
    form = rf"{size}  {date}  tier 0 +[0-9.]+ ms  [\w ]+ float64: "
    assert all(re.match(form, line) for line in lines)
    assert any("linear float64: " in line and " exp" in line for line in lines)


def test_verify_finds_and_removes_what_is_damaged(tenfold: Command, place: Path) -> None:
    compute()
    done = tenfold("cache", "verify")
    assert done.out == "2 kernels are right, 0 of them for other versions or processors\n"
    path = next(place.glob("?" * 64))
    path.write_bytes(path.read_bytes()[:-1])
    done = tenfold("cache", "verify")
    assert done.code == 3
    assert done.err == "tenfold: 1 kernel is damaged; remove them with --remove\n"
    assert done.out.startswith(f"{path.name[:12]}  it is damaged: ")
    assert "damaged" in tenfold("cache", "list").out
    assert "removed 1 that are damaged" in tenfold("cache", "verify", "--remove").out
    assert tenfold("cache", "verify").code == 0
    assert not path.exists()


def test_clear_removes_every_kernel(tenfold: Command, place: Path) -> None:
    compute()
    assert tenfold("cache", "clear").out == "removed 2 kernels, 0.0 MiB\n"
    assert tenfold("cache", "clear").out == "removed 0 kernels, 0.0 MiB\n"


def test_doctor_lists_the_cache(tenfold: Command, place: Path) -> None:
    compute()
    facts = json.loads(tenfold("doctor", "--json").out)["cache"]
    assert facts["directory"] == str(place)
    assert facts["kernels"] == 2
    assert 0 < facts["memory_taken"] < facts["memory_limit"] == 256 << 20
    place.chmod(0o755)
    report = json.loads(tenfold("doctor", "--json").out)
    assert any("its mode is 755" in line for line in report["problems"])
    done = tenfold("cache", "list")
    assert (done.code, done.out) == (3, "")
    assert "its mode is 755" in done.err


def test_without_a_cache_the_commands_say_so(tenfold: Command) -> None:
    with tn.options(cache=False):
        for name in ("list", "clear", "verify", "warm"):
            done = tenfold("cache", name)
            assert done.code == 3
            assert "the cache is not available" in done.err


COMPUTED = """
import sys
import numpy as np
import tenfold as tn
tn.set_options(cache=True, cache_dir=PLACE)
x, y = (tn.asarray(np.ones(300, np.float32)) for _ in range(2))
with tn.profile() as p:
    (x + tn.sum(y)).wait()
print(p.compiles, "llvmlite" in sys.modules)
"""


def test_warm_compiles_once_what_processes_then_run(
    tenfold: Command, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = list(warming.kernels(["float32"]))
    assert len(set(wanted)) == len(wanted) > 100
    monkeypatch.setattr(cache, "kernels", lambda dtypes: iter(wanted[:10]))
    adds = [each for each in warming.loops(["float32"]) if str(each).startswith("loop add(")][:6]
    monkeypatch.setattr(cache, "loops", lambda dtypes: iter(adds))
    folds = [each for each in warming.fold_loops(["float32"]) if "fold sum" in str(each)]
    assert len(folds) == 11
    monkeypatch.setattr(cache, "fold_loops", lambda dtypes: iter(folds))
    assert re.match("27 kernels are kept, 27 of them new", tenfold("cache", "warm").out)
    monkeypatch.setattr(cache, "PROGRAMS", program.Programs())
    assert re.match("27 kernels are kept, 0 of them new", tenfold("cache", "warm").out)
    code = COMPUTED.replace("PLACE", repr(str(place.parent)))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "0 False\n"


def test_warm_refuses_an_unknown_dtype(tenfold: Command, place: Path) -> None:
    done = tenfold("cache", "warm", "--dtype", "float33")
    assert done.code == 2
    assert "unknown dtype 'float33'" in done.err


def test_interrupted_warming_keeps_what_was_compiled(
    tenfold: Command, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = list(warming.kernels(["float32"]))[:3]
    compiled = program.Programs.compile
    left = [1, 1]

    def interrupted(*given: Any, **options: Any) -> program.Program:
        if not left:
            raise KeyboardInterrupt
        left.pop()
        return compiled(*given, **options)

    monkeypatch.setattr(cache, "kernels", lambda dtypes: iter(wanted))
    monkeypatch.setattr(program.Programs, "compile", interrupted)
    done = tenfold("cache", "warm")
    assert (done.code, done.err) == (130, "tenfold: interrupted; what has been compiled is kept\n")
    assert tenfold("cache", "list").out.endswith("2 kernels, 0.0 of 256 MiB\n")
