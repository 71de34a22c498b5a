"""Planted bugs: how many of the bugs of `tools/plants.py` the tests find.

Each plant changes a copy of the installed package, never the checkout; the tests run on that copy
until the first one fails. Input: numbers or parts of names of plants (none: all). Output: a line
for each plant, the rate, and exit status 1 where one was missed. Example:

    python tools/planted_bugs.py "tail mask"
"""

from __future__ import annotations

import argparse
import importlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from plants import FALLBACK, PLANTS, Plant

ROOT = Path(__file__).resolve().parent.parent
HANG = 300
"""Seconds after which a test that does not end counts as failed."""

START = """\
import sys
sys.meta_path[:] = [f for f in sys.meta_path if not type(f).__module__.startswith("_editable_")]
"""
"""Runs when Python starts (sitecustomize): an editable install would find the checkout first."""

PLUGIN = """\
from pathlib import Path
FOLDER = Path(__file__).resolve().parent
def pytest_runtest_logstart(nodeid):
    (FOLDER / "test").write_text(nodeid)
def pytest_collection_finish(session):
    import tenfold
    import tenfold._native
    for module in (tenfold, tenfold._native):
        assert Path(module.__file__).resolve().is_relative_to(FOLDER), module.__file__
    (FOLDER / "is_copy").touch()
"""
"""A plugin of pytest: it checks that the copy is tested, and notes the test that runs."""


def read(path: Path) -> str:
    """Return the text of a file."""
    return path.read_text(encoding="utf-8")


def file_of(test: str) -> Path:
    """Return the file, or the folder, of a test."""
    return ROOT / "tests" / test.partition("::")[0]


def stale(plants: Iterable[Plant]) -> list[str]:
    """Return plants whose old text is not there exactly once, and tests that are not there."""
    gone = [each.name for each in plants if read(ROOT / each.file).count(each.old) != 1]
    tests = {test for each in plants for test in each.tests} | {*FALLBACK}
    return [*gone, *(f"tests/{test}" for test in tests if not file_of(test).exists())]


def extension() -> Path:
    """Return the compiled extension of the installed package."""
    file = importlib.import_module("tenfold._native").__file__
    assert file is not None, "an extension has a file"
    return Path(file)


def replaced(folder: Path, plant: Plant) -> None:
    """Put a plant into a copy of its file."""
    file = folder / plant.file
    file.write_text(read(ROOT / plant.file).replace(plant.old, plant.new), encoding="utf-8")


def copied(folder: Path, plant: Plant | None, built: Path) -> None:
    """Copy the package and its extension to a folder, with a plant in it."""
    shutil.copytree(ROOT / "src" / "tenfold", folder / "src" / "tenfold")
    shutil.copy2(built, folder / "src" / "tenfold")
    if plant is not None and not plant.native:
        replaced(folder, plant)
    (folder / "src" / "sitecustomize.py").write_text(START)
    (folder / "src" / "planted_plugin.py").write_text(PLUGIN)


class Builder:
    """The native core in a folder of its own, where each plant builds one file again."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.configured = folder, False

    def build(self, plant: Plant) -> Path | None:
        """Return the extension with a plant; None where it does not compile."""
        if not self.configured:
            shutil.copy2(ROOT / "CMakeLists.txt", self.folder)
            shutil.copytree(ROOT / "native", self.folder / "native", dirs_exist_ok=True)
            python = f"-DPython_EXECUTABLE={sys.executable}"
            self._cmake("-S", ".", "-B", "build/cmake", "-DTENFOLD_PYTHON=ON", python)
            self.configured = True
        replaced(self.folder, plant)
        done = self._cmake("--build", "build/cmake", "--parallel", "2")
        shutil.copy2(ROOT / plant.file, self.folder / plant.file)
        os.utime(self.folder / plant.file)
        found = [*(self.folder / "build" / "cmake").glob("_native*.so")]
        return found[0] if done and found else None

    def _cmake(self, *arguments: str) -> bool:
        environment = {**os.environ, "CCACHE_BASEDIR": str(self.folder), "CCACHE_NOHASHDIR": "1"}
        command = ["cmake", *arguments]
        return not subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, check=False
        ).returncode


def failing(folder: Path, tests: Sequence[str], grids: str = "sample") -> str:
    """Run tests on a copy, with these cases of the grids; return the first that fails, or ""."""
    path = folder / "src"
    environment = {**os.environ, "PYTHONPATH": str(path), "PYTHONDONTWRITEBYTECODE": "1"}
    environment |= {"TENFOLD_CACHE_DIR": str(folder / "cache"), "SECOND_RUN_PROGRAMS": "4"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--numprocesses=0"]
    command += ["-p", "planted_plugin", "-p", "no:cacheprovider"]
    command += [f"--override-ini=faulthandler_timeout={HANG}"]
    command += [f"--grids={grids}", *[f"tests/{test}" for test in tests]]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        return ""
    note = path / "test"
    if not note.exists() and done.returncode not in (1, 2):
        raise RuntimeError(f"no test has run: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    if not (path / "is_copy").exists() and note.exists():
        raise RuntimeError("the copy is not what was tested")
    return read(note) if note.exists() else "import of the tests"


def verdict(plant: Plant, built: Path) -> str:
    """Return the test that finds a plant, or nothing."""
    with tempfile.TemporaryDirectory(prefix="planted-") as name:
        folder = Path(name)
        copied(folder, plant, built)
        files = [test for test in plant.tests if test.endswith(".py")]
        found = failing(folder, plant.tests) or failing(folder, FALLBACK)
        return found or (failing(folder, files, "all") if files else "")


def line(plant: Plant, found: str, begun: float) -> str:
    """Return what is printed of a plant."""
    seconds = f"{time.perf_counter() - begun:.0f} s"
    said = f"found by {found}" if found else "MISSED"
    return f"{plant.name} ({plant.file}): {said} ({seconds})"


def run(plants: Sequence[Plant], at_once: int) -> int:
    """Run plants, the native ones last; return how many were missed."""
    missed = 0

    def one(plant: Plant, built: Path) -> bool:
        begun = time.perf_counter()
        found = verdict(plant, built)
        print(line(plant, found, begun), flush=True)
        return bool(found)

    installed = extension()
    with ThreadPoolExecutor(at_once) as pool:
        python = [plant for plant in plants if not plant.native]
        missed += [*pool.map(lambda plant: one(plant, installed), python)].count(False)
    with tempfile.TemporaryDirectory(prefix="planted-native-") as name:
        builder = Builder(Path(name))
        for plant in plants:
            if plant.native:
                built = builder.build(plant)
                if built is None:
                    raise RuntimeError(f"{plant.name}: it does not compile")
                missed += not one(plant, built)
    return missed


def unplanted() -> int:
    """Run all tests that plants name on a copy without a plant; 1 if one fails."""
    tests = dict.fromkeys([test for plant in PLANTS for test in plant.tests] + [*FALLBACK])
    with tempfile.TemporaryDirectory(prefix="planted-") as name:
        copied(Path(name), None, extension())
        found = failing(Path(name), [*tests])
    print(f"without a plant {found} fails" if found else "without a plant no test fails")
    return int(bool(found))


def main(arguments: Sequence[str]) -> int:
    """Run the plants that are named, or all; 1 if one was missed."""
    parser = argparse.ArgumentParser(description="Plant bugs and see which the tests find.")
    parser.add_argument("names", nargs="*", help="numbers or parts of names of plants")
    parser.add_argument("--at-once", type=int, default=1, help="plants that run side by side")
    parser.add_argument("--check", action="store_true", help="only see whether the table is stale")
    parser.add_argument("--unplanted", action="store_true", help="run the tests without a plant")
    given = parser.parse_args(arguments)
    if gone := stale(PLANTS):
        print("the table is stale: " + "; ".join(gone))
        return 1
    if given.check or given.unplanted:
        return unplanted() if given.unplanted else 0
    chosen = [
        plant
        for number, plant in enumerate(PLANTS, 1)
        if not given.names or any(n in plant.name or n == str(number) for n in given.names)
    ]
    missed = run(chosen, given.at_once)
    print(f"{len(chosen) - missed} of {len(chosen)} planted bugs were found")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
