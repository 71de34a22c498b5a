"""Common subexpression elimination (CSE): equal nodes of a graph are computed once.

Input: a rewrite graph (`rewrite/rewrite_graph.py`). Output: pairs of nodes, where the second has
the value of the first. Two nodes are equal if their operation, parameters and inputs are equal.
Python scalars are equal if they are one node, or equal numbers that plan keys distinguish. An
operation with an effect, a slice update and a user's Python function are never merged.

>>> import tenfold as tn
>>> x = tn.asarray([1.0, 2.0])
>>> graph = Graph.of([tn._native.node_of(tn.exp(x + 1) - tn.exp(x + 1))])
>>> equal_pairs(RewriteGraph(graph, operators_of(graph)))
[(5, 2), (6, 3)]
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from tenfold import _native
from tenfold._native import Array, Node
from tenfold.core.graph import Graph
from tenfold.core.interpreter import interpret, rebuild_with_origin
from tenfold.core.op import Op, exact_params
from tenfold.rewrite.rewrite_graph import LEAF_OP, SCALAR_OP, Operator, RewriteGraph, operators_of

Pairs = list[tuple[int, int]]
ByParams = dict[Hashable, int]


def equal_pairs(graph: RewriteGraph, order: Iterable[int] | None = None) -> Pairs:
    """Return (node, earlier equal node), inputs before users.

    `order` has the live nodes; it may be omitted before the first replacement.
    """
    representatives: dict[int, int] = {}
    nodes_by_key: dict[tuple[Any, ...], ByParams] = {}
    pairs: Pairs = []
    for at in range(graph.original_count) if order is None else order:
        key = _key(graph, at, representatives)
        if key is None:
            continue
        nodes_by_params = nodes_by_key.setdefault(key, {})
        params_key = _params_key(graph, at, nodes_by_params) if nodes_by_params else None
        representative = nodes_by_params.setdefault(params_key, at)
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


def _params_key(graph: RewriteGraph, at: int, nodes_by_params: ByParams) -> Hashable:
    """Return the key of a node's parameters, which distinguishes nodes with the same key.

    It distinguishes types: 0.0 is not -0.0, 1 is not True. The first node has none yet.
    """
    if (unlabelled := nodes_by_params.pop(None, None)) is not None:
        nodes_by_params[exact_params(graph.nodes[unlabelled].params)] = unlabelled
    return exact_params(graph.nodes[at].params)


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


def cse(*arrays: Array) -> Any:
    """Return an array, or a tuple of several, with equal subexpressions as one; uncomputed.

    Products and solves are merged, too. When arrays are computed, they are merged only where that
    saves work. A user's own function is merged with none. Raises TypeError for an argument that is
    no Array.

    >>> import tenfold as tn
    >>> x = tn.asarray([1.0, 2.0])
    >>> y = tn.exp(x + 1) - tn.exp(x + 1)
    >>> [each.explain().split(",")[0] for each in (y, tn.cse(y))]
    ['expression: 8 nodes', 'expression: 5 nodes']
    """
    graph = Graph.of([*map(_native.node_of, arrays)])
    earlier = dict(equal_pairs(RewriteGraph(graph, operators_of(graph))))
    values: list[Any] = []
    changed: set[int] = set(earlier)
    for at, (node, inputs) in enumerate(zip(graph.nodes, graph.inputs, strict=True)):
        if at in earlier:
            values.append(values[earlier[at]])
        elif len(node.types) > 1 or not changed.isdisjoint(inputs):
            changed.add(at)
            values.append(rebuild_with_origin(node, [values[i] for i in inputs]))
        else:
            values.append(node.scalar if node.is_scalar else _native.array_of(node))
    # an Array for each, so that an assignment to one changes no other
    results = [_native.array_of(_native.node_of(values[i])) for i in graph.outputs]
    return results[0] if len(results) == 1 else tuple(results)
