"""Many evaluations over many shapes and structures: whether the memory of the process stays flat.

Takes how many evaluations, shapes and structures, and the seconds after which it stops; prints as
JSON how many evaluations there were, and the resident memory on the way. Until two fifths of them
kernels of structures that come with several kinds of shapes are still compiled; what is given back
and taken again moves single samples by some MiB. A process of its own runs it.
"""

from __future__ import annotations

import kernel_work  # noqa: F401  # isort: skip  # first: it holds the threads of all

import gc
import itertools
import json
import math
import random
import sys
import time
from typing import Any

import numpy as np

import tenfold as tn
from plan_work.graphs import right
from plan_work.pending import kilobytes
from plan_work.programs import ELEMENTWISE, Program, Shape, make

SAMPLES = 20


def structures(count: int) -> list[Program]:
    """Different programs, elementwise, of 3 to 8 operations on arrays of three axes."""
    found: dict[str, Program] = {}
    seed = 0
    while len(found) < count:
        seed += 1
        program = make(seed, 3 + seed % 5, 3, ELEMENTWISE)
        found.setdefault(program.text, program)
    return list(found.values())


def shapes_of(count: int) -> list[Shape]:
    """So many shapes of three axes, none of them long."""
    sides = range(2, 3 + math.ceil(count ** (1 / 3)))
    found = [*itertools.product(sides, repeat=3)]
    random.Random(0).shuffle(found)
    return found[:count]


def measure(evaluations: int, shapes: int, several: int, seconds: float) -> dict[str, Any]:
    """The figures."""
    programs, all_shapes, choose = structures(several), shapes_of(shapes), random.Random(1)
    samples, wrong, done = [], 0, 0
    step = max(evaluations // SAMPLES, 1)
    begin = time.perf_counter()
    while done < evaluations and time.perf_counter() - begin < seconds:
        program = choose.choice(programs)
        arrays = program.inputs(choose.choice(all_shapes), done)
        results = program.function(tn, *map(tn.asarray, arrays))
        tn.eval(*results)
        found = [result.wait() for result in results]
        if done % 1_000 == 0:
            wrong += not right(program, found, program.function(np, *arrays))
        done += 1
        if done % step == 0:
            gc.collect()
            samples.append((done, kilobytes("VmRSS")))
    gc.collect()
    samples.append((done, kilobytes("VmRSS")))
    return {
        "evaluations": done,
        "seconds": time.perf_counter() - begin,
        "samples": samples,
        "wrong": wrong,
    }


if __name__ == "__main__":
    print(json.dumps(measure(*map(int, sys.argv[1:4]), float(sys.argv[4]))))
