"""Second runs of random programs: `python tests/second_runs/fuzz.py --seconds 60 --seed 1`.

Each program runs in one environment after another, always against the reference, and bit for bit
against a plan that is made for that environment alone. Prints what is wrong, with the seed.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from second_run_programs import (
    HOT_THRESHOLD,
    WAYS,
    Environment,
    Program,
    Run,
    differs,
    draw_environment,
    draw_program,
    run,
)

PAIRS = 48
"""Environments of one program."""
ELSEWHERE = 0.1
"""How often another thread evaluates."""
ANEW = 0.3
"""How often bits are compared with those of a plan of its own, which takes as long as ten runs."""
DERIVED = 6
"""Of so many environments one asks for derivatives as well."""
WAY = 8
"""Of so many environments one calls the program as a function, pushed or mapped."""
EMULATED = 10
"""Of so many environments one is evaluated on the emulated device."""
LARGE_PAIRS = 2
REPEATED = (1, 1, 1, 1, 2, 3, HOT_THRESHOLD + 2)
"""How often one is evaluated: the last promotes a small graph to a plan of its own."""


def check(
    seed: int, *, large: bool = False, derived: bool = False, way: str = ""
) -> tuple[int, list[str]]:
    """Run one program in environments one after the other; return how many pairs there were, and
    what was wrong. `derived`: with derivatives in each environment; `way`: called so in each.
    """
    rng = random.Random(seed)
    program, pairs = draw_program(rng, large=large), LARGE_PAIRS if large else PAIRS
    environment, wrong, done = None, [], 0
    for number in range(pairs):
        environment = draw_environment(rng, program, environment)
        environment.derived = derived or number % DERIVED == DERIVED - 1
        environment.way = way or (list(WAYS)[number // WAY % 3] if number % WAY == 0 else "plain")
        turns = min(rng.choice(REPEATED), 3 if large else max(REPEATED))
        wanted = _run(program, environment, "reference")
        for turn in range(turns):
            done += 1
            device = "emulated" if number % EMULATED == EMULATED - 1 else "cpu"
            evaluation = partial(_run, program, environment, device, anew=rng.random() < ANEW)
            found = _elsewhere(evaluation) if rng.random() < ELSEWHERE else evaluation()
            said = _unlike(found, wanted)
            if said:
                wrong.append(
                    f"seed {seed}, environment {number}, turn {turn}: {said}\n"
                    f"{program}\n{environment}"
                )
                break
    return done, wrong


def _run(program: Program, environment: Environment, device: str, **how: bool) -> Run | type:
    """Run a program; the type of what it raises where numbers do not fit."""
    try:
        return run(program, environment, device, **how)
    except (ValueError, ArithmeticError, TypeError) as error:
        return type(error)


def _elsewhere(evaluation: Callable[[], Run | type]) -> Run | type:
    """Run in a thread of its own."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(evaluation).result()


def _unlike(found: Run | type, wanted: Run | type) -> str:
    if isinstance(found, type) or isinstance(wanted, type):
        return "" if found is wanted else f"{found} where the reference has {wanted}"
    pairs = zip(found.values, wanted.values, strict=True)
    said = [differs(x, y, found.tolerance) for x, y in pairs]
    said += [f"result {i} has other bits than a plan of its own" for i in found.unlike_anew]
    return "; ".join(filter(None, said))


def main() -> int:
    """Fuzz for some seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--large", action="store_true", help="vectors of up to 8 million")
    parser.add_argument("--derived", action="store_true", help="derivatives in each environment")
    parser.add_argument("--way", default="", choices=["plain", *WAYS], help="in each environment")
    parser.add_argument("--programs", type=int, help="how many, however long they take")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", type=int, default=20, help="failures after which it ends")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    pairs = failures = programs = 0
    for seed in itertools.count(options.seed):
        ended = time.monotonic() > end if options.programs is None else programs >= options.programs
        if ended or failures >= options.most:
            break
        programs += 1
        try:
            done, wrong = check(seed, large=options.large, derived=options.derived, way=options.way)
        except Exception:  # noqa: BLE001  # a fault is reported with its seed
            print(f"seed {seed}:", traceback.format_exc(), flush=True)
            failures += 1
            continue
        pairs += done
        failures += bool(wrong)
        for text in wrong[:1]:
            print(text, flush=True)
    print(f"{programs} programs, {pairs} evaluations, {failures} wrong programs")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
