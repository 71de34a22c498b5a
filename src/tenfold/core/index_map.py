"""Index map (IndexMap): where a space of axes reads or writes an array; affine, with bounds.

An index map has for each axis of the array (space axis or None, coefficient, start): its index is
`start + coefficient * index of that space axis`, or `start` alone. Axes of length 1 have index 0.
With the lengths of its space it is bounded: a Slice. Views read their input by it (`Op.index_map`),
updates write a slice, loops read and write memory, and native code gets it as data
(`native/ir/index_map.h`). Immutable tuples: they are parameters of nodes and keys of caches.

>>> compose_view(identity((4, 3)), ((1, 1, 0), (0, 2, 1)))
((1, 1, 0), (0, 2, 1))
>>> row, rest = slice_of((2, (0, 4, 1))), slice_of(((3, 2, 1), (0, 4, 1)))
>>> written = slice_of(((1, 2, 1), (0, 4, 1)))
>>> are_disjoint(row, rest, (5, 4)), relative_map(row, written)
(True, ((None, 0, 1), (0, 1, 0)))
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index

from tenfold.core.shape_rules import Pick, Shape, checked_shape, row_major
from tenfold.core.strided_overlap import StridedRegion, overlap
from tenfold.errors import ShapeError

AxisMap = tuple[int | None, int, int]
IndexMap = tuple[AxisMap, ...]
Slice = tuple[IndexMap, Shape]
"""An index map and the lengths of its space: the parameters of `index` and `set_at`."""
FIXED: AxisMap = (None, 0, 0)
OVERLAP_STEPS = 100
"""The steps of a test whether two slices share elements."""
COMPUTED_INDEX: IndexMap = ((None, -1, 0),)
"""The access of an operand that is read at computed indices: it must be in memory already."""


def identity(shape: Shape) -> IndexMap:
    """Return the access of an array whose axes are the space itself."""
    return tuple([(axis, 1, 0) if length != 1 else FIXED for axis, length in enumerate(shape)])


def broadcast_access(access: IndexMap, shape: Shape, result: Shape) -> IndexMap:
    """Return how an operand of `shape` is read when its `result` is read by `access`."""
    if shape == result and 1 not in shape:
        return access
    missing = len(result) - len(shape)
    return tuple(
        [FIXED if length == 1 else access[missing + axis] for axis, length in enumerate(shape)]
    )


def compose_view(access: IndexMap, reads: Sequence[AxisMap]) -> IndexMap:
    """Return how the input of a view is read when the view is read by `access`."""
    return tuple([_compose_axis(access, axis_map) for axis_map in reads])


def _compose_axis(access: IndexMap, axis_map: AxisMap) -> AxisMap:
    axis, coefficient, start = axis_map
    if axis is None:
        return (None, 0, start)
    outer, outer_coefficient, outer_start = access[axis]
    if outer is None:
        return (None, 0, start + coefficient * outer_start)
    return (outer, coefficient * outer_coefficient, start + coefficient * outer_start)


def remap_axes(access: IndexMap, axes: Sequence[int | None]) -> IndexMap:
    """Return an access with axis i of its space replaced by axis `axes[i]` of another space."""
    return tuple(
        [
            axis_map
            if axis_map[0] is None
            else (axes[axis_map[0]], *axis_map[1:])
            if axes[axis_map[0]] is not None
            else (None, 0, axis_map[2])
            for axis_map in access
        ]
    )


def strides_in(access: IndexMap, strides: Sequence[int], ndim: int) -> tuple[tuple[int, ...], int]:
    """Return the stride for each space axis and the offset, in the unit of `strides`."""
    space_strides, offset = [0] * ndim, 0
    for (axis, coefficient, start), stride in zip(access, strides, strict=True):
        offset += start * stride
        if axis is not None:
            space_strides[axis] += coefficient * stride
    return tuple(space_strides), offset


def reverse_axes(access: IndexMap, shape: Shape, directions: Sequence[int]) -> IndexMap:
    """Return an access whose space, of this shape, is traversed backwards on some axes.

    >>> reverse_axes(((0, 2, 1), (1, 1, 0)), (3, 4), (-1, 1))
    ((0, -2, 5), (1, 1, 0))
    """
    return tuple(
        [
            (axis, coefficient, start)
            if axis is None or directions[axis] > 0
            else (axis, -coefficient, start + coefficient * (shape[axis] - 1))
            for axis, coefficient, start in access
        ]
    )


def is_permutation(access: IndexMap, ndim: int) -> bool:
    """Whether an access only orders the axes of its space."""
    plain = all(step == (step[0], 1, 0) and step[0] is not None for step in access)
    return plain and len({step[0] for step in access}) == ndim


def repeats(access: IndexMap, shape: Shape) -> bool:
    """Whether an axis of the space, of this shape, shows the same elements several times."""
    axes = {axis for axis, *_ in access}
    return any(length > 1 and axis not in axes for axis, length in enumerate(shape))


def canonical_slice(part: Slice) -> Slice:
    """Return the canonical form of a slice: axes of less than two positions have coefficient 1.

    >>> canonical_slice((((0, 2, 1), (1, 3, 5)), (1, 0)))
    (((0, 1, 1), (1, 1, 0)), (1, 0))
    """
    access, shape = part
    return tuple([_canonical_axis(step, shape) for step in access]), shape


def _canonical_axis(step: AxisMap, shape: Shape) -> AxisMap:
    axis, _, start = step
    if axis is None or shape[axis] > 1:
        return step
    return axis, 1, start if shape[axis] else 0


def checked_slice(shape: Shape, access: IndexMap, lengths: Shape) -> Slice:
    """Return a slice of an array of this shape, or raise ShapeError for what is none.

    >>> checked_slice((4,), ((0, -2, 3),), (2,))
    (((0, -2, 3),), (2,))
    """
    lengths = checked_shape(lengths)
    steps = tuple([(axis, index(by), index(start)) for axis, by, start in access])
    axes = {None if axis is None else index(axis) for axis, *_ in steps}
    is_valid = len(steps) == len(shape) and all(
        length == 1 for at, length in enumerate(lengths) if at not in axes
    )
    for (axis, by, start), length in zip(steps, shape, strict=False):
        is_valid &= axis is None or (by != 0 and 0 <= axis < len(lengths))
        count = lengths[axis] if is_valid and axis is not None else 1
        ends = start, start + (count - 1) * by
        is_valid &= 0 <= min(ends) <= max(ends) < length if count else 0 <= start <= length
    if not is_valid:
        rule = f"{access} of lengths {lengths} is not a slice of shape {shape}"
        raise ShapeError("", rule, remedy="take positions that are there")
    return steps, lengths


def updated_slice(part: Slice) -> Slice:
    """Return a slice as `set_at` has it: an axis of one position is fixed, so that equal parts have
    one form.

    >>> updated_slice((((0, 2, 1), (1, 1, 0)), (1, 4)))
    (((None, 0, 1), (1, 1, 0)), (1, 4))
    """
    access, shape = part
    fixed = [
        (None, 0, step[2]) if step[0] is None or shape[step[0]] == 1 else step for step in access
    ]
    return tuple(fixed), shape


def slice_of(picks: Sequence[Pick], new_axes: Sequence[int] = ()) -> Slice:
    """Return the slice that takes one pick of each axis, then inserts axes of length 1, in order.

    >>> slice_of(((1, 3, 1), 4), (1,))
    (((0, 1, 1), (None, 0, 4)), (3, 1))
    """
    access: list[AxisMap] = []
    shape: list[int] = []
    for pick in picks:
        if not isinstance(pick, tuple):
            access.append((None, 0, pick))
            continue
        while len(shape) in new_axes:
            shape.append(1)
        access.append((len(shape), pick[2], pick[0]))
        shape.append(pick[1])
    while len(shape) in new_axes:
        shape.append(1)
    return tuple(access), tuple(shape)


def whole_slice(shape: Shape) -> Slice:
    """Return the slice that is all of an array, as it is."""
    return tuple([(axis, 1, 0) for axis in range(len(shape))]), shape


def takes_all(part: Slice, shape: Shape) -> bool:
    """Whether a slice takes all elements of an array in order; it may insert axes of length 1."""
    access, lengths = part
    return all(
        axis is not None and (by, start, lengths[axis]) == (1, 0, length)
        for (axis, by, start), length in zip(access, shape, strict=True)
    )


def batched_slice(length: int, access: IndexMap, shape: Shape) -> Slice:
    """Return the same slice of each member of a batch, whose axis comes first."""
    steps = [(None if axis is None else axis + 1, by, start) for axis, by, start in access]
    return ((0, 1, 0), *steps), (length, *shape)


def picks_of(access: IndexMap, shape: Shape) -> tuple[tuple[Pick, ...], tuple[int, ...]]:
    """Return the picks and the new axes of a slice whose axes keep their order."""
    picks: list[Pick] = [
        start if axis is None else (start, shape[axis], step) for axis, step, start in access
    ]
    axes = {axis for axis, *_ in access}
    return tuple(picks), tuple([axis for axis in range(len(shape)) if axis not in axes])


def split_new_axes(part: Slice) -> tuple[Slice, tuple[int, ...]]:
    """Return a slice without the axes that read no axis of the array, and where those stand.

    >>> split_new_axes(slice_of(((1, 3, 1), 4), (0, 2)))
    ((((0, 1, 1), (None, 0, 4)), (3,)), (0, 2))
    """
    access, shape = part
    read = {axis for axis, *_ in access}
    new_axes = tuple([axis for axis in range(len(shape)) if axis not in read])
    if not new_axes:
        return part, ()
    axes = [
        None if axis in new_axes else axis - sum(n < axis for n in new_axes)
        for axis in range(len(shape))
    ]
    lengths = tuple([length for axis, length in enumerate(shape) if axis in read])
    return (remap_axes(access, axes), lengths), new_axes


def operand_slice(part: Slice, result: Shape, shape: Shape, first: int) -> tuple[Slice, int]:
    """Return which slice of an operand a slice of a result reads, and the axis of the latter at
    which it stands. The operand broadcasts to the result, its first axis stands at axis `first`.

    >>> operand_slice(slice_of(((1, 2, 1), (0, 3, 2), 3)), (4, 6, 5), (1, 5), 1)
    ((((0, 1, 0), (None, 0, 3)), (1,)), 1)
    """
    access, lengths = part
    begin = sum(step[0] is not None for step in access[:first])
    steps: list[AxisMap] = []
    operand_lengths: list[int] = []
    for (axis, by, start), length, whole in zip(
        access[first:], shape, result[first:], strict=False
    ):
        if length != whole:
            by, start = int(axis is not None), 0
        steps.append((None if axis is None else axis - begin, by, start))
        if axis is not None:
            operand_lengths.append(lengths[axis] if length == whole else 1)
    return (tuple(steps), tuple(operand_lengths)), begin


def ordered_slice(access: IndexMap, shape: Shape) -> tuple[Slice, tuple[int, ...]]:
    """Return a map as a slice with its axes in the array's order, and the permutation of that.

    >>> ordered_slice(((1, 2, 0), (None, 0, 4), (0, 1, 0)), (3, 5))
    ((((0, 2, 0), (None, 0, 4), (1, 1, 0)), (5, 3)), (1, 0))
    """
    order = [axis for axis, *_ in access if axis is not None]
    positions = tuple([order.index(axis) for axis in range(len(shape))])
    return (remap_axes(access, positions), tuple([shape[axis] for axis in order])), positions


def compose_slices(outer: Slice, inner: Slice) -> Slice | None:
    """Return the slice `outer` of the slice `inner` of an array.

    None if an axis is emptied that reads no axis of the array.

    >>> compose_slices(slice_of(((1, 2, 1),)), slice_of(((4, 3, -1),)))
    (((0, -1, 3),), (2,))
    """
    access, shape = canonical_slice((compose_view(outer[0], inner[0]), outer[1]))
    if 0 in shape:
        axes = {axis for axis, *_ in access}
        if any(length == 0 and axis not in axes for axis, length in enumerate(shape)):
            return None
    return access, shape


def are_disjoint(first: Slice, second: Slice, shape: Shape) -> bool:
    """Whether two slices of an array of this shape certainly share no element."""
    strides = row_major(shape)
    regions = [StridedRegion(*_region_of(part, strides), 1) for part in (first, second)]
    return overlap(*regions, steps=OVERLAP_STEPS).disjoint


def _region_of(part: Slice, strides: Shape) -> tuple[int, Shape, Shape]:
    """Return the first element, the shape and the strides of a slice, in elements."""
    access, shape = part
    slice_strides, offset = strides_in(access, strides, len(shape))
    return offset, shape, slice_strides


def coalesce(
    axes: Iterable[int], lengths: Sequence[int], layouts: Sequence[Sequence[int]]
) -> list[list[int]]:
    """Return runs of neighbouring axes, outer ones first, that one loop goes through: in each
    layout the stride of an axis is that of the next axis times its length.

    >>> coalesce((0, 1, 2), (2, 3, 4), [(96, 32, 8), (0, 32, 8)])
    [[0], [1, 2]]
    """
    runs: list[list[int]] = []
    for axis in axes:
        outer = runs[-1][-1] if runs else axis
        if runs and all(strides[outer] == strides[axis] * lengths[axis] for strides in layouts):
            runs[-1].append(axis)
        else:
            runs.append([axis])
    return runs


def relative_map(part: Slice, whole: Slice) -> IndexMap | None:
    """Return the map of a slice relative to another slice of the array; None unless it certainly
    lies inside.
    """
    (access, shape), (outer_access, outer_shape) = part, whole
    relative: list[AxisMap] = [FIXED] * len(outer_shape)
    used_axes: set[int] = set()
    for step, (outer_axis, by, begin) in zip(access, outer_access, strict=True):
        axis, coefficient, start = step
        length = 1 if axis is None else shape[axis]
        count = 1 if outer_axis is None else outer_shape[outer_axis]
        if length == 0 or outer_axis in used_axes:
            return None
        if outer_axis is None or count == 1:
            if start != begin or length != 1:
                return None
            continue
        used_axes.add(outer_axis)
        first_index, start_remainder = divmod(start - begin, by)
        stride, stride_remainder = divmod(coefficient, by) if length > 1 else (0, 0)
        last_index = first_index + stride * (length - 1)
        if start_remainder or stride_remainder:
            return None
        if min(first_index, last_index) < 0 or max(first_index, last_index) >= count:
            return None
        relative[outer_axis] = (axis, stride, first_index) if length > 1 else (None, 0, first_index)
    return tuple(relative)
