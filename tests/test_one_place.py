"""An operation's name stands in one hand-written source file: the page that declares it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
GENERATED = {"__init__.pyi", "linalg.pyi", "operators.pyi", "_methods.pyi"}


def names_spelled(path: Path) -> Iterator[str]:
    """Yield every name that a file defines as a function or spells as a string."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield from re.findall(r'"(\w+)"', text)
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def hand_written() -> list[Path]:
    """Return the source files of the library, without what is generated."""
    python = [p for p in (ROOT / "src").rglob("*.py*") if p.suffix in (".py", ".pyi")]
    native = [p for p in (ROOT / "native").rglob("*") if p.suffix in (".h", ".cpp")]
    return [
        path
        for path in [*python, *native]
        if path.name not in GENERATED and "tests" not in path.relative_to(ROOT).parts
    ]


@pytest.mark.parametrize("name", ["sin", "matmul", "softmax", "take", "concat", "argmax"])
def test_name_of_an_operation_stands_in_one_source_file(name: str) -> None:
    files = [str(path.relative_to(ROOT)) for path in hand_written() if name in names_spelled(path)]
    assert len(files) == 1, files
    assert files[0].startswith("src/tenfold/ops/")
