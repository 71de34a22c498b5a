"""What `import tenfold` costs in a fresh process, beside `import numpy` alone.

Run: python bench/import_time.py. Medians of 15 processes each, taken in turn.
"""

from __future__ import annotations

import statistics
import subprocess
import sys

from value_checks import Comparison, smoke_wanted

RUNS = 15
CODE = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
HEAVY = ("llvmlite", "scipy", "click", "rich", "asyncio", "logging", "decimal")


def seconds(module: str) -> float:
    """Return how long importing took in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(module)], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def imported() -> str:
    """Return which of the heavy modules `import tenfold` imports."""
    code = f"import sys, tenfold; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def main() -> None:
    """Print the two medians, and whether anything heavy came along; --smoke requires that nothing
    does.
    """
    if smoke_wanted():
        comparison = Comparison()
        comparison.fact("nothing heavy is imported along", imported() == "[]", imported())
        comparison.end()
        return
    times: dict[str, list[float]] = {"numpy": [], "tenfold": []}
    for _ in range(RUNS):
        for module, found in times.items():
            found.append(seconds(module))
    for module, found in times.items():
        print(f"import {module:8s} {statistics.median(found):.3f} s")
    print(f"of {', '.join(HEAVY)} imported along: {imported()}")


if __name__ == "__main__":
    main()
