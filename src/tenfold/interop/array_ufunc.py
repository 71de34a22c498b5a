"""`__array_ufunc__`: dispatches NumPy ufuncs and ndarray operators on Arrays to lazy operations.

Takes a ufunc, its called method, and the arguments; returns a lazy Array. A call with an ndarray as
its target, as `ndarray += x`, computes at once, into that ndarray.

>>> from tenfold.interop.asarray import asarray
>>> np.add(np.float32(0.5), asarray([1, 2], dtype="float32")).dtype
dtype('float32')
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Array
from tenfold.dtypes import same_kind
from tenfold.errors import DTypeError, ShapeError, UnsupportedError
from tenfold.interop.array_function import array_like, call
from tenfold.interop.asarray import asarray
from tenfold.interop.materialize import value_of
from tenfold.interop.numpy_dispatch import implementation_of, numpy_name, unsupported_function
from tenfold.ops.reshaping import reshape

# The NumPy functions that equal a method of a ufunc.
REDUCTIONS: dict[str, dict[np.ufunc, Callable[..., Any]]] = {
    "reduce": {
        np.add: np.sum,
        np.multiply: np.prod,
        np.maximum: np.max,
        np.minimum: np.min,
        np.logical_and: np.all,
        np.logical_or: np.any,
    },
    "accumulate": {np.add: np.cumulative_sum, np.multiply: np.cumulative_prod},
}

SUBSTITUTES = {
    "where": "choose with tn.where(condition, {name}(x), other)",
    "dtype": "convert first with tn.astype",
    "at": "use tn.add_at, which makes a new array",
    "reduceat": "use tn.segment_sum, or convert with np.asarray(x)",
}
NEUTRAL_ARGUMENTS = {
    "order": "K",
    "subok": True,
    "casting": "same_kind",
    "where": True,
    "dtype": None,
}
"""Arguments of a ufunc with the value that has no effect."""


def array_ufunc(_self: Array, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """Dispatch a ufunc; NotImplemented if an operand is an array of another library."""
    out = kwargs.pop("out", ())
    if any(_is_foreign(value) for value in (*inputs, *out)):
        return NotImplemented
    if any(isinstance(target, Array) for target in out):
        raise UnsupportedError(
            numpy_name(ufunc),
            "an Array names an immutable value and cannot be the target of out=",
            [target for target in out if isinstance(target, Array)],
            remedy=f"assign the result instead, as in y = {numpy_name(ufunc)}(x)",
        )
    if method == "__call__":
        result = _call(ufunc, inputs, kwargs)
    elif method == "outer":
        result = _outer(ufunc, inputs, kwargs)
    else:
        result = _reduce(ufunc, method, inputs, kwargs)
    if not out:
        return result
    results = result if isinstance(result, tuple) else (result,)
    for target, array in zip(out, results, strict=True):
        if target is not None:
            _store(ufunc, array, target)
    return out if len(out) > 1 else out[0]


def _is_foreign(value: object) -> bool:
    """Whether another library overrides NumPy's ufuncs for this value."""
    ufunc_override = getattr(type(value), "__array_ufunc__", None)
    return ufunc_override is not None and not isinstance(value, (Array, np.ndarray, np.generic))


def _call(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    operation = implementation_of(ufunc)
    if operation is None:
        raise unsupported_function(ufunc)
    for name, value in kwargs.items():
        if name not in NEUTRAL_ARGUMENTS or not _is_same(value, NEUTRAL_ARGUMENTS[name]):
            raise _unsupported(ufunc, f"argument {name}=", name)
    return operation(*map(array_like, inputs))


def _is_same(value: object, reference: object) -> bool:
    return value is reference or (isinstance(value, str) and value == reference)


def _reduce(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    function = REDUCTIONS.get(method, {}).get(ufunc)
    if function is None or implementation_of(function) is None:
        raise _unsupported(ufunc, f"method {method}", method)
    arguments = {"axis": 0, **kwargs}
    if arguments.get("where") is True:
        del arguments["where"]
    return call(function, inputs, arguments)


def _outer(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    x, y = (asarray(value) for value in inputs)
    return _call(ufunc, (reshape(x, (*x.shape, *(1,) * y.ndim)), y), kwargs)


def _unsupported(ufunc: np.ufunc, feature: str, name: str) -> UnsupportedError:
    ufunc_name = numpy_name(ufunc)
    remedy = SUBSTITUTES.get(name, "convert with np.asarray(x), which waits").format(
        name=ufunc_name
    )
    return UnsupportedError(ufunc_name, f"tenfold has no {feature} of it", remedy=remedy)


def _store(ufunc: np.ufunc, array: Array, target: np.ndarray[Any, Any]) -> None:
    """Compute a result and copy it into the target ndarray."""
    name = f"{numpy_name(ufunc)}(..., out=)"
    if not np.issubdtype(target.dtype, np.generic) or not same_kind(array.dtype, target.dtype):
        rule = f"a result of {array.dtype} cannot be written into {target.dtype} (same-kind rule)"
        raise DTypeError(name, rule, [array], "convert with tn.astype, or leave out= and += out")
    if len(target.shape) < array.ndim or any(
        length not in (1, target_length)
        for length, target_length in zip(array.shape[::-1], target.shape[::-1], strict=False)
    ):
        rule = f"a result of shape {array.shape} cannot be written into shape {target.shape}"
        raise ShapeError(name, rule, [array], "make a new array: y = y + x")
    _native.count("copies")
    np.copyto(target, value_of(array, name), casting="unsafe")
