"""Norms: norms of matrices and vectors, conditions and traces.

Takes stacks in any dtype, hands on numbers. Norms are library calls, in float32 for the half types
and rounded once; a trace is the sum of a diagonal.
"""

from __future__ import annotations

from typing import Any, Literal, cast

import numpy as np

from tenfold._native import Array, Type
from tenfold.core.op import BoundCall, Inferred, SampleCall
from tenfold.core.op_decorators import array, derived, operation
from tenfold.core.shape_rules import Axis, Shape, normalize_axes, normalize_axis, product, reduced
from tenfold.dtypes import FLOAT64, compute_dtype, kind_of, real_part
from tenfold.errors import MatrixError, ShapeError
from tenfold.ops import arithmetic, diagonal_tril_triu, reduce, svd_eig
from tenfold.ops.batch_rules import Members
from tenfold.ops.complex import abs2
from tenfold.ops.elementary import sqrt
from tenfold.ops.linalg import (
    NOT_FINITE,
    computation_dtype,
    inv,
    matrices,
    matrix_operation,
    square,
)
from tenfold.ops.movement import expand_dims, moveaxis, permute_dims, squeeze
from tenfold.ops.reduce import sum  # noqa: A004  # its public name
from tenfold.ops.reshaping import reshape
from tenfold.ops.selection import where

Order = float | Literal["fro", "nuc"] | None
"""The order of a norm."""


@derived(
    numpy=(np.trace,),
    samples=[
        SampleCall(((3, 3),)),
        SampleCall(((2, 3, 4),)),
        SampleCall(((2, 3, 4),), {"axis1": -1, "axis2": 0}),
        SampleCall(((0, 3),)),
        SampleCall(((3, 4),), {"offset": 1}),
        SampleCall(((3, 4),), {"offset": -5}),
        SampleCall(((2, 2),), {"dtype": "float32"}),
    ],
)
def trace(x: Array, /, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Array:
    """Sum along the diagonal of the matrices that `axis1` and `axis2` span; these axes are gone.

    `offset` names the diagonal: above the main one for positive, below it for negative. The result
    has `dtype`, or as `sum` int64 or uint64 for integers; halves are accumulated in float32. For
    matrices in the last two axes there is `linalg.trace`. Raises ShapeError for fewer than two
    axes.

    >>> import tenfold as tn
    >>> tn.trace(tn.asarray([[1, 2], [3, 4]])).item()
    5
    """
    return sum(diagonal_tril_triu.diagonal(x, offset, axis1, axis2), axis=-1, dtype=dtype)


@derived(
    name="trace",
    namespace="linalg",
    numpy=(np.linalg.trace,),
    samples=[SampleCall(((2, 3, 4),)), SampleCall(((3, 4),), {"offset": -1})],
)
def matrix_trace(x: Array, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """Sum along the diagonals of matrices, the last two axes: (..., m, n) to (...); see `tn.trace`.

    >>> import tenfold as tn
    >>> tn.linalg.trace(tn.asarray([[[1, 2], [3, 4]]])).tolist()
    [5]
    """
    return trace(x, offset, -2, -1, dtype)


def _norm_rule(
    types: tuple[Type, ...], order: Order, axes: tuple[int, ...], keepdims: bool, flat: bool
) -> Inferred:
    (type_,) = types
    dtype = type_.dtype if kind_of(type_.dtype) in "fc" else FLOAT64
    _refuse_empty_norm(type_.shape, order, axes)
    shape = reduced(type_.shape, axes, keepdims)
    return Inferred(((shape, real_part(dtype)),), (compute_dtype(dtype),))


def _refuse_empty_norm(shape: Shape, order: Order, axes: tuple[int, ...]) -> None:
    """The smallest of no numbers does not exist."""
    smallest = order == -np.inf or (len(axes) == 2 and order in (-1, -2))
    if smallest and 0 in (shape[axis] for axis in axes):
        raise ShapeError(
            "",
            f"axes {axes} of shape {shape} are empty and order {order} has no answer there",
            remedy="test x.size first",
        )


def _norm_reference(
    x: np.ndarray, order: Order, axes: tuple[int, ...], keepdims: bool, flat: bool
) -> np.ndarray:
    axis = None if flat else axes if len(axes) == 2 else axes[0]
    return np.asarray(np.linalg.norm(x, order, axis, keepdims))


def _norm_order(order: Any, axes: tuple[int, ...]) -> Order:
    """Return `ord` in canonical form, or raise ShapeError when norms of so many axes lack it."""
    if order is None or (len(axes) == 2 and order in ("fro", "nuc")):
        return cast(Order, order)
    if isinstance(order, (bool, str)) or not isinstance(order, (int, float, np.number)):
        valid = False
    else:
        valid = len(axes) == 1 or order in (1, -1, 2, -2, np.inf, -np.inf)
    if not valid:
        remedy = (
            "a number or None" if len(axes) == 1 else "'fro', 'nuc', 1, -1, 2, -2, inf, -inf, None"
        )
        operand_kind = "vectors" if len(axes) == 1 else "matrices"
        raise ShapeError(
            "", f"{operand_kind} have no norm of order {order!r}", remedy=f"give {remedy}"
        )
    return float(order)


def _norm_members(
    members: Members, order: Order, axes: tuple[int, ...], keepdims: bool, flat: bool
) -> Array:
    (x,) = members.operands
    if not flat:
        result: Array = members.call((x,), (order, tuple(a + 1 for a in axes), keepdims, False))
        return result
    rows = reshape(x, (members.length, product(members.shape(0))))
    lengths = members.call((rows,), (order, (1,), False, False))
    return reshape(lengths, (members.length, *(1,) * (len(axes) if keepdims else 0)))


def _norm_by_elements(
    x: Array, order: Order, axes: tuple[int, ...], keepdims: bool, flat: bool
) -> Array:
    """Return the norm made of sums and extremes, with the derivative 0 at the origin."""
    if len(axes) == 2 and order in (2, -2, "nuc"):
        values = svd_eig.svdvals(moveaxis(x, axes, (-2, -1)))
        extreme = reduce.max if order == 2 else reduce.min
        result = (reduce.sum if order == "nuc" else extreme)(values, axis=-1)
        return expand_dims(result, axes) if keepdims else result
    if order in (None, "fro") or (order == 2 and len(axes) == 1):
        return _rooted(reduce.sum(abs2(x), axis=axes, keepdims=keepdims), 0.5)
    assert isinstance(order, float), "a number"
    sizes, extreme = arithmetic.abs(x), reduce.max if order > 0 else reduce.min
    if len(axes) == 2:
        lines = reduce.sum(sizes, axis=axes[order in (np.inf, -np.inf)], keepdims=True)
        result = extreme(lines, axis=axes, keepdims=True)
        return result if keepdims else squeeze(result, axes)
    if order in (np.inf, -np.inf):
        return extreme(sizes, axis=axes, keepdims=keepdims)
    if order in (0, 1):
        counted = sizes if order else arithmetic.sign(sizes)
        return reduce.sum(counted, axis=axes, keepdims=keepdims)
    return _rooted(reduce.sum(sizes**order, axis=axes, keepdims=keepdims), 1 / order)


def _rooted(x: Array, exponent: float) -> Array:
    """Return a power of sums that are not negative; the derivative at 0 is 0."""
    positive = where(x == 0, 1, x)
    return where(x == 0, 0, sqrt(positive) if exponent == 0.5 else positive**exponent)


def _norm_again(x: Array, order: Any, axes: Axis, keepdims: bool, flat: bool) -> BoundCall:
    return norm.signature.bind(x, order, None if flat else axes, keepdims)


@operation(
    bind_depends_on="types",
    rebind=_norm_again,
    rule=_norm_rule,
    reference=_norm_reference,
    can_fail=True,
    namespace="linalg",
    numpy=(np.linalg.norm,),
    batch=_norm_members,
    samples=[
        SampleCall(((2, 3, 4),)),
        SampleCall(((5,),), {"ord": 1}),
        SampleCall(((2, 3),), {"axis": 0, "ord": np.inf}),
        SampleCall(((2, 3),), {"ord": "nuc"}),
        SampleCall(((2, 3, 4),), {"axis": (0, 2), "ord": 2, "keepdims": True}),
        SampleCall(((0, 3),), {"axis": 0}),
    ],
    expression=_norm_by_elements,
)
def norm(
    x: Array,
    /,
    ord: Any = None,  # the name in NumPy and in the standard
    axis: Axis = None,
    keepdims: bool = False,
) -> BoundCall:
    """Norm of vectors (one `axis`) or matrices (two); of all elements when `axis` is None.

    `ord` of a vector is a number p (inf: the largest modulus, 0: how many are not 0) and 2 when
    None; of a matrix 1, -1, inf, -inf, 2, -2, "fro" (also None) or "nuc". Without `axis`, `ord`
    needs one or two axes. The result is real: float64 for integers; halves are computed in float32
    and rounded once. Raises ShapeError for an order or axes that do not exist, and LinAlgError at
    the wait where singular values do not converge.

    >>> import tenfold as tn
    >>> tn.linalg.norm(tn.asarray([3.0, 4.0])).item()
    5.0
    """
    x = array(x)
    if axis is None and ord is None:
        return BoundCall((x,), (None, tuple(range(x.ndim)), bool(keepdims), True))
    if axis is None:
        axes = tuple(range(x.ndim))
    else:
        axis_tuple = axis if isinstance(axis, (tuple, list)) else (axis,)
        axes = tuple(normalize_axis(item, x.ndim) for item in axis_tuple)
    if len(axes) not in (1, 2) or len(set(axes)) < len(axes):
        rule = f"{len(axes)} axes {axes} are neither a vector nor a matrix"
        raise ShapeError("", rule, remedy="name one axis, or two different ones")
    return BoundCall((x,), (_norm_order(ord, axes), axes, bool(keepdims), False))


@derived(
    namespace="linalg",
    numpy=(np.linalg.vector_norm,),
    samples=[
        SampleCall(((2, 3, 4),)),
        SampleCall(((2, 3, 4),), {"axis": (0, 2), "ord": 1}),
        SampleCall(((2, 3, 4),), {"axis": (0, 2), "keepdims": True}),
        SampleCall(((0, 3),), {"axis": 0}),
    ],
)
def vector_norm(x: Array, /, *, axis: Axis = None, keepdims: bool = False, ord: Any = 2) -> Array:
    """Norm of vectors, whose elements are along `axis`: one, several together, or all when None.

    `ord` is a number p: the p-th root of the sum of the p-th powers of the moduli; inf the largest
    modulus, -inf the smallest, 0 how many are not 0. The result is real: float64 for integers;
    halves are computed in float32 and rounded once. Raises ShapeError for another order and axes
    that do not exist, and of no elements for -inf. Golub and Van Loan 2013, 2.2.1.

    >>> import tenfold as tn
    >>> tn.linalg.vector_norm(tn.asarray([[3.0, 4.0], [6.0, 8.0]]), axis=1).tolist()
    [5.0, 10.0]
    """
    x = array(x)
    axes = normalize_axes(axis, x.ndim)
    if len(axes) == 1:
        return norm(x, ord=ord, axis=axes[0], keepdims=keepdims)
    remaining_axes = tuple(a for a in range(x.ndim) if a not in axes)
    vectors = permute_dims(x, (*remaining_axes, *axes))
    lengths = tuple(x.shape[a] for a in remaining_axes)
    vectors = reshape(vectors, (*lengths, product(tuple(x.shape[a] for a in axes))))
    result = norm(vectors, ord=ord, axis=-1)
    return reshape(result, reduced(x.shape, axes, keepdims=True)) if keepdims else result


@derived(
    namespace="linalg",
    numpy=(np.linalg.matrix_norm,),
    samples=[
        SampleCall(((2, 3, 4),)),
        SampleCall(((3, 4),), {"ord": "nuc", "keepdims": True}),
        SampleCall(((2, 3, 4),), {"ord": -1}),
    ],
)
def matrix_norm(x: Array, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """Norm of matrices, the last two axes: (..., m, n) to (...).

    `ord` is "fro", the root of the sum of the squared moduli; "nuc", the sum of the singular
    values; 2 or -2, the largest or smallest of them; 1 or -1, the largest or smallest sum of moduli
    of a column; inf or -inf, of a row. The result is real: float64 for integers; halves are
    computed in float32 and rounded once. Raises ShapeError for another order and fewer than two
    axes, and LinAlgError at the wait where singular values do not converge. Golub and Van Loan
    2013, 2.3.1.

    >>> import tenfold as tn
    >>> tn.linalg.matrix_norm(tn.asarray([[1.0, -2.0], [3.0, 4.0]]), ord=1).item()
    6.0
    """
    x = array(x)
    if x.ndim < 2:
        raise MatrixError("", f"shape {x.shape} is not a matrix", remedy="give at least two axes")
    return norm(x, ord=ord, axis=(-2, -1), keepdims=keepdims)


def _cond_rule(types: tuple[Type, ...], order: Any) -> Inferred:
    stack, rows, columns = matrices(types[0].shape)
    dtype = computation_dtype(types)
    if not rows or not columns:
        text = f"matrices of {rows} x {columns} have no condition"
        raise ShapeError("", text, remedy="give matrices with elements")
    if order not in (None, 2.0, -2.0):
        square(types[0].shape)
    return Inferred(((stack, real_part(dtype)),), (dtype,))


def _cond_reference(x: np.ndarray, order: Any) -> np.ndarray:
    return np.asarray(np.linalg.cond(x, order))


def _cond_by_norms(x: Array, order: Any) -> Array:
    """Return the condition made of singular values, or of the norms of a matrix and its inverse."""
    if order in (None, 2, -2):
        values = svd_eig.svdvals(x)
        largest, smallest = values[..., 0], values[..., -1]
        return smallest / largest if order == -2 else largest / smallest
    return matrix_norm(x, ord=order) * matrix_norm(inv(x), ord=order)


ORDERS = (None, 1, -1, 2, -2, np.inf, -np.inf, "fro", "nuc")


@matrix_operation(
    rule=_cond_rule,
    reference=_cond_reference,
    can_fail=True,
    remedy=NOT_FINITE,
    multiply_adds=lambda types, _: svd_eig.svdvals_multiply_adds(types),
    numpy=(np.linalg.cond,),
    samples=[SampleCall(((3, 2),)), SampleCall(((2, 3, 3),)), SampleCall(((3, 3),), {"p": 1})],
    expression=_cond_by_norms,
)
def cond(x: Array, /, p: Any = None) -> BoundCall:
    """Condition of matrices: (..., m, n) to (...), real; infinite for singular ones.

    With `p` None or 2 the largest singular value over the smallest, with -2 the inverse of that,
    else norm(x, p) * norm(inv(x), p) of square matrices, for 1, -1, inf, -inf, "fro" and "nuc".
    Raises ShapeError for another order, for matrices that are not square or have no elements,
    DTypeError for halves, and LinAlgError at the wait where singular values do not converge.
    Golub and Van Loan 2013, 2.6.2.

    >>> import tenfold as tn
    >>> tn.linalg.cond(tn.asarray([[4.0, 0.0], [0.0, 2.0]])).item()
    2.0
    """
    if isinstance(p, bool) or p not in ORDERS:
        raise ShapeError(
            "", f"matrices have no norm of order {p!r}", remedy=f"give one of {ORDERS}"
        )
    return BoundCall((array(x),), (float(p) if isinstance(p, (int, float)) else p,))
