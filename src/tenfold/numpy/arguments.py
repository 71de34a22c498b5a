"""Operands of NumPy's functions: conversion of arguments and results, `out=` and `where=`.

Takes what NumPy's functions take (Arrays, ndarrays, lists, numbers), hands on Arrays, and writes
results into the target that `out=` names.

>>> as_array([1, 2]).tolist()
[1, 2]
>>> where_else(as_array([1, 2]), [True, False], 0).tolist()
[1, 0]
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, ParamSpec

import numpy as np

from tenfold import _native, settings
from tenfold._native import Array
from tenfold.core.op_decorators import refuse_derivative
from tenfold.core.trace_state import TRACE
from tenfold.dtypes import DTYPES, kind_of, same_kind
from tenfold.errors import DTypeError, ShapeError
from tenfold.interop.asarray import asarray
from tenfold.interop.materialize import value_of
from tenfold.mutation.assign import assign
from tenfold.ops.cast import astype
from tenfold.ops.complex import real
from tenfold.ops.selection import where as select

P = ParamSpec("P")
NUMBERS = (bool, int, float, complex)
"""Python's numbers: operands of weak dtype. Those of NumPy have theirs."""
MEMORY_ORDERS = ("C", "F", "A", "K")
NEUTRAL_ORDERS = ("C", "K", "A", None)
"""Orders of memory that are row-major for an Array, which has no memory before it is computed."""


def as_array(value: Any, dtype: Any = None) -> Array:
    """Return an argument as an Array."""
    if isinstance(value, Array) and (dtype is None or value.dtype == dtype):
        return value
    return asarray(value, dtype=dtype)


def as_new(x: Array) -> Array:
    """Return a view of an array that nothing else names as an Array without a base."""
    return asarray(x, copy=True)


def as_arrays(values: Iterable[Any]) -> list[Array]:
    """Return arguments as Arrays; an Array is the sequence of its rows."""
    return [as_array(value) for value in values]


def as_operand(value: Any) -> Any:
    """Return an operand as an Array or a Python number, which has a weak dtype."""
    return value if isinstance(value, Array) or type(value) in NUMBERS else asarray(value)


def as_operands(values: tuple[Any, ...]) -> list[Any]:
    """Return the operands of an elementwise function; one of them at least is an Array."""
    operands = [as_operand(value) for value in values]
    if operands and not any(isinstance(operand, Array) for operand in operands):
        if len(operands) == 1 or all(type(operand) is float for operand in operands):
            return [asarray(operand) for operand in operands]
        dtype = np.result_type(*(np.asarray(operand) for operand in operands))
        return [asarray(operand, dtype=dtype) for operand in operands]
    return operands


def may_wait() -> bool:
    """Whether a function may compute at the call: not in a trace, nor under `strict_sync`."""
    return TRACE.get() is None and not settings.get("strict_sync")


def cast(x: Array, dtype: Any) -> Array:
    """Return `x` in `dtype`; None keeps it."""
    return x if dtype is None else astype(x, dtype, copy=False)


def check_order(order: Any) -> None:
    """Refuse an order of memory that NumPy refuses; the others mean nothing here."""
    if order is not None and (not isinstance(order, str) or order.upper() not in MEMORY_ORDERS):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")


def check_casts(arrays: Iterable[Array], dtype: Any, casting: str) -> None:
    """Refuse casts of arrays to a dtype that the rule does not allow, as NumPy does."""
    for x in arrays:
        if not np.can_cast(x.dtype, np.dtype(dtype), casting):  # type: ignore[arg-type]  # text
            raise TypeError(
                f"Cannot cast array data from {x.dtype!r} to {np.dtype(dtype)!r} according to the "
                f"rule {casting!r}"
            )


def cast_for(result: Array, out: Any, casting: str | None) -> Array:
    """Return the result in the dtype of `out=`, where `casting` allows what assignment does not."""
    if out is None or casting != "unsafe":
        return result
    dtype = (out[0] if isinstance(out, tuple) else out).dtype
    is_complex = kind_of(result.dtype) == "c" and kind_of(dtype) not in "cb"
    return cast(real(result) if is_complex else result, dtype)


def constant(x: Array, value: complex) -> Array:
    """Return a number as an Array of the dtype of `x`, without axes."""
    return asarray(value, dtype=x.dtype)


def where_else(x: Array, where: Any, value: complex) -> Array:
    """Return `x` where the mask holds, and the number elsewhere; `where=True` returns `x`."""
    if where is True:
        return x
    return select(as_array(where), x, constant(x, value))


def masked(result: Array, mask: Array, out: Any) -> Array:
    """Return the result where the mask holds, and elsewhere the target of `out=`, or 0."""
    if out is None:
        return select(mask, result, constant(result, 0))
    target = as_array(out)
    if not same_kind(result.dtype, target.dtype):
        return result  # which cannot be delivered
    return select(mask, cast(result, target.dtype), target)


def deliver(result: Any, out: Any) -> Any:
    """Return the result, or write it into the target of `out=` and return that."""
    if isinstance(out, tuple):
        if len(out) != 1:
            return tuple(map(deliver, result, out))
        out = out[0]
    if out is None:
        return result
    if isinstance(out, Array):
        assign(out, result)
    elif not isinstance(out, np.ndarray):
        raise TypeError(f"out= is an array, not {type(out).__name__}")
    else:
        _store(result, out)
    return out


def deliver_whole(result: Array, out: Any) -> Any:
    """Return the result, or write it into the target of `out=`, which has its shape."""
    out = out[0] if isinstance(out, tuple) and len(out) == 1 else out
    if out is not None and out.shape != result.shape:
        rule = f"the target of out= has shape {out.shape}, the result {result.shape}"
        raise ShapeError("", rule, (), "give out= the shape of the result")
    return deliver(result, out)


def _store(array: Any, target: np.ndarray[Any, Any]) -> None:
    """Compute a result and copy it into the target ndarray."""
    if target.dtype not in DTYPES.values() or not isinstance(array, Array):
        np.copyto(target, export(array, "out="), casting="same_kind")
        return
    if not np.issubdtype(target.dtype, np.generic) or not same_kind(array.dtype, target.dtype):
        rule = f"a result of {array.dtype} cannot be written into {target.dtype} (same-kind rule)"
        raise DTypeError("out=", rule, [array], "convert with tn.astype, or leave out= and += out")
    if len(target.shape) < array.ndim or any(
        length not in (1, target_length)
        for length, target_length in zip(array.shape[::-1], target.shape[::-1], strict=False)
    ):
        rule = f"a result of shape {array.shape} cannot be written into shape {target.shape}"
        raise ShapeError("out=", rule, [array], "make a new array: y = y + x")
    _native.count("copies")
    np.copyto(target, value_of(array, "out="), casting="unsafe")


def export(value: Any, operation: str) -> Any:
    """Return arguments with the values in the place of Arrays; waits.

    Raises UnsupportedError for an Array that is made of a watched one.
    """
    if isinstance(value, Array):
        refuse_derivative(value, operation)
        return value_of(value, operation)
    if type(value) is list:
        return [export(item, operation) for item in value]
    if isinstance(value, tuple):
        return tuple(export(item, operation) for item in value)
    if type(value) is dict:
        return {key: export(item, operation) for key, item in value.items()}
    return value


def imported(value: Any) -> Any:
    """Return results of NumPy's with Arrays in the place of ndarrays and NumPy's scalars."""
    if isinstance(value, np.ndarray):
        if value.dtype.newbyteorder("=") not in DTYPES.values() or type(value) is not np.ndarray:
            return value
        if value.base is None and value.flags.owndata:
            value.flags.writeable = False  # the only reference: shared instead of copied
        return asarray(value)
    if isinstance(value, np.generic):
        return asarray(value) if value.dtype in DTYPES.values() else value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(imported, value))
    if type(value) in (list, tuple):
        return type(value)(map(imported, value))
    return value


def ordered(function: Callable[P, Any]) -> Callable[P, Any]:
    """Let NumPy order complex numbers, real parts first, at the call; others go to the function.

    The function has the name and the parameters of NumPy's; its arrays are `a` and maybe `v`.
    """
    plain: Callable[..., Any] = function
    signature = inspect.signature(function)
    defaults = {name: parameter.default for name, parameter in signature.parameters.items()}
    count = 2 if "v" in defaults else 1

    @wraps(function)
    def ordering(*args: Any, **kwargs: Any) -> Any:
        if len(args) < count:  # they have names
            bound = signature.bind(*args, **kwargs)
            args, kwargs = bound.args, bound.kwargs
        arrays = as_arrays(args[:count])
        if all(kind_of(x.dtype) != "c" for x in arrays):
            return plain(*arrays, *args[count:], **kwargs)
        options = signature.bind(*args, **kwargs).arguments
        for name in [*defaults][:count]:
            del options[name]
        given = {name: value for name, value in options.items() if value is not defaults[name]}
        return Immediate(getattr(np, function.__name__))(*arrays, **given)

    return ordering


class Immediate:
    """A function of NumPy's that computes at the call: Arrays in, values, Arrays out.

    >>> Immediate(np.unique)(as_array([2, 1, 2])).tolist()
    [1, 2]
    """

    def __init__(self, function: Callable[..., Any], writes: bool = False) -> None:
        self.function = function
        self.writes = writes
        """Whether the function writes into its first argument and returns None."""
        self.__name__ = self.__qualname__ = function.__name__
        self.__module__ = "tenfold.numpy"
        self.__wrapped__ = function
        title = (function.__doc__ or "").strip().partition("\n\n")[0]
        self.__doc__ = f"{title}\n\nComputes at the call, by NumPy."

    def __call__(self, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        """Compute by NumPy."""
        name = f"np.{self.__name__}"
        if self.writes and args and isinstance(args[0], Array):
            target, *rest = args
            values = np.array(value_of(target, name))
            self.function(values, *export(rest, name), **export(kwargs, name))
            target[...] = asarray(values)
            return None
        result = imported(self.function(*export(args, name), **export(kwargs, name)))
        return deliver(result, out)

    def __repr__(self) -> str:
        return f"<function tenfold.numpy.{self.__name__}>"
