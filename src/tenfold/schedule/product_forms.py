"""Product forms: bring any product to a stack of (m, k) @ (k, n), or of their sums.

Takes the contracted and the free axes of two operands, and their shapes and strides, hands on a
ProductForm. Adjacent axes are coalesced where strides allow it; a stack that
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

from tenfold.core.index_map import coalesce
from tenfold.core.op import Contraction
from tenfold.core.shape_rules import Shape, broadcast, product, row_major
from tenfold.core.structure import Half
from tenfold.core.symbolic.sym_int import is_size
from tenfold.dtypes import COMPLEX64, COMPLEX128, FLOAT32, FLOAT64, REAL_DTYPES
from tenfold.schedule.target import DEFAULT


class ProductOperand(NamedTuple):
    """An operand of a product: its shape, its strides in bytes and its dtype."""

    shape: Shape
    strides: tuple[int, ...]
    dtype: np.dtype


BLAS_ROUTINES = {FLOAT32: "sgemm", FLOAT64: "dgemm", COMPLEX64: "cgemm", COMPLEX128: "zgemm"}
"""The routine of BLAS for each dtype that has one."""
AxisGroup = tuple[int, ...]
"""The length of an axis, then its strides in bytes."""


class StackAxes(NamedTuple):
    """Stack axes: lengths, and strides in bytes in both operands and in the addend."""

    lengths: tuple[int, ...]
    first: tuple[int, ...]
    second: tuple[int, ...]
    third: tuple[int, ...] = ()
    """Empty without an addend."""

    @property
    def axes(self) -> list[AxisGroup]:
        """The axes one by one."""
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
    third: tuple[int, int] | None = None
    """The strides of the addend, if there is one."""
    conjugated: tuple[bool, bool] = (False, False)
    """Which operands are conjugated."""
    swapped: bool = False
    """Whether the second operand of the operation is the first here."""
    sums: StackAxes = NO_AXES
    """Further contracted axes."""

    @property
    def count(self) -> int:
        """The products of the stack."""
        return product(self.stack.lengths)

    @property
    def multiply_adds(self) -> int:
        """The multiply-adds of all products."""
        return self.count * product(self.sums.lengths) * self.m * self.k * self.n

    @property
    def is_symbolic(self) -> bool:
        """Whether lengths are formulas, for a symbolic executable."""
        lengths = (*self.stack.lengths, *self.sums.lengths, self.m, self.k, self.n)
        return any(is_size(length) for length in lengths)

    @property
    def layouts(self) -> tuple[str, str]:
        """The layout of each operand: "row", "column", or "any"."""
        shapes = ((self.m, self.k), (self.k, self.n))
        first, second = (
            layout_of(shape, strides, self.dtype)
            for shape, strides in zip(shapes, (self.first, self.second), strict=True)
        )
        return first, second

    @property
    def addend(self) -> str:
        """The layout of the addend: "row" if its rows are contiguous, else "any"; "" for none."""
        if self.third is None:
            return ""
        return "row" if self.third[1] == self.dtype.itemsize or self.n <= 1 else "any"

    @property
    def transposed(self) -> ProductForm:
        """The swapped product of the transposes, which gives the transpose of the result."""
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
            third=self.third and self.third[::-1],
            conjugated=self.conjugated[::-1],
            swapped=not self.swapped,
            sums=sums,
        )


class ScaledProduct(NamedTuple):
    """A product that is multiplied by a scalar, with an optional addend and mask."""

    third: ProductOperand | None = None
    """The addend, multiplied by a second scalar, in the shape of the result."""
    half: Half = Half.NONE
    """The half of the product or of an operand that is computed or read (`ops/syrk.py`); not
    for stacks."""


@dataclass(frozen=True)
class ProductChoice:
    """How a product is computed: by which routine, on which form of its operands, and why."""

    routine: str
    """A routine of BLAS, such as "dgemm", or a generated kernel: "small", "dot", "half" (of a
    symmetric result or a triangular operand), "blocked"; of a device "warps", "threads"."""
    reason: str
    form: ProductForm
    width: int
    """The bytes of a SIMD register of the processor."""
    operands: tuple[ProductOperand, ProductOperand]
    """The layouts for which it is chosen, in the dtype of the result, before a copy."""
    scaled: ScaledProduct | None = None
    copy_order: tuple[int, ...] = ()
    """The axis order in which the second operand is copied first; empty: it is not."""

    @property
    def is_blas(self) -> bool:
        """Whether a routine of BLAS computes it."""
        return self.routine in BLAS_ROUTINES.values()


def layout_of(shape: tuple[int, int], strides: tuple[int, int], dtype: np.dtype) -> str:
    """Return the layout of a matrix: "row" if rows are contiguous and do not overlap, "column" if
    columns are, else "any", which BLAS flags cannot express.

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
    """Return the form of a product; x2 is copied already if `copy_order` requires it. x3 is the
    addend, in the shape of the result; with one there is at most one axis of rows and of columns.

    The rows of x1 begin as stack axes along which x2 is broadcast.
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
    axes: list[AxisGroup] = [*_broadcast_stacks(*stacks), *rows]
    if x3 is not None:
        axes = [(*axis, stride) for axis, stride in zip(axes, x3.strides, strict=False)]
    stack = _coalesce(axes)
    strides = (0, k_strides[0]), (k_strides[1], columns_axis[1])
    is_complex = x1.dtype in REAL_DTYPES
    first, second = contraction.conjugated
    form = ProductForm(
        *(x1.dtype, stack, 1, k, columns_axis[0], *strides),
        third=None if x3 is None else (0, x3.strides[-1] if contraction.free[1] else 0),
        conjugated=(is_complex and first, is_complex and second),
        sums=sums,
    )
    return _stack_into_rows(form)


def stack_axes(
    contraction: Contraction, x1: ProductOperand, x2: ProductOperand
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the batch axes of each operand, neither contracted nor free."""
    used_axes = zip(contraction.contracted, contraction.free, strict=True)
    first, second = (
        tuple(axis for axis in range(len(x.shape)) if axis not in contracted + free)
        for x, (contracted, free) in zip((x1, x2), used_axes, strict=True)
    )
    return first, second


def _contracted_axes(
    contraction: Contraction, x1: ProductOperand, x2: ProductOperand
) -> tuple[StackAxes, AxisGroup]:
    """Return the axis k, and before it the contracted axes that do not coalesce with it, in the
    memory order of x1. k is an axis of some length that is contiguous in both operands or in x2,
    else the longest.
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

    def rank(axis: AxisGroup) -> tuple[int, int]:
        contiguous = [stride == x1.dtype.itemsize for stride in axis[1:]]
        return (
            sum(contiguous) * contiguous[1]
            if axis[0] >= DEFAULT.libraries.min_contiguous_elements
            else 0
        ), axis[0]

    k = max(coalesced, key=rank)
    coalesced.remove(k)
    return _coalesce(coalesced), k


def copy_order(
    contraction: Contraction, x1: ProductOperand, x2: ProductOperand
) -> tuple[int, ...] | None:
    """Return the axis order in which x2 must be copied, if its free axes do not coalesce; else
    None.

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
    """Return length and stride of axes coalesced in that order; None if they do not coalesce."""
    merged = _coalesce([(operand.shape[axis], operand.strides[axis], 0) for axis in axes])
    if 0 in merged.lengths:
        return 0, 0
    if len(merged.lengths) > 1:
        return None
    return (merged.lengths[0], merged.first[0]) if merged.lengths else (1, 0)


StridedAxes = tuple[Shape, tuple[int, ...]]
"""Lengths and strides of some axes."""


def _stack_strides(operand: ProductOperand, axes: Sequence[int]) -> StridedAxes:
    """Return lengths and strides of the batch axes; broadcast axes have stride 0."""
    lengths = tuple(operand.shape[axis] for axis in axes)
    return lengths, tuple(0 if operand.shape[axis] == 1 else operand.strides[axis] for axis in axes)


def _broadcast_stacks(first: StridedAxes, second: StridedAxes) -> list[AxisGroup]:
    """Return the broadcast batch axes of two operands, aligned at the last axis."""
    lengths = broadcast(first[0], second[0])
    aligned_strides = (
        [0] * (len(lengths) - len(shape)) + [*strides] for shape, strides in (first, second)
    )
    return list(zip(lengths, *aligned_strides, strict=True))


def _coalesce(axes: Sequence[AxisGroup]) -> StackAxes:
    """Drop axes of length 1, and coalesce neighbouring axes."""
    if not axes:
        return NO_AXES
    lengths, *layouts = zip(*axes, strict=True)
    runs = coalesce([axis for axis, n in enumerate(lengths) if n != 1], lengths, layouts)
    coalesced = [
        (product(lengths[axis] for axis in run), *[strides[run[-1]] for strides in layouts])
        for run in runs
    ]
    return StackAxes(*zip(*coalesced, strict=True)) if coalesced else NO_AXES


def copied_operand(x: ProductOperand, order: tuple[int, ...] | None) -> ProductOperand:
    """Return the layout of an operand after a copy with this axis order."""
    if not order:
        return x
    lengths = tuple([x.shape[axis] for axis in order])
    strides = dict(zip(order, row_major(lengths), strict=True))
    return x._replace(strides=tuple([x.dtype.itemsize * strides[i] for i in range(len(order))]))


def _stack_into_rows(form: ProductForm) -> ProductForm:
    """Turn the last stack axis into rows, if the second operand is broadcast along it."""
    lengths, first, second, third = form.stack
    if not lengths or second[-1] != 0:
        return form
    remaining = StackAxes(*(column[:-1] for column in form.stack))
    return replace(
        form,
        stack=remaining,
        m=lengths[-1],
        first=(first[-1], form.first[1]),
        third=form.third and (third[-1], form.third[1]),
    )


def rows_into_stack(form: ProductForm) -> ProductForm:
    """Turn the rows and columns of a product into stack axes, for a stack of dot products."""
    rows, columns = ((form.third[0],), (form.third[1],)) if form.third else ((), ())
    m_axis, n_axis = (form.m, form.first[0], 0, *rows), (form.n, 0, form.second[1], *columns)
    axes: list[AxisGroup] = [*form.stack.axes, m_axis, n_axis]
    return replace(
        form,
        stack=_coalesce(axes),
        m=1,
        n=1,
        third=form.third and (0, 0),
        first=(0, form.first[1]),
        second=(form.second[0], 0),
    )
