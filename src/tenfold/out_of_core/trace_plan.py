"""Trace a plan: run a function once on placeholders of its sources, and cut its trace into passes.

Takes the function, its sources (of which only shape and dtype are read, but of those that come
whole) and their axes. Hands on the ChunkPlan, and the structure of the function's results.

>>> import tenfold as tn
>>> traced = trace_plan(lambda x: tn.sum(x, axis=0), [np.ones((5, 2))], 0, 2)
>>> traced.plan.chunks, len(traced.plan.passes)
([(0, 2), (2, 4), (4, 5)], 1)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Array, Node, Type
from tenfold.core.graph import Graph
from tenfold.core.interpreter import interpret, rebuild_with_origin
from tenfold.core.op import Op
from tenfold.core.pytree import TreeDef, flatten
from tenfold.core.trace_state import line_of
from tenfold.dtypes import canonical
from tenfold.errors import ShapeError
from tenfold.interop.asarray import asarray
from tenfold.ops.cast import convert
from tenfold.out_of_core.chunk_plan import ChunkPlan, computed
from tenfold.out_of_core.chunk_rules import has_chunk_rule
from tenfold.out_of_core.chunk_sources import chunk_rows, is_source, source_axes
from tenfold.settings import checked_device, override
from tenfold.transforms.loop_carry import checked_callable
from tenfold.transforms.tracer import (
    NeedsValues,
    needs_values_error,
    trace_function,
)

TRACED_REMEDY = (
    "choose by values with tn.where, give a histogram its range=, and compute other numbers before"
)


@dataclass(frozen=True)
class TracedPlan:
    """The plan of a function, and what its callers need to run it."""

    plan: ChunkPlan
    structure: TreeDef
    """The structure of the results."""
    sources: list[Any]
    """The sources in chunks, by the numbers that `ChunkPass.reads` has."""
    axes: list[int]
    """The axis of each."""


def trace_plan(
    function: Callable[..., Any], sources: Sequence[Any], axis: Any, chunk: int | None
) -> TracedPlan:
    """Trace a function and cut it into passes. Raises UnsupportedError where it cannot be cut."""
    checked_callable("tn.blockwise", function)
    axes, chunks = checked_chunks(sources, axis, chunk)
    chunked = [at for at, own in enumerate(axes) if own is not None]
    own_sources = [sources[at] for at in chunked]
    own_axes = [own for own in axes if own is not None]
    leaves = [_leaf(x, own is None) for x, own in zip(sources, axes, strict=True)]
    try:
        with override(check_nans=True):  # nodes know their lines
            structure = flatten(((*range(len(leaves)),), {}))[1]
            trace = trace_function(function, leaves, structure, hoist=False)
    except NeedsValues as error:
        cause = error.__cause__ or error
        raise needs_values_error("tn.blockwise", line_of(cause), TRACED_REMEDY, cause) from None
    graph, inputs = inlined(trace.subgraph.graph, trace.subgraph.inputs)
    arrays = [at for at, leaf in enumerate(leaves) if isinstance(leaf, Array)]
    chunk_inputs = [inputs[arrays.index(at)] for at in chunked]
    whole = {inputs[at]: leaves[number] for at, number in enumerate(arrays) if axes[number] is None}
    whole |= dict(zip(inputs[len(arrays) :], trace.captured_arrays(), strict=True))
    known = _known_values(graph, whole)
    return TracedPlan(
        ChunkPlan(graph, chunk_inputs, own_axes, chunks, known),
        trace.structure,
        own_sources,
        own_axes,
    )


def checked_chunks(
    sources: Sequence[Any], axis: Any, chunk: int | None
) -> tuple[list[int | None], list[tuple[int, int]]]:
    """Return the axis of each source, None where it comes whole, and the rows of the chunks."""
    axes = source_axes(sources, axis)
    chunked = [(source, own) for source, own in zip(sources, axes, strict=True) if own is not None]
    if not chunked:
        remedy = "give an array, a memory map, or an array of zarr, h5py or Dask, and its axis="
        raise ShapeError("tn.blockwise", "no source is read in chunks", remedy=remedy)
    own_sources, own_axes = zip(*chunked, strict=True)
    return axes, chunk_rows(own_sources, own_axes, chunk)


def _leaf(source: Any, is_whole: bool) -> Any:
    """Return a placeholder of a source in chunks, and the array of one that comes whole."""
    if not is_source(source):
        return source
    if is_whole:
        return source if isinstance(source, Array) else asarray(np.asarray(source[...]))
    dtype = canonical(np.dtype(source.dtype), "tn.blockwise")
    device = checked_device(None, "tn.blockwise")
    return _native.placeholder(Type(tuple(source.shape), dtype, device))


def inlined(graph: Graph, inputs: Sequence[Node]) -> tuple[Graph, Sequence[Node]]:
    """Return a graph with the bodies of traced functions in place of their calls; operations
    without a chunk rule are replaced by others that have the same values.
    """
    while any(map(_is_replaced, graph.nodes)):
        environment: dict[Node, Any] = {node: _native.array_of(node) for node in inputs}

        def rule(node: Node, operands: list[Any]) -> Any:
            if not _is_replaced(node):
                return rebuild_with_origin(node, operands)
            if node.op.semantics.body is None:
                return _expanded(node, operands)
            results = node.op.semantics.body.apply(operands)
            return results if len(results) > 1 else results[0]

        results = interpret(graph, environment, rule)
        graph = Graph.of([_native.node_of(x) for x in results])
    return graph, inputs


def _expanded(node: Node, operands: Sequence[Any]) -> Any:
    """Return the expression of an operation, in the dtypes in which it is computed and given."""
    given = [
        convert(x, dtype) if isinstance(x, Array) else x
        for x, dtype in zip(operands, node.operands, strict=True)
    ]
    result = node.op.transforms.expression(*given, *node.params)
    if isinstance(result, Array):
        return convert(result, node.type.dtype)
    return tuple([convert(x, type_.dtype) for x, type_ in zip(result, node.types, strict=True)])


def _is_replaced(node: Node) -> bool:
    op = node.op if node.pending else None
    if not isinstance(op, Op) or not node.inputs:
        return False
    return op.semantics.body is not None or (
        op.transforms.expression is not None and not has_chunk_rule(op)
    )


def _known_values(graph: Graph, whole: dict[Node, Array]) -> dict[int, np.ndarray]:
    """Compute the arrays that come whole, by the positions of their nodes."""
    positions = [at for at, node in enumerate(graph.nodes) if node in whole]
    return dict(zip(positions, computed([whole[graph.nodes[at]] for at in positions]), strict=True))
