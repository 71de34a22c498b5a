"""Differential equations whose steps adapt: each system is a program of its own.

A system is a ring of oscillators of van der Pol, each coupled to its neighbours; how stiff it is
differs, and so does how many steps it needs. The method is that of Bogacki and Shampine, "A 3(2)
pair of Runge-Kutta formulas" (1989). A program is an ordinary loop which writes a step, says by
`yield` what it must see, and decides by its value. All programs write a step, then all of these are
computed together, and so on. `mapped` says the same as one loop, mapped over all systems.

Run, from examples/: python -m per_sample.adaptive_steps --help
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click
import numpy as np

import tenfold as tn
from comparison import compare

TOLERANCE = 1e-3
COUPLING = 0.5
FIRST, SAFETY, GROWTH = 0.01, 0.9, (0.2, 5.0)
"""The first step, and how many times as long as the last one a step may be."""

Program = Generator[tn.Array, None, "Solution"]


@dataclass(slots=True)
class State:
    """Where a ring is at a time, and how long its next step shall be."""

    position: tn.Array
    velocity: tn.Array
    time: tn.Array
    size: tn.Array


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
def step(state: State, stiffness: tn.Array, end: tn.Array) -> tuple[State, tn.Array]:
    """Return the state after a step, and its error by what is tolerated."""
    left = end - state.time
    size = tn.minimum(state.size, left)

    def slope(x: tn.Array, v: tn.Array) -> tuple[tn.Array, tn.Array]:
        pull = tn.roll(x, 1) + tn.roll(x, -1) - 2 * x
        return v, stiffness * (1 - x * x) * v - x + COUPLING * pull

    def moved(*slopes: tuple[float, tuple[tn.Array, tn.Array]]) -> tuple[tn.Array, tn.Array]:
        x, v = state.position, state.velocity
        for share, (dx, dv) in slopes:
            x, v = x + size * share * dx, v + size * share * dv
        return x, v

    one = slope(state.position, state.velocity)
    two = slope(*moved((1 / 2, one)))
    three = slope(*moved((3 / 4, two)))
    x, v = moved((2 / 9, one), (1 / 3, two), (4 / 9, three))
    four = slope(x, v)
    errors = (
        -5 / 72 * one[part] + 1 / 12 * two[part] + 1 / 9 * three[part] - 1 / 8 * four[part]
        for part in (0, 1)
    )
    error = tn.maximum(*(tn.max(tn.abs(size * each)) for each in errors)) / TOLERANCE
    time = tn.where(size == left, end, state.time + size)
    growth = tn.clip(SAFETY * error ** (-1 / 3), *GROWTH)
    return State(x, v, time, size * growth), error


def solve(system: System) -> Program:
    """Integrate one system: a step that is too rough is done again, and shorter."""
    stiffness, end = tn.asarray(system.stiffness), tn.asarray(system.end)
    beginning = (system.position, system.velocity, 0.0, FIRST)
    state, steps = State(*map(tn.asarray, beginning)), 0
    while float(state.time) < system.end:
        after, error = step(state, stiffness, end)
        yield error
        steps += 1
        state = after if float(error) <= 1 else replace(state, size=after.size)
    return Solution(state.position, state.velocity, steps)


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


def loop(state: State, stiffness: tn.Array, end: tn.Array) -> tuple[State, tn.Array]:
    """Integrate one system by a loop that decides by values; return how many steps it took, too."""

    def goes_on(carry: tuple[State, tn.Array]) -> tn.Array:
        return carry[0].time < end

    def tried(carry: tuple[State, tn.Array]) -> tuple[State, tn.Array]:
        state, steps = carry
        after, error = step(state, stiffness, end)
        position, velocity, time = (
            tn.where(error <= 1, new, old)
            for new, old in (
                (after.position, state.position),
                (after.velocity, state.velocity),
                (after.time, state.time),
            )
        )
        return State(position, velocity, time, after.size), steps + 1

    found: tuple[State, tn.Array] = tn.while_loop(goes_on, tried, (state, 0))
    return found


def mapped(systems: Sequence[System]) -> list[Solution]:
    """Integrate all systems by one loop: who has ended keeps his state until the last one has."""
    begin = State(
        tn.asarray(np.array([system.position for system in systems])),
        tn.asarray(np.array([system.velocity for system in systems])),
        tn.zeros(len(systems)),
        tn.full(len(systems), FIRST),
    )
    stiffness = tn.asarray([system.stiffness for system in systems])
    end = tn.asarray([system.end for system in systems])
    state, steps = tn.vmap(loop)(begin, stiffness, end)
    rows = zip(state.position, state.velocity, steps.tolist(), strict=True)
    return [Solution(*row) for row in rows]


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
    time, size, steps = 0.0, FIRST, 0
    while time < system.end:
        left = system.end - time
        size = min(size, left)
        for k, share in enumerate(shares, 1):
            moved = state + (size * share @ slopes[:k]).reshape(2, n)
            slope(moved, slopes[k])
        worst = weights @ slopes
        error = size / TOLERANCE * float(np.abs(worst, out=worst).max())
        steps += 1
        if error <= 1:
            time, state = system.end if size == left else time + size, moved
            slopes[0] = slopes[3]
        size *= min(max(SAFETY * error ** (-1 / 3), GROWTH[0]), GROWTH[1])
    return Solution(*state, steps)


def states(solutions: Iterable[Solution]) -> list[np.ndarray]:
    """Return position and velocity of each."""
    return [np.array([*map(np.asarray, (s.position, s.velocity))]) for s in solutions]


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
    compare(
        "the same, as one loop that is mapped",
        lambda: states(mapped(given)),
        lambda: states(map(numpy_solve, given)),
    )


if __name__ == "__main__":
    main()
