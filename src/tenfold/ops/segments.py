"""Ragged reductions and repeats: rows between offsets, the form of compressed sparse rows (CSR).

Row r of `offsets`, (m + 1,), has the entries offsets[r] to offsets[r + 1] - 1 of `values`,
(nnz, ...). Offsets do not descend, begin with 0 and end with nnz: the caller tests that. Kernels
clamp them: with other offsets they give other numbers, and read nothing outside. The entries of a
row are folded one after the other, beginning with the identity.

>>> import tenfold as tn
>>> offsets = tn.asarray([0, 2, 2, 3])
>>> ragged_sum(tn.asarray([1.0, 2.0, 4.0]), offsets).tolist()
[3.0, 0.0, 4.0]
>>> ragged_repeat(tn.asarray([5, 6, 7]), offsets, 3).tolist()
[5, 5, 7]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold._native import Array, Type
from tenfold.core.canonical_reduction import accumulation_dtypes
from tenfold.core.op import BoundCall, Inferred, SampleCall
from tenfold.core.op_decorators import operation, refuse_unordered
from tenfold.core.shape_rules import normalize_count
from tenfold.dtypes import INT64, compute_dtype
from tenfold.errors import ShapeError
from tenfold.ops.arange import arange
from tenfold.ops.batch_rules import Members
from tenfold.ops.cast import astype, convert
from tenfold.ops.complex import conj
from tenfold.ops.joining import concat
from tenfold.ops.reshaping import reshape
from tenfold.ops.segment_reductions import (
    by_segment,
    extreme_by_segment,
    highest,
    lowest,
    products_of_others,
)
from tenfold.ops.segment_sum import require_integers
from tenfold.ops.selection import where

_SAMPLES = (
    SampleCall(((5,),), positional=(np.asarray([0, 2, 2, 5]),)),
    SampleCall(((4, 3),), positional=(np.asarray([0, 3, 4], np.int32),)),
    SampleCall(((1, 2),), positional=(np.asarray([0, 0, 1], np.uint8),)),
    SampleCall(((0,),), positional=(np.asarray([0, 0, 0], np.int8),)),
)


def _check_offsets(x: Type, offsets: Type) -> None:
    """Raise DTypeError or ShapeError unless `offsets`, (m + 1,), may divide the rows of `x`."""
    require_integers(offsets, "offsets")
    if len(offsets.shape) != 1 or not offsets.shape[0] or not x.shape:
        raise ShapeError(
            "",
            f"offsets of shape {offsets.shape} do not divide rows of shape {x.shape}",
            remedy="give m + 1 offsets for m rows",
        )


def _rows_of_shape(x: Type, offsets: Type) -> tuple[int, ...]:
    """The shape of one row for each segment of the entries `x`."""
    _check_offsets(x, offsets)
    return (offsets.shape[0] - 1, *x.shape[1:])


def _sum_rule(types: tuple[Type, ...]) -> Inferred:
    x, offsets = types
    operand, result = accumulation_dtypes(x, None)
    return Inferred(((_rows_of_shape(x, offsets), result),), (operand, offsets.dtype))


def _extreme_rule(types: tuple[Type, ...]) -> Inferred:
    x, offsets = types
    refuse_unordered([x])
    return Inferred(((_rows_of_shape(x, offsets), x.dtype),), (x.dtype, offsets.dtype))


def _row_numbers(offsets: np.ndarray) -> np.ndarray:
    """Return the row of each entry."""
    signed: np.ndarray = offsets.astype(np.int64)
    lengths = signed[1:] - signed[:-1]
    return np.repeat(np.arange(len(lengths)), lengths)


def _by_row(by_segment: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Return the reference of a reduction, from that of segments with numbers."""
    return lambda x, offsets: by_segment(x, _row_numbers(offsets), len(offsets) - 1)


def _joined_offsets(members: Members, entries: int) -> Array:
    """Return the offsets of the rows of all members, of which each has `entries` entries."""
    offsets = astype(members.in_front(1), INT64)
    starts = offsets[:, :-1] + members.numbers(1) * entries
    rows = reshape(starts, (starts.shape[0] * starts.shape[1],))
    return concat([rows, offsets[-1:, -1] + (members.length - 1) * entries])


def _reduced_members(members: Members) -> Array:
    """Batch rule: the rows of all members, one behind the other."""
    x, row_count = members.in_front(0), members.shape(1)[0] - 1
    entries = x.shape[1]
    values = reshape(x, (members.length * entries, *x.shape[2:]))
    result = members.call((values, _joined_offsets(members, entries)))
    return reshape(result, (members.length, row_count, *x.shape[2:]))


def _repeated_back(g: Array, y: Array, x: Array, offsets: Array) -> tuple[Array, None]:
    return ragged_repeat(g, offsets, x.shape[0]), None


def _shares_of_rows(g: Array, y: Array, x: Array, offsets: Array) -> tuple[Array, None]:
    """The entries that are the extreme of their row share its cotangent in equal parts."""
    wins = (x == ragged_repeat(y, offsets, x.shape[0])) | (x != x)
    share = g / ragged_sum(astype(wins, g.dtype), offsets)
    return where(wins, ragged_repeat(share, offsets, x.shape[0]), 0), None


def _ragged_prod_back(g: Array, y: Array, x: Array, offsets: Array) -> tuple[Array, None]:
    count = x.shape[0]
    numbers = ragged_repeat(arange(y.shape[0], device=x.device), offsets, count)
    others = products_of_others(conj(convert(x, compute_dtype(y.dtype))), numbers)
    return ragged_repeat(g, offsets, count) * others, None


_REDUCTION: dict[str, Any] = {
    "batch": _reduced_members,
    "samples": _SAMPLES,
    "public": False,
    "portable": True,
}


@operation(
    rule=_sum_rule,
    reference=_by_row(by_segment(np.add, lambda _: 0)),
    segments="add",
    **_REDUCTION,
    vjp=_repeated_back,
)
def ragged_sum(values: Array, offsets: Array, /) -> BoundCall:
    """Sum the rows of `values`, (nnz, ...), between `offsets`, (m + 1,) integers.

    The result is (m, ...): row r is 0 plus the entries offsets[r] to offsets[r + 1] - 1, in order.
    Dtypes are those of `tn.sum`. So `ragged_sum(data * x[indices], indptr)` has the bits of SciPy's
    product of a CSR array and `x`.

    Raises ShapeError for shapes that do not fit, DTypeError unless the offsets are integers.

    >>> import tenfold as tn
    >>> ragged_sum(tn.asarray([1, 2, 3]), tn.asarray([0, 2, 3])).tolist()
    [3, 3]
    """
    return BoundCall((values, offsets))


@operation(
    rule=_sum_rule,
    reference=_by_row(by_segment(np.multiply, lambda _: 1)),
    segments="product",
    **_REDUCTION,
    vjp=_ragged_prod_back,
)
def ragged_prod(values: Array, offsets: Array, /) -> BoundCall:
    """Multiply the rows of `values`, (nnz, ...), between `offsets`, (m + 1,) integers.

    The result is (m, ...): 1 times the entries of a row, in order. Dtypes and errors are those of
    `ragged_sum`.
    """
    return BoundCall((values, offsets))


@operation(
    rule=_extreme_rule,
    reference=_by_row(extreme_by_segment(np.maximum, lowest, negative_wins=False)),
    segments="largest",
    **_REDUCTION,
    vjp=_shares_of_rows,
)
def ragged_max(values: Array, offsets: Array, /) -> BoundCall:
    """Return the largest of the rows of `values`, (nnz, ...), between `offsets`, (m + 1,) integers.

    The result is (m, ...), of the dtype of `values`. A row without entries has the lowest value,
    -inf or that of the integers; NaN propagates. Raises as `ragged_sum`, and DTypeError for complex
    values.
    """
    return BoundCall((values, offsets))


@operation(
    rule=_extreme_rule,
    reference=_by_row(extreme_by_segment(np.minimum, highest, negative_wins=True)),
    segments="smallest",
    **_REDUCTION,
    vjp=_shares_of_rows,
)
def ragged_min(values: Array, offsets: Array, /) -> BoundCall:
    """Return the smallest of the rows of `values`, (nnz, ...), between `offsets`.

    Shapes, dtypes and errors are those of `ragged_max`; a row without entries has the highest
    value.
    """
    return BoundCall((values, offsets))


def _repeat_rule(types: tuple[Type, ...], nnz: int) -> Inferred:
    rows, offsets = types
    _check_offsets(rows, offsets)
    if rows.shape[0] != offsets.shape[0] - 1:
        raise ShapeError(
            "",
            f"{offsets.shape[0]} offsets do not divide the entries of {rows.shape[0]} rows",
            remedy="give m + 1 offsets for m rows",
        )
    return Inferred((((nnz, *rows.shape[1:]), rows.dtype),), (rows.dtype, offsets.dtype))


def _repeat_reference(rows: np.ndarray, offsets: np.ndarray, nnz: int) -> np.ndarray:
    repeated: np.ndarray = rows[_row_numbers(offsets)]
    return repeated


def _repeated_members(members: Members, nnz: int) -> Array:
    x = members.in_front(0)
    rows = reshape(x, (members.length * x.shape[1], *x.shape[2:]))
    total = members.length * nnz
    repeated = members.call((rows, _joined_offsets(members, nnz)), (total,))
    return reshape(repeated, (members.length, nnz, *x.shape[2:]))


@operation(
    rule=_repeat_rule,
    reference=_repeat_reference,
    segments="repeat",
    batch=_repeated_members,
    samples=[
        SampleCall(((3,),), positional=(np.asarray([0, 2, 2, 5]), 5)),
        SampleCall(((2, 3),), positional=(np.asarray([0, 3, 4], np.int32), 4)),
        SampleCall(((2,),), positional=(np.asarray([0, 0, 0], np.int8), 0)),
    ],
    public=False,
    portable=True,
    vjp=lambda g, y, rows, offsets, nnz: (ragged_sum(g, offsets), None),
)
def ragged_repeat(rows: Array, offsets: Array, /, nnz: int) -> BoundCall:
    """Return for each of `nnz` entries the row of `rows`, (m, ...), between whose `offsets` it is.

    The result is (nnz, ...), of the dtype of `rows`: np.repeat(rows, np.diff(offsets), axis=0).
    Raises as `ragged_sum`.
    """
    return BoundCall((rows, offsets), (normalize_count(nnz, "nnz"),))


__all__ = ["ragged_max", "ragged_min", "ragged_prod", "ragged_repeat", "ragged_sum"]
