"""Partial reads: the first read of a part of a live pending array computes only that part.

Takes the columns of a graph, hands on the live nodes that rules may still split: those below a part
that is asked for, when nothing else needs them. The second partial read computes the whole, which
its holders then have.

>>> import tenfold as tn
>>> from tenfold.core.graph import Graph
>>> from tenfold.rewrite.rewrite_graph import markers
>>> x = tn.asarray([1.0, 2.0, 3.0]) * 2
>>> graph = Graph.of([tn._native.node_of(x[1:])])
>>> opened(RewriteGraph(graph, markers(graph)))
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


def splittable_nodes(work: RewriteGraph) -> set[int]:
    """Return what may be taken apart, and let the columns know which bases are read in part."""
    found: set[int] = set()
    for output in work.outputs:
        base = _partially_read_base(work, output)
        if base is None:
            continue
        node = work.nodes[base]
        if not node.read_in_part(mark=False):
            work.read_in_part.append(base)
            found |= _splittable_below(work, base)
    return found


def _partially_read_base(work: RewriteGraph, output: int) -> int | None:
    """Return what an output reads a part of: something held that nothing else needs."""
    at, takes = output, False
    while _is_view(work.ops[at]) and work.uses[at] == 1:
        takes = takes or work.ops[at] in (index, diagonal)
        (at,) = work.inputs[at]
    fewer = work.nodes[output].type.size < work.nodes[at].type.size
    alone = work.live_out[at] and work.uses[at] == 1
    return at if takes and fewer and alone and isinstance(work.ops[at], Op) else None


def _is_view(op: Operator) -> bool:
    return isinstance(op, Op) and op.view


def _splits_by_operands(op: Operator) -> bool:
    """Whether a part of the operation's result is made of parts of its operands."""
    joins = (concat, stack, pad, matmul)
    return isinstance(op, Op) and (is_pure_map(op) or op.reduces or op in joins)


def _splittable_below(work: RewriteGraph, base: int) -> set[int]:
    """Return `base` and what is below it that is read by what is returned alone.

    What is read twice is of use in parts only where both readers take the same part: where all is
    elementwise from `base` down to it.
    """
    found: set[int] = set()
    reads: dict[int, int] = {base: 1}
    same: dict[int, bool] = {base: True}
    left = [-base]
    while left:
        at = -heappop(left)  # users have come before their inputs: these stand before them
        if reads[at] != work.uses[at] or not (same[at] or reads[at] == 1):
            continue
        takes_apart = _splits_by_operands(work.ops[at]) or _is_view(work.ops[at])
        if takes_apart or at == base:  # of another operation a rule may make one that is
            found.add(at)
        if not takes_apart:
            continue
        if work.ops[at] is matmul:  # of one operand all is read
            continue
        elementwise = same[at] and _is_elementwise(work.ops[at])
        for i in work.inputs[at]:
            if i not in reads:
                heappush(left, -i)
            reads[i] = reads.get(i, 0) + 1
            same[i] = same.get(i, True) and elementwise
    return found


def _is_elementwise(op: Operator) -> bool:
    return isinstance(op, Op) and is_pure_map(op)
