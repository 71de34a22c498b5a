"""Public signatures: replaces internal types in the annotations of a declared function.

Takes the decorated function of an operation, hands on the same function, or a copy with public
types instead of aliases and internal types, for `help`.

>>> import inspect
>>> def declared(x: Array, /, *, axis: Axis = None) -> BoundCall: ...
>>> print(str(inspect.signature(with_public_types(declared))).replace("'", ""))
(x: Array, /, *, axis: int | tuple[int, ...] | None = None) -> Array
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any, ParamSpec

P = ParamSpec("P")

PUBLIC_TYPES = {
    "Axis": "int | tuple[int, ...] | None",
    "BoundCall": "Array",
    "Integer": "int | Array",
    "Parameter": "float | Array | Sequence[float]",
    "Shape": "tuple[int, ...]",
    "Size": "int | tuple[int, ...] | None",
}
"""Internal types, and the public types in their stead."""
PRIVATE = re.compile(rf"\b({'|'.join(PUBLIC_TYPES)})\b")


def with_public_types(function: Callable[..., Any], results: int = 1) -> Callable[..., Any]:
    """Return the function, or a copy with public annotations and `results` results."""
    declared = getattr(function, "__annotations__", {})
    public_annotations = {name: public_annotation(text) for name, text in declared.items()}
    if results > 1:
        public_annotations["return"] = f"tuple[{', '.join(['Array'] * results)}]"
    if public_annotations == declared or not isinstance(function, FunctionType):
        return function
    code, names = function.__code__, function.__globals__
    copy = FunctionType(code, names, function.__name__, function.__defaults__, function.__closure__)
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__doc__ = function.__doc__
    copy.__annotations__ = public_annotations
    if formula := getattr(function, "__wrapped__", None):
        copy.__wrapped__ = with_public_types(formula)  # type: ignore[attr-defined]  # for inspect
    return copy


def public_annotation(annotation: Any) -> Any:
    """Return an annotation with public types, if it is a string."""
    if not isinstance(annotation, str):
        return annotation
    return PRIVATE.sub(lambda match: PUBLIC_TYPES[match[0]], annotation)


def parameters_of(pattern: Callable[P, Any]) -> Callable[[Callable[..., Any]], Callable[P, Any]]:
    """Declare that a function takes the parameters of another one, as it says by `inspect`. A call
    with others raises a TypeError that names it.
    """
    signature = inspect.signature(pattern)

    def declare(function: Callable[..., Any]) -> Callable[P, Any]:
        @wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> Any:
            try:
                return function(*args, **kwargs)
            except TypeError:
                _refuse_other_parameters(function.__name__, signature, args, kwargs)
                raise

        checked.__signature__ = signature  # type: ignore[attr-defined]  # no stub declares it
        return checked

    return declare


def _refuse_other_parameters(
    name: str, signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{name}() {error}") from None
