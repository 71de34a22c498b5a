"""`__array_function__`: dispatches NumPy functions on Arrays to lazy operations.

Takes a NumPy function with its arguments, hands on the result of the operation that answers for it.
Arguments are bound by NumPy's own signature and handed over by name, or else by position.

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

# What looks at shape and dtype alone is asked about a stand-in that holds one element.
TYPE_FUNCTIONS: frozenset[Function] = frozenset(
    (np.shape, np.ndim, np.size, np.iscomplexobj, np.isrealobj, np.result_type, np.can_cast)
)
# What looks at values and hands on no array of ours gets them; it waits.
VALUE_FUNCTIONS: frozenset[Function] = frozenset(
    (
        *(np.save, np.savez, np.savez_compressed, np.savetxt),
        *(np.array_equal, np.array_equiv, np.allclose),
        *(np.array2string, np.array_repr, np.array_str),
        *(np.copyto, np.shares_memory, np.may_share_memory),
    )
)

RENAMED = {"ddof": "correction", "a_min": "min", "a_max": "max", "newshape": "shape"}
"""What NumPy and the standard name differently, where the position differs too."""

SUBSTITUTES = {
    "out": "assign the result instead, as in y = {call}(x)",
    "where": "choose the elements first with tn.where",
    "dtype": "convert first with tn.astype",
    "initial": "combine the result with the initial value yourself",
}
"""By NumPy's name of an argument that an operation has not: what to do."""


def array_function(
    _self: Array, function: Function, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Answer for a function of NumPy, or leave it to a library whose arrays it mixes with ours."""
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
    """Call the operation that answers for a NumPy function with NumPy's arguments.

    Raises UnsupportedError for a function or an argument that tenfold has not.
    """
    operation = implementation_of(function)
    if operation is None:
        raise unsupported_function(function)
    given = dict(_bind_arguments(function, operation, args, kwargs))
    positional: list[Any] = []
    ours = _parameters(operation)
    row = next((n for n, p in ours.items() if p.kind is Parameter.VAR_POSITIONAL), "")
    for name, parameter in ours.items():
        if name in given and parameter.annotation == "Array":
            given[name] = array_like(given[name])
        if parameter.kind is Parameter.VAR_POSITIONAL:
            positional.extend(given.pop(name, ()))
        elif parameter.kind is Parameter.POSITIONAL_ONLY:
            if name not in given and given.get(row):  # np.einsum: its text is one of its operands
                given[name], *given[row] = given[row]
            if name not in given and parameter.default is Parameter.empty:
                raise _missing(function, operation, name)
            positional.append(given.pop(name, parameter.default))
        elif parameter.default is Parameter.empty and name not in given:
            raise _missing(function, operation, name)
    return operation(*positional, **given)


def array_like(value: Any) -> Any:
    """Return a list where NumPy takes one for an array as an Array; all else as it is."""
    return asarray(value) if isinstance(value, (list, tuple)) else value


@cache
def _signature(function: Function) -> inspect.Signature:
    return inspect.signature(function)


@cache
def _parameters(operation: Operation[...]) -> Mapping[str, Parameter]:
    return operation.signature.parameters


def _bind_arguments(
    function: Function, operation: Operation[...], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Iterator[tuple[str, Any]]:
    """Yield the operation's own names with the values given under NumPy's."""
    theirs = _signature(function).parameters
    bound = _signature(function).bind(*args, **kwargs).arguments
    for position, (name, parameter) in enumerate(theirs.items()):
        if name not in bound:
            continue
        if parameter.kind is Parameter.VAR_KEYWORD:
            for key, value in bound[name].items():
                yield _parameter_name(function, operation, key, None), value
        elif not _is_default(bound[name], parameter):
            by_order = parameter.kind is not Parameter.KEYWORD_ONLY
            yield (
                _parameter_name(function, operation, name, position if by_order else None),
                bound[name],
            )


def _parameter_name(
    function: Function, operation: Operation[...], name: str, position: int | None
) -> str:
    """Return the operation's name for NumPy's argument `name`, which stands at `position`."""
    ours = _parameters(operation)
    for candidate in (name, RENAMED.get(name, name)):
        if candidate in ours and ours[candidate].kind is not Parameter.VAR_KEYWORD:
            return candidate
    ordered = [p.name for p in ours.values() if p.kind <= Parameter.VAR_POSITIONAL]
    if position is not None and position < len(ordered):
        candidate = ordered[position]
        if candidate not in _signature(function).parameters:
            return candidate
    shown = numpy_name(function)
    ours_shown = f"{public_name(operation)}{operation.signature}"
    remedy = SUBSTITUTES.get(name, "call {ours} itself").format(call=shown, ours=ours_shown)
    raise UnsupportedError(
        shown,
        f"argument {name!r} is none of {public_name(operation)}'s: {', '.join(ours)}",
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
        remedy=f"give it, or call {public_name(operation)}{operation.signature} itself",
    )
