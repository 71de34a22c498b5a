"""Graph chunks: splits a long graph into short ones, so that equal chunks share a plan.

Takes a Graph and the values that earlier chunks have made, hands on the Graph of the next chunk:
its inputs from earlier ones are leaves of it. Values that no later chunk reads are freed.

>>> import tenfold as tn
>>> from tenfold import _native
>>> x = tn.asarray([1.0])
>>> for _ in range(5):
...     x = x + 1
>>> pieces = GraphChunks(Graph.of([_native.node_of(x)]), 4)
>>> print(pieces.take(0)[0])
%0 = leaf float64[1]
%1 = scalar 1
%2 = add(%0, %1) float64[1]
%3 = scalar 1
"""

from __future__ import annotations

from tenfold import _native
from tenfold._native import Node, Value
from tenfold.core.graph import Graph

Values = tuple[Value, ...]


class GraphChunks:
    """A long graph, cut into pieces of `length` nodes, and what has been made of it."""

    def __init__(self, graph: Graph, length: int) -> None:
        self.graph, self.length = graph, length
        self.left = list(graph.uses)
        self.values: dict[int, Values] = {}

    def begins(self) -> range:
        """The first node of each piece."""
        return range(0, len(self.graph), self.length)

    def take(self, begin: int) -> tuple[Graph, dict[int, int]]:
        """Return a piece, and the positions in it of the live-out nodes."""
        graph = self.graph
        end = min(begin + self.length, len(graph))
        nodes: list[Node] = []
        inputs: list[tuple[int, ...]] = []
        held: list[bool] = []
        places: dict[int, int] = {}
        inside: dict[int, int] = {}
        for position in range(begin, end):
            for i in graph.inputs[position]:
                inside[i] = inside.get(i, 0) + 1
                if i < begin and i not in places:
                    places[i] = len(nodes)
                    nodes.append(self._leaf(i))
                    inputs.append(())
                    held.append(False)
        wanted: dict[int, int] = {}
        for position in range(begin, end):
            places[position] = len(nodes)
            read_later = self.left[position] > inside.get(position, 0)
            keeps = graph.live_out[position] or read_later
            if keeps and graph.nodes[position].pending:
                wanted[position] = len(nodes)
            nodes.append(graph.nodes[position])
            inputs.append(tuple(places[i] for i in graph.inputs[position]))
            held.append(keeps)
        self._count_down(inside)
        piece = Graph(nodes, inputs, [0] * len(nodes), held, (len(nodes) - 1,))
        return piece, wanted

    def _leaf(self, position: int) -> Node:
        node = self.graph.nodes[position]
        if position not in self.values:
            return node  # a leaf, a scalar, or computed
        return _native.node_of(_native.value_array(self.values[position][0]))

    def _count_down(self, read: dict[int, int]) -> None:
        for position, times in read.items():
            self.left[position] -= times
            if not self.left[position]:
                self.values.pop(position, None)

    def made(self, position: int, values: Values) -> None:
        """Take the values of a node: for its holders, and for later pieces."""
        node = self.graph.nodes[position]
        if node.pending and (self.graph.live_out[position] or len(values) > 1):
            node.publish([*values])
        elif self.left[position]:
            self.values[position] = values
