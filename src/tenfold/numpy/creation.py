"""Creation: arrays from data, shapes and ranges, with NumPy's positions.

Takes NumPy's arguments, hands on Arrays of the operations that make them.

>>> zeros((2, 3), "float32").dtype
dtype('float32')
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from tenfold._native import Array
from tenfold.core.public_signature import parameters_of
from tenfold.errors import UnsupportedError
from tenfold.interop import asarray as importing
from tenfold.numpy.arguments import (
    Immediate,
    as_array,
    as_new,
    cast,
    check_order,
    export,
)
from tenfold.ops import arange as ranges
from tenfold.ops import create, diagonal_tril_triu, reshaping
from tenfold.ops.arithmetic import pow

__all__ = [
    "arange", "array", "asanyarray", "asarray", "asarray_chkfinite", "ascontiguousarray",
    "asfortranarray", "copy", "diag", "diagflat", "empty", "empty_like", "eye", "from_dlpack",
    "frombuffer", "fromfile", "fromfunction", "fromiter", "fromregex", "fromstring", "full",
    "full_like", "genfromtxt", "geomspace", "identity", "linspace", "load", "loadtxt", "logspace",
    "meshgrid", "ones", "ones_like", "require", "tri", "tril", "triu", "vander", "zeros",
    "zeros_like",
]  # fmt: skip


def array(
    object: Any,
    dtype: Any = None,
    *,
    copy: bool | None = True,
    order: str | None = "K",
    subok: bool = False,
    ndmin: int = 0,
    ndmax: int = 0,
    like: Any = None,
) -> Array:
    """Return data as a new Array, with `ndmin` axes at least.

    >>> array([1, 2], ndmin=2).shape
    (1, 2)
    """
    if order != "K":
        check_order(order)
    x = importing.asarray(object, dtype=dtype, copy=copy or None)
    return reshaping.reshape(x, (1,) * (ndmin - x.ndim) + x.shape) if x.ndim < ndmin else x


def asarray(
    a: Any,
    dtype: Any = None,
    order: str | None = None,
    *,
    device: str | None = None,
    copy: bool | None = None,
    like: Any = None,
) -> Array:
    """Return data as an Array; an Array itself, if it has the dtype."""
    if order is not None:
        check_order(order)
    return importing.asarray(a, dtype=dtype, device=device, copy=copy)


@parameters_of(asarray)
def asanyarray(*args: Any, **options: Any) -> Array:
    """Return data as an Array, as `asarray`."""
    return asarray(*args, **options)


def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> Array:
    """Return data as an Array of one axis at least."""
    x = importing.asarray(a, dtype=dtype)
    return x if x.ndim else reshaping.reshape(x, (1,))


def asfortranarray(a: Any, dtype: Any = None, *, like: Any = None) -> Array:
    """Return data as an Array; the library chooses the order of its memory."""
    return importing.asarray(a, dtype=dtype)


def asarray_chkfinite(a: Any, dtype: Any = None, order: str | None = None) -> Array:
    """Return data as an Array. Raises ValueError for infinities and NaN; waits."""
    return importing.asarray(np.asarray_chkfinite(export(a, "np.asarray_chkfinite"), dtype))


def require(a: Any, dtype: Any = None, requirements: Any = None, *, like: Any = None) -> Array:
    """Return data as an Array of the dtype; an Array meets every requirement of layout."""
    np.require(0, None, requirements)  # NumPy refuses unknown ones
    return importing.asarray(a, dtype=dtype)


def from_dlpack(x: Any, /, *, device: str | None = None, copy: bool | None = None) -> Array:
    """Return what another library exports through DLPack as an Array."""
    return importing.from_dlpack(x, device=device, copy=copy)


def copy(a: Any, order: str = "K", subok: bool = False) -> Array:
    """Return a new Array of the same values."""
    check_order(order)
    return importing.asarray(a, copy=True)


def zeros(
    shape: Any, dtype: Any = None, order: str = "C", *, device: str | None = None, like: Any = None
) -> Array:
    """Return zeros of `shape`, float64 unless `dtype` is given."""
    return create.zeros(_shape(shape, order), dtype=dtype, device=device)


def ones(
    shape: Any, dtype: Any = None, order: str = "C", *, device: str | None = None, like: Any = None
) -> Array:
    """Return ones of `shape`, float64 unless `dtype` is given."""
    return create.ones(_shape(shape, order), dtype=dtype, device=device)


def empty(
    shape: Any, dtype: Any = None, order: str = "C", *, device: str | None = None, like: Any = None
) -> Array:
    """Return an Array of `shape` whose values may be any."""
    return create.empty(_shape(shape, order), dtype=dtype, device=device)


def array_of_shape(
    shape: Any,
    dtype: Any = float,
    buffer: Any = None,
    offset: int = 0,
    strides: Any = None,
    order: str | None = None,
) -> Array:
    """Return an Array of `shape` whose values may be any: `ndarray(shape, dtype)`.

    Raises UnsupportedError for a buffer or strides.

    >>> import tenfold.numpy as np
    >>> np.ndarray((2, 3), dtype="int8").shape
    (2, 3)
    """
    if buffer is not None or strides is not None:
        rule = "an Array of a buffer or of strides is not made by its type"
        raise UnsupportedError("ndarray", rule, (), "use np.frombuffer(...), or tn.wrap(buffer)")
    return empty(shape, dtype, order or "C")


def full(
    shape: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "C",
    *,
    device: str | None = None,
    like: Any = None,
) -> Array:
    """Return an Array of `shape` with the values of `fill_value`, which is broadcast."""
    lengths = _shape(shape, order)
    if isinstance(fill_value, (bool, int, float, complex)):
        return create.full(lengths, fill_value, dtype=dtype, device=device)
    return as_new(reshaping.broadcast_to(cast(as_array(fill_value), dtype), lengths))


def _shape(shape: Any, order: Any = "C") -> tuple[int, ...]:
    """Return a shape given as an integer or as a sequence of them; check the order of memory."""
    check_order(order)
    if isinstance(shape, Array):
        shape = shape.tolist()
    with suppress(TypeError):
        return (operator.index(shape),)
    try:
        return tuple(map(operator.index, shape))
    except TypeError:
        rule = f"expected a sequence of integers or a single integer, got {shape!r}"
        raise TypeError(rule) from None


def _like(a: Any, fill_value: Any, dtype: Any, shape: Any, device: str | None, order: Any) -> Array:
    check_order(order)
    x = as_array(a)
    return full(
        x.shape if shape is None else shape,
        fill_value,
        x.dtype if dtype is None else dtype,
        device=device or x.device,
    )


def zeros_like(
    a: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: str | None = None,
) -> Array:
    """Return zeros of the shape and dtype of `a`, unless others are given."""
    return _like(a, 0, dtype, shape, device, order)


def ones_like(
    a: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: str | None = None,
) -> Array:
    """Return ones of the shape and dtype of `a`, unless others are given."""
    return _like(a, 1, dtype, shape, device, order)


def empty_like(
    prototype: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: str | None = None,
) -> Array:
    """Return an Array of the shape and dtype of `prototype` whose values may be any."""
    return _like(prototype, 0, dtype, shape, device, order)


def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: str | None = None,
) -> Array:
    """Return `fill_value` in the shape and dtype of `a`, unless others are given."""
    return _like(a, fill_value, dtype, shape, device, order)


def arange(
    start: Any,
    stop: Any = None,
    step: Any = 1,
    dtype: Any = None,
    *,
    device: str | None = None,
    like: Any = None,
) -> Array:
    """Return the numbers from `start` to `stop`, which is left out, by `step`."""
    ends = (start, stop, step)
    if dtype is None and any(getattr(end, "dtype", None) == np.uint64 for end in ends):
        dtype = np.float64  # NumPy's common dtype of uint64 and int64
    bounds = (_scalar(start), _scalar(stop), 1 if step is None else _scalar(step))
    return ranges.arange(bounds[0], bounds[1], bounds[2], dtype=dtype, device=device)


def _scalar(value: Any) -> Any:
    """Return a number; that of an Array without axes waits."""
    return value.item() if isinstance(value, (Array, np.ndarray, np.generic)) else value


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex, np.number))


def _is_narrow(value: Any) -> bool:
    """Whether a number of NumPy's has a dtype narrower than that of a Python number."""
    return isinstance(value, np.inexact) and not isinstance(value, (float, complex))


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: str | None = None,
) -> Any:
    """Return `num` evenly spaced numbers from `start` to `stop`, arrays too."""
    if not (_is_number(start) and _is_number(stop)) or _is_narrow(start) or _is_narrow(stop):
        return Immediate(np.linspace)(start, stop, num, endpoint, retstep, dtype, axis)
    values = ranges.linspace(
        _scalar(start), _scalar(stop), num, dtype=dtype, device=device, endpoint=endpoint
    )
    intervals = num - 1 if endpoint else num
    step = (stop * 1.0 - start * 1.0) / intervals if intervals > 0 else np.nan
    return (values, step) if retstep else values


def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Array:
    """Return `base` to the power of evenly spaced exponents."""
    if np.ndim(base):
        result: Array = Immediate(np.logspace)(start, stop, num, endpoint, base, dtype, axis)
        return result
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    base = base if _is_number(base) else as_array(base)
    return cast(pow(as_array(base, exponents.dtype), exponents), dtype)


def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: Any = float,
    order: str = "C",
    *,
    device: str | None = None,
    like: Any = None,
) -> Array:
    """Return an (N, M) matrix with ones on its k-th diagonal."""
    check_order(order)
    return create.eye(N, M, k=k, dtype=dtype, device=device)


def identity(n: int, dtype: Any = None, *, like: Any = None) -> Array:
    """Return the identity matrix of shape (n, n)."""
    return create.eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = float, *, like: Any = None) -> Array:
    """Return an (N, M) matrix with ones at and below its k-th diagonal."""
    columns = N if M is None else M
    return diagonal_tril_triu.tril(create.ones((N, columns), dtype=dtype or float), k)


def tril(m: Any, k: int = 0) -> Array:
    """Return the lower triangles of matrices."""
    return diagonal_tril_triu.tril(_matrix(m), k)


def triu(m: Any, k: int = 0) -> Array:
    """Return the upper triangles of matrices."""
    return diagonal_tril_triu.triu(_matrix(m), k)


def _matrix(m: Any) -> Array:
    """Return an Array of two axes at least; a vector is repeated, as in NumPy."""
    x = as_array(m)
    return reshaping.broadcast_to(x, (x.shape[0], x.shape[0])) if x.ndim == 1 else x


def diag(v: Any, k: int = 0) -> Array:
    """Return a diagonal of a matrix, or the matrix with a vector as its diagonal."""
    return diagonal_tril_triu.diag(as_array(v), k)


def diagflat(v: Any, k: int = 0) -> Array:
    """Return a matrix with the elements of `v` on its k-th diagonal."""
    return diagonal_tril_triu.diag(reshaping.reshape(as_array(v), (-1,)), k)


def meshgrid(
    *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Array, ...]:
    """Return coordinate arrays of vectors; `sparse` ones have length 1 along other axes."""
    vectors = [reshaping.reshape(as_array(x), (-1,)) for x in xi]
    if not sparse:
        return tuple(ranges.meshgrid(*vectors, indexing=indexing))
    axes = list(range(len(vectors)))
    if indexing == "xy" and len(vectors) > 1:
        axes[:2] = (1, 0)
    shapes = [tuple(-1 if i == axis else 1 for i in range(len(vectors))) for axis in axes]
    return tuple(map(reshaping.reshape, vectors, shapes))


def fromfunction(
    function: Callable[..., Any], shape: Any, *, dtype: Any = float, like: Any = None, **kwargs: Any
) -> Any:
    """Return the result of a function of the index arrays of `shape`."""
    lengths = _shape(shape)
    arrays = [
        reshaping.broadcast_to(
            reshaping.reshape(ranges.arange(n, dtype=dtype), (-1,) + (1,) * (len(lengths) - i - 1)),
            lengths,
        )
        for i, n in enumerate(lengths)
    ]
    return function(*arrays, **kwargs)


frombuffer = Immediate(np.frombuffer)
fromfile = Immediate(np.fromfile)
fromiter = Immediate(np.fromiter)
fromregex = Immediate(np.fromregex)
fromstring = Immediate(np.fromstring)
genfromtxt = Immediate(np.genfromtxt)
geomspace = Immediate(np.geomspace)
load = Immediate(np.load)
loadtxt = Immediate(np.loadtxt)
vander = Immediate(np.vander)
