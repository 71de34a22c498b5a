"""Common subexpression elimination (CSE): equal nodes of a graph are computed once.

Takes the columns of a graph (`rewrite/rewrite_graph.py`), hands on pairs of nodes: the second has
the value of the first. Two nodes are equal if their operation, parameters and inputs are. Python
scalars are equal if they are one node, or numbers that keys of plans tell from all others. An
operation with an effect, an update of a part and a user's Python function equal nothing else.

>>> import tenfold as tn
>>> from tenfold.core.graph import Graph
>>> from tenfold.rewrite.rewrite_graph import markers
>>> x = tn.asarray([1.0, 2.0])
>>> graph = Graph.of([tn._native.node_of(tn.exp(x + 1) - tn.exp(x + 1))])
>>> equal(RewriteGraph(graph, markers(graph)))
[(5, 2), (6, 3)]
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tenfold import _native
from tenfold.core.op import Op
from tenfold.rewrite.rewrite_graph import LEAF, SCALAR, Operator, RewriteGraph

Pairs = list[tuple[int, int]]


def equal_pairs(work: RewriteGraph, order: Iterable[int] | None = None) -> Pairs:
    """Return (node, the one before it that it equals), inputs before users.

    `order` has the nodes that are needed; as long as nothing has been replaced it may be left out.
    """
    first: dict[int, int] = {}
    known: dict[tuple[Any, ...], dict[str | None, int]] = {}
    pairs: Pairs = []
    for at in range(work.count) if order is None else order:
        key = _key(work, at, first)
        if key is None:
            continue
        others = known.setdefault(key, {})
        found = others.setdefault(_params_text(work, at, others), at)
        if found != at:
            first[at] = found
            if _is_worth_merging(work.ops[at]):
                pairs.append((at, found))
    return pairs


def _key(work: RewriteGraph, at: int, first: dict[int, int]) -> tuple[Any, ...] | None:
    """Return what is the same for equal nodes, but for the parameters; None if none equals it."""
    op = work.ops[at]
    if op is SCALAR:
        number = work.nodes[at].scalar
        return (SCALAR, repr(number)) if _native.is_notable(number) else None
    inputs = work.refresh(at)
    if isinstance(op, Op):
        return (op, *[first.get(i, i) for i in inputs]) if op.merges else None
    return (LEAF, *[first.get(i, i) for i in inputs]) if inputs else None


def _is_worth_merging(op: Operator) -> bool:
    """Whether two of it are more work than one: a view moves nothing, and is best seen by rules
    where it stands.
    """
    return op is not SCALAR and not (isinstance(op, Op) and op.view)


def _params_text(work: RewriteGraph, at: int, others: dict[str | None, int]) -> str | None:
    """Return the text of a node's parameters, which tells it from `others` with the same key.

    Their types are told, too: 0.0 is not -0.0, 1 is not True. A node that is alone has no text yet.
    """
    if not others:
        return None
    if (first := others.pop(None, None)) is not None:
        others[repr(work.nodes[first].params)] = first
    return repr(work.nodes[at].params)


def costly_pairs(work: RewriteGraph, pairs: Pairs) -> Pairs:
    """Return the pairs with a product or solve in them, at the beginning of a rewrite."""
    dear = [False] * work.count
    for at, inputs in enumerate(work.written):
        op = work.ops[at]
        product = isinstance(op, Op) and op.multiply_adds is not None
        dear[at] = product or any(dear[i] for i in inputs)
    return [pair for pair in pairs if dear[pair[0]]]
