"""A loop that builds many pending nodes on fifty numbers and evaluates once.

Takes the number of nodes, the option `pending_depth` (0: nothing is computed before the end) and
the number of rounds; prints as JSON the seconds of Tenfold and of NumPy, by turns, and how far the
memory of the process rose. A process of its own runs it.
"""

from __future__ import annotations

import kernel_work  # noqa: F401  # isort: skip  # first: it holds the threads of all

import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import tenfold as tn

STATUS, PEAK = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def loop(x: Any, a: Any, b: Any, nodes: int) -> Any:
    """Two operations in each turn; no value passes 1."""
    for _ in range(nodes // 2):
        x = x * b + a
    return x


def kilobytes(name: str) -> int:
    """Of this process: VmRSS, what is resident, or VmHWM, the most that was."""
    lines = STATUS.read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def measure(nodes: int, rounds: int) -> dict[str, Any]:
    """The figures; the memory is that of the first round, when nothing is kept for reuse."""
    x, a, b = (np.random.default_rng(n).uniform(0.1, 0.5, 50) for n in range(3))
    given = [tn.asarray(each) for each in (x, a, b)]
    loop(*given, nodes=20).wait()
    own, other, peaks, built = [], [], [], []
    for _ in range(rounds):
        PEAK.write_text("5", encoding="ascii")  # the peak begins anew
        before = kilobytes("VmRSS")
        begin = time.perf_counter()
        value = loop(*given, nodes=nodes)
        middle = time.perf_counter()
        value.wait()
        end = time.perf_counter()
        peaks.append(kilobytes("VmHWM") - before)
        own.append(end - begin)
        built.append(middle - begin)
        begin = time.perf_counter()
        expected = loop(x, a, b, nodes)
        other.append(time.perf_counter() - begin)
        right = np.array_equal(value, expected)
        del value
    return {
        "nodes": nodes,
        "tenfold": statistics.median(own),
        "built": statistics.median(built),
        "numpy": statistics.median(other),
        "ratio": statistics.median(one / two for one, two in zip(own, other, strict=True)),
        "bytes": peaks[0] * 1024 / nodes,
        "right": bool(right),
    }


if __name__ == "__main__":
    with tn.options(pending_depth=int(sys.argv[2])):
        print(json.dumps(measure(int(sys.argv[1]), int(sys.argv[3]))))
