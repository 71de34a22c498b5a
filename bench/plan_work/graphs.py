"""Random programs, each run once, then on new shapes: programs whose graph is never the same twice.

Takes which row and how many programs; prints the figures as JSON. A process of its own runs it
(`fresh.run("graphs", "large", 500)`), so that every structure is new there. NumPy and Tenfold run
the programs by turns, `BLOCK` of them in a turn: to compile empties the caches of the processor for
who comes next, and one program alone would be mostly that.
"""

from __future__ import annotations

import kernel_work  # noqa: F401  # isort: skip  # first: it holds the threads of all

import json
import random
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from kernel_work.measure import Row

import tenfold as tn
from plan_work.programs import ELEMENTWISE, EVERYTHING, Program, Shape, make
from tenfold import _native

SIZES = (1e3, 1e5)
SHAPES = 5
BLOCK = 25
"""Programs in a turn."""
TOLERANCE = {"float32": 1e-3, "float64": 1e-9}
"""Of the largest value, or of 1: how far values may be from NumPy's. Functions and sums differ in
the last bits, and forty operations make more of it."""


def large(count: int) -> list[tuple[Program, list[Shape]]]:
    """Programs of 5 to 40 operations, each with as many shapes as it is run on."""
    found = []
    for seed in range(count):
        choose = random.Random(seed)
        rank = choose.choice((1, 2, 2, 3))
        program = make(seed, choose.randrange(5, 39), rank, EVERYTHING)
        found.append((program, [shape(choose, rank) for _ in range(1 + SHAPES)]))
    return found


def shape(choose: random.Random, rank: int) -> Shape:
    """A shape of `SIZES` elements, of uneven sides."""
    low, high = SIZES
    elements = low * (high / low) ** choose.random()
    sides = [choose.uniform(0.6, 1.6) for _ in range(rank - 1)]
    side = elements ** (1 / rank)
    lengths = [max(int(side * each), 8) for each in sides]
    return (*lengths, max(int(elements / np.prod(lengths or [1])), 8))


def small(count: int) -> list[tuple[Program, list[Shape]]]:
    """Different programs of 3 to 8 operations on 100 elements, elementwise."""
    found: dict[str, Program] = {}
    seed = 0
    while len(found) < count:
        seed += 1
        program = make(seed, random.Random(seed).randrange(3, 8), 1, ELEMENTWISE)
        found.setdefault(program.text, program)
    return [(program, [(100,)]) for program in found.values()]


def of_tenfold(program: Program, arrays: Sequence[tn.Array]) -> tuple[Any, ...]:
    results = program.function(tn, *arrays)
    tn.eval(*results)
    return tuple(result.wait() for result in results)


def of_numpy(program: Program, arrays: Sequence[np.ndarray]) -> tuple[Any, ...]:
    return program.function(np, *arrays)


def right(program: Program, values: Sequence[tn.Array], expected: Sequence[Any]) -> bool:
    """Whether values are NumPy's, as near as they must be."""
    narrow = any(leaf.dtype == "float32" for leaf in program.leaves) or "float32" in program.text
    tolerance = TOLERANCE["float32" if narrow else "float64"]
    for value, other in zip(values, expected, strict=True):
        found, wanted = np.asarray(value), np.asarray(other)
        if found.dtype != wanted.dtype or found.shape != wanted.shape:
            return False
        allowed = tolerance * max(1.0, float(np.max(np.abs(wanted), initial=0)))
        if not np.all(np.abs(found.astype(float) - wanted) <= allowed):
            return False
    return True


def timed(runs: Sequence[tuple[Program, Shape]]) -> list[tuple[float, float, bool]]:
    """Of each run the seconds of Tenfold and of NumPy, and whether the values are right."""
    found: list[tuple[float, float, bool]] = []
    for begin in range(0, len(runs), BLOCK):
        block = runs[begin : begin + BLOCK]
        arrays = [program.inputs(shape, begin) for program, shape in block]
        given = [[tn.asarray(array) for array in several] for several in arrays]
        works = {"tenfold": (of_tenfold, given), "numpy": (of_numpy, arrays)}
        order = ["tenfold", "numpy"] if begin // BLOCK % 2 else ["numpy", "tenfold"]
        times: dict[str, list[float]] = {name: [] for name in works}
        values: dict[str, list[Any]] = {name: [] for name in works}
        for name in order:
            work, operands = works[name]
            for (program, _), several in zip(block, operands, strict=True):
                start = time.perf_counter()
                values[name].append(work(program, several))
                times[name].append(time.perf_counter() - start)
        fine = [
            right(program, own, other)
            for (program, _), own, other in zip(
                block, values["tenfold"], values["numpy"], strict=True
            )
        ]
        found += zip(times["tenfold"], times["numpy"], fine, strict=True)
    return found


def started() -> None:
    """Have what a process starts once started: the compiler, where one is needed at all."""
    for count in (100, 40_000):
        x = tn.asarray(np.ones(count))
        (x * x + 1).wait()


def of_jax(programs: Sequence[tuple[Program, list[Shape]]]) -> float | None:
    """Seconds of JAX with `jit` for these programs; None where it is not installed."""
    try:
        import jax
    except ImportError:
        return None
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_platforms", "cpu")
    jax.block_until_ready(jax.jit(lambda x: x + 1)(jax.device_put(np.ones(3))))
    seconds = 0.0
    for program, (first, *_) in programs:
        arrays = [jax.device_put(each) for each in program.inputs(first, 0)]
        begin = time.perf_counter()
        function = jax.jit(lambda *inputs, program=program: program.function(jax.numpy, *inputs))
        jax.block_until_ready(function(*arrays))
        seconds += time.perf_counter() - begin
    return seconds


def measure(which: str, count: int) -> Row:
    """The figures of a row."""
    programs = {"large": large, "small": small}[which](count)
    started()
    # the counters by themselves: an open profile has Python see to all that runs
    before = _native.read_counters()
    first = timed([(program, shapes[0]) for program, shapes in programs])
    after = _native.read_counters()
    later = timed([(program, each) for program, shapes in programs for each in shapes[1:]])
    found: Row = {
        "programs": count,
        "operations": statistics.mean(program.operations for program, _ in programs),
        "first": sums(first),
        "later": sums(later) if later else None,
        **{name: after[name] - before[name] for name in ("compiles", "generic_compiles")},
        "llvmlite": "llvmlite" in sys.modules,
    }
    if which == "small":
        found["jax"] = of_jax(programs[:JAX])
        found["jax_programs"] = min(JAX, count)
    return found


JAX = 30
"""Programs that JAX compiles; all would take half a minute."""


def sums(times: Sequence[tuple[float, float, bool]]) -> Row:
    """Of many runs the seconds in all, and those of the median and the worst one."""
    own, other, fine = (list(each) for each in zip(*times, strict=True))
    return {
        "tenfold": sum(own),
        "numpy": sum(other),
        "median": statistics.median(own),
        "worst": max(own),
        "above": sum(one > 0.015 for one in own),
        "wrong": [number for number, good in enumerate(fine) if not good],
    }


def lines(which: str, count: int) -> Iterator[str]:
    """What is printed."""
    yield json.dumps(measure(which, count))


if __name__ == "__main__":
    print(*lines(sys.argv[1], int(sys.argv[2])), sep="\n")
