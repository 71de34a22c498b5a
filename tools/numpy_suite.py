"""Runs NumPy's own tests on `tenfold.numpy`: `python tools/numpy_suite.py [MODULE ...]`.

Takes the test modules of the installed NumPy. While a module is imported and run, its `numpy` is
`tenfold.numpy`; the functions that assert stay NumPy's and get the values of Arrays. A module has a
process of its own; a test that takes too long, or ends the process, has failed. Prints, for each
module, the tests in which functions of Tenfold take part and those of them that pass, and the
failures grouped by cause. `--json PATH` keeps the outcomes, `--before PATH` compares with others.
"""

from __future__ import annotations

import argparse
import builtins
import contextlib
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy
import pytest

MODULES = (
    *("_core.tests.test_numeric", "_core.tests.test_umath", "_core.tests.test_multiarray"),
    *("_core.tests.test_indexing", "_core.tests.test_ufunc", "_core.tests.test_shape_base"),
    *("_core.tests.test_function_base", "_core.tests.test_einsum", "_core.tests.test_scalarmath"),
    *("_core.tests.test_item_selection", "_core.tests.test_umath_complex"),
    *("lib.tests.test_shape_base", "lib.tests.test_function_base", "lib.tests.test_arraysetops"),
    *("lib.tests.test_nanfunctions", "lib.tests.test_twodim_base", "lib.tests.test_index_tricks"),
    *("lib.tests.test_stride_tricks", "lib.tests.test_polynomial", "lib.tests.test_histograms"),
    *("lib.tests.test_arraypad", "lib.tests.test_type_check", "lib.tests.test_ufunclike"),
    *("lib.tests.test_packbits", "linalg.tests.test_linalg", "linalg.tests.test_regression"),
    *("fft.tests.test_pocketfft", "fft.tests.test_helper"),
)
"""NumPy's test modules about arrays of numbers."""
PLAIN = (
    "numpy.testing",
    "numpy.random",
    "numpy.exceptions",
    "numpy.dtypes",
    "numpy.ma",
    "numpy.polynomial",
)
"""Modules of NumPy that stay what they are."""
SECONDS = 60
"""Processor time of one test."""
OTHERS = (pytest.skip.Exception, pytest.xfail.Exception)
"""The ends of a test that is not counted."""


class Swapped(ModuleType):
    """A module of NumPy whose names are those of `tenfold.numpy`, where it has them."""

    reached = False
    """Whether a function of Tenfold was asked for since this was last set to False."""
    mode = "import"
    """"import": names that Tenfold has not are NumPy's; "plain": all are; "test": none is."""

    def __init__(self, theirs: ModuleType) -> None:
        super().__init__(theirs.__name__)
        self.__dict__["_theirs"] = theirs
        self.__dict__["_ours"] = _namespaces().get(theirs.__name__)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._theirs, name, None)
        if isinstance(value, ModuleType):
            is_ours = name == "random" and self._ours is not None and Swapped.mode != "plain"
            return getattr(self._ours, name) if is_ours else swapped(value)
        if self._ours is not None and not name.startswith("_"):
            is_ours = Swapped.mode == "test" or hasattr(self._ours, name)
            if is_ours and Swapped.mode != "plain":
                return mark(getattr(self._ours, name))
            return getattr(self._theirs, name)
        if value is None or Swapped.mode == "plain":
            return getattr(self._theirs, name)
        return mark(ours(value))


def _namespaces() -> dict[str, ModuleType]:
    ours = importlib.import_module("tenfold.numpy")
    names = {"numpy": ours, "numpy.linalg": ours.linalg, "numpy.fft": ours.fft}
    return names | {"numpy.lib": ours.lib, "numpy.lib.stride_tricks": ours.lib.stride_tricks}


_identities: dict[int, Any] = {}


def _by_identity() -> dict[int, Any]:
    if not _identities:
        for name, ours in _namespaces().items():
            theirs = importlib.import_module(name)
            for key in dir(ours):
                if callable(getattr(theirs, key, None)):
                    _identities[id(getattr(theirs, key))] = getattr(ours, key)
    return _identities


def ours(value: Any) -> Any:
    """Return the functions of Tenfold in the place of NumPy's, in lists, tuples and dicts too."""
    if type(value) in (list, tuple):
        return type(value)(map(ours, value))
    if type(value) is dict:
        return {key: ours(item) for key, item in value.items()}
    return mark(_by_identity().get(id(value), value)) if callable(value) else value


def mark(value: Any) -> Any:
    """Note that a function of Tenfold takes part, and return it."""
    if str(getattr(value, "__module__", "")).startswith("tenfold"):
        Swapped.reached = True
    return value


_modules: dict[str, ModuleType] = {}


def swapped(module: ModuleType) -> ModuleType:
    """Return what stands for a module of NumPy in a test module."""
    name = module.__name__
    if name == "numpy.testing":
        return _modules.setdefault(name, _assertions(module))
    if not (name == "numpy" or name.startswith("numpy.")) or name.startswith(PLAIN):
        return module
    if Swapped.mode == "plain" and name.startswith("numpy._"):
        return module
    return _modules.setdefault(name, Swapped(module))


def _assertions(module: ModuleType) -> ModuleType:
    """Return NumPy's functions that assert; Arrays among their arguments are values."""
    copy = ModuleType(module.__name__)
    copy.__dict__.update(
        (name, _of_values(value) if isinstance(value, FunctionType) and "assert" in name else value)
        for name, value in vars(module).items()
        if not name.startswith("__")
    )
    return copy


def _of_values(function: Any) -> Any:
    def of_values(*args: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        if args and callable(args[0]):
            return function(*args, **options)
        return function(*map(values, args), **options)

    return of_values


def values(value: Any) -> Any:
    """Return an Array as an ndarray, and one without axes as NumPy's scalar."""
    if type(value) in (list, tuple):
        return type(value)(map(values, value))
    is_array = type(value).__module__.startswith("tenfold") and hasattr(value, "__array__")
    return numpy.asarray(value)[()] if is_array else value


def swapped_import(name: str, *args: Any) -> Any:
    """Import as the built-in function does, with the modules of NumPy swapped."""
    return swapped(builtins.__import__(name, *args))


class SwappedTests(pytest.Module):
    """A test module that imports swapped modules."""

    def _getobj(self) -> ModuleType:
        with contextlib.suppress(Exception):  # its tables have dtypes that Tenfold has not
            return self.module()
        Swapped.mode = "plain"
        module = self.module()
        classes = [value for value in vars(module).values() if type(value) is type]
        for owner in (module, *classes):
            for name, value in [*vars(owner).items()]:
                if not name.startswith("__") and (found := ours(value)) is not value:
                    setattr(owner, name, found)
        return module

    def module(self) -> ModuleType:
        """Return the module, executed."""
        module = ModuleType(self.path.stem)
        module.__file__ = str(self.path)
        module.__dict__["__builtins__"] = vars(builtins) | {"__import__": swapped_import}
        exec(compile(self.path.read_text(), self.path, "exec"), vars(module))
        return module


class Recorder:
    """The pytest plugin that swaps, limits the time, and records the outcomes as lines."""

    def __init__(self, path: Path) -> None:
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        self.done = {line["test"] for line in lines}
        self.file = path.open("a")

    def pytest_pycollect_makemodule(self, module_path: Path, parent: Any) -> Any:
        """Let the module import swapped modules."""
        return SwappedTests.from_parent(parent, path=module_path)

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Leave out the tests with a line in the file."""
        items[:] = [item for item in items if item.nodeid.rpartition("/")[2] not in self.done]

    def write(self, **line: Any) -> None:
        """Write a line about a test."""
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Any:
        """Limit the time of a test; a test that ends the process has a line without an outcome."""
        self.write(test=item.nodeid.rpartition("/")[2])
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        Swapped.mode, Swapped.reached = "test", False
        params = getattr(getattr(item, "callspec", None), "params", {})
        for name, value in params.items():
            params[name] = ours(value)
            mark(type(value))
        try:
            return (yield)
        finally:
            Swapped.mode = "import"
            signal.setitimer(signal.ITIMER_PROF, 0)

    def pytest_runtest_makereport(self, item: Any, call: Any) -> None:
        """Write the outcome of a test."""
        failure = call.excinfo
        if call.when != "call" and failure is None:
            return
        outcome = "passed"
        if failure is not None:
            outcome = "skipped" if issubclass(failure.type, OTHERS) else "failed"
        if item.get_closest_marker("xfail"):
            outcome = "skipped"
        test = item.nodeid.rpartition("/")[2]
        cause = _cause(failure) if outcome == "failed" else ""
        self.write(test=test, outcome=outcome, cause=cause, reached=Swapped.reached)


def _cause(failure: Any) -> str:
    """Return the type of an exception, the first lines of its message, and where it was raised."""
    lines = [line for line in str(failure.value).splitlines() if line.strip()]
    last = failure.traceback[-1]
    where = re.sub(r"^.*/(src|site-packages)/", "", str(last.path))
    return f"{failure.typename}: {' '.join(lines[:2])[:160]} @ {where}:{last.lineno + 1}"


def run_child(module: str, path: Path) -> int:
    """Run the tests of one module that have no line in the file."""
    os.environ["NPY_AVAILABLE_MEM"] = "1 GB"  # NumPy's tests that need more are skipped
    signal.signal(signal.SIGPROF, lambda *_: os._exit(99))
    file = Path(numpy.__file__).parent / (module.replace(".", "/") + ".py")
    options = ["-q", "-x", "--maxfail=100000", "-p", "no:cacheprovider", "-p", "no:randomly"]
    options += ["--tb=native", "--no-header", "--show-capture=no", "-p", "no:xdist"]
    options += ["-c", os.devnull, f"--rootdir={file.parent}"]
    return int(pytest.main([*options, str(file)], plugins=[Recorder(path)]))


def run_module(module: str, seconds: float) -> dict[str, dict[str, Any]]:
    """Return the outcome of each test of a module; a process that ends is started again."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "lines")
        path.touch()
        command = [sys.executable, __file__, "--child", module, str(path)]
        while True:
            before = path.stat().st_size
            try:
                code = subprocess.run(
                    command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=seconds
                ).returncode
            except subprocess.TimeoutExpired:
                code = 1 << 8
            if code in (0, 1, 2, 4, 5) or path.stat().st_size == before:
                break
        outcomes: dict[str, dict[str, Any]] = {}
        for line in map(json.loads, path.read_text().splitlines()):
            test = line.pop("test")
            ended = {
                "outcome": "failed",
                "cause": f"the process ended, or took more than {SECONDS} seconds",
                "reached": True,
            }
            if line or test not in outcomes:
                outcomes[test] = line or ended
    return outcomes


def main() -> None:
    """Run the modules and print the table and the causes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", default=MODULES)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--seconds", type=float, default=1800, help="for one module")
    parser.add_argument("--causes", type=int, default=60, help="groups to print")
    options = parser.parse_args()
    before = json.loads(options.before.read_text()) if options.before else {}
    results = json.loads(options.json.read_text()) if options.json and options.json.exists() else {}
    print("| Module | Reached | Before | Pass |\n|---|---|---|---|", flush=True)
    totals = [0, 0, 0]
    for module in options.modules:
        results[module] = run_module(module, options.seconds)
        row = [_count(results[module], False), _count(before.get(module, {}), True)]
        row.append(_count(results[module], True))
        totals = [total + x for total, x in zip(totals, row, strict=True)]
        print(f"| `{module}` | {row[0]:,} | {row[1]:,} | {row[2]:,} |", flush=True)
        if options.json:
            options.json.write_text(json.dumps(results, indent=0))
    print(f"| all | {totals[0]:,} | {totals[1]:,} | {totals[2]:,} |\n")
    causes = Counter(
        line["cause"].partition(" @ ")[0]
        for outcomes in results.values()
        for line in outcomes.values()
        if line["outcome"] == "failed" and line["reached"]
    )
    for cause, count in causes.most_common(options.causes):
        print(f"{count:5}  {cause}")


def _count(outcomes: dict[str, dict[str, Any]], passed: bool) -> int:
    counted = [line for line in outcomes.values() if line["reached"] and _is_run(line)]
    return sum(line["outcome"] == "passed" for line in counted) if passed else len(counted)


def _is_run(line: dict[str, Any]) -> bool:
    return line["outcome"] in ("passed", "failed")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        sys.exit(run_child(sys.argv[2], Path(sys.argv[3])))
    main()
