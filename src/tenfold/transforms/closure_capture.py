"""Closure capture: lists every object that a Python function reads by name.

Takes a function, returns the objects that it could read: the values of its names, their elements
and attributes, and the objects that called functions read. While all of these are unchanged, a new
trace would equal the old one.

>>> rates = {"slow": 0.25}
>>> def decay(h): return h * rates["slow"]
>>> before = bindings(decay)
>>> are_same(before, bindings(decay))
True
>>> rates["slow"] = 0.5
>>> are_same(before, bindings(decay))
False
"""

from __future__ import annotations

from collections.abc import Iterable
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any
from weakref import ref

import numpy as np

from tenfold._native import Array

MAX_OBJECTS = 256
"""Limit of visited objects; the captures of a function that reads more are unknown."""
LIBRARIES = ("tenfold", "numpy")
"""Packages whose functions are assumed not to change."""
ATOMIC_TYPES = (Array, ModuleType, BuiltinFunctionType, type, bool, int, float, complex, str, bytes)
"""Types without child objects that could be rebound."""


def bindings(function: FunctionType) -> list[Any] | None:
    """Return references to all objects that a function could read, weak where possible.

    None where there are too many, or where one is an ndarray, which can change in place.
    """
    references: list[Any] = []
    visited: set[int] = set()
    stack = [*_read_objects(function)]
    while stack:
        value = stack.pop()
        if id(value) in visited:
            continue
        visited.add(id(value))
        if isinstance(value, np.ndarray) or len(visited) > MAX_OBJECTS:
            return None
        references.append(_weak_reference(value))
        if not isinstance(value, ATOMIC_TYPES):
            stack.extend(_child_objects(value))
    return references


def are_same(old: list[Any] | None, new: list[Any] | None) -> bool:
    """Whether two lists of bindings are of the same objects."""
    if old is None or new is None or len(old) != len(new):
        return False
    return all(map(_is_same, old, new))


def contains_array(references: list[Any], array: Array) -> bool:
    """Whether an Array is among bindings."""
    return any(_dereference(reference) is array for reference in references)


def _read_objects(function: Any) -> Iterable[Any]:
    """Yield the values of the names in a function."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # an unassigned cell
            yield None
    names = function.__globals__
    for name in _code_names(function.__code__):
        if name in names:
            yield names[name]
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()


def _code_names(code: Any) -> Iterable[str]:
    """Yield the names in a code object and in its nested functions."""
    yield from code.co_names
    for constant in code.co_consts:
        if hasattr(constant, "co_names"):
            yield from _code_names(constant)


def _child_objects(value: Any) -> Iterable[Any]:
    if isinstance(value, (list, tuple, set, frozenset)):
        return value
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, FunctionType):
        package = (value.__module__ or "").partition(".")[0]
        return () if package in LIBRARIES else _read_objects(value)
    if isinstance(value, MethodType):
        return (value.__func__, value.__self__)
    slots = [name for base in type(value).__mro__ for name in _slots(base)]
    slot_values = [getattr(value, name) for name in slots if hasattr(value, name)]
    return [*slot_values, *getattr(value, "__dict__", {}).values()]


def _slots(base: type) -> tuple[str, ...]:
    slots = vars(base).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _weak_reference(value: Any) -> Any:
    if isinstance(value, dict):
        return type(value), *value
    if isinstance(value, (list, tuple, set, frozenset)):
        return type(value), len(value)  # its items are visited separately
    try:
        return ref(value)
    except TypeError:
        return value


def _dereference(reference: Any) -> Any:
    return reference() if isinstance(reference, ref) else reference


def _is_same(old: Any, new: Any) -> bool:
    if isinstance(old, tuple) and isinstance(new, tuple):
        return old == new
    return _dereference(old) is _dereference(new)


__all__ = ["are_same", "bindings", "contains_array"]
