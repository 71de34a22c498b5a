"""Differential equations whose steps adapt: each system is a program of its own.

A system is a ring of oscillators of van der Pol, each coupled to its neighbours; how stiff it is
differs, and so does how many steps it needs. The method is that of Bogacki and Shampine, "A 3(2)
pair of Runge-Kutta formulas" (1989). A program is an ordinary loop which writes a step, says by
`yield` what it must see, and decides by its value. All programs write a step, then all of these are
computed together, and so on.

Run, from examples/: python -m per_sample.adaptive_steps --help
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np

import tenfold as tn
from comparison import compare

TOLERANCE = 1e-3
COUPLING = 0.5
GROWTH = 0.2, 5.0
"""A step is at least and at most so many times the last one."""

Program = Generator[tn.Array, None, "Solution"]


@dataclass(frozen=True)
class System:
    """A ring of n oscillators at the beginning, until `end`."""

    position: np.ndarray
    velocity: np.ndarray
    stiffness: float
    end: float


@dataclass(frozen=True)
class Solution:
    """The ring in the end, and how many steps were tried."""

    position: tn.Array | np.ndarray
    velocity: tn.Array | np.ndarray
    steps: int


def systems(count: int, n: int = 16, end: float = 1.5, seed: int = 3) -> list[System]:
    """Return random systems, float64."""
    random = np.random.default_rng(seed)
    return [
        System(random.uniform(-2, 2, n), random.uniform(-1, 1, n), random.uniform(0.1, 8), end)
        for _ in range(count)
    ]


@tn.function
def step(
    position: tn.Array, velocity: tn.Array, stiffness: tn.Array, size: tn.Array
) -> tuple[tn.Array, tn.Array, tn.Array]:
    """Return the ring after a step of this size, and its error by what is tolerated."""

    def slope(x: tn.Array, v: tn.Array) -> tuple[tn.Array, tn.Array]:
        pull = tn.roll(x, 1) + tn.roll(x, -1) - 2 * x
        return v, stiffness * (1 - x * x) * v - x + COUPLING * pull

    def moved(*slopes: tuple[float, tuple[tn.Array, tn.Array]]) -> tuple[tn.Array, tn.Array]:
        x, v = position, velocity
        for share, (dx, dv) in slopes:
            x, v = x + size * share * dx, v + size * share * dv
        return x, v

    one = slope(position, velocity)
    two = slope(*moved((1 / 2, one)))
    three = slope(*moved((3 / 4, two)))
    x, v = moved((2 / 9, one), (1 / 3, two), (4 / 9, three))
    four = slope(x, v)
    errors = (
        -5 / 72 * one[part] + 1 / 12 * two[part] + 1 / 9 * three[part] - 1 / 8 * four[part]
        for part in (0, 1)
    )
    worst = [tn.max(tn.abs(size * error)) for error in errors]
    return x, v, tn.maximum(*worst) / TOLERANCE


def solve(system: System) -> Program:
    """Integrate one system: its steps, and what each says of the next one."""
    position, velocity = tn.asarray(system.position), tn.asarray(system.velocity)
    stiffness = tn.asarray(system.stiffness)
    time, size, steps = 0.0, 0.01, 0
    while time < system.end:
        size = min(size, system.end - time)
        x, v, error = step(position, velocity, stiffness, tn.asarray(size))
        yield error
        steps += 1
        found = float(error)
        if found <= 1:
            time, position, velocity = time + size, x, v
        size *= factor(found)
    return Solution(position, velocity, steps)


def numpy_solve(system: System) -> Solution:
    """Integrate one system in NumPy: the last slope of a step is the first of the next one."""
    n, stiffness, identity = len(system.position), system.stiffness, np.eye(len(system.position))
    ring = COUPLING * (np.roll(identity, 1, 0) + np.roll(identity, -1, 0) - 2 * identity) - identity
    weights = np.array([-5 / 72, 1 / 12, 1 / 9, -1 / 8])
    shares = (np.array([1 / 2]), np.array([0, 3 / 4]), np.array([2 / 9, 1 / 3, 4 / 9]))
    state, slopes = np.array([system.position, system.velocity]), np.empty((4, 2 * n))

    def slope(state: np.ndarray, out: np.ndarray) -> None:
        x, v = state
        out[:n] = v
        change = x * x
        np.subtract(1, change, out=change)
        change *= v
        change *= stiffness
        np.add(change, ring @ x, out=out[n:])

    slope(state, slopes[0])
    time, size, steps = 0.0, 0.01, 0
    while time < system.end:
        size = min(size, system.end - time)
        for k, share in enumerate(shares, 1):
            moved = state + (size * share @ slopes[:k]).reshape(2, n)
            slope(moved, slopes[k])
        worst = weights @ slopes
        found = size / TOLERANCE * float(np.abs(worst, out=worst).max())
        steps += 1
        if found <= 1:
            time, state = time + size, moved
            slopes[0] = slopes[3]
        size *= factor(found)
    return Solution(*state, steps)


def factor(error: float) -> float:
    """Return how many times as large the next step is."""
    least, most = GROWTH
    return min(most, max(least, 0.9 * error ** (-1 / 3))) if error else most


def together(programs: Iterable[Program]) -> list[Solution]:
    """Run programs side by side, round by round: what all want to see is computed at once."""
    running = dict(enumerate(programs))
    solutions: dict[int, Solution] = {}
    while running:
        wanted = []
        for number, program in list(running.items()):
            try:
                wanted.append(next(program))
            except StopIteration as end:
                solutions[number] = end.value
                del running[number]
        tn.eval(*wanted)
    return [solutions[number] for number in sorted(solutions)]


def solved(systems: Sequence[System]) -> list[Solution]:
    """Integrate all systems together."""
    return together(map(solve, systems))


def states(solutions: Iterable[Solution]) -> list[np.ndarray]:
    """Return position and velocity of each."""
    return [np.stack([each.position, each.velocity]) for each in solutions]


@click.command()
@click.option("--count", default=200, show_default=True, type=click.IntRange(1))
@click.option("--picture", type=click.Path(path_type=Path), help="Draw the batches (SVG).")
def main(count: int, picture: Path | None) -> None:
    """Integrate systems, and compare with NumPy, which takes one after the other."""
    given = systems(count)
    steps = [solution.steps for solution in solved(given)]
    compare(
        f"{count:,} systems of {min(steps)} to {max(steps)} steps",
        lambda: states(solved(given)),
        lambda: states(map(numpy_solve, given)),
        picture,
    )


if __name__ == "__main__":
    main()
