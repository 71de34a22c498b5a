"""Batch split reasons: why two batches of one operation or function were not one.

Takes the signatures of two batches, hands on the difference in words.

>>> import numpy as np
>>> one = BatchFeatures(None, (), ((np.dtype("f4"), (128,)),), (None,))
>>> other = BatchFeatures(None, (), ((np.dtype("f8"), (128,)),), (None,))
>>> str(reason(one, other))
'of another dtype, float64'
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from tenfold._native import Type
from tenfold.core.op import Op, Params

SHARED_OPERAND_ELEMENTS = 1 << 10
"""Elements of a leaf that several read that make it part of what a group is, as in groups.cpp."""


class BatchFeatures(NamedTuple):
    """What members of one group have in common."""

    op: Op[...] | None
    params: Params
    types: tuple[tuple[np.dtype, tuple[int, ...]], ...]
    """Dtype and shape of each operand of a member."""
    shared_operands: tuple[Hashable, ...]
    """Which array all members share as an operand, None where each has its own."""


class SplitReason(NamedTuple):
    """Why a batch is not one with another: the kind of difference, and what is different."""

    kind: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.kind}, {self.detail}" if self.detail else self.kind


LATER_LEVEL = SplitReason("at a later dependency level")
"""Of the same group."""
LIMIT_REACHED = SplitReason("beyond the limit of one batch")
"""Of the same group and ready, but for a limit."""
PLURAL_KINDS = {
    "of another dtype": "of other dtypes",
    "of another shape": "of other shapes",
    "with another parameter": "with other parameters",
    "with other arguments besides arrays": "with other arguments besides arrays",
    "that share another operand": "that share other operands",
}
"""The kinds of differences, the greatest first, and what several of a kind are called."""


def split_reason(one: BatchFeatures, other: BatchFeatures) -> SplitReason:
    """Return why `other` is not one batch with `one`; LATER where nothing tells them apart."""
    pairs = list(zip(one.types, other.types, strict=False))
    dtypes = [str(b[0]) for a, b in pairs if a[0] != b[0]]
    shapes = [str(b[1]) for a, b in pairs if a[1] != b[1]]
    if dtypes:
        return SplitReason("of another dtype", ", ".join(dict.fromkeys(dtypes)))
    if shapes:
        return SplitReason("of another shape", ", ".join(dict.fromkeys(shapes)))
    if one.params != other.params:
        return SplitReason("with another parameter", ", ".join(map(repr, other.params)))
    if one.op is not other.op:
        return SplitReason("with other arguments besides arrays")
    for at, (a, b) in enumerate(zip(one.shared_operands, other.shared_operands, strict=True)):
        if a != b:
            dtype, shape = other.types[at]
            lengths = ", ".join(map(str, shape))
            return SplitReason(
                "that share another operand", f"operand {at + 1}: {dtype}[{lengths}]"
            )
    return LATER_LEVEL


def nearest_reason(earlier: Sequence[BatchFeatures], batch: BatchFeatures) -> str:
    """Say why a batch is not one with that of the earlier ones that is most like it."""
    reasons = [split_reason(one, batch) for one in earlier]
    kinds = list(PLURAL_KINDS)
    found = max(
        reasons, key=lambda why: kinds.index(why.kind) if why.kind in kinds else -1, default=""
    )
    return str(found)


def operand_signature(type_: Type, stacked: bool = False) -> tuple[np.dtype, tuple[int, ...]]:
    """Return dtype and shape of an operand, of a stack of them those of each."""
    return type_.dtype, type_.shape[1:] if stacked else type_.shape


def family(op: Op[...]) -> Hashable:
    """Return what batches that might have been one have in common: an operation, or a function."""
    return op.family or op.full_name
