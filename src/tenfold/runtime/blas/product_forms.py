"""Product forms: bring any product to a stack of (m, k) @ (k, n), or of their sums.

Takes which axes of two operands a product contracts and keeps, and the operands' shapes and
strides, hands on a ProductForm. Adjacent axes are coalesced where strides allow it; a stack that
shares its second operand is one tall matrix. Contracted axes that do not coalesce are nested loops.

>>> from tenfold.dtypes import FLOAT64
>>> x1 = ProductOperand((10, 3, 4), (96, 32, 8), FLOAT64)
>>> x2 = ProductOperand((4, 5), (40, 8), FLOAT64)
>>> form = form_of(Contraction(((2,), (0,)), ((1,), (1,))), x1, x2)
>>> form.stack.lengths, form.m, form.k, form.n
((), 30, 4, 5)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from tenfold.core.op import Contraction
from tenfold.core.shape_rules import Shape, broadcast, product
from tenfold.dtypes import REAL_DTYPES


class ProductOperand(NamedTuple):
    """An operand of a product: its shape, its strides in bytes and its dtype."""

    shape: Shape
    strides: tuple[int, ...]
    dtype: np.dtype


Axis = tuple[int, ...]
"""Of a stack: its length, then its strides in bytes."""


class StackAxes(NamedTuple):
    """Axes of a stack: lengths, and strides in bytes in both operands, and in what is added."""

    lengths: tuple[int, ...]
    first: tuple[int, ...]
    second: tuple[int, ...]
    third: tuple[int, ...] = ()
    """Nothing where nothing is added."""

    @property
    def axes(self) -> list[Axis]:
        """Axis by axis."""
        columns = self if self.third else self[:3]
        return list(zip(*columns, strict=True))


NO_AXES = StackAxes((), (), ())


@dataclass(frozen=True)
class ProductForm:
    """A stack of (m, k) @ (k, n): lengths, and strides in bytes as (row, column)."""

    dtype: np.dtype
    stack: StackAxes
    m: int
    k: int
    n: int
    first: tuple[int, int]
    second: tuple[int, int]
    third: int = 0
    """The bytes from row to row of what is added."""
    conjugated: bool = False
    swapped: bool = False
    """Whether the second operand of the operation is the first here."""
    sums: StackAxes = NO_AXES
    """Further axes that are contracted: products along them are added."""

    @property
    def count(self) -> int:
        """The products of the stack."""
        return product(self.stack.lengths)

    @property
    def multiply_adds(self) -> int:
        """The multiply-adds of all products."""
        return self.count * product(self.sums.lengths) * self.m * self.k * self.n

    @property
    def layouts(self) -> tuple[str, str]:
        """How each operand lies: "row", "column", or "any" strides."""
        shapes = ((self.m, self.k), (self.k, self.n))
        first, second = (
            layout_of(shape, strides, self.dtype)
            for shape, strides in zip(shapes, (self.first, self.second), strict=True)
        )
        return first, second

    @property
    def transposed(self) -> ProductForm:
        """The product of the transposes in the other order: the result's transpose; of one column,
        where something is added.
        """
        stack, sums = (
            axes._replace(first=axes.second, second=axes.first) for axes in (self.stack, self.sums)
        )
        return replace(
            self,
            stack=stack,
            m=self.n,
            n=self.m,
            first=self.second[::-1],
            second=self.first[::-1],
            third=0,
            swapped=not self.swapped,
            sums=sums,
        )


def layout_of(shape: tuple[int, int], strides: tuple[int, int], dtype: np.dtype) -> str:
    """Return how a matrix lies: "row" where elements of a row lie beside each other and rows do
    not overlap, "column" where it is so for columns, else "any": no flag of BLAS expresses it.

    >>> from tenfold.dtypes import FLOAT64
    >>> layout_of((3, 4), (32, 8), FLOAT64), layout_of((3, 4), (8, 24), FLOAT64)
    ('row', 'column')
    >>> layout_of((3, 4), (-32, 8), FLOAT64), layout_of((3, 4), (64, 16), FLOAT64)
    ('any', 'any')
    """
    (rows, columns), (row_stride, column_stride), itemsize = shape, strides, dtype.itemsize

    def is_contiguous(
        outer_length: int, outer_stride: int, inner_length: int, inner_stride: int
    ) -> bool:
        inner_contiguous = inner_stride == itemsize or inner_length <= 1
        return inner_contiguous and (
            outer_length <= 1
            or (outer_stride >= inner_length * itemsize and outer_stride % itemsize == 0)
        )

    if is_contiguous(rows, row_stride, columns, column_stride):
        return "row"
    return "column" if is_contiguous(columns, column_stride, rows, row_stride) else "any"


def form_of(
    contraction: Contraction,
    x1: ProductOperand,
    x2: ProductOperand,
    x3: ProductOperand | None = None,
) -> ProductForm:
    """Return the form of a product; an x2 for which `copy_order` asks for it is copied. x3 is what
    is added, in the shape of the result.

    The rows of the first operand begin as axes of the stack along which the second does not move.
    """
    assert x1.dtype == x2.dtype, "the operands are in the common dtype"
    sums, (k, *k_strides) = _contracted_axes(contraction, x1, x2)
    columns_axis = _coalesced_axis(x2, contraction.free[1])
    assert columns_axis is not None, "the caller has copied x2"
    rows = [(x1.shape[axis], x1.strides[axis], 0) for axis in contraction.free[0]]
    stacks = (
        _stack_strides(x, axes)
        for x, axes in zip((x1, x2), stack_axes(contraction, x1, x2), strict=True)
    )
    axes: list[Axis] = [*_broadcast_stacks(*stacks), *rows]
    if x3 is not None:
        axes = [(*axis, stride) for axis, stride in zip(axes, x3.strides, strict=False)]
    stack = _coalesce(axes)
    strides = (0, k_strides[0]), (k_strides[1], columns_axis[1])
    conjugated = contraction.conjugated and x1.dtype in REAL_DTYPES
    form = ProductForm(
        x1.dtype, stack, 1, k, columns_axis[0], *strides, conjugated=conjugated, sums=sums
    )
    return _stack_into_rows(form)


def stack_axes(
    contraction: Contraction, x1: ProductOperand, x2: ProductOperand
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the axes of each operand that are neither contracted nor kept."""
    used_axes = zip(contraction.contracted, contraction.free, strict=True)
    first, second = (
        tuple(axis for axis in range(len(x.shape)) if axis not in contracted + kept)
        for x, (contracted, kept) in zip((x1, x2), used_axes, strict=True)
    )
    return first, second


MIN_CONTIGUOUS = 8
"""Elements beside each other from which they are walked before a longer axis is."""


def _contracted_axes(
    contraction: Contraction, x1: ProductOperand, x2: ProductOperand
) -> tuple[StackAxes, Axis]:
    """Return the contracted axes: the one that is k, and before it those that cannot be walked as
    one with it, in the order in which `x1` lies. The longest is k, or rather one of some length
    along which elements lie beside each other: those of both, or of x2, which may be copied one by
    one.
    """
    axes = [
        (x1.shape[first_axis], x1.strides[first_axis], x2.strides[second_axis])
        for first_axis, second_axis in zip(*contraction.contracted, strict=True)
    ]
    if any(length == 0 for length, _, _ in axes):
        return NO_AXES, (0, 0, 0)
    coalesced = _coalesce(sorted(axes, key=lambda axis: -abs(axis[1]))).axes
    if not coalesced:
        return NO_AXES, (1, 0, 0)

    def rank(axis: Axis) -> tuple[int, int]:
        contiguous = [stride == x1.dtype.itemsize for stride in axis[1:]]
        return (sum(contiguous) * contiguous[1] if axis[0] >= MIN_CONTIGUOUS else 0), axis[0]

    k = max(coalesced, key=rank)
    coalesced.remove(k)
    return _coalesce(coalesced), k


def copy_order(
    contraction: Contraction, x1: ProductOperand, x2: ProductOperand
) -> tuple[int, ...] | None:
    """Return None, or the order of the axes of x2 in which it must be copied first: where several
    of them are kept that cannot be walked as one.

    >>> from tenfold.dtypes import FLOAT64
    >>> x = ProductOperand((2, 3, 4), (96, 32, 8), FLOAT64)
    >>> copy_order(Contraction(((1, 2), (1, 2)), ((0,), (0,))), x, x) is None
    True
    >>> copy_order(Contraction(((1,), (1,)), ((0, 2), (0, 2))), x, x)
    (1, 0, 2)
    """
    columns = contraction.free[1]
    if _coalesced_axis(x2, columns) is not None:
        return None
    return (*stack_axes(contraction, x1, x2)[1], *contraction.contracted[1], *columns)


def _coalesced_axis(operand: ProductOperand, axes: Sequence[int]) -> tuple[int, int] | None:
    """Return length and stride of axes that can be walked as one, in that order."""
    merged = _coalesce([(operand.shape[axis], operand.strides[axis], 0) for axis in axes])
    if 0 in merged.lengths:
        return 0, 0
    if len(merged.lengths) > 1:
        return None
    return (merged.lengths[0], merged.first[0]) if merged.lengths else (1, 0)


StridedAxes = tuple[Shape, tuple[int, ...]]
"""Lengths and strides of some axes."""


def _stack_strides(operand: ProductOperand, axes: Sequence[int]) -> StridedAxes:
    """Return lengths and strides of the axes of a stack; nothing moves along what is repeated."""
    lengths = tuple(operand.shape[axis] for axis in axes)
    return lengths, tuple(0 if operand.shape[axis] == 1 else operand.strides[axis] for axis in axes)


def _broadcast_stacks(first: StridedAxes, second: StridedAxes) -> list[Axis]:
    """Return the axes of a stack whose operands have these, aligned at the last."""
    lengths = broadcast(first[0], second[0])
    aligned_strides = (
        [0] * (len(lengths) - len(shape)) + [*strides] for shape, strides in (first, second)
    )
    return list(zip(lengths, *aligned_strides, strict=True))


def _coalesce(axes: Sequence[Axis]) -> StackAxes:
    """Leave out axes of length 1, and make one of neighbours that can be walked as one."""
    coalesced: list[Axis] = []
    for length, *strides in axes:
        if length == 1:
            continue
        if coalesced and coalesced[-1][1:] == tuple(stride * length for stride in strides):
            coalesced[-1] = (coalesced[-1][0] * length, *strides)
        else:
            coalesced.append((length, *strides))
    return StackAxes(*zip(*coalesced, strict=True)) if coalesced else StackAxes((), (), ())


def _stack_into_rows(form: ProductForm) -> ProductForm:
    """Make rows of the last axis of the stack, where the second operand does not move along it."""
    lengths, first, second, third = form.stack
    if not lengths or second[-1] != 0:
        return form
    remaining = StackAxes(*(column[:-1] for column in form.stack))
    row_stride = third[-1] if third else 0
    return replace(
        form, stack=remaining, m=lengths[-1], first=(first[-1], form.first[1]), third=row_stride
    )


def rows_into_stack(form: ProductForm) -> ProductForm:
    """Make an axis of the stack of the rows of a product with one column, or of its columns if it
    has one row: what is left is a stack of products of vectors.
    """
    m_axis, n_axis = (form.m, form.first[0], 0), (form.n, 0, form.second[1])
    axes = [*form.stack.axes, m_axis, n_axis]
    return replace(
        form,
        stack=_coalesce(axes),
        m=1,
        n=1,
        first=(0, form.first[1]),
        second=(form.second[0], 0),
    )
