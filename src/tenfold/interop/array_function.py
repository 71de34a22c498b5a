"""`__array_function__`: dispatches NumPy functions on Arrays to lazy operations.

Takes a NumPy function with its arguments, returns the result of the operation that implements it.
Arguments are bound by NumPy's own signature and passed by name, or else by position.

>>> from tenfold.interop.asarray import asarray
>>> call(np.sum, (asarray([[1, 2], [3, 4]]),), {"axis": 0}).tolist()
[4, 6]
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from inspect import Parameter
from typing import Any

import numpy as np

from tenfold._native import Array
from tenfold.core.op import Operation
from tenfold.errors import UnsupportedError
from tenfold.interop.asarray import asarray
from tenfold.interop.materialize import value_of
from tenfold.interop.numpy_dispatch import (
    implementation_of,
    numpy_name,
    public_name,
    unsupported_function,
)

Function = Callable[..., Any]

# Functions of shape and dtype get a placeholder ndarray with one element.
TYPE_FUNCTIONS: frozenset[Function] = frozenset(
    (np.shape, np.ndim, np.size, np.iscomplexobj, np.isrealobj, np.result_type, np.can_cast)
)
# Functions of values that return no Array get ndarrays; they wait.
VALUE_FUNCTIONS: frozenset[Function] = frozenset(
    (
        *(np.save, np.savez, np.savez_compressed, np.savetxt),
        *(np.array_equal, np.array_equiv, np.allclose),
        *(np.array2string, np.array_repr, np.array_str),
        *(np.copyto, np.shares_memory, np.may_share_memory),
    )
)

RENAMED = {"ddof": "correction", "a_min": "min", "a_max": "max", "newshape": "shape"}
"""NumPy's parameter names and those of the standard, where the positions differ too."""

SUBSTITUTES = {
    "out": "assign the result instead, as in y = {call}(x)",
    "where": "choose the elements first with tn.where",
    "dtype": "convert first with tn.astype",
    "initial": "combine the result with the initial value yourself",
}
"""Remedies by NumPy's name of an argument that an operation does not have."""


def array_function(
    _self: Array, function: Function, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Dispatch a NumPy function; NotImplemented if `types` has arrays of another library."""
    if not all(issubclass(type_, (Array, np.ndarray)) for type_ in types):
        return NotImplemented
    if function in TYPE_FUNCTIONS:
        return function(
            *_replace_arrays(args, _type_placeholder), **_replace_arrays(kwargs, _type_placeholder)
        )
    if function in VALUE_FUNCTIONS:
        name = numpy_name(function)

        def export(array: Array) -> np.ndarray[Any, Any]:
            return value_of(array, name)

        return function(*_replace_arrays(args, export), **_replace_arrays(kwargs, export))
    return call(function, args, kwargs)


def _type_placeholder(array: Array) -> np.ndarray[Any, Any]:
    return np.broadcast_to(np.empty((), array.dtype), array.shape)


def _replace_arrays(value: Any, export: Callable[[Array], np.ndarray[Any, Any]]) -> Any:
    """Return arguments with every Array in them replaced."""
    if isinstance(value, Array):
        return export(value)
    if type(value) in (list, tuple):
        return type(value)(_replace_arrays(item, export) for item in value)
    if type(value) is dict:
        return {key: _replace_arrays(item, export) for key, item in value.items()}
    return value


def call(function: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Call the operation that implements a NumPy function with NumPy's arguments.

    Raises UnsupportedError for a function or an argument that tenfold does not have.
    """
    operation = implementation_of(function)
    if operation is None:
        raise unsupported_function(function)
    arguments = dict(_bind_arguments(function, operation, args, kwargs))
    positional: list[Any] = []
    parameters = operation.public_signature.parameters
    variadic_name = next(
        (n for n, p in parameters.items() if p.kind is Parameter.VAR_POSITIONAL), ""
    )
    for name, parameter in parameters.items():
        if name in arguments and parameter.annotation == "Array":
            arguments[name] = array_like(arguments[name])
        if parameter.kind is Parameter.VAR_POSITIONAL:
            positional.extend(arguments.pop(name, ()))
        elif parameter.kind is Parameter.POSITIONAL_ONLY:
            if name not in arguments and arguments.get(
                variadic_name
            ):  # np.einsum: its text is one of its operands
                arguments[name], *arguments[variadic_name] = arguments[variadic_name]
            if name not in arguments and parameter.default is Parameter.empty:
                raise _missing(function, operation, name)
            positional.append(arguments.pop(name, parameter.default))
        elif parameter.default is Parameter.empty and name not in arguments:
            raise _missing(function, operation, name)
    return operation(*positional, **arguments)


def array_like(value: Any) -> Any:
    """Convert a list or tuple to an Array; return any other value unchanged."""
    return asarray(value) if isinstance(value, (list, tuple)) else value


@cache
def _signature(function: Function) -> inspect.Signature:
    return inspect.signature(function)


def _bind_arguments(
    function: Function, operation: Operation[...], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Iterator[tuple[str, Any]]:
    """Yield the arguments under the operation's parameter names."""
    numpy_parameters = _signature(function).parameters
    bound_arguments = _signature(function).bind(*args, **kwargs).arguments
    for position, (name, parameter) in enumerate(numpy_parameters.items()):
        if name not in bound_arguments:
            continue
        if parameter.kind is Parameter.VAR_KEYWORD:
            for key, value in bound_arguments[name].items():
                yield _parameter_name(function, operation, key, None), value
        elif not _is_default(bound_arguments[name], parameter):
            is_positional = parameter.kind is not Parameter.KEYWORD_ONLY
            yield (
                _parameter_name(function, operation, name, position if is_positional else None),
                bound_arguments[name],
            )


def _parameter_name(
    function: Function, operation: Operation[...], name: str, position: int | None
) -> str:
    """Return the operation's parameter name for NumPy's argument `name` at `position`."""
    parameters = operation.public_signature.parameters
    for candidate in (name, RENAMED.get(name, name)):
        if candidate in parameters and parameters[candidate].kind is not Parameter.VAR_KEYWORD:
            return candidate
    positional_names = [p.name for p in parameters.values() if p.kind <= Parameter.VAR_POSITIONAL]
    if position is not None and position < len(positional_names):
        candidate = positional_names[position]
        if candidate not in _signature(function).parameters:
            return candidate
    numpy_call = numpy_name(function)
    operation_call = f"{public_name(operation)}{operation.public_signature}"
    remedy = SUBSTITUTES.get(name, "call {ours} itself").format(
        call=numpy_call, ours=operation_call
    )
    raise UnsupportedError(
        numpy_call,
        f"argument {name!r} is none of {public_name(operation)}'s: {', '.join(parameters)}",
        remedy=f"{remedy}, or convert with np.asarray(x), which waits",
    )


def _is_default(value: Any, parameter: Parameter) -> bool:
    default = parameter.default
    if default is Parameter.empty or isinstance(value, (Array, np.ndarray)):
        return False
    return value is default or (type(value) is type(default) and bool(value == default))


def _missing(function: Function, operation: Operation[...], name: str) -> UnsupportedError:
    return UnsupportedError(
        numpy_name(function),
        f"{public_name(operation)} needs its argument {name!r}",
        remedy=f"give it, or call {public_name(operation)}{operation.public_signature} itself",
    )
