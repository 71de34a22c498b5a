"""Every error that an operation raises says what to do about it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import tenfold as tn

ROOMS = ("ir", "ops", "storage", "interop", "functions")
CLASSES = {
    "AliasError",
    "ShapeError",
    "AxisError",
    "DTypeError",
    "DeviceError",
    "UnsupportedError",
    "message",
}


def errors_without_remedy() -> Iterator[str]:
    package = Path(tn.__file__).parent
    for room in ROOMS:
        for path in sorted((package / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and _lacks_remedy(node):
                    yield f"{path.relative_to(package)}:{node.lineno}"


def _lacks_remedy(call: ast.Call) -> bool:
    name = getattr(call.func, "id", getattr(call.func, "attr", ""))
    named = {keyword.arg for keyword in call.keywords}
    return name in CLASSES and len(call.args) < 4 and not named & {"remedy", None}


def test_no_error_is_made_without_a_remedy() -> None:
    assert list(errors_without_remedy()) == []
