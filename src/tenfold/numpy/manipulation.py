"""Manipulation: shapes, axes, joins and repetition, with NumPy's names and positions.

Takes NumPy's arguments, hands on Arrays of the operations that move elements.

>>> hstack([[1, 2], [3]]).tolist()
[1, 2, 3]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tenfold._native import Array
from tenfold.core.shape_rules import normalize_axis
from tenfold.numpy.arguments import (
    NEUTRAL_ORDERS,
    NUMBERS,
    Immediate,
    as_array,
    as_arrays,
    cast,
    check_casts,
    deliver_whole,
    export,
)
from tenfold.ops import gathering, joining, movement, reshaping, tile_repeat_roll
from tenfold.ops import pad as padding
from tenfold.ops.cast import astype
from tenfold.ops.indexing import index

__all__ = [
    "append", "array_split", "atleast_1d", "atleast_2d", "atleast_3d", "block", "broadcast_arrays",
    "broadcast_shapes", "broadcast_to", "column_stack", "concat", "concatenate", "delete", "dsplit",
    "dstack", "expand_dims", "flip", "fliplr", "flipud", "hsplit", "hstack", "insert",
    "matrix_transpose", "moveaxis", "ndim", "pad", "permute_dims", "ravel", "repeat", "reshape",
    "resize", "roll", "rollaxis", "rot90", "row_stack", "shape", "size", "split", "squeeze",
    "stack", "swapaxes", "tile", "transpose", "trim_zeros", "unstack", "vsplit", "vstack",
]  # fmt: skip


def shape(a: Any) -> tuple[int, ...]:
    """Return the lengths of the axes."""
    return as_array(a).shape


def ndim(a: Any) -> int:
    """Return the number of axes."""
    return as_array(a).ndim


def size(a: Any, axis: int | tuple[int, ...] | None = None) -> int:
    """Return the number of elements, or those along `axis`."""
    lengths = as_array(a).shape
    axes = range(len(lengths)) if axis is None else np.atleast_1d(axis)
    return int(np.prod([lengths[normalize_axis(int(i), len(lengths))] for i in axes], dtype=int))


def reshape(a: Any, /, shape: Any, order: str | None = "C", *, copy: bool | None = None) -> Array:
    """Return the elements in another shape; `order="F"` reads and writes columns first.

    >>> reshape([[1, 2], [3, 4]], -1, order="F").tolist()
    [1, 3, 2, 4]
    """
    x = as_array(a)
    order = order.upper() if isinstance(order, str) else order
    if order in NEUTRAL_ORDERS:
        return reshaping.reshape(x, shape, copy=copy)
    if order != "F":
        raise ValueError(f"order must be 'C', 'F', 'A' or 'K' (got {order!r})")
    lengths = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    columns = reshaping.reshape(movement.permute_dims(x), tuple(lengths[::-1]), copy=copy)
    return movement.permute_dims(columns)


def ravel(a: Any, order: str | None = "C") -> Array:
    """Return the elements along one axis."""
    return reshape(a, (-1,), order)


def transpose(a: Any, axes: Sequence[int] | None = None) -> Array:
    """Return the axes in another order, reversed by default."""
    x = as_array(a)
    return movement.permute_dims(x, _axes_of(axes, x.ndim))


permute_dims = transpose


def _axes_of(axes: Any, ndim: int) -> Any:
    return None if axes is None else tuple(normalize_axis(int(axis), ndim) for axis in axes)


def matrix_transpose(x: Any, /) -> Array:
    """Return matrices with the last two axes exchanged."""
    return movement.matrix_transpose(as_array(x))


def moveaxis(a: Any, source: Any, destination: Any) -> Array:
    """Return the array with axes at other positions."""
    return movement.moveaxis(as_array(a), source, destination)


def rollaxis(a: Any, axis: int, start: int = 0) -> Array:
    """Return the array with `axis` moved before the axis `start`."""
    x = as_array(a)
    axis = normalize_axis(axis, x.ndim)
    start = start + x.ndim if start < 0 else start
    if not 0 <= start <= x.ndim:
        raise np.exceptions.AxisError(start, x.ndim + 1)
    return movement.moveaxis(x, axis, start - (axis < start))


def swapaxes(a: Any, axis1: int, axis2: int) -> Array:
    """Return the array with two axes exchanged."""
    return movement.swapaxes(as_array(a), axis1, axis2)


def squeeze(a: Any, axis: int | tuple[int, ...] | None = None) -> Array:
    """Return the array without axes of length 1."""
    return movement.squeeze(as_array(a), axis)


def expand_dims(a: Any, axis: int | tuple[int, ...]) -> Array:
    """Return the array with new axes of length 1."""
    return movement.expand_dims(as_array(a), axis)


def _atleast(arrays: tuple[Any, ...], one: Any) -> Any:
    results = tuple(one(as_array(x)) for x in arrays)
    return results[0] if len(results) == 1 else results


def atleast_1d(*arys: Any) -> Any:
    """Return Arrays of one axis at least."""
    return _atleast(arys, lambda x: x if x.ndim else reshaping.reshape(x, (1,)))


def atleast_2d(*arys: Any) -> Any:
    """Return Arrays of two axes at least; a vector becomes a row."""
    return _atleast(
        arys, lambda x: x if x.ndim > 1 else reshaping.reshape(x, (1,) * (2 - x.ndim) + x.shape)
    )


def atleast_3d(*arys: Any) -> Any:
    """Return Arrays of three axes at least; a vector becomes (1, n, 1)."""

    def one(x: Array) -> Array:
        if x.ndim > 2:
            return x
        return reshaping.reshape(x, ((1, *x.shape, 1) if x.ndim < 2 else (*x.shape, 1))[-3:])

    return _atleast(arys, lambda x: reshaping.reshape(x, (1, 1, 1)) if x.ndim == 0 else one(x))


def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Array:
    """Return the array repeated along axes to `shape`."""
    return reshaping.broadcast_to(as_array(array), shape)


def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Array, ...]:
    """Return the arrays broadcast against each other."""
    return tuple(reshaping.broadcast_arrays(*as_arrays(args)))


def broadcast_shapes(*args: Any) -> tuple[int, ...]:
    """Return the shape that shapes broadcast to."""
    return np.broadcast_shapes(*args)


def _sequence(arrays: Any) -> Any:
    if isinstance(arrays, Iterator):
        raise TypeError("arrays to stack must be passed as a sequence, such as a list or tuple")
    return arrays


def _cast_all(arrays: Any, dtype: Any, casting: str, out: Any) -> list[Array]:
    """Return arrays to join in the dtype of the result, which is that of `out` if it is given."""
    if out is not None and dtype is not None:
        raise TypeError("only one of `out` and `dtype` is given")
    parts = as_arrays(_sequence(arrays))
    dtype = dtype if out is None else out.dtype
    if dtype is None:
        return parts
    check_casts(parts, dtype, casting)
    return [cast(part, dtype) for part in parts]


def concatenate(
    arrays: Any,
    /,
    axis: int | None = 0,
    out: Any = None,
    *,
    dtype: Any = None,
    casting: str = "same_kind",
) -> Any:
    """Return arrays joined along an axis; `axis=None` joins their elements."""
    return deliver_whole(joining.concat(_cast_all(arrays, dtype, casting, out), axis), out)


concat = concatenate


def stack(
    arrays: Any,
    axis: int = 0,
    out: Any = None,
    *,
    dtype: Any = None,
    casting: str = "same_kind",
) -> Any:
    """Return arrays of one shape joined along a new axis."""
    return deliver_whole(joining.stack(_cast_all(arrays, dtype, casting, out), axis), out)


def hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Array:
    """Return arrays joined along their second axis, vectors along their first."""
    arrays = [atleast_1d(x) for x in _sequence(tup)]
    axis = 0 if arrays and arrays[0].ndim == 1 else 1
    return joining.concat(_cast_all(arrays, dtype, casting, None), axis)


def vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Array:
    """Return arrays joined along their first axis; vectors are rows."""
    arrays = [atleast_2d(x) for x in _sequence(tup)]
    return joining.concat(_cast_all(arrays, dtype, casting, None), 0)


row_stack = vstack


def dstack(tup: Any) -> Array:
    """Return arrays joined along their third axis."""
    return joining.concat([atleast_3d(x) for x in _sequence(tup)], 2)


def column_stack(tup: Any) -> Array:
    """Return matrices joined along their second axis; vectors are columns."""
    arrays = as_arrays(_sequence(tup))
    columns = [reshaping.reshape(x, (-1, 1)) if x.ndim < 2 else x for x in arrays]
    return joining.concat(columns, 1)


def block(arrays: Any) -> Array:
    """Return nested lists of blocks joined: the innermost along the last axis.

    >>> block([[as_array([[1, 2]]), 3], [as_array([[4, 5]]), 6]]).shape
    (2, 3)
    """

    def depth_of(item: Any) -> int:
        if not isinstance(item, list):
            return 0
        depths = {depth_of(entry) for entry in item}
        if len(depths) != 1:
            raise ValueError("List depths are mismatched")
        return 1 + depths.pop()

    def leaves(item: Any) -> list[Array]:
        return (
            [x for entry in item for x in leaves(entry)]
            if isinstance(item, list)
            else [as_array(item)]
        )

    depth = depth_of(arrays)
    axes = max(depth, *(x.ndim for x in leaves(arrays)), 0)

    def joined(item: Any, level: int) -> Array:
        if not isinstance(item, list):
            x = as_array(item)
            return reshaping.reshape(x, (1,) * (axes - x.ndim) + x.shape)
        return joining.concat([joined(entry, level - 1) for entry in item], -level)

    return joined(arrays, depth)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Return parts along an axis; sections may differ by one in length."""
    x = as_array(ary)
    if isinstance(indices_or_sections, (int, np.integer)):
        length, sections = x.shape[axis], int(indices_or_sections)
        if sections <= 0:
            raise ValueError("number sections must be larger than 0.")
        quotient, rest = divmod(length, sections)
        lengths = [quotient + 1] * rest + [quotient] * (sections - rest)
        indices = np.cumsum(lengths)[:-1].tolist()
    else:
        indices = [int(i) for i in export(indices_or_sections, "np.array_split")]
    bounds = [None, *indices, None]
    leading = (slice(None),) * normalize_axis(axis, x.ndim)
    return [index(x, (*leading, slice(start, stop))) for start, stop in pairwise(bounds)]


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Return parts along an axis; sections have equal lengths."""
    x = as_array(ary)
    is_count = isinstance(indices_or_sections, (int, np.integer))
    if is_count and x.shape[axis] % indices_or_sections:
        raise ValueError("array split does not result in an equal division")
    return array_split(x, indices_or_sections, axis)


def hsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """Return parts along the second axis, of a vector along the first."""
    x = as_array(ary)
    if x.ndim == 0:
        raise ValueError("hsplit only works on arrays of 1 or more dimensions")
    return split(x, indices_or_sections, 1 if x.ndim > 1 else 0)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """Return parts along the first axis."""
    x = as_array(ary)
    if x.ndim < 2:
        raise ValueError("vsplit only works on arrays of 2 or more dimensions")
    return split(x, indices_or_sections, 0)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """Return parts along the third axis."""
    x = as_array(ary)
    if x.ndim < 3:
        raise ValueError("dsplit only works on arrays of 3 or more dimensions")
    return split(x, indices_or_sections, 2)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Return the arrays at each index of an axis."""
    return tuple(joining.unstack(as_array(x), axis=axis))


def tile(A: Any, reps: Any) -> Array:
    """Return the array repeated as a whole along axes."""
    repetitions = export(reps, "np.tile")
    return tile_repeat_roll.tile(
        as_array(A), tuple(np.atleast_1d(np.asarray(repetitions)).tolist())
    )


def repeat(a: Any, repeats: Any, axis: int | None = None) -> Array:
    """Return each element repeated, along an axis or of the flattened array."""
    x = as_array(a)
    count = repeats if isinstance(repeats, int) else as_array(repeats)
    if isinstance(count, Array) and not count.size:
        count = cast(count, np.int64)
    return tile_repeat_roll.repeat(x, count, axis)


def flip(m: Any, axis: int | tuple[int, ...] | None = None) -> Array:
    """Return the elements in reverse order along axes."""
    return movement.flip(as_array(m), axis)


def fliplr(m: Any) -> Array:
    """Return the columns in reverse order."""
    x = as_array(m)
    if x.ndim < 2:
        raise ValueError("Input must be >= 2-d.")
    return movement.flip(x, 1)


def flipud(m: Any) -> Array:
    """Return the rows in reverse order."""
    x = as_array(m)
    if x.ndim < 1:
        raise ValueError("Input must be >= 1-d.")
    return movement.flip(x, 0)


def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """Return the array rotated by `k` quarter turns in the plane of two axes."""
    x = as_array(m)
    if len(axes) != 2:
        raise ValueError("len(axes) must be 2.")
    first, second = (normalize_axis(axis, x.ndim) for axis in axes)
    if first == second:
        raise ValueError("Axes must be different.")
    match k % 4:
        case 0:
            return x
        case 1:
            return movement.swapaxes(movement.flip(x, second), first, second)
        case 2:
            return movement.flip(x, (first, second))
        case _:
            return movement.flip(movement.swapaxes(x, first, second), second)


def roll(a: Any, shift: Any, axis: Any = None) -> Array:
    """Return the elements moved along axes, round the end."""
    return tile_repeat_roll.roll(as_array(a), shift, axis)


def resize(a: Any, new_shape: Any) -> Array:
    """Return an array of a shape with the elements of `a`, repeated as often as it takes."""
    x = ravel(a)
    lengths = (new_shape,) if isinstance(new_shape, (int, np.integer)) else tuple(new_shape)
    count = int(np.prod(lengths, dtype=int))
    if min(lengths, default=0) < 0:
        raise ValueError("all elements of `new_shape` must be non-negative")
    if not x.size:
        filled = np.zeros(lengths, x.dtype)
        return as_array(filled)
    indices = as_array(np.arange(count) % x.size)
    return reshaping.reshape(gathering.take(x, indices, axis=0), lengths)


def append(arr: Any, values: Any, axis: int | None = None) -> Array:
    """Return `values` joined to the end of `arr`; without an axis both are flattened."""
    return joining.concat([as_array(arr), as_array(values)], axis)


def delete(arr: Any, obj: Any, axis: int | None = None) -> Array:
    """Return the array without the elements at some indices of an axis."""
    x = as_array(arr)
    if axis is None:
        x, axis = ravel(x), 0
    positions = np.arange(x.shape[normalize_axis(axis, x.ndim)])
    remaining = np.delete(positions, export(obj, "np.delete"))
    return gathering.take(x, as_array(remaining), axis=axis)


def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Array:
    """Return the array with further elements around it; modes as in NumPy."""
    x, widths = as_array(array), export(pad_width, "np.pad")
    value = kwargs.get("constant_values", 0)
    is_plain = not kwargs.keys() - {"constant_values"} and type(value) in NUMBERS
    if mode in padding.PAD_MODES and is_plain and not isinstance(widths, dict):
        return padding.pad(x, np.asarray(widths).tolist(), mode, constant_values=value)
    result: Array = _padded(x, pad_width, mode, **kwargs)
    return result


def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Array:
    """Return an array with values before positions along an axis, or in the flattened array."""
    x = as_array(arr)
    if axis is None:
        x = reshaping.reshape(x, (-1,))
    axis = normalize_axis(0 if axis is None else axis, x.ndim)
    length = x.shape[axis]
    chosen = export(obj, "np.insert")
    places = np.arange(length)[chosen] if isinstance(chosen, slice) else np.array(chosen)
    places = np.flatnonzero(places) if places.dtype == bool else places
    places = places.astype(np.int64) if places.size == 0 else places
    if places.dtype.kind not in "iu":
        kind = TypeError if places.size == 1 else IndexError
        raise kind("arrays used as indices must be of integer (or boolean) type")
    added = astype(as_array(values), x.dtype, copy=False)
    if places.size == 1:
        added = reshaping.reshape(added, (*(1,) * (x.ndim - added.ndim), *added.shape))
        added = movement.moveaxis(added, 0, axis) if places.ndim == 0 else added
        places = np.repeat(places.reshape(-1), added.shape[axis])
    if ((places < -length) | (places > length)).any():
        place = places[(places < -length) | (places > length)][0]
        raise IndexError(f"index {place} is out of bounds for axis {axis} with size {length}")
    places = np.where(places < 0, places + length, places)
    shape = (*x.shape[:axis], places.size, *x.shape[axis + 1 :])
    joined = concat([x, reshaping.broadcast_to(added, shape)], axis)
    # A value stands before the element whose position it names, equal ones in their order.
    order = np.argsort(np.concatenate([np.arange(length) + 0.5, places]), kind="stable")
    return gathering.take(joined, as_array(order), axis=axis)


_padded = Immediate(np.pad)
trim_zeros = Immediate(np.trim_zeros)
