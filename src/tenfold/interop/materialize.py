"""Materialisation: computes an Array and returns its values.

Takes an Array, returns a read-only ndarray or Python numbers. An implicit wait names its caller, so
that `tn.options(strict_sync=True)` can refuse it.

>>> from tenfold.interop.asarray import asarray
>>> value_of(asarray([1, 2]) + 1)
array([2, 3])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold import _native, pipeline, settings
from tenfold._native import Array, Value
from tenfold.core.cast_values import cast_values
from tenfold.core.native_path import native_path
from tenfold.core.trace_state import note_wait
from tenfold.dtypes import BFLOAT16, DTYPES, kind_of
from tenfold.errors import (
    NumberError,
    RunError,
    ShapeError,
    UnsupportedError,
    message,
    raise_if_failed,
)
from tenfold.runtime.reference import TRACED
from tenfold.storage import dense, kinds


def value_of(array: Array, operation: str | None = None) -> np.ndarray[Any, Any]:
    """Compute an Array and return its values, read-only; `operation` names an implicit wait."""
    return dense.export_or_copy(computed_value(array, operation))


def computed_value(array: Array, operation: str | None = None) -> Value:
    """Compute an Array and return its Value."""
    node = _native.node_of(array)
    if kinds.storage_kind(array):
        raise kinds.refusal(operation or "wait", array)
    if node.pending:
        if operation is not None:
            _refuse_sync(operation, array)
        _native.count("host_syncs")
        # not the array: another thread may rebind it
        raise_if_failed(pipeline.compute([node]))
    value = node.value()
    if value is None:
        note_wait()
        raise UnsupportedError(
            operation or "wait",
            TRACED,
            [array],
            remedy=SCALAR_REMEDY if operation in ("int", "float", "complex") else BRANCH_REMEDY,
        )
    return value


def _refuse_sync(operation: str, array: Array) -> None:
    if settings.get("strict_sync"):
        raise RunError(
            operation,
            "strict_sync refuses an implicit wait",
            [array],
            remedy="call x.wait() or tn.eval(x) first",
        )


def wait(self: Array) -> Array:
    """Compute the values and return the array itself. Raises what the computation raises.

    >>> import tenfold as tn
    >>> (tn.asarray([1, 2]) + 1).wait()
    Array([2, 3], dtype=int64)
    """
    if kinds.storage_kind(self):
        for part in kinds.components(self):
            computed_value(part)
    else:
        computed_value(self)
    return self


@native_path("item")
def item(self: Array, *args: Any) -> Any:
    """Return the only element as a Python number, or the one at an index.

    The index is one integer, of the flattened array, or one for each axis, as separate arguments or
    as a tuple. Raises ShapeError without an index when there is not exactly one element.

    >>> import tenfold as tn
    >>> tn.asarray([1.5]).item()
    1.5
    """
    if args:
        return value_of(self, "item").item(*args)
    if self.size != 1:
        raise ShapeError("item", f"{self.size} elements are not one", [self], "index one first")
    return value_of(self, "item").item()


@native_path("tolist")
def tolist(self: Array) -> Any:
    """Return the values as nested lists of Python numbers; one number for an array of no axes.

    >>> import tenfold as tn
    >>> tn.asarray([[1, 2]]).tolist()
    [[1, 2]]
    """
    return value_of(self, "tolist").tolist()


def lent_values(array: Array) -> np.ndarray[Any, Any]:
    """Return the values that `memoryview(x)` shows, read-only. Raises BufferError for bfloat16."""
    if array.dtype == BFLOAT16:
        rule = "bfloat16 has no format code in the buffer protocol"
        remedy = "convert it, as in memoryview(tn.astype(x, tn.float32))"
        raise BufferError(message("memoryview", rule, [array], remedy))
    return value_of(array, "memoryview")


def array_interface(array: Array) -> dict[str, Any]:
    """Return `x.__array_interface__`: shape and element type of the buffer, row by row.

    Nothing is computed. Raises AttributeError for bfloat16, which has no type code.
    """
    if array.dtype == BFLOAT16:
        raise AttributeError("__array_interface__: bfloat16 has no type code")
    text = array.dtype.str
    return {
        "shape": array.shape,
        "typestr": text,
        "descr": [("", text)],
        "strides": None,
        "version": 3,
    }


ONE_ELEMENT = "index one element, or use functions of tn: tn.sin(x), not math.sin(x)"
SCALAR_REMEDY = "use functions of tn: tn.sin(x), not math.sin(x); choose by values with tn.where"
BRANCH_REMEDY = "choose by values with tn.where, not with Python's if"
"""Remedies where the value of a traced array is needed."""
SCALAR_FORMS = {"bool": bool, "int": int, "float": float, "complex": complex, "index": int}


def scalar_of(array: Array, form: str) -> Any:
    """Return the only element as a Python bool, int, float, complex, or index."""
    if array.size != 1 or (form == "index" and array.ndim):
        hint = "use tn.any(x) or tn.all(x)" if form == "bool" and array.size else ONE_ELEMENT
        hint = "give one element, as in x[0]" if form == "index" else hint
        rule = f"an array of shape {array.shape} is not a single number"
        if form == "index":  # bytes(x) and bytearray(x) go on with the buffer after a TypeError
            raise TypeError(message(form, rule, [array], hint))
        kind = ShapeError if form == "bool" else NumberError
        raise kind(form, rule, [array], hint)
    if form == "index" and kind_of(array.dtype) not in "iu":
        raise TypeError(message("index", f"{array.dtype} is not an integer", [array], "use int(x)"))
    if form in ("int", "float") and kind_of(array.dtype) == "c":
        raise TypeError(message(form, "complex numbers have two parts", [array], "take tn.real(x)"))
    return SCALAR_FORMS[form](value_of(array, form).item())


def to_complex(self: Array) -> complex:
    """Return the only element as a Python complex number."""
    number: complex = scalar_of(self, "complex")
    return number


@native_path("to_ndarray")
def to_ndarray(self: Array, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
    """Return the values as an ndarray: read-only, or a writeable copy for `copy=True`.

    In another `dtype` they are converted as tn.astype does; ValueError for `copy=False` then.
    """
    values = value_of(self, "np.asarray")
    if dtype is None or values.dtype == dtype:
        return values.copy() if copy else values
    if copy is False:
        rule = f"{values.dtype} cannot become {np.dtype(dtype)} without a copy"
        raise ValueError(message("np.asarray", rule, [self], "leave copy=False out"))
    dtype = np.dtype(dtype)
    is_tenfold_cast = dtype in DTYPES.values() and not (
        values.dtype.kind == "c" and kind_of(dtype) not in "cb"
    )
    return cast_values(values, dtype) if is_tenfold_cast else values.astype(dtype)
