"""Every error that an operation raises says what to do about it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import tenfold as tn

from . import call_errors

ROOMS = ("core", "ops", "storage", "array", "interop", "transforms")
CLASSES = {
    "AliasError",
    "ShapeError",
    "AxisError",
    "MatrixError",
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


@pytest.mark.parametrize(
    ("program", "remedy"),
    [
        (
            call_errors.a_function_of_math_in_an_element_rule,
            "use functions of tn: tn.sin(x), not math",
        ),
        (
            call_errors.a_function_of_math_of_an_array,
            "use functions of tn: tn.sin(x), not math.sin(x)",
        ),
        (
            call_errors.the_path_of_a_file_as_an_operand,
            "read a file first, as in tn.asarray(np.load",
        ),
        (
            call_errors.an_element_rule_that_is_not_elementwise,
            "the body of an op is one element; use a",
        ),
    ],
)
def test_remedy_names_what_exists(program: Callable[[], object], remedy: str) -> None:
    with pytest.raises(Exception, match="remedy") as caught:
        program()
    assert remedy in str(caught.value)
