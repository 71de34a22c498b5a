"""The allow-list of expressions is the op table, and nothing beside it but constants and dtypes."""

from __future__ import annotations

import tenfold as tn
from tenfold.core.op import OPS
from tenfold.dtypes import DTYPES
from tenfold.io.expression import parse_expression
from tenfold.io.vocabulary import API_CONSTANTS, EXPRESSION_PROPERTIES, vocabulary


def test_every_public_operation_can_be_called() -> None:
    words = vocabulary()
    assert set(words.functions) == {*OPS, "asarray"}
    assert words.methods == {name for name, operation in OPS.items() if operation.method}
    assert words.pages == {name.partition(".")[0] for name in OPS if "." in name}


def test_methods_and_properties_are_those_of_arrays() -> None:
    for name in vocabulary().methods | EXPRESSION_PROPERTIES:
        assert hasattr(tn.Array, name), name


def test_method_that_computes_or_leaves_the_expression_is_no_word() -> None:
    words = vocabulary()
    for name in ("item", "tolist", "wait", "explain", "device"):
        assert name not in words.methods
    for name in ("eval", "explain", "profile", "options", "set_options", "wrap", "rules", "save"):
        assert name not in words.functions


def test_no_word_begins_with_an_underscore_or_is_no_name() -> None:
    words = vocabulary()
    for name in (*words.functions, *words.methods, *words.properties, *words.names):
        assert all(part.isidentifier() and not part.startswith("_") for part in name.split("."))
        parse_expression(name)


def test_constants_and_dtypes_are_names() -> None:
    assert vocabulary().names == API_CONSTANTS | DTYPES
