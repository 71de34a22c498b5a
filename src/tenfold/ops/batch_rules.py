"""Batch rules: the operands of one operation for many members, some with a batch axis in front.

A batch rule (the field `batch` of an Op) takes such Members. It hands on the results of all
members, with the batch axis in front, made of ordinary operations. Operands without the axis are
shared.

>>> import tenfold as tn
>>> members = Members(tn.operators.add, 4, (tn.zeros((4, 3)), tn.ones((2, 3))), (True, False))
>>> members.shape(0), members.aligned(0, 2).shape
((3,), (4, 1, 3))
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from tenfold import _native
from tenfold._native import Array
from tenfold.core.op import Op, Params
from tenfold.core.shape_rules import Shape, whole_axes
from tenfold.ops.arange import arange
from tenfold.ops.indexing import index_view
from tenfold.ops.movement import permute_dims
from tenfold.ops.reshaping import broadcast_to, reshape

ALONE_BITS: ContextVar[bool] = ContextVar("tenfold_alone_bits", default=False)
"""Whether each member must have the bits that it has alone, products by shared matrices too."""
ONE_BY_ONE = "compute the members one by one"
"""The remedy where a batch must not be made."""


@dataclass(frozen=True)
class Members:
    """The operands of an operation for `length` members, and which of them have the batch axis."""

    op: Op[...]
    length: int
    operands: tuple[Any, ...]
    """Arrays, and Python's numbers, which are shared."""
    batched: tuple[bool, ...]

    def shape(self, at: int) -> Shape:
        """Return the shape that one member's operand has."""
        x = self.operands[at]
        shape: Shape = x.shape if isinstance(x, Array) else ()
        return shape[1:] if self.batched[at] else shape

    def ndim(self, at: int) -> int:
        """Return how many axes one member's operand has."""
        return len(self.shape(at))

    def aligned(self, at: int, ndim: int) -> Any:
        """Return an operand that broadcasts with `ndim` axes of members behind the batch axis."""
        missing = ndim - self.ndim(at)
        return (
            self.spread(at, 0, missing) if self.batched[at] and missing > 0 else self.operands[at]
        )

    def spread(self, at: int, axis: int, count: int) -> Array:
        """Return an operand with `count` new axes of length 1 before the member's `axis`."""
        x, stacked_axis = self.operands[at], axis + self.batched[at]
        return (
            index_view(x, whole_axes(x.shape), tuple(range(stacked_axis, stacked_axis + count)))
            if count
            else x
        )

    def in_front(self, at: int) -> Array:
        """Return an operand with the batch axis: a shared one is repeated."""
        x: Array = self.operands[at]
        if self.batched[at]:
            return x
        return _native.apply(broadcast_to.id, (x,), ((self.length, *x.shape), 1))

    def numbers(self, ndim: int) -> Array:
        """Return the numbers of the members, with `ndim` axes of length 1 behind the batch axis."""
        device = next(x.device for x in self.operands if isinstance(x, Array))
        return reshape(arange(self.length, device=device), (self.length, *(1,) * ndim))

    def call(self, operands: Sequence[Any], params: Params = ()) -> Any:
        """Make the node of the operation on other operands."""
        return _native.apply(self.op.id, tuple(operands), params)

    def permuted(self, x: Array, axes: Sequence[int]) -> Array:
        """Return the view of `x` with its axes in that order."""
        return x if [*axes] == [*range(x.ndim)] else permute_dims(x, axes)

    def to_front(self, x: Array, axis: int) -> Array:
        """Return the view of `x` with one axis before all others."""
        return self.permuted(x, (axis, *(a for a in range(x.ndim) if a != axis)))


__all__ = ["ALONE_BITS", "ONE_BY_ONE", "Members"]
