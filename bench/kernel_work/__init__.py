"""What bench/kernels.py measures, and with what: rows, peers, rounds, the floor, compile time.

Importing it holds this process to `THREADS` processors, before any library that counts processors
or reads the environment is imported. It must be imported first.
"""

from __future__ import annotations

import os
from pathlib import Path

THREADS = 2
"""Threads for everybody."""
COUNTS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMEXPR_MAX_THREADS",
    "NUMBA_NUM_THREADS",
    "NPROC",
    "PJRT_NPROC",
    "TENFOLD_THREADS",
)
"""Variables by which libraries are told how many threads to use; NPROC and PJRT_NPROC are XLA's."""
TOPOLOGY = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"


def processors(count: int) -> list[int]:
    """So many of the processors this process may use, of different cores as long as there are."""
    allowed = sorted(os.sched_getaffinity(0))
    cores: dict[str, int] = {}
    for processor in allowed:
        siblings = Path(TOPOLOGY.format(processor))
        core = siblings.read_text().strip() if siblings.exists() else str(processor)
        cores.setdefault(core, processor)
    chosen = list(cores.values())
    return [*chosen, *(processor for processor in allowed if processor not in chosen)][:count]


# XLA has no number of its own for this: it takes as many threads as it may use processors.
os.sched_setaffinity(0, processors(THREADS))
os.environ.update(dict.fromkeys(COUNTS, str(THREADS)))
# The idle threads of one peer's OpenMP would go on spinning on the processors of the next one.
# Those of OpenBLAS spin for a tenth of a second; 2^20 ticks is still longer than between two calls.
os.environ.update(OMP_WAIT_POLICY="passive", KMP_BLOCKTIME="0", OPENBLAS_THREAD_TIMEOUT="20")
