"""Deferred shared products: detects that an assignment computes a product that the pending
assignment computes too.

Takes the value of an Array with an assignment pending, and the value assigned next. Hands on
whether both are better computed together, so that a product they share is computed once per turn of
a loop.

>>> import tenfold as tn
>>> from tenfold import _native
>>> a, x = tn.ones((100, 100)), tn.zeros((2, 100, 100))
>>> x[0] = a @ a + 1
>>> shares(_native.node_of(x), _native.node_of(a @ a + 2))
True
>>> shares(_native.node_of(x), _native.node_of(x[0] @ a))
False
"""

from __future__ import annotations

from tenfold import pipeline
from tenfold._native import Node
from tenfold.caches import LruCache
from tenfold.core.graph import Graph
from tenfold.core.op import Op

LEAST = 1 << 18
"""Multiply-adds from which on a product is looked for in the next assignment."""
MOST_NODES = 64
"""Nodes of what is assigned that are looked through."""

LARGEST = 256
"""Nodes of a graph that is optimised to know what it takes."""

Key = tuple[object, ...]
_known: LruCache[Key, bool] = LruCache(256, "values with shared products")
"""Of pairs whether it is less to compute them together, by the options in force and the text of the
graph. No lock: two threads find the same."""


def shares(before: Node, value: Node) -> bool:
    """Whether what is assigned has a product or solve which is part of what was assigned last too,
    and takes fewer multiply-adds together with it than by itself.
    """
    op, inputs = before.op, before.inputs
    if not before.pending or op is None or op.writes is None or len(inputs) < 2:
        return False
    mine = _products(value)
    if not mine or mine.isdisjoint(_products(inputs[1])):
        return False
    earlier = inputs[0].op if inputs[0].pending else None
    waits = earlier is not None and earlier.writes is not None  # it has been weighed for that one
    return waits or _is_less([inputs[1], value])


def _products(value: Node) -> set[Key]:
    """Return the large products and solves below a value: which operation of which nodes. What an
    earlier assignment computes is not looked through.
    """
    found: set[Key] = set()
    seen: set[Node] = {value}
    waiting = [value]
    while waiting and len(seen) <= MOST_NODES:
        node = waiting.pop()
        inputs = node.inputs
        if _is_large(node, inputs):
            found.add((node.op, repr(node.params), *inputs))
        new = [each for each in inputs if each.pending and each not in seen]
        seen.update(new)
        waiting += [each for each in new if not each.op or each.op.writes is None]
    return found


def _is_large(node: Node, inputs: tuple[Node, ...]) -> bool:
    op = node.op if node.pending else None
    if not isinstance(op, Op) or op.multiply_adds is None:
        return False
    return op.multiply_adds(tuple(each.type for each in inputs), *node.params) >= LEAST


def _is_less(values: list[Node]) -> bool:
    """Whether values take fewer multiply-adds together than each by itself."""
    graph = Graph.of(values)
    if len(graph) > LARGEST:
        return False
    key = (pipeline.options_key(), str(graph))
    known = _known.get(key)
    if known is None:
        known = _multiply_adds(graph) < sum(_multiply_adds(Graph.of([value])) for value in values)
        _known[key] = known
    return known


def _multiply_adds(graph: Graph) -> int:
    after, _ = pipeline.optimise(graph)
    return sum(after.multiply_adds(position) for position in range(len(after)))
