"""A thousand differential equations with steps that adapt, beside a NumPy loop for each.

Takes the number of rounds; hands on a row. Every system of examples/per_sample needs another number
of steps, which depends on the errors of those before.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from engine_work.rows import at_least, medians, milliseconds, ratio, row
from kernel_work.measure import Row

from per_sample.adaptive_steps import Solution, numpy_solve, solved, systems

SYSTEMS = 1_000
FASTER = 5.0
BOUND = 1e-8
"""The same steps are taken, of sums in another order."""


def odes(rounds: int, quick: bool) -> Iterator[Row]:
    """The row."""
    given = systems(SYSTEMS // (10 if quick else 1))
    pairs = zip(solved(given), map(numpy_solve, given), strict=True)
    error = max(difference(own, other) for own, other in pairs)
    turns = {
        "tenfold": lambda: solved(given),
        "numpy": lambda: [numpy_solve(system) for system in given],
    }
    steps = [solution.steps for solution in solved(given)]
    found = milliseconds(turns, rounds)
    middle = medians(found)
    title = f"{len(given):,} systems of {2 * len(given[0].position)} equations, {min(steps)} to "
    title += f"{max(steps)} steps each, {sum(steps):,} in all; "
    title += f"{middle['tenfold'] / sum(steps) * 1e3:.1f} us a step"
    made = row("odes", title, middle, at_least(FASTER, ratio(found, "numpy", "tenfold"), "x numpy"))
    yield {**made, "wrong": {} if error <= BOUND else {"tenfold": f"differs by {error:.3g}"}}


def difference(own: Solution, other: Solution) -> float:
    """Between two solutions of a system; infinite where they took different steps."""
    if own.steps != other.steps:
        return float("inf")
    pairs = (own.position, other.position), (own.velocity, other.velocity)
    return max(float(np.abs(np.asarray(a) - np.asarray(b)).max()) for a, b in pairs)
