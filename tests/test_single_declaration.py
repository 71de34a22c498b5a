"""An operation's name stands in one hand-written source file: the page that declares it.

An elementary function has a formula besides, which kernels compute: by that name on real floats in
`render/vecmath`, on complex ones in `ops/complex_functions.py`. Nothing else spells it, but NumPy's
namespace: its functions and methods have the names of NumPy's.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NUMPY_NAMES = ("src/tenfold/numpy/", "src/tenfold/array/ndarray_methods.py")
GENERATED = {
    f"{name}.pyi" for name in ("__init__", "_methods", "fft", "linalg", "operators", "random")
}


OPERATIONS = ("matmul", "softmax", "take", "concat", "argmax", "mean", "tril")
ELEMENTARY = ("sin", "tanh", "asin", "erf", "log1p", "atan2")
SPELLED = re.compile(rf"\bdef ({'|'.join(OPERATIONS + ELEMENTARY)})\b|"
                     rf"""["']({'|'.join(OPERATIONS + ELEMENTARY)})["']""")  # fmt: skip


@functools.cache
def names_of(path: Path) -> frozenset[str]:
    """Return what `names_spelled` yields; files are parsed once."""
    return frozenset(names_spelled(path))


def names_spelled(path: Path) -> Iterator[str]:
    """Yield every name that a file defines as a function or spells as a string, if it is a file
    with one of the names that are looked for.

    A method of a class is no function of that name: its class says what it is about.
    """
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield from re.findall(r'"(\w+)"', text)
        return
    if not SPELLED.search(text):
        return
    tree = ast.parse(text)
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    methods = {id(each) for node in classes for each in node.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and id(node) not in methods:
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
        if not str(path.relative_to(ROOT)).startswith(NUMPY_NAMES)
    ]


def files_that_spell(name: str) -> list[str]:
    """Return the hand-written files in which a name stands."""
    return [str(path.relative_to(ROOT)) for path in hand_written() if name in names_of(path)]


@pytest.mark.parametrize("name", OPERATIONS)
def test_name_of_an_operation_stands_in_one_source_file(name: str) -> None:
    files = files_that_spell(name)
    assert len(files) == 1, files
    assert files[0].startswith("src/tenfold/ops/")


@pytest.mark.parametrize("name", ELEMENTARY)
def test_name_of_an_elementary_function_stands_in_its_declaration_and_its_formulas(
    name: str,
) -> None:
    files = files_that_spell(name)
    complex_formula = "src/tenfold/ops/complex_functions.py"
    formulas = [file for file in files if file.startswith("src/tenfold/codegen/vecmath/")]
    declared = [file for file in files if file not in (*formulas, complex_formula)]
    assert len(formulas) == 1, files
    assert len(declared) == 1, files
    assert declared[0].startswith("src/tenfold/ops/")
