"""Right-hand-side coercion: converts the right side of an assignment to an operand that fits its
target.

Takes the right side and its target, hands on an Array or a Python number. Shape, dtype and device
are checked here, before anything is written.

>>> import tenfold as tn
>>> x = tn.zeros((2, 3), dtype=tn.float32)
>>> coerce_rhs([[1, 2, 3]], x, "setitem").dtype
dtype('float32')
>>> fit_to_part(tn.ones((1, 1, 3)), x, (3,), "setitem").shape
(3,)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Array
from tenfold.core import op_decorators
from tenfold.core.shape_rules import Shape, whole_axes
from tenfold.dtypes import BOOL, ScalarOperand, kind_of, promote, promotion_operand
from tenfold.errors import DeviceError, DTypeError, ExplainedError
from tenfold.interop.asarray import asarray
from tenfold.ops.assignment import refuse_misfit
from tenfold.ops.create import number, number_of
from tenfold.ops.indexing import index_view
from tenfold.settings import get
from tenfold.storage.kinds import to_dense


def coerce_rhs(value: Any, target: Array, operation: str) -> Any:
    """Return the right side of an assignment to `target`: an Array, or a Python number as it is.

    A writeable buffer is copied. Raises DTypeError for a value that is neither an array nor a
    number.
    """
    if isinstance(value, Array):
        return value if _native.has_kind(target) else to_dense(value)
    if isinstance(value, (np.ndarray, np.generic)):
        if isinstance(value, np.integer) and kind_of(target.dtype) == "i":
            number_of(int(value), target.dtype, operation)  # raises as NumPy; unsigned ones wrap
        return asarray(value, device=target.device)
    if isinstance(value, (bool, int, float, complex)):
        is_truth = target.dtype == BOOL and value in (0, 1)
        return bool(value) if is_truth else number(value, operation)
    if isinstance(value, (list, tuple)):
        return _from_list(value, target)
    raise op_decorators.not_an_array_error(value).completed(operation, [target])


_SCALARS = {"b": True, "i": 0, "u": 0, "f": 0.0, "c": 0j}


def _from_list(values: Any, target: Array) -> Array:
    """Return lists as an Array; numbers are weak in lists too, and 0 and 1 are truth values."""
    result = asarray(values, device=target.device)
    if target.dtype == BOOL and np.isin(np.asarray(result), (0, 1)).all():
        return asarray(values, dtype=BOOL, device=target.device)
    weak = promotion_operand(_SCALARS[kind_of(result.dtype)])
    if promote((ScalarOperand(target.dtype, weak=False), weak)) != target.dtype:
        return result  # which does not fit: the error says why
    return asarray(values, dtype=target.dtype, device=target.device)


def fit_to_part(value: Any, target: Array, shape: Shape, operation: str) -> Any:
    """Return `value` as one that replaces a part of `shape` of `target`.

    Leading axes of length 1 that the part has not are dropped. Raises ShapeError, DTypeError or
    DeviceError for a value that does not fit, OverflowError for a Python int beyond the dtype.
    """
    if not isinstance(value, Array):
        try:
            refuse_misfit((), promotion_operand(value), shape, target.dtype)
        except ExplainedError as error:
            raise error.completed(operation, [target]) from None
        return number_of(value, target.dtype, operation)
    same_type = value.shape == shape and value.dtype == target.dtype
    if same_type and value.device == target.device:
        return value
    extra_axes = value.ndim - len(shape)
    if extra_axes > 0 and value.shape[:extra_axes] == (1,) * extra_axes:
        value = index_view(value, (*(0,) * extra_axes, *whole_axes(value.shape[extra_axes:])))
    try:
        refuse_misfit(value.shape, ScalarOperand(value.dtype, weak=False), shape, target.dtype)
    except ExplainedError as error:
        raise error.completed(operation, [target, value]) from None
    if value.device != target.device:
        rule = f"operands are on different devices: {target.device}, {value.device}"
        raise DeviceError(operation, rule, [target, value], "move one with x.to_device(...)")
    if value.dtype != target.dtype and get("strict_dtypes"):
        rule = f"strict_dtypes refuses to mix {target.dtype}, {value.dtype}"
        raise DTypeError(operation, rule, [target, value], "convert one with tn.astype")
    return value
