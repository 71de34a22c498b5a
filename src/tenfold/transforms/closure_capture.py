"""Closure capture: lists every object that a Python function reads by name.

Takes a function, hands on the objects that it could read: those its names are bound to, their
elements and attributes, and those that functions among them read. While all of them are the same
objects, a new trace would equal the old one.

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
"""Objects that are looked at; who reads more is not known."""
LIBRARIES = ("tenfold", "numpy")
"""Packages whose functions are what they are."""
ATOMIC_TYPES = (Array, ModuleType, BuiltinFunctionType, type, bool, int, float, complex, str, bytes)
"""What has no parts that a function would read and that could be exchanged."""


def bindings(function: FunctionType) -> list[Any] | None:
    """Return weak references to all that a function could read, or what takes none; None where it
    is too much, or may be written to in place.
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
    """Return what the names in a function are bound to."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # nothing yet
            yield None
    names = function.__globals__
    for name in _code_names(function.__code__):
        if name in names:
            yield names[name]
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()


def _code_names(code: Any) -> Iterable[str]:
    """Return the names in code, and in that of functions within."""
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
        return type(value), len(value)  # what stands in it is looked at by itself
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
