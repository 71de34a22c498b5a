"""Batch split reasons: why two batches of one operation or function were not merged.

Takes the signatures of two batches, hands on the difference as text.

>>> import numpy as np
>>> first = BatchFeatures(None, (), ((np.dtype("f4"), (128,)),), (None,))
>>> second = BatchFeatures(None, (), ((np.dtype("f8"), (128,)),), (None,))
>>> str(split_reason(first, second))
'of another dtype, float64'
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from tenfold._native import Type
from tenfold.core.op import Op, Params


class BatchFeatures(NamedTuple):
    """The common features of the members of one batch."""

    op: Op[...] | None
    params: Params
    types: tuple[tuple[np.dtype, tuple[int, ...]], ...]
    """Dtype and shape of each operand of a member."""
    shared_operands: tuple[Hashable, ...]
    """Which array all members share as an operand, None where each has its own."""


class SplitReason(NamedTuple):
    """Why two batches are not merged: the kind of difference, and its detail."""

    kind: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.kind}, {self.detail}" if self.detail else self.kind


LATER_LEVEL = SplitReason("at a later dependency level")
"""Equal signatures."""
LIMIT_REACHED = SplitReason("beyond the limit of one batch")
"""Equal signatures, both ready, but beyond a limit."""
PLURAL_KINDS = {
    "of another dtype": "of other dtypes",
    "of another shape": "of other shapes",
    "with another parameter": "with other parameters",
    "with other arguments besides arrays": "with other arguments besides arrays",
    "that share another operand": "that share other operands",
}
"""The kinds of differences, the greatest first, and their plurals."""


def split_reason(first: BatchFeatures, second: BatchFeatures) -> SplitReason:
    """Return why `second` is not merged with `first`; LATER_LEVEL for equal features."""
    pairs = list(zip(first.types, second.types, strict=False))
    dtypes = [str(b[0]) for a, b in pairs if a[0] != b[0]]
    shapes = [str(b[1]) for a, b in pairs if a[1] != b[1]]
    if dtypes:
        return SplitReason("of another dtype", ", ".join(dict.fromkeys(dtypes)))
    if shapes:
        return SplitReason("of another shape", ", ".join(dict.fromkeys(shapes)))
    if first.params != second.params:
        return SplitReason("with another parameter", ", ".join(map(repr, second.params)))
    if first.op is not second.op:
        return SplitReason("with other arguments besides arrays")
    for at, (a, b) in enumerate(zip(first.shared_operands, second.shared_operands, strict=True)):
        if a != b:
            dtype, shape = second.types[at]
            lengths = ", ".join(map(str, shape))
            return SplitReason(
                "that share another operand", f"operand {at + 1}: {dtype}[{lengths}]"
            )
    return LATER_LEVEL


def nearest_reason(earlier_batches: Sequence[BatchFeatures], batch: BatchFeatures) -> str:
    """Return why a batch is not merged with the most similar earlier one."""
    reasons = [split_reason(earlier, batch) for earlier in earlier_batches]
    kinds = list(PLURAL_KINDS)
    nearest = max(
        reasons,
        key=lambda candidate: kinds.index(candidate.kind) if candidate.kind in kinds else -1,
        default="",
    )
    return str(nearest)


def operand_signature(type_: Type, stacked: bool = False) -> tuple[np.dtype, tuple[int, ...]]:
    """Return dtype and shape of an operand; for a stack those of one row."""
    return type_.dtype, type_.shape[1:] if stacked else type_.shape


def family(op: Op[...]) -> Hashable:
    """Return the operation or function by which batches are compared."""
    return op.semantics.family or op.full_name
