"""Message passing over many graphs at once, one function call for each node.

A layer sends from each node to each neighbour a message that depends on both, and a node adds up
what it gets: `relu(own + sum of tanh(here + there))`, where `own`, `here` and `there` are the
node's state, the receiver's and the sender's, times a matrix each. How much work a node is depends
on its degree, and how many there are on the graph.

Run, from examples/: python -m graphs.message_passing --help
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

import tenfold as tn
from comparison import compare, computed
from graphs.real_graphs import Graph
from graphs.real_graphs import graphs as real_graphs


@dataclass(frozen=True)
class Layer:
    """Three matrices (n, n)."""

    own: np.ndarray
    here: np.ndarray
    there: np.ndarray


Passing = Callable[[Graph, Any], Sequence[Any]]
"""From a graph and the states of its nodes to their states at the end."""


def beginnings(graphs: Sequence[Graph], hidden: int, seed: int = 9) -> list[np.ndarray]:
    """Return random states for each graph, (nodes, n), float32."""
    random = np.random.default_rng(seed)
    shapes = [(len(graph), hidden) for graph in graphs]
    return [random.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]


def layers(count: int, hidden: int, seed: int = 9) -> list[Layer]:
    """Return so many layers of random weights."""
    random = np.random.default_rng(seed)
    bound = 0.5 * hidden**-0.5
    shape = (count, 3, hidden, hidden)
    return [Layer(*each) for each in random.uniform(-bound, bound, shape).astype(np.float32)]


def message_passing(layers: Sequence[Layer]) -> Passing:
    """Return the layers in Tenfold: loops over nodes and neighbours, which compute nothing."""
    matrices = [[*map(tn.asarray, (each.own, each.here, each.there))] for each in layers]

    @tn.function
    def receive(own: tn.Array, here: tn.Array, there: list[tn.Array]) -> tn.Array:
        total = own
        for each in there:
            total = total + tn.tanh(here + each)
        return tn.maximum(total, 0)

    def run(graph: Graph, states: Sequence[tn.Array]) -> Sequence[tn.Array]:
        for own, here, there in matrices:
            sent = [there @ state for state in states]
            states = [
                receive(own @ state, here @ state, [sent[other] for other in neighbours])
                for state, neighbours in zip(states, graph.neighbours, strict=True)
            ]
        return states

    return run


def numpy_message_passing(layers: Sequence[Layer]) -> Passing:
    """Return the same for NumPy, whose products are of all nodes of a graph."""

    def run(graph: Graph, states: np.ndarray) -> np.ndarray:
        for layer in layers:
            totals, here, there = (states @ each.T for each in (layer.own, layer.here, layer.there))
            for node, neighbours in enumerate(graph.neighbours):
                totals[node] += np.tanh(here[node] + there[[*neighbours]]).sum(axis=0)
            states = np.maximum(totals, 0)
        return states

    return run


@click.command()
@click.option("--count", default=100, show_default=True, type=click.IntRange(1), help="Graphs.")
@click.option("--hidden", default=32, show_default=True, type=click.IntRange(1))
@click.option("--picture", type=click.Path(path_type=Path), help="Draw the batches (SVG).")
def main(count: int, hidden: int, picture: Path | None) -> None:
    """Pass messages in two layers, and compare with NumPy."""
    graphs, given = real_graphs(count), layers(2, hidden)
    states = beginnings(graphs, hidden)
    own, other = message_passing(given), numpy_message_passing(given)
    arrays = [[*map(tn.asarray, each)] for each in states]

    def tenfold() -> Sequence[tn.Array]:
        ends = map(own, graphs, arrays)
        return computed([state for each in ends for state in each])

    def numpy() -> Sequence[np.ndarray]:
        return [*np.concatenate([*map(other, graphs, states)])]

    nodes = sum(map(len, graphs))
    compare(f"{count:,} graphs of {nodes:,} nodes in all", tenfold, numpy, picture)


if __name__ == "__main__":
    main()
