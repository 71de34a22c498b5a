"""The operators of the programs: what each takes, gives and means, in plain Python.

Vectors are tuples of numbers that wrap as int64 does, cells are numbers below `CELLS`. Almost none
of the operations commutes with another, so that a wrong order or operand shows in the value.

>>> OPERATIONS["subtract"].meaning((1, 2), (3, 5))
(-2, -3)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from program_statements import Value

CELLS = 2**61 - 1
"""Cells hold a number modulo this prime."""
VECTOR, CELL = "vector", "cell"
Kind = str


class Odd(Exception):
    """What a failing operator raises: its name and the number it was given."""


@dataclass(frozen=True)
class Operation:
    """An operator of programs.

    `takes` has a kind for each input; with `many` the last one may come any number of times, none
    too. `pure` work may be dropped, and tried again; `fails` says that it may raise `Odd`. `form`
    is the class that it derives from, or `compiled`.
    """

    takes: tuple[Kind, ...]
    gives: Kind
    meaning: Callable[..., Value]
    form: str = "plain"
    pure: bool = False
    fails: bool = False
    many: bool = False


def wrap(number: int) -> int:
    """Return a number as int64 holds it."""
    return (number + 2**63) % 2**64 - 2**63


def elementwise(function: Callable[..., int]) -> Callable[..., Value]:
    """Return a function of numbers as one of vectors of equal length."""

    def meaning(*vectors: tuple[int, ...]) -> Value:
        return tuple(wrap(function(*numbers)) for numbers in zip(*vectors, strict=True))

    return meaning


def mixed(seed: int, *cells: int) -> int:
    """Return a number that depends on the order of the cells."""
    found = seed
    for cell in cells:
        found = (found * 1_000_003 + cell + 1) % CELLS
    return found


def mixing(seed: int) -> Callable[..., Value]:
    return lambda *cells: mixed(seed, *cells)


def refuse_odd(name: str, function: Callable[..., Value]) -> Callable[..., Value]:
    """Return a function that raises `Odd` where its first input begins with an odd number."""

    def meaning(*inputs: Any) -> Value:
        first = inputs[0] if isinstance(inputs[0], int) else inputs[0][0]
        if first % 2:
            raise Odd(f"{name} {first}")
        return function(*inputs)

    return meaning


def _failing(name: str, takes: tuple[Kind, ...], gives: Kind, meaning: Any, **facts: Any) -> Any:
    return Operation(takes, gives, refuse_odd(name, meaning), fails=True, **facts)


V, C = VECTOR, CELL
_sum, _axpy = elementwise(lambda a, b: a + b), elementwise(lambda a, b: 31 * a + b)
_next = elementwise(lambda a: a + 1)
_cell_sum = lambda a, b: (a + b) % CELLS  # noqa: E731  # a meaning, as the others
_grown = lambda a, b: (5 * a + b[0]) % CELLS  # noqa: E731

OPERATIONS: dict[str, Operation] = {
    # Of the op table.
    "add": Operation((V, V), V, _sum, "compiled", pure=True),
    "subtract": Operation((V, V), V, elementwise(lambda a, b: a - b), "compiled", pure=True),
    "multiply": Operation((V, V), V, elementwise(lambda a, b: a * b), "compiled", pure=True),
    "negative": Operation((V,), V, elementwise(lambda a: -a), "compiled", pure=True),
    # Of vectors, in Python.
    "axpy": Operation((V, V), V, _axpy, pure=True),
    "note": Operation((V,), V, _next),
    "step": Operation((V, V), V, elementwise(lambda a, b: 3 * a - b), "in_place"),
    "gather": Operation((V, V), V, elementwise(lambda a, b: a + 2 * b), "cumulative"),
    "batch_axpy": Operation((V, V), V, _axpy, "batched", pure=True),
    "even_only": _failing("even_only", (V,), V, _next),
    "even_pure": _failing("even_pure", (V,), V, _next, pure=True),
    "even_batch": _failing("even_batch", (V,), V, _next, form="batched", pure=True),
    # Of cells, in Python.
    "cell_of": Operation((V,), C, lambda a: mixed(7, *(number % CELLS for number in a))),
    "vector_of": Operation((C,), V, lambda a: (wrap(a), wrap(a + 1)), pure=True),
    "stir": Operation((C,), C, mixing(11), pure=True, many=True),
    "stir_a": Operation((C,), C, mixing(13), "batched", pure=True, many=True),
    "stir_b": Operation((C,), C, mixing(17), "batched", pure=True, many=True),
    "stir_once": Operation((C,), C, mixing(19), "batched", many=True),
    "grow": Operation((C, V), C, _grown, "in_place"),
    "even_grow": _failing("even_grow", (C, V), C, _grown, form="in_place"),
    "collect": Operation((C, C), C, _cell_sum, "cumulative"),
}
"""By name. `collect` and `gather` add increments; every other one is a function of its inputs."""
