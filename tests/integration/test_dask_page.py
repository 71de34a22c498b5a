"""The examples of the pages about Dask run as they stand, and print what they should.

Dask is a part of the extra `[integration]`: see `test_other_libraries.py`.
"""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("dask.array")
    pytest.importorskip("distributed")

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def programs(page: str) -> list[str]:
    """The Python of a page that is not a session, and needs Dask."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [code for code in BLOCK.findall(text) if ">>>" not in code and "dask" in code]


@pytest.mark.parametrize(
    ("page", "prints"),
    [
        ("docs/how-to/dask.md", [r"True \[(1\.0|0\.9999)", r"Array \d+"]),
        ("README.md", [r"True \[(1\.0|0\.9999)"]),
    ],
)
def test_programs_of_a_page_run(page: str, prints: list[str], tmp_path: Path) -> None:
    found = programs(page)
    assert len(found) == len(prints)
    for number, (program, expected) in enumerate(zip(found, prints, strict=True)):
        path = tmp_path / f"program{number}.py"
        path.write_text(program, encoding="utf-8")
        done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
        assert re.match(expected, done.stdout), done.stderr
