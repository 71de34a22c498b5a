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

import gc
import sys
from array import array
from collections.abc import Iterable
from contextvars import ContextVar
from mmap import mmap
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any
from weakref import ref

import numpy as np

from tenfold._native import Array

MAX_OBJECTS = 256
"""Limit of visited objects; the captures of a function that reads more are unknown."""
LIBRARIES = ("tenfold", "numpy")
"""Packages whose objects are assumed not to change, but for what their users gave them."""
UNCHANGING = frozenset(("tenfold", "numpy", *sys.stdlib_module_names))
"""Packages whose functions, classes and modules are assumed not to change."""
ATOMIC_TYPES = (Array, bool, int, float, complex, str, bytes, type(None), type(...), np.generic)
"""Types without child objects that could be rebound."""
STATEFUL_TYPES = (np.ndarray, array, bytearray, memoryview, mmap, ContextVar, ref)
"""Types whose content can change unseen."""
BUILTIN_READERS = frozenset(("eval", "exec", "getattr", "globals", "locals", "vars", "__import__"))
"""Builtins that read names which the code does not show."""
SUPPORTS_GC = 1 << 14
"""Flag of types whose children `gc.get_referents` lists: Py_TPFLAGS_HAVE_GC."""


def bindings(function: FunctionType) -> list[Any] | None:
    """Return references to all objects that a function could read, weak where possible.

    None where there are too many, or where one can change unseen, such as an ndarray.
    """
    references: list[Any] = []
    visited: set[int] = set()
    search = _Search()
    search.read(function)
    while search.stack or search.add_attributes():
        value = search.stack.pop()
        if id(value) in visited:
            continue
        visited.add(id(value))
        references.append(_weak_reference(value))
        if isinstance(value, ATOMIC_TYPES):
            continue
        if len(visited) > MAX_OBJECTS or _is_stateful(value):
            return None
        search.add_children(value)
    return None if search.reads_unseen_names() else references


def are_same(old: list[Any] | None, new: list[Any] | None) -> bool:
    """Whether two lists of bindings are of the same objects."""
    if old is None or new is None or len(old) != len(new):
        return False
    return all(map(_is_same, old, new))


def contains_array(references: list[Any], array: Array) -> bool:
    """Whether an Array is among bindings."""
    return any(_dereference(reference) is array for reference in references)


class _Search:
    """The objects that are still to be visited, and the names by which they are read."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.names: set[str] = set()
        self.namespaces: list[Any] = []
        """Modules and classes: of these, the attributes among the names are read."""
        self._added: dict[int, set[str]] = {}

    def read(self, function: FunctionType) -> None:
        """Add the values of the names in a function, and its attributes."""
        for cell in function.__closure__ or ():
            try:
                self.stack.append(cell.cell_contents)
            except ValueError:  # an unassigned cell
                self.stack.append(None)
        names = function.__globals__
        for name in _code_names(function.__code__):
            self.names.add(name)
            if name in names:
                self.stack.append(names[name])
            elif name in sys.modules:  # it may be imported in the body
                self.stack.append(sys.modules[name])
        self.stack.extend(function.__defaults__ or ())
        self.stack.extend((function.__kwdefaults__ or {}).values())
        self.stack.extend(function.__dict__.values())

    def add_children(self, value: Any) -> None:
        if isinstance(value, FunctionType):
            if _package(value) in UNCHANGING:
                self.stack.extend(value.__dict__.values())  # as __wrapped__
            else:
                self.read(value)
        elif isinstance(value, (ModuleType, type)):
            self.add_namespace(value)
        elif isinstance(value, BuiltinFunctionType):
            self.stack.append(value.__self__)  # a module, or the object of a method
        elif _package(type(value)) in LIBRARIES:
            self.stack.extend(getattr(value, "__dict__", {}).values())
        else:
            self.stack.extend(gc.get_referents(value))

    def add_namespace(self, namespace: ModuleType | type) -> None:
        for base in getattr(namespace, "__mro__", (namespace,)):
            if _package(base) not in UNCHANGING and base not in self.namespaces:
                self.namespaces.append(base)
                self.stack.extend(filter(_is_special_method, vars(base).values()))

    def add_attributes(self) -> bool:
        """Add the attributes of modules and classes that are read; whether there is a new one."""
        for namespace in self.namespaces:
            attributes = vars(namespace)
            added = self._added.setdefault(id(namespace), set())
            for name in (self.names & attributes.keys()) - added:
                added.add(name)
                self.stack.append(attributes[name])
        return bool(self.stack)

    def reads_unseen_names(self) -> bool:
        """Whether a function reads names that its code does not show."""
        readers = BUILTIN_READERS & self.names
        has_modules = any(isinstance(x, ModuleType) for x in self.namespaces)
        return bool(readers - {"getattr"}) or (bool(readers) and has_modules)


def _is_special_method(value: Any) -> bool:
    """Whether Python's syntax calls a method, such as `__call__` or `__add__`."""
    return isinstance(value, FunctionType) and value.__name__.startswith("__")


def _package(value: Any) -> str:
    name = value.__name__ if isinstance(value, ModuleType) else value.__module__
    return name.partition(".")[0] if isinstance(name, str) else ""


def _code_names(code: Any) -> Iterable[str]:
    """Yield the names in a code object and in its nested functions."""
    yield from code.co_names
    for constant in code.co_consts:
        if hasattr(constant, "co_names"):
            yield from _code_names(constant)


def _is_stateful(value: Any) -> bool:
    """Whether an object can change unseen: it has no children to compare, and is no value."""
    type_: Any = type(value)
    if isinstance(value, STATEFUL_TYPES) or hasattr(type_, "__next__"):
        return True
    if type_.__flags__ & SUPPORTS_GC or _package(type_) in LIBRARIES:
        return False
    return type_.__hash__ in (None, object.__hash__)


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
