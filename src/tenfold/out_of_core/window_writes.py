"""Window writes: assign a large expression to a window (`tn.wrap`) by parts of its rows.

Takes the expression, the ndarray that is written, and a function that writes a part of it. Hands on
whether it has written all. The large arrays that the expression reads are the sources of a plan
(`chunk_plan.py`), so at most some chunks are in memory. An expression that may fail, that cannot be
cut, or that reads the memory that is written, is left to the caller: it is computed as a whole.

>>> import numpy as np
>>> import tenfold as tn
>>> target, source = np.zeros((6, 2)), tn.asarray(np.ones((6, 2)))
>>> traced = expression_plan(source + 1, 4)
>>> traced.plan.chunks
[(0, 6)]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Array, Node
from tenfold.core.graph import Graph
from tenfold.core.op import Op
from tenfold.core.pytree import flatten
from tenfold.errors import UnsupportedError
from tenfold.out_of_core.chunk_outputs import Outputs
from tenfold.out_of_core.chunk_plan import ChunkPlan
from tenfold.out_of_core.chunk_scheduler import run_plan
from tenfold.out_of_core.chunk_sources import chunk_rows
from tenfold.out_of_core.shared_bytes import shares_bytes
from tenfold.out_of_core.trace_plan import TracedPlan, inlined
from tenfold.settings import get
from tenfold.storage.dense import HOST


def expression_plan(x: Array, min_bytes: int) -> TracedPlan | None:
    """Return the plan of a pending expression, of which arrays of that many bytes come in chunks;
    None where it cannot be cut by rows.
    """
    graph, _ = inlined(Graph.of([_native.node_of(x)]), ())
    if x.device != HOST or not x.ndim or not all(map(_is_repeatable, graph.nodes)):
        return None
    leaves = {
        node: np.asarray(_native.array_of(node))
        for node in graph.nodes
        if not (node.pending or node.is_scalar)
    }
    rows = x.shape[0]
    sources = [
        node
        for node, values in leaves.items()
        if values.nbytes >= min_bytes and values.shape[:1] == (rows,)
    ]
    if not sources:
        return None
    values, axes = [leaves[node] for node in sources], [0] * len(sources)
    known = {at: leaves[node] for at, node in enumerate(graph.nodes) if node in leaves}
    known = {at: array for at, array in known.items() if graph.nodes[at] not in sources}
    try:
        plan = ChunkPlan(graph, sources, axes, chunk_rows(values, axes, None), known)
    except UnsupportedError:
        return None
    if plan.axes[graph.outputs[0]] is None:
        return None
    return TracedPlan(plan, flatten(0)[1], values, axes)


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
    x: Array, written: np.ndarray, write: Callable[[Any, np.ndarray], None], min_bytes: int
) -> bool:
    """Compute an expression by parts and write each; return whether it could be cut."""
    traced = expression_plan(x, min_bytes) if x.shape == written.shape else None
    if traced is None:
        return False
    read = [*traced.sources, *traced.plan.known.values()]
    if any(shares_bytes(np.asarray(values), written) for values in read):
        return False
    outputs = Outputs(traced.plan, traced.structure, PartTarget(written, write))
    run_plan(traced, outputs, int(get("threads")), lambda *_: None)
    return True
