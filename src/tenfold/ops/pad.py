"""Padding and cropping: `pad` adds elements around an array, `crop` removes them."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold._native import Array
from tenfold.core.gather_rules import ResultBlock
from tenfold.core.op import BoundCall, SampleCall
from tenfold.core.op_decorators import array, derived, movement
from tenfold.core.shape_rules import Shape, checked_shape, normalize_slice
from tenfold.dtypes import kind_of
from tenfold.errors import DTypeError, ShapeError
from tenfold.ops.assignment import set_at
from tenfold.ops.create import default_dtype, full, number, number_of
from tenfold.ops.gathering import take
from tenfold.ops.indexing import index_view

Widths = tuple[tuple[int, int], ...]
PAD_MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


def _pad_shape(shape: Shape, widths: Widths, mode: str, value: Any) -> Shape:
    for axis, (length, pair) in enumerate(zip(shape, widths, strict=True)):
        if mode != "constant" and length == 0 and pair != (0, 0):
            raise ShapeError(
                "",
                f"axis {axis} of shape {shape} is empty: there is nothing to pad {mode!r} from",
                remedy='use mode="constant"',
            )
    return tuple(
        before + length + after for length, (before, after) in zip(shape, widths, strict=True)
    )


def _pad_reference(x: np.ndarray, widths: Widths, mode: Any, value: Any) -> np.ndarray:
    options = {"constant_values": value} if mode == "constant" else {}
    # NumPy refuses the empty widths of an array without axes.
    return np.pad(x, widths, mode, **options) if widths else x


MAX_PAD_BLOCKS = 9
"""The most blocks, one kernel each: two axes with both edges."""


def _pad_pieces(shapes: Sequence[Shape], widths: Widths, mode: str, value: Any) -> Any:
    """The input, and around it blocks of it, or two slabs of a value for each axis."""
    (inner,) = shapes
    if mode == "constant":
        return _slabs(inner, widths, value)
    reach = {"edge": math.inf, "reflect": -1, "symmetric": 0, "wrap": 0}[mode]
    if any(max(pair) > n + reach for pair, n in zip(widths, inner, strict=True)):
        return NotImplemented  # more than once around
    edges = [_edges(pair, n, mode) for pair, n in zip(widths, inner, strict=True)]
    if math.prod(map(len, edges)) > MAX_PAD_BLOCKS:
        return NotImplemented
    return [
        ResultBlock(
            tuple(start for start, *_ in blocks),
            tuple(length for _, length, *_ in blocks),
            0,
            tuple(
                (axis if step else None, step, begin)
                for axis, (*_, step, begin) in enumerate(blocks)
            ),
        )
        for blocks in itertools.product(*edges)
    ]


def _slabs(inner: Shape, widths: Widths, value: Any) -> list[ResultBlock]:
    blocks = [ResultBlock(tuple(width_before for width_before, _ in widths), inner, 0)]
    start, shape = [0] * len(inner), list(_pad_shape(inner, widths, "constant", value))
    for axis, (width_before, width_after) in enumerate(widths):
        for width, begin in ((width_before, 0), (width_after, width_before + inner[axis])):
            slab = (*shape[:axis], width, *shape[axis + 1 :])
            blocks.append(ResultBlock((*start[:axis], begin, *start[axis + 1 :]), slab, fill=value))
        start[axis], shape[axis] = width_before, inner[axis]
    return blocks


def _edges(pair: tuple[int, int], n: int, mode: str) -> list[tuple[int, int, int, int]]:
    """Blocks of an axis: the start in the result, the length, and step and start in the input."""
    width_before, width_after = pair
    step, start_before, start_after = {
        "edge": (0, 0, n - 1),
        "reflect": (-1, width_before, n - 2),
        "symmetric": (-1, width_before - 1, n - 1),
        "wrap": (1, n - width_before, 0),
    }[mode]
    blocks = [
        (0, width_before, step, start_before),
        (width_before, n, 1, 0),
        (width_before + n, width_after, step, start_after),
    ]
    return [block for block in blocks if block[1]]


def _padded(x: Array, widths: Widths, mode: str, value: Any) -> Array:
    """Write `x` into an array of the value, or take its positions, padded, along each axis."""
    if mode == "constant":
        inner = tuple(
            slice(before, before + n) for (before, _), n in zip(widths, x.shape, strict=True)
        )
        shape = _pad_shape(x.shape, widths, mode, value)
        return set_at(full(shape, value, dtype=x.dtype, device=x.device), inner, x)
    for axis, pair in enumerate(widths):
        positions = np.pad(np.arange(x.shape[axis]), pair, mode)  # type: ignore[call-overload]
        x = take(x, array(positions, x), axis=axis)
    return x


@movement(
    shape=_pad_shape,
    reference=_pad_reference,
    pieces=_pad_pieces,
    numpy=(np.pad,),
    batch_params=lambda _, widths, *rest: (((0, 0), *widths), *rest),
    samples=[
        SampleCall(((2, 3),), positional=(1,)),
        SampleCall(((2, 3),), {"constant_values": 1}, (((0, 2), (1, 0)),)),
        SampleCall(((4,),), {"mode": "reflect"}, (2,)),
        SampleCall(((2, 3),), {"mode": "edge"}, ((1, 2),)),
        SampleCall(((3,),), {"mode": "wrap"}, (5,)),
        SampleCall(((3,),), {"mode": "symmetric"}, (5,)),
        SampleCall(((0, 2),), positional=(1,)),
    ],
    expression=_padded,
)
def pad(
    x: Array,
    /,
    pad_width: int | Sequence[int] | Sequence[Sequence[int]],
    mode: str = "constant",
    *,
    constant_values: complex = 0,
) -> BoundCall:
    """Return `x` with more positions before and after on each axis: `pad_width` is one number of
    them for all, a pair (before, after) for all, or a pair for each axis.

    `mode` says what stands there: "constant" (`constant_values`), "edge" (the first, the last
    element), "reflect" and "symmetric" (`x` mirrored without and with its edge), "wrap" (`x`
    again).

    >>> import tenfold as tn
    >>> tn.pad(tn.asarray([1, 2, 3]), (2, 1)).tolist()
    [0, 0, 1, 2, 3, 0]
    >>> tn.pad(tn.asarray([1, 2, 3]), 2, "reflect").tolist()
    [3, 2, 1, 2, 3, 2, 1]
    """
    x = array(x)
    if mode not in PAD_MODES:
        raise ShapeError(
            "",
            f"mode {mode!r} is none of {', '.join(map(repr, PAD_MODES))}",
            remedy="use one of them",
        )
    if mode != "constant":
        return BoundCall((x,), (_normalize_widths(pad_width, x.ndim), mode, None))
    value = number(constant_values, "pad")
    if _RANKS[default_dtype((value,)).kind] > _RANKS[kind_of(x.dtype)]:
        rule = f"{value!r} is not a value of {x.dtype}"
        raise DTypeError("", rule, [x], "convert the array with tn.astype first")
    return BoundCall(
        (x,), (_normalize_widths(pad_width, x.ndim), mode, number_of(value, x.dtype, "pad"))
    )


_RANKS = {"b": 0, "i": 0, "u": 0, "f": 1, "c": 2}


def _normalize_widths(pad_width: Any, ndim: int) -> Widths:
    """Widths in every form that NumPy takes as a pair for each axis."""
    try:
        pairs = np.broadcast_to(np.asarray(pad_width), (ndim, 2)).tolist()
        widths = tuple((operator.index(before), operator.index(after)) for before, after in pairs)
    except (ValueError, TypeError):
        raise ShapeError(
            "",
            f"pad_width {pad_width!r} does not fit {ndim} axes",
            remedy="give an int, a pair (before, after), or a pair for each axis",
        ) from None
    if any(width < 0 for pair in widths for width in pair):
        raise ShapeError("", f"pad_width {pad_width!r} is negative", remedy="use tn.crop")
    return widths


def _crop_reference(
    x: np.ndarray, shape: Shape, *, start: Sequence[int] | None = None
) -> np.ndarray:
    starts = [(n - m) // 2 for n, m in zip(x.shape, shape, strict=True)] if start is None else start
    return x[tuple(slice(begin, begin + m) for begin, m in zip(starts, shape, strict=True))]


@derived(
    reference=_crop_reference,
    samples=[
        SampleCall(((5, 6),), positional=((2, 3),)),
        SampleCall(((5, 6),), {"start": (3, 0)}, ((2, 3),)),
        SampleCall(((3,),), positional=((0,),)),
    ],
)
def crop(x: Array, /, shape: Shape | int, *, start: Sequence[int] | None = None) -> Array:
    """Return the part of `shape` in the middle of `x`, a view; or the part that begins at `start`.

    On an axis of length n the part of length m begins at (n - m) // 2, so that
    `crop(pad(x, p), x.shape)` is `x`; `start=before` takes off a pad of pairs (before, after).
    Raises ShapeError when the part is not inside.

    >>> import tenfold as tn
    >>> tn.crop(tn.reshape(tn.arange(30), (5, 6)), (2, 3)).tolist()
    [[7, 8, 9], [13, 14, 15]]
    """
    x, part_shape = array(x), checked_shape(shape)
    middle = ((n - m) // 2 for n, m in zip(x.shape, part_shape, strict=False))
    starts = tuple(middle) if start is None else _positions(start)
    fits = len(part_shape) == len(starts) == x.ndim and all(
        0 <= first_index <= n - m
        for first_index, m, n in zip(starts, part_shape, x.shape, strict=True)
    )
    if not fits:
        position = "in the middle" if start is None else f"at {starts}"
        raise ShapeError(
            "",
            f"a part of shape {part_shape} {position} is not inside of shape {x.shape}",
            remedy="make it smaller",
        )
    slices = (
        slice(first_index, first_index + m)
        for first_index, m in zip(starts, part_shape, strict=True)
    )
    picks = (normalize_slice(part_slice, n) for part_slice, n in zip(slices, x.shape, strict=True))
    return index_view(x, tuple(picks))


def _positions(start: Sequence[int]) -> tuple[int, ...]:
    try:
        return tuple(operator.index(first) for first in start)
    except TypeError:
        rule = f"start {start!r} is not a sequence of ints"
        raise ShapeError("", rule, remedy="give one for each axis, as in (1, 0)") from None
