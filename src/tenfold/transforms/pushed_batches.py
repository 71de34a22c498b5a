"""Pushed batches: the batch of many pushed operations, each with the bits that it has alone.

Takes the results of one member on placeholders (`native/python/batch_setup.cpp`). Hands on those of
all members, made by the batch rules, and the plan by which native code computes every such batch.

>>> import tenfold as tn
>>> x = _native.placeholder(_native.Type((2,), tn.float64, "cpu"))
>>> results, inputs, apply = batch_pushed(tn.exp(x), [x], [True], 3)
>>> results[0].shape, inputs[0].type.shape, apply([tn.zeros((3, 2))])[0].tolist()
((3, 2), (3, 2), [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tenfold import _native, pipeline
from tenfold._native import Array, Executable, Node, Scope
from tenfold.core.subgraph import Subgraph
from tenfold.errors import UnsupportedError
from tenfold.ops.batch_rules import ALONE_BITS
from tenfold.transforms.batch_interpreter import batch_implicitly

Batch = tuple[tuple[Array, ...], tuple[Node, ...], Callable[[Sequence[Array]], tuple[Array, ...]]]
"""The results on placeholders, those placeholders, and a function of other operands."""


def batch_pushed(
    results: Array | tuple[Array, ...],
    inputs: Sequence[Array],
    batched_flags: Sequence[bool],
    rows: int,
) -> Batch | None:
    """Return the batch of so many members; None where members must be computed one by one.

    An input with a flag has one row for each member in the batch; the members share the others.
    A number among the inputs is a node of the batch, too.
    """
    arrays = results if isinstance(results, tuple) else (results,)
    member = Subgraph("batch", [*map(_native.node_of, arrays)], [*map(_native.node_of, inputs)])
    try:
        with Scope((ALONE_BITS, True)):
            batched = batch_implicitly(member, batched_flags, rows)
            subgraph = batched.to_subgraph([True] * len(arrays))
    except UnsupportedError:
        return None
    if any(node.op is None for node in subgraph.outputs):
        return None
    return tuple(map(_native.array_of, subgraph.outputs)), subgraph.inputs, subgraph.apply


def plan_batch(arrays: Sequence[Array]) -> Executable | None:
    """Return the plan of a batch without rewriting, which could change the bits of products."""
    return pipeline.plan_of(arrays, optimise=False)


__all__ = ["Batch", "batch_pushed", "plan_batch"]
