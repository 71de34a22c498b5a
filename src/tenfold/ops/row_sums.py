"""Row sums: adds rows to the rows that indices name, duplicates in their order, by one kernel.

Takes Values in memory, returns the Value of the sums. The kernel is `native/exec/scatter_add.h`.

>>> ids, rows = (dense.adopt(np.asarray(x), "cpu") for x in ([0, 2, 0], [1.0, 2.0, 3.0]))
>>> sums = Type((3,), np.dtype(float), "cpu")
>>> value = row_sums(sums, None, ids, rows, wraps=False)
>>> dense.export(value)
array([4., 0., 2.])
"""

from __future__ import annotations

import math
import struct

import numpy as np

from tenfold import _native
from tenfold._native import Type, Value
from tenfold.dtypes import REAL_DTYPES, kind_of
from tenfold.ops.cast import cast_values
from tenfold.storage import dense

QUICK = 1 << 14
"""Elements up to which a launch keeps the GIL."""


def row_sums(
    type_: Type, first: Value | None, indices: Value, rows: Value, *, wraps: bool
) -> Value | None:
    """Return `first`, or zeros, of a Type with rows added; None for an index out of range.

    `rows` is indices.shape + type_.shape[1:], or one number for all. With `wraps` negative indices
    count from the end.
    """
    dtype = type_.dtype
    width = math.prod(type_.shape[1:])
    count = indices.type.size
    is_one = not rows.type.shape and count * width != 1 and dtype not in REAL_DTYPES
    if not is_one and rows.type.size != count * width:
        rows = _broadcast(rows, (*indices.type.shape, *type_.shape[1:]), dtype)
    real_dtype = REAL_DTYPES.get(dtype) or dtype
    width *= 1 + (dtype in REAL_DTYPES)  # a complex number is two real ones
    index_dtype = indices.type.dtype
    sizes = struct.pack(
        "9q",
        count,
        width,
        type_.shape[0],
        wraps,
        -index_dtype.itemsize if index_dtype.kind == "i" else index_dtype.itemsize,
        -real_dtype.itemsize if kind_of(real_dtype) == "f" else real_dtype.itemsize,
        0 if is_one else width,
        not is_one,
        first is None,
    )
    sums = Value.allocate(type_, type_.size * dtype.itemsize)
    memory = [plain(indices, index_dtype), plain(rows, dtype)]
    if first is not None:
        memory.append(plain(first, dtype))
    addresses = [sums.address, *(value.address for value in memory)]
    threads = int(count * width + type_.size > QUICK)
    status = _native.launch(_KERNEL, addresses, sizes, b"", 0, 1, 1, threads)
    return None if status else sums


_KERNEL = _native.scatter_add()


def plain(value: Value, dtype: np.dtype) -> Value:
    """Return a Value in a dtype, in C order."""
    if value.type.dtype == dtype and not value.strides:
        return value
    values = np.ascontiguousarray(cast_values(dense.export(value), dtype))
    return dense.adopt(values.reshape(value.type.shape), value.type.device)


def _broadcast(value: Value, shape: tuple[int, ...], dtype: np.dtype) -> Value:
    values = np.broadcast_to(cast_values(dense.export(value), dtype), shape)
    return dense.adopt(values.copy(), value.type.device)


__all__ = ["plain", "row_sums"]
