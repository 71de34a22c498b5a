"""What tests of loops share: bodies of loops, and the loops of Python that they stand for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tenfold as tn

SPECIAL = (0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, 5e-324, 1e308)


def numbers(*shape: int, dtype: str = "float64") -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def decay(h: Any, x: Any) -> tuple[Any, Any]:
    h = h * 0.5 + x
    return h, h * h


def unrolled(f: Callable[..., Any], carry: Any, rows: Any) -> tuple[Any, list[Any]]:
    """The loop of Python that a scan stands for, on NumPy's arrays or Tenfold's."""
    ys = []
    for row in rows:
        carry, y = f(carry, row)
        ys.append(y)
    return carry, ys


def collatz(n: Any) -> Any:
    return tn.while_loop(
        lambda s: s[0] != 1,
        lambda s: (tn.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1),
        (n, 0),
    )[1]


def steps_of(n: int) -> int:
    steps = 0
    while n != 1:
        n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
    return steps
