"""Shape rules: broadcasting, axes, reduction, reshape and size caps, computed on shapes.

Takes shapes as tuples of ints, hands on shapes. Raises ShapeError; the caller fills in its
operation and operands. Shape rules use only the functions of this module.

>>> broadcast((2, 1, 3), (4, 1))
(2, 4, 3)
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from tenfold.errors import AxisError, IntegerError, ShapeError

Shape = tuple[int, ...]
Axis = int | tuple[int, ...] | None
product: Callable[[Iterable[int]], int] = math.prod
"""The number of elements of a shape; lengths may be SymInts."""
MAX_LENGTH = 2**63 - 1
MAX_AXES = 64


def checked_shape(shape: object, itemsize: int = 1) -> Shape:
    """Return `shape`, an int or a sequence of ints, as a tuple that memory could hold."""
    try:
        items = (shape,) if not isinstance(shape, Sequence) else tuple(shape)
        lengths = tuple(operator.index(length) for length in items)
    except TypeError:
        raise IntegerError(
            "", f"shape {shape!r} is not an int or a sequence of ints", remedy="as in (2, 3)"
        ) from None
    if any(length < 0 for length in lengths):
        raise ShapeError(
            "", f"shape {lengths} has a negative length", remedy="use lengths of 0 or more"
        )
    if len(lengths) > MAX_AXES:
        raise ShapeError(
            "",
            f"{len(lengths)} axes are more than {MAX_AXES}",
            remedy="join some axes with tn.reshape",
        )
    if product(length or 1 for length in lengths) * itemsize > MAX_LENGTH:
        raise ShapeError(
            "", f"shape {lengths} has more than 2**63 - 1 bytes", remedy="work on smaller parts"
        )
    return lengths


def broadcast(*shapes: Shape) -> Shape:
    """Return the common broadcast shape by NumPy's rule: length 1 stretches, 0 does not."""
    if all(shape == shapes[0] for shape in shapes):
        return shapes[0] if shapes else ()
    ndim = max(len(shape) for shape in shapes)
    result = [1] * ndim
    for shape in shapes:
        for position, length in enumerate(shape, ndim - len(shape)):
            if length == 1 or length == result[position]:
                continue
            if result[position] != 1:
                raise ShapeError(
                    "",
                    f"shapes {' and '.join(str(s) for s in shapes)} do not broadcast: "
                    f"lengths {result[position]} and {length} meet on axis {position - ndim}",
                    remedy="give equal lengths, or 1, on every axis counted from the last",
                )
            result[position] = length
    return tuple(result)


def normalize_axis(axis: object, ndim: int) -> int:
    """Return `axis` counted from 0, or raise ShapeError when it is out of range."""
    try:
        position = operator.index(axis)  # type: ignore[arg-type]  # asks
    except TypeError:
        raise IntegerError(
            "", f"axis {axis!r} is not an int", remedy="give an int, as in axis=-1"
        ) from None
    if not -ndim <= position < ndim:
        raise AxisError(
            "",
            f"axis {position} is out of range for {ndim} axes",
            remedy=f"use {-ndim} to {ndim - 1}" if ndim else "the array has no axes",
        )
    return position % ndim


def normalize_axes(axis: Axis, ndim: int) -> tuple[int, ...]:
    """Return the axes named by `axis` (None means all) in rising order, each once."""
    if axis is None:
        return tuple(range(ndim))
    items = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = tuple(normalize_axis(item, ndim) for item in items)
    if len(set(axes)) < len(axes):
        raise ShapeError("", f"axis {axis!r} names an axis twice", remedy="name each axis once")
    return tuple(sorted(axes))


def normalize_count(count: object, name: str) -> int:
    """Return a count as an int, or raise ShapeError if it is not an int or negative."""
    try:
        number = operator.index(count)  # type: ignore[arg-type]  # asks
    except TypeError:
        raise IntegerError("", f"{name} {count!r} is not an int", remedy="give an int") from None
    if number < 0:
        raise ShapeError("", f"{name} {number} is negative", remedy="use 0 or more")
    return number


def reduced(shape: Shape, axes: Sequence[int], keepdims: bool) -> Shape:
    """Return the shape after `axes` are reduced."""
    if keepdims:
        return tuple(1 if i in axes else length for i, length in enumerate(shape))
    return tuple(length for i, length in enumerate(shape) if i not in axes)


def reshaped(shape: Shape, target: object) -> Shape:
    """Return `target` with its one -1 filled in; raise ShapeError when the sizes differ."""
    items = (target,) if not isinstance(target, Sequence) else tuple(target)
    try:
        lengths = [operator.index(item) for item in items]
    except TypeError:
        raise IntegerError(
            "", f"shape {target!r} is not a sequence of ints", remedy="give ints, as in (2, 3)"
        ) from None
    size = product(shape)
    unknown = [i for i, length in enumerate(lengths) if length == -1]
    known_size = product(length for length in lengths if length != -1)
    if len(unknown) > 1:
        raise ShapeError(
            "",
            f"shape {tuple(lengths)} has more than one -1",
            remedy="leave one length open at most",
        )
    if any(length < -1 for length in lengths):
        raise ShapeError(
            "",
            f"shape {tuple(lengths)} has a negative length",
            remedy="use lengths of 0 or more, and one -1 at most",
        )
    if unknown and known_size > 0 and size % known_size == 0:
        lengths[unknown[0]] = size // known_size
        known_size = size
    if known_size != size or (unknown and lengths[unknown[0]] == -1):
        raise ShapeError(
            "",
            f"{size} elements of shape {shape} do not fill shape {tuple(lengths)}",
            remedy="the product of the lengths must stay the same; one of them may be -1",
        )
    return tuple(lengths)


Pick = int | tuple[int, int, int]
"""The selection on one axis: a position, or (start, length, step)."""


def normalize_slice(bounds: slice, length: int) -> tuple[int, int, int]:
    """Return the (start, length, step) of a slice of an axis; equal slices give equal triples."""
    try:
        start, stop, step = bounds.indices(length)
    except ValueError:
        raise ShapeError(
            "", f"{_slice_text(bounds)} has a step of 0", remedy="use a step that moves"
        ) from None
    count = len(range(start, stop, step))
    if count < 2:
        return (start, 1, 1) if count else (0, 0, 1)
    return start, count, step


def _slice_text(bounds: slice) -> str:
    return f"the slice {bounds.start}:{bounds.stop}:{bounds.step}"


def whole_axes(shape: Shape) -> tuple[Pick, ...]:
    """Return the picks that select every axis in full."""
    return tuple((0, length, 1) if length else (0, 0, 1) for length in shape)


def row_major(shape: Shape) -> tuple[int, ...]:
    """Return the strides, in elements, of a contiguous array.

    >>> row_major((2, 3, 4))
    (12, 4, 1)
    """
    strides: list[int] = []
    step = 1
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))


def reshaped_strides(shape: Shape, strides: Sequence[int], target: Shape) -> tuple[int, ...] | None:
    """Return the strides of a view in another shape, or None if a copy is needed.

    Runs of axes with the same number of elements are matched. Inside a run the source axes must be
    contiguous with each other.

    >>> reshaped_strides((2, 3), (1, 2), (6,)) is None
    True
    """
    if product(shape) == 0:
        return row_major(target)
    source_axes = [
        (length, stride) for length, stride in zip(shape, strides, strict=True) if length != 1
    ]
    result: list[int] = []
    source_axis = 0
    target_axis = 0
    while target_axis < len(target) and source_axis < len(source_axes):
        run_start, target_start = source_axis, target_axis
        source_size, target_size = source_axes[source_axis][0], target[target_axis]
        source_axis, target_axis = source_axis + 1, target_axis + 1
        while source_size != target_size:
            if source_size < target_size:
                source_size *= source_axes[source_axis][0]
                source_axis += 1
            else:
                target_size *= target[target_axis]
                target_axis += 1
        for (_, outer), (length, inner) in zip(
            source_axes[run_start : source_axis - 1],
            source_axes[run_start + 1 : source_axis],
            strict=True,
        ):
            if outer != length * inner:
                return None
        unit = source_axes[source_axis - 1][1]
        result.extend(unit * step for step in row_major(target[target_start:target_axis]))
    return (*result, *(1 for _ in target[target_axis:]))


MAX_LEVELS = 64
"""The most levels of nested lists: NumPy's largest number of axes."""


def nested_levels(items: Iterable[Any], operation: str) -> Iterator[list[Any]]:
    """Yield the levels of nested lists from the outside in, each as one flat list.

    The items of a list that occurs twice come once. Raises ShapeError for more levels than an
    array has axes, as of a list that contains itself.

    >>> [*nested_levels([[1, 2], [3]], "asarray")]
    [[[1, 2], [3]], [1, 2, 3]]
    """
    level: list[Any] = [items]
    for _ in range(MAX_LEVELS):
        level = [item for nested in level for item in nested]
        yield level
        level = [*{id(item): item for item in level if isinstance(item, (list, tuple))}.values()]
        if not level:
            return
    raise ShapeError(
        operation,
        f"a list has more than {MAX_LEVELS} levels, or contains itself",
        remedy="give nested lists of numbers, as many levels as the array is to have axes",
    )
