"""Small and first gradients: a warm one of 50 numbers, and the first one of a process.

Takes the number of rounds; hands on a row for each. The first ones are those of new processes with
an empty cache of kernels; a child prints its seconds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import timeit
from collections.abc import Iterator
from tempfile import TemporaryDirectory

import numpy as np
from engine_work.rows import at_most, row
from kernel_work.measure import Row, median

import tenfold as tn

LENGTH, CALLS, PROCESSES, BOUND = 50, 2000, 3, 1e-13
CHILD = """
import sys, time
import numpy as np
import tenfold as tn
x = tn.asarray(np.linspace(0.1, 2, 50))
loss = lambda x: tn.sum(tn.sin(x) * tn.exp(-x * x))
begin = time.perf_counter()
if sys.argv[1] == "forward":
    loss(x).item()
else:
    value, gradient = tn.value_and_grad(loss)(x)
    tn.eval(value, gradient)
    value.item(), gradient.wait()
print(time.perf_counter() - begin)
"""


def loss(x: tn.Array) -> tn.Array:
    return tn.sum(tn.sin(x) * tn.exp(-x * x))


def first_rows(rounds: int, _quick: bool, _installed: set[str]) -> Iterator[Row]:
    """The rows."""
    values = np.linspace(0.1, 2, LENGTH)
    x, compiled = tn.asarray(values), tn.function(tn.value_and_grad(loss))

    def turn() -> tn.Array:
        value, gradient = compiled(x)
        tn.eval(value, gradient)
        return gradient.wait()

    expected = (np.cos(values) - 2 * values * np.sin(values)) * np.exp(-values * values)
    error = float(np.max(np.abs(np.asarray(turn()) - expected)))
    wrong = {} if error <= BOUND else {"tenfold": f"differs from NumPy's by {error:.3g}"}
    found = {
        name: [min(timeit.repeat(run, number=CALLS, repeat=3)) / CALLS * 1e3 for _ in range(rounds)]
        for name, run in (("tenfold", turn), ("forward", lambda: loss(x).wait()))
    }
    microseconds = median(found["tenfold"]) * 1e3
    title = f"tn.function(tn.value_and_grad(f)) of {LENGTH} numbers, warm"
    times = {name: median(each) for name, each in found.items()}
    yield {**row("small", title, times, at_most(5.0, microseconds, "us")), "wrong": wrong}
    if rounds:
        first = {name: median([_first(name) for _ in range(PROCESSES)]) for name in FORMS}
        ratio = first["gradient"] / first["forward"]
        title = "the first gradient of a process, beside the first value"
        times = {"tenfold": first["gradient"], "forward": first["forward"]}
        yield row("first", title, times, at_most(3.0, ratio, "x forward"))


FORMS = ("forward", "gradient")


def _first(form: str) -> float:
    """The milliseconds of a new process."""
    with TemporaryDirectory() as cache:
        done = subprocess.run(
            [sys.executable, "-c", CHILD, form],
            env={**os.environ, "TENFOLD_CACHE_DIR": cache},
            capture_output=True,
            text=True,
            check=True,
        )
    return float(done.stdout) * 1e3
