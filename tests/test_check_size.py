"""The size checker finds every kind of offender, and the counter of lines what is above its cap;
`make lint` asks both about this repository.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def check(root: Path, tool: str = "check_size") -> tuple[int, list[str]]:
    program = [sys.executable, str(ROOT / "tools" / f"{tool}.py"), str(root)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def function_of(lines: int) -> str:
    return "def grow():\n" + "    pass\n" * (lines - 1)


def test_everything_at_its_limit_passes(tmp_path: Path) -> None:
    write(tmp_path, "src/a.py", "x = 1\n" * 500)
    write(tmp_path, "src/b.py", function_of(60))
    write(tmp_path, "src/c.py", "# " + "x" * 98 + "\n")
    for number in range(28):
        write(tmp_path, f"native/{number}.cpp", "int x;\n" * 500)
    write(tmp_path, "native/tests/t.cpp", "int x;\n" * 500)
    assert check(tmp_path) == (0, [])


def test_a_table_may_be_long(tmp_path: Path) -> None:
    write(tmp_path, "src/a.py", '"""All the rows.\n\nTable.\n"""\n' + "x = 1\n" * 600)
    assert check(tmp_path) == (0, [])


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "src/deep/a.py",
            '"""No Table. on a line of its own."""\n' + "\n# Why.\nx = 1\n" * 501,
            (
                "src/deep/a.py: 501 lines of code, a Python file has at most 500"
                " (a table says `Table.` in its module docstring)"
            ),
        ),
        (
            "tests/a.py",
            "\n@property\n" + function_of(61),
            "tests/a.py:3: grow has 61 lines, a function has at most 60",
        ),
        (
            "tools/a.py",
            "class A:\n    async def grow(self):\n" + "        pass\n" * 60,
            "tools/a.py:2: grow has 61 lines, a function has at most 60",
        ),
        (
            "bench/a.py",
            "\n# " + "x" * 99 + "\n",
            "bench/a.py:2: 101 columns, a line has at most 100",
        ),
        (
            "native/a.h",
            "// " + "x" * 98 + "\n",
            "native/a.h:1: 101 columns, a line has at most 100",
        ),
        (
            "native/tests/a.cpp",
            "// why\n\nint x;\n" * 501,
            "native/tests/a.cpp: 501 lines of code, a C++ file has at most 500",
        ),
    ],
)
def test_each_rule_names_its_offender(tmp_path: Path, name: str, text: str, message: str) -> None:
    write(tmp_path, name, text)
    assert check(tmp_path) == (1, [message])


def test_lines_of_code_of_the_library_are_counted_against_a_cap(tmp_path: Path) -> None:
    write(tmp_path, "src/a.py", '"""Prose\nof two lines."""\n\n# Why.\nx = 1\ny = """a\nb"""\n')
    write(tmp_path, "src/a.pyi", "x: int\n")
    write(tmp_path, "native/room/a.h", "// Why.\n\nint x;\nint y; // what\n")
    write(tmp_path, "native/tests/a.cpp", "int x;\n")
    write(tmp_path, "tests/a.py", "x = 1\n")
    status, lines = check(tmp_path, "count_code")
    assert (status, [line.split(",")[0] for line in lines]) == (
        0,
        ["Python: 3 lines of code", "C++: 2 lines of code"],
    )
    write(tmp_path, "src/b.py", "x = 1\n" * 60_000)
    status, (line, _) = check(tmp_path, "count_code")
    assert (status, line.split(", cap")[0]) == (1, "Python: 60,003 lines of code")
