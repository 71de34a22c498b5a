"""Diagonals and triangles (`diagonal`, `tril`, `triu`): of matrices (..., m, n); a diagonal is a
view.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from operator import ge, le
from typing import Any

import numpy as np

from tenfold._native import Array
from tenfold.core.gather_rules import GatherSource, ResultIndex, in_bounds
from tenfold.core.index_map import IndexMap
from tenfold.core.op import BoundCall, Op, P, SampleCall
from tenfold.core.op_decorators import array, as_stack, derived, movement
from tenfold.core.scalar_ir import Body, Operand
from tenfold.core.shape_rules import Shape, normalize_axis
from tenfold.core.structure import Structure
from tenfold.errors import IntegerError, ShapeError

MAIN = (0, 0, 1)
"""The parameters of the main diagonal of one matrix. Compare by identity: 0.0 == 0, but only an
int is an offset."""


def _as_offset(value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise IntegerError(
            "",
            f"diagonal {value!r} is not an int",
            remedy="give an int, as in 1 for the one above the main one",
        ) from None


def _diagonal_shape(shape: Shape, offset: int, axis1: int, axis2: int) -> Shape:
    rows, columns = shape[axis1], shape[axis2]
    length = min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns)
    remaining = tuple(n for axis, n in enumerate(shape) if axis not in (axis1, axis2))
    return (*remaining, max(length, 0))


def _diagonal_map(shape: Shape, offset: int, axis1: int, axis2: int) -> IndexMap:
    remaining_axes = iter(range(len(shape) - 2))
    diagonal_axis = len(shape) - 2
    starts = {axis1: max(-offset, 0), axis2: max(offset, 0)}
    return tuple(
        (diagonal_axis, 1, starts[axis]) if axis in starts else (next(remaining_axes), 1, 0)
        for axis in range(len(shape))
    )


@movement(
    shape=_diagonal_shape,
    view=True,
    index_map=_diagonal_map,
    numpy=(np.diagonal,),
    batch_params=lambda _, offset, first, second: (offset, first + 1, second + 1),
    samples=[
        SampleCall(((3, 4),)),
        SampleCall(((3, 4),), {"offset": -1}),
        SampleCall(((2, 3, 4),), {"offset": 1, "axis1": 2, "axis2": 0}),
        SampleCall(((3, 4),), {"offset": 9}),
        SampleCall(((0, 4),)),
    ],
)
def diagonal(x: Array, /, offset: int = 0, axis1: int = 0, axis2: int = 1) -> BoundCall:
    """Return the view of the elements whose index on `axis2` is that on `axis1` plus `offset`; the
    two axes are gone, that of the diagonal is the last.

    >>> import tenfold as tn
    >>> tn.diagonal(tn.asarray([[1, 2], [3, 4]])).tolist()
    [1, 4]
    """
    x = array(x)
    ndim = x.ndim
    if ndim == 2 and offset is MAIN[0] and axis1 is MAIN[1] and axis2 is MAIN[2]:
        return BoundCall((x,), MAIN)  # nothing to normalise: half the time of a call
    if ndim < 2:
        raise ShapeError("", f"an array of {ndim} axes has no diagonal", remedy="use two at least")
    first, second = normalize_axis(axis1, ndim), normalize_axis(axis2, ndim)
    if first == second:
        raise ShapeError("", f"axes {axis1} and {axis2} are the same", remedy="name two")
    # Beyond the corners every diagonal is empty, and NumPy counts in 32 bits.
    clamped = max(-x.shape[first], min(_as_offset(offset), x.shape[second]))
    return BoundCall((x,), (clamped, first, second))


def _diag_embed_shape(shape: Shape, offset: int) -> Shape:
    return (*shape[:-1], shape[-1] + abs(offset), shape[-1] + abs(offset))


def _diag_embed_reference(x: np.ndarray, offset: int) -> np.ndarray:
    result = np.zeros(_diag_embed_shape(x.shape, offset), x.dtype)
    positions = np.arange(x.shape[-1])
    result[..., positions + max(-offset, 0), positions + max(offset, 0)] = x
    return result


def _diag_embed_element(k: Body, at: ResultIndex, x: GatherSource, offset: int) -> Operand:
    row, column = at.axes[-2:]
    position = row - at.number(max(-offset, 0))
    on_diagonal = (column - row == at.number(offset)) & in_bounds(at, position, x.shape[-1])
    return x.at((*at.axes[:-2], position), on_diagonal)


@movement(
    shape=_diag_embed_shape,
    reference=_diag_embed_reference,
    element_at=_diag_embed_element,
    makes=lambda offset: (Structure.GENERAL if offset else Structure.DIAGONAL,),
    batch_params=as_stack,
    samples=[
        SampleCall(((3,),)),
        SampleCall(((2, 3),), {"offset": -2}),
        SampleCall(((0,),), {"offset": 1}),
    ],
    vjp=lambda g, y, x, offset: (diagonal(g, offset, -2, -1),),
)
def diag_embed(x: Array, /, *, offset: int = 0) -> BoundCall:
    """Return square matrices (..., n + |offset|, n + |offset|) with the vectors (..., n) of `x` on
    the diagonal `offset` (above the main one if positive) and 0 elsewhere.

    >>> import tenfold as tn
    >>> tn.diag_embed(tn.asarray([1, 2]), offset=1).tolist()
    [[0, 1, 0], [0, 0, 2], [0, 0, 0]]
    """
    x = array(x)
    if x.ndim == 0:
        raise ShapeError("", "an array without axes is not a vector", remedy="reshape it to (1,)")
    return BoundCall((x,), (_as_offset(offset),))


@derived(
    numpy=(np.diag,),
    samples=[SampleCall(((3,),), positional=(1,)), SampleCall(((3, 4),), positional=(-1,))],
)
def diag(x: Array, /, k: int = 0) -> Array:
    """Return the matrix with the vector `x` on its k-th diagonal, or of a matrix `x` the k-th
    diagonal, a view. Diagonals above the main one have k > 0. Raises ShapeError for other arrays.

    >>> import tenfold as tn
    >>> tn.diag(tn.asarray([1, 2])).tolist()
    [[1, 0], [0, 2]]
    """
    x = array(x)
    if x.ndim not in (1, 2):
        raise ShapeError(
            "",
            f"an array of {x.ndim} axes is not a vector or a matrix",
            remedy="use tn.diagonal or tn.diag_embed for many of them",
        )
    return diagonal(x, k) if x.ndim == 2 else diag_embed(x, offset=k)


def _unchanged_shape(shape: Shape, k: int) -> Shape:
    return shape


def _bind_triangle(x: Any, k: Any) -> BoundCall:
    x, offset = array(x), _as_offset(k)
    if x.ndim < 2:
        raise ShapeError(
            "", f"an array of {x.ndim} axes is not a matrix", remedy="use two at least"
        )
    rows, columns = x.shape[-2:]
    return BoundCall((x,), (max(-rows - 1, min(offset, columns + 1)),))


TRIANGLE_SAMPLES = [
    SampleCall(((3, 4),)),
    SampleCall(((2, 3, 3),), {"k": -1}),
    SampleCall(((2, 4),), {"k": 9}),
    SampleCall(((0, 3),), {"k": 1}),
]


def _zeros_of(_: object, structures: Sequence[Structure], _offset: int) -> Structure:
    return structures[0] & Structure.DIAGONAL


def _triangle(
    numpy: Callable[..., Any],
    compare: Callable[[Any, Any], Any],
    structure: Structure,
    vjp: Callable[..., tuple[Array]],
) -> Callable[[Callable[P, BoundCall]], Op[P]]:
    """Declare a triangle: `compare(column - row, k)` says which elements are in it."""

    def element_at(k: Body, at: ResultIndex, x: GatherSource, offset: int) -> Operand:
        row, column = at.axes[-2:]
        return x.at(at, compare(column - row, at.number(offset)))

    return movement(
        shape=_unchanged_shape,
        element_at=element_at,
        structure=_zeros_of,
        makes=lambda k: (structure if compare(k, 0) else Structure.GENERAL,),
        numpy=(numpy,),
        samples=TRIANGLE_SAMPLES,
        batch_params=as_stack,
        section="creation",
        vjp=vjp,
    )


@_triangle(
    np.tril,
    le,
    Structure.LOWER,
    lambda g, y, x, k: (tril(g, k),),  # type: ignore[has-type]  # below
)
def tril(x: Array, /, k: int = 0) -> BoundCall:
    """Return the matrices (..., m, n) of `x` with 0 above the k-th diagonal: their lower triangles.

    >>> import tenfold as tn
    >>> tn.tril(tn.asarray([[1, 2], [3, 4]])).tolist()
    [[1, 0], [3, 4]]
    """
    return _bind_triangle(x, k)


@_triangle(
    np.triu,
    ge,
    Structure.UPPER,
    lambda g, y, x, k: (triu(g, k),),  # type: ignore[has-type]  # below
)
def triu(x: Array, /, k: int = 0) -> BoundCall:
    """Return the matrices (..., m, n) of `x` with 0 below the k-th diagonal: their upper triangles.

    >>> import tenfold as tn
    >>> tn.triu(tn.asarray([[1, 2], [3, 4]])).tolist()
    [[1, 2], [0, 4]]
    """
    return _bind_triangle(x, k)
