"""Window writes: assign a large expression to a window (`tn.wrap`) by parts of its rows.

Takes the expression, the window and the ndarray that is written, and a function that writes a part
of it. Hands on whether it has written all. The large arrays that the expression reads are the
sources of a plan (`chunk_plan.py`), so at most some chunks are in memory. An expression that may
fail or that cannot be cut is left to the caller: it is computed as a whole. So is one that reads
the memory that is written, unless each row needs the same row of it.

>>> import numpy as np
>>> import tenfold as tn
>>> source = tn.asarray(np.ones((6, 2)))
>>> traced = expression_plan(source + 1, 4)
>>> traced.plan.chunks
[(0, 6)]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Array, Node
from tenfold.core.graph import Graph
from tenfold.core.interpreter import interpret
from tenfold.core.op import Op
from tenfold.core.pytree import flatten
from tenfold.errors import UnsupportedError
from tenfold.out_of_core.chunk_outputs import Outputs
from tenfold.out_of_core.chunk_plan import ChunkPlan
from tenfold.out_of_core.chunk_scheduler import run_plan
from tenfold.out_of_core.chunk_sources import bytes_of, chunk_rows
from tenfold.out_of_core.cut_rows import rebuild_pending
from tenfold.out_of_core.shared_bytes import is_same_array, memory_of, shares_bytes
from tenfold.out_of_core.trace_plan import TracedPlan, inlined
from tenfold.settings import get
from tenfold.storage.dense import HOST


@dataclass(frozen=True)
class ExpressionPlan(TracedPlan):
    """The plan of an expression, in which placeholders stand for the arrays that it reads."""

    leaves: dict[Node, Any]
    """The arrays by their placeholders: Arrays, or the memory that is written."""


def expression_plan(
    x: Array, min_bytes: int, written: np.ndarray | None = None
) -> ExpressionPlan | None:
    """Return the plan of a pending expression, of which arrays of that many bytes come in chunks;
    None where it cannot be cut by rows.
    """
    graph, _ = inlined(Graph.of([_native.node_of(x)]), ())
    if x.device != HOST or not x.ndim or not all(map(_is_repeatable, graph.nodes)):
        return None
    computed_nodes = [node for node in graph.nodes if not (node.pending or node.is_scalar)]
    inputs = {node: _native.placeholder(node.type) for node in computed_nodes}
    (result,) = interpret(graph, {**inputs}, rebuild_pending)
    leaves: dict[Node, Any] = {}
    for node, stand_in in inputs.items():
        array = _native.array_of(node)
        is_written = written is not None and is_same_array(memory_of(array), written)
        leaves[_native.node_of(stand_in)] = written if is_written else array
    graph = Graph.of([_native.node_of(result)])
    sources = [
        node
        for node, values in leaves.items()
        if bytes_of(values) >= min_bytes and values.shape[:1] == x.shape[:1]
    ]
    if not sources:
        return None
    values, axes = [leaves[node] for node in sources], [0] * len(sources)
    known = {
        at: np.asarray(leaves[node])
        for at, node in enumerate(graph.nodes)
        if node in leaves and node not in sources
    }
    try:
        plan = ChunkPlan(graph, sources, axes, chunk_rows(values, axes, None), known)
    except UnsupportedError:
        return None
    if plan.axes[graph.outputs[0]] is None:
        return None
    return ExpressionPlan(plan, flatten(0)[1], values, axes, leaves)


def _is_repeatable(node: Node) -> bool:
    """Whether nothing happens but the computation of a value, which cannot fail."""
    op = node.op if node.pending else None
    if op is None:
        return True
    return (
        isinstance(op, Op)
        and op.semantics.pure
        and not (op.semantics.opaque or op.semantics.can_fail)
    )


class PartTarget:
    """The target of an Output whose parts a function writes."""

    def __init__(self, like: Array | np.ndarray, write: Callable[[Any, Any], None]) -> None:
        self.shape, self.dtype, self.write = like.shape, like.dtype, write

    def __setitem__(self, key: Any, values: np.ndarray) -> None:
        self.write(key, values)


def write_in_parts(
    x: Array,
    window: Array,
    written: np.ndarray,
    write: Callable[[Any, np.ndarray], None],
    min_bytes: int,
) -> bool:
    """Compute an expression by parts and write each; return whether it could be cut."""
    traced = expression_plan(x, min_bytes, written) if x.shape == written.shape else None
    if traced is None:
        return False
    others = {node: array for node, array in traced.leaves.items() if array is not written}
    if any(shares_bytes(memory_of(array), written) for array in others.values()):
        return False
    reads_written = len(others) < len(traced.leaves)
    if reads_written:
        if x.base is not None or not all(stage.keeps_rows for stage in traced.plan.passes):
            return False
        type_ = _native.node_of(x).type  # others that read the window get a copy, this does not
        _native.rebind(x, _native.node_of(_native.placeholder(type_)))
    outputs = Outputs(traced.plan, traced.structure, PartTarget(written, write))
    try:
        run_plan(traced, outputs, int(get("threads")), lambda *_: None)
    finally:
        if reads_written:  # its value is what has been written
            _native.rebind(x, _native.node_of(window))
    return True
