"""Counters that must be exact: library calls, kernels, temporaries and multiply-adds.

Takes nothing; hands on rows for the table. Each expression is evaluated twice and counted the
second time, with `tn.profile()`; its values are compared with NumPy's. The 300 random expressions
beside a search through all bracketings are a test: tests/rewrite/test_products.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from kernel_work.measure import Row

import tenfold as tn

Shapes = tuple[tuple[int, ...], ...]
NAMES = ("calls", "kernels", "temporaries", "multiply_adds")


@dataclass(frozen=True)
class Exact:
    """An expression, the shapes of its inputs and what must be counted; None: whatever."""

    title: str
    shapes: Shapes
    formula: Callable[..., Any]
    counts: tuple[int | None, ...]
    numpy: Callable[..., Any] | None = None
    """The same for NumPy, where it is written in another way."""
    dtype: str = "float64"


NAMED: list[Any] = []
"""An intermediate that has a name while its reader is computed."""


def named(value: Any) -> Any:
    """Refer to an intermediate until the next one."""
    NAMED[:] = [value]
    return value


chain = tn.function(lambda a, b, u: a @ b @ u)
SQUARE = (64, 64)
TALL, WIDE = (1000, 10), (10, 1000)
# Table.
EXACT = (
    Exact("relu(A @ B + C)", (SQUARE,) * 3, lambda a, b, c: tn.relu(a @ b + c),
        (1, 1, 0, 64**3), lambda a, b, c: np.maximum(a @ b + c, 0)),
    Exact("A + B @ C + D + E", (SQUARE,) * 5, lambda a, b, c, d, e: a + b @ c + d + e,
        (1, None, 0, 64**3)),
    Exact("B @ C + A", (SQUARE,) * 3, lambda a, b, c: b @ c + a, (1, 0, 0, 64**3)),
    Exact("A @ B + C @ D - E @ F", (SQUARE,) * 6,
        lambda a, b, c, d, e, f: a @ b + c @ d - e @ f, (3, 0, 0, 3 * 64**3)),
    Exact("conj(A).T @ (s * B)", (SQUARE,) * 2, lambda a, b: tn.conj(a).T @ (2.5 * b),
        (1, 0, 0, 64**3), lambda a, b: a.conj().T @ (2.5 * b), "complex128"),
    Exact("A @ B @ u, n = 512", ((512, 512), (512, 512), (512,)), lambda a, b, u: a @ b @ u,
        (None, None, None, 524288)),
    Exact("M = A @ B; M @ u, n = 512", ((512, 512), (512, 512), (512,)),
        lambda a, b, u: named(a @ b) @ u, (None, None, None, 524288)),
    Exact("A @ B @ u in a function, n = 512", ((512, 512), (512, 512), (512,)), chain,
        (None, None, None, 524288), lambda a, b, u: a @ b @ u),
    Exact("A @ B @ C, (1000, 10), (10, 1000), (1000, 10)", (TALL, WIDE, TALL),
        lambda a, b, c: a @ b @ c, (None, None, None, 200000)),
    Exact("trace(A @ B), n = 64", (SQUARE,) * 2, lambda a, b: tn.trace(a @ b),
        (None, None, 0, 4096), lambda a, b: np.trace(a @ b)),
)  # fmt: skip


def counted(exact: Exact) -> Row:
    """The row of one expression."""
    random = np.random.default_rng(5)
    arrays = [random.standard_normal(shape).astype(exact.dtype) for shape in exact.shapes]
    inputs = [*map(tn.asarray, arrays)]
    exact.formula(*inputs).wait()
    with tn.profile() as profile:
        values = exact.formula(*inputs).wait()
    found = [int(getattr(profile, name)) for name in NAMES]
    wanted = (exact.numpy or exact.formula)(*arrays)
    right = np.allclose(np.asarray(values), wanted, rtol=1e-9, atol=1e-9)
    verdicts = [
        {
            "required": f"{name.replace('_', '-')} {count:,}",
            "found": each,
            "met": each == count,
            "exact": True,
        }
        for name, count, each in zip(NAMES, exact.counts, found, strict=True)
        if count is not None
    ]
    verdicts.append({"required": "NumPy's values", "found": None, "met": bool(right)})
    return row(exact.title, verdicts)


def row(title: str, verdicts: list[Row]) -> Row:
    return {
        "name": title,
        "group": "counters",
        "title": title,
        "wrong": {},
        "milliseconds": {},
        "verdicts": verdicts,
    }


def saver() -> Row:
    """y += 2 * (a @ b): one call into the memory of y."""
    random = np.random.default_rng(5)
    a, b, start = (random.standard_normal(SQUARE) for _ in range(3))
    x1, x2, y = map(tn.asarray, (a, b, start))
    for _ in range(2):
        with tn.profile() as profile:
            y += 2 * (x1 @ x2)
            y.wait()
    counts = {"calls": 1, "kernels": 0, "temporaries": 0, "allocations": 0}
    verdicts = [
        {"required": f"{name} {count}", "found": found, "met": found == count, "exact": True}
        for name, count in counts.items()
        for found in [int(getattr(profile, name))]
    ]
    y *= x1 @ x2
    right = np.allclose(np.asarray(y), (start + 4 * (a @ b)) * (a @ b))
    verdicts.append({"required": "NumPy's values", "found": None, "met": bool(right)})
    return row("y += 2 * (A @ B), then y *= A @ B", verdicts)


def rows() -> Iterator[Row]:
    """All rows."""
    yield saver()
    yield from map(counted, EXACT)
