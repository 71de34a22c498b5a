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


NONE = StackAxes((), (), ())


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
    sums: StackAxes = NONE
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
            suits(shape, strides, self.dtype)
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


def suits(shape: tuple[int, int], strides: tuple[int, int], dtype: np.dtype) -> str:
    """Return how a matrix lies: "row" where elements of a row lie beside each other and rows do
    not overlap, "column" where it is so for columns, else "any": no flag of BLAS expresses it.

    >>> from tenfold.dtypes import FLOAT64
    >>> suits((3, 4), (32, 8), FLOAT64), suits((3, 4), (8, 24), FLOAT64)
    ('row', 'column')
    >>> suits((3, 4), (-32, 8), FLOAT64), suits((3, 4), (64, 16), FLOAT64)
    ('any', 'any')
    """
    (rows, columns), (row, column), itemsize = shape, strides, dtype.itemsize

    def lies(outer: int, apart: int, inner: int, beside: int) -> bool:
        together = beside == itemsize or inner <= 1
        return together and (outer <= 1 or (apart >= inner * itemsize and apart % itemsize == 0))

    if lies(rows, row, columns, column):
        return "row"
    return "column" if lies(columns, column, rows, row) else "any"


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
    sums, (k, *along) = _summed(contraction, x1, x2)
    columns = _walked(x2, contraction.free[1])
    assert columns is not None, "the caller has copied x2"
    rows = [(x1.shape[axis], x1.strides[axis], 0) for axis in contraction.free[0]]
    stacks = (
        _stacked(x, axes) for x, axes in zip((x1, x2), stack_axes(contraction, x1, x2), strict=True)
    )
    axes: list[Axis] = [*_broadcast(*stacks), *rows]
    if x3 is not None:
        axes = [(*axis, stride) for axis, stride in zip(axes, x3.strides, strict=False)]
    stack = _merged(axes)
    strides = (0, along[0]), (along[1], columns[1])
    conjugated = contraction.conjugated and x1.dtype in REAL_DTYPES
    found = ProductForm(
        x1.dtype, stack, 1, k, columns[0], *strides, conjugated=conjugated, sums=sums
    )
    return _tall(found)


def stack_axes(
    contraction: Contraction, x1: ProductOperand, x2: ProductOperand
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the axes of each operand that are neither contracted nor kept."""
    taken = zip(contraction.contracted, contraction.free, strict=True)
    first, second = (
        tuple(axis for axis in range(len(x.shape)) if axis not in contracted + kept)
        for x, (contracted, kept) in zip((x1, x2), taken, strict=True)
    )
    return first, second


BESIDE = 8
"""Elements beside each other from which they are walked before a longer axis is."""


def _summed(
    contraction: Contraction, x1: ProductOperand, x2: ProductOperand
) -> tuple[StackAxes, Axis]:
    """Return the contracted axes: the one that is k, and before it those that cannot be walked as
    one with it, in the order in which `x1` lies. The longest is k, or rather one of some length
    along which elements lie beside each other: those of both, or of x2, which may be copied one by
    one.
    """
    axes = [
        (x1.shape[one], x1.strides[one], x2.strides[other])
        for one, other in zip(*contraction.contracted, strict=True)
    ]
    if any(length == 0 for length, _, _ in axes):
        return NONE, (0, 0, 0)
    found = _merged(sorted(axes, key=lambda axis: -abs(axis[1]))).axes
    if not found:
        return NONE, (1, 0, 0)

    def rank(axis: Axis) -> tuple[int, int]:
        beside = [stride == x1.dtype.itemsize for stride in axis[1:]]
        return (sum(beside) * beside[1] if axis[0] >= BESIDE else 0), axis[0]

    k = max(found, key=rank)
    found.remove(k)
    return _merged(found), k


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
    if _walked(x2, columns) is not None:
        return None
    return (*stack_axes(contraction, x1, x2)[1], *contraction.contracted[1], *columns)


def _walked(factor: ProductOperand, axes: Sequence[int]) -> tuple[int, int] | None:
    """Return length and stride of axes that can be walked as one, in that order."""
    merged = _merged([(factor.shape[axis], factor.strides[axis], 0) for axis in axes])
    if 0 in merged.lengths:
        return 0, 0
    if len(merged.lengths) > 1:
        return None
    return (merged.lengths[0], merged.first[0]) if merged.lengths else (1, 0)


Walk = tuple[Shape, tuple[int, ...]]
"""Lengths and strides of some axes."""


def _stacked(factor: ProductOperand, axes: Sequence[int]) -> Walk:
    """Return lengths and strides of the axes of a stack; nothing moves along what is repeated."""
    lengths = tuple(factor.shape[axis] for axis in axes)
    return lengths, tuple(0 if factor.shape[axis] == 1 else factor.strides[axis] for axis in axes)


def _broadcast(first: Walk, second: Walk) -> list[Axis]:
    """Return the axes of a stack whose operands have these, aligned at the last."""
    lengths = broadcast(first[0], second[0])
    moves = ([0] * (len(lengths) - len(shape)) + [*strides] for shape, strides in (first, second))
    return list(zip(lengths, *moves, strict=True))


def _merged(axes: Sequence[Axis]) -> StackAxes:
    """Leave out axes of length 1, and make one of neighbours that can be walked as one."""
    found: list[Axis] = []
    for length, *strides in axes:
        if length == 1:
            continue
        if found and found[-1][1:] == tuple(stride * length for stride in strides):
            found[-1] = (found[-1][0] * length, *strides)
        else:
            found.append((length, *strides))
    return StackAxes(*zip(*found, strict=True)) if found else StackAxes((), (), ())


def _tall(form: ProductForm) -> ProductForm:
    """Make rows of the last axis of the stack, where the second operand does not move along it."""
    lengths, first, second, third = form.stack
    if not lengths or second[-1] != 0:
        return form
    rest = StackAxes(*(each[:-1] for each in form.stack))
    row = third[-1] if third else 0
    return replace(form, stack=rest, m=lengths[-1], first=(first[-1], form.first[1]), third=row)


def rows_stacked(form: ProductForm) -> ProductForm:
    """Make an axis of the stack of the rows of a product with one column, or of its columns if it
    has one row: what is left is a stack of products of vectors.
    """
    m_axis, n_axis = (form.m, form.first[0], 0), (form.n, 0, form.second[1])
    axes = [*form.stack.axes, m_axis, n_axis]
    return replace(
        form,
        stack=_merged(axes),
        m=1,
        n=1,
        first=(0, form.first[1]),
        second=(form.second[0], 0),
    )
