"""A set level of the processor changes only the target of the code: ways, counters, bits stay."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.settings import CPU_LEVELS
from tenfold.testing import assert_equal_bits

LEVELS = [name for name, level in CPU_LEVELS.items() if level <= _native.processor_level()]
OTHER = ("compiles", "background_compiles", "generic_compiles", "allocations", "bytes_allocated",
         "host_syncs")  # fmt: skip
"""Counters of code and memory, which a process makes once, and of waits, which depend on time."""
X, M = (np.arange(40) % 7 + 1) / 4, (np.arange(1600).reshape(40, 40) % 13 - 6) / 8
"""Products of these are exact, with FMA and without."""


def interpreted() -> list[Any]:
    x = tn.asarray(X)
    return [x * 2.125 + x, tn.sqrt(x)[::-1] - x, tn.asarray(M).sum(axis=0), tn.full(3, 0.5)]


def assigned() -> list[Any]:
    m, x = tn.asarray(M), tn.asarray(X)
    solution = tn.zeros(40)
    for i in range(40):
        solution[i] = x[i] - m[i, :i] @ x[:i]
    return [solution]


def planned_when_hot() -> list[Any]:
    x = tn.asarray(X)
    with tn.options(hot_threshold=2):
        return [(tn.sqrt(x + 1.0) * x - 0.25).wait() for _ in range(4)]


def batched() -> list[Any]:
    @tn.function
    def layer(m: Any, row: Any) -> Any:
        return tn.maximum(m @ row + row, 0.0)

    m = tn.asarray(M)
    return [tn.stack([layer(m, tn.asarray(X * i)) * 0.5 for i in range(200)])]


def pushed() -> list[Any]:
    with tn.Engine(threads=1) as engine:
        with engine.hold():
            sums = [engine.push(tn.operators.add, X * i, X) for i in range(50)]
            turned = [engine.push(tn.operators.multiply, engine.push(tn.operators.flip, X * i), X)
                      for i in range(50)]  # fmt: skip
        values = [handle.get() for handle in (*sums, *turned)]
        batches = engine.stats()["batches"]
    return [*values, np.asarray(batches)]


def scanned() -> list[Any]:
    return [tn.scan(lambda c, x: (c * 0.5 + x, c), tn.asarray(0.0), tn.asarray(X))[1]]


WAYS: list[Callable[[], list[Any]]] = [
    interpreted,
    assigned,
    planned_when_hot,
    batched,
    pushed,
    scanned,
]


def run(way: Callable[[], list[Any]]) -> tuple[list[np.ndarray], dict[str, int]]:
    """The values of a program, and its counters but for `OTHER`."""
    tn.trim()
    with tn.profile() as p:
        found = [np.asarray(result) for result in way()]
    return found, {name: n for name, n in p.counters().items() if name not in OTHER}


@pytest.mark.exhaustive
@pytest.mark.parametrize("cpu", LEVELS)
@pytest.mark.parametrize("way", WAYS)
def test_set_level_takes_the_ways_of_the_processor(way: Callable[[], list[Any]], cpu: str) -> None:
    with tn.options(cpu="native"):
        values, counters = run(way)
    with tn.options(cpu=cpu):
        found, counted = run(way)
    assert counted == counters
    for actual, expected in zip(found, values, strict=True):
        assert_equal_bits(actual, expected)


CODE = """
import numpy as np, tenfold as tn
x = tn.asarray(np.linspace(0.5, 2.0, 40))
def work():
    (x * 2.125 + x).wait(), x.sum().wait()
    y = tn.zeros(40).wait()
    y[1] = x[:5] @ x[5:10]
    y.wait()
for cpu in {levels}:
    with tn.options(cpu=cpu):
        for _ in range(2):
            with tn.profile() as p:
                work()
            print(p.generic_compiles, p.kernels, end=" ")
"""


def test_kernels_of_operations_are_made_for_each_level() -> None:
    code = CODE.format(levels=LEVELS)
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    first, kernels, again, same = found.stdout.split()[:4]
    assert int(first) > 0 == int(again)
    assert kernels == same
    assert found.stdout.split() == [first, kernels, again, same] * len(LEVELS)
