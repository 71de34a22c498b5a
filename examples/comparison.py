"""What every example prints: the same work in Tenfold and in NumPy, their times and launches.

Takes two functions of nothing, each of which returns its results when they are computed; prints a
few lines, and draws a picture of the batches where one is wanted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tenfold as tn
from batch_sizes import picture, sizes

TURNS = 5

Work = Callable[[], Sequence[Any]]


def computed(results: Sequence[tn.Array]) -> Sequence[tn.Array]:
    """Have results computed together, and wait for them."""
    tn.eval(*results)
    results[-1].wait()  # what is evaluated together ends together
    return results


def compare(title: str, own: Work, other: Work, file: Path | None = None) -> float:
    """Print how both do, by the best of some turns; return the largest difference of results."""
    pairs = zip(own(), other(), strict=True)
    difference = max(float(np.abs(np.asarray(a) - np.asarray(b)).max()) for a, b in pairs)
    times = {name: best(work) * 1e3 for name, work in (("Tenfold", own), ("NumPy", other))}
    with tn.profile() as p:  # by now everything has a plan
        own()
    print(f"{title}\n  results differ by at most {difference:.2g}")
    for name, milliseconds in times.items():
        print(f"  {name:8}{milliseconds:10.1f} ms")
    print(f"  {times['NumPy'] / times['Tenfold']:.1f} times as fast, in {p.launches} launches")
    if found := sizes(p.events):
        print(f"  batches of up to {max(found):,}, {sum(found) / len(found):,.0f} in the mean")
    if file is not None:
        file.write_text(picture(title, p.events), encoding="utf-8")
        print(f"  drawn in {file}")
    return difference


def best(work: Work) -> float:
    """Return the seconds of the fastest turn."""
    found = []
    for _ in range(TURNS):
        begin = time.perf_counter()
        work()
        found.append(time.perf_counter() - begin)
    return min(found)
