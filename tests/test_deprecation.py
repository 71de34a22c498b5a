"""Names of the version before still answer, with a warning that says the new one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import tenfold as tn
from tenfold.deprecation import RENAMED_NAMES


def syncs() -> int:
    with tn.profile() as p:
        (tn.asarray([1.0]) + 1).item()
    return p.syncs


OLD: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "COMPLEX": (lambda: tn.Kind.COMPLEX, lambda: tn.Kind.CONTRACTION),
    "Object": (lambda: tn.Object, lambda: tn.EngineObject),
    "declare": (lambda: tn.declare, lambda: tn.assume),
    "syncs": (syncs, lambda: 1),
    "update": (lambda: tn.update, lambda: tn.set_at),
}


def test_each_renamed_name_is_tried() -> None:
    assert OLD.keys() == RENAMED_NAMES.keys()


@pytest.mark.parametrize("name", OLD)
def test_the_old_name_warns_and_answers_as_the_new_one(name: str) -> None:
    old, new = OLD[name]
    with pytest.warns(DeprecationWarning, match=f"{name} is now .*{RENAMED_NAMES[name]}") as caught:
        found = old()
    assert caught[0].filename == __file__
    assert found == new()


def test_operators_have_the_old_names_too() -> None:
    with pytest.warns(DeprecationWarning, match="tenfold.operators.update is now"):
        assert tn.operators.update is tn.operators.set_at


def test_old_names_are_not_listed() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not {"Object", "declare", "update"} & set(dir(tn))


def test_other_names_are_refused_as_before() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'undate'"):
        tn.undate
