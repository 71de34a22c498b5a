"""Public programs with the import changed compute what they compute with NumPy."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tenfold as tn
import tenfold.numpy as tnp

PROGRAMS = sorted((Path(__file__).parent.parent / "examples" / "ported").glob("*.py"))


def stated(text: str, what: str) -> str:
    """The line of Python that a comment of the program states."""
    found = re.search(rf"^#\s*{what}:(.*)$", text, re.MULTILINE)
    assert found is not None
    return found.group(1).strip()


def inputs_of(text: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(stated(text, "setup"), names)
    return {name: value for name, value in names.items() if name not in ("np", "__builtins__")}


def outcome(text: str, inputs: dict[str, Any]) -> list[Any]:
    """What the program returns, and its inputs afterwards."""
    names: dict[str, Any] = {}
    exec(text, names)
    names.update(inputs)
    result = eval(stated(text, "run"), names)
    results = result if isinstance(result, tuple | list) else [result]
    return [*results, *(names[name] for name in inputs)]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program_computes_what_it_computes_with_numpy(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    inputs = inputs_of(text)
    numpys = text.replace("import tenfold.numpy as np", "import numpy as np")
    assert numpys != text
    expected = outcome(numpys, copy.deepcopy(inputs))
    arrays = {
        name: tnp.array(value) if isinstance(value, np.ndarray) else value
        for name, value in inputs.items()
    }
    found = outcome(text, arrays)
    assert any(isinstance(each, tn.Array) for each in found)
    for one, other in zip(found, expected, strict=True):
        if other is not None:
            np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-9, atol=1e-12)


def test_there_are_ten_programs_with_their_license() -> None:
    assert len(PROGRAMS) == 10
    assert "Serge Guelton" in (PROGRAMS[0].parent / "LICENSE").read_text(encoding="utf-8")
