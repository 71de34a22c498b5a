"""Array import (`asarray`, `from_dlpack`): converts numbers, lists, ndarrays and buffers to Arrays.

Takes numbers, nested lists (of Arrays too), ndarrays, buffers, DLPack; returns Arrays. Unshared
memory is adopted, memory that others can write to is copied, read-only memory is shared.

>>> asarray([[1, 2], [3, 4]]).shape
(2, 2)
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from tenfold import _native, pipeline
from tenfold._native import Array
from tenfold.core.native_path import native_path
from tenfold.core.op_decorators import refuse_derivative
from tenfold.core.shape_rules import nested_levels
from tenfold.core.trace_state import TRACE
from tenfold.dtypes import FLOAT64, canonical, kind_of, promote, promotion_operand
from tenfold.errors import ForeignDTypeError, ShapeError, message, raise_if_failed
from tenfold.interop import dlpack
from tenfold.interop.materialize import value_of
from tenfold.interop.scipy_sparse import from_scipy, is_sparse
from tenfold.ops.cast import astype
from tenfold.ops.device_copy import to_device
from tenfold.settings import checked_device, get
from tenfold.storage import dense


@native_path("asarray")
def asarray(
    obj: Any, /, *, dtype: Any = None, device: str | None = None, copy: bool | None = None
) -> Array:
    """Return a number, nested lists (of Arrays too), an ndarray, a buffer or DLPack as an Array.

    Writeable memory is copied once; a read-only buffer or memory map is shared. `copy=False` shares
    and is the caller's promise not to write; it raises ValueError where the memory layout needs a
    copy. `copy=True` always copies. Lists get the dtype of their items; Python numbers among Arrays
    are weak. Integers are int64, or uint64 beyond its range.

    Raises DTypeError for text, objects, records, dates and wider floats, ShapeError for lists of
    unequal length, OverflowError for a Python int that the dtype cannot hold.

    >>> import tenfold as tn
    >>> tn.asarray([[1, 2], [3, 4]]).shape
    (2, 2)
    >>> tn.asarray([0.5, 2], dtype=tn.float32).dtype
    dtype('float32')
    """
    target_dtype = None if dtype is None else canonical(dtype, "asarray")
    if isinstance(obj, Array):
        return _of_array(obj, target_dtype, device, copy)
    target_device = checked_device(device, "asarray")
    if isinstance(obj, np.ndarray):
        return _native.value_array(
            dense.import_values(obj, target_device, dtype=target_dtype, copy=copy)
        )
    if dlpack.is_on_cuda(obj):
        return _of_array(from_dlpack(obj, device=device, copy=copy), target_dtype, None, copy)
    if is_sparse(obj):
        return from_scipy(obj, target_dtype, target_device, copy=copy)
    values, is_owned = _values_of(obj, target_dtype)
    if is_owned and copy is not False:
        value = dense.adopt_as(values, target_device, dtype=target_dtype)
    elif is_owned:
        rule = f"{type(obj).__name__} cannot become an array without a copy"
        raise ValueError(message("asarray", rule, remedy="leave copy=False out"))
    else:
        value = dense.import_values(values, target_device, dtype=target_dtype, copy=copy)
    return _native.value_array(value)


def from_dlpack(x: Any, /, *, device: str | None = None, copy: bool | None = None) -> Array:
    """Return what another library exports through DLPack as an Array.

    The memory is shared if its producer declares it read-only, or if `copy` is False, which is the
    caller's promise not to write. Otherwise it is copied. A PyTorch tensor with lazy conjugation or
    negation is copied, and raises ValueError for `copy=False`. Raises DeviceError for memory that
    the CPU cannot read.

    >>> import tenfold as tn
    >>> import numpy as np
    >>> tn.from_dlpack(np.arange(3)).tolist()
    [0, 1, 2]
    """
    if isinstance(x, (Array, np.ndarray)):
        return asarray(x, device=device, copy=copy)
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        rule = f"{type(x).__name__} does not export DLPack"
        raise TypeError(message("from_dlpack", rule, remedy="import it with tn.asarray(...)"))
    source = dlpack.resolve_lazy(x)
    if dlpack.is_on_cuda(source):
        keeps = copy is not False or source is x
        value = dlpack.import_device_memory(source, copy=copy if keeps else None)
        array = _native.value_array(value)
        return array if device is None else to_device(array, checked_device(device, "from_dlpack"))
    target_device = checked_device(device, "from_dlpack")
    values, is_read_only = dlpack.import_dlpack(source)
    if source is not x:
        if copy is False:
            rule = "a tensor that is conjugated or negated lazily cannot be shared"
            raise ValueError(message("from_dlpack", rule, remedy="leave copy=False out"))
        return _native.value_array(dense.adopt_as(values, target_device))
    must_copy = not is_read_only if copy is None else copy
    return _native.value_array(dense.import_values(values, target_device, copy=must_copy))


def _of_array(array: Array, dtype: Any, device: str | None, copy: bool | None) -> Array:
    """Convert an Array. Values are immutable, so a copy is a new Array of the same node."""
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            rule = f"{array.dtype} cannot become {dtype} without a copy"
            raise ValueError(message("asarray", rule, [array], "leave copy=False out"))
        array, copy = astype(array, dtype), None
    if device is not None and device != array.device:
        return to_device(array, device)
    if copy and _native.window_of(array) is not None:  # the buffer's owner can write to it
        return _native.value_array(dense.copy_to_pool(value_of(array), array.device))
    return _native.array_of(_native.node_of(array)) if copy else array


def _values_of(obj: Any, target_dtype: Any) -> tuple[np.ndarray[Any, Any], bool]:
    """Return the values of a foreign object, and whether their memory is unshared."""
    if isinstance(obj, (list, tuple)):
        return _from_list(obj, target_dtype), True
    if isinstance(obj, (bool, int, float, complex, np.generic)):
        return _checked_numbers(np.asarray(obj), obj, target_dtype), True
    source = dlpack.resolve_lazy(obj)
    is_resolved = source is not obj
    if hasattr(obj, "__dlpack__") and not hasattr(obj, "__array__"):
        return _dlpack_values(source, is_resolved)
    try:
        values = np.asarray(source)
    except TypeError:  # a dtype that its library does not hand to NumPy, as PyTorch's bfloat16
        if not hasattr(obj, "__dlpack__"):
            raise
        with suppress(BufferError, RuntimeError):  # DLPack cannot lend it either
            return _dlpack_values(source, is_resolved)
        raise
    except ValueError as error:  # a buffer of a format that NumPy does not know
        rule = f"{type(obj).__name__} has elements that are not numbers: {error}"
        raise ForeignDTypeError("asarray", rule, remedy="convert them first") from None
    if values.dtype == object and values.ndim == 0:
        remedy = "give numbers, nested lists, an ndarray, a buffer or a DLPack object"
        raise ForeignDTypeError(
            "asarray", f"{type(obj).__name__} is not an array or a number", remedy=remedy
        )
    return values, is_resolved or (values.base is None and not hasattr(obj, "__array__"))


def _dlpack_values(source: Any, is_owned: bool) -> tuple[np.ndarray[Any, Any], bool]:
    """As _values_of, for a DLPack object; `is_owned`: its memory is unshared."""
    values, is_read_only = dlpack.import_dlpack(source)
    if is_owned or is_read_only:
        return values, is_owned
    _native.count("copies")
    return values.copy(), True


def _from_list(items: Any, target_dtype: Any) -> np.ndarray[Any, Any]:
    common_dtype = _common_dtype(items)
    dtype = common_dtype if target_dtype is None else None
    try:
        values = np.asarray(items, dtype=dtype)
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise
        raise ShapeError(
            "asarray", _ragged_text(items), remedy="pad the lists to one length"
        ) from None
    return _checked_numbers(_exact_integers(values, items), items, target_dtype)


def _exact_integers(values: np.ndarray[Any, Any], items: Any) -> np.ndarray[Any, Any]:
    """Return Python ints as objects if NumPy has converted ints beyond int64 to float64."""
    if values.dtype != FLOAT64 or not (np.abs(values) >= 2.0**63).any():
        return values
    exact_values = np.asarray(items, dtype=object)
    return exact_values if set(map(type, exact_values.flat)) <= {bool, int} else values


def _common_dtype(items: Any) -> Any:
    """Return the dtype of nested lists with Arrays among their items, which are computed together;
    else None.
    """
    leaves: list[list[Any]] = []
    kinds: set[type] = set()
    for level in nested_levels(items, "asarray"):
        kinds.update(map(type, level))
        leaves.append([item for item in level if not isinstance(item, (list, tuple))])
    if Array not in kinds:
        return None
    if TRACE.get() is None and not get("strict_sync"):  # else each item refuses
        arrays = [leaf for level in leaves for leaf in level if isinstance(leaf, Array)]
        for array in arrays:
            refuse_derivative(array, "asarray")
        raise_if_failed(pipeline.evaluate(arrays))
    if kinds & {str, bytes}:
        dense.checked_dtype(np.empty(0, "U1"))  # raises: NumPy would name the Arrays, not the text
    return promote(promotion_operand(leaf) for level in leaves for leaf in level)


def _ragged_text(items: Any) -> str:
    for level in nested_levels(items, "asarray"):
        lengths = {len(item) if isinstance(item, (list, tuple)) else -1 for item in level}
        if len(lengths) > 1:
            list_lengths = sorted(length for length in lengths if length >= 0)
            scalar = " and numbers" if -1 in lengths else ""
            counts = " and ".join(map(str, list_lengths[:4]))
            return f"lists of {counts} items{scalar} stand side by side"
    return "the nested items have unequal shapes"


def _checked_numbers(
    values: np.ndarray[Any, Any], source: Any, target_dtype: Any
) -> np.ndarray[Any, Any]:
    """Raise OverflowError for Python ints that their dtype or `target_dtype` cannot represent."""
    if values.dtype == object:
        values = _large_integers(values, target_dtype)
    if target_dtype is None or kind_of(target_dtype) not in "iu" or values.dtype.kind not in "iu":
        return values
    limits = np.iinfo(target_dtype)
    if values.size and not isinstance(source, np.generic):
        for number in (int(values.min()), int(values.max())):
            if not limits.min <= number <= limits.max:
                raise _overflow_error(number, target_dtype)
    return values


def _large_integers(values: np.ndarray[Any, Any], target_dtype: Any) -> np.ndarray[Any, Any]:
    """Convert Python numbers to a dtype, floating if one of them or `target_dtype` is."""
    kinds = set(map(type, values.flat))
    if not kinds <= {bool, int, float, complex}:
        return values
    if target_dtype is not None and kind_of(target_dtype) in "fc":
        kinds.add(complex if kind_of(target_dtype) == "c" else float)
    for kind in (complex, float):
        if kind in kinds:
            return values.astype(np.result_type(kind))
    if target_dtype is not None and kind_of(target_dtype) == "b":
        return values.astype(bool)
    minimum, maximum = min(values.flat), max(values.flat)
    dtype = target_dtype or canonical("int64" if minimum < 0 else "uint64")
    limits = np.iinfo(dtype)
    for number in (minimum, maximum):
        if not limits.min <= number <= limits.max:
            raise _overflow_error(number, dtype)
    return values.astype(dtype)


def _overflow_error(number: int, dtype: Any) -> OverflowError:
    number_text = str(number) if abs(number) < 10**30 else f"of {number.bit_length()} bits"
    remedy = f"name a wider dtype, as in tn.asarray(x, dtype=tn.{FLOAT64})"
    return OverflowError(
        message(
            "asarray", f"Python integer {number_text} is out of bounds for {dtype}", remedy=remedy
        )
    )
