"""Smoke mode of the benches: values at full size compared with a reference, nothing timed.

Takes the names of rows, values and those of the reference; prints each difference, and ends the
process with 1 if there is one. So do plans of which one level of processors has others, and on
`STORED_ON` those that are not in `plans/`.

    python bench/einsum.py --smoke

    comparison = Comparison()
    comparison.values("ij,jk->ik", tn.einsum(...), np.einsum(...))
    comparison.end()
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parents[2] / "tools"))
import plan_records
from tenfold import _native
from tenfold.settings import CPU_LEVELS, get

OPTION = "--smoke"
STORED_ON = "x86-64-v3"
"""The level on which `plans/` was written, for all levels."""
TOLERANCES = {"float16": 2e-2, "float32": 1e-4, "complex64": 1e-4}
"""Of the largest value: how far sums and functions may be from the reference."""
OTHERWISE = 1e-9
"""Of the largest value: the same for every dtype that is not above."""
_arguments = tuple(sys.argv)
_record = plan_records.recorded()
_plans = _record.__enter__() if OPTION in _arguments else {}


def smoke_wanted() -> bool:
    """Whether the command line asks for smoke mode; the option is taken off."""
    wanted = OPTION in sys.argv
    sys.argv[:] = [each for each in sys.argv if each != OPTION]
    return wanted


class Comparison:
    """Counts what is compared, and prints what differs."""

    def __init__(self) -> None:
        self.count = 0
        self.differing = 0

    def values(self, name: str, found: Any, expected: Any, tolerance: float | None = None) -> None:
        """Compare shapes, and values up to `tolerance` of the largest; integers exactly."""
        self.fact(name, not (text := difference(found, expected, tolerance)), text)

    def fact(self, name: str, holds: bool, text: str = "it does not hold") -> None:
        """Compare what is said of values with the truth."""
        self.count += 1
        if not holds:
            self.differing += 1
            print(f"DIFFERS: {name}: {text}", flush=True)

    def rows(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Compare rows of the benches with tables: what is wrong, and verdicts about values."""
        for row in rows:
            text = "; ".join(f"{name} {text}" for name, text in row["wrong"].items())
            self.fact(row["title"], not text, text)
            for verdict in row["verdicts"]:
                if verdict.get("exact") or verdict["found"] is None:
                    said = f"{verdict['required']}, found {verdict['found']}"
                    self.fact(row["title"], verdict["met"] is not False, said)

    def end(self, left_out: str = "") -> None:
        """Print how much was compared; end with 1 if something differs."""
        print("without jax, numba, torch and other peers, which no smoke run needs")
        if left_out:
            print(f"left for `make bench`: {left_out}")
        stored = Path(__file__).parent / "plans" / f"{Path(sys.argv[0]).stem}.txt"
        if OPTION in _arguments:
            # which graphs come to be planned was seen on this level alone
            level = CPU_LEVELS.get(str(get("cpu")), _native.processor_level())
            text = plan_records.check(stored, _plans)
            if level != CPU_LEVELS[STORED_ON]:
                print(f"plans are compared with those stored on {STORED_ON}: {text or 'equal'}")
                text = "\n".join(plan_records.differing(_plans))
            self.fact("plans of three levels", not text, text)
        print(f"{self.count} compared, {self.differing} differ", flush=True)
        if self.differing or not self.count:
            raise SystemExit(1)


def difference(found: Any, expected: Any, tolerance: float | None = None) -> str:
    """Nothing, or how values differ from those of the reference."""
    own, other = np.asarray(found), np.asarray(expected)
    if own.shape != other.shape:
        return f"shape {own.shape}, not {other.shape}"
    if np.array_equal(own, other):
        return ""
    if other.dtype.kind in "biu":
        return f"{np.count_nonzero(own != other):,} of {own.size:,} values differ"
    if tolerance is None:
        tolerance = TOLERANCES.get(str(other.dtype), OTHERWISE)
    error, largest = np.max(np.abs(own - other)), np.max(np.abs(other))
    if error <= tolerance * largest:  # false for a NaN
        return ""
    return f"by {error:.3g}, the largest value is {largest:.3g}"
