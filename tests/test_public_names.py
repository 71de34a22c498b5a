"""Names that errors and pages write exist; those of the page of absent names do not."""

from __future__ import annotations

import ast
import functools
import importlib
import re
import runpy
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tenfold as tn
import tenfold.numpy as ours
from tenfold.array.array_function import tenfold_function
from tenfold.interop.numpy_dispatch import unsupported_function

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path(tn.__file__).parent
ABSENT = ROOT / "docs" / "absent.md"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if page.parent.name != "decisions"]  # papers keep old names

NAME = re.compile(r"(?<![\w.\"'/-])(?:tn|tenfold|np|numpy|x|rng)(?:\.[A-Za-z_]\w*)+(?![\w*/<-])")
FILES = (".py", ".md", ".json", ".npy", ".npz", ".toml")
ROOTS: dict[str, tuple[Any, ...]] = {
    "tn": (tn,),
    "tenfold": (tn,),
    "np": (np, ours),  # a page imports one of them by this name
    "numpy": (np,),
    "x": (tn.zeros((2, 2)),),
    "rng": (ours.random.RandomState(0),),
}


def names_in(text: str) -> list[str]:
    """The dotted names in a text, such as `tn.linalg.inv`, without names of files."""
    return [name for name in NAME.findall(text) if not name.endswith(FILES)]


@functools.cache
def resolves(name: str) -> bool:
    """Whether a dotted name is that of an attribute or a module."""
    root, *parts = name.split(".")
    if root == "tenfold":
        for length in range(len(parts), 0, -1):
            try:
                module = importlib.import_module(".".join((root, *parts[:length])))
            except ModuleNotFoundError:
                continue
            return has(module, parts[length:])
    return any(has(value, parts) for value in ROOTS[root])


def has(value: Any, parts: list[str]) -> bool:
    for part in parts:
        if not hasattr(value, part):
            return False
        value = getattr(value, part)
    return True


def unknown(text: str) -> list[str]:
    return [name for name in names_in(text) if not resolves(name)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("use tn.concat, or np.linalg.inv(np.asarray(x)), x.astype(tn.float32)", []),
        ("write tn.percentile(x, 50)", ["tn.percentile"]),
        ("tenfold.numpy.percentile, tenfold.engine.operators", []),
        ("use numpy.grad(np.asarray(x)), x.foo()", ["numpy.grad", "x.foo"]),
        ("src/tenfold/errors.py, x.npy and tn.<name>", []),
    ],
)
def test_name_that_does_not_exist_is_found(text: str, found: list[str]) -> None:
    assert unknown(text) == found


# Errors.


def constants(tree: ast.Module) -> Iterator[ast.Constant]:
    """The strings of a module, without those that are expressions alone, its docstrings."""
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node


def test_names_in_messages_of_the_package_exist() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}: {name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in constants(ast.parse(path.read_text(encoding="utf-8")))
        for name in unknown(node.value)
    ]
    assert wrong == []


def test_names_in_messages_of_the_native_core_exist() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted((ROOT / "native").rglob("*.cpp"))
        for string in re.findall(r'"((?:[^"\\\n]|\\.)*)"', path.read_text(encoding="utf-8"))
        if " " in string  # a message, not the name of a type or a module
        for name in unknown(string)
    ]
    assert wrong == []


OF_OTHER_LIBRARIES = (
    "Tensor array block_until_ready cat compile cuda cumproduct detach device dtypes "
    "foo from_numpy grad jit lax nn no_grad pmap product round_ sparse tensor trapz"
).split()
NAMES = sorted(
    {*OF_OTHER_LIBRARIES, *np.__all__, *dir(np.ndarray)}
    | {*np.linalg.__all__, *np.fft.__all__, *np.random.__all__, *dir(np.random.RandomState)}
)


def refused(owner: object, names: list[str]) -> Iterator[tuple[str, AttributeError]]:
    """The errors for those of the names that an object does not have."""
    for name in names:
        try:
            getattr(owner, name)
        except AttributeError as error:
            yield name, error
        except tn.errors.ShapeError:  # the object has it: `x.mT` of a vector
            pass


OWNERS = {
    "tn": tn,
    "tn.linalg": tn.linalg,
    "tn.fft": tn.fft,
    "tn.random": tn.random,
    "tn.operators": tn.operators,
    "tenfold.numpy": ours,
    "tenfold.numpy.linalg": ours.linalg,
    "tenfold.numpy.fft": ours.fft,
    "tenfold.numpy.lib": ours.lib,
    "tenfold.numpy.random": ours.random,
    "Array": tn.zeros((2, 2)),
    "Generator": tn.random.default_rng(0),
}


@pytest.mark.parametrize("owner", OWNERS)
def test_error_for_a_missing_name_names_what_exists(owner: str) -> None:
    errors = dict(refused(OWNERS[owner], NAMES))
    assert {"foo", "sparse", "trapz"} <= {*errors}
    wrong = {name: unknown(str(error).partition("; ")[2]) for name, error in errors.items()}
    assert {name: found for name, found in wrong.items() if found} == {}


@pytest.mark.parametrize(
    ("owner", "name", "remedy"),
    [
        (tn, "percentile", "use tenfold.numpy.percentile"),
        (tn, "logspace", "use tenfold.numpy.logspace"),
        (tn, "ndarray", "use tenfold.numpy.ndarray"),
        (tn, "void", "use tenfold.numpy.void"),
        (tn, "trapz", "use tenfold.numpy.trapezoid"),
        (ours, "trapz", "use tenfold.numpy.trapezoid"),
        (ours, "percentil", "did you mean tenfold.numpy.percentile or"),
        (ours.random, "PCG64", "rng = tn.random.default_rng(seed)"),
        (tn.random.default_rng(0), "bit_generator", "use rng.state"),
    ],
)
def test_missing_name_has_its_remedy(owner: Any, name: str, remedy: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(owner, name)
    assert remedy in str(caught.value)


@pytest.mark.parametrize("name", ["grad", "sparse"])
def test_missing_name_that_numpy_has_not_is_not_sent_to_numpy(name: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(ours, name)
    assert "numpy." not in str(caught.value).partition("; ")[2]


def test_remedy_for_a_function_without_a_lazy_form_names_what_exists() -> None:
    modules = {"np": np, "np.linalg": np.linalg, "np.fft": np.fft}
    functions = [getattr(module, name) for module in modules.values() for name in module.__all__]
    wrong = {
        function.__name__: unknown(str(unsupported_function(function)))
        for function in functions
        if isinstance(function, types.FunctionType) and tenfold_function(function) is not None
    }
    assert {name: found for name, found in wrong.items() if found} == {}


# The page of absent names.


class Row:
    """A line of the table."""

    def __init__(self, line: str) -> None:
        self.name, self.remedy, snippet, self.error = line.strip("| \n").split(" | ")
        self.snippet = snippet.strip("`")


ROWS = [Row(line) for line in ABSENT.read_text(encoding="utf-8").splitlines() if line[:2] == "| "]
ROWS = ROWS[1:]  # the head
OTHER_REMEDIES = {"GPUs", "sparse arrays", "another dtype in place"}
"""Rows whose remedy is the page's own: the error does not know the purpose."""


def test_page_of_absent_names_is_made_from_the_tables() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "absent.py"))["page"]()
    assert made == ABSENT.read_text(encoding="utf-8"), "run `python docs/absent.py`"


def test_snippet_of_each_absent_name_raises_with_the_remedy() -> None:
    for row in ROWS:
        with pytest.raises(Exception) as caught:  # noqa: PT011  # its class and remedy are compared
            exec(row.snippet, {"tn": tn, "np": np, "tenfold": tn})
        assert (type(caught.value).__name__, unknown(row.remedy)) == (row.error, []), row.snippet
        assert row.remedy in str(caught.value) or row.name in OTHER_REMEDIES, row.snippet


def test_absent_name_of_numpy_is_absent_in_both_namespaces() -> None:
    listed = [
        row.snippet.removeprefix("tenfold.numpy.")
        for row in ROWS
        if row.snippet.startswith("tenfold.numpy.") and row.name[1:4] != "rng"
    ]
    assert len(listed) > 25
    main = {*tn.__all__, *(f"random.{name}" for name in tn.random.__all__)}
    main.remove("__array_namespace_info__")  # it is of the standard's names alone
    assert [name for name in listed if has(ours, name.split(".")) or name in main] == []


def absent_here(theirs: Any, mine: Any, names: Any) -> set[str]:
    known = {name for name in names if name[0] != "_" or name in getattr(theirs, "__all__", ())}
    missing = {name for name, _ in refused(mine, sorted(known))}
    return {name for name in missing if not name.startswith("_") or name.endswith("__")}


@pytest.mark.parametrize("module", ["", "linalg", "fft", "random", "lib"])
def test_every_public_name_of_numpy_is_here_or_on_the_page(module: str) -> None:
    theirs, mine = (getattr(np, module), getattr(ours, module)) if module else (np, ours)
    prefix = f"{module}." if module else ""
    listed = {row.name for row in ROWS}
    missing = absent_here(theirs, mine, theirs.__all__)
    assert {f"`{prefix}{name}`" for name in missing} - listed == set()


@pytest.mark.parametrize(
    ("theirs", "mine", "prefix"),
    [
        (np.ndarray, tn.zeros((2, 2)), "x"),
        (np.random.Generator, tn.random.default_rng(0), "rng"),
        (np.random.RandomState, ours.random.RandomState(0), "rng"),
    ],
    ids=["ndarray", "Generator", "RandomState"],
)
def test_every_public_attribute_is_here_or_on_the_page(
    theirs: type, mine: object, prefix: str
) -> None:
    listed = {row.name for row in ROWS}
    missing = absent_here(theirs, mine, dir(theirs))
    assert {f"`{prefix}.{name}`" for name in missing} - listed == set()


# Pages.

FENCE = re.compile(r"^(`{3,}).*?^\1`*$", re.M | re.S)


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_names_in_the_code_of_a_page_exist(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    absent = {row.snippet for row in ROWS} | {row.name.strip("`") for row in ROWS}
    quoted = [code for code in re.findall(r"`([^`\n]+)`", text) if code not in absent]
    assert [name for code in quoted for name in unknown(code)] == []


def check_names(root: Path) -> list[str]:
    program = [sys.executable, str(ROOT / "tools" / "check_names.py"), str(root)]
    return subprocess.run(program, capture_output=True, text=True, check=False).stdout.splitlines()


def test_absence_is_said_on_one_page_alone(tmp_path: Path) -> None:
    (tmp_path / "docs" / "decisions").mkdir(parents=True)
    lines = ("It lacks fft,", "[see](absent.md).", "```", "lacks", "```", "Not included: `lack`.")
    text = "\n".join(lines)
    for name in ("docs/a.md", "docs/absent.md", "docs/decisions/0001-b.md"):
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert check_names(tmp_path) == [
        "docs/a.md:1: 'lacks' stands in docs/absent.md alone",
        "docs/a.md:6: 'Not included' stands in docs/absent.md alone",
    ]


def test_function_of_two_modules_is_an_offence_unless_public_or_shared(tmp_path: Path) -> None:
    package = tmp_path / "src" / "tenfold"
    (package / "numpy").mkdir(parents=True)
    (package / "numpy" / "sorting.py").write_text("def sort(): ...", encoding="utf-8")
    text = "def bind(): ...\ndef sort(): ...\ndef install(): ...\ndef _own(): ...\n"
    for name in ("first.py", "second.py"):
        (package / name).write_text(text, encoding="utf-8")
    (package / "third.py").write_text("from tenfold.first import bind", encoding="utf-8")
    assert check_names(tmp_path) == [
        "src/tenfold/first.py: the function bind is in src/tenfold/second.py too"
    ]
