"""Thread count: how many threads run a launch, by the size of its work.

Takes the work and two limits, hands on the number: 0 keeps the GIL, 1 is the caller's thread. Of a
SymInt it is a formula, not a decision: one symbolic executable serves small and large work.

>>> [threads_for(work, 100, 1000, 2) for work in (100, 101, 1001)]
[0, 1, 2]
"""

from __future__ import annotations

from tenfold.core.symbolic.sym_int import largest, smallest
from tenfold.schedule.schedule_ir import Launch
from tenfold.schedule.target import Target
from tenfold.schedule.vector_width import serial_elements


def above(work: int, limit: int) -> int:
    """Return 1 if work is above a limit, else 0."""
    return smallest(1, largest(0, work - limit))


def threads_for(work: int, quick: int, single: int, threads: int) -> int:
    """Return the number of threads: 0 up to `quick` work, 1 up to `single`, else all `threads`."""
    return above(work, quick) + (threads - 1) * above(work, max(quick, single))


def threads_of(launch: Launch, target: Target) -> int:
    """Return the number of threads of a launch; 1 runs on the caller's thread, 0 keeps the GIL."""
    body, work = launch.kernel.body, target.work
    quick = work.gil_instructions // max(1, len(body))
    if launch.sequential:
        return above(launch.elements, quick)
    return threads_for(launch.elements, quick, serial_elements(body, target), work.threads)


__all__ = ["above", "threads_for", "threads_of"]
