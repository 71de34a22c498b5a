"""Every public operation has a docstring with an example, and the example prints what it says."""

from __future__ import annotations

import doctest
import inspect

import tenfold as tn
from tenfold.core.op import OPS

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
OTHERS = ("asarray", "eval", "explain", "options", "profile", "op", "operator", "vmap")
"""Public names that are no operations."""


def doctest_of(doc: str, name: str) -> doctest.DocTest:
    return doctest.DocTestParser().get_doctest(doc, {}, name, name, 0)


def test_every_public_docstring_has_an_example() -> None:
    docs = {name: OPS[name].doc for name in OPS}
    docs |= {name: inspect.getdoc(getattr(tn, name)) or "" for name in OTHERS}
    assert [name for name, doc in docs.items() if not doctest_of(doc, name).examples] == []


def test_examples_of_operations_of_submodules_print_what_they_say() -> None:
    """Pytest collects those of the package itself as doctests."""
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    tests = [doctest_of(OPS[name].doc, name) for name in sorted(OPS) if "." in name]
    assert [test.name for test in tests if runner.run(test).failed] == []


def test_docstring_is_what_the_public_function_shows() -> None:
    for name in sorted(OPS):
        namespace, _, short = name.rpartition(".")
        module = getattr(tn, namespace) if namespace else tn
        function = getattr(module, short)
        assert inspect.getdoc(function) == OPS[name].doc, name
        assert inspect.signature(function) == OPS[name].public_signature, name
