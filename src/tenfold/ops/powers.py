"""Matrix powers and cross products: lazy, made of other operations."""

from __future__ import annotations

import operator

import numpy as np

from tenfold._native import Array
from tenfold.core.op import SampleCall
from tenfold.core.op_decorators import array, derived
from tenfold.core.shape_rules import normalize_axis
from tenfold.dtypes import kind_of
from tenfold.errors import DTypeError, IntegerError, ShapeError
from tenfold.ops.contract import matmul
from tenfold.ops.create import eye
from tenfold.ops.indexing import capture, get_item
from tenfold.ops.joining import stack
from tenfold.ops.linalg import inv, square
from tenfold.ops.reshaping import broadcast_to


@derived(
    namespace="linalg",
    numpy=(np.linalg.matrix_power,),
    samples=[
        SampleCall(((3, 3),), positional=(5,)),
        SampleCall(((2, 3, 3),), positional=(0,)),
        SampleCall(((2, 3, 3),), positional=(-2,)),
        SampleCall(((0, 0),), positional=(3,)),
    ],
)
def matrix_power(x: Array, n: int, /) -> Array:
    """Matrix to the power `n`, an int: (..., m, m) to (..., m, m), the dtype of `x`.

    The power 0 is the identity; a negative one is that of the inverse, in a floating dtype.
    Integers wrap. Raises ShapeError unless the matrices are square and the power is an int,
    DTypeError for a negative power of halves, and LinAlgError at the wait for a negative power of
    a singular matrix. By squaring, at most 2 log2(n) products: Golub and Van Loan 2013, 9.2.5.

    >>> import tenfold as tn
    >>> tn.linalg.matrix_power(tn.asarray([[1, 1], [1, 0]]), 10).tolist()
    [[89, 55], [55, 34]]
    """
    x = array(x)
    square(x.shape)
    try:
        power = operator.index(n)
    except TypeError:
        raise IntegerError(
            "", f"power {n!r} is not an int", remedy="give an int, as in 3"
        ) from None
    if power == 0:
        return broadcast_to(eye(x.shape[-1], dtype=x.dtype, device=x.device), x.shape)
    if power < 0:
        x, power = inv(x), -power
    result = None
    square_power = capture(x)
    while power:
        if power & 1:
            result = square_power if result is None else matmul(result, square_power)
        power >>= 1
        if power:
            square_power = matmul(square_power, square_power)
    assert result is not None, "a power above 0 has a bit"
    return result


def _components(x: Array, axis: int) -> list[Array]:
    """The three components of vectors along an axis, counted from the last."""
    trailing = (slice(None),) * (-1 - axis)
    return [get_item(x, (Ellipsis, component, *trailing)) for component in range(3)]


@derived(
    namespace="linalg",
    numpy=(np.linalg.cross,),
    samples=[
        SampleCall(((3,), (3,))),
        SampleCall(((4, 3), (3,))),
        SampleCall(((3, 1), (3, 4)), {"axis": -2}),
        SampleCall(((0, 3), (0, 3))),
    ],
)
def cross(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """Cross product of vectors with three components along `axis`; dtypes promote.

    The other axes broadcast. `axis` counts from the last; from the first only where both operands
    have as many axes. Raises ShapeError for other lengths, DTypeError for bool.

    >>> import tenfold as tn
    >>> tn.linalg.cross(tn.asarray([1, 0, 0]), tn.asarray([0, 1, 0])).tolist()
    [0, 0, 1]
    """
    x1, x2 = array(x1), array(x2)
    if axis >= 0 and x1.ndim != x2.ndim:
        rule = f"axis {axis} counts from the first axis of operands of {x1.ndim} and {x2.ndim} axes"
        raise ShapeError("", rule, remedy="count from the last one, as in axis=-1")
    axes = [normalize_axis(axis, operand.ndim) - operand.ndim for operand in (x1, x2)]
    lengths = [operand.shape[x_axis] for operand, x_axis in zip((x1, x2), axes, strict=True)]
    if lengths != [3, 3]:
        rule = f"vectors of {lengths[0]} and {lengths[1]} components have no cross product"
        raise ShapeError("", rule, remedy="give three along axis")
    if kind_of(x1.dtype) == kind_of(x2.dtype) == "b":
        rule = "needs numbers, not bool"
        raise DTypeError("", rule, remedy="convert with tn.astype(x, tn.int8)")
    a, b = _components(x1, axes[0]), _components(x2, axes[0])
    products = [a[i - 2] * b[i - 1] - a[i - 1] * b[i - 2] for i in range(3)]
    return stack(products, axis=axes[0])
