"""Array import (`asarray`, `from_dlpack`): converts numbers, lists, ndarrays and buffers to Arrays.

Takes numbers, nested lists (of Arrays too), ndarrays, buffers, DLPack; hands on Arrays. Fresh
memory is taken over, memory that is still writeable elsewhere is copied, the rest is shared.

>>> asarray([[1, 2], [3, 4]]).shape
(2, 2)
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Array
from tenfold.core.shape_rules import nested_levels
from tenfold.dtypes import FLOAT64, canonical, kind_of, promote, promotion_operand
from tenfold.errors import DTypeError, ShapeError, message
from tenfold.interop import dlpack
from tenfold.interop.materialize import value_of
from tenfold.ops.cast import astype
from tenfold.settings import checked_device
from tenfold.storage import dense


def asarray(
    obj: Any, /, *, dtype: Any = None, device: str | None = None, copy: bool | None = None
) -> Array:
    """Return a number, nested lists (of Arrays too), an ndarray, a buffer or DLPack as an Array.

    What can still be written to is copied, once; a read-only buffer or memory map is shared.
    `copy=False` shares and is the caller's promise not to write, or raises ValueError where the
    elements cannot be used as they lie; `copy=True` always copies. Lists take the dtype of their
    items, Python numbers among Arrays being weak; whole numbers are int64, or uint64 beyond it.

    Raises DTypeError for text, objects, records, dates and wider floats, ShapeError for lists of
    unequal length, OverflowError for a Python int that the dtype cannot hold.

    >>> import tenfold as tn
    >>> tn.asarray([[1, 2], [3, 4]]).shape
    (2, 2)
    >>> tn.asarray([0.5, 2], dtype=tn.float32).dtype
    dtype('float32')
    """
    wanted = None if dtype is None else canonical(dtype, "asarray")
    if isinstance(obj, Array):
        return _of_array(obj, wanted, device, copy)
    where = checked_device(device, "asarray")
    if isinstance(obj, np.ndarray):
        return _native.value_array(dense.import_values(obj, where, dtype=wanted, copy=copy))
    values, fresh = _values_of(obj, wanted)
    if fresh and copy is not False:
        value = dense.adopt_as(values, where, dtype=wanted)
    elif fresh:
        rule = f"{type(obj).__name__} cannot become an array without a copy"
        raise ValueError(message("asarray", rule, remedy="leave copy=False out"))
    else:
        value = dense.import_values(values, where, dtype=wanted, copy=copy)
    return _native.value_array(value)


def from_dlpack(x: Any, /, *, device: str | None = None, copy: bool | None = None) -> Array:
    """Return what another library exports through DLPack as an Array.

    The memory is shared when its producer says that it is read-only or `copy` is False, which is
    the caller's promise, and copied otherwise. A tensor of PyTorch that is conjugated or negated
    lazily is copied; ValueError for `copy=False` then. Raises DeviceError for memory that the CPU
    cannot read.

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
    where = checked_device(device, "from_dlpack")
    source = dlpack.resolve_lazy(x)
    values, unwritten = dlpack.import_values(source)
    if source is not x:
        if copy is False:
            rule = "a tensor that is conjugated or negated lazily cannot be shared"
            raise ValueError(message("from_dlpack", rule, remedy="leave copy=False out"))
        return _native.value_array(dense.adopt_as(values, where))
    wanted = not unwritten if copy is None else copy
    return _native.value_array(dense.import_values(values, where, copy=wanted))


def _of_array(array: Array, dtype: Any, device: str | None, copy: bool | None) -> Array:
    """Values never change, so a copy is another name for the same value."""
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            rule = f"{array.dtype} cannot become {dtype} without a copy"
            raise ValueError(message("asarray", rule, [array], "leave copy=False out"))
        array, copy = astype(array, dtype), None
    if device is not None and device != array.device:
        return to_device(array, device)
    if copy and _native.window_of(array) is not None:  # its user can write to it in other ways too
        return _native.value_array(dense.copy_to_pool(value_of(array), array.device))
    return _native.array_of(_native.node_of(array)) if copy else array


def to_device(array: Array, device: str, /, *, stream: Any = None) -> Array:
    """Return the array on another device, computed there from now on; `stream` must be None.

    Raises DeviceError for a device that does not exist.

    >>> import tenfold as tn
    >>> tn.asarray([1]).to_device("reference").device
    'reference'
    """
    where = checked_device(device, "to_device")
    if stream is not None:
        raise ValueError(
            message(
                "to_device", f"stream {stream!r} is not None", [array], remedy="leave stream out"
            )
        )
    if where == array.device:
        return array
    return _native.value_array(dense.import_values(np.asarray(array), where))


def _values_of(obj: Any, wanted: Any) -> tuple[np.ndarray[Any, Any], bool]:
    """Return the values of a foreign object, and whether this is the only reference to them."""
    if isinstance(obj, (list, tuple)):
        return _from_list(obj, wanted), True
    if isinstance(obj, (bool, int, float, complex, np.generic)):
        return _checked_numbers(np.asarray(obj), obj, wanted), True
    source = dlpack.resolve_lazy(obj)
    resolved = source is not obj
    if hasattr(obj, "__dlpack__") and not hasattr(obj, "__array__"):
        return _dlpack_values(source, resolved)
    try:
        values = np.asarray(source)
    except TypeError:  # a dtype that its library does not hand to NumPy, as PyTorch's bfloat16
        if not hasattr(obj, "__dlpack__"):
            raise
        with suppress(BufferError, RuntimeError):  # DLPack cannot lend it either
            return _dlpack_values(source, resolved)
        raise
    except ValueError as error:  # a buffer of a format that NumPy does not know
        rule = f"{type(obj).__name__} has elements that are not numbers: {error}"
        raise DTypeError("asarray", rule, remedy="convert them first") from None
    if values.dtype == object and values.ndim == 0:
        raise DTypeError(
            "asarray",
            f"{type(obj).__name__} is not an array or a number",
            remedy="give numbers, nested lists, an ndarray, a buffer or a DLPack object",
        )
    return values, resolved or (values.base is None and not hasattr(obj, "__array__"))


def _dlpack_values(source: Any, fresh: bool) -> tuple[np.ndarray[Any, Any], bool]:
    """As _values_of, of what DLPack lends; `fresh`: its memory is not shared."""
    values, shareable = dlpack.import_values(source)
    if fresh or shareable:
        return values, fresh
    _native.count("copies")
    return values.copy(), True


def _from_list(items: Any, wanted: Any) -> np.ndarray[Any, Any]:
    common = _common_dtype(items)
    dtype = common if wanted is None else None
    try:
        values = np.asarray(items, dtype=dtype)
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise
        raise ShapeError(
            "asarray", _ragged_text(items), remedy="pad the lists to one length"
        ) from None
    return _checked_numbers(_exact_integers(values, items), items, wanted)


def _exact_integers(values: np.ndarray[Any, Any], items: Any) -> np.ndarray[Any, Any]:
    """Return Python's ints as they are where NumPy, for one beyond int64, makes floats of all."""
    if values.dtype != FLOAT64 or not (np.abs(values) >= 2.0**63).any():
        return values
    exact = np.asarray(items, dtype=object)
    return exact if set(map(type, exact.flat)) <= {bool, int} else values


def _common_dtype(items: Any) -> Any:
    """Return the dtype of nested lists that hold Arrays, or None when they hold none."""
    leaves: list[Any] = []
    kinds: set[type] = set()
    for level in nested_levels(items, "asarray"):
        kinds.update(map(type, level))
        leaves.append([item for item in level if not isinstance(item, (list, tuple))])
    if Array not in kinds or kinds & {str, bytes}:  # text is refused when its dtype is seen
        return None
    return promote(promotion_operand(leaf) for level in leaves for leaf in level)


def _ragged_text(items: Any) -> str:
    for level in nested_levels(items, "asarray"):
        lengths = {len(item) if isinstance(item, (list, tuple)) else -1 for item in level}
        if len(lengths) > 1:
            known = sorted(length for length in lengths if length >= 0)
            scalar = " and numbers" if -1 in lengths else ""
            return f"lists of {' and '.join(map(str, known[:4]))} items{scalar} stand side by side"
    return "the nested items have unequal shapes"


def _checked_numbers(
    values: np.ndarray[Any, Any], source: Any, wanted: Any
) -> np.ndarray[Any, Any]:
    """Refuse Python's ints, which know no bound, where their dtype or `wanted` cannot hold them."""
    if values.dtype == object:
        values = _large_integers(values, wanted)
    if wanted is None or kind_of(wanted) not in "iu" or values.dtype.kind not in "iu":
        return values
    limits = np.iinfo(wanted)
    if values.size and not isinstance(source, np.generic):
        for number in (int(values.min()), int(values.max())):
            if not limits.min <= number <= limits.max:
                raise _overflow_error(number, wanted)
    return values


def _large_integers(values: np.ndarray[Any, Any], wanted: Any) -> np.ndarray[Any, Any]:
    """Give objects that are all numbers a dtype: a floating one when one of them or `wanted` is."""
    kinds = set(map(type, values.flat))
    if not kinds <= {bool, int, float, complex}:
        return values
    if wanted is not None and kind_of(wanted) in "fc":
        kinds.add(complex if kind_of(wanted) == "c" else float)
    for kind in (complex, float):
        if kind in kinds:
            return values.astype(np.result_type(kind))
    if wanted is not None and kind_of(wanted) == "b":
        return values.astype(bool)
    low, high = min(values.flat), max(values.flat)
    dtype = wanted or canonical("int64" if low < 0 else "uint64")
    limits = np.iinfo(dtype)
    for number in (low, high):
        if not limits.min <= number <= limits.max:
            raise _overflow_error(number, dtype)
    return values.astype(dtype)


def _overflow_error(number: int, dtype: Any) -> OverflowError:
    shown = str(number) if abs(number) < 10**30 else f"of {number.bit_length()} bits"
    remedy = f"name a wider dtype, as in tn.asarray(x, dtype=tn.{FLOAT64})"
    return OverflowError(
        message("asarray", f"Python integer {shown} is out of bounds for {dtype}", remedy=remedy)
    )
