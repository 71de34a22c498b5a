"""Values that contain themselves are refused where they come in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tenfold as tn


def cyclic(*items: Any) -> list[Any]:
    """A list that contains some items, and itself twice."""
    made = [*items]
    made += [made, made]
    return made


@pytest.mark.parametrize("items", [(), (1.0,), (tn.asarray(1.0),)], ids=["none", "number", "Array"])
@pytest.mark.parametrize("dtype", [None, "float64"])
def test_a_list_that_contains_itself_is_no_array(items: tuple[Any, ...], dtype: Any) -> None:
    with pytest.raises(tn.errors.ShapeError, match="more than 64 levels, or contains itself"):
        tn.asarray(cyclic(*items), dtype=dtype)


@pytest.mark.parametrize("items", [(), (1,)], ids=["none", "number"])
def test_a_list_that_contains_itself_is_no_index(items: tuple[Any, ...]) -> None:
    x = tn.arange(4)
    with pytest.raises(tn.errors.ShapeError, match="more than 64 levels, or contains itself"):
        x[cyclic(*items)]
    with pytest.raises(tn.errors.ShapeError, match="more than 64 levels, or contains itself"):
        x[cyclic(*items)] = 1


def identity(tree: Any) -> Any:
    return tree


CALLS: dict[str, Callable[[Any], Any]] = {
    "argument": lambda tree: tn.function(identity)(tree),
    "result": lambda tree: tn.function(lambda _: tree)(tn.ones(2)),
    "vmap": lambda tree: tn.vmap(identity)(tree),
    "scan": lambda tree: tn.scan(lambda c, x: (c, x), tree, tn.ones(3)),
}


def dictionary(*items: Any) -> dict[str, Any]:
    made: dict[str, Any] = dict(zip("abc", items, strict=False))
    made["itself"] = made
    return made


@pytest.mark.parametrize("make", [cyclic, dictionary])
@pytest.mark.parametrize("name", CALLS)
def test_a_tree_that_contains_itself_is_refused(name: str, make: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="contains itself, or is nested too deeply"):
        CALLS[name](make(tn.ones(2)))


@pytest.mark.parametrize("make", [cyclic, dictionary])
def test_a_pushed_tree_that_contains_itself_is_refused(make: Callable[..., Any]) -> None:
    with (
        tn.Engine(threads=1) as engine,
        pytest.raises(ValueError, match="contains itself, or is nested too deeply"),
    ):
        engine.push(tn.function(identity), make(tn.ones(2))).get()
