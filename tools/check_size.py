"""Measures the sizes that keep the house readable, and names what outgrew them.

Takes the root of a checkout; hands on one line per offender, `place: rule`, and exit status 1 if
there is any. The rules are the constants below. Blank lines, comments and docstrings are not lines
of code. Only a file that is one table, and says so by a line `Table.` in its module docstring, may
have more than `FILE_LINES` of them.

Example: `python tools/check_size.py`, or `python tools/check_size.py path/of/another/checkout`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

FILE_LINES = 500
"""Lines of code in a file."""
FUNCTION_LINES = 60
LINE_COLUMNS = 100

PYTHON_ROOMS = ("src", "tests", "tools", "bench", "docs", "examples")
PUBLISHED = Path("examples/ported")
"""Programs of others, as they are published."""
NATIVE_SUFFIXES = frozenset({".h", ".cpp"})


def offenders(root: Path) -> Iterator[str]:
    """Each measure that something below `root` exceeds, as `place: rule`."""
    for room in PYTHON_ROOMS:
        for path in sorted((root / room).rglob("*.py")):
            if path.relative_to(root).is_relative_to(PUBLISHED):
                continue
            yield from python_offenders(path, path.relative_to(root))
    for path in sorted((root / "native").rglob("*")):
        if path.suffix not in NATIVE_SUFFIXES:
            continue
        name, lines = path.relative_to(root), read_lines(path)
        yield from long_lines(name, lines)
        code = native_code_lines(lines)
        if code > FILE_LINES:
            yield f"{name}: {code} lines of code, a C++ file has at most {FILE_LINES}"


def python_offenders(path: Path, name: Path) -> Iterator[str]:
    """The offences of one Python file, which is called `name` in what is printed."""
    lines = read_lines(path)
    yield from long_lines(name, lines)
    module = ast.parse("\n".join(lines), filename=str(name))
    code = code_lines(module, lines)
    if code > FILE_LINES and not is_table(module):
        yield (
            f"{name}: {code} lines of code, a Python file has at most {FILE_LINES}"
            " (a table says `Table.` in its module docstring)"
        )
    for node in ast.walk(module):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        if length > FUNCTION_LINES:
            yield (
                f"{name}:{node.lineno}: {node.name} has {length} lines,"
                f" a function has at most {FUNCTION_LINES}"
            )


def code_lines(module: ast.Module, lines: list[str]) -> int:
    """How many lines are neither blank, nor a comment, nor of a string that stands by itself."""
    prose: set[int] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            prose.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    texts = enumerate(lines, 1)
    return sum(
        number not in prose and bool(line.strip()) and not line.strip().startswith("#")
        for number, line in texts
    )


def native_code_lines(lines: list[str]) -> int:
    """How many lines of C++ are neither blank nor a comment; comments begin with `//` here."""
    return sum(bool(line.strip()) and not line.strip().startswith("//") for line in lines)


def is_table(module: ast.Module) -> bool:
    """Whether the module docstring holds the line `Table.`."""
    docstring = ast.get_docstring(module) or ""
    return any(line.strip() == "Table." for line in docstring.splitlines())


def long_lines(name: Path, lines: list[str]) -> Iterator[str]:
    """The lines wider than `LINE_COLUMNS` characters."""
    for number, line in enumerate(lines, 1):
        if len(line) > LINE_COLUMNS:
            yield f"{name}:{number}: {len(line)} columns, a line has at most {LINE_COLUMNS}"


def read_lines(path: Path) -> list[str]:
    """The lines of a text file, without their ends (form feeds do not end a line)."""
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def main(arguments: list[str]) -> int:
    """Print the offenders below the given root (default: this checkout); 1 if there is one."""
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    found = list(offenders(root))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
