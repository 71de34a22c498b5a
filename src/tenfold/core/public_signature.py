"""Public signatures: a declared function with annotations that name public types alone.

Takes the decorated function of an operation, hands on the same function, or a copy whose
annotations have no alias and no type of the library's inside: that is what `help` shows.

>>> import inspect
>>> def declared(x: Array, /, *, axis: Axis = None) -> BoundCall: ...
>>> print(str(inspect.signature(with_public_types(declared))).replace("'", ""))
(x: Array, /, *, axis: int | tuple[int, ...] | None = None) -> Array
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

PUBLIC_TYPES = {
    "Axis": "int | tuple[int, ...] | None",
    "BoundCall": "Array",
    "Shape": "tuple[int, ...]",
}
"""Types inside the library, as a caller writes them."""
PRIVATE = re.compile(rf"\b({'|'.join(PUBLIC_TYPES)})\b")


def with_public_types(function: Callable[..., Any], results: int = 1) -> Callable[..., Any]:
    """Return the function, or a copy with public annotations; `results` is how many it returns."""
    declared = getattr(function, "__annotations__", {})
    shown = {name: public_annotation(text) for name, text in declared.items()}
    if results > 1:
        shown["return"] = f"tuple[{', '.join(['Array'] * results)}]"
    if shown == declared or not isinstance(function, FunctionType):
        return function
    code, names = function.__code__, function.__globals__
    copy = FunctionType(code, names, function.__name__, function.__defaults__, function.__closure__)
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__doc__ = function.__doc__
    copy.__annotations__ = shown
    return copy


@cache
def public_annotation(annotation: Any) -> Any:
    """Return an annotation, if it is text, with public types alone."""
    if not isinstance(annotation, str):
        return annotation
    return PRIVATE.sub(lambda match: PUBLIC_TYPES[match[0]], annotation)
