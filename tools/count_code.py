"""Counts the lines of code of the library, and fails where there are more than a stored cap.

Takes the root of a checkout; prints a line for each language, and hands on exit status 1 if one is
above its cap. A line counts if it is neither blank, nor a comment, nor part of a docstring. Counted
are Python (`*.py`, without the generated stubs) under `src/`, and C++ (`*.h`, `*.cpp`) under
`native/` without `native/tests/`. Tests, tools, benches, documents and examples do not count.

A cap is lowered with each change that makes room, and raised by a change that says what for.

Example: `python tools/count_code.py`, or `python tools/count_code.py path/of/another/checkout`.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

from check_size import NATIVE_SUFFIXES, code_lines, native_code_lines, read_lines

CAPS = {"Python": 59_190, "C++": 23_633}
"""The most lines of code of a language."""


def python_lines(root: Path) -> int:
    """The lines of code of Python under `src/`."""
    files = [read_lines(path) for path in sorted((root / "src").rglob("*.py"))]
    return sum(code_lines(ast.parse("\n".join(lines)), lines) for lines in files)


def native_lines(root: Path) -> int:
    """The lines of code of C++ under `native/`, without its tests."""
    native = root / "native"
    files = [path for path in native.rglob("*") if path.suffix in NATIVE_SUFFIXES]
    own = [path for path in files if path.relative_to(native).parts[0] != "tests"]
    return sum(native_code_lines(read_lines(path)) for path in own)


def main(arguments: list[str]) -> int:
    """Print the counts below the given root (default: this checkout); 1 if one is above its cap."""
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    counts = {"Python": python_lines(root), "C++": native_lines(root)}
    for language, lines in counts.items():
        print(f"{language}: {lines:,} lines of code, cap {CAPS[language]:,}")
    return int(any(lines > CAPS[language] for language, lines in counts.items()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
