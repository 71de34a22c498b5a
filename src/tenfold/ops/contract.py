"""Contractions: products of matrices, vectors and tensors over contracted axes, and outer products.

Integers wrap, bool is "any of and", halves are accumulated in float32 and rounded once. Outer
products are elementwise products. Floating products are library calls: their sums have no fixed
order. So their error is bounded by the inner length, in units in the last place of the sum of the
moduli (Higham 2002, "Accuracy and Stability of Numerical Algorithms", section 3.5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Array, Type
from tenfold.core.op import BoundCall, Contraction, Inferred, SampleCall
from tenfold.core.op_decorators import array, derived, operation
from tenfold.core.shape_rules import Shape, broadcast, normalize_axes, normalize_axis, product
from tenfold.core.structure import product_structure
from tenfold.dtypes import compute_dtype, kind_of, promote
from tenfold.errors import IntegerError, ShapeError, UnsupportedError
from tenfold.ops.arithmetic import multiply
from tenfold.ops.batch_rules import ALONE_BITS, ONE_BY_ONE, Members
from tenfold.ops.complex import conj
from tenfold.ops.movement import permute_dims
from tenfold.ops.reshaping import reshape


def _product_result(types: Sequence[Type], shape: Shape) -> Inferred:
    """A product's result; halves enter as float32, so that only the result is rounded."""
    dtype = promote(types)
    return Inferred(((shape, dtype),), (compute_dtype(dtype),) * len(types))


def _matrix_shapes(types: Sequence[Type]) -> tuple[Shape, int, Shape]:
    """Return (the stack's shape, the inner length, the result's last axes) of a matrix product."""
    first, second = (type_.shape for type_ in types)
    if not first or not second:
        raise ShapeError(
            "", "a matrix product needs at least one axis on each side", remedy="scale with x * y"
        )
    inner = second[-2] if len(second) > 1 else second[0]
    if first[-1] != inner:
        raise ShapeError(
            "",
            f"inner lengths {first[-1]} and {inner} differ in {first} @ {second}",
            remedy="the last axis of the first must be as long as the last but one of the second"
            if len(second) > 1
            else "the last axis of the first must be as long as the second",
        )
    return broadcast(first[:-2], second[:-2]), inner, first[-2:-1] + second[-1:] * (len(second) > 1)


def _matmul_rule(types: tuple[Type, ...]) -> Inferred:
    stack, _, matrix = _matrix_shapes(types)
    return _product_result(types, stack + matrix)


def _matmul_multiply_adds(types: tuple[Type, ...]) -> int:
    stack, inner, matrix = _matrix_shapes(types)
    return product(stack) * inner * product(matrix)


def _matmul_contraction(types: tuple[Type, ...]) -> Contraction:
    first, second = (type_.ndim for type_ in types)
    rows = (first - 2,) if first > 1 else ()
    columns = (second - 1,) if second > 1 else ()
    return Contraction(((first - 1,), (max(0, second - 2),)), (rows, columns))


SHORT_SUM = 8
"""Complex products that a stack sums otherwise than one product of two vectors does."""


def _with_alone_bits(members: Members, rows: int, columns: int, length: int) -> Members:
    """Repeat a shared matrix for members of one column that must have their bits: side by side
    columns would be summed otherwise than each alone.

    Raises UnsupportedError where a stack has other bits.
    """
    if not ALONE_BITS.get() or columns > 1:
        return members
    is_complex = any(kind_of(x.dtype) == "c" for x in members.operands)
    if rows == 1 and is_complex and length < SHORT_SUM:
        raise UnsupportedError(members.op.name, "a short complex sum", remedy=ONE_BY_ONE)
    if members.batched[0]:
        return members
    return replace(members, operands=tuple(map(members.in_front, (0, 1))), batched=(True, True))


def contraction_members(members: Members, *params: Any) -> Array:
    """Batch rule: one product whose stack begins with the batch axis. A shared first operand goes
    second where the members have one column, so that the planner can make one matrix of them.
    """
    assert members.op.rewriting.contraction is not None, "a product"
    types = tuple(
        Type(members.shape(at), x.dtype, x.device) for at, x in enumerate(members.operands)
    )
    contracted, free, conjugated = members.op.rewriting.contraction(types, *params)
    rows, columns = (product(types[at].shape[axis] for axis in free[at]) for at in (0, 1))
    length = product(types[0].shape[axis] for axis in contracted[0])
    members = _with_alone_bits(members, rows, columns, length)
    first, second = (
        conj(x) if conjugates and kind_of(x.dtype) == "c" else x
        for x, conjugates in zip(members.operands, conjugated, strict=True)
    )
    conjugated_members = replace(members, operands=(first, second))
    batched = members.batched
    order = (1, 0) if columns == 1 and not batched[0] else (0, 1)
    stack_ndims = [members.ndim(at) - len(contracted[at]) - len(free[at]) for at in (0, 1)]
    missing_axes = [max(stack_ndims) - stack_ndims[at] if batched[at] else 0 for at in (0, 1)]
    aligned = [conjugated_members.spread(at, 0, missing_axes[at]) for at in (0, 1)]
    offsets = [batched[at] + missing_axes[at] for at in (0, 1)]
    pairing = [tuple(axis + offsets[at] for axis in contracted[at]) for at in order]
    free_axes = [tuple(axis + offsets[at] for axis in free[at]) for at in order]
    result = _native.apply(
        contract.id, tuple(aligned[at] for at in order), (tuple(pairing), tuple(free_axes))
    )
    if order == (0, 1):
        return result
    axes, last = range(result.ndim), result.ndim - len(free[0])
    split = last - len(free[1])
    return members.permuted(result, (*axes[:split], *axes[last:], *axes[split:last]))


def _matmul_members(members: Members) -> Array:
    """Batch rule: matrices become a stack. Vectors times a shared matrix become the rows of a
    matrix. All else, and columns times a shared matrix, follows `contraction_members`.
    """
    first, second = members.shape(0), members.shape(1)
    rows, columns = (first[-2] if len(first) > 1 else 1), (second[-1] if len(second) > 1 else 1)
    members = _with_alone_bits(members, rows, columns, first[-1])
    x1, x2 = members.operands
    ndim1, ndim2 = members.ndim(0), members.ndim(1)
    if min(ndim1, ndim2) > 1 and (members.batched[0] or x2.shape[-1] > 1):
        ndim = max(ndim1, ndim2)
        result: Array = members.call((members.aligned(0, ndim), members.aligned(1, ndim)))
    elif (ndim1, ndim2) == (1, 2) and members.batched == (True, False):
        result = members.call((x1, x2))
    elif (ndim1, ndim2) == (2, 1) and members.batched == (False, True):
        result = members.call((x2, permute_dims(x1, (1, 0))))
    else:
        result = contraction_members(members)
    return result


@operation(
    bind_depends_on="types",
    rule=_matmul_rule,
    contraction=_matmul_contraction,
    reference=np.matmul,
    symbol="@",
    structure=product_structure,
    promotes=True,
    multiply_adds=_matmul_multiply_adds,
    numpy=(np.linalg.matmul,),
    also=("linalg",),
    batch=_matmul_members,
    samples=[
        SampleCall(((2, 3), (3, 4))),
        SampleCall(((3,), (3,))),
        SampleCall(((2, 3), (3,))),
        SampleCall(((3,), (3, 2))),
        SampleCall(((4, 2, 3), (4, 3, 5))),
        SampleCall(((4, 1, 2, 3), (5, 3, 2))),
        SampleCall(((2, 0), (0, 3))),
        SampleCall(((0, 3), (3, 2))),
    ],
)
def matmul(x1: Array, x2: Array, /) -> BoundCall:
    """Matrix product `x1 @ x2`: (..., m, k) @ (..., k, n) is (..., m, n); dtypes promote.

    Leading axes are a stack and broadcast. A vector (k,) is a row on the left, a column on the
    right, and its axis is gone from the result. An inner length of 0 gives zeros. Integers wrap,
    bool is "any of and", halves are accumulated in float32 and rounded once. Raises ShapeError for
    an operand without axes and for inner lengths that differ.

    >>> import tenfold as tn
    >>> (tn.asarray([[1, 2], [3, 4]]) @ tn.asarray([10, 1])).tolist()
    [12, 34]
    """
    return BoundCall((array(x1), array(x2)))


def _vecdot_shapes(types: Sequence[Type], axis: int) -> tuple[Shape, int]:
    """Return (the result's shape, the length of the vectors)."""
    first, second = (type_.shape for type_ in types)
    if first[axis] != second[axis]:
        raise ShapeError(
            "",
            f"vectors of lengths {first[axis]} and {second[axis]} meet on axis {axis}",
            remedy="the axis of the vectors does not broadcast; give equal lengths",
        )
    stacks = (s[:axis] + s[len(s) + axis + 1 :] for s in (first, second))
    return broadcast(*stacks), first[axis]


def _vecdot_rule(types: tuple[Type, ...], axis: int) -> Inferred:
    return _product_result(types, _vecdot_shapes(types, axis)[0])


def _vecdot(x1: np.ndarray, x2: np.ndarray, axis: int) -> np.ndarray:
    return np.asarray(np.vecdot(np.moveaxis(x1, axis, -1), np.moveaxis(x2, axis, -1)))


def _vecdot_contraction(types: tuple[Type, ...], axis: int) -> Contraction:
    first, second = (type_.ndim + axis for type_ in types)
    return Contraction(((first,), (second,)), ((), ()), conjugated=(True, False))


@operation(
    bind_depends_on="types",
    rule=_vecdot_rule,
    contraction=_vecdot_contraction,
    reference=_vecdot,
    promotes=True,
    multiply_adds=lambda types, axis: (
        product(_vecdot_shapes(types, axis)[0]) * types[0].shape[axis]
    ),
    numpy=(np.vecdot, np.linalg.vecdot),
    also=("linalg",),
    batch=contraction_members,
    samples=[
        SampleCall(((3,), (3,))),
        SampleCall(((2, 3), (3,))),
        SampleCall(((3, 1), (3, 4)), {"axis": -2}),
        SampleCall(((2, 0), (1, 0))),
    ],
)
def vecdot(x1: Array, x2: Array, /, *, axis: int = -1) -> BoundCall:
    """Product of vectors along `axis`: the sum of conj(x1) * x2, (..., k) and (..., k) to (...).

    The other axes broadcast, `axis` does not. It counts from the last axis; from the first only
    where both operands have as many axes. Halves are accumulated in float32. Raises ShapeError for
    an axis out of range and for lengths that differ.

    >>> import tenfold as tn
    >>> tn.vecdot(tn.asarray([1j, 2]), tn.asarray([1j, 3])).item()
    (7+0j)
    """
    x1, x2 = array(x1), array(x2)
    min_ndim = min(x1.ndim, x2.ndim)
    position = normalize_axis(axis, min_ndim)
    if axis >= 0 and x1.ndim != x2.ndim:
        raise ShapeError(
            "",
            f"axis {axis} is ambiguous for {x1.ndim} and {x2.ndim} axes",
            remedy=f"count from the last axis: {-min_ndim} to -1",
        )
    return BoundCall((x1, x2), (position - min_ndim,))


AxisPairs = tuple[tuple[int, ...], tuple[int, ...]]
"""The axes of the first operand and the axes of the second they are contracted with."""


def _normalize_axis_pairs(x1: Array, x2: Array, axes: Any) -> AxisPairs:
    """Return `axes` as two equally long tuples of axes counted from 0."""
    if isinstance(axes, Sequence) and not isinstance(axes, str):
        if len(axes) != 2:
            raise ShapeError(
                "",
                f"axes {axes!r} are not two",
                remedy="give a number, or (axes of x1, axes of x2)",
            )
        pair = [tuple(item) if isinstance(item, Sequence) else (item,) for item in axes]
        first, second = (
            tuple(normalize_axis(axis, x.ndim) for axis in item)
            for x, item in zip((x1, x2), pair, strict=True)
        )
        _check_pairing(first, second)
        return first, second
    count = _normalize_axis_count(axes, min(x1.ndim, x2.ndim))
    return tuple(range(x1.ndim - count, x1.ndim)), tuple(range(count))


def _normalize_axis_count(count: Any, limit: int) -> int:
    """Return a number of axes to contract, or raise ShapeError when there are not as many."""
    if isinstance(count, bool) or not isinstance(count, (int, np.integer)):
        raise IntegerError(
            "",
            f"axes {count!r} is not an int or a pair of sequences of ints",
            remedy="as in axes=1 or axes=((0, 1), (1, 0))",
        )
    if not 0 <= count <= limit:
        raise ShapeError(
            "", f"{count} axes cannot be contracted", remedy=f"both operands have 0 to {limit}"
        )
    return int(count)


def _check_pairing(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    if len(first) != len(second):
        raise ShapeError(
            "",
            f"{len(first)} axes of the first are paired with {len(second)} of the second",
            remedy="pair each axis with one",
        )
    for axes in (first, second):
        if len(set(axes)) < len(axes):
            raise ShapeError("", f"axes {axes} name an axis twice", remedy="name each axis once")


def _remaining_lengths(shape: Shape, axes: Sequence[int]) -> Shape:
    return tuple(length for axis, length in enumerate(shape) if axis not in axes)


def _tensordot_rule(types: tuple[Type, ...], axes: AxisPairs) -> Inferred:
    first, second = (type_.shape for type_ in types)
    for axis1, axis2 in zip(*axes, strict=True):
        if first[axis1] != second[axis2]:
            raise ShapeError(
                "",
                f"axis {axis1} of the first has length {first[axis1]}, "
                f"axis {axis2} of the second {second[axis2]}",
                remedy="paired axes must be equally long",
            )
    return _product_result(
        types, _remaining_lengths(first, axes[0]) + _remaining_lengths(second, axes[1])
    )


def _tensordot_multiply_adds(types: tuple[Type, ...], axes: AxisPairs) -> int:
    return product(types[0].shape) * product(_remaining_lengths(types[1].shape, axes[1]))


def _tensordot_contraction(types: tuple[Type, ...], axes: AxisPairs) -> Contraction:
    free1, free2 = (
        tuple(axis for axis in range(type_.ndim) if axis not in paired)
        for type_, paired in zip(types, axes, strict=True)
    )
    return Contraction(axes, (free1, free2))


@operation(
    bind_depends_on="types",
    rule=_tensordot_rule,
    contraction=_tensordot_contraction,
    promotes=True,
    multiply_adds=_tensordot_multiply_adds,
    numpy=(np.tensordot, np.linalg.tensordot),
    also=("linalg",),
    batch=contraction_members,
    samples=[
        SampleCall(((2, 3, 4), (3, 4, 5))),
        SampleCall(((2, 3), (4,)), {"axes": 0}),
        SampleCall(((2, 3, 4), (4, 2)), {"axes": ((0, 2), (1, 0))}),
        SampleCall(((2, 0), (0, 3)), {"axes": 1}),
    ],
)
def tensordot(x1: Array, x2: Array, /, axes: Any = 2) -> BoundCall:
    """Contract `axes` of `x1` with `axes` of `x2`; the axes of `x1` that are left come first.

    `axes` is a number n (the last n of `x1`, in order, with the first n of `x2`) or a pair (axes
    of `x1`, axes of `x2`). Nothing is conjugated. Halves are accumulated in float32. Raises
    ShapeError for axes out of range, named twice, unequal in number or in length.

    >>> import tenfold as tn
    >>> tn.tensordot(tn.asarray([[1, 2], [6, 5]]), tn.asarray([[1, 2], [5, 6]])).item()
    65
    """
    x1, x2 = array(x1), array(x2)
    return BoundCall((x1, x2), (_normalize_axis_pairs(x1, x2, axes),))


def _contract_rule(types: tuple[Type, ...], contracted: AxisPairs, free: AxisPairs) -> Inferred:
    first, second = (type_.shape for type_ in types)
    assert [first[i] for i in contracted[0]] == [second[i] for i in contracted[1]], "they meet"
    stacks, free_lengths = [], []
    for shape, contracted_axes, free_axes in zip((first, second), contracted, free, strict=True):
        stacks.append(_remaining_lengths(shape, contracted_axes + free_axes))
        free_lengths.append(tuple(shape[axis] for axis in free_axes))
    return _product_result(types, broadcast(*stacks) + free_lengths[0] + free_lengths[1])


def _contract(x1: np.ndarray, x2: np.ndarray, contracted: AxisPairs, free: AxisPairs) -> np.ndarray:
    """By np.einsum: a letter for each contracted or free axis, an ellipsis for the stack."""
    alphabet = iter("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    contracted_letters = [next(alphabet) for _ in contracted[0]]
    free_letters = [[next(alphabet) for _ in axes] for axes in free]
    operands, terms = [], []
    for x, contracted_axes, axes, names in zip(
        (x1, x2), contracted, free, free_letters, strict=True
    ):
        matrix_axes = range(x.ndim - len(contracted_axes) - len(axes), x.ndim)
        operands.append(np.moveaxis(x, contracted_axes + axes, matrix_axes))
        terms.append("..." + "".join(contracted_letters + names))
    text = f"{terms[0]},{terms[1]}->...{''.join(free_letters[0] + free_letters[1])}"
    return np.asarray(np.einsum(text, *operands, optimize=True))


def _contract_multiply_adds(types: tuple[Type, ...], contracted: AxisPairs, free: AxisPairs) -> int:
    (shape, _) = _contract_rule(types, contracted, free).results[0]
    return product(shape) * product(types[0].shape[axis] for axis in contracted[0])


def _contract_again(x1: Array, x2: Array, contracted: AxisPairs, free: AxisPairs) -> BoundCall:
    ((first, second),) = tensordot.signature.bind(x1, x2, contracted).params
    others = [
        tuple([normalize_axis(axis, x.ndim) for axis in axes])
        for x, axes in zip((x1, x2), free, strict=True)
    ]
    for x, axes in zip((x1, x2), ((*first, *others[0]), (*second, *others[1])), strict=True):
        normalize_axes(axes, x.ndim)
    return contract.signature.bind(x1, x2, (first, second), tuple(others))


@operation(
    rule=_contract_rule,
    rebind=_contract_again,
    portable=True,
    contraction=lambda _, *params: Contraction(*params),
    reference=_contract,
    promotes=True,
    multiply_adds=_contract_multiply_adds,
    public=False,
    batch=contraction_members,
)
def contract(x1: Array, x2: Array, /, contracted: AxisPairs, free: AxisPairs) -> BoundCall:
    """Product of stacks over several axes: each pair of `contracted` is summed over, the `free`
    axes of one operand stay in the result, the others are a stack and broadcast.

    `einsum` uses it for two operands whose axes do not coalesce. The result has the axes of the
    stack, the free ones of `x1` and those of `x2`. Halves are accumulated in float32.

    >>> import tenfold as tn
    >>> x = tn.asarray([[1, 2], [3, 4]])
    >>> contract(x, x, ((0, 1), (1, 0)), ((), ())).item()
    29
    """
    return BoundCall((array(x1), array(x2)), (contracted, free))


@derived(
    numpy=(np.outer, np.linalg.outer),
    also=("linalg",),
    samples=[SampleCall(((2,), (3,))), SampleCall(((0,), (3,)))],
)
def outer(x1: Array, x2: Array, /) -> Array:
    """Every element of `x1` times every element of `x2`: (m,) and (n,) to (m, n); dtypes promote.

    Raises ShapeError unless both operands are vectors.

    >>> import tenfold as tn
    >>> tn.outer(tn.asarray([1, 2]), tn.asarray([3, 4, 5])).tolist()
    [[3, 4, 5], [6, 8, 10]]
    """
    x1, x2 = array(x1), array(x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ShapeError(
            "",
            f"shapes {x1.shape} and {x2.shape} are no vectors",
            remedy="reshape with (-1,) first",
        )
    return multiply(reshape(x1, (x1.size, 1)), x2)


@derived(
    numpy=(np.kron,),
    samples=[
        SampleCall(((2, 3), (4, 5))),
        SampleCall(((2,), (3, 4))),
        SampleCall(((2, 1, 3), (2,))),
        SampleCall(((), (3,))),
        SampleCall(((2, 0), (3, 4))),
    ],
)
def kron(x1: Array, x2: Array, /) -> Array:
    """Kronecker product: every element of `x1` times the whole of `x2`, (m, n), (p, q) to (mp, nq).

    Operands may have any number of axes; the one with fewer gets leading axes of length 1.

    >>> import tenfold as tn
    >>> tn.kron(tn.asarray([1, 10]), tn.asarray([1, 2, 3])).tolist()
    [1, 2, 3, 10, 20, 30]
    """
    x1, x2 = array(x1), array(x2)
    ndim = max(x1.ndim, x2.ndim)
    first, second = ((1,) * (ndim - len(shape)) + shape for shape in (x1.shape, x2.shape))
    blocks = reshape(x1, tuple(length for axis in first for length in (axis, 1)))
    copies = reshape(x2, tuple(length for axis in second for length in (1, axis)))
    lengths = tuple(a * b for a, b in zip(first, second, strict=True))
    return reshape(multiply(blocks, copies), lengths)
