"""Cut node: a node of a traced function, whose operands come in chunks or whole.

Takes a node, and for each operand the axis along which it comes in chunks, or None for one that is
there whole. The chunk rules and folds read it, and ask for rows of the operands (Rows).

>>> import tenfold as tn
>>> x = tn._native.placeholder(tn._native.Type((9, 2), tn.float64, "cpu"))
>>> node = tn._native.node_of(x + 1)
>>> CutNode(node, node.op, (0, None), ((9, 2), ())).chunked
[(0, 0)]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tenfold import _native
from tenfold._native import Array, Node, Scope
from tenfold.core.interpreter import ORIGIN
from tenfold.core.op import Op, Params
from tenfold.core.shape_rules import Shape


class CannotCutError(Exception):
    """An operation needs all rows at once; the text says why."""


class Rows(Protocol):
    """The operands of a node, in chunks or whole."""

    def rows(self, operand: int, begin: int, end: int, axis: int | None = None) -> Any:
        """Return the rows of an operand along its chunked axis; of a whole one along `axis`."""

    def whole(self, operand: int) -> Any:
        """Return an operand that is there whole: an Array or a number."""

    def carry(self, begin: int) -> tuple[int, Array]:
        """Return where the part of a scan that has a row begins, and the carry into it."""


@dataclass(frozen=True)
class CutNode:
    """A node whose operands come in chunks or whole."""

    node: Node
    op: Op[...]
    axes: tuple[int | None, ...]
    """For each operand the chunked axis; None for a whole one."""
    shapes: tuple[Shape, ...]

    @property
    def shape(self) -> Shape:
        """The shape of the whole result."""
        shape: Shape = self.node.type.shape
        return shape

    @property
    def chunked(self) -> list[tuple[int, int]]:
        """The operands in chunks, with their axes."""
        return [(at, axis) for at, axis in enumerate(self.axes) if axis is not None]

    @property
    def operands(self) -> range:
        """The numbers of the operands."""
        return range(len(self.axes))

    def only(self) -> tuple[int, int]:
        """Return the one operand in chunks, with its axis."""
        if len(self.chunked) > 1:
            raise CannotCutError
        return self.chunked[0]

    def as_it_is(self, source: Rows, begin: int, end: int) -> Any:
        """Make the node of the same operation on rows of the operands that come in chunks."""
        return self.call(
            [
                source.whole(at) if axis is None else source.rows(at, begin, end)
                for at, axis in enumerate(self.axes)
            ]
        )

    def line(self) -> Scope:
        """Return the scope in which nodes have the line of this one."""
        return Scope((ORIGIN, self.node.origin or ORIGIN.get()))

    def call(self, operands: Sequence[Any], params: Params | None = None) -> Any:
        """Make the node of the operation on other operands, with its line."""
        with self.line():
            given = self.node.params if params is None else params
            return _native.apply(self.op.id, tuple(operands), given)


def common(axes: Sequence[int]) -> int:
    """Return the one axis of a result at which all chunks stand."""
    if len({*axes}) != 1:
        raise CannotCutError
    return axes[0]


def with_length(shape: Shape, axis: int, length: int) -> Shape:
    """Return a shape with the length of one axis replaced."""
    return (*shape[:axis], length, *shape[axis + 1 :])
