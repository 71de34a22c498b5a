"""Loops of Python measured: without waiting, with waiting in every step, and NumPy's.

Takes the programs; prints a row for each and each number of steps: milliseconds of the first
evaluation after `tn.trim()` (kernels are on the disk), of the second and the fifth, the best of
waiting and of NumPy, ratios, and how often the first and the later evaluations planned and
compiled. The ways take turns, so that whatever else the machine does meets all of them.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from value_checks import Comparison

import tenfold as tn
import tenfold.numpy
from loop_work.programs import PROGRAMS, Program, Run, Wait
from tenfold import _native
from tenfold.runtime.devices.cpu import Cpu

Clock = Callable[[], float]

EVALUATIONS, ROUNDS = 5, 7
NEW_STEPS = 13
"""Further steps of a loop whose length is new, while its plans are known."""
LEAST_STEPS, MOST_OF_STEP = 50, 1.2
"""From so many steps the processor time of a step is the same, up to this ratio."""
MOST_RESIDENT = 120e6
"""Bytes of a process that computes Gray-Scott's loop of 300 steps."""


def never(*_: Any) -> None:
    """Wait for no step."""


def always(*state: Any) -> None:
    """Wait for each step."""
    arrays = [each for each in state if isinstance(each, tn.Array)]
    if arrays:
        tn.eval(*arrays)
    for each in arrays:
        each.wait()


class Counts(NamedTuple):
    """What evaluations planned and compiled."""

    plans: int
    compiles: int


@contextmanager
def counted() -> Iterator[list[Counts]]:
    """Yield a list that has the Counts of the block after it."""
    found: list[Counts] = []
    bind, plans = Cpu.bind, 0

    def noted(cpu: Cpu, *args: Any, **kwargs: Any) -> Any:
        nonlocal plans
        plans += 1
        return bind(cpu, *args, **kwargs)  # a Mock would keep its arguments alive

    compiles = _native.read_counters()["compiles"]  # tn.profile() computes by Python alone
    with mock.patch.object(Cpu, "bind", noted):
        yield found
    found.append(Counts(plans, _native.read_counters()["compiles"] - compiles))


def results(run: Run, library: Any, steps: int, wait: Wait) -> list[np.ndarray]:
    """Run a loop and read what it returns, together."""
    found = run(library, steps, wait)
    if library is not np:
        tn.eval(*[each for each in found if isinstance(each, tn.Array)])
    return [*map(np.asarray, found)]


def milliseconds(
    run: Run, library: Any, steps: int, wait: Wait, clock: Clock = time.perf_counter
) -> float:
    begin = clock()
    results(run, library, steps, wait)
    return 1e3 * (clock() - begin)


class Row(NamedTuple):
    """The measures of a program with a number of steps, in milliseconds."""

    times: list[float]
    """The evaluations after tn.trim()."""
    waiting: list[float]
    """The same with waiting in every step."""
    first: Counts
    later: Counts
    best: tuple[float, float, float]
    """Of rounds: not waiting, waiting, NumPy."""
    processor: tuple[float, float, float]
    """The same in processor time, which other processes disturb less."""

    def ratio(self, way: int) -> float:
        return self.best[0] / self.best[way]

    def processor_ratio(self, way: int) -> float:
        return self.processor[0] / self.processor[way]


WAITING, NUMPY = 1, 2


def measure(run: Run, steps: int) -> Row:
    """Measure the ways of a loop."""
    evaluations: dict[Wait, list[float]] = {}
    counts: dict[Wait, list[Counts]] = {}
    for wait in (always, never):
        tn.trim()
        with counted() as first:
            times = [milliseconds(run, tenfold.numpy, steps, wait)]
        with counted() as later:
            times += [milliseconds(run, tenfold.numpy, steps, wait) for _ in range(EVALUATIONS - 1)]
        evaluations[wait], counts[wait] = times, first + later
    return Row(
        evaluations[never],
        evaluations[always],
        counts[never][0],
        counts[never][1],
        best_of_rounds(run, steps, time.perf_counter),
        best_of_rounds(run, steps, time.process_time),
    )


def best_of_rounds(run: Run, steps: int, clock: Clock) -> tuple[float, float, float]:
    """Return the least milliseconds of a clock: not waiting, waiting, NumPy."""
    ways = (tenfold.numpy, never), (tenfold.numpy, always), (np, never)
    rounds = [
        [milliseconds(run, library, steps, wait, clock) for library, wait in ways]
        for _ in range(ROUNDS)
    ]
    own, waiting, numpy = map(min, zip(*rounds, strict=True))
    return own, waiting, numpy


def plans_of_new_length(run: Run, steps: int) -> Counts:
    """Return what a loop of a few steps more plans and compiles."""
    with counted() as found:
        results(run, tenfold.numpy, steps + NEW_STEPS, never)
    return found[0]


def resident_bytes() -> list[int]:
    """Return the most resident bytes of a fresh process: after its imports, and in the end."""
    done = subprocess.run(
        [sys.executable, "-c", "from loop_work.measure import in_process; in_process()"],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    return [*map(int, done.stdout.split())]


def in_process() -> None:
    """Run Gray-Scott's loop, and print the most resident bytes before and after it."""
    program = next(program for program in PROGRAMS if program.name.startswith("Gray-Scott"))
    run = program.make(np.random.default_rng(0))
    for evaluations in (0, 3):
        for _ in range(evaluations):
            results(run, tenfold.numpy, 300, never)
        found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
        assert found, "Linux reports the peak"
        print(1024 * int(found[1]))


def text(program: Program, steps: int, row: Row) -> str:
    """Return the line of a row, with what is missed."""
    evaluated = " ".join(f"{row.times[i]:8.2f}" for i in (0, 1, 4))
    waited = " ".join(f"{row.waiting[i]:8.2f}" for i in (0, 4))
    missed = [
        f"  (more than {most}x {name})"
        for name, way, most in (
            ("waiting", WAITING, program.of_waiting),
            ("NumPy", NUMPY, program.of_numpy),
        )
        if row.ratio(way) > most
    ]
    return (
        f"{program.name:24} {steps:5} steps {evaluated} ms, waiting {waited}, "
        f"NumPy {row.best[NUMPY]:7.2f}; {row.ratio(WAITING):.2f}x waiting "
        f"(processor {row.processor_ratio(WAITING):.2f}x), {row.ratio(NUMPY):.2f}x NumPy "
        f"({row.processor_ratio(NUMPY):.2f}x); plans {row.first.plans}, then {row.later.plans}; "
        f"compiles {row.first.compiles}, then {row.later.compiles}{''.join(missed)}"
    )


def report(seed: int) -> None:
    """Print a row for each program and number of steps: the first, second and fifth evaluation."""
    for program in PROGRAMS:
        run = program.make(np.random.default_rng(seed))
        of_step = []
        for steps in program.steps:
            row = measure(run, steps)
            print(text(program, steps, row), flush=True)
            if steps >= LEAST_STEPS:
                of_step.append(1e3 * row.processor[0] / steps)
        if of_step:
            ratio = max(of_step) / min(of_step)
            verdict = "" if ratio <= MOST_OF_STEP else f"  (more than {MOST_OF_STEP}x)"
            print(f"{'':24} {max(of_step):.2f} us for a step, {ratio:.2f}x the least{verdict}")
        new = plans_of_new_length(run, program.steps[-1])
        print(f"{'':24} {NEW_STEPS:5} steps more: plans {new.plans}, compiles {new.compiles}")
    begin, end = resident_bytes()
    verdict = "" if end <= MOST_RESIDENT else "  (more than 120 MB)"
    print(f"Gray-Scott, resident: {end / 1e6:.0f} MB, imports {begin / 1e6:.0f} MB{verdict}")


def compare(comparison: Comparison, seed: int = 0) -> None:
    """Compare values with NumPy's, and bits with those of waiting in every step."""
    for program in PROGRAMS:
        # each way has a loop of its own: a network remembers its steps
        made = [program.make(np.random.default_rng(seed)) for _ in range(3)]
        for steps in program.steps:
            found = results(made[0], tenfold.numpy, steps, never)
            waited = results(made[1], tenfold.numpy, steps, always)
            expected = results(made[2], np, steps, never) if program.has_values_of_numpy else waited
            name = f"{program.name}, {steps} steps"
            for own, other, reference in zip(found, waited, expected, strict=True):
                comparison.values(name, own, reference)
                if program.has_bits_of_waiting:
                    comparison.fact(f"{name}, waiting", own.tobytes() == other.tobytes())
