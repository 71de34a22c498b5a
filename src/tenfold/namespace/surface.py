"""Public surface: generates functions, methods and `tn.operators` from the op table.

Takes the table, hands on plain functions with the declared signature and docstring.

>>> from tenfold.core.op import OPS
>>> function_of(OPS["exp"]).__name__
'exp'
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType, ModuleType
from typing import Any

from tenfold import _native
from tenfold._native import Array
from tenfold.array import ndarray_methods
from tenfold.core.op import OPS, Op, Operation
from tenfold.dtypes import kind_of
from tenfold.errors import DTypeError, ExplainedError, ForeignDTypeError
from tenfold.namespace import absent, call_forms


@cache
def function_of(operation: Operation[...]) -> Callable[..., Any]:
    """Return the public function of an operation: native code where alike calls are bound once."""
    return _public(operation, _checked_call(operation), operation.public_function)


def method_of(operation: Operation[...]) -> Callable[..., Any]:
    """Return the method of an operation: NumPy's form of it answers calls of other arguments.

    >>> method_of(OPS["sum"]).__name__
    'sum'
    """
    numpy_form = ndarray_methods.WIDENED.get(operation.name)
    if numpy_form is None:
        return function_of(operation)
    call = _checked_call(operation)
    parameters = operation.public_signature.parameters.values()
    most = sum(parameter.kind <= parameter.POSITIONAL_OR_KEYWORD for parameter in parameters)
    keywords = {p.name for p in parameters if p.kind >= p.POSITIONAL_OR_KEYWORD}
    never_none = {name for name in keywords if "None" not in str(_annotation(operation, name))}

    def python(*args: Any, **kwargs: Any) -> Any:
        is_declared = len(args) <= most and kwargs.keys() <= keywords
        if not is_declared or isinstance(args[-1], list):
            return numpy_form(*args, **kwargs)
        if any(kwargs[name] is None for name in never_none & kwargs.keys()):
            return numpy_form(*args, **kwargs)
        try:
            return call(*args, **kwargs)
        except DTypeError as error:
            if kind_of(args[0].dtype) != "c" and not isinstance(error, ForeignDTypeError):
                raise
            return numpy_form(*args, **kwargs)  # NumPy orders complex numbers, and holds others

    return _public(operation, python, numpy_form)


def _annotation(operation: Operation[...], name: str) -> object:
    return operation.public_signature.parameters[name].annotation


def _checked_call(operation: Operation[...]) -> Callable[..., Any]:
    """Return the call of an operation whose TypeError says how it is written."""

    def python(*args: Any, **kwargs: Any) -> Any:
        try:
            return operation(*args, **kwargs)
        except TypeError as error:
            if isinstance(error, ExplainedError) or call_forms.fits(operation, args, kwargs):
                raise
            if kwargs.get("out", ...) is None:  # NumPy's functions pass it on
                return python(*args, **{name: kwargs[name] for name in kwargs if name != "out"})
            raise call_forms.wrong_call(operation, args, kwargs, error) from None

    return python


def _public(
    operation: Operation[...], python: Callable[..., Any], declared: Callable[..., Any]
) -> Callable[..., Any]:
    """Return a call under the name, the signature and the documentation of a declaration."""
    function: Any = operation.with_call_cache(python) if isinstance(operation, Op) else python
    function.__name__ = operation.name
    function.__qualname__ = operation.name
    function.__module__ = f"tenfold.{operation.namespace}".rstrip(".")
    function.__doc__ = operation.public_function.__doc__
    function.__wrapped__ = declared  # inspect finds the signature by it
    public_function: Callable[..., Any] = function
    return public_function


def functions(namespace: str = "") -> dict[str, Callable[..., Any]]:
    """Return the public functions of one namespace by name."""
    return {name: function_of(op) for name, op in namespace_operations(namespace).items()}


def module(namespace: str, doc: str, other: Mapping[str, Any] = MappingProxyType({})) -> ModuleType:
    """Make `tenfold.<namespace>` an importable module of the operations that stand there, and of
    other public names.
    """
    new_module = ModuleType(f"tenfold.{namespace}", doc)
    names = {**functions(namespace), **other}
    new_module.__dict__.update(names)
    new_module.__dict__["__all__"] = sorted(names)
    sys.modules[new_module.__name__] = new_module
    return new_module


def operators() -> ModuleType:
    """Make `tenfold.operators`: every public operation itself, by name. Those of a submodule stand
    in one of the same name, and beside the others: `linalg.inv` and `linalg_inv`.
    """
    operators_module = ModuleType(
        "tenfold.operators", "Every public operation as an operator, by name."
    )
    operators_module.__dict__.update({name.replace(".", "_"): op for name, op in OPS.items()})
    for namespace in namespaces():
        doc = f"The operations of tenfold.{namespace} as operators, by name."
        submodule = ModuleType(f"tenfold.operators.{namespace}", doc)
        submodule.__dict__.update(namespace_operations(namespace))
        operators_module.__dict__[namespace] = sys.modules[submodule.__name__] = submodule
    operators_module.__dict__["__getattr__"] = absent.module_getattr(
        "tenfold.operators", operators_module.__dict__
    )
    sys.modules[operators_module.__name__] = operators_module
    return operators_module


def namespaces() -> list[str]:
    """Return the public submodules that operations stand in."""
    return sorted({op.namespace for op in OPS.values() if op.namespace})


def namespace_operations(namespace: str) -> dict[str, Operation[...]]:
    """Return the operations of one namespace by name."""
    return {op.name: op for op in OPS.values() if namespace in (op.namespace, *op.also)}


def install_methods() -> None:
    """Give Array a method for every operation that says so, and an answer for every other name."""
    _native.set_missing_attribute(absent.missing_attribute)
    for operation in OPS.values():
        if operation.method:
            setattr(Array, operation.name, method_of(operation))
