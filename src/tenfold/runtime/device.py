"""Device: the interface between the pipeline and a backend, and the table of devices.

Takes a Graph, hands on an Executable for it. Memory, launches and Events of a device are a table of
native functions (`native/threads/device.h`), which the executor calls.

>>> import tenfold as tn
>>> DEVICES["reference"].name
'reference'
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from tenfold._native import Executable
from tenfold.core.graph import Graph
from tenfold.rewrite.driver import RewriteReport
from tenfold.schedule.schedule_ir import Schedule
from tenfold.schedule.target import Target
from tenfold.settings import declare_device


class OptimisedGraph(NamedTuple):
    """The original graph of a computed graph, and the report of its rewrite."""

    graph: Graph
    report: RewriteReport


Rewrite = Callable[[Graph], tuple[Graph, RewriteReport]]
"""Returns the rewritten graph and the report."""


class Device(Protocol):
    """A backend that computes graphs."""

    name: str
    rewrites: bool
    """Whether it computes rewritten graphs by schedules and Executables; else the reference device
    computes them as they were written.
    """

    def target(self) -> Target:
        """Return the facts by which its graphs are scheduled, under the options in force."""

    def plan(self, graph: Graph) -> Schedule | None:
        """Return the schedule of a graph; None if the device schedules nothing."""

    def bind(self, original: Graph, optimise: Rewrite, *, cached: bool = True) -> Executable | None:
        """Build the executable of a graph, rewritten by `optimise`; None if that is too long, or
        needs values that the graph lacks. With `cached` it serves all graphs of that structure.
        """


DEVICES: dict[str, Device] = {}


def declare(device: Device) -> None:
    """Enter a device into the table under its name."""
    DEVICES[device.name] = device
    declare_device(device.name)
