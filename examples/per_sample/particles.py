"""Soft particles in a box: each is pushed away by those it touches, and that is another number.

Takes places; hands on places some steps later. Who may touch whom is found once for all these
steps, by cells and with some room to move, in Python. A step is one function call for each
particle, batched by how many neighbours there are.

Run, from examples/: python -m per_sample.particles --help
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

import tenfold as tn
from comparison import compare, computed

REACH, ROOM = 1.0, 0.3
"""Particles nearer than the reach push each other; those nearer than both are neighbours."""
PUSH = 0.05

Neighbours = Sequence[Sequence[int]]
Moving = Callable[[Sequence[Any], Neighbours, int], Sequence[Any]]
"""From places, neighbours and a number of steps to places."""


def places(count: int, seed: int = 4) -> np.ndarray:
    """Return random places, (count, 2), two particles for each unit of area."""
    side = (count / 2) ** 0.5
    return np.random.default_rng(seed).uniform(0, side, (count, 2))


def neighbours_of(places: np.ndarray) -> Neighbours:
    """Return for each particle the numbers of those it may touch."""
    far = REACH + ROOM
    cells: dict[tuple[int, int], list[int]] = defaultdict(list)
    corners = [(int(x // far), int(y // far)) for x, y in places]
    for number, corner in enumerate(corners):
        cells[corner].append(number)
    found = []
    for number, (column, row) in enumerate(corners):
        near = [
            other
            for i in (-1, 0, 1)
            for j in (-1, 0, 1)
            for other in cells.get((column + i, row + j), ())
            if other != number
        ]
        distances = np.hypot(*(places[near] - places[number]).T)
        found.append([other for other, d in zip(near, distances, strict=True) if d < far])
    return found


@tn.function
def moved(place: tn.Array, others: list[tn.Array]) -> tn.Array:
    """Return where a particle is after a step; each of the others pushes it straight away."""
    total = place
    for other in others:
        away = place - other
        distance = tn.sqrt(tn.sum(away * away))
        total = total + PUSH * tn.maximum(REACH / distance - 1, 0.0) * away
    return total


def tenfold_steps(places: Sequence[tn.Array], near: Neighbours, count: int) -> Sequence[tn.Array]:
    """Write so many steps; nothing is computed."""
    for _ in range(count):
        places = [
            moved(place, [places[other] for other in others])
            for place, others in zip(places, near, strict=True)
        ]
    return places


def numpy_steps(places: np.ndarray, near: Neighbours, count: int) -> np.ndarray:
    """Do so many steps, particle by particle."""
    lists = [np.array(others, dtype=int) for others in near]
    for _ in range(count):
        after = places.copy()
        for number, others in enumerate(lists):
            away = places[number] - places[others]
            distance = np.sqrt(np.einsum("kn,kn->k", away, away))
            after[number] += PUSH * np.maximum(REACH / distance - 1, 0.0) @ away
        places = after
    return places


@click.command()
@click.option("--count", default=2000, show_default=True, type=click.IntRange(1))
@click.option("--steps", default=5, show_default=True, type=click.IntRange(1))
@click.option("--picture", type=click.Path(path_type=Path), help="Draw the batches (SVG).")
def main(count: int, steps: int, picture: Path | None) -> None:
    """Move particles, and compare with NumPy."""
    begin = places(count)
    near, own = neighbours_of(begin), [*map(tn.asarray, begin)]
    degrees = sorted(map(len, near))
    title = f"{count:,} particles of {degrees[0]} to {degrees[-1]} neighbours, {steps} steps"
    compare(
        title,
        lambda: computed(tenfold_steps(own, near, steps)),
        lambda: numpy_steps(begin, near, steps),
        picture,
    )


if __name__ == "__main__":
    main()
