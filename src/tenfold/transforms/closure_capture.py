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

MOST = 256
"""Objects that are looked at; who reads more is not known."""
LIBRARIES = ("tenfold", "numpy")
"""Packages whose functions are what they are."""
WHOLE = (Array, ModuleType, BuiltinFunctionType, type, bool, int, float, complex, str, bytes)
"""What has no parts that a function would read and that could be exchanged."""


def bindings(function: FunctionType) -> list[Any] | None:
    """Return weak references to all that a function could read, or what takes none; None where it
    is too much, or may be written to in place.
    """
    found: list[Any] = []
    seen: set[int] = set()
    left = [*_read_by(function)]
    while left:
        value = left.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, np.ndarray) or len(seen) > MOST:
            return None
        found.append(_weak(value))
        if not isinstance(value, WHOLE):
            left.extend(_parts(value))
    return found


def are_same(before: list[Any] | None, now: list[Any] | None) -> bool:
    """Whether two lists of bindings are of the same objects."""
    if before is None or now is None or len(before) != len(now):
        return False
    return all(map(_is_same, before, now))


def has(found: list[Any], array: Array) -> bool:
    """Whether an Array is among bindings."""
    return any(_there(each) is array for each in found)


def _read_by(function: Any) -> Iterable[Any]:
    """Return what the names in a function are bound to."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # nothing yet
            yield None
    names = function.__globals__
    for name in _names(function.__code__):
        if name in names:
            yield names[name]
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()


def _names(code: Any) -> Iterable[str]:
    """Return the names in code, and in that of functions within."""
    yield from code.co_names
    for constant in code.co_consts:
        if hasattr(constant, "co_names"):
            yield from _names(constant)


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, (list, tuple, set, frozenset)):
        return value
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, FunctionType):
        package = (value.__module__ or "").partition(".")[0]
        return () if package in LIBRARIES else _read_by(value)
    if isinstance(value, MethodType):
        return (value.__func__, value.__self__)
    slots = [name for base in type(value).__mro__ for name in _slots(base)]
    own = [getattr(value, name) for name in slots if hasattr(value, name)]
    return [*own, *getattr(value, "__dict__", {}).values()]


def _slots(base: type) -> tuple[str, ...]:
    named = vars(base).get("__slots__", ())
    return (named,) if isinstance(named, str) else tuple(named)


def _weak(value: Any) -> Any:
    if isinstance(value, dict):
        return type(value), *value
    if isinstance(value, (list, tuple, set, frozenset)):
        return type(value), len(value)  # what stands in it is looked at by itself
    try:
        return ref(value)
    except TypeError:
        return value


def _there(kept: Any) -> Any:
    return kept() if isinstance(kept, ref) else kept


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return one == other
    return _there(one) is _there(other)


__all__ = ["are_same", "bindings", "has"]
