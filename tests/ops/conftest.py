"""What the tests of operations share: the layouts in memory in which the same values can stand."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import tenfold as tn

# The modules the tests share (grid, truths) lie beside them; pytest's importlib mode adds no paths.
sys.path.insert(0, str(Path(__file__).parent))

Layouts = dict[str, np.ndarray]


@pytest.fixture(params=["0", "auto"])
def tier(request: pytest.FixtureRequest) -> Iterator[str]:
    """By kernels of plans, and as what is seen seldom: by loops for any shape."""
    with tn.options(tier=request.param):
        yield request.param


def _strided(values: np.ndarray) -> np.ndarray:
    """Return the same values two and three elements apart."""
    steps = (2, 3, 2, 3, 2, 3)[: values.ndim]
    base = np.zeros(
        tuple(length * step for length, step in zip(values.shape, steps, strict=True)), values.dtype
    )
    view = base[(*(slice(None, None, step) for step in steps), ...)]
    view[...] = values
    return view


def _reversed(values: np.ndarray) -> np.ndarray:
    """Return the same values with negative strides on every axis."""
    backwards = (*(slice(None, None, -1) for _ in values.shape), ...)
    return values[backwards].copy()[backwards]


@pytest.fixture
def layouts() -> Callable[[np.ndarray], Layouts]:
    """A function that lays the same values out in several ways, all but one of them shared."""

    def lay_out(values: np.ndarray) -> Layouts:
        found = {
            "Fortran order": np.array(values, order="F"),
            "strided": _strided(values),
            "reversed": _reversed(values),
            "read-only": values.copy(),
        }
        for variant in found.values():
            variant.flags.writeable = False  # a writeable array would be copied to plain order
        return {"writeable": values.copy(), **found}

    return lay_out
