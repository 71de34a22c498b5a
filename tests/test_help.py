"""`help` shows a name, its signature with public types, and the public names by section."""

from __future__ import annotations

import inspect
import pydoc
import re

import pytest

import tenfold as tn
from tenfold.core.op import OPS
from tenfold.core.public_signature import PUBLIC_TYPES
from tenfold.namespace.api_sections import API_SECTIONS


def shown(value: object) -> str:
    return pydoc.render_doc(value, renderer=pydoc.plaintext)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("sin", "sin(x: 'Array', /) -> 'Array'"),
        ("pad", "pad(x: 'Array', /, pad_width: "),
        ("sum", "sum(x: 'Array', /, *, axis: 'int | tuple[int, ...] | None' = None, "),
        ("mean", "mean(x: 'Array', /, *, axis: "),
        ("asarray", "asarray(obj: 'Any', /, *, dtype: "),
        ("function", "function("),
        ("operator", "operator("),
        ("options", "options("),
        ("Engine", "class Engine(tenfold._native.Engine)\n |  Engine(*, threads: "),
        ("linalg.svd", "svd(x: 'Array', /, *, full_matrices: 'bool' = True) -> 'tuple[Array, "),
    ],
)
def test_help_shows_name_and_signature(name: str, line: str) -> None:
    value: object = tn
    for part in name.split("."):
        value = getattr(value, part)
    assert f"\n{line}" in shown(value)


def test_signature_of_an_operation_names_public_types_alone() -> None:
    for name in sorted(OPS):
        signature = str(OPS[name].public_signature)
        assert not set(re.findall(r"\w+", signature)) & PUBLIC_TYPES.keys(), name
        declared = inspect.signature(OPS[name].function)
        assert [*OPS[name].public_signature.parameters] == [*declared.parameters], name


def test_public_form_calls_as_the_declared_function_does() -> None:
    operation = OPS["pad"]
    assert operation.public_function.__doc__ == operation.function.__doc__
    assert operation.public_function.__kwdefaults__ == operation.function.__kwdefaults__
    assert inspect.getsource(operation.public_function) == inspect.getsource(operation.function)


def test_docstring_of_the_package_has_every_name_in_its_section() -> None:
    doc = tn.__doc__ or ""
    listed: list[str] = []
    for section in API_SECTIONS:
        found = re.search(rf"^{section.title}:\n((?:    .*\n)+)", doc, re.M)
        assert found, section.title
        listed += re.split(r",\s+", found[1].strip())
    assert len(listed) == len(set(listed))
    assert {name for name in listed if "." not in name} == {*tn.__all__}
    assert {name for name in OPS if name.startswith("linalg.")} <= {*listed}


def test_lists_of_the_docstring_of_the_package_have_79_columns() -> None:
    lines = (tn.__doc__ or "").splitlines()
    assert max(len(line) for line in lines if line.startswith("    ")) <= 79
    assert "NumPy's API" in lines[0]
