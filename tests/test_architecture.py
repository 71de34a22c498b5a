"""docs/architecture.md names rooms, files and functions that are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
SECTIONS = dict(part.split("\n", 1) for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:])


def file_of(name: str) -> Path:
    return ROOT / name if name.startswith(("native/", "tests/")) else ROOT / "src/tenfold" / name


def rooms_of(section: str) -> set[str]:
    cells = re.findall(r"^\| (`[^|]+) \|", SECTIONS[section], re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def test_files_exist() -> None:
    names = set(re.findall(r"`((?:[a-z_]+/)*[a-z_]+\.(?:py|cpp|h))`", PAGE))
    assert len(names) > 50
    assert not [name for name in sorted(names) if not file_of(name).exists()]


STEPS = re.findall(r"^\| \w* ?\| `(\w+)` \| `(\S+)` \|", PAGE, re.MULTILINE)
STEPS += re.findall(r"`(\w+)`\s+in\s+`(\S+\.(?:py|cpp))`", PAGE)


@pytest.mark.parametrize(("function", "name"), STEPS, ids=[":".join(step) for step in STEPS])
def test_function_of_the_walk_is_defined_in_its_file(function: str, name: str) -> None:
    text = file_of(name).read_text(encoding="utf-8")
    python = rf"^ *(?:def|class) {function}\b"
    native = rf"^(?!return|    return)[\w:<>*& ]*\b{function}\([^;]*\{{$"
    assert re.search(python if name.endswith(".py") else native, text, re.MULTILINE)


def test_stages_of_the_walk_are_those_of_the_design() -> None:
    stages = re.findall(r"^\| (\w+) \| `\w+` \| `", PAGE, re.MULTILINE)
    path = "expression linearised optimised scheduled generated compiled executed"
    assert " ".join(stages) == path


def test_every_room_has_its_line() -> None:
    inside = {
        path.name for path in (ROOT / "src/tenfold").iterdir() if (path / "__init__.py").exists()
    }
    listed = rooms_of("Rooms of `src/tenfold`")
    assert {name for name in listed if not name.endswith(".py")} == inside - {"data"}
    native = {f"native/{path.name}" for path in (ROOT / "native").iterdir() if path.is_dir()}
    assert rooms_of("Rooms of `native`") == native


WAYS = {
    (name, function)
    for functions, name in re.findall(
        r"((?:`\w+`, )*`\w+`) in `(\S+)`", SECTIONS["The ways to compute a node"]
    )
    for function in re.findall(r"\w+", functions)
}
NATIVE_ROOMS = ("ir", "dispatch", "jit", "lapack", "exec", "engine", "python")
"""Above the devices, which run the launches."""
NATIVE_WAY = re.compile(
    r"(?:\.|->)launch\(|\b(?:launch_and_wait|launch_object|HostKernel::call)\("
    r"|DirectLauncher\(\)\.run_on_host|hooks\.(?:run|evaluate)|compute_batch\.get\(|\bcompute_\(n"
    r"|call\.function\b"
)
"""Launches, and calls of Python that compute."""
PYTHON_WAY = re.compile(
    r"_native\.(?:launch|replay|run_apart|run_loop)|(?:\w+\.)*run_op|(?:\w+\.)+reference"
)
NATIVE_HEAD = re.compile(
    r"(?: {4})?(?!return |throw |else |case )(?:[\w:<>,&*\[\]]+ )+[&*]?(?:\w+::)?(\w+)\("
)


def native_ways(path: Path) -> set[str]:
    """The functions of a file that compute; those of a launcher say how a launch runs."""
    found, function = set(), ""
    for line in path.read_text(encoding="utf-8").splitlines():
        code = line.split("//")[0]
        head = NATIVE_HEAD.match(code)
        if head and not code.rstrip().endswith(";") and "=" not in code:
            function = head[1]
        if NATIVE_WAY.search(code):
            found.add(function)
    return found - {"run_on_host"}


def python_ways(path: Path) -> set[str]:
    """The same of Python."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    items = [
        item for top in tree.body for item in (top.body if isinstance(top, ast.ClassDef) else [top])
    ]
    return {
        item.name
        for item in items
        if isinstance(item, ast.FunctionDef)
        for call in ast.walk(item)
        if isinstance(call, ast.Call) and PYTHON_WAY.fullmatch(ast.unparse(call.func))
    }


def test_functions_that_compute_are_those_of_the_ways() -> None:
    native = {path for room in NATIVE_ROOMS for path in (ROOT / "native" / room).iterdir()}
    python = set((ROOT / "src/tenfold").rglob("*.py"))
    found = {
        (str(path.relative_to(base)), function)
        for paths, base, ways in (
            (native, ROOT, native_ways),
            (python, ROOT / "src/tenfold", python_ways),
        )
        for path in paths
        for function in ways(path)
    }
    assert found == WAYS


def test_there_are_ten_ways_of_four_kinds() -> None:
    rows = re.findall(r"^\| ([^|-]*)\| ", SECTIONS["The ways to compute a node"], re.MULTILINE)[1:]
    assert len(rows) <= 10
    kinds = ["executor", "batcher", "Python callback", "reference device"]
    assert [row.strip() for row in rows if row.strip()] == kinds
