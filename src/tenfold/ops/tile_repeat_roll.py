"""Tile, repeat and roll: repeated or rotated elements; lazy copies."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold import _native
from tenfold._native import Array
from tenfold.core.gather_rules import GatherSource, ResultBlock, ResultIndex
from tenfold.core.op import BoundCall, SampleCall
from tenfold.core.op_decorators import array, derived, movement, values
from tenfold.core.scalar_ir import Body, Operand
from tenfold.core.shape_rules import Axis, Shape, normalize_axes, normalize_axis, normalize_count
from tenfold.dtypes import FLOAT64, INT64, kind_of
from tenfold.errors import DTypeError, IntegerError, ShapeError
from tenfold.ops.gathering import gather, integers
from tenfold.ops.index_parsing import constant_array
from tenfold.ops.reshaping import broadcast_to, reshape

if TYPE_CHECKING:
    from tenfold.ops.batch_rules import Members


def _tile_shape(shape: Shape, counts: tuple[int, ...]) -> Shape:
    padded = (*(1,) * (len(counts) - len(shape)), *shape)
    return tuple(length * count for length, count in zip(padded, counts, strict=True))


MAX_TILE_BLOCKS = 8
"""The most blocks, one kernel each."""


def _tile_pieces(shapes: Sequence[Shape], counts: tuple[int, ...]) -> Any:
    (shape,) = shapes
    if math.prod(counts) > MAX_TILE_BLOCKS:
        return NotImplemented
    padded = (*(1,) * (len(counts) - len(shape)), *shape)
    reads = tuple((axis + len(counts) - len(shape), 1, 0) for axis in range(len(shape)))
    return [
        ResultBlock(tuple(map(operator.mul, position, padded)), padded, 0, reads)
        for position in itertools.product(*map(range, counts))
    ]


def _tiled(x: Array, counts: tuple[int, ...]) -> Array:
    shape = (*(1,) * (len(counts) - x.ndim), *x.shape)
    copies = [length for pair in zip(counts, shape, strict=True) for length in pair]
    rows = reshape(x, tuple(length for n in shape for length in (1, n)))
    return reshape(broadcast_to(rows, tuple(copies)), _tile_shape(x.shape, counts))


def _tile_members(members: Members, counts: tuple[int, ...]) -> Array:
    result: Array = members.call((members.aligned(0, len(counts)),), ((1, *counts),))
    return result


@movement(
    shape=_tile_shape,
    pieces=_tile_pieces,
    numpy=(np.tile,),
    batch=_tile_members,
    samples=[
        SampleCall(((2, 3),), positional=(2,)),
        SampleCall(((3,),), positional=((2, 2),)),
        SampleCall(((2, 3),), positional=((0, 1),)),
        SampleCall(((),), positional=((3,),)),
    ],
    expression=_tiled,
)
def tile(x: Array, repetitions: int | Sequence[int], /) -> BoundCall:
    """Return `x` set side by side with itself, as often on each axis as `repetitions` says, counted
    from the last axis; missing axes and missing counts are 1.

    >>> import tenfold as tn
    >>> tn.tile(tn.asarray([1, 2]), (2, 2)).tolist()
    [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    x = array(x)
    counts = tuple(_normalize_counts(repetitions))
    return BoundCall((x,), ((*(1,) * (x.ndim - len(counts)), *counts),))


def _normalize_counts(repetitions: int | Sequence[int]) -> list[int]:
    try:
        counts = [
            operator.index(n)
            for n in (repetitions if isinstance(repetitions, Sequence) else (repetitions,))
        ]
    except TypeError:
        raise ShapeError(
            "",
            f"repetitions {repetitions!r} are no ints",
            remedy="give an int, or one for each element",
        ) from None
    if any(count < 0 for count in counts):
        raise ShapeError("", f"repetitions {repetitions!r} are negative", remedy="use 0 or more")
    return counts


def _repeat_shape(shape: Shape, counts: Shape, axes: Shape) -> Shape:
    lengths = list(shape)
    for count, axis in zip(counts, axes, strict=True):
        lengths[axis] *= count
    return tuple(lengths)


def _repeat_reference(x: np.ndarray, counts: Shape, axes: Shape) -> np.ndarray:
    for count, axis in zip(counts, axes, strict=True):
        x = np.repeat(x, count, axis)
    return x


def _repeated(x: Array, counts: Shape, axes: Shape) -> Array:
    count_of_axis = dict(zip(axes, counts, strict=True))
    shape = [length for axis, n in enumerate(x.shape) for length in (n, count_of_axis.get(axis, 1))]
    rows = reshape(x, tuple(length for n in x.shape for length in (n, 1)))
    return reshape(broadcast_to(rows, tuple(shape)), _repeat_shape(x.shape, counts, axes))


def _repeat_element(
    k: Body, at: ResultIndex, x: GatherSource, counts: Shape, axes: Shape
) -> Operand:
    """The position by the count, rounded down.

    Half a position further on it is 1 / (2 * count) or more away from every integer, more than the
    roundings amount to, for memory holds no 2**50 elements.
    """
    index = at.axes
    for count, axis in zip(counts, axes, strict=True):
        reciprocal = 1.0 / k.convert(at.number(count), FLOAT64)
        position = k.convert((k.convert(at[axis], FLOAT64) + 0.5) * reciprocal, INT64)
        index = (*index[:axis], position, *index[axis + 1 :])
    return x.at(index)


def _repeat_again(x: Array, counts: Shape, axes: Shape) -> BoundCall:
    lengths = tuple([normalize_count(count, "repeats") for count in counts])
    if len(lengths) != len(axes):
        raise ShapeError("", f"{len(axes)} axes have {len(lengths)} counts", remedy="give one each")
    return BoundCall((x,), (lengths, normalize_axes(axes, x.ndim)))


@movement(
    shape=_repeat_shape,
    reference=_repeat_reference,
    element_at=_repeat_element,
    rebind=_repeat_again,
    portable=True,
    public=False,
    batch_params=lambda _, counts, axes: (counts, tuple(axis + 1 for axis in axes)),
    expression=_repeated,
)
def repeat_each(x: Array, /, counts: Shape, axes: Shape) -> BoundCall:
    """Return `x` with each position along each of `axes` repeated by a count of its own."""
    return BoundCall((x,), (counts, axes))


@derived(
    numpy=(np.repeat,),
    samples=[
        SampleCall(((2, 3),), positional=(2,)),
        SampleCall(((2, 3),), {"axis": 1}, (3,)),
        SampleCall(((2, 3),), {"axis": 0}, ([2, 0],)),
        SampleCall(((),), positional=(2,)),
    ],
)
def repeat(x: Array, repeats: int | Array, /, axis: int | None = None) -> Array:
    """Return `x` with each position along `axis` repeated, one after the other, `repeats` times: an
    int for all, or an array of counts, one for each position. For axis None `x` is flattened first.

    The shape depends on an array of counts, which is computed at the call. Raises ShapeError for a
    negative count and for counts that are not as many as the positions.

    >>> import tenfold as tn
    >>> tn.repeat(tn.asarray([1, 2]), 2).tolist()
    [1, 1, 2, 2]
    >>> tn.repeat(tn.asarray([1, 2]), tn.asarray([3, 0])).tolist()
    [1, 1, 1]
    """
    x = array(x)
    if axis is None:
        x = reshape(x, (-1,))
    repeated_axis = normalize_axis(0 if axis is None else axis, x.ndim)
    if isinstance(repeats, (int, np.integer)):
        (count,) = _normalize_counts(int(repeats))
        count = count if x.shape[repeated_axis] else 1  # of nothing NumPy takes any number
        return _native.apply(repeat_each.id, (x,), ((count,), (repeated_axis,)))
    positions = _repeated_positions(repeats, x.shape[repeated_axis], x)
    return _native.apply(gather.id, (x, positions), ((repeated_axis,), repeated_axis))


def _repeated_positions(repeats: Any, length: int, x: Array) -> Array:
    """Return the positions 0 to length - 1, each repeated."""
    counts = integers(repeats, x)
    if kind_of(counts.dtype) not in "iu":
        rule = f"repeats are integers, not {counts.dtype}"
        raise DTypeError("", rule, remedy="convert with tn.astype(n, tn.int64)")
    if counts.shape not in ((), (1,), (length,)):
        rule = f"repeats of shape {counts.shape} do not fit an axis of length {length}"
        raise ShapeError("", rule, remedy="give a count for each position, or one for all")
    count_values = values(counts, "repeat")
    if count_values.size and count_values.min() < 0:
        raise ShapeError("", f"repeats {count_values.min()} is negative", remedy="use 0 or more")
    return constant_array(x, np.repeat(np.arange(length), count_values))


def _roll_reference(
    x: np.ndarray, shifts: tuple[int, ...], axes: tuple[int, ...] | None
) -> np.ndarray:
    return np.roll(x, shifts[0] if axes is None else shifts, axes)


def _unchanged_shape(shape: Shape, shifts: tuple[int, ...], axes: tuple[int, ...] | None) -> Shape:
    return shape


def _roll_pieces(
    shapes: Sequence[Shape], shifts: tuple[int, ...], axes: tuple[int, ...] | None
) -> Any:
    """Two blocks along each rolled axis: the end of the input and the rest."""
    (shape,) = shapes
    if axes is None and len(shape) != 1:
        return NotImplemented  # one line of several axes
    shift_of_axis = dict(zip((0,) if axes is None else axes, shifts, strict=True))
    blocks = [_axis_blocks(length, shift_of_axis.get(axis, 0)) for axis, length in enumerate(shape)]
    if 2 ** len(shift_of_axis) > MAX_TILE_BLOCKS:
        return NotImplemented
    return [_roll_block(block) for block in itertools.product(*blocks)]


def _axis_blocks(length: int, shift: int) -> list[tuple[int, int, int]]:
    """Blocks of an axis: the start in the result, the length, the start in the input."""
    return [(shift, length - shift, 0), *([(0, shift, length - shift)] if shift else [])]


def _roll_block(blocks: Sequence[tuple[int, int, int]]) -> ResultBlock:
    """A block of the only input, from those of the axes."""
    start, shape = (tuple(block[i] for block in blocks) for i in (0, 1))
    reads = tuple((axis, 1, block[2]) for axis, block in enumerate(blocks))
    return ResultBlock(start, shape, 0, reads)


def _rolled_back(
    g: Array, y: Array, x: Array, shifts: tuple[int, ...], axes: tuple[int, ...] | None
) -> tuple[Array]:
    return (roll(g, tuple(-shift for shift in shifts), axes) if axes else roll(g, -sum(shifts)),)


def _roll_members(members: Members, shifts: tuple[int, ...], axes: tuple[int, ...] | None) -> Array:
    """Batch rule; without axes each member is flattened."""
    (x,) = members.operands
    if axes is not None:
        result: Array = members.call((x,), (shifts, tuple(axis + 1 for axis in axes)))
        return result
    rows = reshape(x, (members.length, math.prod(members.shape(0))))
    return reshape(members.call((rows,), (shifts, (1,))), x.shape)


@movement(
    shape=_unchanged_shape,
    reference=_roll_reference,
    pieces=_roll_pieces,
    numpy=(np.roll,),
    batch=_roll_members,
    samples=[
        SampleCall(((2, 3),), positional=(1,)),
        SampleCall(((2, 3),), {"axis": 1}, (-4,)),
        SampleCall(((2, 3),), {"axis": (0, 0, 1)}, ((1, 2, -1),)),
        SampleCall(((0, 3),), {"axis": 0}, (1,)),
        SampleCall(((),), positional=(2,)),
    ],
    vjp=_rolled_back,
)
def roll(x: Array, /, shift: int | tuple[int, ...], axis: Axis = None) -> BoundCall:
    """Return `x` with its elements moved on by `shift` positions along `axis`; those that go past
    the end come in at the beginning. A tuple of axes takes one shift for all or a tuple of them;
    for axis None `x` is read as one line.

    >>> import tenfold as tn
    >>> tn.roll(tn.asarray([1, 2, 3, 4]), 1).tolist()
    [4, 1, 2, 3]
    """
    x = array(x)
    try:
        shifts = [operator.index(n) for n in (shift if isinstance(shift, Sequence) else (shift,))]
    except TypeError:
        raise IntegerError(
            "", f"shift {shift!r} is not an int", remedy="give an int, or one for each axis"
        ) from None
    if axis is None:
        return BoundCall((x,), ((sum(shifts) % max(x.size, 1),), None))
    requested = axis if isinstance(axis, Sequence) else (axis,)
    axes = [normalize_axis(a, x.ndim) for a in requested]
    if 1 not in (len(shifts), len(axes)) and len(shifts) != len(axes):
        raise ShapeError(
            "", f"{len(shifts)} shifts do not fit {len(axes)} axes", remedy="give as many"
        )
    return BoundCall((x,), _canonical_shifts(x.shape, shifts, axes))


def _canonical_shifts(shape: Shape, shifts: list[int], axes: list[int]) -> tuple[Any, ...]:
    """The total shift of each axis, and the axes in rising order: canonical parameters."""
    totals: dict[int, int] = {}
    for position in range(max(len(shifts), len(axes)) if shifts and axes else 0):
        axis = axes[position % len(axes)]
        totals[axis] = totals.get(axis, 0) + shifts[position % len(shifts)]
    sorted_axes = tuple(sorted(totals))
    return tuple(totals[axis] % max(shape[axis], 1) for axis in sorted_axes), sorted_axes
