"""Message passing over a thousand graphs, node by node, beside NumPy and PyTorch.

Takes the number of rounds; hands on a row. In the others a layer's products are of all nodes of a
graph, and nodes gather their neighbours by indices that were made beforehand. For information, what
PyTorch takes for whom the loop over nodes is written away by hand: all graphs as one, messages
added up by edges.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from engine_work.rows import Turn, at_least, medians, milliseconds, ratio, row
from kernel_work import THREADS
from kernel_work.measure import Row

import tenfold as tn
from graphs.message_passing import Layer, beginnings, layers, message_passing, numpy_message_passing
from graphs.real_graphs import Graph, graphs

GRAPHS, LAYERS, HIDDEN = 1_000, 2, 32
FASTER = 8.0
BOUND = 1e-4
"""Between states of up to about a hundred; they are sums of as many messages."""


def graph_rows(rounds: int, quick: bool, installed: Mapping[str, object]) -> Iterator[Row]:
    """The row."""
    found = graphs(GRAPHS // (10 if quick else 1))
    states, given = beginnings(found, HIDDEN), layers(LAYERS, HIDDEN)
    numpy = numpy_message_passing(given)
    expected = [numpy(*each) for each in zip(found, states, strict=True)]
    turns: dict[str, Turn] = {
        "tenfold": tenfold_turn(found, states, given),
        "numpy": lambda: [numpy(*each) for each in zip(found, states, strict=True)],
    }
    if installed.get("torch") is not None:
        turns |= torch_turns(found, states, given)
    wrong = {}
    for name, turn in turns.items():
        pairs = zip(turn(), expected, strict=True)
        error = max(np.abs(np.asarray(own) - other).max() for own, other in pairs)
        if not error <= BOUND:
            wrong[name] = f"differs from NumPy's by {error:.3g}"
    times = milliseconds(turns, rounds)
    middle = medians(times)
    nodes = sum(map(len, found))
    title = f"messages in {len(found):,} graphs of {nodes:,} nodes, {LAYERS} layers; "
    title += f"{middle['tenfold'] / nodes / LAYERS * 1e3:.2f} us a node and layer"
    if "joined" in middle:
        title += f"; PyTorch by edges, all graphs joined by hand: {middle.pop('joined'):.3g} ms"
    torch = ratio(times, "torch", "tenfold") if "torch" in times else None
    yield {**row("graphs", title, middle, at_least(FASTER, torch, "x torch")), "wrong": wrong}


def tenfold_turn(found: Sequence[Graph], states: Sequence[np.ndarray], given: list[Layer]) -> Turn:
    run = message_passing(given)
    begin = [[*map(tn.asarray, each)] for each in states]

    def turn() -> list[Sequence[tn.Array]]:
        ends = [run(graph, each) for graph, each in zip(found, begin, strict=True)]
        flat = [state for each in ends for state in each]
        tn.eval(*flat)
        flat[-1].wait()  # what was submitted together ends together
        return ends

    return turn


def torch_turns(
    found: Sequence[Graph], states: Sequence[np.ndarray], given: list[Layer]
) -> dict[str, Turn]:
    """PyTorch's loop over nodes, and all graphs as one."""
    torch = import_module("torch")
    torch.set_num_threads(THREADS)
    matrices = [
        tuple(torch.from_numpy(each).t() for each in (layer.own, layer.here, layer.there))
        for layer in given
    ]
    indices = [[torch.tensor(each) for each in graph.neighbours] for graph in found]
    tensors = [*map(torch.from_numpy, states)]

    def by_nodes(neighbours: Sequence[Any], state: Any) -> Any:
        for own, here, there in matrices:
            sent = state @ there
            received = [
                sent.index_select(0, others).add_(mine).tanh_().sum(0)
                for others, mine in zip(neighbours, (state @ here).unbind(), strict=True)
            ]
            state = torch.stack(received).add_(state @ own).relu_()
        return state

    begins = np.cumsum([0, *map(len, found)])
    edges = [
        (begin + node, begin + other)
        for begin, graph in zip(begins, found, strict=False)
        for node, others in enumerate(graph.neighbours)
        for other in others
    ]
    receivers, senders = torch.tensor(edges).t().contiguous()
    state_of_all = torch.cat(tensors)

    def by_edges(state: Any) -> Any:
        for own, here, there in matrices:
            sent = (
                (state @ there)
                .index_select(0, senders)
                .add_((state @ here).index_select(0, receivers))
                .tanh_()
            )
            state = (state @ own).index_add_(0, receivers, sent).relu_()
        return state

    @torch.inference_mode()
    def loop() -> list[Any]:
        return [by_nodes(*each) for each in zip(indices, tensors, strict=True)]

    @torch.inference_mode()
    def joined() -> list[Any]:
        return [*by_edges(state_of_all).split([*map(len, found)])]

    return {"torch": loop, "joined": joined}
