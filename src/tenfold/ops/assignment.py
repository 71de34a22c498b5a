"""Functional update (`set_at`, `put_at`): an array with some elements replaced; the input stays
unchanged.

`x[key] = e` makes such a node of the value of `x` (package `array` rebinds it): `set_at` where the
key selects a regular part, `put_at` where it has integer arrays. An index map (`core/index_map.py`)
describes the part of `set_at`: for each axis of `x` the axis of the part or None, a coefficient, a
start.

>>> import tenfold as tn
>>> tn.set_at(tn.arange(5), slice(None, None, 2), 9).tolist()
[9, 1, 9, 3, 9]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold._native import Array, Type
from tenfold.core.gather_rules import GatherSource, ResultBlock, ResultIndex, select_element
from tenfold.core.index_map import (
    AxisMap,
    IndexMap,
    batched_slice,
    checked_slice,
    updated_slice,
)
from tenfold.core.op import BoundCall, Inferred, Kind, SampleCall
from tenfold.core.op_decorators import array, operation
from tenfold.core.scalar_ir import Body, Element, Operand
from tenfold.core.scatter_rules import ScatterRule, indexed_shape
from tenfold.core.shape_rules import Shape, product
from tenfold.dtypes import ScalarOperand as Typed
from tenfold.dtypes import holds_weak, kind_of, same_kind
from tenfold.errors import SCALAR_NAMES, DTypeError, ShapeError
from tenfold.ops import bounds_checks
from tenfold.ops.gathering import gather, integers
from tenfold.ops.index_parsing import index_error, parse_index, part_of_values

if TYPE_CHECKING:
    from tenfold.ops.batch_rules import Members


def refuse_misfit(value_shape: Shape, value: Typed | Type, shape: Shape, dtype: np.dtype) -> None:
    """Raise ShapeError or DTypeError for a value that cannot replace a part of this shape."""
    missing = len(shape) - len(value_shape)
    if value_shape and (
        missing < 0
        or any(n not in (1, m) for n, m in zip(value_shape, shape[missing:], strict=True))
    ):
        raise ShapeError(
            "",
            f"a value of shape {value_shape} does not broadcast to the target's shape {shape}",
            remedy="give one value, or one for each element of the target",
        )
    fits = holds_weak(dtype, value.dtype) if value.weak else same_kind(value.dtype, dtype)
    if not fits:
        name = f"a Python {SCALAR_NAMES[value.dtype.kind]}" if value.weak else value.dtype
        raise DTypeError(
            "",
            f"{name} cannot replace elements of {dtype} (same-kind rule)",
            remedy="take tn.real(e)"
            if kind_of(value.dtype) == "c" and kind_of(dtype) != "b"
            else f"convert the value first, with tn.astype(e, tn.{dtype})",
        )


def _set_at_rule(types: tuple[Type, ...], access: IndexMap, shape: Shape) -> Inferred:
    x, value = types
    refuse_misfit(value.shape, value, shape, x.dtype)
    return Inferred(((x.shape, x.dtype),), (x.dtype, x.dtype))


def _set_at_reference(
    x: np.ndarray, value: np.ndarray, access: IndexMap, shape: Shape
) -> np.ndarray:
    result = x.copy()
    part_of_values(result, access, shape)[...] = value
    return result


MAX_UPDATE_BLOCKS = 9
"""The most blocks, one kernel each: a box with slabs on both sides of four axes."""


def _set_at_pieces(shapes: Sequence[Shape], access: IndexMap, shape: Shape) -> Any:
    """The value as one block, and around it slabs of the array: where the part is a box."""
    x, value = shapes
    if not product(shape):
        return [ResultBlock((0,) * len(x), x, 0)]
    axes = [axis for axis, *_ in access if axis is not None]
    if len(set(axes)) < len(axes) or any(
        axis is not None and abs(step_length) != 1 for axis, step_length, _ in access
    ):
        return NotImplemented
    lengths = [1 if axis is None else shape[axis] for axis, *_ in access]
    box_start = [
        start if step_length >= 0 else start - length + 1
        for (_, step_length, start), length in zip(access, lengths, strict=True)
    ]
    axis_steps = {step[0]: (result_axis, *step[1:]) for result_axis, step in enumerate(access)}
    missing = len(shape) - len(value)
    reads = tuple(
        _value_read(axis_steps, axis, shape) if length != 1 else (None, 0, 0)
        for axis, length in enumerate(value, missing)
    )
    blocks = [
        ResultBlock(tuple(box_start), tuple(lengths), 1, reads),
        *_slabs(x, box_start, lengths),
    ]
    return blocks if len(blocks) <= MAX_UPDATE_BLOCKS else NotImplemented


def _value_read(axis_steps: dict[Any, Any], axis: int, shape: Shape) -> AxisMap:
    """The index-map step of one axis of the value, within its block of the result."""
    result_axis, coefficient, _ = axis_steps[axis]
    return (result_axis, coefficient, 0 if coefficient > 0 else shape[axis] - 1)


def _slabs(x: Shape, box_starts: Sequence[int], lengths: Sequence[int]) -> Iterator[ResultBlock]:
    """The slabs of `x` around a box, before and after it on each axis in turn."""
    start, shape = [0] * len(x), list(x)
    for axis, (box_start, length) in enumerate(zip(box_starts, lengths, strict=True)):
        box_end = box_start + length
        for low, high in ((0, box_start), (box_end, x[axis])):
            if low < high and product(shape):
                slab = (*shape[:axis], high - low, *shape[axis + 1 :])
                corner = (*start[:axis], low, *start[axis + 1 :])
                reads = tuple((a, 1, corner[a]) for a in range(len(x)))
                yield ResultBlock(corner, slab, 0, reads)
        start[axis], shape[axis] = box_start, length


def _set_at_element(
    k: Body, at: ResultIndex, x: GatherSource, value: GatherSource, access: IndexMap, shape: Shape
) -> Operand:
    """The element of the value where the index lies in the part, else that of the array."""
    positions: dict[int, Element] = {}
    conditions: list[Element] = []
    for coordinate, (axis, coefficient, start) in zip(at, access, strict=True):
        if axis is None:
            conditions.append(coordinate == at.number(start))
        elif axis in positions:
            conditions.append(
                coordinate == positions[axis] * at.number(coefficient) + at.number(start)
            )
        else:
            positions[axis], in_range = _part_position(
                at, coordinate, coefficient, start, shape[axis]
            )
            conditions.append(in_range)
    in_part = reduce(lambda a, b: a & b, conditions)
    missing = len(shape) - len(value.shape)
    zero = at.number(0)
    index = [
        positions[axis] if length != 1 else zero for axis, length in enumerate(value.shape, missing)
    ]
    return select_element(k, in_part, value.at(index, in_part), x.at(at, ~in_part))


def _part_position(
    at: ResultIndex, coordinate: Element, coefficient: int, start: int, length: int
) -> tuple[Element, Element]:
    """Return the position in the part of an index of the array, and whether there is one.

    An exact quotient by an odd number is a product modulo 2**64, and no other quotient gives the
    index back (Granlund and Montgomery 1994, "Division by invariant integers using
    multiplication", section 9).
    """
    distance = coordinate - at.number(start) if coefficient > 0 else at.number(start) - coordinate
    coefficient = abs(coefficient)
    if coefficient == 1:
        return distance, (distance >= 0) & (distance < at.number(length))
    twos = (coefficient & -coefficient).bit_length() - 1
    inverse = pow(coefficient >> twos, -1, 2**64)
    inverse -= 2**64 if inverse >= 2**63 else 0
    position = (distance >> at.number(twos)) * at.number(inverse)
    in_range = (position >= 0) & (position < at.number(length))
    return position, in_range & (position * at.number(coefficient) == distance)


def _set_at_members(members: Members, access: IndexMap, shape: Shape) -> Array:
    params = updated_slice(batched_slice(members.length, access, shape))
    result: Array = members.call((members.in_front(0), members.aligned(1, len(shape))), params)
    return result


@operation(
    rule=_set_at_rule,
    reference=_set_at_reference,
    pieces=_set_at_pieces,
    element_at=_set_at_element,
    index_map=lambda _, access, __: access,
    rebind=lambda x, value, *part: BoundCall((x, value), checked_slice(x.shape, *part)),
    updates=True,
    kind=Kind.VIEW,
    promotes=True,
    batch=_set_at_members,
    samples=[
        SampleCall(((2, 3),), positional=(0, 5)),
        SampleCall(((4, 3),), positional=((slice(None, None, -2), 1), 5)),
        SampleCall(((),), positional=(Ellipsis, 1)),
    ],
)
def set_at(x: Array, key: Any, value: Array | complex, /) -> BoundCall:
    """Return `x` with the part `x[key]` replaced by `value`, which broadcasts to its shape and is
    converted to the dtype of `x`; `x` itself does not change. The key has ints, slices, `...` and
    None.

    Raises ShapeError for a value that does not broadcast, DTypeError for one of another kind
    (complex for real, float for int), IndexError for a key that does not fit. To change what `x`
    names, write `x[key] = value`.

    >>> import tenfold as tn
    >>> x = tn.asarray([1, 2, 3])
    >>> tn.set_at(x, slice(1, None), 0).tolist(), x.tolist()
    ([1, 0, 0], [1, 2, 3])
    """
    x = array(x)
    parsed = parse_index(x, key, "set_at")
    if parsed.arrays:
        raise index_error(x, "set_at", "arrays in the key say no regular part", "use tn.put_at")
    return BoundCall((x, value), updated_slice(parsed.part))


def _put_at_rule(types: tuple[Type, ...], axes: tuple[int, ...], index_axis: int) -> Inferred:
    x, value, *indices = types
    if any(kind_of(index_type.dtype) not in "iu" for index_type in indices):
        index_dtypes = ", ".join(str(index_type.dtype) for index_type in indices)
        rule = f"indices are integers, not {index_dtypes}"
        raise DTypeError("", rule, remedy="convert with tn.astype(i, tn.int64)")
    shape = indexed_shape(x.shape, [index_type.shape for index_type in indices], axes, index_axis)
    refuse_misfit(value.shape, value, shape, x.dtype)
    dtypes = (x.dtype, x.dtype, *(index_type.dtype for index_type in indices))
    return Inferred(((x.shape, x.dtype),), dtypes)


def _put_at_reference(x: np.ndarray, value: np.ndarray, *args: Any) -> np.ndarray:
    """One position after the other, in row-major order of the indices: the last one wins."""
    *indices, axes, index_axis = args
    checked = (
        bounds_checks.validated_indices(index_array, axis, x.shape[axis])
        for index_array, axis in zip(indices, axes, strict=True)
    )
    index_arrays = np.broadcast_arrays(*checked)
    count = index_arrays[0].ndim
    lengths = [x.shape[axis] for axis in axes]
    moved = np.moveaxis(x, axes, range(len(axes)))
    rows = moved.copy().reshape(product(lengths), *moved.shape[len(axes) :])
    shape = indexed_shape(
        x.shape, [index_array.shape for index_array in index_arrays], axes, index_axis
    )
    value_rows = np.moveaxis(
        np.broadcast_to(value, shape), range(index_axis, index_axis + count), range(count)
    )
    row_numbers = np.zeros(index_arrays[0].shape, np.intp)
    for index_array, length in zip(index_arrays, lengths, strict=True):
        row_numbers = row_numbers * length + np.where(
            index_array < 0, index_array + length, index_array
        )
    rows[row_numbers.reshape(-1)] = value_rows.reshape(row_numbers.size, *rows.shape[1:])
    return np.moveaxis(rows.reshape(moved.shape), range(len(axes)), axes)


def _put_at_members(members: Members, axes: tuple[int, ...], index_axis: int) -> Array:
    """Batch rule. Where the indices are batched, the member numbers are one more index array, and
    the index axes come first in the part.
    """
    count = len(members.operands)
    indices = [members.shape(at) for at in range(2, count)]
    ndim = len(indexed_shape(members.shape(0), indices, axes, index_axis))
    x, value, batched_axes = (
        members.in_front(0),
        members.aligned(1, ndim),
        tuple(a + 1 for a in axes),
    )
    result: Array
    if not any(members.batched[2:]):
        result = members.call((x, value, *members.operands[2:]), (batched_axes, index_axis + 1))
        return result
    index_ndim = max(map(len, indices))
    if isinstance(value, Array):
        value = members.spread(1, 0, ndim - members.ndim(1))
        axis = int(members.batched[1])
        index_axes = range(axis + index_axis, axis + index_axis + index_ndim)
        remaining_axes = [
            dimension for dimension in range(axis, value.ndim) if dimension not in index_axes
        ]
        value = members.permuted(value, (*range(axis), *index_axes, *remaining_axes))
    aligned = [members.aligned(at, index_ndim) for at in range(2, count)]
    result = members.call(
        (x, value, members.numbers(index_ndim), *aligned), ((0, *batched_axes), 0)
    )
    return result


@operation(
    rule=_put_at_rule,
    reference=_put_at_reference,
    rebind=lambda x, value, *rest: BoundCall(
        (x, value, *rest[:-2]),
        gather.signature.bind(x, *rest[:-2], axes=rest[-2], place=rest[-1]).params,
    ),
    scatter=ScatterRule(
        kind="last",
        value=1,
        indices=slice(2, None),
        base=0,
        wraps=True,
        place=lambda axes, index_axis: (axes, index_axis),
    ),
    rule_free=True,
    promotes=True,
    indices=tuple(range(2, 66)),
    can_fail=True,
    batch=_put_at_members,
    samples=[
        SampleCall(((4, 3),), positional=(np.asarray([0, -1, 0]), np.asarray(True))),
        SampleCall(((4,),), positional=(np.asarray([[0, 3], [3, 0]], np.uint8), np.asarray(True))),
    ],
)
def put_at(x: Array, indices: Array, values: Array | complex, /) -> BoundCall:
    """Return `x` with the rows `indices` replaced by `values`; of an index that occurs twice the
    last row stays. `x` itself does not change.

    `x` is (n, ...), `indices` any shape of integers from -n to n - 1, `values` a number or an array
    that broadcasts to indices.shape + x.shape[1:], converted to the dtype of `x`. To change what
    `x` names, write `x[indices] = values`.

    Raises ShapeError for shapes that do not fit, DTypeError for values of another kind, IndexError
    for an index out of bounds: at the call if its value is known, else at the wait.

    >>> import tenfold as tn
    >>> tn.put_at(tn.zeros((3,)), tn.asarray([0, 2, 0]), tn.asarray([1.0, 2.0, 3.0])).tolist()
    [3.0, 0.0, 2.0]
    """
    x = array(x)
    rows = integers(indices, x)
    if x.ndim == 0:
        raise ShapeError("", "x of shape () has no axis to index", remedy="use tn.set_at")
    bounds_checks.check_known(rows, 0, x, "put_at")
    return BoundCall((x, values, rows), ((0,), 0))


__all__ = ["put_at", "refuse_misfit", "set_at"]
