"""Every public operation has a docstring with an example, and the example prints what it says."""

from __future__ import annotations

import doctest
import inspect

import pytest

import tenfold as tn
from tenfold.core.op import OPS

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def failures(doc: str, name: str) -> int:
    """Run the examples of a docstring; return how many did not print what they say."""
    test = doctest.DocTestParser().get_doctest(doc, {}, name, name, 0)
    assert test.examples, f"{name} has no example"
    return doctest.DocTestRunner(optionflags=FLAGS).run(test).failed


@pytest.mark.parametrize("name", sorted(OPS))
def test_example_of_an_operation_prints_what_it_says(name: str) -> None:
    assert failures(OPS[name].doc, name) == 0


@pytest.mark.parametrize("name", sorted(OPS))
def test_docstring_is_what_the_public_function_shows(name: str) -> None:
    namespace, _, short = name.rpartition(".")
    module = getattr(tn, namespace) if namespace else tn
    function = getattr(module, short)
    assert inspect.getdoc(function) == OPS[name].doc
    assert inspect.signature(function) == OPS[name].public_signature


@pytest.mark.parametrize(
    "name", ["asarray", "eval", "explain", "options", "profile", "op", "operator", "vmap"]
)
def test_public_name_that_is_no_operation_has_an_example(name: str) -> None:
    assert failures(inspect.getdoc(getattr(tn, name)) or "", name) == 0
