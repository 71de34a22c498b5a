"""A thousand differential equations with steps that adapt, beside a NumPy loop for each.

Takes the number of rounds; hands on a row. Every system of examples/per_sample needs another number
of steps, which depends on the errors of those before. The loop is `tn.while_loop`, mapped over the
systems; for information, what as many Python generators take that compute their steps together.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from engine_work.rows import at_least, medians, milliseconds, ratio, row
from kernel_work.measure import Row

from per_sample.adaptive_steps import Solution, mapped, numpy_solve, solved, systems

SYSTEMS = 1_000
FASTER = 5.0
BOUND = 1e-8
"""The same steps are taken, of sums in another order."""


def odes(rounds: int, quick: bool) -> Iterator[Row]:
    """The row."""
    given = systems(SYSTEMS // (10 if quick else 1))
    expected = [numpy_solve(system) for system in given]
    turns = {
        "tenfold": lambda: mapped(given),
        "rounds": lambda: solved(given),
        "numpy": lambda: [numpy_solve(system) for system in given],
    }
    wrong = {}
    for name in ("tenfold", "rounds"):
        error = max(map(difference, turns[name](), expected))
        if not error <= BOUND:
            wrong[name] = f"differs from NumPy's by {error:.3g}"
    steps = [solution.steps for solution in expected]
    found = milliseconds(turns, rounds)
    middle = medians(found)
    title = f"{len(given):,} systems of {2 * len(given[0].position)} equations, {min(steps)} to "
    title += f"{max(steps)} steps each, {sum(steps):,} in all, as a mapped `tn.while_loop`; "
    title += f"as generators whose steps are computed together: {middle.pop('rounds'):.3g} ms"
    made = row("odes", title, middle, at_least(FASTER, ratio(found, "numpy", "tenfold"), "x numpy"))
    yield {**made, "wrong": wrong}


def difference(own: Solution, other: Solution) -> float:
    """Between two solutions of a system; infinite where they took different steps."""
    if own.steps != other.steps:
        return float("inf")
    pairs = (own.position, other.position), (own.velocity, other.velocity)
    return max(float(np.abs(np.asarray(a) - np.asarray(b)).max()) for a, b in pairs)
