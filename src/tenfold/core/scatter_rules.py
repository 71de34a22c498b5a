"""Scatter rules: how an operation combines elements into the cells of its result that it names.

Input: the rule in the declaration of an operation. Output: what a schedule needs to know of it. The
cell of an element has the positions of index arrays along some axes of the result, and the
element's own index along the others. Elements of one cell are combined in row-major order.

>>> rows = ScatterRule(kind="add", value=0, indices=slice(1, 2), fill=lambda dtype: 0)
>>> rows.space((3, 4), [(7,)])
(7, 4)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tenfold.core.shape_rules import Shape, broadcast
from tenfold.dtypes import compute_dtype
from tenfold.errors import IndexShapeError, ShapeError


def indexed_shape(
    x: Shape, indices: Sequence[Shape], axes: Sequence[int], index_axis: int
) -> Shape:
    """Return the shape of the part that index arrays of these shapes take of an array."""
    remaining = tuple(length for axis, length in enumerate(x) if axis not in axes)
    try:
        shape = broadcast(*indices)
    except ShapeError as error:
        raise IndexShapeError("", error.rule, remedy=error.remedy) from None
    return (*remaining[:index_axis], *shape, *remaining[index_axis:])


@dataclass(frozen=True, kw_only=True)
class ScatterRule:
    """The facts of a scatter."""

    kind: str
    """The reducer that combines a cell with an element (codegen/reducers.py)."""
    value: int
    """The operand that has the elements."""
    indices: slice
    """The operands that are index arrays, which broadcast together."""
    base: int | None = None
    """The operand that has the initial values of the cells; None: `fill`."""
    fill: Callable[[np.dtype], Any] | None = None
    """The initial value of a cell without a base, from the dtype."""
    wraps: bool = False
    """Whether negative indices count from the end."""
    place: Callable[..., tuple[tuple[int, ...], int]] = lambda *_: ((0,), 0)
    """From the params the indexed axes of the result, and the place of the index axes in the shape
    of the elements."""

    @property
    def replaces(self) -> bool:
        """Whether it replaces elements of its first input by its second, at the integers in the
        others, which may be negative.
        """
        operands = (self.base, self.value, self.indices)
        return self.kind == "last" and self.wraps and operands == (0, 1, slice(2, None))

    def space(self, result: Shape, indices: Sequence[Shape], *params: Any) -> Shape:
        """Return the shape of the elements, to which the values broadcast."""
        return indexed_shape(result, indices, *self.place(*params))

    def dtype(self, operand: np.dtype) -> np.dtype:
        """Return the dtype in which elements of a dtype are combined."""
        return operand if self.kind == "last" else compute_dtype(operand)


__all__ = ["ScatterRule", "indexed_shape"]
