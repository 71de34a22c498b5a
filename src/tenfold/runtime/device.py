"""Device: the interface between the pipeline and a backend, and the table of devices.

Takes a Graph, publishes each value in its node, and hands on the first failure, if any.

>>> import tenfold as tn
>>> DEVICES["reference"].name
'reference'
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from tenfold._native import Executable, Value
from tenfold.core.graph import Graph
from tenfold.rewrite.driver import RewriteReport
from tenfold.settings import declare_device


class OptimisedGraph(NamedTuple):
    """What a computed graph was made from: the graph as it was written, and what rules did."""

    graph: Graph
    report: RewriteReport


class Device(Protocol):
    """What computes a graph."""

    name: str
    rewrites: bool
    """Whether rules may change what it computes."""

    def run(self, graph: Graph) -> Exception | None:
        """Compute every output of the graph and publish it; return the first failure.

        What depends on a node that fails for its values is left pending; the rest is computed.
        """

    def bind(self, graph: Graph, written: OptimisedGraph) -> Executable | None:
        """Keep what replays the graph for what was written, and hand it on; None where it cannot be
        replayed.
        """

    def anew(self, graph: Graph) -> list[tuple[Value, ...]] | None:
        """Compute the outputs of a graph without any cache; nothing is published. None where there
        is nothing to compare a cached plan with, or a step fails.
        """


DEVICES: dict[str, Device] = {}


def declare(device: Device) -> None:
    """Enter a device into the table under its name."""
    DEVICES[device.name] = device
    declare_device(device.name)
