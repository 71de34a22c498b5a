"""Common subexpression elimination (CSE): equal nodes of a graph are computed once.

Input: a rewrite graph (`rewrite/rewrite_graph.py`). Output: pairs of nodes, where the second has
the value of the first. Two nodes are equal if their operation, parameters and inputs are equal.
Python scalars are equal if they are one node, or equal numbers that plan keys distinguish. An
operation with an effect, a slice update and a user's Python function are never merged.

>>> import tenfold as tn
>>> from tenfold.rewrite.rewrite_graph import operators_of
>>> x = tn.asarray([1.0, 2.0])
>>> graph = Graph.of([tn._native.node_of(tn.exp(x + 1) - tn.exp(x + 1))])
>>> equal_pairs(RewriteGraph(graph, operators_of(graph)))
[(5, 2), (6, 3)]
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tenfold import _native
from tenfold._native import Node
from tenfold.core.graph import Graph
from tenfold.core.interpreter import interpret
from tenfold.core.op import Op
from tenfold.rewrite.rewrite_graph import LEAF_OP, SCALAR_OP, Operator, RewriteGraph

Pairs = list[tuple[int, int]]


def equal_pairs(graph: RewriteGraph, order: Iterable[int] | None = None) -> Pairs:
    """Return (node, earlier equal node), inputs before users.

    `order` has the live nodes; it may be omitted before the first replacement.
    """
    representatives: dict[int, int] = {}
    nodes_by_key: dict[tuple[Any, ...], dict[str | None, int]] = {}
    pairs: Pairs = []
    for at in range(graph.original_count) if order is None else order:
        key = _key(graph, at, representatives)
        if key is None:
            continue
        nodes_by_params = nodes_by_key.setdefault(key, {})
        params_text = _params_text(graph, at, nodes_by_params) if nodes_by_params else None
        representative = nodes_by_params.setdefault(params_text, at)
        if representative != at:
            representatives[at] = representative
            if _is_worth_merging(graph.ops[at]):
                pairs.append((at, representative))
    return pairs


def _key(graph: RewriteGraph, at: int, representatives: dict[int, int]) -> tuple[Any, ...] | None:
    """Return a key of a node without its parameters; None for a node that is never merged."""
    op = graph.ops[at]
    if op is SCALAR_OP:
        number = graph.nodes[at].scalar
        return (SCALAR_OP, repr(number)) if _native.is_special_value(number) else None
    inputs = graph.refresh(at)
    if isinstance(op, Op):
        if not op.merges:
            return None
    elif inputs:
        op = LEAF_OP
    else:
        return None
    return (op, *([representatives.get(i, i) for i in inputs] if representatives else inputs))


def _is_worth_merging(op: Operator) -> bool:
    """Whether merging saves work: not for a view, which moves nothing and helps rules in place."""
    return op is not SCALAR_OP and not (isinstance(op, Op) and op.semantics.view)


def _params_text(graph: RewriteGraph, at: int, nodes_by_params: dict[str | None, int]) -> str:
    """Return the text of a node's parameters, which distinguishes nodes with the same key.

    The text distinguishes types: 0.0 is not -0.0, 1 is not True. The first node of a key has no
    text yet.
    """
    if (unlabelled := nodes_by_params.pop(None, None)) is not None:
        nodes_by_params[repr(graph.nodes[unlabelled].params)] = unlabelled
    return repr(graph.nodes[at].params)


def costly_pairs(graph: Graph, pairs: Pairs) -> Pairs:
    """Return the pairs of a graph that compute a product or solve."""
    if not pairs:
        return pairs
    is_costly: list[bool] = []

    def rule(node: Node, operands: list[bool]) -> bool:
        op = node.op if node.pending else None
        is_product = isinstance(op, Op) and op.lowering.multiply_adds is not None
        is_costly.append(is_product or any(operands))
        return is_costly[-1]

    interpret(graph, {}, rule)
    return [pair for pair in pairs if is_costly[pair[0]]]
