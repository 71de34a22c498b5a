"""Products of vectors and matrices, with NumPy's names.

Takes NumPy's arguments, hands on Arrays of the contractions.

>>> dot([[1, 2], [3, 4]], [1, 1]).tolist()
[3, 7]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold._native import Array
from tenfold.core.shape_rules import normalize_axis
from tenfold.numpy.arguments import (
    Immediate,
    as_array,
    as_arrays,
    cast,
    cast_for,
    check_order,
    deliver,
    export,
)
from tenfold.numpy.elementwise import conjugated
from tenfold.ops import arithmetic, contract, movement, reshaping
from tenfold.ops import einsum as summation
from tenfold.ops.indexing import index
from tenfold.ops.joining import stack

__all__ = ["cross", "dot", "einsum", "einsum_path", "inner", "kron", "outer", "tensordot", "vdot"]


def dot(a: Any, b: Any, out: Any = None) -> Any:
    """Return products summed over the last axis of `a` and the second last of `b`."""
    x, y = as_array(a), as_array(b)
    if x.ndim == 0 or y.ndim == 0:
        result = arithmetic.multiply(x, y)
    elif x.ndim <= 2 and y.ndim <= 2:
        result = contract.matmul(x, y)
    else:
        result = contract.tensordot(x, y, axes=((x.ndim - 1,), (max(y.ndim - 2, 0),)))
    return deliver(result, out)


def vdot(a: Any, b: Any, /) -> Array:
    """Return the sum of products of all elements, those of `a` conjugated."""
    x, y = (reshaping.reshape(as_array(v), (-1,)) for v in (a, b))
    return contract.matmul(conjugated(x), y)


def inner(a: Any, b: Any, /) -> Array:
    """Return products summed over the last axis of both."""
    x, y = as_array(a), as_array(b)
    if x.ndim == 0 or y.ndim == 0:
        return arithmetic.multiply(x, y)
    return contract.tensordot(x, y, axes=((x.ndim - 1,), (y.ndim - 1,)))


def outer(a: Any, b: Any, out: Any = None) -> Any:
    """Return the product of each element of `a` with each of `b`, both flattened."""
    x, y = (reshaping.reshape(as_array(v), (-1,)) for v in (a, b))
    return deliver(contract.outer(x, y), out)


def kron(a: Any, b: Any) -> Array:
    """Return the Kronecker product."""
    return contract.kron(as_array(a), as_array(b))


def tensordot(a: Any, b: Any, axes: Any = 2) -> Array:
    """Return products summed over axes of both."""
    return contract.tensordot(as_array(a), as_array(b), axes=axes)


def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Array:
    """Return the cross product of vectors of three numbers; of two ones NumPy computes it."""
    axisa, axisb, axisc = (axisa, axisb, axisc) if axis is None else (axis,) * 3
    x, y = (
        movement.moveaxis(v, normalize_axis(i, v.ndim), -1)
        for v, i in zip(as_arrays((a, b)), (axisa, axisb), strict=True)
    )
    if {2} < {2, x.shape[-1], y.shape[-1]} == {2, 3} or (x.shape[-1], y.shape[-1]) == (2, 2):
        result: Array = Immediate(np.cross)(a, b, axisa, axisb, axisc)
        return result
    if x.shape[-1] != 3 or y.shape[-1] != 3:
        raise ValueError("Both input arrays must be arrays of 3-dimensional vectors, but they are "
                         f"{x.shape[-1]} and {y.shape[-1]} dimensional instead.")  # fmt: skip
    u, v = ([index(w, (..., i)) for i in range(3)] for w in (x, y))
    parts = [
        arithmetic.subtract(arithmetic.multiply(u[i], v[j]), arithmetic.multiply(u[j], v[i]))
        for i, j in ((1, 2), (2, 0), (0, 1))
    ]
    return movement.moveaxis(stack(parts, -1), -1, axisc)


def einsum(
    *operands: Any, out: Any = None, optimize: Any = True, dtype: Any = None, **options: Any
) -> Any:
    """Return the sum of products that the subscripts write."""
    subscripts, *arrays = operands
    if not isinstance(subscripts, str):
        result = Immediate(np.einsum)(*operands, dtype=dtype, **options)
    else:
        check_order(options.get("order"))
        factors = [cast(x, dtype) for x in as_arrays(arrays)]
        result = summation.einsum(subscripts, *factors)
    return deliver(cast_for(result, out, options.get("casting")), out)


def einsum_path(*operands: Any, optimize: Any = "greedy", **options: Any) -> Any:
    """Return NumPy's order of the products; `einsum` finds its own."""
    values = [
        np.broadcast_to(np.empty((), x.dtype), x.shape) if isinstance(x, Array) else x
        for x in operands
    ]
    return np.einsum_path(*export(values, "np.einsum_path"), optimize=optimize, **options)
