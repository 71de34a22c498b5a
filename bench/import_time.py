"""What `import tenfold` costs in a fresh process, beside `import numpy` alone.

Run: python bench/import_time.py. Medians of 15 processes each, taken in turn.
"""

from __future__ import annotations

import statistics
import subprocess
import sys

RUNS = 15
CODE = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
HEAVY = ("llvmlite", "scipy", "click", "rich")


def seconds(module: str) -> float:
    """Return how long importing took in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(module)], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def main() -> None:
    """Print the two medians, and whether anything heavy came along."""
    times: dict[str, list[float]] = {"numpy": [], "tenfold": []}
    for _ in range(RUNS):
        for module, found in times.items():
            found.append(seconds(module))
    for module, found in times.items():
        print(f"import {module:8s} {statistics.median(found):.3f} s")
    code = f"import sys, tenfold; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    print(f"of {', '.join(HEAVY)} imported along: {done.stdout.strip()}")


if __name__ == "__main__":
    main()
