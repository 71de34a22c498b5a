"""Einsum steps: lowers an einsum to operations on one operand, or on two at a time.

Takes terms, places of values whose axes have labels, hands on steps: each an operation, the places
of its operands and its parameters. A product of two terms that sums over a label is one matrix
product. Labels of both terms and the result are its stack. Of the labels of one term alone, the
longest run that coalesces is its rows or columns; the others are part of the stack. So no operand
is copied into that form. A product without a sum is a map.

>>> from tenfold.dtypes import FLOAT64
>>> writer = PathBuilder(FLOAT64, 2, {"b": 4, "i": 5, "j": 6, "k": 7})
>>> x, y = writer.operand(0, ("i", "j"), (5, 6)), writer.operand(1, ("b", "j", "k"), (4, 6, 7))
>>> writer.product(x, y, {"b", "i", "k"}, ("b", "i", "k")).labels
('b', 'i', 'k')
>>> print(*writer.steps)
operands 0, 1: matmul()
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tenfold.core.op import Op, Params
from tenfold.core.shape_rules import Shape, product, row_major
from tenfold.dtypes import accumulator
from tenfold.ops.arithmetic import multiply
from tenfold.ops.cast import astype
from tenfold.ops.contract import contract, matmul
from tenfold.ops.diagonal_tril_triu import diagonal
from tenfold.ops.einsum_parser import Labels
from tenfold.ops.movement import permute_dims
from tenfold.ops.reduce import sum as sum_over
from tenfold.ops.reshaping import reshape

Axes = list[Labels]
"""Of an array: the labels that each axis walks as one, none where it has length 1."""
LONG = 16
"""Elements beside each other from which no longer axis is preferred to them."""


class EinsumStep(NamedTuple):
    """One operation of a recipe."""

    op: Op[...]
    places: tuple[int, ...]
    """Of its operands: those of the einsum have places from 0, the results of steps follow."""
    params: Params

    def __str__(self) -> str:
        places = ", ".join(map(str, self.places))
        params = ", ".join(map(str, self.params))
        return f"operand{'s' * (len(self.places) > 1)} {places}: {self.op.name}({params})"


@dataclass(frozen=True)
class EinsumPath:
    """What an einsum is made of; the last step makes the result."""

    steps: tuple[EinsumStep, ...]


class LabelledTerm(NamedTuple):
    """A value whose axes have labels, each label once."""

    place: int
    labels: Labels
    strides: Shape
    """In elements, of an operand in row-major order: which axes can be walked as one."""


class PathBuilder:
    """Writes the steps of a recipe, and knows the lengths of all labels."""

    def __init__(self, dtype: np.dtype, operands: int, lengths: Mapping[str, int]) -> None:
        self.dtype, self.operands, self.lengths = dtype, operands, lengths
        self.steps: list[EinsumStep] = []

    def add(self, op: Op[...], places: Sequence[int], *params: object) -> int:
        """Append a step, and return the place of what it makes."""
        self.steps.append(EinsumStep(op, tuple(places), params))
        return self.operands + len(self.steps) - 1

    def shape(self, labels: Iterable[str]) -> Shape:
        """Return the lengths of some labels."""
        return tuple(self.lengths[label] for label in labels)

    def operand(self, place: int, labels: Labels, shape: Shape) -> LabelledTerm:
        """Return an operand with each label once: diagonals taken; of several, without axes of
        length 1.
        """
        strides = row_major(shape)
        if self.operands > 1 and 1 in shape:
            long = [axis for axis, length in enumerate(shape) if length != 1]
            place = self.add(reshape, (place,), tuple(shape[axis] for axis in long))
            labels = tuple(labels[axis] for axis in long)
            strides = tuple(strides[axis] for axis in long)
        for label in dict.fromkeys(labels):
            while labels.count(label) > 1:
                first = labels.index(label)
                second = labels.index(label, first + 1)
                place = self.add(diagonal, (place,), 0, first, second)
                step = strides[first] + strides[second]
                labels = (*_without(labels, first, second), label)
                strides = (*_without(strides, first, second), step)
        return LabelledTerm(place, labels, strides)

    def made(self, place: int, labels: Labels) -> LabelledTerm:
        """Return what a computation has made, which lies in row-major order."""
        return LabelledTerm(place, labels, row_major(self.shape(labels)))

    def summed(self, term: LabelledTerm, kept: set[str]) -> LabelledTerm:
        """Return a term summed over every label that is not to be kept."""
        gone = tuple(axis for axis, label in enumerate(term.labels) if label not in kept)
        if not gone:
            return term
        place = self.add(sum_over, (term.place,), gone, False, None)
        if accumulator(self.dtype) != self.dtype:
            place = self.add(astype, (place,), self.dtype)
        return self.made(place, tuple(label for label in term.labels if label in kept))

    def permuted(self, place: int, axes: tuple[int, ...]) -> int:
        """Return a value with its axes in another order."""
        return self.add(permute_dims, (place,), axes)

    def ordered(self, term: LabelledTerm, labels: Labels) -> LabelledTerm:
        """Return a term with its axes in the order of some labels."""
        axes = tuple(term.labels.index(label) for label in labels)
        if axes == tuple(range(len(axes))):
            return term
        strides = tuple(term.strides[axis] for axis in axes)
        return LabelledTerm(self.permuted(term.place, axes), labels, strides)

    def shaped(self, place: int, labels: Labels, shape: Shape) -> list[EinsumStep]:
        """Return the step that gives a value of some labels a shape, if it has another."""
        return [] if self.shape(labels) == shape else [EinsumStep(reshape, (place,), (shape,))]

    def product(
        self, a: LabelledTerm, b: LabelledTerm, kept: set[str], output: Labels | None
    ) -> LabelledTerm:
        """Return the product of two terms, summed over the labels that are not to be kept; where
        the order of the result's axes is known, in that order if it costs nothing.
        """
        inner = [label for label in a.labels if label in b.labels and label not in kept]
        if not inner:
            return self._mapped(a, b, output)
        if output and output[-1] not in b.labels:
            a, b = b, a
        order = output or (*a.labels, *b.labels)
        stack = sorted(set(a.labels) & set(b.labels) & kept, key=order.index)
        rows = self._own(a, b, order)
        columns = self._own(b, a, order)
        return self._contracted(a, b, (stack, inner), (rows, columns))

    def _mapped(self, a: LabelledTerm, b: LabelledTerm, output: Labels | None) -> LabelledTerm:
        """Return the product of two terms element by element."""
        labels = output or (*a.labels, *(label for label in b.labels if label not in a.labels))
        places = []
        for term in (a, b):
            axes: Axes = [(label,) if label in term.labels else () for label in labels]
            places.append(self._arranged(term, _trimmed(axes)))
        return self.made(self.add(multiply, places), labels)

    def _own(
        self, term: LabelledTerm, other: LabelledTerm, order: Labels
    ) -> tuple[list[str], Labels]:
        """Return the labels that a term alone has: those of the stack, then the others, which can
        be walked as one. These are such as hold the last axis, if they are long, else the longest.
        """
        own = [label for label in term.labels if label not in other.labels]
        runs = self._runs(term, own)
        if not runs:
            return [], ()
        best = max(reversed(runs), key=lambda run: product(self.shape(run)))
        if product(self.shape(runs[-1])) >= LONG:
            best = runs[-1]
        rest = sorted((label for label in own if label not in best), key=order.index)
        return rest, best

    def _runs(self, term: LabelledTerm, labels: Sequence[str]) -> list[Labels]:
        """Cut labels, those with long strides first, into runs that can be walked as one."""
        runs: list[Labels] = []
        before = 0
        for stride, label in sorted(
            ((term.strides[term.labels.index(label)], label) for label in labels), reverse=True
        ):
            if runs and before == stride * self.lengths[label]:
                runs[-1] = (*runs[-1], label)
            else:
                runs.append((label,))
            before = stride
        return runs

    def _contracted(
        self,
        a: LabelledTerm,
        b: LabelledTerm,
        both: tuple[list[str], list[str]],
        own: tuple[tuple[list[str], Labels], tuple[list[str], Labels]],
    ) -> LabelledTerm:
        """Return the product of matrices whose rows and columns are the labels of a run each."""
        (stack, inner), ((upper, rows), (beside, columns)) = both, own
        upper, rows = [*upper, *rows[:-1]], rows[-1:]
        left = _trimmed([*_alone(stack), *[()] * len(beside), *_alone(upper)])
        right = _trimmed([*_alone(stack), *_alone(beside), *[()] * len(upper)])
        labels = (*stack, *beside, *upper, *rows, *columns)
        runs = self._runs(a, inner)
        if len(runs) > 1 or self._runs(b, inner) != runs:
            return self._by_axes(a, b, inner, (left, right), (rows, columns), labels)
        vectors = not stack and not rows, not stack and not columns
        first = self._arranged(a, [*left, *[rows] * (not vectors[0]), *runs])
        second = self._arranged(b, [*right, *runs, *[columns] * (not vectors[1])])
        place = self.add(matmul, (first, second))
        made = [*self.shape((*stack, *beside, *upper)), *[1] * (not vectors[0] and not rows)]
        ends = [product(self.shape(columns))] * (not vectors[1])
        shape = (*made, *self.shape(rows), *ends)
        if shape != self.shape(labels):
            place = self.add(reshape, (place,), self.shape(labels))
        return self.made(place, labels)

    def _by_axes(
        self,
        a: LabelledTerm,
        b: LabelledTerm,
        inner: list[str],
        stacks: tuple[Axes, Axes],
        own: tuple[Labels, Labels],
        labels: Labels,
    ) -> LabelledTerm:
        """Return a product over several axes that cannot be walked as one in both terms."""
        left, right = stacks
        rows, columns = own
        first = self._arranged(a, [*left, *_alone(rows), *_alone(inner)])
        second = self._arranged(b, [*right, *_alone(inner), *_alone(columns)])
        spans = (
            _span(len(left) + len(rows), len(inner)),
            _span(len(right), len(inner)),
            _span(len(left), len(rows)),
            _span(len(right) + len(inner), len(columns)),
        )
        return self.made(self.add(contract, (first, second), spans[:2], spans[2:]), labels)

    def _arranged(self, term: LabelledTerm, axes: Axes) -> int:
        """Return the place of a term whose axes are runs of labels, of length 1 where there are
        none.
        """
        labels = tuple(label for run in axes for label in run)
        place = self.ordered(term, labels).place
        shape = tuple(product(self.shape(run)) for run in axes)
        return place if shape == self.shape(labels) else self.add(reshape, (place,), shape)


def _alone(labels: Iterable[str]) -> Axes:
    """Return each label as a run of its own."""
    return [(label,) for label in labels]


def _trimmed(axes: Axes) -> Axes:
    """Return axes without those of length 1 that lead: broadcasting puts them there."""
    first = next((place for place, run in enumerate(axes) if run), len(axes))
    return axes[first:]


def _span(first: int, count: int) -> tuple[int, ...]:
    return tuple(range(first, first + count))


def _without(values: tuple[Any, ...], first: int, second: int) -> tuple[Any, ...]:
    """Return a tuple without the values at two places."""
    return (*values[:first], *values[first + 1 : second], *values[second + 1 :])
