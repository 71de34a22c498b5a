"""Pytree: flattens nested tuples, lists, dicts, dataclasses and None into leaves, and rebuilds
them.

`flatten` takes a value and hands on its leaves in order and its TreeDef, which is hashable,
comparable and printable; `TreeDef.unflatten` makes the same tree of other leaves. All else is a
leaf. A dict's items are in the order of its sorted keys, or as inserted where keys have no order.
A dataclass is made of its fields again, without a call of its `__init__`.

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

from tenfold.errors import message


@dataclass(frozen=True, slots=True)
class TreeDef:
    """What is left of a tree without its leaves: a leaf has no type."""

    type: type | None = None
    keys: tuple[Hashable, ...] = ()
    """Of a dict its keys, of a named tuple and a dataclass the names of the fields."""
    children: tuple[TreeDef, ...] = ()
    leaves: int = field(default=1, compare=False)
    """How many leaves it has."""

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Return the tree with these leaves, as many as it has."""
        given = list(leaves)
        assert len(given) == self.leaves, f"{len(given)} leaves for {self}"
        return _built(self, iter(given))

    def paths(self) -> list[str]:
        """Return for each leaf how it is reached from the tree, as in `[0]['h'].c`."""
        if self.type is None:
            return [""]
        found: list[str] = []
        for place, child in enumerate(self.children):
            key = self.keys[place] if self.keys else place
            step = f"[{key!r}]" if self.type in (tuple, list, dict) else f".{key}"
            found.extend(step + path for path in child.paths())
        return found

    def __str__(self) -> str:
        inside = [str(child) for child in self.children]
        if self.type is None:
            return "*"
        if self.type is type(None):
            return "None"
        if self.type is list:
            return f"[{', '.join(inside)}]"
        if self.type is tuple:
            return f"({', '.join(inside)}{',' if len(inside) == 1 else ''})"
        if self.type is dict:
            items = zip(self.keys, inside, strict=True)
            return "{" + ", ".join(f"{key!r}: {child}" for key, child in items) + "}"
        items = zip(self.keys, inside, strict=True)
        return f"{self.type.__name__}({', '.join(f'{key}={child}' for key, child in items)})"


LEAF = TreeDef()


def flatten(value: Any) -> tuple[list[Any], TreeDef]:
    """Return the leaves of a tree, in order, and its structure.

    Raises ValueError for a tree that contains itself, or is deeper than Python recurses.
    """
    leaves: list[Any] = []
    try:
        return leaves, _flattened(value, leaves)
    except RecursionError:
        rule = f"a {type(value).__name__} contains itself, or is nested too deeply"
        remedy = "pass values that nest less deeply"
        raise ValueError(message("tree of values", rule, remedy=remedy)) from None


def spread(prefix: Any, structure: TreeDef) -> list[Any]:
    """Return for each leaf of `structure` the leaf of `prefix` at or above it.

    `prefix` has the structure's own form as far down as it goes; None in it is a leaf. A ValueError
    says where the forms differ.

    >>> spread((0, None), flatten((1, [2, 3]))[1])
    [0, None, None]
    """
    if prefix is None or parts(prefix) is None:
        return [prefix] * structure.leaves
    type_, keys, children = _opened(prefix)
    if (type_, keys, len(children)) != (structure.type, structure.keys, len(structure.children)):
        raise ValueError(f"{prefix!r} does not fit the structure {structure}")
    pairs = zip(children, structure.children, strict=True)
    return [leaf for child, below in pairs for leaf in spread(child, below)]


def parts(value: Any) -> tuple[tuple[Hashable, ...], tuple[Any, ...]] | None:
    """Return the keys and the parts of a tree, one level down; None for a leaf."""
    if value is None:
        return (), ()
    type_ = type(value)
    if type_ is tuple or type_ is list:
        return (), tuple(value)
    if type_ is dict:
        keys = _ordered(value)
        return keys, tuple([value[key] for key in keys])
    if isinstance(value, tuple) and hasattr(type_, "_fields"):
        return type_._fields, tuple(value)
    if is_dataclass(type_):
        names = tuple([item.name for item in fields(value)])
        return names, tuple([getattr(value, name) for name in names])
    return None


def _opened(value: Any) -> tuple[type, tuple[Hashable, ...], tuple[Any, ...]]:
    opened = parts(value)
    assert opened is not None, "no leaf"
    return type(value), *opened


def _ordered(value: dict[Any, Any]) -> tuple[Hashable, ...]:
    try:
        return tuple(sorted(value))
    except TypeError:
        return tuple(value)


def _flattened(value: Any, leaves: list[Any]) -> TreeDef:
    opened = parts(value)
    if opened is None:
        leaves.append(value)
        return LEAF
    keys, inside = opened
    children = tuple([_flattened(part, leaves) for part in inside])
    return TreeDef(type(value), keys, children, sum([child.leaves for child in children]))


def _built(structure: TreeDef, leaves: Iterator[Any]) -> Any:
    type_ = structure.type
    if type_ is None:
        return next(leaves)
    if type_ is type(None):
        return None
    inside = [_built(child, leaves) for child in structure.children]
    if type_ is tuple or type_ is list:
        return type_(inside)
    if type_ is dict:
        return dict(zip(structure.keys, inside, strict=True))
    if issubclass(type_, tuple):
        return type_(*inside)
    made = object.__new__(type_)
    for name, part in zip(structure.keys, inside, strict=True):
        object.__setattr__(made, str(name), part)
    return made
