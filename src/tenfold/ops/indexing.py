"""Indexing: `x[key]` for every key that NumPy accepts.

A key of ints, slices, `...` and None is one node of `index`, a view. Integer arrays and masks add
one node of `gather` (`ops/gathering.py`) to it, whose result is a copy. Takes an Array and a key,
hands on an Array.

>>> import tenfold as tn
>>> x = tn.reshape(tn.arange(6), (2, 3))
>>> get_item(x, (0, slice(None, None, -1))).tolist()
[2, 1, 0]
>>> get_item(x, tn.asarray([[True, False, False], [False, True, True]])).tolist()
[0, 4, 5]
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Array
from tenfold.core.index_map import (
    IndexMap,
    Slice,
    batched_slice,
    checked_slice,
    picks_of,
    slice_of,
    whole_slice,
)
from tenfold.core.native_path import native_path
from tenfold.core.op import BoundCall, SampleCall
from tenfold.core.op_decorators import array, movement
from tenfold.core.shape_rules import Pick, Shape
from tenfold.errors import ExplainedError
from tenfold.ops.gathering import gather
from tenfold.ops.index_parsing import index_error, parse_index, part_of_values


def _index_reference(x: np.ndarray, access: IndexMap, shape: Shape) -> np.ndarray:
    """Index, so that the result knows whose memory it shows."""
    axes = [axis for axis, *_ in access if axis is not None]
    if len(set(axes)) < len(axes):  # a diagonal
        return part_of_values(x, access, shape)
    picks, new_axes = picks_of(access, shape)
    slices = (pick if isinstance(pick, int) else _slice(*pick) for pick in picks)
    return np.expand_dims(x[(*slices, ...)], new_axes)


def _slice(start: int, count: int, step: int) -> slice:
    stop = start + count * step
    return slice(start, None if stop < 0 else stop, step)


@movement(
    shape=lambda _, __, shape: shape,
    reference=_index_reference,
    view=True,
    index_map=lambda _, access, __: access,
    rebind=lambda x, *part: BoundCall((x,), checked_slice(x.shape, *part)),
    batch_params=batched_slice,
    samples=[
        SampleCall(((4, 3),), positional=((slice(None, None, -2), None, 1),)),
        SampleCall(((2, 3, 4),), positional=((Ellipsis, slice(3, 0, -1)),)),
        SampleCall(((0, 2),), positional=((slice(None), slice(1, 1)),)),
        SampleCall(((),), positional=((None, Ellipsis, None),)),
    ],
)
def index(x: Array, /, key: Any) -> BoundCall:
    """Return the view `x[key]` of `x`: the positions an int, a slice, `...`, None or a tuple of
    them takes, where an int drops its axis and None puts in one of length 1.

    Raises IndexError for an int out of bounds or too many of them. For integer arrays and masks,
    which make no view, write `x[key]`.

    >>> import tenfold as tn
    >>> tn.index(tn.arange(6), slice(None, None, -2)).tolist()
    [5, 3, 1]
    """
    x = array(x)
    parsed = parse_index(x, key, "index")
    if parsed.arrays:
        raise index_error(
            x, "index", "arrays in the key make no view", "write x[key], or use tn.take"
        )
    return BoundCall((x,), parsed.part)


def get_item(x: Array, key: Any) -> Array:
    """Return `x[key]` for any key: a view if the key has slices, `...` or None and no array in it.

    As in NumPy, a key of ints alone, or with an array in it, gives a copy: an assignment to `x`
    does not change it.
    """
    parsed = parse_index(x, key, "getitem")
    view = x
    if not parsed.arrays or parsed.part != whole_slice(x.shape):
        view = slice_view(x, parsed.part)
    if parsed.arrays:
        axes = tuple(axis for axis, _ in parsed.arrays)
        indices = (values for _, values in parsed.arrays)
        try:
            return _native.apply(gather.id, (view, *indices), (axes, parsed.index_axis))
        except ExplainedError as error:
            raise error.renamed("getitem", [x]) from None
    return view if parsed.view else capture(view)


def index_view(x: Array, picks: tuple[Pick, ...], new_axes: tuple[int, ...] = ()) -> Array:
    """Return the view of `x` by picks, one for each axis, and new axes: one node of `index`."""
    return slice_view(x, slice_of(picks, new_axes))


def slice_view(x: Array, part: Slice) -> Array:
    """Return the view of `x` that shows a slice: one node of `index`."""
    return _native.apply(index.id, (x,), part)


def capture(x: Array) -> Array:
    """Return `x` as an Array without a base, so that later assignments do not change it."""
    return _native.array_of(_native.node_of(x))


@native_path("iterate")
def iterate(x: Array) -> Iterator[Array]:
    """Iterate over the first axis. Raises TypeError for an array without axes.

    >>> import tenfold as tn
    >>> [row.tolist() for row in tn.asarray([[1, 2], [3, 4]])]
    [[1, 2], [3, 4]]
    """
    return map(x.__getitem__, range(len(x)))
