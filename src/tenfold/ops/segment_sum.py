"""Segment sum and scatter-add: sums rows by index, duplicates in row order.

The additions of one result are sequential, first row first, so the result depends on the indices
alone. Indices depend on values: one out of range is an IndexError at the wait.
"""

from __future__ import annotations

import numpy as np

from tenfold._native import Array, Type
from tenfold.core.canonical_reduction import accumulation_dtypes
from tenfold.core.op import BoundCall, Inferred, SampleCall
from tenfold.core.op_decorators import operation, refuse_dtype
from tenfold.core.scatter_rules import ScatterRule
from tenfold.core.shape_rules import broadcast, normalize_count
from tenfold.dtypes import INT64, compute_dtype, kind_of, promote, same_kind
from tenfold.errors import DTypeError, ShapeError
from tenfold.ops.batch_rules import Members
from tenfold.ops.cast import astype
from tenfold.ops.reshaping import reshape
from tenfold.ops.selection import where


def refuse_out_of_bounds(indices: np.ndarray, start: int, stop: int, description: str) -> None:
    """Raise IndexError for the first index that is not from `start` to `stop` - 1."""
    if indices.size and not start <= indices.min() <= indices.max() < stop:
        is_outside = (indices < start) | (indices >= stop)
        position = np.unravel_index(int(np.argmax(is_outside)), indices.shape)
        at_text = ", ".join(str(int(i)) for i in position)
        raise IndexError(
            f"{description} {indices[position]} at [{at_text}] "
            f"is out of range {start} to {stop - 1}"
        )


def require_integers(type_: Type, description: str) -> None:
    """Raise DTypeError unless a Type is that of integers."""
    if kind_of(type_.dtype) not in "iu":
        raise refuse_dtype(
            f"{description} need integers", [type_], "convert with tn.astype(x, tn.int64)"
        )


def check_segments(x: Type, ids: Type) -> None:
    """Raise DTypeError or ShapeError unless `ids` are integers, one for each row of `x`."""
    require_integers(ids, "segment_ids")
    if len(ids.shape) != 1 or x.shape[:1] != ids.shape:
        raise ShapeError(
            "",
            f"segment_ids of shape {ids.shape} do not name the rows of shape {x.shape}",
            remedy="give one id for each index of the first axis",
        )


def segment_rule(types: tuple[Type, ...], num_segments: int) -> Inferred:
    """The rule of sums and products over segments: their dtype is that of `sum`."""
    x, ids = types
    check_segments(x, ids)
    operand, result = accumulation_dtypes(x, None)
    return Inferred((((num_segments, *x.shape[1:]), result),), (operand, ids.dtype))


def _segment_sum_reference(x: np.ndarray, ids: np.ndarray, num_segments: int) -> np.ndarray:
    refuse_out_of_bounds(ids, 0, num_segments, "segment id")
    sums = np.zeros((num_segments, *x.shape[1:]), x.dtype)
    np.add.at(sums, ids.astype(np.intp, copy=False), x)
    return sums


def _flat_indices(members: Members, at: int, start: int, stop: int) -> Array:
    """Return each member's row indices as indices into the rows of all members, concatenated.

    Indices are valid from `start` to `stop` - 1; negative ones count from the end. An invalid index
    stays invalid.
    """
    indices, count = astype(members.operands[at], INT64), members.length * stop
    out_of_range = (indices < start) | (indices >= stop)
    flat_indices = (
        where(indices < 0, indices + stop, indices) + members.numbers(members.ndim(at)) * stop
    )
    return where(out_of_range, where(indices < 0, indices - count, indices + count), flat_indices)


def segment_members(members: Members, num_segments: int) -> Array:
    """Batch rule: the segments of all members, concatenated."""
    x, total = members.in_front(0), members.length * num_segments
    rows = reshape(x, (members.length * x.shape[1], *x.shape[2:]))
    ids = reshape(_flat_indices(members, 1, 0, num_segments), (rows.shape[0],))
    sums = members.call((rows, ids), (total,))
    return reshape(sums, (members.length, num_segments, *x.shape[2:]))


@operation(
    rule=segment_rule,
    reference=_segment_sum_reference,
    scatter=ScatterRule(kind="add", value=0, indices=slice(1, 2), fill=lambda _: 0),
    can_fail=True,
    bind_depends_on="types",
    remedy="use ids from 0 to num_segments - 1, or give more segments",
    batch=segment_members,
    samples=[
        SampleCall(((4, 3),), positional=(np.asarray([0, 2, 0, 2]), 3)),
        SampleCall(((0,),), positional=(np.asarray([], np.int8), 2)),
    ],
)
def segment_sum(x: Array, segment_ids: Array, /, num_segments: int) -> BoundCall:
    """Sum the rows of `x`, (n, ...), that bear the same id of `segment_ids`, (n,) integers.

    The result is (num_segments, ...): row i is the sum of the rows with id i, in order, beginning
    with 0. Dtypes are those of `tn.sum`: integers in int64 or uint64, halves accumulate in float32.

    Raises ShapeError for shapes that do not fit, DTypeError unless the ids are integers, and
    IndexError at the wait for an id below 0 or not below `num_segments`.

    >>> import tenfold as tn
    >>> tn.segment_sum(tn.asarray([1, 2, 3, 4]), tn.asarray([0, 2, 0, 2]), 3).tolist()
    [4, 0, 6]
    """
    return BoundCall((x, segment_ids), (normalize_count(num_segments, "num_segments"),))


def _add_at_rule(types: tuple[Type, ...]) -> Inferred:
    x, indices, values = types
    require_integers(indices, "indices")
    if not x.shape:
        raise ShapeError("", "x of shape () has no axis to index", remedy="add to it with +")
    rows = (*indices.shape, *x.shape[1:])
    if broadcast(rows, values.shape) != rows:
        raise ShapeError(
            "",
            f"values of shape {values.shape} do not broadcast to the rows {rows}",
            remedy="give one value, or one for each row",
        )
    common = promote((x, values))
    if not same_kind(common, x.dtype):
        raise DTypeError(
            "",
            f"sums of {common} cannot stay in {x.dtype} (same-kind rule)",
            remedy="convert x or the values with tn.astype",
        )
    dtype = compute_dtype(x.dtype)
    return Inferred(((x.shape, x.dtype),), (dtype, indices.dtype, dtype))


def _add_at_reference(x: np.ndarray, indices: np.ndarray, values: np.ndarray) -> np.ndarray:
    length = len(x)
    refuse_out_of_bounds(indices, -length, length, "index")
    sums = x.copy()
    rows = np.broadcast_to(values, (*indices.shape, *x.shape[1:]))
    np.add.at(sums, indices.astype(np.intp, copy=False), rows)
    return sums


def _add_at_members(members: Members) -> Array:
    x = members.in_front(0)
    row_count = x.shape[1]
    rows = reshape(x, (members.length * row_count, *x.shape[2:]))
    values = members.aligned(2, members.ndim(1) + members.ndim(0) - 1)
    sums = members.call((rows, _flat_indices(members, 1, -row_count, row_count), values))
    return reshape(sums, x.shape)


@operation(
    rule=_add_at_rule,
    reference=_add_at_reference,
    scatter=ScatterRule(kind="add", value=2, indices=slice(1, 2), base=0, wraps=True),
    promotes=True,
    indices=(1,),
    can_fail=True,
    bind_depends_on="types",
    remedy="use indices from -n to n - 1 for n rows, as in tn.clip(indices, -n, n - 1)",
    batch=_add_at_members,
    samples=[
        SampleCall(((4, 3),), positional=(np.asarray([0, -1, 0]), np.asarray([True, False, True]))),
        SampleCall(((4,),), positional=(np.asarray([[0, 3], [3, 0]], np.uint8), np.asarray(True))),
    ],
)
def add_at(x: Array, indices: Array, values: Array, /) -> BoundCall:
    """Return `x` with `values` added to the rows `indices`; an index that occurs twice adds twice.

    `x` is (n, ...), `indices` any shape of integers from -n to n - 1, `values` a number or an array
    that broadcasts to indices.shape + x.shape[1:]. Rows are added in the order of the indices; the
    dtype is that of `x`, halves accumulate in float32. `x` itself does not change.

    Raises ShapeError for shapes that do not fit, DTypeError for values that `x` cannot hold,
    IndexError at the wait for an index out of range.

    >>> import tenfold as tn
    >>> tn.add_at(tn.zeros((3,)), tn.asarray([0, 2, 0]), tn.asarray([1.0, 2.0, 3.0])).tolist()
    [4.0, 0.0, 2.0]
    """
    return BoundCall((x, indices, values))
