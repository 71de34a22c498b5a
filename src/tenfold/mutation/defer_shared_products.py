"""Deferred shared products: detects that an assignment computes a product that the pending
assignment computes too.

Takes the value of an Array with an assignment pending, and the value assigned next. Hands on
whether both are better computed together, so that a product they share is computed once per turn of
a loop.

>>> import tenfold as tn
>>> from tenfold import _native
>>> a, x = tn.ones((100, 100)), tn.zeros((2, 100, 100))
>>> x[0] = a @ a + 1
>>> shares_product(_native.node_of(x), _native.node_of(a @ a + 2))
True
>>> shares_product(_native.node_of(x), _native.node_of(x[0] @ a))
False
"""

from __future__ import annotations

from tenfold import pipeline
from tenfold._native import Node
from tenfold.caches import LruCache
from tenfold.core.graph import Graph
from tenfold.core.op import Op, exact_params

MIN_MULTIPLY_ADDS = 1 << 18
"""The least multiply-adds of a product that is compared with the next assignment."""
MAX_VISITED_NODES = 64
"""The most nodes visited of an assigned value."""

MAX_GRAPH_NODES = 256
"""The most nodes of a graph that is optimised to count its multiply-adds."""

ProductKey = tuple[object, ...]
_decisions: LruCache[ProductKey, bool] = LruCache(
    256, "shared products", "weighing two values optimises three graphs"
)
"""Whether two values are cheaper together, by options and graph text. It needs no lock: all threads
find the same."""


def shares_product(pending: Node, value: Node) -> bool:
    """Whether a value shares a product or solve with the pending assignment, and both together take
    fewer multiply-adds than one after the other.
    """
    op, inputs = pending.op, pending.inputs
    if not pending.pending or op is None or not op.lowering.updates or len(inputs) < 2:
        return False
    products = _large_products(value)
    if not products or products.isdisjoint(_large_products(inputs[1])):
        return False
    previous_op = inputs[0].op if inputs[0].pending else None
    was_weighed = (
        previous_op is not None and previous_op.lowering.updates
    )  # it has been weighed for that one
    return was_weighed or _cheaper_together([inputs[1], value])


def _large_products(value: Node) -> set[ProductKey]:
    """Return the large products and solves below a value, as (operation, params, inputs). Earlier
    assignments are not visited.
    """
    products: set[ProductKey] = set()
    visited: set[Node] = {value}
    stack = [value]
    while stack and len(visited) <= MAX_VISITED_NODES:
        node = stack.pop()
        inputs = node.inputs
        if _is_large(node, inputs):
            products.add((node.op, exact_params(node.params), *inputs))
        unvisited = [operand for operand in inputs if operand.pending and operand not in visited]
        visited.update(unvisited)
        stack += [
            operand for operand in unvisited if not operand.op or not operand.op.lowering.updates
        ]
    return products


def _is_large(node: Node, inputs: tuple[Node, ...]) -> bool:
    op = node.op if node.pending else None
    if not isinstance(op, Op) or op.lowering.multiply_adds is None:
        return False
    return (
        op.lowering.multiply_adds(tuple(operand.type for operand in inputs), *node.params)
        >= MIN_MULTIPLY_ADDS
    )


def _cheaper_together(values: list[Node]) -> bool:
    """Whether values take fewer multiply-adds in one graph than in one each."""
    graph = Graph.of(values)
    if len(graph) > MAX_GRAPH_NODES:
        return False
    key = (pipeline.options_key(), str(graph))
    cached = _decisions.get(key)
    if cached is None:
        cached = _multiply_adds(graph) < sum(_multiply_adds(Graph.of([value])) for value in values)
        _decisions[key] = cached
    return cached


def _multiply_adds(graph: Graph) -> int:
    optimised, _ = pipeline.optimise(graph)
    return sum(optimised.multiply_adds(position) for position in range(len(optimised)))
