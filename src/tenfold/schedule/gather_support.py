"""Gather support: whether an operation with computed read indices has a rule for kernels.

Takes a node and the shapes of its inputs, hands on a bool: its rule is run on a body that is thrown
away. An operation without a rule takes a call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold.core.gather_rules import GatherSource, ResultIndex
from tenfold.core.scalar_ir import Body, ComplexElement
from tenfold.core.shape_rules import Shape, product
from tenfold.dtypes import BOOL, INT64, PARTS

SHORT_ROW = 16
"""Elements of a last axis that leave most of a packet empty: many such rows are dear."""
FEW = 1 << 12
"""Elements of which that does not matter."""


def has_element(node: Any, shapes: Sequence[Shape]) -> bool:
    """Whether the element of a node at an index can be told; of an empty one there is none."""
    shape = node.type.shape
    if product(shape) == 0 or (shape[-1:] < (SHORT_ROW,) and product(shape) > FEW):
        return False
    body = Body()

    def source(shape: Shape, dtype: np.dtype) -> GatherSource:
        """An input that is read, whatever the index."""
        part = PARTS.get(dtype, dtype)
        found = body.gather(0, part, body.constant(0, INT64), body.constant(True, BOOL))
        return GatherSource(
            shape, dtype, lambda *_: ComplexElement(found, found) if dtype in PARTS else found
        )

    axes = tuple(body.index(axis) for axis in range(len(shape)))
    at = ResultIndex(axes, shape, lambda number: body.constant(number, INT64))
    sources = map(source, shapes, node.operands)
    return node.op.element_at(body, at, *sources, *node.params) is not NotImplemented
