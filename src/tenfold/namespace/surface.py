"""The public surface: a function for every operation, methods, `tn.operators`, made from the op table.

Takes the table, hands on plain functions with the declared signature and docstring.

>>> from tenfold.ir.op import OPS
>>> function_of(OPS["exp"]).__name__
'exp'
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from tenfold._native import Array
from tenfold.ir.op import OPS, Operation


def function_of(operation: Operation[...]) -> Callable[..., Any]:
    """Return the public function of an operation."""

    def function(*args: Any, **kwargs: Any) -> Any:
        return operation(*args, **kwargs)

    function.__name__ = operation.name
    function.__qualname__ = operation.name
    function.__module__ = f"tenfold.{operation.namespace}".rstrip(".")
    function.__doc__ = operation.doc
    function.__signature__ = operation.signature  # type: ignore[attr-defined]
    return function


def functions(namespace: str = "") -> dict[str, Callable[..., Any]]:
    """Return the public functions of one namespace by name."""
    return {
        operation.name: function_of(operation)
        for operation in OPS.values()
        if operation.namespace == namespace
    }


def operators() -> SimpleNamespace:
    """Return every public operation itself, by name."""
    return SimpleNamespace(**{name.replace(".", "_"): op for name, op in OPS.items()})


def install_methods() -> None:
    """Give Array a method for every operation that says so."""
    for operation in OPS.values():
        if operation.method:
            setattr(Array, operation.name, function_of(operation))
