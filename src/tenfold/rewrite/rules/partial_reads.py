"""Partial reads: the first read of a part of a live pending array computes only that part.

Input: a rewrite graph. Output: the live-out nodes that rules may split: those below a slice that is
an output, if they have no other readers. The second partial read computes the whole array, for all
later reads, unless it is larger than half the memory (`Node.passed_through`).

>>> import tenfold as tn
>>> from tenfold.core.graph import Graph
>>> from tenfold.rewrite.rewrite_graph import operators_of
>>> x = tn.asarray([1.0, 2.0, 3.0]) * 2
>>> graph = Graph.of([tn._native.node_of(x[1:])])
>>> splittable_nodes(RewriteGraph(graph, operators_of(graph)))
{2}
"""

from __future__ import annotations

from heapq import heappop, heappush

from tenfold.core.op import Op
from tenfold.ops.contract import matmul
from tenfold.ops.diagonal_tril_triu import diagonal
from tenfold.ops.indexing import index
from tenfold.ops.joining import concat, stack
from tenfold.ops.pad import pad
from tenfold.rewrite.rewrite_graph import Operator, RewriteGraph
from tenfold.rewrite.rules.slice_pushdown import is_pure_map


def splittable_nodes(graph: RewriteGraph) -> set[int]:
    """Return the nodes that rules may split."""
    splittable: set[int] = set()
    for output in graph.outputs:
        base = _partially_read_base(graph, output)
        if base is None:
            continue
        splittable |= _splittable_below(graph, base)
    return splittable


def _partially_read_base(graph: RewriteGraph, output: int) -> int | None:
    """Return the live node that an output slices, if it has no other reader, and no evaluation has
    passed through it.
    """
    at, is_sliced = output, False
    while _is_view(graph.ops[at]) and graph.uses[at] == 1:
        is_sliced = is_sliced or graph.ops[at] in (index, diagonal)
        (at,) = graph.inputs[at]
    is_smaller = graph.nodes[output].type.size < graph.nodes[at].type.size
    is_exclusive = graph.is_named(at) and graph.uses[at] == 1
    if not (is_sliced and is_smaller and is_exclusive and isinstance(graph.ops[at], Op)):
        return None
    return None if graph.nodes[at].passed_through(mark=False) else at


def _is_view(op: Operator) -> bool:
    return isinstance(op, Op) and op.semantics.view


def _splits_by_operands(op: Operator) -> bool:
    """Whether a slice of the result is computed from slices of the operands."""
    joining_ops = (concat, stack, pad, matmul)
    return isinstance(op, Op) and (is_pure_map(op) or op.rewriting.reduces or op in joining_ops)


def _splittable_below(graph: RewriteGraph, base: int) -> set[int]:
    """Return `base` and its transitive inputs that only returned nodes read.

    A node with two readers is split only if both read the same slice: if all operations between it
    and `base` are elementwise.
    """
    splittable: set[int] = set()
    reads: dict[int, int] = {base: 1}
    same_slice: dict[int, bool] = {base: True}
    worklist = [-base]
    while worklist:
        at = -heappop(worklist)  # users have come before their inputs: these stand before them
        if reads[at] != graph.uses[at] or not (same_slice[at] or reads[at] == 1):
            continue
        splits = _splits_by_operands(graph.ops[at]) or _is_view(graph.ops[at])
        if splits or at == base:  # of another operation a rule may make one that is
            splittable.add(at)
        if not splits:
            continue
        if graph.ops[at] is matmul:  # of one operand all is read
            continue
        elementwise = same_slice[at] and _is_elementwise(graph.ops[at])
        for i in graph.inputs[at]:
            if i not in reads:
                heappush(worklist, -i)
            reads[i] = reads.get(i, 0) + 1
            same_slice[i] = same_slice.get(i, True) and elementwise
    return splittable


def _is_elementwise(op: Operator) -> bool:
    return isinstance(op, Op) and is_pure_map(op)
