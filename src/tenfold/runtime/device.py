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
    """The original graph of a computed graph, and the report of its rewrite."""

    graph: Graph
    report: RewriteReport


class Device(Protocol):
    """A backend that computes graphs."""

    name: str
    rewrites: bool
    """Whether rewrite rules apply to its graphs."""

    def run(self, graph: Graph) -> Exception | None:
        """Compute every output of the graph and publish it; return the first failure.

        Nodes that depend on a failed node stay pending; the other nodes are computed.
        """

    def bind(self, graph: Graph, original: OptimisedGraph) -> Executable | None:
        """Build and cache the executable of the graph, under the original graph; None if it cannot
        be replayed.
        """

    def anew(self, graph: Graph) -> list[tuple[Value, ...]] | None:
        """Compute the outputs of a graph without any cache, and publish nothing. None if the device
        has no cached plans to compare with, or if a step fails.
        """


DEVICES: dict[str, Device] = {}


def declare(device: Device) -> None:
    """Enter a device into the table under its name."""
    DEVICES[device.name] = device
    declare_device(device.name)
