"""Host target: the Target of this processor under the options in force.

Takes the options `cpu` and `threads`, hands on what `Cpu.target` gives to scheduling and what
kernels are compiled for.

>>> from tenfold.settings import options
>>> with options(cpu="x86-64"):
...     host_target().simd.register_bytes
16
"""

from __future__ import annotations

from tenfold.schedule.target import Target, target_of
from tenfold.settings import get


def host_target() -> Target:
    """Return the target of this processor."""
    return target_of(str(get("cpu")), threads=int(get("threads")))


__all__ = ["host_target"]
