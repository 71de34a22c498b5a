"""Creation: arrays built from their parameters alone; the last parameter is the device.

A creation node has no input and kind VALUE; its values are computed on demand.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tenfold._native import Array, Type
from tenfold.core.cast_values import cast_values
from tenfold.core.gather_rules import ResultIndex, select_element
from tenfold.core.op import BoundCall, Inferred, Kind, SampleCall
from tenfold.core.op_decorators import array, derived, operation, refuse_derivative
from tenfold.core.scalar_ir import Body, Operand
from tenfold.core.shape_rules import Shape, checked_shape
from tenfold.core.structure import IDENTITY, Structure
from tenfold.dtypes import (
    BOOL,
    COMPLEX128,
    DTYPES,
    FLOAT64,
    INT64,
    PYTHON_TYPES,
    canonical,
    kind_of,
)
from tenfold.errors import DTypeError, IntegerError, message
from tenfold.ops.cast import constant_element
from tenfold.settings import checked_device


def number(value: Any, operation: str) -> Any:
    """Return a number as a Python bool, int, float or complex, or raise DTypeError."""
    if type(value) in PYTHON_TYPES:
        return value
    if isinstance(value, (np.generic, np.ndarray)) and np.ndim(value) == 0:
        value = np.asarray(value).item()
    for python_type in PYTHON_TYPES:
        if isinstance(value, python_type):
            return python_type(value)
    raise DTypeError(
        operation,
        f"{type(value).__name__} is not a number",
        remedy="give a Python number; tn.broadcast_to repeats an Array",
    )


def number_of(value: Any, dtype: np.dtype, operation: str) -> Any:
    """Return a Python number as the one of `dtype` that it becomes; equal values, equal parameters.

    Raises OverflowError for an int that `dtype` cannot hold and DTypeError for complex to real.
    """
    kind = kind_of(dtype)
    if isinstance(value, complex) and kind not in "bc":
        raise DTypeError(operation, f"{value} cannot become {dtype}", remedy="give a real number")
    if isinstance(value, int):
        _refuse_out_of_range(value, dtype, operation)
    if kind in "iu" and isinstance(value, float):
        return cast_values(np.asarray(value), dtype).item()
    return {"b": bool, "i": int, "u": int, "f": float, "c": complex}[kind](value)


def _refuse_out_of_range(value: int, dtype: np.dtype, operation: str) -> None:
    kind = kind_of(dtype)
    if kind in "iu":
        limits = np.iinfo(dtype)
        in_range = int(limits.min) <= value <= int(limits.max)
    else:
        in_range = kind == "b" or abs(value) <= _MAX_FLOAT
    if not in_range:
        description = value if abs(value) < 10**30 else f"of {value.bit_length()} bits"
        rule = f"Python integer {description} is out of bounds for {dtype}"
        raise OverflowError(message(operation, rule, (), "name a dtype that can hold it"))


_MAX_INT = 2**63 - 1
_MAX_FLOAT = int(np.finfo(np.float64).max)


def default_dtype(values: tuple[Any, ...]) -> np.dtype:
    """Return the dtype of Python numbers for which no dtype is named."""
    kinds = {type(value) for value in values}
    if complex in kinds:
        return COMPLEX128
    if float in kinds:
        return FLOAT64
    return INT64 if int in kinds else BOOL


def _full_rule(
    types: tuple[Type, ...], shape: Shape, value: Any, dtype: Any, device: str
) -> Inferred:
    return Inferred(((shape, dtype),), ())


def _fill_value(shape: Shape, value: complex, dtype: np.dtype, device: str) -> complex:
    return value


def _full_reference(shape: Shape, value: Any, dtype: np.dtype, device: str) -> np.ndarray:
    return np.full(shape, value, dtype)


@operation(
    rule_free=True,
    bind_depends_on="options",
    rule=_full_rule,
    param_names="shape fill_value dtype device",
    reference=_full_reference,
    kind=Kind.VALUE,
    constant_fill=_fill_value,
    samples=[SampleCall((), positional=((2, 3), 7)), SampleCall((), {"dtype": "bool"}, ((0,), 1))],
)
def full(
    shape: Shape | int, fill_value: Array | complex, *, dtype: Any = None, device: str | None = None
) -> BoundCall:
    """Return an array of `shape` that holds `fill_value` everywhere; without a dtype int64,
    float64, complex128 or bool, as the value; uint64 for an int of 2**63 or more.

    An Array without axes is its value, which waits. A float becomes an integer by truncation,
    saturated. Raises OverflowError for an int that the
    dtype cannot hold and DTypeError for a complex value of a real dtype.

    >>> import tenfold as tn
    >>> tn.full((2,), 7).tolist()
    [7, 7]
    """
    if dtype is None and isinstance(fill_value, np.generic):
        dtype = fill_value.dtype
    if isinstance(fill_value, Array) and not fill_value.ndim:
        refuse_derivative(fill_value)
        dtype, fill_value = dtype or fill_value.dtype, fill_value.item()
    value = number(fill_value, "full")
    if dtype is None and type(value) is int and value > _MAX_INT:
        dtype = DTYPES["uint64"]
    result_dtype = default_dtype((value,)) if dtype is None else canonical(dtype, "full")
    lengths = checked_shape(shape, result_dtype.itemsize)
    return BoundCall(
        (), (lengths, number_of(value, result_dtype, "full"), result_dtype, checked_device(device))
    )


@derived(
    reference=np.zeros,
    samples=[SampleCall((), positional=((2, 3),)), SampleCall((), positional=(0,))],
)
def zeros(shape: Shape | int, *, dtype: Any = None, device: str | None = None) -> Array:
    """Return an array of `shape` that holds 0; float64 if no dtype is named.

    >>> import tenfold as tn
    >>> tn.zeros((2,)).tolist()
    [0.0, 0.0]
    """
    return full(shape, 0, dtype=FLOAT64 if dtype is None else dtype, device=device)


@derived(
    reference=np.ones,
    samples=[SampleCall((), positional=((2, 3),)), SampleCall((), positional=((),))],
)
def ones(shape: Shape | int, *, dtype: Any = None, device: str | None = None) -> Array:
    """Return an array of `shape` that holds 1; float64 if no dtype is named.

    >>> import tenfold as tn
    >>> tn.ones((2,)).tolist()
    [1.0, 1.0]
    """
    return full(shape, 1, dtype=FLOAT64 if dtype is None else dtype, device=device)


@derived()
def empty(shape: Shape | int, *, dtype: Any = None, device: str | None = None) -> Array:
    """Return an array of `shape` whose values are not to be relied on; float64 if no dtype is
    named.

    >>> import tenfold as tn
    >>> tn.empty((2, 3)).shape
    (2, 3)
    """
    return zeros(shape, dtype=dtype, device=device)


@derived(
    numpy=(np.full_like,),
    samples=[
        SampleCall(((2, 3),), positional=(1,)),
        SampleCall(((0,),), {"dtype": "float32"}, (1,)),
    ],
)
def full_like(
    x: Array, /, fill_value: Array | complex, *, dtype: Any = None, device: str | None = None
) -> Array:
    """Return an array that holds `fill_value` everywhere, of the shape, dtype and device of `x`, or
    the ones named. Values of `x` are not read.

    Raises OverflowError for an int that the dtype cannot hold.

    >>> import tenfold as tn
    >>> tn.full_like(tn.asarray([1.5, 2.5]), 7).tolist()
    [7.0, 7.0]
    """
    x = array(x)
    result_dtype = x.dtype if dtype is None else dtype
    return full(
        x.shape, fill_value, dtype=result_dtype, device=x.device if device is None else device
    )


@derived(numpy=(np.zeros_like,), samples=[SampleCall(((2, 3),))])
def zeros_like(x: Array, /, *, dtype: Any = None, device: str | None = None) -> Array:
    """Return an array that holds 0, of the shape, dtype and device of `x`, or the ones named.

    >>> import tenfold as tn
    >>> tn.zeros_like(tn.asarray([1.5, 2.5])).tolist()
    [0.0, 0.0]
    """
    return full_like(x, 0, dtype=dtype, device=device)


@derived(numpy=(np.ones_like,), samples=[SampleCall(((2, 3),))])
def ones_like(x: Array, /, *, dtype: Any = None, device: str | None = None) -> Array:
    """Return an array that holds 1, of the shape, dtype and device of `x`, or the ones named.

    >>> import tenfold as tn
    >>> tn.ones_like(tn.asarray([1.5, 2.5])).tolist()
    [1.0, 1.0]
    """
    return full_like(x, 1, dtype=dtype, device=device)


@derived(numpy=(np.empty_like,))
def empty_like(x: Array, /, *, dtype: Any = None, device: str | None = None) -> Array:
    """Return an array of the shape, dtype and device of `x`, or the ones named, whose values are
    not to be relied on.

    >>> import tenfold as tn
    >>> tn.empty_like(tn.asarray([1.5, 2.5])).shape
    (2,)
    """
    return zeros_like(x, dtype=dtype, device=device)


def _eye_rule(types: tuple[Type, ...], rows: int, columns: int, *params: Any) -> Inferred:
    return Inferred((((rows, columns), params[1]),), ())


def _eye_reference(
    rows: int, columns: int, offset: int, dtype: np.dtype, device: str
) -> np.ndarray:
    return np.eye(rows, columns, offset, dtype)


def _eye_structure(rows: int, columns: int, *params: Any) -> tuple[Structure]:
    if params[0] or rows > columns:
        return (Structure.GENERAL,)
    return (IDENTITY if rows == columns else Structure.SELECTION,)


def _eye_element(
    k: Body, at: ResultIndex, rows: int, columns: int, offset: int, dtype: np.dtype, device: str
) -> Operand:
    on_diagonal = at[1] - at[0] == at.number(offset)
    return select_element(
        k, on_diagonal, constant_element(k, 1, dtype), constant_element(k, 0, dtype)
    )


@operation(
    rule_free=True,
    bind_depends_on="options",
    rule=_eye_rule,
    param_names="n_rows n_cols k dtype device",
    makes=_eye_structure,
    reference=_eye_reference,
    element_at=_eye_element,
    kind=Kind.VALUE,
    samples=[
        SampleCall((), positional=(3,)),
        SampleCall((), {"k": 1, "dtype": "int8"}, (2, 4)),
        SampleCall((), {"k": -5}, (2, 0)),
    ],
)
def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: Any = None,
    device: str | None = None,
) -> BoundCall:
    """Return the matrix (n_rows, n_cols), square if one number is given, with 1 on its k-th
    diagonal (above the main one for k > 0) and 0 elsewhere; float64 if no dtype is named.

    >>> import tenfold as tn
    >>> tn.eye(2, 3, k=1).tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    result_dtype = FLOAT64 if dtype is None else canonical(dtype, "eye")
    rows, columns = checked_shape(
        (n_rows, n_rows if n_cols is None else n_cols), result_dtype.itemsize
    )
    try:
        offset = operator.index(k)
    except TypeError:
        raise IntegerError(
            "", f"diagonal {k!r} is not an int", remedy="give an int, as in k=1"
        ) from None
    return BoundCall(
        (), (rows, columns, max(-rows, min(offset, columns)), result_dtype, checked_device(device))
    )
