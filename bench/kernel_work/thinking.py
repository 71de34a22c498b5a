"""Counts the evaluations in which Python thinks: in which a function of Tenfold runs that rewrites,
plans or renders.

Takes works, hands on numbers. The profiler's hook slows everything down, so nothing is timed here.

    planned(array.wait for array in arrays)
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import FrameType

THINKS = (
    "/tenfold/rewrite/",
    "/tenfold/linear_algebra/",
    "/tenfold/schedule/",
    "/tenfold/codegen/",
)
"""Where it does."""


def calls(work: Callable[[], object]) -> int:
    """How many of those functions run meanwhile."""
    count = 0

    def seen(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        code = frame.f_code
        if event == "call" and any(part in code.co_filename for part in THINKS):
            count += code.co_name != "verifies"  # an option is asked for, nothing is planned

    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def planned(works: Iterable[Callable[[], object]]) -> int:
    """In how many of these works Python thinks."""
    return sum(calls(work) > 0 for work in works)
