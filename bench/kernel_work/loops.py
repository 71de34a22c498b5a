"""Loops that assign: each a step, done many times, its arrays, and what Tenfold must reach.

Takes nothing; hands on `LOOPS`, large ones and the same ones small. NumPy and Tenfold share one
text, which assigns to slices; JAX has the functional form of it, `x.at[key].set(value)`, its step
compiled, its array given up to the step so that it may be written over.

Table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from kernel_work.rows import Function, Inputs, Need, Work

Step = Callable[..., Any]


def loop(step: Step, count: int) -> Callable[[Any], Function]:
    """A work of so many steps, each `array, other = step(array, other, number)`; of one array both
    are the same.
    """

    def function(array: Any, other: Any = None, *, steps: int = count) -> Any:
        for number in range(steps):
            array, other = step(array, other, number)
        return array

    return lambda _: function


def compiled(step: Step, count: int) -> Callable[[Any], Function]:
    """The same of JAX: `array = step(array, number)`."""

    def formula(_: Any) -> Function:
        jitted = import_module("jax").jit(step, donate_argnums=0)

        def function(array: Any, _: Any = None, *, steps: int = count) -> Any:
            for number in range(steps):
                array = jitted(array, number)
            return array

        return function

    return formula


def heat(a: Any, other: Any, _: int) -> Any:
    """One dimension, in place: a neighbour on each side."""
    a[1:-1] = 0.33 * (a[:-2] + a[1:-1] + a[2:])
    return a, other


def jax_heat(a: Any, _: Any) -> Any:
    return a.at[1:-1].set(0.33 * (a[:-2] + a[1:-1] + a[2:]))


def around(a: Any) -> Any:
    return 0.25 * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])


def jacobi(a: Any, b: Any, _: int) -> Any:
    """Two dimensions, from one array into the other: the mean of four neighbours."""
    b[1:-1, 1:-1] = around(a)
    return b, a


def jax_jacobi(a: Any, _: Any) -> Any:
    return a.at[1:-1, 1:-1].set(around(a))


def neighbours(a: Any) -> Any:
    upper = a[:-2, :-2] + a[:-2, 1:-1] + a[:-2, 2:]
    lower = a[2:, :-2] + a[2:, 1:-1] + a[2:, 2:]
    return upper + a[1:-1, :-2] + a[1:-1, 2:] + lower


def alive(a: Any) -> Any:
    """Who has three neighbours, or has two and lives; the edge is dead."""
    count = neighbours(a)
    return (count == 3) | ((count == 2) & (a[1:-1, 1:-1] == 1))


def life(a: Any, other: Any, _: int) -> Any:
    a[1:-1, 1:-1] = alive(a)
    return a, other


def jax_life(a: Any, _: Any) -> Any:
    return a.at[1:-1, 1:-1].set(alive(a).astype(a.dtype))


def smoothing(a: Any, other: Any, number: int) -> Any:
    """Exponential smoothing: each row from the one before, which has just been assigned to."""
    a[number + 1] = 0.9 * a[number] + 0.1 * a[number + 1]
    return a, other


def jax_smoothing(a: Any, number: Any) -> Any:
    return a.at[number + 1].set(0.9 * a[number] + 0.1 * a[number + 1])


def prefix(a: Any, other: Any, number: int) -> Any:
    """As little arithmetic as a recurrence can have: NumPy has one temporary, which stays in the
    cache, and is as fast as the memory.
    """
    a[number + 1] += 0.5 * a[number]
    return a, other


def jax_prefix(a: Any, number: Any) -> Any:
    return a.at[number + 1].add(0.5 * a[number])


def uniform(*shape: int, twice: bool = False) -> Inputs:
    """One array, or the same one twice."""

    def make(random: np.random.Generator, factor: float) -> list[np.ndarray]:
        array = random.random(
            [max(int(length * factor ** (1 / len(shape))), 4) for length in shape]
        )
        return [array, array] if twice else [array]

    return make


def cells(side: int) -> Inputs:
    def make(random: np.random.Generator, factor: float) -> list[np.ndarray]:
        length = max(int(side * factor**0.5), 4)
        return [(random.random((length, length)) < 0.3).astype(np.uint8)]

    return make


def rows(count: int, length: int) -> Inputs:
    """Rows that are shrunk; there are as many as there are steps, and one."""

    def make(random: np.random.Generator, factor: float) -> list[np.ndarray]:
        return [random.random((count, max(int(length * factor), 1)))]

    return make


LARGE = (Need(3, ("numpy",)), Need(1, ("jax",)))
SMALL = (Need(1 / 1.2, ("numpy",)), Need(1, ("jax",)))


def work(
    name: str, title: str, inputs: Inputs, steps: tuple[Step, Step, int], needs: tuple[Need, ...]
) -> Work:
    step, functional, count = steps
    return Work(
        name,
        title,
        inputs,
        loop(step, count),
        needs,
        {"jax": compiled(functional, count)},
        steps=count,
        tolerance=(1e-9, 1e-12),
    )


LOOPS: Sequence[Work] = (
    work(
        "heat",
        "heat equation in place, float64 1 M, 100 steps",
        uniform(1_000_000),
        (heat, jax_heat, 100),
        LARGE,
    ),
    work(
        "jacobi",
        "Jacobi's method, float64 2000x2000, 100 steps",
        uniform(2000, 2000, twice=True),
        (jacobi, jax_jacobi, 100),
        LARGE,
    ),
    work(
        "life",
        "game of life, uint8 2048x2048, 50 steps",
        cells(2048),
        (life, jax_life, 50),
        LARGE,
    ),
    work(
        "recurrence",
        "exponential smoothing down rows, float64, 60 of 1 M",
        rows(60, 1_000_000),
        (smoothing, jax_smoothing, 59),
        LARGE,
    ),
    work(
        "prefix",
        "prefix sums of rows, halved, float64, 2,000 of 4,096",
        rows(2000, 4096),
        (prefix, jax_prefix, 1999),
        SMALL,
    ),
    work(
        "small-heat",
        "heat equation in place, float64 2,500, 500 steps",
        uniform(2500),
        (heat, jax_heat, 500),
        SMALL,
    ),
    work(
        "small-jacobi",
        "Jacobi's method, float64 50x50, 500 steps",
        uniform(50, 50, twice=True),
        (jacobi, jax_jacobi, 500),
        SMALL,
    ),
    work(
        "small-life",
        "game of life, uint8 50x50, 500 steps",
        cells(50),
        (life, jax_life, 500),
        SMALL,
    ),
    work(
        "small-recurrence",
        "exponential smoothing down rows, float64, 50 of 50",
        rows(50, 50),
        (smoothing, jax_smoothing, 49),
        SMALL,
    ),
    work(
        "small-prefix",
        "prefix sums of rows, halved, float64, 50 of 50",
        rows(50, 50),
        (prefix, jax_prefix, 49),
        SMALL,
    ),
)
