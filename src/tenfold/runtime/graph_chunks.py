"""Graph chunks: splits a long graph into short ones, so that equal chunks share a plan.

Takes a Graph and the values of earlier chunks, hands on the Graph of the next chunk. Inputs from
earlier chunks are leaves. Values that no later chunk reads are freed.

>>> import tenfold as tn
>>> from tenfold import _native
>>> x = tn.asarray([1.0])
>>> for _ in range(5):
...     x = x + 1
>>> chunks = GraphChunks(Graph.of([_native.node_of(x)]), 4)
>>> print(chunks.chunk(0)[0])
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
    """A long graph in chunks of `length` nodes, and the values of computed nodes."""

    def __init__(self, graph: Graph, length: int) -> None:
        self.graph, self.length = graph, length
        self.remaining_uses = list(graph.uses)
        self.values: dict[int, Values] = {}

    def begins(self) -> range:
        """The first node of each chunk."""
        return range(0, len(self.graph), self.length)

    def chunk(self, begin: int) -> tuple[Graph, dict[int, int]]:
        """Return a chunk, and the positions in it of its live-out nodes."""
        graph = self.graph
        end = min(begin + self.length, len(graph))
        nodes: list[Node] = []
        inputs: list[tuple[int, ...]] = []
        live_out: list[bool] = []
        positions: dict[int, int] = {}
        uses_inside: dict[int, int] = {}
        for position in range(begin, end):
            for i in graph.inputs[position]:
                uses_inside[i] = uses_inside.get(i, 0) + 1
                if i < begin and i not in positions:
                    positions[i] = len(nodes)
                    nodes.append(self._leaf(i))
                    inputs.append(())
                    live_out.append(False)
        live_out_positions: dict[int, int] = {}
        for position in range(begin, end):
            positions[position] = len(nodes)
            read_later = self.remaining_uses[position] > uses_inside.get(position, 0)
            is_live_out = graph.live_out[position] or read_later
            if is_live_out and graph.nodes[position].pending:
                live_out_positions[position] = len(nodes)
            nodes.append(graph.nodes[position])
            inputs.append(tuple(positions[i] for i in graph.inputs[position]))
            live_out.append(is_live_out)
        self._count_down(uses_inside)
        chunk = Graph(nodes, inputs, [0] * len(nodes), live_out, (len(nodes) - 1,))
        return chunk, live_out_positions

    def _leaf(self, position: int) -> Node:
        node = self.graph.nodes[position]
        if position not in self.values:
            return node  # a leaf, a scalar, or computed
        return _native.node_of(_native.value_array(self.values[position][0]))

    def _count_down(self, uses: dict[int, int]) -> None:
        for position, count in uses.items():
            self.remaining_uses[position] -= count
            if not self.remaining_uses[position]:
                self.values.pop(position, None)

    def store_values(self, position: int, values: Values) -> None:
        """Publish a live node, or store its values for later chunks."""
        node = self.graph.nodes[position]
        if node.pending and (self.graph.live_out[position] or len(values) > 1):
            node.publish([*values])
        elif self.remaining_uses[position]:
            self.values[position] = values
