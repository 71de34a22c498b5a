"""docs/architecture.md names rooms, files and functions that are there."""

from __future__ import annotations

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
