"""Pytree: flattens nested tuples, lists, dicts, dataclasses and None into leaves, and rebuilds
them.

`flatten` takes a value and hands on its leaves in order and its TreeDef, which is hashable,
comparable and printable. `TreeDef.unflatten` makes the same tree of other leaves. Any other value
is a leaf, but for an Array of a storage kind: its components are. A dict's items are in the order
of its sorted keys, or in insertion order if they cannot be sorted. A dataclass is rebuilt from its
fields, without a call of its `__init__`.

>>> leaves, structure = flatten({"b": [1, 2], "a": (3, None)})
>>> leaves, str(structure)
([3, 1, 2], "{'a': (*, None), 'b': [*, *]}")
>>> structure.unflatten("xyz")
{'a': ('x', None), 'b': ['y', 'z']}
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from tenfold import _native
from tenfold._native import Array
from tenfold.errors import message


@dataclass(frozen=True, slots=True)
class TreeDef:
    """The structure of a tree without its leaves; a leaf has no type."""

    type: type | None = None
    keys: tuple[Hashable, ...] = ()
    """Of a dict its keys, of a named tuple and a dataclass the names of the fields, of an Array of
    a storage kind the op that makes it and its params."""
    children: tuple[TreeDef, ...] = ()
    leaves: int = field(default=1, compare=False)
    """How many leaves it has."""

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Return the tree with these leaves; their number must match."""
        leaf_list = list(leaves)
        assert len(leaf_list) == self.leaves, f"{len(leaf_list)} leaves for {self}"
        return _unflatten(self, iter(leaf_list))

    def paths(self) -> list[str]:
        """Return the key path of each leaf, as in `[0]['h'].c`."""
        if self.type is None:
            return [""]
        paths: list[str] = []
        for index, child in enumerate(self.children):
            key = self.keys[index] if self.keys and self.type is not Array else index
            step = f"[{key!r}]" if self.type in (tuple, list, dict, Array) else f".{key}"
            paths.extend(step + path for path in child.paths())
        return paths

    def __str__(self) -> str:
        child_texts = [str(child) for child in self.children]
        if self.type is None:
            return "*"
        if self.type is type(None):
            return "None"
        if self.type is list:
            return f"[{', '.join(child_texts)}]"
        if self.type is tuple:
            return f"({', '.join(child_texts)}{',' if len(child_texts) == 1 else ''})"
        if self.type is Array:
            constructor: Any = self.keys[0]
            return f"{constructor.name}({', '.join(child_texts)})"
        if self.type is dict:
            items = zip(self.keys, child_texts, strict=True)
            return "{" + ", ".join(f"{key!r}: {child}" for key, child in items) + "}"
        items = zip(self.keys, child_texts, strict=True)
        return f"{self.type.__name__}({', '.join(f'{key}={child}' for key, child in items)})"


LEAF_TREE = TreeDef()


def flatten(value: Any) -> tuple[list[Any], TreeDef]:
    """Return the leaves of a tree, in order, and its structure.

    Raises ValueError for a tree that contains itself, or is deeper than Python recurses.
    """
    leaves: list[Any] = []
    try:
        return leaves, _flatten(value, leaves)
    except RecursionError:
        rule = f"a {type(value).__name__} contains itself, or is nested too deeply"
        remedy = "pass values that nest less deeply"
        raise ValueError(message("tree of values", rule, remedy=remedy)) from None


def broadcast_prefix(prefix: Any, structure: TreeDef) -> list[Any]:
    """Return for each leaf of `structure` the leaf of `prefix` at or above it.

    `prefix` has the structure's own form as far down as it goes; None in it is a leaf. A ValueError
    says where the forms differ.

    >>> broadcast_prefix((0, None), flatten((1, [2, 3]))[1])
    [0, None, None]
    """
    if prefix is None or flatten_one_level(prefix) is None:
        return [prefix] * structure.leaves
    type_, keys, children = _typed_children(prefix)
    if (type_, keys, len(children)) != (structure.type, structure.keys, len(structure.children)):
        raise ValueError(f"{prefix!r} does not fit the structure {structure}")
    pairs = zip(children, structure.children, strict=True)
    return [
        leaf
        for child, child_structure in pairs
        for leaf in broadcast_prefix(child, child_structure)
    ]


def flatten_one_level(value: Any) -> tuple[tuple[Hashable, ...], tuple[Any, ...]] | None:
    """Return the keys and the children of a tree, one level down; None for a leaf."""
    if value is None:
        return (), ()
    type_ = type(value)
    if type_ is tuple or type_ is list:
        return (), tuple(value)
    if type_ is dict:
        keys = _sorted_keys(value)
        return keys, tuple([value[key] for key in keys])
    if isinstance(value, tuple) and hasattr(type_, "_fields"):
        return type_._fields, tuple(value)
    if is_dataclass(type_):
        names = tuple([item.name for item in fields(value)])
        return names, tuple([getattr(value, name) for name in names])
    if _native.has_kind(value):
        node = _native.node_of(value)
        return (node.op, *node.params), tuple(map(_native.array_of, node.inputs))
    return None


def _typed_children(value: Any) -> tuple[type, tuple[Hashable, ...], tuple[Any, ...]]:
    keys_and_children = flatten_one_level(value)
    assert keys_and_children is not None, "no leaf"
    return type(value), *keys_and_children


def _sorted_keys(value: dict[Any, Any]) -> tuple[Hashable, ...]:
    try:
        return tuple(sorted(value))
    except TypeError:
        return tuple(value)


def _flatten(value: Any, leaves: list[Any]) -> TreeDef:
    keys_and_children = flatten_one_level(value)
    if keys_and_children is None:
        leaves.append(value)
        return LEAF_TREE
    keys, children_values = keys_and_children
    children = tuple([_flatten(child_value, leaves) for child_value in children_values])
    return TreeDef(type(value), keys, children, sum([child.leaves for child in children]))


def _unflatten(structure: TreeDef, leaves: Iterator[Any]) -> Any:
    type_ = structure.type
    if type_ is None:
        return next(leaves)
    if type_ is type(None):
        return None
    children = [_unflatten(child, leaves) for child in structure.children]
    if type_ is tuple or type_ is list:
        return type_(children)
    if type_ is Array:  # of a storage kind: the keys are its constructor
        constructor: Any = structure.keys[0]
        return _native.apply(constructor.id, tuple(children), structure.keys[1:])
    if type_ is dict:
        return dict(zip(structure.keys, children, strict=True))
    if issubclass(type_, tuple):
        return type_(*children)
    instance = object.__new__(type_)
    for name, child_value in zip(structure.keys, children, strict=True):
        object.__setattr__(instance, str(name), child_value)
    return instance
