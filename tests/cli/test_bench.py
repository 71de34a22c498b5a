"""`tenfold bench` reports limits and shares; the bench of the repository agrees with NumPy."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import tenfold as tn
from tenfold.cli import bench
from tenfold.inspect import machine_limits
from tenfold.inspect.progress import Progress

Command = Callable[..., Any]
ROOT = Path(__file__).resolve().parent.parent.parent
QUICK = ("bench", "--rounds", "1", "--size-factor", "0.0001")


def test_report_names_every_limit_and_every_work(tenfold: Command) -> None:
    done = tenfold(*QUICK)
    assert done.code == 0, done.err
    for work in (*bench.MACHINE_LIMITS, *bench.WORKS):
        assert f"  {work.name} " in done.out
    pays, not_here = re.findall(r"(?:it pays|is as good): (.*)", done.out)
    names = [*pays.split("; "), *not_here.split("; ")]
    assert {*names} - {"nowhere"} == {work.name for work in bench.WORKS}
    assert "GB/s" in done.out
    assert "multiply-adds/s" in done.out
    assert done.err == ""


def test_limits_of_full_size_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    bench.save_limits({"copy": 3e9})
    assert machine_limits.measured_rates() == {"copy": 3e9}


def test_json_holds_positive_rates_and_shares_of_known_limits(tenfold: Command) -> None:
    done = tenfold(*QUICK, "--json")
    assert done.code == 0, done.err
    report = json.loads(done.out)
    assert list(report["limits"]) == [work.name for work in bench.MACHINE_LIMITS]
    assert all(facts["rate"] > 0 for facts in report["limits"].values())
    assert [facts["name"] for facts in report["works"]] == [work.name for work in bench.WORKS]
    for facts in report["works"]:
        assert facts["limit"] in report["limits"]
        assert facts["share"] > 0
        assert facts["numpy_milliseconds"] > 0


@pytest.mark.parametrize("work", bench.WORKS, ids=lambda work: work.name)
def test_works_are_the_same_for_numpy(work: bench.BenchWork) -> None:
    inputs = bench.bench_inputs(work, 2048)
    expected = (work.numpy or work.build)(*map(np.asarray, inputs))
    assert isinstance(expected, np.ndarray | np.generic)
    np.testing.assert_allclose(np.asarray(work.build(*inputs)), expected, rtol=1e-5)


def test_size_factor_above_one_is_refused_in_one_line(refused: Command) -> None:
    assert "size-factor" in refused(2, "bench", "--size-factor", "2")


def test_bytes_are_those_of_inputs_and_result() -> None:
    copy, triad = bench.MACHINE_LIMITS[0], bench.MACHINE_LIMITS[1]
    with Progress() as progress:
        of_copy = bench.measure(copy, 1, 1000 / copy.elements, progress)
        of_triad = bench.measure(triad, 1, 1000 / triad.elements, progress)
    assert (of_copy.bytes_moved, of_triad.bytes_moved) == (8000, 12000)
    assert of_copy.multiply_adds == 0


def test_multiply_adds_of_the_polynomials_are_their_fused_steps() -> None:
    x = tn.asarray(np.linspace(0, 1, 5, dtype=np.float32))
    text = tn.explain(bench.polynomials(x), stage="expression")
    assert 5 * text.count(" fma") == bench.multiply_adds_of_polynomials((5,))


def test_work_that_would_take_too_long_is_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "MAX_SECONDS", 0.0)
    with Progress() as progress:
        found = bench.measure(bench.MACHINE_LIMITS[0], 1, 0.001, progress)
    assert found.bytes_moved == 8  # one element


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A run of bench/kernels.py with tiny arrays, beside NumPy alone."""
    program, file = ROOT / "bench" / "kernels.py", tmp_path_factory.mktemp("bench") / "run.json"
    if not program.exists():
        pytest.skip("a source distribution has no bench/")
    words = [str(program), "--rounds", "1", "--size-factor", "0.001", "--peers", "numpy"]
    names = runpy.run_path(str(program.parent / "kernel_work" / "rows.py"))["WORKS"]
    # a few of them: `make smoke` compares the values of all at full size
    only = [word for work in names[::4] for word in ("--only", work.name)]
    done = subprocess.run(
        [sys.executable, *words, *only, "--json", str(file)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def test_formulas_of_the_bench_give_the_values_of_numpy(report: dict[str, Any]) -> None:
    assert len(report["rows"]) >= 4
    assert {row["name"]: row["wrong"] for row in report["rows"] if row["wrong"]} == {}


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names of docs/performance.py, which imports its siblings."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    return runpy.run_path(str(ROOT / "docs" / "performance.py"))


def test_pages_and_picture_are_made_from_a_run(programs: dict[str, Any]) -> None:
    report = programs["stored"]()["kernels"]
    titles = [row["title"] for row in report["rows"]]
    full = programs["acceptance"]({"kernels": report})
    assert all(title.replace("*", "\\*") in full for title in titles)
    assert programs["page"]({"kernels": report}).count("|---|") == 1
    picture = ElementTree.fromstring(programs["picture"](report))
    words = [element.text for element in picture.iter() if element.tag.endswith("text")]
    assert set(titles) <= set(words)
    circles = [element for element in picture.iter() if element.tag.endswith("circle")]
    assert len(circles) > len(titles)  # a dot of NumPy in each row, and its place in the legend


def test_pages_are_those_of_the_stored_runs(programs: dict[str, Any]) -> None:
    if not (ROOT / "bench").exists():
        pytest.skip("a source distribution has no bench/")
    reports = programs["stored"]()
    full = programs["acceptance"](reports)
    written = {name: (ROOT / name).read_text(encoding="utf-8")
               for name in ("docs/performance.md", "bench/acceptance.md")}  # fmt: skip
    made = {"docs/performance.md": programs["page"](reports), "bench/acceptance.md": full}
    assert written == made, "run `python docs/performance.py`"
    titles = [row["title"] for report in reports.values() for row in report["rows"]]
    assert [title for title in titles if f"| {title} |".replace("*", "\\*") not in full] == []


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [(0.000941, "941 ns"), (0.99951, "1 ms"), (0.9994, "999 us"), (2970, "2.97 s")],
)
def test_duration_has_the_unit_in_which_it_is_1_to_1000(
    milliseconds: float, shown: str, programs: dict[str, Any]
) -> None:
    assert programs["duration"](milliseconds) == shown


@pytest.mark.parametrize(
    ("times_as_fast", "shown"),
    [(0.53, "**slower: 0.53x**"), (0.96, "1.0x"), (3.41, "3.4x"), (3474.0, "3,474x")],
)
def test_ratio_below_one_is_marked_as_slower(
    times_as_fast: float, shown: str, programs: dict[str, Any]
) -> None:
    assert programs["ratio"](times_as_fast) == shown
