"""Gather rules: where an operation finds each element it returns, for use in its declaration.

Takes the index of an element of the result, hands on elements of the inputs. The rule
`element_at(k, at, *sources, *params)` of an operation says which input is read at which index,
under which condition. Numbers that follow from shapes come from `at.number`, so that a kernel does
not depend on them.

>>> body = Body()
>>> at = ResultIndex((body.index(0),), (5,), lambda n: body.constant(n, INT64))
>>> x = GatherSource((3,), INT64, lambda index, valid: body.gather(0, INT64, index[0], valid))
>>> valid = at[0] < at.number(3)
>>> element = select_element(body, valid, x.at(at, valid), body.constant(7, INT64))
>>> print(body)
%0 = index int64, 0
%1 = constant int64, 3
%2 = less bool %0 %1
%3 = gather int64 %0 %2, 0
%4 = constant int64, 7
%5 = select int64 %2 %3 %4
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tenfold.core.index_map import IndexMap
from tenfold.core.scalar_ir import Body, ComplexElement, Element, Operand
from tenfold.core.shape_rules import Shape
from tenfold.dtypes import INT64, kind_of


class ResultBlock(NamedTuple):
    """A block of a result: a part of an input, or a fill value."""

    start: tuple[int, ...]
    """Where it begins in the result, on each axis."""
    shape: Shape
    source: int | None = None
    """The number of the input; None: it holds `fill`."""
    reads: IndexMap | None = None
    """How the input is read by this block; None: as it is."""
    fill: complex = 0


@dataclass(frozen=True)
class ResultIndex:
    """The index of an element of the result: an int64 element for each axis."""

    axes: tuple[Element, ...]
    shape: Shape
    """Of the result."""
    number: Callable[[int], Element]
    """From a number to an int64 element that is given at the launch."""

    def __getitem__(self, axis: int) -> Element:
        return self.axes[axis]

    def __iter__(self) -> Iterator[Element]:
        return iter(self.axes)

    def __len__(self) -> int:
        return len(self.axes)


@dataclass(frozen=True)
class GatherSource:
    """An input: its shape, the dtype of its elements, and a function that reads one."""

    shape: Shape
    dtype: np.dtype
    read: Callable[[Sequence[Element], Element | None], Operand]

    def at(self, index: ResultIndex | Sequence[Element], valid: Element | None = None) -> Operand:
        """Return the element at an index where `valid` (everywhere if None), else 0.

        On an axis of length 1 the index is always 0 (broadcasting).
        """
        elements = tuple(index)
        assert len(elements) == len(self.shape), "an index for each axis"
        return self.read(elements, valid)


def select_element(k: Body, condition: Element, x: Operand, y: Operand) -> Operand:
    """Return `x` where a condition holds, else `y`; complex elements part by part."""
    if isinstance(x, ComplexElement) and isinstance(y, ComplexElement):
        return ComplexElement(*(k.select(condition, a, b) for a, b in zip(x, y, strict=True)))
    assert isinstance(x, Element), "both are real"
    assert isinstance(y, Element), "or both complex"
    return k.select(condition, x, y)


def in_bounds(at: ResultIndex, index: Element, length: int) -> Element:
    """Return whether an index is in bounds of an axis of this length."""
    return (index >= 0) & (index < at.number(length))


def with_axis_index(at: ResultIndex, axis: int, index: Element) -> tuple[Element, ...]:
    """Return the index of an element with one axis replaced."""
    return (*at.axes[:axis], index, *at.axes[axis + 1 :])


def normalized_index(
    k: Body, at: ResultIndex, index: Operand, length: int, *, wraps: bool = True
) -> Element:
    """Return an index as a non-negative int64; a negative one counts from the end if it `wraps`.

    If it is out of bounds, the launch fails before the element is read.
    """
    assert isinstance(index, Element), "indices are integers"
    position, count = k.convert(index, INT64), at.number(length)
    if wraps and kind_of(index.dtype) == "i":
        position = k.select(position < 0, position + count, position)
    k.fail((position < 0) | (position >= count))  # a large uint64 has wrapped
    return position


__all__ = [
    "GatherSource",
    "ResultBlock",
    "ResultIndex",
    "in_bounds",
    "normalized_index",
    "select_element",
    "with_axis_index",
]
