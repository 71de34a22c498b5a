"""Known plans of small arrays: expressions evaluated over and over, beside other libraries.

Takes the libraries and the number of rounds; hands on a row for each expression, dtype and size.
A call builds the expression, evaluates it and gives the result up; as one call takes about a
microsecond, many are timed together, as the statement that a user would write in a loop.

    rows({"tenfold": ..., "numpy": ...}, rounds=9)
"""

from __future__ import annotations

import timeit
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from kernel_work import THREADS
from kernel_work.measure import Row, median, take_turns

import tenfold as tn
from plan_work.first import FUNCTIONS, OPERATORS

LINEAR = "2 * a + 3 * b - c * a"
TURN = 0.02
"""Seconds of a turn."""
KNOWN = 40
"""Evaluations before anything is timed: kernels have been optimised by then."""


@dataclass(frozen=True)
class Case:
    """An expression of three arrays, and for each number of elements the most of NumPy's time."""

    name: str
    title: str
    text: str
    dtype: str
    limits: Mapping[int, float]
    peers: tuple[str, ...] = ("numpy",)


TEN = {50: 0.5, 1_000: 0.4, 10_000: 0.3}
CASES = (
    *(
        Case(f"{name}-{dtype}", f"{title}, {dtype}", text, dtype, TEN)
        for dtype in ("float32", "float64")
        for name, title, text in (
            ("operators", "10 operators", OPERATORS),
            ("functions", "10 operations with > where sqrt", FUNCTIONS),
        )
    ),
    Case(
        "linear",
        "2a+3b-ca, float64",
        LINEAR,
        "float64",
        {10: 0.6, 1_000: 0.6, 100_000: 0.2},
        ("numpy", "numba", "jax", "torch"),
    ),
)
PEERS = ("numpy", "numba", "jax", "torch")


@dataclass
class Repeated:
    """A statement, timed many times over; a stand-in for kernel_work's Runner."""

    timer: timeit.Timer
    calls: int = 1

    @staticmethod
    def of(statement: str, names: dict[str, Any]) -> Repeated:
        """One whose plan is known, with as many calls as fill a turn."""
        found = Repeated(timeit.Timer(statement, globals=names))
        found.timer.timeit(KNOWN)
        found.calls = max(int(TURN * KNOWN / found.timer.timeit(KNOWN)), KNOWN)
        return found

    def turn(self) -> float:
        """Seconds of one call."""
        self.timer.timeit(KNOWN)
        return self.timer.timeit(self.calls) / self.calls


Prepared = tuple[str, dict[str, Any]]
"""A statement, and the names in it."""


def of_tenfold(text: str, arrays: Mapping[str, np.ndarray]) -> Prepared:
    names = {name: tn.asarray(array) for name, array in arrays.items()}
    return f"({text}).wait()", {"xp": tn, **names}


def of_numpy(text: str, arrays: Mapping[str, np.ndarray]) -> Prepared:
    return text, {"xp": np, **arrays}


def of_numba(text: str, arrays: Mapping[str, np.ndarray]) -> Prepared:
    numba = import_module("numba")
    numba.set_num_threads(THREADS)
    compiled = numba.njit(fastmath=False)(function(text, np))
    return "compiled(a, b, c)", {"compiled": compiled, **arrays}


def of_jax(text: str, arrays: Mapping[str, np.ndarray]) -> Prepared:
    jax = import_module("jax")
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_platforms", "cpu")
    names = {name: jax.device_put(array) for name, array in arrays.items()}
    compiled = jax.jit(function(text, import_module("jax.numpy")))
    return "compiled(a, b, c).block_until_ready()", {"compiled": compiled, **names}


def of_torch(text: str, arrays: Mapping[str, np.ndarray]) -> Prepared:
    torch = import_module("torch")
    torch.set_num_threads(THREADS)
    names = {name: torch.from_numpy(array) for name, array in arrays.items()}
    return text, {"xp": torch, **names}


LIBRARIES: dict[str, Callable[[str, Mapping[str, np.ndarray]], Prepared]] = {
    "tenfold": of_tenfold,
    "numpy": of_numpy,
    "numba": of_numba,
    "jax": of_jax,
    "torch": of_torch,
}


def function(text: str, xp: Any) -> Callable[..., Any]:
    """The function of a, b and c that a text is."""
    made: Callable[..., Any] = eval(f"lambda a, b, c: {text}", {"xp": xp})
    return made


def inputs(count: int, dtype: str) -> dict[str, np.ndarray]:
    """Three arrays, contiguous, of numbers from 0.5 to 1.5."""
    random = np.random.default_rng(count)
    return {name: random.uniform(0.5, 1.5, count).astype(dtype) for name in "abc"}


def measure(case: Case, count: int, limit: float, there: Mapping[str, object], rounds: int) -> Row:
    """A row: the time of a call by library, and the median of the ratios to NumPy's."""
    arrays = inputs(count, case.dtype)
    expected = function(case.text, np)(**arrays)
    row: Row = {"name": f"{case.name}-{count}", "title": f"{case.title}, {count:,}", "wrong": {}}
    runners = {}
    for name in ("tenfold", *case.peers):
        if there.get(name) is None:
            continue
        statement, names = LIBRARIES[name](case.text, arrays)
        values = np.asarray(eval(statement, dict(names)))
        exactly = name == "tenfold" and np.array_equal(values, expected)
        if not exactly and (name == "tenfold" or not np.allclose(values, expected, rtol=1e-5)):
            row["wrong"][name] = "differs from NumPy"
        if rounds:
            runners[name] = Repeated.of(statement, names)
    row["rounds"] = take_turns(runners, None, rounds)  # type: ignore[arg-type]  # has turn()
    row["milliseconds"] = {name: median(row["rounds"][name]) for name in runners}
    pairs = zip(row["rounds"].get("tenfold", ()), row["rounds"].get("numpy", ()), strict=True)
    ratio = median([own / other for own, other in pairs])
    text = f"<= {limit:g}x numpy's time"
    row["verdicts"] = [{"required": text, "found": ratio, "met": ratio <= limit}]
    if "tenfold" in row["wrong"]:
        row["verdicts"].append({"required": "NumPy's values", "found": None, "met": False})
    return row


def rows(there: Mapping[str, object], rounds: int) -> Iterator[Row]:
    """All rows."""
    for case in CASES:
        for count, limit in case.limits.items():
            yield measure(case, count, limit, there, rounds)
