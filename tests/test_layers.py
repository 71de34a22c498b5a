"""Imports run one way: what the contract of pyproject.toml, checked by `make lint`, cannot see."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "tenfold"
TOP = ("__main__.py", "cli", "cli.py", "io", "testing", "testing.py")
PROGRAMS = ("namespace/stubs.py",)  # run by `make stubs`, imported by nobody
NAMES_CPU = (
    "__init__.py",  # the module of the device
    "machine.py",  # a controller of Linux
    "namespace/absent_names.py",  # advice to users
    "settings.py",  # the default device, and the option of that name
    "storage/dense.py",  # HOST
)
"""The files outside `runtime` that may say "cpu"."""


def absolute_imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "tenfold":
            yield from (f"tenfold.{name.name}" for name in node.names)


def test_only_the_top_layer_imports_the_package_itself() -> None:
    rooms = {path.stem for path in PACKAGE.iterdir()} | {"_native"}
    known = {f"tenfold.{room}" for room in rooms}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE)
        if name.parts[0] in TOP or name.as_posix() in PROGRAMS:
            continue
        ours = {line for line in absolute_imports(path) if f"{line}.".startswith("tenfold.")}
        stray = {line for line in ours if ".".join(line.split(".")[:2]) not in known}
        assert not stray, f"{name} imports {stray}: only {TOP} may use the public names"


def literals(tree: ast.AST) -> Iterator[str]:
    """Yield strings that are neither docstrings nor names of options, as in `get("cpu")`."""
    nodes = [*ast.walk(tree)]
    skipped = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "get":
            skipped.update(map(id, node.args))
    constants = [node for node in nodes if isinstance(node, ast.Constant)]
    yield from (x.value for x in constants if isinstance(x.value, str) and id(x) not in skipped)


def test_no_room_above_the_runtime_or_below_it_names_the_device_cpu() -> None:
    stray = [
        f"{name}: {text}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if not (name := path.relative_to(PACKAGE).as_posix()).startswith("runtime/")
        and name not in NAMES_CPU
        for text in literals(ast.parse(path.read_text(encoding="utf-8")))
        if text == "cpu" or "'cpu'" in text
    ]
    assert not stray, "write dense.HOST, or ask the Device"


def test_functions_of_python_that_native_code_names_exist() -> None:
    named = re.compile(r'"(tenfold(?:\.\w+)+)",\s*"(\w+)"')
    sources = (ROOT / "native" / "python").iterdir()
    found = [pair for path in sources for pair in named.findall(path.read_text(encoding="utf-8"))]
    assert len(found) > 20
    for module, name in found:
        assert hasattr(importlib.import_module(module), name), f"{module} has no {name}"
