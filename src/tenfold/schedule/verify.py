"""Kernel verification: proves launches correct before their kernels are compiled.

Takes a Graph and its Schedule, or a Launch and the BufferExtents of its operands; raises
VerifyError, which names the kernel and the rule that it breaks. Nothing is run, and it takes as
long for ten elements as for ten million. The rules, each in a file of its own:

- the loops and the strides are those of the memory (`schedule/launch_space.py`);
- units cover the loops once, in whole packets; scratch memory and tables of partial results are as
  large as the renderer uses them (`schedule/verify_units.py`);
- every access, gathers too, is within its buffer; no two indices write one cell; in-place
  operands are read before they are written (`schedule/verify_accesses.py`);
- the parts of a kernel fit together (`schedule/verify_kernel.py`).

More alignment than that of an element is claimed where an address is tested at run time alone, and
of memory of a kernel's own (`codegen/llvm/verify_alignment.py`).

It is done under `tn.options(verify=True)`, and in tests (`verify_kernels`), when a graph is
planned: replays and cached plans have been verified. It takes about 75 microseconds a launch (50 to
150; `bench/verify_kernels.py`), a fifth of the planning time and less than a hundredth of the
compile time. Of launches that native code makes the kernels alone are verified: loops of single
operations, and symbolic executables for other lengths, which `verify=True` does without.

>>> import tenfold as tn
>>> from tenfold import _native
>>> from tenfold.schedule.schedule import plan_of
>>> x = tn.asarray([1.0, 2.0])
>>> graph = Graph.of([_native.node_of(x + x)])
>>> verify_plan(graph, plan_of(graph))
1
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tenfold.core.graph import Graph
from tenfold.schedule.buffer_extents import BufferExtent, extents_of
from tenfold.schedule.launch_space import loop_space
from tenfold.schedule.loop_schedule import Launch
from tenfold.schedule.verify_accesses import refuse_accesses
from tenfold.schedule.verify_kernel import verify_kernel
from tenfold.schedule.verify_units import refuse_units
from tenfold.settings import get

if TYPE_CHECKING:
    from tenfold.schedule.schedule import Schedule


def verifies() -> bool:
    """Whether the options in force ask for it."""
    return bool(get("verify") or get("verify_kernels"))


def verify_plan(graph: Graph, plan: Schedule) -> int:
    """Verify the launches of a plan; return how many there are."""
    launches = [step.launch for step in plan.steps if step.launch is not None]
    extents = extents_of(graph, plan) if launches else {}
    for launch in launches:
        verify_launch(launch, extents)
    return len(launches)


def verify_launch(launch: Launch, extents: Mapping[int, BufferExtent]) -> None:
    """Verify a launch whose operands lie within these extents."""
    verify_kernel(launch.kernel)
    space = loop_space(launch)
    refuse_units(space)
    refuse_accesses(space, extents)


__all__ = ["verifies", "verify_kernel", "verify_launch", "verify_plan"]
