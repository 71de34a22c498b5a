"""Thread count: how many threads run a launch, by the size of its work.

Takes the work and two limits, hands on the number: 0 keeps the GIL, 1 is the caller's thread. Of a
SymInt it is a formula, not a decision: one symbolic executable serves small and large work.

>>> import tenfold as tn
>>> with tn.options(threads=2):
...     [threads_for(work, 100, 1000) for work in (100, 101, 1001)]
[0, 1, 2]
"""

from __future__ import annotations

from tenfold.core.symbolic.sym_int import largest, smallest
from tenfold.settings import get


def above(work: int, limit: int) -> int:
    """Return 1 if work is above a limit, else 0."""
    return smallest(1, largest(0, work - limit))


def threads_for(work: int, quick: int, single: int) -> int:
    """Return the number of threads: 0 up to `quick` work, 1 up to `single`, else all."""
    all_threads = int(get("threads"))
    return above(work, quick) + (all_threads - 1) * above(work, max(quick, single))


__all__ = ["above", "threads_for"]
