"""Repetition and rotation: elements read more than once, or further on. Lazy; no views."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Array
from tenfold.dtypes import kind_of
from tenfold.errors import ShapeError
from tenfold.ir.declare import array, derived, movement, refuse_dtype, values
from tenfold.ir.op import Call, Sample
from tenfold.ir.shape import Axis, Shape, normalize_axis
from tenfold.ops.gathering import gather, integers
from tenfold.ops.reshaping import reshape
from tenfold.ops.keys import constant


def _tiled(shape: Shape, counts: tuple[int, ...]) -> Shape:
    padded = (*(1,) * (len(counts) - len(shape)), *shape)
    return tuple(length * count for length, count in zip(padded, counts, strict=True))


@movement(
    shape=_tiled,
    reference=np.tile,
    numpy=(np.tile,),
    samples=[
        Sample(((2, 3),), positional=(2,)),
        Sample(((3,),), positional=((2, 2),)),
        Sample(((2, 3),), positional=((0, 1),)),
        Sample(((),), positional=((3,),)),
    ],
)
def tile(x: Array, repetitions: int | Sequence[int], /) -> Call:
    """Return `x` set side by side with itself, as often on each axis as `repetitions` says, counted
    from the last axis; missing axes and missing counts are 1.

    >>> import tenfold as tn
    >>> tn.tile(tn.asarray([1, 2]), (2, 2)).tolist()
    [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    x = array(x)
    counts = tuple(_counts(repetitions))
    return Call((x,), ((*(1,) * (x.ndim - len(counts)), *counts),))


def _counts(given: int | Sequence[int]) -> list[int]:
    try:
        counts = [operator.index(n) for n in (given if isinstance(given, Sequence) else (given,))]
    except TypeError:
        raise ShapeError("", f"repetitions {given!r} are no ints") from None
    if any(count < 0 for count in counts):
        raise ShapeError("", f"repetitions {given!r} are negative", remedy="use 0 or more")
    return counts


def _lengthened(shape: Shape, count: int, axis: int) -> Shape:
    return (*shape[:axis], shape[axis] * count, *shape[axis + 1 :])


@movement(
    shape=_lengthened,
    reference=np.repeat,
    samples=[Sample(((2, 3),), positional=(2, 1)), Sample(((2, 3),), positional=(0, 0))],
)
def repeat_each(x: Array, count: int, axis: int, /) -> Call:
    """Return `x` with each position along `axis` repeated `count` times, one after the other.

    >>> import tenfold as tn
    >>> tn.repeat_each(tn.asarray([1, 2]), 3, 0).tolist()
    [1, 1, 1, 2, 2, 2]
    """
    x = array(x)
    (times,) = _counts(count)
    return Call((x,), (times, normalize_axis(axis, x.ndim)))


@derived(
    reference=np.repeat,
    numpy=(np.repeat,),
    samples=[
        Sample(((2, 3),), positional=(2,)),
        Sample(((2, 3),), {"axis": 1}, (3,)),
        Sample(((2, 3),), {"axis": 0}, ([2, 0],)),
        Sample(((),), positional=(2,)),
    ],
)
def repeat(x: Array, repeats: int | Array, /, axis: int | None = None) -> Array:
    """Return `x` with each position along `axis` repeated, one after the other, `repeats` times: an int
    for all, or an array of counts, one for each position. For axis None `x` is flattened first.

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
    where = normalize_axis(0 if axis is None else axis, x.ndim)
    if isinstance(repeats, (int, np.integer)):
        return repeat_each(x, int(repeats), where)
    return _repeat_by(x, integers(repeats), where)


def _repeat_by(x: Array, repeats: Array, axis: int) -> Array:
    if kind_of(repeats.dtype) not in "iu":
        raise refuse_dtype("repeats are integers", [repeats], "convert with tn.astype(n, tn.int64)")
    length = x.shape[axis]
    if repeats.shape not in ((), (1,), (length,)):
        raise ShapeError(
            "", f"repeats of shape {repeats.shape} do not fit {length} positions of axis {axis}"
        )
    counts = values(repeats, "repeat")
    if counts.size and counts.min() < 0:
        raise ShapeError("", f"repeats {counts.min()} is negative", remedy="use 0 or more")
    positions = np.repeat(np.arange(length), counts)
    return _native.apply(gather.id, (x, constant(x, positions)), ((axis,), axis))


def _rolled(x: np.ndarray, shifts: tuple[int, ...], axes: tuple[int, ...] | None) -> np.ndarray:
    return np.roll(x, shifts[0] if axes is None else shifts, axes)


@movement(
    shape=lambda shape, *params: shape,
    reference=_rolled,
    numpy=(np.roll,),
    samples=[
        Sample(((2, 3),), positional=(1,)),
        Sample(((2, 3),), {"axis": 1}, (-4,)),
        Sample(((2, 3),), {"axis": (0, 0, 1)}, ((1, 2, -1),)),
        Sample(((0, 3),), {"axis": 0}, (1,)),
        Sample(((),), positional=(2,)),
    ],
)
def roll(x: Array, /, shift: int | tuple[int, ...], axis: Axis = None) -> Call:
    """Return `x` with its elements moved on by `shift` positions along `axis`; those that go past the
    end come in at the beginning. A tuple of axes takes one shift for all or a tuple of them; for axis
    None `x` is read as one line.

    >>> import tenfold as tn
    >>> tn.roll(tn.asarray([1, 2, 3, 4]), 1).tolist()
    [4, 1, 2, 3]
    """
    x = array(x)
    try:
        shifts = [operator.index(n) for n in (shift if isinstance(shift, Sequence) else (shift,))]
    except TypeError:
        raise ShapeError("", f"shift {shift!r} is no int") from None
    if axis is None:
        return Call((x,), ((sum(shifts) % max(x.size, 1),), None))
    given = axis if isinstance(axis, Sequence) else (axis,)
    axes = [normalize_axis(each, x.ndim) for each in given]
    if 1 not in (len(shifts), len(axes)) and len(shifts) != len(axes):
        raise ShapeError(
            "", f"{len(shifts)} shifts do not fit {len(axes)} axes", remedy="give as many"
        )
    return Call((x,), _moves(x.shape, shifts, axes))


def _moves(shape: Shape, shifts: list[int], axes: list[int]) -> tuple[Any, ...]:
    """The shift of each axis, added up, and the axes in rising order: equal rolls, equal parameters."""
    moves: dict[int, int] = {}
    for position in range(max(len(shifts), len(axes))):
        each = axes[position % len(axes)]
        moves[each] = moves.get(each, 0) + shifts[position % len(shifts)]
    rising = tuple(sorted(moves))
    return tuple(moves[each] % max(shape[each], 1) for each in rising), rising
