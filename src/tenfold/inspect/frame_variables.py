"""Frame variables: finds the names by which the running frames refer to objects.

Takes kinds of objects, hands on those that variables of the running frames name, tenfold's own
frames left out. Local variables come first, from the inside out, then the globals beside them. Then
come their parts, one level deep: elements of containers, attributes of objects, bases of views.
Nothing is stored.

>>> sides = {"left": 2.5}
>>> print(*(found for found in variables(float) if found.held == 2.5))
"sides['left']"
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from inspect import CO_OPTIMIZED
from itertools import islice
from pathlib import Path
from types import FrameType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any, NamedTuple

from tenfold._native import Array

PACKAGE_FOLDER = f"{Path(__file__).parent.parent}{os.sep}"
"""The folder whose code is skipped: tenfold's own variables are not named."""
MOST_CALLS = 200
"""Calls that are looked at."""
MOST_ELEMENTS = 10_000
"""Elements of a container that are looked at."""
KEYS = (str, int, float, bool, bytes)
"""Keys of a dict that are written out."""


class FrameVariable(NamedTuple):
    """A name, as it is written where the call stands, and which call that is: "" the innermost."""

    name: str
    location: str
    obj: object

    def __str__(self) -> str:
        return f"{self.name!r}{self.location}"


def variables(*kinds: type) -> list[FrameVariable]:
    """Return the variables that name what is of some kinds; one object may have several.

    What an object is says its type: to ask a proxy would run code of the user's.

    >>> row = (1, 2.5)
    >>> print(*(found for found in variables(float) if found.held == 2.5))
    'row[1]'
    """
    names = [*_names()]
    found = [each for each in names if issubclass(type(each.obj), kinds)]
    for name, where, held in names:
        for inner, item in _parts_of(held):
            if issubclass(type(item), kinds):
                found.append(FrameVariable(f"{name}{inner}", where, item))
    return found


def _names() -> Iterator[FrameVariable]:
    """The variables of each call and, once, the globals beside them."""
    frame: FrameType | None = sys._getframe(1)
    seen: list[object] = []
    calls = 0
    while frame is not None and calls < MOST_CALLS:
        if not frame.f_code.co_filename.startswith(PACKAGE_FOLDER):
            outer = bool(calls)
            calls += 1
            if frame.f_locals is not frame.f_globals:
                where = f" of {frame.f_code.co_name}()" if outer else ""
                yield from (FrameVariable(name, where, held) for name, held in _locals(frame))
            if not any(frame.f_globals is known for known in seen):
                seen.append(frame.f_globals)
                where = f" of {frame.f_globals.get('__name__')}" if outer else ""
                yield from (
                    FrameVariable(n, where, held) for n, held in _identifiers(frame.f_globals)
                )
        frame = frame.f_back


def _locals(frame: FrameType) -> list[tuple[str, object]]:
    """The local variables. Before Python 3.13 a frame keeps the dict that it makes to be asked for
    them, and so what was in the variables: that is removed, if nothing else refers to the dict.
    """
    kept, code = frame.f_locals, frame.f_code
    found = _identifiers(kept)
    makes = type(kept) is dict and code.co_flags & CO_OPTIMIZED
    traced = isinstance(frame.f_trace, (FunctionType, MethodType))  # Python would read it back
    if makes and not traced and sys.getrefcount(kept) <= 3:  # the frame, here, and the call
        for name in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
            kept.pop(name, None)
    return found


def _identifiers(variables: dict[str, object]) -> list[tuple[str, object]]:
    """What has a name that can be written down, at one moment: other threads may add some."""
    return [(name, held) for name, held in [*variables.items()] if name.isidentifier()]


def _parts_of(held: object) -> Iterator[tuple[str, object]]:
    """What an object holds, and how it is got at. Methods of the user's are not called for it."""
    kind = type(held)
    items: Iterable[tuple[str, object]] = ()
    if kind is Array:
        items = [(".base", held.base)]  # type: ignore[attr-defined]  # an Array has it
    elif issubclass(kind, (list, tuple)):
        each_of: Any = list.__iter__ if issubclass(kind, list) else tuple.__iter__
        items = ((f"[{i}]", each) for i, each in enumerate(each_of(held)))
    elif issubclass(kind, dict):
        pairs: list[tuple[object, object]] = [*dict.items(held)]  # type: ignore[arg-type]  # a dict
        items = ((f"[{key!r}]", each) for key, each in pairs if type(key) in KEYS)
    elif not issubclass(kind, (type, ModuleType, FunctionType)):
        items = _attributes(held)
    return islice(items, MOST_ELEMENTS)


def _attributes(held: object) -> Iterator[tuple[str, object]]:
    """The attributes that an object has for itself, in a dict or in slots."""
    try:
        own = object.__getattribute__(held, "__dict__")
    except Exception:  # noqa: BLE001  # a class may make of it what it likes
        own = None
    if type(own) is dict:
        yield from ((f".{name}", each) for name, each in _identifiers(own))
    for kind in type(held).__mro__:
        if "__slots__" in vars(kind):
            for name, member in [*vars(kind).items()]:
                if type(member) is MemberDescriptorType:
                    with suppress(AttributeError):  # a slot may be empty
                        yield f".{name}", member.__get__(held)
