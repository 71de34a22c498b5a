"""Trees of values: what flatten takes apart, unflatten puts together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest

from tenfold.core.pytree import LEAF_TREE, broadcast_prefix, flatten


class Point(NamedTuple):
    x: Any
    y: Any


@dataclass(frozen=True, slots=True)
class State:
    h: Any
    c: Any = None


@dataclass
class Counted:
    values: list[Any]
    count: int = field(init=False)

    def __post_init__(self) -> None:
        self.count = len(self.values)


TREES = [
    1,
    None,
    (),
    [],
    {},
    (1,),
    [1, (2, [3])],
    {"b": 1, "a": [2, None]},
    Point(1, (2, 3)),
    State(1, {"x": 2}),
    State(1),
    Counted([1, 2]),
    {1: "a", "mixed": "b"},
]


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_unflatten_puts_together_what_flatten_took_apart(tree: Any) -> None:
    leaves, structure = flatten(tree)
    assert structure.leaves == len(leaves)
    assert structure.unflatten(leaves) == tree
    assert type(structure.unflatten(leaves)) is type(tree)


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_structures_are_equal_and_hash_equal_where_trees_differ_in_leaves(tree: Any) -> None:
    leaves, structure = flatten(tree)
    other = flatten(structure.unflatten([object() for _ in leaves]))[1]
    assert other == structure
    assert hash(other) == hash(structure)
    assert str(other) == str(structure)


def test_different_trees_have_different_structures() -> None:
    structures = {flatten(tree)[1] for tree in TREES if tree != {1: "a", "mixed": "b"}}
    assert len(structures) == len(TREES) - 1
    assert flatten(State(1, 2))[1] != flatten((1, 2))[1]
    assert flatten({"a": 1})[1] != flatten({"b": 1})[1]


def test_a_dict_is_taken_in_the_order_of_its_keys() -> None:
    first, second = {"a": 1, "b": 2}, {"b": 2, "a": 1}
    assert flatten(first) == flatten(second)


def test_a_structure_prints_as_the_tree_with_stars() -> None:
    tree = (Point(1, None), [State(2, 3)], {"a": (4,)})
    shown = "(Point(x=*, y=None), [State(h=*, c=*)], {'a': (*,)})"
    assert str(flatten(tree)[1]) == shown
    assert str(LEAF_TREE) == "*"


def test_too_few_leaves_and_too_many_are_refused() -> None:
    structure = flatten((1, 2))[1]
    for leaves in ([1], [1, 2, 3]):
        with pytest.raises(AssertionError, match=rf"{len(leaves)} leaves .* \(\*, \*\)"):
            structure.unflatten(leaves)


def test_a_prefix_is_spread_over_what_lies_below() -> None:
    structure = flatten(([1, 2], {"a": 3, "b": (4, 5)}, None))[1]
    assert broadcast_prefix(7, structure) == [7] * 5
    assert broadcast_prefix(([0, 1], {"a": None, "b": 2}, None), structure) == [0, 1, None, 2, 2]
    with pytest.raises(ValueError, match="does not fit"):
        broadcast_prefix((0, 1), structure)
    with pytest.raises(ValueError, match="does not fit"):
        broadcast_prefix(([0, 1, 2], 0, 0), structure)
