"""What planning takes grows with the number of pieces, not with its square."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.core.graph import Graph
from tenfold.rule_registry import optimise_graph
from tenfold.schedule.schedule import schedule_graph

X = tn.asarray(np.arange(1000.0))

PIECES: dict[str, Callable[[int], tn.Array]] = {
    "parts of one array": lambda i: X[i : i + 1],
    "constants": lambda i: tn.full((1 + i % 3,), float(i)),
    "maps": lambda i: X[i : i + 2] * 2,
}


def calls(function: Callable[[], object]) -> int:
    """Count the calls, of functions of Python and of C, that a function makes."""
    count = 0

    def note(frame: object, event: str, given: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


def planned(make: Callable[[int], tn.Array], number: int) -> None:
    joined = tn.concat([make(i) for i in range(number)])
    graph, _ = optimise_graph(Graph.of([_native.node_of(joined)]))
    schedule_graph(graph)


@pytest.mark.parametrize("name", PIECES)
def test_planning_of_joined_pieces_is_linear(name: str) -> None:
    planned(PIECES[name], 400)  # what is remembered by then is so in both
    few, many = (calls(lambda n=n: planned(PIECES[name], n)) for n in (100, 400))
    assert many < 5 * few
