"""Joining and splitting (`concat`, `stack`, `split`): arrays as one, one as several views; lazy.

A join reads the values that its inputs have at the call; its result is a copy. `joined_arrays`
returns the Arrays that a result of `concat` was joined from, so that it can be assigned to.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Array, Type
from tenfold.core.array_facts import ArrayFacts
from tenfold.core.gather_rules import ResultBlock
from tenfold.core.op import BoundCall, Inferred, Kind, SampleCall
from tenfold.core.op_decorators import along_next_axis, array, derived, operation
from tenfold.core.shape_rules import Shape, normalize_axis, normalize_slice, product, whole_axes
from tenfold.dtypes import promote
from tenfold.errors import DTypeError, ShapeError
from tenfold.ops.indexing import index_view
from tenfold.ops.reshaping import reshape


def _concat_rule(types: tuple[Type, ...], axis: int) -> Inferred:
    first_shape = types[0].shape
    for position, type_ in enumerate(types[1:], 2):
        shape = type_.shape
        unequal = [
            a
            for a in range(min(len(first_shape), len(shape)))
            if shape[a] != first_shape[a] and a != axis
        ]
        if len(shape) != len(first_shape) or unequal:
            where = f"on axis {unequal[0]}" if unequal else "in the number of axes"
            raise ShapeError(
                "",
                f"shapes {first_shape} and {shape} of arrays 1 and {position} differ {where}",
                remedy=f"all lengths but the one of axis {axis} must be equal",
            )
    total = sum(type_.shape[axis] for type_ in types)
    dtype = promote(types)
    return Inferred(
        (((*first_shape[:axis], total, *first_shape[axis + 1 :]), dtype),), (dtype,) * len(types)
    )


def _concat_reference(*args: Any) -> np.ndarray:
    *arrays, axis = args
    return np.concatenate(arrays, axis)


def _to_operands(arrays: Sequence[Array]) -> list[Array]:
    """The arrays of a call, or the rows of one."""
    try:
        operands = [array(item) for item in arrays]
    except TypeError as error:
        if isinstance(error, DTypeError):
            raise
        rule = f"{type(arrays).__name__} is not a sequence of arrays"
        raise DTypeError("", rule, remedy="give a list of them") from None
    if not operands:
        raise ShapeError("", "no array was given", remedy="give one at least")
    return operands


def _concat_pieces(shapes: Sequence[Shape], axis: int) -> Any:
    if len(shapes) > _native.TIERS.max_joined_blocks:
        return NotImplemented
    ends = list(accumulate(shape[axis] for shape in shapes))
    starts = [end - shape[axis] for end, shape in zip(ends, shapes, strict=True)]
    return [
        ResultBlock(tuple(start if a == axis else 0 for a in range(len(shape))), shape, number)
        for number, (start, shape) in enumerate(zip(starts, shapes, strict=True))
    ]


_Movement = tuple[int, tuple[Any, ...]]
_ViewReference = tuple[Any, tuple[_Movement, ...]]
"""A weak reference to a base Array, and the movements from it to the view."""
_concat_operands: ArrayFacts[tuple[_ViewReference, ...]] = ArrayFacts()
"""The operands of results of `concat`."""


def _remember(result: Array, arrays: Sequence[Array]) -> None:
    _concat_operands[result] = tuple(map(_view_reference, arrays))


def _view_reference(x: Array) -> _ViewReference:
    """Return a weak reference to `x`, or to its base with the movements to `x`."""
    movements: list[_Movement] = []
    while x.base is not None:
        node = _native.node_of(x)
        movements.append((node.op.id, node.params))
        x = x.base
    return weakref.ref(x), tuple(reversed(movements))


def joined_arrays(joined: Array) -> list[Array | None] | None:
    """Return the Arrays that a result of `concat` joins, None for each that is freed; None for
    another Array, and for one that has been assigned to since.
    """
    references = _concat_operands.get(joined)
    if references is None or _native.node_of(joined).op is not concat:
        return None
    return [_dereference(*name) for name in references]


def _dereference(reference: Any, movements: Sequence[_Movement]) -> Array | None:
    x: Array | None = reference()
    for op_id, params in movements if x is not None else ():
        x = _native.apply(op_id, (x,), params)
    return x


@operation(
    rule_free=True,
    rule=_concat_rule,
    reference=_concat_reference,
    pieces=_concat_pieces,
    joins=True,
    kind=Kind.VIEW,
    promotes=True,
    on_call=_remember,
    numpy=(np.concatenate,),
    batch_params=along_next_axis,
    samples=[
        SampleCall(((2, 3), (4, 3))),
        SampleCall(((2, 0), (2, 3), (2, 1)), {"axis": -1}),
        SampleCall(((2, 3), (), (1,)), {"axis": None}),
        SampleCall(((3,),)),
    ],
)
def concat(arrays: Sequence[Array], /, axis: int | None = 0) -> BoundCall:
    """Return `arrays` joined along `axis`, in which alone their shapes may differ; for None each is
    flattened first. The dtype is the common one.

    Raises ShapeError for other lengths that differ and for arrays without axes.

    >>> import tenfold as tn
    >>> tn.concat([tn.asarray([1, 2]), tn.asarray([3.5])]).tolist()
    [1.0, 2.0, 3.5]
    """
    operands = _to_operands(arrays)
    if axis is None:
        return BoundCall(tuple(reshape(x, (-1,)) for x in operands), (0,))
    if operands[0].ndim == 0:
        raise ShapeError(
            "", "an array without axes cannot be joined", remedy="use tn.stack, or axis=None"
        )
    return BoundCall(tuple(operands), (normalize_axis(axis, operands[0].ndim),))


def _stack_rule(types: tuple[Type, ...], axis: int) -> Inferred:
    first_shape, distinct = types[0].shape, dict.fromkeys(types)
    for type_ in distinct:
        if type_.shape != first_shape:
            position = types.index(type_) + 1
            raise ShapeError(
                "",
                f"shapes {first_shape} and {type_.shape} of arrays 1 and {position} differ",
                remedy="broadcast them first, with tn.broadcast_arrays",
            )
    dtype = promote(distinct)
    shape = (*first_shape[:axis], len(types), *first_shape[axis:])
    return Inferred(((shape, dtype),), (dtype,) * len(types))


def _stack_reference(*args: Any) -> np.ndarray:
    *arrays, axis = args
    return np.stack(arrays, axis)


def _stack_pieces(shapes: Sequence[Shape], axis: int) -> Any:
    (operand_shape, *_), ndim = shapes, len(shapes[0])
    if len(shapes) > _native.TIERS.max_joined_blocks:
        return NotImplemented
    if axis == ndim and product(operand_shape) > 1:
        return NotImplemented  # single elements side by side
    shape = (*operand_shape[:axis], 1, *operand_shape[axis:])
    reads = tuple((a + (a >= axis), 1, 0) for a in range(ndim))
    return [
        ResultBlock(
            tuple(number if a == axis else 0 for a in range(ndim + 1)), shape, number, reads
        )
        for number in range(len(shapes))
    ]


@operation(
    rule_free=True,
    rule=_stack_rule,
    reference=_stack_reference,
    pieces=_stack_pieces,
    joins=True,
    kind=Kind.VIEW,
    promotes=True,
    numpy=(np.stack,),
    batch_params=along_next_axis,
    samples=[
        SampleCall(((2, 3), (2, 3))),
        SampleCall(((), (), ()), {"axis": -1}),
        SampleCall(((0, 2), (0, 2)), {"axis": 1}),
    ],
)
def stack(arrays: Sequence[Array], /, axis: int = 0) -> BoundCall:
    """Return `arrays` of one shape joined along a new axis that stands at `axis` in the result.

    Raises ShapeError for shapes that differ.

    >>> import tenfold as tn
    >>> tn.stack([tn.asarray([1, 2]), tn.asarray([3, 4])], axis=1).tolist()
    [[1, 3], [2, 4]]
    """
    operands = _to_operands(arrays)
    return BoundCall(tuple(operands), (normalize_axis(axis, operands[0].ndim + 1),))


@derived(
    numpy=(np.unstack,),
    samples=[SampleCall(((3, 2),)), SampleCall(((2, 3),), {"axis": -1})],
)
def unstack(x: Array, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Return the views of `x` at each position along `axis`, without that axis, as a tuple.

    >>> import tenfold as tn
    >>> [row.tolist() for row in tn.unstack(tn.asarray([[1, 2], [3, 4]]))]
    [[1, 2], [3, 4]]
    """
    x = array(x)
    unstacked_axis, picks = normalize_axis(axis, x.ndim), whole_axes(x.shape)
    return tuple(
        index_view(x, (*picks[:unstacked_axis], position, *picks[unstacked_axis + 1 :]))
        for position in range(x.shape[unstacked_axis])
    )


@derived(
    numpy=(np.split,),
    samples=[
        SampleCall(((6, 2),), positional=(3,)),
        SampleCall(((2, 5),), {"axis": 1}, ((1, 4),)),
        SampleCall(((0,),), positional=(2,)),
    ],
)
def split(
    x: Array, indices_or_sections: int | Sequence[int], /, axis: int = 0
) -> tuple[Array, ...]:
    """Return views of `x` that part it along `axis`, as a tuple: an int asks for so many equal
    parts, a sequence says before which positions to cut, as slices would.

    Raises ShapeError when the length is not a multiple of the number of parts.

    >>> import tenfold as tn
    >>> [part.tolist() for part in tn.split(tn.arange(5), [1, 4])]
    [[0], [1, 2, 3], [4]]
    """
    x = array(x)
    split_axis, whole_picks = normalize_axis(axis, x.ndim), whole_axes(x.shape)
    length = x.shape[split_axis]
    cuts = _split_positions(indices_or_sections, length)
    bounds = zip((None, *cuts), (*cuts, None), strict=True)
    picks = [normalize_slice(slice(start, stop), length) for start, stop in bounds]
    return tuple(
        index_view(x, (*whole_picks[:split_axis], pick, *whole_picks[split_axis + 1 :]))
        for pick in picks
    )


def _split_positions(sections: int | Sequence[int], length: int) -> list[int]:
    if not isinstance(sections, (int, np.integer)):
        try:
            return [operator.index(cut) for cut in sections]
        except TypeError:
            raise ShapeError(
                "",
                f"positions {sections!r} are no ints",
                remedy="give ints, as in tn.split(x, [1, 4])",
            ) from None
    if sections < 1 or length % sections:
        raise ShapeError(
            "",
            f"{length} positions do not make {sections} equal parts",
            remedy="give the positions to cut before, as in tn.split(x, [1, 4])",
        )
    return [length // sections * section for section in range(1, sections)]
