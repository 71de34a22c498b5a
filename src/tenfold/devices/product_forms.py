"""The common form of products: a stack of (m, k) @ (k, n).

Takes an operation (`matmul`, `vecdot`, `tensordot`), its parameters and the shapes and strides of
its operands, hands on a Form: axes that can be walked as one are one, and a stack that shares its
second operand is one tall matrix.

>>> from tenfold.dtypes import FLOAT64
>>> x1 = Factor((10, 3, 4), (96, 32, 8), FLOAT64)
>>> x2 = Factor((4, 5), (40, 8), FLOAT64)
>>> form = form_of("matmul", (), x1, x2)
>>> form.stack.lengths, form.m, form.k, form.n
((), 30, 4, 5)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from tenfold.dtypes import PARTS
from tenfold.ir.shape import Shape, broadcast, product


class Factor(NamedTuple):
    """An operand of a product: its shape, its strides in bytes and its dtype."""

    shape: Shape
    strides: tuple[int, ...]
    dtype: np.dtype


class Stack(NamedTuple):
    """Axes of a stack: lengths, and strides in bytes in both operands."""

    lengths: tuple[int, ...]
    first: tuple[int, ...]
    second: tuple[int, ...]


@dataclass(frozen=True)
class Form:
    """A stack of (m, k) @ (k, n): lengths, and strides in bytes as (row, column)."""

    dtype: np.dtype
    stack: Stack
    m: int
    k: int
    n: int
    first: tuple[int, int]
    second: tuple[int, int]
    conjugated: bool = False
    swapped: bool = False
    """Whether the second operand of the operation is the first here."""

    @property
    def count(self) -> int:
        """The products of the stack."""
        return product(self.stack.lengths)

    @property
    def multiply_adds(self) -> int:
        """The multiply-adds of all products."""
        return self.count * self.m * self.k * self.n

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
    def transposed(self) -> Form:
        """The product of the transposes in the other order: the result's transpose."""
        stack = Stack(self.stack.lengths, self.stack.second, self.stack.first)
        return replace(
            self,
            stack=stack,
            m=self.n,
            n=self.m,
            first=self.second[::-1],
            second=self.first[::-1],
            swapped=not self.swapped,
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


Params = tuple[Any, ...]
Axis = tuple[int, int, int]
"""Of a stack: its length, its stride in bytes in the first operand and in the second."""


def form_of(operation: str, params: Params, x1: Factor, x2: Factor) -> Form:
    """Return the form of a product; operands for which `copy_orders` asks for it are copied."""
    assert x1.dtype == x2.dtype, "the operands are in the common dtype"
    if operation == "matmul":
        return _matmul(x1, x2)
    if operation == "vecdot":
        return _vecdot(x1, x2, *params)
    return _tensordot(x1, x2, *params)


def _matmul(x1: Factor, x2: Factor) -> Form:
    left, right = x1, x2
    if len(x1.shape) == 1:
        left = x1._replace(shape=(1, *x1.shape), strides=(0, *x1.strides))
    if len(x2.shape) == 1:
        right = x2._replace(shape=(*x2.shape, 1), strides=(*x2.strides, 0))
    (m, k), n = left.shape[-2:], right.shape[-1]
    rows = (left.strides[-2], left.strides[-1]), (right.strides[-2], right.strides[-1])
    stack = _stack((left.shape[:-2], left.strides[:-2]), (right.shape[:-2], right.strides[:-2]))
    return _tall(Form(x1.dtype, _merged(stack), m, k, n, *rows))


def _vecdot(x1: Factor, x2: Factor, axis: int) -> Form:
    def without(factor: Factor) -> tuple[Shape, tuple[int, ...]]:
        at = len(factor.shape) + axis
        return tuple(
            sequence[:at] + sequence[at + 1 :] for sequence in (factor.shape, factor.strides)
        )  # type: ignore[return-value]  # a pair, as it was

    first, second = x1.strides[axis], x2.strides[axis]
    stack = _merged(_stack(without(x1), without(x2)))
    strides = (0, first), (second, 0)
    return Form(x1.dtype, stack, 1, x1.shape[axis], 1, *strides, conjugated=x1.dtype in PARTS)


def _tensordot(x1: Factor, x2: Factor, axes: tuple[Sequence[int], Sequence[int]]) -> Form:
    first, second = _paired(x1, axes)
    free = [axis for axis in range(len(x1.shape)) if axis not in first]
    kept = [axis for axis in range(len(x2.shape)) if axis not in second]
    contracted, other, columns = (
        _walked(factor, chosen) for factor, chosen in ((x1, first), (x2, second), (x2, kept))
    )
    assert contracted is not None, "the caller has copied x1"
    assert other is not None, "the caller has copied x2"
    assert columns is not None, "the caller has copied x2"
    stack = _merged([(x1.shape[axis], x1.strides[axis], 0) for axis in free])
    strides = (0, contracted[1]), (other[1], columns[1])
    return _tall(Form(x1.dtype, stack, 1, contracted[0], columns[0], *strides))


def _paired(x1: Factor, axes: tuple[Sequence[int], Sequence[int]]) -> tuple[list[int], list[int]]:
    """Return the contracted axes, pairs in the order in which `x1` lies, where that helps."""
    pairs = sorted(zip(*axes, strict=True), key=lambda pair: -abs(x1.strides[pair[0]]))
    if _walked(x1, [one for one, _ in pairs]) is None:
        pairs = list(zip(*axes, strict=True))
    return [one for one, _ in pairs], [other for _, other in pairs]


def copy_orders(
    operation: str, params: Params, x1: Factor, x2: Factor
) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
    """Return for each operand None, or the order of its axes in which it must be copied first.

    Only `tensordot` of axes that cannot be walked as one needs a copy.

    >>> from tenfold.dtypes import FLOAT64
    >>> x = Factor((2, 3, 4), (96, 32, 8), FLOAT64)
    >>> copy_orders("tensordot", (((1, 2), (1, 2)),), x, x)
    (None, None)
    >>> copy_orders("tensordot", (((0, 2), (0, 2)),), x, x)
    ((1, 0, 2), (0, 2, 1))
    """
    if operation != "tensordot":
        return None, None
    first, second = _paired(x1, params[0])
    free = [axis for axis in range(len(x1.shape)) if axis not in first]
    kept = [axis for axis in range(len(x2.shape)) if axis not in second]
    left = _walked(x1, first) is None
    right = _walked(x2, second) is None or _walked(x2, kept) is None
    return (*free, *first) if left else None, (*second, *kept) if right else None


def _walked(factor: Factor, axes: Sequence[int]) -> tuple[int, int] | None:
    """Return length and stride of axes that can be walked as one, in that order."""
    merged = _merged([(factor.shape[axis], factor.strides[axis], 0) for axis in axes])
    if 0 in merged.lengths:
        return 0, 0
    if len(merged.lengths) > 1:
        return None
    return (merged.lengths[0], merged.first[0]) if merged.lengths else (1, 0)


def _stack(
    first: tuple[Shape, tuple[int, ...]], second: tuple[Shape, tuple[int, ...]]
) -> list[Axis]:
    """Return the axes of a broadcast stack; an operand does not move along what it repeats."""
    lengths = broadcast(first[0], second[0])

    def strides(shape: Shape, given: tuple[int, ...]) -> list[int]:
        moving = [0 if length == 1 else stride for length, stride in zip(shape, given, strict=True)]
        return [0] * (len(lengths) - len(shape)) + moving

    return list(zip(lengths, strides(*first), strides(*second), strict=True))


def _merged(axes: Sequence[Axis]) -> Stack:
    """Leave out axes of length 1, and make one of neighbours that can be walked as one."""
    found: list[Axis] = []
    for length, first, second in axes:
        if length == 1:
            continue
        if found and found[-1][1:] == (first * length, second * length):
            found[-1] = (found[-1][0] * length, first, second)
        else:
            found.append((length, first, second))
    lengths, left, right = zip(*found, strict=True) if found else ((), (), ())
    return Stack(lengths, left, right)


def _tall(form: Form) -> Form:
    """Make rows of the last axis of a stack that shares its second operand."""
    lengths, first, second = form.stack
    if not lengths or second[-1] != 0:
        return form
    if form.m != 1 and first[-1] != form.m * form.first[0]:
        return form
    row = first[-1] if form.m == 1 else form.first[0]
    rest = Stack(lengths[:-1], first[:-1], second[:-1])
    return replace(form, stack=rest, m=form.m * lengths[-1], first=(row, form.first[1]))


def rows_stacked(form: Form) -> Form:
    """Make an axis of the stack of the rows of a product with one column, or of its columns if it
    has one row: what is left is a stack of products of vectors.
    """
    m_axis, n_axis = (form.m, form.first[0], 0), (form.n, 0, form.second[1])
    axes = [*zip(*form.stack, strict=True), m_axis, n_axis]
    return replace(
        form,
        stack=_merged(axes),
        m=1,
        n=1,
        first=(0, form.first[1]),
        second=(form.second[0], 0),
    )
