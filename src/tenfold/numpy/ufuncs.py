"""Ufunc: an elementwise function in NumPy's form, with `out=`, `where=`, `dtype=` and its methods.

Takes an operation, or a short definition by others, and the ufunc of NumPy's whose name and arity
it has. Hands on an object that is called, and that has `outer`, `reduce`, `accumulate`, `reduceat`
and `at`.

>>> from tenfold.ops.arithmetic import multiply
>>> Ufunc(np.multiply, multiply).outer([1, 2], [3, 4]).tolist()
[[3, 4], [6, 8]]
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from tenfold._native import Array
from tenfold.core.op import Op
from tenfold.dtypes import BFLOAT16, BOOL, kind_of, same_kind
from tenfold.errors import ExplainedError, ForeignDTypeError
from tenfold.numpy import sums_and_extremes as reductions
from tenfold.numpy.arguments import (
    as_array,
    as_operand,
    as_operands,
    cast,
    check_order,
    deliver,
    export,
    imported,
    masked,
)
from tenfold.numpy.by_numpy import by_numpy, with_class_of_numpys
from tenfold.ops import bounds_checks, reshaping
from tenfold.ops.segment_sum import add_at

REDUCTIONS: dict[str, Callable[..., Any]] = {
    "add": reductions.sum,
    "multiply": reductions.prod,
    "maximum": reductions.max,
    "minimum": reductions.min,
    "logical_and": reductions.all,
    "logical_or": reductions.any,
}
"""The functions that are the method `reduce` of a ufunc."""
LOGICAL = (reductions.all, reductions.any)
SCANS: dict[str, Callable[..., Any]] = {"add": reductions.cumsum, "multiply": reductions.cumprod}
"""The functions that are the method `accumulate` of a ufunc."""
NEUTRAL = {"casting", "order", "subok", "signature", "sig"}
"""Options of casts and memory."""
WEAK = (int, float, complex)
"""Python's numbers without a dtype of their own."""


def _in_dtype(x: Any, dtype: np.dtype[Any]) -> Array:
    return as_array(x, dtype) if type(x) in WEAK else cast(x, dtype)


def _in_dtype_of(x: Array, target: Any) -> Array:
    return x if target is None else cast(x, target.dtype)


def _or_by_numpy(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let the method of NumPy's ufunc compute with elements that only NumPy holds."""

    @wraps(method)
    def call(self: Ufunc, *args: Any, **options: Any) -> Any:
        try:
            return method(self, *args, **options)
        except ForeignDTypeError:
            return by_numpy(getattr(self.ufunc, method.__name__), args, options)

    return call


class Ufunc:
    """An elementwise function with NumPy's options and methods."""

    def __init__(self, ufunc: np.ufunc, function: Callable[..., Any] | None = None) -> None:
        self.ufunc = ufunc
        self.function = function
        """The operation; None: NumPy computes it at the call."""
        self.__name__ = self.__qualname__ = ufunc.__name__
        self.__module__ = "tenfold.numpy"
        self.__doc__ = getattr(function, "doc", None) or getattr(function, "__doc__", None)
        self.nin, self.nout, self.nargs = ufunc.nin, ufunc.nout, ufunc.nargs
        self.identity, self.signature = ufunc.identity, ufunc.signature
        self.types, self.ntypes = ufunc.types, ufunc.ntypes
        self.resolve_dtypes = ufunc.resolve_dtypes
        self._native = function.with_call_cache(self._call) if isinstance(function, Op) else None
        """The call that runs no Python for Arrays and numbers."""

    def __repr__(self) -> str:
        return f"<ufunc 'tenfold.numpy.{self.__name__}'>"

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Apply it to the elements of broadcast operands."""
        return (self._native or self._call)(*args, **options)

    def _call(self, *args: Any, **options: Any) -> Any:
        if len(args) > self.nin:
            options["out"] = args[self.nin :] if self.nout > 1 else args[self.nin]
            args = args[: self.nin]
        if len(args) < self.nin:
            raise TypeError(f"{self.__name__}() takes {self.nin} operands, not {len(args)}")
        try:
            return self._apply_with(args, **options) if options else self._apply(args)
        except ForeignDTypeError:
            return by_numpy(self.ufunc, args, options)
        except ExplainedError as error:
            raise with_class_of_numpys(error, self.ufunc, args, options) from None

    def _apply(self, args: tuple[Any, ...]) -> Any:
        if self.function is None:  # NumPy promotes operands: those of ldexp each by itself
            operands = [as_operand(x) for x in args]
            return imported(self.ufunc(*export(operands, f"np.{self.__name__}")))
        return self.function(*as_operands(args))

    def _apply_with(
        self, args: tuple[Any, ...], out: Any = None, where: Any = True, dtype: Any = None,
        axis: Any = None, axes: Any = None, **neutral: Any,
    ) -> Any:  # fmt: skip
        if neutral.keys() - NEUTRAL:
            names = ", ".join(sorted(neutral.keys() - NEUTRAL))
            raise TypeError(f"{self.__name__}() got an unexpected keyword argument {names}")
        if axes is not None:
            values = export(args, f"np.{self.__name__}")
            return deliver(imported(self.ufunc(*values, axes=axes, dtype=dtype, **neutral)), out)
        check_order(neutral.get("order"))
        if dtype is not None or neutral.keys() & {"casting", "signature", "sig"}:
            args = self._resolved(args, out, dtype, **neutral)
        if axis is not None:
            result = self.function(*map(as_array, args), axis=axis) if self.function else None
        else:
            result = self._apply(args)
        if where is not True:
            mask = as_array(where)
            others = out if isinstance(out, tuple) else (out,) * self.nout
            results = result if isinstance(result, tuple) else (result,)
            chosen = tuple(masked(x, mask, other) for x, other in zip(results, others, strict=True))
            result = chosen if self.nout > 1 else chosen[0]
        if out is not None and neutral.get("casting") == "unsafe":
            targets = out if isinstance(out, tuple) else (out,)
            results = result if isinstance(result, tuple) else (result,)
            result = tuple(map(_in_dtype_of, results, targets))
            return deliver(result if self.nout > 1 else result[0], out)
        return deliver(result, out)

    def _resolved(
        self, args: tuple[Any, ...], out: Any, dtype: Any, casting: Any = "same_kind",
        signature: Any = None, sig: Any = None, **_neutral: Any,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Return the operands in the dtypes that NumPy computes with; NumPy refuses others."""
        operands = tuple(map(as_operand, args))
        strong = [x if type(x) in WEAK else as_array(x).dtype for x in operands]
        # NumPy 2.4 crashes where Python's types meet a signature: numbers have a dtype here.
        types: list[Any] = [np.result_type(*strong) if type(x) in WEAK else x for x in strong]
        targets = out if isinstance(out, tuple) else (out,) * self.nout
        types += [getattr(target, "dtype", None) for target in targets]
        signature = signature if sig is None else sig
        if dtype is not None:
            signature = (None,) * self.nin + (np.dtype(dtype),) * self.nout
        loop = {} if signature is None else {"signature": signature}
        if BFLOAT16 in types or (dtype is not None and np.dtype(dtype) == BFLOAT16):
            return tuple(cast(as_array(x), dtype) for x in operands)
        dtypes = self.ufunc.resolve_dtypes(tuple(types), casting=casting, **loop)
        return tuple(_in_dtype(x, found) for x, found in zip(operands, dtypes, strict=False))

    @_or_by_numpy
    def outer(self, A: Any, B: Any, /, **options: Any) -> Any:
        """Apply it to each pair of elements: shape `A.shape + B.shape`."""
        x, y = as_array(A), as_array(B)
        return self(reshaping.reshape(x, (*x.shape, *(1,) * y.ndim)), y, **options)

    @_or_by_numpy
    def reduce(
        self,
        array: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        """Fold the elements along axes."""
        function = REDUCTIONS.get(self.__name__)
        options: dict[str, Any] = {"axis": axis, "out": out, "keepdims": keepdims}
        if function is None or (initial is not None and function in LOGICAL):
            rest = {} if initial is None else {"initial": initial}
            rest |= {} if where is True else {"where": export(where, "np.ufunc.reduce")}
            return self._immediate("reduce", (array, axis, dtype), out, keepdims=keepdims, **rest)
        if function in LOGICAL:
            return function(array, **options, where=where)
        if function in (reductions.max, reductions.min):
            array = cast(as_array(array), dtype)
        else:
            options["dtype"] = dtype
        return function(array, **options, initial=initial, where=where)

    @_or_by_numpy
    def accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        """Fold the elements along an axis, with every step."""
        function = SCANS.get(self.__name__)
        if function is None:
            return self._immediate("accumulate", (array, axis, dtype), out)
        x = as_array(array)
        return function(x, axis=axis, dtype=dtype, out=out)

    @_or_by_numpy
    def reduceat(
        self, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None
    ) -> Any:
        """Fold the elements of slices along an axis; computes at the call."""
        return self._immediate("reduceat", (array, indices, axis, dtype), out)

    def _immediate(self, method: str, args: tuple[Any, ...], out: Any, **options: Any) -> Any:
        values = export(args, f"np.{self.__name__}.{method}")
        return deliver(imported(getattr(self.ufunc, method)(*values, **options)), out)

    def at(self, a: Any, indices: Any, b: Any = None, /) -> None:
        """Apply it to the elements at indices, once for each occurrence, in place."""
        if self.__name__ == "add" and isinstance(a, Array) and a.ndim and a.dtype != BOOL:
            key = indices if isinstance(indices, tuple) else (indices,)
            is_plain = len(key) == 1 and type(key[0]) is not slice
            positions = as_array(key[0] if is_plain else False)
            terms = as_array(b, a.dtype if type(b) is int else None)
            if kind_of(positions.dtype) in "iu" and same_kind(terms.dtype, a.dtype):
                bounds_checks.check_known(positions, 0, a, "np.add.at")
                a[...] = add_at(a, positions, cast(terms, a.dtype))
                return
        values = np.array(export(a, f"np.{self.__name__}.at")) if isinstance(a, Array) else a
        operands = () if b is None else (export(b, f"np.{self.__name__}.at"),)
        self.ufunc.at(values, export(indices, f"np.{self.__name__}.at"), *operands)
        if isinstance(a, Array):
            a[...] = as_array(values)
