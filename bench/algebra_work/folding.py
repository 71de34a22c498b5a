"""Scales, signs, transposes and conjugates beside the bare product: what they add to its time.

Takes nothing; hands on rows for the table. Each formula and its bare product take turns in one run;
the ratio is the median of the ratios of the rounds. A formula is one call without temporaries.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from kernel_work.measure import Row, by_turns, median

import tenfold as tn

ORDER, ROUNDS, CALLS = 1000, 15, 5
MOST = 1.1
Formula = Callable[[Any, Any, Any, Any], Any]


@dataclass(frozen=True)
class Folded:
    """A formula of two matrices and a vector, and the bare product of the same operands."""

    title: str
    dtype: str
    formula: Formula
    bare: Formula


# Table.
FOLDED = (
    *(
        Folded(f"{title}, {dtype}", dtype, formula, bare)
        for dtype in ("float64", "complex128")
        for title, formula, bare in (
            ("2*A @ u", lambda _, a, __, u: 2 * a @ u, lambda _, a, __, u: a @ u),
            ("-A @ u", lambda _, a, __, u: -a @ u, lambda _, a, __, u: a @ u),
            ("(s*A).T @ u", lambda _, a, __, u: (1.5 * a).T @ u, lambda _, a, __, u: a.T @ u),
        )
    ),
    Folded("conj(Z).T @ z", "complex128",
        lambda xp, a, _, u: xp.conj(a).T @ u, lambda _, a, __, u: a.T @ u),
    Folded("conj(A).T @ conj(s*B)", "complex128",
        lambda xp, a, b, _: xp.conj(a).T @ xp.conj(1.5 * b), lambda _, a, b, __: a.T @ b),
)  # fmt: skip


def rows() -> Iterator[Row]:
    """All rows."""
    return map(measured, FOLDED)


def measured(folded: Folded) -> Row:
    """The row of one formula."""
    random = np.random.default_rng(5)
    arrays = [_operand(random, shape, folded.dtype) for shape in ((ORDER,) * 2,) * 2 + ((ORDER,),)]
    inputs = [*map(tn.asarray, arrays)]
    with tn.profile() as profile:
        values = folded.formula(tn, *inputs).wait()
    right = np.allclose(np.asarray(values), folded.formula(np, *arrays), rtol=1e-9, atol=1e-9)
    turns = {"tenfold": _turn(folded.formula, inputs), "bare": _turn(folded.bare, inputs)}
    rounds = by_turns(turns, ROUNDS)
    ratio = median([x / y for x, y in zip(rounds["tenfold"], rounds["bare"], strict=True)])
    counts = {"temporaries": 0, "calls": 1}
    verdicts: list[Row] = [
        {"required": f"{name} {count}", "found": found, "met": found == count, "exact": True}
        for name, count in counts.items()
        for found in [int(getattr(profile, name))]
    ]
    required = f"<= {MOST}x the bare product"
    verdicts.append({"required": required, "found": ratio, "met": ratio <= MOST})
    verdicts.append({"required": "NumPy's values", "found": None, "met": bool(right)})
    return {
        "name": folded.title,
        "group": "folding",
        "title": folded.title,
        "wrong": {},
        "milliseconds": {name: median(times) for name, times in rounds.items()},
        "verdicts": verdicts,
    }


def _operand(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    values = random.standard_normal(shape)
    if dtype == "complex128":
        return values + 1j * random.standard_normal(shape)
    return values


def _turn(formula: Formula, inputs: list[Any]) -> Callable[[], float]:
    """Return a function that gives the seconds of one call, the fastest of a few."""

    def turn() -> float:
        times = []
        for _ in range(CALLS):
            begin = time.perf_counter()
            formula(tn, *inputs).wait()
            times.append(time.perf_counter() - begin)
        return min(times)

    turn()
    return turn
