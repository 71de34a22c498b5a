"""Einsum steps: lowers an einsum to operations on one operand, or on two at a time.

Takes terms, values whose axes have labels. Hands on steps: each an operation, the positions of its
operands and its parameters. A product of two terms that sums over a label is one matrix product.
Labels of both terms and the result are its stack. Of the labels of one term alone, the longest run
that coalesces is its rows or columns; the others are part of the stack. So no operand is copied. A
product without a sum is a map.

>>> from tenfold.dtypes import FLOAT64
>>> builder = PathBuilder(FLOAT64, 2, {"b": 4, "i": 5, "j": 6, "k": 7})
>>> x, y = builder.operand(0, ("i", "j"), (5, 6)), builder.operand(1, ("b", "j", "k"), (4, 6, 7))
>>> builder.product(x, y, {"b", "i", "k"}, ("b", "i", "k")).labels
('b', 'i', 'k')
>>> print(*builder.steps)
operands 0, 1: matmul()
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tenfold.core.index_map import coalesce
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

AxisLabels = list[Labels]
"""The labels that coalesce into each axis of an array; none for an axis of length 1."""
LONG_RUN = 16
"""A contiguous run of so many elements is preferred to any longer run with strides."""


class EinsumStep(NamedTuple):
    """One operation of a path."""

    op: Op[...]
    operands: tuple[int, ...]
    """Positions: the operands of the einsum count from 0, the results of steps follow."""
    params: Params

    def __str__(self) -> str:
        operands = ", ".join(map(str, self.operands))
        params = ", ".join(map(str, self.params))
        return f"operand{'s' * (len(self.operands) > 1)} {operands}: {self.op.name}({params})"


@dataclass(frozen=True)
class EinsumPath:
    """The operations of an einsum; the last step returns the result."""

    steps: tuple[EinsumStep, ...]


class LabelledTerm(NamedTuple):
    """A value whose axes have labels, each label once."""

    position: int
    labels: Labels
    strides: Shape
    """In elements, for an operand in row-major order: they tell which axes coalesce."""


class PathBuilder:
    """Builds the steps of a path; it knows the lengths of all labels."""

    def __init__(self, dtype: np.dtype, operands: int, lengths: Mapping[str, int]) -> None:
        self.dtype, self.operands, self.lengths = dtype, operands, lengths
        self.steps: list[EinsumStep] = []

    def add(self, op: Op[...], operands: Sequence[int], *params: object) -> int:
        """Append a step, and return the position of its result."""
        self.steps.append(EinsumStep(op, tuple(operands), params))
        return self.operands + len(self.steps) - 1

    def shape(self, labels: Iterable[str]) -> Shape:
        """Return the lengths of some labels."""
        return tuple(self.lengths[label] for label in labels)

    def operand(self, position: int, labels: Labels, shape: Shape) -> LabelledTerm:
        """Return an operand with each label once: diagonals taken; of several, without axes of
        length 1.
        """
        strides = row_major(shape)
        if self.operands > 1 and 1 in shape:
            kept_axes = [axis for axis, length in enumerate(shape) if length != 1]
            position = self.add(reshape, (position,), tuple(shape[axis] for axis in kept_axes))
            labels = tuple(labels[axis] for axis in kept_axes)
            strides = tuple(strides[axis] for axis in kept_axes)
        for label in dict.fromkeys(labels):
            while labels.count(label) > 1:
                first = labels.index(label)
                second = labels.index(label, first + 1)
                position = self.add(diagonal, (position,), 0, first, second)
                step = strides[first] + strides[second]
                labels = (*_drop_two(labels, first, second), label)
                strides = (*_drop_two(strides, first, second), step)
        return LabelledTerm(position, labels, strides)

    def computed(self, position: int, labels: Labels) -> LabelledTerm:
        """Return the term of a computed value, which is in row-major order."""
        return LabelledTerm(position, labels, row_major(self.shape(labels)))

    def sum_out(self, term: LabelledTerm, kept_labels: set[str]) -> LabelledTerm:
        """Return a term summed over all labels but `kept_labels`."""
        summed_axes = tuple(
            axis for axis, label in enumerate(term.labels) if label not in kept_labels
        )
        if not summed_axes:
            return term
        position = self.add(sum_over, (term.position,), summed_axes, False, None)
        if accumulator(self.dtype) != self.dtype:
            position = self.add(astype, (position,), self.dtype)
        return self.computed(
            position, tuple(label for label in term.labels if label in kept_labels)
        )

    def permute(self, position: int, axes: tuple[int, ...]) -> int:
        """Return a value with its axes in another order."""
        return self.add(permute_dims, (position,), axes)

    def reorder(self, term: LabelledTerm, labels: Labels) -> LabelledTerm:
        """Return a term with its axes in the order of some labels."""
        axes = tuple(term.labels.index(label) for label in labels)
        if axes == tuple(range(len(axes))):
            return term
        strides = tuple(term.strides[axis] for axis in axes)
        return LabelledTerm(self.permute(term.position, axes), labels, strides)

    def reshape_step(self, position: int, labels: Labels, shape: Shape) -> list[EinsumStep]:
        """Return the step that gives a value of some labels a shape, if it has another."""
        return [] if self.shape(labels) == shape else [EinsumStep(reshape, (position,), (shape,))]

    def product(
        self, a: LabelledTerm, b: LabelledTerm, kept_labels: set[str], output: Labels | None
    ) -> LabelledTerm:
        """Return the product of two terms, summed over all labels but `kept_labels`; where
        the order of the result's axes is known, in that order if it costs nothing.
        """
        inner = [label for label in a.labels if label in b.labels and label not in kept_labels]
        if not inner:
            return self._elementwise_product(a, b, output)
        if output and output[-1] not in b.labels:
            a, b = b, a
        order = output or (*a.labels, *b.labels)
        stack = sorted(set(a.labels) & set(b.labels) & kept_labels, key=order.index)
        rows = self._free_labels(a, b, order)
        columns = self._free_labels(b, a, order)
        return self._matrix_product(a, b, (stack, inner), (rows, columns))

    def _elementwise_product(
        self, a: LabelledTerm, b: LabelledTerm, output: Labels | None
    ) -> LabelledTerm:
        """Return the product of two terms element by element."""
        labels = output or (*a.labels, *(label for label in b.labels if label not in a.labels))
        operands = []
        for term in (a, b):
            axes: AxisLabels = [(label,) if label in term.labels else () for label in labels]
            operands.append(self._arrange(term, _without_leading_ones(axes)))
        return self.computed(self.add(multiply, operands), labels)

    def _free_labels(
        self, term: LabelledTerm, partner: LabelledTerm, order: Labels
    ) -> tuple[list[str], Labels]:
        """Return the labels that a term alone has: those of the stack, then those that coalesce.
        The latter are the run of the last axis if it is long, else the longest run.
        """
        free = [label for label in term.labels if label not in partner.labels]
        runs = self._coalesced_runs(term, free)
        if not runs:
            return [], ()
        longest = max(reversed(runs), key=lambda run: product(self.shape(run)))
        if product(self.shape(runs[-1])) >= LONG_RUN:
            longest = runs[-1]
        stack_labels = sorted((label for label in free if label not in longest), key=order.index)
        return stack_labels, longest

    def _coalesced_runs(self, term: LabelledTerm, labels: Sequence[str]) -> list[Labels]:
        """Split labels, those with long strides first, into runs that coalesce."""
        order = sorted(
            [(term.strides[term.labels.index(label)], label) for label in labels], reverse=True
        )
        axes = [term.labels.index(label) for _, label in order]
        runs = coalesce(axes, self.shape(term.labels), [term.strides])
        return [tuple(term.labels[axis] for axis in run) for run in runs]

    def _matrix_product(
        self,
        a: LabelledTerm,
        b: LabelledTerm,
        shared: tuple[list[str], list[str]],
        free: tuple[tuple[list[str], Labels], tuple[list[str], Labels]],
    ) -> LabelledTerm:
        """Return the product of matrices whose rows and columns are the labels of a run each."""
        (stack, inner), ((stack1, rows), (stack2, columns)) = shared, free
        stack1, rows = [*stack1, *rows[:-1]], rows[-1:]
        left_stack = _without_leading_ones(
            [*_single_label_axes(stack), *[()] * len(stack2), *_single_label_axes(stack1)]
        )
        right_stack = _without_leading_ones(
            [*_single_label_axes(stack), *_single_label_axes(stack2), *[()] * len(stack1)]
        )
        labels = (*stack, *stack2, *stack1, *rows, *columns)
        runs = self._coalesced_runs(a, inner)
        if len(runs) > 1 or self._coalesced_runs(b, inner) != runs:
            return self._multi_axis_product(
                a, b, inner, (left_stack, right_stack), (rows, columns), labels
            )
        is_vector = not stack and not rows, not stack and not columns
        first = self._arrange(a, [*left_stack, *[rows] * (not is_vector[0]), *runs])
        second = self._arrange(b, [*right_stack, *runs, *[columns] * (not is_vector[1])])
        position = self.add(matmul, (first, second))
        stack_lengths = [
            *self.shape((*stack, *stack2, *stack1)),
            *[1] * (not is_vector[0] and not rows),
        ]
        column_lengths = [product(self.shape(columns))] * (not is_vector[1])
        shape = (*stack_lengths, *self.shape(rows), *column_lengths)
        if shape != self.shape(labels):
            position = self.add(reshape, (position,), self.shape(labels))
        return self.computed(position, labels)

    def _multi_axis_product(
        self,
        a: LabelledTerm,
        b: LabelledTerm,
        inner: list[str],
        stacks: tuple[AxisLabels, AxisLabels],
        free: tuple[Labels, Labels],
        labels: Labels,
    ) -> LabelledTerm:
        """Return a product over several axes that do not coalesce in both terms."""
        left_stack, right_stack = stacks
        rows, columns = free
        first = self._arrange(
            a, [*left_stack, *_single_label_axes(rows), *_single_label_axes(inner)]
        )
        second = self._arrange(
            b, [*right_stack, *_single_label_axes(inner), *_single_label_axes(columns)]
        )
        spans = (
            _axis_range(len(left_stack) + len(rows), len(inner)),
            _axis_range(len(right_stack), len(inner)),
            _axis_range(len(left_stack), len(rows)),
            _axis_range(len(right_stack) + len(inner), len(columns)),
        )
        return self.computed(self.add(contract, (first, second), spans[:2], spans[2:]), labels)

    def _arrange(self, term: LabelledTerm, axes: AxisLabels) -> int:
        """Return the position of a term with runs of labels as axes, of length 1 where there are
        none.
        """
        labels = tuple(label for run in axes for label in run)
        position = self.reorder(term, labels).position
        shape = tuple(product(self.shape(run)) for run in axes)
        return position if shape == self.shape(labels) else self.add(reshape, (position,), shape)


def _single_label_axes(labels: Iterable[str]) -> AxisLabels:
    """Return each label as a run of its own."""
    return [(label,) for label in labels]


def _without_leading_ones(axes: AxisLabels) -> AxisLabels:
    """Return axes without leading ones of length 1, which broadcasting adds."""
    leading = next((axis for axis, run in enumerate(axes) if run), len(axes))
    return axes[leading:]


def _axis_range(first: int, count: int) -> tuple[int, ...]:
    return tuple(range(first, first + count))


def _drop_two(values: tuple[Any, ...], first: int, second: int) -> tuple[Any, ...]:
    """Return a tuple without the values at two positions."""
    return (*values[:first], *values[first + 1 : second], *values[second + 1 :])
