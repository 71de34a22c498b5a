"""Linear algebra at the call: LinAlgError is raised where NumPy raises it, and factors are kept.

Takes Arrays of matrices, hands on their computed factors, or new results of which the operations
that may fail are computed. The factors of an Array serve until it changes. In a trace, and where
`strict_sync` refuses implicit waits, nothing is computed.

>>> import tenfold as tn
>>> x = tn.eye(20) * 2.0
>>> factors_of(x) is kept_factors(x)
True
>>> x[0, 0] = 1.0
>>> kept_factors(x) is None
True
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from tenfold import _native, pipeline
from tenfold._native import Array, Node
from tenfold.core.array_facts import ArrayFacts
from tenfold.dtypes import FLOAT64, kind_of, promote_dtypes
from tenfold.errors import DTypeError, ShapeError, raise_if_failed
from tenfold.numpy.arguments import may_wait
from tenfold.ops.factors import regular_factors

Results = TypeVar("Results")
MAX_SMALL_SIZE = 8 * 8
"""The elements of a matrix up to which a solution takes less time than keeping the factors."""

_kept: ArrayFacts[tuple[int, Array]] = ArrayFacts()
"""Computed factors of Arrays, with the versions of these. Two threads may replace an entry, both
by factors of the version that it names.
"""


def result_dtype(first: np.dtype, second: np.dtype | None = None) -> np.dtype:
    """Return the dtype of solutions with operands of one or two dtypes, not halves. Integers count
    as float64, as in NumPy.
    """
    dtype = first if kind_of(first) in "fc" else FLOAT64
    return dtype if second is None else promote_dtypes(dtype, result_dtype(second))


def kept_factors(x: Array) -> Array | None:
    """Return the factors of matrices that an earlier call computed; None if `x` has changed."""
    kept = _kept.get(x)
    if kept is None or not may_wait() or kept[0] != _native.version_of(x):
        return None
    shape, packed_shape = x.shape, kept[1].shape  # `x.shape = s` leaves the version
    is_of_shape = shape[-1] == packed_shape[-1] and shape[:-2] == packed_shape[:-2]
    return kept[1] if is_of_shape else None


def factors_of(x: Array) -> Array | None:
    """Return the factors of matrices, computed now unless they are kept.

    None for a small matrix, where nothing may wait, and where there are none: the operation itself
    then says why.
    """
    if x.size <= MAX_SMALL_SIZE or not may_wait():
        return None
    if (packed := kept_factors(x)) is not None:
        return packed
    version = _native.version_of(x)
    try:
        made: Array = _native.apply(regular_factors.id, (x,), ("gauss",))
    except (ShapeError, DTypeError):
        return None
    if not _computed(made, x):
        return None
    if version is not None:
        _kept[x] = version, made
    return made


def _computed(packed: Array, x: Array) -> bool:
    """Compute factors, with their matrices where these are pending; whether they exist."""
    if _native.node_of(x).pending:
        return pipeline.evaluate([packed, x]) is None
    try:
        packed.wait()  # native code alone
    except np.linalg.LinAlgError:
        return False
    return True


def at_call(results: Results, *operands: Array) -> Results:
    """Compute the operations below new results, and above their operands, that may fail.

    Operands are computed with them, since they are read.
    """
    if _native.compute_at_call(results, *operands) or not may_wait():
        return results
    pending = [node for x in operands if (node := _native.node_of(x)).pending]
    fallible = _fallible(results if isinstance(results, tuple) else (results,), pending)
    if fallible:
        raise_if_failed(pipeline.compute([*fallible, *pending]))
    return results


def _can_fail(node: Node) -> bool:
    return node.op is not None and node.op.semantics.can_fail


def _fallible(results: Sequence[Any], operands: Sequence[Node]) -> list[Node]:
    """Return the first operations that may fail on the ways from results to operands."""
    found: list[Node] = []
    stack = [_native.node_of(x) for x in results]
    visited = {*operands, *stack}
    while stack:
        node = stack.pop()
        if _can_fail(node):
            found.append(node)
            continue
        unvisited = [operand for operand in node.inputs if operand not in visited]
        visited.update(unvisited)
        stack += unvisited
    return found


__all__ = ["at_call", "factors_of", "kept_factors", "result_dtype"]
