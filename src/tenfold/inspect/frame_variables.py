"""Frame variables: finds the variables of the running frames that refer to objects.

Takes types of objects, hands on the variables of the running frames with such values, except
tenfold's own frames. Local variables come first, innermost frame first, then globals. Then come
their parts, one level deep: elements of containers, attributes of objects, bases of views. It keeps
no references.

>>> sides = {"left": 2.5}
>>> print(*(found for found in find_variables(float) if found.obj == 2.5))
"sides['left']"
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from inspect import CO_OPTIMIZED
from itertools import islice
from types import FrameType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any, NamedTuple

from tenfold._native import Array
from tenfold.core.trace_state import PACKAGE_FOLDER

MAX_CALLS = 200
"""The most frames that are searched."""
MAX_SEARCHED_ELEMENTS = 10_000
"""The most elements of a container that are searched."""
KEYS = (str, int, float, bool, bytes)
"""Types of dict keys that are printed."""


class FrameVariable(NamedTuple):
    """An expression for an object, and the frame where it is valid: "" for the innermost."""

    name: str
    location: str
    obj: object

    def __str__(self) -> str:
        return f"{self.name!r}{self.location}"


def find_variables(*kinds: type) -> list[FrameVariable]:
    """Return the variables whose values are of the given types; one object may have several.

    It tests `type(obj)` only: `isinstance` on a proxy could run user code.

    >>> row = (1, 2.5)
    >>> print(*(found for found in find_variables(float) if found.obj == 2.5))
    'row[1]'
    """
    names = [*_names()]
    matches = [variable for variable in names if issubclass(type(variable.obj), kinds)]
    for name, location, obj in names:
        for path, item in _parts_of(obj):
            if issubclass(type(item), kinds):
                matches.append(FrameVariable(f"{name}{path}", location, item))
    return matches


def _names() -> Iterator[FrameVariable]:
    """The variables of each frame and, once per module, the globals."""
    frame: FrameType | None = sys._getframe(1)
    seen_globals: list[object] = []
    calls = 0
    while frame is not None and calls < MAX_CALLS:
        if not frame.f_code.co_filename.startswith(PACKAGE_FOLDER):
            is_outer = bool(calls)
            calls += 1
            if frame.f_locals is not frame.f_globals:
                location = f" of {frame.f_code.co_name}()" if is_outer else ""
                yield from (FrameVariable(name, location, obj) for name, obj in _locals(frame))
            if not any(frame.f_globals is namespace for namespace in seen_globals):
                seen_globals.append(frame.f_globals)
                location = f" of {frame.f_globals.get('__name__')}" if is_outer else ""
                yield from (
                    FrameVariable(n, location, obj) for n, obj in _identifiers(frame.f_globals)
                )
        frame = frame.f_back


def _locals(frame: FrameType) -> list[tuple[str, object]]:
    """The local variables. Before Python 3.13 a frame caches the dict of its locals, and so keeps
    references to their values. These are removed if nothing else refers to the dict.
    """
    namespace, code = frame.f_locals, frame.f_code
    names = _identifiers(namespace)
    has_snapshot_dict = type(namespace) is dict and code.co_flags & CO_OPTIMIZED
    traced = isinstance(frame.f_trace, (FunctionType, MethodType))  # Python would copy it back
    if (
        has_snapshot_dict and not traced and sys.getrefcount(namespace) <= 3
    ):  # the frame, here, and the call
        for name in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
            namespace.pop(name, None)
    return names


def _identifiers(variables: dict[str, object]) -> list[tuple[str, object]]:
    """A copy of the variables with printable names: other threads may add some."""
    return [(name, obj) for name, obj in [*variables.items()] if name.isidentifier()]


def _parts_of(obj: object) -> Iterator[tuple[str, object]]:
    """The parts of an object with their access paths. It calls no methods of the user's."""
    kind = type(obj)
    items: Iterable[tuple[str, object]] = ()
    if kind is Array:
        items = [(".base", obj.base)]  # type: ignore[attr-defined]  # an Array has it
    elif issubclass(kind, (list, tuple)):
        iterate: Any = list.__iter__ if issubclass(kind, list) else tuple.__iter__
        items = ((f"[{i}]", element) for i, element in enumerate(iterate(obj)))
    elif issubclass(kind, dict):
        pairs: list[tuple[object, object]] = [*dict.items(obj)]  # type: ignore[arg-type]  # a dict
        items = ((f"[{key!r}]", element) for key, element in pairs if type(key) in KEYS)
    elif not issubclass(kind, (type, ModuleType, FunctionType)):
        items = _attributes(obj)
    return islice(items, MAX_SEARCHED_ELEMENTS)


def _attributes(obj: object) -> Iterator[tuple[str, object]]:
    """The attributes of an object, in its dict or in slots."""
    try:
        namespace = object.__getattribute__(obj, "__dict__")
    except Exception:  # noqa: BLE001  # a class may override it
        namespace = None
    if type(namespace) is dict:
        yield from ((f".{name}", attribute) for name, attribute in _identifiers(namespace))
    for kind in type(obj).__mro__:
        if "__slots__" in vars(kind):
            for name, member in [*vars(kind).items()]:
                if type(member) is MemberDescriptorType:
                    with suppress(AttributeError):  # a slot may be empty
                        yield f".{name}", member.__get__(obj)
