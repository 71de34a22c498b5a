"""Creation: arrays made of their parameters alone. The last parameter is the device."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tenfold._native import Array, Type
from tenfold.dtypes import FLOAT64, INT64, canonical
from tenfold.errors import ShapeError
from tenfold.ir.declare import derived, operation
from tenfold.ir.op import Call, Inferred, Kind
from tenfold.ir.shape import Shape, checked_shape
from tenfold.settings import checked_device


def _stated(types: tuple[Type, ...], shape: Shape, value: Any, dtype: Any, device: str) -> Inferred:
    return Inferred(((checked_shape(shape, dtype.itemsize), dtype),), ())


def _filled(shape: Shape, value: Any, dtype: np.dtype, device: str) -> np.ndarray:
    return np.full(shape, value, dtype)


@operation(rule=_stated, reference=_filled, kind=Kind.VALUE)
def full(
    shape: Shape, fill_value: complex, *, dtype: Any = None, device: str | None = None
) -> Call:
    """Return an array of `shape` that holds `fill_value` everywhere; the dtype of the value if None.

    >>> import tenfold as tn
    >>> tn.full((2,), 7).tolist()
    [7, 7]
    """
    made = canonical(type(fill_value) if dtype is None else dtype, "full")
    return Call((), (checked_shape(shape), fill_value, made, checked_device(device)))


@derived()
def zeros(shape: Shape, *, dtype: Any = None, device: str | None = None) -> Array:
    """Return an array of `shape` that holds 0; float64 if no dtype is named.

    >>> import tenfold as tn
    >>> tn.zeros((2,)).tolist()
    [0.0, 0.0]
    """
    return full(shape, 0, dtype=FLOAT64 if dtype is None else dtype, device=device)


def _counted(types: tuple[Type, ...], start: Any, step: Any, length: int, dtype: Any, device: str) -> Inferred:
    return Inferred((((length,), dtype),), ())


def _arange(start: Any, step: Any, length: int, dtype: np.dtype, device: str) -> np.ndarray:
    return (start + step * np.arange(length)).astype(dtype)


@operation(rule=_counted, reference=_arange, kind=Kind.VALUE)
def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: Any = None,
    device: str | None = None,
) -> Call:
    """Return the numbers from `start` (0 when only one is given) below `stop` in steps of `step`.

    >>> import tenfold as tn
    >>> tn.arange(5, 0, -1).tolist()
    [5, 4, 3, 2, 1]
    """
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ShapeError("", "a step of 0 never arrives", remedy="give a step that is not 0")
    length = max(0, int(np.ceil((stop - start) / step)))
    whole = all(isinstance(value, int) for value in (start, stop, step))
    made = canonical(dtype, "arange") if dtype is not None else (INT64 if whole else FLOAT64)
    return Call((), (start, step, operator.index(length), made, checked_device(device)))


